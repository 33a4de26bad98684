"""Weights out of files: which tensors they hold, what names them, and a model none of whose weights is made up."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pretrace.errors import ModelError, OutputError
from pretrace.results.atomic import atomic_text

_WRAPPERS = re.compile(
    r"^(?:_orig_mod\.)*module\.|(?:^|(?<=\.))(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\."
)
"""What torch.compile, FSDP, activation checkpointing and (distributed) data parallel put into names of weights."""
_HEADER = 8  # bytes of a safetensors file that give the length of its header
_BLOCK = 1 << 24


class Tensors(NamedTuple):
    """A model whose weights all came out of its files, and the names of those in the files that it does not use."""

    model: Any
    unread: tuple[str, ...]


def check_loaded(model: Any, told: Mapping[str, Any], label: str, *, without: str = "") -> tuple[str, ...]:
    """Return the names in the files that the model has no use for, from transformers' `output_loading_info`;
    ModelError where a weight is missing there (but those under `without`, and a tied one whose other is there), or
    has another shape."""
    missing = {name for name in told["missing_keys"] if not (without and name.startswith(without))}
    own = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers())
    read = {id(tensor) for name, tensor in own.items() if name not in missing}
    missing = {name for name in missing if id(own.get(name)) not in read}
    if missing:
        first, more = min(missing), len(missing) - 1
        beside = f" and {more:,} other weights" if more else ""
        raise ModelError(
            f"{label} lacks the weight {first}{beside}: transformers would fill the gap with random numbers. "
            "Save the model anew with save_pretrained, or download all of its files."
        )
    wrong = sorted(one if isinstance(one, str) else one[0] for one in told.get("mismatched_keys") or ())
    if wrong:
        raise ModelError(
            f"{label} has the weight {wrong[0]} in another shape than its config.json says, "
            f"{list(own[wrong[0]].shape)}: they belong to different models. Download both from one place."
        )
    return tuple(sorted(told["unexpected_keys"]))


def unwrapped_state(files: Sequence[Path]) -> dict[str, Any] | None:
    """The tensors of safetensors files under the names of the model itself, where a wrapper of the training was saved
    with it; None where the names are the model's own."""
    if any(path.suffix != ".safetensors" for path in files):
        return None
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if not any(_WRAPPERS.search(name) for path in files for name in read_header(path)):
            return None
        return {plain_name(name): tensor for path in files for name, tensor in load_file(path).items()}
    except (OSError, ValueError, TypeError, LookupError, SafetensorError):
        return None  # opening it says what is wrong with the file


def plain_name(name: str) -> str:
    """The name of a weight without what wrappers of the training put into it."""
    return _WRAPPERS.sub("", name)


# What names weights: their tensors, however they are divided into files.


def weights_hash(files: Sequence[Path], memory: Path | None = None) -> str:
    """SHA-256 over the names, types, shapes and bytes of all tensors, in order of name, in whatever files; one of
    another format than safetensors counts with its bytes. `memory`, a folder, keeps each file's hashes by its
    path, inode, size and times of change."""
    rows = [row for path in files for row in _remembered(path, memory)]
    return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()


def _remembered(path: Path, memory: Path | None) -> list[str]:
    real = path.resolve()
    stat = real.stat()
    state = [str(real), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    kept = memory / hashlib.sha256(json.dumps(state).encode()).hexdigest()[:32] if memory else None
    if kept and kept.is_file():
        known = kept.read_text(encoding="utf-8", errors="replace").splitlines()
        if known and known.pop() == _sealed(known):
            return known
    rows = _hashes(real)
    if kept:
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            atomic_text(kept, "\n".join([*rows, _sealed(rows)]))
        except (OSError, OutputError):
            pass  # only a convenience: the hashes are computed again next time
    return rows


def _sealed(rows: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def _hashes(path: Path) -> list[str]:
    """A row for each tensor of a safetensors file; one for all of another file, or of one that is damaged."""
    try:
        found = read_header(path) if path.suffix == ".safetensors" else {}
        places = {
            name: (one["data_offsets"], json.dumps([one["dtype"], one["shape"]]))
            for name, one in found.items()
        }
        whole = (
            not places or max(end for (_, end), _ in places.values()) + _start(path) != path.stat().st_size
        )
    except (ValueError, TypeError, LookupError):
        whole, places = True, {}
    with path.open("rb") as file:
        if whole:
            return [hashlib.file_digest(file, "sha256").hexdigest()]
        start, rows = _start(path), []
        for name, ((begin, end), kind) in sorted(places.items(), key=lambda one: one[1][0]):
            file.seek(start + begin)
            digest, left = hashlib.sha256(), end - begin
            while left > 0 and (part := file.read(min(left, _BLOCK))):
                digest.update(part)
                left -= len(part)
            rows.append(json.dumps([plain_name(name), kind, digest.hexdigest()]))
    return rows


def _start(path: Path) -> int:
    with path.open("rb") as file:
        return _HEADER + int.from_bytes(file.read(_HEADER), "little")


def read_header(path: Path) -> dict[str, Any]:
    """The tensors of a safetensors file by its header: type, shape and place of each. ValueError where it is none."""
    start = _start(path)
    if start > path.stat().st_size:
        raise ValueError("no header")
    with path.open("rb") as file:
        file.seek(_HEADER)
        try:
            header = json.loads(file.read(start - _HEADER))
        except RecursionError:
            header = None
    if not isinstance(header, dict):
        raise ValueError("no header")
    return {name: one for name, one in header.items() if name != "__metadata__"}
