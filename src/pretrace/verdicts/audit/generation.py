"""From the suspect texts to the samples that are compared: control documents, generated continuations, or both.

Continuations are generated once and kept in the cache.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pretrace.cache.location import text_key
from pretrace.cache.store import Draw, open_continuations
from pretrace.errors import TextsError
from pretrace.scoring.evidence import Progress, Silent
from pretrace.scoring.outlook import Watch
from pretrace.tuning.plan import OnStep
from pretrace.types import Backend, Corpus, Generator, Pair, Text
from pretrace.verdicts.audit.settings import AuditSettings
from pretrace.verdicts.audit.snippets import (
    Pieces,
    Samples,
    Snippet,
    SnippetCut,
    check_enough,
    divide,
    shared_pieces,
)

__all__ = ["Draw", "complete", "tuned_generator"]

NO_TUNING = "none"
_FEWEST_SNIPPETS = 20
TRAINING, WRITING, TUNING = "training the generator", "writing continuations", "tuning a placebo"
SCORING = "scoring with the target"
"""Names of stages, with those of `reading`."""
_CHUNK = 256  # prompts generated, and stored, together


def reading(target: Backend, model: Backend) -> str:
    """The stage in which the target, or a model beside it, reads what both sides are compared by."""
    return "reading with the target" if model is target else f"reading with {model.name}"


class _Spanned(Protocol):
    """A generator or a model: it gives the place of each token in a text."""

    def spans(self, text: str, /) -> npt.NDArray[np.int64]:
        """Characters [start, end) of each token of a text, shape [n, 2]."""
        ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """The suspect samples with control or generated ones beside them; `controls` are control samples with
    generated ones. `pairs` and `control_pairs` are the same as pairs of texts, `training` the snippets the
    generator learnt from. `cut` and `heldout` say what was cut of either set and left out."""

    samples: Samples
    cut: SnippetCut
    pairs: tuple[Pair, ...] = ()
    training: tuple[Snippet, ...] = ()
    generator: Generator | None = None
    heldout: SnippetCut | None = None
    controls: Samples | None = None
    control_pairs: tuple[Pair, ...] = ()
    notes: tuple[str, ...] = ()


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
    from pretrace.tuning.adapters import tuned_model
    from pretrace.tuning.plan import methods

    if method.strip() == NO_TUNING:
        return Completer(model)
    how = methods.make(method)
    if not texts:
        return Completer(model)
    # Without labels, so that whatever side the method names it is given all of them.
    learnt = Corpus("generator-training texts", tuple(Text(str(i), text) for i, text in enumerate(texts)))
    return Completer(tuned_model(model, learnt, how, seed=seed, cache=cache, on_step=on_step).backend)


def synthesised(
    cuts: Sequence[SnippetCut], generator: Backend, settings: AuditSettings, watch: Watch, *, seed: int
) -> Prepared:
    """Continuations written by a copy of `generator` that was tuned on a part of the snippets.

    `cuts` are the suspect snippets and, where there are any, those of control documents: both are treated alike, and
    the generator learns from both. A snippet whose continuation comes out empty is left out and counted.
    """
    divided = [divide(one.snippets, settings.snippets, seed=seed) for one in cuts]
    learnt = tuple(snippet for _, rest in divided for snippet in rest) if settings.method != NO_TUNING else ()
    with watch.training(TRAINING) as on_step:
        tuned = tuned_generator(
            generator,
            [snippet.text for snippet in learnt],
            settings.method,
            seed=seed,
            cache=settings.cache,
            on_step=on_step,
        )
    asked = [snippet.prefix for judged, _ in divided for snippet in judged]
    with watch.passes(WRITING) as progress:
        written = complete(tuned, asked, settings.draw(seed), cache=settings.cache, progress=progress)
    made, at = [], 0
    for judged, _ in divided:
        some = zip(judged, written[at : at + len(judged)], strict=True)
        made.append(tuple(Pair(s.id, s.document, s.prefix, s.suffix, text) for s, text in some if text))
        at += len(judged)
    lost = len(asked) - sum(map(len, made))
    notes = (f"{lost:,} snippets were given no continuation and were left out.",) if lost else ()
    pairs, others = made[0], made[1] if len(made) > 1 else ()
    return Prepared(
        Samples.of_pairs(pairs),
        cuts[0],
        pairs,
        learnt,
        tuned,
        heldout=cuts[1] if len(cuts) > 1 else None,
        controls=Samples.of_pairs(others) if others else None,
        control_pairs=others,
        notes=notes,
    )


def compared(cuts: Sequence[SnippetCut], settings: AuditSettings, *, seed: int) -> Prepared:
    """Snippets of the suspect texts and of control documents, as they are; nothing is generated."""
    whole = replace(settings.snippets, share=1.0)
    suspect, others = (divide(one.snippets, whole, seed=seed)[0] for one in cuts)
    return Prepared(Samples.of_snippets(suspect, others), cuts[0], heldout=cuts[1])


def cut_alike(
    corpus: Corpus, heldout: Corpus | None, model: _Spanned, settings: AuditSettings, *, seed: int
) -> tuple[SnippetCut, ...]:
    """The snippets of the suspect texts and of control documents, cut alike. A snippet that stands in both is left out
    on both sides; the notes count and name them. TextsError where either gives too few snippets."""
    tokens = settings.snippets.tokens
    given = [one for one in (corpus, heldout) if one is not None]
    pieces = [Pieces.of(one, model.spans, tokens) for one in given]
    note = ""
    if len(pieces) == 2:
        shared, note = shared_pieces(*pieces)
        pieces = [one.without(shared) for one in pieces]
    cuts = []
    for texts, some in zip(given, pieces, strict=True):
        made = some.drawn(settings.snippets, seed=seed)
        check_enough(made, texts, tokens, fewest=_FEWEST_SNIPPETS, left_out=note)
        cuts.append(replace(made, notes=(*made.notes, note)) if note else made)
    return tuple(cuts)


def check_apart(corpus: Corpus, heldout: Corpus) -> None:
    """Raise TextsError where a whole text stands on both sides."""
    known = {text.text.strip(): text.id for text in corpus.texts}
    same = [text for text in heldout.texts if text.text.strip() in known]
    if same:
        raise TextsError(
            f"{len(same):,} of {len(heldout):,} control documents are among the suspect texts, such as {same[0].id!r} "
            f"({known[same[0].text.strip()]!r} there): control documents are others, which nobody can have trained on."
        )
