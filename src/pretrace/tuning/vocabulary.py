"""A small vocabulary for a small model: byte-level BPE, trained in a second or two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pretrace.errors import TextsError
from pretrace.registry import require

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

END = "<|endoftext|>"
"""The one special token, id 0: it ends a text and, where a start is wanted, begins one."""

SMALLEST = 257
"""Every byte and the end of a text: with these there is no text without a spelling."""


def train_vocabulary(
    texts: Iterable[str], *, size: int = 4096, max_tokens: int = 512
) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of at most `size` tokens trained on the texts; fewer, where they are few.

    Train it on members and non-members alike. A vocabulary made of the members alone would spell them
    in fewer tokens than the others, a trace of membership that the model's weights know nothing of.
    Encoding adds no token by itself. The order of the texts does not matter. `max_tokens` is written
    down as the length the model reads. ExpressionError for a size below 257, TextsError without texts.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    from pretrace.rewrites import readable

    require(size >= SMALLEST, f"a byte-level vocabulary holds at least {SMALLEST} tokens, found {size}.")
    spelled = [readable(text) for text in texts]
    if not any(spelled):
        raise TextsError("a vocabulary is trained on texts, and none were given (or all were empty).")
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
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=END, eos_token=END, model_max_length=max_tokens
    )
