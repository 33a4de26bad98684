"""One model with known members, audited many times: sets of documents without overlap, every procedure on each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.experiments import Row, Spoken
from pretrace import Models
from pretrace.inference import documents
from pretrace.inference.case import Case
from pretrace.inference.features import expressions
from pretrace.inference.reading import Leads, Readings, bounded_leads, bytewise
from pretrace.inference.scoring import features
from pretrace.inference.settings import AuditSettings
from pretrace.inference.sides import Sides
from pretrace.store.traces import open_store
from pretrace.tracing import trace
from pretrace.types import Answer, Backend, Corpus, Doubles, Features, Quantity

LEVEL = 0.05
LITERATURE = ("paper", "original", "calibrated")
MOST_SETS = 4
"""Sets of documents taken of one model's members, and of the others."""

REFERRED = 4
"""Targets of a domain on which the literature's procedures are also given the base as a reference model."""
WITHOUT, BASE = "none", "own"
"""What the target is held against: nothing, or its base; for procedures on features a reference model."""


class Drawn(NamedTuple):
    """The documents of one audit; `kind` is "member" where the target was trained on them, else "null"."""

    kind: str
    names: frozenset[str]


class Against(NamedTuple):
    """A placebo and what it said; both None for no placebo."""

    model: Backend | None
    said: Readings | None


@dataclass(frozen=True, slots=True)
class Trials:
    """The pairs of a target with known members, for audits of `size` documents; `models.reference` is its base."""

    models: Models
    sides: Sides
    labelled: Corpus
    size: int
    snippets: int

    def drawn(self, size: int, seed: int) -> list[Drawn]:
        """Sets of so many documents without overlap, of members and of others; about as many where it cannot be
        exact."""
        have = {piece.document for piece in self.sides.suspect}
        made: list[Drawn] = []
        for kind, member in (("member", True), ("null", False)):
            names = sorted(t.id for t in self.labelled.texts if t.member is member and t.id in have)
            order = np.random.default_rng([seed, int(member)]).permutation(len(names))
            sets = min(MOST_SETS, max(1, round(len(names) / size)))
            made += [Drawn(kind, frozenset(names[i] for i in order[k::sets][:size])) for k in range(sets)]
        return made

    def ours(
        self, said: Readings, against: Against, grid: Iterable[tuple[int, int]], *, seed: int
    ) -> Iterator[Row]:
        """Rows of the default procedure: for each (documents, snippets a document) of the grid one a kind."""
        leads = leads_of(said, against, by_byte=bytewise(self.models.target, against.model))
        names = np.array([piece.document for piece in self.sides.suspect])
        turn = turns(names.tolist(), seed)
        for size, most in grid:
            found: dict[str, list[Answer]] = {}
            for number, one in enumerate(self.drawn(size, seed)):
                rows = np.flatnonzero((turn < most) & np.isin(names, list(one.names)))
                part = Leads(leads.suspect[rows], leads.heldout[rows], leads.scale)
                answer = documents.answer(_part(self.sides, rows), part, seed=number)
                found.setdefault(one.kind, []).append(answer)
            yield from _rows("pretrace", found, documents=size, snippets=most)

    def literature(self, classifier: str, *, seed: int) -> Iterator[Row]:
        """Rows of the procedures on features, without a reference model and with the base as one."""
        whole = features(self.sides, self.models, expressions(True), progress=Spoken())
        case = Case(self.sides, self.models, AuditSettings(classifiers=(classifier,), seed=seed))
        with_base = ((BASE, whole),) if seed < REFERRED else ()
        for placebo, seen in ((WITHOUT, without(whole, "ref")), *with_base):
            for procedure in LITERATURE:
                found: dict[str, list[Answer]] = {}
                for one in self.drawn(self.size, seed):
                    answer = case.answer_from(procedure, of_documents(seen, one.names))
                    found.setdefault(one.kind, []).append(answer)
                for row in _rows(procedure, found, documents=self.size, snippets=self.snippets):
                    yield {"placebo": placebo, **row}


def exposure(models: Models, labelled: Corpus, *, documents: int = 200) -> Mapping[str, float]:
    """What one could see with labels: how much more the training has raised members than non-members, in nats a
    token, its z for so many documents of each, the rise of the non-members, and the base's mean log-probability."""
    assert models.reference is not None
    before, after = (_mean_logp(model, labelled) for model in (models.reference, models.target))
    member = np.array([bool(text.member) for text in labelled.texts])
    known, others = (after - before)[member], (after - before)[~member]
    error = math.sqrt((known.var(ddof=1) + others.var(ddof=1)) / documents)
    ahead = float(known.mean() - others.mean())
    found = {"lead": ahead, "z": ahead / error, "rise": float(others.mean()), "base": float(before.mean())}
    return {name: round(value, 4) for name, value in found.items()}


def leads_of(said: Readings, against: Against, *, by_byte: bool) -> Leads:
    """What the default procedure tests; without a placebo the target's own mean log-probabilities."""
    if against.said is None:
        return Leads(said.suspect.per_token, said.heldout.per_token, 1.0)
    return bounded_leads(said, against.said, by_byte=by_byte)


def turns(names: Sequence[str], seed: int) -> npt.NDArray[np.int64]:
    """For each piece, how many of its document come before it in a random order."""
    turn = np.zeros(len(names), dtype=np.int64)
    seen: dict[str, int] = {}
    for i in np.random.default_rng([seed, 2]).permutation(len(names)).tolist():
        turn[i] = seen.get(names[i], 0)
        seen[names[i]] = int(turn[i]) + 1
    return turn


def without(found: Features, name: str) -> Features:
    """The features but for one."""
    kept = [i for i, one in enumerate(found.names) if one != name]
    names = tuple(found.names[i] for i in kept)
    return replace(found, names=names, suspect=found.suspect[:, kept], heldout=found.heldout[:, kept])


def of_documents(found: Features, names: frozenset[str]) -> Features:
    """The features of the pairs of some documents."""
    rows = [i for i, name in enumerate(found.suspect_documents) if name in names]
    return replace(
        found,
        suspect=found.suspect[rows],
        heldout=found.heldout[rows],
        suspect_texts=tuple(found.suspect_texts[i] for i in rows),
        heldout_texts=tuple(found.heldout_texts[i] for i in rows),
        suspect_documents=tuple(found.suspect_documents[i] for i in rows),
        heldout_documents=tuple(found.heldout_documents[i] for i in rows),
    )


def summed(rows: Iterable[Row], *by: str) -> list[Row]:
    """Rows that agree in all of `by` as one: audits, rejections, every p and effect."""
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        one = found.setdefault(tuple(row[name] for name in by), {name: row[name] for name in by})
        for name in ("audits", "rejections"):
            one[name] = one.get(name, 0) + row[name]
        for name in ("p", "effect"):
            one[name] = [*one.get(name, ()), *row[name]]
    return list(found.values())


def _rows(procedure: str, found: Mapping[str, Sequence[Answer]], **size: int) -> Iterator[Row]:
    for kind, answers in found.items():
        ps = [answer.p for answer in answers]
        yield {
            "procedure": procedure,
            "kind": kind,
            **size,
            "audits": len(ps),
            "rejections": sum(p <= LEVEL for p in ps),
            "p": [_short(p) for p in ps],
            "effect": [_short(one.effect.value) if one.effect else None for one in answers],
        }


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _part(sides: Sides, rows: npt.NDArray[np.int64]) -> Sides:
    suspect, heldout = (tuple(side[i] for i in rows.tolist()) for side in (sides.suspect, sides.heldout))
    return Sides(suspect, heldout, paired=True)


def _mean_logp(backend: Backend, corpus: Corpus) -> Doubles:
    with open_store(backend.fingerprint) as store:
        texts = [text.text for text in corpus.texts]
        traces = trace(backend, texts, Quantity.LOGP, store=store)
    return np.array([one.logp.mean(dtype=np.float64) for one in traces])
