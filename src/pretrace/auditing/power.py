"""The power of an audit: a copy of the target is trained on a part of the suspect texts, and audited."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pretrace.auditing.data import AuditData
from pretrace.auditing.document_values import DocumentValues
from pretrace.auditing.snippets import Samples
from pretrace.cache.location import cache_folder, text_key
from pretrace.errors import ModelError
from pretrace.statistics import power as statistics
from pretrace.statistics.documents import linked
from pretrace.statistics.intervals import mean_interval
from pretrace.tuning.plan import OnStep
from pretrace.tuning.planting import PlantSettings, plant, split_members
from pretrace.types import Backend, Corpus, Doubles, Power

if TYPE_CHECKING:
    from pretrace.backends.huggingface import HuggingFace

SIZES = (10, 20, 50, 100, 200, 500, 1000)


def measured(data: AuditData, corpus: Corpus, settings: PlantSettings, procedure: str) -> Power:
    """The power of the procedure that decides, at this audit's number of documents.

    The texts of some documents (`settings.share`) are trained on, in a copy of the target; the same pieces are
    then read by that copy. Each planted document gives the shift that training brought it; the spread between
    documents is that of the audit itself, around 0. ModelError where the target has no weights here.
    """
    check_plantable(data.target)
    labelled = split_members(corpus, settings.share, settings.seed)
    owner = linked(corpus.texts)
    members = {owner[text.document] for text in labelled.texts if text.member}
    noise = data.values(procedure)
    samples = _restricted(data.samples, members)
    before = replace(data, samples=samples, placebos=data.deciding, _logprobs={})
    training, cache = data.watch.training, data.settings.cache
    with planted_copy(data.target, corpus, settings, cache=cache, training=training) as copy:
        after = before.with_target(copy).values(procedure)
    shift = shifts(before.values(procedure), after) - noise.margin
    return _power(noise, shift, settings, level=data.settings.level)


def check_plantable(target: Backend) -> None:
    """Raise ModelError where no copy of the target can be trained."""
    from pretrace.backends.huggingface import HuggingFace

    if not isinstance(target, HuggingFace):
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
            with training("planting texts in a copy") as on_step:
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
