"""The results of an audit, test, checks and power, and the verdict that follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pretrace.backends.serving.address import called
from pretrace.baselines.classifier_two_sample import pair_gap
from pretrace.errors import TextsError
from pretrace.statistics.sensitivity import controls_left_out, sensitivity
from pretrace.types import AuditFigures, AuditPlan, Check, Corpus, Gap, Placebo, Power, Sensitivity, Verdict
from pretrace.verdicts.audit import checks
from pretrace.verdicts.audit.built import Question, audit_verdict, found
from pretrace.verdicts.audit.data import AuditData, shuffled
from pretrace.verdicts.audit.generation import Prepared
from pretrace.verdicts.audit.pair_quality import pair_quality
from pretrace.verdicts.audit.placebo import closeness, leans, placebo_check
from pretrace.verdicts.audit.power import deciding_power, measured, plantable, power_check
from pretrace.verdicts.audit.sample_scores import DocumentValues, bytewise, flipped_p, null_of
from pretrace.verdicts.audit.settings import CALIBRATED, PRETRACE
from pretrace.verdicts.outcome import conclude

SHUFFLES = {PRETRACE: 200, CALIBRATED: 20}
"""How often documents are assigned to the sides at random; for the literature's procedures a few times."""
FEW_SHUFFLES = 5


def assess(data: AuditData, corpus: Corpus, plan: AuditPlan, made: Prepared) -> Verdict:
    """The audit with its verdict, of data whose texts are of `corpus`."""
    settings, model = data.settings, data.target.name
    answer = data.answer(settings.procedure)
    placebos, between = _compared(data, plan.placebos), _pair_gaps(data, made)
    values = data.values(settings.procedure)
    withstands = _sensitivity(data, values)
    looked = _checks(data, made, plan, placebos, between)
    if not values.paired and settings.procedure in (PRETRACE, CALIBRATED):
        rejected = answer.p <= settings.level
        looked.append(checks.mixture_check((withstands.left_out or 0) if rejected else None, values))
        looked.append(kinds(data, rejected=rejected))
    powers: tuple[Power, ...] = ()
    power: Power | None = None
    if answer.p > settings.level:
        powers = measured(data, corpus, settings.power, settings.procedure) if settings.power else ()
        power = deciding_power(powers, answer.effect)
        looked.append(power_check(powers, power))
    question = Question(corpus.name, called(model), settings.level, trainable=plantable(data.target))
    verdict = conclude(found(answer, power, question), looked)
    cures = plan.cures if verdict.outcome == "inconclusive" else ()
    learnt = [snippet.text for snippet in made.training]
    figures = AuditFigures(
        design=data.design,
        procedure=answer.procedure,
        pieces=answer.pieces,
        facts=answer.facts,
        answers=data.answers if settings.procedure == PRETRACE else (),
        sensitivity=withstands,
        plan=plan,
        variants=tuple(data.answer(name) for name in settings.also),
        placebos=placebos,
        leans=leans() if data.design == "placebos" else (),
        powers=powers,
        gaps=(*between, *plan.gaps),
        quality=pair_quality(made.pairs, learnt) if made.pairs else (),
    )
    return audit_verdict(
        figures,
        answer,
        ((values.documents, values.values), (values.heldout_documents, values.heldout_values)),
        pairs=(made.pairs, made.control_pairs),
        corpus=corpus.name,
        model=model,
        outcome=verdict.outcome,
        statement=verdict.statement,
        level=settings.level,
        null=null_of(values, level=settings.level, seed=data.seed),
        planted=power,
        checks=tuple(looked),
        reasons=verdict.reasons,
        advice=tuple(dict.fromkeys((*verdict.advice, *cures))),
        statements=dict(settings.statements),
    )


def kinds(data: AuditData, *, rejected: bool) -> Check:
    """Whether control documents form a group of their own by the words of their snippets; of either side at most so
    many documents are looked at, drawn at random."""
    others = data.samples.heldout if data.controls is None else data.controls.suspect
    rng = np.random.default_rng([data.seed, 3])
    texts: list[str] = []
    controls: list[bool] = []
    for control, side in ((False, data.samples.suspect), (True, others)):
        documents: dict[str, list[str]] = {}
        for one in side:
            documents.setdefault(one.document, []).append(one.text)
        made = ["\n\n".join(some) for some in documents.values()]
        texts += [made[i] for i in rng.permutation(len(made))[: checks.GROUPED].tolist()]
        controls += [control] * (len(texts) - len(controls))
    return checks.kinds_check(texts, np.array(controls), seed=data.seed, rejected=rejected)


def _sensitivity(data: AuditData, values: DocumentValues) -> Sensitivity:
    """How much hidden bias the deciding test withstands, and how many control documents of another kind."""
    level, controls = data.settings.level, values.heldout_values if not values.paired else None
    bias = sensitivity(values.values, controls, level=level, seed=data.seed)
    if controls is None:
        return bias
    return replace(bias, left_out=controls_left_out(values.values, controls, level, seed=data.seed))


def _compared(data: AuditData, placebos: Sequence[Placebo]) -> tuple[Placebo, ...]:
    """The placebos; those that took part with the closeness of their predictions to the target's."""
    used = {model.name: model for model in data.placebos}
    found = []
    for placebo in placebos:
        model = used.get(placebo.name)
        if model is None:
            found.append(placebo)
            continue
        by_byte = bytewise(data.target, model)
        close = closeness(data.logprobs(data.target)[0], data.logprobs(model)[0], by_byte=by_byte)
        found.append(replace(placebo, closeness=close))
    return tuple(found)


def _pair_gaps(data: AuditData, made: Prepared) -> tuple[Gap, ...]:
    """How well classifiers of texts tell true from generated text; nothing where there is too little to learn from."""
    settings = data.settings
    if not made.pairs or (data.design == "differences" and settings.procedure == PRETRACE):
        return ()
    try:
        return pair_gap(made.pairs, settings.classifiers, seed=data.seed)
    except TextsError:
        return ()


def _checks(
    data: AuditData, made: Prepared, plan: AuditPlan, placebos: Sequence[Placebo], between: Sequence[Gap]
) -> list[Check]:
    """The checks of the values, of the texts that are compared and of the placebos, in the order of the report."""
    values, seed = data.values(data.settings.procedure), data.seed
    looked = [
        checks.documents_check(values),
        checks.gap_check(between or plan.gaps, plan.why, "placebos" if between else data.design),
        checks.halves_check(values, seed=seed),
        _shuffled_check(data),
        checks.reverse_check(values, seed=seed),
    ]
    if not values.paired:
        looked.append(checks.spread_check(values, seed=seed))
    if data.design == "controls" and data.placebos:
        first = data.placebos[0]
        looked.append(checks.innocent_check(first.name, data.placebo_alone(first), seed=seed))
    if made.pairs:
        pairs = (*made.pairs, *made.control_pairs)
        looked.append(checks.copies_check(float(np.mean([p.true == p.generated for p in pairs]))))
    looked.append(placebo_check(placebos, data.design))
    if data.design == "placebos":
        looked.append(checks.no_control_documents())
    if data.settings.procedure != PRETRACE:
        looked.append(_negative_control(data))
    return looked


def _shuffled_check(data: AuditData) -> Check:
    chosen, settings = data.settings.procedure, data.settings
    repeats = SHUFFLES.get(chosen, FEW_SHUFFLES)
    values = data.values(chosen)
    features = None if chosen == PRETRACE else data.features_of(chosen)

    def draw(rng: np.random.Generator) -> float:
        if features is None:
            return flipped_p(values, rng)
        return data.answer_from(chosen, shuffled(features, rng)).p

    return checks.shuffled_check(draw, repeats=repeats, level=settings.level, seed=data.seed)


def _negative_control(data: AuditData) -> Check:
    """The same procedure with another model in the target's place."""
    level, chosen = data.settings.level, data.settings.procedure
    for other in data.negative_controls:
        if other.facts.get("weights") != data.target.facts.get("weights"):
            return checks.negative_control_check(other.name, data.with_target(other).answer(chosen).p, level)
    return checks.negative_control_check(None, 1.0, level)
