"""What speaks against an audit, or for another one: placebos with their grades, how far the texts of both sides differ,
which comparison that leaves, and the checks, each of which looks for one mistake that would make the answer of the test
wrong. The comparison is chosen by a rule that uses the texts alone: nothing is trained, no text goes through a model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any, get_args

import numpy as np

from pretrace.backends.huggingface import HuggingFace, likeness
from pretrace.baselines import LENGTH, WordFeatures, gap
from pretrace.errors import TextsError
from pretrace.results.wording import fill, say, sentences_of
from pretrace.scoring.outlook import guessed_seconds
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.statistics.permutation import own_group, two_sample_test
from pretrace.types import Backend, Check, Corpus, Gap, Text
from pretrace.verdicts.audit.data import AuditPlan, AuditSettings, Design, DocumentValues, Placebo, permuted
from pretrace.verdicts.audit.snippets import Parts, SnippetCut, join_documents, whole_snippets
from pretrace.verdicts.outcome import word_check

_SAME_ORIGIN = 0.2
"""The likeness of weights above which two models have a common past: trained apart they are at 0.00."""


@cache
def leans() -> tuple[dict[str, Any], ...]:
    """The measured leans, one a domain and exposure, in the unit of the audit's values."""
    text = files("pretrace.verdicts.audit").joinpath("leans.json").read_text(encoding="utf-8")
    return tuple(json.loads(text)["leans"])


def graded(target: Backend, placebo: Backend) -> Placebo:
    """The placebo with its grade, found from weights and tokens; no text is read."""
    alike, grade = likeness(target, placebo), "sibling"
    if placebo.tokenizer_hash != target.tokenizer_hash:
        grade = "other"
    elif alike is not None and alike >= _SAME_ORIGIN:
        grade = "own"
    elif "server" not in placebo.facts and "server" not in target.facts:
        # the family is not known there; the same tokens speak for it
        grade = "sibling" if placebo.facts.get("family") == target.facts.get("family") else "other"
    kept = {key: placebo.facts.get(key) for key in ("family", "parameters", "revision", "weights")}
    words = say(f"audit.grade.{grade}")
    return Placebo(placebo.name, grade, None, words, {"likeness": alike, **kept})  # type: ignore[arg-type]


def placebo_check(placebos: Sequence[Placebo], design: Design, level: float) -> Check:
    """Check that what the target is compared with is enough for a verdict of this design."""
    family = [one for one in placebos if one.grade != "other"]
    if not family:
        alone = design == "controls"
        return word_check("audit.placebo", None if alone else False, words="alone" if alone else "none")
    measured = ("grade", "closeness", "apart", "beyond")
    figures = {one.name: {**{name: getattr(one, name) for name in measured}, **one.facts} for one in placebos}
    said = []
    for one in family:
        said.append(f"{one.name} is {one.words}.")
        if one.closeness is not None:
            said.append(say("audit.grade.close", closeness=one.closeness))
        if one.beyond is not None:
            said.append(say("audit.grade.apart", one=one, does="does" if one.beyond <= level else "does not"))
    good = all(one.beyond is None or one.beyond <= level for one in family)
    return word_check("audit.placebo", good, figures, said=" ".join(said))


def taking_part(
    design: Design | None, placebos: Sequence[Backend], grades: Sequence[Placebo]
) -> tuple[Backend, ...]:
    """The placebos whose tests decide. Beside control documents the closest one, of the target's own family: any is
    valid there, and another family only adds noise. Otherwise all of the family, whose largest p counts."""
    ranked = sorted(zip(grades, placebos, strict=True), key=lambda pair: pair[0].grade != "own")
    family = tuple(placebo for grade, placebo in ranked if grade.grade != "other")
    return family[:1] if design == "controls" else family


def gaps_between(cuts: Sequence[SnippetCut], settings: AuditSettings, seed: int) -> tuple[Gap, ...]:
    """How well classifiers of texts tell suspect snippets from control ones, and whole documents from whole ones:
    what stands in one snippet of a document says little of its others. Nothing where they are too few."""
    (suspect, documents), (heldout, others) = (
        [_corpus_of(name, cut, whole=whole) for whole in (False, True)]
        for name, cut in zip(("suspect", "heldout"), cuts, strict=True)
    )
    try:
        found = gap(suspect, heldout, settings.learners, seed=seed)
        if (len(documents), len(others)) == (len(suspect), len(heldout)):
            return found
        *more, _ = gap(documents, others, settings.learners, seed=seed)
    except TextsError:
        return ()
    return (*found[:-1], *(replace(one, classifier=f"{one.classifier}, {WHOLE}") for one in more), found[-1])


def _corpus_of(side: str, cut: SnippetCut, *, whole: bool) -> Corpus:
    """The snippets as texts, for what compares sides without a model; with `whole`, a document is one text."""
    samples = whole_snippets(cut.snippets)
    rows = [(str(i), one.text, one.document) for i, one in enumerate(samples)]
    if whole:
        rows = [(document, text, document) for document, text in join_documents(samples).items()]
    return Corpus(side, tuple(Text(f"{side} {own}", text, group=document) for own, text, document in rows))


ALIKE = 0.60
"""The text-only AUC up to which suspect texts and control documents may be compared directly."""
COMPARABLE = 0.80
"""The text-only AUC up to which they may be compared by differences; above it they are not compared."""
WHOLE = "whole documents"
"""What a classifier judged that saw the snippets of a document as one text."""


def choose(  # noqa: PLR0913 (numbers of what there is)
    gaps: Sequence[Gap],
    *,
    documents: int,
    controls: int,
    placebos: int,
    generator: bool,
    power: bool,
    judged: int,
) -> AuditPlan:
    """Choose the design by the texts alone, before any model reads them, from the numbers of what there is; `gaps` are
    those between suspect texts and control documents, empty without, and `judged` documents are left where a generator
    learns from a part of the snippets. Where there is no design the plan says why, and what would help."""
    widest, can_write = widest_gap(gaps, ALIKE), placebos > 0 and generator
    written = "judged" if judged < FEW_DOCUMENTS else "differences" if controls else "placebos"
    if documents < FEW_DOCUMENTS:
        kind = "few"
    elif not controls:
        kind = written if can_write else "bare"
    elif widest is None:
        kind = "unseen"
    elif not differ(widest, ALIKE):
        kind = "controls"
    elif differ(widest_gap(gaps, COMPARABLE) or widest, COMPARABLE):
        kind = "apart"
    else:
        kind = written if can_write else "differ"
    design: Any = kind if kind in get_args(Design) else None
    numbers: dict[str, object] = {
        "documents": documents,
        "judged": judged,
        "fewest": FEW_DOCUMENTS,
        "seen": "",
    }
    first, second = "controls", "controls"
    if widest is not None:
        first, second = ("form", "closer") if widest.classifier.startswith("form") else ("closer", "later")
        numbers["seen"] = say("designs.seen", name=widest.classifier, auc=widest.auc)
    missing = "designs.generator" if placebos else "cures.placebo"
    numbers |= {"first": say(f"cures.{first}"), "second": say(f"cures.{second}"), "missing": say(missing)}
    said = fill(sentences_of(f"designs.{kind}"), **numbers)
    cures = () if kind == "controls" and placebos else said["cures"]
    accuses = ("consistent",) * (design in ("controls", "differences"))
    outcomes: Any = (*accuses, *("nothing",) * (power and design is not None), "inconclusive")
    return AuditPlan(design, said["why"], outcomes, documents, 0, controls, gaps=tuple(gaps), cures=cures)


def widest_gap(gaps: Sequence[Gap], most: float) -> Gap | None:
    """The gap that decides whether texts differ by more than `most`. That of the length never does, and those of whole
    documents only whether texts may be compared directly: the limit of differences is one of single snippets."""
    learnt = [
        gap for gap in gaps if gap.classifier != LENGTH and (most == ALIKE or WHOLE not in gap.classifier)
    ]
    return max(learnt, key=lambda gap: (differ(gap, most), gap.auc.value), default=None)


def differ(gap: Gap, most: float) -> bool:
    """Whether a classifier of texts tells two sets apart by more than `most`, and not by chance alone."""
    return gap.auc.value > most and gap.auc.low > 0.5


def slowness(backend: Backend) -> float:
    """How many times longer than guessed this machine takes to read; 1 for weights that are elsewhere."""
    if not isinstance(backend, HuggingFace):
        return 1.0
    return backend.seconds_a_token() / guessed_seconds(backend, "reading", 1)


STRICT = 0.01
"""The level of a control: it fails by chance in one audit of a hundred."""
_WIDEST_GAP = 0.70
"""The text-only AUC of true against generated texts above which, without controls, a difference shows nothing."""
COPIES = 0.2
KINDS = 0.05
"""The level for groups of controls; at 1% a group of 15% of them is mostly not seen (evidence/audit_mixtures.csv)."""
GROUPED = 500
"""Documents of a side that are put into groups, at most."""
MIXED = 0.20
"""The share of controls, those that the model knows least, without which a rejection must stand (docs/audit.md)."""


def documents_check(found: DocumentValues) -> Check:
    """Check that there are enough documents."""
    counts: dict[str, Any] = {"suspect": len(found.documents), "heldout": len(found.heldout_documents)}
    fewest = counts["suspect"] if found.paired else min(counts.values())
    good = fewest >= FEW_DOCUMENTS
    return word_check("audit.documents", good, counts, fewest=FEW_DOCUMENTS, **counts)


def reverse_check(found: DocumentValues, *, seed: int) -> Check:
    """Check that values do not lie below by more than the margin, which training on the texts cannot explain."""
    values = -found.values - 2 * found.margin
    p = permuted(replace(found, values=values, heldout_values=-found.heldout_values), seed=seed).p
    return word_check("audit.reverse", p > STRICT, {"p": p}, p=p)


def mixture_check(left_out: int | None, found: DocumentValues) -> Check:
    """Check that the rejection stands without `left_out` controls, those known least; None where none was made."""
    number = len(found.heldout_values)
    wanted = math.ceil(MIXED * number)
    figures = {"left_out": left_out, "wanted": wanted, "controls": number}
    if left_out is None:
        return word_check("audit.mixture", None, figures, words="unrejected")
    told: dict[str, Any] = {"left_out": left_out, "wanted": wanted, "number": number}
    return word_check("audit.mixture", left_out >= wanted, figures, share=left_out / number, **told)


def kinds_check(sides: Parts, *, seed: int, rejected: bool) -> Check:
    """Check that no control documents form a group of their own by the words of `GROUPED` documents a side."""
    if not rejected:
        return word_check("audit.kinds", None, words="unrejected")
    rng, both = np.random.default_rng([seed, 3]), [list(join_documents(side).values()) for side in sides]
    drawn = [[some[i] for i in rng.permutation(len(some))[:GROUPED].tolist()] for some in both]
    texts = [text for some in drawn for text in some]
    controls = np.arange(len(texts)) >= len(drawn[0])
    features = WordFeatures(texts).learnt
    if features is None:
        return word_check("audit.kinds", None, words="wordless")
    p, group = own_group((features @ features.T).toarray(), controls, seed=seed)
    inside, size = int((group & controls).sum()), int(group.sum())
    figures = {"p": p, "group": size, "controls": inside}
    return word_check("audit.kinds", p > KINDS, figures, p=p, inside=inside, size=size)


def spread_check(found: DocumentValues, *, seed: int) -> Check:
    """Check that control documents vary no more than suspect ones, as they do where some are of another kind."""
    first, second = (
        np.abs(side - np.median(side)) for side in (found.heldout_values, found.values)
    )  # Brown and Forsythe 1974, as a permutation test
    p = two_sample_test(first, second, seed=seed).p
    return word_check("audit.spread", p > STRICT, {"p": p}, p=p)


def gap_check(gaps: Sequence[Gap], why: str, design: Design) -> Check:
    """Check that the compared texts are alike enough for this design, chosen for `why`. Suspect texts and controls fail
    only where a procedure of the literature goes on without one; true and generated texts are decided here."""
    most = {"placebos": _WIDEST_GAP, "controls": ALIKE}.get(design, COMPARABLE)
    widest = widest_gap(gaps, most)
    if widest is None:
        return word_check("audit.gap", None, words="few")
    figures: dict[str, Any] = {gap.classifier: [gap.auc.value, gap.auc.low, gap.auc.high] for gap in gaps}
    # Below 0.5 a cross-fitted classifier has found nothing: folds without signal lean to the wrong side.
    told: dict[str, Any] = {"words": "why", "why": why, "cure": say("cures.closer")}
    if design == "placebos":
        told = {"name": widest.classifier, "auc": widest.auc, "most": most, "words": "generated"}
        told["cure"] = say("audit.gap.generated_cure")
    return word_check("audit.gap", not differ(widest, most), figures, **told)


def copies_check(copied: float) -> Check:
    """Check that the generator did not repeat the true continuations."""
    return word_check("audit.copies", copied <= COPIES, {"identical": copied}, copied=copied)
