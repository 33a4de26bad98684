"""The audit of a collection: was the target trained on these texts? All rules are fixed before any result is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pretrace.backends.serving.address import called
from pretrace.baselines.blind import pair_gap
from pretrace.baselines.classifiers import telling_words
from pretrace.corpora import Texts, corpus_of
from pretrace.errors import ExpressionError, ModelError, ShortTextsError, TextsError
from pretrace.scoring.outlook import REPORT, Stage, Timed, Watch
from pretrace.scoring.plan import Models, check_placebos
from pretrace.statistics.documents import FEW_DOCUMENTS, link_documents
from pretrace.statistics.sensitivity import controls_left_out, sensitivity
from pretrace.tuning.planting import PlantSettings, in_words, split_members
from pretrace.types import (
    Answer,
    AuditFigures,
    AuditPlan,
    Backend,
    Check,
    Corpus,
    Design,
    DesignError,
    Doubles,
    Estimate,
    Gap,
    Placebo,
    Power,
    Quantity,
    Sensitivity,
    Situation,
    Table,
    Verdict,
)
from pretrace.verdicts.audit import checks
from pretrace.verdicts.audit.built import ACCUSING, INFORMING, DocumentValues, null_of, shown_of, words_of
from pretrace.verdicts.audit.checks import pair_quality
from pretrace.verdicts.audit.data import AuditData, bytewise
from pretrace.verdicts.audit.designs import AuditMaterial, choose
from pretrace.verdicts.audit.planning import (
    A_DOCUMENT,
    closeness,
    count_passes,
    gaps_between,
    graded,
    judged,
    leans,
    margin,
    placebo_check,
    stages_of,
    taking_part,
    tunable,
)
from pretrace.verdicts.audit.settings import ALONE, PRETRACE, AuditSettings
from pretrace.verdicts.audit.snippets import (
    TUNING,
    NamedCorpus,
    Prepared,
    SnippetCut,
    check_apart,
    compared,
    cut_alike,
    join_documents,
    synthesised,
    tuned_generator,
)
from pretrace.verdicts.draws import TextsSketch, seed_of, texts_hash
from pretrace.verdicts.expected import Plan
from pretrace.verdicts.frame import Tested, build_verdict, facts_of, record, watched, with_second
from pretrace.verdicts.outcome import ENOUGH, exposure, second_check
from pretrace.verdicts.planting import check_plantable, plantable, planted_copy, power_of
from pretrace.verdicts.register import RegisterEntry
from pretrace.verdicts.wording import fill, say, sentences_of, word_check

_SECOND: Mapping[Design, str] = {
    "controls": "finds the suspect documents easier to predict than the control documents",
    "differences": "prefers what the suspect documents say to generated text by more than in the control documents",
}


def audit(
    texts: Corpus | Texts,
    models: Models | Backend | str,
    heldout: Corpus | Texts | None = None,
    *,
    generator: Backend | None = None,
    settings: AuditSettings | None = None,
    watch: Watch | None = None,
) -> Verdict:
    """The verdict on a collection: was the target trained on these texts?

    `heldout` are control documents: texts of the same kind, known to be unseen. Both are a corpus, or all that
    `open_corpus` takes: a list, a column of a table. A model alone, or its name, has the packaged model beside it as
    the second one. `models.placebo` and `models.placebos` are models that never saw the texts, `models.reference` is
    one more for the literature's features. `generator` writes continuations where control documents are missing or
    differ as texts. Raises DesignError where no verdict could come of what there is, another PretraceError for what
    cannot be audited, before any model reads the texts.
    """
    return Audit.of(texts, models, heldout, generator=generator, settings=settings).run(watch)


@dataclass(frozen=True, eq=False)
class Audit(Plan):
    """An audit whose texts and models are open and checked as far as that goes without reading a text: its `plan`, and
    the verdict (`run`). Errors as for `audit`."""

    corpus: Corpus
    models: Models
    heldout: Corpus | None
    generator: Backend | None
    settings: AuditSettings

    @classmethod
    def of(
        cls,
        texts: Corpus | Texts,
        models: Models | Backend | str,
        heldout: Corpus | Texts | None = None,
        *,
        generator: Backend | None = None,
        settings: AuditSettings | None = None,
    ) -> Audit:
        """The audit of what `audit` takes."""
        models = models if isinstance(models, Models) else with_second(Models.of(models))
        controls = corpus_of(heldout, "control documents") if heldout is not None else None
        made = cls(corpus_of(texts, "texts"), models, controls, generator, settings or AuditSettings())
        made._check()
        return made

    def _check(self) -> None:
        corpus, heldout, settings, target = self.corpus, self.heldout, self.settings, self.models.target
        if not corpus.texts:
            raise TextsError(f"{corpus.name} holds no texts.")
        if heldout is not None and not heldout.texts:
            raise TextsError(f"{heldout.name}, which should hold control documents, holds none.")
        if heldout is not None:
            check_apart(corpus, heldout)
        check_placebos(target, self.placebos)
        if settings.procedure == PRETRACE and PRETRACE in settings.also:
            raise ExpressionError("the procedure that decides is pretrace already: name others in --also.")
        if settings.power:
            if settings.procedure != PRETRACE:
                raise ExpressionError(
                    f"power is measured for the procedure pretrace, and not for {settings.procedure}: leave --power "
                    "away, or name that procedure in --also."
                )
            check_plantable(target)

    def run(self, watch: Watch | None = None, models: Models | None = None) -> Verdict:
        """Make the audit, with these `models` where others read in the place of those that were planned with."""
        if self.plan.design is None and PRETRACE in (self.settings.procedure, *self.settings.also):
            raise DesignError(self.plan, self._refused())
        clock = watched(watch)
        clock.planned(self.plan)
        clock.plan(self.stages, self._after)
        made = self._prepared(clock)
        return _assess(self, self._data(made, clock, models or self.models), made, clock)

    name = "controls"

    @property
    def situation(self) -> Situation:
        """The documents on both sides, and the size of the target."""
        plan = self.plan
        documents, unseen = plan.documents, plan.control_documents
        return Situation(documents=documents, unseen=unseen, parameters=plan.parameters)

    @cached_property
    def placebos(self) -> tuple[Backend, ...]:
        """The models that never saw the texts."""
        first = (self.models.placebo.target,) if self.models.placebo is not None else ()
        return (*first, *self.models.placebos)

    @cached_property
    def named(self) -> tuple[NamedCorpus, ...]:
        """The texts, and the control documents where there are any, with documents called by what stands in them."""
        if self.heldout is None:
            return (NamedCorpus.of(self.corpus),)
        return NamedCorpus.of(self.corpus, self.heldout), NamedCorpus.of(self.heldout, self.corpus)

    @cached_property
    def seed(self) -> int:
        """The seed of all that is drawn, which follows from the texts and from what is compared with what."""
        cut, texts = self.settings.snippets, (text.text for text in self.corpus.texts)
        how: dict[str, Any] = {
            "procedure": self.settings.procedure,
            "snippets": [cut.tokens, cut.most, cut.pairs],
        }
        return seed_of("audit", texts, heldout=self._control_hash, **how) % 2**31

    @cached_property
    def _control_hash(self) -> str:
        return texts_hash(text.text for text in (self.heldout.texts if self.heldout is not None else ()))

    @cached_property
    def cuts(self) -> tuple[SnippetCut, ...]:
        """The snippets of the texts, and of control documents; ShortTextsError for fewer of these than a test takes."""
        corpora, settings = [one.corpus for one in self.named], self.settings
        cuts = cut_alike(corpora, self.generator or self.models.target, settings, seed=self.seed)
        if len(cuts) > 1 and PRETRACE in (settings.procedure, *settings.also):
            number = cuts[1].documents
            if number < FEW_DOCUMENTS:
                numbers = {"name": corpora[1].name, "controls": number, "least": FEW_DOCUMENTS}
                raise ShortTextsError(say("designs.short", **numbers))
        return cuts

    @cached_property
    def plan(self) -> AuditPlan:
        """The design, the outcomes that are possible, and what the audit will cost."""
        cuts, settings, target = self.cuts, self.settings, self.models.target
        grades = tuple(graded(target, placebo) for placebo in self.placebos)
        gaps = gaps_between(cuts, settings, self.seed) if len(cuts) > 1 else ()
        controls = cuts[1].documents if len(cuts) > 1 else 0
        given = AuditMaterial(
            documents=cuts[0].documents,
            controls=controls,
            placebos=sum(one.grade != "other" for one in grades),
            generator=self.generator is not None,
            power=bool(settings.power),
            judged=min(min(one.documents, judged(one, settings, "placebos")) for one in cuts),
        )
        choice = choose(given, gaps)
        plan = AuditPlan(
            design=choice.design,
            why=choice.why,
            outcomes=choice.outcomes,
            documents=given.documents,
            snippets=len(cuts[0].snippets),
            control_documents=controls,
            placebos=grades,
            gaps=gaps,
            cures=choice.cures,
            parameters=float(target.facts.get("parameters") or 0),
            notes=tuple(
                dict.fromkeys(note for one in cuts for note in one.notes if " on both sides " in note)
            ),
        )
        asked = 1 + len(self._asked(plan))
        seconds = self._after + sum(stage.seconds for stage in self._stages(plan)) if plan.design else None
        return replace(plan, passes=count_passes(plan.design, cuts, settings) * asked, seconds=seconds)

    def _asked(self, plan: AuditPlan) -> tuple[Backend, ...]:
        """The models beside the target that read."""
        if plan.design == "placebos":
            return taking_part(plan.design, self.placebos, plan.placebos)
        return self.placebos

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that lie ahead."""
        return self._stages(self.plan)

    def _stages(self, plan: AuditPlan) -> tuple[Stage, ...]:
        if not plan.design:
            return ()
        alone = plan.design == "controls" and not taking_part(plan.design, self.placebos, plan.placebos)
        models = (self.models.target, *self._asked(plan))
        return tuple(stages_of(plan.design, self.cuts, models, self.generator, self.settings, alone=alone))

    @property
    def _after(self) -> float:
        """The seconds between and after the stages."""
        return REPORT + A_DOCUMENT * sum(one.documents for one in self.cuts)

    def entry(self, data: AuditData) -> RegisterEntry:
        """This audit for the register: what makes it this one and no other."""
        generator = self.generator if data.controls else None
        settings = {
            "procedure": self.settings.procedure,
            "heldout": self._control_hash if self.heldout is not None else None,
            "placebos": [str(one.facts.get("weights")) for one in data.placebos],
            "snippets": asdict(self.settings.snippets),
            "generator": str(generator.facts.get("weights")) if generator else None,
        }
        target, texts = self.models.target, TextsSketch.of(text.text for text in self.corpus.texts)
        return RegisterEntry("audit", texts, str(target.facts.get("weights")), settings, target.name)

    @property
    def names(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The owner's names of suspect and of control documents, and of what was written in their place."""
        return self.named[0].names, self.named[-1].names

    def named_values(self, found: DocumentValues) -> DocumentValues:
        """The values with the owner's names of the documents, in the order of these."""
        sides: list[Any] = []
        for documents, values, names in zip(
            (found.documents, found.heldout_documents), found.sides, self.names, strict=True
        ):
            order = sorted(range(len(documents)), key=lambda row: names[documents[row]])
            sides += tuple(names[documents[row]] for row in order), values[order]
        return DocumentValues(*sides)

    def _refused(self) -> Verdict:
        """The result of an audit that could not have answered: why, and the words that give the two sides away."""
        corpus, model = self.corpus.name, called(self.models.target.name)
        tables: tuple[Table, ...] = ()
        if self.heldout is not None:
            mine, others = ([text.text for text in one.texts] for one in (self.corpus, self.heldout))
            words, *shares = zip(*telling_words(mine, others), strict=True)
            columns = zip(("suspect texts", "control documents"), map(np.array, shares), strict=True)
            tables = (Table("words", {"word": words, **dict(columns)}),)
        said: dict[str, Any] = fill(sentences_of("audit.refused"), corpus=corpus, model=model)
        note = said.pop("note")
        return Verdict(
            test="audit",
            corpus=corpus,
            model=self.models.target.name,
            outcome="inconclusive",
            level=self.settings.level,
            exact=False,
            p=None,
            units=self.plan.documents,
            unit="document",
            reasons=(self.plan.why,),
            advice=self.plan.cures,
            notes=(note,) if tables else (),
            tables=tables,
            statements=dict(self.settings.statements),
            settings=record({"corpus": self.corpus, "heldout": self.heldout}, {}),
            **said,
        )

    def _prepared(self, clock: Timed) -> Prepared:
        """Prepare what is compared; the literature's procedures also work where our own has no design."""
        design = self.plan.design
        if design == "controls" or (design is None and self.heldout is not None):
            return compared(self.cuts, self.settings, seed=self.seed)
        if self.generator is None:
            raise ModelError(
                "without control documents an audit writes its own held-out texts and needs a generator: give "
                "--generator MODEL or --controls."
            )
        return synthesised(self.cuts, self.generator, self.settings, clock, seed=self.seed)

    def _data(self, made: Prepared, clock: Timed, models: Models) -> AuditData:
        """What is tested, with the placebos that take part and the margin, where there is one."""
        design = self.plan.design
        used = taking_part(design, self.placebos, self.plan.placebos)
        target = self.models.target
        if design == "controls" and not used and Quantity.MOMENTS not in target.offers:
            raise ModelError(
                f"{target.name} gives no whole distributions, which the score of an audit without a placebo needs "
                f"({ALONE}): name a model of its family with --placebo, or open its weights here."
            )
        first = tunable(used) if made.training else None
        if design in ("differences", "placebos") and first is not None:
            tuned = self._tuned(first, made, clock)
            # Beside control documents any placebo is as valid, and the tuned one sees more (docs/audit.md).
            used = (tuned,) if design == "differences" else (*used, tuned)
        return AuditData(
            made.samples,
            replace(models, placebo=None),
            self.settings,
            clock,
            controls=made.controls,
            placebos=used,
            margin=margin(leans()) if design == "placebos" else 0.0,
            seconds=self.placebos,
            seed=self.seed,
        )

    def _tuned(self, placebo: Backend, made: Prepared, clock: Timed) -> Backend:
        """The placebo with an adapter tuned on what the generator learnt from, so that it knows the domain as the
        target may; it is the generator itself where that began with the same weights."""
        from pretrace.backends.generation import Completer

        assert made.generator is not None
        assert self.generator is not None
        tuned, method, cache = made.generator, self.settings.method, self.settings.cache
        if self.generator.facts.get("weights") != placebo.facts.get("weights"):
            texts = [snippet.text for snippet in made.training]
            with clock.training(TUNING) as on_step:
                tuned = tuned_generator(placebo, texts, method, seed=self.seed, cache=cache, on_step=on_step)
        assert isinstance(tuned, Completer)
        return tuned.backend


def _record(inputs: Audit, data: AuditData, made: Prepared, clock: Timed) -> dict[str, Any]:
    settings = data.settings
    reference, generator = data.models.reference, made.generator
    return record(
        {"corpus": inputs.corpus, "heldout": inputs.heldout},
        facts_of(data.placebos, target=data.target, reference=reference, generator=generator),
        procedure=settings.procedure,
        also=list(settings.also),
        classifiers=list(settings.classifiers),
        sampling=asdict(settings.sampling) if made.pairs else None,
        generator_method=settings.method if made.pairs else None,
        snippets=asdict(settings.snippets)
        | {
            "cut": len(made.cut.snippets),
            "judged": len(made.samples.suspect),
            "generator_learnt_from": len(made.training),
            "too_short": len(made.cut.short),
            "notes": [*made.cut.notes, *made.notes],
        },
        power=[asdict(one) for one in settings.power],
        seed=data.seed,
        timings=clock.seconds,
    )


def _assess(inputs: Audit, data: AuditData, made: Prepared, clock: Timed) -> Verdict:
    settings, target, corpus, plan = data.settings, data.target, inputs.corpus.name, inputs.plan
    answer, own = data.answer(settings.procedure), settings.procedure == PRETRACE
    placebos, between, values = _compared(data, plan.placebos), _pair_gaps(data, made), data.values
    withstands, rejected = _sensitivity(data, values), answer.p <= settings.level
    looked = _checks(data, made, plan, answer, placebos, between)
    if not values.paired and own:
        looked.append(checks.mixture_check((withstands.left_out or 0) if rejected else None, values))
        looked.append(kinds(data, rejected=rejected))
    powers: tuple[Power, ...] = ()
    power: Power | None = None
    if not rejected:
        powers = measured(data, inputs.named[0].corpus, settings.power) if settings.power else ()
        power = deciding_power(powers, answer.effect)
        looked.append(power_check(powers, power))
    figures = AuditFigures(
        design=data.design,
        procedure=answer.procedure,
        pieces=answer.pieces,
        facts=answer.facts,
        answers=data.answers if own else (),
        sensitivity=withstands,
        plan=plan,
        variants=tuple(data.answer(name) for name in settings.also),
        placebos=placebos,
        leans=leans() if data.design == "placebos" else (),
        powers=powers,
        gaps=(*between, *plan.gaps),
        quality=pair_quality(made.pairs, [one.text for one in made.training]) if made.pairs else (),
    )
    seconds = data.seconds if data.design != "placebos" and own else ()
    named, names = inputs.named_values(values), data.models.names(*data.seconds)
    pairs = [
        tuple(replace(one, document=own[one.document]) for one in side)
        for side, own in zip((made.pairs, made.control_pairs), inputs.names, strict=True)
    ]
    return build_verdict(
        "audit",
        corpus,
        target.name,
        words_of(figures, answer, corpus, called(target.name)),
        Tested(
            float(answer.p),
            answer.documents,
            null_of(values, level=settings.level, seed=data.seed),
            answer.effect,
            answer.standardised,
        ),
        shown_of(
            figures,
            ((named.documents, named.values), (named.heldout_documents, named.heldout_values)),
            (pairs[0], pairs[1]),
            {names[model.name]: inputs.named_values(data.alone(model)) for model in seconds},
        ),
        looked,
        level=settings.level,
        power=power,
        accusing=ACCUSING,
        informing=INFORMING,
        second=True,
        trainable=plantable(target),
        entry=inputs.entry(data),
        keep=settings.cache,
        advice=plan.cures,
        statements=settings.statements,
        settings=_record(inputs, data, made, clock),
    )


def kinds(data: AuditData, *, rejected: bool) -> Check:
    """Check that control documents form no group by their words, on at most `GROUPED` random documents a side."""
    others = data.samples.heldout if data.controls is None else data.controls.suspect
    rng = np.random.default_rng([data.seed, 3])
    texts: list[str] = []
    controls: list[bool] = []
    for control, side in ((False, data.samples.suspect), (True, others)):
        made = list(join_documents(side).values())
        texts += [made[i] for i in rng.permutation(len(made))[: checks.GROUPED].tolist()]
        controls += [control] * (len(texts) - len(controls))
    return checks.kinds_check(texts, np.array(controls), seed=data.seed, rejected=rejected)


def _sensitivity(data: AuditData, values: DocumentValues) -> Sensitivity:
    level, controls = data.settings.level, values.heldout_values if not values.paired else None
    bias = sensitivity(values.values, controls, level=level, seed=data.seed)
    if controls is None:
        return bias
    return replace(bias, left_out=controls_left_out(values.values, controls, level, seed=data.seed))


def _compared(data: AuditData, placebos: Sequence[Placebo]) -> tuple[Placebo, ...]:
    used = {model.name: model for model in data.placebos}

    def close(model: Backend) -> float:
        target, other = (data.logprobs(one)[0] for one in (data.target, model))
        return closeness(target, other, by_byte=bytewise(data.target, model))

    return tuple(
        replace(one, closeness=close(used[one.name])) if one.name in used else one for one in placebos
    )


def _pair_gaps(data: AuditData, made: Prepared) -> tuple[Gap, ...]:
    settings = data.settings
    if not made.pairs or (data.design == "differences" and settings.procedure == PRETRACE):
        return ()
    try:
        return pair_gap(made.pairs, settings.learners, seed=data.seed)
    except TextsError:
        return ()


def _checks(
    data: AuditData,
    made: Prepared,
    plan: AuditPlan,
    answer: Answer,
    placebos: Sequence[Placebo],
    between: Sequence[Gap],
) -> list[Check]:
    values, seed, level = data.values, data.seed, data.settings.level
    looked = [
        checks.documents_check(values),
        checks.gap_check(between or plan.gaps, plan.why, "placebos" if between else data.design),
        checks.reverse_check(values, seed=seed),
    ]
    if not values.paired:
        looked.append(checks.spread_check(values, seed=seed))
    if made.pairs:
        pairs = (*made.pairs, *made.control_pairs)
        looked.append(checks.copies_check(float(np.mean([p.true == p.generated for p in pairs]))))
    looked.append(placebo_check(placebos, data.design))
    if data.design == "placebos":
        looked.append(checks.no_control_documents())
        return looked
    answers = [data.ask_second(model, answer) for model in data.seconds]
    return [
        *looked,
        second_check(answers, level, does=_SECOND[data.design], preferred="the suspect documents"),
    ]


def measured(data: AuditData, corpus: Corpus, exposures: Sequence[PlantSettings]) -> tuple[Power, ...]:
    """The power of the test, at this audit's number of documents, for each exposure in turn.

    The texts of some documents (`share`) are trained on, in a copy of the target; the same pieces are then read by
    that copy. Each planted document gives the shift that training brought; the spread between documents is that of
    the audit itself, around 0. ModelError where the target has no weights here.
    """
    check_plantable(data.target)
    found, owner, noise = [], link_documents(corpus.texts), data.values
    for one in exposures:
        settings = replace(one, seed=data.seed)
        labelled = split_members(corpus, settings.share, settings.seed)
        members = {owner[text.document] for text in labelled.texts if text.member}
        samples = data.samples.of_documents(members)
        before = replace(data, samples=samples, placebos=data.deciding, _logprobs={})
        training, cache = data.watch.training, data.settings.cache
        with planted_copy(data.target, corpus, settings, cache=cache, training=training) as copy:
            after = before.with_target(copy).values
        rate = settings.rate(existing=True)
        facts = {
            "how": in_words(settings.method, rate),
            "units": len(noise.documents),
            "learning_rate": rate,
            "passages a step": settings.batch,
        }
        shift = shifts(before.values, after) - noise.margin
        controls = None if noise.paired else noise.heldout_values
        more: dict[str, Any] = {"epochs": settings.epochs, "controls": controls, "facts": facts}
        found.append(power_of(noise.values, shift, data.settings.level, **more))
    return tuple(found)


def deciding_power(found: Sequence[Power], effect: Estimate | None) -> Power | None:
    """The lightest exposure that the audit excludes: found often enough, and bringing more than the effect's upper
    bound. Without such a one, the lightest that is found often enough, or else the heaviest."""
    enough = [one for one in found if one.probability.value >= ENOUGH]
    excluded = [one for one in enough if effect is not None and effect.high < one.effect.low]
    return next(iter([*excluded, *enough, *reversed(found)]), None)


def power_check(found: Sequence[Power], deciding: Power | None) -> Check:
    """Check that training would have been detected, by the exposure that decides, where nothing was rejected."""
    if deciding is None:
        return word_check("audit.power", None, words="unmeasured")  # the rule of all verdicts advises it
    chances = [(one.facts.get("learning_rate", "probability"), one.probability) for one in found]
    figures = {str(rate): [one.value, one.low, one.high] for rate, one in chances}
    tried = (
        say("audit.power.tried", how=exposure(one, "document").capitalize(), chance=one.probability)
        for one in found
    )
    more = say("audit.power.more", needed=deciding.needed, share=ENOUGH) if deciding.needed else ""
    return word_check(
        "audit.power",
        deciding.probability.value >= ENOUGH,
        figures,
        said=" ".join(tried),
        more=more or say("audit.power.closer"),
    )


def shifts(before: DocumentValues, after: DocumentValues) -> Doubles:
    """How much training raised each planted document, beyond the held-out ones."""
    gained = after.values - before.values
    if before.paired:
        return np.asarray(gained)
    return np.asarray(gained - (after.heldout_values - before.heldout_values).mean())
