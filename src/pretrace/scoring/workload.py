"""What a run will cost: requests and tokens of each model, counted with its tokenizer before any text is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from operator import add

import numpy as np

from pretrace.backends.serving.address import served_kind
from pretrace.cache.location import text_key
from pretrace.rewrites import After, Neighbors
from pretrace.scoring.evidence import CHUNK, Want, encoded_for, open_store, remaining_batches
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.types import Backend, Corpus, Needs, Quantity, Trace, View


@dataclass(frozen=True, slots=True)
class Workload:
    """What one model will be asked: `requests` (batches, where its weights are here) with `tokens` of `passes` forms
    of texts. `known` are forms whose answers are on disk already."""

    model: str
    requests: int
    tokens: int
    passes: int
    known: int

    def __add__(self, other: Workload) -> Workload:
        """The work of both, for the same model."""
        (_, *mine), (_, *theirs) = astuple(self), astuple(other)
        return Workload(self.model, *map(add, mine, theirs))

    @property
    def line(self) -> str:
        """The workload as a sentence."""
        what = "requests" if served_kind(self.model) else "batches"
        kept = f"; {self.known:,} more are answered already" if self.known else ""
        size = (
            f"{self.requests:,} {what} with {self.tokens:,} tokens, {self.passes:,} texts and forms of texts"
        )
        return f"{self.model}: {size}{kept}"


def workload(
    corpus: Corpus, models: Models, plan: ScorePlan, *, labelled: Corpus | None = None, cache: bool = True
) -> tuple[Workload, ...]:
    """The work of each model for these scores: the target's, its companions' and the placebo's.

    Texts go through no model. A rewrite whose words a model proposes is counted with the length of the text itself.
    What a model tuned later is asked counts for the target.
    """
    found: list[Workload] = []
    for some in (models, models.placebo):
        if some is not None:
            named = some.named()
            for name, backend in named.items():
                mine = _of_model(plan.needs, name, named)
                reference = _of_model(plan.reference, name, named) if labelled else ()
                found.append(_work(backend, plan, ((corpus, mine), (labelled, reference)), cache))
    return tuple(found)


def _of_model(needs: Needs, name: str, named: dict[str, Backend]) -> tuple[tuple[View, Quantity], ...]:
    found = (
        (view, quantity)
        for view, quantity in needs.views.items()
        if quantity and (view.model == name or (name == "target" and view.model not in named))
    )
    return tuple(sorted(found, key=lambda one: one[0].rewrite != "plain"))  # as they are read


def _work(
    backend: Backend,
    plan: ScorePlan,
    parts: Sequence[tuple[Corpus | None, tuple[tuple[View, Quantity], ...]]],
    cache: bool,
) -> Workload:
    requests = tokens = passes = known = 0
    nothing = np.zeros(0, dtype=np.float32)
    later = Trace(nothing.astype(np.int32), nothing)  # what this run itself will have answered by then
    seen: set[bytes] = set()
    with open_store(backend.fingerprint if cache else None) as store:
        for corpus, views in parts:
            for view, quantity in views if corpus is not None else ():
                form = plan.rewrites[view.rewrite]
                for texts in _forms(corpus, view, plan):
                    encoded = encoded_for(backend, texts, Want(quantity))
                    # what will stand before the texts follows from fitting; it is read once
                    keys = [text_key(text, form.name if isinstance(form, After) else "") for text in texts]
                    there = store.get(keys, quantity)
                    known += sum(one is not None for one in there)
                    there = [
                        later if one is None and key in seen else one
                        for key, one in zip(keys, there, strict=True)
                    ]
                    left = remaining_batches(backend, encoded, there)
                    seen |= set(keys) if cache else set()
                    requests += len(left)
                    tokens += sum(encoded[i].length for batch in left for i in batch)
                    passes += sum(map(len, left))
    return Workload(backend.name, requests, tokens, passes, known)


def _forms(corpus: Corpus | None, view: View, plan: ScorePlan) -> Iterator[list[str]]:
    """The forms of the texts that a view reads, as many at once as a run reads."""
    rewrite = plan.rewrites[view.rewrite]
    texts = [text.text for text in corpus.texts] if corpus is not None else []
    for start in range(0, len(texts), CHUNK):
        some = texts[start : start + CHUNK]
        if isinstance(rewrite, Neighbors):
            yield [text for text in some for _ in range(rewrite.count)]
        else:
            yield [form for forms in rewrite(some, None) for form in forms]
