"""Token counts of a reference corpus, and the smoothed frequencies that scores take from them."""

from __future__ import annotations

import json
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.errors import TableError
from pretrace.results.atomic import OutputFile, write_atomically
from pretrace.results.wording import say
from pretrace.types import Doubles

Arrays = Mapping[str, npt.NDArray[Any]]

_FACTS = "pretrace"
_DAMAGE = (
    OSError, EOFError, ValueError, LookupError, RuntimeError, TypeError, AttributeError, ArithmeticError, MemoryError,
    SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What zipfile and numpy raise for damaged files; RuntimeError for encryption and methods they do not know."""
_LARGEST = 1 << 30
"""Bytes that a file may unpack to: counts of a hundred million tokens."""


def _arrays_of(kind: str) -> OutputFile:
    """The kind of file that `save_arrays` writes."""

    def is_one(path: Path) -> bool:
        try:
            with zipfile.ZipFile(path) as whole, whole.open(f"{_FACTS}.npy") as label:
                found = json.loads(str(np.lib.format.read_array(label, allow_pickle=False)))
        except _DAMAGE:
            return False
        return isinstance(found, dict) and found.get("kind") == kind

    return OutputFile(kind, is_one)


def save_arrays(path: Path, kind: str, facts: Mapping[str, Any], arrays: Arrays) -> None:
    """Write the arrays and facts (plain values) whole or not at all, in place of an earlier file of the same kind;
    OutputError where that fails."""
    everything: dict[str, Any] = {_FACTS: np.array(json.dumps({"kind": kind, **facts})), **arrays}

    def write(partial: Path) -> None:
        with partial.open("wb") as file:  # given a name, numpy would put .npz behind it
            np.savez(file, **everything)

    write_atomically(path, write, _arrays_of(kind))


def load_arrays(path: Path, kind: str, *, cure: str) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The facts and arrays of a file; TableError, with the `cure`, where it is missing, damaged or holds something
    else."""
    if not path.is_file():
        raise TableError(say("counting.missing", path=path, kind=kind))
    try:
        facts, arrays = _read(path)
    except _DAMAGE as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise TableError(say("counting.damaged", path=path, kind=kind, reason=reason, cure=cure)) from error
    found = facts.get("kind") or "file of another program"
    if found != kind:
        raise TableError(say("counting.other_kind", path=path, kind=kind, found=found))
    return facts, arrays


def _read(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no npz file")
    with zipfile.ZipFile(path) as whole:
        size = sum(one.file_size for one in whole.infolist())
    if size > _LARGEST:
        raise ValueError(f"it would unpack to {size / 1e9:,.0f} GB")
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    facts = json.loads(str(arrays.pop(_FACTS)))
    if not isinstance(facts, dict):
        raise ValueError("its label cannot be read")
    return facts, arrays


KIND = "token count table"
COUNTS = _arrays_of(KIND)
_CURE = "make it again with pretrace count"


@dataclass(frozen=True, slots=True, eq=False)
class Frequencies:
    """How often each token of one tokenizer occurs in a corpus. `counts` is int64 [largest token
    id + 1], `texts` the number of texts counted, `source` says what they were, `method` how they were counted. No
    start or end tokens are in the counts."""

    counts: npt.NDArray[np.int64]
    tokenizer_hash: str
    source: str = ""
    texts: int = 0
    method: str = ""

    @property
    def total(self) -> int:
        """All tokens counted, N of the smoothing."""
        return int(self.counts.sum())

    def log_frequency(self, vocabulary: int) -> Doubles:
        """log((count(v) + 1) / (N + |V|)) for every id v below |V| = `vocabulary`: float64 [vocabulary].

        Laplace smoothing (Zhang et al. 2024, DC-PDD, eq. 5) over the model's logits table, which may be larger than
        the tokenizer's vocabulary. TableError where ids beyond it were counted, which the model cannot predict."""
        beyond = self.counts[vocabulary:]
        if beyond.any():
            last = vocabulary + int(np.flatnonzero(beyond)[-1])
            raise TableError(say("counting.other_model", vocabulary=vocabulary, id=last))
        smoothed = np.ones(vocabulary, dtype=np.float64)
        known = self.counts[:vocabulary]
        smoothed[: len(known)] += known
        return np.asarray(np.log(smoothed) - np.log(float(self.total + vocabulary)))

    def save(self, path: Path) -> None:
        """Write the table to an npz file, whole or not at all; OutputError where that fails."""
        facts = {name: getattr(self, name) for name in ("tokenizer_hash", "source", "texts", "method")}
        save_arrays(path, KIND, facts, {"counts": self.counts})

    @classmethod
    def load(cls, path: Path) -> Frequencies:
        """The table of a file; TableError where it is missing, damaged or none of ours."""
        facts, arrays = load_arrays(path, KIND, cure=_CURE)
        try:
            counts, texts = arrays["counts"], int(facts["texts"])
            words = {name: str(facts[name]) for name in ("tokenizer_hash", "source", "method")}
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise TableError(say("counting.incomplete", path=path, kind=KIND, cure=_CURE)) from error
        sound = counts.dtype == np.int64 and counts.ndim == 1 and texts >= 0 and not (counts < 0).any()
        if not sound or counts.sum(dtype=np.float64) >= 2.0**63:
            raise TableError(say("counting.unsound", path=path, cure=_CURE))
        return cls(counts, texts=texts, **words)
