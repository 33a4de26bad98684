"""What a run asks: scores and models as they are named, each checked before any is opened, opened once, and fitted.

A recipe that is fitted on labelled texts is also fitted on the same texts with their labels shuffled,
several times: the control that shows what such a detector reaches without knowing who is a member.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.backends import open_adapter, open_model
from pretrace.backends.naming import OPENED, SERVED, ModelSettings, called_apart, served_kind, split_revision
from pretrace.backends.proposals import open_proposer
from pretrace.errors import ExpressionError, MissingPackageError, ModelError, TableError, TextsError
from pretrace.frequencies import Frequencies
from pretrace.registry import scores
from pretrace.results.wording import say
from pretrace.rewrites import Lower, Neighbors, rewrites
from pretrace.scores.divergence import NO_COUNTS
from pretrace.scoring.evidence import EvidenceReader, Options
from pretrace.scoring.holdout import CorpusParts
from pretrace.settings import CONTROLS, MODEL, RUN, TEXTS, Option, check_ranges, is_kept, option, seed_option
from pretrace.tuning import tuned_model
from pretrace.tuning.artifacts import read_adapter
from pretrace.tuning.plan import OnStep, TuningMethod, methods
from pretrace.types import (
    Backend,
    Corpus,
    Evidence,
    Needs,
    Proposer,
    Quantity,
    Recipe,
    Reference,
    Rewrite,
    Score,
    Tuned,
)

_DEFAULT_SCORES = "loss,ppl,zlib,min_k,min_k_plus_plus"
TARGET = (
    "--placebo {} is the target itself: name a model that cannot have seen the texts, such as an earlier checkpoint "
    "(NAME@REVISION), the base that the target was tuned from, or a sibling."
)
FITTED = "Detectors that are fitted"
"""The group of options on what detectors are fitted with."""
SET_ASIDE = Option("Shares of TEXTS that are not scored, as in tuning=0.3.", name="set-aside", panel=FITTED)
MEASURING = Option("How figures are measured, as in resamples=10000.", name="measuring", panel=RUN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The model in question, and how it and every other model of the run is opened."""

    model: str = option(
        help="A hub id, a model folder, a .gguf file, smollm2 (packaged), or a server: vllm:URL, "
        "completions:URL.",
        panel=MODEL,
        path="in",
        essential=True,
    )
    opening: ModelSettings = field(default_factory=ModelSettings)

    def with_revisions(self, named: Sequence[str | None]) -> tuple[tuple[str, str | None], ...]:
        """Models beside this one with their revisions; @REVISION alone is this one."""
        found = (split_revision(name) for name in named if name)
        return tuple((name or self.model, revision) for name, revision in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Companions:
    """What some scores need beside the target."""

    counts: Path | None = option(None, "Token counts for dc_pdd, made by `pretrace count`.", path="in")
    reference_model: str | None = option(
        None,
        "The smaller model that the score `ref` compares with; any --model value.",
        panel=MODEL,
        path="in",
        essential=True,
    )
    tuned: Path | None = option(
        None, "Adapter for fsd(...), made by `pretrace tune`.", panel=FITTED, path="in", essential=True
    )
    neighbors: str | None = option(
        None,
        "Who proposes words for neighbor: causal (the target itself), causal:MODEL, or masked:HUB_ID.",
        panel=FITTED,
        path="in",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSettings:
    """Which scores, what they need, and how the run is done; ExpressionError for a value out of its range.

    `reference` names labelled texts. `cache` False keeps nothing on disk.
    """

    scores: str = option(
        _DEFAULT_SCORES,
        'Expressions, comma-separated: "loss,min_k(k=0.1),dc_pdd". See `pretrace list`.',
        essential=True,
    )
    companions: Companions = field(default_factory=Companions)
    reference: str | None = option(
        None,
        "Labelled texts that na_pdd and probe are fitted on, about 100 members and 100 non-members; given as "
        "TEXTS is. None of them may be among TEXTS.",
        panel=FITTED,
        path="in",
        essential=True,
    )
    seed: int = seed_option()
    cache: bool = field(default_factory=is_kept)
    dry_run: bool = option(
        False,
        "Say how many requests and tokens the models will be asked, and stop: no text is read by a model.",
    )

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """How an evaluation is made: what is set aside, which controls, how intervals are drawn; ExpressionError for a
    value out of its range."""

    tune_share: float = SET_ASIDE.key(
        0.0,
        "For fsd(...): tune on the non-members of this share of TEXTS, score the rest (the paper: 0.3).",
        name="tuning",
        least=0.0,
        most=0.9,
    )
    method: str = option(
        "lora",
        "How to tune: lora, adalora or ia3, with settings where the paper's do not suit: "
        "\"lora(rank=8, epochs=1, on='members')\". See `pretrace list`.",
        panel=FITTED,
    )
    reference_share: float = SET_ASIDE.key(
        0.0,
        "Set this share of TEXTS aside as the reference of na_pdd and probe, score the rest.",
        name="reference",
        least=0.0,
        most=0.9,
    )
    placebo: str | None = option(
        None,
        "A model that never saw the members (an earlier checkpoint, a sibling); any --model value, NAME@REVISION, or "
        "@REVISION for the target's. Every score is computed with it too: one that does as well there does not detect "
        "membership.",
        panel=CONTROLS,
        path="in",
        essential=True,
    )
    labels: Path | None = option(
        None,
        "The --out of a `pretrace scan` of the same texts, which gives the labels: a text that the corpus contains "
        "is a member, one that it does not contain a non-member; the rest is left out. The column of labels is not "
        "read.",
        panel=TEXTS,
        path="in",
        essential=True,
    )
    resamples: int = MEASURING.key(
        1000, "Bootstrap resamples of documents for the intervals.", least=100, most=1_000_000
    )
    validation: float = MEASURING.key(
        0.2, "Share of documents on which accuracy thresholds are chosen.", least=0.05, most=0.95
    )

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsSettings:
    """Which models a run asks; `open_models` opens them. ModelError where a placebo is the target by its name and
    revision, or is named twice.

    `placebos` are those that the target is compared with: NAME, NAME@REVISION, @REVISION of the target, or None.
    `several` says that any number of them is wanted side by side, as by an audit; otherwise there is at most one.
    `second` adds the packaged model (`with_second`).
    """

    target: Target
    companions: Companions = field(default_factory=Companions)
    placebos: Sequence[str | None] = ()
    several: bool = False
    second: bool = False
    cache: bool = field(default_factory=is_kept)

    def __post_init__(self) -> None:
        at = self.placebos_at
        if (self.target.model, self.target.opening.revision) in at:
            raise ModelError(TARGET.format(self.target.model))
        if len(set(at)) < len(at):
            raise ModelError(f"--placebo names {max(at, key=at.count)[0]} twice: name each model once.")

    @property
    def placebos_at(self) -> tuple[tuple[str, str | None], ...]:
        """The placebos that are named, each with its revision."""
        return self.target.with_revisions(self.placebos)

    @property
    def roles(self) -> dict[str, str]:
        """What the models that scores ask are opened from, by the names that views use; a tuned one is the target."""
        found = {"target": self.target.model, "tuned": self.target.model}
        reference = self.companions.reference_model
        return found | ({"reference": reference} if reference else {})

    @property
    def named(self) -> tuple[str, ...]:
        """What every model is opened from."""
        return (*self.roles.values(), *(name for name, _ in self.placebos_at))


@dataclass(frozen=True, slots=True)
class Models:
    """What the scores may ask.

    `target` is the model in question; `reference` a smaller model that `ref` compares with; `counts` token
    counts for dc_pdd; `tuned` the target after FSD's fine-tuning; `proposer` makes neighbours; `labelled`
    are the reference texts, members and non-members, that na_pdd and probe are fitted on. `placebo` is all
    of this again around a model that never saw the members: every score is computed with it as well. An audit
    may hold the target against further such models, `placebos`.
    """

    target: Backend
    reference: Backend | None = None
    counts: Frequencies | None = None
    tuned: Tuned | None = None
    proposer: Proposer | None = None
    labelled: Corpus | None = None
    placebo: Models | None = None
    placebos: tuple[Backend, ...] = ()

    @classmethod
    def of(cls, given: Models | Backend | str) -> Models:
        """The models that are given; one alone, or the one that a name opens (`open_model`), is the target."""
        if isinstance(given, Models):
            return given
        return cls(open_model(given) if isinstance(given, str) else given)

    def names(self, *others: Backend) -> dict[str, str]:
        """What the target, its placebos and others are called in sentences and tables, by their own names."""
        return called_apart([one.name for one in (self.target, *self.placebos, *others)])

    def named(self) -> dict[str, Backend]:
        """The models by the names views use."""
        found = {"target": self.target}
        if self.reference:
            found["reference"] = self.reference
        if self.tuned:
            found["tuned"] = self.tuned.backend
        return found

    @property
    def recorded_counts(self) -> dict[str, Any] | None:
        """Where the token counts came from, None where there are none."""
        if self.counts is None:
            return None
        facts = {
            "source": getattr(self.counts, "source", ""),
            "tokens": int(getattr(self.counts, "total", 0)),
        }
        return {**facts, "tokenizer": self.counts.tokenizer_hash}

    def reader(self, needs: Needs, options: Options) -> EvidenceReader:
        """What reads texts with these models."""
        return EvidenceReader(self.named(), needs, options, self.proposer)


@dataclass(frozen=True, slots=True)
class FittedScores:
    """Scores ready to be called, by expression. `shuffled` are the same recipes fitted on shuffled labels;
    `facts` is what fitted scores have to tell of themselves."""

    ready: Mapping[str, Score]
    shuffled: Mapping[str, tuple[Score, ...]]
    facts: Mapping[str, Any]

    @property
    def needs(self) -> Needs:
        """All that will be asked of a text, its own log-probabilities always among it."""
        return _united([*self.ready.values(), *(score for some in self.shuffled.values() for score in some)])


_PACKAGED = "smollm2"
_LACKING = {
    "labelled": TextsError,
    "counts": TableError,
    "neighbors": ModelError,
    "reference": ModelError,
    "tuned": ModelError,
}
"""The error where scores use something that is not there."""


@dataclass(frozen=True, slots=True)
class ScorePlan:
    """Parsed scores by expression, and all that they need.

    `needs` is what will be asked of a text, `reference` what fitting wants of each labelled reference text,
    `rewrites` the rewrites of all views by expression.
    """

    scores: Mapping[str, Score | Recipe]
    needs: Needs
    reference: Needs
    rewrites: Mapping[str, Rewrite]

    @classmethod
    def parse(cls, expressions: str | Sequence[str] | Mapping[str, Score | Recipe] | ScorePlan) -> ScorePlan:
        """The plan of the scores that expressions name, or of these; a plan is returned as it is.

        ExpressionError for an unknown name, an unknown parameter or a value out of range.
        """
        if isinstance(expressions, ScorePlan):
            return expressions
        parsed = expressions if isinstance(expressions, Mapping) else scores.several(expressions)
        needs, reference = _united(parsed.values()), reduce(or_, map(_fitted_on, parsed.values()), Needs())
        forms = {view.rewrite: rewrites.make(view.rewrite) for view in (needs | reference).views}
        return cls(parsed, needs, reference, forms)

    @property
    def passes(self) -> int:
        """How many forms of each text the models will read."""
        return sum(self.rewrites[view.rewrite].count for view in self.needs.views)

    @property
    def uses(self) -> frozenset[str]:
        """What the scores use besides the target: any of "reference", "tuned", "neighbors", "counts" and
        "labelled"."""
        return frozenset().union(*map(self._used_by, self.scores.values()))

    def _used_by(self, score: Score | Recipe) -> set[str]:
        fitted_on = _fitted_on(score)
        forms = [self.rewrites[view.rewrite] for view in (score.needs | fitted_on).views]
        proposed = any(isinstance(form, Neighbors) for form in forms)
        more = {"neighbors": proposed, "counts": score.needs.counts, "labelled": fitted_on}
        used = {view.model for view in score.needs.views} - {"target"}
        return used | {name for name, wanted in more.items() if wanted}

    def require(self, given: Collection[str]) -> None:
        """Raise a PretraceError for the first thing that the scores use and that is not among `given`, with its
        cure. For use before any model is opened."""
        for name, error in _LACKING.items():
            asking = [one for one, score in self.scores.items() if name in self._used_by(score)]
            if asking and name not in given:
                raise error(NO_COUNTS if name == "counts" else say(f"plan.{name}", score=asking[0]))

    def check_texts(self, corpus: Corpus) -> None:
        """TextsError where what a score compares the texts with would be the texts themselves."""
        texts = [text.text for text in corpus.texts]
        for name, score in self.scores.items():
            for rewrite in {view.rewrite for view in score.needs.views}:
                made = self.rewrites[rewrite]
                why = made.refusal(texts) if isinstance(made, Lower) else ""
                if why:
                    raise TextsError(f"{name} {why} ({corpus.name}): leave {name} out of the scores.")

    def check(self, models: Models) -> None:
        """Raise what asking these models for these scores would run into, without asking any of them:
        ModelError, TableError or TextsError for what is missing or does not fit together."""
        counts, target = models.counts, models.target
        parts = {"counts": counts, "neighbors": models.proposer, "labelled": models.labelled}
        self.require({*models.named(), *(name for name, part in parts.items() if part is not None)})
        if counts is not None and counts.tokenizer_hash != target.tokenizer_hash:
            mine, theirs = target.tokenizer_hash[:12], counts.tokenizer_hash[:12]
            raise TableError(say("plan.tokenizer", target=target.name, mine=mine, theirs=theirs))
        reference, mine = models.reference, target.tokenizer_hash
        if self.needs.paired and reference is not None and reference.tokenizer_hash != mine:
            asking = ", ".join(name for name, score in self.scores.items() if score.needs.paired)
            raise ModelError(say("plan.tokens", scores=asking, reference=reference.name, target=target.name))
        self._check_offers({role: (one.name, one.offers) for role, one in models.named().items()})

    def check_servers(self, named: Mapping[str, str]) -> None:
        """ModelError where a score needs more of a model on a server than log-probabilities; `named` is what each is
        opened from. For use before anything is sent."""
        served = {role: (model, Quantity.LOGP) for role, model in named.items() if served_kind(model)}
        self._check_offers(served)

    def _check_offers(self, offered: Mapping[str, tuple[str, Quantity]]) -> None:
        """ModelError where a score needs more than a model of this name, by its role, offers."""
        lacking: dict[str, tuple[str, Quantity]] = {}
        for name, score in self.scores.items():
            for view, quantity in (score.needs | _fitted_on(score)).views.items():
                model, offers = offered.get(view.model, ("", quantity))
                if missing := quantity & ~offers:
                    lacking[name] = model, missing
        for name, (model, missing) in lacking.items():
            words = " and ".join(say(f"plan.offers.{one.name}") for one in Quantity if one in missing)
            others = ",".join(one for one in self.scores if one not in lacking) or "loss"
            parts = {"missing": missing.name, "words": words, "others": others}
            raise ModelError(say("plan.offers.lacks", model=model, score=name, **parts))

    def fit(self, models: Models, options: Options) -> FittedScores:
        """The scores with their recipes fitted, after `check`."""
        self.check(models)
        evidence: tuple[Evidence, ...] = ()
        if self.reference and models.labelled is not None:
            with models.reader(self.reference, options) as reader:
                reader.announce(len(models.labelled))
                evidence = tuple(one for one in reader.read(models.labelled.texts) if not one.empty)
        reference = Reference(models.counts, models.target.vocabulary, evidence, options.seed)
        ready = {
            name: score.fit(reference) if isinstance(score, Recipe) else score
            for name, score in self.scores.items()
        }
        shuffled = {
            name: tuple(
                score.fit(_shuffled(reference, [options.seed, repeat])) for repeat in range(options.shuffles)
            )
            for name, score in self.scores.items()
            if isinstance(score, Recipe) and score.reference and options.shuffles
        }
        recorded = {name: getattr(score, "facts", None) for name, score in ready.items()}
        facts = {name: dict(own) for name, own in recorded.items() if own}
        return FittedScores(ready, shuffled, facts)


def _united(scores: Iterable[Score | Recipe]) -> Needs:
    """The needs of several scores, and the plain log-probabilities that every run wants."""
    # the text's own length and heat map, whatever the scores
    return reduce(or_, (score.needs for score in scores), Needs(Quantity.LOGP))


def _fitted_on(score: Score | Recipe) -> Needs:
    return score.reference if isinstance(score, Recipe) else Needs()


def _shuffled(reference: Reference, seed: Sequence[int]) -> Reference:
    """The same evidence with labels dealt out anew, by document where each document has one label."""
    texts = [one.text for one in reference.evidence]
    units = {text.document: text.member for text in texts}
    whole = all(units[text.document] == text.member for text in texts)
    names = sorted(units) if whole else [str(i) for i in range(len(texts))]
    labels = [units[name] for name in names] if whole else [text.member for text in texts]
    order = np.random.default_rng(list(seed)).permutation(len(names))
    dealt = dict(zip(names, (labels[i] for i in order), strict=True))
    evidence = tuple(
        replace(one, text=replace(one.text, member=dealt[one.text.document if whole else str(i)]))
        for i, one in enumerate(reference.evidence)
    )
    return replace(reference, evidence=evidence)


def check_placebos(target: Backend, placebos: Sequence[Backend], reference: Backend | None = None) -> None:
    """Raise ModelError where a placebo has the weights of the target, of another placebo, or of the reference model of
    a score that is computed with it as well."""
    known = {weights_of(target): "the target"}
    for placebo in placebos:
        weights = weights_of(placebo)
        if reference is not None and weights == weights_of(reference):
            raise ModelError(say("plan.placebo.reference", name=placebo.name))
        if weights in known:
            raise ModelError(say("plan.placebo.weights", name=placebo.name, other=known[weights]))
        known[weights] = f"the placebo {placebo.name}"


def weights_of(model: Backend) -> str:
    """What names a model's weights: their hash, or the fingerprint where they are not here, as on a server."""
    weights = model.facts.get("weights")
    return str(weights) if weights not in (None, "unknown") else model.fingerprint


def check_use(plan: ScorePlan, settings: ScoreSettings, evaluation: EvaluationSettings) -> None:
    """ExpressionError, TextsError or ModelError for scores that miss something, and for what no score uses.

    Nothing is opened for it.
    """
    beside = settings.companions
    uses = (
        ("--set-aside tuning", evaluation.tune_share, "tuned", "fsd(ppl)"),
        ("--tuned", beside.tuned, "tuned", "fsd(ppl)"),
        ("--neighbors", beside.neighbors, "neighbors", "neighbor"),
        ("--reference", settings.reference, "labelled", "na_pdd or probe"),
        ("--set-aside reference", evaluation.reference_share, "labelled", "na_pdd or probe"),
        ("--reference-model", beside.reference_model, "reference", ""),
        ("--counts", beside.counts, "counts", ""),
    )
    plan.require([use for _, value, use, _ in uses if value])
    if beside.tuned and evaluation.tune_share:
        raise ExpressionError(say("plan.use.tuned"))
    if settings.reference and evaluation.reference_share:
        raise ExpressionError(say("plan.use.reference"))
    for name, value, use, kind in uses:
        if value and kind and use not in plan.uses:
            raise ExpressionError(say("plan.use.none", option=name, score=kind))


def open_models(settings: ModelsSettings) -> Models:
    """All models that the settings name, each opened once; without those that are tuned (`with_texts`).

    Raises a PretraceError where one cannot be opened, and for a placebo with the weights of the target; a wrong
    adapter or count table is found before any is.
    """
    beside, alone = settings.companions, len({served_kind(name) is None for name in settings.named}) == 1
    counts = Frequencies.load(beside.counts) if beside.counts else None
    if beside.tuned:
        read_adapter(beside.tuned)
    target = _opened(settings.target.model, settings.target.opening, alone)
    opening = settings.target.opening
    if served_kind(settings.target.model):  # on a server the models beside the target have names of their own
        opening = replace(opening, served_model=None)
    models = Models(target, counts=counts)
    if beside.reference_model:
        reference = _opened(beside.reference_model, replace(opening, revision=None), alone)
        models = replace(models, reference=reference)
    if beside.neighbors:
        # the target itself is not opened again
        own = asdict(opening.for_another()) if ":" in beside.neighbors else {}
        proposer = open_proposer(beside.neighbors, target, cache=settings.cache, **own)
        models = replace(models, proposer=proposer)
    placebos = tuple(_opened(name, replace(opening, revision=at), alone) for name, at in settings.placebos_at)
    check_placebos(target, placebos, None if settings.several else models.reference)
    if settings.several:
        models = replace(models, placebos=placebos)
    elif placebos:
        models = replace(models, placebo=replace(models, target=placebos[0]))
    return with_second(models, several=settings.several, device=opening.device) if settings.second else models


def with_second(models: Models, *, several: bool = True, **opening: Any) -> Models:
    """Add the packaged model as a second one where it is installed and has no other role: beside `several` placebos,
    which may have the target's past and read worse, or as the one of scores, where these need the target alone."""
    if not several and models != Models(models.target):
        return models
    try:
        packaged = open_model(_PACKAGED, **opening)
    except MissingPackageError:
        return models
    named = [one for one in (models.target, models.reference, *models.placebos) if one is not None]
    if weights_of(packaged) in map(weights_of, named):
        return models
    return (
        replace(models, placebos=(*models.placebos, packaged))
        if several
        else replace(models, placebo=Models(packaged))
    )


def with_texts(
    models: Models,
    settings: ModelsSettings,
    parts: CorpusParts | None = None,
    method: TuningMethod | None = None,
    *,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> Models:
    """The models with the reference texts, and with the adapter that was named or one tuned on the texts set aside.

    A placebo is given the same texts, and is tuned as the target was. ModelError where an adapter belongs to another
    model.
    """
    placebo, texts, adapter = models.placebo, parts.tuning if parts else None, None
    if parts and parts.reference:
        models = replace(models, labelled=parts.reference)
        placebo = placebo and replace(placebo, labelled=parts.reference)
    if settings.companions.tuned:
        adapter = read_adapter(settings.companions.tuned)
        method, seed, texts = adapter.method, adapter.card["seed"], adapter.corpus
    if texts is not None:
        how = method or methods.make("lora")
        tune = partial(tuned_model, texts=texts, method=how, seed=seed, cache=settings.cache, on_step=on_step)
        tuned = open_adapter(models.target, adapter.folder) if adapter else tune(models.target)
        models = replace(models, tuned=tuned)
        placebo = placebo and replace(placebo, tuned=tune(placebo.target))
    return replace(models, placebo=placebo)


def _opened(model: str, opening: ModelSettings, alone: bool) -> Backend:
    """Open a model: where a run has weights here and servers, each is given the settings it follows. `alone` says that
    it has one kind, which is given all of them and refuses the others'."""
    if not alone:
        served = served_kind(model)  # which refuses a revision
        opening = opening.without(OPENED if served else SERVED)
    return open_model(model, **asdict(opening))
