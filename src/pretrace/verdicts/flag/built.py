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
from typing import Any

import numpy as np

from pretrace.backends.serving.address import called
from pretrace.results.serialization import to_plain
from pretrace.results.verdicts import figure, truth
from pretrace.types import Bools, Doubles, SetTest, Situation, Skipped, Table, Verdict
from pretrace.verdicts.flag.concluding import FlagConclusion
from pretrace.verdicts.flag.planning import DetectionLimits, Draws, FlagSettings
from pretrace.verdicts.flag.words import FlagWording
from pretrace.verdicts.register import RegisterEntry, enter

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
    end: FlagConclusion,
    made: DetectionLimits,
    settings: FlagSettings,
    *,
    names: tuple[str, str],
    model: str,
    score: str,
    tables: tuple[Table, Table],
    counts: Mapping[str, int] | None = None,
    whole: Mapping[str, Any] | None = None,
    skipped: tuple[Skipped, ...],
    draws: Draws,
    recorded: Mapping[str, Any],
    why: str = "",
) -> Verdict:
    """Build the verdict and note it in the register: `names` are those of the texts in question and of the known
    non-members; `counts` are those of the tables unless given; `why` says why the power was not measured."""
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
    words = FlagWording(end, made, counts, settings.fdr, corpus, model, why)
    weights = {role: str(one.get("weights")) for role, one in recorded.get("models", {}).items()}
    target = weights.pop("target", model)
    matters = {**settings.matters, "known": draws.known, "models": weights}
    p = end.set_test.p
    register = enter(
        RegisterEntry("flag", draws.sketch, target, matters, model),
        settings.level,
        p,
        end.outcome,
        keep=settings.cache,
    )
    return flag_verdict(
        corpus=corpus,
        model=model,
        outcome=end.outcome,
        statement=words.statement(),
        reasons=words.reasons(register),
        advice=words.advice(),
        register=register,
        level=settings.level,
        p=p,
        unit=made.unit,
        figures=to_plain(figures, "figures"),
        tables=tables,
        checks=end.checks,
        notes=made.notes,
        skipped=skipped,
        planted=end.power,
        settings=recorded,
    )


def flag_verdict(*, corpus: str, model: str, figures: Mapping[str, Any], unit: str, **fields: Any) -> Verdict:
    """A flagging from its figures, with the words that every flagging has in common. ValueError where a score is not
    finite, or the outcome is not that of the texts and of the test of the set."""
    counts = figures["counts"]
    made = Verdict(
        test="flag",
        corpus=corpus,
        model=model,
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
        situation=Situation(documents=counts["documents"], unseen=counts["known_documents"]),
        **fields,
    )
    for name in ("p", "q"):
        if not (np.isnan if made.outcome == "refused" else np.isfinite)(made.table(FLAGS)[name]).all():
            raise ValueError(f"a flagging with the outcome {made.outcome} holds wrong values of {name}")
    if not all(np.isfinite(table["score"]).all() for table in made.tables):
        raise ValueError("a score of a flagging is NaN or infinite")
    if (made.outcome == "flagged") != (counts["flagged"] > 0):
        raise ValueError(f"{counts['flagged']} texts are flagged where the outcome is {made.outcome}")
    if made.outcome == "set" and (made.p is None or made.p > made.level):
        raise ValueError("a flagging says that the set stands out, and its test of the set does not")
    return made


def set_test(found: Verdict) -> SetTest | None:
    """The test of the set."""
    return figure(found, "set_test", SetTest)


def flagged_rows(found: Verdict) -> list[int]:
    """The rows of flagged texts, the highest scores first."""
    texts = found.table(FLAGS)
    return sorted(
        (i for i, yes in enumerate(texts["flagged"].tolist()) if yes), key=lambda i: -texts["score"][i]
    )
