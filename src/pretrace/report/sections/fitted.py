"""What the detectors were fitted on, and what was found there: FSD's tuning, neurons, probes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from pretrace.report import fitted_plots as plots
from pretrace.report import wording
from pretrace.report.facts import elsewhere
from pretrace.report.fitted import Facts, brief, fitted, numbers
from pretrace.report.sections import Section
from pretrace.report.sections.settings import flattened
from pretrace.report.svg import to_svg
from pretrace.report.templating import fill
from pretrace.types import Run

ORDER = 45
_ADAPTER = {
    "method.expression": "Method",
    "corpus": "Corpus",
    "texts": "Texts",
    "groups": "Documents",
    "nonmembers": "Non-members",
    "members": "Members",
    "tokens": "Tokens",
    "steps": "Steps",
    "parameters": "Weights trained",
    "seed": "Seed",
}
"""What is told of an adapter, and how; the settings have the rest."""
_PREFIX = re.compile(r"^(settings|reference)\.")
_FIGURES = ("neurons", "probe", "sensitivity")


def section(run: Run) -> Section | None:
    """FSD's tuning and one part a fitted score; nothing where nothing was fitted."""
    adapter = run.settings.get("adapter")
    scores = [_score(facts, number) for number, facts in enumerate(fitted(run))]
    if not scores and not isinstance(adapter, Mapping):
        return None
    values = {
        "scores": scores,
        "adapter": _adapter(adapter) if isinstance(adapter, Mapping) else None,
        "controlled": elsewhere(run),
    }
    return Section("What the detectors were fitted on", "fitted", fill("fitted.html", values))


def _adapter(card: Mapping[str, Any]) -> dict[str, object]:
    """What the template prints of a tuning."""
    known = dict(flattened(brief(card)))
    method = card.get("method")
    if "method.expression" not in known and method:
        known["method.expression"] = (
            ", ".join(f"{name} {value}" for name, value in flattened(brief(method)))
            if isinstance(method, Mapping)
            else str(method)
        )
    losses = numbers(card.get("losses"))
    return {
        "facts": [(words, _spaced(known[name])) for name, words in _ADAPTER.items() if name in known],
        "losses": losses,
        "plot": to_svg(plots.losses(losses), name="losses", label="Loss by epoch") if losses else None,
    }


def _spaced(value: str) -> str:
    return wording.count(int(value)) if re.fullmatch(r"[0-9]{4,18}", value) else value


def _score(facts: Facts, number: int) -> dict[str, object]:
    """What the template prints of one fitted score."""
    return {
        "facts": facts,
        "grid": plots.is_grid(facts.sensitivity, facts.used),
        "others": _others(facts),
        "figures": dict.fromkeys(_FIGURES) | dict(_figures(facts, number)),
    }


def _others(facts: Facts) -> list[tuple[str, str]]:
    pairs = flattened(facts.others)
    return [(_PREFIX.sub("", name).replace("_", " "), value) for name, value in pairs if value != "none"]


def _figures(facts: Facts, number: int) -> Iterator[tuple[str, Markup]]:
    if facts.neurons:
        label = f"Member and non-member neurons of {len(facts.neurons)} layers for {facts.name}"
        yield "neurons", to_svg(plots.neurons(facts.neurons), name=f"neurons-{number}", label=label)
    if facts.probe:
        label = f"AUC of the probe of {len(facts.probe)} layers for {facts.name}"
        yield "probe", to_svg(plots.probe(facts.probe, facts.chosen), name=f"probe-{number}", label=label)
    if facts.sensitivity:
        label = f"AUC under {len(facts.sensitivity)} settings of {facts.name}"
        figure = plots.sensitivity(facts.sensitivity, facts.used)
        yield "sensitivity", to_svg(figure, name=f"sensitivity-{number}", label=label)
