"""Progress and exit code as a small JSON file, for a program that started the command, such as `pretrace serve`.

The variable PRETRACE_PROGRESS names the file. It holds `share` (0 to 1), `left` (seconds, null while unknown), `said`
(what is being done) and, when the command is over, `ended` (its exit code) and `message` (its line of error).
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from pretrace.results.output_checks import json_object

VARIABLE = "PRETRACE_PROGRESS"
EVERY = 0.5
"""Seconds between two writes."""


def progress_file() -> Path | None:
    """The file that is asked for; None where none is."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def note_share(share: float, left: float | None, said: str) -> None:
    """Write how far the command is; nothing where no file is asked for or it cannot be written."""
    _write({"share": min(1.0, max(0.0, share)), "left": left, "said": said})


def note_end(code: int, message: str) -> None:
    """Write that the command is over."""
    _write({"share": 1.0, "left": 0.0, "said": "", "ended": code, "message": message})


def _write(content: dict[str, Any]) -> None:
    path = progress_file()
    if path is None or not _may_go(path):
        return
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):  # progress is no reason to lose the work
        beside.write_text(json.dumps(content), encoding="utf-8")
        beside.replace(path)


def _may_go(path: Path) -> bool:
    """Whether nothing is lost with what is there: nothing, or an earlier state."""
    return not path.exists() or not {"share", "ended"}.isdisjoint(json_object(path) or {})


class Noted:
    """Passes over texts, written to the file as they are done."""

    def __init__(self, said: str) -> None:
        self.said = said
        from pretrace.scoring.evidence import Work  # every command imports this file

        self._work = Work()
        self._begun = time.monotonic()
        self._last = 0.0
        self._weighed = False
        note_share(0.0, None, said)

    def begin(self, texts: int) -> None:
        """So many more passes over a text lie ahead; their tokens come first."""
        self._work.begin(texts)
        if not self._work.done:
            note_share(0.0, None, f"{self.said}: tokenising {self._work.total:,} texts")

    def weigh(self, texts: int, tokens: int) -> None:
        """So many of them have so many tokens."""
        self._work.weigh(texts, tokens)
        if not self._work.done and not self._weighed:
            self._weighed = True
            note_share(0.0, None, f"{self.said}: the first batch is computed")

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
        """So many are done; what came from the store does not count for the speed."""
        now = time.monotonic()
        work = self._work
        work.advance(texts, tokens, fresh=fresh)
        if now - self._last < EVERY and work.done < work.total:
            return
        self._last = now
        share = work.share if work.fresh else work.done / max(1, work.total)
        note_share(share, work.left(now - self._begun), self.said)
