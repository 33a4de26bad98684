"""Which comparison an audit makes: a rule that uses the texts alone and is applied before any model reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pretrace.baselines.blind import LENGTH
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.types import Design, Gap, Outcome
from pretrace.verdicts.wording import fill, say, sentences_of

ALIKE = 0.60
"""The text-only AUC up to which suspect texts and control documents may be compared directly."""
COMPARABLE = 0.80
"""The text-only AUC up to which they may be compared by differences; above it they are not compared."""

WHOLE = "whole documents"
"""What a classifier judged that saw the snippets of a document as one text."""


@dataclass(frozen=True, slots=True)
class DesignChoice:
    """A design, None where no verdict is possible, with the reason in plain words, and what would help."""

    design: Design | None
    why: str
    outcomes: tuple[Outcome, ...] = ("inconclusive",)
    cures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditMaterial:
    """Numbers of what there is; `judged` documents are left where a generator learns from a part of the snippets."""

    documents: int
    controls: int
    placebos: int
    generator: bool
    power: bool
    judged: int


def choose(given: AuditMaterial, gaps: Sequence[Gap]) -> DesignChoice:
    """Choose the design; `gaps` are those between suspect texts and control documents, empty without."""
    if given.documents < FEW_DOCUMENTS:
        return _refuse("few", given)
    if given.controls:
        return _with_controls(given, gaps)
    if not (given.placebos and given.generator):
        return _refuse("bare", given)
    if given.judged < FEW_DOCUMENTS:
        return _refuse("judged", given, closer=say("cures.controls"))
    outcomes: tuple[Outcome, ...] = ("nothing", "inconclusive") if given.power else ("inconclusive",)
    return DesignChoice("placebos", say("designs.placebos.why"), outcomes, (say("cures.controls"),))


def _with_controls(given: AuditMaterial, gaps: Sequence[Gap]) -> DesignChoice:
    widest = widest_gap(gaps, (ALIKE,))
    if widest is None:
        return _refuse("unseen", given)
    closer = (say("cures.closer"), say("cures.later"))
    if widest.classifier.startswith("form"):
        closer = (say("cures.form"), closer[0])
    seen = say("designs.seen", name=widest.classifier, auc=widest.auc)
    outcomes: tuple[Outcome, ...] = ("consistent", "nothing") if given.power else ("consistent",)
    outcomes += ("inconclusive",)
    if not differ(widest, ALIKE):
        cures = () if given.placebos else (say("cures.placebo"),)
        return DesignChoice("controls", say("designs.controls.why", seen=seen), outcomes, cures)
    if differ(widest_gap(gaps, (COMPARABLE,)) or widest, COMPARABLE):
        return DesignChoice(None, say("designs.apart.why", seen=seen), cures=closer)
    if not (given.placebos and given.generator):
        needed = say("designs.generator") if given.placebos else say("cures.placebo")
        return DesignChoice(None, say("designs.differ.why", seen=seen), cures=(*closer, needed))
    if given.judged < FEW_DOCUMENTS:
        return _refuse("judged", given, closer=closer[0])
    return DesignChoice("differences", say("designs.differences.why", seen=seen), outcomes, closer)


def _refuse(kind: str, given: AuditMaterial, **more: str) -> DesignChoice:
    """No design: for this reason, with these cures."""
    numbers = {"documents": given.documents, "judged": given.judged, "fewest": FEW_DOCUMENTS, **more}
    said = fill(sentences_of(f"designs.{kind}"), **numbers)
    return DesignChoice(None, said["why"], cures=said["cures"])


def widest_gap(gaps: Sequence[Gap], limits: Sequence[float]) -> Gap | None:
    """The gap that decides: the widest of those beyond the most limits. That of the length never decides, and those of
    whole documents only whether texts may be compared directly: the limit of differences is one of single snippets."""
    learnt = [gap for gap in gaps if gap.classifier != LENGTH]
    if ALIKE not in limits:
        learnt = [gap for gap in learnt if WHOLE not in gap.classifier]
    return max(
        learnt, key=lambda gap: (sum(differ(gap, most) for most in limits), gap.auc.value), default=None
    )


def differ(gap: Gap, most: float) -> bool:
    """Whether a classifier of texts tells two sets apart by more than `most`, and not by chance alone."""
    return gap.auc.value > most and gap.auc.low > 0.5
