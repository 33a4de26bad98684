"""Models whose batches are read by workers on a cluster, for an audit: it plans the batches itself, so its numbers are
those of one process, and keeps what comes back where it keeps what it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from pretrace.errors import EngineError, ExpressionError
from pretrace.jobs.engine.cluster import connected
from pretrace.jobs.engine.pool import Piece, Pool
from pretrace.jobs.settings import EngineSettings
from pretrace.scoring.plan import Models
from pretrace.scoring.settings import ModelsSettings
from pretrace.types import Backend, Encoded, Quantity, States, Streaming, Trace


@dataclass(frozen=True, slots=True)
class Reading:
    """The work of one reading worker: which models it opens."""

    wanted: ModelsSettings

    def open(self) -> tuple[dict[str, str], Callable[[Any], Any]]:
        """The models' fingerprints by role, and what reads a batch with one of them."""
        from pretrace.scoring.models import open_models

        opened = roles(open_models(self.wanted))

        def read(content: tuple[str, Sequence[Encoded], Quantity, States]) -> list[Trace]:
            role, batch, want, states = content
            return opened[role].run(batch, want, states)

        return {role: backend.fingerprint for role, backend in opened.items()}, read


class ReadElsewhere:
    """A model whose batches are read by workers; all else is that of the model itself, which is open here too."""

    def __init__(self, backend: Backend, role: str, pool: Pool) -> None:
        self._backend, self._role, self._pool = backend, role, pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def stream(
        self, batches: Sequence[Sequence[Encoded]], want: Quantity, states: States = frozenset(), /
    ) -> Iterator[tuple[int, list[Trace]]]:
        """The traces of each batch as soon as they are there, with the batch's number."""
        pieces = (
            Piece(number, f"batch {number + 1} of {len(batches)}", (self._role, batch, want, states))
            for number, batch in enumerate(batches)
        )
        for piece, answer in self._pool.each(pieces):
            yield piece.tag, answer.value


def roles(models: Models) -> dict[str, Backend]:
    """The models that workers read with, by role; not those behind servers, which answer several at once themselves."""
    from pretrace.backends.adapters import Adapted
    from pretrace.backends.huggingface import HuggingFace

    found: dict[str, Backend | None] = {"target": models.target, "reference": models.reference}
    found |= {f"placebo {number}": one for number, one in enumerate(models.placebos, 1)}
    here = (HuggingFace, Adapted)
    return {
        role: one
        for role, one in found.items()
        if one is not None and (isinstance(one, here) or not isinstance(one, Streaming))
    }


@contextmanager
def reading_elsewhere(settings: EngineSettings, wanted: ModelsSettings, models: Models) -> Iterator[Models]:
    """The models, read by workers on the cluster that the settings name, or as they are without one.

    EngineError where the workers' models are others than those of this machine.
    """
    if not settings.on_ray:
        yield models
        return
    mine = roles(models)
    if not mine:
        raise ExpressionError(
            "--engine ray has no use: all models are behind servers, which are asked from here."
        )
    with connected(settings.address) as ray, Pool(ray, Reading(wanted), settings) as pool:
        for role, backend in mine.items():
            if pool.told.get(role) != backend.fingerprint:
                raise EngineError(
                    f"the workers' {role} is not this machine's {backend.name}: give all hosts the same files, and say "
                    "--dtype where some have GPUs and others not."
                )
        spread = {id(one): cast(Backend, ReadElsewhere(one, role, pool)) for role, one in mine.items()}
        yield replace(models, elsewhere=lambda backend: spread.get(id(backend), backend))
