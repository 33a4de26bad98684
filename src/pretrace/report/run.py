"""The report of a run: one self-contained HTML file, no script, no network, the same run the same bytes.

A section gives a heading and markup, or None where the run has nothing to say on it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pretrace.report import figures
from pretrace.report.figures import to_svg
from pretrace.report.frame import (
    UNNAMED,
    Pages,
    Sections,
    flattened,
    make_pages,
    of_model,
    rounded,
    section,
    served,
    settings_rows,
    speaking,
    titled,
    without_tables,
)
from pretrace.report.heat import MAX_PIECES, heat_step, shown
from pretrace.results import wording
from pretrace.results.folder import mapping
from pretrace.results.run import axis_range, counts
from pretrace.types import Measured, Run

_MOST_MAPS = 24


def _many(run: Run) -> bool:
    """Whether an evaluation has so many scores that their curves and shapes are for the appendix."""
    return run.evaluation is not None and len(run.scores) > FEW


@section("Texts, token by token", "tokens", "run/tokens.html", appendix=_many)
def tokens(run: Run) -> dict[str, Any] | None:
    """Token heat maps of the texts that the run kept for this; nothing where it kept none."""
    maps = []
    for heat in run.heat[:_MOST_MAPS]:
        pieces = zip(heat.pieces[:MAX_PIECES], heat.logp[:MAX_PIECES], strict=True)
        score = run.scores[0] if heat.id in run.ids and run.scores else None
        own = {
            "heat": heat,
            "pieces": [(shown(piece), *_surprise(logp)) for piece, logp in pieces],
            "score": score and (score, float(run.column(score)[run.ids.index(heat.id)])),
        }
        maps.append(own)
    return {"maps": maps, "hidden": len(run.heat) - len(maps)} if maps else None


def _surprise(logp: float | None) -> tuple[str, str]:
    """The class and the title of a token."""
    step = heat_step(logp)
    if logp is None or step is None:
        return "hn", "not predicted: the model had nothing to read before it"
    probability = math.exp(min(logp, 0.0))
    odds = wording.one_in(probability)
    title = f"log-probability {wording.fixed(logp)} nats; probability {wording.significant(probability, 3)}"
    return f"h{step}", f"{title} ({odds})" if odds else title


_MOST_SKIPPED = 50
_FEWEST_FOR_HISTOGRAM = 5
"""Below this a histogram shows the texts, not a distribution; the table of texts says more."""
_COLUMNS, _EDGE = 4, 10
FEW = 6
"""Scores of an evaluation up to which curves, shapes and comparisons are printed with the report."""
_LABELS = {"member": True, "nonmember": False, "unlabelled": None}
_LABEL_WORDS = {True: "known member", False: "known non-member", None: "no label"}
_CARD = {"size": "Size", "licence": "Licence", "citation": "Source", "home": "Where"}
_ADDRESS = re.compile(r"https?://[^\s\"'<>]+")


@section("Summary", "summary", "run/summary.html")
def _summary(run: Run) -> dict[str, Any]:
    """What was asked, of which model and which texts, and what was found."""
    return {
        "run": run,
        "counts": counts(run),
        "model": _model_name(run),
        "others": {role: name for role, name in _model_names(run).items() if role != "target"},
        "weights": str(of_model(run, "target").get("weights") or ""),
        "hash": str(mapping(run.settings.get("texts")).get("sha256") or ""),
        "served": served(run.settings),
    }


@section("The benchmark", "benchmark", "run/benchmark.html")
def _benchmark(run: Run) -> dict[str, Any] | None:
    """The card of a published benchmark: what its texts are, and what a figure on them does not show."""
    card = mapping(run.settings.get("texts")).get("card")
    if not isinstance(card, Mapping):
        return None
    flaws, home = card.get("flaws") or (), str(card.get("home") or "")
    return {
        "title": str(card.get("title") or run.corpus),
        "what": str(card.get("what") or ""),
        "flaws": list(map(str, flaws)) if isinstance(flaws, list | tuple) else [str(flaws)],
        "facts": {name: str(card[key]) for key, name in _CARD.items() if card.get(key)},
        "link": home if _ADDRESS.fullmatch(home) else "",
    }


@section("Results", "results", "run/results.html")
def _results(run: Run) -> dict[str, Any] | None:
    """How well each score told members from non-members, in a table and a plot; nothing without an evaluation."""
    rows = _compared(run)
    if run.evaluation is None or not rows:
        return None
    label = f"AUC of {len(rows)} rows with 95% intervals; the same numbers stand in the table."
    return {
        "evaluation": run.evaluation,
        "texts": counts(run)["texts"],
        "scores": [row for row in rows if row.kind == "score"],
        "controls": [row for row in rows if row.kind != "score"],
        "strongest": _control(run),
        "elsewhere": _elsewhere(run),
        "with_low": any(row.tpr_low is not None for row in rows),
        "forest": to_svg(figures.forest(rows), name="forest", label=label),
    }


@section("AUC by the number of copies", "copies", "run/copies.html")
def _by_copies(run: Run) -> dict[str, Any] | None:
    """The AUC of each score for members with so many copies in the training data; nothing where none were counted."""
    found = run.evaluation.by_copies if run.evaluation else ()
    if not found:
        return None
    spans = sorted({(one.least, one.most) for one in found})
    members = {least: max(one.members for one in found if one.least == least) for least, _ in spans}
    cells, scored = {(one.score, one.least): one.auc for one in found}, {one.score for one in found}
    rows = [(name, [cells.get((name, least)) for least, _ in spans]) for name in run.scores if name in scored]
    return {"spans": [(least, most, members[least]) for least, most in spans], "rows": rows}


@section("Controls", "controls", "run/controls.html")
def _controls(run: Run) -> dict[str, Any] | None:
    """What the scores reach on a model that never saw the members, and with shuffled labels; nothing without either."""
    rows = run.evaluation.rows if run.evaluation else ()
    by_kind = {kind: {row.name: row for row in rows if row.kind == kind} for kind in ("placebo", "shuffled")}
    found = [
        (row, {kind: one for kind, of in by_kind.items() if (one := of.get(row.name))})
        for row in rows
        if row.kind == "score" and any(row.name in of for of in by_kind.values())
    ]
    if not found or run.evaluation is None:
        return None
    label = f"AUC of {len(found)} scores beside their controls; the same numbers stand in the tables."
    lanes = [(row.name, {one.kind: one.auc for one in (row, *beside.values())}) for row, beside in found]
    return {
        "placebos": [(row, beside["placebo"]) for row, beside in found if "placebo" in beside],
        "shuffled": [(row, beside["shuffled"]) for row, beside in found if "shuffled" in beside],
        "repeats": {c.score: c.values.shape[1] for c in run.controls if c.kind == "shuffled"},
        "placebo": _model_names(run).get("placebo", ""),
        "evaluation": run.evaluation,
        "plot": to_svg(figures.across(lanes, room=0.75), name="controls", label=label),
    }


@section("ROC curves", "roc", "run/curves.html", appendix=_many)
def _curves(run: Run) -> dict[str, Any] | None:
    """ROC curves on linear and on logarithmic axes with one legend; nothing without an evaluation."""
    rows, evaluation = _compared(run), run.evaluation
    if evaluation is None or not rows:
        return None
    drawn = list(zip(rows, figures.strokes(rows), strict=True))
    # The logarithmic axes start at half of the smallest rate that a single text can make.
    log = figures.roc(rows, floor=0.5 / max(10, evaluation.nonmembers, evaluation.members))
    return {
        "linear": to_svg(figures.roc(rows), name="roc", label="ROC curves, linear axes"),
        "logarithmic": to_svg(log, name="roc-log", label="ROC curves, logarithmic axes"),
        "drawn": [(row, stroke) for row, stroke in drawn if stroke.colour != figures.REST],
        "rest": sum(stroke.colour == figures.REST for _, stroke in drawn),
        "rest_colour": figures.REST,
        "chance_colour": figures.CHANCE,
        "nonmembers": evaluation.nonmembers,
    }


@section("Is one score better than another?", "comparisons", "run/comparisons.html", appendix=_many)
def _comparisons(run: Run) -> dict[str, Any] | None:
    """The differences in AUC from the score fixed beforehand; nothing without an evaluation of two scores or more."""
    if run.evaluation is None or not run.evaluation.comparisons:
        return None
    found = run.evaluation.comparisons
    ordered = sorted(found, key=lambda one: -one.difference.value)
    return {"found": ordered, "first": found[0], "resamples": run.evaluation.resamples}


@section("Distributions of the scores", "distributions", "run/distributions.html", appendix=_many)
def _distributions(run: Run) -> dict[str, Any] | None:
    """How each score is distributed over the texts: one small histogram a score; nothing for a handful of texts."""
    sampled, run = run.whole.sampled if run.whole else 0, _drawn(run)
    if len(run.ids) < _FEWEST_FOR_HISTOGRAM or not run.scores:
        return None
    masks = {kind: np.array([member is label for member in run.members]) for kind, label in _LABELS.items()}
    kinds = [kind for kind, mask in masks.items() if mask.any()]
    panels = []
    for number, score in enumerate(run.scores):
        whole = run.column(score)
        known = np.isfinite(whole)
        column, (low, high) = whole[known], axis_range(whole[known])
        found = ((kind, run.median(score, _LABELS[kind])) for kind in kinds)
        medians = ", ".join(f"median of {kind} texts {one:.4g}" for kind, one in found if one is not None)
        figure = figures.distribution({kind: whole[known & masks[kind]] for kind in kinds})
        drawn = to_svg(figure, name=f"histogram-{number}", label=f"Histogram of {score}: {medians}")
        beyond = int(((column < low) | (column > high)).sum())
        panels.append((score, drawn, beyond, 0 if known.all() else len(column)))
    return {"panels": panels, "kinds": kinds, "colours": figures.KINDS, "sampled": sampled}


@section("Scores of the texts", "texts", "run/texts.html")
def _texts(run: Run) -> dict[str, Any] | None:
    """Ranges of the scores, and the texts from the top and the bottom; nothing where an evaluation speaks instead."""
    if run.evaluation is not None or not run.ids or not run.scores:
        return None
    order = np.argsort(-run.column(run.scores[0]), kind="stable").tolist()
    count, sampled = counts(run)["texts"], run.whole.sampled if run.whole else 0
    whole, ranks = len(order) <= 2 * _EDGE, [*range(1, len(order) + 1)]
    if not whole:
        order, ranks = order[:_EDGE] + order[-_EDGE:], [*ranks[:_EDGE], *range(count - _EDGE + 1, count + 1)]
    columns = run.scores[:_COLUMNS]
    drawn, every = _drawn(run), {score: run.quartiles(score) for score in run.scores}
    return {
        "run": run,
        "count": count,
        "sampled": sampled,
        "columns": columns,
        # the ends are those of all texts, the quarters those of the texts that were drawn
        "ranges": [(name, (q[0], *drawn.quartiles(name)[1:-1], q[-1])) for name, q in every.items()],
        "rows": [
            (rank, i, _LABEL_WORDS[run.members[i]], run.matrix[i, :_COLUMNS])
            for rank, i in zip(ranks, order, strict=True)
        ],
        "gap": 0 if whole else _EDGE,
        "labels": any(member is not None for member in run.members),
    }


@section("What was cut and skipped", "skipped", "run/skipped.html", appendix=True)
def _skipped(run: Run) -> dict[str, Any]:
    """What was cut and what was skipped: counts, shares and the names of up to fifty texts of each kind."""
    cut = [(run.ids[i], int(run.tokens[i]), int(run.cut[i])) for i in np.flatnonzero(run.cut > 0)]
    reasons = Counter(text.reason for text in run.skipped).most_common()
    return {
        "run": run,
        "whole": run.whole,
        "counts": counts(run),
        "cut": cut[:_MOST_SKIPPED],
        "reasons": list(run.whole.reasons.items()) if run.whole else reasons,
        "most": _MOST_SKIPPED,
    }


@section("Settings", "settings", "run/settings.html", appendix=True)
def _settings(run: Run) -> dict[str, Any] | None:
    """The settings as one table of names and values: enough to make the run again."""
    rows = settings_rows(run.settings, "run.json")
    return {"rows": rows} if rows else None


@section("What the numbers mean, and what they do not", "limits", "run/limits.html")
def _limits(run: Run) -> dict[str, Any]:
    """What the figures rest on."""
    strongest, elsewhere = _control(run), _elsewhere(run)
    return {"run": run, "counts": counts(run), "strongest": strongest, "elsewhere": elsewhere}


# What detectors were fitted on. The facts are read with care: those of another's recipe may be anything.


NEURONS = ("layer", "members", "nonmembers", "difference", "chosen")
_ADAPTER = {
    "method: expression": "Method", "corpus": "Corpus", "texts": "Texts", "groups": "Documents",
    "nonmembers": "Non-members", "members": "Members", "tokens": "Tokens", "steps": "Steps",
    "parameters": "Weights trained", "seed": "Seed",
}  # fmt: skip
"""What is told of an adapter, and how; the settings have the rest."""
_PREFIX = re.compile(r"^(settings|reference)\.")


@section("What the detectors were fitted on", "fitted", "run/fitted.html", appendix=True)
def _fitted(run: Run) -> dict[str, Any] | None:
    """FSD's tuning and one part a fitted score; nothing where nothing was fitted."""
    adapter, found = run.settings.get("adapter"), mapping(run.settings.get("fitted"))
    told = {str(name): facts for name, facts in found.items() if isinstance(facts, Mapping)}
    scores = [_score(name, facts, number) for number, (name, facts) in enumerate(told.items())]
    tuned = _adapter(adapter) if isinstance(adapter, Mapping) else None
    return {"scores": scores, "adapter": tuned, "controlled": _elsewhere(run)} if scores or tuned else None


def _score(name: str, facts: Mapping[str, Any], number: int) -> dict[str, Any]:
    """What one fitted score tells of itself, with a figure of each table that it has."""
    layers, used, drawn = facts.get("layers"), _used_settings(facts), dict[str, tuple[Figure, str]]()
    if by_layer := _entries(layers, NEURONS):
        words = f"Member and non-member neurons of {len(by_layer)} layers for {name}"
        drawn["neurons"] = figures.neurons(by_layer), words
    if probed := _entries(layers, ("layer", "auc")):
        chosen = [entry["layer"] for entry in _entries(layers, ("layer", "chosen")) if entry["chosen"]]
        (only,) = chosen if len(chosen) == 1 else _numbers([facts.get("chosen")]) or (None,)
        drawn["probe"] = figures.probe(probed, only), f"AUC of the probe of {len(probed)} layers for {name}"
    if tried := _entries(facts.get("sensitivity"), (*figures.PARAMETERS, "auc")):
        drawn["sensitivity"] = figures.sensitivity(tried, used), f"AUC under {len(tried)} settings of {name}"
    sizes, others = _entries([facts.get("reference")], ("members", "nonmembers")), without_tables(facts)
    if sizes:  # a sentence says them
        others["reference"] = {key: n for key, n in others["reference"].items() if key not in sizes[0]}
    return {
        "name": name,
        "reference": tuple(sizes[0].values()) if sizes else (),
        "others": [(_PREFIX.sub("", k).replace("_", " "), v) for k, v in flattened(others) if v != "none"],
        **{
            kind: to_svg(figure, name=f"{kind}-{number}", label=label)
            for kind, (figure, label) in drawn.items()
        },
    }


def _used_settings(facts: Mapping[str, Any]) -> dict[str, float]:
    """The settings that `sensitivity` varies, as they were used."""
    layers, settings = _entries(facts.get("layers"), NEURONS), mapping(facts.get("settings"))
    used = {key: value for key in figures.PARAMETERS for value in _numbers([settings.get(key)])}
    if layers and "k" in used:  # more layers than there are come to the same as all of them
        used["k"] = min(used["k"], float(len(layers)))
    return used


def _entries(found: Any, names: tuple[str, ...]) -> tuple[figures.Entry, ...]:
    """Read a table of figures from a list of mappings; empty unless every entry has a number for every name."""
    rows = found if isinstance(found, list | tuple) else ()
    values = [_numbers([mapping(row).get(name) for name in names]) for row in rows]
    return tuple(dict(zip(names, row, strict=True)) for row in values) if all(values) else ()


def _numbers(found: Any) -> tuple[float, ...]:
    """Read a list of finite numbers; empty for anything else."""
    values = found if isinstance(found, list | tuple) else ()
    sound = all(isinstance(one, int | float) and -1e12 < one < 1e12 for one in values)
    return tuple(map(float, values)) if sound else ()


def _adapter(card: Mapping[str, Any]) -> dict[str, object]:
    known = dict(rounded(without_tables(card)))
    told = [(words, known[name]) for name, words in _ADAPTER.items() if name in known]
    return {"facts": told, "losses": _numbers(card.get("losses"))}


def _drawn(run: Run) -> Run:
    """The rows that figures of the texts are drawn from: of a large run those that were drawn at random."""
    return run.rows(np.arange(len(run.ids)) < run.whole.sampled) if run.whole else run


def _model_name(run: Run) -> str:
    """The name of the model that was asked, as the settings record it."""
    return _model_names(run).get("target", UNNAMED)


def _model_names(run: Run) -> dict[str, str]:
    """The names of all models that took part, by their roles: target, reference."""
    models = mapping(run.settings.get("models"))
    return {str(role): str(name) for role, one in models.items() if (name := mapping(one).get("name"))}


def _compared(run: Run) -> tuple[Measured, ...]:
    """The rows that stand in one table: scores, and the baselines that never saw the model."""
    rows = run.evaluation.rows if run.evaluation else ()
    return tuple(row for row in rows if row.kind in ("score", "blind"))


def _elsewhere(run: Run) -> bool:
    """Whether there are rows that stand among the controls: placebo or shuffled labels."""
    return run.evaluation is not None and len(_compared(run)) < len(run.evaluation.rows)


def _control(run: Run) -> Measured | None:
    blind = (row for row in _compared(run) if row.kind == "blind")
    return max(blind, key=lambda row: row.auc.value, default=None)


SECTIONS: Sections[Run] = (
    *(_summary, _benchmark, _results, _by_copies, _controls, _curves, _comparisons, _distributions, _texts),
    *(tokens, _limits, _fitted, _skipped, _settings),
)
"""The sections of a run's report in reading order."""


def pages(run: Run, sections: Sections[Run] = SECTIONS) -> Pages:
    """Make the pages of a run."""
    model = _model_name(run)
    values = {"run": run, "model": model}
    title = titled("Membership report", run.corpus, model)
    return make_pages(title, speaking(sections, run), lambda: values, "run/page.html")
