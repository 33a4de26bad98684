"""A text cut where its sentences end, into pieces that fit into a model; the pieces joined are the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Lengths = Callable[[Sequence[str]], Sequence[int]]

# A sentence with the white space behind it: up to a full stop and its closing quotes before white space, up
# to a full stop of Chinese or Japanese, which needs none, or up to the end of a line.
_SENTENCE = re.compile(r"""[^\n]*?(?:[.!?…]['"’”)\]]*(?=\s)|[。！？]['"’”）」』]*|(?=\n)|\Z)\s*""")
# Full stops that do not end a sentence: of titles and initials. No line break may follow.
_ABBREVIATED = re.compile(
    r"(?:^|\W)(?:Mr|Mrs|Ms|Dr|Prof|St|Gen|Sen|Rep|Gov|Lt|Col|Capt|Sgt|Rev|vs|[^\W\d_])\.[^\S\n]+\Z"
)
_WORD = re.compile(r"\s*\S+\s*|\s+")


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space that follows it: joined, they are the text.

    A full stop ends none before a small letter, nor after an English title or a single letter.

    >>> sentences("Mr. J. Bell left. “Did he?” asked Ann.  Yes\\nThe end")
    ['Mr. J. Bell left. ', '“Did he?” asked Ann.  ', 'Yes\\n', 'The end']
    """
    made: list[list[str]] = []
    before = ""
    for found in filter(None, _SENTENCE.findall(text)):
        goes_on = before and "\n" not in before[len(before.rstrip()) :]
        if goes_on and (found[0].islower() or _ABBREVIATED.search(before[-30:])):
            made[-1].append(found)
        else:
            made.append([found])
        before = found
    return ["".join(some) for some in made]


def pieces(text: str, limit: int, lengths: Lengths) -> list[str]:
    """The text in pieces of at most `limit` by `lengths` (a model's tokens): joined, they are the text.

    A piece holds as many whole sentences as fit. A sentence that does not fit is cut between words, a word that
    does not fit between characters; a single character is never cut.
    """
    return _gathered(_broken(sentences(text), limit, lengths), limit, lengths)


def _broken(parts: Sequence[str], limit: int, lengths: Lengths) -> list[str]:
    """The parts, those that are too long cut into pieces between their words or characters."""
    made: list[str] = []
    for part, length in zip(parts, lengths(parts), strict=True):
        if length <= limit or len(part) == 1:
            made.append(part)
            continue
        smaller = _WORD.findall(part)
        if len(smaller) == 1:
            half = len(part) // 2
            smaller = [part[:half], part[half:]]
        made += _gathered(_broken(smaller, limit, lengths), limit, lengths)
    return made


def _gathered(parts: Sequence[str], limit: int, lengths: Lengths) -> list[str]:
    """Neighbouring parts put together while the sum of their lengths is within the limit."""
    made: list[list[str]] = []
    room = 0
    for part, length in zip(parts, lengths(parts), strict=True):
        if not made or length > room:
            made.append([])
            room = limit
        made[-1].append(part)
        room -= length
    return ["".join(some) for some in made]
