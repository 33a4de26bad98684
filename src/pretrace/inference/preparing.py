"""From the suspect texts to the two sides of an audit: real held-out texts, or ones written for the purpose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pretrace.errors import TextsError
from pretrace.inference.generation import complete, tuned_generator
from pretrace.inference.settings import AuditSettings, Watch
from pretrace.inference.sides import Sides
from pretrace.inference.snippets import Cut, Snippet, check_enough, cut, divide
from pretrace.types import Backend, Corpus, Generator, Pair

FEWEST_SNIPPETS = 20


@dataclass(frozen=True, slots=True)
class Prepared:
    """The two sides, the pairs they come from (none with real held-out texts), the snippets the generator
    learnt from, and what was cut and left out."""

    sides: Sides
    cut: Cut
    pairs: tuple[Pair, ...] = ()
    training: tuple[Snippet, ...] = ()
    generator: Generator | None = None
    heldout: Cut | None = None
    notes: tuple[str, ...] = ()

    @property
    def design(self) -> Literal["synthetic", "heldout"]:
        """What the suspect texts are held against."""
        return "synthetic" if self.sides.paired else "heldout"


def synthesised(corpus: Corpus, generator: Backend, settings: AuditSettings, watch: Watch) -> Prepared:
    """Held-out continuations written by a copy of `generator` that was tuned on a part of the suspect texts.

    A snippet whose continuation comes out empty is left out and counted. TextsError where the texts give too few.
    """
    made = cut(corpus, generator.spans, settings.snippets, seed=settings.seed)
    check_enough(made, corpus, settings.snippets.tokens, fewest=FEWEST_SNIPPETS)
    judged, learnt = divide(made.snippets, settings.snippets, seed=settings.seed)
    if settings.method == "none":
        learnt = ()
    with watch.training("training the generator") as on_step:
        tuned = tuned_generator(
            generator,
            [snippet.text for snippet in learnt],
            settings.method,
            seed=settings.seed,
            cache=settings.cache,
            on_step=on_step,
        )
    with watch.passes("writing continuations") as progress:
        written = complete(
            tuned,
            [snippet.prefix for snippet in judged],
            settings.draw,
            cache=settings.cache,
            progress=progress,
        )
    pairs = tuple(
        Pair(snippet.id, snippet.document, snippet.prefix, snippet.suffix, text)
        for snippet, text in zip(judged, written, strict=True)
        if text
    )
    lost = len(judged) - len(pairs)
    notes = (f"{lost:,} snippets were given no continuation and were left out.",) if lost else ()
    return Prepared(Sides.of_pairs(pairs), made, pairs, learnt, tuned, notes=notes)


def held_out(corpus: Corpus, heldout: Corpus, model: Backend, settings: AuditSettings) -> Prepared:
    """Snippets of the suspect and of real held-out texts, cut alike; nothing is generated.

    TextsError where a text, or a snippet, stands on both sides, or where either side gives too few.
    """
    _check_apart(corpus, heldout)
    whole = replace(settings.snippets, share=1.0)
    sides = []
    for texts in (corpus, heldout):
        made = cut(texts, model.spans, whole, seed=settings.seed)
        check_enough(made, texts, whole.tokens, fewest=FEWEST_SNIPPETS)
        sides.append((made, divide(made.snippets, whole, seed=settings.seed)[0]))
    (mine, suspect), (theirs, others) = sides
    both = {snippet.text for snippet in suspect} & {snippet.text for snippet in others}
    if both:
        raise TextsError(
            f"{len(both):,} snippets of the suspect texts stand in the held-out ones word for word, such as "
            f"{shown(min(both))}: held-out texts are ones that were never published; take these out on either side."
        )
    return Prepared(Sides.of_snippets(suspect, others), mine, heldout=theirs)


def _check_apart(corpus: Corpus, heldout: Corpus) -> None:
    known = {text.text.strip(): text.id for text in corpus.texts}
    same = [text for text in heldout.texts if text.text.strip() in known]
    if same:
        raise TextsError(
            f"{len(same):,} of {len(heldout):,} held-out texts are among the suspect ones, such as {same[0].id!r} "
            f"({known[same[0].text.strip()]!r} there): held-out texts must be others, which nobody can have trained on."
        )


def shown(text: str, width: int = 60) -> str:
    """The beginning of a text on one line, in quotes."""
    line = " ".join(text.split())
    return repr(line if len(line) <= width else line[: width - 1] + "…")
