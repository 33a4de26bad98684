"""What is left out in each setting of the ablations, what the paper has for it, and the sum of what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.experiments import Row
from benchmarks.papers.figures import tables

TEXTS = "texts"
"""The part of a setting in which its texts are written and told apart; the other parts are targets."""

MARGIN = 0.04
"""What an imperfect generator may explain, in units of the bounded difference (of 1 at most): the constant that the
default procedure had, and the results on file were made with, before it took control documents."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of the paper's table 5, by its number there (None: not in it). `written` says how the texts came about;
    `published` is what the paper's figures call the setting, and `tests` how the test differs from the usual one."""

    number: int | None
    title: str
    written: str
    published: Mapping[str, str] | None = None
    tests: str = ""


SETTINGS = {
    "complete": Setting(8, "the whole method", "complete", {}),
    "uncalibrated": Setting(
        6, "no calibration; no placebo", "complete", {"without": "calibration"}, "calibration"
    ),
    "unconstrained": Setting(
        7, "no weight constraint", "complete", {"without": "weight-constraint"}, "weight constraint"
    ),
    "whole": Setting(5, "no suffix comparison", "complete", {"without": "suffix-comparison"}),
    "apart": Setting(None, "snippets, but of other documents", "apart"),
    "beginnings": Setting(4, "no segments, no shuffle", "beginnings", {"without": "segment-and-shuffle"}),
    "preference": Setting(3, "preference optimisation", "preference", {"generation": "preference"}),
    "completion": Setting(2, "in-context completion", "completion", {"generation": "icl-completion"}),
    "paraphrase": Setting(1, "in-context paraphrase", "paraphrase", {"generation": "icl-paraphrase"}),
}
NOTES = {
    "rows": "part `texts`: AUC of classifiers that see texts alone, [value, low, high]; the others: one audit each",
    "uncalibrated": "procedure `original` is dataset inference before calibration; `paper` the paper's test on the "
    "membership scores alone; `pretrace` its statistic without a placebo",
    "unconstrained": "the default procedure has no weights that could be constrained",
    "whole": "prefix and suffix are scored together, without what stands before them",
    "apart": "the generator learnt from snippets of other documents than the audited ones",
    "pretrace": f"the default procedure without control documents, with the constant margin of {MARGIN:g} that it had "
    "then",
    "published": "the paper prints <0.001 where 0.001 stands here; its targets are Pythia-1B, its generator an "
    "8-billion-parameter model, and GPT-4-Turbo is what it instructs",
}


def published() -> list[Row]:
    """The paper's figures of the same settings: AUC of table 2, p of table 5 ("null" is its non-member set)."""
    found = tables()
    rows: list[Row] = []
    for name, setting in SETTINGS.items():
        if setting.published is None:
            continue
        called = dict(setting.published)
        rows += [
            {"setting": name, "classifier": figure.score, "auc": figure.value, "table": 2}
            for figure in found["posthoc_di.table2"].figures
            if figure.setting == (called or {"generation": "suffix"})
        ]
        for figure in found["posthoc_di.table5"].figures:
            rest = dict(figure.setting)
            kind = {"member": "member", "nonmember": "null"}[str(rest.pop("kind"))]
            if rest == called:
                rows.append({"setting": name, "kind": kind, "p": figure.value, "table": 5})
    return rows


def summary(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """A line a setting, procedure and kind: how many audits rejected, and the median p."""
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["part"] != TEXTS:
            key = tuple(row[name] for name in ("setting", "procedure", "placebo", "kind"))
            found.setdefault(key, []).append(row)
    return [
        {
            **dict(zip(("setting", "procedure", "placebo", "kind"), key, strict=True)),
            "audits": len(some),
            "rejections": sum(row["rejected"] for row in some),
            "median_p": float(f"{np.median([row['p'] for row in some]):.4g}"),
        }
        for key, some in found.items()
    ]
