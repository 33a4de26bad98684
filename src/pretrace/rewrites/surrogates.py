"""Text that every tokenizer takes."""

from __future__ import annotations


def readable(text: str) -> str:
    """The text with lone surrogates, which no tokenizer takes, replaced by U+FFFD.

    >>> readable("a\\ud800b")
    'a���b'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text
