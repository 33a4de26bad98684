"""What a count has come to: tokens counted, and distinct pieces whose tokens are still to be counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pretrace.frequencies.checkpoint import Progress, text_hash
from pretrace.frequencies.encoding import Counts, Part
from pretrace.frequencies.pieces import empty, merged

if TYPE_CHECKING:
    import pyarrow as pa

MAX_PIECES = 2 << 20
MAX_PIECE_BYTES = 64 << 20
MAX_PENDING = 1 << 20
"""Rows of tables that wait to be merged: merging costs about as much for one as for many."""


class Tally:
    """Counts that grow batch by batch, in bounded memory; begins where `progress` left off."""

    def __init__(self, size: int, progress: Progress | None = None) -> None:
        self.tokens: Counts = np.zeros(size, dtype=np.int64) if progress is None else progress.tokens
        self.texts = 0 if progress is None else progress.texts
        self.bytes = 0 if progress is None else progress.bytes
        self.last = "" if progress is None else progress.last
        self._last_text: str | None = None
        self._pieces: pa.Table = empty() if progress is None else progress.pieces
        self._pending: list[pa.Table] = []
        self._pending_rows = 0

    def add(self, part: Part, batch: list[str]) -> None:
        """Add what the next batch of texts came to."""
        self.tokens += part.tokens
        self.texts += len(batch)
        self.bytes += part.bytes
        self._last_text = batch[-1]
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

    def progress(self) -> Progress:
        """All of it, as a checkpoint keeps it."""
        self._merge()
        if self._last_text is not None:
            self.last = text_hash(self._last_text)
        return Progress(self.tokens, self._pieces, self.texts, self.bytes, self.last)

    def _merge(self) -> None:
        self._pieces = merged([self._pieces, *self._pending])
        self._pending, self._pending_rows = [], 0
