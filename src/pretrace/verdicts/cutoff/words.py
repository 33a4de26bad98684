"""The sentences of a test at a training cut-off, for a reader without statistics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pretrace.types import Check, Skipped
from pretrace.verdicts.cutoff.dates import UNDATED
from pretrace.verdicts.cutoff.jumps import Jumps
from pretrace.verdicts.cutoff.settings import CutoffSettings
from pretrace.verdicts.settings import ALONE

ASSUMPTION = (
    "Apart from training, the changes at the cut-off and at the other dates come from one law (the drift "
    "is stationary): "
    "nothing else that happened at the cut-off makes the texts harder for the model."
)


def unit_of(score: str) -> str:
    """The unit of a jump."""
    return "nats a token" if score == ALONE else f"of the score {score}"


def hypothesis(day: date) -> str:
    """What the test tries to reject."""
    return f"The change at {day} is one of those that the series shows at any date."


def statistic(months: int) -> str:
    """What is ranked."""
    return (
        f"mean score in the {months} months before a date less that in the {months} months after it, each less what "
        "reference models, length and compressibility predict; ranked among placebo cut-offs"
    )


def compared(model: str, day: date, settings: CutoffSettings, inside: int, others: int) -> tuple[str, ...]:
    """What was compared, and why."""
    return (
        f"The makers of {model} state {day} as the end of its training data. Where it was trained on these texts, it "
        "should know those dated before that day and not those after it: what it knows should drop there, as at no "
        "other date.",
        f"{inside:,} documents dated within {settings.months} months of the cut-off were read with the score "
        f"{settings.score}. The drop at the cut-off was compared with the change at {others:,} other dates of the same "
        "series, all measured in the same way.",
    )


def ranked(own: Jumps) -> tuple[str, ...]:
    """The rank and M* in one sentence; neither is told without the other."""
    if own.p is None:
        return ()
    larger = round(own.p * (len(own.others) + 1)) - 1
    ratio = own.breakdown or 0.0
    return (
        f"Of {len(own.others):,} other dates, {larger:,} show a drop at least as large as the cut-off (p = "
        f"{own.p:.3g}), "
        f"and the change at the cut-off is {ratio:.2f} times the largest change elsewhere (M* = {ratio:.2f}).",
    )


def trust(own: Jumps, checks: Sequence[Check], level: float) -> tuple[str, ...]:
    """How far the answer can be trusted, in plain words."""
    said = list(ranked(own))
    if own.breakdown is not None and own.p is not None and own.p <= level:
        said.append(
            f"The result would stand even if something else changed the texts at the cut-off, as long as that was less "
            f"than {own.breakdown:.2f} times the largest change at any other date."
        )
    if any(check.name == "placebos" and check.status == "not run" for check in checks):
        said.append(
            "No model with another cut-off was tested. An event at that very date, such as a new editor or new "
            "software, would look the same; a second model would show it."
        )
    return tuple(said)


def notes(skipped: Sequence[Skipped], documents: int) -> tuple[str, ...]:
    """What was done on the way."""
    undated = sum(one.reason == UNDATED for one in skipped)
    said = (
        [f"{undated:,} texts without a usable date were left out; {documents:,} documents remain."]
        if undated
        else []
    )
    said.append(
        "The effect is the change at the cut-off less the mean change at the other dates; its interval draws "
        "weeks with "
        "replacement."
    )
    return tuple(said)
