"""Files of a corpus searched by workers on a cluster: each is handed one file after the other and gives back its part.

What is found in a file depends on no other file, so the result is that of a single process. All hosts of the cluster
must see the files under the same names, as they do with addresses and shared folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pretrace.jobs.engine.cluster import connected
from pretrace.jobs.engine.pool import Piece, Pool
from pretrace.jobs.settings import EngineSettings
from pretrace.scan.corpus import CorpusFile
from pretrace.scan.folding import has_numba
from pretrace.scan.scan import Searching, search_file
from pretrace.scan.sightings import Part


@dataclass(frozen=True, slots=True)
class Looking:
    """The work of one searching worker."""

    asked: Searching

    def open(self) -> tuple[bool, Callable[[Any], Any]]:
        """Whether the worker has the fast engine, and what searches a file."""
        tables = self.asked.tables()
        return has_numba(), lambda file: search_file(self.asked, tables, file)


@dataclass(frozen=True, slots=True)
class ScanningCrew:
    """Searches with workers on a cluster: a `scan.scan.Crew`."""

    ray: Any
    settings: EngineSettings

    def searched(self, asked: Searching, files: Sequence[CorpusFile]) -> Iterator[tuple[CorpusFile, Part]]:
        """Each file with what was found in it, as they come."""
        pieces = (Piece(file, f"the file {file.address}", file) for file in files)
        with Pool(self.ray, Looking(asked), self.settings) as pool:
            for piece, answer in pool.each(pieces):
                yield piece.tag, answer.value


@contextmanager
def scanning_crew(settings: EngineSettings) -> Iterator[ScanningCrew | None]:
    """Who searches: workers on the cluster that the settings name, or None for the threads of this process."""
    if not settings.on_ray:
        yield None
        return
    with connected(settings.address) as ray:
        yield ScanningCrew(ray, settings)
