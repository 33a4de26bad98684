"""Neighbours: copies of a text in which a model puts other words (Mattern et al. 2023).

In each neighbour a share of the tokens, at positions drawn at random, is replaced by words that another model finds
likely there, never by the token that stood there:

- `causal`, `causal:MODEL`: the new word for token i is drawn from a causal model's next-token distribution after the
  original tokens before i. One pass a text serves all its neighbours. `causal` lets the target itself propose: what it
  remembers of a member it also proposes for it. A model that never saw the texts is the cleaner choice.
- `masked:MODEL`: the drawn positions are masked together and the new words are drawn from a masked model's
  distributions there. Four neighbours at a time share their positions, and so a pass; their words are drawn separately.

Both draw from the 50 likeliest tokens, in proportion to their probability, among those that are visible text of their
own and begin a word where the replaced token does. Where the tokenizer knows no capitals, a word takes over those of
the replaced one. Everything else of the text stays character for character: white space, special tokens, what lies
beyond the model's context, and for a causal model without a start token the first token. A text of fewer than two
tokens, or without anything to replace, is its own neighbour. Every draw depends on the text, the share, the seed and
the neighbour's number alone, so the first m of 25 neighbours are the m neighbours, in any batch and any order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import tokenizers

from pretrace.backends.huggingface import HuggingFace, open_huggingface, usual_budget
from pretrace.backends.libraries import inference, torch, transformers
from pretrace.backends.loading import context_in, load
from pretrace.backends.naming import ModelSettings
from pretrace.backends.tokens import Tokens, own_specials, pack, padded, readable
from pretrace.cache import NEIGHBORS, Entries, text_key
from pretrace.errors import ModelError
from pretrace.results.wording import say
from pretrace.types import Backend, Doubles, Ints, Proposer


@dataclass
class Proposals:
    """A `Proposer`: neighbours by one model, kept on disk unless `cache` is False, of a masked model's distributions at
    `mask`, or of a causal model's after the tokens before. `batches` are those of texts by their lengths; `sharing`
    neighbours have their positions in common."""

    model: Any
    tokens: Tokens
    batches: Callable[[Sequence[int]], list[tuple[int, ...]]]
    facts: Mapping[str, Any]
    fingerprint: str
    sharing: int
    mask: int | None = None
    pad: int = 0
    suffix: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    cache: bool = True

    def __post_init__(self) -> None:
        self.vocabulary = _Vocabulary(self.tokens.rust, self.model.device)
        # without a start token nothing stands before the first
        self._first = 1 if self.mask is None and not len(self.tokens.prefix) else 0
        self._kept_as = self.fingerprint if self.cache else None
        with Entries("neighbors", self._kept_as):
            pass  # finds out whether the folder can be written before any work is done
        self._last: tuple[object, dict[bytes, tuple[str, ...]]] = (None, {})

    def propose(
        self, texts: Sequence[str], /, *, number: int, share: float, seed: int
    ) -> list[tuple[str, ...]]:
        """For each text its first `number` neighbours; only what is not on disk yet is made, a batch at a time.
        OutputError where it cannot be stored, ModelError where the model gives no numbers."""
        keys, asked = [text_key(text) for text in texts], (number, float(share), int(seed))
        if self._last[0] != (keys, asked):  # another model may read the same: not made twice without a cache
            self._last = (keys, asked), self._made(dict(zip(keys, texts, strict=True)), *asked)
        return [self._last[1][key][:number] for key in keys]

    def _made(
        self, texts: Mapping[bytes, str], number: int, share: float, seed: int
    ) -> dict[bytes, tuple[str, ...]]:
        label, sharing = f"share={share!r} seed={seed}", self.sharing
        with Entries("neighbors", self._kept_as) as store:
            known: dict[bytes, tuple[str, ...]] = dict.fromkeys(texts, ()) | store.find(
                texts, label, NEIGHBORS
            )
            if all(len(some) >= number for some in known.values()):
                return known
            drafts = self._drafts(list(texts.values()))
            known |= {
                draft.key: ("".join(draft.stretches),) * number for draft in drafts if not len(draft.open)
            }
            # Planned over all the texts, whatever is stored: a run that was killed goes on with the same batches.
            for batch in self.batches([len(draft.tokens) if len(draft.open) else 0 for draft in drafts]):
                some = [drafts[i] for i in batch if len(known[drafts[i].key]) < number]
                if not some:
                    continue
                firsts = [len(known[draft.key]) // sharing for draft in some]
                positions = [
                    [draft.positions(share, seed, n) for n in range(first, (number - 1) // sharing + 1)]
                    for draft, first in zip(some, firsts, strict=True)
                ]
                candidates = self._guess(some, positions)
                for i, draft in enumerate(some):
                    for n in range(len(known[draft.key]), number):
                        at = n // sharing - firsts[i]
                        random = _draws(draft.key, "words", seed, n)
                        new = self.vocabulary.neighbor(draft, positions[i][at], candidates[i][at], random)
                        known[draft.key] += (new,)
                store.write([(draft.key, label, known[draft.key], NEIGHBORS) for draft in some])
        return known

    def _drafts(self, texts: Sequence[str], /) -> list[_Draft]:
        """The texts cut into what may be replaced."""
        return [self.vocabulary.draft(text, self.tokens, first=self._first) for text in texts]

    def _guess(
        self, drafts: Sequence[_Draft], positions: Sequence[Sequence[Longs]], /
    ) -> list[list[Candidates]]:
        """The candidates for each set of positions of each text: a row for each set of masks, or for all of a text."""
        one_pass = self.mask is None
        asked = [
            (i, some)
            for i, sets in enumerate(positions)
            for some in ([range(len(sets))] if one_pass else [[j] for j in range(len(sets))])
        ]
        made: list[list[Any]] = [[None] * len(sets) for sets in positions]
        for batch in self.batches([len(drafts[i].tokens) for i, _ in asked]):
            rows = [asked[k] for k in batch]
            texts = [np.concatenate([drafts[i].tokens, self.suffix]) for i, _ in rows]
            places = [np.unique(np.concatenate([positions[i][j] for j in some])) for i, some in rows]
            found = zip(rows, places, self._candidates(texts, places), strict=True)
            for (i, some), at, (ids, weights) in found:
                for j in some:
                    where = np.searchsorted(at, positions[i][j])
                    made[i][j] = ids[where], weights[where]
        return made

    def _candidates(self, texts: Sequence[Ints], places: Sequence[Longs]) -> Iterable[Candidates]:
        """One pass over the token ids of the texts, padded on the right: the candidates at places of each, which are
        masked, or predicted by what stands before them."""
        rows = [np.concatenate([self.tokens.prefix, text]) for text in texts]
        ids, attended = map(torch.from_numpy, padded(rows, self.pad))
        row = torch.from_numpy(np.repeat(np.arange(len(places)), [len(some) for some in places]))
        column = torch.from_numpy(np.concatenate(places) + len(self.tokens.prefix))
        own, device, more = ids[row, column], self.model.device, dict[str, Any]()
        if self.mask is None:
            column, more = column - 1, {"use_cache": False}
        else:
            ids[row, column], more = self.mask, {"attention_mask": attended.to(device)}
        inputs = {"input_ids": ids.to(device), **more}
        slices = _logits_at(self.model, inputs, row.to(device), column.to(device))
        ends = np.cumsum([len(some) for some in places])[:-1]
        return zip(*(np.split(one, ends) for one in self.vocabulary.likeliest(slices, own)), strict=True)


def open_proposer(
    spec: str, target: Backend | None = None, *, cache: bool = True, **settings: Any
) -> Proposer:
    """The proposer that `spec` names: "causal" (the target itself), "causal:MODEL" or "masked:MODEL", with settings as
    for `open_model`. ModelError for any other spec, a model of the wrong kind, or one that cannot be opened."""
    kind, _, model = spec.partition(":")
    if spec == "causal":
        if not isinstance(target, HuggingFace):
            found = "no target" if target is None else f"the target {target.name}, which has none here"
            raise ModelError(say("models.no_target", found=found))
        return _causal_proposals(target, cache=cache)
    if kind not in ("causal", "masked") or not model:
        raise ModelError(
            f"a model that proposes words is causal, causal:MODEL or masked:MODEL; found {spec!r}."
        )
    chosen = ModelSettings(**settings)
    if kind == "causal":
        return _causal_proposals(open_huggingface(model, chosen), cache=cache)
    one, budget = load(model, chosen, kind=transformers.AutoModelForMaskedLM), chosen.token_budget
    how: dict[str, Any] = {"weights": one.weights, "budget": budget, "cache": cache}
    return _masked_proposals(one.model, one.tokenizer, name=one.name, **how)


Longs = npt.NDArray[np.int64]
FORMAT = 1  # part of the fingerprints: raised whenever other neighbours would be made
_TOP = 50
_SHARING = 4  # a pass for every set of masks: shared, it costs a quarter
_NAMED = ("name", "weights", "dtype", "tokenizer")  # what a cache tells models apart by


Candidates: TypeAlias = tuple[Longs, Doubles]
"""The likeliest tokens at some positions, ids and weights [positions, candidates], each row by rising id, so that two
of nearly equal weight do not change places with the last bit of a logit."""


def _causal_proposals(backend: HuggingFace, *, cache: bool = True) -> Proposals:
    """Neighbours from a back end's next-token distribution."""
    facts = {"kind": "causal", "top": _TOP, **{key: backend.facts[key] for key in _NAMED}}
    fingerprint = json.dumps({"format": FORMAT, "causal": backend.fingerprint, "top": _TOP})
    batches = partial(backend.batches, budget=usual_budget(backend.device))
    # one pass answers for all positions: every neighbour has its own
    return Proposals(backend.model, backend.tokens, batches, facts, fingerprint, sharing=1, cache=cache)


def _masked_proposals(
    model: Any, tokenizer: Any, *, name: str, weights: str, budget: int | None = None, cache: bool = True
) -> Proposals:
    """Neighbours from a masked language model's distributions at masked tokens; `tokenizer` is a fast one."""
    if tokenizer.mask_token_id is None:
        raise ModelError(f"{name} has no mask token, so it is no masked language model.")
    suffix = np.array(own_specials(tokenizer)[1], dtype=np.int32)
    ten = torch.arange(1, 11, device=model.device)[None] % model.config.get_text_config().vocab_size
    context = context_in(model.eval(), lambda: model(input_ids=ten)) or 512
    limit = min(context, int(tokenizer.model_max_length)) - len(suffix)
    tokens = Tokens(tokenizer, max_tokens=limit, model=model)
    named = zip(_NAMED, (name, weights, str(model.dtype).removeprefix("torch."), tokens.hash), strict=True)
    facts: dict[str, Any] = {"kind": "masked", "top": _TOP, **dict(named)}
    around = [tokens.prefix.tolist(), suffix.tolist()]
    keyed = {"format": FORMAT, "sharing": _SHARING, "max_tokens": limit, "around": around}
    fingerprint = json.dumps({**keyed, **facts, "name": None})
    own: dict[str, Any] = {"mask": int(tokenizer.mask_token_id), "pad": int(tokenizer.pad_token_id or 0)}
    own |= {"suffix": suffix, "cache": cache}
    batches = partial(pack, budget=budget or usual_budget(model.device))
    return Proposals(model, tokens, batches, facts, fingerprint, _SHARING, **own)


_SLICE_BYTES = 64 << 20


@inference
def _logits_at(
    model: Any, inputs: Mapping[str, Any], rows: torch.Tensor, columns: torch.Tensor
) -> Iterator[torch.Tensor]:
    """Float32 logits [some, vocabulary] of positions (rows[i], columns[i]), int64, in order, a slice at a time. The
    body is run once on `inputs`; then the model is asked again with its body stood in for by one that answers with the
    wanted positions alone, since what comes after it works position by position."""

    def one_row(row: int) -> dict[str, Any]:
        return {name: x[row : row + 1] if torch.is_tensor(x) else x for name, x in inputs.items()}

    asked: list[bool] = []
    answer: Any = None

    def forward(*_: Any, **__: Any) -> Any:
        asked.append(True)
        return answer

    body = model.base_model
    output = body(**inputs)
    hidden = output[0][rows, columns]
    size = max(16, _SLICE_BYTES // (4 * model.config.get_text_config().vocab_size))
    for start in range(0, len(rows), size):
        part = hidden[start : start + size]
        own = vars(body).get("forward")  # accelerate puts a forward of its own there
        body.forward, answer = forward, type(output)(last_hidden_state=part[None])
        try:
            logits = model(**one_row(0)).logits
        finally:
            if own is None:
                del body.forward
            else:
                body.forward = own
        if not asked or logits.shape[:2] != (1, len(part)):
            # this family's forward goes past its own body: ask it for whole texts
            for row in rows.unique_consecutive().tolist():
                yield model(**one_row(row)).logits[0][columns[rows == row]].float()
            return
        yield logits[0].float()


@dataclass(frozen=True, slots=True)
class _Draft:
    """A text as stretches. `tokens` are the ids a model reads, token i stands at stretch i; stretches beyond
    them are beyond the model's context and stay. `open` are the positions that may be replaced."""

    key: bytes
    stretches: tuple[str, ...]
    tokens: Ints
    open: Longs

    def positions(self, share: float, seed: int, number: int) -> Longs:
        """The share of the open positions that draw `number` falls on, at least one, in rising order."""
        count = min(len(self.open), max(1, round(share * len(self.open))))
        chosen = _draws(self.key, "positions", seed, number).choice(self.open, count, replace=False)
        return np.sort(chosen)


def _draws(key: bytes, purpose: str, seed: int, number: int) -> np.random.Generator:
    """Random numbers that depend on the text, the purpose, the seed and the number alone."""
    digest = hashlib.sha256(key + f" {purpose} {seed} {number}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


class _Vocabulary:
    """The tokens of a tokenizer as text. A token may be proposed if it is not special and, on its own, is
    text that can be seen: no part of a character, no white space, no control character."""

    def __init__(self, rust: tokenizers.Tokenizer, device: torch.device | str = "cpu") -> None:
        anchor = rust.encode("a", add_special_tokens=False).ids
        before = rust.decode(anchor, skip_special_tokens=False)
        size = max(rust.get_vocab(with_added_tokens=True).values()) + 1  # ids may have gaps
        # Decoded behind another token: on its own a word may lose the space in front of it.
        decoded = rust.decode_batch([[*anchor, i] for i in range(size)], skip_special_tokens=False)
        self.pieces = [text[len(before) :] if text.startswith(before) else "" for text in decoded]
        added = rust.get_added_tokens_decoder()
        self.special = frozenset(i for i, token in added.items() if token.special)
        self.begins = np.array([piece[:1].isspace() for piece in self.pieces])
        words = [piece.strip() for piece in self.pieces]
        self.sound = np.array([bool(one) and one.isprintable() and "\ufffd" not in one for one in words])
        self.sound[list(self.special)] = False
        normalizer = rust.normalizer
        self.lowers = normalizer is not None and normalizer.normalize_str("A") == "a"
        sound, begins = (torch.from_numpy(one).to(device) for one in (self.sound, self.begins))
        self._begins, self._kinds = begins, torch.stack([sound & ~begins, sound & begins])

    def draft(self, text: str, tokens: Tokens, *, first: int) -> _Draft:
        """A text cut at its tokens. Not open to replacement are those before position `first`, white space,
        special tokens, what lies beyond the limit of `tokens`, and a text of fewer than two tokens."""
        shown = readable(text)
        (encoded,) = tokens.encode([shown])
        stretches = tuple(shown[start:end] for start, end in tokens.spans(shown).tolist())
        ids = encoded.tokens
        is_open = [
            i
            for i in range(first, len(ids))
            if stretches[i].strip() and int(ids[i]) not in self.special and len(ids) > 1
        ]
        return _Draft(text_key(text), stretches or (shown,), ids, np.array(is_open, dtype=np.int64))

    def _fitted(self, token: int, stretch: str) -> str:
        """A token in the place of a stretch, with its white space, and its capitals where the tokenizer knows none."""
        word, own = self.pieces[token].strip(), stretch.strip()
        if self.lowers and len(own) > 1 and own.isupper():
            word = word.upper()
        elif self.lowers and own[:1].isupper():
            word = word[:1].upper() + word[1:]
        start = stretch.index(own)
        return stretch[:start] + word + stretch[start + len(own) :]

    def neighbor(
        self, draft: _Draft, positions: Longs, candidates: Candidates, random: np.random.Generator
    ) -> str:
        """The text with a draw from its candidates at each position; one that has none stays as it is."""
        candidate_ids, weights = candidates
        sums = np.cumsum(weights, axis=1)
        # float32: below 1 by so much that the product is below the whole sum too
        at = random.random(len(positions), dtype=np.float32).astype(np.float64)[:, None] * sums[:, -1:]
        drawn = (sums <= at).sum(axis=1)
        stretches = list(draft.stretches)
        for row, position in enumerate(positions.tolist()):
            if sums[row, -1] > 0:
                ids = np.roll(candidate_ids[row], -drawn[row])
                usable = np.roll(weights[row], -drawn[row]) > 0
                own = stretches[position]
                fitted = (self._fitted(token, own) for token in ids[usable].tolist())
                # the first of the tokens that is not the same word by another id
                stretches[position] = next((word for word in fitted if word != own), own)
        return "".join(stretches)

    def likeliest(self, slices: Iterable[torch.Tensor], own: torch.Tensor, top: int = _TOP) -> Candidates:
        """The likeliest tokens, weighted by their probability, at positions whose logits come in slices
        [some, vocabulary]: sound ones, other than the `own`, int64 [positions], that stands there, which begin a word
        where it does and continue one where it does."""
        ids, logits, at = [], [], 0
        for part in slices:
            size = min(part.shape[1], self._kinds.shape[1])  # a logits table is often larger
            here = own[at : at + len(part)].to(part.device)
            scores = part[:, :size].masked_fill(~self._kinds[self._begins[here].long(), :size], -torch.inf)
            scores.scatter_(1, here[:, None].clamp(max=size - 1), -torch.inf)
            best = scores.topk(min(top, size), dim=1)
            if best.values.isnan().any():
                raise ModelError(say("models.not_a_number"))
            ids.append(best.indices.cpu())
            logits.append(best.values.cpu())
            at += len(part)
        order = np.argsort(torch.cat(ids).numpy(), axis=1)
        rising = np.take_along_axis(torch.cat(logits).double().numpy(), order, 1)
        highest = rising.max(axis=1, keepdims=True)
        weights = np.exp(rising - np.where(np.isfinite(highest), highest, 0.0))
        return np.take_along_axis(torch.cat(ids).numpy(), order, 1), weights
