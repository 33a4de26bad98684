"""Synthetic held-out texts: what a generator writes where the suspect texts go on, made once and kept."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pretrace.cache.generated import Draw, open_continuations
from pretrace.cache.location import text_key
from pretrace.scoring.evidence import Progress, Silent
from pretrace.tuning.plan import OnStep
from pretrace.types import Backend, Corpus, Generator, Text

__all__ = ["Draw", "complete", "tuned_generator"]

NO_TUNING = "none"
_CHUNK = 256  # prompts generated, and stored, together


def complete(
    generator: Generator,
    prompts: Sequence[str],
    draw: Draw,
    *,
    cache: bool = True,
    progress: Progress | None = None,
) -> list[str]:
    """What the generator writes after each prompt, to be set right behind it, in the prompts' order.

    Only what is not on disk yet is generated, and every chunk is stored when it is done. Chunks are planned
    over all the prompts, whatever is stored: a run that was killed goes on with the same batches. `cache`
    False keeps nothing. Raises what the generator raises, and OutputError where the cache cannot be written.
    """
    progress = progress or Silent()
    texts = {text_key(prompt): prompt for prompt in prompts}
    progress.begin(len(texts))
    with open_continuations(generator.fingerprint if cache else None) as store:
        stored = dict(zip(texts, store.get(list(texts), draw.label), strict=True))
        known = {key: text for key, text in stored.items() if text is not None}
        progress.advance(len(known), draw.tokens * len(known), 0.0, False)
        for chunk in _chunks(generator, texts) if len(known) < len(texts) else ():
            missing = [key for key in chunk if key not in known]
            if not missing:
                continue
            begin = time.perf_counter()
            made = generator.complete(
                [texts[key] for key in missing], tokens=draw.tokens, sampling=draw.sampling, seed=draw.seed
            )
            store.put(missing, made, draw.label)
            known |= zip(missing, made, strict=True)
            progress.advance(len(missing), draw.tokens * len(missing), time.perf_counter() - begin, True)
    return [known[text_key(prompt)] for prompt in prompts]


def _chunks(generator: Generator, texts: dict[bytes, str]) -> list[list[bytes]]:
    """Keys of prompts of similar length together, the longest first: a generator then has full batches, and a
    batch that does not fit into memory says so at once."""
    lengths = {key: len(generator.spans(text)) for key, text in texts.items()}
    order = sorted(texts, key=lambda key: (-lengths[key], key))
    return [order[at : at + _CHUNK] for at in range(0, len(order), _CHUNK)]


def tuned_generator(
    model: Backend,
    texts: Sequence[str],
    method: str,
    *,
    seed: int = 0,
    cache: bool = True,
    on_step: OnStep | None = None,
) -> Generator:
    """A generator that learnt to write like the texts: the model with an adapter tuned on all of them.

    `method` is an expression such as "lora(rank=32, epochs=3, learning_rate=2e-4)"; with "none", or without
    texts, it is the model as it stands. The adapter is kept in the cache unless `cache` is False.
    ExpressionError for another method, ModelError where the model has no weights here.
    """
    from pretrace.backends.generation import Completer
    from pretrace.tuning.adapter_cache import tuned_model
    from pretrace.tuning.methods import methods

    if method.strip() == NO_TUNING:
        return Completer(model)
    how = methods.make(method)
    if not texts:
        return Completer(model)
    # Without labels, so that whatever side the method names it is given all of them.
    learnt = Corpus("generator-training texts", tuple(Text(str(i), text) for i, text in enumerate(texts)))
    return Completer(tuned_model(model, learnt, how, seed=seed, cache=cache, on_step=on_step).backend)
