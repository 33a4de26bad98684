"""The texts a report shows token by token: the most and the least member-like ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pretrace.tracing import Asker
from pretrace.types import Backend, Doubles, Heat, Text, Trace

SHOWN = 3
"""Texts from each end of the first score."""
PIECES = 400
"""Tokens shown of a text."""


def examples(texts: Sequence[Text], score: Doubles, asker: Asker) -> tuple[Heat, ...]:
    """Heat maps of the texts with the highest and lowest score, highest first; `score` is [texts]."""
    order = np.argsort(-score, kind="stable")
    many = len(order) > 2 * SHOWN
    chosen = [int(i) for i in (np.concatenate([order[:SHOWN], order[-SHOWN:]]) if many else order)]
    backend = asker.models["target"]
    shown = []
    for place, (i, evidence) in enumerate(
        zip(chosen, asker.ask([texts[i] for i in chosen]), strict=True), start=1
    ):
        rank = place if place <= SHOWN or not many else len(order) - len(chosen) + place
        note = f"rank {rank} of {len(order)} by score, {_label(texts[i])}"
        shown.append(heat_of(texts[i], evidence.plain, backend, note=note))
    return tuple(shown)


def heat_of(
    text: Text, trace: Trace, backend: Backend, *, note: str = "", limit: int | None = PIECES
) -> Heat:
    """One text as pieces with their log-probabilities; what lies beyond `limit` tokens is left out and said."""
    spans = backend.spans(text.text)
    read = len(spans) - trace.cut
    unpredicted = max(0, read - len(trace))  # the first token, where no start token stands before it
    values = [None] * unpredicted + [float(value) for value in trace.logp]
    shown = read if limit is None else min(read, limit)
    pieces = [text.text[start:end] for start, end in spans[:shown]]
    if shown < len(spans):
        note = f"{note}; first {shown} of {len(spans)} tokens shown".removeprefix("; ")
    return Heat(text.id, tuple(pieces), tuple(values[:shown]), note)


def _label(text: Text) -> str:
    return {True: "a known member", False: "a known non-member", None: "not labelled"}[text.member]
