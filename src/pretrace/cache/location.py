"""Where caches lie, and by which key a text is found in them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from pretrace.errors import OutputError


def cache_folder() -> Path:
    """Where caches lie: PRETRACE_CACHE, else `pretrace` below XDG_CACHE_HOME, else ~/.cache/pretrace."""
    try:
        if chosen := os.environ.get("PRETRACE_CACHE"):
            return Path(chosen).expanduser()
        shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
        if shared.is_absolute():  # the XDG specification wants relative ones ignored
            return shared / "pretrace"
        return Path.home() / ".cache" / "pretrace"
    except RuntimeError as error:
        raise OutputError(
            f"no place for the trace cache: {error}; set PRETRACE_CACHE to a folder, or pass --no-cache."
        ) from error


def text_key(text: str, after: str = "") -> bytes:
    """The key of a text, read after another one or after none: 32 bytes that change with any character of either, lone
    surrogates included."""
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return hashlib.sha256(b"after" + text_key(after) + key).digest() if after else key
