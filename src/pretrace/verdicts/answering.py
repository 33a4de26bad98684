"""Models that are asked for text alone: what they write after a prompt, and whether they answered at all.

What the tests with `--access text` share: `recite`, `order` with rows or options, `canaries`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pretrace.cache.written import Draw
from pretrace.errors import ModelError
from pretrace.scoring.evidence import Progress
from pretrace.scoring.plan import Models
from pretrace.statistics.words import Worded
from pretrace.types import Backend, Check, Sampling, Written

TOKENS = 80
"""Tokens of a continuation that are asked for: 200 bytes of English have about 50, 64 hexadecimal digits as many."""
ANSWERED = 0.8
"""The share of what was asked that must have an answer."""


@runtime_checkable
class Continues(Protocol):
    """A model that gives text alone, such as one behind `chat:URL` (`backends.serving.continuing`)."""

    @property
    def chats(self) -> bool:
        """Whether it answers questions; else it continues text as it stands."""
        ...

    def plain(self) -> Continues:
        """The same model, given a prompt as it stands, without the words that ask it to continue a text."""
        ...

    def continued(
        self, prompts: Sequence[str], draws: Sequence[Draw], progress: Progress, /
    ) -> list[list[Written]]:
        """What the model writes after each prompt, one a draw, kept as it comes."""
        ...


def chats(model: Backend) -> bool:
    """Whether a model answers questions: one behind `chat:URL`. Others continue text as it stands."""
    return isinstance(model, Continues) and model.chats


def draws_of(samples: int) -> tuple[Draw, ...]:
    """How a prompt is continued: once at temperature 0, then so many times at temperature 1."""
    return (
        Draw(TOKENS, Sampling(temperature=0.0)),
        *(Draw(TOKENS, Sampling(temperature=1.0), seed) for seed in range(1, samples + 1)),
    )


def continued(
    model: Backend, prompts: Sequence[str], draws: Sequence[Draw], *, cache: bool, progress: Progress
) -> list[list[Written]]:
    """What a model writes after each prompt, one a draw: behind an address, or with weights here."""
    if isinstance(model, Continues):
        return model.continued(prompts, draws, progress)
    from pretrace.backends.generation import Completer
    from pretrace.verdicts.audit.generation import complete

    completer = Completer(model)
    made = [complete(completer, prompts, draw, cache=cache, progress=progress) for draw in draws]
    return [[Written(text, ended=False) for text in some] for some in zip(*made, strict=True)]


SAME, FIRST = 3, 5
"""Prompts that are answered with the same first words, at least, and these words: then nobody continued a text."""


def alike(written: Sequence[Sequence[Written]]) -> list[list[bool]]:
    """Which answers begin with the same words as those to two or more other prompts, as refusals do in any language;
    `written` holds the answers of each prompt, and prompts are different."""
    first = [[Worded.of(one.text).words[:FIRST] for one in some] for some in written]
    prompts = Counter(words for some in first for words in set(some) if words)
    return [[prompts[words] >= SAME for words in some] for some in first]


def check_without_reference(models: Models) -> None:
    """ModelError for a reference model, which has no place where nothing but text is compared."""
    if models.reference is not None:
        raise ModelError(
            "with --access text no reference model is taken off: leave --reference-model away, or name it with "
            "--placebo."
        )


def answers_check(sets: Sequence[tuple[str, int, int]]) -> Check:
    """Whether the model answered; `sets` are names, as in "questions", with how many of how many have an answer."""
    some = [(name, had, of) for name, had, of in sets if of]
    said = " and ".join(f"{had:,} of {of:,} {name}" for name, had, of in some)
    good = all(had >= ANSWERED * of for _, had, of in some)
    cure = "Where a provider refuses or filters, the rest says little: ask the weights, or another provider."
    return Check(
        "answers",
        "The model answered",
        "passed" if good else "failed",
        f"It answered for {said}.",
        "" if good else cure,
    )
