"""Seams: where a text may be cut so that its parts, tokenised alone, give the tokens of the whole.

Two kinds of tokenizer have seams:

patterned  A pre-tokenizer splits by a pattern (GPT-2, Pythia, SmolLM2, Llama 3, Qwen, …) that never holds a visible
           character and a space behind it, or a letter or digit and another sign behind it, in one piece, and that
           looks at nothing before a piece.
merging    The whole text is one word of a BPE model (Llama 2, Mistral, Gemma). Merges start from single characters, so
           neighbours that no merge joins are never in one token.

In both, neighbours inside an added token (`<|endoftext|>`) are no seam: it is cut out before anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The pattern that ByteLevel(use_regex=True) has built in."""
_VISIBLE = list(range(0x21, 0x7F))
_ALONE = [code for code in _VISIBLE if chr(code).isalnum()]
_SIGNS = [*b"\t\n\r", *(code for code in _VISIBLE if not chr(code).isalnum() and chr(code) != "'")]
"""Characters of ASCII: those behind which only a letter, a digit or a contraction goes on, and what begins a piece
behind one of them. Other control characters are never cut at."""
_END, _CONTINUATION = 255, slice(0x80, 0xC0)
"""What stands before every text, a byte that UTF-8 never holds; and the last byte of characters beyond ASCII."""
_UNICODE_SPACE = "\x85\xa0\u1680\u180e\u200b\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""All that is, or in some version of Unicode was, white space beyond ASCII."""

_PLAIN_WORDS = (
    r"[^\r\n\p{L}\p{N}]?\p{L}+",
    r"[^\r\n\p{L}\p{N}]?+\p{L}+",
    r"[^\r\n\p{L}\p{N}]?+\p{L}++",
    r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
)
_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = tuple(
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}{some}{_LOWER}{others}{end}"
    for some, others in ("*+", "+*")
    for end in ("", f"{_CONTRACTION}?")
)
_CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'(?i:[sdmt]|ll|ve|re)", "'(?:[sdmt]|ll|ve|re)")
_WORDS = (r" ?\p{L}+", *_PLAIN_WORDS, *_CASED)
_NUMBERS = (r" ?\p{N}+", r"\p{N}+", r"\p{N}{1,3}", r"\p{N}{1,3}+", r"\p{N}{1,2}", r"\p{N}")
_SYMBOLS = (
    r" ?[^\s\p{L}\p{N}]+", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r" ?[^\s\p{L}\p{N}]++[\r\n]*",
    r" ?[^\s\p{L}\p{N}]++[\r\n]*+", r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*", r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
)  # fmt: skip
_WHITE_SPACE = (r"\s*[\r\n]+", r"\s*[\r\n]", r"\s+(?!\S)", r"\s+")
_KNOWN = frozenset((_CONTRACTION, *_CONTRACTIONS, *_WORDS, *_NUMBERS, *_SYMBOLS, *_WHITE_SPACE))
"""Alternatives of patterns, none of which holds a visible character and a space behind it, or one of `_ALONE` and one
of `_SIGNS`."""


def _is_understood(pattern: str) -> bool:
    r"""Whether each of a pattern's alternatives is known, and one takes all white space, of which nothing is left over.

    >>> _is_understood(GPT2), _is_understood(r"\w+|\W+")
    (True, False)
    """
    alternatives = _alternatives(pattern)
    return r"\s+" in alternatives and _KNOWN.issuperset(alternatives)


def _alternatives(pattern: str) -> list[str]:
    """The pattern split at the bars that stand outside groups and sets."""
    parts, depth, in_set, escaped = [""], 0, False, False
    for char in pattern:
        if char == "|" and not (depth or in_set or escaped):
            parts.append("")
            continue
        parts[-1] += char
        if not escaped:
            in_set = char == "[" or (in_set and char != "]")
            depth += 0 if in_set else (char == "(") - (char == ")")
        escaped = char == "\\" and not escaped
    return parts


_Spec = Mapping[str, Any]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Seams:
    """Where one tokenizer's texts may be cut.

    `flags` is bool [65536], indexed by 256 · right byte + left byte; `unsafe` are the last two bytes, 256 · first +
    second, of characters beyond ASCII behind which there is no seam all the same. `prefixed`: the tokenizer puts
    something before a text, so that a text's first piece differs from the same piece further on. A text in which
    `whole` is found must not be cut at all. `name` says it in words.
    """

    flags: Flags
    unsafe: tuple[int, ...]
    name: str
    prefixed: bool
    whole: re.Pattern[str] = re.compile("(?!)")


def find_seams(spec: _Spec) -> Seams | str:
    """The seams of a tokenizer, given as its own JSON (`json.loads(tokenizer.to_str())`), or why it has none."""
    if spec["model"].get("dropout"):
        return "its BPE model drops merges at random"
    stages = _stages(spec["pre_tokenizer"], "pretokenizers")
    normalizers = _stages(spec["normalizer"], "normalizers")
    if stages and stages[-1]["type"] == "ByteLevel":
        found = _patterned(stages, normalizers)
    else:
        found = _merging(stages, normalizers, spec["model"])
    if isinstance(found, str):
        return found
    return _around_added(found, spec["added_tokens"], {stage["type"] for stage in normalizers})


def _tails(characters: Iterable[str]) -> tuple[int, ...]:
    """The last two bytes of characters beyond ASCII."""
    return tuple(int.from_bytes(one.encode()[-2:], "big") for one in characters if not one.isascii())


def _stages(part: _Spec | None, key: str) -> list[_Spec]:
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [stage for inner in part[key] for stage in _stages(inner, key)]
    return [part]


def _patterned(stages: Sequence[_Spec], normalizers: Sequence[_Spec]) -> Seams | str:
    if any(stage["type"] != "NFC" for stage in normalizers):
        return f"its normaliser is {_names(normalizers)}, and only NFC is understood"
    *before, bytelevel = stages
    wanted = {"type": "Split", "behavior": "Isolated", "invert": False}
    if before and before[0]["type"] == "Digits":
        before.pop(0)
    if bytelevel["use_regex"] and not before:
        pattern = GPT2
    elif (
        not bytelevel["use_regex"]
        and len(before) == 1
        and wanted.items() <= before[0].items()
        and "Regex" in before[0]["pattern"]
    ):
        pattern = before[0]["pattern"]["Regex"]
    else:
        return f"its pre-tokenizer is {_names(stages)}"
    if bytelevel["add_prefix_space"] and len(stages) > 1:
        return "its pre-tokenizer puts a space before every part of a text"
    if not _is_understood(pattern):
        return "the pattern it splits with is not one of those known"
    name = f"cut by the pattern of its pre-tokenizer ({_names(stages)})"
    flags = np.zeros((256, 256), dtype=np.bool_)
    flags[np.ix_(_SIGNS, _ALONE)] = True
    flags[ord(" "), _VISIBLE] = flags[ord(" "), _CONTINUATION] = True
    return Seams(flags, _tails(_UNICODE_SPACE), name, bytelevel["add_prefix_space"])


def _merging(stages: Sequence[_Spec], normalizers: Sequence[_Spec], model: _Spec) -> Seams | str:
    if model["type"] != "BPE":
        return f"its model is {model['type']} behind the pre-tokenizer {_names(stages)}"
    if any(model.get(key) for key in ("ignore_merges", "continuing_subword_prefix", "end_of_word_suffix")):
        return "its BPE model treats words in a way of its own"
    replaces = any(_replaces_space(stage) for stage in normalizers)
    only = stages[0] if len(stages) == 1 else {"type": ""}
    metaspace = only["type"] == "Metaspace" and only["replacement"] == "▁"
    if not all(stage["type"] == "Prepend" or _replaces_space(stage) for stage in normalizers):
        return f"its normaliser is {_names(normalizers)}"
    # Gemma splits at spaces, of which its normaliser leaves none
    if stages and not metaspace and not (replaces and only.get("pattern") == {"String": " "}):
        return f"its pre-tokenizer is {_names(stages)}"
    space = "▁" if replaces or metaspace else " "
    prefixed = any(stage["type"] == "Prepend" for stage in normalizers) or (
        metaspace and stages[0]["prepend_scheme"] != "never"
    )
    flags, joins = np.zeros((256, 256), dtype=np.bool_), _list_joins(model["merges"])
    chars = [space if code == ord(" ") else chr(code) for code in range(128)]
    for right, after in enumerate(chars):
        if after in model["vocab"]:  # unknown characters in a row may become one token
            flags[right, :128] = [(before, after) not in joins for before in chars]
    flags[ord(" "), _CONTINUATION] = space in model["vocab"]
    joined = _tails(before for before, after in joins if after == space)
    return Seams(flags, joined, "cut where its BPE model has no merge", prefixed)


def _list_joins(merges: Iterable[str | Sequence[str]]) -> set[tuple[str, str]]:
    """Every pair of characters at which some merge joins two parts."""
    parts = (merge.split(" ", 1) if isinstance(merge, str) else merge for merge in merges)
    return {(left[-1], right[0]) for left, right in parts if left and right}


def _replaces_space(stage: _Spec) -> bool:
    return bool(
        stage["type"] == "Replace" and stage["pattern"] == {"String": " "} and stage["content"] == "▁"
    )


def _around_added(found: Seams, added: Iterable[_Spec], normalizers: set[str]) -> Seams | str:
    """The seams less those that an added token would be cut at, and which texts must stay whole for one."""
    flags, whole = found.flags.copy(), []
    for token in added:
        content = token["content"]
        # Such a token depends on what stands beside it, as does all that follows where a prefix is put.
        wide = found.prefixed or token["lstrip"] or token["rstrip"] or token["single_word"]
        hidden = token["normalized"] and ("NFC" in normalizers or (normalizers and set(content) & {" ", "▁"}))
        if hidden and (wide or not content.isascii()):
            return f"its added token {content!r} is looked for in the normalised text"
        if wide:
            whole.append(re.escape(content))
            continue
        for left, right in pairwise(content.encode()):
            flags[right, left] = False
            if hidden:  # a Kelvin sign, say, turns into the K on the left only when it is normalised
                flags[right, 0x80:] = False
    flags[_END, :] = True
    flags[:_END, _END] = not found.prefixed
    return replace(found, flags=flags.reshape(-1), whole=re.compile("|".join(whole) or "(?!)"))


def _names(stages: Sequence[_Spec]) -> str:
    return " + ".join(stage["type"] for stage in stages) or "none"
