"""Opened files: packed or not, with what the operating system says of them as a TextsError."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from pretrace.errors import TextsError


@contextmanager
def refused_politely(source: str) -> Iterator[None]:
    """Turn what the operating system and gzip say of a source into a TextsError."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TextsError(f"{source} is not a whole gzip file: {error}") from None
    except OSError as error:
        raise TextsError(f"{source} cannot be read: {error.strerror or error}.") from None


def standard_input() -> BinaryIO:
    """The bytes of standard input; TextsError where it is closed."""
    if sys.stdin is None:
        raise TextsError("standard input is closed: name a file, or lead the texts here with |.")
    return sys.stdin.buffer


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """The bytes of a file, unpacked where its name ends in `.gz`."""
    if not path.name.lower().endswith(".gz"):
        with path.open("rb") as stream:
            yield stream
        return
    with gzip.open(path, "rb") as packed:
        yield io.BufferedReader(cast(io.RawIOBase, packed))


def refuse_utf16(stream: io.BufferedReader, source: str) -> None:
    """TextsError for UTF-16. The mark alone may be two stray bytes; with a NUL near it, the file really is UTF-16."""
    head = stream.peek(4096)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in head:
        raise TextsError(f"{source} is written in UTF-16, and UTF-8 is wanted: convert it first.")
