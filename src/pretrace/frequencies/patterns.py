"""What the regular expressions that tokenizers split with can hold together in one piece.

Such a pattern is a row of alternatives. For each one we know, it is written down here which kinds of
character it covers and which neighbours it can hold together ("SL": a space or tab, then a letter). Two
neighbours that no alternative holds together always fall into different pieces, whatever stands around
them. Listing too many neighbours costs speed and nothing else; a pattern that holds anything not listed is
not understood, and its texts are encoded whole.
"""

from __future__ import annotations

import string
from dataclasses import dataclass

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
_LINES = "PR AR"
_PLAIN_WORDS = (
    r" ?\p{L}+",
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
    **dict.fromkeys(_PLAIN_WORDS[1:], ("L", "SL PL AL LL")),
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
_WORDS = {
    **dict.fromkeys(_PLAIN_WORDS, " ?[A-Za-z]+"),
    **dict.fromkeys(_UPPER_THEN_LOWER, " ?[A-Z]*[a-z]+"),
    **dict.fromkeys(_UPPER_ONLY, " ?[A-Z]+"),
    r" ?\p{N}+": " ?[0-9]+",
    r"\p{N}+": "[0-9]+",
    r"\p{N}{1,3}": "[0-9]{1,3}",
    r"\p{N}{1,2}": "[0-9]{1,2}",
    r"\p{N}": "[0-9]",
}
_BREAKS = (r"\s*[\r\n]+", r"\s*[\r\n]")
_WHITE_SPACE = [r"\s+(?!\S)", r"\s+"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is known of a pattern.

    `held`: the neighbours it can hold in one piece, as pairs of class letters, white space left out.
    `breaks`: white space up to its last line break is taken in one go. All that is left of a run of white
    space is one piece, less its last character where something else follows: that one stands alone, or
    goes with a word, number or symbols behind it. `words`: regular expressions for ASCII text, and what
    matches one as a whole is one piece.
    """

    held: frozenset[str]
    breaks: bool
    words: tuple[str, ...]


def understood(pattern: str) -> Pattern | None:
    """What is known of a pattern; None if any part of it is not.

    >>> known = understood(GPT2)
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
    words = tuple(_WORDS[alternative] for alternative in visible if alternative in _WORDS)
    return Pattern(held, breaks, words)


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
