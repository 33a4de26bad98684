"""A flagging as a few lines of Markdown, for the summary of a job: `python -m pretrace.report.summary FOLDER`.

The answer, the flagged items, what could not be seen, and the checks. `action.yml` writes it to $GITHUB_STEP_SUMMARY.
Names are shown as code, without what Markdown or HTML would take for itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pretrace.results.rounding import p_value
from pretrace.results.verdicts import EXIT_CODES, load_verdict
from pretrace.types import Verdict
from pretrace.verdicts.flag.built import flagged_rows, set_test
from pretrace.verdicts.flag.words import sensitive, tried

MOST = 50
"""Flagged items in the table."""
_ANSWERS: Mapping[int, str] = {0: "Nothing stands out", 3: "Something stands out", 4: "Not answered"}
_SHOWN = 120


def summary(flagged: Verdict) -> str:
    """The lines, as Markdown."""
    return "\n".join(_lines(flagged)) + "\n"


def _lines(flagged: Verdict) -> Iterator[str]:
    code = EXIT_CODES[flagged.outcome]
    yield f"## pretrace flag: {_ANSWERS[code]} (exit code {code})"
    yield ""
    yield _plain(flagged.statement)
    yield ""
    texts, counts = flagged.table("flags"), flagged.figures["counts"]
    rows = flagged_rows(flagged)
    if rows:
        yield "| flagged item | score | p | q |"
        yield "|---|---|---|---|"
        for i in rows[:MOST]:
            figures = " | ".join((f"{texts['score'][i]:.3g}", p_value(texts["p"][i]), p_value(texts["q"][i])))
            yield f"| {_code(texts['id'][i])} | {figures} |"
        if counts["flagged"] > MOST:
            yield ""
            yield f"{counts['flagged'] - MOST:,} more in the report."
        yield ""
    test = set_test(flagged)
    unseen = [*tried(flagged), *(sensitive(test) if test else ())]
    unseen += [f"{counts['skipped']:,} texts have no score."] * bool(counts["skipped"])
    unseen += [
        f"{check.title}: not known. {check.words}" for check in flagged.checks if check.status == "not run"
    ]
    if unseen:
        yield "**What could not be seen**"
        yield ""
        yield from (f"- {_plain(one)}" for one in unseen)
        yield ""
    yield "| check | |"
    yield "|---|---|"
    yield from (f"| {_plain(check.title)} | {check.status} |" for check in flagged.checks)
    if flagged.advice:
        yield ""
        yield "**What would help**"
        yield ""
        yield from (f"- {_plain(one)}" for one in flagged.advice)


def _code(name: str) -> str:
    """A name as code; what would end the code or the cell is replaced."""
    shown = "".join(char if char.isprintable() and char not in "`|" else "�" for char in name)
    return f"`{shown[:_SHOWN]}`" + ("…" if len(shown) > _SHOWN else "")


def _plain(words: str) -> str:
    """A sentence in which nothing is taken for Markdown or HTML."""
    shown = "".join(char if char.isprintable() else "�" for char in words)
    for char in "\\`*_[]<>|#":
        shown = shown.replace(char, f"\\{char}" if char not in "<>" else {"<": "&lt;", ">": "&gt;"}[char])
    return shown


def main() -> None:
    """Print the summary of a folder that `pretrace flag` wrote."""
    print(summary(load_verdict(Path(sys.argv[1]))), end="")


if __name__ == "__main__":
    main()
