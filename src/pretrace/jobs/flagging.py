"""A flagging from the parts of a job: the columns that every figure rests on, and the outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from pretrace.jobs.both import Both, Documents, Gathered, checked, recorded
from pretrace.jobs.flag_tables import FlagTables
from pretrace.jobs.job import Job
from pretrace.jobs.manifest import Parts
from pretrace.jobs.merge import manifests
from pretrace.jobs.rows import texts_at
from pretrace.jobs.sample import LISTED
from pretrace.results.tables import texts_of
from pretrace.types import Bools, Skipped, Verdict
from pretrace.verdicts.flag.built import verdict_of
from pretrace.verdicts.flag.concluding import concluded, looked
from pretrace.verdicts.flag.flag import Asking, power_of, record, registered, told
from pretrace.verdicts.flag.planning import TEXTS, FlagSettings
from pretrace.verdicts.flag.prospect import Prospect
from pretrace.verdicts.flag.sides import Rows, Sides

_CUT_IDS = 50
WITHOUT = (
    "The workers that scored the texts hold the model, and what concludes does not: flag a sample of the documents "
    "with --power, by one process."
)
"""Why the power of a flagging by several workers is not measured."""


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """What is settled before a model is asked: both sets, their documents, and what can be flagged among them."""

    both: Both
    found: Gathered
    documents: Documents
    prospect: Prospect
    settings: FlagSettings

    @classmethod
    def of(cls, both: Both, found: Gathered, settings: FlagSettings) -> Planned:
        """From what a reading of both found; TextsError for what `flagging.plan` refuses."""
        documents = found.documents
        return cls(both, found, documents, checked(both, found, documents, settings), settings)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The rows of all parts that have every value: `complete` [rows of the part] says which those are, a part each;
    `cut` is what the length limit dropped, of all rows."""

    rows: Rows
    complete: tuple[Bools, ...]
    cut: dict[str, Any]


def flagged_of(
    job: Job,
    parts: Parts,
    planned: Planned,
    model: str,
    *,
    command: Mapping[str, Any],
    asking: Asking | None = None,
) -> tuple[Verdict, FlagTables]:
    """The flagging of a job whose shards all have parts, and its whole tables. Without the models in `asking` the power
    is not measured.

    TextsError where too few texts could be scored; OutputError where parts are missing or damaged.
    """
    settings, both = planned.settings, planned.both
    scored = read_scored(job, parts, planned.documents)
    seed = planned.found.draws.seed(settings)
    sides = Sides.of(scored.rows, settings, seed, (one.reason for one in unscored(job, parts)))
    prospect = planned.prospect.scored(sides.known, sides.number, settings.fdr)

    def read(chosen: Bools) -> list[str]:
        rows = np.concatenate(scored.complete)
        rows[rows] = chosen
        return texts_at(job, parts, both, rows)

    seen = looked(sides, prospect, read)
    power, share, why = power_of(seen, read, settings, asking, WITHOUT)
    end = concluded(seen, power, share, model=model, corpus=both.asked.name)
    tables = FlagTables(job, parts, planned.documents, scored.complete, sides, end)
    shown = tables.shown
    skipped = tuple(islice(unscored(job, parts), LISTED))
    made = record(
        *recorded(both, planned.found, planned.documents),
        {**job.settings, "cut": scored.cut},
        settings,
        seed,
    )
    flagged = verdict_of(
        end,
        prospect,
        settings,
        names=(both.asked.name, both.known.name),
        model=model,
        score=job.scores[0],
        tables=shown,
        counts=tables.counts,
        whole=tables.whole,
        skipped=skipped,
        recorded={**made, "command": dict(command)},
    )
    return told(registered(flagged, planned.found.draws, settings), prospect, why), tables


def read_scored(job: Job, parts: Parts, documents: Documents) -> Scored:
    """The columns of all parts; OutputError where one is missing or damaged."""
    score = job.scores[0]
    placebo = [f"placebo: {one['score']}" for one in job.outlines if one["kind"] == "placebo"]
    columns: dict[str, list[Any]] = {"asked": [], "documents": [], score: [], "n_chars": []}
    columns |= {name: [] for name in placebo}
    complete, begin, cut = [], 0, Cut()
    for manifest in manifests(job, parts):
        parts.check(manifest)
        table = parts.table(manifest)
        cut.add(table)
        whole = np.isfinite(table.column(score).to_numpy())
        for name in placebo:
            whole &= np.isfinite(table.column(name).to_numpy())
        complete.append(whole)
        try:
            theirs = documents.found(slice(begin, begin + manifest.texts), table.column("group"))
        except ValueError as error:
            raise parts.damaged(manifest, str(error)) from error
        begin += manifest.texts
        columns["asked"].append(table.column("label").is_null().to_numpy()[whole])
        columns["documents"].append(theirs[whole])
        for name in (score, "n_chars", *placebo):
            columns[name].append(table.column(name).to_numpy()[whole])
    joined = {name: np.concatenate(columns.pop(name)) for name in list(columns)}
    rows = Rows(
        joined["asked"],
        joined["documents"],
        joined[score],
        joined[placebo[0]] if placebo else None,
        joined["n_chars"].astype(np.float64),
    )
    return Scored(rows, tuple(complete), cut.facts)


@dataclass(slots=True)
class Cut:
    """How many tokens the length limit dropped, and of which texts."""

    facts: dict[str, Any]

    def __init__(self) -> None:
        self.facts = {"texts": 0, "tokens": 0, "of_tokens": 0, "ids": []}

    def add(self, table: Any) -> None:
        """The rows of one part."""
        dropped = table.column("n_cut").to_numpy()
        rows, facts = np.flatnonzero(dropped), self.facts
        facts["texts"] += len(rows)
        facts["tokens"] += int(dropped.sum(dtype=np.int64))
        facts["of_tokens"] += int((dropped + table.column("n_tokens").to_numpy()).sum(dtype=np.int64))
        facts["ids"] += texts_of(table.take(rows[: _CUT_IDS - len(facts["ids"])]), "id")


def unscored(job: Job, parts: Parts) -> Iterator[Skipped]:
    """The texts without a value, in the order of a flagging in one piece: those that no model can score, then those
    that the placebo cannot."""
    for manifest in manifests(job, parts):
        for one in manifest.skipped:
            yield replace(one, id=one.id.removeprefix(TEXTS))
    for manifest in manifests(job, parts):
        if manifest.missing:
            table = parts.table(manifest, ["id", "n_tokens"])
            tokens = dict(zip(texts_of(table, "id"), table.column("n_tokens").to_pylist(), strict=True))
            reasons = {one.id: one.reason for one in reversed(manifest.missing)}
            for name in dict.fromkeys(one.id for one in manifest.missing):
                yield Skipped(name.removeprefix(TEXTS), reasons[name], tokens[name])
