"""From a p-value and its checks to an outcome: one rule for every test, audit and flagging, fixed before any result.

"Consistent with training" takes p at or below the level, no failed check, and, where the test wants a second model,
that the same test was made with one and did not find the same. "Nothing shown" takes as much evidence: p above the
level, no failed check, training that was tried and would have been found in at least `ENOUGH` of such tests, and an
effect whose upper bound lies below what that training brought. In every other case the verdict is withheld.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pretrace.results.wording import fill, plural, say, sentences_of, times
from pretrace.statistics.permutation import STEEPEST, PermutationTest, centre_values, randomisation_test
from pretrace.types import Check, Doubles, Estimate, Null, Outcome, Power

ENOUGH = 0.8
"""The share of tests that must find the training that was tried, before "nothing" is said."""
SECOND = "second"
"""The name of the check that the same test, made with a model that cannot have seen the texts, finds less."""
TRIED = "power"
"""The name of the check that the training that was tried would have been found: the rule asks for that itself."""
EXIT_CODES: Mapping[Outcome, int] = {
    "nothing": 0, "absent": 0, "none": 0,
    "consistent": 3, "found": 3, "flagged": 3, "set": 3,
    "inconclusive": 4, "refused": 4, "missed": 4,
}  # fmt: skip
"""What the command that made a verdict leaves with, so that a script can act on it."""
BINS = 60
POWER = "Measure what the {} would have seen: a copy of the model is trained on some of the texts. [--power]"


def word_check(
    kind: str,
    good: bool | None,
    figures: Mapping[str, Any] | None = None,
    *,
    words: str = "words",
    **numbers: object,
) -> Check:
    """Put a check in words: one that passed, failed, or where `good` is None was not run. `words` names its sentence
    among those of the kind. A cure is given where it failed, and where it was not run and there is one for that."""
    found = sentences_of(kind)
    status, cure = ("passed", "") if good else ("failed", "cure")
    if good is None:
        status, cure = "not run", "cure_not_run"
    return Check(
        kind.rpartition(".")[2],
        fill(found["title"], **numbers),
        status,  # type: ignore[arg-type]
        fill(found[words], **numbers),
        fill(found.get(cure, ""), **numbers),
        figures or {},
    )


@dataclass(frozen=True, slots=True)
class ObservedFinding:
    """What a test gave: `p` None where it could not be made, and the effect.

    `of` says in a few words what the model would have been trained on. `accusing` names checks that only withhold
    "consistent with training", and not "nothing shown". `second` says that nobody is accused unless the check `SECOND`
    has passed: so it is where pretrace made no draw itself. `noun` is what the reader looks at, `unit` what was
    planted, `trainable` whether a copy of the model could be. `said` holds first sentences of its own for an outcome.
    `rejected` is for what rejects otherwise than by p at or below the level.
    """

    model: str
    of: str
    level: float
    p: float | None
    effect: Estimate | None = None
    planted: Power | None = None
    accusing: tuple[str, ...] = ()
    second: bool = False
    noun: str = "test"
    unit: str = "text"
    trainable: bool = True
    said: Mapping[Outcome, str] = field(default_factory=dict)
    rejected: bool | None = None

    @property
    def rejects(self) -> bool:
        """Whether the test alone, without any check, speaks for training."""
        below = self.p is not None and self.p <= self.level
        return below if self.rejected is None else self.rejected

    @property
    def bounded(self) -> bool:
        """Whether the effect lies below what the training that was tried brought."""
        both = self.planted, self.effect
        return both[0] is not None and both[1] is not None and both[1].high < both[0].effect.low

    @property
    def powered(self) -> bool:
        """Whether the training that was tried would have been found often enough."""
        return self.planted is not None and self.planted.probability.value >= ENOUGH


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The outcome, its statement, reasons and advice in sentences, and the checks that withheld something."""

    outcome: Outcome
    statement: str
    reasons: tuple[str, ...]
    advice: tuple[str, ...]
    withheld: tuple[str, ...] = ()


def conclude(found: ObservedFinding, checks: Sequence[Check]) -> Conclusion:
    """The verdict of a test and its checks; see the top of this file."""
    sided = () if found.rejects else (*found.accusing, SECOND)  # they withhold an accusation alone
    failed = [check for check in checks if check.status == "failed" and check.name not in (TRIED, *sided)]
    asked = next((check for check in checks if check.name == SECOND), None)
    unasked = found.rejects and found.second and (asked is None or asked.status == "not run")
    tested = found.p is not None or found.rejected is not None
    cleared = tested and not found.rejects and found.bounded and found.powered
    outcome: Outcome = "inconclusive"
    if not failed and not unasked and found.rejects:
        outcome = "consistent"
    elif not failed and cleared:
        outcome = "nothing"
    reasons = ["No test could be made."]
    if found.p is not None:
        word = "at or below" if found.p <= found.level else "above"
        reasons = [say("outcome.tested", p=found.p, word=word, level=found.level)]
    reasons += [f"{check.title}: this check failed. {check.words}" for check in failed]
    if unasked:
        reasons.append(f"{asked.title}: not checked. {asked.words}" if asked else say("outcome.unasked"))
    if tested and not found.rejects:
        reasons.append(_missed(found))
    withheld = (*(check.name for check in failed), *((SECOND,) if unasked else ()))
    advice = _advice(found, checks, failed, outcome)
    return Conclusion(outcome, _statement(found, outcome, withheld), tuple(reasons), advice, withheld)


def exposure(power: Power, unit: str = "text") -> str:
    """The training that was tried, in words: "12 texts of 24 were read once by a copy of the model (all weights)"."""
    of = f" of {power.facts['units']:,}" if "units" in power.facts else ""
    how = f" ({power.facts['how']})" if "how" in power.facts else ""
    return f"{plural(power.planted, unit)}{of} were read {times(power.epochs)} by a copy of the model{how}"


def null_of(test: PermutationTest, level: float, statistic: str) -> Null:
    """The distribution of a statistic for unused texts, as a histogram; what has no scale stands in the outer bars."""
    drawn = test.null
    usual = drawn[np.abs(drawn) < 0.99 * STEEPEST]
    low, high = (float(usual.min()), float(usual.max())) if len(usual) else (0.0, 0.0)
    if not low < high:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(np.clip(drawn, low, high), BINS, (low, high))
    return Null(
        statistic, test.observed, test.critical(level), tuple(map(float, edges)), tuple(map(int, counts))
    )


def _advice(
    found: ObservedFinding, checks: Sequence[Check], failed: Sequence[Check], outcome: Outcome
) -> tuple[str, ...]:
    advice = [check.cure for check in failed if check.cure]
    if not found.rejects and found.planted is None:
        advice += [POWER.format(found.noun)] if found.trainable else []
    elif not found.rejects and not found.powered:
        advice.append(say("outcome.more", unit=found.unit, noun=found.noun))
    if outcome == "inconclusive":
        advice += [check.cure for check in checks if check.status == "not run" and check.cure]
    return tuple(dict.fromkeys(advice))


def _statement(found: ObservedFinding, outcome: Outcome, withheld: Sequence[str]) -> str:
    numbers = {"model": found.model, "of": found.of, "noun": found.noun, "unit": found.unit}
    kind: str = outcome
    if outcome == "inconclusive":
        untested = found.p is None and found.rejected is None
        kind = "withheld" if withheld or found.rejects or untested else "missed"
    said = found.said.get(outcome) or say(f"outcome.statement.{kind}", **numbers)
    power = found.planted
    if outcome != "nothing" or power is None:
        return said
    tried, share = exposure(power, found.unit), power.probability.value
    return f"{said} {say('outcome.excluded', exposure=tried, share=share, **numbers)}"


def _missed(found: ObservedFinding) -> str:
    power = found.planted
    if power is None or found.effect is None:
        return say("outcome.unmeasured", noun=found.noun)
    exposed = exposure(power, found.unit)
    often = say("outcome.often", exposure=exposed, chance=power.probability, noun=found.noun, share=ENOUGH)
    return f"{often} {say('outcome.bounded' if found.bounded else 'outcome.unbounded')}"


DOSE, MOST_DOSE = 2.0, 3.0
"""How many times as clearly as the second model the target may see the texts, and where both read otherwise."""
CARRIES = 0.1
"""The correlation of two models' values below which the second model cannot speak for the target."""


@dataclass(frozen=True, slots=True)
class ExcessOverSecondModel:
    """What the target shows beyond `dose` times a second model, as p; infinite where that cannot speak for it."""

    p: float
    dose: float


def second_model_multiple(correlation: float) -> float:
    """How many times what the second model shows is taken off: 1 / correlation of both models' values, but at least
    `DOSE` and at most `MOST_DOSE`; infinite where they hardly correlate. The less alike two models read, the less the
    one shows what the other would find."""
    if correlation < CARRIES:
        return float("inf")
    return float(np.clip(1 / correlation, DOSE, MOST_DOSE))


def beyond_second_model(
    own: Sequence[Doubles],
    other: Sequence[Doubles],
    *,
    draws: int,
    seed: int,
    multiple: float | None = None,
    scaled: bool = True,
) -> ExcessOverSecondModel:
    """The randomisation test of what the target shows beyond a multiple of what the second model shows.

    Both models' values are divided by the standard deviation of their own statistic over draws: a model that sees more
    of everything is not held to more. With x and y so divided, what is tested of an alternative is x − d·y, for the d
    of `second_model_multiple`, or a given one. Were the texts to raise x at most d times as far as y, this rejects no
    more often than the level says. d looks at all alternatives alike, so the test is exact wherever the first one is.

    Not `scaled`, both models' values are on one scale, as answers are, and stand as they are.
    """
    both = [i for i in range(len(own)) if np.isfinite(own[i]).all() and np.isfinite(other[i]).all()]
    x, y = [centre_values(own[i]) for i in both], [centre_values(other[i]) for i in both]
    spread_x, spread_y = (np.sqrt(sum(float(np.mean(row**2)) for row in rows)) for rows in (x, y))
    if not scaled:
        spread_y = spread_x
    if not both or spread_x == 0 or spread_y == 0:
        return ExcessOverSecondModel(1.0, float("inf") if multiple is None else multiple)
    d = second_model_multiple(_rank_correlation(x, y)) if multiple is None else multiple
    if not np.isfinite(d):
        return ExcessOverSecondModel(1.0, d)
    left = [a / spread_x - d * b / spread_y for a, b in zip(x, y, strict=True)]
    return ExcessOverSecondModel(randomisation_test(left, draws=draws, seed=seed).p, d)


def _rank_correlation(own: Sequence[Doubles], other: Sequence[Doubles]) -> float:
    """The correlation of ranks within units: an alternative that one model has learnt by heart hardly moves it."""
    from scipy.stats import rankdata

    sides = []
    for rows in (own, other):
        alike = len({len(row) for row in rows}) == 1  # as a rule, and much faster
        found = list(rankdata(np.stack(rows), axis=1)) if alike else [rankdata(row) for row in rows]
        sides.append(np.concatenate([row / len(row) - (len(row) + 1) / (2 * len(row)) for row in found]))
    x, y = sides
    both = float(x @ x) * float(y @ y)
    return float(x @ y) / np.sqrt(both) if both > 0 else 0.0


@dataclass(frozen=True, slots=True)
class SecondAnswer:
    """What a second model gave for the same test; `beyond` is None where there is nothing to compare with it."""

    name: str
    p: float
    beyond: ExcessOverSecondModel | None = None


def second_check(
    answers: Sequence[SecondAnswer], level: float, *, does: str, preferred: str, role: str = SECOND
) -> Check:
    """Check that models which cannot have seen the texts find nothing, and the target more than a multiple of that."""
    if not answers:
        return replace(word_check("outcome.second", None, words="unasked"), name=role)
    good, told, figures = True, [], {}
    for one in answers:
        verb = "does" if one.p <= level else "does not"
        told.append(say("outcome.second.asked", name=one.name, does=does, p=one.p, verb=verb))
        figures[f"p of {one.name}"] = one.p
        good = good and one.p > level
        if one.beyond is not None:
            figures |= {f"p beyond {one.name}": one.beyond.p, f"multiple of {one.name}": one.beyond.dose}
            good = good and one.beyond.p <= level
            form = "beyond" if np.isfinite(one.beyond.dose) else "otherwise"
            verdict = "It does" if one.beyond.p <= level else "It does not"
            told.append(say(f"outcome.second.{form}", name=one.name, rest=one.beyond, verdict=verdict))
    plain = {name: value for name, value in figures.items() if np.isfinite(value)}
    check = word_check("outcome.second", good, plain, said=" ".join(told), preferred=preferred)
    return replace(check, name=role)
