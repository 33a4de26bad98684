"""What the regular expressions that tokenizers split with can hold together in one piece.

Such a pattern is a row of alternatives. For each one we know, it is written down here which kinds of
character it covers and which neighbours it can hold together ("SL": a space or tab, then a letter). Two
neighbours that no alternative holds together always fall into different pieces, whatever stands around
them. Listing too many neighbours costs speed and nothing else; a pattern with an alternative that is not
listed is not understood, and its texts are encoded whole.
"""

from __future__ import annotations

import string

CLASSES = {
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
_LINES = "PR AR RR"
_ALTERNATIVES = {
    # English contractions, alone or gathered in a group.
    **dict.fromkeys(("'s", "'t", "'re", "'ve", "'m", "'ll", "'d"), ("", "AL LL")),
    **dict.fromkeys(
        ("(?i:'s|'t|'re|'ve|'m|'ll|'d)", "'(?i:[sdmt]|ll|ve|re)", "'(?:[sdmt]|ll|ve|re)"), ("", "AL LL")
    ),
    # Words, with a space or any one symbol in front; then with upper before lower case, contraction included.
    r" ?\p{L}+": ("L", "SL LL"),
    **dict.fromkeys(
        (
            r"[^\r\n\p{L}\p{N}]?\p{L}+",
            r"[^\r\n\p{L}\p{N}]?+\p{L}+",
            r"[^\r\n\p{L}\p{N}]?+\p{L}++",
            r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
        ),
        ("L", "SL PL AL LL"),
    ),
    **{
        r"[^\r\n\p{L}\p{N}]?" + word + contraction: ("L", "SL PL AL LL LA")
        for word in (
            r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
            r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
        )
        for contraction in ("", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?")
    },
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
    # White space; the look-ahead at its end is why a seam behind it needs more than two neighbours.
    **dict.fromkeys((r"\s*[\r\n]+", r"\s*[\r\n]", r"\s+(?!\S)"), ("", "SS SR RS RR")),
    r"\s+": ("SR", "SS SR RS RR"),
}


def held_together(pattern: str) -> frozenset[str] | None:
    """The neighbours a pattern can hold in one piece, as pairs of class letters; None if not understood.

    >>> "LP" in held_together(GPT2), "SL" in held_together(GPT2)
    (False, True)
    """
    covered: set[str] = set()
    pairs: set[str] = set()
    for alternative in _alternatives(pattern):
        if alternative not in _ALTERNATIVES:
            return None
        covers, holds = _ALTERNATIVES[alternative]
        covered.update(covers)
        pairs.update(holds.split())
    # What no alternative matches is left over in runs, and those would hold more together than is listed.
    return frozenset(pairs) if covered == set(CLASSES) else None


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
