"""`pretrace cache`: what is kept on disk so that it need not be computed twice."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table

from pretrace.cache import KINDS, CachedFile, cache_folder, kept, remove
from pretrace.cli import asks, confirm
from pretrace.cli.commands import Reply, plain_table
from pretrace.errors import ExpressionError
from pretrace.settings import option

_DAY = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """Which part of the cache is cleared; all of it where nothing is said."""

    older_than: float | None = option(
        None, "Only what was not changed for this many days.", panel="", least=0
    )
    model: str | None = option(
        None,
        "Only what is kept of this model: the beginning of its weights' SHA-256 (run.json and `pretrace cache info` "
        "show it), or a server's name for it.",
        panel="",
    )
    yes: bool = option(False, "Do not ask.", panel="")


def info() -> Reply:
    """Where the cache is, what it holds, and how much of which model."""
    found, place = kept(), cache_folder()
    first = f"{place}: {_size_of(found)} in {len(found):,} files and folders."
    rows = [
        {"kind": one.kind, "path": str(one.path), "bytes": one.size, "entries": one.entries}
        | {"model": one.model or None, "changed": _date(one.changed)}
        for one in found
    ]
    said: list[RenderableType] = [first, *([_table(found)] if found else [])]
    own = {"bytes": sum(one.size for one in found), "kept": rows}
    return Reply(said, statement=first, folder=place, own=own)


def clear(chosen: _Chosen) -> Reply:
    """Delete what is kept, or a part of it: it is computed again when it is needed. The record of audits made on this
    machine stays."""
    oldest = time.time() - (chosen.older_than or 0.0) * _DAY
    some = [
        one
        for one in kept()
        if (chosen.older_than is None or one.changed <= oldest)
        and (chosen.model is None or f'"{chosen.model}' in one.fingerprint.replace("\\", ""))
    ]
    what = f"{_size_of(some)} in {len(some):,} files and folders of {cache_folder()}"
    own = {"bytes": sum(one.size for one in some), "removed": [str(one.path) for one in some]}
    if some and not chosen.yes:
        if not asks():
            raise ExpressionError(f"{what} would be deleted: give --yes.")
        if not confirm(f"Delete {what}?", default=False):
            said = "Nothing was deleted."
            return Reply([said], outcome="kept", statement=said, own={"bytes": 0, "removed": []})
    remove(some)
    said = f"Deleted: {what}."
    return Reply([said], outcome="cleared", statement=said, own=own)


def _size_of(some: Sequence[CachedFile]) -> str:
    return f"{sum(one.size for one in some) / 1e6:,.1f} MB"


def _table(found: Sequence[CachedFile]) -> Table:
    """A row a kind and model."""
    groups = dict[tuple[str, str], list[CachedFile]]()
    for one in found:
        groups.setdefault((one.kind, one.model), []).append(one)
    rows = []
    for (kind, model), some in groups.items():
        entries = sum(one.entries or 0 for one in some)
        size, changed = sum(one.size for one in some) / 1e6, _date(max(one.changed for one in some))
        counted = f"{entries:,}" if entries else "–"
        rows.append((f"{kind}: {KINDS[kind]}", model or "–", counted, f"{size:,.1f}", changed))
    return plain_table("what", "model", numbers=("entries", "MB", "changed"), rows=rows)


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
