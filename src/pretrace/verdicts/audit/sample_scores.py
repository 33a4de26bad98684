"""What models give for samples: log-probabilities, the target's gain over a placebo, and membership scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.errors import ModelError, TextsError
from pretrace.scoring.evidence import Progress, open_store, trace
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.statistics.intervals import difference_interval, mean_interval, standardised
from pretrace.statistics.permutation import PermutationTest, sign_flip_test, two_sample_test
from pretrace.types import Answer, Backend, Bools, Corpus, Doubles, Features, Null, Quantity, Text
from pretrace.verdicts.audit.snippets import Sample, Samples

SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""The shares of tokens at which the release takes min-k and max-k."""

_LIKELIHOOD = ("ppl", *(f"min_k(k={k})" for k in SHARES), *(f"max_k(k={k})" for k in SHARES), "zlib")
_DISTURBANCES = (
    ("typos", 0.1),
    ("deletion", 0.25),
    ("case", 0.25),
    ("whitespace", 0.25),
    ("underscore", 0.25),
)

RELEASE: tuple[str, ...] = (
    *_LIKELIHOOD,
    *(f"perturbed(kind='{kind}', share={share})" for kind, share in _DISTURBANCES),
)
"""The feature families of the releases (Maini et al. 2024; post-hoc DI section 2), as score expressions.

Shares are those the releases disturb their texts with, and ratios are of log-perplexities. They also replace words
by synonyms, which takes a dictionary of English and is left out here.
"""

PERPLEXITIES: tuple[str, ...] = (
    *_LIKELIHOOD,
    *(f"perturbed(kind='{kind}', share={share}, perplexity=True)" for kind, share in _DISTURBANCES),
)
"""The same with ratios of perplexities, as the releases take them; again without synonyms."""

COMMAND: tuple[str, ...] = (
    *(f"max_k(k={k})" for k in SHARES[2:5]),
    "perturbed(kind='deletion', share=0.25, perplexity=True)",
    "perturbed(kind='whitespace', share=0.25, perplexity=True)",
    "perturbed(kind='deletion', share=0.25, perplexity=True, difference=True)",
)
"""The six scores that the command shipped with post-hoc DI asks for. What its code calls min-k averages the lowest
losses, those of the most likely tokens: `max_k` here."""


def expressions(reference: bool, release: bool = False) -> tuple[str, ...]:
    """The membership scores of every sample; `reference` says whether there is a reference model, `release` asks for
    ratios of perplexities in place of log-perplexities, as the releases take them."""
    if release:
        return PERPLEXITIES + (("ref(perplexity=True)",) if reference else ())
    return RELEASE + (("ref",) if reference else ())


@dataclass(frozen=True, slots=True, eq=False)
class Logprobs:
    """The log-probabilities that one model gives to n samples: of each those of the tokens that count, in nats, and
    its size in UTF-8 `bytes` [n], for models whose tokens differ."""

    logp: tuple[Doubles, ...]
    bytes: npt.NDArray[np.int64]

    @property
    def total(self) -> Doubles:
        """Log-probability of each sample, in nats, [n]."""
        return np.array([one.sum() for one in self.logp])

    @property
    def tokens(self) -> npt.NDArray[np.int64]:
        """How many tokens of each sample count, [n]."""
        return np.array([len(one) for one in self.logp])

    @property
    def per_token(self) -> Doubles:
        """Mean log-probability a token, in nats, [n]."""
        return np.asarray(self.total / np.maximum(self.tokens, 1))

    @property
    def per_byte(self) -> Doubles:
        """Log-probability a byte, in nats, [n]."""
        return np.asarray(self.total / np.maximum(self.bytes, 1))

    def part(self, start: int, stop: int) -> Logprobs:
        """The same of some of the samples."""
        return Logprobs(self.logp[start:stop], self.bytes[start:stop])


@dataclass(frozen=True, slots=True, eq=False)
class SampleLogprobs:
    """The log-probabilities that one model gives to suspect and held-out samples."""

    suspect: Logprobs
    heldout: Logprobs


def logprobs(
    backend: Backend, samples: Sequence[Sample], *, cache: bool = True, progress: Progress | None = None
) -> Logprobs:
    """The log-probabilities of each sample given its prefix; ModelError where the model's length limit cuts one.

    Prefix and text are read as one: a token that reaches over the seam belongs to the text, whoever wrote it.
    """
    texts = [sample.prefix + sample.text for sample in samples]
    if progress:
        progress.begin(len(texts))
    with open_store(backend.fingerprint if cache else None) as store:
        traces = trace(backend, texts, Quantity.LOGP, store=store, progress=progress)
    logp = []
    for sample, text, one in zip(samples, texts, traces, strict=True):
        if one.cut:
            raise ModelError(
                f"{backend.name} reads at most {backend.max_tokens} tokens, and a snippet has more: take shorter "
                "snippets with --tokens, or raise --max-tokens."
            )
        ends = backend.spans(text)[:, 1]
        counts = ends[len(ends) - len(one) :] > len(sample.prefix)
        logp.append(one.logp[counts].astype(np.float64))
    return Logprobs(tuple(logp), np.array([len(one.text.encode("utf-8", "replace")) for one in samples]))


def sample_logprobs(
    backend: Backend, samples: Samples, *, cache: bool = True, progress: Progress | None = None
) -> SampleLogprobs:
    """The log-probabilities of suspect and held-out samples, read in one go; errors as in `logprobs`."""
    both = logprobs(backend, (*samples.suspect, *samples.heldout), cache=cache, progress=progress)
    n = len(samples.suspect)
    return SampleLogprobs(both.part(0, n), both.part(n, len(both.logp)))


def bytewise(target: Backend, placebo: Backend) -> bool:
    """Whether two models must be compared by the byte, since their tokens differ."""
    return placebo.tokenizer_hash != target.tokenizer_hash


def gain_scale(pairs: Sequence[tuple[Logprobs, Logprobs]], *, by_byte: bool = False) -> float:
    """The median size of all tokens' gains, in nats; `pairs` are of target and placebo."""
    gains = [gain for target, placebo in pairs for gain in _token_gains(target, placebo, by_byte=by_byte)]
    return float(np.median(np.abs(np.concatenate(gains)))) if gains else 0.0


def logprob_gains(target: Logprobs, placebo: Logprobs, scale: float, *, by_byte: bool = False) -> Doubles:
    """How much likelier the target finds each sample than the placebo does, no token counting for more than the
    median one: the mean over the tokens of gain / scale, cut to [-1, 1], float64 [n].

    A model that learns the habits of a domain gains much on a few tokens, and not on the same ones in true and in
    generated text; one that learns a text gains a little on many. Where tokens differ (`by_byte`) a whole sample
    stands for a token. Two models that agree on every token (`scale` 0) have no gain.
    """
    gains = _token_gains(target, placebo, by_byte=by_byte)
    if scale == 0.0:
        return np.zeros(len(gains))
    return np.array([np.clip(one / scale, -1, 1).mean() if len(one) else 0.0 for one in gains])


def features(
    samples: Samples,
    models: Models,
    expressions: Sequence[str],
    *,
    cache: bool = True,
    progress: Progress | None = None,
) -> Features:
    """The membership scores of all samples under `models`, each read by itself without what stands before it.

    Samples that give a model nothing to predict, or that a score means nothing for, are left out, of pairs both.
    TextsError where none is left, or where a score means nothing for all of them.
    """
    every = (*samples.suspect, *samples.heldout)
    numbered = tuple(Text(str(i), one.text) for i, one in enumerate(every))
    plan = ScorePlan.parse(expressions)
    plan.check_texts(Corpus("the pieces of the audit", numbered))
    matrix = _matrix(numbered, models, plan, cache=cache, progress=progress)
    n = len(samples.suspect)
    known: Bools = np.asarray(np.isfinite(matrix).all(axis=1))
    if samples.paired:
        known = np.tile(known[:n] & known[n:], 2)
    if not known[:n].any() or not known[n:].any():
        raise TextsError("no piece of the texts gives the model anything to predict: take longer snippets.")
    mine, theirs = (
        [sample for sample, good in zip(side, part, strict=True) if good]
        for side, part in ((samples.suspect, known[:n]), (samples.heldout, known[n:]))
    )
    return Features(
        names=tuple(expressions),
        suspect=matrix[:n][known[:n]],
        heldout=matrix[n:][known[n:]],
        suspect_texts=tuple(one.text for one in mine),
        heldout_texts=tuple(one.text for one in theirs),
        suspect_documents=tuple(one.document for one in mine),
        heldout_documents=tuple(one.document for one in theirs),
        paired=samples.paired,
    )


def _token_gains(target: Logprobs, placebo: Logprobs, *, by_byte: bool) -> list[Doubles]:
    if by_byte:
        return [np.array([value]) for value in target.per_byte - placebo.per_byte]
    return [mine - theirs for mine, theirs in zip(target.logp, placebo.logp, strict=True)]


def _matrix(
    texts: Sequence[Text], models: Models, plan: ScorePlan, *, cache: bool, progress: Progress | None
) -> Doubles:
    """One row a text, one column a score; NaN where a text gives a model nothing to predict."""
    scores = plan.fit(models, cache=cache, progress=progress)
    ready = list(scores.ready.values())
    with models.reader(scores.needs, plan=plan, cache=cache, progress=progress) as reader:
        rows = [[float("nan") if one.empty else score(one) for score in ready] for one in reader.read(texts)]
    return np.array(rows)


# One value a document, and the test on these values: samples of one document are not independent, documents are.
#
# The values depend on the design. "controls": how much likelier the target finds a document than the placebo does,
# in suspect and in control documents. "differences": the same of what stands there, less the same of what a
# generator wrote in its place, in suspect and in control documents. "placebos": that difference in suspect
# documents alone, less a margin, since a target that only knows the domain better than the placebo leans towards
# true text.


DRAWS = 10_000
BINS = 60
PAIRED = "sign-flip permutation test of document means, less a margin of {margin:.3g}"
UNPAIRED = "two-sample permutation test of document means"


@dataclass(frozen=True, slots=True, eq=False)
class DocumentValues:
    """The value of each suspect document, and of each control document where there are any.

    Without control documents `margin` has been taken off the values. `unit` names what they are measured in, `facts`
    are what else was found, in plain values.
    """

    documents: tuple[str, ...]
    values: Doubles
    heldout_documents: tuple[str, ...] = ()
    heldout_values: Doubles = field(default_factory=lambda: np.zeros(0))
    margin: float = 0.0
    unit: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def paired(self) -> bool:
        """Whether a value is a difference that is compared with 0, since there are no control documents."""
        return not self.heldout_documents


def permuted(found: DocumentValues, *, seed: int = 0, draws: int = DRAWS) -> PermutationTest:
    """The one-sided test that the suspect documents' values lie above 0, or above those of control documents."""
    if found.paired:
        return sign_flip_test(found.values, flips=draws, seed=seed)
    return two_sample_test(found.values, found.heldout_values, permutations=draws, seed=seed)


def p_value(found: DocumentValues, *, seed: int = 0, draws: int = DRAWS) -> float:
    """The p-value of `permuted`."""
    return permuted(found, seed=seed, draws=draws).p


def reversed_p(found: DocumentValues, *, seed: int = 0, draws: int = DRAWS) -> float:
    """The p-value of the opposite, that the values lie below by more than the margin: training cannot explain that."""
    values = -found.values - 2 * found.margin
    turned = DocumentValues(found.documents, values, found.heldout_documents, -found.heldout_values)
    return p_value(turned, seed=seed, draws=draws)


def flipped(found: DocumentValues, rng: np.random.Generator) -> DocumentValues:
    """The same values with the documents assigned to the two sides at random."""
    if found.paired:
        return DocumentValues(found.documents, found.values * rng.choice((-1.0, 1.0), len(found.values)))
    both = rng.permutation(np.concatenate([found.values, found.heldout_values]))
    n = len(found.documents)
    return DocumentValues(found.documents, both[:n], found.heldout_documents, both[n:])


def flipped_p(found: DocumentValues, rng: np.random.Generator) -> float:
    """The p-value of `permuted` for the values of `flipped`, from fewer draws."""
    return p_value(flipped(found, rng), draws=1_000, seed=int(rng.integers(1 << 31)))


def answer(found: DocumentValues, *, pieces: int, seed: int, facts: dict[str, object]) -> Answer:
    """The default procedure's answer on these values, of so many pieces of suspect text."""
    if found.paired:
        statistic = PAIRED.format(margin=found.margin)
        effect, size = mean_interval(found.values), standardised(found.values)
    else:
        statistic = UNPAIRED
        effect = difference_interval(found.values, found.heldout_values)
        size = standardised(found.values, found.heldout_values)
    return Answer(
        procedure="pretrace",
        p=p_value(found, seed=seed),
        statistic=statistic,
        documents=len(found.documents),
        pieces=pieces,
        effect=effect,
        unit=found.unit,
        standardised=size,
        facts={
            "permutations": DRAWS,
            "margin": found.margin,
            "control_documents": len(found.heldout_documents),
            **facts,
        },
    )


def null_of(found: DocumentValues, *, level: float, seed: int = 0) -> Null:
    """The distribution of the statistic that `answer` tested, as a histogram."""
    test = permuted(found, seed=seed)
    low, high = float(test.null.min()), float(test.null.max())
    if not low < high:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(test.null, BINS, (low, high))
    return Null(
        statistic="mean over its standard error, skewness taken out",
        observed=test.observed,
        critical=test.critical(level),
        edges=tuple(map(float, edges)),
        counts=tuple(map(int, counts)),
    )
