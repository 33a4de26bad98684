"""NA-PDD's table 5: how alike members are to one another, and to the non-members."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.experiments import Row, interval
from benchmarks.papers.data import Given, opened
from benchmarks.papers.detection import Piece
from pretrace.errors import MissingPackageError, TextsError
from pretrace.statistics.set_similarity import Comparing, Embed, Similarity, compare_sets

METRICS = ("jaccard1", "jaccard2", "similarity", "jsd")
NAMES = {"1-gram": "jaccard1", "2-gram": "jaccard2", "similarity": "similarity", "JS distance": "jsd"}
"""The paper's measures by what `compare_sets` calls them: its divergence is most likely scipy's distance."""
PAIRS = {"member-member": "inside", "member-nonmember": "across"}


@dataclass
class Bench:
    """What measures the pieces of a table of quality."""

    given: Given

    def measure(self, piece: Piece) -> tuple[list[Row], Row]:
        """One row with every measure. TextsError where a side has too few texts or a setting is unknown."""
        begin = time.perf_counter()
        setting = dict(piece.setting)
        side = PAIRS.get(str(setting.pop("pairs", "")))
        if side is None or setting:
            raise TextsError(f"this setting has no counterpart here: {dict(piece.setting)}.")
        corpus = opened(piece.corpus, self.given)
        sides = [[text for text in corpus.texts if text.member is member] for member in (True, False)]
        embed, why = embedder()
        found = compare_sets(sides[0], sides[1], Comparing(seed=self.given.seed), embed=embed)
        row: Row = {"score": "", "kind": "quality", **({"why": why} if why else {})}
        row |= {NAMES[one.name]: interval(_side(one, side)) for one in found.rows if one.name in NAMES}
        facts: Row = {"texts": list(found.texts), "notes": list(found.notes)}
        return [row], {**facts, "seconds": round(time.perf_counter() - begin, 1)}


def _side(one: Similarity, side: str) -> object:
    return getattr(one, side)


def embedder() -> tuple[Embed | None, str]:
    """What embeds texts, where its package is there; else None and why."""
    from pretrace.tuning.embedding import open_embedder

    try:
        return open_embedder("minilm"), ""
    except MissingPackageError as error:
        return None, str(error)
