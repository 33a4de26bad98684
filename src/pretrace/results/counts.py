"""How many texts of each kind a run holds."""

from __future__ import annotations

from pretrace.types import Run, Whole


def counts(run: Run) -> dict[str, int]:
    """How many texts of each kind a run holds: scored ones, their labels, and what fell away. `tokens` are those the
    scores rest on, `cut_tokens` those dropped by the limit. Of a large run they are those of all texts."""
    if run.whole is not None:
        return _of_all(run.whole)
    return {
        "texts": len(run.ids),
        "members": sum(member is True for member in run.members),
        "nonmembers": sum(member is False for member in run.members),
        "unlabelled": sum(member is None for member in run.members),
        "groups": len({group or name for group, name in zip(run.groups, run.ids, strict=True)}),
        "skipped": len(run.skipped),
        "tokens": int(run.tokens.sum(dtype="int64")),
        "cut_texts": int((run.cut > 0).sum()),
        "cut_tokens": int(run.cut.sum(dtype="int64")),
    }


def _of_all(whole: Whole) -> dict[str, int]:
    return {
        "texts": whole.texts,
        "members": whole.members,
        "nonmembers": whole.nonmembers,
        "unlabelled": whole.unlabelled,
        "groups": whole.documents,
        "skipped": whole.skipped,
        "tokens": whole.tokens,
        "cut_texts": whole.cut_texts,
        "cut_tokens": whole.cut_tokens,
    }
