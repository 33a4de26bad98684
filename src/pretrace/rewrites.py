"""What can be done to a text before a model reads it, by the name a `View` carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Rewrite = Callable[[str], str]

REWRITES: Mapping[str, Rewrite] = {"plain": lambda text: text, "lower": str.lower}


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
