"""Transformers that tell two kinds of text apart: a small one from scratch, or a model trained before.

The first is the text classifier of post-hoc dataset inference (Zhao et al. 2025, sections 3.2 and D.2): two
blocks of GPT-2 with random weights, so that it knows nothing but the texts it is given. The others are those
of the paper's table 6. What is read off a text is the mean of the last hidden states, through a linear layer.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.backends.adapters import inserted
from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.libraries import inference, nn, torch, transformers
from pretrace.backends.loading import device_of, load
from pretrace.backends.naming import ModelSettings, locate
from pretrace.backends.tokens import Tokens, pack, padded
from pretrace.statistics.documents import check_kinds
from pretrace.tuning import new_adapter
from pretrace.tuning.architectures import train_vocabulary
from pretrace.tuning.plan import SUREST, Lora, NewClassifier, TrainingPlan, TunedClassifier
from pretrace.tuning.training import Training, so_many_threads
from pretrace.types import Bools, Doubles

Place = Callable[[], AbstractContextManager[Any]]


class _TextJudge:
    """A classifier, texts to the probability of the label that it is trained to call True: a transformer without its
    output layer, which reads start tokens, the text cut to the limit and an `end`, and a linear layer on the mean of
    its last hidden states. Once `learn` is done, `place` is where it is asked."""

    def __init__(self, body: Any, tokens: Tokens, plan: TrainingPlan, end: Sequence[int] = ()) -> None:
        self.place: Place = nullcontext
        self._body, self._tokens, self._plan, self._end = body, tokens, plan, end
        self.device = next(body.parameters()).device
        reads = inspect.signature(body.forward).parameters
        self._options = {"use_cache": False} if "use_cache" in reads else {}
        # Told by trying: some models hand out states of another width than they compute with.
        with torch.no_grad():
            width = self._states([[0, 0]])[0].shape[-1]
        self.head = nn.Linear(width, 1)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)
        self.parts = nn.ModuleList([body, self.head.to(self.device)])

    def learn(self, texts: Sequence[str], labels: Bools) -> None:
        sequences = self._read(texts)
        wanted = torch.from_numpy(labels.astype(np.float32)).to(self.device)

        def add_gradient(rows: Sequence[int], count: int) -> torch.Tensor:
            """The summed cross-entropy of the labels, as `Training` wants it."""
            odds = self._log_odds([sequences[row] for row in rows])
            loss = nn.functional.binary_cross_entropy_with_logits(odds, wanted[rows], reduction="sum")
            (loss / count).backward()
            return loss.detach()

        lengths, targets = [len(sequence) for sequence in sequences], [1] * len(sequences)
        Training(self.parts, self._plan, lengths, targets, add_gradient, all_decay=True).run()

    @inference
    def __call__(self, texts: Sequence[str]) -> Doubles:
        """Float64 [texts], each in (0, 1); up to rounding, whatever texts stand beside it."""
        sequences = self._read(texts)
        found = np.empty(len(sequences))
        with self.place():
            for rows in pack([len(sequence) for sequence in sequences], self._plan.at_once):
                logits = self._log_odds([sequences[row] for row in rows])
                found[list(rows)] = logits.double().clamp(-SUREST, SUREST).sigmoid().cpu().numpy()
        return found

    def _log_odds(self, sequences: Sequence[Sequence[int]]) -> torch.Tensor:
        """Log-odds of the label True, float32 [sequences]."""
        states, mask = self._states(sequences)
        mean = (states.float() * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return self.head(mean)[:, 0]  # type: ignore[no-any-return]

    def _read(self, texts: Sequence[str]) -> list[list[int]]:
        """One list of token ids a text, never empty: without any token it is the token 0."""
        encoded = self._tokens.encode(texts)
        return [[*e.prefix.tolist(), *e.tokens.tolist(), *self._end] or [0] for e in encoded]

    def _states(self, sequences: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        ids, mask = (torch.from_numpy(array).to(self.device) for array in padded(sequences))
        return self._body(input_ids=ids, attention_mask=mask, **self._options).last_hidden_state, mask


def fit_new(texts: Sequence[str], labels: Bools, settings: NewClassifier, *, seed: int) -> _TextJudge:
    """A transformer trained from scratch on the texts, and its tokenizer too, without labels. The same arguments
    give the same weights on one machine with the same threads; torch's global random state is as before.
    TextsError where the labels are of one kind, ModelError where the training diverges."""
    check_kinds(texts, labels)
    with _seeded(seed, threads=settings.threads):
        # Room for one token behind the text: the end, which a text without any token has too.
        tokenizer = train_vocabulary(
            [*texts, " "], size=settings.vocabulary, max_tokens=settings.max_tokens + 1
        )
        tokens = Tokens(tokenizer, start="never", max_tokens=settings.max_tokens)
        body = _gpt2(settings, len(tokenizer)).to(device_of("auto"))
        judge = _TextJudge(body, tokens, settings.plan(seed), [int(tokenizer.eos_token_id)])
        judge.learn(texts, labels)
    return judge


def fit_pretrained(
    model: HuggingFace | str | Path,
    texts: Sequence[str],
    labels: Bools,
    settings: TunedClassifier,
    *,
    seed: int,
) -> _TextJudge:
    """A causal or BERT-like model (a name, or an opened back end, which stays as it was) tuned to tell the texts
    apart. Seeds and errors as for `fit_new`; ModelError too where there is no such model."""
    check_kinds(texts, labels)
    with _seeded(seed):
        body, tokens = _opened(model, settings)
        judge = _TextJudge(body, tokens, settings.plan(seed))
        if settings.method == "full":
            judge.parts.requires_grad_(True)
            judge.learn(texts, labels)
            return judge
        cure = {"task": "FEATURE_EXTRACTION", "cure": "; take method='full'."}
        with inserted(body, new_adapter(Lora(rank=settings.rank), steps=0, seed=None, **cure)) as made:
            judge.learn(texts, labels)
    judge.place = made.in_place
    return judge


def _gpt2(settings: NewClassifier, vocabulary: int) -> Any:
    config = transformers.GPT2Config(
        vocab_size=vocabulary,
        n_positions=settings.max_tokens + 1,
        n_embd=settings.width,
        n_layer=settings.layers,
        n_head=settings.heads,
        resid_pdrop=settings.dropout,
        embd_pdrop=settings.dropout,
        attn_pdrop=settings.dropout,
        activation_function="gelu_pytorch_tanh",  # GPT-2's own function, computed at once: half the time
        bos_token_id=0,
        eos_token_id=0,
    )
    return transformers.GPT2Model(config).float()


def _opened(model: HuggingFace | str | Path, settings: TunedClassifier) -> tuple[Any, Tokens]:
    """A model without its output layer, and how it reads texts: an opened back end's own, or a copy where all
    weights change."""
    if isinstance(model, HuggingFace):
        tokens = copy.copy(model.tokens)
        tokens.max_tokens = min(settings.max_tokens, model.max_tokens)
        body = model.model.base_model
        return (copy.deepcopy(body).float() if settings.method == "full" else body), tokens
    # A pooler reads the states that are read here, and nothing is read from it.
    kind = None if locate(str(model)).gguf else transformers.AutoModel
    loaded = load(str(model), ModelSettings(dtype="float32"), kind=kind, without="pooler.")
    body, tokenizer = loaded.model.base_model, loaded.tokenizer
    context = getattr(body.config.get_text_config(), "max_position_embeddings", None) or 512
    limit = min(settings.max_tokens, int(context), int(tokenizer.model_max_length))
    return body.eval(), Tokens(tokenizer, max_tokens=limit, model=body)


@contextmanager
def _seeded(seed: int, *, threads: int = 0) -> Iterator[None]:
    """Torch's random numbers from the seed, and so many threads, 0 for as many as it has, while the context
    lasts; both as they were afterwards."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())), so_many_threads(threads):
        torch.manual_seed(seed)
        yield
