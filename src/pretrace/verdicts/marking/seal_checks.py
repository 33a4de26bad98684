"""Checks on a sealed file: that it is the one committed to, what was published of it, and who has tested it before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pretrace.cache.register import earlier_audits, note_audit
from pretrace.errors import TextsError
from pretrace.types import Backend, Check, Corpus, Verdict
from pretrace.verdicts.marking.sealed import Seal
from pretrace.verdicts.marking.variants import collapsed
from pretrace.verdicts.record import listed

TRIES = "tries"
"""The name of the check on earlier tests of the same seal."""


def weights_of(model: Backend) -> str:
    """What names a model's weights: their hash, or the fingerprint where they are not here."""
    weights = model.facts.get("weights")
    return str(weights) if weights not in (None, "unknown") else model.fingerprint


def check_published(seal: Seal, published: Corpus) -> tuple[str, ...]:
    """Notes on what was published, compared with the seal apart from white space.

    TextsError for a text that the seal has not, that is none of its variants, or is another variant than the one
    drawn. A text that is missing stays in the test: leaving texts out afterwards would be a choice.
    """
    drawn = {one.id: one.published for one in seal.documents} | {one.id: one.text for one in seal.unmarked}
    variants = {one.id: {collapsed(text) for text in one.variants} for one in seal.documents}
    changed = [
        text
        for text in published.texts
        if text.id in drawn and collapsed(text.text) != collapsed(drawn[text.id])
    ]
    other = [text.id for text in changed if collapsed(text.text) in variants.get(text.id, ())]
    _refuse(
        [text.id for text in published.texts if text.id not in drawn],
        "ids that the sealed file has not",
        "give the published texts under the ids of published.jsonl",
    )
    _refuse(
        [text.id for text in changed if text.id not in other],
        "texts that are none of their variants in the sealed file",
        "give the texts as they were published",
    )
    _refuse(
        other,
        "texts that are another variant than the one drawn",
        "the test holds only for what the lot decided; publish the variant that was drawn",
    )
    compared = f"{len(published):,} published texts were compared with the sealed file: they are those drawn."
    missing = sorted(set(variants) - {text.id for text in published.texts})
    return (compared, *_missing_note(missing))


def _missing_note(missing: Sequence[str]) -> tuple[str, ...]:
    if not missing:
        return ()
    return (
        f"{len(missing):,} marked texts are not among the published ones ({listed(missing)}). They stay in the test, "
        "which costs power but keeps it exact.",
    )


def seal_check(seal: Seal) -> Check:
    """The check that the seal is the one that was committed to, which reading it has made."""
    return Check(
        "seal",
        "The sealed file is the one that was committed to",
        "passed",
        f"Its SHA-256 is {seal.sha256}, as the commitment says. That the commitment was made before the model was "
        "trained is for its publication or timestamp to show.",
    )


def earlier_checks(seal: Seal) -> tuple[dict[str, Any], ...]:
    """What this machine's register holds on tests of this seal, of any model, oldest first."""
    return earlier_audits(f"seal {seal.sha256}")


def tries_check(earlier: Sequence[Mapping[str, Any]], weights: str, asked: Mapping[str, Any]) -> Check:
    """Whether this seal was never tested against the same weights in another way (`asked` holds score and reference).

    The same test again gives the same p. Another one is a second chance, and the smallest of several p-values is no
    p-value.
    """
    title = "This seal was not tested on this model in another way before"
    same = [one for one in earlier if one.get("weights") == weights]
    differing = [one for one in same if any(one.get(name) != value for name, value in asked.items())]
    words = (
        f"This machine knows of {len(earlier):,} earlier tests of this sealed file, {len(same):,} of them on this "
        "model."
    )
    if not differing:
        return Check(TRIES, title, "passed", f"{words} None was made in another way.")
    told = "; ".join(
        f"{one.get('time')}: score {one.get('score')}, p = {one.get('p')}" for one in differing[:5]
    )
    words += (
        f" {len(differing):,} had another score, another reference model or other answers ({told}). Whoever tries "
        "several ways finds a small p by chance more often than the level says."
    )
    cure = "Take the result of the first test that was made, or mark new texts."
    return Check(TRIES, title, "failed", words, cure, {"earlier": [dict(one) for one in differing]})


def note_check(seal: Seal, weights: str, verdict: Verdict, asked: Mapping[str, Any]) -> None:
    """Add the test to this machine's register."""
    note_audit(
        {
            "texts": f"seal {seal.sha256}",
            "weights": weights,
            "test": verdict.test,
            "time": verdict.settings.get("time"),
            **asked,
            "p": verdict.p,
            "outcome": verdict.outcome,
        }
    )


def _refuse(names: Sequence[str], what: str, cure: str) -> None:
    if names:
        raise TextsError(f"the published texts hold {len(names):,} {what}: {listed(names)}; {cure}.")
