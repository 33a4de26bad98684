"""New small models with random weights, in the architectures the field's papers study."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pretrace.registry import require
from pretrace.tuning.vocabulary import SMALLEST, train_vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

FAMILIES = ("gpt_neox", "llama")


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of a new model; ExpressionError where it cannot be built.

    `family` is "gpt_neox" (Pythia's: plain feed-forward layers) or "llama" (gated ones). `vocabulary` is
    the most tokens the tokenizer may learn; few texts make fewer. `max_tokens` is the longest input.
    """

    family: str = "gpt_neox"
    layers: int = 4
    width: int = 256
    heads: int = 4
    vocabulary: int = 4096
    max_tokens: int = 512

    def __post_init__(self) -> None:
        names = " or ".join(map(repr, FAMILIES))
        require(self.family in FAMILIES, f"a new model's family is {names}, found {self.family!r}.")
        require(self.layers >= 1, f"a new model has at least 1 layer, found layers={self.layers}.")
        require(
            self.heads >= 1 and self.width >= 1 and self.width % (2 * self.heads) == 0,
            f"width must be a multiple of twice the heads, found width={self.width} and heads={self.heads}.",
        )
        require(
            self.vocabulary >= SMALLEST,
            f"a byte-level vocabulary holds at least {SMALLEST} tokens, found vocabulary={self.vocabulary}.",
        )
        require(self.max_tokens >= 2, f"a model reads at least 2 tokens, found max_tokens={self.max_tokens}.")


SMALL = Architecture()
"""5 million parameters with a full vocabulary."""


def new_model(
    texts: Iterable[str], *, architecture: Architecture = SMALL, seed: int = 0
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A model with random float32 weights and a tokenizer trained on the texts, which must be all of
    the corpus, members and non-members alike (see `train_vocabulary`).

    The same texts, architecture and seed give the same weights; torch's global random state is as before.
    """
    import torch

    tokenizer = train_vocabulary(texts, size=architecture.vocabulary, max_tokens=architecture.max_tokens)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = (_gpt_neox if architecture.family == "gpt_neox" else _llama)(architecture, tokenizer)
    return model.float(), tokenizer


def _gpt_neox(architecture: Architecture, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    config = GPTNeoXConfig(
        vocab_size=len(tokenizer),
        hidden_size=architecture.width,
        intermediate_size=4 * architecture.width,
        num_hidden_layers=architecture.layers,
        num_attention_heads=architecture.heads,
        max_position_embeddings=architecture.max_tokens,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return GPTNeoXForCausalLM(config)


def _llama(architecture: Architecture, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=architecture.width,
        # A gated layer has three matrices where a plain one has two: 8/3 of the width costs the same.
        intermediate_size=max(8, 8 * architecture.width // 3 // 8 * 8),
        num_hidden_layers=architecture.layers,
        num_attention_heads=architecture.heads,
        max_position_embeddings=architecture.max_tokens,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return LlamaForCausalLM(config)
