"""Texts as coloured tokens: one scale for the page and for the terminal.

The colour says how likely the model held the token that stands there, in six steps of probability. The steps grow
darker as the token grows more surprising, so they survive a grey printer; the ink on them stays readable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from rich.console import Console
from rich.style import Style
from rich.text import Text as Line

from pretrace.errors import shown as spelled_out
from pretrace.results import wording
from pretrace.results.wording import named, shortened
from pretrace.types import Heat

MAX_PIECES = 600
_MOST_SURPRISING = 5
_MAX_PIECE = 200
"""Characters of one piece that are shown; a token of ordinary text has a dozen."""

UNSEEN = "#e4e4e8"
# A terminal may be dark or light: only what surprises is marked, by colours that stand out on both.
_TERMINAL = (
    Style.null(),
    Style.null(),
    Style(underline=True),
    Style(color="#ffffff", bgcolor="#7d5a1e"),
    Style(color="#ffffff", bgcolor="#b4560f"),
    Style(color="#ffffff", bgcolor="#c62f1e", bold=True),
)


class _HeatStep(NamedTuple):
    """One step of the scale: probabilities from `floor` up to the step before."""

    floor: float
    colour: str
    words: str


STEPS = (
    _HeatStep(0.5, "#ffffff", "1 in 2"),
    _HeatStep(0.1, "#fff1cf", "1 in 10"),
    _HeatStep(0.01, "#fedd9a", "1 in 100"),
    _HeatStep(0.001, "#fdbd68", "1 in 1,000"),
    _HeatStep(0.0001, "#f2953a", "1 in 10,000"),
    _HeatStep(0.0, "#dd6f1e", "less"),
)
_CEILINGS = tuple(math.log(step.floor) for step in STEPS[:-1])


def heat_step(logp: float | None) -> int | None:
    """The index in STEPS of a log-probability in nats; None where the model predicted nothing."""
    if logp is None or math.isnan(logp):
        return None
    return next((i for i, ceiling in enumerate(_CEILINGS) if logp >= ceiling), len(STEPS) - 1)


def heat_lines(heat: Heat, console: Console) -> Iterator[Line]:
    """A text's tokens by how surprising each was, then a legend and the figures. Where the console has no colour,
    tokens below 1 in 1,000 stand in ⟦brackets⟧, below 1 in 10,000 in two."""
    plain = console.no_color or console.color_system is None
    head = Line(named(heat.id), style="bold")
    if heat.note:
        head.append(f"  {spelled_out(heat.note)}", style="not bold italic")
    yield from (head, _body(heat, plain))
    if len(heat.pieces) > MAX_PIECES:
        yield Line(f"… the first {MAX_PIECES} of {wording.count(len(heat.pieces))} tokens")
    legend = Line("⟦token⟧ held less likely than 1 in 1,000, ⟦⟦token⟧⟧ than 1 in 10,000")
    if not plain:
        legend = Line("probability at least")
        for step, style in list(zip(STEPS, _TERMINAL, strict=True))[1:]:
            legend.append("  ").append(step.words, style)
    yield from (Line(), legend, _figures(heat))


def shown(piece: str) -> str:
    """A piece as it is displayed: unseen characters spelled out, line ends and tabs marked and kept."""
    text = spelled_out(shortened(piece, _MAX_PIECE).replace("\r\n", "\n"), keep="\n\t")
    return text.replace("\n", "↵\n").replace("\t", "→\t") or "·"


def _body(heat: Heat, plain: bool) -> Line:
    line = Line(overflow="fold")
    for token, logp in zip(heat.pieces[:MAX_PIECES], heat.logp[:MAX_PIECES], strict=True):
        piece, step = shown(token), heat_step(logp)
        if not plain:
            line.append(piece, Style(dim=True) if step is None else _TERMINAL[step])
            continue
        depth = max(0, (step or 0) - 3)
        # The mark goes inside the space before a word and the line's end after it, where the eye looks for it.
        core = piece.strip(" \n") or piece
        before, _, after = piece.partition(core)
        line.append(f"{before}{'⟦' * depth}{core}{'⟧' * depth}{after}")
    return line


def _figures(heat: Heat) -> Line:
    known, mean = heat.predicted, heat.mean_logp
    if mean is None:
        return Line(f"{wording.plural(len(heat.pieces), 'token')}, none of them predicted")
    said = (
        f"{wording.plural(len(known), 'token')} predicted · mean log-probability {wording.fixed(mean)} nats"
    )
    flat = [
        (shown(piece).replace("\n", "").replace("\t", ""), logp)
        for piece, logp in sorted(known, key=lambda pair: pair[1])[:_MOST_SURPRISING]
    ]
    worst = ", ".join(f"“{shortened(piece, 40)}” ({wording.fixed(logp, 1)})" for piece, logp in flat)
    return Line(f"{said} · perplexity {wording.perplexity(mean)}\nmost surprising: {worst}")
