"""Where caches lie, by which key a text is found in them, what lies there, and taking some of it away."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pretrace.errors import OutputError
from pretrace.results.atomic import explained


def cache_folder() -> Path:
    """Where caches lie: PRETRACE_CACHE unless that is off, `pretrace` below XDG_CACHE_HOME, or ~/.cache/pretrace."""
    try:
        if (chosen := os.environ.get("PRETRACE_CACHE", "off")) not in ("", "off"):
            return Path(chosen).expanduser()
        shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
        if shared.is_absolute():  # the XDG specification wants relative ones ignored
            return shared / "pretrace"
        return Path.home() / ".cache" / "pretrace"
    except RuntimeError as error:
        raise OutputError(f"no place for the cache: {error}; set PRETRACE_CACHE to a folder.") from error


def text_key(text: str, after: str = "") -> bytes:
    """The key of a text, read after another one or after none: 32 bytes that change with any character of either, lone
    surrogates included."""
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return hashlib.sha256(b"after" + text_key(after) + key).digest() if after else key


KINDS = {
    "traces": "log-probabilities of texts",
    "continuations": "continuations of texts",
    "neighbors": "neighbours of texts",
    "written": "answers and translations",
    "adapters": "tuned adapters",
    "planted": "planted models of a power measurement that was stopped",
    "gguf": "unpacked .gguf files",
    "hashes": "hashes of files of weights",
}
"""The folders of the cache that can be made again. The others, `audits.jsonl` and `servers`, say what was done and met
on this machine: they stay."""
_OURS = re.compile(r"[0-9a-f]{16,64}(-v\d+\.sqlite(\.damaged)?|\.json)?")
_BESIDE = ("-wal", "-shm")


@dataclass(frozen=True, slots=True)
class CachedFile:
    """One file or folder of the cache. `entries` is None where it has none to count, or they cannot be counted; `model`
    is what it says of the model it belongs to: the beginning of the weights' SHA-256, or a server's name for it."""

    kind: str
    path: Path
    size: int
    changed: float
    entries: int | None
    model: str
    fingerprint: str


def kept(folder: Path | None = None) -> tuple[CachedFile, ...]:
    """Everything in the cache that can be made again, by kind."""
    found = [(kind, path) for kind in KINDS for path in sorted((folder or cache_folder()).glob(f"{kind}/*"))]
    ours = [(kind, path) for kind, path in found if _OURS.fullmatch(path.name) and not path.is_symlink()]
    return tuple(_described(kind, path) for kind, path in ours)


def remove(some: Collection[CachedFile]) -> int:
    """Take these away; the bytes that were freed. OutputError where one cannot be removed."""
    for one in some:
        with explained(one.path):
            if one.path.is_dir():
                shutil.rmtree(one.path)
                continue
            # the main file first: sqlite throws away a log without one, so a kill in between is harmless
            for path in (one.path, *_logs(one.path)):
                path.unlink(missing_ok=True)
    return sum(one.size for one in some)


def _described(kind: str, path: Path) -> CachedFile:
    parts = [path, *_logs(path)] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    states = [part.stat() for part in parts]
    size = sum(state.st_size for state in states)
    changed = max((state.st_mtime for state in states), default=path.stat().st_mtime)
    entries, fingerprint = _looked_into(path) if path.suffix == ".sqlite" else (None, "")
    return CachedFile(kind, path, size, changed, entries, _model(fingerprint), fingerprint)


def _logs(path: Path) -> list[Path]:
    found = (path.with_name(path.name + suffix) for suffix in _BESIDE)
    return [one for one in found if one.exists()]


def _looked_into(path: Path) -> tuple[int | None, str]:
    """How many entries a file has, and the fingerprint of its model; nothing of a damaged one."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            [[number]] = connection.execute("SELECT count(*) FROM entries")
            rows = connection.execute("SELECT value FROM meta WHERE name = 'fingerprint'").fetchall()
    except sqlite3.Error:
        return None, ""
    return int(number), bytes(rows[0][0]).decode("utf-8", "replace") if rows else ""


def _model(fingerprint: str) -> str:
    """The innermost model that a fingerprint names."""
    try:
        found: Any = json.loads(fingerprint)
    except ValueError:
        return ""
    for _ in range(5):
        if not isinstance(found, dict):
            return ""
        if name := found.get("weights") or found.get("model"):
            return str(name)[:12] if re.fullmatch(r"[0-9a-f]{64}", str(name)) else str(name)
        inner = next(
            (found[one] for one in ("base", "continued by", "followed by", "causal") if one in found), ""
        )
        found = json.loads(inner) if isinstance(inner, str) and inner.startswith("{") else inner
    return ""
