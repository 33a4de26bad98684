"""Texts to token ids, once for all back ends and for counting: the tokenizer as the files of a model have it, its start
tokens, limits, spans and hash, and which texts are read together."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from pretrace.backends.libraries import transformers
from pretrace.errors import ModelError, one_error
from pretrace.results.wording import say
from pretrace.types import Encoded, Ints

STARTS = ("tokenizer", "always", "never")
_ENCODING = (
    "the tokenizer failed at a text",
    "Take its tokenizer.json again from where the model was published, or find the text and leave it out.",
)
_SLICE = 256  # texts encoded at once: an encoding takes about a hundred bytes a token while it is held


def readable(text: str) -> str:
    """The text with lone surrogates, which no tokenizer takes, replaced by U+FFFD.

    >>> readable("a\\ud800b")
    'a���b'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


class Tokens:
    """A fast tokenizer with its start rule and length limit settled. `start` is "tokenizer" (as it does by itself),
    "always" (one start token: bos, else eos) or "never"; `max_tokens` counts all that is read. An end token is never
    read: no text really ends there. ModelError where the `model` lacks embeddings of tokens that texts are made of."""

    def __init__(
        self, tokenizer: Any, *, start: str = "tokenizer", max_tokens: int | None = None, model: Any = None
    ) -> None:
        is_rust = isinstance(tokenizer, tokenizers.Tokenizer)
        backend = tokenizer if is_rust else getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ModelError(
                "the model has no fast tokenizer: a tokenizer.json is needed beside the weights."
            )
        plain = json.loads(backend.to_str())
        plain["post_processor"] = plain["truncation"] = plain["padding"] = None
        self.rust = tokenizers.Tokenizer.from_str(json.dumps(plain))
        plain = json.loads(self.rust.to_str())  # of which this decides a text's token ids
        deciding = {key: plain.get(key) for key in ("normalizer", "pre_tokenizer", "model", "added_tokens")}
        self.hash = hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()
        if start not in STARTS:
            raise ModelError(f"the start rule must be one of {', '.join(STARTS)}, found {start!r}.")
        with one_error(*_ENCODING):
            own = own_specials(tokenizer)[0]
        if start == "never":
            own = []
        elif start == "always" and len(own) != 1:
            ids = (getattr(tokenizer, name, None) for name in ("bos_token_id", "eos_token_id"))
            own = [token for token in ids if token is not None][:1]
            if not own:
                raise ModelError("start='always' needs a bos or eos token, and this tokenizer has neither.")
        self.prefix: Ints = np.array(own, dtype=np.int32)
        self.start = start
        self.read_by = reader_of(tokenizer)
        self.max_tokens = max_tokens
        weight = getattr(model and model.get_input_embeddings(), "weight", None)
        self._rows = None if weight is None else int(weight.shape[0])
        if (rows := self._rows) is not None:
            # Ordinary tokens beyond the embeddings are refused; added ones may be there, since few texts contain them.
            added = {token.content for token in self.rust.get_added_tokens_decoder().values()}
            ordinary = self.rust.get_vocab(with_added_tokens=False)
            beyond = [token for token, i in ordinary.items() if i >= rows and token not in added]
            if beyond:
                facts = {"rows": rows, "number": len(beyond), "first": beyond[0]}
                raise ModelError(say("models.other_tokenizer", **facts))
            if self.prefix.max(initial=0) >= rows:
                raise ModelError(say("models.start_beyond", rows=rows, number=self.prefix.max()))
        if max_tokens is not None and max_tokens < (least := len(self.prefix) + 2):
            raise ModelError(f"--model-args max_tokens must be at least {least}, found {max_tokens}.")

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Token ids of each text, without special tokens of its own, cut to the limit."""
        room = None if self.max_tokens is None else self.max_tokens - len(self.prefix)
        made = []
        for start in range(0, len(texts), _SLICE):
            some = [readable(text) for text in texts[start : start + _SLICE]]
            with one_error(*_ENCODING):
                encodings = self.rust.encode_batch_fast(some, add_special_tokens=False)
            for encoding in encodings:
                ids = np.array(encoding.ids, dtype=np.int32)
                if self._rows is not None and ids.max(initial=0) >= self._rows:
                    token = self.rust.id_to_token(int(ids.max()))
                    facts = {"token": token, "number": ids.max(), "rows": self._rows}
                    raise ModelError(say("models.token_beyond", **facts))
                cut = 0 if room is None else max(0, len(ids) - room)
                made.append(Encoded(self.prefix, ids[: len(ids) - cut], cut))
        return made

    def spans(self, text: str) -> npt.NDArray[np.int64]:
        """Characters [start, end) of each token, shape [n, 2]: contiguous, together the whole text. A character
        that takes several tokens belongs to the first; the others are empty."""
        with one_error(*_ENCODING):
            offsets = self.rust.encode(readable(text), add_special_tokens=False).offsets
        spans = np.zeros((len(offsets), 2), dtype=np.int64)
        if len(offsets):
            ends = np.maximum.accumulate(np.array([end for _, end in offsets], dtype=np.int64))
            ends[-1] = len(text)
            spans[:, 1] = ends
            spans[1:, 0] = ends[:-1]
        return spans


def padded(
    rows: Sequence[Sequence[int] | npt.NDArray[Any]], pad: int = 0
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows of token ids padded on the right, and the mask that is 1 on tokens; int64 [rows, longest]."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(mask.shape, pad, dtype=np.int64)
    ids[mask] = np.concatenate(rows)
    return ids, mask.astype(np.int64)


def pack(lengths: Sequence[int], budget: int) -> list[tuple[int, ...]]:
    """Batches of indices, longest texts first, such that rows × longest row stays within `budget` tokens.

    Every index with a length above 0 is in exactly one batch; a text longer than the budget goes alone.
    The longest come first, so that a run that will not fit into memory says so at once.

    >>> pack([3, 9, 0, 8, 3], budget=16)
    [(1,), (3, 0), (4,)]
    """
    order = sorted((i for i, n in enumerate(lengths) if n > 0), key=lambda i: (-lengths[i], i))
    batches: list[tuple[int, ...]] = []
    batch: list[int] = []
    for index in order:
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            batches.append(tuple(batch))
            batch = []
        batch.append(index)
    if batch:
        batches.append(tuple(batch))
    return batches


def vocabulary_of(model: object) -> frozenset[str]:
    """The words and numbers that a model's tokenizer holds as one token; none where it does not show it."""
    rust = getattr(getattr(model, "tokens", None), "rust", None)
    held = rust.get_vocab() if rust is not None else ()
    return frozenset(word for word in (token.lstrip("\u0120\u2581 ") for token in held) if word.isalnum())


_FACTS = tomllib.loads(Path(__file__).with_name("pre_tokenizers.toml").read_text(encoding="utf-8"))
"""What GGUF files name alone, and probes in which tokenizers differ."""
KEPT_READER = "tokenizer_read_by.txt"
"""Beside a tokenizer.json that we wrote: what the tokenizer had been read by."""
_PIECES = 1024  # tokens of the vocabulary in the text that is made of it


def follow_file(rust: tokenizers.Tokenizer | None, auto: Any, folder: Path) -> Any:
    """Return AutoTokenizer's tokenizer where it reads texts as that of the file does, and otherwise one that reads them
    as the file says. Without a file there is nothing to compare."""
    auto.read_by = f"AutoTokenizer ({type(auto).__name__})"
    if rust is None:
        return auto
    config = folder / "tokenizer_config.json"
    said = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
    wanted, start = said.get("add_bos_token"), auto.bos_token and rust.token_to_id(auto.bos_token)
    if start is not None and isinstance(wanted, bool):
        own = rust.encode("a").ids
        if wanted and start not in own:
            rust.post_processor = _starting(str(auto.bos_token), start)
        elif not wanted and own[:1] == [start]:
            rust.post_processor = None
    if getattr(auto, "backend_tokenizer", None) is not None and _read_alike(auto, rust):
        if (kept := folder / KEPT_READER).is_file():
            auto.read_by = kept.read_text(encoding="utf-8")
        return auto
    named = {
        role: token
        for role, token in auto.special_tokens_map.items()
        if isinstance(token, str) and rust.token_to_id(token) is not None
    }
    options = {"chat_template": auto.chat_template, "model_max_length": auto.model_max_length}
    return _wrap(rust, "tokenizer.json", **named, **options)


def reader_of(tokenizer: Any) -> str:
    """What a tokenizer was read by, as a run records it."""
    return str(getattr(tokenizer, "read_by", type(tokenizer).__name__))


def _wrap(rust: tokenizers.Tokenizer, reader: str, **options: Any) -> Any:
    """Return a transformers tokenizer that reads texts by the Rust tokenizer; `options` name its special tokens."""
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=rust, clean_up_tokenization_spaces=False, **options
    )
    made.read_by = reader
    return made


def _starting(token: str, number: int) -> processors.TemplateProcessing:
    """Return the post-processor that puts one token in front of a text."""
    return processors.TemplateProcessing(single=[token, "$A"], special_tokens=[(token, number)])


def _read_alike(auto: Any, rust: tokenizers.Tokenizer) -> bool:
    """Whether both give the same tokens for all probes, for the file's own tokens, and put the same in front."""
    added = [token.content for token in rust.get_added_tokens_decoder().values()]
    size = rust.get_vocab_size()
    pieces = rust.decode(list(range(0, size, max(1, size // _PIECES))), skip_special_tokens=False)
    texts = [*_FACTS["probes"], "x".join(f"{token} {token}y\n" for token in added), pieces]
    ours = [encoding.ids for encoding in rust.encode_batch(texts, add_special_tokens=False)]
    theirs = auto(texts, add_special_tokens=False)["input_ids"]
    return own_specials(auto)[0] == own_specials(rust)[0] and all(
        a == b for a, b in zip(ours, theirs, strict=True)
    )


def own_specials(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return what the tokenizer puts in front of a text, and behind it, by itself."""
    if isinstance(tokenizer, tokenizers.Tokenizer):
        whole, without = (tokenizer.encode("a", add_special_tokens=some).ids for some in (True, False))
    else:
        whole, without = (tokenizer("a", add_special_tokens=some)["input_ids"] for some in (True, False))
    for at in range(len(whole) - len(without) + 1):
        if whole[at : at + len(without)] == without:
            return list(whole[:at]), list(whole[at + len(without) :])
    return [], []


_BYTES = "bytes"  # the step at which bytes become characters
_PATTERNS = _FACTS["patterns"]
_PRE_TOKENIZERS: Mapping[str, tuple[str, ...]] = {
    name: tuple(re.sub(r"<([a-z]\w*)>", lambda one: _PATTERNS[one[1]], s).replace("\n", "") for s in steps)
    for names, steps in _FACTS["steps"].items()
    for name in names.split()
}
"""Steps with the patterns that they name, their lines joined."""
_STARTED, _COMPOSED = (frozenset(_FACTS[one].split()) for one in ("started", "composed"))
_WHOLE_WORDS = _STARTED | set(_FACTS["whole_words"].split())
_UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 2, 3, 4, 5, 6  # types of tokens in a GGUF file
_ORIGINAL = "Name the folder or hub id of the original weights instead of the GGUF file."


def open_gguf_tokenizer(path: Path, label: str) -> Any:
    """A transformers tokenizer that reads texts as the GGUF file says, which holds vocabulary, merges and flags, and of
    the pre-tokenizer its name only; ModelError where its kind is not known."""
    from gguf import GGUFReader

    facts = {  # by the names of the GGUF format without "tokenizer.ggml."
        name.removeprefix("tokenizer.").removeprefix("ggml."): field.contents()
        for name, field in GGUFReader(path).fields.items()
        if name.startswith("tokenizer.")
    }
    tokens, kind = list(facts["tokens"]), facts.get("model")
    if kind == "gpt2":
        rust = _byte_level(facts, tokens, label)
    elif kind in ("llama", "gemma4"):
        rust = _sentence_pieces(facts, tokens)
    else:
        raise ModelError(f"{label} names the tokenizer {kind!r}, which is not known. {_ORIGINAL}")
    types = facts.get("token_type", ())
    added = {
        kind: [
            AddedToken(token, normalized=False, special=kind == _CONTROL)
            for token, n in zip(tokens, types, strict=False)
            if n == kind
        ]
        for kind in (_CONTROL, _USER_DEFINED)
    }
    rust.add_special_tokens(added[_CONTROL])
    rust.add_tokens(added[_USER_DEFINED])
    special = {
        f"{role}_token": tokens[facts[f"{name}_token_id"]]
        for role, name in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
        if facts.get(f"{name}_token_id", len(tokens)) < len(tokens)
    }
    pre = facts.get("pre")
    # The start token of Gemma 4 is flagged, and left to the chat template by the original tokenizer.
    start = kind != "gemma4" and facts.get("add_bos_token", kind == "llama" or pre in _STARTED)
    if start and "bos_token" in special:
        rust.post_processor = _starting(special["bos_token"], facts["bos_token_id"])
    reader = f"GGUF, tokenizer {kind}" + (f", pre-tokenizer {pre}" if kind == "gpt2" else "")
    return _wrap(rust, reader, chat_template=facts.get("chat_template"), **special)


def _byte_level(facts: Mapping[str, Any], tokens: Sequence[str], label: str) -> tokenizers.Tokenizer:
    """Return a byte-level BPE behind the pre-tokenizer that the file names."""
    pre = str(facts.get("pre", ""))
    if pre not in _PRE_TOKENIZERS:
        named = f"names the pre-tokenizer {pre!r}, which is not known" if pre else "names no pre-tokenizer"
        raise ModelError(f"{label} {named}, so its tokens cannot be told. {_ORIGINAL}")
    if "merges" not in facts:
        raise ModelError(f"{label} holds no merges, so its tokens cannot be told. {_ORIGINAL}")
    rust = tokenizers.Tokenizer(
        models.BPE(
            vocab={token: i for i, token in enumerate(tokens)},
            merges=[_parted(merge) for merge in facts["merges"]],
            ignore_merges=pre in _WHOLE_WORDS,
        )
    )
    if pre in _COMPOSED:
        rust.normalizer = normalizers.NFC()
    known: dict[str, Any] = {
        _BYTES: pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        r"\p{N}": pre_tokenizers.Digits(individual_digits=True),  # the same, as counting knows it
    }
    steps = [known.get(one) or pre_tokenizers.Split(Regex(one), "isolated") for one in _PRE_TOKENIZERS[pre]]
    if _BYTES not in _PRE_TOKENIZERS[pre]:
        steps.append(known[_BYTES])
    rust.pre_tokenizer = pre_tokenizers.Sequence(steps)
    rust.decoder = decoders.ByteLevel()
    return rust


def _sentence_pieces(facts: Mapping[str, Any], tokens: Sequence[str]) -> tokenizers.Tokenizer:
    """A BPE over characters and bytes; merges that are not given follow from scores, as sentencepiece's do."""
    vocabulary = {token: i for i, token in enumerate(tokens)}
    prefixed = facts.get("add_space_prefix", facts["model"] == "llama")
    if "merges" in facts:
        merges = [_parted(merge) for merge in facts["merges"]]
    else:
        types = facts.get("token_type", [1] * len(tokens))
        plain = [
            i for i, n in enumerate(types) if n not in (_UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE)
        ]
        plain.sort(key=lambda i: -facts["scores"][i])  # stable: of equal scores the first
        merges = [
            (left, right)
            for i in plain
            for at in range(len(tokens[i]) - 1, 0, -1)  # the longest beginning first
            if (left := tokens[i][:at]) in vocabulary and (right := tokens[i][at:]) in vocabulary
        ]
    unknown = facts.get("unknown_token_id", 0)
    rust = tokenizers.Tokenizer(
        models.BPE(
            vocab=vocabulary,
            merges=merges,
            unk_token=tokens[unknown],
            fuse_unk=True,
            byte_fallback=all(f"<0x{byte:02X}>" in vocabulary for byte in range(256)),
        )
    )
    blank = normalizers.Replace(" ", "\u2581")
    rust.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), blank]) if prefixed else blank
    steps = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    rust.decoder = decoders.Sequence([*steps, *([decoders.Strip(" ", 1, 0)] if prefixed else [])])
    return rust


def _parted(merge: str) -> tuple[str, str]:
    """Return both sides of a merge as the file writes it; the left one may begin with a blank."""
    left, _, right = merge[1:].partition(" ")
    return merge[0] + left, right


# Texts that begin alike: which of their tokens are read once for many of them, and which texts go together. Many
# continuations of one beginning (orders of an item's options, texts that are read after one and the same text) cost far
# less when the keys and values of the beginning are computed once. What is shared follows from the token ids of all
# texts of a call, so that a run that was killed and starts again sees the same batches.

LEAST = 8
"""Tokens of a beginning that is worth a pass of its own on a CPU, at least; `HuggingFace.least_shared` on a GPU."""
GAIN = 0.9
"""What is left to compute, as a share of all tokens, where a beginning is shared, at most."""
WIDTH = 4
"""Times the token budget of a batch that the keys and values of its rows may take, beginnings included."""
_NEAR = 0.8  # a beginning is cut to the shortest of its batch, and to no less than this part


def behind(encoded: Sequence[Encoded], context: Encoded, most: int) -> list[Encoded]:
    """The texts as they are read after another one: its tokens stand between the start tokens and theirs, are not
    predicted, and all is cut to `most` tokens. ModelError where the context is cut or leaves no room for two tokens."""
    prefix: Ints = np.concatenate([context.prefix, context.tokens])
    room = most - len(prefix)
    if context.cut or room < 2:
        given = len(context.tokens) + context.cut
        raise ModelError(say("models.long_context", given=given, most=most))
    return [Encoded(prefix, e.tokens[:room], e.cut + max(0, len(e.tokens) - room)) for e in encoded]


def alike(encoded: Sequence[Encoded], least: int = LEAST) -> list[Encoded]:
    """The same texts, each with the number of tokens that it shares with others (`Encoded.shared`), `least` or more: of
    all ways to divide them into sets with one beginning each, the one that leaves the fewest tokens to compute."""
    made = list(encoded)
    rows = [np.concatenate([e.prefix, e.tokens]) if len(e.prefix) else e.tokens for e in encoded]
    heads = [row[:least].tobytes() if len(row) > least else b"" for row in rows]
    often = Counter(heads)
    order = [i for i, e in enumerate(encoded) if heads[i] and often[heads[i]] > 1 and e.predicted]
    keys = {i: rows[i].astype(">i4").tobytes() for i in order}
    order.sort(key=keys.__getitem__)
    common = [0] * (len(order) + 1)
    for at in range(1, len(order)):
        one, other = rows[order[at - 1]], rows[order[at]]
        if heads[order[at - 1]] == heads[order[at]]:
            most = min(len(one), len(other))
            differ = np.flatnonzero(one[:most] != other[:most])
            both = min(int(differ[0]) if len(differ) else most, most - 1)  # fewer than either has
            common[at] = both if both >= least else 0
    for found in _divided([len(rows[i]) for i in order], common) if any(common) else ():
        for i in order[found.first : found.last]:
            made[i] = replace(made[i], shared=found.depth)
    return made


@dataclass(slots=True)
class _AlikeSet:
    """Neighbours in sorted order, from `first` up to `last`, that begin with the same `depth` tokens, and how the
    texts in it would be divided among smaller sets at least cost."""

    depth: int
    first: int
    last: int
    cost: float
    parts: list[_AlikeSet]


def _divided(lengths: Sequence[int], common: Sequence[int]) -> list[_AlikeSet]:
    """The sets that cost least, by a tree, leaves first; the texts i - 1 and i share `common[i]` tokens."""
    before = np.concatenate([[0], np.cumsum(lengths)])
    open_sets: list[_AlikeSet] = [_AlikeSet(0, 0, 0, 0.0, [])]
    for end in range(1, len(lengths) + 1):
        first, cost, parts = end - 1, float(lengths[end - 1]), list[_AlikeSet]()
        while open_sets[-1].depth > common[end]:
            own = open_sets.pop()
            own.cost += cost
            own.parts += parts
            first, cost, parts = own.first, own.cost, own.parts
            whole = own.depth + float(before[end] - before[first]) - own.depth * (end - first)
            if whole <= GAIN * cost:
                cost, parts = whole, [_AlikeSet(own.depth, first, end, whole, [])]
        if open_sets[-1].depth == common[end]:
            open_sets[-1].cost += cost
            open_sets[-1].parts += parts
        else:
            open_sets.append(_AlikeSet(common[end], first, end, cost, parts))
    return open_sets[0].parts


def pack_alike(encoded: Sequence[Encoded], budget: int) -> list[tuple[int, ...]]:
    """Batches as `pack` makes them, with texts that share a beginning apart. A set that fits into a batch stays whole,
    beside others of about the same beginning; one that does not fills batches of its own."""
    sets: dict[tuple[int, bytes], list[int]] = {}
    rest = [0] * len(encoded)
    for i, e in enumerate(encoded):
        if e.predicted and e.shared:
            row = np.concatenate([e.prefix, e.tokens])[: e.shared]
            sets.setdefault((e.shared, row.tobytes()), []).append(i)
        else:
            rest[i] = e.length if e.predicted else 0
    batches: list[tuple[int, ...]] = []
    rows: list[int] = []
    depths: list[int] = []

    def fits(shared: int, found: Sequence[int]) -> bool:
        every = [*rows, *found]
        longest = max(encoded[i].length for i in every)
        cost = len(every) * (longest - shared) + (len(depths) + 1) * shared
        near = not depths or shared >= _NEAR * depths[0]
        return near and cost <= budget and len(every) * longest <= WIDTH * budget

    for (shared, _), found in sorted(sets.items(), key=lambda one: (-one[0][0], one[1][0])):
        if rows and not fits(shared, found):
            batches.append(tuple(rows))
            rows, depths = [], []
        if fits(shared, found):
            rows += found
            depths.append(shared)
            continue
        longest = max(encoded[i].length for i in found)
        room = max(1, WIDTH * budget // longest)  # rows
        for some in pack([encoded[i].length - shared for i in found], budget):
            own = [found[i] for i in some]
            batches += [tuple(own[start : start + room]) for start in range(0, len(own), room)]
    return batches + ([tuple(rows)] if rows else []) + pack(rest, budget)
