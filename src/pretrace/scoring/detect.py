"""Texts + scores + models → a Run: plan what each model must be asked, ask it once, score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pretrace.cache.location import text_key
from pretrace.corpora import Texts, corpus_of
from pretrace.errors import TextsError
from pretrace.scoring.evidence import Progress, Silent
from pretrace.scoring.holdout import check_disjoint
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.scoring.provenance import record_corpus, record_counts, record_software, record_tuning
from pretrace.scoring.scored import Scored
from pretrace.types import Backend, Control, Corpus, Ints, Run, Text


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is done. `cache` False keeps no traces on disk. `shuffles` is how often each score that is
    fitted on labelled texts is fitted again on shuffled labels, as its control. `settings` is added to the
    run's record."""

    cache: bool = True
    seed: int = 0
    shuffles: int = 20
    progress: Progress = field(default_factory=Silent)
    settings: Mapping[str, Any] = field(default_factory=dict)


def detect(
    texts: Corpus | Texts,
    models: Models | Backend | str,
    expressions: str | Sequence[str] | ScorePlan = "loss,zlib,min_k",
    options: Options | None = None,
) -> Run:
    """The scores of every text, one row a text in the corpus' order, one column an expression.

    `texts` are a corpus, or all that `open_corpus` takes: a list, a column of a table. `models` may be a model's name.
    A text that gives the target nothing to predict is in `Run.skipped` and has no row. Where a text has no
    value of one score alone, that cell is NaN and `Run.missing` says why. With a placebo among the models,
    and for scores fitted on labelled texts, `Run.controls` holds the same scores without what they claim to
    see. Raises a PretraceError before any model is asked when an expression is wrong or something it needs
    is missing, LeakError when a text to be scored was tuned or fitted on.
    """
    options = options or Options()
    corpus, models = corpus_of(texts), Models.of(models)
    plan = ScorePlan.parse(expressions)
    if not corpus.texts:
        raise TextsError(f"{corpus.name} holds no texts.")
    plan.check_texts(corpus)
    for some in (models, models.placebo):
        if some is not None:  # the placebo as well: it is asked last, perhaps hours later
            plan.check(some)
            _check_leaks(corpus, some)
    found = _over(corpus.texts, models, plan, options)
    if not found.rows:
        raise TextsError(
            f"none of the {len(corpus)} texts of {corpus.name} has a token to predict; "
            "a text needs at least two tokens."
        )
    for name, column in zip(plan.scores, found.matrix.T, strict=True):
        if np.isnan(column).all():
            reason = next(one.reason for one in found.missing if one.score == name)
            raise TextsError(f"no text of {corpus.name} has a value of {name} ({reason}): leave {name} out.")
    placebo: tuple[Control, ...] = ()
    if models.placebo is not None:
        blank = replace(options, shuffles=0)
        placebo = found.held_against(_over(corpus.texts, models.placebo, plan, blank))
    return _run(corpus, models, options, found, placebo)


def _over(texts: Sequence[Text], models: Models, plan: ScorePlan, options: Options) -> Scored:
    """The scores of all texts under these models."""
    scores = plan.fit(
        models, seed=options.seed, shuffles=options.shuffles, cache=options.cache, progress=options.progress
    )
    with models.reader(scores.needs, plan=plan, cache=options.cache, progress=options.progress) as reader:
        return Scored(scores, plan).read(reader.read(texts))


def _run(
    corpus: Corpus, models: Models, options: Options, found: Scored, placebo: tuple[Control, ...]
) -> Run:
    texts = [row.text for row in found.rows]
    return Run(
        corpus=corpus.name,
        ids=tuple(text.id for text in texts),
        groups=tuple(text.document for text in texts),
        members=tuple(text.member for text in texts),
        tokens=np.array([row.tokens for row in found.rows], dtype=np.int32),
        cut=np.array([row.cut for row in found.rows], dtype=np.int32),
        scores=tuple(found.scores.ready),
        matrix=found.matrix,
        skipped=tuple(found.skipped),
        missing=tuple(found.missing),
        heat=found.extremes.heat(models.target),
        controls=(*placebo, *found.shuffled),
        settings=recorded(models, options, record_corpus(corpus), _cut(found), found.scores.facts),
        copies=_copies(texts),
    )


def _copies(texts: Sequence[Text]) -> Ints | None:
    """The copies of each text, where a scan counted them (`scan.labels`)."""
    known = [text.copies for text in texts if text.copies is not None]
    return np.array(known, dtype=np.int32) if len(known) == len(texts) else None


@dataclass(frozen=True, slots=True)
class Leak:
    """Texts that must not be scored, by their `text_key`s: why not, and what to do where one of them is."""

    keys: frozenset[bytes]
    purpose: str
    cure: str

    def check(self, corpus: Corpus) -> None:
        """LeakError where one of them is in the corpus."""
        check_disjoint(corpus, self.keys, self.purpose, self.cure)


def leaks(models: Models) -> tuple[Leak, ...]:
    """The texts that these models were tuned or fitted on."""
    found: list[Leak] = []
    if models.labelled is not None:
        keys = frozenset(text_key(text.text) for text in models.labelled.texts)
        cure = "Take them out of one of the two files, or draw the reference with --reference-share."
        found.append(Leak(keys, "are among the reference texts that detectors are fitted on", cure))
    if models.tuned is not None:
        cure = "Take them out, or let evaluate split TEXTS itself with --tune-share 0.3."
        found.append(Leak(models.tuned.seen, "are among the texts the adapter was tuned on", cure))
    return tuple(found)


def _check_leaks(corpus: Corpus, models: Models) -> None:
    """LeakError where a text to be scored was tuned or fitted on."""
    for leak in leaks(models):
        leak.check(corpus)


def evaluate(
    run: Run,
    texts: Corpus | Texts,
    *,
    seed: int = 0,
    resamples: int = 1000,
    validation: float = 0.2,
    unlearned: float | None = None,
) -> Run:
    """The run with its `evaluation`: metrics with 95% intervals, and the blind baseline beside them.

    `texts` are those that were scored. `validation` is the share of documents on which accuracy
    thresholds are chosen. `unlearned` is the margin of AUC within which a model that was to forget the members counts
    as the placebo, a model retrained without them. Raises TextsError where labels are missing or all of one class.
    """
    from pretrace.scoring.evaluation import evaluate as measure
    from pretrace.scoring.evaluation import placebo_name
    from pretrace.scoring.unlearning import reread

    corpus = corpus_of(texts)
    check_labels(corpus)
    by_id = {text.id: text.text for text in corpus.texts}
    found = measure(
        run, [by_id[name] for name in run.ids], seed=seed, resamples=resamples, validation=validation
    )
    if unlearned is not None:
        found = reread(found, unlearned, placebo_name(run.settings))
    return replace(run, evaluation=found)


def check_labels(corpus: Corpus) -> None:
    """TextsError unless every text is labelled and both classes are there."""
    unknown = [text.id for text in corpus.texts if text.member is None]
    if unknown:
        raise TextsError(
            f"{len(unknown)} of {len(corpus)} texts of {corpus.name} have no label (such as {unknown[0]!r}): "
            "evaluation needs a column with 1 for members and 0 for non-members (--label-column), "
            "or use `pretrace score`."
        )
    members = sum(text.member is True for text in corpus.texts)
    if members in (0, len(corpus)):
        kind = "members" if members else "non-members"
        raise TextsError(
            f"all {len(corpus)} texts of {corpus.name} are {kind}: evaluation needs both classes."
        )


def _cut(found: Scored) -> dict[str, Any]:
    """How many tokens the length limit dropped, and of which texts."""
    cut = [row for row in found.rows if row.cut]
    return {
        "texts": len(cut),
        "tokens": sum(row.cut for row in cut),
        "of_tokens": sum(row.cut + row.tokens for row in found.rows),
        "ids": [row.text.id for row in cut[:50]],
    }


def recorded(
    models: Models,
    options: Options,
    texts: Mapping[str, Any],
    cut: Mapping[str, Any],
    fitted: Mapping[str, Any],
) -> dict[str, Any]:
    """What run.json says of how the numbers came about; `texts` is what it says of the corpus, `fitted` what fitted
    scores tell of themselves."""
    named = models.named()
    if models.placebo:
        named["placebo"] = models.placebo.target
    record = {
        **options.settings,
        "seed": options.seed,
        "models": {name: dict(backend.facts) for name, backend in named.items()},
        "texts": dict(texts),
        "counts": record_counts(models.counts),
        "cut": dict(cut),
        "software": record_software(),
    }
    if models.labelled is not None:
        record["reference"] = record_corpus(models.labelled)
    if models.tuned is not None:
        record["adapter"] = record_tuning(models.tuned.card)
    if models.placebo is not None and models.placebo.tuned is not None:
        record["placebo_adapter"] = record_tuning(models.placebo.tuned.card)
    if models.proposer is not None:
        record["neighbors"] = dict(models.proposer.facts)
    if fitted:
        record["fitted"] = dict(fitted)
    return record
