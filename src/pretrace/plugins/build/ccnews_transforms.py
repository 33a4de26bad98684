"""The three ways CCNewsPDD changes a text (Tang et al. 2025, section 4): settings, which a card holds, opened later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pretrace.backends.settings import ModelSettings
from pretrace.errors import ExpressionError
from pretrace.plugins.build.segmenting import cut_pieces
from pretrace.registry import require
from pretrace.results.wording import say
from pretrace.settings import cache_option, like, option, shared
from pretrace.types import Sampling

TRANS, MASK, REWRITE = "--transform trans", "--transform mask", "--transform prompt"
"""Groups of options."""

PLACE = "{text}"
PROMPT = "Rewrite: {text}"
"""The paper's prompt, for GPT-4o (table 4)."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How the models of a transformation are opened, as for `open_model`; `cache` keeps what they make."""

    dtype: str = like(ModelSettings, "dtype")
    device: str = like(ModelSettings, "device")
    allow_pickle: bool = like(ModelSettings, "allow_pickle")
    trust_remote_code: bool = like(ModelSettings, "trust_remote_code")
    cache: bool = cache_option()

    @property
    def models(self) -> ModelSettings:
        """The same for whoever opens a model."""
        return shared(ModelSettings, self)


@dataclass(frozen=True, slots=True)
class Changed:
    """A transformed text, and why it cannot be used: "" where it can."""

    text: str
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Transform:
    """An opened transformation: `facts` of its models, `change` transforms texts in order, given a seed."""

    facts: Mapping[str, Any]
    change: Callable[[Sequence[str], int], list[Changed]]


@dataclass(frozen=True)
class BackTranslation:
    """CCNewsPDD(trans): to another language and back with MarianMT models. The paper names the languages (English,
    French, English), not the models; these are the pair's usual ones. `beams` None is each model's own number."""

    there: str = option(
        "Helsinki-NLP/opus-mt-en-fr", "MarianMT model, hub id or folder.", panel=TRANS, path="in"
    )
    back: str = option(
        "Helsinki-NLP/opus-mt-fr-en", "MarianMT model that translates back.", panel=TRANS, path="in"
    )
    beams: int | None = option(
        None, "Beams; the model's own number unless given, 1 is greedy.", panel=TRANS, least=1
    )
    opening: Opening = field(default_factory=Opening)
    kind = "trans"

    def open(self) -> Transform:
        """Both translators, loaded."""
        from pretrace.plugins.build.translating import open_translator

        o = self.opening
        there, back = (
            open_translator(model, o.models, beams=self.beams, cache=o.cache)
            for model in (self.there, self.back)
        )

        def change(texts: Sequence[str], seed: int) -> list[Changed]:  # nothing is drawn: seed is not used
            abroad = there.translate(texts)
            home = back.translate([one.text for one in abroad])
            return [
                Changed(
                    last.text,
                    CUT if first.cut or last.cut
                    else EMPTY if first.empty or last.empty
                    else _same(text, last.text),
                )
                for text, first, last in zip(texts, abroad, home, strict=True)
            ]  # fmt: skip

        return Transform({"there": dict(there.facts), "back": dict(back.facts)}, change)


@dataclass(frozen=True)
class Masking:
    """CCNewsPDD(mask): a share of the tokens, drawn at random and masked together, replaced by words drawn from BERT's
    50 likeliest, never the old one (`backends.proposals`). The paper does not say which BERT, nor how the word is
    chosen. A text longer than BERT's context is masked in pieces."""

    model: str = option(
        "bert-base-uncased",
        "Masked language model, hub id or folder.",
        name="masked-model",
        panel=MASK,
        path="in",
    )
    share: float = option(0.15, "Share of the tokens that are replaced.", name="mask-share", panel=MASK)
    opening: Opening = field(default_factory=Opening)
    kind = "mask"

    def __post_init__(self) -> None:
        require(0 < self.share < 1, f"--mask-share must be between 0 and 1, found {self.share:g}.")

    def open(self) -> Transform:
        """The masked language model, loaded."""
        from pretrace.backends.proposals import MaskedGuesser, Proposals, open_proposer

        o = self.opening
        proposer = open_proposer(f"masked:{self.model}", **asdict(o))
        assert isinstance(proposer, Proposals)
        assert isinstance(proposer.guesser, MaskedGuesser)
        tokens = proposer.guesser.tokens
        assert tokens.max_tokens is not None
        most = tokens.max_tokens - len(tokens.prefix)

        def lengths(texts: Sequence[str]) -> list[int]:
            return [len(one.tokens) + one.cut for one in tokens.encode(texts)]

        def change(texts: Sequence[str], seed: int) -> list[Changed]:  # each piece's first neighbour, joined
            parts = [cut_pieces(text, most, lengths) for text in texts]
            every = [part for some in parts for part in some]
            made = iter(proposer.propose(every, number=1, share=self.share, seed=seed))
            joined = ["".join(next(made)[0] for _ in some) for some in parts]
            return [Changed(new, _same(old, new)) for old, new in zip(texts, joined, strict=True)]

        return Transform({**proposer.facts, "share": self.share, "piece": most}, change)


@dataclass(frozen=True)
class Rewriting:
    """CCNewsPDD(prompt): rewritten by a model that follows instructions, the paper's being GPT-4o. `model` is what
    `open_instructed` takes; `prompt` holds {text}. Temperature 1 is that model's default; the paper does not give one.
    `tokens` is the most an answer may have: one that reaches it is not used."""

    model: str = option(
        "",
        "Who rewrites: any --model value, or server:http://host:port/v1#model-name (key: PRETRACE_API_KEY).",
        name="rewriter",
        panel=REWRITE,
        path="in",
    )
    prompt: str = option(
        PROMPT,
        "Instruction to the rewriter, with {text} where the text goes; the paper's unless given.",
        panel=REWRITE,
    )
    temperature: float = option(1.0, "Temperature of the rewriter; 0 is greedy.", panel=REWRITE, least=0.0)
    tokens: int = option(1024, "Most tokens of an answer.", name="answer-tokens", panel=REWRITE, least=1)
    opening: Opening = field(default_factory=Opening)
    kind = "prompt"

    def __post_init__(self) -> None:
        if PLACE not in self.prompt:
            raise ExpressionError(
                say("build.refused.prompt_place", place=PLACE, prompt=PROMPT, found=self.prompt[:60])
            )

    def open(self) -> Transform:
        """The model, loaded, or the server's address."""
        from pretrace.backends.instructed import open_instructed

        model = open_instructed(self.model, self.opening.models, cache=self.opening.cache)

        def change(
            texts: Sequence[str], seed: int
        ) -> list[Changed]:  # the answer to the prompt with each text
            answers = model.answers(
                [self.prompt.replace(PLACE, text) for text in texts],
                tokens=self.tokens,
                sampling=Sampling(temperature=self.temperature),
                seed=seed,
            )
            return [
                Changed(one.text, _same(text, one.text) if one.ended or not one.text else CUT)
                for text, one in zip(texts, answers, strict=True)
            ]

        return Transform({**model.facts, "prompt": self.prompt}, change)


TransformMethod = BackTranslation | Masking | Rewriting
"""A transformation before its models are opened: its settings, and `kind`, its name in the benchmark."""

EMPTY = "came back empty"
CUT = "cut off at the limit of length"
_UNCHANGED = "came back unchanged"


def _same(old: str, new: str) -> str:
    """What is wrong with a text of which nothing came back, or which came back as it was, white space aside."""
    if not new.strip():
        return EMPTY
    return _UNCHANGED if old.split() == new.split() else ""
