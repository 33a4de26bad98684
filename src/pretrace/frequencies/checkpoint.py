"""What a count has come to so far, kept on disk so that a killed run goes on where it was."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pretrace.errors import TableError
from pretrace.frequencies.encoding import Counts, Part, empty, merged
from pretrace.frequencies.table import load_arrays, save_arrays

if TYPE_CHECKING:
    import pyarrow as pa

MAX_PIECES = 2 << 20
MAX_PIECE_BYTES = 64 << 20
MAX_PENDING = 1 << 20
"""Rows of tables that wait to be merged: merging costs about as much for one as for many."""


class Tally:
    """Counts that grow batch by batch, in bounded memory; begins where `progress` left off."""

    def __init__(self, size: int, progress: Counted | None = None) -> None:
        self.tokens: Counts = np.zeros(size, dtype=np.int64) if progress is None else progress.tokens
        self.texts = 0 if progress is None else progress.texts
        self.bytes = 0 if progress is None else progress.bytes
        self.last = "" if progress is None else progress.last
        self._last_text: str | None = None
        self._pieces: pa.Table = empty() if progress is None else progress.pieces
        self._pending: list[pa.Table] = []
        self._pending_rows = 0

    def add(self, part: Part, texts: int, last: str) -> None:
        """Add what the next batch came to: so many texts, of which `last` is the last."""
        self.tokens += part.tokens
        self.texts += texts
        self.bytes += part.bytes
        self._last_text = last
        if part.pieces is not None:
            self._pending.append(part.pieces)
            self._pending_rows += len(part.pieces)
            if self._pending_rows > MAX_PENDING:
                self._merge()

    @property
    def is_full(self) -> bool:
        """Whether there are so many distinct pieces that they should be taken and encoded."""
        return len(self._pieces) > MAX_PIECES or self._pieces.nbytes > MAX_PIECE_BYTES

    def take_pieces(self) -> pa.Table:
        """The distinct pieces and their counts, which the tally then holds no longer."""
        self._merge()
        pieces, self._pieces = self._pieces, empty()
        return pieces

    def progress(self) -> Counted:
        """All of it, as a checkpoint keeps it."""
        self._merge()
        if self._last_text is not None:
            self.last = text_hash(self._last_text)
        return Counted(self.tokens, self._pieces, self.texts, self.bytes, self.last)

    def _merge(self) -> None:
        self._pieces = merged([self._pieces, *self._pending])
        self._pending, self._pending_rows = [], 0


KIND = "checkpoint of a token count"


@dataclass(frozen=True, slots=True)
class Counted:
    """The first `texts` texts of a source, counted: `tokens` int64 [ids], and pieces still to be encoded.

    `last` is the hash of the last of them, by which another source is recognised.
    """

    tokens: Counts
    pieces: pa.Table
    texts: int
    bytes: int
    last: str


def save_checkpoint(path: Path, settings: dict[str, Any], progress: Counted) -> None:
    """Write the progress of a run with these settings, whole or not at all; OutputError if that fails."""
    facts = {
        "settings": settings,
        "texts": progress.texts,
        "bytes": progress.bytes,
        "last": progress.last,
    }
    pieces = progress.pieces["piece"].to_pylist()
    arrays: dict[str, npt.NDArray[Any]] = {
        "tokens": progress.tokens,
        "pieces": np.frombuffer(b"".join(pieces), dtype=np.uint8),
        "lengths": np.array([len(piece) for piece in pieces], dtype=np.int64),
        "counts": np.asarray(progress.pieces["count"].to_numpy(), dtype=np.int64),
    }
    save_arrays(path, KIND, facts, arrays)


def load_checkpoint(path: Path, settings: dict[str, Any]) -> Counted | None:
    """The progress kept at `path`, None where there is none.

    Raises TableError where the file is damaged, or comes from a run with other settings: going on from it
    would mix two counts.
    """
    import pyarrow as pa

    if not path.exists():
        return None
    facts, arrays = load_arrays(path, KIND, cure="delete it to begin anew")
    for name, wanted in settings.items():
        found = facts["settings"].get(name)
        if found != wanted:
            raise TableError(
                f"the checkpoint {path} was begun with {name} {found!r} and this run has {wanted!r}; "
                "delete it to begin anew, or give the settings it was begun with."
            )
    pieces = pa.array(_parted(arrays["pieces"].tobytes(), arrays["lengths"]), pa.binary())
    table = pa.table({"piece": pieces, "count": pa.array(arrays["counts"], pa.int64())})
    return Counted(arrays["tokens"], table, facts["texts"], facts["bytes"], facts["last"])


def text_hash(text: str) -> str:
    """Hash of one text, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _parted(joined: bytes, lengths: npt.NDArray[np.int64]) -> Sequence[bytes]:
    ends = np.cumsum(lengths)
    return [joined[start:end] for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True)]
