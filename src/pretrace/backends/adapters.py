"""Adapters over a loaded model: one copy of the weights, with and without what tuning added.

An adapter's layers stand in the model's own places only while the tuned back end runs. At any other time
the model is the pristine one, to its last attribute, so a base may carry any number of adapters and there
is nothing to detach: let go of the tuned back end and it is gone.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.libraries import nn, peft
from pretrace.backends.naming import first_names
from pretrace.errors import ModelError, regular
from pretrace.results.atomic import ADAPTER_CARD as CARD
from pretrace.results.atomic import ADAPTER_KEY as KEY
from pretrace.results.folder import file_hash, from_json
from pretrace.results.wording import say
from pretrace.types import Backend, Encoded, Quantity, States, Trace, Tuned

FORMAT = 1
WEIGHTS = "adapter_model.safetensors"


def attach(backend: Backend, folder: str | Path) -> Tuned:
    """The back end with the adapter in `folder` switched on, over the weights of `backend`, whose traces stay the same
    to the last bit. ModelError where the folder holds no sound adapter of ours, or it was tuned on other weights."""
    from safetensors import safe_open

    if not isinstance(backend, HuggingFace):
        raise ModelError(f"an adapter wants a model with weights here, and {backend.name} has none.")
    folder = Path(folder)
    card = read_card(folder)
    base = card["base"]
    for what, own in (("weights", backend.facts["weights"]), ("the tokenizer", backend.tokenizer_hash)):
        if (known := base[what.removeprefix("the ")]) != own:
            facts = {"what": what, "known": known[:12], "found": own[:12], "name": backend.name}
            raise ModelError(say("models.other_base", folder=folder, base=base["name"], **facts))
    try:
        with inserted(backend.model, lambda one: peft.PeftModel.from_pretrained(one, str(folder))) as layers:
            # peft leaves away what fits nowhere, and fills with its own what is missing
            wanted = set(peft.get_peft_model_state_dict(layers.model, save_embedding_layers=False))
        with safe_open(folder / WEIGHTS, "np") as file:
            written = set(file.keys())
        if not wanted or written != wanted:
            odd = ", ".join(sorted(written ^ wanted)[:2])
            raise _damaged(folder, f"its weights are not those of its layers ({odd or 'it has no layer'})")
    except _UNFIT as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".:")[:200]
        raise _damaged(folder, f"it cannot be put into {backend.name} ({reason})") from error
    seen = frozenset(bytes.fromhex(key) for key in card["hashes"])
    return Tuned(Adapted(backend, layers, card), seen, card)


_UNFIT = (
    *(ValueError, TypeError, LookupError, AttributeError, RuntimeError, OSError, AssertionError, MemoryError),
    re.error,
)
"""What peft and torch raise for an adapter whose settings or weights make no sense; what pretrace raises is none."""


class Adapted:
    """A `Backend` over another one's model, with an adapter in place while it runs."""

    def __init__(self, base: HuggingFace, layers: Layers, card: Mapping[str, Any]) -> None:
        method = card["method"]
        self._base, self._layers = base, layers
        self.name = f"{base.name} + {method['name']}"
        self.offers: Quantity = base.offers
        self.tokenizer_hash, self.vocabulary = base.tokenizer_hash, base.vocabulary
        self.max_tokens, self.least_shared = base.max_tokens, base.least_shared
        # so that a text has the same batch mates with and without the adapter
        self.encode, self.spans, self.pack = base.encode, base.spans, base.pack
        # What the adapter does to a trace is in its weights and its method (scale), and nowhere else.
        adapter = hashlib.sha256(f"{card['files'][WEIGHTS]} {method['expression']}".encode()).hexdigest()
        self.fingerprint = json.dumps({"base": base.fingerprint, "adapter": adapter})
        self.facts: Mapping[str, Any] = {
            **base.facts,
            "name": self.name,
            "adapter": {"method": method["expression"], "seed": card["seed"], "hash": adapter},
        }

    def run(self, batch: Sequence[Encoded], want: Quantity, states: States = frozenset(), /) -> list[Trace]:
        """One pass of the base model with the adapter in place, which is taken out whatever happens."""
        with self.in_place() as base:
            return base.run(batch, want, states)

    def stream(
        self, batches: Sequence[Sequence[Encoded]], want: Quantity, states: States = frozenset(), /
    ) -> Generator[tuple[int, list[Trace]]]:
        """As the base, which must not be asked in between: the adapter is in place till the last batch or closing."""
        with self.in_place() as base, closing(base.stream(batches, want, states)) as made:
            yield from made

    @contextmanager
    def in_place(self) -> Iterator[HuggingFace]:
        """The base's back end, whose model has the adapter in place while the context lasts."""
        with self._layers.in_place():
            yield self._base


class Layers:
    """The layers of one adapter, each around the layer of the model it stands in for; `model` is peft's."""

    def __init__(self, model: Any, body: nn.Module) -> None:
        self.model = model
        self._places: list[tuple[nn.Module, str, Any]] = [
            (parent, name, child)
            for parent in body.modules()
            for name, child in parent.named_children()
            if isinstance(child, peft.tuners.tuners_utils.BaseTunerLayer)
        ]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The adapter's layers in the model while the context lasts, and the model's own afterwards."""
        try:
            for parent, name, tuned in self._places:
                setattr(parent, name, tuned)
            yield
        finally:
            self._lift()

    def _lift(self) -> None:
        """Put the model's own layers back."""
        for parent, name, tuned in self._places:
            setattr(parent, name, tuned.get_base_layer())

    def merge(self) -> None:
        """Add what the adapter does to the model's own weights, for good."""
        for _, _, tuned in self._places:
            tuned.merge()


@contextmanager
def inserted(model: Any, wrap: Callable[[Any], peft.PeftModel]) -> Iterator[Layers]:
    """The adapter that `wrap` puts into a model while the context lasts; then no trace of peft is left."""
    required = [(weight, weight.requires_grad) for weight in model.parameters()]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # advice to whoever calls peft by hand
            adapted = wrap(model)
        yield Layers(adapted, model)
    finally:
        Layers(None, model)._lift()
        for weight, flag in required:
            weight.requires_grad_(flag)
        model.__dict__.pop("peft_config", None)


def read_card(folder: Path) -> dict[str, Any]:
    """The card of an adapter, all of whose files are as they were written; ModelError where they are not."""
    if not folder.is_dir():
        raise ModelError(f"there is no adapter in {folder}: give the folder that `pretrace tune` wrote.")
    try:
        card = from_json(regular(folder / CARD).read_bytes())
    except FileNotFoundError:
        found = first_names(folder)
        raise ModelError(say("models.no_adapter", folder=folder, card=CARD, found=found)) from None
    except (OSError, ValueError, TypeError):
        raise _damaged(folder, f"{CARD} cannot be read") from None
    if card.get(KEY) != FORMAT:
        raise ModelError(say("models.other_format", folder=folder, found=card.get(KEY), known=FORMAT))
    try:
        base, method, seed, files = card["base"], card["method"], card["seed"], card["files"]
        words = [*files.values(), method["name"], method["expression"]]
        words += [base[name] for name in ("name", "weights", "tokenizer")]
        sound = all(isinstance(word, str) for word in words) and isinstance(card["hashes"], list)
        if (
            not sound
            or not files.keys() >= {WEIGHTS, "adapter_config.json"}
            or type(seed) is not int
            or seed < 0
        ):
            raise ValueError
        for key in card["hashes"]:
            bytes.fromhex(key)
        changed = [name for name, known in files.items() if file_hash(folder / name) != known]
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        raise _damaged(folder, f"{CARD} is not complete, or a file that it names is missing") from None
    if changed:
        raise _damaged(folder, f"{changed[0]} is not what was written")
    return card


def _damaged(folder: Path, what: str) -> ModelError:
    return ModelError(f"the adapter in {folder} is damaged: {what}; tune it again with `pretrace tune`.")
