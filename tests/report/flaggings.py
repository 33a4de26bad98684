"""Flaggings made by hand, in the form in which `flag` gives them."""

import numpy as np

from pretrace.results.folder import to_plain, truth
from pretrace.types import Situation, Table, Verdict
from pretrace.verdicts.flag.flag import flag_words


def texts_of(ids, scores, p, flagged, *, q=None, **more):
    """The texts in question, each its own document unless `documents` or `groups` say otherwise."""
    own = {"groups": ids, "documents": ids, "drawn": np.ones(len(ids), dtype=bool)} | more
    told, nothing = len(p) == len(ids), np.full(len(ids), np.nan)
    yes = truth(list(flagged) if told else [None] * len(ids))
    values = {"p": p if told else nothing, "q": (p if q is None else q) if told else nothing, "flagged": yes}
    named = {"id": tuple(ids), "group": tuple(own["groups"]), "score": scores}
    documents = {"document": tuple(own["documents"]), "drawn": np.asarray(own["drawn"], dtype=np.bool_)}
    return Table("flags", {**named, **values, **documents})


def known_of(ids, scores, drawn=None):
    """Known non-members, each its own document."""
    drawn = np.ones(len(ids), dtype=bool) if drawn is None else np.asarray(drawn, dtype=np.bool_)
    columns = {"id": tuple(ids), "group": tuple(ids), "score": scores, "drawn": drawn, "document": tuple(ids)}
    return Table("known", columns)


def counted(texts, known, skipped):
    """The counts of a flagging with these tables."""
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


def flagging(outcome, texts, known, *, set_test, nonmembers="known", score="loss", **fields):
    """A flagging with these tables; `fields` are those of the verdict."""
    counts = counted(texts, known, len(fields.get("skipped", ())))
    figures = {"counts": counts, "nonmembers": nonmembers, "score": score, "fdr": 0.05, "method": "bh"}
    figures["set_test"] = set_test
    unit = "document" if counts["documents"] < counts["texts"] else "text"
    shared = {"corpus": "mine", "model": "model", "level": 0.05, "p": set_test.p if set_test else None}
    parts = shared | fields
    words = flag_words(figures, corpus=parts["corpus"], model=parts["model"], unit=unit)
    worded = ("assumption", "hypothesis", "statistic", "unit", "question", "compared")
    return Verdict(
        test="flag", exact=False, outcome=outcome, units=counts["documents"], tables=(texts, known),
        situation=Situation(documents=counts["documents"], unseen=counts["known_documents"]),
        figures=to_plain(figures, "figures"), **{name: getattr(words, name) for name in worded}, **parts,
    )  # fmt: skip
