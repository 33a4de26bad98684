"""The texts of a run token by token: how likely the model found each piece."""

from __future__ import annotations

import math

from pretrace.report import wording
from pretrace.report.frame import Section, fill
from pretrace.report.heat import MAX_PIECES, heat_step, shown, summarise
from pretrace.types import Heat, Run

MOST_MAPS = 24


def tokens(run: Run) -> Section | None:
    """Token heat maps of the texts that the run kept for this; nothing where it kept none."""
    if not run.heat:
        return None
    maps = [_map(heat, run) for heat in run.heat[:MOST_MAPS]]
    values = {"maps": maps, "hidden": max(0, len(run.heat) - MOST_MAPS)}
    return Section("Texts, token by token", "tokens", fill("run/tokens.html", values))


def _map(heat: Heat, run: Run) -> dict[str, object]:
    """What the template prints of one text; its score is None where the text has no row."""
    pieces = zip(heat.pieces[:MAX_PIECES], heat.logp[:MAX_PIECES], strict=True)
    score = run.scores[0] if heat.id in run.ids and run.scores else None
    return {
        "id": heat.id,
        "note": heat.note,
        "summary": summarise(heat),
        "shown": min(len(heat.pieces), MAX_PIECES),
        "pieces": [(shown(piece), *_surprise(logp)) for piece, logp in pieces],
        "score": score and (score, float(run.column(score)[run.ids.index(heat.id)])),
    }


def _surprise(logp: float | None) -> tuple[str, str]:
    """The class of a token and its title."""
    step = heat_step(logp)
    if logp is None or step is None:
        return "hn", "not predicted: the model had nothing to read before it"
    probability = math.exp(min(logp, 0.0))
    odds = wording.one_in(probability)
    title = f"log-probability {wording.fixed(logp)} nats; probability {wording.significant(probability, 3)}"
    return f"h{step}", f"{title} ({odds})" if odds else title
