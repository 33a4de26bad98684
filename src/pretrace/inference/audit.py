"""The audit: was this collection of texts used? Everything is settled first, then looked at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pretrace.errors import DesignError, ExpressionError, ModelError, TextsError
from pretrace.fitting import Models
from pretrace.inference import checks, recording
from pretrace.inference.case import Case, shuffled
from pretrace.inference.documents import null_of
from pretrace.inference.gap import pair_gap
from pretrace.inference.generation import tuned_generator
from pretrace.inference.leans import leans, margin
from pretrace.inference.placebo import check_placebos, closeness, placebo_check
from pretrace.inference.planning import Planned, planned, taking_part
from pretrace.inference.power import check_plantable, measured
from pretrace.inference.preparing import Prepared, compared, synthesised
from pretrace.inference.quality import quality
from pretrace.inference.reading import bytewise
from pretrace.inference.settings import CALIBRATED, PRETRACE, AuditSettings
from pretrace.inference.verdict import Question, decide
from pretrace.inference.watch import Timed, Unwatched, Watch
from pretrace.statistics.sensitivity import sensitivity
from pretrace.types import (
    Answer,
    Audit,
    AuditPlan,
    Backend,
    Check,
    Corpus,
    Gap,
    Generator,
    Placebo,
    Power,
)

SHUFFLES = {PRETRACE: 200, CALIBRATED: 20}
"""How often the sides are dealt out at random; the literature's procedures are dealt out a few times."""
FEW_SHUFFLES = 5


def plan(
    corpus: Corpus,
    models: Models | Backend,
    *,
    generator: Backend | None = None,
    heldout: Corpus | None = None,
    settings: AuditSettings | None = None,
) -> AuditPlan:
    """What an audit of these texts could answer, and what it would cost: in seconds, and nothing is trained.

    Parameters and errors as for `audit`; where no verdict is possible, the plan's `design` is None.
    """
    asked = _Asked.of(corpus, models, generator, heldout, settings)
    return asked.planned().plan


def audit(
    corpus: Corpus,
    models: Models | Backend,
    *,
    generator: Backend | None = None,
    heldout: Corpus | None = None,
    settings: AuditSettings | None = None,
    watch: Watch | None = None,
) -> Audit:
    """The verdict on a collection: was the target trained on these texts?

    `heldout` are control documents: texts of the same kind, known to be unseen. `models.placebo` and
    `models.placebos` are models that never saw the texts, `models.reference` is one more for the literature's
    features. `generator` writes continuations where control documents are missing or differ as texts. Raises
    DesignError where no verdict could come of what there is, another PretraceError for what cannot be audited,
    before any model reads the texts.
    """
    asked = _Asked.of(corpus, models, generator, heldout, settings)
    ready = asked.planned()
    if ready.plan.design is None and PRETRACE in (asked.settings.procedure, *asked.settings.also):
        raise DesignError(ready.plan)
    if ready.plan.design == "placebos":
        asked.tunable(ready.plan)  # which says so before anything is trained
    clock = Timed(watch or Unwatched())
    clock.planned(ready.plan)
    clock.plan(ready.stages)
    made = asked.prepared(ready, clock)
    case = asked.case(ready, made, clock)
    found = _Found.of(case, asked, ready.plan, made)
    result = found.concluded(case, asked, made)
    record = recording.record(asked.corpus, asked.heldout, case, made)
    result = replace(result, settings=record | {"timings": clock.seconds})
    if asked.settings.cache:
        recording.note(result)
    return result


@dataclass(frozen=True)
class _Asked:
    """What an audit was asked for, checked as far as that goes without a model."""

    corpus: Corpus
    models: Models
    placebos: tuple[Backend, ...]
    generator: Backend | None
    heldout: Corpus | None
    settings: AuditSettings

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        models: Models | Backend,
        generator: Backend | None,
        heldout: Corpus | None,
        settings: AuditSettings | None,
    ) -> _Asked:
        models = models if isinstance(models, Models) else Models(models)
        first = (models.placebo.target,) if models.placebo is not None else ()
        placebos = (*first, *models.placebos)
        asked = cls(corpus, models, placebos, generator, heldout, settings or AuditSettings())
        asked._check()
        return asked

    def planned(self) -> Planned:
        """The plan."""
        return planned(
            self.corpus,
            self.models.target,
            self.placebos,
            generator=self.generator,
            heldout=self.heldout,
            settings=self.settings,
        )

    def prepared(self, ready: Planned, clock: Timed) -> Prepared:
        """The texts that are compared: cut, and written where the design takes that. The literature's procedures, asked
        for where our own has no design, take what there is."""
        design = ready.plan.design
        if design == "controls" or (design is None and self.heldout is not None):
            return compared(ready.cuts, self.settings)
        if self.generator is None:
            raise ModelError(
                "without control documents an audit writes its own held-out texts and needs a generator: give "
                "--generator MODEL or --heldout."
            )
        return synthesised(ready.cuts, self.generator, self.settings, clock)

    def case(self, ready: Planned, made: Prepared, clock: Timed) -> Case:
        """The material, with the placebos that take part and the margin, where there is one."""
        design = ready.plan.design
        used = taking_part(design, self.placebos, ready.plan.placebos)
        if design == "placebos" and made.training:
            used = (*used, self._tuned(self.tunable(ready.plan), made, clock))
        return Case(
            made.sides,
            replace(self.models, placebo=None),
            self.settings,
            clock,
            controls=made.controls,
            placebos=used,
            margin=margin(leans()) if design == "placebos" else 0.0,
        )

    def tunable(self, plan: AuditPlan) -> Backend:
        """The placebo that is tuned besides, the closest one that has weights here; ModelError where none has."""
        from pretrace.backends.huggingface import HuggingFace

        used = taking_part(plan.design, self.placebos, plan.placebos)
        for placebo in used:
            if isinstance(placebo, HuggingFace):
                return placebo
        raise ModelError(
            f"without control documents an audit also tunes a placebo, and {used[0].name} has no weights here: name a "
            "placebo that can be opened on this machine, or give control documents with --heldout."
        )

    def _tuned(self, placebo: Backend, made: Prepared, clock: Timed) -> Backend:
        """The placebo with an adapter tuned on what the generator learnt from, so that it knows the domain as the
        target may; it is the generator itself where that began with the same weights."""
        assert made.generator is not None
        assert self.generator is not None
        if self.generator.facts.get("weights") == placebo.facts.get("weights"):
            return _backend(made.generator)
        texts = [snippet.text for snippet in made.training]
        settings = self.settings
        with clock.training("tuning a placebo") as on_step:
            tuned = tuned_generator(
                placebo, texts, settings.method, seed=settings.seed, cache=settings.cache, on_step=on_step
            )
        return _backend(tuned)

    def _check(self) -> None:
        """Everything that can be known before a text is cut."""
        if not self.corpus.texts:
            raise TextsError(f"{self.corpus.name} holds no texts.")
        if self.heldout is not None and not self.heldout.texts:
            raise TextsError(f"{self.heldout.name}, which should hold control documents, holds none.")
        check_placebos(self.models.target, self.placebos)
        settings = self.settings
        if settings.procedure == PRETRACE and PRETRACE in settings.also:
            raise ExpressionError("the procedure that decides is pretrace already: name others in --also.")
        if settings.power is not None:
            if settings.procedure not in (PRETRACE, CALIBRATED):
                raise ExpressionError(
                    f"power is measured for tests on documents, pretrace and calibrated, and not for "
                    f"{settings.procedure}: leave --power away, or name that procedure in --also."
                )
            check_plantable(self.models.target)


def _backend(generator: Generator) -> Backend:
    """The model that a generator writes with."""
    from pretrace.backends.generation import Completer

    assert isinstance(generator, Completer)
    return generator.backend


@dataclass(frozen=True)
class _Found:
    """What was found, in the order in which it is looked at."""

    answer: Answer
    checks: tuple[Check, ...]
    variants: tuple[Answer, ...]
    plan: AuditPlan
    placebos: tuple[Placebo, ...]
    power: Power | None
    gaps: tuple[Gap, ...]

    @classmethod
    def of(cls, case: Case, asked: _Asked, plan: AuditPlan, made: Prepared) -> _Found:
        chosen, settings = case.settings.procedure, case.settings
        answer = case.answer(chosen)
        rejected = answer.p <= settings.level
        placebos = _compared(case, plan.placebos)
        between = _pair_gaps(case, made)
        gaps = (*between, *plan.gaps)
        power = None
        if settings.power is not None and not rejected:
            power = measured(case, asked.corpus, settings.power, chosen)
        looked = [*_controls(case, made), placebo_check(placebos, case.design)]
        compared_by = "placebos" if between else case.design
        looked.insert(1, checks.gap_check(between or plan.gaps, plan.why, compared_by))
        missing = checks.control_documents_check(case.design)
        looked += [missing] if missing is not None else []
        if chosen != PRETRACE:
            looked.append(_standin_check(case, asked))
        seen = checks.power_check(power, rejected)
        looked += [seen] if seen is not None else []
        variants = tuple(case.answer(name) for name in settings.also)
        return cls(answer, tuple(looked), variants, plan, placebos, power, gaps)

    def concluded(self, case: Case, asked: _Asked, made: Prepared) -> Audit:
        """The audit as it is written down, with its verdict."""
        settings, corpus, model = case.settings, asked.corpus.name, case.target.name
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


def _standin_check(case: Case, asked: _Asked) -> Check:
    """The same procedure with a placebo, or else the generator's own model, in the target's place."""
    level, chosen = case.settings.level, case.settings.procedure
    for other in (*asked.placebos, asked.generator):
        if other is not None and other.facts.get("weights") != case.target.facts.get("weights"):
            return checks.standin_check(other.name, case.with_target(other).answer(chosen).p, level)
    return checks.standin_check(None, 1.0, level)
