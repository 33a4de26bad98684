"""Seams: where a text may be cut so that its parts, tokenised alone, give the tokens of the whole.

A seam is found from the bytes on its two sides and at most one more, so that one table look-up per byte
finds them all. Right of a seam always stands an ASCII character: those are the same in every version of
Unicode, and NFC never joins one to what stands before it. Two kinds of tokenizer have seams:

patterned  A pre-tokenizer splits by a pattern (GPT-2, Pythia, SmolLM2, Llama 3, Qwen, …), and neighbours
           that the pattern never holds together are a seam.
merging    The whole text is one word of a BPE model (Llama 2, Mistral, Gemma). Merges start from single
           characters, so neighbours that no merge joins are never in one token.

In both, neighbours inside an added token (`<|endoftext|>`) are no seam where one occurs: it is cut out
before anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pretrace.frequencies.patterns import (
    GPT2,
    SEAM,
    Flags,
    cut_at_digits,
    joins,
    merge_flags,
    pattern_flags,
    spare,
    understood,
)

Spec = Mapping[str, Any]

_END = 255  # stands before every text: a byte that UTF-8 never holds


@dataclass(frozen=True, slots=True)
class Seams:
    """Where one tokenizer's texts may be cut.

    `flags` is uint8 [65536], indexed by 256 · right byte + left byte. It holds where none of the added
    tokens that `added` finds occurs, and `careful` holds anywhere. `prefixed`: the tokenizer puts something
    before a text, so that a text's first piece differs from the same piece further on. A text in which
    `whole` is found must not be cut at all. What matches `words` as a whole (letters, digits and spaces of
    ASCII) is a single word for the tokenizer's model, which calls a space `space`; None where some is not.
    `name` says it in words.
    """

    flags: Flags
    careful: Flags
    name: str
    prefixed: bool
    added: re.Pattern[bytes] | None
    whole: re.Pattern[str] | None
    words: str | None
    space: str

    def at(self, raw: bytes) -> Flags:
        """The flags that hold in these texts."""
        return self.flags if self.added is None or self.added.search(raw) is None else self.careful


@dataclass(frozen=True, slots=True)
class Seamless:
    """Why a tokenizer's texts cannot be cut."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Found:
    """Flags [left, right] of a tokenizer without added tokens."""

    flags: Flags
    name: str
    prefixed: bool
    words: Sequence[str]
    space: str


def find_seams(spec: Spec) -> Seams | Seamless:
    """The seams of a tokenizer, given as its own JSON (`json.loads(tokenizer.to_str())`)."""
    if spec["model"].get("dropout"):
        return Seamless("its BPE model drops merges at random")
    stages = _stages(spec["pre_tokenizer"], "pretokenizers")
    normalizers = _stages(spec["normalizer"], "normalizers")
    if stages and stages[-1]["type"] == "ByteLevel":
        found = _patterned(stages, normalizers)
    else:
        found = _merging(stages, normalizers, spec["model"])
    if isinstance(found, Seamless):
        return found
    return _around_added(found, spec["added_tokens"], {stage["type"] for stage in normalizers})


def _stages(part: Spec | None, key: str) -> list[Spec]:
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [stage for inner in part[key] for stage in _stages(inner, key)]
    return [part]


def _patterned(stages: Sequence[Spec], normalizers: Sequence[Spec]) -> _Found | Seamless:
    if any(stage["type"] != "NFC" for stage in normalizers):
        return Seamless(f"its normaliser is {_names(normalizers)}, and only NFC is understood")
    *before, bytelevel = stages
    digits = before.pop(0) if before and before[0]["type"] == "Digits" else None
    if bytelevel["use_regex"] and not before:
        pattern = GPT2
    elif not bytelevel["use_regex"] and len(before) == 1 and _isolates(before[0]):
        pattern = before[0]["pattern"]["Regex"]
    else:
        return Seamless(f"its pre-tokenizer is {_names(stages)}")
    if bytelevel["add_prefix_space"] and len(stages) > 1:
        return Seamless("its pre-tokenizer puts a space before every part of a text")
    known = understood(pattern)
    if known is None:
        return Seamless("the pattern it splits with is not one of those known")
    flags, words = pattern_flags(known), known.words
    if digits is not None:
        cut_at_digits(flags, alone=digits["individual_digits"])
        words = (
            *(word for word in words if "0" not in word),
            "[0-9]" if digits["individual_digits"] else "[0-9]+",
        )
    name = f"cut by the pattern of its pre-tokenizer ({_names(stages)})"
    return _Found(flags, name, bytelevel["add_prefix_space"], words, "Ġ")


def _isolates(stage: Spec) -> bool:
    return (
        stage["type"] == "Split"
        and "Regex" in stage["pattern"]
        and stage["behavior"] == "Isolated"
        and not stage["invert"]
    )


def _merging(stages: Sequence[Spec], normalizers: Sequence[Spec], model: Spec) -> _Found | Seamless:
    if model["type"] != "BPE":
        return Seamless(f"its model is {model['type']} behind the pre-tokenizer {_names(stages)}")
    if any(model.get(key) for key in ("ignore_merges", "continuing_subword_prefix", "end_of_word_suffix")):
        return Seamless("its BPE model treats words in a way of its own")
    replaces = any(_replaces_space(stage) for stage in normalizers)
    metaspace = len(stages) == 1 and _is_metaspace(stages[0])
    if not all(stage["type"] == "Prepend" or _replaces_space(stage) for stage in normalizers):
        return Seamless(f"its normaliser is {_names(normalizers)}")
    if stages and not metaspace and not (replaces and _splits_at_space(stages)):
        return Seamless(f"its pre-tokenizer is {_names(stages)}")
    space = "▁" if replaces or metaspace else " "
    prefixed = any(stage["type"] == "Prepend" for stage in normalizers) or (
        metaspace and stages[0]["prepend_scheme"] != "never"
    )
    flags = merge_flags(joins(model["merges"]), set(model["vocab"]), space)
    return _Found(flags, "cut where its BPE model has no merge", prefixed, [" ?[A-Za-z0-9]+"], space)


def _replaces_space(stage: Spec) -> bool:
    return bool(
        stage["type"] == "Replace" and stage["pattern"] == {"String": " "} and stage["content"] == "▁"
    )


def _is_metaspace(stage: Spec) -> bool:
    return bool(stage["type"] == "Metaspace" and stage["replacement"] == "▁")


def _splits_at_space(stages: Sequence[Spec]) -> bool:
    """Gemma's way: it splits at spaces, of which its normaliser leaves none."""
    return len(stages) == 1 and bool(stages[0].get("pattern") == {"String": " "})


def _around_added(found: _Found, added: Iterable[Spec], normalizers: set[str]) -> Seams | Seamless:
    """The seams less those that an added token would be cut at, and which texts must stay whole for one."""
    flags, careful = found.flags.copy(), found.flags.copy()
    searched, whole = [], []
    words: str | None = "|".join(found.words)
    for token in added:
        content = token["content"]
        # Such a token depends on what stands beside it, as does all that follows where a prefix is put.
        wide = found.prefixed or token["lstrip"] or token["rstrip"] or token["single_word"]
        hidden = token["normalized"] and ("NFC" in normalizers or (normalizers and set(content) & {" ", "▁"}))
        if hidden and (wide or not content.isascii()):
            return Seamless(f"its added token {content!r} is looked for in the normalised text")
        if wide:
            whole.append(re.escape(content))
            continue
        if re.fullmatch("[A-Za-z0-9 ]+", content):
            words = None
        spare(careful, content.encode(), hidden=bool(hidden))
        if hidden:
            spare(flags, content.encode(), hidden=True)
        else:
            searched.append(re.escape(content.encode()))
    for table in (flags, careful):
        table[:, _END] = SEAM
        table[_END, :] = 0 if found.prefixed else SEAM
        table[_END, _END] = SEAM
    return Seams(
        _flat(flags),
        _flat(careful),
        found.name,
        found.prefixed,
        re.compile(b"|".join(searched)) if searched else None,
        re.compile("|".join(whole)) if whole else None,
        words,
        found.space,
    )


def _flat(flags: Flags) -> Flags:
    return np.ascontiguousarray(flags.T).reshape(-1)


def _names(stages: Sequence[Spec]) -> str:
    return " + ".join(stage["type"] for stage in stages) or "none"
