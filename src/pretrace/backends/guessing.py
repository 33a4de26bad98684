"""Models that say which tokens are likely at given positions: what neighbours are made from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.loading import context_in, device_of, dtype_of, load_tokenizer, locate, open_weights
from pretrace.backends.replacing import Draft, Longs, Ranking, Vocabulary, WordCandidates
from pretrace.backends.settings import ModelIdentity, ModelSettings
from pretrace.backends.tokens import Tokens, pack, padded
from pretrace.backends.weights import weights_hash
from pretrace.cache.location import cache_folder
from pretrace.errors import ModelError

FORMAT = 1  # part of the fingerprints: raised whenever other neighbours would be made
_TOP = 50
_CPU_BUDGET = 2048
_GPU_BUDGET = 32768


class CausalGuesser:
    """Candidates for a token from a causal model's next-token distribution after the tokens before it. `sharing`
    neighbours at a time have their positions in common."""

    sharing = 1  # one pass answers for all positions: every neighbour has its own

    def __init__(self, backend: HuggingFace) -> None:
        self.backend = backend
        self.tokens = backend.tokens
        self.vocabulary = Vocabulary(backend.tokens.rust)
        self.ranking = Ranking(self.vocabulary, backend.device, _TOP)
        self.fingerprint = json.dumps({"format": FORMAT, "causal": backend.fingerprint, "top": _TOP})
        self.facts: Mapping[str, Any] = {"kind": "causal", "top": _TOP, **backend.identity.named}

    def read(self, texts: Sequence[str], /) -> list[Draft]:
        """The texts cut into what may be replaced."""
        first = 0 if len(self.tokens.prefix) else 1
        return [self.vocabulary.draft(text, self.tokens, first=first) for text in texts]

    def pack(self, drafts: Sequence[Draft], /) -> list[tuple[int, ...]]:
        """Batches of similar length within a token budget."""
        lengths = [len(d.tokens) if len(d.open) else 0 for d in drafts]
        return self.backend.batches(lengths, _budget(self.backend.device))

    def guess(
        self, drafts: Sequence[Draft], positions: Sequence[Sequence[Longs]], /
    ) -> list[list[WordCandidates]]:
        """One pass over the texts, padded on the right under the causal mask."""
        prefix = self.tokens.prefix
        rows = [np.concatenate([prefix, draft.tokens]) for draft in drafts]
        ids = torch.from_numpy(padded(rows)[0])
        wanted = [np.unique(np.concatenate(sets)) for sets in positions]
        row = np.repeat(np.arange(len(drafts)), [len(some) for some in wanted])
        column = np.concatenate(wanted) + len(prefix)
        device = self.backend.device
        inputs = {"input_ids": ids.to(device), "use_cache": False}
        at = torch.from_numpy(row).to(device), torch.from_numpy(column - 1).to(device)
        found = self.ranking(logits_at(self.backend.model, inputs, *at), ids[row, column])
        starts = np.cumsum([0, *map(len, wanted)])
        return [
            [found.at(start + np.searchsorted(some, one)) for one in sets]
            for start, some, sets in zip(starts, wanted, positions, strict=False)
        ]


class MaskedGuesser:
    """Candidates for masked tokens from a masked language model's distributions at the masks.

    `weights` names the weights for the cache; `tokenizer` is a fast one with a mask token.
    """

    sharing = 4  # a pass for every set of masks: shared, it costs a quarter

    def __init__(
        self, model: Any, tokenizer: Any, *, name: str, weights: str, budget: int | None = None
    ) -> None:
        if tokenizer.mask_token_id is None:
            raise ModelError(
                f"{name} has no mask token, so it is no masked language model to propose words with."
            )
        self.model = model.eval()
        self.mask = int(tokenizer.mask_token_id)
        self.pad = int(tokenizer.pad_token_id or 0)
        self.suffix = np.array(_own_suffix(tokenizer), dtype=np.int32)
        ten = {
            "input_ids": torch.arange(1, 11, device=model.device)[None]
            % model.config.get_text_config().vocab_size
        }
        context = context_in(model, lambda: model(**ten)) or 512
        limit = min(context, int(tokenizer.model_max_length)) - len(self.suffix)
        self.tokens = Tokens(tokenizer, max_tokens=limit, model=self.model)
        self.vocabulary = Vocabulary(self.tokens.rust)
        self.ranking = Ranking(self.vocabulary, model.device, _TOP)
        self.budget = budget or _budget(model.device)
        dtype = str(model.dtype).removeprefix("torch.")
        self.facts: Mapping[str, Any] = {
            "kind": "masked",
            "top": _TOP,
            **ModelIdentity(name, weights, dtype, self.tokens.hash).named,
        }
        around = [self.tokens.prefix.tolist(), self.suffix.tolist()]
        keyed = {"format": FORMAT, "sharing": self.sharing, "max_tokens": limit, "around": around}
        self.fingerprint = json.dumps({**keyed, **self.facts, "name": None})

    def read(self, texts: Sequence[str], /) -> list[Draft]:
        """The texts cut into what may be replaced."""
        return [self.vocabulary.draft(text, self.tokens, first=0) for text in texts]

    def pack(self, drafts: Sequence[Draft], /) -> list[tuple[int, ...]]:
        """Batches of similar length within a token budget."""
        return pack([len(draft.tokens) if len(draft.open) else 0 for draft in drafts], self.budget)

    def guess(
        self, drafts: Sequence[Draft], positions: Sequence[Sequence[Longs]], /
    ) -> list[list[WordCandidates]]:
        """A row for each set of masks, packed by the token budget."""
        asked = [(i, j) for i, sets in enumerate(positions) for j in range(len(sets))]
        lengths = [len(drafts[i].tokens) for i, _ in asked]
        found: list[list[Any]] = [[None] * len(sets) for sets in positions]
        for batch in pack(lengths, self.budget):
            some = [asked[k] for k in batch]
            parts = self._pass([drafts[i] for i, _ in some], [positions[i][j] for i, j in some])
            for (i, j), part in zip(some, parts, strict=True):
                found[i][j] = part
        return found

    def _pass(self, drafts: Sequence[Draft], masks: Sequence[Longs]) -> list[WordCandidates]:
        prefix = self.tokens.prefix
        rows = [np.concatenate([prefix, draft.tokens, self.suffix]) for draft in drafts]
        ids, attended = map(torch.from_numpy, padded(rows, self.pad))
        row = torch.from_numpy(np.repeat(np.arange(len(masks)), [len(mask) for mask in masks]))
        column = torch.from_numpy(np.concatenate(masks) + len(prefix))
        own = ids[row, column]
        ids[row, column] = self.mask
        device = self.model.device
        inputs = {"input_ids": ids.to(device), "attention_mask": attended.to(device)}
        found = self.ranking(logits_at(self.model, inputs, row.to(device), column.to(device)), own)
        ends = np.cumsum([len(mask) for mask in masks])
        return [found.at(np.arange(end - len(mask), end)) for end, mask in zip(ends, masks, strict=True)]


def open_masked(model: str, settings: ModelSettings) -> MaskedGuesser:
    """The masked language model of a hub id or a folder. Raises ModelError where there is none."""
    from transformers import AutoModelForMaskedLM

    device = device_of(settings.device)
    located = locate(model, revision=settings.revision, allow_pickle=settings.allow_pickle)
    files = located.weight_files(allow_pickle=settings.allow_pickle)
    loaded, _ = open_weights(
        AutoModelForMaskedLM, located, files, settings, {"dtype": dtype_of(settings.dtype, device)}
    )
    digest = weights_hash(files, cache_folder() / "hashes")
    tokenizer = load_tokenizer(located, settings)
    return MaskedGuesser(
        loaded.to(device), tokenizer, name=located.label, weights=digest, budget=settings.token_budget
    )


def _budget(device: torch.device) -> int:
    return _CPU_BUDGET if device.type == "cpu" else _GPU_BUDGET


def _own_suffix(tokenizer: Any) -> list[int]:
    """What the tokenizer puts behind a text by itself."""
    without = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a", add_special_tokens=True)["input_ids"]
    for start in range(len(whole) - len(without), -1, -1):
        if whole[start : start + len(without)] == without:
            return list(whole[start + len(without) :])
    return []


# Logits at a few positions, from any language model of transformers.
#
# The body of the model is run once. What comes after it (the output layer, and in some families a scale, a
# cap or a small network before it) works position by position, so the model is asked again with its body
# stood in for by one that answers with the wanted positions alone, a slice at a time: nothing of shape
# texts × positions × vocabulary ever exists, and no family needs code of its own.

_SLICE_BYTES = 64 << 20


@torch.inference_mode()
def logits_at(
    model: Any, inputs: Mapping[str, Any], rows: torch.Tensor, columns: torch.Tensor
) -> Iterator[torch.Tensor]:
    """Float32 logits [some, vocabulary] of positions (rows[i], columns[i]), in order, a slice at a time.

    `inputs` are what the model's forward takes, tensors on its device; `rows` and `columns` are int64.
    """
    output = model.base_model(**inputs)
    hidden = output[0][rows, columns]
    size = max(16, _SLICE_BYTES // (4 * model.config.get_text_config().vocab_size))
    for start in range(0, len(rows), size):
        part = hidden[start : start + size]
        logits = _after_body(model, inputs, type(output), part)
        if logits is None:  # this family's forward goes past its own body: ask it for whole texts
            yield from _whole(model, inputs, rows, columns)
            return
        yield logits.float()


def _after_body(
    model: Any, inputs: Mapping[str, Any], kind: Callable[..., Any], hidden: torch.Tensor
) -> torch.Tensor | None:
    """What the model makes of these hidden states, None where it does not take them from its body."""
    asked = False

    def answer(*_: Any, **__: Any) -> Any:
        nonlocal asked
        asked = True
        return kind(last_hidden_state=hidden[None])

    with _stood_in(model.base_model, answer):
        logits: torch.Tensor = model(**_row(inputs, 0)).logits
    return logits[0] if asked and logits.shape[:2] == (1, len(hidden)) else None


def _whole(
    model: Any, inputs: Mapping[str, Any], rows: torch.Tensor, columns: torch.Tensor
) -> Iterator[torch.Tensor]:
    for row in rows.unique_consecutive().tolist():
        yield model(**_row(inputs, row)).logits[0][columns[rows == row]].float()


def _row(inputs: Mapping[str, Any], row: int) -> dict[str, Any]:
    return {name: x[row : row + 1] if torch.is_tensor(x) else x for name, x in inputs.items()}


@contextmanager
def _stood_in(body: Any, answer: Callable[..., Any]) -> Iterator[None]:
    before = vars(body).get("forward")  # accelerate puts a forward of its own there
    body.forward = answer
    try:
        yield
    finally:
        if before is None:
            del body.forward
        else:
            body.forward = before
