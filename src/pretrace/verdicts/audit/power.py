"""The power of an audit: a copy of the target is trained on a part of the suspect texts, and audited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pretrace.statistics.documents import link_documents
from pretrace.tuning.planting import PlantSettings, in_words, split_members
from pretrace.types import Check, Corpus, Doubles, Estimate, Power
from pretrace.verdicts.audit.data import AuditData
from pretrace.verdicts.audit.document_values import DocumentValues
from pretrace.verdicts.audit.snippets import Samples
from pretrace.verdicts.outcome import ENOUGH, exposure
from pretrace.verdicts.planting import check_plantable, planted_copy, power_of


def measured(data: AuditData, corpus: Corpus, exposures: Sequence[PlantSettings]) -> tuple[Power, ...]:
    """The power of the test, at this audit's number of documents, for each exposure in turn.

    The texts of some documents (`share`) are trained on, in a copy of the target; the same pieces are then read by
    that copy. Each planted document gives the shift that training brought; the spread between documents is that of
    the audit itself, around 0. ModelError where the target has no weights here.
    """
    check_plantable(data.target)
    return tuple(_measured(data, corpus, replace(one, seed=data.seed)) for one in exposures)


def _measured(data: AuditData, corpus: Corpus, settings: PlantSettings) -> Power:
    labelled = split_members(corpus, settings.share, settings.seed)
    owner = link_documents(corpus.texts)
    members = {owner[text.document] for text in labelled.texts if text.member}
    noise = data.values
    samples = _restricted(data.samples, members)
    before = replace(data, samples=samples, placebos=data.deciding, _logprobs={})
    training, cache = data.watch.training, data.settings.cache
    with planted_copy(data.target, corpus, settings, cache=cache, training=training) as copy:
        after = before.with_target(copy).values
    shift = shifts(before.values, after) - noise.margin
    rate = settings.rate(existing=True)
    return power_of(
        noise.values,
        shift,
        data.settings.level,
        epochs=settings.epochs,
        controls=None if noise.paired else noise.heldout_values,
        facts={
            "how": in_words(settings.method, rate),
            "units": len(noise.documents),
            "learning_rate": rate,
            "passages a step": settings.batch,
        },
    )


def deciding_power(found: Sequence[Power], effect: Estimate | None) -> Power | None:
    """The lightest exposure that the audit excludes: found often enough, and bringing more than the effect's upper
    bound. Without such a one, the lightest that is found often enough, or else the heaviest."""
    enough = [one for one in found if one.probability.value >= ENOUGH]
    excluded = [one for one in enough if effect is not None and effect.high < one.effect.low]
    return next(iter([*excluded, *enough, *reversed(found)]), None)


def power_check(found: Sequence[Power], deciding: Power | None) -> Check:
    """Whether the audit would have detected training on the texts, by the exposure that decides; for an audit that did
    not reject. Its words tell of every exposure that was tried."""
    title = "Training on these texts would have been seen"
    if deciding is None:
        return Check("power", title, "not run", "It was not measured.")  # the rule of all verdicts advises it
    words = " ".join(
        f"{exposure(one, 'document').capitalize()}: had the target been trained like that, this audit would have seen "
        f"it with probability {one.probability.value:.2f} [{one.probability.low:.2f}, {one.probability.high:.2f}]."
        for one in found
    )
    cure = (
        f"Add documents: about {deciding.needed:,} would be needed for {ENOUGH:.0%}."
        if deciding.needed
        else "More documents alone would hardly help: a closer placebo would."
    )
    figures = {
        f"{one.facts.get('learning_rate', 'probability')}": [
            one.probability.value,
            one.probability.low,
            one.probability.high,
        ]
        for one in found
    }
    return Check.of("power", title, deciding.probability.value >= ENOUGH, words, cure, figures)


def shifts(before: DocumentValues, after: DocumentValues) -> Doubles:
    """How much training raised each planted document, beyond the held-out ones."""
    gained = after.values - before.values
    if before.paired:
        return np.asarray(gained)
    return np.asarray(gained - (after.heldout_values - before.heldout_values).mean())


def _restricted(samples: Samples, members: set[str]) -> Samples:
    rows = [i for i, sample in enumerate(samples.suspect) if sample.document in members]
    suspect = tuple(samples.suspect[i] for i in rows)
    heldout = tuple(samples.heldout[i] for i in rows) if samples.paired else samples.heldout
    return replace(samples, suspect=suspect, heldout=heldout)
