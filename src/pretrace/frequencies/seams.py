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
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

# What the regular expressions that tokenizers split with can hold together in one piece.
#
# Such a pattern is a row of alternatives. For each one we know, it is written down here which kinds of
# character it covers and which neighbours it can hold together ("SL": a space or tab, then a letter). Two
# neighbours that no alternative holds together always fall into different pieces, whatever stands around
# them. Listing too many neighbours costs speed and nothing else; a pattern that holds anything not listed is
# not understood, and its texts are encoded whole.


SEAM = 1
"""Between these two bytes is a seam."""
AFTER, CONFIRMING = 2, 4
"""Between an AFTER pair is a seam if the pair that ends with its first byte is CONFIRMING."""
BEFORE, FOLLOWED = 8, 16
"""Between a BEFORE pair is a seam if the pair that begins with its second byte is FOLLOWED."""

_CONTINUATION = slice(128, 192)
_OTHER = slice(128, 255)
_UNICODE_SPACE = "\x85\xa0\u1680\u180e\u200b\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""All that is, or in some version of Unicode was, white space beyond ASCII."""

Flags = npt.NDArray[np.uint8]


def _pattern_flags(known: SplitPattern) -> Flags:
    """The seams of texts that are split by a pattern."""
    flags = np.zeros((256, 256), dtype=np.uint8)
    visible = [name for name in _CLASSES if name not in SPACE]
    for left in visible:
        for right in _CLASSES:
            if left + right not in known.held:
                flags[_area(left, right)] |= SEAM
    for right in SPACE:
        if not any(left + right in known.held for left in visible):
            _after_other(flags, _codes(right), unsafe=_UNICODE_SPACE)
    _behind_space(flags, known, visible)
    _behind_symbols(flags, known)
    return flags


def _behind_space(flags: Flags, known: SplitPattern, visible: Sequence[str]) -> None:
    """Seams in and behind white space, where a pattern looks ahead to what follows."""
    lone_breaks = not known.breaks and "PR" not in known.held
    for right in visible:
        for left in SPACE:
            if left + right in known.held:
                continue
            # White space of one character is one piece, whatever the pattern sees behind it.
            flags[_area(left, right)] |= SEAM if left == "R" and known.breaks else AFTER
            # The last of a run stands alone. Here it is cut off on both sides, or on neither.
            if left == "R" and lone_breaks:
                flags[_area(left, right)] |= FOLLOWED
        flags[_area(right, SPACE)] |= CONFIRMING
        # A space that ends a run belongs to what follows, or stands alone.
        flags[32, _codes(right)] |= FOLLOWED
    flags[_codes(SPACE), 32] |= BEFORE
    if lone_breaks:
        flags[_area(SPACE, "R")] |= BEFORE | CONFIRMING


def _behind_symbols(flags: Flags, known: SplitPattern) -> None:
    """A symbol behind a symbol or a space cannot begin a piece, and so not one that goes on with a letter."""
    symbols = _codes("PA")
    flags[np.ix_([32, *symbols], symbols)] |= CONFIRMING
    flags[_area("PA", "L")] |= AFTER
    if "RP" in known.held:  # but a slash behind line breaks ends their piece
        flags[ord("/"), symbols] &= ~np.uint8(CONFIRMING)


def _codes(names: str) -> list[int]:
    return [ord(char) for name in names for char in _CLASSES[name]]


def _area(left: str, right: str) -> tuple[npt.NDArray[np.intp], ...]:
    return np.ix_(_codes(left), _codes(right))


def _after_other(flags: Flags, right: Sequence[int], *, unsafe: Iterable[str]) -> None:
    """Seams between a character beyond ASCII and `right`, except behind the unsafe ones."""
    flags[_OTHER, right] |= AFTER
    flags[:, _CONTINUATION] |= CONFIRMING
    for char in unsafe:
        before, last = char.encode()[-2:]
        flags[before, last] &= ~np.uint8(CONFIRMING)


def _cut_at_digits(flags: Flags, *, alone: bool) -> None:
    """A Digits stage parts digits from everything else, and `alone` from each other, before any pattern."""
    others = "".join(name for name in _CLASSES if name != "N")
    flags[_area(others, "N")] |= SEAM
    flags[_area("N", others)] |= SEAM
    flags[:, _codes("N")] &= ~np.uint8(FOLLOWED)  # white space before a digit ends there, like a text
    if alone:
        flags[_area("N", "N")] |= SEAM


def list_joins(merges: Iterable[str | Sequence[str]]) -> set[tuple[str, str]]:
    """Every pair of characters at which some merge joins two parts."""
    parts = (merge.split(" ", 1) if isinstance(merge, str) else merge for merge in merges)
    return {(left[-1], right[0]) for left, right in parts if left and right}


def _merge_flags(joins: set[tuple[str, str]], vocabulary: set[str], space: str) -> Flags:
    """The seams of texts that are one word of a BPE model, which calls a space `space`."""
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


def spare_token(flags: Flags, content: bytes, *, hidden: bool) -> None:
    """Take away the seams inside an added token, and those that rely on what is there not being one."""
    for left, right in pairwise(content):
        flags[left, right] = 0
        if hidden:  # a Kelvin sign, say, turns into the K on the left only when it is normalised
            flags[_OTHER, right] = 0
    # Pieces end before a token and begin behind it, whatever else stands there.
    flags[_codes(SPACE), content[0]] &= SEAM | CONFIRMING
    flags[content[-1], :] &= ~np.uint8(CONFIRMING)


_CLASSES = {
    "L": string.ascii_letters,
    "N": string.digits,
    "P": "".join(sorted(set(string.punctuation) - {"'"})),
    "A": "'",
    "S": " \t",
    "R": "\r\n",
}
"""ASCII characters by kind. Other control characters belong to none, and are never cut at."""

SPACE = "SR"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The pattern that ByteLevel(use_regex=True) has built in."""

_SYMBOLS = "SP SA PP PA AP AA"
_LINES = "PR AR"
_PLAIN_WORDS = (
    r"[^\r\n\p{L}\p{N}]?\p{L}+",
    r"[^\r\n\p{L}\p{N}]?+\p{L}+",
    r"[^\r\n\p{L}\p{N}]?+\p{L}++",
    r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
)
_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER_THEN_LOWER = tuple(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + end
    for end in ("", f"{_CONTRACTION}?")
)
_UPPER_ONLY = tuple(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + end
    for end in ("", f"{_CONTRACTION}?")
)
_ALTERNATIVES = {
    # English contractions, alone or gathered in a group.
    **dict.fromkeys(("'s", "'t", "'re", "'ve", "'m", "'ll", "'d"), ("", "AL LL")),
    **dict.fromkeys((_CONTRACTION, "'(?i:[sdmt]|ll|ve|re)", "'(?:[sdmt]|ll|ve|re)"), ("", "AL LL")),
    # Words, with a space or any one symbol in front; then with upper before lower case, contraction included.
    r" ?\p{L}+": ("L", "SL LL"),
    **dict.fromkeys(_PLAIN_WORDS, ("L", "SL PL AL LL")),
    **dict.fromkeys((*_UPPER_THEN_LOWER, *_UPPER_ONLY), ("L", "SL PL AL LL LA")),
    # Numbers: whole, three digits at a time, one at a time.
    r" ?\p{N}+": ("N", "SN NN"),
    r"\p{N}+": ("N", "NN"),
    r"\p{N}{1,3}": ("N", "NN"),
    r"\p{N}{1,3}+": ("N", "NN"),
    r"\p{N}{1,2}": ("N", "NN"),
    r"\p{N}": ("N", ""),
    # Symbols, with the line breaks behind them in the later patterns.
    r" ?[^\s\p{L}\p{N}]+": ("PA", _SYMBOLS),
    **dict.fromkeys(
        (
            r" ?[^\s\p{L}\p{N}]+[\r\n]*",
            r" ?[^\s\p{L}\p{N}]++[\r\n]*",
            r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
            r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
        ),
        ("PA", f"{_SYMBOLS} {_LINES}"),
    ),
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*": ("PA", f"{_SYMBOLS} {_LINES} RP"),
}
_BREAKS = (r"\s*[\r\n]+", r"\s*[\r\n]")
_WHITE_SPACE = [r"\s+(?!\S)", r"\s+"]


@dataclass(frozen=True, slots=True)
class SplitPattern:
    """What is known of a pattern.

    `held`: the neighbours it can hold in one piece, as pairs of class letters, white space left out.
    `breaks`: white space up to its last line break is taken in one go. All that is left of a run of white
    space is one piece, less its last character where something else follows: that one stands alone, or
    goes with a word, number or symbols behind it.
    """

    held: frozenset[str]
    breaks: bool


def parse_pattern(pattern: str) -> SplitPattern | None:
    """What is known of a pattern; None if any part of it is not.

    >>> known = parse_pattern(GPT2)
    >>> "LP" in known.held, "SL" in known.held, known.breaks
    (False, True, False)
    """
    *visible, first, last = ["", "", *_alternatives(pattern)]
    if [first, last] != _WHITE_SPACE:
        return None
    breaks = visible[-1] in _BREAKS
    visible = visible[2:-1] if breaks else visible[2:]
    if not all(alternative in _ALTERNATIVES for alternative in visible):
        return None
    # What no alternative matches is left over in runs, and those would hold more together than is listed.
    if {letter for alternative in visible for letter in _ALTERNATIVES[alternative][0]} != set("LNPA"):
        return None
    held = frozenset(pair for alternative in visible for pair in _ALTERNATIVES[alternative][1].split())
    return SplitPattern(held, breaks)


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

_END = 255  # stands before every text: a byte that UTF-8 never holds


@dataclass(frozen=True, slots=True)
class Seams:
    """Where one tokenizer's texts may be cut.

    `flags` is uint8 [65536], indexed by 256 · right byte + left byte. It holds where none of the added
    tokens that `added` finds occurs, and `careful` holds anywhere. `prefixed`: the tokenizer puts something
    before a text, so that a text's first piece differs from the same piece further on. A text in which
    `whole` is found must not be cut at all. `name` says it in words.
    """

    flags: Flags
    careful: Flags
    name: str
    prefixed: bool
    added: re.Pattern[bytes] | None
    whole: re.Pattern[str] | None

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


def find_seams(spec: _Spec) -> Seams | Seamless:
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


def _stages(part: _Spec | None, key: str) -> list[_Spec]:
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [stage for inner in part[key] for stage in _stages(inner, key)]
    return [part]


def _patterned(stages: Sequence[_Spec], normalizers: Sequence[_Spec]) -> _Found | Seamless:
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
    known = parse_pattern(pattern)
    if known is None:
        return Seamless("the pattern it splits with is not one of those known")
    flags = _pattern_flags(known)
    if digits is not None:
        _cut_at_digits(flags, alone=digits["individual_digits"])
    name = f"cut by the pattern of its pre-tokenizer ({_names(stages)})"
    return _Found(flags, name, bytelevel["add_prefix_space"])


def _isolates(stage: _Spec) -> bool:
    return (
        stage["type"] == "Split"
        and "Regex" in stage["pattern"]
        and stage["behavior"] == "Isolated"
        and not stage["invert"]
    )


def _merging(stages: Sequence[_Spec], normalizers: Sequence[_Spec], model: _Spec) -> _Found | Seamless:
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
    flags = _merge_flags(list_joins(model["merges"]), set(model["vocab"]), space)
    return _Found(flags, "cut where its BPE model has no merge", prefixed)


def _replaces_space(stage: _Spec) -> bool:
    return bool(
        stage["type"] == "Replace" and stage["pattern"] == {"String": " "} and stage["content"] == "▁"
    )


def _is_metaspace(stage: _Spec) -> bool:
    return bool(stage["type"] == "Metaspace" and stage["replacement"] == "▁")


def _splits_at_space(stages: Sequence[_Spec]) -> bool:
    """Gemma's way: it splits at spaces, of which its normaliser leaves none."""
    return len(stages) == 1 and bool(stages[0].get("pattern") == {"String": " "})


def _around_added(found: _Found, added: Iterable[_Spec], normalizers: set[str]) -> Seams | Seamless:
    """The seams less those that an added token would be cut at, and which texts must stay whole for one."""
    flags, careful = found.flags.copy(), found.flags.copy()
    searched, whole = [], []
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
        spare_token(careful, content.encode(), hidden=bool(hidden))
        if hidden:
            spare_token(flags, content.encode(), hidden=True)
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
    )


def _flat(flags: Flags) -> Flags:
    return np.ascontiguousarray(flags.T).reshape(-1)


def _names(stages: Sequence[_Spec]) -> str:
    return " + ".join(stage["type"] for stage in stages) or "none"
