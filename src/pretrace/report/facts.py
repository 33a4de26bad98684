"""What several sections say of a run, counted in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pretrace.types import Measured, Run

UNNAMED = "a model the run does not name"


@dataclass(frozen=True, slots=True)
class Counts:
    """How many texts of each kind a run holds: scored rows, their labels, and what fell away."""

    texts: int
    members: int
    nonmembers: int
    unlabelled: int
    groups: int
    tokens: int
    cut: int
    cut_tokens: int
    skipped: int


def counts(run: Run) -> Counts:
    """The counts of a run; `tokens` are those the scores rest on, `cut_tokens` those dropped by the limit."""
    return Counts(
        texts=len(run.ids),
        members=sum(member is True for member in run.members),
        nonmembers=sum(member is False for member in run.members),
        unlabelled=sum(member is None for member in run.members),
        groups=len({group or name for group, name in zip(run.groups, run.ids, strict=True)}),
        tokens=int(run.tokens.sum(dtype=int)),
        cut=int((run.cut > 0).sum()),
        cut_tokens=int(run.cut.sum(dtype=int)),
        skipped=len(run.skipped),
    )


def model_name(run: Run) -> str:
    """The name of the model that was asked, as the settings record it."""
    return model_names(run).get("target", UNNAMED)


def model_names(run: Run) -> dict[str, str]:
    """The names of all models that took part, by their roles: target, reference."""
    models = run.settings.get("models")
    if not isinstance(models, Mapping):
        return {}
    facts = {role: entry for role, entry in models.items() if isinstance(entry, Mapping)}
    return {str(role): str(entry["name"]) for role, entry in facts.items() if entry.get("name")}


def compared(run: Run) -> tuple[Measured, ...]:
    """The rows that stand in one table: scores, and the baselines that never saw the model."""
    rows = run.evaluation.rows if run.evaluation else ()
    return tuple(row for row in rows if row.kind in ("score", "blind"))


def elsewhere(run: Run) -> bool:
    """Whether there are rows that stand among the controls: placebo or shuffled labels."""
    return run.evaluation is not None and len(compared(run)) < len(run.evaluation.rows)


def control(run: Run) -> Measured | None:
    """The strongest blind baseline of the evaluation, None where there is none."""
    blind = (row for row in compared(run) if row.kind == "blind")
    return max(blind, key=lambda row: row.auc.value, default=None)


def label(member: bool | None) -> str:
    """The words for a label."""
    return {True: "known member", False: "known non-member", None: "no label"}[member]
