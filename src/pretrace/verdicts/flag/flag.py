"""Which of these texts were seen? Each is held against known non-members, with a rate on the false flags.

Texts and known non-members are scored together; each text's conformal p-value says how it ranks among the
non-members (`statistics.conformal`), and the texts that pass at the rate are flagged. That rate is a promise
only while a text that was not seen could have stood among the known ones. So the answer is refused where one
who never saw the target tells the two sets apart: a classifier of words, one of form, the texts' lengths, or the
same score on a placebo.

Here both sets are scored, checked, flagged and tested as a whole; from the scores to the outcome it is the same for
texts in memory and for the parts of very many.

The table "flags" has a row a text in question, "known" one a known non-member; p, q and flagged are those of the text's
document (q is the least rate at which it would be flagged), and `drawn` are the texts they rest on: a document's value
is the mean score of these. Where the answer is refused p, q and flagged are empty: nothing may be read off them.

The flagging of more texts than a shard holds some of them in these tables. The figure "whole" then says which (the
first `sampled` rows are drawn at random, each text alike; those behind them were not drawn and are there for their
scores: the highest of all, and the highest of the flagged ones; `known_sampled` says the same of the table "known"),
holds the histograms of all, the lowest score of a flagged text (`least`) and how many documents have a p-value of at
most 5% (`low_p`), and names the files with all rows, `parts` and `known_parts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.backends.naming import called
from pretrace.corpora import Texts, corpus_of
from pretrace.results.folder import Write, from_plain, texts_of, to_plain, truth, write_parquet
from pretrace.results.run import p_bars, score_bars
from pretrace.results.wording import plural, say, times
from pretrace.scoring.detect import Options, score_rows
from pretrace.scoring.evidence import Progress
from pretrace.scoring.outlook import Watch
from pretrace.scoring.parts import LISTED, SAMPLE, Manifest, ScoredRows
from pretrace.scoring.plan import Models, check_placebos, with_second
from pretrace.statistics.conformal import needed
from pretrace.statistics.documents import Numbers
from pretrace.statistics.roc import PLACEBO
from pretrace.types import (
    Backend,
    Bools,
    Corpus,
    Doubles,
    Outcome,
    Power,
    Run,
    Situation,
    Skipped,
    Table,
    Verdict,
)
from pretrace.verdicts.flag.concluding import (
    BEYOND,
    DRIFT,
    CheckedScores,
    SetTest,
    Sides,
    conclude_outliers,
    measured,
    run_checks,
)
from pretrace.verdicts.flag.planning import KNOWN as KNOWN_ID
from pretrace.verdicts.flag.planning import TEXTS, FlagPlan, FlagSettings, LinkedDocuments, plan, so_many
from pretrace.verdicts.frame import TestDetails, Tested, TestWording, build_verdict, check_plantable
from pretrace.verdicts.outcome import ENOUGH, POWER, Conclusion, exposure
from pretrace.verdicts.register import RegisterEntry


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

    Both are a corpus, or all that `open_corpus` takes: a list, a column of a table. A model alone, or its name, has the
    packaged model beside it as its placebo.
    The outcome is "flagged" where a document is flagged, "set" where none is and the set as a whole stands out,
    "refused", without p-values, where a control tells the two sets apart or could not have done so, "none" where
    nothing stands out and `settings.power` showed that a tenth of the documents, if read, would have, else "missed".
    With a placebo in `models` the same is done with it, and it must find nothing. Raises what `plan` and `detect`
    raise, LeakError among it where a model was tuned on one of the texts, and ModelError where the power is asked for
    and the target has no weights here.
    """
    settings = settings or FlagSettings()
    corpus, known = corpus_of(texts, "texts"), corpus_of(nonmembers, "non-members")
    models = models if isinstance(models, Models) else with_second(Models.of(models), several=False)
    if models.placebo is not None:
        check_placebos(models.target, (models.placebo.target,), models.reference)
    if settings.power:
        check_plantable(models.target)
    made = plan(corpus, known, settings)
    how = Options(cache=settings.cache, progress=progress or Progress())
    rows = score_rows(made.both.corpus, models, settings.plan, how)
    asking = (models, watch or Watch()) if settings.power else None
    return flag_rows(rows, made, models.target.name, asking=asking)[0]


def flag_run(run: Run, made: FlagPlan, model: str) -> Verdict:
    """The flagging from scores that are there: `run` has the texts of `made`, both sets, and one score."""
    return flag_rows(ScoredRows.of_run(run, made.both.texts()), made, model)[0]


def flag_rows(
    rows: ScoredRows,
    made: FlagPlan,
    model: str,
    *,
    asking: tuple[Models, Watch] | None = None,
    command: Mapping[str, Any] | None = None,
    unreadable: int = 0,
) -> tuple[Verdict, _FlagTables]:
    """The same from scored rows, those of a job too, with the whole tables; what is on disk is shown in part. `asking`
    are models that can still be asked, with who watches. TextsError for too few, OutputError for damaged parts."""
    settings, seed, on_disk = made.settings, made.seed, rows.on_disk
    values, parts, numbers = _read_scored(rows, made.documents)

    def read(chosen: Bools) -> list[str]:
        every = np.concatenate([whole for _, _, whole in parts])
        every[every] = chosen
        return rows.texts_at(made.both, every)

    sides = Sides(*values, settings, seed, (one.reason for one in unscored(rows)))
    found = run_checks(sides, replace(made.prospect, known=sides.known, asked=sides.number), read)
    power, share, why = None, None, ""
    if found.quiet and settings.power:
        why = say("flag.plan.without") if on_disk else ""
        if asking is not None:
            power, share, why = measured(found, read, *asking)
    outcome = conclude_outliers(found.outliers, found.checks, power, share)
    end = replace(found, outcome=outcome, power=power, unmeasured=why)
    tables = _FlagTables(rows, made.documents, numbers, parts, end)
    counts = {**end.counts, "skipped": sum(one.texts for one in rows.parts) - len(sides.asked)}
    figures: dict[str, Any] = {"counts": counts, "nonmembers": made.both.known.name, "score": rows.scores[0]}
    fdr, method = settings.rate
    figures |= {"fdr": fdr, "method": method, "set_test": end.set_test}
    if on_disk:
        figures["whole"] = {"unreadable": unreadable, **tables.whole}
    rest = {name: value for name, value in rows.settings.items() if name not in ("texts", "seed")}
    asked = {name: value for name, value in asdict(settings).items() if name not in ("cache", "plan")}
    recorded = {**asked, "seed": seed, **made.records, **rest, "cut": rows.cut}
    weights = {role: str(one.get("weights", one["name"])) for role, one in recorded.get("models", {}).items()}
    target, corpus = weights.pop("target", model), made.both.asked.name
    matters = {**settings.matters, "known": made.hashes[1], "models": weights}
    return build_verdict(
        RegisterEntry("flag", made.sketch, target, matters, model),
        corpus,
        flag_words(figures, corpus=corpus, model=model, unit=end.limits.unit),
        Tested(end.set_test.p, sides.number),
        TestDetails(
            to_plain(figures, "figures"),
            tables.shown,
            tuple(islice(unscored(rows), LISTED if on_disk else None)),
            end.limits.notes,
            Situation(documents=sides.number, unseen=sides.known),
        ),
        end.checks,
        level=settings.level,
        power=end.power,
        keep=settings.cache,
        settings=recorded if command is None else {**recorded, "command": dict(command)},
        concluded=_word_flagging(end, corpus=corpus, model=model),
    ), tables


Part = tuple[Manifest, int, Bools]
"""A part, how many rows with every value stand before it, and which of its rows have every value."""


def _read_scored(
    rows: ScoredRows, documents: LinkedDocuments
) -> tuple[tuple[Bools, Numbers, Doubles, Doubles | None, Doubles], list[Part], Numbers]:
    """What `Sides` have of the rows with every value, the parts, and the numbers of their documents, which are numbered
    anew without gaps; OutputError for a damaged part."""
    names = [rows.scores[0], *(f"placebo: {name}" for name in rows.controls(PLACEBO)), "n_chars"]
    # in one piece from the start: pieces that are put together leave holes of their size in memory
    values = np.empty((len(names), len(rows)))
    asked, numbers = np.empty(len(rows), np.bool_), np.empty(len(rows), np.int64)
    parts, begin, read = list[Part](), 0, 0
    for part in rows.parts:
        rows.check(part)
        table = rows.table(part)
        try:
            theirs = documents.found(slice(begin, begin + part.texts), table.column("group"))
        except ValueError as error:
            raise rows.damaged(part, str(error)) from error
        begin += part.texts
        found = [table.column(name).to_numpy() for name in names]
        whole: Bools = np.logical_and.reduce([np.isfinite(one) for one in found])
        parts.append((part, read, whole))
        here = slice(read, read := read + int(whole.sum()))
        values[:, here] = [one[whole] for one in found]
        asked[here] = table.column("label").is_null().to_numpy()[whole]
        numbers[here] = theirs[whole]
    scores, *others, lengths = values[:, :read]
    there = np.flatnonzero(np.bincount(numbers[:read]))
    codes = np.searchsorted(there, numbers[:read])
    return (asked[:read], codes, scores, others[0] if others else None, lengths), parts, there


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


@dataclass(frozen=True, eq=False)
class _FlagTables:
    """The rows of all parts with what was concluded."""

    rows: ScoredRows
    documents: LinkedDocuments
    numbers: Numbers
    """What `documents` calls the documents of scored rows, which are numbered without gaps."""
    parts: Sequence[Part]
    end: CheckedScores

    @property
    def shown(self) -> tuple[Table, Table]:
        """The texts and known non-members that are shown."""
        first = int(np.count_nonzero(self.end.sides.asked))
        if not self.rows.on_disk:
            every = np.arange(len(self.end.sides.asked))
            return self._table(every[:first], known=False), self._table(every[first:], known=True)
        return self._table(self._chosen, known=False), self._table(first + self._drawn[1], known=True)

    @cached_property
    def _drawn(self) -> tuple[Numbers, Numbers]:
        """The places of the rows that are drawn of each set among those of the set, the texts in question first."""
        every = np.concatenate([whole for *_, whole in self.parts])
        hashes = self.rows.hashes(self.end.sides.seed)[every]
        sides = (hashes[self.end.sides.asked], hashes[~self.end.sides.asked])
        mine, known = (np.sort(np.argsort(side, kind="stable")[:SAMPLE]) for side in sides)
        return mine, known

    @cached_property
    def _chosen(self) -> Numbers:
        """The places of the texts that are shown among those in question, those drawn first."""
        scores, flagged = self.end.sides.scores[self.end.sides.asked], self.end.chosen[self.end.sides.place]
        marked, highest = np.flatnonzero(flagged), np.argsort(-scores, kind="stable")[:HIGHEST]
        marked = marked[np.argsort(-scores[marked], kind="stable")[:MOST_FLAGGED]]
        more = np.setdiff1d(np.union1d(highest, marked), self._drawn[0])
        return np.concatenate([self._drawn[0], more])

    def writers(self) -> dict[str, Write]:
        """What writes each file of the whole tables, by its name; the known non-members where not all are shown."""
        found: dict[str, Write] = {}
        many = int(np.count_nonzero(~self.end.sides.asked)) > SAMPLE
        for number, part in enumerate(self.parts):
            for known, folder in ((False, FLAGS), (True, KNOWN)):
                if (many or not known) and len(self._places(part, known)):
                    found[f"{folder}/part-{number:05}.parquet"] = partial(self._write, part, known)
        return found

    def _places(self, part: Part, known: bool) -> Numbers:
        """The places of the rows of one set that are in a part."""
        _, begin, whole = part
        return begin + np.flatnonzero(self.end.sides.asked[begin : begin + int(whole.sum())] != known)

    def _write(self, part: Part, known: bool, path: Path) -> None:
        """One file of the whole table of a set: nothing stands where the answer is refused, and `drawn` at the end."""
        columns = dict(self._table(self._places(part, known), [part], known=known).columns)
        columns |= {name: np.ma.masked_invalid(columns[name]) for name in ("p", "q") if name in columns}
        columns["drawn"] = columns.pop("drawn")
        path.parent.mkdir(exist_ok=True)
        write_parquet(path, columns)

    def _table(self, rows: Numbers, parts: Iterable[Part] | None = None, *, known: bool) -> Table:
        """Some rows of one set, in this order, from these parts; p and q are empty where the answer is refused."""
        end, sides, mark = self.end, self.end.sides, (KNOWN_ID if known else TEXTS)
        order = np.argsort(rows, kind="stable")
        there, back = rows[order], np.argsort(order).tolist()
        found: dict[str, list[str]] = {"id": [], "group": []}
        for manifest, begin, whole in self.parts if parts is None else parts:
            mine = there[(there >= begin) & (there < begin + int(whole.sum()))]
            if len(mine):
                table = self.rows.table(manifest, list(found)).filter(whole).take(mine - begin)
                for name, some in found.items():
                    some += texts_of(table, name)
        columns: dict[str, Any] = {
            name: tuple(some[i].removeprefix(mark) for i in back) for name, some in found.items()
        }
        columns["score"], drawn = sides.scores[rows], sides.drawn[rows]
        named = self.documents.name(self.numbers[sides.documents[rows]])
        documents = tuple(one.removeprefix(mark) for one in named)
        if known:
            return Table(KNOWN, {**columns, "drawn": drawn, "document": documents})
        place, told = sides.place[rows], end.outcome != "refused"
        for name, values in (("p", end.outliers.p), ("q", end.outliers.q)):
            columns[name] = values[place] if told else np.full(len(rows), np.nan)
        columns["flagged"] = truth(end.chosen[place].tolist() if told else [None] * len(rows))
        return Table(FLAGS, {**columns, "document": documents, "drawn": drawn})

    @property
    def whole(self) -> dict[str, Any]:
        """What is told of all texts beside their counts (see the top of this file)."""
        sides, end = self.end.sides, self.end
        scores, chosen = sides.scores[sides.asked], end.chosen[sides.place]
        names, told = list(self.writers()), end.outcome != "refused"
        return {
            "sampled": len(self._drawn[0]),
            "known_sampled": len(self._drawn[1]),
            "scores": score_bars(scores, chosen, sides.scores[~sides.asked]),
            "p": p_bars(end.outliers.p, end.chosen) if told else None,
            "least": float(scores[chosen].min()) if chosen.any() else None,
            "low_p": int((end.outliers.p <= 0.05).sum()) if told else 0,
            "parts": [name for name in names if name.startswith(f"{FLAGS}/")],
            "known_parts": [name for name in names if name.startswith(f"{KNOWN}/")],
        }


_NAMES = {"bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}


def _word_flagging(end: CheckedScores, **names: str) -> Conclusion:
    """Say the outcome in a sentence, what leads to it, and what would help; `names` are corpus and model."""
    made, power, counts, outcome = end.limits, end.power, end.counts, end.outcome
    fdr, method = made.settings.rate
    together, least = map(so_many, (made.together, end.set_test.least))
    numbers: dict[str, Any] = {"unit": made.unit, "asked": made.asked, "rate": f"{100 * fdr:g}%", **names}
    numbers |= {"chosen": counts["flagged_documents"], "texts": plural(counts["flagged"], "text")}
    numbers |= {"together": together, "least": least, "p": end.set_test.p, "method": _NAMES[method]}
    if power is not None:
        numbers |= {"times": times(power.epochs), "chance": power.probability.value}
    failed = [check for check in end.checks if check.status == "failed"]
    unmade = [check for check in end.checks if check.status == "not run" and check.name != DRIFT]
    reasons = [f"{check.title}: this check failed. {check.words}" for check in failed]
    reasons += [say("flag.said.rate", **numbers)] * (outcome != "refused")
    reasons += whole(end.set_test, end.sides.number)
    if outcome == "refused":
        beyond = [one for one in end.checks if one.figures.get(BEYOND) and one not in failed]
        reasons += [f"{one.title}: {one.words}" for one in beyond]
    else:
        reasons += [say("flag.said.seen", **numbers)] * (outcome == "missed")
        reasons += [*tried(outcome, power), *([end.unmeasured] if end.unmeasured else ())]
        reasons += [f"{check.title}: not checked. {check.words}" for check in unmade]
    cures = (check.cure for check in (*failed, *unmade) if check.cure)
    advice = (*(_missing(end) if outcome == "missed" else ()), *cures)
    alone = "_alone" * (outcome in ("flagged", "set") and not end.sides.compared)
    return Conclusion(outcome, say(f"flag.said.{outcome}{alone}", **numbers), tuple(reasons), advice)


def _missing(end: CheckedScores) -> Iterator[str]:
    """Say what would help where something could have been missed."""
    made, power = end.limits, end.power
    if power is None:
        yield POWER.format("flagging")
        if (made.together or made.asked + 1) > made.tenth:
            enough = needed(made.tenth, made.asked, *made.settings.rate)
            yield say("flag.said.take", enough=enough, tenth=made.tenth, asked=made.asked, unit=made.unit)
    elif power.probability.value < ENOUGH:
        if power.needed is not None:
            yield say(
                "flag.said.needs", needed=power.needed, known=power.facts["known_needed"], unit=made.unit
            )
        yield say("flag.said.stronger", unit=made.unit)


def tried(outcome: Outcome, power: Power | None) -> Iterator[str]:
    """Say what the flagging would have seen of training; nothing where something stands out."""
    if power is None and outcome not in ("flagged", "set"):
        yield say("flag.said.untried")
    elif power is not None and outcome not in ("flagged", "set"):
        exposed = exposure(power, "document")
        yield say("flag.said.tried", exposure=exposed, chance=power.probability, enough=ENOUGH)
        if outcome == "missed" and power.probability.value >= ENOUGH:
            yield say("outcome.unbounded")


def expected(chosen: int, fdr: float) -> str:
    """How many of the flagged documents may be false on average, in words.

    >>> expected(40, 0.05), expected(3, 0.05), expected(1, 0.1)
    ('about 2 of the 40', 'less than one of the 3', 'less than one of the 1')
    """
    number = fdr * chosen
    return f"less than one of the {chosen:,}" if number < 0.95 else f"about {number:,.0f} of the {chosen:,}"


def whole(test: SetTest | None, documents: int) -> Iterator[str]:
    """Say what the test of the set of so many documents gave."""
    if test is None:
        return
    if test.p is None:
        yield f"The set as a whole: no answer, because {test.withheld}."
        return
    verdict, level = "stands out" if test.rejects else "does not stand out", f"{100 * test.level:g}%"
    yield say("flag.said.whole", verdict=verdict, level=level, documents=documents, test=test)
    if test.explained is not None and test.rejects:
        yield say("flag.said.explained", test=test)


FLAGS, KNOWN = "flags", "known"
"""The names of the tables."""


def flag_words(figures: Mapping[str, Any], *, corpus: str, model: str, unit: str) -> TestWording:
    """The sentences that every flagging has in common."""
    names = {"corpus": corpus, "nonmembers": figures["nonmembers"], "model": called(model)}
    return TestWording.of_kind("flag.verdict", unit=unit, score=figures["score"], **names)


def set_test(found: Verdict) -> SetTest | None:
    """The test of the set."""
    plain = found.figures.get("set_test")
    return None if plain is None else from_plain(SetTest, plain, "set_test")


def flagged_rows(found: Verdict) -> list[int]:
    """The rows of flagged texts, the highest scores first."""
    texts = found.table(FLAGS)
    return sorted(
        (i for i, yes in enumerate(texts["flagged"].tolist()) if yes), key=lambda i: -texts["score"][i]
    )
