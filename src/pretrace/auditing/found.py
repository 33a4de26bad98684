"""What an audit found, in the order in which it is looked at, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pretrace.auditing import checks
from pretrace.auditing.data import Case, shuffled
from pretrace.auditing.documents import null_of
from pretrace.auditing.leans import leans
from pretrace.auditing.placebo import closeness, placebo_check
from pretrace.auditing.power import measured
from pretrace.auditing.preparing import Prepared
from pretrace.auditing.quality import quality
from pretrace.auditing.reading import bytewise
from pretrace.auditing.settings import CALIBRATED, PRETRACE
from pretrace.auditing.verdict import Question, decide
from pretrace.baselines.classifier_two_sample import pair_gap
from pretrace.errors import TextsError
from pretrace.statistics.sensitivity import sensitivity
from pretrace.types import (
    Answer,
    Audit,
    AuditPlan,
    Backend,
    Check,
    Corpus,
    Gap,
    Placebo,
    Power,
)

SHUFFLES = {PRETRACE: 200, CALIBRATED: 20}
"""How often the sides are dealt out at random; the literature's procedures are dealt out a few times."""
FEW_SHUFFLES = 5


@dataclass(frozen=True)
class Found:
    """What was found, in the order in which it is looked at."""

    answer: Answer
    checks: tuple[Check, ...]
    variants: tuple[Answer, ...]
    plan: AuditPlan
    placebos: tuple[Placebo, ...]
    power: Power | None
    gaps: tuple[Gap, ...]

    @classmethod
    def of(
        cls, case: Case, corpus: Corpus, plan: AuditPlan, made: Prepared, others: Sequence[Backend]
    ) -> Found:
        """Everything looked at, of a case whose texts are of `corpus`; `others` are models that nobody accuses."""
        chosen, settings = case.settings.procedure, case.settings
        answer = case.answer(chosen)
        rejected = answer.p <= settings.level
        placebos = _compared(case, plan.placebos)
        between = _pair_gaps(case, made)
        gaps = (*between, *plan.gaps)
        power = None
        if settings.power is not None and not rejected:
            power = measured(case, corpus, settings.power, chosen)
        looked = [*_controls(case, made), placebo_check(placebos, case.design)]
        compared_by = "placebos" if between else case.design
        looked.insert(1, checks.gap_check(between or plan.gaps, plan.why, compared_by))
        missing = checks.control_documents_check(case.design)
        looked += [missing] if missing is not None else []
        if chosen != PRETRACE:
            looked.append(_standin_check(case, others))
        seen = checks.power_check(power, rejected)
        looked += [seen] if seen is not None else []
        variants = tuple(case.answer(name) for name in settings.also)
        return cls(answer, tuple(looked), variants, plan, placebos, power, gaps)

    def concluded(self, case: Case, corpus: str, made: Prepared) -> Audit:
        """The audit as it is written down, with its verdict."""
        settings, model = case.settings, case.target.name
        verdict = decide(self.answer, self.checks, self.power, Question(corpus, model, settings.level))
        values = case.values(settings.procedure)
        others = values.heldout_values if not values.paired else None
        return Audit(
            corpus=corpus,
            model=model,
            design=case.design,
            outcome=verdict.outcome,
            statement=verdict.statement,
            level=settings.level,
            answer=self.answer,
            checks=self.checks,
            documents=values.documents,
            values=values.values,
            heldout_documents=values.heldout_documents,
            heldout_values=values.heldout_values,
            reasons=verdict.reasons,
            advice=tuple(dict.fromkeys((*verdict.advice, *self._cures(verdict.outcome)))),
            answers=case.answers if settings.procedure == PRETRACE else (),
            null=null_of(values, level=settings.level, seed=settings.seed),
            sensitivity=sensitivity(values.values, others, level=settings.level, seed=settings.seed),
            plan=self.plan,
            variants=self.variants,
            placebos=self.placebos,
            leans=leans() if case.design == "placebos" else (),
            power=self.power,
            gaps=self.gaps,
            quality=quality(made.pairs, [snippet.text for snippet in made.training]) if made.pairs else (),
            pairs=made.pairs,
            control_pairs=made.control_pairs,
            statements=dict(settings.statements),
        )

    def _cures(self, outcome: str) -> tuple[str, ...]:
        """What the plan knew would help, where there is no answer."""
        return self.plan.cures if outcome == "inconclusive" else ()


def _compared(case: Case, placebos: Sequence[Placebo]) -> tuple[Placebo, ...]:
    """The placebos, those that took part with how closely they agree with the target."""
    used = {model.name: model for model in case.placebos}
    found = []
    for placebo in placebos:
        model = used.get(placebo.name)
        if model is None:
            found.append(placebo)
            continue
        by_byte = bytewise(case.target, model)
        close = closeness(case.said(case.target)[0], case.said(model)[0], by_byte=by_byte)
        found.append(replace(placebo, closeness=close))
    return tuple(found)


def _pair_gaps(case: Case, made: Prepared) -> tuple[Gap, ...]:
    """How well classifiers of texts tell true from generated text; nothing where there is too little to learn from."""
    settings = case.settings
    if not made.pairs or (case.design == "differences" and settings.procedure == PRETRACE):
        return ()
    try:
        return pair_gap(made.pairs, settings.classifiers, seed=settings.seed)
    except TextsError:
        return ()


def _controls(case: Case, made: Prepared) -> list[Check]:
    """The checks of the values, and of the texts that were written."""
    values, seed = case.values(case.settings.procedure), case.settings.seed
    looked = [
        checks.documents_check(values),
        checks.halves_check(values, seed=seed),
        _shuffled_check(case),
        checks.reverse_check(values, seed=seed),
    ]
    if case.design == "controls" and case.placebos:
        looked.append(
            checks.innocent_check(case.placebos[0].name, case.by_itself(case.placebos[0]), seed=seed)
        )
    if made.pairs:
        pairs = (*made.pairs, *made.control_pairs)
        looked.append(checks.copies_check(float(np.mean([p.true == p.generated for p in pairs]))))
    return looked


def _shuffled_check(case: Case) -> Check:
    chosen, settings = case.settings.procedure, case.settings
    repeats = SHUFFLES.get(chosen, FEW_SHUFFLES)
    draw = checks.flipped_p(case.values(chosen))
    if chosen != PRETRACE:
        known = case.features_of(chosen)

        def draw(rng: np.random.Generator) -> float:
            return case.answer_from(chosen, shuffled(known, rng)).p

    return checks.shuffled_check(draw, repeats=repeats, level=settings.level, seed=settings.seed)


def _standin_check(case: Case, others: Sequence[Backend]) -> Check:
    """The same procedure with a placebo, or else the generator's own model, in the target's place."""
    level, chosen = case.settings.level, case.settings.procedure
    for other in others:
        if other.facts.get("weights") != case.target.facts.get("weights"):
            return checks.standin_check(other.name, case.with_target(other).answer(chosen).p, level)
    return checks.standin_check(None, 1.0, level)
