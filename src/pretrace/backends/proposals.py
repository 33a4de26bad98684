"""Neighbours: copies of a text in which a model puts other words (Mattern et al. 2023).

Definition. In each neighbour a share of the tokens, at positions drawn at random, is replaced by words
that another model finds likely there, never by the token that stood there:

- `causal`, `causal:MODEL`: the new word for token i is drawn from a causal model's next-token distribution
  after the original tokens before i. One pass a text serves all its neighbours.
- `masked:MODEL`: the drawn positions are masked together and the new words are drawn from a masked
  model's distributions there, given all that is not masked. Four neighbours at a time share their
  positions, and so a pass; their words are drawn separately.

Both draw from the 50 likeliest tokens, in proportion to their probability, among those that are visible
text of their own (no special token, white space, or part of a character) and begin a word where the
replaced token does. Where the tokenizer knows no capitals, a word takes over those of the replaced one.
Everything else of the text stays character for character: white space, special tokens, words a masked
model's tokenizer does not know, what lies beyond the model's context, and for a causal model without a
start token the first token. A text of fewer than two tokens, or without anything to replace, is its own
neighbour. A new word may be cut into tokens differently by the model that then reads the neighbour, so
lengths in tokens may differ.

`causal` lets the target itself propose: what it remembers of a member it also proposes for it. A model that
never saw the texts is the cleaner choice where there is one.

Every draw depends on the text, the share, the seed and the neighbour's number alone, so the first m of 25
neighbours are the m neighbours, in any batch and any order (as far as a model's logits do not depend on
its batch, which they do in their last bits only).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pretrace.backends.guessing import CausalGuesser, MaskedGuesser, open_masked
from pretrace.backends.huggingface import HuggingFace, open_huggingface
from pretrace.backends.loading import Located, locate
from pretrace.backends.replacing import Draft
from pretrace.backends.settings import ModelSettings
from pretrace.cache.location import text_key
from pretrace.cache.store import Neighbors, open_neighbors
from pretrace.errors import ModelError
from pretrace.types import Backend, Proposer


@dataclass(frozen=True, slots=True)
class _NeighborRequest:
    number: int
    share: float
    seed: int

    @property
    def label(self) -> str:
        """What tells the neighbours of one text apart in the cache."""
        return f"share={float(self.share)!r} seed={int(self.seed)}"


class Proposals:
    """A `Proposer`: neighbours by one model, kept on disk unless `cache` is False."""

    def __init__(self, guesser: CausalGuesser | MaskedGuesser, *, cache: bool = True) -> None:
        self.guesser = guesser
        self.fingerprint = guesser.fingerprint
        self.facts = guesser.facts
        self.kept_as = self.fingerprint if cache else None
        with open_neighbors(self.kept_as):
            pass  # finds out whether the folder can be written before any work is done
        self._last: tuple[object, dict[bytes, Neighbors]] = (None, {})

    def propose(
        self, texts: Sequence[str], /, *, number: int, share: float, seed: int
    ) -> list[tuple[str, ...]]:
        """For each text its first `number` neighbours; only what is not on disk yet is made.

        Every batch is stored when it is done. Raises OutputError where that fails, ModelError where the
        model gives no numbers.
        """
        keys, asked = [text_key(text) for text in texts], _NeighborRequest(number, share, seed)
        if self._last[0] != (
            keys,
            asked,
        ):  # another model is to read the same: not made twice without a cache
            self._last = (keys, asked), self._made(dict(zip(keys, texts, strict=True)), asked)
        return [self._last[1][key][:number] for key in keys]

    def _made(self, texts: Mapping[bytes, str], asked: _NeighborRequest) -> dict[bytes, Neighbors]:
        with open_neighbors(self.kept_as) as store:
            stored = [some or () for some in store.get(list(texts), asked.label)]
            known = dict(zip(texts, stored, strict=True))
            if all(len(some) >= asked.number for some in stored):
                return known
            drafts = self.guesser.read(list(texts.values()))
            known |= {draft.key: (draft.text,) * asked.number for draft in drafts if not len(draft.open)}
            # Planned over all the texts, whatever is stored: a run that was killed goes on with the same batches.
            for batch in self.guesser.pack(drafts):
                some = [drafts[i] for i in batch if len(known[drafts[i].key]) < asked.number]
                if some:
                    more = self._more(some, [len(known[draft.key]) for draft in some], asked)
                    known |= {
                        draft.key: known[draft.key] + new for draft, new in zip(some, more, strict=True)
                    }
                    keys = [draft.key for draft in some]
                    store.put(keys, [known[key] for key in keys], asked.label)
        return known

    def _more(self, drafts: Sequence[Draft], have: Sequence[int], asked: _NeighborRequest) -> list[Neighbors]:
        """The neighbours of each text from the first it does not have to the last that is asked for."""
        sharing, vocabulary = self.guesser.sharing, self.guesser.vocabulary
        sets = [range(first // sharing, (asked.number - 1) // sharing + 1) for first in have]
        positions = [
            [draft.positions(share=asked.share, seed=asked.seed, number=number) for number in numbers]
            for draft, numbers in zip(drafts, sets, strict=True)
        ]
        candidates = self.guesser.guess(drafts, positions)
        made = []
        for i, (draft, first) in enumerate(zip(drafts, have, strict=True)):
            new = []
            for number in range(first, asked.number):
                at = number // sharing - sets[i][0]
                random = draft.draws("words", asked.seed, number)
                new.append(vocabulary.neighbor(draft, positions[i][at], candidates[i][at], random))
            made.append(tuple(new))
        return made


def open_proposer(
    spec: str, target: Backend | None = None, *, cache: bool = True, **settings: Any
) -> Proposer:
    """The proposer that `spec` names: "causal" (the target itself), "causal:MODEL" or "masked:MODEL".

    MODEL is what `open_model` takes, for "masked" a hub id or a folder. `cache` False keeps nothing on
    disk. Other keyword arguments are those of `open_model`, for a model that is opened here. Raises
    ModelError for any other spec, a model of the wrong kind, or one that cannot be opened.
    """
    kind, _, model = spec.partition(":")
    if spec == "causal":
        if not isinstance(target, HuggingFace):
            found = "no target" if target is None else f"the target {target.name}, which has none here"
            raise ModelError(
                f"--neighbors causal lets the target propose words and needs its weights; found {found}. "
                "Pass --model with local weights, or --neighbors causal:MODEL."
            )
        return Proposals(CausalGuesser(target), cache=cache)
    if kind not in ("causal", "masked") or not model:
        raise ModelError(
            f"--neighbors must be causal (the target itself), causal:MODEL or masked:MODEL; found {spec!r}."
        )
    chosen = ModelSettings(**settings)
    _check_kind(kind, model, locate(model, revision=chosen.revision, allow_pickle=chosen.allow_pickle))
    if kind == "masked":
        return Proposals(open_masked(model, chosen), cache=cache)
    return Proposals(CausalGuesser(open_huggingface(model, chosen)), cache=cache)


def _check_kind(kind: str, model: str, located: Located) -> None:
    """Raise ModelError where the configuration is of a model of the other kind, before weights are loaded.

    transformers opens BERT as a causal model without a word, and then it predicts nothing of use.
    """
    from transformers.models.auto import modeling_auto as auto

    if located.gguf:
        if kind == "masked":
            raise ModelError(
                f"masked:{model} must be a hub id or a folder; a GGUF file holds a causal model."
            )
        return
    try:
        config = json.loads((located.folder / "config.json").read_text(encoding="utf-8"))
        architectures, family = config.get("architectures") or [], config.get("model_type")
    except (OSError, ValueError, AttributeError):
        return  # opening it will say what is wrong with it
    mapped = config.get("auto_map") or {}
    masked = family in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES or "AutoModelForMaskedLM" in mapped
    causal = family in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or "AutoModelForCausalLM" in mapped
    if masked and causal:  # BERT and its kin come as either
        decoder = any(name.endswith(("LMHeadModel", "ForCausalLM")) for name in architectures)
        causal = decoder or bool(config.get("is_decoder"))
        masked = not causal
    what = f"{model} is a {architectures[0] if architectures else family}"
    if kind == "masked" and not masked:
        cure = f"use causal:{model}" if causal else "use another model, such as bert-base-uncased"
        raise ModelError(f"masked:{model} needs a masked language model, and {what}; {cure}.")
    if kind == "causal" and masked and not causal:
        raise ModelError(
            f"causal:{model} needs a model that predicts the next token, and {what}, a masked "
            f"language model; use masked:{model}."
        )
