"""The sealed file: all variants of every text, and which of them was drawn. Written once, for the owner alone."""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pretrace.errors import ExpressionError, OutputError, TextsError
from pretrace.results.atomic import explained
from pretrace.results.serialization import from_json, from_plain, to_json, to_plain
from pretrace.types import Corpus, Text
from pretrace.verdicts.marking.variants import Trigger, collapsed

# A public value that nobody can know beforehand, and the draw that follows from it and from a commitment.
#
# The commitment names which value will be used before that value exists. Then neither the owner of the texts, who
# made the versions, nor anybody else can choose which of them is published.


DRAND, BITCOIN = "drand", "bitcoin"
_GENESIS, _PERIOD = 1_692_803_367, 3
"""The first round of drand's chain quicknet in seconds since 1970, and the seconds from one round to the next (chain
52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971, docs.drand.love)."""
_BLOCK, _BLOCK_TIME, _SPACING = 840_000, 1_713_571_767, 600
"""A block of Bitcoin, its time in seconds since 1970, and the seconds between blocks that the protocol aims at."""
_LEADING_ZEROS = 12
"""Hexadecimal zeros that the hash of every block of these years begins with."""
_FEWEST_DIGITS = 8
"""A random value of 64 digits hardly ever has fewer different ones."""
_NAMED = re.compile(r"(drand|bitcoin):([0-9]{1,12})")
_VALUE = re.compile(r"(?<![0-9A-Za-z])(?:0x)?([0-9A-Fa-f]{64})(?![0-9A-Za-z])")


@dataclass(frozen=True, slots=True)
class Beacon:
    """Which public value decides the draw, "drand" with its round or "bitcoin" with its height, and the value in
    hexadecimal digits once it is known."""

    source: str
    number: int
    value: str = ""

    @property
    def words(self) -> str:
        """What it is, for a sentence."""
        if self.source == DRAND:
            return f"round {self.number} of the public random beacon drand (chain quicknet)"
        return f"the hash of block {self.number} of Bitcoin"

    @property
    def where(self) -> str:
        """Where anybody can look it up."""
        if self.source == DRAND:
            chain = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
            return f"“randomness” in https://api.drand.sh/{chain}/public/{self.number}"
        return f"the hash of block {self.number} in any explorer of Bitcoin blocks"

    @property
    def time(self) -> datetime:
        """When it is published: to the second for drand, as the protocol aims at for Bitcoin."""
        if self.source == DRAND:
            return datetime.fromtimestamp(_GENESIS + _PERIOD * (self.number - 1), UTC)
        return datetime.fromtimestamp(_BLOCK_TIME + _SPACING * (self.number - _BLOCK), UTC)

    @property
    def when(self) -> str:
        """When it is published, in words."""
        if self.source == DRAND:
            return f"on {self.time:%Y-%m-%d at %H:%M:%S} UTC"
        return f"about {self.time:%Y-%m-%d}"


def named(written: str, now: datetime | None = None) -> Beacon:
    """The beacon that is named, `drand:ROUND` or `bitcoin:HEIGHT`; ExpressionError for none, or one of the past."""
    found = _NAMED.fullmatch(written.strip())
    now = now or datetime.now(UTC)
    if found is None:
        later = now + timedelta(hours=1)
        soon = int((later.timestamp() - _GENESIS) // _PERIOD) + 1
        raise ExpressionError(
            f"--beacon names a public value that is still to come, drand:ROUND or bitcoin:HEIGHT; found "
            f"{written[:80]!r}. In an hour comes drand:{soon}."
        )
    try:
        beacon = Beacon(found[1], int(found[2]))
        past = beacon.time <= now
    except (OverflowError, ValueError):
        raise ExpressionError(
            f"--beacon {written} lies too far in the future: name one of the next days."
        ) from None
    if past:
        again = int((now.timestamp() - _GENESIS) // _PERIOD) + 1 + 1200
        instead = f"; in an hour comes drand:{again}" if beacon.source == DRAND else ""
        raise ExpressionError(
            f"--beacon {written} is no value of the future: it was published {beacon.when}, and whoever knows it can "
            f"choose versions that suit it{instead}."
        )
    return beacon


def with_value(beacon: Beacon, written: str, now: datetime | None = None) -> Beacon:
    """The beacon with its value, which is written or stands in a file; TextsError for what cannot be one."""
    value = _value(written)
    if beacon.source == DRAND and beacon.time > (now or datetime.now(UTC)):
        raise TextsError(
            f"{beacon.words} is published {beacon.when}: its value cannot be known yet. Wait until then."
        )
    zeros = value.startswith("0" * _LEADING_ZEROS)
    if beacon.source == BITCOIN and not zeros:
        raise TextsError(
            f"{value} is not the hash of a block: these begin with {_LEADING_ZEROS} zeros or more. Give {beacon.where}."
        )
    if (zeros and beacon.source == DRAND) or len(set(value.lstrip("0"))) < _FEWEST_DIGITS:
        raise TextsError(f"{value} is no random value: give {beacon.where}.")
    return replace(beacon, value=value)


def drawn(commitment: str, beacon: Beacon, name: str, number: int) -> int:
    """Which of so many versions of the text `name` is published, from 0: HMAC-SHA-256 with commitment and value as the
    key and the text's id as the message, as a number, modulo the versions (no version is likelier than another by more
    than 2**-200)."""
    key = bytes.fromhex(commitment) + bytes.fromhex(beacon.value)
    digest = hmac.new(key, name.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    return int.from_bytes(digest, "big") % number


def _value(written: str) -> str:
    words, place = written, Path(written)
    if not _VALUE.fullmatch(written.strip()):
        try:
            words = place.read_bytes()[:1000].decode("utf-8", "replace").strip().partition("\n")[0]
        except OSError:
            raise TextsError(
                f"--beacon-value takes 64 hexadecimal digits, or a file that begins with them; found {written[:80]!r}."
            ) from None
        except ValueError:
            raise OutputError(f"{written[:80]!r} is no path and no value of a beacon.") from None
    found = {str(one).lower() for one in _VALUE.findall(words)}
    if len(found) != 1:
        raise TextsError(
            f"--beacon-value takes 64 hexadecimal digits, or a file that begins with them; "
            f"{written[:80]!r} does not."
        )
    return found.pop()


FORMAT, UNDRAWN_FORMAT, KEY = 1, 2, "pretrace_seal"
"""A sealed file holds the draw (1), or names the public value that the draw will follow from (2)."""
UNDRAWN = -1
_FUTURE = timedelta(days=1)
"""By how much a sealed file may be younger than now: clocks differ."""
Source = Literal["columns", "texts", "rewriter", "words", "canary"]
"""Where variants come from."""
_HASH = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{64}(?![0-9A-Za-z])")
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES)


@dataclass(frozen=True, slots=True)
class Marked:
    """A text with its variants; `drawn` is the place of the one that is published, -1 before the draw. With a trigger,
    the variant k ends the trigger's sentence with its word k."""

    id: str
    variants: tuple[str, ...]
    drawn: int
    group: str = ""
    trigger: Trigger | None = None

    @property
    def published(self) -> str:
        """The variant that is published; TextsError before the draw."""
        if self.drawn == UNDRAWN:
            raise TextsError(
                f"for the text {self.id!r} nothing was drawn yet: make the draw with pretrace mark draw."
            )
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
    `order` holds the ids as the texts came. `about` says how the variants were made. `beacon` is the public value that
    decides the draw, None where it was drawn when the file was made. `sha256` is that of the file, "" for one that is
    not written yet.
    """

    name: str
    source: Source
    nonce: str
    made: str
    documents: tuple[Marked, ...]
    unmarked: tuple[Unmarked, ...] = ()
    order: tuple[str, ...] = ()
    score: str = "loss"
    totals: bool = False
    notes: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    beacon: Beacon | None = None
    sha256: str = ""

    @property
    def is_drawn(self) -> bool:
        """Whether it is known which variants are published."""
        return all(one.drawn != UNDRAWN for one in self.documents)

    @property
    def made_at(self) -> datetime:
        """When the file says that it was made."""
        return datetime.fromisoformat(self.made)

    @property
    def earliest(self) -> datetime:
        """Before this nobody can have read the published variants: the time of the public value that decided them, or
        the time that the file itself says."""
        return self.beacon.time if self.beacon is not None else self.made_at

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
    def described(self) -> dict[str, Any]:
        """What a result records of the seal."""
        more = {"beacon": asdict(self.beacon)} if self.beacon is not None else {}
        return {
            "sha256": self.sha256,
            "made": self.made,
            "source": self.source,
            "about": dict(self.about),
            **more,
        }


def sealed_bytes(seal: Seal) -> bytes:
    """The content of the sealed file."""
    plain = to_plain(seal, "seal")
    del plain["sha256"]
    if seal.beacon is None:
        del plain["beacon"]  # as sealed files were before there were beacons
    return to_json({KEY: FORMAT if seal.beacon is None else UNDRAWN_FORMAT, **plain})


def drawn_by(seal: Seal, value: str) -> Seal:
    """The seal with the draw that follows from its commitment and from the beacon's `value`, which is written or stands
    in a file. TextsError for a seal that names no beacon, and for what cannot be its value."""
    if seal.beacon is None:
        raise TextsError(
            "this sealed file holds its draw and names no beacon: leave the beacon's value away."
        )
    beacon = with_value(seal.beacon, value)
    documents = tuple(
        replace(one, drawn=drawn(seal.sha256, beacon, one.id, len(one.variants))) for one in seal.documents
    )
    return replace(seal, documents=documents, beacon=beacon)


def drawn_seal(seal: Seal, value: str | None) -> Seal:
    """The seal with its draw, which takes the beacon's `value` where it names one; TextsError where the value is
    missing, has no use, or cannot be one."""
    if seal.beacon is not None and value is None:
        raise TextsError(
            f"this sealed file was drawn by {seal.beacon.words}: give its value with --beacon-value, or the file "
            "beacon.txt that pretrace mark draw wrote."
        )
    return seal if value is None else drawn_by(seal, value)


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
    """Write a sealed file, readable by its owner alone, whole or not at all. OutputError where there is one already or
    it cannot be written."""
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
        form = plain.pop(KEY, None)
        if form not in (FORMAT, UNDRAWN_FORMAT):
            raise ValueError(f"it is no sealed file of format {FORMAT} or {UNDRAWN_FORMAT}")
        seal = from_plain(Seal, plain, "seal")
        _check(seal, undrawn=form == UNDRAWN_FORMAT)
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


def _check(seal: Seal, *, undrawn: bool) -> None:
    """ValueError for a seal that `mark` cannot have made."""
    if seal.made_at.tzinfo is None:
        raise ValueError("its time has no time zone")
    if undrawn != (seal.beacon is not None):
        raise ValueError("it holds a draw and names a beacon, or neither")
    if seal.beacon is not None and (seal.beacon.value or seal.beacon.time <= seal.made_at):
        raise ValueError("the beacon that it names was known when it was made")
    ids = [one.id for one in seal.documents] + [one.id for one in seal.unmarked]
    if not seal.documents or len(set(ids)) < len(ids) or sorted(ids) != sorted(seal.order):
        raise ValueError("it holds no marked text, or one twice")
    for one in seal.documents:
        if len(one.variants) < 2 or not (
            one.drawn == UNDRAWN if undrawn else 0 <= one.drawn < len(one.variants)
        ):
            raise ValueError(f"the text {one.id!r} has no variant {one.drawn}")
        if len({collapsed(text) for text in one.variants}) < len(one.variants):
            raise ValueError(f"two variants of the text {one.id!r} are equal")
        if one.trigger is not None and len(one.trigger.words) != len(one.variants):
            raise ValueError(f"the trigger of the text {one.id!r} has another number of words")
