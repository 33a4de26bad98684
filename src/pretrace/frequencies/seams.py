"""Seams: where a text may be cut so that its parts, tokenised alone, give the tokens of the whole.

A seam is found from the bytes on its two sides, in a few cases from three, so that one table look-up per
byte finds them all. Right of a seam always stands an ASCII character: those are the same in every
version of Unicode, and NFC never joins one to what stands before it. Two kinds of tokenizer have seams:

patterned  A pre-tokenizer splits by a pattern (GPT-2, Pythia, SmolLM2, Llama 3, Qwen, …). Neighbours that
           the pattern never holds together are a seam, unless white space stands on the left: patterns
           look ahead from white space to what follows. A single white space between other characters is
           safe again, since looking ahead changes nothing for a run of one.
merging    The whole text is one word of a BPE model (Llama 2, Mistral, Gemma). Merges start from single
           characters, so neighbours that no merge joins are never in one token.

In both, neighbours inside an added token (`<|endoftext|>`) are no seam: it is cut out before anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.frequencies.patterns import CLASSES, GPT2, SPACE, held_together

SEAM = 1
CONDITIONAL = 2
"""A seam between these two bytes if the first of them and the one before it are CONFIRMING."""
CONFIRMING = 4

_ASCII = slice(0, 128)
_CONTINUATION = slice(128, 192)
_OTHER = slice(128, 255)
_END = 255
"""Stands before every text: a byte that UTF-8 never holds."""
_UNICODE_SPACE = "\x85\xa0\u1680\u180e\u200b\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""All that is, or in some version of Unicode was, white space beyond ASCII."""

Flags = npt.NDArray[np.uint8]
Spec = Mapping[str, Any]
_Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Seams:
    """Where one tokenizer's texts may be cut.

    `flags` is uint8 [65536], indexed by 256 · right byte + left byte. `prefixed`: the tokenizer puts
    something before a text, so that a text's first piece differs from the same piece further on. A text
    in which `whole` is found must not be cut at all. `name` says it in words.
    """

    flags: Flags
    name: str
    prefixed: bool = False
    whole: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Seamless:
    """Why a tokenizer's texts cannot be cut."""

    reason: str


def find_seams(spec: Spec) -> Seams | Seamless:
    """The seams of a tokenizer, given as its own JSON (`json.loads(tokenizer.to_str())`)."""
    model, added = spec["model"], spec["added_tokens"]
    if model.get("dropout"):
        return Seamless("its BPE model drops merges at random")
    stages = _stages(spec["pre_tokenizer"], "pretokenizers")
    normalizers = _stages(spec["normalizer"], "normalizers")
    if stages and stages[-1]["type"] == "ByteLevel":
        found = _patterned(stages, normalizers)
    else:
        found = _merging(stages, normalizers, model)
    if isinstance(found, Seamless):
        return found
    return _around_added(found, added, normalised=bool(normalizers))


def _stages(part: Spec | None, key: str) -> list[Spec]:
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [stage for inner in part[key] for stage in _stages(inner, key)]
    return [part]


def _patterned(stages: Sequence[Spec], normalizers: Sequence[Spec]) -> Seams | Seamless:
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
    held = held_together(pattern)
    if held is None:
        return Seamless("the pattern it splits with is not one of those known")
    flags = _pattern_flags(held)
    if digits is not None:
        _cut_at_digits(flags, alone=digits["individual_digits"])
    name = f"cut by the pattern of its pre-tokenizer ({_names(stages)})"
    return Seams(_flat(flags), name, prefixed=bytelevel["add_prefix_space"])


def _isolates(stage: Spec) -> bool:
    return (
        stage["type"] == "Split"
        and "Regex" in stage["pattern"]
        and stage["behavior"] == "Isolated"
        and not stage["invert"]
    )


def _pattern_flags(held: frozenset[str]) -> Flags:
    flags = np.zeros((256, 256), dtype=np.uint8)
    letters = {name: [ord(char) for char in chars] for name, chars in CLASSES.items()}
    for left in CLASSES:
        for right in CLASSES:
            area = np.ix_(letters[left], letters[right])
            if left not in SPACE and right in SPACE:
                flags[area] |= CONFIRMING
            if left + right not in held:
                flags[area] |= CONDITIONAL if left in SPACE else SEAM
    visible = [name for name in CLASSES if name not in SPACE]
    for right in SPACE:
        if not any(left + right in held for left in visible):
            _after_other(flags, letters[right], unsafe=_UNICODE_SPACE)
    return flags


def _after_other(flags: Flags, right: Sequence[int], *, unsafe: Iterable[str]) -> None:
    """Seams between a character beyond ASCII and `right`, except behind the unsafe ones."""
    flags[_OTHER, right] |= CONDITIONAL
    flags[:, _CONTINUATION] |= CONFIRMING
    for char in unsafe:
        before, last = char.encode()[-2:]
        flags[before, last] &= ~np.uint8(CONFIRMING)


def _cut_at_digits(flags: Flags, *, alone: bool) -> None:
    """A Digits stage parts digits from everything else, and `alone` from each other, before any pattern."""
    known = [ord(char) for name, chars in CLASSES.items() if name != "N" for char in chars]
    digits = [ord(char) for char in CLASSES["N"]]
    flags[np.ix_(known, digits)] |= SEAM
    flags[np.ix_(digits, known)] |= SEAM
    if alone:
        flags[np.ix_(digits, digits)] |= SEAM


def _merging(stages: Sequence[Spec], normalizers: Sequence[Spec], model: Spec) -> Seams | Seamless:
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
    flags = _merge_flags(_joins(model["merges"]), set(model["vocab"]), space)
    return Seams(_flat(flags), "cut where its BPE model has no merge", prefixed=prefixed)


def _replaces_space(stage: Spec) -> bool:
    return bool(
        stage["type"] == "Replace" and stage["pattern"] == {"String": " "} and stage["content"] == "▁"
    )


def _is_metaspace(stage: Spec) -> bool:
    return bool(stage["type"] == "Metaspace" and stage["replacement"] == "▁")


def _splits_at_space(stages: Sequence[Spec]) -> bool:
    """Gemma's way: it splits at spaces, of which its normaliser leaves none."""
    return len(stages) == 1 and bool(stages[0].get("pattern") == {"String": " "})


def _joins(merges: Iterable[str | Sequence[str]]) -> set[tuple[str, str]]:
    """Every pair of characters at which some merge joins two parts."""
    parts = (merge.split(" ", 1) if isinstance(merge, str) else merge for merge in merges)
    return {(left[-1], right[0]) for left, right in parts if left and right}


def _merge_flags(joins: set[tuple[str, str]], vocabulary: set[str], space: str) -> Flags:
    flags = np.zeros((256, 256), dtype=np.uint8)
    chars = [space if code == 32 else chr(code) for code in range(128)]
    for right, after in enumerate(chars):
        if after not in vocabulary:
            continue  # unknown characters in a row may become one token
        for left, before in enumerate(chars):
            if (before, after) not in joins:
                flags[left, right] |= SEAM
    if space in vocabulary:
        unsafe = {before for before, after in joins if after == space and not before.isascii()}
        _after_other(flags, [32], unsafe=unsafe)
    return flags


def _around_added(seams: Seams, added: Iterable[Spec], *, normalised: bool) -> Seams:
    """The seams less those inside added tokens, and which texts must stay whole because of one."""
    flags = seams.flags.reshape(256, 256).T.copy()
    whole = []
    for token in added:
        content = token["content"]
        for left, right in pairwise(content.encode()):
            flags[left, right] &= CONFIRMING
            if normalised:  # what stands on the left may turn into `left` only in the normalised text
                flags[_OTHER, right] &= CONFIRMING
        # Such a token also depends on what stands beside it, as does all that follows where a prefix is put.
        if seams.prefixed or token["lstrip"] or token["rstrip"] or token["single_word"]:
            whole.append(re.escape(content))
    flags[:, _END] = SEAM
    flags[_END, :] = 0 if seams.prefixed else SEAM
    flags[_END, _END] = SEAM
    pattern = re.compile("|".join(whole)) if whole else None
    return Seams(_flat(flags), seams.name, seams.prefixed, pattern)


def _flat(flags: Flags) -> Flags:
    return np.ascontiguousarray(flags.T).reshape(-1)


def _names(stages: Sequence[Spec]) -> str:
    return " + ".join(stage["type"] for stage in stages) or "none"
