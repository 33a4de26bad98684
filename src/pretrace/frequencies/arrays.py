"""Arrays and a few facts in one npz file that says what it is; never pickled."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.errors import TableError
from pretrace.store.atomic import write_atomically

Arrays = Mapping[str, npt.NDArray[Any]]

_FACTS = "pretrace"
_DAMAGE = (OSError, EOFError, ValueError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What zipfile and numpy raise for damaged files; RuntimeError for encryption and methods they do not know."""


def save_arrays(path: Path, kind: str, facts: Mapping[str, Any], arrays: Arrays) -> None:
    """Write the arrays and facts (plain values) whole or not at all; OutputError where that fails."""
    everything: dict[str, Any] = {_FACTS: np.array(json.dumps({"kind": kind, **facts})), **arrays}

    def write(partial: Path) -> None:
        with partial.open("wb") as file:  # given a name, numpy would put .npz behind it
            np.savez(file, **everything)

    write_atomically(path, write)


def load_arrays(path: Path, kind: str, *, cure: str) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The facts and arrays of a file; TableError where it is missing, damaged or holds something else.

    `cure` ends the message about a damaged file: what to do then.
    """
    if not path.is_file():
        raise TableError(f"{path} should hold a {kind}, and there is no such file; check the name.")
    try:
        facts, arrays = _read(path)
    except _DAMAGE as error:
        raise TableError(f"{path} is no {kind} or is damaged ({_first_line(error)}); {cure}.") from error
    found = facts.get("kind")
    if found != kind:
        raise TableError(
            f"{path} should hold a {kind} and holds a {found or 'file of another program'}; give the right file."
        )
    return facts, arrays


def _read(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no npz file")
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    facts = json.loads(str(arrays.pop(_FACTS)))
    if not isinstance(facts, dict):
        raise ValueError("its label cannot be read")
    return facts, arrays


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
