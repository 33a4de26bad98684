"""What training on the texts would bring: a copy of the target reads them, and the same values are taken again."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pretrace.backends.huggingface import HuggingFace, open_huggingface
from pretrace.cache.location import cache_folder, text_key
from pretrace.errors import ModelError
from pretrace.statistics.intervals import mean_interval
from pretrace.statistics.power import PlantedValues
from pretrace.tuning.plan import OnStep
from pretrace.tuning.planting import PlantSettings, in_words, plant, split_members
from pretrace.types import Backend, Corpus, Doubles, Power, Text
from pretrace.verdicts.settings import TestSettings

SIZES = (10, 20, 50, 100, 200, 500, 1000)
"""The numbers of units for which the power is drawn."""
PLANTING = "planting texts in a copy"
"""The name of the stage."""


@dataclass(frozen=True, slots=True, eq=False)
class PlantedShift:
    """How much training, done as `how` says, moved the value of each planted unit, [planted]; `units` are their places
    where each is one text."""

    moved: Doubles
    how: PlantSettings
    units: tuple[int, ...] = ()


def paired_power(values: Doubles, shift: PlantedShift, settings: TestSettings, *, seed: int = 0) -> Power:
    """The power of a test of one value a unit against 0, `values` [units], with the shift that training brought."""
    noise, moved = values[np.isfinite(values)], shift.moved[np.isfinite(shift.moved)]
    return power_of(noise, moved, settings.level, how=shift.how, seed=seed)


def power_of(
    noise: Doubles,
    shift: Doubles,
    level: float,
    *,
    how: PlantSettings,
    controls: Doubles | None = None,
    seed: int = 0,
    **facts: object,
) -> Power:
    """The power of a test of a value a unit, `noise` [units], against 0 or `controls`, where training adds `shift`."""
    planted = PlantedValues.of(noise, shift, controls, level=level, seed=seed)
    return Power(
        probability=planted.power(len(noise)),
        needed=planted.needed(),
        planted=len(shift),
        epochs=how.epochs,
        effect=mean_interval(shift),
        curve=planted.curve(SIZES),
        facts={**trained(how, len(noise)), **facts},
    )


def trained(how: PlantSettings, units: int) -> dict[str, object]:
    """How the copy was trained on some of so many units, for the sentence on what an all-clear excludes."""
    rate = how.rate(existing=True)
    return {"how": in_words(how.method, rate), "learning_rate": rate, "units": units}


def plantable(target: Backend) -> bool:
    """Whether a copy of the target can be trained."""
    return isinstance(target, HuggingFace)


def check_plantable(target: Backend) -> None:
    """Raise ModelError where no copy of the target can be trained."""
    if not plantable(target):
        raise ModelError(
            f"--power trains a copy of the target, and {target.name} has no weights here: omit it."
        )


@contextmanager
def planted_copy(
    target: Backend,
    corpus: Corpus,
    settings: PlantSettings,
    *,
    cache: bool,
    training: Callable[[str], AbstractContextManager[OnStep | None]],
) -> Iterator[tuple[Backend, tuple[Text, ...]]]:
    """A copy of the target, opened as the target is, and the texts that it was trained on, whole documents drawn at
    random (`split_members`). Its folder lies in the cache while it is needed, so that a killed training goes on, and is
    deleted afterwards. ModelError where the target has no weights here. `training` watches the stage of that name."""
    check_plantable(target)
    assert isinstance(target, HuggingFace)
    with ExitStack() as passing:
        if cache:
            digest = hashlib.sha256(f"{target.fingerprint} {settings!r}".encode())
            for text in corpus.texts:
                digest.update(text_key(text.text) + text.document.encode("utf-8", "surrogatepass"))
            folder = cache_folder() / "planted" / digest.hexdigest()[:32]
        else:
            folder = Path(passing.enter_context(tempfile.TemporaryDirectory(prefix="pretrace-"))) / "planted"
        if not (folder / "card.json").is_file():
            with training(PLANTING) as on_step:
                start = (target.model, target.tokenizer)
                plant(corpus, settings=settings, folder=folder, start=start, on_step=on_step)
        dtype = str(target.facts["dtype"])
        copy = open_huggingface(str(folder), replace(target.settings, revision=None, dtype=dtype))
        labelled = split_members(corpus, settings.share, settings.seed)
        yield copy, tuple(text for text in labelled.texts if text.member)
    if cache:
        shutil.rmtree(folder, ignore_errors=True)  # half a gigabyte and more; its traces are kept
