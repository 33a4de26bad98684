"""Texts + scores + models → a Run: plan what each model must be asked, ask it once, score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pretrace.errors import ModelError, PretraceError, TableError, TextsError
from pretrace.examples import Extremes
from pretrace.record import record_corpus, record_counts, record_software
from pretrace.scores import parse
from pretrace.tracing import Asker, Progress, Silent
from pretrace.types import (
    Backend,
    Corpus,
    Evidence,
    Needs,
    Quantity,
    Recipe,
    Reference,
    Run,
    Score,
    Skipped,
    Text,
    TokenTable,
    View,
)

_NO_REFERENCE = (
    "ref compares the target with a smaller model of the same kind: name one with --reference-model."
)
CHUNK = 2048
"""Texts whose traces are in memory at once."""


@dataclass(frozen=True, slots=True)
class Models:
    """What the scores may ask: the target, on demand a smaller reference model, and token counts."""

    target: Backend
    reference: Backend | None = None
    counts: TokenTable | None = None

    def named(self) -> dict[str, Backend]:
        """The models by the names views use."""
        return {"target": self.target} | ({"reference": self.reference} if self.reference else {})


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is done. `cache` False keeps no traces on disk. `settings` is added to the run's record."""

    cache: bool = True
    seed: int = 0
    progress: Progress = field(default_factory=Silent)
    settings: Mapping[str, Any] = field(default_factory=dict)


def detect(
    corpus: Corpus,
    models: Models | Backend,
    expressions: str | Sequence[str] = "loss,zlib,min_k",
    options: Options | None = None,
) -> Run:
    """The scores of every text, one row a text in the corpus' order, one column an expression.

    Texts that give a model nothing to predict are in `Run.skipped` and have no row. Raises a
    PretraceError before any model is asked when an expression is wrong or something it needs is missing.
    """
    options = options or Options()
    models = models if isinstance(models, Models) else Models(models)
    scores = prepare(expressions, models)
    needs = _united(scores)
    _check(needs, models, corpus)
    options.progress.begin(len(corpus) * len(needs.views))
    with Asker(models.named(), needs, cache=options.cache, progress=options.progress) as asker:
        rows, skipped, extremes = _score_all(corpus, scores, asker)
    if not rows:
        raise TextsError(
            f"none of the {len(corpus)} texts of {corpus.name} has a token to predict; "
            "a text needs at least two tokens."
        )
    texts = [row.text for row in rows]
    return Run(
        corpus=corpus.name,
        ids=tuple(text.id for text in texts),
        groups=tuple(text.document for text in texts),
        members=tuple(text.member for text in texts),
        tokens=np.array([row.tokens for row in rows], dtype=np.int32),
        cut=np.array([row.cut for row in rows], dtype=np.int32),
        scores=tuple(scores),
        matrix=np.array([row.values for row in rows], dtype=np.float64),
        skipped=tuple(skipped),
        heat=extremes.heat(models.target),
        settings=_settings(corpus, models, options, rows),
    )


def evaluate(
    run: Run, corpus: Corpus, *, seed: int = 0, resamples: int = 1000, validation: float = 0.2
) -> Run:
    """The run with its `evaluation`: metrics with 95% intervals, and the blind baseline beside them.

    `corpus` is the one that was scored. `validation` is the share of documents on which accuracy
    thresholds are chosen. Raises TextsError where labels are missing or all of one class.
    """
    from pretrace.statistics.evaluation import evaluate as measure

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


def check_scores(expressions: str | Sequence[str], *, counts: bool, reference: bool) -> int:
    """The number of passes a text will take; raises a PretraceError for what would be missing.

    For use before any model is opened: `counts` and `reference` say whether they will be given.
    """
    parsed = parse(expressions)
    for score in parsed.values():
        if isinstance(score, Recipe) and not counts:
            score.fit(Reference())  # which says what it misses
    needs = _united(parsed)
    if not reference and any(view.model == "reference" for view in needs.views):
        raise ModelError(_NO_REFERENCE)
    return len(needs.views)


def prepare(expressions: str | Sequence[str], models: Models) -> dict[str, Score]:
    """The scores by their expressions, those that must be fitted fitted; checks all before any model is asked."""
    reference = Reference(counts=models.counts, vocabulary=models.target.vocabulary)
    parsed = parse(expressions)
    if models.counts is not None and models.counts.tokenizer_hash != models.target.tokenizer_hash:
        raise TableError(
            f"the token counts were made with another tokenizer ({models.counts.tokenizer_hash[:12]}) than "
            f"{models.target.name} has ({models.target.tokenizer_hash[:12]}): count again with "
            f"`pretrace count CORPUS --model {models.target.name} --out counts.npz`."
        )
    return {
        name: score.fit(reference) if isinstance(score, Recipe) else score for name, score in parsed.items()
    }


def _united(scores: Mapping[str, Score | Recipe]) -> Needs:
    needs = Needs(Quantity.LOGP)  # the text's own length and heat map, whatever the scores
    for score in scores.values():
        needs = needs | score.needs
    return needs


def _check(needs: Needs, models: Models, corpus: Corpus) -> None:
    if not corpus.texts:
        raise TextsError(f"{corpus.name} holds no texts.")
    named = models.named()
    for view, quantity in needs.views.items():
        if view.model not in named:
            raise ModelError(_NO_REFERENCE)
        missing = quantity & ~named[view.model].offers
        if missing:
            raise ModelError(
                f"{named[view.model].name} cannot give {missing.name}, which one of the scores needs; "
                "use --model with local weights."
            )


@dataclass(frozen=True, slots=True)
class _Row:
    text: Text
    values: list[float]
    tokens: int
    cut: int


def _score_all(
    corpus: Corpus, scores: Mapping[str, Score], asker: Asker
) -> tuple[list[_Row], list[Skipped], Extremes]:
    rows: list[_Row] = []
    skipped: list[Skipped] = []
    extremes = Extremes()
    for chunk in _chunks(corpus.texts, CHUNK):
        for text, evidence in zip(chunk, asker.ask(chunk), strict=True):
            empty = [view for view, traces in evidence.views.items() if not len(traces[0])]
            if empty:
                skipped.append(_skipped(text, evidence, empty))
                continue
            values = [_finite(name, score(evidence), text) for name, score in scores.items()]
            rows.append(_Row(text, values, len(evidence.plain), evidence.plain.cut))
            extremes.offer(values[0], text, evidence.plain)
    return rows, skipped, extremes


def _finite(name: str, value: float, text: Text) -> float:
    if not np.isfinite(value):
        raise PretraceError(f"{name} gave {value} for text {text.id!r}; this is a mistake in the score.")
    return value


def _skipped(text: Text, evidence: Evidence, empty: Sequence[View]) -> Skipped:
    read = max(len(traces[0]) for traces in evidence.views.values())
    if not text.text.strip():
        reason = "the text is empty"
    elif read:
        reason = f"its {empty[0].rewrite} form under the {empty[0].model} model has nothing to predict"
    else:
        reason = "a single token: without a start token there is nothing to predict"
    return Skipped(text.id, reason, read)


def _chunks(texts: Sequence[Text], size: int) -> Iterator[Sequence[Text]]:
    for start in range(0, len(texts), size):
        yield texts[start : start + size]


def _settings(corpus: Corpus, models: Models, options: Options, rows: Sequence[_Row]) -> dict[str, Any]:
    """What run.json says of how the numbers came about."""
    cut = [row for row in rows if row.cut]
    return {
        **options.settings,
        "seed": options.seed,
        "models": {name: dict(backend.facts) for name, backend in models.named().items()},
        "texts": record_corpus(corpus),
        "counts": record_counts(models.counts),
        "cut": {
            "texts": len(cut),
            "tokens": sum(row.cut for row in cut),
            "of_tokens": sum(row.cut + row.tokens for row in rows),
            "ids": [row.text.id for row in cut[:50]],
        },
        "software": record_software(),
    }
