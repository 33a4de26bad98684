"""Which comparison an audit makes: a rule that uses the texts alone and is applied before any model reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pretrace.baselines.classifier_two_sample import LENGTH
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.types import Design, Gap, Outcome

ALIKE = 0.60
"""The text-only AUC up to which suspect texts and control documents may be compared directly."""
COMPARABLE = 0.80
"""The text-only AUC up to which they may be compared by differences; above it they are not compared."""

WHOLE = "whole documents"
"""What a classifier judged that saw the snippets of a document as one text."""

CONTROLS = (
    "Give control documents: texts of the same kind and time that are known to be unseen (unpublished pieces, letters; "
    "not drafts of these texts, and not later pieces, which their words give away), at least {fewest} and better 50 or "
    "more. [--heldout]"
)
PLACEBO = (
    "Name a model that never saw the texts: the base the target was tuned from, its last checkpoint before the texts "
    "can have come in, or a sibling. [--placebo, --placebo-revision]"
)
CLOSER = "Take control documents nearer to the suspect texts: same author, kind, subject, period and way of cutting."
LATER = (
    "One's own later texts were told apart by their words in 24 of 24 archives. Unpublished pieces of the same time "
    "serve; from today on, hold back a random third of what you write, or mark it before you publish. [pretrace mark]"
)
_FORM = (
    "Bring both sets into one form: the same line breaks, spaces, quotes, dashes and capitals. Texts from two editors "
    "or converters differ in these, and a model finds one form likelier than the other."
)


@dataclass(frozen=True, slots=True)
class DesignChoice:
    """A design, None where no verdict is possible, with the reason in plain words, and what would help."""

    design: Design | None
    why: str
    outcomes: tuple[Outcome, ...] = ("inconclusive",)
    cures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditMaterial:
    """The material of an audit: numbers of documents, control documents (0 without) and usable placebos, and whether
    there is a generator and a power test. `judged`
    are the documents left on the smaller side where a generator learns from a part of the snippets."""

    documents: int
    controls: int
    placebos: int
    generator: bool
    power: bool
    judged: int


def choose(given: AuditMaterial, gaps: Sequence[Gap]) -> DesignChoice:
    """The design for what there is; `gaps` are those between suspect texts and control documents, empty without."""
    if given.documents < FEW_DOCUMENTS:
        return DesignChoice(
            None,
            f"There are {given.documents} documents, and a verdict takes at least {FEW_DOCUMENTS}: with fewer, a "
            "single unusual document can decide the result.",
            cures=("Add documents; texts of one document (same group) count as one.",),
        )
    if given.controls:
        return _with_controls(given, gaps)
    if given.placebos and given.generator:
        if given.judged < FEW_DOCUMENTS:
            return _too_few_judged(given, CONTROLS.format(fewest=FEW_DOCUMENTS))
        return DesignChoice(
            "placebos",
            "There are no control documents. The suspect texts are compared with what a generator wrote in their "
            "place, and the target with models that never saw them. On kinds of text that had not been measured, "
            "this comparison has accused models that never saw the texts. So it is not enough for an accusation.",
            ("nothing", "inconclusive") if given.power else ("inconclusive",),
            (CONTROLS.format(fewest=FEW_DOCUMENTS),),
        )
    return DesignChoice(
        None,
        "There are neither control documents nor a model that never saw the texts. What the target knows of these "
        "texts may be what any model knows of texts like them, and this audit could not tell the two apart.",
        cures=(CONTROLS.format(fewest=FEW_DOCUMENTS), PLACEBO),
    )


def _with_controls(given: AuditMaterial, gaps: Sequence[Gap]) -> DesignChoice:
    widest = widest_gap(gaps, (ALIKE,))
    if widest is None:
        return DesignChoice(
            None,
            "There are too few texts to see whether suspect texts and control documents are alike.",
            cures=(CONTROLS.format(fewest=FEW_DOCUMENTS),),
        )
    closer = (_FORM, CLOSER) if widest.classifier.startswith("form") else (CLOSER, LATER)
    auc = f"{widest.auc.value:.2f} [{widest.auc.low:.2f}, {widest.auc.high:.2f}]"
    seen = f"A classifier that sees only texts ({widest.classifier}) tells suspect texts from control documents with "
    seen += f"an AUC of {auc}; 0.5 is chance."
    if not differ(widest, ALIKE):
        return DesignChoice(
            "controls",
            f"{seen} They are alike as texts, so the documents of both sides are compared directly.",
            _outcomes(given),
            () if given.placebos else (PLACEBO,),
        )
    if differ(widest_gap(gaps, (COMPARABLE,)) or widest, COMPARABLE):
        return DesignChoice(
            None,
            f"{seen} They differ so much as texts that any difference between them may have nothing to do with "
            "training.",
            cures=closer,
        )
    if given.placebos and given.generator:
        if given.judged < FEW_DOCUMENTS:
            return _too_few_judged(given, closer[0])
        return DesignChoice(
            "differences",
            f"{seen} They differ as texts, so they are not compared directly: in each, what stands there is compared "
            "with what a generator wrote in its place, and these differences are compared.",
            _outcomes(given),
            closer,
        )
    needed = (
        PLACEBO
        if not given.placebos
        else "Name a model that writes continuations for both sides. [--generator]"
    )
    return DesignChoice(
        None,
        f"{seen} They differ as texts. To correct for that, a placebo and a generator are needed.",
        cures=(*closer, needed),
    )


def _too_few_judged(given: AuditMaterial, cure: str) -> DesignChoice:
    return DesignChoice(
        None,
        f"The generator learns from a part of the snippets, which leaves {given.judged} documents to judge, and a "
        f"verdict takes at least {FEW_DOCUMENTS}.",
        cures=(
            "Add documents, or take shorter snippets, so that each gives more of them. [--tokens]",
            cure,
        ),
    )


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


def _outcomes(given: AuditMaterial) -> tuple[Outcome, ...]:
    return ("consistent", "nothing", "inconclusive") if given.power else ("consistent", "inconclusive")
