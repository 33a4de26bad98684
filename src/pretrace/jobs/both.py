"""Both sets of a flagging as one stream, and what one reading of it finds: the documents, those that share a text, and
what the two sets have in common.

Of each text 44 bytes are kept, two hashes of what it says and the number of its document, and each document's name
once. What near copies are found by lies in files (`verdicts.flag.copies`).
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.corpora import TextStream
from pretrace.corpora.columns import USUAL
from pretrace.corpora.streams import Tell
from pretrace.jobs.rows import in_order
from pretrace.scoring.provenance import record_card
from pretrace.statistics.documents import Numbers, linked_numbers
from pretrace.types import Text
from pretrace.verdicts.draws import text_digest
from pretrace.verdicts.flag.apart import Apart
from pretrace.verdicts.flag.copies import Sketches, near_copies
from pretrace.verdicts.flag.planning import KNOWN, TEXTS, Draws, FlagSettings, placed
from pretrace.verdicts.flag.prospect import Prospect, prospect

_BLOCK = 20_480


@dataclass(slots=True)
class Side:
    """What was seen of one of the two sets."""

    texts: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    digests: bytearray = field(default_factory=bytearray)

    def add(self, text: Text) -> None:
        """A text as its file has it."""
        self.texts += 1
        found = bytearray()
        for part in (text.id, text.text, str(text.member), text.group):  # as `record_corpus` hashes them
            encoded = part.encode("utf-8", "surrogatepass")
            found += len(encoded).to_bytes(8, "little")
            found += encoded
        self.digest.update(found)
        self.digests += text_digest(text.text)

    @property
    def hash(self) -> str:
        """The `texts_hash` of the texts."""
        parts = np.frombuffer(self.digests, dtype=">u8").reshape(-1, 4)
        order = np.lexsort(parts.T[::-1])
        return hashlib.sha256(parts[order].tobytes()).hexdigest()


@dataclass(slots=True)
class Gathered:
    """What one reading of both sets found: each of them, the ids of known texts that are labelled as `members`, and of
    each text, in order, a hash of what it says and whether it has a group."""

    asked: Side = field(default_factory=Side)
    known: Side = field(default_factory=Side)
    members: list[str] = field(default_factory=list)
    contents: array[int] = field(default_factory=lambda: array("q"))
    grouped: bytearray = field(default_factory=bytearray)
    sketches: Sketches = field(default_factory=Sketches)
    _names: list[bytes] = field(default_factory=list)
    _blocks: list[Any] = field(default_factory=list)

    def add(self, side: Side, text: Text, both: Text) -> None:
        """A text, as its file has it and as it stands among both sets."""
        side.add(text)
        if text.member and side is self.known:
            self.members.append(text.id)
        self.grouped.append(bool(text.group))
        self.sketches.add(text.text, alone=not text.group)
        content = text.text.strip()
        self.contents.append(hash(content) if content else 0)
        self._names.append(both.document.encode("utf-8", "surrogatepass"))
        if len(self._names) == _BLOCK:
            self._pack()

    def _pack(self) -> None:
        import pyarrow as pa

        if self._names:
            self._blocks.append(pa.array(self._names, pa.large_binary()).dictionary_encode())
            self._names = []

    @property
    def documents(self) -> Documents:
        """The documents, those that share a text as one."""
        self._pack()
        names, codes = in_order(self._blocks)
        contents = np.frombuffer(self.contents, np.int64)
        first = linked_numbers(contents, codes, len(names))
        copies = near_copies(self.sketches, codes, first, self.asked.texts)
        return Documents(names, codes, copies.first.astype(np.int32), copies.notes)

    @property
    def draws(self) -> Draws:
        """Where all draws come from."""
        return Draws(self.asked.hash, self.known.hash)


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The `names` of all documents, a sorted pyarrow array of bytes; the number of each text's in that order, [texts];
    for each document the first of those that it shares a text or a near copy with, directly or through others,
    [documents]; and what is said of near copies."""

    names: Any
    codes: npt.NDArray[np.int32]
    first: npt.NDArray[np.int32]
    notes: tuple[str, ...] = ()

    def found(self, texts: slice, groups: Any) -> Numbers:
        """The documents of rows of some of the texts, by the names in a pyarrow column of `groups`; those that share a
        text are one. ValueError for a name that none of these texts has."""
        import pyarrow as pa
        import pyarrow.compute as pc

        numbers = np.unique(self.codes[texts])
        places = pc.index_in(groups.cast(pa.large_binary()), value_set=self.names.take(pa.array(numbers)))
        if places.null_count:
            raise ValueError("a document that none of its texts has")
        return np.asarray(self.first[numbers[places.to_numpy()]], dtype=np.int64)

    def name(self, numbers: Numbers) -> list[str]:
        """The names of documents by their numbers."""
        import pyarrow as pa

        return [
            name.decode("utf-8", "surrogatepass") for name in self.names.take(pa.array(numbers)).to_pylist()
        ]


class Both(TextStream):
    """The texts in question and then the known non-members, as `flagging.plan` puts them together; with `watched` they
    are gathered while they are first read."""

    def __init__(self, asked: TextStream, known: TextStream, watched: Gathered | None = None) -> None:
        super().__init__(
            f"{asked.name} against {known.name}",
            f"{asked.source} and {known.source}",
            USUAL,
            lambda reading: iter(()),
        )
        self.asked, self.known, self.watched = asked, known, watched

    def texts(self, tell: Tell | None = None) -> Iterator[Text]:
        """The texts in order, by the ids that they have here."""
        seen, self.watched = self.watched, None  # of the first reading
        for text in self.asked.texts(tell):
            both = placed(text, TEXTS, None)
            if seen:
                seen.add(seen.asked, text, both)
            yield both
        for text in self.known.texts(tell):
            both = placed(text, KNOWN, False)
            if seen:
                seen.add(seen.known, text, both)
            yield both
        self.notes = (*self.asked.notes, *self.known.notes)

    def gathered(self) -> Gathered:
        """What one more reading finds."""
        found = Gathered()
        for _ in Both(self.asked, self.known, found).texts():
            pass
        return found


def checked(both: Both, found: Gathered, documents: Documents, settings: FlagSettings) -> Prospect:
    """What can be flagged; TextsError for what `flagging.plan` refuses, in its words."""
    first = found.asked.texts
    apart = Apart(both.asked.name, both.known.name, first, found.known.texts)
    apart.refuse_members(found.members)
    apart.refuse_same(_same(both, found))
    apart.refuse_shared(_shared(found, documents))
    linked = documents.first[documents.codes]
    asked, known = (np.unique(some, return_counts=True)[1] for some in (linked[:first], linked[first:]))
    return prospect(
        asked,
        known,
        fdr=settings.fdr,
        method=settings.controlled,
        name=both.known.name,
        more=documents.notes,
    )


def recorded(both: Both, found: Gathered, documents: Documents) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a flagging records of both sets, each as `record_corpus` says it."""
    first = found.asked.texts
    sides = (
        (both.asked, found.asked, documents.codes[:first]),
        (both.known, found.known, documents.codes[first:]),
    )
    asked, known = (
        {
            "name": stream.name,
            "source": stream.source,
            "texts": side.texts,
            "documents": len(np.unique(codes)),
            "sha256": side.digest.hexdigest(),
            "notes": list(stream.notes),
            **record_card(stream.card),
        }
        for stream, side, codes in sides
    )
    return asked, known


def _same(both: Both, found: Gathered) -> list[str]:
    """The ids of texts in question that are among the known ones. Equal hashes are only a suspicion: both sets are then
    read again."""
    hashes, first = np.frombuffer(found.contents, np.int64), found.asked.texts
    known = hashes[first:]
    suspected = set(np.unique(known[np.isin(known, hashes[:first]) & (known != 0)]).tolist())
    if not suspected:
        return []
    said = (text.text.strip() for text in both.known.texts())
    contents = {content for content in said if hash(content) in suspected}
    return [text.id for text in both.asked.texts() if text.text.strip() in contents]


def _shared(found: Gathered, documents: Documents) -> list[str]:
    """The groups that have texts on both sides."""
    import pyarrow as pa
    import pyarrow.compute as pc

    first, grouped = found.asked.texts, np.frombuffer(found.grouped, np.bool_)
    known = documents.name(np.unique(documents.codes[first:][grouped[first:]]))
    names = [TEXTS + name.removeprefix(KNOWN) for name in known]
    wanted = pa.array([name.encode("utf-8", "surrogatepass") for name in names], pa.large_binary())
    places = pc.index_in(wanted, value_set=documents.names)
    there = set(places.drop_null().to_pylist()) & set(
        np.unique(documents.codes[:first][grouped[:first]]).tolist()
        if places.null_count < len(places)
        else ()
    )
    return [name.removeprefix(TEXTS) for name in documents.name(np.array(sorted(there), np.int64))]
