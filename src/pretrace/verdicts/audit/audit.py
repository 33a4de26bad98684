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
    Situation,
    Table,
    Verdict,
)
from pretrace.verdicts.audit import checks, planning, snippets
from pretrace.verdicts.audit.built import ACCUSING, INFORMING, DocumentValues, null_of, shown_of, words_of
from pretrace.verdicts.audit.data import AuditData, bytewise
from pretrace.verdicts.audit.settings import ALONE, PRETRACE, AuditSettings
from pretrace.verdicts.audit.snippets import NamedCorpus, Prepared, SnippetCut
from pretrace.verdicts.draws import TextsSketch, seed_of, texts_hash
from pretrace.verdicts.expected import foresee
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
class Audit:
    """An audit whose texts and models are open and checked, before any text is read: its `plan`, and the verdict."""

    corpus: Corpus
    models: Models
    heldout: Corpus | None
    generator: Backend | None
    settings: AuditSettings

    def _check(self) -> None:
        corpus, heldout, settings, target = self.corpus, self.heldout, self.settings, self.models.target
        if not corpus.texts:
            raise TextsError(f"{corpus.name} holds no texts.")
        if heldout is not None:
            if not heldout.texts:
                raise TextsError(f"{heldout.name}, which should hold control documents, holds none.")
            snippets.check_apart(corpus, heldout)
        check_placebos(target, self.placebos)
        if settings.procedure == PRETRACE and PRETRACE in settings.also:
            raise ExpressionError("the procedure that decides is pretrace already: name others in --also.")
        if settings.power:
            if settings.procedure != PRETRACE:
                raise ExpressionError(
                    f"power is measured for the procedure pretrace, and not for {settings.procedure}: omit --power, or "
                    "name that procedure in --also."
                )
            check_plantable(target)

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

    def run(self, watch: Watch | None = None, models: Models | None = None) -> Verdict:
        """Make the audit, with these `models` where others read in the place of those that were planned with."""
        plan, clock = self.plan, watched(watch)
        if plan.design is None and PRETRACE in (self.settings.procedure, *self.settings.also):
            raise DesignError(plan, self._refused())
        clock.planned(plan)
        clock.plan(self.stages, self._after)
        # the literature's procedures also work where our own has no design
        if plan.design == "controls" or (plan.design is None and self.heldout is not None):
            made = snippets.compared(self.cuts, self.settings, seed=self.seed)
        elif self.generator is None:
            raise ModelError(
                "without control documents an audit writes its own held-out texts and needs a generator: give "
                "--generator MODEL or --controls."
            )
        else:
            made = snippets.synthesised(self.cuts, self.generator, self.settings, clock, seed=self.seed)
        return _assess(self, self._data(made, clock, models or self.models), made, clock)

    @property
    def chance(self) -> tuple[str, ...]:
        """How likely the test finds a single reading, and the documents that it takes, in lines."""
        plan = self.plan
        documents, unseen, size = plan.documents, plan.control_documents, plan.parameters
        return tuple(foresee("controls", Situation(documents=documents, unseen=unseen, parameters=size)))

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
        how: dict[str, Any] = {"snippets": [cut.tokens, cut.most, cut.pairs]}
        how["procedure"] = self.settings.procedure
        return seed_of("audit", texts, heldout=self._control_hash, **how) % 2**31

    @cached_property
    def _control_hash(self) -> str:
        return texts_hash(text.text for text in (self.heldout.texts if self.heldout is not None else ()))

    @cached_property
    def cuts(self) -> tuple[SnippetCut, ...]:
        """The snippets of the texts, and of control documents; ShortTextsError for fewer of these than a test takes."""
        corpora, settings = [one.corpus for one in self.named], self.settings
        model = self.generator or self.models.target
        cuts = snippets.cut_alike(corpora, model, settings, seed=self.seed)
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
        grades = tuple(planning.graded(target, placebo) for placebo in self.placebos)
        gaps = planning.gaps_between(cuts, settings, self.seed) if len(cuts) > 1 else ()
        material = planning.AuditMaterial(
            documents=cuts[0].documents,
            controls=cuts[1].documents if len(cuts) > 1 else 0,
            placebos=sum(one.grade != "other" for one in grades),
            generator=self.generator is not None,
            power=bool(settings.power),
            judged=min(min(one.documents, planning.judged(one, settings, "placebos")) for one in cuts),
        )
        notes = dict.fromkeys(note for one in cuts for note in one.notes if " on both sides " in note)
        plan = replace(
            planning.choose(material, gaps),
            snippets=len(cuts[0].snippets),
            placebos=grades,
            gaps=gaps,
            parameters=float(target.facts.get("parameters") or 0),
            notes=tuple(notes),
        )
        asked = 1 + len(self._asked(plan))
        seconds = self._after + sum(stage.seconds for stage in self._stages(plan)) if plan.design else None
        passes = planning.count_passes(plan.design, cuts, settings) * asked
        return replace(plan, passes=passes, seconds=seconds)

    def _asked(self, plan: AuditPlan) -> tuple[Backend, ...]:
        return self._used(plan) if plan.design == "placebos" else self.placebos

    def _used(self, plan: AuditPlan) -> tuple[Backend, ...]:
        return planning.taking_part(plan.design, self.placebos, plan.placebos)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that lie ahead."""
        return self._stages(self.plan)

    def _stages(self, plan: AuditPlan) -> tuple[Stage, ...]:
        if not plan.design:
            return ()
        alone, models = not self._used(plan), (self.models.target, *self._asked(plan))
        alone = alone and plan.design == "controls"
        how = plan.design, self.cuts, models, self.generator, self.settings
        return tuple(planning.stages_of(*how, alone=alone))

    @property
    def _after(self) -> float:
        """The seconds between and after the stages."""
        return REPORT + planning.A_DOCUMENT * sum(one.documents for one in self.cuts)

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
        both = (found.documents, found.heldout_documents), found.sides, self.names
        for documents, values, names in zip(*both, strict=True):
            order = sorted(range(len(documents)), key=lambda row: names[documents[row]])
            sides += tuple(names[documents[row]] for row in order), values[order]
        return DocumentValues(*sides)

    def _refused(self) -> Verdict:
        """The result of an audit that could not have answered: why, and the words that give the two sides away."""
        corpus, target, plan = self.corpus.name, self.models.target.name, self.plan
        tables: tuple[Table, ...] = ()
        if self.heldout is not None:
            mine, others = ([text.text for text in one.texts] for one in (self.corpus, self.heldout))
            words, *shares = zip(*telling_words(mine, others), strict=True)
            columns = zip(("suspect texts", "control documents"), map(np.array, shares), strict=True)
            tables = (Table("words", {"word": words, **dict(columns)}),)
        said: dict[str, Any] = fill(sentences_of("audit.refused"), corpus=corpus, model=called(target))
        note = said.pop("note")
        return Verdict(
            test="audit",
            corpus=corpus,
            model=target,
            outcome="inconclusive",
            level=self.settings.level,
            exact=False,
            p=None,
            units=plan.documents,
            unit="document",
            reasons=(plan.why,),
            advice=plan.cures,
            notes=(note,) if tables else (),
            tables=tables,
            statements=dict(self.settings.statements),
            settings=record({"corpus": self.corpus, "heldout": self.heldout}, {}),
            **said,
        )

    def _data(self, made: Prepared, clock: Timed, models: Models) -> AuditData:
        """What is tested, with the placebos that take part and the margin, where there is one."""
        design, used, target = self.plan.design, self._used(self.plan), self.models.target
        if design == "controls" and not used and Quantity.MOMENTS not in target.offers:
            raise ModelError(
                f"{target.name} gives no whole distributions, which the score of an audit without a placebo needs "
                f"({ALONE}): name a model of its family with --placebo, or open its weights here."
            )
        first = planning.tunable(used) if made.training else None
        if design in ("differences", "placebos") and first is not None:
            tuned = self._tuned(first, made, clock)
            # Beside control documents any placebo is as valid, and the tuned one sees more (docs/audit.md).
            used = (tuned,) if design == "differences" else (*used, tuned)
        leant = [one.value for one in planning.leans()] if design == "placebos" else []
        return AuditData(
            made.samples,
            replace(models, placebo=None),
            self.settings,
            clock,
            controls=made.controls,
            placebos=used,
            margin=max(leant, default=0.0),
            seconds=self.placebos,
            seed=self.seed,
        )

    def _tuned(self, placebo: Backend, made: Prepared, clock: Timed) -> Backend:
        """The placebo with an adapter tuned on what the generator learnt from; the generator if both began alike."""
        from pretrace.backends.generation import Completer

        assert made.generator is not None
        assert self.generator is not None
        tuned, method, cache = made.generator, self.settings.method, self.settings.cache
        if self.generator.facts.get("weights") != placebo.facts.get("weights"):
            texts = [snippet.text for snippet in made.training]
            with clock.training(snippets.TUNING) as on_step:
                tuned = snippets.tuned_generator(
                    placebo, texts, method, seed=self.seed, cache=cache, on_step=on_step
                )
        assert isinstance(tuned, Completer)
        return tuned.backend


def _assess(inputs: Audit, data: AuditData, made: Prepared, clock: Timed) -> Verdict:
    settings, target, corpus, plan = data.settings, data.target, inputs.corpus.name, inputs.plan
    answer, own = data.answer(settings.procedure), settings.procedure == PRETRACE
    values, level = data.values, settings.level
    placebos, between = tuple(_with_closeness(data, one) for one in plan.placebos), _pair_gaps(data, made)
    controls, rejected = None if values.paired else values.heldout_values, answer.p <= level
    withstands = sensitivity(values.values, controls, level=level, seed=data.seed)
    if controls is not None:
        left_out = controls_left_out(values.values, controls, level, seed=data.seed)
        withstands = replace(withstands, left_out=left_out)
    looked = _checks(data, made, plan, answer, placebos, between)
    if controls is not None and own:
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
        leans=planning.leans() if data.design == "placebos" else (),
        powers=powers,
        gaps=(*between, *plan.gaps),
        quality=checks.pair_quality(made.pairs, [one.text for one in made.training]) if made.pairs else (),
    )
    seconds = data.seconds if data.design != "placebos" and own else ()
    named, names = inputs.named_values(values), data.models.names(*data.seconds)
    pairs = [
        tuple(replace(one, document=owners[one.document]) for one in side)
        for side, owners in zip((made.pairs, made.control_pairs), inputs.names, strict=True)
    ]
    reference, generator = data.models.reference, made.generator
    snippets_made = {
        "cut": len(made.cut.snippets),
        "judged": len(made.samples.suspect),
        "generator_learnt_from": len(made.training),
        "too_short": len(made.cut.short),
        "notes": [*made.cut.notes, *made.notes],
    }
    return build_verdict(
        "audit",
        corpus,
        target.name,
        words_of(figures, answer, corpus, called(target.name)),
        Tested(
            float(answer.p),
            answer.documents,
            null_of(values, level=level, seed=data.seed),
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
        level=level,
        power=power,
        accusing=ACCUSING,
        informing=INFORMING,
        second=True,
        trainable=plantable(target),
        entry=inputs.entry(data),
        keep=settings.cache,
        advice=plan.cures,
        statements=settings.statements,
        settings=record(
            {"corpus": inputs.corpus, "heldout": inputs.heldout},
            facts_of(data.placebos, target=target, reference=reference, generator=generator),
            procedure=settings.procedure,
            also=list(settings.also),
            classifiers=list(settings.classifiers),
            sampling=asdict(settings.sampling) if made.pairs else None,
            generator_method=settings.method if made.pairs else None,
            snippets=asdict(settings.snippets) | snippets_made,
            power=[asdict(one) for one in settings.power],
            seed=data.seed,
            timings=clock.seconds,
        ),
    )


def _with_closeness(data: AuditData, placebo: Placebo) -> Placebo:
    model = next((one for one in data.placebos if one.name == placebo.name), None)
    if model is None:
        return placebo
    target, other = (data.logprobs(one)[0] for one in (data.target, model))
    by_byte = bytewise(data.target, model)
    return replace(placebo, closeness=planning.closeness(target, other, by_byte=by_byte))


def kinds(data: AuditData, *, rejected: bool) -> Check:
    """Check that control documents form no group by their words, on at most `GROUPED` random documents a side."""
    others = data.samples.heldout if data.controls is None else data.controls.suspect
    rng = np.random.default_rng([data.seed, 3])
    texts: list[str] = []
    controls: list[bool] = []
    for control, side in ((False, data.samples.suspect), (True, others)):
        made = list(snippets.join_documents(side).values())
        texts += [made[i] for i in rng.permutation(len(made))[: checks.GROUPED].tolist()]
        controls += [control] * (len(texts) - len(controls))
    return checks.kinds_check(texts, np.array(controls), seed=data.seed, rejected=rejected)


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
    looked.append(planning.placebo_check(placebos, data.design))
    if data.design == "placebos":  # without control documents a rejection is no result
        return [*looked, word_check("audit.controls", False)]
    answers = [data.ask_second(model, answer) for model in data.seconds]
    asked = {"does": _SECOND[data.design], "preferred": "the suspect documents"}
    return [*looked, second_check(answers, level, **asked)]


def measured(data: AuditData, corpus: Corpus, exposures: Sequence[PlantSettings]) -> tuple[Power, ...]:
    """The power of the test, at this audit's number of documents, for each exposure in turn: a copy of the target
    trains on some documents (`share`) and reads the same pieces. Each planted document gives the shift; the spread
    between documents is that of the audit, around 0. ModelError where the target has no weights here."""
    check_plantable(data.target)
    found, owner, noise = [], link_documents(corpus.texts), data.values
    for one in exposures:
        settings = replace(one, seed=data.seed)
        labelled = split_members(corpus, settings.share, settings.seed)
        samples = data.samples.of_documents({owner[text.document] for text in labelled.texts if text.member})
        before = replace(data, samples=samples, placebos=data.deciding, _logprobs={}, _features={})
        training, cache = data.watch.training, data.settings.cache
        with planted_copy(data.target, corpus, settings, cache=cache, training=training) as copy:
            after = before.with_target(copy).values
        rate = settings.rate(existing=True)
        facts = {"how": in_words(settings.method, rate), "units": len(noise.documents)}
        facts |= {"learning_rate": rate, "passages a step": settings.batch}
        shift = shifts(before.values, after) - noise.margin
        controls = None if noise.paired else noise.heldout_values
        more: dict[str, Any] = {"epochs": settings.epochs, "controls": controls, "facts": facts}
        found.append(power_of(noise.values, shift, data.settings.level, **more))
    return tuple(found)


def deciding_power(found: Sequence[Power], effect: Estimate | None) -> Power | None:
    """The lightest exposure that the audit excludes; else the lightest that is found often enough, or the heaviest."""
    enough = [one for one in found if one.probability.value >= ENOUGH]
    excluded = [one for one in enough if effect is not None and effect.high < one.effect.low]
    return next(iter([*excluded, *enough, *reversed(found)]), None)


def power_check(found: Sequence[Power], deciding: Power | None) -> Check:
    """Check that training would have been detected, by the exposure that decides, where nothing was rejected."""
    if deciding is None:
        return word_check("audit.power", None, words="unmeasured")  # the rule of all verdicts advises it
    figures, tried = {}, []
    for one in found:
        chance = one.probability
        figures[str(one.facts.get("learning_rate", "probability"))] = [chance.value, chance.low, chance.high]
        tried.append(say("audit.power.tried", how=exposure(one, "document").capitalize(), chance=chance))
    more = say("audit.power.closer")
    if deciding.needed:
        more = say("audit.power.more", needed=deciding.needed, share=ENOUGH)
    good = deciding.probability.value >= ENOUGH
    return word_check("audit.power", good, figures, said=" ".join(tried), more=more)


def shifts(before: DocumentValues, after: DocumentValues) -> Doubles:
    """How much training raised each planted document, beyond the held-out ones."""
    gained = np.asarray(after.values - before.values)
    if before.paired:
        return gained
    return np.asarray(gained - (after.heldout_values - before.heldout_values).mean())
