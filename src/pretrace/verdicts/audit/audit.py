"""The audit of a collection: was the target trained on these texts? All rules are fixed before any result is seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from pretrace.backends.instructed import Completer
from pretrace.backends.naming import called
from pretrace.baselines import pair_gap, telling_words
from pretrace.corpora import Texts, corpus_of
from pretrace.corpora.opening import record_corpus
from pretrace.errors import ModelError, ShortTextsError, TextsError
from pretrace.registry import tests
from pretrace.results.wording import fill, say, sentences_of
from pretrace.scoring.outlook import REPORT, Action, Stage, Watch, guessed_seconds
from pretrace.scoring.plan import Models, ScorePlan, check_placebos, weights_of, with_second
from pretrace.statistics.documents import FEW_DOCUMENTS, link_documents
from pretrace.statistics.permutation import controls_left_out, sensitivity
from pretrace.tuning.plan import methods
from pretrace.types import (
    Backend,
    Check,
    Corpus,
    Estimate,
    Gap,
    Power,
    Quantity,
    Table,
    Verdict,
)
from pretrace.verdicts import frame
from pretrace.verdicts.audit import checks, snippets
from pretrace.verdicts.audit.data import (
    ALONE,
    APART,
    DRAWS,
    PRETRACE,
    RELEASE,
    AuditData,
    AuditFigures,
    AuditPlan,
    AuditSettings,
    Design,
    DesignError,
    DocumentValues,
    Placebo,
    beyond,
    expressions,
    figures_of,
    judge_values,
    shown_of,
    words_of,
)
from pretrace.verdicts.audit.procedures import Answer
from pretrace.verdicts.audit.snippets import NO_TUNING, SCORING, Sample, SnippetCut, reading
from pretrace.verdicts.frame import Numbers, TestDetails, Tested, TestWording
from pretrace.verdicts.outcome import ENOUGH, ExcessOverSecondModel, SecondAnswer, exposure, word_check
from pretrace.verdicts.register import seed_of, texts_hash

_A_DOCUMENT = 0.005
"""Seconds of all tests and checks for a document on either side."""


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
    models = models if isinstance(models, Models) else with_second(Models.of(models))
    if models.placebo is not None:
        models = replace(models, placebo=None, placebos=(models.placebo.target, *models.placebos))
    corpus = corpus_of(texts, "texts")
    controls = corpus_of(heldout, "control documents") if heldout is not None else None
    how: dict[str, Any] = {"settings": settings or AuditSettings(), "watch": frame.watched(watch)}
    return Audit(corpus=corpus, heldout=controls, models=models, generator=generator, **how).run()


@tests.add("audit")
@dataclass(frozen=True, eq=False, kw_only=True)
class Audit(frame.Test[DocumentValues]):
    """An audit whose texts and models are open and checked, before any text is read: its `plan`, and the verdict.
    Errors as in `audit`."""

    settings: AuditSettings = field(default_factory=AuditSettings)  # type: ignore[assignment]
    heldout: Corpus | None = None
    generator: Backend | None = None

    name = "audit"
    accusing = ("controls", "mixture", "spread", "kinds")
    """What they look for makes documents look known and hides no training."""

    def __post_init__(self) -> None:
        settings, controls, target = self.settings, self.heldout, self.models.target
        if not self.corpus.texts:
            raise TextsError(f"{self.corpus.name} holds no texts.")
        if controls is not None:
            if not controls.texts:
                raise TextsError(f"{controls.name}, which should hold control documents, holds none.")
            snippets.check_apart(self.corpus, controls)
        check_placebos(target, self.models.placebos)
        if settings.power:
            frame.check_plantable(target)

    def run(self) -> Verdict:
        """Make the audit."""
        if self.plan.design is None and PRETRACE in (self.settings.procedure, *self.settings.also):
            raise DesignError(self.plan, self._refused())
        self.watch.plan(self.stages, self._after)
        return frame.verdict(self, statements=self.settings.statements)

    @cached_property
    def named(self) -> tuple[tuple[Corpus, Mapping[str, str]], ...]:
        """The texts, and the control documents where there are any, with documents called by what stands in them, and
        the owner's names of these."""
        mine, others = self.corpus, self.heldout
        suspect = snippets.rename_documents(mine, others)
        return (suspect, snippets.rename_documents(others, mine)) if others is not None else (suspect,)

    @cached_property
    def seed(self) -> int:
        return seed_of(self.name, self.texts, **self.matters) % 2**31

    @property
    def matters(self) -> Mapping[str, Any]:
        cut, controls = self.settings.snippets, self.heldout.texts if self.heldout is not None else ()
        return {
            "heldout": texts_hash(text.text for text in controls),
            "snippets": [cut.tokens, cut.most, cut.pairs],
            "procedure": self.settings.procedure,
        }

    @cached_property
    def _cuts(self) -> tuple[SnippetCut, ...]:
        """The snippets of the texts, and of control documents; ShortTextsError for fewer of these than a test takes,
        and where a model reads none of them whole."""
        corpora, settings = [corpus for corpus, _ in self.named], self.settings
        model = self.generator or self.models.target
        cuts = snippets.cut_alike(corpora, model, settings.snippets, seed=self.seed)
        few = len(cuts) > 1 and cuts[1].documents < FEW_DOCUMENTS
        if few and PRETRACE in (settings.procedure, *settings.also):
            numbers = {"name": corpora[1].name, "controls": cuts[1].documents, "least": FEW_DOCUMENTS}
            raise ShortTextsError(say("designs.short", **numbers))
        whole = [one.whole for cut in cuts for one in cut.snippets[:1]]
        for reader in (self.models.target, *self.models.placebos):
            if all(one.cut for one in reader.encode(whole)):
                raise ShortTextsError(say("asked.cut", model=reader))
        return cuts

    def _judged(self, cut: SnippetCut, design: Design | None) -> int:
        how, number = self.settings.snippets, len(cut.snippets)
        return (replace(how, share=1.0) if design == "controls" else how).judged(number)

    @cached_property
    def plan(self) -> AuditPlan:
        """The design, the outcomes that are possible, and what the audit will cost."""
        chosen = self._chosen
        if chosen.design is None:
            return chosen
        asked, seconds = len(self._asked), self._after + sum(stage.seconds for stage in self.stages)
        return replace(chosen, passes=self._passes * asked, seconds=seconds)

    @cached_property
    def _chosen(self) -> AuditPlan:
        cuts, settings, target = self._cuts, self.settings, self.models.target
        grades = tuple(checks.graded(target, placebo) for placebo in self.models.placebos)
        gaps = checks.gaps_between(cuts, settings, self.seed) if len(cuts) > 1 else ()
        chosen = checks.choose(
            gaps,
            documents=cuts[0].documents,
            controls=cuts[1].documents if len(cuts) > 1 else 0,
            placebos=sum(one.grade != "other" for one in grades),
            generator=self.generator is not None,
            power=bool(settings.power),
            judged=min(min(one.documents, self._judged(one, "placebos")) for one in cuts),
        )
        return replace(
            chosen,
            snippets=len(cuts[0].snippets),
            placebos=grades,
            parameters=float(target.facts.get("parameters") or 0),
            notes=cuts[0].shared,
        )

    @cached_property
    def _used(self) -> tuple[Backend, ...]:
        """The placebos whose tests decide."""
        return checks.taking_part(self._chosen.design, self.models.placebos, self._chosen.placebos)

    @property
    def _asked(self) -> tuple[Backend, ...]:
        """The models that read, the target first."""
        return self.models.target, *(
            self._used if self._chosen.design == "placebos" else self.models.placebos
        )

    @property
    def _passes(self) -> int:
        """The texts that go through each model."""
        both = sum(self._judged(one, self._chosen.design) for one in self._cuts)
        return both if self._chosen.design == "controls" else 2 * both

    @property
    def _after(self) -> float:
        """The seconds between and after the stages."""
        return REPORT + _A_DOCUMENT * sum(one.documents for one in self._cuts)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that lie ahead, in their order; none without a design."""
        return tuple(self._stages()) if self._chosen.design else ()

    def _stages(self) -> Iterator[Stage]:
        cuts, settings, (target, *placebos) = self._cuts, self.settings, self._asked
        direct = self._chosen.design == "controls"
        alone = direct and not self._used  # the target is scored by itself
        slow, tokens = checks.slowness(target), settings.snippets.tokens

        def stage(name: str, action: Action, model: Backend, number: int) -> Stage:
            return Stage(name, slow * guessed_seconds(model, action, number))

        tuned = settings.method != NO_TUNING
        if not direct and self.generator is not None:
            number = sum(self._judged(one, self._chosen.design) for one in cuts)
            learnt = sum(len(one.snippets) for one in cuts) - number
            learnt = min(learnt, settings.snippets.learnt or learnt)
            if tuned:
                learnt *= int(getattr(methods.make(settings.method), "epochs", 1)) * tokens
                yield stage(snippets.TRAINING, "training", self.generator, learnt)
            yield stage(snippets.WRITING, "writing", self.generator, number * tokens)
            first = next(filter(frame.plantable, placebos), None) if tuned else None
            if first is not None and weights_of(self.generator) != weights_of(first):
                yield stage(snippets.TUNING, "training", first, learnt)
        passes, procedures = self._passes * tokens, {settings.procedure, *settings.also}
        if alone:
            yield stage(SCORING, "reading", target, passes)
        for model in placebos if alone else self._asked:
            yield stage(reading(target, model), "reading", model, passes)
        for release in (False, True):
            if procedures & ({RELEASE} if release else procedures - {PRETRACE, RELEASE}):
                forms = ScorePlan.parse(expressions(False, release)).passes
                yield stage(SCORING, "reading", target, forms * passes)
        suspect, controls = len(cuts[0].snippets), len(cuts[-1].snippets) if direct else 0
        planted = sum(len(one.whole) for one in cuts[0].snippets) // 4
        for one in settings.power:
            yield stage(frame.PLANTING, "training", target, int(one.share * one.epochs * planted))
            again = SCORING if alone else reading(target, target)
            # of all passes, those of a copy in which so many documents were planted
            share = (one.share * suspect + controls) / max(1, suspect + controls)
            yield stage(again, "reading", target, int(share * passes))

    def _named_values(self, found: DocumentValues) -> DocumentValues:
        """The values with the owner's names of the documents, in the order of these."""
        sides: list[Any] = []
        both = (found.documents, found.heldout_documents), found.sides, (self.named[0], self.named[-1])
        for documents, values, (_, names) in zip(*both, strict=True):
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
            settings=frame.record({"corpus": self.corpus, "heldout": self.heldout}, {}),
            **said,
        )

    @cached_property
    def _data(self) -> AuditData:
        """What is tested: snippets of the suspect texts and of control documents as they are, or beside continuations
        by a copy of the generator, tuned on a part of the snippets of both sides alike. Snippets whose continuation
        comes out empty are left out and counted."""
        design, settings, seed, used = self._chosen.design, self.settings, self.seed, self._used
        clock = self.watch
        # the literature's procedures also work where our own has no design
        if design == "controls" or (design is None and self.heldout is not None):
            if design == "controls" and not used and Quantity.MOMENTS not in self.models.target.offers:
                raise ModelError(say("asked.moments", model=self.models.target, score=ALONE))
            direct = snippets.compared(self._cuts, settings.snippets, seed=seed)
            return AuditData(direct, self.models, settings, clock, placebos=used, seed=seed)
        if self.generator is None:
            raise ModelError(say("asked.generator"))
        divided = [snippets.divide(one.snippets, settings.snippets, seed=seed) for one in self._cuts]
        tunes, cache = settings.method != NO_TUNING, settings.cache
        learnt = tuple(snippet.whole for _, rest in divided for snippet in rest) if tunes else ()

        def tuned(model: Backend, stage: str) -> Completer:
            with clock.training(stage) as on_step:
                more: dict[str, Any] = {"seed": seed, "cache": cache, "on_step": on_step}
                return snippets.tuned_generator(model, learnt, settings.method, **more)

        writer = tuned(self.generator, snippets.TRAINING)
        asked = [snippet.prefix for judged, _ in divided for snippet in judged]
        with clock.passes(snippets.WRITING) as progress:
            made = snippets.complete(writer, asked, settings.draw(seed), cache=cache, progress=progress)
        written, parts, lost = iter(made), list[tuple[Sample, ...]](), sum(not one for one in made)
        for judged, _ in divided:
            both = [(one, one._replace(text=text)) for one in judged if (text := next(written))]
            parts += [tuple(one for one, _ in both), tuple(other for _, other in both)]
        first = next(filter(frame.plantable, used), None) if learnt else None
        if design in ("differences", "placebos") and first is not None:
            same = self.generator.facts.get("weights") == first.facts.get("weights")
            other = writer if same else tuned(first, snippets.TUNING)
            assert isinstance(other, Completer)
            # Beside control documents any placebo is as valid, and the tuned one sees more (docs/audit.md).
            used = (other.backend,) if design == "differences" else (*used, other.backend)
        leant = [one["value"] for one in checks.leans()] if design == "placebos" else []
        return AuditData(
            tuple(parts if all(parts[2:]) else parts[:2]),
            self.models,
            settings,
            clock,
            paired=True,
            placebos=used,
            margin=max(leant, default=0.0),
            generator=writer,
            training=learnt,
            notes=(f"{lost:,} snippets were given no continuation and were left out.",) if lost else (),
            seed=seed,
        )

    def read(self, model: Backend, stage: str) -> DocumentValues:
        """What is tested of the target; of another model what it gives by itself."""
        if model is not self.models.target:
            return self._data.alone(model)
        _ = self._answer  # what decides is read first: another order moves its last digits
        return self._data.values

    def numbers(self, values: DocumentValues) -> Numbers:
        return values.numbers

    @classmethod
    def tested(cls, numbers: Numbers, *, draws: int, seed: int) -> Tested:
        return judge_values(DocumentValues.of(numbers), seed=seed)

    @classmethod
    def beyond(cls, own: Numbers, other: Numbers, *, draws: int, seed: int) -> ExcessOverSecondModel:
        return beyond(DocumentValues.of(own), DocumentValues.of(other), seed=seed)

    @classmethod
    def of_result(cls, found: Verdict) -> type[Audit] | None:
        own = figures_of(found) if found.figures else None
        if own is None or own.procedure != PRETRACE:
            return None
        return AuditBeside if own.compared_with else cls

    @cached_property
    def _answer(self) -> Answer:
        return self._data.answer(self.settings.procedure)

    def decided(self, found: Tested) -> Tested:
        one = self._answer
        how: dict[str, Any] = {"effect": one.effect, "standardised": one.standardised}
        return replace(found, p=float(one.p), units=one.documents, **how)

    def asked(self, found: Tested) -> Sequence[Backend]:
        without = self._data.design == "placebos" or self.settings.procedure != PRETRACE
        return () if without else self.models.placebos

    def second_answers(self, numbers: Mapping[str, Numbers], found: Tested) -> Sequence[SecondAnswer]:
        procedure, models, level = self.settings.procedure, self.models, self.settings.level
        if procedure == PRETRACE:
            kind = AuditBeside if self._data.placebos else Audit
            return frame.compare_seconds(kind, numbers, found, level, draws=DRAWS, seed=self.seed)
        others = ((one, self._data.with_target(one).answer(procedure)) for one in models.placebos)
        return [SecondAnswer(models.names()[one.name], answer.p) for one, answer in others]

    def second_check(self, answers: Sequence[SecondAnswer], words: TestWording) -> Check | None:
        return None if self._data.design == "placebos" else super().second_check(answers, words)

    @classmethod
    def number_checks(cls, numbers: Numbers, found: Tested, *, level: float, seed: int) -> tuple[Check, ...]:
        values = DocumentValues.of(numbers)
        made = [checks.documents_check(values), checks.reverse_check(values, seed=seed)]
        if not values.paired:
            made.append(checks.spread_check(values, seed=seed))
        assert found.deciding is not None
        if not values.paired and found.p == found.deciding.p:  # no procedure of the literature decides
            rejected = found.p <= level
            left_out = controls_left_out(*values.sides, level, seed=seed) or 0 if rejected else None
            made.append(checks.mixture_check(left_out, values))
        return tuple(made)

    @cached_property
    def _between(self) -> tuple[Gap, ...]:
        """How far true and generated texts of the suspect documents can be told apart without a model."""
        true, own = self._data.pairs[0], self.settings.procedure == PRETRACE
        if true and not (self._data.design == "differences" and own):
            with suppress(TextsError):
                return pair_gap(true, self.settings.learners, seed=self.seed)
        return ()

    @cached_property
    def _placebos(self) -> tuple[Placebo, ...]:
        """The placebos with their grades, those that were compared with how alike they read."""
        data = self._data
        read, found = {one.name: one for one in reversed(data.placebos)}, list[Placebo]()
        for one in self.plan.placebos:
            if model := read.get(one.name):
                one = replace(one, closeness=data.closeness(model), apart=data.apart(model))
                if (one.apart or 0.0) > APART and self._answer.p <= self.settings.level:
                    both = (data.alone(each) for each in (self.models.target, model))
                    one = replace(one, beyond=beyond(*both, seed=self.seed).p)
            found.append(one)
        return tuple(found)

    def checks(self, values: DocumentValues) -> tuple[Check, ...]:
        plan, design, sides = self.plan, self._data.design, self._data.pairs
        between, rejected = self._between, self._answer.p <= self.settings.level
        made = [checks.gap_check(between or plan.gaps, plan.why, "placebos" if between else design)]
        if sides[0]:
            same = [pair.true == pair.generated for side in sides for pair in side]
            made.append(checks.copies_check(float(np.mean(same))))
        made.append(checks.placebo_check(self._placebos, design, self.settings.level))
        if design == "placebos":  # without control documents a rejection is no result
            made.append(word_check("audit.controls", False))
        elif self.settings.procedure == PRETRACE:
            made.append(checks.kinds_check(self._data.sides, seed=self.seed, rejected=rejected))
        if not rejected:
            made.append(power_check(self._powers, self.power(values)))
        return tuple(made)

    def power(self, values: DocumentValues) -> Power | None:
        return deciding_power(self._powers, self._answer.effect)

    def words(self, values: DocumentValues) -> TestWording:
        return words_of(self._data.design, self._answer, self.corpus.name, called(self.models.target.name))

    def shown(self, values: DocumentValues) -> TestDetails:
        settings, data, answer, level = self.settings, self._data, self._answer, self.settings.level
        controls, seed = None if values.paired else values.heldout_values, self.seed
        withstands = sensitivity(values.values, controls, level=level, seed=seed)
        if controls is not None:
            left_out = controls_left_out(values.values, controls, level, seed=seed)
            withstands = replace(withstands, left_out=left_out)
        figures = AuditFigures(
            design=data.design,
            procedure=answer.procedure,
            pieces=answer.pieces,
            facts=answer.facts,
            answers=data.answers if settings.procedure == PRETRACE else (),
            sensitivity=withstands,
            plan=self.plan,
            variants=tuple(data.answer(name) for name in settings.also),
            placebos=self._placebos,
            leans=checks.leans() if data.design == "placebos" else (),
            powers=self._powers,
            gaps=(*self._between, *self.plan.gaps),
        )
        suspect, control = (
            [replace(one, document=owners[one.document]) for one in side]
            for side, (_, owners) in zip(data.pairs, (self.named[0], self.named[-1]), strict=True)
        )
        found = shown_of(figures, self._named_values(values), (suspect, control))
        return replace(found, advice=self.plan.cures)

    @property
    def registered(self) -> Mapping[str, Any]:
        data, generator = self._data, self.generator
        return {
            "procedure": self.settings.procedure,
            "heldout": self.matters["heldout"] if self.heldout is not None else None,
            "placebos": [weights_of(one) for one in data.placebos],
            "snippets": asdict(self.settings.snippets),
            "generator": weights_of(generator) if generator and data.design == "differences" else None,
        }

    @property
    def roles(self) -> Mapping[str, Backend | Completer | None]:
        own = {"target": self.models.target, "reference": self.models.reference}
        return {**own, "generator": self._data.generator, **frame.placebo_roles(self._data.placebos)}

    @property
    def made_how(self) -> Mapping[str, Any]:
        settings, data, cut = self.settings, self._data, self._cuts[0]
        generates = bool(data.pairs[0])
        return {
            "heldout": record_corpus(self.heldout) if self.heldout is not None else None,
            "procedure": settings.procedure,
            "also": list(settings.also),
            "classifiers": list(settings.classifiers),
            "sampling": asdict(settings.sampling) if generates else None,
            "generator_method": settings.method if generates else None,
            "snippets": {
                **asdict(settings.snippets),
                "cut": len(cut.snippets),
                "judged": len(data.parts[0]),
                "generator_learnt_from": len(data.training),
                "too_short": len(cut.short),
                "notes": [*cut.notes, *cut.shared, *data.notes],
            },
            "power": [asdict(one) for one in settings.power],
            "test": {"draws": DRAWS},
        }

    @cached_property
    def _powers(self) -> tuple[Power, ...]:
        """The powers of all exposures that are tried, where nothing was rejected."""
        wanted = self.settings.power and self._answer.p > self.settings.level
        return self._measured(self._data) if wanted else ()

    def _measured(self, data: AuditData) -> tuple[Power, ...]:
        """The power of the test, at this audit's number of documents, for each exposure in turn: a copy of the target
        trains on some documents (`share`) and reads the same pieces. Each planted document gives the shift, how much
        training raised it beyond the held-out ones; the spread between documents is that of the audit, around 0.
        ModelError where the target has no weights here."""
        corpus, noise = self.named[0][0], data.values
        found, owner = [], link_documents(corpus.texts)
        for one in self.settings.power:
            settings = replace(one, seed=self.seed)
            how: dict[str, Any] = {"cache": self.settings.cache, "training": data.watch.training}
            with frame.planted_copy(data.target, corpus, settings, **how) as (copy, read):
                some = data.of_documents({owner[text.document] for text in read})
                before = replace(some, placebos=data.deciding)
                after, untrained = before.with_target(copy).values, before.values
            shift = np.asarray(after.values - untrained.values)
            if not noise.paired:
                shift = shift - (after.heldout_values - untrained.heldout_values).mean()
            controls = None if noise.paired else noise.heldout_values
            more: dict[str, Any] = {"controls": controls, "passages a step": settings.batch}
            planted = frame.PlantedShift(shift - noise.margin, settings)
            found.append(frame.power_of(noise.values, planted, self.settings.level, **more))
        return tuple(found)


class AuditBeside(Audit):
    """An audit whose values are less those of a placebo."""

    compares = False


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
