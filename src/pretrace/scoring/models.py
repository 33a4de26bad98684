"""The models of a run, opened once from the settings that name them, and tuned where scores ask for it."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial

from pretrace.backends import open_adapter, open_model
from pretrace.backends.serving.address import served_kind
from pretrace.backends.settings import ModelSettings
from pretrace.frequencies import Frequencies
from pretrace.scoring.holdout import Parts
from pretrace.scoring.plan import Models, ModelsSettings, Target, check_placebos
from pretrace.tuning.adapters import tuned_model
from pretrace.tuning.artifacts import read_adapter
from pretrace.tuning.methods import methods
from pretrace.tuning.plan import OnStep
from pretrace.types import Backend, Proposer


def open_models(settings: ModelsSettings) -> Models:
    """All models that the settings name, each opened once; without those that are tuned (`with_texts`).

    Raises a PretraceError where one cannot be opened, and for a placebo with the weights of the target; a wrong
    adapter or count table is found before any is.
    """
    beside, alone = settings.companions, _alone(settings)
    counts = Frequencies.load(beside.counts) if beside.counts else None
    if beside.tuned:
        read_adapter(beside.tuned)
    target = _opened(settings.target.model, settings.target.opening, alone)
    opening = _others(settings.target)
    models = Models(target, counts=counts)
    if beside.reference_model:
        reference = _opened(beside.reference_model, replace(opening, revision=None), alone)
        models = replace(models, reference=reference)
    if beside.neighbors:
        proposer = _proposer(beside.neighbors, target, opening, cache=settings.cache)
        models = replace(models, proposer=proposer)
    at = replace(opening, revision=settings.placebo_revision)
    placebos = tuple(_opened(name, at, alone) for name in settings.placebos)
    check_placebos(target, placebos)
    if settings.several:
        return replace(models, placebos=placebos)
    return replace(models, placebo=replace(models, target=placebos[0]) if placebos else None)


def with_texts(
    models: Models,
    settings: ModelsSettings,
    parts: Parts | None = None,
    method: str = "lora",
    *,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> Models:
    """The models with the reference texts, and with the adapter that was named or one tuned on the texts set aside.

    A placebo is given the same texts, and is tuned as the target was. ModelError where an adapter belongs to another
    model.
    """
    if parts and parts.reference:
        placebo = replace(models.placebo, labelled=parts.reference) if models.placebo else None
        models = replace(models, labelled=parts.reference, placebo=placebo)
    texts, how, adapter = parts.tuning if parts else None, None, None
    if settings.companions.tuned:
        adapter = read_adapter(settings.companions.tuned)
        how, seed, texts = adapter.method, adapter.seed, adapter.texts
    if texts is None:
        return models
    how = how or methods.make(method)
    tune = partial(tuned_model, texts=texts, method=how, seed=seed, cache=settings.cache, on_step=on_step)
    tuned = open_adapter(models.target, adapter.folder) if adapter else tune(models.target)
    if models.placebo is None:
        return replace(models, tuned=tuned)
    placebo = replace(models.placebo, tuned=tune(models.placebo.target))
    return replace(models, tuned=tuned, placebo=placebo)


def open_references(settings: ModelsSettings) -> tuple[Backend, ...]:
    """The reference models beside the one that scores ask, in the order they are named; PretraceError as for one."""
    opening, alone = replace(_others(settings.target), revision=None), _alone(settings)
    return tuple(_opened(name, opening, alone) for name in settings.references)


def _others(target: Target) -> ModelSettings:
    """The settings of the models beside the target: on a server they have names of their own."""
    return replace(target.opening, served_model=None) if served_kind(target.model) else target.opening


def _alone(settings: ModelsSettings) -> bool:
    """Whether all models are on servers, or all have weights here."""
    return len({served_kind(name) is None for name in settings.named}) == 1


def _opened(model: str, opening: ModelSettings, alone: bool) -> Backend:
    """The model; where a run has weights here and servers, each is given the settings it follows. `alone` says that
    it has one kind, which is given all of them and refuses the others'."""
    if not alone:
        opening = opening.for_server() if served_kind(model) else opening.for_weights()
    return open_model(model, **asdict(opening))


def _proposer(spec: str, target: Backend, opening: ModelSettings, *, cache: bool) -> Proposer:
    """What proposes words, opened as the target was; the target itself is not opened again."""
    from pretrace.backends.proposals import open_proposer

    names = ("dtype", "device", "trust_remote_code", "allow_pickle") if ":" in spec else ()
    return open_proposer(spec, target, cache=cache, **{name: getattr(opening, name) for name in names})
