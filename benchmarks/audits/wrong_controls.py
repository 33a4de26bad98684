"""Innocent documents audited against control documents of the wrong kind: does a check notice, and what if not?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.audits.documents import MEASURED
from benchmarks.audits.readings import OWN
from benchmarks.audits.samples import DRAWS, Domain, Said, Subject, differences, leads, scale_of
from benchmarks.experiments import Row
from pretrace.baselines.classifier_two_sample import gap
from pretrace.statistics.permutation import two_sample
from pretrace.types import Corpus, Doubles, Text


def wrong_control_rows(subject: Subject) -> Iterator[Row]:
    """Innocent documents against control documents of the wrong kind: from another domain, wholly or in part, from
    another period, or cut elsewhere. Each row has what the text-only classifier says, and what either design would."""
    said, domain = subject.said(), subject.domain
    own = domain.pairs["drawn"]
    base = Said.of(domain.beside, OWN, own)
    scale = scale_of(said, base)
    innocent = ~subject.by_document(said.true.per_token).members
    texts = np.array([pair.prefix + pair.true for pair in own])
    own_leads = leads(said.whole, base.whole, scale)
    alone = base.whole.per_token
    here = _Kind(texts, alone, own_leads, differences(subject, OWN), domain.documents(own))
    names = np.array(subject.by_document(said.true.per_token).names)[innocent]
    rows = np.flatnonzero(np.isin(here.documents, names))
    rng = np.random.default_rng(0)
    for kind, wrong in _wrong(subject, here, scale).items():
        for share in (1.0, 0.25) if kind.startswith("domain") else (0.0 if kind.startswith("none") else 1.0,):
            for _ in range(2):
                yield _wrong_row(kind, share, here, wrong, rows, rng)


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """Pieces of one kind: texts, what the base alone makes of them, bounded leads, differences (None where nothing was
    generated), documents."""

    texts: npt.NDArray[np.str_]
    alone: Doubles
    leads: Doubles
    differences: Doubles | None
    documents: npt.NDArray[np.str_]


def _wrong(subject: Subject, here: _Kind, scale: float) -> dict[str, _Kind]:
    """Control pieces of every wrong kind that this target has read."""
    domain, found = subject.domain, {}
    for other in MEASURED:
        if f"{other}/true" in subject.arrays:
            away = Domain(domain.work, other)
            pairs = away.pairs["drawn"]
            some = pairs[: len(subject.arrays[f"{other}/before"])]
            mine, base = (
                Said.of(subject.arrays, other, some),
                _first(Said.of(away.beside, OWN, pairs), len(some)),
            )
            assert mine.generated is not None
            assert base.generated is not None
            differences = leads(mine.true, base.true, scale) - leads(mine.generated, base.generated, scale)
            texts = np.array([pair.prefix + pair.true for pair in some])
            whole, alone = leads(mine.whole, base.whole, scale), base.whole.per_token
            found[f"domain {other}"] = _Kind(texts, alone, whole, differences, away.documents(some))
    if "first/true" in subject.arrays:
        first = domain.pairs["first"]
        mine, base = Said.of(subject.arrays, "first", first), Said.of(domain.beside, "first", first)
        texts = np.array([pair.prefix + pair.true for pair in first])
        whole, alone = leads(mine.whole, base.whole, scale), base.whole.per_token
        found["cut elsewhere"] = _Kind(texts, alone, whole, None, domain.documents(first))
    periods = np.array(
        [domain.texts[pair.document]["meta"].get("period", "") for pair in domain.pairs["drawn"]]
    )
    if (periods == "later").any():
        later = periods == "later"
        assert here.differences is not None
        found["another period"] = _Kind(
            here.texts[later],
            here.alone[later],
            here.leads[later],
            here.differences[later],
            here.documents[later],
        )
    found["none: as they should be"] = here
    return found


def _first(said: Said, number: int) -> Said:
    assert said.generated is not None
    return Said(said.whole.part(0, number), said.true.part(0, number), said.generated.part(0, number))


def _wrong_row(
    kind: str, share: float, here: _Kind, wrong: _Kind, rows: npt.NDArray[np.int64], rng: np.random.Generator
) -> Row:
    """One innocent audit of 100 documents, `share` of whose 100 control documents are wrong."""
    number = 100
    pool = rows
    if kind == "another period":
        pool = rows[~np.isin(here.documents[rows], wrong.documents)]
    pool = rng.permutation(pool)
    number = min(number, len(pool) if share == 1 else len(pool) // 2)
    suspect, good = pool[:number], pool[number : number + round((1 - share) * number)]
    others = np.flatnonzero(~np.isin(wrong.documents, here.documents[np.append(suspect, good)]))
    if kind in ("another period", "cut elsewhere"):
        innocent = set(here.documents[rows].tolist())
        others = np.array([i for i in others if wrong.documents[i] in innocent], dtype=np.int64)
    bad = rng.permutation(others)[: number - len(good)]
    seen = _auc([*here.texts[suspect]], [*here.texts[good], *wrong.texts[bad]], rng)
    controls = np.append(here.leads[good], wrong.leads[bad])
    row = {"wrong": kind, "share": share, "documents": number, "controls": len(controls), "auc": seen}
    seen_by_base = here.alone[suspect], np.append(here.alone[good], wrong.alone[bad])
    either = [two_sample(*pair, permutations=DRAWS) for pair in (seen_by_base, seen_by_base[::-1])]
    row["p_placebo"] = _short(min(1.0, 2 * min(either)))
    row["p_controls"] = _short(two_sample(here.leads[suspect], controls, permutations=DRAWS))
    if wrong.differences is not None and here.differences is not None:
        differences = np.append(here.differences[good], wrong.differences[bad])
        row["p_differences"] = _short(two_sample(here.differences[suspect], differences, permutations=DRAWS))
    return row


def _auc(suspect: Sequence[str], controls: Sequence[str], rng: np.random.Generator) -> list[float]:
    """The AUC between the texts of a classifier of words, with its interval."""
    made = [
        Corpus(name, tuple(Text(f"{name}{i}", t) for i, t in enumerate(s)))
        for name, s in (("a", suspect), ("b", controls))
    ]
    auc = gap(*made, "words", seed=int(rng.integers(1 << 31)), resamples=200)[0].auc
    return [_short(value) for value in (auc.value, auc.low, auc.high)]


def _short(value: float) -> float:
    return float(f"{value:.4g}")
