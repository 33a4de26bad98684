"""Texts cut into sentences and pieces, and translated by MarianMT models (Tiedemann et al. 2024), by transformers' own
beam search.

These models learnt from single sentences. So a text is translated sentence by sentence, one of more than PIECE tokens
in several pieces, and joined again in order.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pretrace.backends import loading, naming
from pretrace.backends.libraries import inference, transformers
from pretrace.backends.naming import ModelSettings
from pretrace.backends.tokens import pack, readable
from pretrace.cache import Batch, cache_folder, written_once
from pretrace.errors import MissingPackageError, ModelError
from pretrace.results.wording import say
from pretrace.types import Written

Lengths = Callable[[Sequence[str]], Sequence[int]]

# A sentence with the white space behind it: up to a full stop and its closing quotes before white space, up
# to a full stop of Chinese or Japanese, which needs none, or up to the end of a line.
_SENTENCE = re.compile(r"""[^\n]*?(?:[.!?…]['"’”)\]]*(?=\s)|[。！？]['"’”）」』]*|(?=\n)|\Z)\s*""")
# Full stops that do not end a sentence: of titles and initials. No line break may follow.
_ABBREVIATED = re.compile(
    r"(?:^|\W)(?:Mr|Mrs|Ms|Dr|Prof|St|Gen|Sen|Rep|Gov|Lt|Col|Capt|Sgt|Rev|vs|[^\W\d_])\.[^\S\n]+\Z"
)
_WORD = re.compile(r"\s*\S+\s*|\s+")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space that follows it: joined, they are the text.

    A full stop ends none before a small letter, nor after an English title or a single letter.

    >>> split_sentences("Mr. J. Bell left. “Did he?” asked Ann.  Yes\\nThe end")
    ['Mr. J. Bell left. ', '“Did he?” asked Ann.  ', 'Yes\\n', 'The end']
    """
    made: list[list[str]] = []
    before = ""
    for found in filter(None, _SENTENCE.findall(text)):
        goes_on = before and "\n" not in before[len(before.rstrip()) :]
        if goes_on and (found[0].islower() or _ABBREVIATED.search(before[-30:])):
            made[-1].append(found)
        else:
            made.append([found])
        before = found
    return ["".join(some) for some in made]


def cut_pieces(text: str, limit: int, lengths: Lengths) -> list[str]:
    """The text in pieces of at most `limit` by `lengths` (a model's tokens): joined, they are the text. A piece holds
    as many whole sentences as fit. A sentence that does not fit is cut between words, a word that does not fit between
    characters; a single character is never cut."""
    return _fitted(split_sentences(text), limit, lengths)


def _fitted(parts: Sequence[str], limit: int, lengths: Lengths) -> list[str]:
    """The parts, those that are too long broken up, and neighbours put together while both are within the limit."""
    small, made, room = list[str](), list[list[str]](), 0
    for part, length in zip(parts, lengths(parts), strict=True):
        if length <= limit or len(part) == 1:
            small.append(part)
            continue
        smaller, half = _WORD.findall(part), len(part) // 2
        small += _fitted(smaller if len(smaller) > 1 else [part[:half], part[half:]], limit, lengths)
    for part, length in zip(small, lengths(small), strict=True):
        if not made or length > room:
            made.append([])
            room = limit
        made[-1].append(part)
        room -= length
    return ["".join(some) for some in made]


FORMAT = 1  # part of the fingerprint: raised whenever other translations would be made
_PARTED = re.compile(r"(\s*)(.*?)(\s*)\Z", re.DOTALL)
"""White space before, what stands between, white space behind."""
PIECE = 128
"""Tokens of a piece at most: a very long sentence."""
_CPU_BUDGET = 1024
_GPU_BUDGET = 16384
_FILES = ("source.spm", "target.spm", "vocab.json", "target_vocab.json", "tokenizer_config.json")
EMPTY = "came back empty"
CUT = "cut off at the limit of length"


Changed = tuple[str, str]
"""A transformed text, and why it cannot be used: "" where it can."""


class _Translator:
    """A MarianMT model that is asked for translations; `open_translator` makes one from a name. `beams` None takes what
    comes with the model (4 or 6 for those of Helsinki-NLP), 1 is greedy. `weights` and `tokens` name the weights and
    the tokenizer for the cache. Translations are kept unless `cache` is False."""

    def __init__(
        self, model: Any, tokenizer: Any, *, facts: Mapping[str, Any], beams: int | None, cache: bool = True
    ) -> None:
        self._model = model.eval()
        self._tokenizer = tokenizer
        self.name = str(facts["name"])
        self.beams = int(beams or getattr(model.generation_config, "num_beams", None) or 1)
        context = int(getattr(model.config, "max_position_embeddings", 512))
        self._piece = min(PIECE, context // 2)
        self._limit = min(context - 1, 2 * self._piece + 16)
        self._budget = _CPU_BUDGET if model.device.type == "cpu" else _GPU_BUDGET
        self.facts: Mapping[str, Any] = {
            **facts,
            "dtype": str(model.dtype).removeprefix("torch."),
            "beams": self.beams,
            "piece": self._piece,
        }
        self.fingerprint = json.dumps({"format": FORMAT, **self.facts, "name": None, "limit": self._limit})
        self._kept_as = self.fingerprint if cache else None

    def translate(self, texts: Sequence[str], /) -> list[Changed]:
        """Each text translated, in order, from disk where it can be; a piece of it that was cut, or came back empty, is
        its fault. ModelError where the model gives no numbers."""
        parts = [[_PARTED.findall(one)[0] for one in self._pieces(readable(text))] for text in texts]
        cores = list(dict.fromkeys(core for some in parts for _, core, _ in some if core))
        lengths = self._lengths(cores)

        def write(known: Mapping[str, Written]) -> Iterator[Batch]:
            # Planned over all the pieces, whatever is known: a killed build goes on with the same batches.
            for batch in pack(lengths, self._budget):
                if some := [cores[i] for i in batch if cores[i] not in known]:
                    yield some, self._batch(some)

        found = dict(zip(cores, written_once(self._kept_as, cores, "", write), strict=True))
        made = []
        for some in parts:
            written = {core: found[core] for _, core, _ in some if core}
            joined = "".join(
                before + (found[core].text if core else "") + after for before, core, after in some
            )
            cut = not all(one.ended for one in written.values())
            empty = any(not one.text and any(map(str.isalnum, core)) for core, one in written.items())
            made.append((joined, CUT if cut else EMPTY if empty else ""))
        return made

    def _pieces(self, text: str) -> list[str]:
        every = split_sentences(text)
        return [
            piece
            for one, length in zip(every, self._lengths(every), strict=True)
            for piece in (cut_pieces(one, self._piece, self._lengths) if length > self._piece else [one])
        ]

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, its end token left out; at least 1."""
        found = self._tokenizer(list(texts), truncation=False, verbose=False)["input_ids"] if texts else []
        return [max(1, len(ids) - 1) for ids in found]

    @inference
    def _batch(self, texts: Sequence[str]) -> list[Written]:
        given = self._tokenizer(list(texts), return_tensors="pt", padding=True, truncation=False)
        given = {name: given[name].to(self._model.device) for name in ("input_ids", "attention_mask")}
        try:
            made = self._model.generate(
                **given, num_beams=self.beams, do_sample=False, max_new_tokens=self._limit
            )
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:200]
            raise ModelError(say("build.refused.untranslated", name=self.name, reason=reason)) from None
        end = self._tokenizer.eos_token_id
        written = []
        for ids in made[:, 1:].tolist():  # behind the token the decoder starts with
            # An end in the very last place was put there by the limit, not by the model.
            ended = end in ids[: self._limit - 1]
            text = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            written.append(Written(text.strip(), ended))
        return written


def open_translator(
    source: str, settings: ModelSettings, *, beams: int | None = None, cache: bool = True
) -> _Translator:
    """The MarianMT model of a hub id, such as Helsinki-NLP/opus-mt-en-fr, or a folder. ModelError for none that may be
    opened safely (a pickle needs `allow_pickle`), MissingPackageError without the extra `all`."""
    for package in ("sentencepiece", "sacremoses"):
        # Without sacremoses transformers only warns, and translates another punctuation.
        if importlib.util.find_spec(package) is None:
            raise MissingPackageError(package, "translation", "all")
    allow_pickle = settings.allow_pickle
    located = naming.locate(source, allow_pickle=allow_pickle)
    family: object = None
    if located.gguf is None:
        try:
            family = json.loads((located.folder / "config.json").read_text(encoding="utf-8"))["model_type"]
        except (OSError, ValueError, LookupError, TypeError):
            family = "unknown"
    if family != "marian":  # before its weights are loaded
        raise ModelError(say("build.refused.no_marian", label=located.label, kind_found=family or "GGUF"))
    if missing := [name for name in _FILES[:2] if not (located.folder / name).is_file()]:
        told = {"label": located.label, "missing": " and ".join(missing)}
        raise ModelError(say("build.refused.no_sentencepiece", **told))
    files = located.weight_files(allow_pickle=allow_pickle)
    digest = naming.weights_hash(files, cache_folder() / "hashes")
    tokenizer = loading.from_pretrained(transformers.MarianTokenizer, located, settings, {})
    model, _ = loading.open_weights(transformers.MarianMTModel, located, settings)
    hashed = hashlib.sha256()
    for name in _FILES:
        path = located.folder / name
        content = path.read_bytes() if path.is_file() else b""
        hashed.update(f"{name} {len(content)}\n".encode() + content)
    facts = {"name": located.label, "weights": digest, "tokenizer": hashed.hexdigest()}
    return _Translator(model, tokenizer, facts=facts, beams=beams, cache=cache)
