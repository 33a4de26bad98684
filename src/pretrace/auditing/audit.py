"""The audit: was this collection of texts used? Everything is settled first, then looked at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pretrace.auditing import recording
from pretrace.auditing.data import Case
from pretrace.auditing.found import Found
from pretrace.auditing.generation import tuned_generator
from pretrace.auditing.leans import leans, margin
from pretrace.auditing.placebo import check_placebos
from pretrace.auditing.planning import Planned, planned, taking_part
from pretrace.auditing.power import check_plantable
from pretrace.auditing.preparing import Prepared, compared, synthesised
from pretrace.auditing.settings import CALIBRATED, PRETRACE, AuditSettings
from pretrace.auditing.watch import Timed, Unwatched, Watch
from pretrace.errors import DesignError, ExpressionError, ModelError, TextsError
from pretrace.scoring.plan import Models
from pretrace.types import (
    Audit,
    AuditPlan,
    Backend,
    Corpus,
    Generator,
)


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
    clock = Timed(watch or Unwatched())
    clock.planned(ready.plan)
    clock.plan(ready.stages)
    made = asked.prepared(ready, clock)
    case = asked.case(ready, made, clock)
    others = [one for one in (*asked.placebos, asked.generator) if one is not None]
    found = Found.of(case, asked.corpus, ready.plan, made, others)
    result = found.concluded(case, asked.corpus.name, made)
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
        tunable = _tunable(used) if made.training else None
        if design in ("differences", "placebos") and tunable is not None:
            tuned = self._tuned(tunable, made, clock)
            # Beside control documents any placebo is as valid, and the tuned one sees more (docs/audit.md).
            used = (tuned,) if design == "differences" else (*used, tuned)
        return Case(
            made.sides,
            replace(self.models, placebo=None),
            self.settings,
            clock,
            controls=made.controls,
            placebos=used,
            margin=margin(leans()) if design == "placebos" else 0.0,
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


def _tunable(placebos: Sequence[Backend]) -> Backend | None:
    """The first placebo that has weights here."""
    from pretrace.backends.huggingface import HuggingFace

    return next((one for one in placebos if isinstance(one, HuggingFace)), None)
