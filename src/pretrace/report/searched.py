"""What a search of a corpus found of the texts of a test (`--found`): shown beside the test, and no part of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pretrace.report import facts, wording
from pretrace.report.frame import Section, fill
from pretrace.report.visible import named
from pretrace.types import Verdict

MOST_ROWS = 50
"""Texts that the section names; the result has up to 1,000, and the folder of the search all."""


def sentences(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """What page one says of the search; nothing where there was none.

    >>> sentences({})
    ()
    """
    found = facts.mapping(settings.get("found"))
    if not found:
        return ()
    counts, total = facts.mapping(found.get("counts")), int(found.get("texts", 0))
    where = ", ".join(named(str(one)) for one in found.get("corpus", ()))
    ending = (
        " Not all of it could be read."
        if "not all of the corpus" in str(found.get("statement", "")).lower()
        else ""
    )
    whole, part = (int(counts.get(name, 0)) for name in ("whole", "part"))
    return (
        f"These texts were also searched for in a corpus ({where}): {whole:,} of {total:,} stand in it whole or nearly "
        f"whole, {part:,} in part.{ending} The search is evidence of its own: it is no part of this test or its "
        "p-value. It says something of the model only if the model was trained on that corpus.",
    )


def shares(settings: Mapping[str, Any]) -> dict[str, str]:
    """For each text of which something was found, how much, by its id."""
    found = facts.mapping(settings.get("found"))
    return {str(row["id"]): wording.percent(float(row["share"]), 0) for row in found.get("rows", ())}


def searched(result: Verdict) -> Section | None:
    """The texts of which most was found."""
    found = facts.mapping(result.settings.get("found"))
    if not found:
        return None
    rows = [
        {
            "id": named(str(row["id"])),
            "share": wording.percent(float(row["share"]), 0),
            "longest": int(row["longest"]),
            "documents": int(row["documents"]),
            "copies": int(row["copies"]),
            "common": row["found"] == "common",
        }
        for row in found.get("rows", ())[:MOST_ROWS]
    ]
    more = len(found.get("rows", ())) + int(found.get("more rows", 0)) - len(rows)
    values = {
        "said": sentences(result.settings),
        "rows": rows,
        "more": more,
        "scan": named(str(found["scan"])),
    }
    return Section("What a search found of these texts", "searched", fill("searched.html", values))
