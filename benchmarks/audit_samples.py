"""What was read of a domain, arranged for audits: values of documents under a target and what it is compared with."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.audit_readings import ALONE
from pretrace.inference.reading import Reading, bounded_lead, token_scale
from pretrace.types import Doubles, Pair

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """What a model said of pairs: of whole true snippets, of the true suffixes, and of the generated ones."""

    whole: Reading
    true: Reading
    generated: Reading | None

    @classmethod
    def of(cls, arrays: Arrays, name: str, pairs: list[Pair]) -> Said:
        """From the arrays that `audit_readings` wrote under a name."""
        whole = _split(arrays, f"{name}/true")
        before = arrays[f"{name}/before"].tolist()
        suffix = [one[skipped:] for one, skipped in zip(whole, before, strict=True)]
        generated = _split(arrays, f"{name}/generated") if f"{name}/generated" in arrays else None
        return cls(
            _reading(whole, [pair.prefix + pair.true for pair in pairs]),
            _reading(suffix, [pair.true for pair in pairs]),
            _reading(generated, [pair.generated for pair in pairs]) if generated is not None else None,
        )


@dataclass(frozen=True)
class Domain:
    """Everything on file of one domain; document names are those that statistics count."""

    work: Path
    name: str

    @cached_property
    def pairs(self) -> dict[str, list[Pair]]:
        """The pairs that were drawn, and the beginnings of texts."""
        found = json.loads((self.work / f"pairs-{self.name}.json").read_text(encoding="utf-8"))
        return {kind: [Pair(*row) for row in found[kind]] for kind in ("drawn", "first")}

    @cached_property
    def texts(self) -> dict[str, dict[str, Any]]:
        """Group and remarks of each text, by its id, in the order of the evaluation texts."""
        with gzip.open(self.work / "documents.json.gz", "rt", encoding="utf-8") as file:
            rows = json.load(file)["domains"][self.name]["evaluation"]
        return {row[0]: {"text": row[1], "group": row[2] or row[0], "meta": row[3]} for row in rows}

    def documents(self, pairs: list[Pair]) -> npt.NDArray[np.str_]:
        """The document of each pair."""
        return np.array([self.texts[pair.document]["group"] for pair in pairs])

    @cached_property
    def beside(self) -> Arrays:
        """What the placebos said."""
        return _loaded(self.work / f"beside-{self.name}.npz")

    def target(self, name: str) -> Arrays:
        """What a target said."""
        return _loaded(self.work / f"target-{self.name}-{name}.npz")

    @cached_property
    def names(self) -> list[str]:
        """The targets that were read."""
        found = self.work.glob(f"target-{self.name}-*.npz")
        return sorted(path.stem.removeprefix(f"target-{self.name}-") for path in found)


def leads(target: Reading, placebo: Reading, scale: float | None = None) -> Doubles:
    """How much likelier the target finds each piece: bounded at `scale`, or as a plain mean of nats a token."""
    if scale is None:
        return np.asarray(target.per_token - placebo.per_token)
    return bounded_lead(target, placebo, scale)


def scale_of(target: Said, placebo: Said) -> float:
    """The median token's lead, as an audit takes it."""
    pairs = [(target.true, placebo.true)]
    if target.generated is not None and placebo.generated is not None:
        pairs.append((target.generated, placebo.generated))
    return token_scale(pairs)


def alone(arrays: Arrays, name: str, score: str) -> Doubles:
    """A score of the whole texts under one model."""
    return np.asarray(arrays[f"{name}/scores"][:, ALONE.index(score)], dtype=np.float64)


def _split(arrays: Arrays, name: str) -> list[Doubles]:
    ends = np.cumsum(arrays[f"{name} lengths"].astype(np.int64))[:-1]
    return np.split(arrays[name].astype(np.float64), ends)


def _reading(logp: list[Doubles], texts: list[str]) -> Reading:
    return Reading(tuple(logp), np.array([len(text.encode("utf-8", "replace")) for text in texts]))


def _loaded(path: Path) -> Arrays:
    with np.load(path) as found:
        return dict(found)
