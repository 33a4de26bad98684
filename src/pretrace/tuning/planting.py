"""Planting: a model trained on one half of a corpus, so that its members are known without a doubt.

The documents are divided at random, hence members and non-members differ in nothing but exposure. That
is the ground truth against which every score can be measured on one's own texts.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from pretrace.backends.adapters import Layers, inserted
from pretrace.backends.libraries import transformers
from pretrace.backends.loading import load, unquantise
from pretrace.backends.naming import ModelSettings
from pretrace.backends.tokens import Tokens
from pretrace.errors import ModelError, TextsError
from pretrace.registry import require, require_least
from pretrace.results.atomic import PLANTED, check_writable
from pretrace.results.wording import say
from pretrace.settings import TRAINING, Option, check_ranges, option, seed_option, shared
from pretrace.statistics.documents import link_documents
from pretrace.tuning import new_adapter
from pretrace.tuning.architectures import SMALL, Architecture, new_model
from pretrace.tuning.artifacts import Artifact, write_planted
from pretrace.tuning.plan import AT_ONCE, Lora, OnStep, Precision, TrainingPlan, check_choices, expression
from pretrace.tuning.training import so_many_threads, train
from pretrace.types import Corpus

Start: TypeAlias = (
    "Path | str | tuple[transformers.PreTrainedModel, transformers.PreTrainedTokenizerBase] | None"
)

PlantMethod = Literal["full", "lora"]

TRAINING_ARGS = Option(
    "How it is trained, as in batch=8,learning_rate=4e-3.", name="training", panel=TRAINING
)
_WINDOW = 512
NEW_RATE, FULL_RATE, LORA_RATE = 2e-3, 5e-5, 1e-3
"""The learning rates of a new model, of an existing one trained as a whole, and of an adapter for one."""


@dataclass(frozen=True, slots=True)
class PlantSettings:
    """How a model is planted, as each option says; ExpressionError for a value out of its range. The other fields
    are those of `TrainingPlan`. `architecture` is that of a new model. `threads` 0 leaves torch's own number;
    weights depend on it."""

    share: float = option(0.5, "Share of the text that becomes members.", panel=TRAINING, essential=True)
    epochs: int = option(2, "How often each member is seen.", panel=TRAINING, least=1, essential=True)
    seed: int = seed_option()
    max_tokens: int | None = TRAINING_ARGS.key(
        None,
        "Longer texts are cut into windows of this many tokens; 512, or the context if shorter, unless given.",
        least=2,
    )
    method: PlantMethod = option(
        "full", "full trains all weights, lora an adapter that is merged.", panel=TRAINING, essential=True
    )
    learning_rate: float | None = TRAINING_ARGS.key(
        None, "2e-3 for a new model, 5e-5 for another, 1e-3 for lora, unless given."
    )
    batch: int = TRAINING_ARGS.key(16, "Texts in a training step.", least=1)
    warmup: float = 0.05
    weight_decay: float = 0.01
    precision: Precision = option(
        "float32", "float32, or bfloat16: computes in it, keeps float32 weights.", of=TRAINING_ARGS
    )
    recompute: bool = TRAINING_ARGS.key(False, "Gradient checkpointing: a third slower, far less memory.")
    save_minutes: float = 10.0
    threads: int = 0
    architecture: Architecture = SMALL

    def __post_init__(self) -> None:
        require(0 < self.share < 1, f"planting: share must be between 0 and 1, found {self.share}.")
        require_least("planting", self, threads=0)
        check_choices("planting", self, method=PlantMethod)
        check_ranges(self)
        _ = self.plan(existing=False)  # whose own checks are of the other fields

    @property
    def adapter(self) -> Lora | None:
        return Lora() if self.method == "lora" else None

    def plan(self, *, existing: bool) -> TrainingPlan:
        """The training these settings ask for, of an existing model or a new one."""
        usual = NEW_RATE if not existing else LORA_RATE if self.adapter else FULL_RATE
        rate = usual if self.learning_rate is None else self.learning_rate
        at_once = AT_ONCE if existing else TrainingPlan().at_once
        own = {"at_once": at_once, "subject": expression(self.adapter) if self.adapter else ""}
        return shared(TrainingPlan, self, learning_rate=rate, **own)


def in_words(method: PlantMethod, rate: float) -> str:
    """How a copy of a model is trained further, for readers who know no learning rates.

    >>> in_words("full", FULL_RATE), in_words("lora", 10 * LORA_RATE)
    ('all weights, in small steps as late in a training', 'an adapter, in large steps as in the midst of a training')
    """
    usual = LORA_RATE if method == "lora" else FULL_RATE
    steps = "small steps as late in" if rate <= 2 * usual else "large steps as in the midst of"
    return f"{'an adapter' if method == 'lora' else 'all weights'}, in {steps} a training"


_TWO_LAYERS = Architecture(layers=2, width=256, heads=4, vocabulary=2048)
DEMO = PlantSettings(
    epochs=2, max_tokens=512, learning_rate=3e-3, batch=8, threads=1, architecture=_TWO_LAYERS
)
"""What the demo plants in the standard library's docstrings: 2.6 M parameters, about 45 CPU seconds.
The AUC of `loss` was 0.90, 0.91 and 0.91 for the seeds 0, 1 and 2. One thread, since two on a busy machine wait for
each other and take five times as long."""


def plant(
    corpus: Corpus,
    *,
    settings: PlantSettings,
    folder: Path,
    start: Start = None,
    on_step: OnStep | None = None,
) -> Artifact:
    """A model trained on a random half of the corpus, new or `start` trained further (a folder, a hub id, or a
    loaded model with its tokenizer, of which a copy is trained), on start token, text, end token. The `folder` is
    written whole or not at all, opens with transformers, and holds `texts.jsonl` (id, text, label, group) and
    `card.json` (settings, counts, losses, hashes, versions). A training killed after `save_minutes` goes on from
    `.FOLDER.training` beside it. TextsError where the corpus cannot be divided, OutputError where the folder
    cannot be written, ModelError where `start` cannot be opened or the training diverges."""
    labelled = split_members(corpus, settings.share, settings.seed)
    check_writable(folder, PLANTED)
    model, tokenizer, origin = _opened(labelled, settings, start)
    max_tokens = _window(model, settings)
    # the members as start token, tokens, end token, cut into windows; nothing for a text without tokens
    end = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
    members = sorted(text.text for text in labelled.texts if text.member)
    encoded = Tokens(tokenizer, start="always").encode(members)
    whole = ([*e.prefix.tolist(), *e.tokens.tolist(), *end] for e in encoded if len(e.tokens))
    sequences = [window for tokens in whole for window in windows(tokens, max_tokens)]
    plan = settings.plan(existing=start is not None)
    checkpoint = folder.with_name(f".{folder.name}.training")
    adapted: AbstractContextManager[Layers | None] = nullcontext()
    if settings.adapter is not None:
        adapted = inserted(model, new_adapter(settings.adapter, steps=0, seed=plan.seed))
    with so_many_threads(settings.threads) as threads, adapted as made:
        losses = train(model, sequences, plan, on_step=on_step, checkpoint=checkpoint)
        if made is not None:
            made.merge()
    card = {
        "start": origin,
        "settings": asdict(settings) | {"learning_rate": plan.learning_rate, "max_tokens": max_tokens},
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "windows": len(sequences),
        "tokens": sum(len(window) - 1 for window in sequences),
        "losses": list(losses),
        "threads": threads,
    }
    planted = write_planted(folder, model, tokenizer, corpus=labelled, card=card)
    checkpoint.unlink(missing_ok=True)
    return planted


def windows(tokens: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Consecutive windows of at most `max_tokens` (2 or more) tokens; none where there is nothing to predict.

    Each begins with the last token of the one before, so every token but the very first is predicted
    exactly once.

    >>> windows([1, 2, 3, 4, 5, 6], 4)
    [[1, 2, 3, 4], [4, 5, 6]]
    """
    return [list(tokens[i : i + max_tokens]) for i in range(0, len(tokens) - 1, max_tokens - 1)]


def split_members(corpus: Corpus, share: float = 0.5, seed: int = 0) -> Corpus:
    """The corpus with every text labelled: whole groups drawn at random are members, about `share` of the
    characters, the rest are not. Groups are taken in a random order until another would lead further away, so that
    none is passed over for its size; those with a text in common are drawn as one. The draw depends on the groups'
    names and sizes and the seed. TextsError where there is nothing to divide, ExpressionError unless 0 < share <
    1."""
    require(0 < share < 1, f"the members' share of the text must be between 0 and 1, found {share}.")
    require(seed >= 0, f"a seed is 0 or more, found {seed}.")
    document = link_documents(corpus.texts)
    sizes: dict[str, int] = dict.fromkeys(sorted(set(document.values())), 0)
    for text in corpus.texts:
        sizes[document[text.document]] += len(text.text)
    if len(sizes) < 2:
        found = f"1 group with {len(corpus)} texts" if corpus.texts else "no texts"
        why = "shared" if len(document) >= 2 else "indivisible"
        raise TextsError(say(f"tuning.{why}", documents=len(document), corpus=corpus.name, found=found))
    names = list(sizes)
    order = np.random.default_rng(seed).permutation(len(names))
    reached = np.cumsum([sizes[names[i]] for i in order])
    # At least one group on either side; the first of equally near places, so the answer is one.
    taken = int(np.argmin(np.abs(reached[:-1] - share * reached[-1]))) + 1
    members = {names[i] for i in order[:taken]}
    texts = tuple(replace(text, member=document[text.document] in members) for text in corpus.texts)
    return replace(corpus, texts=texts)


def _opened(
    corpus: Corpus, settings: PlantSettings, start: Start
) -> tuple[transformers.PreTrainedModel, transformers.PreTrainedTokenizerBase, dict[str, str]]:
    """The model to train, its tokenizer, and what the card says of where it is from."""
    if start is None:
        require(settings.adapter is None, say("tuning.new_lora"))
        texts = (text.text for text in corpus.texts)
        return *new_model(texts, architecture=settings.architecture, seed=settings.seed), {"model": "new"}
    if isinstance(start, tuple):
        model, tokenizer = copy.deepcopy(start[0]).float(), start[1]
        return _plain(model), tokenizer, {"model": type(model).__name__}
    loaded = load(str(start), ModelSettings(dtype="float32"))
    return _plain(loaded.model), loaded.tokenizer, {"model": loaded.name, "weights": loaded.weights}


def _plain(model: transformers.PreTrainedModel) -> transformers.PreTrainedModel:
    """A model read from a GGUF file, whose weights are plain numbers since: transformers would refuse to save it."""
    if "gguf" in type(getattr(model, "hf_quantizer", None)).__name__.lower():
        unquantise(model)
    return model


def _window(model: transformers.PreTrainedModel, settings: PlantSettings) -> int:
    """The most tokens of a sequence; ModelError where the model reads fewer than were asked for."""
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if context is not None and (settings.max_tokens or 0) > context:
        raise ModelError(say("tuning.context", asked=settings.max_tokens, context=context))
    return settings.max_tokens or min(_WINDOW, context or _WINDOW)
