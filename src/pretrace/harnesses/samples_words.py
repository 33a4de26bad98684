"""What the report on an evaluation's log says, in sentences for a reader without statistics."""

from __future__ import annotations

from collections.abc import Mapping

from pretrace.harnesses.comparing import CLEAN, KNOWN, SUSPECT, TOTAL, Compared, SamplesSettings
from pretrace.types import Estimate, Outcome

_READ = {
    "item": "Of each request the item itself was read, without the examples in front of it, and the right answer.",
    "question": "Of each request the item itself was read, without the examples in front of it and without an answer.",
    "prompt": "Each request was read whole, with the examples in front of the item, and the right answer.",
}
_ANSWER = (
    "The score reads the right answer too: an answer that the model finds likely for any reason makes its item both "
    "right and suspect. Compare with --part question, which leaves answers out."
)
UNIT = "of accuracy: suspect items less clean ones"
NO_PROOF = (
    "A higher accuracy on suspect items does not show that training on them raised it: items that a model finds likely "
    "are often easier, also for a model that never saw them. Nor does an equal accuracy show that nothing was seen. To "
    "say how much training on the items brought takes the same evaluation of a model that did not see them."
)


def statement(found: Compared, outcome: Outcome, accuracy: Mapping[str, Estimate]) -> str:
    """The answer in one sentence, with the accuracy of both sides where there are two."""
    task, model = found.log.task, found.flagged.model
    total = f"accuracy on all items is {_percent(accuracy[TOTAL])}"
    if outcome == "inconclusive":
        return f"Inconclusive: this log cannot say whether {model} was trained on items of {task}; {total}."
    if SUSPECT in accuracy and CLEAN in accuracy:
        suspect, clean = _percent(accuracy[SUSPECT]), _percent(accuracy[CLEAN])
        sides = ("suspect items", "clean ones")
        if found.line is not None:
            sides = (f"items whose p is at most {found.line:g}", "the others")
        total = f"accuracy is {suspect} on {sides[0]} and {clean} on {sides[1]}"
    if outcome == "nothing":
        return f"Nothing was found: no item of {task} stands out; {total}."
    return f"The predictions of {model} are consistent with training on items of {task}, or on copies of them; {total}."


def accuracies(
    found: Compared, accuracy: Mapping[str, Estimate], sizes: Mapping[str, int]
) -> tuple[str, ...]:
    """The accuracy of each side in a sentence, and their differences; intervals are 95%, over documents."""
    sides = ", ".join(f"{_percent(one)} of {sizes[name]:,} {name}" for name, one in accuracy.items())
    reasons = [f"Right by {found.metric}: {sides} (95% intervals)."]
    if found.difference is not None:
        reasons.append(f"Suspect items less clean ones: {_points(found.difference)}.")
    elif found.suspect is None:
        reasons.append(
            "The flagging was refused, so no item may be called suspect, and there are no two sides."
        )
    else:
        reasons.append(f"No two sides can be compared: {int(found.suspect.sum()):,} items are suspect.")
    if found.beside is not None:
        reasons.append(f"All items less the known non-members: {_points(found.beside)}.")
    return tuple(reasons)


def assumption(found: Compared) -> str:
    """What must hold for p to mean what it says."""
    return (
        f"Items of {found.log.task} that were not seen could as well have been among the known non-members "
        f"({found.flagged.figures['nonmembers']})."
    )


def compared(found: Compared, settings: SamplesSettings) -> tuple[str, ...]:
    """What was read, what suspect means, and what stands side by side."""
    flagged, log = found.flagged, found.log
    read = (
        "The requests are those in the log, each checked against the hash that the harness wrote beside it. "
        f"{_READ[settings.part]} {flagged.model} scored them with {flagged.figures['score']}."
    )
    suspect = (
        f"An item is called suspect where it stands out from the known non-members ("
        f"{flagged.figures['nonmembers']}): at most "
        f"{100 * flagged.figures['fdr']:g}% of suspect items are so by chance, on average."
        if found.line is None
        else f"An item is called suspect where at most {100 * found.line:g}% of unseen items would score as high. That "
        "share of the items that were not seen is among them."
    )
    beside = f"Beside it stands the accuracy that {log.path.name} has for these items."
    return (
        read,
        f"{suspect} The others are called clean, which does not show that they were not seen.",
        beside,
    )


def trust(found: Compared, settings: SamplesSettings) -> tuple[str, ...]:
    """What the comparison does not prove."""
    said = (NO_PROOF,) if settings.part == "question" else (NO_PROOF, _ANSWER)
    if found.beside is None:
        return said
    return (
        *said,
        f"{KNOWN.capitalize()} were evaluated in the same way. A higher accuracy on the published items is what "
        "training on them would bring, and also what easier items would bring.",
    )


def _percent(one: Estimate) -> str:
    return f"{100 * one.value:.1f}% [{100 * one.low:.1f}, {100 * one.high:.1f}]"


def _points(one: Estimate) -> str:
    return f"{100 * one.value:+.1f} percentage points [{100 * one.low:+.1f}, {100 * one.high:+.1f}]"
