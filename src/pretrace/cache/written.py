"""What models wrote for a text (answers, translations) kept between runs: one sqlite file a model.

Unlike a continuation, which has as many tokens as were asked for, what is written here ends when the model
says so. Whether it did is kept with it: a rewriting that was cut off at a limit is not the whole text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pretrace.cache.draws import Draws, Kind
from pretrace.cache.rows import Row, Table, checksum, schema
from pretrace.cache.traces import text_key
from pretrace.types import Written

Batch = tuple[Sequence[str], Sequence[Written]]
Write = Callable[[Mapping[str, Written]], Iterable[Batch]]
"""Given what is known already, yields batches of texts that are not, with what was written for each."""


class WrittenStore(Draws[Written]):
    """What was written, by the model of that fingerprint; safe to use from several processes.

    Raises OutputError where the folder cannot be written, at once and not at the first text.
    """

    def __init__(self, fingerprint: str, folder: Path | None = None) -> None:
        super().__init__(_KIND, fingerprint, folder)

    def get(self, texts: Sequence[str], label: str) -> dict[str, Written]:
        """What is stored for the texts under that label (how it was written), without what is missing."""
        found = self.find([text_key(text) for text in texts], label)
        return {text: found[key] for text in texts if (key := text_key(text)) in found}

    def put(self, texts: Sequence[str], written: Sequence[Written], label: str) -> None:
        """Store one batch in one transaction: all of it or nothing."""
        pairs = zip(texts, written, strict=True)
        self.write([_encode(text_key(text), label, one) for text, one in pairs])


def written_once(fingerprint: str | None, texts: Sequence[str], label: str, write: Write) -> list[Written]:
    """What was written for each text, in order: from disk where it is there, else by `write`.

    Every batch that `write` yields is stored before the next is begun, so a killed process loses at most one. An
    empty answer is not stored: it is asked for again the next time. For the fingerprint None nothing is kept.
    Raises OutputError where the cache cannot be written.
    """
    if fingerprint is None:
        made = {text: one for batch in write({}) for text, one in zip(*batch, strict=True)}
        return [made[text] for text in texts]
    with WrittenStore(fingerprint) as store:
        known = store.get(list(dict.fromkeys(texts)), label)
        for some, written in write(dict(known)):
            given = [(text, one) for text, one in zip(some, written, strict=True) if one.text]
            store.put([text for text, _ in given], [one for _, one in given], label)
            known.update(zip(some, written, strict=True))
    return [known[text] for text in texts]


def _encode(key: bytes, label: str, written: Written) -> Row:
    body = written.text.encode("utf-8", "surrogatepass")
    ended = int(written.ended)
    return key, label, ended, _checksum(key, label.encode(), ended, body), body


def _decode(row: Sequence[object]) -> Written | None:
    key, label, ended, expected, body = row
    # sqlite gives back whatever type a cell holds; a damaged one may hold any.
    if not (isinstance(key, bytes) and isinstance(label, bytes) and isinstance(body, bytes)):
        return None
    if ended not in (0, 1) or expected != _checksum(key, label, int(ended == 1), body):
        return None
    return Written(body.decode("utf-8", "surrogatepass"), ended == 1)


def _checksum(key: bytes, label: bytes, ended: int, body: bytes) -> int:
    return checksum(key, label, struct.pack("<q", ended), body)


WRITTEN: Table[Written] = Table("written", _decode, label="draw", carries={"ended": "INTEGER"})
_KIND = Kind("written", WRITTEN, schema("cache of written texts", "texts", WRITTEN))
