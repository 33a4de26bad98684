"""Runs side by side: their figures as a table of models by corpora, and the settings in which they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pretrace.errors import ExpressionError
from pretrace.results.run import counts
from pretrace.results.wording import sentences_of
from pretrace.types import Estimate, Run, Survival

_SHORT, _HASH = 8, 32
"""Characters of a hash that tell two of a name apart, and those from which on a mark is a hash."""


@dataclass(frozen=True, slots=True)
class RunScore:
    """What one run says of one score.

    `auc` and `tpr` (at 5% false positives) are None for a run without an evaluation; `median` is that of the
    texts, None where none has the score. `texts` have the score. `placebo` and `shuffled` are the AUCs of its controls,
    `lead` and `survives` as in `Measured`; None where there is no such control.
    """

    score: str
    texts: int
    median: float | None
    auc: Estimate | None = None
    tpr: Estimate | None = None
    placebo: Estimate | None = None
    lead: Estimate | None = None
    survives: Survival | None = None
    shuffled: Estimate | None = None


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the runs, numbered from 1: where it lies, its place in the table (`model` and `corpus`, told apart where
    two share a name), its texts, its strongest blind control (None without one), and its scores.

    Of a large run, medians are those of `sampled` texts; 0 for a run that holds all of its texts.
    """

    number: int
    folder: str
    model: str
    corpus: str
    texts: int
    members: int
    nonmembers: int
    sampled: int
    blind_name: str
    blind: Estimate | None
    scores: tuple[RunScore, ...]


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A setting in which runs differ: each value with the numbers of its runs, and what follows from that.

    `compares` says whether numbers of these runs can still be held against each other.
    """

    setting: str
    values: tuple[tuple[str, tuple[int, ...]], ...]
    compares: bool
    words: str


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Runs side by side, in the order given. `scores` are those that are shown; `differences` begin with those that
    forbid a comparison."""

    runs: tuple[ComparedRun, ...]
    scores: tuple[str, ...]
    differences: tuple[SettingDifference, ...] = ()


def recorded(run: Run, path: str) -> Any:
    """What the run recorded at a path, such as "models.target.name"; None where there is nothing."""
    found: Any = run.settings
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def differences(runs: Sequence[Run]) -> tuple[SettingDifference, ...]:
    """The settings in which runs, numbered from 1, differ: those that forbid a comparison first."""
    found = []
    for name, setting in sentences_of("compared").items():
        scopes: dict[tuple[str, ...], dict[str, list[int]]] = {}
        for number, run in enumerate(runs, 1):
            texts = str(recorded(run, "texts.sha256"))
            model = str(recorded(run, "models.target.name") or "the model")
            within = {"all": (), "model": (model,), "corpus": (run.corpus,), "texts": (run.corpus, texts)}
            if value := _READ[name](run) if name in _READ else _value(run, setting):
                scopes.setdefault(within[setting["within"]], {}).setdefault(value, []).append(number)
        found += [
            SettingDifference(
                f"{name} of {scope[0]}" if scope else name,
                tuple((value, tuple(numbers)) for value, numbers in values.items()),
                setting["compares"],
                setting["words"],
            )
            for scope, values in scopes.items()
            if len(values) > 1
        ]
    return tuple(sorted(found, key=lambda one: one.compares))


def _value(run: Run, setting: Mapping[str, Any]) -> str:
    """The plain value at the path of a setting, "" where there is none; a hash by its beginning alone."""
    found = recorded(run, setting["path"])
    return "" if found is None else str(found)[: setting.get("first")]


def _start(run: Run) -> str:
    prefix = recorded(run, "models.target.prefix")
    return "" if prefix is None else "a start token before each text" if prefix else "no start token"


_READ: Mapping[str, Callable[[Run], str]] = {
    "start token": _start,
    "number of texts": lambda run: f"{counts(run)['texts']:,}",
    "cut texts": lambda run: "some were cut" if counts(run)["cut_texts"] else "no text was cut",
}
"""What reads a setting that is more than a recorded value."""


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
    models, corpora = [], []  # name, what tells it from others of that name, and how that is written
    for _, run in runs:
        texts = str(recorded(run, "texts.sha256") or "")
        name = str(recorded(run, "models.target.name") or "a model without a name")
        revision, weights = (
            str(recorded(run, f"models.target.{one}") or "") for one in ("revision", "weights")
        )
        written = ", ".join(_shortened(one) for one in (revision, weights) if one)
        models.append((name, weights or revision, written))
        corpora.append((run.corpus, texts, _shortened(texts)))
    places = zip(_told_apart(models), _told_apart(corpora), strict=True)
    found = []
    for number, ((folder, run), (model, corpus)) in enumerate(zip(runs, places, strict=True), 1):
        counted, rows = counts(run), run.evaluation.rows if run.evaluation else ()
        blind = max((row for row in rows if row.kind == "blind"), key=lambda row: row.auc.value, default=None)
        one = ComparedRun(
            number=number,
            folder=folder,
            model=model,
            corpus=corpus,
            **{name: counted[name] for name in ("texts", "members", "nonmembers")},
            sampled=run.whole.sampled if run.whole else 0,
            blind_name=blind.name if blind else "",
            blind=blind.auc if blind else None,
            scores=tuple(_scored(run, score) for score in shown if score in run.scores),
        )
        found.append(one)
    return SideBySide(tuple(found), shown, differences([run for _, run in runs]))


def _scored(run: Run, score: str) -> RunScore:
    rows = run.evaluation.rows if run.evaluation else ()
    by_kind = {row.kind: row for row in reversed(rows) if row.name == score}  # the first of a kind
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
