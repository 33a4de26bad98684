"""A flagging over more texts than memory holds: both sets as one stream, the columns that every figure rests on, the
outcome, and the tables.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Mapping
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
from pretrace.results.folder import Write, arrow_column, texts_of
from pretrace.results.run import p_bars, score_bars
from pretrace.scoring.detect import CutTokens
from pretrace.scoring.provenance import content_of, record_texts
from pretrace.statistics.documents import Numbers, linked_numbers
from pretrace.types import Bools, Skipped, Table, Text, Verdict
from pretrace.verdicts.draws import TextsSketch, text_digest
from pretrace.verdicts.flag.built import asked_table, known_table, verdict_of
from pretrace.verdicts.flag.concluding import FlagConclusion, concluded, run_checks
from pretrace.verdicts.flag.flag import Asking, power_of, record
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
from pretrace.verdicts.flag.sides import Rows, Sides

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
        texts, _ = self._chosen
        return self._judged(texts), self._known(self._others)

    @cached_property
    def _hashes(self) -> Hashes:
        return np.concatenate([keyed_hashes(ids, self.sides.seed) for ids in self._ids()])

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
        for number, (manifest, begin, whole) in enumerate(self._parts()):
            asked = self.sides.rows.asked[begin : begin + int(whole.sum())]
            for side, folder in ((True, "flags"), (False, "known")):
                if (asked == side).any() and (side or self.large):
                    write = partial(self._write, manifest, begin, whole, side)
                    found[f"{folder}/part-{number:05}.parquet"] = write
        return found

    def _parts(self) -> Iterator[tuple[Manifest, int, Bools]]:
        """Each part, how many complete rows stand before it, and which of its rows are complete."""
        begin = 0
        for manifest, whole in zip(manifests(self.job, self.parts), self.complete, strict=True):
            yield manifest, begin, whole
            begin += int(whole.sum())

    def _ids(self) -> Iterator[tuple[str, ...]]:
        for manifest, _, whole in self._parts():
            yield texts_of(self.parts.table(manifest, ["id"]).filter(whole), "id")

    def _write(self, manifest: Manifest, begin: int, whole: Bools, side: bool, path: Path) -> None:
        """One file of the whole table of a side."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        asked = self.sides.rows.asked
        rows = begin + np.flatnonzero(asked[begin : begin + int(whole.sum())] == side)
        table = self.parts.table(manifest, ["id", "group"]).filter(whole).take(rows - begin)
        prefix = TEXTS if side else KNOWN
        columns = {name: arrow_column(_plain(texts_of(table, name), prefix)) for name in ("id", "group")}
        columns["score"] = pa.array(self.sides.rows.scores[rows])
        if side:
            columns |= self._figures(int(asked[:begin].sum()), len(rows))
        columns["document"] = arrow_column(
            _plain(self.documents.name(self.sides.rows.documents[rows]), prefix)
        )
        columns["drawn"] = pa.array(self.sides.drawn[rows])
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            pq.write_table(pa.table(columns), file)

    def _figures(self, begin: int, number: int) -> dict[str, Any]:
        """p, q and flagged of some texts in question; without values where the answer is refused."""
        import pyarrow as pa

        if self.end.outcome == "refused":
            kinds = {"p": pa.float64(), "q": pa.float64(), "flagged": pa.bool_()}
            return {name: pa.nulls(number, kind) for name, kind in kinds.items()}
        place = self.sides.place[begin : begin + number]
        p, q = self.end.of_texts(place)
        return {"p": pa.array(p), "q": pa.array(q), "flagged": pa.array(self.end.chosen[place])}

    def _judged(self, texts: Numbers) -> Table:
        """Rows of the texts in question, by their places among these."""
        rows, place = np.flatnonzero(self.sides.rows.asked)[texts], self.sides.place[texts]
        ids, groups = self._named(rows, TEXTS)
        p, q = self.end.of_texts(place)
        chosen, drawn = self.end.chosen[place].tolist(), self.sides.drawn[rows]
        documents = _plain(self.documents.name(self.sides.rows.documents[rows]), TEXTS)
        return asked_table(ids, groups, self.sides.rows.scores[rows], p, q, chosen, documents, drawn)

    def _known(self, others: Numbers) -> Table:
        """Rows of the known non-members, by their places among these."""
        rows = np.flatnonzero(~self.sides.rows.asked)[others]
        ids, groups = self._named(rows, KNOWN)
        drawn = self.sides.drawn[rows]
        documents = _plain(self.documents.name(self.sides.rows.documents[rows]), KNOWN)
        return known_table(ids, groups, self.sides.rows.scores[rows], drawn, documents)

    def _named(self, rows: Numbers, prefix: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Ids and groups of some rows, in the order given."""
        order = np.argsort(rows, kind="stable")
        there = rows[order]
        found: dict[str, list[str]] = {"id": [], "group": []}
        for manifest, begin, whole in self._parts():
            mine = there[(there >= begin) & (there < begin + int(whole.sum()))]
            if len(mine):
                table = self.parts.table(manifest, list(found)).filter(whole).take(mine - begin)
                for name, some in found.items():
                    some += texts_of(table, name)
        back = np.argsort(order).tolist()
        ids, groups = (_plain([some[i] for i in back], prefix) for some in found.values())
        return ids, groups

    @property
    def counts(self) -> dict[str, int]:
        """How many texts and documents of each kind there are, of all."""
        sides, end = self.sides, self.end
        asked = sides.rows.asked
        rows = sum(int(whole.sum()) for whole in self.complete)
        return {
            "texts": int(asked.sum()),
            "documents": sides.number,
            "flagged": int(end.chosen[sides.place].sum()),
            "flagged_documents": int(end.chosen.sum()),
            "known": int((~asked).sum()),
            "known_documents": sides.known,
            "skipped": sum(manifest.texts for manifest in manifests(self.job, self.parts)) - rows,
        }

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


def _plain(names: Any, prefix: str) -> tuple[str, ...]:
    """Names as their file has them."""
    return tuple(name.removeprefix(prefix) for name in names)


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


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRows:
    """The rows of all parts that have every value: `complete` [rows of the part] says which those are, a part each;
    `cut` is what the length limit dropped, of all rows."""

    rows: Rows
    complete: tuple[Bools, ...]
    cut: dict[str, Any]


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
    scored = _read_scored(job, parts, planned.documents)
    seed = planned.found.draws.seed(settings)
    sides = Sides.of(scored.rows, settings, seed, (one.reason for one in unscored(job, parts)))
    prospect = planned.prospect.scored(sides.known, sides.number, settings.fdr)

    def read(chosen: Bools) -> list[str]:
        rows = np.concatenate(scored.complete)
        rows[rows] = chosen
        return texts_at(job, parts, both, rows)

    seen = run_checks(sides, prospect, read)
    power, share, why = power_of(seen, read, settings, asking, WITHOUT)
    end = concluded(seen, power, share, model=model, corpus=both.asked.name)
    tables = FlagTables(job, parts, planned.documents, scored.complete, sides, end)
    shown = tables.shown
    skipped = tuple(islice(unscored(job, parts), LISTED))
    made = record(
        *recorded(both, planned.found, planned.documents),
        {**job.settings, "cut": scored.cut},
        settings,
        seed,
    )
    found = verdict_of(
        end,
        prospect,
        settings,
        names=(both.asked.name, both.known.name),
        model=model,
        score=job.scores[0],
        tables=shown,
        counts=tables.counts,
        whole=tables.whole,
        skipped=skipped,
        draws=planned.found.draws,
        recorded={**made, "command": dict(command)},
        why=why,
    )
    return found, tables


def _read_scored(job: ShardJob, parts: PartsFolder, documents: LinkedDocuments) -> ScoredRows:
    """The columns of all parts; OutputError where one is missing or damaged."""
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
    return ScoredRows(rows, tuple(complete), asdict(cut))


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
