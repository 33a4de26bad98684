"""The tokenizer of a GGUF file, which holds vocabulary, merges and flags, and of the pre-tokenizer its name only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from pretrace.backends.tokens import TOKENIZER_FACTS, starting, wrap
from pretrace.errors import ModelError

_BYTES = "bytes"  # the step at which bytes become characters


_PATTERNS = TOKENIZER_FACTS["patterns"]
_PRE_TOKENIZERS: Mapping[
    str, tuple[str, ...]
] = {  # steps with the patterns that they name, their lines joined
    name: tuple(re.sub(r"<([a-z]\w*)>", lambda one: _PATTERNS[one[1]], s).replace("\n", "") for s in steps)
    for names, steps in TOKENIZER_FACTS["steps"].items()
    for name in names.split()
}
_STARTED, _COMPOSED = (frozenset(TOKENIZER_FACTS[one].split()) for one in ("started", "composed"))
_WHOLE_WORDS = _STARTED | set(TOKENIZER_FACTS["whole_words"].split())
_UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 2, 3, 4, 5, 6  # types of tokens in a GGUF file
_ORIGINAL = "Name the folder or hub id of the original weights instead of the GGUF file."


def open_gguf_tokenizer(path: Path, label: str) -> Any:
    """A transformers tokenizer that reads texts as the GGUF file says; ModelError where its kind is not known."""
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
        rust.post_processor = starting(special["bos_token"], facts["bos_token_id"])
    reader = f"GGUF, tokenizer {kind}" + (f", pre-tokenizer {pre}" if kind == "gpt2" else "")
    return wrap(rust, reader, chat_template=facts.get("chat_template"), **special)


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
