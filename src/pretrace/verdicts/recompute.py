"""What the tables of a result give again: p, effect, checks and outcome, computed without a model.

Each number is computed by the functions that the test itself used, from what its folder holds. What rests on texts or
on a model (a classifier of words, a training for --power) is taken as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from pretrace.backends.naming import called
from pretrace.registry import find_test
from pretrace.statistics.conformal import set_shift
from pretrace.statistics.documents import Grouping
from pretrace.statistics.roc import auc
from pretrace.types import Check, Estimate, Run, Verdict
from pretrace.verdicts.flag import concluding
from pretrace.verdicts.flag.concluding import Sides
from pretrace.verdicts.flag.flag import set_test
from pretrace.verdicts.flag.planning import KNOWN, TEXTS, FlagSettings
from pretrace.verdicts.frame import VALUES, compare_seconds
from pretrace.verdicts.outcome import SECOND, ObservedFinding, conclude, second_check

CLOSE = 1e-6
"""How far, relative to its size, a number may lie from the recorded one: sums in another order differ less."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number or a word of a result: as it is `recorded`, and as the tables give it."""

    name: str
    recorded: object
    given: object

    @property
    def agrees(self) -> bool:
        """Whether both are the same."""
        one, other = self.recorded, self.given
        if isinstance(one, Estimate) and isinstance(other, Estimate):
            return np.allclose(astuple(one), astuple(other), rtol=CLOSE, atol=1e-12)
        if isinstance(one, bool | str) or not isinstance(one, int | float | np.number):
            return one == other
        if not isinstance(other, int | float | np.number):
            return False
        return bool(np.isclose(float(one), float(other), rtol=CLOSE, atol=1e-12))


def recompute(result: object) -> tuple[Number, ...]:
    """Compute the numbers of a result that its tables give."""
    if isinstance(result, Run):
        return tuple(_run(result))
    if not isinstance(result, Verdict):
        return ()
    return tuple(_flag(result) if result.test == "flag" else _of_frame(result))


def _run(run: Run) -> Iterator[Number]:
    if run.evaluation is None or run.whole is not None:
        return
    columns = {("score", name): run.matrix[:, place] for place, name in enumerate(run.scores)}
    for control in run.controls:
        if control.kind == "placebo":
            columns["placebo", control.score] = control.values[:, 0]
    labels = np.array(run.members, dtype=bool)
    for row in run.evaluation.rows:
        values = columns.get((row.kind, row.name))
        if values is not None:
            known = np.isfinite(values)
            yield Number(f"AUC of {row.name} ({row.kind})", row.auc.value, auc(values[known], labels[known]))


def _of_frame(found: Verdict) -> Iterator[Number]:
    """A test of the frame, made again of its table of numbers."""
    kind, rule = find_test(found.test), found.settings.get("rule")
    if kind is None or rule is None:  # an audit that was refused has no numbers
        return
    test, p, effect, new = kind.of_result(found), found.p, found.effect, list[Check]()
    if test is not None:
        table = found.table(VALUES)
        models = np.array(table["model"])
        numbers = {
            str(name): {key: some[models == name] for key, some in table.columns.items() if key != "model"}
            for name in dict.fromkeys(table["model"])
        }
        own, seed = next(iter(numbers.values())), int(found.settings["seed"])
        how = {"draws": int(found.settings["test"]["draws"]), "seed": seed}
        tested = test.tested(own, **how)
        p, effect = tested.p, tested.effect
        yield Number("p", found.p, p)
        yield Number("effect", found.effect, effect)
        new += test.number_checks(own, tested, level=found.level, seed=seed)
        if answers := compare_seconds(test, numbers, tested, found.level, **how):
            role = SECOND if test.second else "placebo"
            new.append(second_check(answers, found.level, does="", preferred="", role=role))
    rule = {**rule, "accusing": (*kind.accusing, "placebo"), "second": kind.second}
    yield from _concluded(found, p, effect, new, rule)


def _flag(found: Verdict) -> Iterator[Number]:
    """A flagging whose tables hold all texts; those of a large one hold a sample."""
    texts, known = found.table("flags"), found.table("known")
    if found.figures.get("whole"):
        return
    names = ("score", "fdr", "level", "method", "randomised")
    settings = FlagSettings(**{name: found.settings[name] for name in names})
    documents = [*(TEXTS + one for one in texts["document"]), *(KNOWN + one for one in known["document"])]
    asked = np.arange(len(documents)) < len(texts)
    scores = np.concatenate([texts["score"], known["score"]])
    codes, seed = Grouping.of(documents).codes, int(found.settings["seed"])
    sides = Sides(asked, codes, scores, None, np.zeros(len(documents)), settings, seed)
    shift = set_shift(*sides.by_document(scores), level=settings.level, seed=sides.seed)
    drift = next(check for check in found.checks if check.name == concluding.DRIFT).figures
    stands = concluding.outliers_at(shift, sides, drift["not excluded"], drift["spread"])
    recorded = set_test(found)
    if recorded is not None and recorded.p is not None:
        yield Number("p of the set", recorded.p, shift.p)
    refused = found.outcome == "refused"
    if not refused:
        for name, values in (("p", stands.p), ("q", stands.q)):
            yield Number(
                f"{name} of the texts", True, np.allclose(texts[name], values[sides.place], rtol=CLOSE)
            )
    chosen = stands.chosen[sides.place] & (not refused)
    flagged = np.ma.filled(texts["flagged"], False)
    yield Number("flagged texts", int(flagged.sum()), int(chosen.sum()))
    outcome = concluding.conclude_outliers(stands, found.checks, found.planted, None)
    if found.planted is None or outcome != "missed":  # how far an all-clear is bounded is not in the tables
        yield Number("outcome", found.outcome, outcome)


def _concluded(
    found: Verdict, p: float | None, effect: Estimate | None, new: Sequence[Check], rule: Mapping[str, Any]
) -> Iterator[Number]:
    """The checks that were computed again, and the outcome by the one rule with these in the place of those."""
    both = {check.name: check for check in found.checks}
    for check in new:
        if old := both.get(check.name):
            yield Number(f"check “{check.title}”", old.status, check.status)
            for name, value in check.figures.items():
                yield Number(f"{name} (“{check.title}”)", old.figures.get(name), value)
            both[check.name] = check
    asked: dict[str, Any] = {"of": "", "unit": found.unit, **rule, "p": p, "effect": effect}
    model, level = called(found.model), found.level
    question = ObservedFinding(model=model, level=level, planted=found.planted, **asked)
    said = conclude(question, tuple(both.values()))
    yield Number("outcome", found.outcome, said.outcome)
    if question.of:
        yield Number("statement", found.statement, said.statement)
