"""Which texts of a corpus a model is tuned on, and what it reads of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pretrace.errors import TextsError
from pretrace.tuning.methods import Method, On
from pretrace.types import Backend, Corpus, Text


@dataclass(frozen=True, slots=True)
class Selection:
    """Texts to tune on, in an order that is theirs alone, each with the token ids that are read of it.

    `cut_texts` of them were cut, by `cut_tokens` in all. `left_out` names texts with nothing to predict.
    """

    texts: tuple[Text, ...]
    sequences: tuple[tuple[int, ...], ...]
    cut_texts: int
    cut_tokens: int
    left_out: tuple[str, ...]


def select(corpus: Corpus, backend: Backend, method: Method, *, seed: int) -> Selection:
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
    kept = [kept[i] for i in _drawn(len(kept), method, seed=seed, corpus=corpus.name)]
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
    if on == "all" or all(label is None for label in labels):
        texts = list(corpus.texts)
    else:
        texts = [text for text in corpus.texts if text.member is (on == "members")]
    if not texts:
        wanted = {"members": "known members", "nonmembers": "known non-members", "all": "texts"}[on]
        cure = "give it some." if on == "all" or not labels else f"give it some, or choose {_OTHERS[on]}."
        raise TextsError(f"tuning on={on!r} wants {wanted}, and {corpus.name} has {_counted(labels)}: {cure}")
    return texts


_OTHERS = {"members": "on='nonmembers' or on='all'", "nonmembers": "on='members' or on='all'"}


def _counted(labels: Sequence[bool | None]) -> str:
    if not labels:
        return "no texts"
    names = {True: "members", False: "non-members", None: "texts without a label"}
    return ", ".join(f"{labels.count(label)} {name}" for label, name in names.items() if label in labels)


def _drawn(found: int, method: Method, *, seed: int, corpus: str) -> list[int]:
    if method.limit == 0:
        return []
    if not found:
        raise TextsError(f"tuning wants texts of 2 tokens or more, and none in {corpus} has as many.")
    if method.limit is None:
        return list(range(found))
    if method.limit > found:
        raise TextsError(
            f"tuning with limit={method.limit} wants as many texts, and {corpus} has {found} for "
            f"on={method.on!r}: choose a limit of {found} or less, or give it more texts."
        )
    return sorted(np.random.default_rng(seed).permutation(found)[: method.limit].tolist())
