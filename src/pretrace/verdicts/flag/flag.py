"""Score both sets, look whether they may be compared, flag documents and test the set as a whole; from the scores to
the outcome it is the same for texts in memory and for the parts of very many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.corpora import Texts, corpus_of
from pretrace.errors import ModelError
from pretrace.results.folder import Write, texts_of, write_parquet
from pretrace.results.run import p_bars, score_bars
from pretrace.scoring.detect import Options, score_rows
from pretrace.scoring.evidence import Progress, Silent
from pretrace.scoring.outlook import Unwatched, Watch
from pretrace.scoring.parts import LISTED, SAMPLE, CutTokens, Hashes, Manifest, ScoredRows, keyed_hashes
from pretrace.scoring.plan import Models, check_placebos
from pretrace.statistics.documents import Numbers
from pretrace.types import Backend, Bools, Corpus, Run, Skipped, Table, Verdict
from pretrace.verdicts.flag.built import build_flagging, rows_table
from pretrace.verdicts.flag.concluding import (
    FlagConclusion,
    Rows,
    Sides,
    concluded,
    run_checks,
)
from pretrace.verdicts.flag.planning import TEXTS, FlagPlan, FlagSettings, LinkedDocuments, plan
from pretrace.verdicts.flag.power import measured
from pretrace.verdicts.planting import check_plantable
from pretrace.verdicts.wording import say


def flag(
    texts: Corpus | Texts,
    nonmembers: Corpus | Texts,
    models: Models | Backend | str,
    settings: FlagSettings | None = None,
    *,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Verdict:
    """Which of the texts stand out from the known non-members by one score of the target, and whether all do.

    Both are a corpus, or all that `open_corpus` takes: a list, a column of a table. `models` may be a model's name.
    The outcome is "flagged" where a document is flagged, "set" where none is and the set as a whole stands out,
    "refused", without p-values, where a control tells the two sets apart or could not have done so, "none" where
    nothing stands out and `settings.power` showed that a tenth of the documents, if read, would have, else "missed".
    With a placebo in `models` the same is done with it, and it must find nothing. Raises what `plan` and `detect`
    raise, LeakError among it where a model was tuned on one of the texts, and ModelError where the power is asked for
    and the target has no weights here.
    """
    settings = settings or FlagSettings()
    corpus, known = corpus_of(texts, "texts"), corpus_of(nonmembers, "non-members")
    models = Models.of(models)
    if models.placebo is not None:
        check_placebos(models.target, (models.placebo.target,), models.reference)
    if settings.power:
        check_power(models)
    made = plan(corpus, known, settings)
    how = Options(cache=settings.cache, progress=progress or Silent())
    rows = score_rows(made.corpus, models, settings.plan, how)
    asking = Asking(models, watch or Unwatched()) if settings.power else None
    return flag_rows(rows, made, models.target.name, asking=asking)[0]


def check_power(models: Models) -> None:
    """ModelError where no copy of the target can be trained."""
    try:
        check_plantable(models.target)
    except ModelError as error:
        raise ModelError(f"{error} {say('flag.plan.powerless')}") from error


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """The models that can still be asked once the texts were scored, and who watches."""

    models: Models
    watch: Watch


def flag_run(run: Run, made: FlagPlan, model: str) -> Verdict:
    """The flagging from scores that are there: `run` has the texts of `made`, both sets, and one score."""
    return flag_rows(ScoredRows.of_run(run, made.both.texts()), made, model)[0]


def flag_rows(
    rows: ScoredRows,
    made: FlagPlan,
    model: str,
    *,
    asking: Asking | None = None,
    command: Mapping[str, Any] | None = None,
    unreadable: int = 0,
) -> tuple[Verdict, FlagTables]:
    """The same from scored rows, those of a job among them, with the whole tables. What is on disk is shown in part,
    and `unreadable` records of its source are told of.

    TextsError where too few texts could be scored; OutputError where parts are damaged.
    """
    settings, seed, on_disk = made.settings, made.seed, rows.on_disk
    values, complete, cut = _read_scored(rows, made.documents)

    def read(chosen: Bools) -> list[str]:
        every = np.concatenate(complete)
        every[every] = chosen
        return rows.texts_at(made.both, every)

    sides = Sides.of(values, settings, seed, (one.reason for one in unscored(rows)))
    limits = made.prospect.scored(sides.known, sides.number)
    found = run_checks(sides, limits, read)
    power, share, why = None, None, ""
    if found.quiet and settings.power:
        why = say("flag.plan.without") if on_disk else ""
        if asking is not None:
            power, share, why = measured(found, read, asking.models, asking.watch)
    end = concluded(found, power, share, why)
    tables = FlagTables(rows, made.documents, complete, end)
    rest = {name: value for name, value in rows.settings.items() if name not in ("texts", "seed")}
    asked = {name: value for name, value in asdict(settings).items() if name not in ("cache", "plan")}
    recorded = {**asked, "seed": seed, **made.records, **rest}
    verdict = build_flagging(
        end,
        made,
        model=model,
        score=rows.scores[0],
        tables=tables.shown,
        skipped=tuple(islice(unscored(rows), LISTED if on_disk else None)),
        left=sum(one.texts for one in rows.parts) - sum(int(whole.sum()) for whole in complete),
        recorded=recorded | {"cut": cut} | ({} if command is None else {"command": dict(command)}),
        whole={"unreadable": unreadable, **tables.whole} if on_disk else None,
    )
    return verdict, tables


def _read_scored(
    rows: ScoredRows, documents: LinkedDocuments
) -> tuple[Rows, tuple[Bools, ...], dict[str, Any]]:
    """The rows of all parts that have every value, which rows of each part these are, and what the length limit
    dropped, of all rows; OutputError where a part is damaged."""
    score = rows.scores[0]
    placebo = [f"placebo: {one['score']}" for one in rows.outlines if one["kind"] == "placebo"]
    columns: dict[str, list[Any]] = {"asked": [], "documents": [], score: [], "n_chars": []}
    columns |= {name: [] for name in placebo}
    complete, begin, cut = [], 0, CutTokens()
    for part in rows.parts:
        rows.check(part)
        table = rows.table(part)
        dropped = table.column("n_cut").to_numpy()
        cut.add(texts_of(table, "id") if dropped.any() else (), dropped, table.column("n_tokens").to_numpy())
        whole = np.isfinite(table.column(score).to_numpy())
        for name in placebo:
            whole &= np.isfinite(table.column(name).to_numpy())
        complete.append(whole)
        try:
            theirs = documents.found(slice(begin, begin + part.texts), table.column("group"))
        except ValueError as error:
            raise rows.place.damaged(part, str(error)) from error
        begin += part.texts
        columns["asked"].append(table.column("label").is_null().to_numpy()[whole])
        columns["documents"].append(theirs[whole])
        for name in (score, "n_chars", *placebo):
            columns[name].append(table.column(name).to_numpy()[whole])
    joined = {name: np.concatenate(columns.pop(name)) for name in list(columns)}
    values = Rows(
        joined["asked"],
        joined["documents"],
        joined[score],
        joined[placebo[0]] if placebo else None,
        joined["n_chars"].astype(np.float64),
    )
    return values, tuple(complete), asdict(cut)


def unscored(rows: ScoredRows) -> Iterator[Skipped]:
    """The texts without a value: those that no model can score, then those that the placebo cannot."""
    for part in rows.parts:
        for one in part.skipped:
            yield replace(one, id=one.id.removeprefix(TEXTS))
    for part in rows.parts:
        if part.missing:
            table = rows.table(part, ["id", "n_tokens"])
            tokens = dict(zip(texts_of(table, "id"), table.column("n_tokens").to_pylist(), strict=True))
            reasons = {one.id: one.reason for one in reversed(part.missing)}
            for name in dict.fromkeys(one.id for one in part.missing):
                yield Skipped(name.removeprefix(TEXTS), reasons[name], tokens[name])


# The tables: the rows that are shown, all of them or chosen from arrays, and all rows on disk, written part by part.


HIGHEST = 1_000
"""Texts with the highest scores that are shown whatever is drawn."""
MOST_FLAGGED = 20_480
"""Flagged texts that are shown, those with the highest scores."""


Part = tuple[Manifest, int, Bools]


@dataclass(frozen=True, eq=False)
class FlagTables:
    """The rows of all parts with what was concluded of them: `complete` [rows of a part], a part each, are those that
    have every value, and all others are left out."""

    rows: ScoredRows
    documents: LinkedDocuments
    complete: tuple[Bools, ...]
    end: FlagConclusion

    @property
    def large(self) -> bool:
        """Whether the known non-members too are more than are shown."""
        return int(np.count_nonzero(~self.end.sides.rows.asked)) > SAMPLE

    @property
    def shown(self) -> tuple[Table, Table]:
        """The texts and known non-members that are shown."""
        first = int(np.count_nonzero(self.end.sides.rows.asked))
        if not self.rows.on_disk:
            every = np.arange(len(self.end.sides.rows.asked))
            return self._table(every[:first], known=False), self._table(every[first:], known=True)
        return self._table(self._chosen[0], known=False), self._table(first + self._others, known=True)

    @cached_property
    def _hashes(self) -> Hashes:
        ids = (texts_of(self.rows.table(one, ["id"]).filter(whole), "id") for one, _, whole in self._parts())
        return np.concatenate([keyed_hashes(some, self.end.sides.seed) for some in ids])

    @cached_property
    def _chosen(self) -> tuple[Numbers, int]:
        """The places of the texts that are shown among those in question, and how many of them were drawn."""
        asked = self.end.sides.rows.asked
        chosen = self.end.chosen[self.end.sides.place]
        return _chosen(self._hashes[asked], self.end.sides.rows.scores[asked], chosen)

    @cached_property
    def _others(self) -> Numbers:
        """The places of the known non-members that are shown among these."""
        return np.sort(np.argsort(self._hashes[~self.end.sides.rows.asked], kind="stable")[:SAMPLE])

    def writers(self) -> dict[str, Write]:
        """What writes each file of the whole tables, by its name."""
        found: dict[str, Write] = {}
        for number, part in enumerate(self._parts()):
            _, begin, whole = part
            asked = self.end.sides.rows.asked[begin : begin + int(whole.sum())]
            for known, folder in ((False, "flags"), (True, "known")):
                if (asked != known).any() and (self.large or not known):
                    rows = begin + np.flatnonzero(asked != known)
                    found[f"{folder}/part-{number:05}.parquet"] = partial(self._write, part, rows, known)
        return found

    def _parts(self) -> Iterator[Part]:
        """Each part, how many complete rows stand before it, and which of its rows are complete."""
        begin = 0
        for manifest, whole in zip(self.rows.parts, self.complete, strict=True):
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
                table = self.rows.table(manifest, list(found)).filter(whole).take(mine - begin)
                for name, some in found.items():
                    some += texts_of(table, name)
        ids, groups = ([some[i] for i in back] for some in found.values())
        names = (ids, groups, self.documents.name(self.end.sides.rows.documents[rows]))
        return rows_table(self.end, rows, names, known=known)

    @property
    def whole(self) -> dict[str, Any]:
        """What is told of all texts beside their counts (`verdicts.flag.built`)."""
        sides, end = self.end.sides, self.end
        asked, chosen = sides.rows.asked, end.chosen[sides.place]
        scores, names = sides.rows.scores[asked], list(self.writers())
        return {
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
