"""The audit of a collection: was the target trained on these texts? All rules are fixed before any result is seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pretrace.auditing.assessment import assess
from pretrace.auditing.data import AuditData
from pretrace.auditing.generation import Prepared, compared, synthesised, tuned_generator
from pretrace.auditing.placebo import leans, margin
from pretrace.auditing.planning import Planned, planned, taking_part
from pretrace.auditing.power import check_plantable
from pretrace.auditing.settings import CALIBRATED, PRETRACE, AuditSettings
from pretrace.auditing.watch import Timed, Unwatched, Watch
from pretrace.cache.register import earlier_audits, note_audit
from pretrace.errors import DesignError, ExpressionError, ModelError, TextsError
from pretrace.scoring.placebos import check_placebos
from pretrace.scoring.plan import Models
from pretrace.scoring.provenance import record_corpus, record_software
from pretrace.types import Audit, AuditPlan, Backend, Corpus, Generator


def plan(
    corpus: Corpus,
    models: Models | Backend,
    *,
    generator: Backend | None = None,
    heldout: Corpus | None = None,
    settings: AuditSettings | None = None,
) -> AuditPlan:
    """The plan of an audit: which outcomes are possible and what it costs, found in seconds without training.

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
    data = asked.data(ready, made, clock)
    result = assess(data, asked.corpus, ready.plan, made)
    record = _record(asked.corpus, asked.heldout, data, made)
    result = replace(result, settings=record | {"timings": clock.seconds})
    if asked.settings.cache:
        _register(result)
    return result


@dataclass(frozen=True)
class _Asked:
    """The arguments of an audit, checked as far as that goes without reading a text."""

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
        return planned(
            self.corpus,
            self.models.target,
            self.placebos,
            generator=self.generator,
            heldout=self.heldout,
            settings=self.settings,
        )

    def prepared(self, ready: Planned, clock: Timed) -> Prepared:
        """The samples that are compared, with continuations generated where the design needs them. The literature's
        procedures also work where our own has no design."""
        design = ready.plan.design
        if design == "controls" or (design is None and self.heldout is not None):
            return compared(ready.cuts, self.settings)
        if self.generator is None:
            raise ModelError(
                "without control documents an audit writes its own held-out texts and needs a generator: give "
                "--generator MODEL or --heldout."
            )
        return synthesised(ready.cuts, self.generator, self.settings, clock)

    def data(self, ready: Planned, made: Prepared, clock: Timed) -> AuditData:
        """What is tested, with the placebos that take part and the margin, where there is one."""
        design = ready.plan.design
        used = taking_part(design, self.placebos, ready.plan.placebos)
        tunable = _tunable(used) if made.training else None
        if design in ("differences", "placebos") and tunable is not None:
            tuned = self._tuned(tunable, made, clock)
            # Beside control documents any placebo is as valid, and the tuned one sees more (docs/audit.md).
            used = (tuned,) if design == "differences" else (*used, tuned)
        return AuditData(
            made.samples,
            replace(self.models, placebo=None),
            self.settings,
            clock,
            controls=made.controls,
            placebos=used,
            margin=margin(leans()) if design == "placebos" else 0.0,
            negative_controls=self.placebos if self.generator is None else (*self.placebos, self.generator),
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
        """Raise the errors that can be known before a text is cut."""
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


def _record(corpus: Corpus, heldout: Corpus | None, data: AuditData, made: Prepared) -> dict[str, Any]:
    """The settings, models, texts and versions that are needed to repeat the audit."""
    settings, models = data.settings, data.models
    recorded = record_corpus(corpus)
    used = {"target": models.target, "reference": models.reference}
    facts = {name: dict(model.facts) for name, model in used.items() if model is not None}
    facts |= {
        "placebo" if i == 1 else f"placebo {i}": dict(model.facts) for i, model in enumerate(data.placebos, 1)
    }
    if made.generator is not None:
        facts["generator"] = dict(made.generator.facts)
    return {
        "corpus": recorded,
        "heldout": record_corpus(heldout) if heldout is not None else None,
        "models": facts,
        "procedure": settings.procedure,
        "also": list(settings.also),
        "classifiers": list(settings.classifiers),
        "sampling": asdict(settings.sampling) if made.pairs else None,
        "generator_method": settings.method if made.pairs else None,
        "snippets": asdict(settings.snippets)
        | {
            "cut": len(made.cut.snippets),
            "judged": len(made.samples.suspect),
            "generator_learnt_from": len(made.training),
            "too_short": len(made.cut.short),
            "notes": [*made.cut.notes, *made.notes],
        },
        "power": asdict(settings.power) if settings.power else None,
        "seed": settings.seed,
        "software": record_software(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "earlier": _earlier(recorded["sha256"], models.target) if settings.cache else [],
    }


def _register(result: Audit) -> None:
    """Add the audit to this machine's register, where the next audit of the same texts and weights finds it."""
    settings = result.settings
    note_audit(
        {
            "texts": settings["corpus"]["sha256"],
            "weights": str(settings["models"]["target"].get("weights")),
            "time": settings["time"],
            "procedure": settings["procedure"],
            "seed": settings["seed"],
            "placebo": result.answer.facts.get("placebo"),
            "p": result.answer.p,
            "outcome": result.outcome,
        }
    )


def _earlier(texts: str, target: Backend) -> list[dict[str, Any]]:
    found = earlier_audits(texts, str(target.facts.get("weights")))
    return [
        {name: value for name, value in entry.items() if name not in ("texts", "weights")} for entry in found
    ]
