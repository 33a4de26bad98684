"""The data of an audit: its settings, its samples, its models, what the models give for the samples, each read once,
and the test on one value a document: samples of one document are not independent, documents are.

The values depend on the design. "controls": how much likelier the target finds a document than the placebo does, in
suspect and in control documents. "differences": the same of what stands there, less the same of what a generator wrote
in its place, in suspect and in control documents. "placebos": that difference in suspect documents alone, less a
margin, since a target that only knows the domain better than the placebo leans towards true text.

The verdict of an audit has tables "documents" and "values" with a row a document, and "pairs" with a row a place in a
document, if texts were generated: what stands there, and what was written instead. All else are figures,
`AuditFigures`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from pretrace.backends.instructed import Completer
from pretrace.baselines import TextClassifier, classifiers
from pretrace.cache import Draw
from pretrace.errors import ModelError, PretraceError, TextsError
from pretrace.registry import require
from pretrace.results.folder import from_plain, to_plain
from pretrace.results.wording import say
from pretrace.scoring.evidence import Options, Progress, Traces, trace
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.settings import check_ranges, is_kept, option
from pretrace.statistics.documents import by_document, difference_interval, mean_interval, standardised
from pretrace.statistics.permutation import PermutationTest, Sensitivity, sign_flip_test, two_sample_test
from pretrace.tuning.plan import methods
from pretrace.tuning.planting import FULL_RATE, LORA_RATE, PlantMethod, PlantSettings
from pretrace.types import (
    GENERATING,
    Backend,
    Bools,
    Corpus,
    Doubles,
    Gap,
    Outcome,
    Pair,
    Power,
    Quantity,
    Sampling,
    Situation,
    Table,
    Text,
    Verdict,
)
from pretrace.verdicts.audit.procedures import Answer, Features, original, outlier_share, paper, release
from pretrace.verdicts.audit.snippets import SCORING, Parts, Sample, SnippetSettings, reading
from pretrace.verdicts.frame import Numbers, TestDetails, Tested, TestWording
from pretrace.verdicts.outcome import MOST_DOSE, ExcessOverSecondModel, second_model_multiple
from pretrace.verdicts.settings import POWER_BATCH

PRETRACE, PAPER, RELEASE, ORIGINAL = "pretrace", "paper", "release", "original"
PROCEDURES = {
    PRETRACE: "one value a document and one permutation test: against control documents, or against placebos (the "
    "default)",
    PAPER: "post-hoc dataset inference as its paper says: 10 seeds, t-test of two differences, 1 - Π(1 - p)",
    RELEASE: "post-hoc dataset inference as its authors' published code does it, where that differs",
    ORIGINAL: "dataset inference without calibration: linear regression, t-test (Maini et al. 2024)",
}

DRAWS = 10_000
"""Draws of the null distribution."""
ALONE = "min_k_plus_plus(k=0.2)"
"""The score of a document under the target alone: of five the one with the most power (docs/audit.md)."""

_TUNED = (
    "lora(rank=32, epochs={}, learning_rate={}, schedule='linear', warmup=0.03, weight_decay=0.0, on='all')"
)
GENERATOR = _TUNED.format(6, 0.0005)
"""How the generator is tuned unless told otherwise."""
PAPER_GENERATOR = _TUNED.format(100, 0.0002)
"""The paper's setting (appendix D.1), for an 8-billion-parameter model on graphics processors."""
LIGHT, HEAVY = 5e-5, 5e-4
"""The learning rates that --power tries, each text read once: as late in a training, and as in its midst."""


def exposures(method: PlantMethod = "full") -> tuple[PlantSettings, ...]:
    """The exposures that --power tries, the lightest first: half of the documents read once, at either rate."""
    scale = LORA_RATE / FULL_RATE if method == "lora" else 1.0
    return tuple(
        PlantSettings(epochs=1, batch=POWER_BATCH, method=method, learning_rate=rate * scale)
        for rate in (LIGHT, HEAVY)
    )


AUDIT, BESIDE = "Audit", "Models beside the target, and controls"
"""Groups of options."""


def _names(written: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in written.split(",") if name.strip())


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """How an audit is made; ExpressionError for a value out of its range or a name that does not exist.

    `sampling` is how the generator writes, and the first of the `classifiers` calibrates. `power` holds the exposures
    that are tried, the lightest first (see `exposures`). `statements` are what the one who asks says, for the report:
    `requested_by`, `placebo` (how it is known that it never saw the texts), `controls` (where they come from).
    """

    procedure: str = option(
        PRETRACE,
        "The procedure that decides: pretrace, paper, release or original. Choose it before you see a result.",
        panel=AUDIT,
        essential=True,
    )
    also: tuple[str, ...] = option(
        (), "Further procedures to show, comma-separated; they decide nothing.", panel=AUDIT, read=_names
    )
    level: float = option(0.05, "The level of the test.", panel=AUDIT, essential=True)
    snippets: SnippetSettings = field(default_factory=SnippetSettings)
    sampling: Sampling = field(default_factory=Sampling)
    method: str = GENERATING.key(
        GENERATOR,
        'How the generator is tuned, as for `tune`, "paper" for the paper\'s 100 epochs, or "none".',
        read=lambda written: {"lora": GENERATOR, "paper": PAPER_GENERATOR}.get(written, written),
        written="lora",
    )
    classifiers: tuple[str, ...] = option(
        ("words", "form"),
        "Text-only classifiers, comma-separated: words, form, gpt2, gpt2(preset='paper'), embeddings, "
        "pretrained.",
        panel=BESIDE,
        read=classifiers.split,
        written="words,form",
    )
    power: tuple[PlantSettings, ...] = ()
    statements: Mapping[str, str] = field(default_factory=dict)
    cache: bool = field(default_factory=is_kept)
    draws: ClassVar[int] = DRAWS
    learners: Mapping[str, TextClassifier] = field(init=False, repr=False, compare=False)
    """The classifiers themselves, by name."""

    def draw(self, seed: int) -> Draw:
        """How the generator continues a prefix: as far as the true suffix goes."""
        tokens = self.snippets.tokens
        return Draw(tokens - tokens // 2, self.sampling, seed)

    def __post_init__(self) -> None:
        for name in (self.procedure, *self.also):
            known = ", ".join(PROCEDURES)
            require(name in PROCEDURES, f"no procedure is called {name!r}; there are {known}.")
        decides = self.procedure == PRETRACE
        require(not (decides and PRETRACE in self.also), say("asked.also"))
        require(decides or not self.power, say("asked.power", procedure=self.procedure))
        require(0 < self.level < 0.5, f"the level of a test is between 0 and 0.5, found {self.level}.")
        check_ranges(self)
        _ = self.draw(0)  # whose own checks are of the sampling
        if self.method not in ("none", GENERATOR):
            methods.make(self.method)
        require(len(self.classifiers) > 0, "an audit needs a classifier of texts, such as words.")
        object.__setattr__(self, "learners", classifiers.several(self.classifiers))


STATISTIC = "mean over its standard error, skewness taken out"
PAIRED = "sign-flip permutation test of document means, less a margin of {margin:.3g}"
UNPAIRED = "two-sample permutation test of document means"

Design = Literal["controls", "differences", "placebos"]
"""What the suspect texts are compared with. "controls": control documents of the same kind, known to be unseen.
"differences": what a generator wrote in their place, and the same difference in control documents. "placebos":
what a generator wrote, and nothing else; other models are all that says how large a difference is to be expected."""


@dataclass(frozen=True, slots=True)
class Placebo:
    """The model that the target is compared with. `grade`: "own" (the target before it could have seen the texts: its
    base or an earlier checkpoint), "sibling" (same architecture and tokens, other weights) or "other" (another family).
    `closeness` is the correlation of both models' mean log-probabilities on text that neither was trained on, None
    where it took no part; `apart` is by which share the mean loss of control documents is larger for the one than for
    the other of both models, None without these, and `beyond`, where that is more than `APART` and the test rejects,
    the p of what the target shows beyond a multiple of it.
    """

    name: str
    grade: Literal["own", "sibling", "other"]
    closeness: float | None
    words: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    apart: float | None = None
    beyond: float | None = None


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What an audit can answer, known before a model is asked for the texts and before anything is trained.

    `design` is None where no verdict is possible; `why` says in a sentence or two how it was chosen. `outcomes` are
    those that are possible. `cures` say what would make a verdict possible or stronger. `documents` and `snippets`
    are of the suspect texts, `control_documents` of the control documents. `passes` counts texts that go
    through a model; `seconds` is a guess of the time (None without one). `notes` tell what was left out on both sides.
    `parameters` are those of the target, 0 where nobody knows them.
    """

    design: Design | None
    why: str
    outcomes: tuple[Outcome, ...]
    documents: int
    snippets: int
    control_documents: int = 0
    placebos: tuple[Placebo, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cures: tuple[str, ...] = ()
    passes: int = 0
    seconds: float | None = None
    notes: tuple[str, ...] = ()
    parameters: float = 0.0

    @property
    def situation(self) -> Situation:
        """What of the case makes a reading likely to be found."""
        return Situation(documents=self.documents, unseen=self.control_documents, parameters=self.parameters)


class DesignError(PretraceError):
    """No audit of these texts and models could come to a verdict; the `plan` says why, and what would change it.
    `verdict` says the same as a result that can be saved, with its page."""

    def __init__(self, plan: AuditPlan, verdict: Any = None) -> None:
        self.plan, self.verdict = plan, verdict
        super().__init__(" ".join((f"this audit could not have answered. {plan.why}", *plan.cures)))


@dataclass(frozen=True, slots=True)
class AuditFigures:
    """What an audit found besides what every verdict holds; the figures of its `Verdict`, by these names.

    `design` says what was compared. `procedure` is the test that decides, made on `pieces` of the documents; `facts`
    are its numbers, `placebo` among them: the model of the deciding test, which has the largest p of all. `answers`
    holds one test a placebo. `variants` are further procedures that were asked for: they are shown and decide nothing.
    `leans` are how far true text lay above generated text (`value`, with `domain`, `model`, `epochs`) on innocent
    models, for a design without control documents. `powers` are those of all exposures that were tried, the lightest
    first; the one that decides is the verdict's `planted`.
    """

    design: Design
    procedure: str
    pieces: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()
    sensitivity: Sensitivity | None = None
    plan: AuditPlan | None = None
    variants: tuple[Answer, ...] = ()
    placebos: tuple[Placebo, ...] = ()
    leans: tuple[Mapping[str, Any], ...] = ()
    powers: tuple[Power, ...] = ()
    gaps: tuple[Gap, ...] = ()

    @property
    def compared_with(self) -> str | None:
        """The name of the model of the deciding test, which may be one that the audit tuned itself; None without."""
        found = self.facts.get("placebo")
        return found if isinstance(found, str) else None

    @property
    def placebo(self) -> Placebo | None:
        """The placebo of the deciding test; None where the audit tuned it itself, or where the target was looked at
        alone."""
        return next((one for one in self.placebos if one.name == self.compared_with), None)

    @property
    def margin(self) -> float:
        """What was taken off the values, since innocent models lean towards true text as well; 0 where nothing was."""
        found = self.facts.get("margin")
        return float(found) if isinstance(found, int | float) and self.design == "placebos" else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class DocumentValues:
    """The value of each suspect and control document, in a `unit`; a `margin` was taken off without controls."""

    documents: tuple[str, ...]
    values: Doubles
    heldout_documents: tuple[str, ...] = ()
    heldout_values: Doubles = field(default_factory=lambda: np.zeros(0))
    margin: float = 0.0
    unit: str = ""

    @classmethod
    def of(cls, numbers: Numbers) -> DocumentValues:
        """Those that a result holds, without the documents' names."""
        control, values = numbers["control"] == 1, numbers["value"]
        suspects, controls = (tuple(map(str, np.flatnonzero(side))) for side in (~control, control))
        return cls(suspects, values[~control], controls, values[control], float(numbers["margin"][0]))

    @property
    def numbers(self) -> Numbers:
        """The same as a result holds them, suspect documents first."""
        values = np.concatenate(self.sides)
        control = np.arange(len(values)) >= len(self.values)
        return {
            "control": control.astype(float),
            "value": values,
            "margin": np.full(len(values), self.margin),
        }

    @property
    def paired(self) -> bool:
        """Whether a value is a difference that is compared with 0, since there are no control documents."""
        return not self.heldout_documents

    @property
    def sides(self) -> tuple[Doubles, Doubles]:
        """The values of suspect and of control documents."""
        return self.values, self.heldout_values

    @property
    def within(self) -> Doubles:
        """All values less the mean of their side."""
        return np.concatenate([side - side.mean() for side in self.sides if len(side)])


def permuted(found: DocumentValues, *, seed: int = 0) -> PermutationTest:
    """The one-sided test that the suspect documents' values lie above 0, or above those of control documents."""
    if found.paired:
        return sign_flip_test(found.values, flips=DRAWS, seed=seed)
    return two_sample_test(found.values, found.heldout_values, permutations=DRAWS, seed=seed)


def judge_values(found: DocumentValues, *, seed: int) -> Tested:
    """The default procedure's test of these values, with the effect."""
    test, heldout = permuted(found, seed=seed), None if found.paired else found.heldout_values
    effect = mean_interval(found.values) if heldout is None else difference_interval(found.values, heldout)
    spread = standardised(found.values, heldout)
    return Tested(test.p, len(found.values), effect=effect, standardised=spread, deciding=test)


def answer(found: DocumentValues, *, pieces: int, seed: int, facts: dict[str, object]) -> Answer:
    """The default procedure's answer on these values, of so many pieces of suspect text."""
    made = judge_values(found, seed=seed)
    own = {"permutations": DRAWS, "margin": found.margin, "control_documents": len(found.heldout_documents)}
    return Answer(
        procedure="pretrace",
        p=made.p or 0.0,
        statistic=PAIRED.format(margin=found.margin) if found.paired else UNPAIRED,
        documents=made.units,
        pieces=pieces,
        effect=made.effect,
        unit=found.unit,
        standardised=made.standardised,
        facts={**own, **facts},
    )


DOCUMENTS, PAIRS = "documents", "pairs"
"""The names of the tables."""
SUSPECT, CONTROL = "suspect", "control"
_PAIR = ("id", "document", "prefix", "true", "generated")


def words_of(design: Design, answer: Answer, corpus: str, model: str) -> TestWording:
    """The sentences of an audit; `model` is its name in a sentence."""
    named = {"corpus": corpus, "model": model}
    is_alone = design == "placebos" and answer.facts.get("placebo") is None
    return TestWording.of_kind(
        "audit.said",
        **named,
        compared=say(f"audit.compared.{design}", **named),
        hypothesis=say(f"audit.hypothesis.{'alone' if is_alone else design}", **named),
        assumption=say(f"audit.assumed.{'shared' if design == 'placebos' else 'unseen'}", model=model),
        statistic=answer.statistic,
        drawn=STATISTIC,
        effect_unit=answer.unit,
        does=say(f"audit.does.{design}"),
    )


def shown_of(
    figures: AuditFigures,
    found: DocumentValues,
    pairs: tuple[Sequence[Pair], Sequence[Pair]] = ((), ()),
) -> TestDetails:
    """Show the values of both sides, and pairs."""
    plan, suspect, control = figures.plan, found.documents, found.heldout_documents
    values = np.concatenate(found.sides).astype(np.float64)

    def both(first: Sequence[Any], second: Sequence[Any]) -> tuple[str, ...]:
        return (SUSPECT,) * len(first) + (CONTROL,) * len(second)

    names = {"document": (*suspect, *control), "side": both(suspect, control)}
    tables = [Table(DOCUMENTS, {**names, "value": values})]
    if any(pairs):
        cells = {name: tuple(getattr(one, name) for one in (*pairs[0], *pairs[1])) for name in _PAIR}
        tables.append(Table(PAIRS, {"side": both(*pairs), **cells}))
    return TestDetails(
        figures=to_plain(figures, "figures"),
        tables=tuple(tables),
        situation=Situation(
            documents=plan.documents if plan else len(suspect),
            unseen=plan.control_documents if plan else len(control),
            checkpoint=any(one.grade == "own" for one in figures.placebos),
        ),
    )


def figures_of(found: Verdict) -> AuditFigures:
    """What an audit found besides what every verdict holds; ValueError, TypeError or KeyError for another verdict."""
    return from_plain(AuditFigures, found.figures, "figures")


def documents_of(found: Verdict, side: str) -> tuple[tuple[str, ...], Doubles]:
    """The documents of a side, and the value of each."""
    table = found.table(DOCUMENTS)
    rows = [row for row, name in enumerate(table["side"]) if name == side]
    return tuple(table["document"][row] for row in rows), np.asarray(table["value"][rows])


def pairs_of(found: Verdict, side: str) -> tuple[Pair, ...]:
    """What was compared in the documents of a side; nothing where no text was generated."""
    table = next((one for one in found.tables if one.name == PAIRS), None)
    if table is None:
        return ()
    rows = zip(table["side"], *(table[name] for name in _PAIR), strict=True)
    return tuple(Pair(*cells) for name, *cells in rows if name == side)


SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""The shares of tokens at which the release takes min-k and max-k."""
_LIKELIHOOD = ("ppl", *(f"min_k(k={k})" for k in SHARES), *(f"max_k(k={k})" for k in SHARES), "zlib")
_DISTURBANCES = {"typos": 0.1, "deletion": 0.25, "case": 0.25, "whitespace": 0.25, "underscore": 0.25}


def expressions(reference: bool, release: bool = False) -> tuple[str, ...]:
    """List the scores of every sample, the feature families of the releases (Maini et al. 2024; post-hoc DI section 2)
    but for synonyms, which take a dictionary of English; `release` asks for ratios of perplexities, as the releases
    take them, not of log-perplexities."""
    how = ", perplexity=True" * release
    own = (f"perturbed(kind='{kind}', share={share}{how})" for kind, share in _DISTURBANCES.items())
    last = ("ref(perplexity=True)" if release else "ref",) if reference else ()
    return (*_LIKELIHOOD, *own, *last)


@dataclass(frozen=True, slots=True, eq=False)
class Logprobs:
    """Log-probabilities of n samples: the tokens that count of each, in nats, and its UTF-8 `bytes` [n]."""

    logp: tuple[Doubles, ...]
    bytes: npt.NDArray[np.int64]

    @property
    def total(self) -> Doubles:
        """Log-probability of each sample, in nats, [n]."""
        return np.array([one.sum() for one in self.logp])

    @property
    def per_token(self) -> Doubles:
        """Mean log-probability a token, in nats, [n]."""
        return np.asarray(self.total / np.maximum([len(one) for one in self.logp], 1))

    @property
    def per_byte(self) -> Doubles:
        """Log-probability a byte, in nats, [n]."""
        return np.asarray(self.total / np.maximum(self.bytes, 1))


def logprobs(
    backend: Backend, samples: Sequence[Sample], *, cache: bool = True, progress: Progress | None = None
) -> Logprobs:
    """The log-probabilities of each sample given its prefix; ModelError where the model's length limit cuts one. Prefix
    and text are read as one: a token that reaches over the seam belongs to the text, whoever wrote it."""
    texts = [sample.whole for sample in samples]
    if progress:
        progress.begin(len(texts))
    with Traces(backend.fingerprint if cache else None) as store:
        traces = trace(backend, texts, Quantity.LOGP, store=store, progress=progress)
    logp = []
    for sample, text, one in zip(samples, texts, traces, strict=True):
        if one.cut:
            raise ModelError(say("asked.cut", model=backend))
        ends = backend.spans(text)[:, 1]
        counts = ends[len(ends) - len(one) :] > len(sample.prefix)
        logp.append(one.logp[counts].astype(np.float64))
    return Logprobs(tuple(logp), np.array([len(one.text.encode("utf-8", "replace")) for one in samples]))


def logprob_gains(pairs: Sequence[tuple[Logprobs, Logprobs]], *, by_byte: bool = False) -> list[Doubles]:
    """How much likelier the target finds each sample than the placebo does, for `pairs` of what both give for a part,
    [samples] each: the mean over the tokens of gain / scale, cut to [-1, 1], where the scale is the median size of all
    tokens' gains. Learning the habits of a domain gains much on a few tokens, learning a text a little on many. With
    `by_byte` a whole sample stands for a token."""
    gains = []
    for target, placebo in pairs:
        mine, theirs = (list(one.per_byte[:, None]) if by_byte else one.logp for one in (target, placebo))
        gains.append([a - b for a, b in zip(mine, theirs, strict=True)])
    every = [gain for part in gains for gain in part]
    scale = float(np.median(np.abs(np.concatenate(every)))) if every else 0.0
    if scale == 0.0:
        return [np.zeros(len(part)) for part in gains]
    return [
        np.array([np.clip(one / scale, -1, 1).mean() if len(one) else 0.0 for one in part]) for part in gains
    ]


def features(
    parts: Parts,
    models: Models,
    expressions: Sequence[str],
    *,
    paired: bool,
    cache: bool = True,
    progress: Progress | None = None,
) -> Features:
    """The membership scores of two parts under `models`, each sample without what stands before it. Those that give
    nothing to predict, or that a score means nothing for, are left out, pairs whole; TextsError where none is left."""
    suspect, heldout = parts
    every = (*suspect, *heldout)
    numbered = tuple(Text(str(i), one.text) for i, one in enumerate(every))
    plan = ScorePlan.parse(expressions)
    plan.check_texts(Corpus("the pieces of the audit", numbered))
    how = Options(cache=cache, shuffles=0, progress=progress or Progress())
    scores = plan.fit(models, how)
    ready = list(scores.ready.values())
    with models.reader(scores.needs, how) as reader:
        reader.announce(len(numbered))
        read = reader.read(numbered)
        matrix = np.array([[np.nan if one.empty else score(one) for score in ready] for one in read])
    n = len(suspect)
    known: Bools = np.asarray(np.isfinite(matrix).all(axis=1))
    if paired:
        known = np.tile(known[:n] & known[n:], 2)
    if not known[:n].any() or not known[n:].any():
        raise TextsError("no piece of the texts gives the model anything to predict: take longer snippets.")
    sides: dict[str, Any] = {}
    for name, rows in (("suspect", slice(n)), ("heldout", slice(n, None))):
        kept = [sample for sample, good in zip(every[rows], known[rows], strict=True) if good]
        sides |= {name: matrix[rows][known[rows]], f"{name}_texts": tuple(one.text for one in kept)}
        sides[f"{name}_documents"] = tuple(one.document for one in kept)
    return Features(names=tuple(expressions), paired=paired, **sides)


def beyond(found: DocumentValues, other: DocumentValues, *, seed: int) -> ExcessOverSecondModel:
    """Test what the target (`found`) shows beyond a multiple of a second model, both over their spread between
    documents. Were the texts to raise the target at most that many times as far, this rejects no more often than the
    level says. A second model whose values hardly go with the target's cannot speak for it."""
    spread = [float(one.within.std()) for one in (found, other)]  # between documents of one side
    if not min(spread):
        return ExcessOverSecondModel(1.0, float("inf"))
    alike = np.corrcoef(found.within, other.within)[0, 1]
    # Unlike random draws, control documents may differ from the suspect ones: typing errors alone moved a target more
    # than three times as far as a second model that reads otherwise (evidence/audit_noise.csv).
    if not alike * MOST_DOSE >= 1:
        return ExcessOverSecondModel(1.0, float("inf"))
    many = second_model_multiple(float(alike))
    left = [
        mine / spread[0] - many * theirs / spread[1]
        for mine, theirs in zip(found.sides, other.sides, strict=True)
    ]
    return ExcessOverSecondModel(two_sample_test(*left, seed=seed).p, many)


UNIT = "of a typical token's lead"
APART = 0.08
"""The share by which a placebo's loss of control documents may differ from the target's before the target must show
more than a multiple of it: noise in these alone hits the better reader harder (evidence/innocents_trial.csv)."""


@dataclass(eq=False)
class AuditData:
    """What an audit tests, computed when first wanted, from the `parts`: where they are `paired`, each second one is
    what the `generator` wrote after its `training` texts, with `notes`. `placebos` never saw the texts; `margin` is
    what one may show without controls. `seed` follows from the texts."""

    parts: Parts
    models: Models
    settings: AuditSettings
    watch: Watch = field(default_factory=Watch)
    paired: bool = False
    placebos: tuple[Backend, ...] = ()
    margin: float = 0.0
    seed: int = 0
    generator: Completer | None = None
    training: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    _logprobs: dict[int, tuple[Logprobs, ...]] = field(default_factory=dict)
    _features: dict[tuple[str, ...], Features] = field(default_factory=dict)

    @property
    def design(self) -> Design:
        """What the suspect texts are compared with."""
        if not self.paired:
            return "controls"
        return "placebos" if len(self.parts) == 2 else "differences"

    @property
    def sides(self) -> Parts:
        """The samples of suspect and of control documents as they are."""
        return self.parts[::2] if self.paired else self.parts

    @property
    def pairs(self) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
        """What stands in suspect and in control documents, with what was written in its place; nothing without."""
        both = zip(self.parts[::2], self.parts[1::2], strict=True) if self.paired else ()
        made = [
            tuple(Pair(a.id, a.document, a.prefix, a.text, b.text) for a, b in zip(*one, strict=True))
            for one in both
        ]
        suspect, controls, *_ = (*made, (), ())
        return suspect, controls

    @property
    def target(self) -> Backend:
        return self.models.target

    def logprobs(self, model: Backend) -> tuple[Logprobs, ...]:
        """What a model gives for each of the parts; two are read in one go."""
        if id(model) not in self._logprobs:
            cache, found = self.settings.cache, list[Logprobs]()
            with self.watch.passes(reading(self.target, model)) as progress:
                for first, second in zip(self.parts[::2], self.parts[1::2], strict=True):
                    both = logprobs(model, (*first, *second), cache=cache, progress=progress)
                    for part in (slice(len(first)), slice(len(first), None)):
                        found.append(Logprobs(both.logp[part], both.bytes[part]))
            self._logprobs[id(model)] = tuple(found)
        return self._logprobs[id(model)]

    def compared_with(self, placebo: Backend | None) -> DocumentValues:
        """One value a document: the target compared with this placebo, or the target's own score `ALONE`."""
        if placebo is None:
            found, unit = self._score((ALONE,)), f"in units of the score {ALONE}"
            mine = by_document(found.suspect[:, 0], found.suspect_documents)
            theirs = by_document(found.heldout[:, 0], found.heldout_documents)
            return DocumentValues(*mine, *theirs, unit=unit)
        by_byte = placebo.tokenizer_hash != self.target.tokenizer_hash
        both = list(zip(self.logprobs(self.target), self.logprobs(placebo), strict=True))
        return self._values(logprob_gains(both, by_byte=by_byte), UNIT)

    def _values(self, numbers: Sequence[Doubles], unit: str) -> DocumentValues:
        """The values by document, from one number for each sample of all parts."""
        if self.paired:
            numbers = [true - written for true, written in zip(numbers[::2], numbers[1::2], strict=True)]
        sides = [
            by_document(values - self.margin, [sample.document for sample in side])
            for values, side in zip(numbers, self.sides, strict=True)
        ]
        controls = sides[1] if len(sides) > 1 else ((), np.zeros(0))
        return DocumentValues(*sides[0], *controls, margin=self.margin, unit=unit)

    def closeness(self, placebo: Backend) -> float:
        """The correlation of both models' mean log-probabilities on text that neither was trained on."""
        kind = "per_byte" if placebo.tokenizer_hash != self.target.tokenizer_hash else "per_token"
        one, other = (getattr(self.logprobs(model)[1], kind) for model in (self.target, placebo))
        if len(one) < 2 or not one.std() or not other.std():
            return 0.0
        return float(np.corrcoef(one, other)[0, 1])

    def apart(self, placebo: Backend) -> float | None:
        """By which share the mean loss a token of control documents is larger for one of both models than for the
        other; None without control documents."""
        if len(self.sides) < 2:
            return None
        controls = 2 if self.paired else 1
        both = (-float(self.logprobs(one)[controls].per_token.mean()) for one in (self.target, placebo))
        less, more = sorted(both)
        return more / less - 1 if less else 0.0

    def alone(self, model: Backend) -> DocumentValues:
        """A model's mean log-probability a token in suspect and in control documents, in nats."""
        return self._values([one.per_token for one in self.logprobs(model)], "nats a token")

    def _score(self, names: tuple[str, ...]) -> Features:
        if names not in self._features:
            with self.watch.passes(SCORING) as progress:
                how: dict[str, Any] = {"paired": self.paired, "cache": self.settings.cache}
                self._features[names] = features(self.parts[:2], self.models, names, progress=progress, **how)
        return self._features[names]

    def answer(self, procedure: str) -> Answer:
        """What a procedure answers; of the default, the test that decides. The release has features of its own."""
        if procedure == PRETRACE:
            return max(self.answers, key=lambda one: one.p)
        reference, seed = self.models.reference is not None, self.seed
        found = self._score(expressions(reference, release=procedure == RELEASE))
        if procedure == ORIGINAL:
            return original(found, seed=seed)
        # by the size of the target the paper chooses how many outliers to replace
        outliers = outlier_share(max(1, int(self.target.facts.get("parameters") or 1)))
        classifier = self.settings.learners[self.settings.classifiers[0]]
        how = paper if procedure == PAPER else release
        return how(found, classifier=classifier, seed=seed, outliers=outliers)

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """The default procedure's test, one a placebo that takes part; without any, of the target alone."""
        how: dict[str, Any] = {"pieces": len(self.parts[0]), "seed": self.seed}
        return tuple(
            answer(self.compared_with(one), facts={"placebo": one.name if one else None}, **how)
            for one in self.placebos or (None,)
        )

    @property
    def deciding(self) -> tuple[Backend, ...]:
        """The placebo whose test has the largest p, which decides; empty without placebos."""
        if not self.placebos:
            return ()
        return (self.placebos[int(np.argmax([one.p for one in self.answers]))],)

    @property
    def values(self) -> DocumentValues:
        """One value a document, on which the default procedure tests; those of the literature test pieces."""
        return self.compared_with(*self.deciding or (None,))

    def of_documents(self, names: Container[str]) -> AuditData:
        """The same of these suspect documents, with all control documents."""
        rows = [i for i, sample in enumerate(self.parts[0]) if sample.document in names]
        own = 2 if self.paired else 1
        some = [tuple(part[i] for i in rows) for part in self.parts[:own]]
        return replace(self, parts=(*some, *self.parts[own:]), _logprobs={}, _features={})

    def with_target(self, target: Backend) -> AuditData:
        """The same samples for another target, compared with the same placebo."""
        models = replace(self.models, target=target)
        known = {id(one): self._logprobs[id(one)] for one in self.deciding if id(one) in self._logprobs}
        return replace(self, models=models, placebos=self.deciding, _logprobs=known, _features={})
