"""A flagging over more texts than memory holds: both sets as one stream, the columns that every figure rests on, the
outcome, and the tables.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.corpora import TextStream
from pretrace.corpora.columns import USUAL
from pretrace.corpora.near_copies import Sketches
from pretrace.corpora.opening import OnUnreadable
from pretrace.jobs.job import ShardJob
from pretrace.jobs.merging import LISTED, SAMPLE, Hashes, in_order, keyed_hashes, manifests, texts_at
from pretrace.jobs.worker import Manifest, PartsFolder
from pretrace.results.folder import Write, texts_of, write_parquet
from pretrace.results.run import p_bars, score_bars
from pretrace.scoring.detect import CutTokens
from pretrace.scoring.provenance import content_of, record_texts
from pretrace.statistics.documents import Numbers, linked_numbers
from pretrace.types import Bools, Skipped, Table, Text, Verdict
from pretrace.verdicts.draws import TextsSketch, text_digest
from pretrace.verdicts.flag.built import build_flagging, rows_table
from pretrace.verdicts.flag.concluding import FlagConclusion, Rows, Sides
from pretrace.verdicts.flag.flag import Asking, record, settle
from pretrace.verdicts.flag.planning import (
    KNOWN,
    TEXTS,
    DetectionLimits,
    Draws,
    FlagSettings,
    check_apart,
    near_copies,
    placed,
    prospect,
)

# Both sets of a flagging as one stream, and what one reading of it finds: the documents, those that share a text,
# and what the two sets have in common.
#
# Of each text 44 bytes are kept, two hashes of what it says and the number of its document, and each document's
# name once. What near copies are found by lies in files (`verdicts.flag.copies`).


_BLOCK = 20_480


@dataclass(slots=True)
class SetSide:
    """What was seen of one of the two sets."""

    texts: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    digests: bytearray = field(default_factory=bytearray)

    def add(self, text: Text) -> None:
        """A text as its file has it."""
        self.texts += 1
        self.digest.update(content_of(text))
        self.digests += text_digest(text.text)

    @property
    def hash(self) -> str:
        """The `texts_hash` of the texts."""
        parts = np.frombuffer(self.digests, dtype=">u8").reshape(-1, 4)
        order = np.lexsort(parts.T[::-1])
        return hashlib.sha256(parts[order].tobytes()).hexdigest()

    @property
    def sketch(self) -> TextsSketch:
        """The sketch of the texts."""
        return TextsSketch.of_digests(
            bytes(self.digests[at : at + 32]) for at in range(0, len(self.digests), 32)
        )


@dataclass(slots=True)
class Gathered:
    """What one reading of both sets found: each of them, the ids of known texts that are labelled as `members`, and of
    each text, in order, a hash of what it says and whether it has a group."""

    asked: SetSide = field(default_factory=SetSide)
    known: SetSide = field(default_factory=SetSide)
    members: list[str] = field(default_factory=list)
    contents: array[int] = field(default_factory=lambda: array("q"))
    grouped: bytearray = field(default_factory=bytearray)
    sketches: Sketches = field(default_factory=Sketches)
    _names: list[bytes] = field(default_factory=list)
    _blocks: list[Any] = field(default_factory=list)

    def add(self, side: SetSide, text: Text, both: Text) -> None:
        """A text, as its file has it and as it stands among both sets."""
        side.add(text)
        if text.member and side is self.known:
            self.members.append(text.id)
        self.grouped.append(bool(text.group))
        self.sketches.add(text.text)
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
    def documents(self) -> LinkedDocuments:
        """The documents, those that share a text as one."""
        self._pack()
        names, codes = in_order(self._blocks)
        contents = np.frombuffer(self.contents, np.int64)
        first = linked_numbers(contents, codes, len(names))
        copies = near_copies(self.sketches, codes, first, self.asked.texts)
        return LinkedDocuments(names, codes, copies.first.astype(np.int32), copies.notes)

    @property
    def draws(self) -> Draws:
        """Where all draws come from."""
        return Draws(self.asked.hash, self.known.hash, self.asked.sketch)


@dataclass(frozen=True, slots=True, eq=False)
class LinkedDocuments:
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

    def texts(self, tell: OnUnreadable | None = None) -> Iterator[Text]:
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


def checked(
    both: Both, found: Gathered, documents: LinkedDocuments, settings: FlagSettings
) -> DetectionLimits:
    """What can be flagged; TextsError for what `flagging.plan` refuses, in its words."""
    first = found.asked.texts
    check_apart(
        both.asked.name,
        both.known.name,
        (first, found.known.texts),
        members=found.members,
        same=_same(both, found),
        shared=_shared(found, documents),
    )
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


def recorded(
    both: Both, found: Gathered, documents: LinkedDocuments
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a flagging records of both sets, each as `record_corpus` says it."""
    first = found.asked.texts
    sides = (
        (both.asked, found.asked, documents.codes[:first]),
        (both.known, found.known, documents.codes[first:]),
    )
    asked, known = (
        record_texts(stream, side.texts, len(np.unique(codes)), side.digest.hexdigest())
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


def _shared(found: Gathered, documents: LinkedDocuments) -> list[str]:
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


# The tables of a large flagging: the rows that it shows, chosen from arrays, and all rows, written part by part.


HIGHEST = 1_000
"""Texts with the highest scores that are shown whatever is drawn."""
MOST_FLAGGED = 20_480
"""Flagged texts that are shown, those with the highest scores."""


Part = tuple[Manifest, int, Bools]


@dataclass(frozen=True, eq=False)
class FlagTables:
    """The rows of all parts with what was concluded of them: `complete` [rows of a part], a part each, are those that
    have every value, and all others are left out."""

    job: ShardJob
    parts: PartsFolder
    documents: LinkedDocuments
    complete: tuple[Bools, ...]
    sides: Sides
    end: FlagConclusion

    @property
    def large(self) -> bool:
        """Whether the known non-members too are more than are shown."""
        return int(np.count_nonzero(~self.sides.rows.asked)) > SAMPLE

    @property
    def shown(self) -> tuple[Table, Table]:
        """The texts and known non-members that are shown."""
        first = int(np.count_nonzero(self.sides.rows.asked))
        return self._table(self._chosen[0], known=False), self._table(first + self._others, known=True)

    @cached_property
    def _hashes(self) -> Hashes:
        ids = (texts_of(self.parts.table(one, ["id"]).filter(whole), "id") for one, _, whole in self._parts())
        return np.concatenate([keyed_hashes(some, self.sides.seed) for some in ids])

    @cached_property
    def _chosen(self) -> tuple[Numbers, int]:
        """The places of the texts that are shown among those in question, and how many of them were drawn."""
        asked = self.sides.rows.asked
        chosen = self.end.chosen[self.sides.place]
        return _chosen(self._hashes[asked], self.sides.rows.scores[asked], chosen)

    @cached_property
    def _others(self) -> Numbers:
        """The places of the known non-members that are shown among these."""
        return np.sort(np.argsort(self._hashes[~self.sides.rows.asked], kind="stable")[:SAMPLE])

    def writers(self) -> dict[str, Write]:
        """What writes each file of the whole tables, by its name."""
        found: dict[str, Write] = {}
        for number, part in enumerate(self._parts()):
            _, begin, whole = part
            asked = self.sides.rows.asked[begin : begin + int(whole.sum())]
            for known, folder in ((False, "flags"), (True, "known")):
                if (asked != known).any() and (self.large or not known):
                    rows = begin + np.flatnonzero(asked != known)
                    found[f"{folder}/part-{number:05}.parquet"] = partial(self._write, part, rows, known)
        return found

    def _parts(self) -> Iterator[Part]:
        """Each part, how many complete rows stand before it, and which of its rows are complete."""
        begin = 0
        for manifest, whole in zip(manifests(self.job, self.parts), self.complete, strict=True):
            yield manifest, begin, whole
            begin += int(whole.sum())

    def _write(self, part: Part, rows: Numbers, known: bool, path: Path) -> None:
        """One file of the whole table of a set: nothing stands where the answer is refused, and `drawn` at the end."""
        columns = dict(self._table(rows, [part], known=known).columns)
        columns |= {name: np.ma.masked_invalid(columns[name]) for name in ("p", "q") if name in columns}
        columns["drawn"] = columns.pop("drawn")
        path.parent.mkdir(exist_ok=True)
        write_parquet(path, columns)

    def _table(self, rows: Numbers, parts: Iterable[Part] | None = None, *, known: bool) -> Table:
        """Some rows of one set, in the order given, read from these parts."""
        order = np.argsort(rows, kind="stable")
        there, back = rows[order], np.argsort(order).tolist()
        found: dict[str, list[str]] = {"id": [], "group": []}
        for manifest, begin, whole in self._parts() if parts is None else parts:
            mine = there[(there >= begin) & (there < begin + int(whole.sum()))]
            if len(mine):
                table = self.parts.table(manifest, list(found)).filter(whole).take(mine - begin)
                for name, some in found.items():
                    some += texts_of(table, name)
        ids, groups = ([some[i] for i in back] for some in found.values())
        names = (ids, groups, self.documents.name(self.sides.rows.documents[rows]))
        return rows_table(self.sides, self.end, rows, names, known=known)

    @property
    def whole(self) -> dict[str, Any]:
        """What is told of all texts beside their counts (`verdicts.flag.built`)."""
        sides, end = self.sides, self.end
        asked, chosen = sides.rows.asked, end.chosen[sides.place]
        scores, names = sides.rows.scores[asked], list(self.writers())
        return {
            "unreadable": self.job.survey.unreadable,
            "sampled": self._chosen[1],
            "known_sampled": len(self._others),
            "scores": score_bars(scores, chosen, sides.rows.scores[~asked]),
            "p": p_bars(end.p, end.chosen) if end.outcome != "refused" else None,
            "least": float(scores[chosen].min()) if chosen.any() else None,
            "low_p": int((end.p <= 0.05).sum()),
            "parts": [name for name in names if name.startswith("flags/")],
            "known_parts": [name for name in names if name.startswith("known/")],
        }


def _chosen(hashes: Hashes, scores: Any, flagged: Bools) -> tuple[Numbers, int]:
    """The places of the texts that are shown, those drawn first, and the number of these."""
    drawn = np.sort(np.argsort(hashes, kind="stable")[:SAMPLE])
    marked = np.flatnonzero(flagged)
    highest = np.argsort(-scores, kind="stable")[:HIGHEST]
    marked = marked[np.argsort(-scores[marked], kind="stable")[:MOST_FLAGGED]]
    more = np.setdiff1d(np.union1d(highest, marked), drawn)
    return np.concatenate([drawn, more]), len(drawn)


WITHOUT = (
    "The workers that scored the texts hold the model, and what concludes does not: flag a sample of the documents "
    "with --power, by one process."
)
"""Why the power of a flagging by several workers is not measured."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedFlagging:
    """What is settled before a model is asked: both sets, their documents, and what can be flagged among them."""

    both: Both
    found: Gathered
    documents: LinkedDocuments
    prospect: DetectionLimits
    settings: FlagSettings

    @classmethod
    def of(cls, both: Both, found: Gathered, settings: FlagSettings) -> PlannedFlagging:
        """From what a reading of both found; TextsError for what `flagging.plan` refuses."""
        documents = found.documents
        return cls(both, found, documents, checked(both, found, documents, settings), settings)


def flagged_of(
    job: ShardJob,
    parts: PartsFolder,
    planned: PlannedFlagging,
    model: str,
    *,
    command: Mapping[str, Any],
    asking: Asking | None = None,
) -> tuple[Verdict, FlagTables]:
    """The flagging of a job whose shards all have parts, and its whole tables. Without the models in `asking` the power
    is not measured.

    TextsError where too few texts could be scored; OutputError where parts are missing or damaged.
    """
    settings, both = planned.settings, planned.both
    rows, complete, cut = _read_scored(job, parts, planned.documents)
    seed = planned.found.draws.seed(settings)

    def read(chosen: Bools) -> list[str]:
        every = np.concatenate(complete)
        every[every] = chosen
        return texts_at(job, parts, both, every)

    settled = settle(
        rows,
        read,
        planned.prospect,
        settings,
        seed=seed,
        skipped=unscored(job, parts),
        asking=asking,
        without=WITHOUT,
    )
    tables = FlagTables(job, parts, planned.documents, complete, settled.sides, settled.end)
    made = record(
        *recorded(both, planned.found, planned.documents), {**job.settings, "cut": cut}, settings, seed
    )
    found = build_flagging(
        settled,
        settings,
        names=(both.asked.name, both.known.name),
        model=model,
        score=job.scores[0],
        tables=tables.shown,
        skipped=tuple(islice(unscored(job, parts), LISTED)),
        left=sum(one.texts for one in manifests(job, parts)) - sum(int(whole.sum()) for whole in complete),
        draws=planned.found.draws,
        recorded={**made, "command": dict(command)},
        whole=tables.whole,
    )
    return found, tables


def _read_scored(
    job: ShardJob, parts: PartsFolder, documents: LinkedDocuments
) -> tuple[Rows, tuple[Bools, ...], dict[str, Any]]:
    """The rows of all parts that have every value, which rows of each part these are, and what the length limit
    dropped, of all rows; OutputError where a part is missing or damaged."""
    score = job.scores[0]
    placebo = [f"placebo: {one['score']}" for one in job.outlines if one["kind"] == "placebo"]
    columns: dict[str, list[Any]] = {"asked": [], "documents": [], score: [], "n_chars": []}
    columns |= {name: [] for name in placebo}
    complete, begin, cut = [], 0, CutTokens()
    for manifest in manifests(job, parts):
        parts.check(manifest)
        table = parts.table(manifest)
        dropped = table.column("n_cut").to_numpy()
        cut.add(texts_of(table, "id") if dropped.any() else (), dropped, table.column("n_tokens").to_numpy())
        whole = np.isfinite(table.column(score).to_numpy())
        for name in placebo:
            whole &= np.isfinite(table.column(name).to_numpy())
        complete.append(whole)
        try:
            theirs = documents.found(slice(begin, begin + manifest.texts), table.column("group"))
        except ValueError as error:
            raise parts.damaged(manifest, str(error)) from error
        begin += manifest.texts
        columns["asked"].append(table.column("label").is_null().to_numpy()[whole])
        columns["documents"].append(theirs[whole])
        for name in (score, "n_chars", *placebo):
            columns[name].append(table.column(name).to_numpy()[whole])
    joined = {name: np.concatenate(columns.pop(name)) for name in list(columns)}
    rows = Rows(
        joined["asked"],
        joined["documents"],
        joined[score],
        joined[placebo[0]] if placebo else None,
        joined["n_chars"].astype(np.float64),
    )
    return rows, tuple(complete), asdict(cut)


def unscored(job: ShardJob, parts: PartsFolder) -> Iterator[Skipped]:
    """The texts without a value, in the order of a flagging in one piece: those that no model can score, then those
    that the placebo cannot."""
    for manifest in manifests(job, parts):
        for one in manifest.skipped:
            yield replace(one, id=one.id.removeprefix(TEXTS))
    for manifest in manifests(job, parts):
        if manifest.missing:
            table = parts.table(manifest, ["id", "n_tokens"])
            tokens = dict(zip(texts_of(table, "id"), table.column("n_tokens").to_pylist(), strict=True))
            reasons = {one.id: one.reason for one in reversed(manifest.missing)}
            for name in dict.fromkeys(one.id for one in manifest.missing):
                yield Skipped(name.removeprefix(TEXTS), reasons[name], tokens[name])
