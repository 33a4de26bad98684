"""Draws that nobody can choose: the seed of a test follows from its texts, its name and the settings that matter.

Whoever could choose a seed could try several and report the smallest p. Names of files, ids of texts and their place
never enter, so the same texts as a folder and as an archive give the same p.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

LEAST_DRAWS, MOST_DRAWS = 1000, 10_000_000
"""Draws of a null distribution: with fewer, p itself is a matter of luck; more than so many no memory holds."""
_BYTES = 8


def texts_hash(texts: Iterable[str], *, ordered: bool = False) -> str:
    """The SHA-256 of texts, in hexadecimal digits: of them as a multiset, or with `ordered` in their order.

    White space counts as one space and not at the ends: a line end of another system makes no other texts.
    """
    hashes = [text_digest(text) for text in texts]
    return hashlib.sha256(b"".join(hashes if ordered else sorted(hashes))).hexdigest()


def text_digest(text: str) -> bytes:
    """The SHA-256 of one text, of which `texts_hash` is made: for texts that are not held in memory."""
    return hashlib.sha256(_plain(text)).digest()


def seed_of(test: str, texts: Iterable[str], *, ordered: bool = False, **settings: Any) -> int:
    """The seed of a test's draws, from 0 to 2**64 - 1, for `numpy.random.default_rng`.

    It is a hash of the test's name, the texts (see `texts_hash`) and the `settings` that change what is tested, such as
    the score. The number of draws, the folder of the result, ids and places are none of these. Take it modulo 2**32
    where a library wants a smaller one.
    """
    return seed_from(test, texts_hash(texts, ordered=ordered), **settings)


def seed_from(test: str, hashed: str, **settings: Any) -> int:
    """The same from the `texts_hash` of the texts."""
    plain = json.dumps(settings, sort_keys=True, ensure_ascii=True, default=str)
    digest = hashlib.sha256(f"{test}\n{hashed}\n{plain}".encode()).digest()
    return int.from_bytes(digest[:_BYTES], "big")


def _plain(text: str) -> bytes:
    return " ".join(text.split()).encode("utf-8", "surrogatepass")
