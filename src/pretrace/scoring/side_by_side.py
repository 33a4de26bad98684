"""Runs side by side: their figures as a table of models by corpora, and the settings in which they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pretrace.errors import ExpressionError
from pretrace.results.run import counts
from pretrace.results.wording import sentences_of
from pretrace.types import ComparedRun, Run, RunScore, SettingDifference, SideBySide


def facts_of(run: Run, *path: str) -> Mapping[str, Any]:
    """What the run recorded under these keys; nothing where that is no mapping."""
    found: Any = run.settings
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def differences(runs: Sequence[Run]) -> tuple[SettingDifference, ...]:
    """The settings in which runs, numbered from 1, differ: those that forbid a comparison first."""
    found = []
    for name, setting in sentences_of("compared").items():
        scopes: dict[tuple[str, ...], dict[str, list[int]]] = {}
        for number, run in enumerate(runs, 1):
            model, texts = str(facts_of(run, "models", "target").get("name") or "the model"), _texts(run)
            within = {"all": (), "model": (model,), "corpus": (run.corpus,), "texts": (run.corpus, texts)}
            if value := _READ[name](run) if name in _READ else _recorded(run, setting):
                scopes.setdefault(within[setting["within"]], {}).setdefault(value, []).append(number)
        compares, words = setting["compares"], setting["words"]
        found += [
            SettingDifference(f"{name} of {scope[0]}" if scope else name, _numbered(values), compares, words)
            for scope, values in scopes.items()
            if len(values) > 1
        ]
    return tuple(sorted([*found, *_parameters(runs)], key=lambda one: one.compares))


def _recorded(run: Run, setting: Mapping[str, Any]) -> str:
    """The plain value at the path of a setting, "" where there is none; a hash by its beginning alone."""
    *path, last = setting["path"].split(".")
    found = facts_of(run, *path).get(last)
    return "" if found is None else str(found)[: setting.get("first")]


def _parameters(runs: Sequence[Run]) -> list[SettingDifference]:
    """Scores of one name with different parameters: they are different scores."""
    families: dict[str, dict[tuple[str, ...], list[int]]] = {}
    for number, run in enumerate(runs, 1):
        written: dict[str, list[str]] = {}
        for score in run.scores:
            written.setdefault(score.partition("(")[0], []).append(score)
        for family, own in written.items():
            families.setdefault(family, {}).setdefault(tuple(sorted(own)), []).append(number)
    words = "Other parameters make another score: only what is written alike stands in one table."
    return [
        SettingDifference(
            f"parameters of {family}",
            _numbered({", ".join(own): numbers for own, numbers in values.items()}),
            bool(set.intersection(*map(set, values))),
            words,
        )
        for family, values in families.items()
        if len(values) > 1
    ]


def _numbered(values: Mapping[str, Sequence[int]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((value, tuple(numbers)) for value, numbers in values.items())


def _texts(run: Run) -> str:
    return str(facts_of(run, "texts").get("sha256") or "")


def _start(run: Run) -> str:
    prefix = facts_of(run, "models", "target").get("prefix")
    words = "a start token before each text" if prefix else "no start token"
    return words if isinstance(prefix, list | tuple) else ""


def _cut(run: Run) -> str:
    longest = facts_of(run, "models", "target").get("max_tokens")
    if not counts(run)["cut_texts"]:
        return "no text was cut"
    return f"some were cut to {longest:,} tokens" if isinstance(longest, int) else "some were cut"


def _reference(run: Run) -> str:
    found = facts_of(run, "models", "reference")
    return " ".join(str(found[key])[:60] for key in ("name", "revision") if found.get(key))


def _counts(run: Run) -> str:
    found = facts_of(run, "counts")
    return f"{found.get('source')}, {found.get('tokens'):,} tokens" if found.get("tokens") else ""


_READ: Mapping[str, Callable[[Run], str]] = {
    "texts": lambda run: _texts(run)[:12],
    "start token": _start,
    "windows": lambda run: {None: "", False: "one row a text"}.get(
        run.settings.get("windows"), "windows of long texts"
    ),
    "reference model": _reference,
    "token counts": _counts,
    "number of texts": lambda run: f"{counts(run)['texts']:,}",
    "cut texts": _cut,
}
"""What reads a setting that is more than a recorded value."""


_SHORT, _HASH = 8, 32
"""Characters of a hash that tell two of a name apart, and those from which on a mark is a hash."""


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
        facts, texts = facts_of(run, "models", "target"), _texts(run)
        marks = [str(facts.get(key) or "") for key in ("revision", "weights")]
        written = ", ".join(_shortened(one) for one in marks if one)
        models.append((str(facts.get("name") or "a model without a name"), marks[1] or marks[0], written))
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
