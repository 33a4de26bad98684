"""The frame of a verdict test: what every test does, done once.

A test is one module. It says what its units are, how a model reads them, what the p-value is, what speaks against it
(its gates), and its sentences. The frame does the rest: it asks the model in question and a second one, takes all draws
from a hash of the texts, measures the power where that is asked for, concludes by the one rule of `verdicts.outcome`,
notes the verdict in this machine's register and builds it. docs/extending.md shows how to write one: `Test` for any
test, `RandomisationTest` where each unit has alternatives, one of which was drawn at random.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from pretrace.backends.huggingface import HuggingFace, open_huggingface
from pretrace.backends.instructed import Completer
from pretrace.backends.naming import called
from pretrace.cache import cache_folder, text_key
from pretrace.corpora.opening import record_corpus
from pretrace.errors import ModelError, TextsError
from pretrace.results.folder import record_software
from pretrace.results.wording import fill, say, sentences_of
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models, check_placebos, weights_of
from pretrace.settings import LARGEST
from pretrace.statistics.documents import mean_interval, standardised
from pretrace.statistics.permutation import (
    PermutationTest,
    PlantedValues,
    randomisation_test,
    realised_effects,
)
from pretrace.tuning.plan import OnStep
from pretrace.tuning.planting import PlantSettings, in_words, plant, split_members
from pretrace.types import (
    Backend,
    Check,
    Corpus,
    Doubles,
    Estimate,
    Null,
    Outcome,
    Power,
    Situation,
    Skipped,
    Table,
    Text,
    Verdict,
)
from pretrace.verdicts import register
from pretrace.verdicts.outcome import (
    SECOND,
    Conclusion,
    ExcessOverSecondModel,
    ObservedFinding,
    SecondAnswer,
    beyond_second_model,
    conclude,
    null_of,
    second_check,
)
from pretrace.verdicts.register import TextsSketch, seed_of
from pretrace.verdicts.settings import POWER_BATCH, TestSettings

V = TypeVar("V")
Rows = tuple[Doubles, ...]
"""The values of every unit's alternatives, [units][alternatives], the realised one first; NaN where there is none."""
Numbers = Mapping[str, Doubles]
"""The numbers that p rests on, a column each."""

VALUES = "values"
"""The name of the table of the numbers that p rests on."""
_FEWEST_PLANTED = 4
"""Planted units below which nothing is said of what training brings."""
ASKED = "reading with the model in question"
"""The stage that comes first."""


@dataclass(frozen=True, slots=True)
class TestWording:
    """The sentences of a test. `of`: what the model would be trained on; `exact`: pretrace made the draw itself."""

    unit: str
    of: str
    question: str
    compared: tuple[str, ...]
    hypothesis: str
    assumption: str
    statistic: str
    effect_unit: str
    trust: tuple[str, ...] = ()
    exact: bool = True
    preferred: str = "what was published"
    """What a trained model prefers, for the check of the second model: "the published order"."""
    does: str = ""
    """What it does, where that is not that it prefers it: "prints these texts"."""
    drawn: str = ""
    """What the distribution of p is of, where that is not the statistic."""
    read: str = ""
    """What a copy is trained on for --power, one of them, where that is not the unit."""
    noun: str = "test"
    """What the reader looks at: an audit, a test."""
    said: Mapping[Outcome, str] = field(default_factory=dict)
    """First sentences of its own for an outcome."""

    @classmethod
    def of_kind(cls, kind: str, **numbers: object) -> TestWording:
        """The sentences that stand under a kind in `words.toml`, filled in."""
        return cls(**fill(sentences_of(kind), **numbers))


@dataclass(frozen=True, slots=True, eq=False)
class Tested:
    """The p-value (None without a test), the test that is `deciding`, the effect; `reasons` come before the
    conclusion's."""

    p: float | None
    units: int
    null: Null | None = None
    effect: Estimate | None = None
    standardised: float | None = None
    reasons: tuple[str, ...] = ()
    deciding: PermutationTest | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TestDetails:
    """What a test shows beside its p-value, its situation, and what is `recorded` to repeat it."""

    figures: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    situation: Situation = field(default_factory=Situation)
    recorded: Mapping[str, Any] = field(default_factory=dict)
    advice: tuple[str, ...] = ()
    """What would help an inconclusive verdict besides."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Test(ABC, Generic[V]):
    """A test of whether a model was trained on texts; V is what a model makes of its units. See the top of this file.
    `score` names what texts are read with, for the record."""

    corpus: Corpus
    models: Models
    settings: TestSettings
    watch: Watch = field(default_factory=Watch)
    score: str = "loss"

    __test__ = False  # no test of pytest
    name: ClassVar[str]
    second: ClassVar[bool] = True
    """Whether nobody is accused unless a second model finds less: so it is unless pretrace itself made the draw."""
    second_if_found: ClassVar[bool] = False
    """Whether the second model is asked only where p is at or below the level: it withholds accusations alone."""
    compares: ClassVar[bool] = True
    """Whether the target must show more than a second model does; else that need only find nothing itself: where
    another check withholds unless the draw was repeated, or where values are less those of a model already."""
    accusing: ClassVar[tuple[str, ...]] = ()
    """Checks that withhold an accusation and no all-clear."""
    sources: ClassVar[Mapping[str, tuple[str, Callable[[str], str]]]] = {}
    """What a result was made of, for `runs verify`: by role where its SHA-256 stands, and what measures a path's."""

    def __post_init__(self) -> None:
        """ModelError where a second or reference model has the weights of the target."""
        target, reference = self.models.target, self.models.reference
        check_placebos(target, self.models.placebos, reference)
        if reference is not None and weights_of(reference) == weights_of(target):
            raise ModelError(say("asked.reference", name=reference.name))

    @classmethod
    def of_result(cls, found: Verdict) -> type[Test[Any]] | None:
        """Choose the class that made a saved result of this name; None where its table does not give its p."""
        return cls

    @abstractmethod
    def read(self, model: Backend, stage: str) -> V:
        """What a model makes of the units; `stage` is shown while it reads."""

    @abstractmethod
    def numbers(self, values: V) -> Numbers:
        """The numbers that p rests on, for the table `VALUES`: `runs verify` makes the test of them again."""

    @classmethod
    @abstractmethod
    def tested(cls, numbers: Numbers, *, draws: int, seed: int) -> Tested:
        """The test of these numbers."""

    @classmethod
    def beyond(cls, own: Numbers, other: Numbers, *, draws: int, seed: int) -> ExcessOverSecondModel:
        """What the target (`own`) shows beyond `second_model_multiple` times what the second model (`other`) shows; for
        every test but those whose draw pretrace made itself."""
        raise NotImplementedError

    def decided(self, found: Tested) -> Tested:
        """What decides: the test of the numbers, unless another procedure was asked for."""
        return found

    def asked(self, found: Tested) -> Sequence[Backend]:
        """The models that read as second ones after what the target `found`."""
        spared = self.second_if_found and (found.p is None or found.p > self.settings.level)
        return () if spared else self.models.placebos

    def second_answers(self, numbers: Mapping[str, Numbers], found: Tested) -> Sequence[SecondAnswer]:
        """What the second models gave, by the `numbers` of each model, those of the target first."""
        how = {"draws": self.settings.draws, "seed": self.seed}
        return compare_seconds(type(self), numbers, found, self.settings.level, **how)

    def second_check(self, answers: Sequence[SecondAnswer], words: TestWording) -> Check | None:
        """Check that these answers leave the target's standing; None for a test that takes no second model."""
        models, level = self.models.placebos, self.settings.level
        if not models and not self.second:
            return None
        role = SECOND if self.second else "placebo"
        does = words.does or f"prefers {words.preferred}"
        if models and not answers:
            check = second_check((), level, does=does, preferred=words.preferred, role=role)
            return replace(check, words=say("outcome.second.spared"), cure="")
        return second_check(answers, level, does=does, preferred=words.preferred, role=role)

    def power(self, values: V) -> Power | None:
        """What training a copy of the target would bring; ModelError for a test that does not measure it."""
        raise ModelError(f"the test {self.name} does not measure its power: omit --power.")

    @abstractmethod
    def words(self, values: V) -> TestWording:
        """The sentences of the report."""

    def planted_shift(
        self, texts: Sequence[str], values: Doubles, again: Callable[[V], Doubles]
    ) -> PlantedShift:
        """Train a copy of the target on a random half of the `texts`, one a unit; `again` makes of what it reads one
        value a unit, `values` [units] are those of the target. ModelError without weights here, TextsError for too few
        units."""
        named = (Text(str(i), text) for i, text in enumerate(texts) if np.isfinite(values[i]))
        corpus, settings = Corpus("planted", tuple(named)), self.settings
        if len(corpus) < 2 * _FEWEST_PLANTED:
            raise TextsError(say("asked.planted", least=2 * _FEWEST_PLANTED, found=len(corpus)))
        planting = PlantSettings(
            epochs=settings.power_epochs,
            batch=POWER_BATCH,
            seed=self.seed % (LARGEST + 1),
            method=settings.power_method,
        )
        how: dict[str, Any] = {"cache": settings.cache, "training": self.watch.training}
        with planted_copy(self.models.target, corpus, planting, **how) as (copy, read):
            after = again(self.read(copy, "reading with the trained copy"))
        units = [int(text.id) for text in read]
        return PlantedShift(np.asarray(after[units] - values[units]), planting, tuple(units))

    @classmethod
    def number_checks(cls, numbers: Numbers, found: Tested, *, level: float, seed: int) -> tuple[Check, ...]:
        """The test's own checks that rest on its numbers alone: `runs verify` makes them again."""
        return ()

    def checks(self, values: V) -> tuple[Check, ...]:
        """The test's other checks."""
        return ()

    def shown(self, values: V) -> TestDetails:
        """Figures, tables, and what was left out."""
        return TestDetails()

    @property
    def trainable(self) -> bool:
        """Whether a copy of the target could be trained, to measure the power."""
        return plantable(self.models.target)

    @property
    def matters(self) -> Mapping[str, Any]:
        """The settings that make this test another one: for the draws and the register."""
        return {"score": self.score}

    @property
    def registered(self) -> Mapping[str, Any]:
        """What makes this test another one in the register: `matters`, and the reference model."""
        reference = self.models.reference
        return {**self.matters, "reference": weights_of(reference) if reference is not None else None}

    @property
    def made_how(self) -> Mapping[str, Any]:
        """How the test is made, for the record."""
        how = {name: value for name, value in asdict(self.settings).items() if value is not None}
        return {"score": self.score, "test": how}

    @property
    def roles(self) -> Mapping[str, Backend | Completer | None]:
        """The models that took part, by their roles in the record."""
        models = self.models
        return {"target": models.target, "reference": models.reference, **placebo_roles(models.placebos)}

    @property
    def texts(self) -> Sequence[str]:
        """The texts that the draws depend on."""
        return [text.text for text in self.corpus.texts]

    @cached_property
    def seed(self) -> int:
        """The seed of all draws; nobody can choose it."""
        return seed_of(self.name, self.texts, **self.matters)


@dataclass(frozen=True, eq=False, kw_only=True)
class RandomisationTest(Test[Rows]):
    """A test of units of which a draw realised one alternative, by the values of all; units that lack one are out."""

    multiple: ClassVar[float | None] = None
    """How many times what the second model shows the target must show; as `second_model_multiple` says unless given."""
    scaled: ClassVar[bool] = True
    """Whether each model's values are divided by their own spread; see `beyond_second_model`."""

    @abstractmethod
    def planted(self) -> Sequence[str]:
        """The text of each unit that a copy is trained on, for --power, [units]."""

    def compared(self, values: Rows) -> Rows:
        """What is compared of the values that were read: they themselves."""
        return values

    @classmethod
    def tested(cls, numbers: Numbers, *, draws: int, seed: int) -> Tested:
        """The exact test over the units that have all their values; see `randomisation_test`."""
        rows = [row for row in _rows(numbers) if np.isfinite(row).all()]
        test, effects = randomisation_test(rows, draws=draws, seed=seed), realised_effects(rows)
        effect = mean_interval(effects) if len(effects) > 1 else None
        return Tested(test.p, len(rows), None, effect, standardised(effects), deciding=test)

    @classmethod
    def beyond(cls, own: Numbers, other: Numbers, *, draws: int, seed: int) -> ExcessOverSecondModel:
        """The same draw, for the target's values less a multiple of the second model's; see `beyond_second_model`."""
        how: dict[str, Any] = {"multiple": cls.multiple, "scaled": cls.scaled}
        return beyond_second_model(_rows(own), _rows(other), draws=draws, seed=seed, **how)

    def numbers(self, values: Rows) -> Numbers:
        """The values of every unit's alternatives, the realised one in the column "0"; none of a unit without all."""
        rows = self.compared(values)
        found = np.full((len(rows), max(map(len, rows), default=0)), np.nan)
        for place, row in enumerate(rows):
            if np.isfinite(row).all():
                found[place, : len(row)] = row
        return {str(place): column for place, column in enumerate(found.T)}

    def effects(self, values: Rows) -> Doubles:
        """Realised value less the mean of the others, [units], NaN where a value is missing."""
        rows = self.compared(values)
        found = np.full(len(rows), np.nan)
        whole = [i for i, row in enumerate(rows) if np.isfinite(row).all()]
        found[whole] = realised_effects([rows[i] for i in whole])
        return found

    def units_table(self, name: str, ids: Sequence[str], values: Rows, **columns: tuple[str, ...]) -> Table:
        """A row a unit: the value of what was realised, the mean of the others, and the effect."""
        numbers = {
            "published": np.array([row[0] for row in values]),
            "others": np.array([row[1:].mean() for row in values]),
            "difference": self.effects(values),
        }
        return Table(name, {"id": tuple(ids), **columns, **numbers})

    def left_out(
        self, ids: Sequence[str], values: Rows, reasons: Mapping[int, str] | None = None
    ) -> tuple[Skipped, ...]:
        """The units without all their values, with the reasons by their places."""
        lacking = np.flatnonzero(~np.isfinite(self.effects(values))).tolist()
        return tuple(Skipped(ids[i], (reasons or {}).get(i, "a value is missing"), 0) for i in lacking)

    def power(self, values: Rows) -> Power:
        """The power of the test of one effect a unit."""
        effects = self.effects(values)
        shift = self.planted_shift(self.planted(), effects, self.effects)
        return power_of(effects, shift, self.settings.level, seed=self.seed)


def _rows(numbers: Numbers) -> Rows:
    """The values by unit, as `RandomisationTest.numbers` has them by alternative."""
    found = np.column_stack(list(numbers.values()))
    return tuple(row[np.isfinite(row)] if np.isfinite(row).any() else row[:1] for row in found)


def verdict(
    test: Test[V], *, statements: Mapping[str, str] | None = None, notes: Sequence[str] = ()
) -> Verdict:
    """The verdict of a test: read, test, check, conclude, note. See the top of this file. Errors as those of the test's
    own functions."""
    models, settings, target = test.models, test.settings, test.models.target
    values, how = test.read(target, ASKED), {"draws": settings.draws, "seed": test.seed}
    own, words, names = test.numbers(values), test.words(values), models.names()
    numbers, found = {names[target.name]: own}, test.decided(test.tested(own, **how))
    if found.deciding is not None:
        null = null_of(found.deciding, settings.level, words.drawn or words.statistic)
        found = replace(found, null=null)
    for one in test.asked(found):
        numbers[names[one.name]] = test.numbers(test.read(one, f"reading with {names[one.name]}"))
    columns = {column: np.concatenate([one[column] for one in numbers.values()]) for column in own}
    read_by = tuple(model for model, one in numbers.items() for _ in next(iter(one.values())))
    second = test.second_check(test.second_answers(numbers, found), words)
    checks = (
        *test.number_checks(own, found, level=settings.level, seed=test.seed),
        *test.checks(values),
        *((second,) if second else ()),
    )
    power = test.power(values) if settings.power and found.p is not None else None
    shown = test.shown(values)
    texts = TextsSketch.of(text.text for text in test.corpus.texts)
    entry = register.RegisterEntry(test.name, texts, weights_of(target), test.registered, target.name)
    return build_verdict(
        entry,
        test.corpus.name,
        words,
        found,
        replace(
            shown,
            figures={**shown.figures, **(second.figures if second else {})},
            tables=(*shown.tables, Table(VALUES, {"model": read_by, **columns})),
            notes=(*test.corpus.notes, *shown.notes, *notes),
        ),
        checks,
        level=settings.level,
        power=power,
        accusing=(*test.accusing, "placebo"),
        second=test.second,
        trainable=test.trainable,
        keep=settings.cache,
        statements=statements,
        settings=record(
            {"corpus": test.corpus},
            test.roles,
            **test.made_how,
            **shown.recorded,
            seed=test.seed,
            rule={name: getattr(words, name) for name in RULE} | {"unit": words.read or words.unit},
            timings=dict(test.watch.seconds),
        ),
    )


RULE = ("of", "noun", "said")
"""What is recorded of the sentences of a test, with its unit, for `runs verify` to conclude again."""
_WORDED = ("assumption", "hypothesis", "statistic", "unit", "question", "compared", "trust", "effect_unit")
_FOUND = ("p", "units", "null", "effect", "standardised")
_SHOWN = ("notes", "figures", "tables", "skipped", "situation")
"""What a verdict has of the sentences of its test, of what was tested, and of what it shows."""


def build_verdict(  # noqa: PLR0913 (a verdict is made of many parts)
    entry: register.RegisterEntry,
    corpus: str,
    words: TestWording,
    found: Tested,
    shown: TestDetails,
    checks: Sequence[Check],
    *,
    level: float,
    power: Power | None,
    settings: Mapping[str, Any],
    keep: bool = True,
    statements: Mapping[str, str] | None = None,
    concluded: Conclusion | None = None,
    **rule: Any,
) -> Verdict:
    """Conclude by the one rule, note the verdict in the register, and build it. `settings` is what it records, `rule`
    what else `outcome.ObservedFinding` takes; what was `concluded` in words of its own has the register among its
    reasons. ValueError where p is no probability."""
    if found.p is not None and not 0 <= found.p <= 1:
        raise ValueError(f"the p-value of a test is {found.p}")
    said = concluded or conclude(
        ObservedFinding(
            model=called(entry.name),
            of=words.of,
            level=level,
            p=found.p,
            effect=found.effect,
            planted=power,
            noun=words.noun,
            unit=words.read or words.unit,
            said=words.said,
            **rule,
        ),
        checks,
    )
    more = shown.advice if said.outcome == "inconclusive" else ()
    earlier: tuple[str, ...] = (say("register.unregistered"),)
    if keep:
        earlier = register.earlier_tests(entry, level)
        register.note(entry, found.p, said.outcome)
    parts = (words, _WORDED), (found, _FOUND), (shown, _SHOWN)
    return Verdict(
        test=entry.test,
        corpus=corpus,
        model=entry.name,
        outcome=said.outcome,
        statement=said.statement,
        level=level,
        exact=words.exact and not rule.get("second", False),
        planted=power,
        checks=tuple(checks),
        reasons=tuple(dict.fromkeys((*found.reasons, *said.reasons, *(earlier if concluded else ())))),
        advice=tuple(dict.fromkeys((*said.advice, *more))),
        register=earlier,
        statements=dict(statements or {}),
        settings=settings,
        **{name: getattr(part, name) for part, names in parts for name in names},
    )


def watched(watch: Watch | None) -> Watch:
    """The watch that is given, or one that shows nothing, which has noted no stage yet."""
    found = watch or Watch()
    found.seconds = {}
    return found


def compare_seconds(
    test: type[Test[Any]], numbers: Mapping[str, Numbers], found: Tested, level: float, **how: int
) -> list[SecondAnswer]:
    """The same test with each model but the first, the one in question, and what is beyond it where the test `found`
    something without a draw; `how` are draws and seed."""
    compares = test.second and test.compares and found.p is not None and found.p <= level
    answers, own = [], next(iter(numbers.values()))
    for name, other in list(numbers.items())[1:]:
        p = test.tested(other, **how).p
        if p is None:
            raise ModelError(f"the second model {name} reads none of the units: name another one.")
        rest = test.beyond(own, other, **how) if compares else None
        answers.append(SecondAnswer(name, p, rest))
    return answers


def placebo_roles(placebos: Sequence[Backend]) -> dict[str, Backend]:
    """Name the second models in a record."""
    return {"placebo" if i == 1 else f"placebo {i}": one for i, one in enumerate(placebos, 1)}


def record(
    corpora: Mapping[str, Corpus | None], models: Mapping[str, Backend | Completer | None], **more: Any
) -> dict[str, Any]:
    """Record the texts by what they are ("corpus" for the suspect ones), facts of models by role, versions, time."""
    return {
        **{name: record_corpus(one) if one is not None else None for name, one in corpora.items()},
        "models": {role: dict(one.facts) for role, one in models.items() if one is not None},
        **more,
        "software": record_software(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


SIZES = (10, 20, 50, 100, 200, 500, 1000)
"""The numbers of units for which the power is drawn."""
PLANTING = "planting texts in a copy"
"""The name of the stage."""


@dataclass(frozen=True, slots=True, eq=False)
class PlantedShift:
    """How much training, done as `how` says, moved the value of each planted unit, [planted]; `units` are their places
    where each is one text."""

    moved: Doubles
    how: PlantSettings
    units: tuple[int, ...] = ()


def power_of(
    noise: Doubles,
    planted: PlantedShift,
    level: float,
    *,
    controls: Doubles | None = None,
    seed: int = 0,
    **facts: object,
) -> Power:
    """The power of a test of a value a unit, `noise` [units], NaN for none, against 0 or `controls`, where training
    adds what it added to planted units."""
    noise, shift, how = noise[np.isfinite(noise)], planted.moved[np.isfinite(planted.moved)], planted.how
    made = PlantedValues.of(noise, shift, controls, level=level, seed=seed)
    return Power(
        probability=made.power(len(noise)),
        needed=made.needed(),
        planted=len(shift),
        epochs=how.epochs,
        effect=mean_interval(shift),
        curve=made.curve(SIZES),
        facts={**trained(how, len(noise)), **facts},
    )


def trained(how: PlantSettings, units: int) -> dict[str, object]:
    """How the copy was trained on some of so many units, for the sentence on what an all-clear excludes."""
    rate = how.plan(existing=True).learning_rate
    return {"how": in_words(how.method, rate), "learning_rate": rate, "units": units}


def plantable(target: Backend) -> bool:
    """Whether a copy of the target can be trained."""
    return isinstance(target, HuggingFace)


def check_plantable(target: Backend) -> None:
    """Raise ModelError where no copy of the target can be trained."""
    if not plantable(target):
        raise ModelError(say("asked.weights", name=target.name))


@contextmanager
def planted_copy(
    target: Backend,
    corpus: Corpus,
    settings: PlantSettings,
    *,
    cache: bool,
    training: Callable[[str], AbstractContextManager[OnStep | None]],
) -> Iterator[tuple[Backend, tuple[Text, ...]]]:
    """A copy of the target, opened as the target is, and the texts that it was trained on, whole documents drawn at
    random (`split_members`). Its folder lies in the cache while it is needed, so that a killed training goes on, and is
    deleted afterwards. ModelError where the target has no weights here. `training` watches the stage of that name."""
    check_plantable(target)
    assert isinstance(target, HuggingFace)
    with ExitStack() as passing:
        if cache:
            digest = hashlib.sha256(f"{target.fingerprint} {settings!r}".encode())
            for text in corpus.texts:
                digest.update(text_key(text.text) + text.document.encode("utf-8", "surrogatepass"))
            folder = cache_folder() / "planted" / digest.hexdigest()[:32]
        else:
            folder = Path(passing.enter_context(tempfile.TemporaryDirectory(prefix="pretrace-"))) / "planted"
        if not (folder / "card.json").is_file():
            with training(PLANTING) as on_step:
                start = (target.model, target.tokenizer)
                plant(corpus, settings=settings, folder=folder, start=start, on_step=on_step)
        dtype = str(target.facts["dtype"])
        copy = open_huggingface(str(folder), replace(target.settings, revision=None, dtype=dtype))
        labelled = split_members(corpus, settings.share, settings.seed)
        yield copy, tuple(text for text in labelled.texts if text.member)
    if cache:
        shutil.rmtree(folder, ignore_errors=True)  # half a gigabyte and more; its traces are kept
