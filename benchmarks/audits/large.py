"""Audits of the large targets: copies of SmolLM2 that were each trained on a part of every Pile domain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.audits.documents import PILE
from benchmarks.audits.readings import LARGE_PART, OWN
from benchmarks.audits.samples import SNIPPET, Domain, Said, counted, leads, loaded, scale_of
from benchmarks.experiments import Row
from pretrace.statistics.permutation import two_sample

DRAWS = 10_000


def large_rows(work: Path) -> Iterator[Row]:
    """One audit of members and one of innocent documents for each copy and domain, by both designs with control
    documents: the part that a copy was trained on, and the part of the other, against two parts of neither."""
    path = work / "large.npz"
    if not path.exists():
        return
    arrays = loaded(path)
    for domain in PILE:
        here = Domain(work, domain)
        order = {name: i // LARGE_PART for i, name in enumerate(here.texts)}
        pairs = [pair for pair in here.pairs["drawn"] if order[pair.document] < 4]
        parts = np.array([order[pair.document] for pair in pairs])
        base = Said.of(arrays, f"{OWN} {domain}", pairs)
        for seed in (0, 1):
            said = Said.of(arrays, f"{seed} {domain}", pairs)
            scale = scale_of(said, base)
            assert said.generated is not None
            assert base.generated is not None
            whole = leads(said.whole, base.whole, scale)
            true, generated = leads(said.true, base.true, scale), leads(said.generated, base.generated, scale)
            for design, values in (("controls", whole), ("differences", true - generated)):
                for kind, part in (("member", seed), ("null", 1 - seed)):
                    p = two_sample(values[parts == part], values[parts >= 2], permutations=DRAWS)
                    sizes = {"documents": LARGE_PART, "controls": 2 * LARGE_PART, "text": SNIPPET}
                    key = {"domain": domain, "model": "SmolLM2", "epochs": 1, "stream": True, "placebo": OWN}
                    yield {
                        **key,
                        "procedure": "pretrace",
                        "design": design,
                        "kind": kind,
                        **sizes,
                        **counted([p]),
                    }
