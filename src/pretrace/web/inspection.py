"""Looking into an upload in a process of its own, whose time and memory are limited and which can be killed.

A small file may cost much: a few kilobytes can unpack to gigabytes, or to millions of texts. So nothing of an upload
is unpacked or parsed by the server itself. `inspected` starts `python -m pretrace.web.inspection` and gets back what
was seen, or why not; a process that runs out of time or memory ends, and the upload with it.

The limits are kept by the operating system where it has `resource.setrlimit` (Linux; macOS keeps that of time). On
Windows only the time on the clock is limited.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pretrace.corpora.columns import USUAL
from pretrace.corpora.documents import DOCUMENTS, SOURCE
from pretrace.corpora.formats import ending_of, file_rows
from pretrace.corpora.reading import TextReading
from pretrace.errors import PretraceError
from pretrace.results.serialization import from_json, from_plain, to_json, to_plain
from pretrace.web.archives import check, opened
from pretrace.web.facts import Facts, look_into
from pretrace.web.settings import Limits, ServeSettings
from pretrace.web.workspace import RequestError

BUSY = 503
"""The status where too many uploads are looked into at once: the same may succeed a minute later."""
_LONGEST_SENTENCE = 600
_CURE = "upload a part of it, or use the command line, which reads files of any size."
_SMALL = {
    "OMP_NUM_THREADS": "1",
    "ARROW_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
}
"""What keeps libraries from setting memory aside that they may never need: it would count."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """What was found in an upload: its file or folder of texts, the number of files, what was seen in them, and how
    many files of a zip were left out."""

    path: Path
    files: int
    facts: Facts
    left_out: int


class _Turns:
    """So many lookings at once, however many ask; made anew where a limit says another number."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._taken = 0

    @contextmanager
    def turn(self, most: int, wait: float) -> Iterator[None]:
        """A turn; RequestError (503) where none is free in time."""
        with self._lock:
            if not self._lock.wait_for(lambda: self._taken < most, wait):
                raise RequestError(
                    "Other uploads are being looked into: try again in a minute.",
                    BUSY,
                )
            self._taken += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken -= 1
                self._lock.notify()


_turns = _Turns()


def inspected(
    file: Path,
    name: str,
    limits: Limits,
    *,
    unpack: bool = False,
    text_column: str = "",
    most_bytes: int | None = None,
) -> Inspected:
    """What is in a file, or folder of texts, that a visitor calls `name`; a zip is unpacked beside it where asked.

    RequestError where it is not what its name says, cannot be read, or costs more than the limits allow; 503 where too
    many others are looked into. `most_bytes` is how much it may unpack to, where that is less than the limits allow.
    """
    if most_bytes is not None:
        limits = replace(limits, expanded=most_bytes)
    request = {
        "file": str(file),
        "name": name,
        "unpack": unpack,
        "text_column": text_column,
        "limits": asdict(limits),
    }
    with _turns.turn(limits.looks, limits.look_wait):
        answer = _answer(request, name, limits)
    if "refused" in answer:
        raise RequestError(str(answer["refused"]), int(answer["status"]))
    facts: Facts = from_plain(Facts, answer["facts"], "facts")
    return Inspected(Path(answer["path"]), int(answer["files"]), facts, int(answer["left_out"]))


def text_of_document(file: Path, name: str, limits: Limits) -> str:
    """The text of a file that is one text, such as a PDF; errors as in `inspected`."""
    request = {"file": str(file), "name": name, "whole": True, "limits": asdict(limits)}
    with _turns.turn(limits.looks, limits.look_wait):
        answer = _answer(request, name, limits)
    if "refused" in answer:
        raise RequestError(str(answer["refused"]), int(answer["status"]))
    return str(answer["text"])


def _answer(request: dict[str, Any], name: str, limits: Limits) -> dict[str, Any]:
    """What the process says; RequestError where it was ended."""
    environment = ServeSettings.bare(os.environ) | _SMALL
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "pretrace.web.inspection"],
            input=json.dumps(request).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=2 * limits.look_seconds,
            start_new_session=True,  # a Ctrl-C that stops the server lets it end with an answer
        )
    except subprocess.TimeoutExpired:  # it was killed
        raise RequestError(_too_long(name, limits), 413) from None
    except OSError as error:
        raise RequestError(f"{name} cannot be looked into now ({error}): try again later.", BUSY) from None
    with suppress(ValueError, TypeError):
        return from_json(ended.stdout)
    slow = ended.returncode == -getattr(signal, "SIGXCPU", 0)
    raise RequestError(_too_long(name, limits) if slow else _too_much(name, limits), 413)


def _too_long(name: str, limits: Limits) -> str:
    return f"{name} takes longer than {limits.look_seconds:g} s to look into: {_CURE}"


def _too_much(name: str, limits: Limits) -> str:
    return (
        f"{name} needs more memory than the {limits.look_bytes // 1_000_000:,} MB that looking into an upload may "
        f"take: {_CURE}"
    )


def main() -> None:
    """The process: a request as JSON on standard input, the answer as JSON on standard output."""
    request = json.loads(sys.stdin.buffer.read())
    limits = Limits(**request["limits"])
    _confine(limits)
    with redirect_stdout(sys.stderr):
        answer = answered(request, limits)
    sys.stdout.buffer.write(to_json(answer))


def answered(request: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """What is seen, or why nothing is: whatever the readers of archives, tables and texts raise is an answer."""
    name = str(request["name"])
    try:
        path, files, left_out = Path(request["file"]), 1, 0
        if request.get("whole"):
            check(path, name, limits)
            kind = ending_of(name) if ending_of(name) in DOCUMENTS else SOURCE
            reading = TextReading(USUAL, name)
            return {"text": next(reading.strings(file_rows(path, reading, kind)))}
        if request["unpack"]:
            path, files, left_out = opened(path, name, limits)
        facts = look_into(path, name, str(request["text_column"]), limits)
        return {
            "path": str(path),
            "files": files,
            "left_out": left_out,
            "facts": to_plain(facts, "facts"),
        }
    except Exception as error:  # noqa: BLE001 - readers of files raise anything
        if _is_memory(error):
            return {"refused": _too_much(name, limits), "status": 413}
        if isinstance(error, PretraceError):
            status = error.status if isinstance(error, RequestError) else 422
            said = str(error).replace(str(request["file"]), name)
            return {"refused": said[:_LONGEST_SENTENCE], "status": status}
        said = f"{type(error).__name__}: {error}".rstrip(".: ").replace(str(request["file"]), name)
        return {
            "refused": f"{name} cannot be read ({' '.join(said.split())[:_LONGEST_SENTENCE]}): mend it, or leave "
            "out the column that holds this.",
            "status": 422,
        }


def _is_memory(error: BaseException | None) -> bool:
    """Whether memory ran out, even where a reader took that for a damaged file."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _confine(limits: Limits) -> None:
    """Let the operating system end this process once it has taken too much."""
    try:
        import resource
    except ImportError:  # Windows
        return
    seconds = max(1, round(limits.look_seconds))
    for kind, most, more in (
        (resource.RLIMIT_AS, limits.look_bytes, 0),
        (resource.RLIMIT_CPU, seconds, 5),
        (resource.RLIMIT_FSIZE, limits.expanded + 1_000_000, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        _, hard = resource.getrlimit(kind)
        allowed = most + more if hard == resource.RLIM_INFINITY else min(most + more, hard)
        with suppress(ValueError, OSError):  # a system that does not know this one
            resource.setrlimit(kind, (min(most, allowed), allowed))
    os.nice(5)


if __name__ == "__main__":
    main()
