"""What every first page and technical part has: who asked, the answer, the checks, how to repeat it."""

from __future__ import annotations

from calendar import month_name
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pretrace.report import advice, facts, wording
from pretrace.report.frame import section
from pretrace.report.wording import named
from pretrace.types import Check, Verdict

UNSTATED = "not stated"
_GAVE = "The test gave p ="
"""How the reason begins that says what the test found."""
MOST_FOUND = 50
"""Texts that the section on a search names; the result has up to 1,000, and the folder of the search all."""


@dataclass(frozen=True, slots=True)
class IdentityRow:
    """A row: what it is about, what is recorded, and smaller lines beneath it, each with whether it is a code."""

    label: str
    value: str
    notes: tuple[tuple[str, bool], ...] = ()


def first_values(verdict: Verdict, title: str) -> dict[str, Any]:
    """Collect what the first page of every kind of verdict shows; `title` stands above the rest of the statement."""
    made = facts.checks(verdict)
    return {
        "title": title,
        "statement": wording.after(verdict.statement, title and f"{title}: "),
        "failed": why_failed([one for one in made if one.status == "failed"]),
        "others": sorted(
            (one for one in made if one.status != "failed"), key=lambda one: one.status == "not run"
        ),
        "advised": wording.once(verdict.advice),
        "served": (*facts.served(verdict.settings), *facts.sentences(verdict.settings)),
        "foreseen": advice.foreseeable(verdict),
        "p": wording.p_value(verdict.p) if verdict.p is not None else "",
    }


def title_of(verdict: Verdict, titles: Sequence[str]) -> str:
    """Find the title that the statement begins with, before a colon; "" where it has none of them."""
    return next((one for one in titles if verdict.statement.startswith(f"{one}:")), "")


def why_inconclusive(verdict: Verdict, failed: Sequence[Check]) -> tuple[str, ...]:
    """Why a verdict is inconclusive, for the box of the answer: each failed check with its reason, and what else
    withheld it; where nothing did, the reasons as they are."""
    told = [f"{check.title}: no. {words}" for check, words in why_failed(failed)]
    others = [one for one in verdict.reasons if not any(one.startswith(check.title) for check in failed)]
    if facts.rejected(verdict):  # then what the test gave is no reason
        kept = [one for one in others if not one.startswith(_GAVE)]
        others = kept if kept or told else others
    return tuple(told[:3]) + wording.once(others)


def why_failed(failed: Sequence[Check]) -> list[tuple[Check, str]]:
    """Put beside each failed check why it matters, in full: its first sentence alone may say the opposite."""
    return [(one, wording.plain(one.words)) for one in failed]


def who_asked(verdict: Verdict, made: str) -> Iterator[IdentityRow]:
    """Give the rows of when the test, audit or search was `made`, and for whom."""
    yield IdentityRow(f"Date of the {made}", when(verdict.settings.get("time")))
    yield IdentityRow("Requested by", verdict.statements.get("requested_by") or UNSTATED)


def when(found: object) -> str:
    """Write a recorded time as people do, the day alone where it cannot be read.

    >>> when("2026-11-22T14:03:09+00:00"), when(None)
    ('22 November 2026, 14:03 UTC', 'not recorded')
    """
    if not isinstance(found, str):
        return "not recorded"
    try:
        moment = datetime.fromisoformat(found)
    except ValueError:
        return named(found)
    day = f"{moment.day} {month_name[moment.month]} {moment.year}"
    return f"{day}, {moment:%H:%M} {moment.tzname() or ''}".strip()


def hash_of(texts: Mapping[str, Any]) -> tuple[tuple[str, bool], ...]:
    """The hash of some texts, by what was recorded of them; nothing where it was not."""
    found = texts.get("sha256")
    return (("SHA-256 of the texts:", False), (named(found), True)) if isinstance(found, str) else ()


@section("The checks", "checks", "checks.html")
def checks(verdict: Verdict) -> dict[str, Any] | None:
    """Show each check with its figures, in the order in which they were made."""
    made = facts.checks(verdict)
    return {"checks": made} if made else None


@section("What a search found of these texts", "searched", "searched.html")
def searched(verdict: Verdict) -> dict[str, Any] | None:
    """Show the texts of which most was found."""
    found = facts.mapping(verdict.settings.get("found"))
    if not found:
        return None
    rows = found.get("rows", ())
    more = max(0, len(rows) - MOST_FOUND) + int(found.get("more rows", 0))
    said = facts.sentences(verdict.settings)
    return {"said": said, "rows": rows[:MOST_FOUND], "more": more, "scan": str(found["scan"])}


_PARTS = {
    "corpus": "The texts",
    "heldout": "The control documents",
    "snippets": "How the texts were cut",
    "sampling": "How the generator wrote",
    "software": "Software",
    "timings": "Time taken",
}


@section("To repeat this", "repeat", "repeating.html", appendix=True)
def repeating(verdict: Verdict) -> dict[str, Any] | None:
    """Show everything needed to make the result again; nothing where no settings were recorded."""
    recorded = {key: value for key, value in verdict.settings.items() if key != "earlier"}
    if isinstance(recorded.get("timings"), Mapping):
        recorded["timings"] = _timed(recorded["timings"])
    kind = {"audit": "This audit", "flag": "This flagging"}.get(verdict.test, "This test")
    parts = facts.parts(recorded, kind, _PARTS)
    return {"parts": parts, "skipped": () if verdict.test == "flag" else verdict.skipped} if parts else None


def _timed(timings: Mapping[str, Any]) -> dict[str, Any]:
    seconds = {
        key: value
        for key, value in timings.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    }
    said = {**timings, **{key: wording.duration(value) for key, value in seconds.items()}}
    return said | ({"all": wording.duration(sum(seconds.values()))} if len(seconds) > 1 else {})
