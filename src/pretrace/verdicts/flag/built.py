"""The verdict of a flagging: its two tables, its counts and figures, in the form that every verdict has.

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

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.backends.serving.address import called
from pretrace.results.folder import Opened, read_csv, read_folder
from pretrace.results.serialization import expect, from_plain, to_plain
from pretrace.results.verdicts import FORMER_FLAGGING, figure, truth
from pretrace.types import Bools, Doubles, Outcome, Power, SetTest, Situation, Skipped, Table, Verdict
from pretrace.verdicts.flag.concluding import Conclusion
from pretrace.verdicts.flag.planning import FlagSettings, Prospect

FLAGS, KNOWN = "flags", "known"
"""The names of the tables."""


def asked_table(  # noqa: PLR0913 (each is a column)
    ids: Sequence[str],
    groups: Sequence[str],
    scores: Doubles,
    p: Doubles,
    q: Doubles,
    flagged: Sequence[bool],
    documents: Sequence[str],
    drawn: Bools,
) -> Table:
    """The texts in question; p and q are empty where the answer is refused."""
    told, nothing = len(p) == len(ids), np.full(len(ids), np.nan)
    columns: dict[str, Any] = {
        "id": tuple(ids),
        "group": tuple(groups),
        "score": scores,
        "p": p if told else nothing,
        "q": q if told else nothing,
        "flagged": truth(list(flagged) if told else [None] * len(ids)),
        "document": tuple(documents),
        "drawn": np.asarray(drawn, dtype=np.bool_),
    }
    return Table(FLAGS, columns)


def known_table(
    ids: Sequence[str], groups: Sequence[str], scores: Doubles, drawn: Bools, documents: Sequence[str]
) -> Table:
    """The known non-members."""
    drawn = np.asarray(drawn, dtype=np.bool_)
    columns: dict[str, Any] = {"id": tuple(ids), "group": tuple(groups), "score": scores, "drawn": drawn}
    return Table(KNOWN, {**columns, "document": tuple(documents)})


def counted(tables: Sequence[Table], skipped: int) -> dict[str, int]:
    """The counts of a flagging whose tables have all texts."""
    texts, known = tables
    chosen = [bool(one) for one in texts["flagged"].tolist()]
    return {
        "texts": len(texts),
        "documents": len(set(texts["document"])),
        "flagged": sum(chosen),
        "flagged_documents": len({one for one, yes in zip(texts["document"], chosen, strict=True) if yes}),
        "known": len(known),
        "known_documents": len(set(known["document"])),
        "skipped": skipped,
    }


def verdict_of(  # noqa: PLR0913 (a verdict is made of many parts)
    end: Conclusion,
    made: Prospect,
    settings: FlagSettings,
    *,
    names: tuple[str, str],
    model: str,
    score: str,
    tables: tuple[Table, Table],
    counts: Mapping[str, int] | None = None,
    whole: Mapping[str, Any] | None = None,
    skipped: tuple[Skipped, ...],
    recorded: Mapping[str, Any],
) -> Verdict:
    """The verdict, without its words: `names` are those of the texts in question and of the known non-members;
    `counts` are those of the tables unless given."""
    corpus, nonmembers = names
    counts = counts or counted(tables, len(skipped))
    figures = {
        "counts": dict(counts),
        "nonmembers": nonmembers,
        "score": score,
        "fdr": settings.fdr,
        "method": made.method,
        "set_test": end.set_test,
        **({"whole": whole} if whole else {}),
    }
    return flag_verdict(
        corpus=corpus,
        model=model,
        outcome=end.outcome,
        level=settings.level,
        p=end.set_test.p,
        unit=made.unit,
        figures=to_plain(figures, "figures"),
        tables=tables,
        checks=end.checks,
        notes=made.notes,
        skipped=skipped,
        planted=end.power,
        settings=recorded,
    )


def flag_verdict(  # noqa: PLR0913 (what a verdict needs of a flagging)
    *,
    corpus: str,
    model: str,
    outcome: Outcome,
    figures: Mapping[str, Any],
    unit: str,
    statement: str = "",
    planted: Power | None = None,
    **fields: Any,
) -> Verdict:
    """A flagging from its figures; what every flagging has in common is said here. ValueError where a text has no
    p-value, or has one though the answer is refused, or where texts are flagged and the outcome is another."""
    counts = figures["counts"]
    made = Verdict(
        test="flag",
        corpus=corpus,
        model=model,
        outcome=outcome,
        statement=statement,
        exact=False,
        assumption="That the known non-members were not seen, and are otherwise like the texts.",
        hypothesis=f"Of each {unit}: it was not seen, and could have stood among the known non-members; of the set: "
        "this holds for all.",
        statistic=f"the mean {figures['score']} of a document",
        units=counts["documents"],
        unit=unit,
        question=f"Which texts of “{corpus}” did {called(model)} see in training?",
        compared=(
            f"The texts of {corpus} were set beside documents of {figures['nonmembers']}, which, as those who asked "
            f"state, {called(model)} was not trained on.",
        ),
        figures=figures,
        planted=planted,
        situation=Situation(documents=counts["documents"], unseen=counts["known_documents"]),
        **fields,
    )
    texts = made.table(FLAGS)
    for name in ("p", "q"):
        if not (np.isnan if outcome == "refused" else np.isfinite)(texts[name]).all():
            raise ValueError(f"a flagging with the outcome {outcome} holds wrong values of {name}")
    if not all(np.isfinite(table["score"]).all() for table in made.tables):
        raise ValueError("a score of a flagging is NaN or infinite")
    if (outcome == "flagged") != (counts["flagged"] > 0):
        raise ValueError(f"{counts['flagged']} texts are flagged where the outcome is {outcome}")
    if outcome == "set" and (made.p is None or made.p > made.level):
        raise ValueError("a flagging says that the set stands out, and its test of the set does not")
    return made


def set_test(found: Verdict) -> SetTest | None:
    """The test of the set; None in results of version 0.1."""
    return figure(found, "set_test", SetTest)


def flagged_rows(found: Verdict) -> list[int]:
    """The rows of flagged texts, the highest scores first."""
    texts = found.table(FLAGS)
    return sorted(
        (i for i, yes in enumerate(texts["flagged"].tolist()) if yes), key=lambda i: -texts["score"][i]
    )


# Flaggings as an earlier pretrace wrote them, read as the verdicts that they are today.
#
# `flags.json` held what `result.json` holds now. Its format 1 is that of version 0.1: no test of the set, and
# texts were flagged one by one whatever their documents. Format 2 had no measured power, and said "none" where
# nothing stood out, whatever could have been seen.


_COLUMNS = {
    "flags": ("id", "group", "score", "p", "q", "flagged", "document", "drawn"),
    "known": ("id", "group", "score", "drawn", "document"),
}
_SHARED = (
    "outcome",
    "statement",
    "corpus",
    "model",
    "checks",
    "reasons",
    "advice",
    "notes",
    "skipped",
    "settings",
)
_NUMBERS, _TRUTHS = ("score", "p", "q"), ("flagged", "drawn")


def load_flags(folder: Path) -> Verdict:
    """The flagging in a folder with `flags.json`; OutputError, naming the file, where it is damaged or was changed."""
    return read_folder(FORMER_FLAGGING, folder, _load)


def _load(opened: Opened) -> Verdict:
    content = opened.content
    texts, known = (opened.part(f"{name}.csv", partial(_table, name=name)) for name in _COLUMNS)
    shared = {name: content[name] for name in _SHARED if name in content}
    test = content.get("set_test")
    power = content.get("power")
    whole = content.get("whole")
    counts = counted((texts, known), len(expect(content.get("skipped", []), list)))
    if whole is not None:
        counts = {name: expect(whole[name], int) for name in counts}
        whole = {name: value for name, value in whole.items() if name not in counts}
    unit = "document" if counts["documents"] < counts["texts"] else "text"
    plain = {
        **shared,
        "level": test["level"] if test else content["fdr"],
        "p": test["p"] if test else None,
        "planted": power,
        "register": [content["tests"]] if content.get("tests") else [],
    }
    read: Mapping[str, Any] = _fields(plain)
    figures = {
        "counts": counts,
        **{name: content[name] for name in ("nonmembers", "score", "fdr", "method")},
        "set_test": test,
        **({"whole": whole} if whole else {}),
    }
    return flag_verdict(figures=figures, unit=unit, tables=(texts, known), **read)


def _fields(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a verdict that are there, read as what they are."""
    lacking = {
        "test": "flag", "exact": False, "assumption": "", "hypothesis": "", "statistic": "", "units": 0, "unit": "",
        "question": "", "compared": [],
    }  # fmt: skip
    made = from_plain(Verdict, lacking | dict(plain), "flags")
    return {name: getattr(made, name) for name in plain}


def _table(content: bytes, *, name: str) -> Table:
    """A table; version 0.1 judged every text by itself, and did not name documents."""
    names, (found, rows) = _COLUMNS[name], read_csv(content)
    old = names[:6] if name == "flags" else names[:4]
    if found not in (names, old):
        raise ValueError(f"columns {', '.join(names)} expected")
    cells = {column: tuple(row[place] for row in rows) for place, column in enumerate(found)}
    if found == old:
        cells["document"] = cells["id" if name == "flags" else "group"]
        cells.setdefault("drawn", ("1",) * len(rows))
    return Table(name, {column: _column(column, cells[column]) for column in names})


def _column(name: str, cells: tuple[str, ...]) -> Any:
    if name in _NUMBERS:
        return np.array([float(cell) if cell else np.nan for cell in cells], dtype=np.float64)
    return truth([cell == "1" if cell else None for cell in cells]) if name in _TRUTHS else cells
