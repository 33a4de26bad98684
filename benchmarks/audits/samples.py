"""What was read of a domain, arranged for audits: values of documents under a target and what it is compared with."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.audits.readings import ALONE
from benchmarks.experiments import Row
from pretrace.statistics.documents import by_document
from pretrace.types import Doubles, Pair
from pretrace.verdicts.audit.data import Logprobs, gain_scale, logprob_gains

Arrays = dict[str, npt.NDArray[Any]]
LEVEL = 0.05
DRAWS = 2000
SNIPPET, WHOLE = "a snippet", "256 tokens"


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """What a model said of pairs: of whole true snippets, of the true suffixes, and of the generated ones."""

    whole: Logprobs
    true: Logprobs
    generated: Logprobs | None

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
        return loaded(self.work / f"beside-{self.name}.npz")

    def target(self, name: str) -> Arrays:
        """What a target said."""
        return loaded(self.work / f"target-{self.name}-{name}.npz")

    @cached_property
    def names(self) -> list[str]:
        """The targets that were read."""
        found = self.work.glob(f"target-{self.name}-*.npz")
        return sorted(path.stem.removeprefix(f"target-{self.name}-") for path in found)


class Values(NamedTuple):
    """One value a document: its names, the values, and which of them the target was trained on."""

    names: tuple[str, ...]
    values: Doubles
    members: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Subject:
    """One target in one domain."""

    domain: Domain
    name: str
    arrays: Arrays

    @property
    def epochs(self) -> int:
        """How often it read its members."""
        return int(self.name.partition("-e")[2][0])

    @property
    def seed(self) -> int:
        """What its audits are drawn with: another for each target, so that they are not the same audits again."""
        return zlib.crc32(f"{self.domain.name} {self.name}".encode())

    @property
    def key(self) -> Row:
        """What its rows are told apart by."""
        model = "SmolLM2" if "smollm2" in self.name else "Llama 3.3M"
        stream = "-stream" in self.name
        return {"domain": self.domain.name, "model": model, "epochs": self.epochs, "stream": stream}

    def said(self) -> Said:
        """What it said of the pairs."""
        return Said.of(self.arrays, "drawn", self.domain.pairs["drawn"])

    def by_document(self, values: Doubles, *, whole: bool = False) -> Values:
        """One value a document from one a pair (or a text, where `whole`)."""
        owners = [text["group"] for text in self.domain.texts.values()]
        members = dict(zip(owners, self.arrays["member"].tolist(), strict=True))
        pieces = owners if whole else self.domain.documents(self.domain.pairs["drawn"]).tolist()
        names, found = by_document(values, pieces)
        return Values(names, found, np.array([members[name] for name in names]))


def subjects(domain: Domain) -> list[Subject]:
    """The targets of a domain that were read."""
    return [Subject(domain, name, domain.target(name)) for name in domain.names]


def leads(target: Logprobs, placebo: Logprobs, scale: float | None = None) -> Doubles:
    """How much likelier the target finds each piece: bounded at `scale`, or as a plain mean of nats a token."""
    if scale is None:
        return np.asarray(target.per_token - placebo.per_token)
    return logprob_gains(target, placebo, scale)


def scale_of(target: Said, placebo: Said) -> float:
    """The median token's lead, as an audit takes it."""
    pairs = [(target.true, placebo.true)]
    if target.generated is not None and placebo.generated is not None:
        pairs.append((target.generated, placebo.generated))
    return gain_scale(pairs)


def alone(arrays: Arrays, name: str, score: str) -> Doubles:
    """A score of the whole texts under one model."""
    return np.asarray(arrays[f"{name}/scores"][:, ALONE.index(score)], dtype=np.float64)


def differences(subject: Subject, name: str) -> Doubles:
    said = subject.said()
    assert said.generated is not None
    placebo = Said.of(subject.domain.beside, name, subject.domain.pairs["drawn"])
    assert placebo.generated is not None
    scale = scale_of(said, placebo)
    return leads(said.true, placebo.true, scale) - leads(said.generated, placebo.generated, scale)


def counted(p: Sequence[float]) -> Row:
    return {
        "audits": len(p),
        "rejections": sum(one <= LEVEL for one in p),
        "p": [float(f"{one:.3g}") for one in p],
    }


def blocks(number: int, size: int) -> range:
    return range(0, number - size + 1, size)


def part(values: Doubles, k: int, size: int) -> Doubles:
    return values[k * size : (k + 1) * size]


def _split(arrays: Arrays, name: str) -> list[Doubles]:
    ends = np.cumsum(arrays[f"{name} lengths"].astype(np.int64))[:-1]
    return np.split(arrays[name].astype(np.float64), ends)


def _reading(logp: list[Doubles], texts: list[str]) -> Logprobs:
    return Logprobs(tuple(logp), np.array([len(text.encode("utf-8", "replace")) for text in texts]))


def loaded(path: Path) -> Arrays:
    """The arrays of a file."""
    with np.load(path) as found:
        return dict(found)
