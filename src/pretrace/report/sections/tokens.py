"""Token heat maps: what the model expected of each text and what surprised it."""

from __future__ import annotations

import math

from pretrace.report import wording
from pretrace.report.heat import MAX_PIECES, heat_step, shown, summarise
from pretrace.report.sections import Section
from pretrace.report.templating import fill
from pretrace.types import Heat, Run

ORDER = 60
_MAPS = 24


def section(run: Run) -> Section | None:
    """One heat map a text that the run kept for this; nothing where it kept none."""
    if not run.heat:
        return None
    values = {"maps": [_map(heat, run) for heat in run.heat[:_MAPS]], "hidden": max(0, len(run.heat) - _MAPS)}
    return Section("Texts, token by token", "tokens", fill("tokens.html", values))


def _map(heat: Heat, run: Run) -> dict[str, object]:
    """What the template prints of one text."""
    pieces = zip(heat.pieces[:MAX_PIECES], heat.logp[:MAX_PIECES], strict=True)
    return {
        "id": heat.id,
        "note": heat.note,
        "summary": summarise(heat),
        "shown": min(len(heat.pieces), MAX_PIECES),
        "pieces": [(shown(piece), _class(logp), _title(logp)) for piece, logp in pieces],
        "score": _score(heat.id, run),
    }


def _class(logp: float | None) -> str:
    step = heat_step(logp)
    return "hn" if step is None else f"h{step}"


def _title(logp: float | None) -> str:
    if logp is None or heat_step(logp) is None:
        return "not predicted: the model had nothing to read before it"
    probability = math.exp(min(logp, 0.0))
    odds = wording.one_in(probability)
    title = f"log-probability {wording.fixed(logp)} nats; probability {wording.significant(probability, 3)}"
    return f"{title} ({odds})" if odds else title


def _score(name: str, run: Run) -> tuple[str, float] | None:
    """The first score and its value for the text; None where the text has no row."""
    if name not in run.ids or not run.scores:
        return None
    return run.scores[0], float(run.column(run.scores[0])[run.ids.index(name)])
