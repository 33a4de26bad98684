"""Parts of a table on disk, each with a manifest, which alone makes it count.

A part is written under a name that ends in its own hash, then its manifest under the name of the shard and the job.
Both are written under another name, flushed and renamed. So a process that is killed leaves nothing that counts by
half, and two that work on the same shard leave two whole parts, of which the manifest names one.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrace.errors import OutputError
from pretrace.results.atomic import atomic_bytes
from pretrace.results.serialization import from_json, from_plain, to_json, to_plain
from pretrace.types import Heat, Missing, Skipped

_DAMAGED = (ValueError, TypeError, LookupError, OverflowError)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A text from an end of the first score of a shard: its score, its place among the scored texts of the shard, and
    its tokens."""

    score: float
    place: int
    label: str
    heat: Heat


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a part holds: `rows` and `texts` of the shard `index`, its file and the SHA-256 of that, the texts without
    a score, the cells without a value, and the texts from both ends of the first score. `seen` counts the texts that
    have it."""

    index: int
    key: str
    texts: int
    rows: int
    file: str
    sha256: str
    seen: int
    skipped: tuple[Skipped, ...]
    missing: tuple[Missing, ...]
    ends: tuple[Ranked, ...]


_OURS = re.compile(r"(job-[0-9a-f]{16}|[0-9a-f]{32}-[0-9a-f]{16})\.(json|parquet)|unreadable\.jsonl")
_UNDER_WAY = re.compile(r"\..+\.(partial|old)-\d+-.+")


def check_parts(folder: Path) -> None:
    """OutputError where a folder of parts holds anything that no job wrote."""
    if not folder.is_dir():
        return
    names = sorted(entry.name for entry in folder.iterdir() if not _UNDER_WAY.fullmatch(entry.name))
    strange = [name for name in names if not _OURS.fullmatch(name)]
    if not strange and not any(name.startswith("job-") for name in names):
        strange = names
    if strange:
        shown = ", ".join(strange[:3]) + (", …" if len(strange) > 3 else "")
        raise OutputError(
            f"{folder} holds files that are no parts of a run ({shown}); choose another folder with --parts."
        )


def remove_parts(folder: Path) -> None:
    """Delete what jobs wrote to a folder of parts, and the folder where nothing else is in it; what cannot be deleted
    stays."""
    with suppress(OSError):
        for entry in list(folder.iterdir()):
            if _OURS.fullmatch(entry.name) or _UNDER_WAY.fullmatch(entry.name):
                entry.unlink(missing_ok=True)
        folder.rmdir()


class Parts:
    """The parts of one job in a folder, which other jobs may share. `job` is the hash of what the numbers depend on
    besides the texts."""

    def __init__(self, folder: Path, job: str) -> None:
        self.folder, self.job = folder, job

    def manifest(self, key: str) -> Manifest | None:
        """The manifest of a shard's part; None where there is none that can be read, or where its part is missing."""
        try:
            found = from_plain(Manifest, from_json(self._place(key).read_bytes()), "manifest")
        except (OSError, *_DAMAGED):
            return None
        return found if self.path(found).exists() else None

    def path(self, manifest: Manifest) -> Path:
        """Where a part lies."""
        return self.folder / manifest.file

    def write(self, key: str, table: Any, facts: Mapping[str, Any]) -> None:
        """Write the part of a shard, a pyarrow table, and then its manifest with these facts; OutputError where
        that fails."""
        import pyarrow.parquet as pq

        made = io.BytesIO()
        pq.write_table(table, made)
        content = made.getvalue()
        checksum = hashlib.sha256(content).hexdigest()
        file = f"{key}-{checksum[:16]}.parquet"
        atomic_bytes(self.folder / file, content)
        manifest = Manifest(key=key, rows=table.num_rows, file=file, sha256=checksum, **facts)
        atomic_bytes(self._place(key), to_json(to_plain(manifest, "manifest")))

    def table(self, manifest: Manifest, columns: list[str] | None = None) -> Any:
        """The table of a part, or some columns of it; OutputError where it is damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with self.path(manifest).open("rb") as file:
                return pq.read_table(file, columns=columns, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise self.damaged(manifest, str(error)) from error

    def check(self, manifest: Manifest) -> None:
        """OutputError unless the part has the hash that its manifest says."""
        with self.path(manifest).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != manifest.sha256:
                raise self.damaged(manifest, "its hash is another than its manifest says")

    def damaged(self, manifest: Manifest, reason: str) -> OutputError:
        """The error for a part that cannot be used."""
        path = self.path(manifest)
        return OutputError(
            f"{path} is damaged ({reason}): delete it, and run the command again to make it anew."
        )

    def _place(self, key: str) -> Path:
        return self.folder / f"{key}-{self.job[:16]}.json"
