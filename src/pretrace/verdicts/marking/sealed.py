"""The sealed file: all variants of every text, and which of them was drawn. Written once, for the owner alone."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pretrace.errors import OutputError, TextsError
from pretrace.results.atomic import explained
from pretrace.results.serialization import from_json, from_plain, to_json, to_plain
from pretrace.types import Corpus, Text
from pretrace.verdicts.marking.variants import Trigger, collapsed

FORMAT, KEY = 1, "pretrace_seal"
_FUTURE = timedelta(days=1)
"""By how much a sealed file may be younger than now: clocks differ."""
Source = Literal["columns", "texts", "rewriter", "words", "canary", "order"]
"""Where variants come from."""
_HASH = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{64}(?![0-9A-Za-z])")
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES)


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text with its variants; `drawn` is the place of the one that is published. With a trigger, the variant k ends
    the trigger's sentence with its word k."""

    id: str
    variants: tuple[str, ...]
    drawn: int
    group: str = ""
    trigger: Trigger | None = None

    @property
    def published(self) -> str:
        """The variant that is published."""
        return self.variants[self.drawn]

    @property
    def realised_first(self) -> tuple[str, ...]:
        """All variants, the published one first."""
        others = (one for place, one in enumerate(self.variants) if place != self.drawn)
        return (self.published, *others)


@dataclass(frozen=True, slots=True)
class Unmarked:
    """A text that is published as it is, since it has no variants; it takes no part in the test."""

    id: str
    text: str
    reason: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Seal:
    """What a sealed file holds.

    `score` is the score that is advised for the test, and `totals` whether it is summed over a text and not averaged.
    `order` holds the ids as the texts came. `about` says how the variants were made. `sha256` is that of the
    file, "" for one that is not written yet.
    """

    name: str
    source: Source
    nonce: str
    made: str
    documents: tuple[MarkedText, ...]
    unmarked: tuple[Unmarked, ...] = ()
    order: tuple[str, ...] = ()
    score: str = "loss"
    totals: bool = False
    notes: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    sha256: str = ""

    @property
    def made_at(self) -> datetime:
        """When the file says that it was made; before that nobody can have read the published variants."""
        return datetime.fromisoformat(self.made)

    @property
    def published(self) -> tuple[Text, ...]:
        """What is published, in the order of the texts."""
        found = {one.id: Text(one.id, one.published, group=one.group) for one in self.documents}
        found |= {one.id: Text(one.id, one.text, group=one.group) for one in self.unmarked}
        return tuple(found[name] for name in self.order)

    @property
    def corpus(self) -> Corpus:
        """The published texts that take part in the test."""
        texts = tuple(Text(one.id, one.published, group=one.group) for one in self.documents)
        return Corpus(self.name, texts, source="a sealed file")

    @property
    def parts(self) -> str:
        """What changed places, "rows" or "options"; "" where variants are other than orders."""
        return str(self.about["parts"]) if self.source == "order" else ""

    @property
    def described(self) -> dict[str, Any]:
        """What a result records of the seal."""
        return {
            "sha256": self.sha256,
            "made": self.made,
            "source": self.source,
            "about": dict(self.about),
        }


def sealed_bytes(seal: Seal) -> bytes:
    """The content of the sealed file."""
    plain = to_plain(seal, "seal")
    del plain["sha256"]
    return to_json({KEY: FORMAT, **plain})


def check_seal_place(path: Path, folder: Path) -> None:
    """OutputError where a sealed file must not be written: it exists, or lies within the folder that is published."""
    place = Path(os.path.realpath(path))
    if place.is_relative_to(os.path.realpath(folder)):
        raise OutputError(
            f"--sealed {path} lies in {folder}, which is published, and its content must stay secret: put it elsewhere."
        )
    if os.path.lexists(path):
        raise OutputError(
            f"--sealed {path} is there already, and a sealed file is never overwritten: give a new name."
        )


def write_seal(content: bytes, path: Path) -> None:
    """Write a sealed file for its owner alone, whole or not at all; OutputError where there is one already."""
    partial = path.with_name(f".{path.name[:100]}.partial-{os.getpid()}-{secrets.token_hex(4)}")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write_new(content, partial)
            _install(content, partial, path)
        except FileExistsError:
            raise OutputError(
                f"{path} is there already, and a sealed file is never overwritten: give a new name."
            ) from None
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
        _sync_folder(path.parent)


def read_seal(path: Path, commitment: str | None = None) -> Seal:
    """The seal of a file. With a `commitment`, a SHA-256 or a file that holds one, it must be that of the sealed file.

    OutputError for a file that cannot be read or was changed, TextsError for one whose hash is another, or that says
    that it was made more than a day after now.
    """
    with _explained_reading(path):
        content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if commitment is not None and found != committed(commitment):
        raise TextsError(
            f"{path} is not what was committed to: its SHA-256 is {found}, the commitment is {committed(commitment)}. "
            "Give the file that was written with this commitment, unchanged."
        )
    try:
        plain = from_json(content)
        if plain.pop(KEY, None) != FORMAT:
            raise ValueError(f"it is no sealed file of format {FORMAT}")
        seal = from_plain(Seal, plain, "seal")
        _check(seal)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise OutputError(
            f"{path} is damaged or no sealed file ({error}): give the one that mark wrote."
        ) from None
    now = datetime.now(UTC)
    if seal.made_at > now + _FUTURE:
        raise TextsError(
            f"{path} says that it was made {seal.made}, and this machine's clock says {now:%Y-%m-%d %H:%M} UTC: set "
            "the clock right, or give the file that mark wrote."
        )
    return replace(seal, sha256=found)


def committed(commitment: str) -> str:
    """The SHA-256 that a commitment says: itself, or the one that stands in the file it names. TextsError otherwise."""
    words, place = commitment, Path(commitment)
    if not _HASH.fullmatch(commitment.strip()):
        with _explained_reading(place):
            words = place.read_bytes()[:100_000].decode("utf-8", "replace")
    hashes = {str(one).lower() for one in _HASH.findall(words)}
    if len(hashes) != 1:
        raise TextsError(
            f"--commitment takes a SHA-256 (64 hexadecimal digits) or a file that holds one; {commitment[:100]!r} "
            f"holds {len(hashes) or 'none'}."
        )
    return hashes.pop()


@contextmanager
def _explained_reading(path: Path) -> Iterator[None]:
    """Turns an error of the operating system while `path` is read into an OutputError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"{path} cannot be read: {reason}; check the path.") from error


def _write_new(content: bytes, path: Path) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _install(content: bytes, partial: Path, path: Path) -> None:
    """Give the finished file its name. A link, unlike a renaming, fails where that name is taken."""
    try:
        os.link(partial, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        try:
            _write_new(content, path)
        except FileExistsError:
            raise
        except OSError:
            path.unlink(missing_ok=True)
            raise


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every file system can do that
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _check(seal: Seal) -> None:
    """ValueError for a seal that `mark` cannot have made."""
    if seal.made_at.tzinfo is None:
        raise ValueError("its time has no time zone")
    ids = [one.id for one in seal.documents] + [one.id for one in seal.unmarked]
    if not seal.documents or len(set(ids)) < len(ids) or sorted(ids) != sorted(seal.order):
        raise ValueError("it holds no marked text, or one twice")
    for one in seal.documents:
        if len(one.variants) < 2 or not 0 <= one.drawn < len(one.variants):
            raise ValueError(f"the text {one.id!r} has no variant {one.drawn}")
        if len({collapsed(text) for text in one.variants}) < len(one.variants):
            raise ValueError(f"two variants of the text {one.id!r} are equal")
        if one.trigger is not None and len(one.trigger.words) != len(one.variants):
            raise ValueError(f"the trigger of the text {one.id!r} has another number of words")
