"""Texts + scores + models → a Run: plan what each model must be asked, ask it once, score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pretrace.cache.location import text_key
from pretrace.errors import PretraceError, TextsError
from pretrace.rewrites import Selective, rewrites
from pretrace.scores import parse
from pretrace.scoring.evidence import Asker, Progress, Silent, passes
from pretrace.scoring.heat import Extremes
from pretrace.scoring.holdout import check_disjoint
from pretrace.scoring.plan import Models, Scores, check, check_scores, prepare
from pretrace.scoring.provenance import record_corpus, record_counts, record_software, record_tuning
from pretrace.types import Backend, Control, Corpus, Doubles, Evidence, Run, Skipped, Text, View

__all__ = ["Models", "Options", "check_labels", "check_scores", "detect", "evaluate"]

CHUNK = 2048
"""Texts whose traces are in memory at once."""


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
    corpus: Corpus,
    models: Models | Backend,
    expressions: str | Sequence[str] = "loss,zlib,min_k",
    options: Options | None = None,
) -> Run:
    """The scores of every text, one row a text in the corpus' order, one column an expression.

    Texts that give a model nothing to predict are in `Run.skipped` and have no row. With a placebo among
    the models, and for scores fitted on labelled texts, `Run.controls` holds the same scores without what
    they claim to see. Raises a PretraceError before any model is asked when an expression is wrong or
    something it needs is missing, LeakError when a text to be scored was tuned or fitted on.
    """
    options = options or Options()
    models = models if isinstance(models, Models) else Models(models)
    if not corpus.texts:
        raise TextsError(f"{corpus.name} holds no texts.")
    check_rewrites(corpus, expressions)
    for some in (models, models.placebo):
        if some is not None:  # the placebo as well: it is asked last, perhaps hours later
            check(expressions, some)
            _check_leaks(corpus, some)
    found = _pass(corpus, models, expressions, options)
    if models.placebo is None:
        return _run(corpus, models, options, found, ())
    blank = replace(options, shuffles=0)
    other = _pass(corpus, models.placebo, expressions, blank)
    found, other = _both(found, other)
    placebo = tuple(
        Control(name, "placebo", np.array([[row.values[i]] for row in other.rows], dtype=np.float64))
        for i, name in enumerate(found.scores.ready)
    )
    return _run(corpus, models, options, found, placebo)


@dataclass(frozen=True, slots=True)
class _Row:
    text: Text
    values: list[float]
    shuffled: list[list[float]]
    tokens: int
    cut: int


@dataclass(frozen=True, slots=True)
class _Found:
    """What one set of models said of a corpus."""

    scores: Scores
    rows: list[_Row]
    skipped: list[Skipped]
    extremes: Extremes


def _pass(corpus: Corpus, models: Models, expressions: str | Sequence[str], options: Options) -> _Found:
    cache, progress = options.cache, options.progress
    scores = prepare(
        expressions, models, seed=options.seed, shuffles=options.shuffles, cache=cache, progress=progress
    )
    needs = scores.needs
    progress.begin(len(corpus) * passes(needs))
    found = _Found(scores, [], [], Extremes())
    with Asker(models.named(), needs, proposer=models.proposer, cache=cache, progress=progress) as asker:
        for chunk in _chunks(corpus.texts, CHUNK):
            for text, evidence in zip(chunk, asker.ask(chunk), strict=True):
                _score(text, evidence, found)
    if not found.rows:
        raise TextsError(
            f"none of the {len(corpus)} texts of {corpus.name} has a token to predict; "
            "a text needs at least two tokens."
        )
    return found


def _score(text: Text, evidence: Evidence, found: _Found) -> None:
    """Add the text's row, or the reason why it has none."""
    empty = [view for view, traces in evidence.views.items() if not any(map(len, traces))]
    if empty:
        found.skipped.append(_skipped(text, evidence, empty))
        return
    scores = found.scores
    values = [_finite(name, score(evidence), text) for name, score in scores.ready.items()]
    shuffled = [
        [_finite(name, score(evidence), text) for score in repeats]
        for name, repeats in scores.shuffled.items()
    ]
    found.rows.append(_Row(text, values, shuffled, len(evidence.plain), evidence.plain.cut))
    found.extremes.offer(values[0], text, evidence.plain)


def _both(found: _Found, placebo: _Found) -> tuple[_Found, _Found]:
    """Both passes without the texts that either skipped, so that rows stand side by side."""
    here = {row.text.id for row in found.rows}
    there = {row.text.id for row in placebo.rows}
    reasons = {one.id: one for one in placebo.skipped}
    lost = [
        replace(reasons[row.text.id], reason=f"under the placebo model: {reasons[row.text.id].reason}")
        for row in found.rows
        if row.text.id not in there
    ]
    if not here & there:
        raise TextsError("no text has something to predict for both the target and the placebo model.")
    kept = replace(
        found,
        rows=[row for row in found.rows if row.text.id in there],
        skipped=[*found.skipped, *lost],
    )
    return kept, replace(placebo, rows=[row for row in placebo.rows if row.text.id in here])


def _run(
    corpus: Corpus, models: Models, options: Options, found: _Found, placebo: tuple[Control, ...]
) -> Run:
    texts = [row.text for row in found.rows]
    shuffled = (
        Control(name, "shuffled", np.array([row.shuffled[i] for row in found.rows], dtype=np.float64))
        for i, name in enumerate(found.scores.shuffled)
    )
    return Run(
        corpus=corpus.name,
        ids=tuple(text.id for text in texts),
        groups=tuple(text.document for text in texts),
        members=tuple(text.member for text in texts),
        tokens=np.array([row.tokens for row in found.rows], dtype=np.int32),
        cut=np.array([row.cut for row in found.rows], dtype=np.int32),
        scores=tuple(found.scores.ready),
        matrix=_matrix([row.values for row in found.rows]),
        skipped=tuple(found.skipped),
        heat=found.extremes.heat(models.target),
        controls=(*placebo, *shuffled),
        settings=_settings(corpus, models, options, found),
    )


def _matrix(values: list[list[float]]) -> Doubles:
    return np.array(values, dtype=np.float64)


def _check_leaks(corpus: Corpus, models: Models) -> None:
    labelled = models.labelled
    if labelled is not None:
        keys = frozenset(text_key(text.text) for text in labelled.texts)
        cure = "Take them out of one of the two files, or draw the reference with --reference-share."
        check_disjoint(corpus, keys, "are among the reference texts that detectors are fitted on", cure)
    if models.tuned is not None:
        cure = "Take them out, or let evaluate split TEXTS itself with --tune-share 0.3."
        check_disjoint(corpus, models.tuned.seen, "are among the texts the adapter was tuned on", cure)


def evaluate(
    run: Run, corpus: Corpus, *, seed: int = 0, resamples: int = 1000, validation: float = 0.2
) -> Run:
    """The run with its `evaluation`: metrics with 95% intervals, and the blind baseline beside them.

    `corpus` is the one that was scored. `validation` is the share of documents on which accuracy
    thresholds are chosen. Raises TextsError where labels are missing or all of one class.
    """
    from pretrace.scoring.evaluation import evaluate as measure

    check_labels(corpus)
    by_id = {text.id: text.text for text in corpus.texts}
    texts = [by_id[name] for name in run.ids]
    found = measure(run, texts, seed=seed, resamples=resamples, validation=validation)
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


def _finite(name: str, value: float, text: Text) -> float:
    if not np.isfinite(value):
        raise PretraceError(f"{name} gave {value} for text {text.id!r}; this is a mistake in the score.")
    return value


def check_rewrites(corpus: Corpus, expressions: str | Sequence[str]) -> None:
    """TextsError where what a score compares the texts with would be the texts themselves."""
    for name, score in parse(expressions).items():
        for rewrite in {view.rewrite for view in score.needs.views}:
            made = rewrites.make(rewrite)
            why = made.refusal([text.text for text in corpus.texts]) if isinstance(made, Selective) else ""
            if why:
                raise TextsError(f"{name} {why} ({corpus.name}): leave {name} out of the scores.")


def _skipped(text: Text, evidence: Evidence, empty: Sequence[View]) -> Skipped:
    read = max((len(traces[0]) for traces in evidence.views.values() if traces), default=0)
    formless = [rewrites.make(view.rewrite) for view in empty if not evidence.views[view]]
    if not text.text.strip():
        reason = "the text is empty"
    elif read and formless:
        reason = "; ".join(dict.fromkeys(made.formless for made in formless if isinstance(made, Selective)))
    elif read:
        reason = f"its {empty[0].rewrite} form under the {empty[0].model} model has nothing to predict"
    else:
        reason = "a single token: without a start token there is nothing to predict"
    return Skipped(text.id, reason, read)


def _chunks(texts: Sequence[Text], size: int) -> Iterator[Sequence[Text]]:
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


def _settings(corpus: Corpus, models: Models, options: Options, found: _Found) -> dict[str, Any]:
    """What run.json says of how the numbers came about."""
    cut = [row for row in found.rows if row.cut]
    named = models.named()
    if models.placebo:
        named["placebo"] = models.placebo.target
    record = {
        **options.settings,
        "seed": options.seed,
        "models": {name: dict(backend.facts) for name, backend in named.items()},
        "texts": record_corpus(corpus),
        "counts": record_counts(models.counts),
        "cut": {
            "texts": len(cut),
            "tokens": sum(row.cut for row in cut),
            "of_tokens": sum(row.cut + row.tokens for row in found.rows),
            "ids": [row.text.id for row in cut[:50]],
        },
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
    if found.scores.facts:
        record["fitted"] = dict(found.scores.facts)
    return record
