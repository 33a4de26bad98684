"""What the page takes in, keeps, starts and waits for, at most: every number of it in this place.

docs/serve.md lists them, from `Limits.rows`. What a user may change is an option of `pretrace serve`
(`settings.ServeSettings`), and stands in the list as its default.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Unit = Literal["", "s", "bytes", "bytes a second"]


def _limit(number: float, words: str, unit: Unit = "") -> Any:
    return field(default=number, metadata={"words": words, "unit": unit})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a page. Times are in seconds, sizes in bytes (1 MB is a million)."""

    connections: int = _limit(
        200, "Connections at once; a further one closes the oldest of those that have not given the token"
    )
    head_seconds: float = _limit(
        10, "Time for the head of a request, and for the whole login of a visitor without the token", "s"
    )
    head_bytes: int = _limit(16_000, "The head of a request", "bytes")
    login_bytes: int = _limit(8_000, "The body of a login", "bytes")
    body_seconds: float = _limit(30, "Time for the body of a request before its speed counts", "s")
    body_rate: int = _limit(10_000, "The slowest body after that", "bytes a second")
    bodies: int = _limit(4, "Uploads that are received at once")
    tries: int = _limit(5, "Wrong tokens from one address before it has to wait")
    longest_wait: float = _limit(
        60, "The longest wait after a wrong token; each is twice the one before", "s"
    )
    log_records: int = _limit(20, "Messages of the server that are printed a minute")
    files: int = _limit(20, "Collections that one upload makes: each file is one, and each folder")
    fields: int = _limit(200, "Fields of a form")
    field_bytes: int = _limit(4_000_000, "A field of a form that is no file", "bytes")
    part_characters: int = _limit(10_000, "Characters of one option of a test")
    text_characters: int = _limit(1_000_000, "Characters of a single text that is looked at")
    looks: int = _limit(2, "Uploads that are looked into at once")
    look_wait: float = _limit(20, "Time that a further one waits for its turn", "s")
    look_seconds: float = _limit(
        60, "Processor time for looking into an upload; twice that on the clock", "s"
    )
    look_bytes: int = _limit(
        1_500_000_000, "Memory for looking into an upload, the program included", "bytes"
    )
    expanded: int = _limit(
        300_000_000,
        "An upload when it is unpacked: all files of a zip, a .gz file, the cells of a table",
        "bytes",
    )
    entries: int = _limit(20_000, "Files and folders of a zip, or of a folder that is uploaded")
    depth: int = _limit(10, "Folders inside each other there")
    texts: int = _limit(200_000, "Texts of an upload")
    columns: int = _limit(1_000, "Columns of an upload")
    column_characters: int = _limit(100_000, "Characters of the names of all its columns together")
    waiting: int = _limit(20, "Jobs that wait for their turn")
    running: int = _limit(1, "Jobs that run at once")
    stop_seconds: float = _limit(10, "Time in which a job that is stopped may end by itself", "s")
    kept: int = _limit(1_000, "Uploads, texts that were looked at, and jobs in a workspace: of each")

    @staticmethod
    def rows() -> Iterator[tuple[str, str]]:
        """What is limited and to how much, as docs/serve.md shows it."""
        for one in fields(Limits):
            yield str(one.metadata["words"]), _written(one.default, one.metadata["unit"])


def _written(number: Any, unit: Unit) -> str:
    if unit in ("", "s"):
        return f"{number:,}{' s' if unit else ''}"
    scale, name = next((n, word) for n, word in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")) if number >= n)
    return f"{number / scale:g} {name}{unit.removeprefix('bytes')}"
