"""The tables of a large flagging: the rows that it shows, chosen from arrays, and all rows, written part by part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.jobs.both import Documents
from pretrace.jobs.job import Job
from pretrace.jobs.manifest import Manifest, Parts
from pretrace.jobs.merge import manifests
from pretrace.jobs.sample import SAMPLE, Numbers, keyed_hashes
from pretrace.results.folder import Write
from pretrace.results.run import p_bars, score_bars
from pretrace.results.tables import arrow_column, texts_of
from pretrace.statistics.documents import Numbers as Places
from pretrace.types import Bools, Table
from pretrace.verdicts.flag.built import asked_table, known_table
from pretrace.verdicts.flag.concluding import Conclusion
from pretrace.verdicts.flag.planning import KNOWN, TEXTS
from pretrace.verdicts.flag.sides import Sides

HIGHEST = 1_000
"""Texts with the highest scores that are shown whatever is drawn."""
MOST_FLAGGED = 20_480
"""Flagged texts that are shown, those with the highest scores."""


@dataclass(frozen=True, eq=False)
class FlagTables:
    """The rows of all parts with what was concluded of them: `complete` [rows of a part], a part each, are those that
    have every value, and all others are left out."""

    job: Job
    parts: Parts
    documents: Documents
    complete: tuple[Bools, ...]
    sides: Sides
    end: Conclusion

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
    def _hashes(self) -> Numbers:
        return np.concatenate([keyed_hashes(ids, self.sides.seed) for ids in self._ids()])

    @cached_property
    def _chosen(self) -> tuple[Places, int]:
        """The places of the texts that are shown among those in question, and how many of them were drawn."""
        asked = self.sides.rows.asked
        chosen = self.end.chosen[self.sides.place]
        return _chosen(self._hashes[asked], self.sides.rows.scores[asked], chosen)

    @cached_property
    def _others(self) -> Places:
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

    def _judged(self, texts: Places) -> Table:
        """Rows of the texts in question, by their places among these."""
        rows, place = np.flatnonzero(self.sides.rows.asked)[texts], self.sides.place[texts]
        ids, groups = self._named(rows, TEXTS)
        p, q = self.end.of_texts(place)
        chosen, drawn = self.end.chosen[place].tolist(), self.sides.drawn[rows]
        documents = _plain(self.documents.name(self.sides.rows.documents[rows]), TEXTS)
        return asked_table(ids, groups, self.sides.rows.scores[rows], p, q, chosen, documents, drawn)

    def _known(self, others: Places) -> Table:
        """Rows of the known non-members, by their places among these."""
        rows = np.flatnonzero(~self.sides.rows.asked)[others]
        ids, groups = self._named(rows, KNOWN)
        drawn = self.sides.drawn[rows]
        documents = _plain(self.documents.name(self.sides.rows.documents[rows]), KNOWN)
        return known_table(ids, groups, self.sides.rows.scores[rows], drawn, documents)

    def _named(self, rows: Places, prefix: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
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


def _chosen(hashes: Numbers, scores: Any, flagged: Bools) -> tuple[Places, int]:
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
