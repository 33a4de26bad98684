"""Text from strangers, made safe to look at: what would be invisible or reorder the page is spelled out."""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Zero-width joiners hold emoji and Persian words together; they move nothing.
_JOINERS = frozenset({"\u200c", "\u200d"})


def visible(text: str, *, keep: str = "") -> str:
    """The text with control, bidirectional and other unseen characters as `[U+202E]`; those in `keep` stay.

    >>> visible("a\\u202eb\\n", keep="\\n")
    'a[U+202E]b\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c in keep or not _hidden(c) else f"[U+{ord(c):04X}]" for c in text)


def named(text: str, limit: int = 120) -> str:
    """A name or id on one line: unseen characters spelled out, shortened in the middle, never nothing."""
    return (
        shortened(visible(text[: 2 * limit] + text[-limit:] if len(text) > 3 * limit else text), limit)
        or "(empty)"
    )


def shortened(text: str, limit: int) -> str:
    """The text, or its two ends around an ellipsis where it is longer than `limit` characters.

    >>> shortened("abcdefghij", 5)
    'abc…j'
    """
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def _hidden(character: str) -> bool:
    code = ord(character)
    # The noncharacters may not stand in SVG at all, and a browser shows them as it likes.
    if code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF:
        return True
    return unicodedata.category(character) in _HIDDEN and character not in _JOINERS
