"""The texts a report shows token by token: the most and the least member-like ones."""

from __future__ import annotations

from pretrace.types import Backend, Heat, Text, Trace

SHOWN = 3
"""Texts from each end of the first score."""
PIECES = 400
"""Tokens shown of a text."""

_Ranked = tuple[float, int, Text, Trace]


class Extremes:
    """Keeps the texts with the highest and the lowest score as they come by, with their traces."""

    def __init__(self, shown: int = SHOWN) -> None:
        self.shown = shown
        self.seen = 0
        self._high: list[_Ranked] = []
        self._low: list[_Ranked] = []

    def offer(self, score: float, text: Text, trace: Trace) -> None:
        """One text with its score; equal scores rank in the order they come."""
        ranked = (-score, self.seen, text, trace)
        self.seen += 1
        if self.seen <= 2 * self.shown or score > -self._high[-1][0]:
            self._high = sorted([*self._high, ranked], key=_rank)[: 2 * self.shown]
        if self.seen <= 2 * self.shown or score <= -self._low[0][0]:
            self._low = sorted([*self._low, ranked], key=_rank)[-self.shown :]

    @property
    def ends(self) -> list[tuple[float, int, Text, Trace]]:
        """Every text that is kept, with its score and its place among those seen, from 0; highest score first."""
        kept = {ranked[1]: ranked for ranked in (*self._high, *self._low)}
        return [
            (-score, place, text, trace) for score, place, text, trace in sorted(kept.values(), key=_rank)
        ]

    def heat(self, backend: Backend) -> tuple[Heat, ...]:
        """Heat maps, highest score first: all texts where they are few, else so many from each end."""
        many = self.seen > 2 * self.shown
        best = self._high[: self.shown] if many else self._high
        places = list(enumerate(best, start=1))
        if many:
            places += enumerate(self._low, start=self.seen - self.shown + 1)
        return tuple(
            heat_of(text, trace, backend, note=f"rank {place} of {self.seen} by score, {label_words(text)}")
            for place, (_, _, text, trace) in places
        )


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


def _rank(ranked: _Ranked) -> tuple[float, int]:
    return ranked[:2]


def label_words(text: Text) -> str:
    """What is known of a text, in words."""
    return {True: "a known member", False: "a known non-member", None: "not labelled"}[text.member]
