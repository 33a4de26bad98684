"""What is kept of each text in one file, against adding it up one by one."""

from __future__ import annotations

import numpy as np
import pytest

from pretrace.scan import sightings
from pretrace.scan.corpus import Facts


@pytest.mark.parametrize("seed", range(3))
def test_the_documents_that_hold_most_of_a_text_are_named_as_one_by_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More documents than are kept, with many that hold as much, in buffers of many sizes."""
    monkeypatch.setattr(sightings, "SIGHTED", 40)
    rng = np.random.default_rng(seed)
    sizes = [400, 300, 900]
    gathering = sightings.Gathering("corpus.jsonl", [0, 401, 702], sizes)
    every: dict[int, list[tuple[int, int, int, int, int]]] = {0: [], 1: [], 2: []}
    asked: list[int] = []
    number = 0
    for _ in range(25):
        rows, many = [], int(rng.integers(1, 12))
        for document in range(many):
            for text in np.flatnonzero(rng.random(3) < 0.7).tolist():
                start = int(rng.integers(0, 100))
                end = start + 50 + 10 * int(rng.integers(0, 12))
                at = int(rng.integers(0, 1000))
                rows.append((document, text, start, end, at, end - start))
                every[text].append((start - end, number + document, start, end, at))

        def facts(place: int, before: int = number) -> Facts:
            asked.append(before + place)
            return Facts(id=f"doc-{before + place}")

        gathering.add(np.array(rows, dtype=np.int64).reshape(-1, 6), facts, first=number)
        number += many
    part = gathering.part(sightings.FileFacts("corpus.jsonl", number))
    assert all(len(some) > 2 * sightings.KEPT for some in every.values())
    for text, some in every.items():
        wanted = [(-less, document, start, end, at) for less, document, start, end, at in sorted(some)]
        named = [(one.covered, one.document, one.start, one.end, one.at) for one in part.best[text]]
        assert named == wanted[: sightings.KEPT]
        assert all(one.facts.id == f"doc-{one.document}" for one in part.best[text])
    found = {document for some in every.values() for _, document, *_ in some}
    assert set(asked) < found  # of what cannot be among them nothing is read
