"""What turns evidence into a number, and what it may have to be fitted on first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pretrace.types.models import Proposer
from pretrace.types.traces import Doubles, Evidence, Floats, Needs, Text, Trace


class Score(Protocol):
    """A number a text, from its evidence. Higher always means "more likely a member"."""

    @property
    def needs(self) -> Needs: ...

    def __call__(self, evidence: Evidence, /) -> float: ...


class Stack(NamedTuple):
    """The traces of texts that have equally many tokens, float32 [texts, tokens]; moments None where not all have
    them."""

    logp: Floats
    mean: Floats | None
    std: Floats | None


@runtime_checkable
class Stackable(Protocol):
    """A score of the text as it stands, with a formula that also takes many texts of one length at once.

    `over` a trace and its text gives the score, over a stack and its texts one a text, equal to the last bit.
    """

    def __call__(self, evidence: Evidence, /) -> float: ...

    def over(self, traces: Trace | Stack, texts: Sequence[Text], /) -> Doubles: ...


class TokenTable(Protocol):
    """How often each token of one tokenizer occurs in a reference corpus."""

    @property
    def tokenizer_hash(self) -> str: ...

    def log_frequency(self, vocabulary: int) -> Doubles:
        """Laplace-smoothed log f(v) for every id below `vocabulary`."""
        ...


@dataclass(frozen=True, slots=True)
class Reference:
    """What a recipe is fitted on; none of these texts may be scored afterwards."""

    counts: TokenTable | None = None
    vocabulary: int = 0
    """Size of the target's logits table, |V| of the smoothing."""
    evidence: tuple[Evidence, ...] = ()
    """Texts with known labels and what the models said of them: as much as `Recipe.reference` asks for."""
    seed: int = 0
    """Of whatever a recipe draws at random."""


@runtime_checkable
class Recipe(Protocol):
    """A score that must be fitted first. It is not callable, so forgetting to fit is a type error."""

    @property
    def needs(self) -> Needs:
        """What the fitted score will want of a text, as far as that is known before fitting."""
        ...

    @property
    def reference(self) -> Needs:
        """What fitting wants of each labelled reference text; empty where it needs none of them."""
        ...

    def fit(self, reference: Reference, /) -> Score: ...


@runtime_checkable
class Fitted(Protocol):
    """A fitted score that can tell what was found: plain values (numbers, strings, lists, dicts) for
    run.json and the report."""

    @property
    def facts(self) -> Mapping[str, Any]: ...


class Rewrite(Protocol):
    """From texts to the forms a model is to read, `count` of each text."""

    @property
    def count(self) -> int: ...

    def __call__(self, texts: Sequence[str], proposer: Proposer | None, /) -> list[tuple[str, ...]]: ...
