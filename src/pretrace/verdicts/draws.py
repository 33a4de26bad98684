"""Draws that nobody can choose: the seed of a test follows from its texts, its name and the settings that matter.

Whoever could choose a seed could try several and report the smallest p. Names of files, ids of texts and their place
never enter, so the same texts as a folder and as an archive give the same p.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

LEAST_DRAWS, MOST_DRAWS = 1000, 10_000_000
"""Draws of a null distribution: with fewer, p itself is a matter of luck; more than so many no memory holds."""
_BYTES = 8
_LOWEST = 64


def texts_hash(texts: Iterable[str]) -> str:
    """The SHA-256 of texts as a multiset, in hexadecimal digits. White space counts as one space and not at the ends:
    a line end of another system makes no other texts."""
    return hashlib.sha256(b"".join(sorted(map(text_digest, texts)))).hexdigest()


def text_digest(text: str) -> bytes:
    """The SHA-256 of one text, of which `texts_hash` is made: for texts that are not held in memory."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).digest()


def seed_of(test: str, texts: Iterable[str], **settings: Any) -> int:
    """The seed of a test's draws, from 0 to 2**64 - 1: a hash of its name, the texts (`texts_hash`) and the `settings`
    that change what is tested, such as the score, and not the number of draws, ids or places."""
    return seed_from(test, texts_hash(texts), **settings)


def seed_from(test: str, hashed: str, **settings: Any) -> int:
    """The same from the `texts_hash` of the texts."""
    plain = json.dumps(settings, sort_keys=True, ensure_ascii=True, default=str)
    digest = hashlib.sha256(f"{test}\n{hashed}\n{plain}".encode()).digest()
    return int.from_bytes(digest[:_BYTES], "big")


@dataclass(frozen=True, slots=True)
class TextsSketch:
    """The `number` of different texts of a collection and their lowest hashes, 64 at most (Broder 1997): enough to see
    whether two collections share half of the texts of the smaller one; exact where both have up to 64."""

    number: int
    lowest: tuple[str, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> TextsSketch:
        """Sketch these texts."""
        return cls.of_digests(b"".join(map(text_digest, texts)))

    @classmethod
    def of_digests(cls, digests: bytes | bytearray) -> TextsSketch:
        """Sketch texts that are not held in memory, by the `text_digest` of each, one after the other."""
        different = np.unique(np.frombuffer(digests, ">u8")[::4])
        return cls(len(different), tuple(f"{one:016x}" for one in different[:_LOWEST].tolist()))

    @classmethod
    def read(cls, plain: object) -> TextsSketch | None:
        """Read what a JSON file holds of one; None for anything else."""
        if not isinstance(plain, dict) or not isinstance(plain.get("number"), int):
            return None
        return cls(plain["number"], tuple(map(str, plain.get("lowest", ()))))

    def shares_half(self, other: TextsSketch) -> bool:
        """Say whether both have at least half of the smaller one's texts in common."""
        mine, theirs = set(self.lowest), set(other.lowest)
        lowest = heapq.nsmallest(_LOWEST, mine | theirs)
        alike = sum(one in mine and one in theirs for one in lowest) / max(1, len(lowest))  # Jaccard
        common = alike / (1 + alike) * (self.number + other.number)
        return common > 0 and common >= min(self.number, other.number) / 2
