"""Checks of an audit: each looks for one mistake that would make the answer of the test wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pretrace.baselines.classifiers import Words
from pretrace.results.rounding import p_value as rounded_p
from pretrace.statistics.clusters import own_group
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.statistics.permutation import two_sample
from pretrace.types import Bools, Check, Design, Gap
from pretrace.verdicts.audit.designs import ALIKE, CLOSER, COMPARABLE, CONTROLS, differ, widest_gap
from pretrace.verdicts.audit.document_values import DocumentValues, p_value, reversed_p

STRICT = 0.01
"""The level of a control: it fails by chance in one audit of a hundred."""
WIDEST_GAP = 0.70
"""The text-only AUC between true and generated texts above which a difference between them shows nothing, where there
are no control documents to show the effect of the generator's mistakes."""
COPIES = 0.2
KINDS = 0.05
"""The level of the test for groups of control documents: the price is an accusation in twenty, and at 1% a group of 15%
of the control documents is mostly not seen (docs/audit.md)."""
GROUPED = 500
"""Documents of a side that are put into groups, at most."""
MIXED = 0.20
"""The share of the control documents without which a rejection must stand, those that the model knows least: so many
of another kind are often not seen by the comparison of the texts (docs/audit.md)."""


def documents_check(found: DocumentValues) -> Check:
    """Whether there are enough documents."""
    title = f"At least {FEW_DOCUMENTS} documents"
    counts = {"suspect": len(found.documents), "heldout": len(found.heldout_documents)}
    fewest = counts["suspect"] if found.paired else min(counts.values())
    words = f"The test counts documents, and there are {counts['suspect']:,}"
    words += "." if found.paired else f" suspect and {counts['heldout']:,} control ones."
    cure = "Add documents: texts of one document (same group) count as one."
    return _check("documents", title, fewest >= FEW_DOCUMENTS, words, cure, counts)


def halves_check(found: DocumentValues, *, seed: int) -> Check:
    """Whether one random half of the suspect documents differs from the other, where there is nothing to find."""
    title = "One half of your texts against the other shows nothing"
    n = len(found.documents)
    if n < 4:
        return Check("halves", title, "not run", f"There are only {n} documents to halve.")
    order = np.random.default_rng([seed, 1]).permutation(n)
    p = two_sample(found.values[order[: n // 2]], found.values[order[n // 2 :]], seed=seed)
    words = (
        "The suspect documents were divided at random and one half was compared with the other. "
        f"There is nothing to find, and the test gave p = {rounded_p(p)}."
    )
    cure = "Look for a few documents unlike all others, and leave them out or audit them apart."
    return _check("halves", title, p > STRICT, words, cure, {"p": p})


def reverse_check(found: DocumentValues, *, seed: int) -> Check:
    """Whether the target knows the texts worse than expected, which training on them cannot explain."""
    title = "No difference in the opposite direction"
    p = reversed_p(found, seed=seed)
    words = (
        "Training on the texts can only make the target know them better than expected. That it knows them "
        f"worse was tested as well: p = {rounded_p(p)}."
    )
    cure = (
        "The two models, or the two sets of texts, differ by something besides training on these texts. Was the "
        "placebo trained on them? A closer placebo, or generated texts nearer to the true ones, would help."
    )
    return _check("reverse", title, p > STRICT, words, cure, {"p": p})


def mixture_check(left_out: int | None, found: DocumentValues) -> Check:
    """Whether the rejection would stand if a share of the control documents, those that the model knows least, were of
    another kind; `left_out` is how many of them it can do without, None where nothing was rejected."""
    title = "A few control documents of another kind would not explain the result"
    number = len(found.heldout_values)
    wanted = math.ceil(MIXED * number)
    figures = {"left_out": left_out, "wanted": wanted, "controls": number}
    if left_out is None:
        words = "The test did not reject, so there is no result that they could explain."
        return Check("mixture", title, "not run", words, "", figures)
    words = (
        f"The result stands without the {left_out:,} of {number:,} control documents that the model knows least "
        f"({left_out / number:.0%}). An accusation takes {wanted:,}: so many documents of another kind could be "
        "overlooked by the comparison of the texts."
    )
    cure = "Look at the control documents with the lowest values in documents.csv: are they of the same kind?"
    return _check("mixture", title, left_out >= wanted, words, f"{cure} {CLOSER}", figures)


def kinds_check(texts: Sequence[str], controls: Bools, *, seed: int, rejected: bool) -> Check:
    """Whether some control documents form a group of their own by their words, as documents of another kind do; `texts`
    are those of all documents."""
    title = "No group of documents is of control documents alone"
    if not rejected:
        words = "The test did not reject, so there is no result that documents of another kind could explain."
        return Check("kinds", title, "not run", words)
    features = Words(texts).learnt
    if features is None:
        return Check("kinds", title, "not run", "No word stands in two documents.")
    p, group = own_group((features @ features.T).toarray(), controls, seed=seed)
    inside, size = int((group & controls).sum()), int(group.sum())
    words = (
        f"All documents were put into groups by their words, without their sides. In the group that stands out most, "
        f"{inside:,} of {size:,} are control documents: p = {rounded_p(p)} that dealing out the sides gives as much."
    )
    cure = "Look at that group in the control documents: is it of another kind, source or subject?"
    figures = {"p": p, "group": size, "controls": inside}
    return _check("kinds", title, p > KINDS, words, f"{cure} {CLOSER}", figures)


def spread_check(found: DocumentValues, *, seed: int) -> Check:
    """Whether control documents vary more than suspect ones, as they do where some of them are of another kind:
    training on the suspect documents cannot explain that."""
    title = "Control documents vary no more than suspect documents"
    first, second = (
        np.abs(side - np.median(side)) for side in (found.heldout_values, found.values)
    )  # Brown and Forsythe 1974, as a permutation test
    p = two_sample(first, second, seed=seed)
    words = (
        "The distances of control documents from their median were compared with those of suspect documents from "
        f"theirs: p = {rounded_p(p)} that they are larger by chance."
    )
    return _check("spread", title, p > STRICT, words, CLOSER, {"p": p})


def innocent_check(name: str, found: DocumentValues, *, seed: int) -> Check:
    """Whether a placebo finds suspect and control documents equally likely, and equally various, as it must where they
    are alike. It can show differences that a classifier of words does not."""
    title = "A model that never saw the texts finds both sides equally likely"
    turned = DocumentValues(found.heldout_documents, found.heldout_values, found.documents, found.values)
    far, near = (np.abs(side - np.median(side)) for side in (found.heldout_values, found.values))
    tried = [p_value(found, seed=seed), p_value(turned, seed=seed)]
    tried += [two_sample(far, near, seed=seed), two_sample(near, far, seed=seed)]
    p = min(1.0, len(tried) * min(tried))
    words = (
        f"The means and the spreads of what {name} alone makes of suspect texts and control documents were compared, "
        f"in either direction: p = {rounded_p(p)}, for four tests."
    )
    return _check("innocent", title, p > STRICT, words, CLOSER, {"p": p})


def shuffled_check(
    draw: Callable[[np.random.Generator], float], *, repeats: int, level: float, seed: int
) -> Check:
    """Whether the procedure keeps its level with documents assigned to the two sides at random: `draw` gives the
    p-value of one such audit."""
    from scipy.stats import binom

    p = np.array([draw(np.random.default_rng([seed, 2, i])) for i in range(repeats)])
    rejected = int((p <= level).sum())
    # so many or more come by chance less than once in a hundred
    most = int(binom.ppf(1 - STRICT, repeats, level))
    words = (
        f"In {repeats} audits of the same numbers, which text is true and which is not was decided at random. "
        f"{rejected} of them rejected; up to {most} may, by chance."
    )
    title = "With the documents assigned to the two sides at random, nothing is found"
    cure = "The procedure does not hold its level on these texts: choose another one."
    figures = {"repeats": repeats, "rejected": rejected, "most": most}
    return _check("shuffled", title, rejected <= most, words, cure, figures)


def no_control_documents() -> Check:
    """The check of an audit without control documents, which fails: a rejection is then no result."""
    title = "Control documents measure the bias of a model that never saw the texts"
    words = (
        "There are none. A model that knows a kind of text well finds true text likelier than generated text even "
        "where it never saw it. The size of this bias differs from one kind of text to another, and a margin that was "
        "measured on some kinds does not hold on others."
    )
    return Check("controls", title, "failed", words, CONTROLS.format(fewest=FEW_DOCUMENTS))


def gap_check(gaps: Sequence[Gap], why: str, design: Design) -> Check:
    """Whether the texts that are compared are alike enough for this design: `why` says how it was chosen. For suspect
    texts and control documents the rule that chose the design has decided, and only a procedure of the literature,
    which goes on without a design, can fail; for true and generated texts this check decides."""
    title = "The two sets of texts are alike as texts, as far as this design needs it"
    most = WIDEST_GAP if design == "placebos" else ALIKE if design == "controls" else COMPARABLE
    widest = widest_gap(gaps, (most,))
    if widest is None:
        return Check("gap", title, "not run", "There are too few texts for a classifier to learn from.")
    figures: dict[str, Any] = {gap.classifier: [gap.auc.value, gap.auc.low, gap.auc.high] for gap in gaps}
    # Below 0.5 a cross-fitted classifier has found nothing: folds without signal lean to the wrong side.
    if design != "placebos":
        return _check("gap", title, not differ(widest, most), why, CLOSER, figures)
    words = (
        f"A classifier that never saw the model ({widest.classifier}) tells your texts from the generated ones with an "
        f"AUC of {widest.auc.value:.2f} [{widest.auc.low:.2f}, {widest.auc.high:.2f}]; 0.5 is chance; above "
        f"{WIDEST_GAP:.2f} no other result is accepted."
    )
    cure = (
        "Give control documents. Or train the generator longer or on more of the texts, or take one that knows their "
        "language. [--heldout, --generator]"
    )
    return _check("gap", title, not differ(widest, most), words, cure, figures)


def negative_control_check(name: str | None, p: float, level: float) -> Check:
    """Whether the same procedure rejects for another model, a negative control; `name` None where there is none."""
    title = "The same test finds nothing on another model"
    if name is None:
        words = "There is no other model here that could take the target's place."
        return Check("stand-in", title, "not run", words, "Name one. [--placebo]")
    words = f"The same procedure was run with {name} in the target's place: p = {rounded_p(p)}."
    cure = "What was found is in the texts and not in the model: name a placebo, and let the default procedure decide."
    return _check("stand-in", title, p > level, words, cure, {"p": p})


def copies_check(copied: float) -> Check:
    """Whether the generator repeated the true continuations."""
    title = "The generated texts are not copies"
    words = f"{copied:.0%} of the generated continuations are the true ones, word for word."
    cure = "The texts repeat themselves (boilerplate, licences, templates): leave those parts out, and audit the rest."
    return _check("copies", title, copied <= COPIES, words, cure, {"identical": copied})


def _check(name: str, title: str, good: bool, words: str, cure: str, figures: dict[str, Any]) -> Check:
    return Check(name, title, "passed" if good else "failed", words, "" if good else cure, figures)


def times(epochs: int) -> str:
    """A number of epochs in words, for sentences."""
    return "once" if epochs == 1 else "twice" if epochs == 2 else f"{epochs} times"
