"""The power of an audit: a copy of the target is trained on a part of the suspect texts, and audited."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pretrace.cache.location import cache_folder, text_key
from pretrace.errors import ModelError
from pretrace.statistics import power as statistics
from pretrace.statistics.documents import link_documents
from pretrace.statistics.intervals import mean_interval
from pretrace.tuning.plan import OnStep
from pretrace.tuning.planting import PlantSettings, in_words, plant, split_members
from pretrace.types import Backend, Check, Corpus, Doubles, Estimate, Power
from pretrace.verdicts.audit.data import AuditData
from pretrace.verdicts.audit.document_values import DocumentValues
from pretrace.verdicts.audit.generation import PLANTING
from pretrace.verdicts.audit.snippets import Samples
from pretrace.verdicts.outcome import ENOUGH, exposure

if TYPE_CHECKING:
    from pretrace.backends.huggingface import HuggingFace

SIZES = (10, 20, 50, 100, 200, 500, 1000)


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
    return _power(noise, shift, settings, level=data.settings.level)


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
    good = deciding.probability.value >= ENOUGH
    return Check("power", title, "passed" if good else "failed", words, "" if good else cure, figures)


def plantable(target: Backend) -> bool:
    """Whether a copy of the target can be trained."""
    from pretrace.backends.huggingface import HuggingFace

    return isinstance(target, HuggingFace)


def check_plantable(target: Backend) -> None:
    """Raise ModelError where no copy of the target can be trained."""
    if not plantable(target):
        raise ModelError(f"--power trains a copy of the target, and {target.name} has no weights here.")


def shifts(before: DocumentValues, after: DocumentValues) -> Doubles:
    """How much training raised each planted document, beyond the held-out ones."""
    gained = after.values - before.values
    if before.paired:
        return np.asarray(gained)
    return np.asarray(gained - (after.heldout_values - before.heldout_values).mean())


def _power(noise: DocumentValues, shift: Doubles, settings: PlantSettings, *, level: float) -> Power:
    heldout = None if noise.paired else noise.heldout_values
    size = len(noise.documents)
    if heldout is None:
        probability = statistics.power(noise.values, shift, size, level=level)
    else:
        probability = statistics.power_two_sample(noise.values, shift, heldout, size, level=level)
    return Power(
        probability=probability,
        needed=statistics.needed(noise.values, shift, heldout=heldout, level=level),
        planted=len(shift),
        epochs=settings.epochs,
        effect=mean_interval(shift),
        curve=statistics.curve(noise.values, shift, SIZES, heldout=heldout, level=level),
        facts={
            "how": in_words(settings.method, settings.rate(existing=True)),
            "units": size,
            "learning_rate": settings.rate(existing=True),
            "passages a step": settings.batch,
        },
    )


def _restricted(samples: Samples, members: set[str]) -> Samples:
    """The samples of the planted documents, and those they are compared with."""
    rows = [i for i, sample in enumerate(samples.suspect) if sample.document in members]
    suspect = tuple(samples.suspect[i] for i in rows)
    heldout = tuple(samples.heldout[i] for i in rows) if samples.paired else samples.heldout
    return replace(samples, suspect=suspect, heldout=heldout)


@contextmanager
def planted_copy(
    target: Backend,
    corpus: Corpus,
    settings: PlantSettings,
    *,
    cache: bool,
    training: Callable[[str], AbstractContextManager[OnStep | None]],
) -> Iterator[Backend]:
    """A copy of the target, trained on the members that `split_members` draws from the corpus and opened as the target
    is. Its folder lies in the cache while it is needed, so that a killed training goes on, and is deleted afterwards.

    ModelError where the target has no weights here. `training` watches the stage of that name.
    """
    from pretrace.backends.huggingface import HuggingFace, open_huggingface

    check_plantable(target)
    assert isinstance(target, HuggingFace)
    with _place(target, corpus, settings, cache=cache) as folder:
        if not (folder / "card.json").is_file():
            with training(PLANTING) as on_step:
                start = (target.model, target.tokenizer)
                plant(corpus, settings=settings, folder=folder, start=start, on_step=on_step)
        dtype = str(target.facts["dtype"])
        yield open_huggingface(str(folder), replace(target.settings, revision=None, dtype=dtype))


@contextmanager
def _place(target: HuggingFace, corpus: Corpus, settings: PlantSettings, *, cache: bool) -> Iterator[Path]:
    if not cache:
        with tempfile.TemporaryDirectory(prefix="pretrace-") as passing:
            yield Path(passing) / "planted"
        return
    digest = hashlib.sha256(f"{target.fingerprint} {settings!r}".encode())
    for text in corpus.texts:
        digest.update(text_key(text.text) + text.document.encode("utf-8", "surrogatepass"))
    folder = cache_folder() / "planted" / digest.hexdigest()[:32]
    yield folder
    shutil.rmtree(folder, ignore_errors=True)  # half a gigabyte and more; its traces are kept
