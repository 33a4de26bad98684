"""A public value that nobody can know beforehand, and the draw that follows from it and from a commitment.

The commitment names which value will be used before that value exists. Then neither the owner of the texts, who made
the versions, nor anybody else can choose which of them is published.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pretrace.errors import ExpressionError, OutputError, TextsError

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
