"""New small models with random weights, in the architectures the field's papers study."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pretrace.backends.libraries import torch, transformers
from pretrace.backends.tokens import readable
from pretrace.errors import TextsError
from pretrace.registry import require, require_least
from pretrace.results.wording import say
from pretrace.settings import TRAINING, Option, check_ranges

END = "<|endoftext|>"
"""The one special token, id 0: it ends a text and, where a start is wanted, begins one."""

SMALLEST = 257
"""Every byte and the end of a text: with these there is no text without a spelling."""


def train_vocabulary(
    texts: Iterable[str], *, size: int = 4096, max_tokens: int = 512
) -> transformers.PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of at most `size` tokens, trained on members and non-members alike: one made of
    the members alone would spell them in fewer tokens than the others. It adds no token by itself; the order of the
    texts does not matter. ExpressionError for a size below 257, TextsError without texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    require(size >= SMALLEST, f"a byte-level vocabulary holds at least {SMALLEST} tokens, found {size}.")
    spelled = [readable(text) for text in texts]
    if not any(spelled):
        raise TextsError(say("tuning.no_vocabulary"))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(spelled, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=END, eos_token=END, model_max_length=max_tokens
    )


FAMILIES = ("gpt_neox", "llama")
ARCHITECTURE = Option(
    "The shape of a new model (--model new), as in layers=8,width=512.", name="architecture", panel=TRAINING
)


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of a new model; ExpressionError where it cannot be built.

    `family` is "gpt_neox" (Pythia's: plain feed-forward layers) or "llama" (gated ones). `vocabulary` is
    the most tokens the tokenizer may learn; few texts make fewer. `max_tokens` is the longest input.
    """

    family: str = ARCHITECTURE.key("gpt_neox", "gpt_neox or llama.")
    layers: int = ARCHITECTURE.key(4, "Transformer blocks.", least=1, most=256)
    width: int = ARCHITECTURE.key(256, "Size of the hidden state.", least=2, most=16_384)
    heads: int = ARCHITECTURE.key(4, "Attention heads.", least=1, most=1024)
    vocabulary: int = ARCHITECTURE.key(4096, "Most tokens its tokenizer learns.", most=1_000_000)
    max_tokens: int = 512

    def __post_init__(self) -> None:
        names = " or ".join(map(repr, FAMILIES))
        require(self.family in FAMILIES, f"a new model's family is {names}, found {self.family!r}.")
        check_ranges(self)
        found = f"width={self.width} and heads={self.heads}"
        multiple = self.width % (2 * self.heads) == 0
        require(multiple, f"width must be a multiple of twice the heads, found {found}.")
        require_least("a new model", self, vocabulary=SMALLEST, max_tokens=2)


SMALL = Architecture()
"""5 million parameters with a full vocabulary."""


def new_model(
    texts: Iterable[str], *, architecture: Architecture = SMALL, seed: int = 0
) -> tuple[transformers.PreTrainedModel, transformers.PreTrainedTokenizerFast]:
    """A model with random float32 weights and a tokenizer trained on the texts, which must be all of the corpus,
    members and non-members alike. The same texts, architecture and seed give the same weights; torch's global random
    state is as before."""
    tokenizer = train_vocabulary(texts, size=architecture.vocabulary, max_tokens=architecture.max_tokens)
    width = architecture.width
    shape: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": width,
        "num_hidden_layers": architecture.layers,
        "num_attention_heads": architecture.heads,
        "max_position_embeddings": architecture.max_tokens,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if architecture.family == "gpt_neox":
            config = transformers.GPTNeoXConfig(**shape, intermediate_size=4 * width)
            return transformers.GPTNeoXForCausalLM(config).float(), tokenizer
        # A gated layer has three matrices where a plain one has two: 8/3 of the width costs the same.
        gated = transformers.LlamaConfig(**shape, intermediate_size=max(8, 8 * width // 3 // 8 * 8))
        return transformers.LlamaForCausalLM(gated).float(), tokenizer
