"""Texts continued by a model: batches of prompts of one length, a token at a time, from its own distribution.

Prompts are put together only where they have exactly as many tokens, so nothing is padded and no attention
mask is needed. The model keeps the keys and values of what it has read; where it cannot, or where what it
says with them is not what it says without, everything is read again for every token.

A token is drawn with one uniform number u: the first, in the order of the ids, at which the sum of the
probabilities is above u. The numbers depend on the prompt and the seed alone, and the order of the ids does
not hang on the last bit of a logit, as an order by probability would. So a continuation is the same in any
batch, as far as the logits are: exactly for nearly every prompt in float32, not in bfloat16.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tokenizers

from pretrace.backends.libraries import inference, torch
from pretrace.backends.loading import cache_of, going_on
from pretrace.cache import Draw, text_key
from pretrace.errors import ModelError
from pretrace.results.wording import say
from pretrace.types import Continued, Doubles, Sampling, Written

_CPU_BUDGET = 4096
_GPU_BUDGET = 65536
_FIRST_NUCLEUS = 256  # how many of the likeliest tokens are looked at first: most often they are enough
_CUT = "\ufffd"
# How a real U+FFFD looks in tokens: as itself, as its bytes in byte-level letters, as byte tokens.
_WRITTEN = (_CUT, "ï¿½", "<0xEF><0xBF><0xBD>")
_BYTES = 4  # the most of a character in UTF-8


class Writer:
    """Writes on with a back end's model, up to one of the `ends` where there are any. `budget` bounds rows × tokens of
    a batch; other special tokens are never drawn, so that all tokens are written."""

    def __init__(self, base: Any, *, ends: Sequence[int] = (), budget: int | None = None) -> None:
        self.ends = list(ends)
        self.budget = budget or (_CPU_BUDGET if base.device.type == "cpu" else _GPU_BUDGET)
        self.banned = _never_drawn(base.tokens.rust, base.vocabulary).to(base.device)
        self.banned[self.ends] = False
        self.caches = _keeps_what_it_read(base)

    @inference
    def _write(
        self, base: Any, rows: npt.NDArray[np.int64], uniform: Doubles, sampling: Sampling
    ) -> npt.NDArray[np.int64]:
        """The new ids [rows, tokens] after the ids [rows, length], by the uniform numbers [rows, tokens]. Fewer where
        every row has one of the `ends`. ModelError for odd logits."""
        ids, numbers = (torch.from_numpy(one).to(base.device) for one in (rows, uniform))
        last = torch.tensor(self.ends, dtype=torch.long, device=ids.device)
        over = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
        kept: Any = None
        for step in range(uniform.shape[1]):
            logits, kept = _next_logits(base, ids, kept, keep=self.caches)
            if not logits.amax(dim=-1).isfinite().all():
                raise ModelError(say("models.infinite_logit", name=base.name))
            new = _draw(_distribution(logits, ids, self.banned, sampling), numbers[:, step])
            ids = torch.cat([ids, new[:, None]], dim=1)
            over |= torch.isin(new, last)
            if over.all():
                break
        return ids[:, rows.shape[1] :].cpu().numpy()

    def texts(
        self,
        base: Any,
        rows: Mapping[str, Sequence[int]],
        how: Draw,
        *,
        known: Container[str] = (),
        skip: int = 0,
    ) -> Iterator[tuple[list[str], list[Written]]]:
        """A batch at a time, prompts that are not `known` and what is written after their ids in `rows`, up to an end
        or the limits of `how` and the model. The first `skip` ids are no text. Batches are planned over all prompts: a
        run that was killed goes on with the same ones."""
        every, rust = list(rows), base.tokens.rust
        for batch in _batches([len(row) for row in rows.values()], tokens=how.tokens, budget=self.budget):
            prompts = [every[i] for i in batch if every[i] not in known]
            if not prompts:
                continue
            ids = np.array([rows[prompt] for prompt in prompts], dtype=np.int64)
            number = min(how.tokens, base.max_tokens - ids.shape[1])
            uniform = np.stack([_uniform_numbers(prompt, number, how.seed) for prompt in prompts])
            made = []
            for old, new in zip(
                ids.tolist(), self._write(base, ids, uniform, how.sampling).tolist(), strict=True
            ):
                end = next((at for at, token in enumerate(new) if token in self.ends), None)
                made.append(Written(_continuation(rust, old[skip:], new[:end]), end is not None))
            yield prompts, made


def _batches(lengths: Sequence[int], *, tokens: int, budget: int) -> list[tuple[int, ...]]:
    """Indices of prompts of one length, the longest first, such that rows × (length + tokens) is within budget.

    >>> _batches([3, 5, 3, 3], tokens=2, budget=10)
    [(1,), (0, 2), (3,)]
    """
    groups: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        groups.setdefault(length, []).append(index)
    made = []
    for length, group in sorted(groups.items(), reverse=True):
        rows = max(1, budget // (length + tokens))
        made += [tuple(group[at : at + rows]) for at in range(0, len(group), rows)]
    return made


def _next_logits(base: Any, ids: torch.Tensor, kept: Any, *, keep: bool) -> tuple[torch.Tensor, Any]:
    """Float32 logits [rows, vocabulary] of the token after ids [rows, length], and what the model kept. `kept` is
    what it kept of all but the last id, None at first; with `keep` False it keeps nothing and reads everything."""
    named: dict[str, Any] = {"input_ids": ids if kept is None else ids[:, -1:], "use_cache": keep}
    if kept is not None:
        named |= going_on(base.model.base_model if base.split else base.model, kept)
    if base.split:
        output = base.model.base_model(**named)
        logits = base.head(output[0][:, -1])
    else:
        if "logits_to_keep" in inspect.signature(base.model.forward).parameters:
            named["logits_to_keep"] = 1
        output = base.model(**named)
        logits = output.logits[:, -1]
    return logits.float(), cache_of(output) if keep else None


def _distribution(
    logits: torch.Tensor, ids: torch.Tensor, banned: torch.Tensor, sampling: Sampling
) -> torch.Tensor:
    """Float32 probabilities [rows, vocabulary] of the next token after ids [rows, length], in the order of
    transformers' own generation: penalty, tokens never drawn, temperature (0: the likeliest token has 1), top-p."""
    if sampling.repetition_penalty != 1:
        seen = logits.gather(1, ids)
        penalty = sampling.repetition_penalty
        logits = logits.scatter(1, ids, torch.where(seen < 0, seen * penalty, seen / penalty))
    logits = logits.masked_fill(banned, -torch.inf)
    if sampling.temperature == 0:
        return torch.zeros_like(logits).scatter_(1, logits.argmax(dim=1, keepdim=True), 1.0)
    # Below the highest first: a low temperature would send a large logit to infinity.
    p = ((logits - logits.amax(dim=1, keepdim=True)) / sampling.temperature).softmax(dim=1)
    number = min(_FIRST_NUCLEUS, p.shape[1])
    while sampling.top_p != 1:  # the likeliest tokens that together reach it; the others have probability 0
        best = p.topk(number, dim=1).values
        before = best.cumsum(dim=1) - best
        if number == p.shape[1] or bool((before[:, -1] >= sampling.top_p).all()):
            last = (before < sampling.top_p).sum(dim=1, keepdim=True) - 1
            return p.where(p >= best.gather(1, last), 0.0)
        number = min(8 * number, p.shape[1])
    return p


def _draw(p: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """The id [rows] at which the sum of each row of p passes the uniform number, both scaled to the row's sum."""
    sums = p.double().cumsum(dim=1)
    return torch.searchsorted(sums, uniform[:, None] * sums[:, -1:], right=True)[:, 0]


def _continuation(rust: tokenizers.Tokenizer, old: Sequence[int], new: Sequence[int]) -> str:
    """The text of the new ids behind the old ones, without a part of a character at its end. That is one U+FFFD to some
    tokenizers, to others each of its bytes is, and those of whole characters before it: what keeps more is taken."""

    def is_whole(text: str, ids: Sequence[int]) -> bool:
        """Whether the text ends with a whole character, which may be a U+FFFD that was really written."""
        tail = "".join(rust.id_to_token(i) or "" for i in ids[-_BYTES:])
        return not text.endswith(_CUT) or tail.endswith(_WRITTEN)

    before = rust.decode(list(old), skip_special_tokens=False)
    whole = rust.decode([*old, *new], skip_special_tokens=False)
    if not is_whole(whole, new):
        shorter = [text] if not (text := whole.removesuffix(_CUT)).endswith(_CUT) else []
        for number in range(1, min(_BYTES - 1, len(new)) + 1):
            less = new[: len(new) - number]
            text = rust.decode([*old, *less], skip_special_tokens=False)
            shorter += [text] if is_whole(text, less) else []
        whole = max(shorter, key=len, default=whole.rstrip(_CUT))
    # A decoder may write the prompt's end differently before other tokens: what differs is new.
    same = (left == right for left, right in zip(before, whole, strict=False))
    return whole[sum(itertools.takewhile(bool, same)) :]


def _uniform_numbers(prompt: str, tokens: int, seed: int) -> Doubles:
    """The numbers a continuation is drawn with, float64 [tokens] in [0, 1): fewer are the first of more."""
    return np.random.default_rng([seed, int.from_bytes(text_key(prompt), "big")]).random(tokens)


def _never_drawn(rust: tokenizers.Tokenizer, vocabulary: int) -> torch.Tensor:
    """Whether an id is special or has no text at all, bool [vocabulary]: logits tables have room to spare."""
    banned = torch.ones(vocabulary, dtype=torch.bool)
    known = [i for i in rust.get_vocab(with_added_tokens=True).values() if i < vocabulary]
    banned[known] = False
    special = [i for i, token in rust.get_added_tokens_decoder().items() if token.special and i < vocabulary]
    banned[special] = True
    return banned


@inference
def _keeps_what_it_read(base: Any) -> bool:
    """Whether the model has a cache, and says with it what it says without."""
    ids = torch.arange(1, 11, device=base.device).reshape(2, 5) % base.vocabulary
    try:
        _, kept = _next_logits(base, ids[:, :-1], None, keep=True)
        if kept is None:
            return False
        found, _ = _next_logits(base, ids, kept, keep=True)
    except (RuntimeError, TypeError, ValueError, AttributeError, LookupError):
        return False
    whole, _ = _next_logits(base, ids, None, keep=False)
    tolerance = 1e-3 if base.dtype == torch.float32 else 2e-2
    return float((found - whole).abs().max()) <= tolerance * (float(whole.abs().max()) + 1)


Ids = npt.NDArray[np.int32]


def write_ends(base: Any, rows: Sequence[Ids], starts: Sequence[int], state: Continued) -> list[Ids]:
    """Of each row of ids, whose predicted tokens begin at `starts`: int32 [samples, tokens of its end]. A row stands
    `samples` times in a batch, whose longest end says how far is written. Under inference mode."""
    found = [np.zeros((state.samples, 0), dtype=np.int32) for _ in rows]
    cuts = [start + state.read(len(row) - start) for row, start in zip(rows, starts, strict=True)]
    some = [i for i, (row, cut) in enumerate(zip(rows, cuts, strict=True)) if cut < len(row)]
    if not some:
        return found
    writer, sampling = Writer(base), Sampling(temperature=state.temperature)
    budget = writer.budget // state.samples
    longest = max(len(rows[i]) - cuts[i] for i in some)
    for batch in _batches([cuts[i] for i in some], tokens=longest, budget=budget):
        here = [some[i] for i in batch]
        tokens = max(len(rows[i]) - cuts[i] for i in here)
        read = [rows[i][: cuts[i]] for i in here for _ in range(state.samples)]
        digests = [hashlib.sha256(one.astype("<i4").tobytes()).digest() for one in read]
        seeds = [(state.seed, i % state.samples, int.from_bytes(one, "big")) for i, one in enumerate(digests)]
        # Fewer numbers are the first of more.
        drawn = np.stack([np.random.default_rng(seed).random(tokens) for seed in seeds])
        made = writer._write(base, np.stack(read).astype(np.int64), drawn, sampling)
        new = made.astype(np.int32).reshape(len(here), state.samples, tokens)
        for i, written in zip(here, new, strict=True):
            found[i] = np.ascontiguousarray(written[:, : len(rows[i]) - cuts[i]])
    return found
