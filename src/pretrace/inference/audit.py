"""The audit: was this collection of texts used? Everything is settled first, then looked at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pretrace.errors import ExpressionError, ModelError, TextsError
from pretrace.fitting import Models
from pretrace.inference import checks
from pretrace.inference.case import Case, shuffled
from pretrace.inference.gap import gap, pair_gap
from pretrace.inference.placebo import check_placebo, graded, placebo_check
from pretrace.inference.power import check_plantable, measured
from pretrace.inference.preparing import Prepared, held_out, synthesised
from pretrace.inference.quality import quality
from pretrace.inference.settings import CALIBRATED, PRETRACE, AuditSettings, Unwatched, Watch
from pretrace.inference.verdict import decide
from pretrace.record import record_corpus, record_software
from pretrace.store.register import earlier_audits, note_audit
from pretrace.tracing import Progress
from pretrace.tuning.plan import OnStep
from pretrace.types import Answer, Audit, Backend, Check, Corpus, Gap, Placebo, Power

SHUFFLES = {PRETRACE: 200, CALIBRATED: 20}
"""How often the sides are dealt out at random; the literature's procedures are dealt out a few times."""
FEW_SHUFFLES = 5


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

    `models.placebo` is a model that never saw them, `models.reference` one more for the literature's features.
    Without `heldout` texts of the same kind, `generator` writes some. Raises a PretraceError for what cannot be
    audited, before any model is asked where that can be known.
    """
    models = models if isinstance(models, Models) else Models(models)
    settings = settings or AuditSettings()
    _check(corpus, models, settings, generator=generator, heldout=heldout)
    clock = _Clock(watch or Unwatched())
    if heldout is not None:
        made = held_out(corpus, heldout, models.target, settings)
    else:
        assert generator is not None
        made = synthesised(corpus, generator, settings, clock)
    case = Case(made.sides, models, settings, clock)
    found = _Found.of(case, corpus, made, generator)
    record = _record(corpus, heldout, case, made)
    result = _concluded(case, found, made, record | {"timings": clock.seconds})
    if settings.cache:
        _note(result)
    return result


def _concluded(case: Case, found: _Found, made: Prepared, record: Mapping[str, Any]) -> Audit:
    """The audit as it is written down, with its verdict."""
    level, corpus, model = case.settings.level, str(record["corpus"]["name"]), case.target.name
    verdict = decide(found.answer, found.checks, level=level, corpus=corpus, model=model)
    values = case.values(case.chosen)
    return Audit(
        corpus=corpus,
        model=model,
        design=made.design,
        outcome=verdict.outcome,
        statement=verdict.statement,
        level=level,
        answer=found.answer,
        checks=found.checks,
        documents=values.documents,
        values=values.values,
        heldout_documents=values.heldout_documents,
        heldout_values=values.heldout_values,
        reasons=verdict.reasons,
        advice=verdict.advice,
        variants=found.variants,
        placebo=found.placebo,
        power=found.power,
        gaps=found.gaps,
        quality=quality(made.pairs, [snippet.text for snippet in made.training]) if made.pairs else (),
        pairs=made.pairs,
        settings=record,
    )


@dataclass(frozen=True)
class _Found:
    """What was found, in the order in which it is looked at."""

    answer: Answer
    checks: tuple[Check, ...]
    variants: tuple[Answer, ...]
    placebo: Placebo | None
    power: Power | None
    gaps: tuple[Gap, ...]

    @classmethod
    def of(cls, case: Case, corpus: Corpus, made: Prepared, generator: Backend | None) -> _Found:
        chosen, settings = case.chosen, case.settings
        answer = case.answer(chosen)
        placebo = None
        if case.placebo is not None and case.of_placebo is not None:
            placebo = graded(case.target, case.placebo, (case.of_target, case.of_placebo))
        gaps = _gaps(case, made)
        power = measured(case, corpus, settings.power, chosen) if settings.power else None
        values = case.values(chosen)
        looked = [
            checks.documents_check(values),
            placebo_check(placebo),
            checks.gap_check(gaps, made.design),
            checks.halves_check(values, seed=settings.seed),
            _shuffled_check(case),
            checks.reverse_check(values, seed=settings.seed),
        ]
        if made.pairs:
            looked.append(checks.copies_check(float(np.mean([p.true == p.generated for p in made.pairs]))))
        if chosen != PRETRACE:
            looked.append(_standin_check(case, generator))
        looked.append(checks.power_check(power))
        variants = tuple(case.answer(name) for name in settings.also if name != chosen)
        return cls(answer, tuple(looked), variants, placebo, power, gaps)


def _gaps(case: Case, made: Prepared) -> tuple[Gap, ...]:
    """How well classifiers of texts alone tell the two sides apart; nothing where there is too little to learn from."""
    settings = case.settings
    try:
        if made.pairs:
            return pair_gap(made.pairs, settings.classifiers, seed=settings.seed)
        return gap(*made.sides.corpora(), settings.classifiers, seed=settings.seed)
    except TextsError:
        return ()


def _shuffled_check(case: Case) -> Check:
    chosen, settings = case.chosen, case.settings
    repeats = SHUFFLES.get(chosen, FEW_SHUFFLES)
    draw = checks.flipped_p(case.values(chosen))
    if chosen != PRETRACE:
        known = case.features

        def draw(rng: np.random.Generator) -> float:
            return case.answer_from(chosen, shuffled(known, rng)).p

    return checks.shuffled_check(draw, repeats=repeats, level=settings.level, seed=settings.seed)


def _standin_check(case: Case, generator: Backend | None) -> Check:
    """The same procedure with the placebo, or else the generator's own model, in the target's place."""
    level = case.settings.level
    for other in (case.placebo, generator):
        if other is not None and other.facts.get("weights") != case.target.facts.get("weights"):
            return checks.standin_check(other.name, case.with_target(other).answer(case.chosen).p, level)
    return checks.standin_check(None, 1.0, level)


def _check(
    corpus: Corpus,
    models: Models,
    settings: AuditSettings,
    *,
    generator: Backend | None,
    heldout: Corpus | None,
) -> None:
    """Everything that can be known before a model is asked."""
    if not corpus.texts:
        raise TextsError(f"{corpus.name} holds no texts.")
    if heldout is not None and not heldout.texts:
        raise TextsError(f"{heldout.name}, which should hold held-out texts, holds none.")
    if heldout is None and generator is None:
        raise ModelError(
            "without held-out texts an audit writes its own and needs a generator: give --generator MODEL or --heldout."
        )
    if models.placebo is not None:
        check_placebo(models.target, models.placebo.target)
    if PRETRACE in settings.also and models.placebo is None:
        raise ExpressionError(
            "pretrace in --also holds the target against a placebo, and there is none: name one with --placebo, or "
            "leave pretrace out of --also."
        )
    if settings.procedure == PRETRACE and PRETRACE in settings.also:
        raise ExpressionError("the procedure that decides is pretrace already: name others in --also.")
    if settings.power is not None:
        if settings.procedure not in (PRETRACE, CALIBRATED):
            raise ExpressionError(
                f"power is measured for tests on documents, pretrace and calibrated, and not for {settings.procedure}: "
                "leave --power away, or name that procedure in --also."
            )
        check_plantable(models.target)


def _record(corpus: Corpus, heldout: Corpus | None, case: Case, made: Prepared) -> dict[str, Any]:
    """Everything needed to make the audit again, and to see what it was made of."""
    settings, models = case.settings, case.models
    record = record_corpus(corpus)
    used = {"target": models.target, "placebo": case.placebo, "reference": models.reference}
    facts = {name: dict(model.facts) for name, model in used.items() if model is not None}
    if made.generator is not None:
        facts["generator"] = dict(made.generator.facts)
    return {
        "corpus": record,
        "heldout": record_corpus(heldout) if heldout is not None else None,
        "models": facts,
        "procedure": case.chosen,
        "procedure_asked": settings.procedure,
        "also": list(settings.also),
        "classifiers": list(settings.classifiers),
        "sampling": asdict(settings.sampling) if made.pairs else None,
        "generator_method": settings.method if made.pairs else None,
        "snippets": asdict(settings.snippets)
        | {
            "cut": len(made.cut.snippets),
            "judged": len(made.sides.suspect),
            "generator_learnt_from": len(made.training),
            "too_short": len(made.cut.short),
            "notes": [*made.cut.notes, *made.notes],
        },
        "power": asdict(settings.power) if settings.power else None,
        "seed": settings.seed,
        "software": record_software(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "earlier": _earlier(record["sha256"], models.target) if settings.cache else [],
    }


def _earlier(texts: str, target: Backend) -> list[dict[str, Any]]:
    found = earlier_audits(texts, str(target.facts.get("weights")))
    return [
        {name: value for name, value in entry.items() if name not in ("texts", "weights")} for entry in found
    ]


def _note(result: Audit) -> None:
    settings = result.settings
    note_audit(
        {
            "texts": settings["corpus"]["sha256"],
            "weights": str(settings["models"]["target"].get("weights")),
            "time": settings["time"],
            "procedure": settings["procedure"],
            "seed": settings["seed"],
            "placebo": result.placebo.name if result.placebo else None,
            "p": result.answer.p,
            "outcome": result.outcome,
        }
    )


@dataclass
class _Clock:
    """A watch that also notes how long each stage took, in seconds."""

    watch: Watch
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def passes(self, stage: str, /) -> Iterator[Progress]:
        with self._timed(stage), self.watch.passes(stage) as progress:
            yield progress

    @contextmanager
    def training(self, stage: str, /) -> Iterator[OnStep | None]:
        with self._timed(stage), self.watch.training(stage) as on_step:
            yield on_step

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - begin
            self.seconds[stage] = round(self.seconds.get(stage, 0.0) + spent, 2)
