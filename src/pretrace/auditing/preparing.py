"""From the suspect texts to what is compared: control documents, or texts written for the purpose, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pretrace.auditing.generation import complete, tuned_generator
from pretrace.auditing.settings import AuditSettings
from pretrace.auditing.sides import Sides
from pretrace.auditing.snippets import Cut, Snippet, check_enough, cut, divide
from pretrace.auditing.watch import Watch
from pretrace.errors import TextsError
from pretrace.types import Backend, Corpus, Generator, Pair

FEWEST_SNIPPETS = 20
TRAINING, WRITING = "training the generator", "writing continuations"
"""Names of stages."""


class Spanned(Protocol):
    """What knows where tokens stand: a generator or a model."""

    def spans(self, text: str, /) -> npt.NDArray[np.int64]:
        """Characters [start, end) of each token of a text, shape [n, 2]."""
        ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """The suspect pieces with control pieces or generated ones beside them; `controls` are control pieces with
    generated ones. `pairs` and `control_pairs` are the same as pairs of texts, `training` the snippets the
    generator learnt from. `cut` and `heldout` say what was cut of either set and left out."""

    sides: Sides
    cut: Cut
    pairs: tuple[Pair, ...] = ()
    training: tuple[Snippet, ...] = ()
    generator: Generator | None = None
    heldout: Cut | None = None
    controls: Sides | None = None
    control_pairs: tuple[Pair, ...] = ()
    notes: tuple[str, ...] = ()


def synthesised(cuts: Sequence[Cut], generator: Backend, settings: AuditSettings, watch: Watch) -> Prepared:
    """Continuations written by a copy of `generator` that was tuned on a part of the snippets.

    `cuts` are the suspect snippets and, where there are any, those of control documents: both are treated alike, and
    the generator learns from both. A snippet whose continuation comes out empty is left out and counted.
    """
    divided = [divide(one.snippets, settings.snippets, seed=settings.seed) for one in cuts]
    learnt = tuple(snippet for _, rest in divided for snippet in rest) if settings.method != "none" else ()
    with watch.training(TRAINING) as on_step:
        tuned = tuned_generator(
            generator,
            [snippet.text for snippet in learnt],
            settings.method,
            seed=settings.seed,
            cache=settings.cache,
            on_step=on_step,
        )
    asked = [snippet.prefix for judged, _ in divided for snippet in judged]
    with watch.passes(WRITING) as progress:
        written = complete(tuned, asked, settings.draw, cache=settings.cache, progress=progress)
    made, at = [], 0
    for judged, _ in divided:
        some = zip(judged, written[at : at + len(judged)], strict=True)
        made.append(tuple(Pair(s.id, s.document, s.prefix, s.suffix, text) for s, text in some if text))
        at += len(judged)
    lost = len(asked) - sum(map(len, made))
    notes = (f"{lost:,} snippets were given no continuation and were left out.",) if lost else ()
    pairs, others = made[0], made[1] if len(made) > 1 else ()
    return Prepared(
        Sides.of_pairs(pairs),
        cuts[0],
        pairs,
        learnt,
        tuned,
        heldout=cuts[1] if len(cuts) > 1 else None,
        controls=Sides.of_pairs(others) if others else None,
        control_pairs=others,
        notes=notes,
    )


def compared(cuts: Sequence[Cut], settings: AuditSettings) -> Prepared:
    """Snippets of the suspect texts and of control documents, as they are; nothing is generated."""
    whole = replace(settings.snippets, share=1.0)
    suspect, others = (divide(one.snippets, whole, seed=settings.seed)[0] for one in cuts)
    return Prepared(Sides.of_snippets(suspect, others), cuts[0], heldout=cuts[1])


def cut_alike(
    corpus: Corpus, heldout: Corpus | None, model: Spanned, settings: AuditSettings
) -> tuple[Cut, ...]:
    """The snippets of the suspect texts and of control documents, cut alike; TextsError where a text, or a snippet,
    stands in both, or where either gives too few."""
    if heldout is not None:
        _check_apart(corpus, heldout)
    cuts = []
    for texts in (corpus, heldout):
        if texts is not None:
            made = cut(texts, model.spans, settings.snippets, seed=settings.seed)
            check_enough(made, texts, settings.snippets.tokens, fewest=FEWEST_SNIPPETS)
            cuts.append(made)
    if len(cuts) == 2:
        both = {snippet.text for snippet in cuts[0].snippets} & {snippet.text for snippet in cuts[1].snippets}
        if both:
            raise TextsError(
                f"{len(both):,} snippets of the suspect texts stand in the control documents word for word, such as "
                f"{shown(min(both))}: control documents are ones that were never published; take these out on either "
                "side."
            )
    return tuple(cuts)


def _check_apart(corpus: Corpus, heldout: Corpus) -> None:
    known = {text.text.strip(): text.id for text in corpus.texts}
    same = [text for text in heldout.texts if text.text.strip() in known]
    if same:
        raise TextsError(
            f"{len(same):,} of {len(heldout):,} control documents are among the suspect texts, such as {same[0].id!r} "
            f"({known[same[0].text.strip()]!r} there): control documents are others, which nobody can have trained on."
        )


def shown(text: str, width: int = 60) -> str:
    """The beginning of a text on one line, in quotes."""
    line = " ".join(text.split())
    return repr(line if len(line) <= width else line[: width - 1] + "…")
