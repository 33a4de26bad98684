"""Which sequences make up each step of a training, and how far the learning rate has come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.results.wording import say
from pretrace.statistics.documents import link_documents
from pretrace.tuning.plan import On, TrainingPlan, TuningMethod
from pretrace.types import Backend, Corpus, Text


def windows(tokens: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Consecutive windows of at most `max_tokens` (2 or more) tokens; none where there is nothing to predict.

    Each begins with the last token of the one before, so every token but the very first is predicted
    exactly once.

    >>> windows([1, 2, 3, 4, 5, 6], 4)
    [[1, 2, 3, 4], [4, 5, 6]]
    """
    return [list(tokens[i : i + max_tokens]) for i in range(0, len(tokens) - 1, max_tokens - 1)]


@dataclass(frozen=True, slots=True)
class Selection:
    """Texts to tune on, in an order that is theirs alone, with the token ids read of each: `cut_texts` of them
    were cut, by `cut_tokens` in all. `left_out` names texts with nothing to predict."""

    texts: tuple[Text, ...]
    sequences: tuple[tuple[int, ...], ...]
    cut_texts: int
    cut_tokens: int
    left_out: tuple[str, ...]


def select(corpus: Corpus, backend: Backend, method: TuningMethod, *, seed: int) -> Selection:
    """The texts of the side the method wants, as the back end reads them, `limit` of them at random.

    Nothing depends on the order of the corpus, and a larger limit with the same seed adds texts to those
    of a smaller one. TextsError where no text is left, or fewer than the limit.
    """
    side = _side(corpus, method.on) if method.limit != 0 else []
    # By content: copies of one text are alike to the training, whatever they are called.
    side = sorted(side, key=lambda text: (text.text, text.id))
    encoded = backend.encode([text.text for text in side])
    kept, left_out = [], []
    for text, e in zip(side, encoded, strict=True):
        read = min(e.length, method.max_tokens or e.length)
        if read > max(1, len(e.prefix)):
            ids = [*e.prefix.tolist(), *e.tokens.tolist()][:read]
            kept.append((text, tuple(ids), e.cut + e.length - read))
        else:
            left_out.append(text.id)
    limit, found = method.limit, len(kept)
    if limit != 0 and not found:
        raise TextsError(say("tuning.short", corpus=corpus.name))
    if limit is not None and limit > found:
        raise TextsError(say("tuning.few", limit=limit, corpus=corpus.name, found=found, on=method.on))
    if limit is not None:
        kept = [kept[i] for i in sorted(np.random.default_rng(seed).permutation(found)[:limit].tolist())]
    return Selection(
        texts=tuple(text for text, _, _ in kept),
        sequences=tuple(ids for _, ids, _ in kept),
        cut_texts=sum(cut > 0 for _, _, cut in kept),
        cut_tokens=sum(cut for _, _, cut in kept),
        left_out=tuple(left_out),
    )


def _side(corpus: Corpus, on: On) -> list[Text]:
    """The texts with the label wanted, or all where `on` says so or no text has a label."""
    labels = [text.member for text in corpus.texts]
    every = on == "all" or all(label is None for label in labels)
    texts = [text for text in corpus.texts if every or text.member is (on == "members")]
    if not texts:
        wanted = {"members": "known members", "nonmembers": "known non-members", "all": "texts"}[on]
        other = {"members": "nonmembers", "nonmembers": "members"}.get(on)
        cure = f"give it some, or choose on={other!r} or on='all'." if other and labels else "give it some."
        names = {True: "members", False: "non-members", None: "texts without a label"}
        counted = [f"{labels.count(label)} {name}" for label, name in names.items() if label in labels]
        found = ", ".join(counted) or "no texts"
        raise TextsError(say("tuning.side", on=on, wanted=wanted, corpus=corpus.name, found=found, cure=cure))
    return texts


def split_members(corpus: Corpus, share: float = 0.5, seed: int = 0) -> Corpus:
    """The corpus with every text labelled: whole groups drawn at random are members, about `share` of the
    characters, the rest are not. Groups are taken in a random order until another would lead further away, so that
    none is passed over for its size; those with a text in common are drawn as one. The draw depends on the groups'
    names and sizes and the seed. TextsError where there is nothing to divide, ExpressionError unless 0 < share <
    1."""
    require(0 < share < 1, f"the members' share of the text must be between 0 and 1, found {share}.")
    require(seed >= 0, f"a seed is 0 or more, found {seed}.")
    document = link_documents(corpus.texts)
    sizes: dict[str, int] = dict.fromkeys(sorted(set(document.values())), 0)
    for text in corpus.texts:
        sizes[document[text.document]] += len(text.text)
    if len(sizes) < 2:
        found = f"1 group with {len(corpus)} texts" if corpus.texts else "no texts"
        why = "shared" if len(document) >= 2 else "indivisible"
        raise TextsError(say(f"tuning.{why}", documents=len(document), corpus=corpus.name, found=found))
    names = list(sizes)
    order = np.random.default_rng(seed).permutation(len(names))
    reached = np.cumsum([sizes[names[i]] for i in order])
    # At least one group on either side; the first of equally near places, so the answer is one.
    taken = int(np.argmin(np.abs(reached[:-1] - share * reached[-1]))) + 1
    members = {names[i] for i in order[:taken]}
    texts = tuple(replace(text, member=document[text.document] in members) for text in corpus.texts)
    return replace(corpus, texts=texts)


# Sequences are sorted by length within buckets of so many batches: wide enough that little is padded,
# narrow enough that the batches of an epoch stay a random draw.
_BUCKET_BATCHES = 16


def epoch_batches(lengths: npt.NDArray[np.int64], plan: TrainingPlan, *, epoch: int) -> list[list[int]]:
    """The batches of one epoch as lists of row numbers: every row once, rows of like length together. Depends on the
    seed, the epoch and the lengths alone: nothing has to be saved."""
    generator = np.random.default_rng([plan.seed, epoch])
    order = generator.permutation(len(lengths))
    batches: list[list[int]] = []
    for start in range(0, len(order), plan.batch * _BUCKET_BATCHES):
        bucket = order[start : start + plan.batch * _BUCKET_BATCHES]
        bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
        batches += [bucket[i : i + plan.batch].tolist() for i in range(0, len(bucket), plan.batch)]
    return [batches[i] for i in generator.permutation(len(batches))]


def pieces(batch: Sequence[int], lengths: npt.NDArray[np.int64], *, at_once: int) -> list[list[int]]:
    """The rows of a batch in runs of at most `at_once` padded tokens, one row at least in each."""
    runs: list[list[int]] = []
    longest = 0
    for row in batch:
        longest = max(longest, int(lengths[row]))
        if not runs or longest * (len(runs[-1]) + 1) > at_once:
            runs.append([])
            longest = int(lengths[row])
        runs[-1].append(row)
    return runs


def rate(plan: TrainingPlan, *, step: int, steps: int) -> float:
    """The learning rate of a step counted from 0: a linear rise over the warm-up, then the schedule."""
    warmup = min(steps - 1, round(plan.warmup * steps) if plan.warmup < 1 else int(plan.warmup))
    if step < warmup:
        return plan.learning_rate * (step + 1) / (warmup + 1)
    if plan.schedule == "constant":
        return plan.learning_rate
    gone = (step - warmup) / (steps - warmup)
    left = 0.5 * (1 + math.cos(math.pi * gone)) if plan.schedule == "cosine" else 1 - gone
    return plan.learning_rate * left
