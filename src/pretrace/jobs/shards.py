"""A source in shards: so many consecutive texts, named by the hash of what they hold."""

from __future__ import annotations

import hashlib
import itertools
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pretrace.corpora import TextStream
from pretrace.corpora.reading import Unreadable, refuse_repeated_ids
from pretrace.errors import TextsError
from pretrace.scoring.evidence import CHUNK
from pretrace.types import Text

SHARD = 10 * CHUNK
"""Texts of a shard: a multiple of those whose batches are planned together, so that a run in shards sees the batches,
and gives the numbers, of a run in one piece."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Consecutive texts of a source, the `index`-th from 0; `key` is the hash of all that they hold."""

    index: int
    key: str
    texts: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """What one reading of a source found: its texts by label, its documents, the hash of ids, texts, labels and
    groups, what was mended on the way, and the key and number of texts of every shard. `unlabelled` names the first
    text without a label, "" where there is none."""

    texts: int
    documents: int
    members: int
    nonmembers: int
    unlabelled: str
    sha256: str
    notes: tuple[str, ...]
    shards: tuple[tuple[str, int], ...]
    unreadable: int = 0


def shards(stream: TextStream, size: int = SHARD) -> Iterator[Shard]:
    """The shards of a source in order; TextsError where a record cannot be read."""
    texts = stream.texts()
    for index in itertools.count():
        some = tuple(itertools.islice(texts, size))
        if not some:
            return
        yield Shard(index, hashlib.sha256(_content(some)).hexdigest()[:32], some)


def survey(
    stream: TextStream, size: int = SHARD, tell: Callable[[Unreadable], object] | None = None
) -> Survey:
    """What a source holds, from one reading of it in constant memory, save for 16 bytes a text; `tell` is given what
    cannot be read. TextsError for repeated ids, and for a record that cannot be read unless those are left out."""
    seen = _Seen()

    def told(unreadable: Unreadable) -> None:
        seen.unreadable += 1
        if tell is not None:
            tell(unreadable)

    texts = stream.texts(told)
    while some := tuple(itertools.islice(texts, size)):
        seen.add(some)
    _refuse_repeated(seen.ids, stream)
    return Survey(
        texts=len(seen.ids),
        documents=len(np.unique(np.frombuffer(seen.documents, np.int64))),
        members=seen.members,
        nonmembers=seen.nonmembers,
        unlabelled=seen.unlabelled or "",
        sha256=seen.digest.hexdigest(),
        notes=stream.notes,
        shards=tuple(seen.shards),
        unreadable=seen.unreadable,
    )


@dataclass(slots=True)
class _Seen:
    """What was seen so far. Ids and documents are kept as Python's hashes of them, 8 bytes each."""

    ids: array[int] = field(default_factory=lambda: array("q"))
    documents: array[int] = field(default_factory=lambda: array("q"))
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    shards: list[tuple[str, int]] = field(default_factory=list)
    members: int = 0
    nonmembers: int = 0
    unlabelled: str | None = None
    unreadable: int = 0

    def add(self, texts: tuple[Text, ...]) -> None:
        """One shard of texts."""
        content = _content(texts)
        self.digest.update(content)
        self.shards.append((hashlib.sha256(content).hexdigest()[:32], len(texts)))
        self.ids.extend([hash(text.id) for text in texts])
        self.documents.extend([hash(text.group or text.id) for text in texts])
        for text in texts:
            if text.member is None:
                if self.unlabelled is None:
                    self.unlabelled = text.id
            elif text.member:
                self.members += 1
            else:
                self.nonmembers += 1


def _content(texts: tuple[Text, ...]) -> bytes:
    """Ids, texts, labels and groups, each after its length, as `provenance.record_corpus` hashes them."""
    found = bytearray()
    for text in texts:
        for part in (text.id, text.text, str(text.member), text.group):
            encoded = part.encode("utf-8", "surrogatepass")
            found += len(encoded).to_bytes(8, "little")
            found += encoded
    return bytes(found)


def _refuse_repeated(ids: array[int], stream: TextStream) -> None:
    """TextsError where ids repeat. Equal hashes are only a suspicion: the source is then read again for the ids that
    have them."""
    hashes: npt.NDArray[np.int64] = np.sort(np.frombuffer(ids, np.int64))
    suspected = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    if suspected:
        names = [text.id for text in stream.texts() if hash(text.id) in suspected]
        refuse_repeated_ids(names, stream.source)


def check_labelled(found: Survey, name: str) -> None:
    """TextsError unless every text is labelled and both classes are there."""
    unknown = found.texts - found.members - found.nonmembers
    if unknown:
        raise TextsError(
            f"{unknown} of {found.texts} texts of {name} have no label (such as {found.unlabelled!r}): "
            "evaluation needs a column with 1 for members and 0 for non-members (--label-column), "
            "or use `pretrace score`."
        )
    if not (found.members and found.nonmembers):
        kind = "members" if found.members else "non-members"
        raise TextsError(f"all {found.texts} texts of {name} are {kind}: evaluation needs both classes.")
