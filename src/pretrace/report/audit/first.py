"""The first page: for an author, an arbiter or a judge, without a term of the trade."""

from __future__ import annotations

import re

from markupsafe import Markup

from pretrace.report.audit import plots, wording
from pretrace.report.audit.chance import chance
from pretrace.report.svg import to_svg
from pretrace.report.templating import fill
from pretrace.types import Audit, Check

_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z0-9])")
_LINE = 105
_ON_DOCUMENTS = ("pretrace", "calibrated")
"""The procedures whose test is made on the very values that the figure shows."""
_TITLES = {"nothing": "Nothing shown", "inconclusive": "Inconclusive"}


def first_page(audit: Audit) -> Markup:
    """The answer, what was compared, one figure, how strong it is, the checks, and what would help."""
    title = _TITLES.get(audit.outcome, "")
    failed, others = _split(audit.checks)
    advice = _fitting(audit.advice, room=13 - 2 * len(failed) - len(others) // 2)
    ahead = int((audit.values > 0).sum())
    values = {
        "audit": audit,
        "title": title,
        "statement": _rest(audit.statement, title),
        "ahead": ahead,
        "behind": len(audit.values) - ahead,
        "shows_test": audit.answer.procedure in _ON_DOCUMENTS,
        "per_dot": plots.per_dot(audit),
        "level": wording.share(audit.level),
        "often": wording.strength(audit.answer),
        "p": wording.p_value(audit.answer.p),
        "seen": audit.power and wording.cases(audit.power.probability.value),
        "times": audit.power and wording.times(audit.power.epochs),
        "failed": [(check, _first_sentence(check.words) if len(failed) < 4 else "") for check in failed],
        "others": others,
        "advice": advice,
        "plot": to_svg(plots.story(audit), name="story", label=_label(audit)) if len(audit.values) else "",
    }
    return fill("audit/first.html", values)


def _rest(statement: str, title: str) -> str:
    """The statement without the words that stand above it already."""
    rest = statement.removeprefix(title).lstrip(": ") if title else statement
    return rest[:1].upper() + rest[1:]


def _split(checks: tuple[Check, ...]) -> tuple[list[Check], list[Check]]:
    """The checks that failed, and the others, those that passed first."""
    failed = [check for check in checks if check.status == "failed"]
    others = [check for status in ("passed", "not run") for check in checks if check.status == status]
    return failed, others


def _first_sentence(words: str) -> str:
    """The first sentence: all of them stand in the technical part, and this page has to stay one."""
    return _SENTENCE.split(words, maxsplit=1)[0]


def _fitting(advice: tuple[str, ...], *, room: int) -> tuple[str, ...]:
    """As many of the sentences as fit into so many lines of print, and at least two."""
    lines = [-(-len(sentence) // _LINE) for sentence in advice]
    number = next((n for n in range(len(lines), 0, -1) if sum(lines[:n]) <= room), 0)
    return advice[: max(2, number)]


def _label(audit: Audit) -> str:
    found = chance(audit).found
    return (
        f"One dot for each of {len(audit.values)} documents, and their average of {wording.figure(found)} "
        f"{wording.spread(found)} beside the averages that chance gives."
    )
