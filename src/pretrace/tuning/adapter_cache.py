"""A cache of tuned adapters, each under everything it depends on."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pretrace.cache.location import cache_folder, text_key
from pretrace.errors import ModelError
from pretrace.tuning.methods import Method
from pretrace.tuning.plan import OnStep
from pretrace.types import Backend, Corpus, Tuned

if TYPE_CHECKING:
    from pretrace.backends.huggingface import HuggingFace


def tuned_model(
    model: Backend,
    texts: Corpus,
    method: Method,
    *,
    seed: int = 0,
    cache: bool = True,
    on_step: OnStep | None = None,
) -> Tuned:
    """The model with an adapter tuned on the texts, over the same weights in memory.

    The adapter is kept in the cache under everything it depends on and taken from there the next time;
    `cache` False keeps nothing. ModelError where the model has no weights here.
    """
    from pretrace.backends.adapters import attach
    from pretrace.backends.huggingface import HuggingFace
    from pretrace.tuning.adapters import tune

    if not isinstance(model, HuggingFace):
        raise ModelError(f"tuning needs a model with local weights; {model.name} has none here.")
    with _place(model, texts, method, seed=seed, cache=cache) as folder:
        if folder.exists():
            with contextlib.suppress(ModelError):  # damaged: it is made anew
                return attach(model, folder)
            shutil.rmtree(folder)
        tune(model, texts, method, folder=folder, seed=seed, on_step=on_step)
        return attach(model, folder)


@contextlib.contextmanager
def _place(model: HuggingFace, texts: Corpus, method: Method, *, seed: int, cache: bool) -> Iterator[Path]:
    """Where the adapter is kept: in the cache, or in a folder that lasts until it is read."""
    if not cache:
        with tempfile.TemporaryDirectory(prefix="pretrace-") as folder:
            yield Path(folder) / "adapter"
        return
    from pretrace.tuning.number_format import settled

    # The format "auto" is settled to is a part of the name: an adapter trained in another is another.
    precision = settled(method.precision, model.device)
    digest = hashlib.sha256(f"{model.fingerprint} {method!r} {seed} {precision}".encode())
    for text in texts.texts:  # in their order, on which the batches depend
        digest.update(text_key(text.text) + bytes([{True: 1, False: 0, None: 2}[text.member]]))
    yield cache_folder() / "adapters" / digest.hexdigest()[:32]
