"""Models whose members are known by construction, and what they say of every text: kept in a folder, resumable.

A base learns the background of all domains from scratch. A world is a base trained further, once through, on members of
every design at once, in disjoint groups with 1, 4 and 16 copies, mixed with background. The base is the model that
cannot have seen them; a base of another architecture, trained on the same background, is the reference.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.audit_models import WINDOW, _write
from benchmarks.designs_texts import BACKGROUND, COPIES, Material, Sizes, divided, read, shuffles
from pretrace.backends.huggingface import HuggingFace, open_huggingface
from pretrace.backends.settings import ModelSettings
from pretrace.tuning.plan import TrainingPlan
from pretrace.types import Doubles, Quantity

SHAPES = {
    "small": ("llama", 3, 128, 2048),
    "large": ("llama", 4, 192, 4096),
    "reference": ("gpt_neox", 2, 96, 2048),
}
"""Family, layers, width and vocabulary of the bases: 1.1, 3.3 and 0.6 million parameters."""


@dataclass(frozen=True, slots=True)
class World:
    """A model: a base trained further on a domain's members; `seed` draws them and the order of training."""

    domain: str
    seed: int
    shape: str = "small"

    @property
    def name(self) -> str:
        """Its folder's name."""
        return f"{self.domain}-{self.seed}-{self.shape}"


def groups(counts: Sequence[int], extra: int, seed: Sequence[int]) -> npt.NDArray[np.int64]:
    """For each unit how often it is read: 1, 4, 16 or 0 times, at random; `extra` more units are -1 (leaked)."""
    labels = np.repeat([*COPIES, 0, -1], [*counts, extra])
    return np.asarray(np.random.default_rng([*seed, 5]).permutation(labels))


def membership(world: World, sizes: Sizes) -> dict[str, npt.NDArray[np.int64]]:
    """How often the units of each kind are read by the model of this world."""
    kinds = {"documents": sizes.documents, "shards": sizes.shards}
    kinds |= dict.fromkeys(("items", "canaries", "triggers"), sizes.items)
    return {
        kind: groups(counts, sizes.leaked if kind == "documents" else 0, [world.seed, i])
        for i, (kind, counts) in enumerate(kinds.items())
    }


def base(shape: str, sizes: Sizes, data: Path, work: Path, domains: Sequence[str] = BACKGROUND) -> Path:
    """The folder of a base, trained unless it is there."""
    from pretrace.tuning.architectures import Architecture, new_model

    folder = work / f"base-{shape}"
    if not (folder / "config.json").is_file():
        texts = [text for domain in domains for text in divided(read(data, domain), sizes, 0)[1]]
        family, layers, width, vocabulary = (
            SHAPES[shape] if not sizes.tiny else (SHAPES[shape][0], 1, 16, 300)
        )
        made = Architecture(family=family, layers=layers, width=width, vocabulary=vocabulary)
        model, tokenizer = new_model(texts, architecture=made, seed=0)
        epochs = 1 if shape == "reference" else sizes.epochs
        _learn(model, tokenizer, texts, _plan(sizes, epochs=epochs, rate=sizes.rate, seed=0))
        _write(model, tokenizer, folder)
    return folder


def train(world: World, made: Material, sizes: Sizes, data: Path, work: Path) -> Path:
    """The folder of a world's model, trained unless it is there."""
    from pretrace.backends.loading import load

    folder = work / world.name
    if not (folder / "config.json").is_file():
        loaded = load(str(work / f"base-{world.shape}"), ModelSettings(dtype="float32"))
        background = divided(read(data, world.domain), sizes, 0)[1]
        texts = [*planted(world, made, sizes), *(text[: sizes.characters] for text in background)]
        plan = _plan(sizes, epochs=1, rate=sizes.rate / 2, seed=world.seed)
        _learn(loaded.model, loaded.tokenizer, texts, plan)
        _write(loaded.model, loaded.tokenizer, folder)
    return folder


def planted(world: World, made: Material, sizes: Sizes) -> list[str]:
    """All that the model of a world reads of its members, each as often as it is read."""
    member = membership(world, sizes)
    texts: list[str] = []
    for i, times in enumerate(member["documents"].tolist()):
        texts += list(made.variants[i]) * 4 if times < 0 else [made.published[i]] * times
    for kind in ("items", "canaries", "triggers"):
        units = getattr(made, kind)
        texts += [unit[0] for unit, n in zip(units, member[kind].tolist(), strict=True) for _ in range(n)]
    for copies in COPIES:
        rows = [row for i in np.flatnonzero(member["shards"] == copies) for row in made.shards[i]]
        texts += [window for turn in range(copies) for window in stretches(rows, sizes.rows + 2, turn)]
    return texts


def stretches(rows: Sequence[str], length: int, turn: int) -> list[str]:
    """The rows of a set in order, in stretches of so many that begin at another place in every turn."""
    starts = [0, *range(1 + 5 * turn % length, len(rows), length)]
    return ["\n".join(rows[a:b]) for a, b in zip(starts, [*starts[1:], len(rows)], strict=True)]


def _plan(sizes: Sizes, *, epochs: int, rate: float, seed: int) -> TrainingPlan:
    return TrainingPlan(epochs=epochs, batch=sizes.batch, learning_rate=rate, warmup=0.05, seed=seed)


def _learn(model: Any, tokenizer: Any, texts: Iterable[str], plan: TrainingPlan) -> None:
    """Train the model on the texts, read as start, text, end."""
    from pretrace.backends.tokens import Tokens
    from pretrace.tuning.batches import windows
    from pretrace.tuning.training import train as learn

    start = time.monotonic()
    end = [int(tokenizer.eos_token_id)]
    encoded = Tokens(tokenizer, start="always").encode(list(texts))
    whole = [[*e.prefix.tolist(), *e.tokens.tolist(), *end] for e in encoded]
    found = learn(model, [window for one in whole for window in windows(one, WINDOW)], plan)
    print(f"  {found.tokens:,} tokens, losses {found.losses}, {time.monotonic() - start:.0f} s", flush=True)


def opened(folder: Path) -> HuggingFace:
    """A model of the work folder, a start token before every text, as it was trained."""
    return open_huggingface(str(folder), ModelSettings(start="always", dtype="float32"))


def logp(model: HuggingFace, texts: Sequence[str]) -> Doubles:
    """[texts][sum of log-probabilities, tokens]."""
    encoded = model.encode(list(texts))
    found = np.zeros((len(texts), 2))
    for batch in model.pack(encoded):
        traces = model.run([encoded[i] for i in batch], Quantity.LOGP)
        for i, trace in zip(batch, traces, strict=True):
            found[i] = trace.logp.astype(np.float64).sum(), len(trace.logp)
    return found


def values(model: HuggingFace, made: Material, sizes: Sizes, *, alone: bool = False) -> dict[str, Doubles]:
    """What a model says of all texts of a domain; of the documents only where `alone`."""
    found = {"variants": _units(model, made.variants)}
    found |= {name: logp(model, getattr(made, name)) for name in ("edited", "short")}
    if alone:
        return found
    found |= {name: _units(model, getattr(made, name)) for name in ("items", "canaries", "triggers")}
    return found | {name: ordered(model, getattr(made, name), sizes) for name in ("shards", "meaningful")}


def plain(model: HuggingFace, made: Material) -> dict[str, Doubles]:
    """What a model says of canaries of another law."""
    return {"plain_canaries": _units(model, made.plain_canaries)}


def _units(model: HuggingFace, units: Sequence[Sequence[str]]) -> Doubles:
    return logp(model, [text for unit in units for text in unit]).reshape(len(units), -1, 2)


def ordered(model: HuggingFace, shards: Sequence[Sequence[str]], sizes: Sizes) -> Doubles:
    """[shards][1 + shuffles] log-probabilities of whole shards, the published order first; the first row stays."""
    return _read(model, shards, shuffles(sizes, len(shards), sizes.shuffles), range(len(shards)), sizes)


def published_scheme(model: HuggingFace, made: Material, member: npt.NDArray[np.int64], sizes: Sizes) -> Any:
    """The same for the shards that the model reads more than once (`shards` names them), with as many shuffles as the
    published test takes, of all rows."""
    some = np.flatnonzero(member > 1)
    orders = shuffles(sizes, len(made.shards), sizes.published, whole=True)
    return {"shards": some, "values": _read(model, made.shards, orders, some.tolist(), sizes)}


def _read(
    model: HuggingFace, shards: Sequence[Sequence[str]], orders: Any, some: Sequence[int], sizes: Sizes
) -> Doubles:
    texts = [
        "\n".join(shards[i][row] for row in order)
        for i in some
        for order in [list(range(sizes.rows)), *orders[i]]
    ]
    return logp(model, texts)[:, 0].reshape(len(some), -1)


def kept(path: Path, make: Any) -> dict[str, Doubles]:
    """The arrays of a file, made and written unless they are there."""
    if not path.is_file():
        start = time.monotonic()
        found: Mapping[str, Doubles] = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npz")
        np.savez(part, **found)
        part.replace(path)
        print(f"  {path.name}: {time.monotonic() - start:.0f} s", flush=True)
    with np.load(path) as file:
        return {name: file[name] for name in file.files}
