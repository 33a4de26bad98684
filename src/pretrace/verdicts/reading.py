"""What a test has of a model: the value of every text, under the target or another model in its place, or, of a model
that gives text alone, what it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.backends.instructed import Completer
from pretrace.cache import Draw
from pretrace.results.wording import p_value
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.statistics.words import Worded
from pretrace.types import Backend, Check, Corpus, Doubles, Sampling, Text, Written
from pretrace.verdicts.audit.snippets import complete
from pretrace.verdicts.outcome import word_check


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """What a model said of texts: score (NaN without one), tokens it rests on, and tokens cut off at its limit."""

    values: Doubles
    tokens: npt.NDArray[np.int64]
    cut: npt.NDArray[np.int64]
    reasons: dict[int, str]

    @property
    def totals(self) -> Doubles:
        """The score times the tokens: for a mean log-probability, the log-probability of the whole text in nats."""
        return np.asarray(self.values * self.tokens)


def read_scores(
    models: Models, score: str | ScorePlan, texts: Sequence[str], *, stage: str, watch: Watch, cache: bool
) -> Read:
    """The score of each text, in order, by the target with the reference that the score may want. Equal texts are read
    once. PretraceError as for `detect`, TextsError where no text has a token to predict."""
    models = replace(models, placebo=None, placebos=())
    corpus = Corpus("texts", tuple(Text(str(i), text) for i, text in enumerate(texts)))
    with watch.passes(stage) as progress:
        run = detect(corpus, models, score, Options(cache=cache, progress=progress))
    places = np.array([int(name) for name in run.ids], dtype=np.int64)
    values = np.full(len(texts), np.nan)
    tokens, cut = np.zeros((2, len(texts)), dtype=np.int64)
    values[places], tokens[places], cut[places] = run.matrix[:, 0], run.tokens, run.cut
    why = {int(one.id): one.reason for one in run.skipped}
    return Read(values, tokens, cut, why | {int(one.id): one.reason for one in run.missing})


TOKENS = 80
"""Tokens of a continuation that are asked for: 200 bytes of English have about 50, 64 hexadecimal digits as many."""
ANSWERED = 0.8
"""The share of what was asked that must have an answer."""


def draws_of(samples: int) -> tuple[Draw, ...]:
    """How a prompt is continued: once at temperature 0, then so many times at temperature 1."""
    more = (Draw(TOKENS, Sampling(temperature=1.0), seed) for seed in range(1, samples + 1))
    return Draw(TOKENS, Sampling(temperature=0.0)), *more


def continued(
    model: Backend, prompts: Sequence[str], samples: int, *, stage: str, watch: Watch, cache: bool
) -> list[list[Written]]:
    """What a model writes after each prompt, one a draw of `draws_of`: a model that gives text alone, as one behind
    `chat:URL` (`backends.serving.continuing`), by its own `continued`, or one with weights here."""
    draws = draws_of(samples)
    with watch.passes(stage) as progress:
        if own := getattr(model, "continued", None):
            found: list[list[Written]] = own(prompts, draws, progress)
            return found
        completer = Completer(model)
        made = [complete(completer, prompts, draw, cache=cache, progress=progress) for draw in draws]
    return [[Written(text, ended=False) for text in some] for some in zip(*made, strict=True)]


SAME, FIRST = 3, 5
"""Prompts that are answered with the same first words, at least, and these words: then nobody continued a text."""


def alike(written: Sequence[Sequence[Written]]) -> list[list[bool]]:
    """Which answers to each prompt begin with the same words as those to two or more others, as refusals do."""
    first = [[Worded.of(one.text).words[:FIRST] for one in some] for some in written]
    prompts = Counter(words for some in first for words in set(some) if words)
    return [[prompts[words] >= SAME for words in some] for some in first]


def answers_check(sets: Sequence[tuple[str, int, int]]) -> Check:
    """Whether the model answered; `sets` are names, as in "questions", with how many of how many have an answer."""
    some = [(name, had, of) for name, had, of in sets if of]
    said = " and ".join(f"{had:,} of {of:,} {name}" for name, had, of in some)
    return word_check("answers", all(had >= ANSWERED * of for _, had, of in some), said=said)


GATE = 0.1
"""How often fair texts are withheld: each score without a model is tested at this level over their number."""


def gate_check(kind: str, found: Mapping[str, float]) -> Check:
    """Check that no score that sees no model tells the texts from what they are compared with, by its p-value."""
    level = GATE / len(found)
    seen = " and by ".join(f"{name} (p = {p_value(p)})" for name, p in found.items() if p <= level)
    numbers: dict[str, Any] = {"number": len(found), "seen": seen, "p": min(found.values())}
    return word_check(
        kind, not seen, {"p": found, "level": level}, words="seen" if seen else "words", **numbers
    )
