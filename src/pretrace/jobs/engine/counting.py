"""Tokens counted by workers on a cluster: each is handed some megabytes of text and gives back a count of each token.

Counts are exact whoever makes them, so the table is the one of a single process. Batches are added in the order of the
texts, which is what a checkpoint of the count rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pretrace.frequencies.counting import Batch, Portion
from pretrace.jobs.engine.cluster import connected
from pretrace.jobs.engine.pool import Piece, Pool
from pretrace.jobs.settings import EngineSettings

CHARACTERS = 1 << 24
"""Handed to a worker at a time: enough that most pieces of text occur more than once in them and are encoded once."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The work of one counting worker; workers must have the same version of the tokenizers."""

    portion: Portion

    def open(self) -> tuple[str, Callable[[Any], Any]]:
        """The version, and what counts a batch of texts."""
        return version("tokenizers"), self.portion.counter()


@dataclass(frozen=True, slots=True)
class CountingCrew:
    """Counts with workers on a cluster: a `frequencies.counting.Crew`."""

    ray: Any
    settings: EngineSettings
    characters: int

    def counted(self, portion: Portion, batches: Iterable[list[str]]) -> Iterator[Batch]:
        """What each batch came to, in order; those that come early wait for the ones before them."""
        known: dict[int, tuple[int, str]] = {}
        early: dict[int, Batch] = {}
        following = 0

        def pieces() -> Iterator[Piece]:
            for index, texts in enumerate(batches):
                known[index] = len(texts), texts[-1]
                yield Piece(index, f"batch {index + 1} of the texts", texts)

        with Pool(self.ray, Tokens(portion), self.settings) as pool:
            for piece, answer in pool.each(pieces()):
                early[piece.tag] = Batch(*known.pop(piece.tag), answer.value)
                while following in early:
                    yield early.pop(following)
                    following += 1


@contextmanager
def counting_crew(settings: EngineSettings) -> Iterator[CountingCrew | None]:
    """Who counts: workers on the cluster that the settings name, or None for the threads of this process."""
    if not settings.on_ray:
        yield None
        return
    with connected(settings.address) as ray:
        yield CountingCrew(ray, settings, CHARACTERS)
