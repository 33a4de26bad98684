"""A flagging as a few lines of Markdown, for the summary of a job: `python -m pretrace.report.summary FOLDER`.

The answer, the flagged items, what could not be seen, and the checks. `action.yml` writes it to $GITHUB_STEP_SUMMARY.
Names are shown as code, without what Markdown or HTML would take for itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pretrace.results.flags import EXIT_CODES, load_flags
from pretrace.types import Flagged
from pretrace.verdicts.flag.words import sensitive, tried

MOST = 50
"""Flagged items in the table."""
_ANSWERS: Mapping[int, str] = {0: "Nothing stands out", 3: "Something stands out", 4: "Not answered"}
_SHOWN = 120


def summary(flagged: Flagged) -> str:
    """The lines, as Markdown."""
    return "\n".join(_lines(flagged)) + "\n"


def _lines(flagged: Flagged) -> Iterator[str]:
    code = EXIT_CODES[flagged.outcome]
    yield f"## pretrace flag: {_ANSWERS[code]} (exit code {code})"
    yield ""
    yield _plain(flagged.statement)
    yield ""
    texts = flagged.texts
    rows = sorted((i for i, chosen in enumerate(texts.flagged) if chosen), key=lambda i: -texts.scores[i])
    if rows:
        yield "| flagged item | score | p | q |"
        yield "|---|---|---|---|"
        for i in rows[:MOST]:
            yield f"| {_code(texts.ids[i])} | {texts.scores[i]:.3g} | {texts.p[i]:.3g} | {texts.q[i]:.3g} |"
        if flagged.number > MOST:
            yield ""
            yield f"{flagged.number - MOST:,} more in the report."
        yield ""
    test = flagged.set_test
    unseen = [*tried(flagged), *(sensitive(test) if test else ())]
    unseen += [f"{flagged.unscored:,} texts have no score."] * bool(flagged.unscored)
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
    print(summary(load_flags(Path(sys.argv[1]))), end="")


if __name__ == "__main__":
    main()
