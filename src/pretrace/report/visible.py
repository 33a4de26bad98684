"""Names from strangers on a page: unseen characters spelled out, long ones shortened."""

from __future__ import annotations

from pretrace.errors import shown


def named(text: str, limit: int = 120) -> str:
    """A name or id on one line: unseen characters spelled out, shortened in the middle, never nothing."""
    return (
        shortened(shown(text[: 2 * limit] + text[-limit:] if len(text) > 3 * limit else text), limit)
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
