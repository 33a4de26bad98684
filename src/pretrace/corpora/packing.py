"""Bytes of files and addresses as they were before they were packed, and whether all of them are there.

A packed file is recognised by its first bytes, and a Git LFS pointer is refused. A stream that ends too early raises
EOFError, one that is damaged OSError; `unreadable_explained` makes a TextsError of either.
"""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO

import zstandard

from pretrace.errors import TextsError
from pretrace.results.wording import say

PACKED = (".gz", ".zst", ".zstd", ".bz2", ".xz")
"""Endings of packed files."""
HEAD = 4096
"""Bytes by which a file is recognised."""
_PIECE = 1 << 17
_ZST_PIECE = 1 << 16  # smaller, since zstandard unpacks all of a piece at once
_LONGEST_POINTER = 1024
_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v\d")
_MAGIC = (
    (re.compile(rb"\x1f\x8b"), "gz"),
    (re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL), "zst"),
    (re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), "bz2"),
    (re.compile(rb"\xfd7zXZ\x00"), "xz"),
)
_WINDOW = 1 << 31  # largest window of a zst frame, which some corpora are packed with (`zstd --long=31`)


def without_packing(name: str) -> str:
    """The name of a file without the ending of a packed one."""
    return next((name[: -len(one)] for one in PACKED if name.lower().endswith(one)), name)


def ending_of(name: str) -> str:
    """The ending of a file's name in small letters, without that of a packed one."""
    return Path(without_packing(name.lower())).suffix


def stem_of(name: str) -> str:
    """The name of a file without its folders and endings."""
    return Path(without_packing(Path(name).name)).stem


def _packing_of(head: bytes) -> str:
    """How bytes are packed, by the first ones: gz, zst, bz2, xz, or "" where they are not."""
    return next((name for magic, name in _MAGIC if magic.match(head)), "")


@contextmanager
def open_unpacked(address: str | Path) -> Iterator[io.BufferedReader]:
    """The unpacked bytes of a file, or of an address that fsspec opens. TextsError for a pointer of Git LFS and for a
    pipe, which may stay silent."""
    path, source = Path(address), str(address)
    if isinstance(address, str) and "://" in address:
        import fsspec

        opened = fsspec.open(address, "rb")
    elif path.exists() and not (path.is_file() or path.is_dir()):
        raise TextsError(say("texts.pipe", source=address))
    else:
        opened = path.open("rb")
    with opened as stream:
        raw = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)
        yield unpack_stream(raw, source)


@contextmanager
def unreadable_explained(source: str) -> Iterator[None]:
    """While it lasts, an error of the operating system or of a packed file is a TextsError that names the source."""
    try:
        yield
    except (EOFError, OSError) as error:
        if "://" in source:
            raise TextsError(
                f"{source} cannot be fetched ({error}): check the address, or download it and name the file."
            ) from None
        if isinstance(error, OSError) and error.errno is not None:
            raise TextsError(f"{source} cannot be read: {error.strerror or error}; check the path.") from None
        raise TextsError(f"{source} is damaged or not whole: {error}; fetch it again.") from None


def standard_input() -> BinaryIO:
    """The bytes of standard input; TextsError where it is closed."""
    if sys.stdin is None:
        raise TextsError("standard input is closed: name a file, or lead the texts here with |.")
    return sys.stdin.buffer


def unpack_stream(stream: io.BufferedReader, source: str) -> io.BufferedReader:
    """The unpacked bytes of a stream that is at its beginning. TextsError for a pointer of Git LFS."""
    head = stream.peek(HEAD)[:HEAD]
    if len(head) < _LONGEST_POINTER and _POINTER.match(head):
        raise TextsError(f"{source} is a Git LFS pointer, not the file: run `git lfs pull` there.")
    packing = _packing_of(head)
    return _made_stream(stream, _unpacked(stream, packing)) if packing else stream


def place_of(stream: Any, read: int) -> int:
    """How many bytes of a file itself were read, for a stream of `unpack_stream`; `read` where it does not know."""
    under = getattr(getattr(stream, "raw", None), "under", stream)
    try:
        return int(under.tell())
    except (OSError, ValueError):
        return read


class _MadeStream(io.RawIOBase):
    """A stream whose bytes are made of those of another one, `under`, a piece at a time."""

    def __init__(self, under: IO[bytes], pieces: Iterator[bytes]) -> None:
        self.under, self._pieces, self._output = under, pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, space: Any) -> int:
        """Fill the space with what follows."""
        while not len(self._output):
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._output = memoryview(piece)
        size = min(len(space), len(self._output))
        space[:size] = self._output[:size]
        self._output = self._output[size:]
        return size


def _made_stream(under: IO[bytes], pieces: Iterator[bytes]) -> io.BufferedReader:
    """Such a stream with a buffer, from which bytes can be peeked at."""
    return io.BufferedReader(_MadeStream(under, pieces), 1 << 20)


def _unpacked(under: IO[bytes], packing: str) -> Iterator[bytes]:
    """The bytes of a packed stream, of as many streams as stand behind each other in it."""
    is_zst = packing == "zst"
    given, one = b"", _decompressor(packing)
    while True:
        if not given and getattr(one, "needs_input", True):
            given = under.read(_ZST_PIECE if is_zst else _PIECE)
            if not given:
                raise EOFError(f"its {packing} stream is cut off")
        try:
            made = one.decompress(given, *(() if is_zst else (1 << 20,)))
        except (zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError, EOFError) as error:
            raise OSError(f"its {packing} stream is damaged: {error}") from None
        yield made
        if not one.eof:
            given = getattr(one, "unconsumed_tail", b"")
            continue
        rest = one.unused_data
        while not (given := rest.lstrip(b"\0")):  # padding, which gz and xz allow
            if not (rest := under.read(_PIECE)):
                return
        given += under.read(16)
        if _packing_of(given) != packing:
            raise OSError(f"bytes that are not {packing} stand behind its end")
        one = _decompressor(packing)


def _decompressor(packing: str) -> Any:
    """What unpacks one stream; gz gives back what it did not take (`unconsumed_tail`), others keep it."""
    if packing == "zst":
        return zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
    if packing == "gz":
        return zlib.decompressobj(31)
    return bz2.BZ2Decompressor() if packing == "bz2" else lzma.LZMADecompressor(lzma.FORMAT_XZ)


_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


def encoding_of(head: bytes, named: str | None) -> str:
    """The encoding of a file by its first bytes, or what was named; utf-8-sig is UTF-8 with a mark."""
    for mark, name in _MARKS:
        # two stray bytes are no mark: UTF-16 of any length has a NUL among its first characters
        if head.startswith(mark) and (
            name == "utf-8-sig" or b"\0" in head or not is_utf8(head[len(mark) :], cut=True)
        ):
            return name
    return codecs.lookup(named).name if named else "utf-8"


def as_utf8(stream: io.BufferedReader, source: str, named: str | None = None) -> io.BufferedReader:
    """The bytes of a text file in UTF-8, without a mark; those that are none are left to who reads them."""
    head = stream.peek(HEAD)[:HEAD]
    encoding = encoding_of(head, named)
    if encoding in ("utf-8", "utf-8-sig"):
        if head.startswith(codecs.BOM_UTF8):
            stream.read(len(codecs.BOM_UTF8))
        elif _utf16_without_mark(head):
            raise TextsError(not_utf8(head, source))
        return stream

    def encoded_anew() -> Iterator[bytes]:
        try:
            for made in codecs.iterdecode(iter(partial(stream.read, _PIECE), b""), encoding):
                yield made.encode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            said = f"{source} is not {encoding} ({error.reason}): name another with --reading encoding."
            raise TextsError(said) from None

    return _made_stream(stream, encoded_anew())


def decode_text(raw: bytes, source: str, named: str | None = None) -> str:
    """The characters of a file. TextsError where it is written in another encoding than it says."""
    whole = as_utf8(io.BufferedReader(io.BytesIO(raw)), source, named).read()
    try:
        return whole.decode()
    except UnicodeDecodeError:
        raise TextsError(not_utf8(whole, source, whole=True)) from None


def not_utf8(raw: bytes, where: str, *, whole: bool = False, option: str = "--reading encoding") -> str:
    """What to say of bytes that are no UTF-8, and what helps. `whole`: nothing follows them, so a character that breaks
    off was cut; `option` names an encoding."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        if whole and error.reason == "unexpected end of data" and not raw[: error.start].isascii():
            return f"{where} ends in the middle of a character: it was cut off; fetch it again."
    name = _utf16_without_mark(raw[:HEAD]) or "NAME (cp1252 for older Western European files)"
    return f"{where} is not UTF-8: convert it, or name its encoding with {option}={name}."


def _utf16_without_mark(head: bytes) -> str:
    """The encoding of bytes that are UTF-16 without a mark, which are UTF-8 as well: every other one is NUL."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if 5 * max(even, odd) <= 2 * len(head) or 20 * min(even, odd) > max(even, odd):
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def is_utf8(raw: bytes, *, cut: bool = False) -> bool:
    """Whether bytes are UTF-8; `cut` ones may end in the middle of a character."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw, final=not cut)
    except UnicodeDecodeError:
        return False
    return True
