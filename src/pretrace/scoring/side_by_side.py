"""Runs side by side: their figures as a table of models by corpora, and the settings in which they differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pretrace.errors import ExpressionError
from pretrace.scoring.differences import differences, facts_of
from pretrace.types import ComparedRun, Measured, Run, RunScore, SideBySide

_SHORT = 8
"""Characters of a hash that tell two of a name apart."""
_HASH = 32
"""Characters from which on a mark is a hash."""


def side_by_side(runs: Sequence[tuple[str, Run]], scores: Sequence[str] = ()) -> SideBySide:
    """The runs, each given with its folder, as one table; `scores` are those that it shows, by default all of them.

    ExpressionError for fewer than two runs, and for a score that no run has.
    """
    if len(runs) < 2:
        raise ExpressionError("a comparison needs two runs or more.")
    there = tuple(dict.fromkeys(score for _, run in runs for score in run.scores))
    for score in scores:
        if score not in there:
            raise ExpressionError(f"no run has the score {score!r}; they have {', '.join(there)}.")
    shown = tuple(dict.fromkeys(scores)) or there
    models = _told_apart([_model(run) for _, run in runs])
    corpora = _told_apart([_corpus(run) for _, run in runs])
    found = tuple(
        _compared(number, folder, run, (model, corpus), shown)
        for number, ((folder, run), model, corpus) in enumerate(zip(runs, models, corpora, strict=True), 1)
    )
    return SideBySide(found, shown, differences([run for _, run in runs]))


def _compared(
    number: int, folder: str, run: Run, place: tuple[str, str], shown: Sequence[str]
) -> ComparedRun:
    members = sum(member is True for member in run.members)
    nonmembers = sum(member is False for member in run.members)
    rows = run.evaluation.rows if run.evaluation else ()
    blind = max((row for row in rows if row.kind == "blind"), key=lambda row: row.auc.value, default=None)
    return ComparedRun(
        number=number,
        folder=folder,
        model=place[0],
        corpus=place[1],
        texts=run.whole.texts if run.whole else len(run.ids),
        members=run.whole.members if run.whole else members,
        nonmembers=run.whole.nonmembers if run.whole else nonmembers,
        sampled=run.whole.sampled if run.whole else 0,
        blind_name=blind.name if blind else "",
        blind=blind.auc if blind else None,
        scores=tuple(_scored(run, score) for score in shown if score in run.scores),
    )


def _scored(run: Run, score: str) -> RunScore:
    by_kind: dict[str, Measured] = {}
    for row in run.evaluation.rows if run.evaluation else ():
        if row.name == score:
            by_kind.setdefault(row.kind, row)
    own, placebo, shuffled = (by_kind.get(kind) for kind in ("score", "placebo", "shuffled"))
    values = run.column(score)[: run.whole.sampled] if run.whole else run.column(score)
    known = values[~np.isnan(values)]
    counted = run.whole.texts if run.whole else len(known)
    return RunScore(
        score=score,
        texts=own.texts if own and own.texts is not None else counted,
        median=float(np.median(known)) if len(known) else None,
        auc=own.auc if own else None,
        tpr=own.tpr if own else None,
        placebo=placebo.auc if placebo else None,
        lead=placebo.lead if placebo else None,
        survives=placebo.survives if placebo else None,
        shuffled=shuffled.auc if shuffled else None,
    )


def _model(run: Run) -> tuple[str, str, str]:
    """Its name, what tells it from others of that name, and how that is written."""
    facts = facts_of(run, "models", "target")
    revision, weights = (str(facts.get(key) or "") for key in ("revision", "weights"))
    written = ", ".join(_shortened(one) for one in (revision, weights) if one)
    return str(facts.get("name") or "a model without a name"), weights or revision, written


def _corpus(run: Run) -> tuple[str, str, str]:
    found = str(facts_of(run, "texts").get("sha256") or "")
    return run.corpus, found, _shortened(found)


def _shortened(mark: str) -> str:
    """The beginning of a hash; the names of branches and tags may differ at their ends alone."""
    return mark[:_SHORT] if len(mark) >= _HASH else mark


def _told_apart(named: Sequence[tuple[str, str, str]]) -> list[str]:
    """The names, with what tells them apart where one name stands for several things."""
    marks: dict[str, set[str]] = {}
    for name, mark, _ in named:
        marks.setdefault(name, set()).add(mark)
    return [
        f"{name} ({written or 'not recorded'})" if len(marks[name]) > 1 else name
        for name, _, written in named
    ]
