"""Texts cut into sentences and pieces, and Chinese text into words."""

from __future__ import annotations

import functools
import importlib.util
import logging
import re
import tempfile
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from pretrace.errors import MissingPackageError

Lengths = Callable[[Sequence[str]], Sequence[int]]

# A sentence with the white space behind it: up to a full stop and its closing quotes before white space, up
# to a full stop of Chinese or Japanese, which needs none, or up to the end of a line.
_SENTENCE = re.compile(r"""[^\n]*?(?:[.!?…]['"’”)\]]*(?=\s)|[。！？]['"’”）」』]*|(?=\n)|\Z)\s*""")
# Full stops that do not end a sentence: of titles and initials. No line break may follow.
_ABBREVIATED = re.compile(
    r"(?:^|\W)(?:Mr|Mrs|Ms|Dr|Prof|St|Gen|Sen|Rep|Gov|Lt|Col|Capt|Sgt|Rev|vs|[^\W\d_])\.[^\S\n]+\Z"
)
_WORD = re.compile(r"\s*\S+\s*|\s+")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space that follows it: joined, they are the text.

    A full stop ends none before a small letter, nor after an English title or a single letter.

    >>> split_sentences("Mr. J. Bell left. “Did he?” asked Ann.  Yes\\nThe end")
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


def cut_pieces(text: str, limit: int, lengths: Lengths) -> list[str]:
    """The text in pieces of at most `limit` by `lengths` (a model's tokens): joined, they are the text. A piece holds
    as many whole sentences as fit. A sentence that does not fit is cut between words, a word that does not fit between
    characters; a single character is never cut."""
    return _fitted(split_sentences(text), limit, lengths)


def _fitted(parts: Sequence[str], limit: int, lengths: Lengths) -> list[str]:
    """The parts, those that are too long broken up, and neighbours put together while both are within the limit."""
    small, made, room = list[str](), list[list[str]](), 0
    for part, length in zip(parts, lengths(parts), strict=True):
        if length <= limit or len(part) == 1:
            small.append(part)
            continue
        smaller, half = _WORD.findall(part), len(part) // 2
        small += _fitted(smaller if len(smaller) > 1 else [part[:half], part[half:]], limit, lengths)
    for part, length in zip(small, lengths(small), strict=True):
        if not made or length > room:
            made.append([])
            room = limit
        made[-1].append(part)
        room -= length
    return ["".join(some) for some in made]


_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_SPACE = re.compile(r"\s")

# What jieba looks at as one stretch. It is given no more than so many characters of one at a time: its time
# grows with their square where no word of its dictionary is among them.
_STRETCH = re.compile(r"[\u4E00-\u9FD5a-zA-Z0-9+#&._%\-]{1,1000}|[^\u4E00-\u9FD5a-zA-Z0-9+#&._%\-]+")


def chinese_share(text: str) -> float:
    """The share of Chinese characters among those that are not white space; 0 for a text without any.

    >>> chinese_share("LED 灯具"), chinese_share("")
    (0.4, 0.0)
    """
    visible = len(text) - len(_SPACE.findall(text))
    return len(_CHINESE.findall(text)) / visible if visible else 0.0


class ChineseWords:
    """Cuts texts into words with jieba, by its dictionary and model; MissingPackageError without it."""

    def __init__(self) -> None:
        if importlib.util.find_spec("jieba") is None:
            raise MissingPackageError("jieba", "cutting Chinese text into words")
        self._jieba, self.version = _tokenizer()

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where each word begins and ends. Punctuation marks are words, white space is none."""
        found = []
        for stretch in _STRETCH.finditer(text):
            at = stretch.start()
            for word in self._jieba.cut(stretch[0]):
                if not word.isspace():
                    found.append((at, at + len(word)))
                at += len(word)
        return found


@functools.cache
def _tokenizer() -> tuple[Any, str]:
    """jieba's tokenizer with its dictionary, which takes a second to load, and its version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an old syntax in its source
        import jieba
    jieba.setLogLevel(logging.CRITICAL)
    made = jieba.Tokenizer()
    # else it would keep its dictionary in a file that all users of the machine share
    with tempfile.TemporaryDirectory() as folder:
        made.tmp_dir = folder
        made.initialize()
    return made, str(jieba.__version__)
