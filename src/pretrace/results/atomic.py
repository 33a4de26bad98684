"""Files and folders written whole or not at all, where nothing is lost by it: made beside their place, then renamed.

What is under way is called `.NAME.partial-PID-…`, what it replaces is for a moment `.NAME.old-PID-…`; both
lie in the same folder as NAME. What a killed process left of them is tidied away when met again.

One rule for every path that a user names to be written: what pretrace did not write is not replaced, and a result is
replaced only by a result of the same kind. It is asked before anything is written, and again when that is put in its
place.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from pretrace.errors import OutputError, PretraceError

FILES_KEY = "files"
MARKER, RESULT = "run.json", "result.json"
CARD, CARD_KEY = "card.json", "pretrace_planted"
ADAPTER_CARD, ADAPTER_KEY = "adapter_card.json", "pretrace_adapter"


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of folder: what it is called, its JSON part (`marker`), by whose `key` it is known and which holds the
    number of its `format`; in messages what writes it, and what mends a damaged one. A result replaces none of another
    `test` ("" where that does not matter)."""

    name: str
    marker: str
    key: str
    format: int = 1
    writer: str = ""
    cure: str = ""
    sealed: bool = True
    test: str = ""

    def of(self, test: str) -> FolderKind:
        """The same kind, of one test alone."""
        return replace(self, test=test)


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A kind of file: what it is called, and whether the file at a path is an earlier one."""

    name: str
    known: Callable[[Path], bool]


ADAPTER = FolderKind("adapter", ADAPTER_CARD, ADAPTER_KEY)
PLANTED = FolderKind("planted model", CARD, CARD_KEY)
RUN = FolderKind("run", MARKER, "pretrace_run", 1, "--out", "run the detection again", sealed=False)
VERDICTS = FolderKind(
    "test result", RESULT, "pretrace_verdict", 2, "one of pretrace's tests", "run the test again"
)
_FOLDERS = (RUN, PLANTED, ADAPTER, VERDICTS)  # all that pretrace writes as a folder

OWN = OutputFile("file", lambda path: True)
"""A file in a place of pretrace's own, such as its cache: whatever is there may go."""
NEW = OutputFile("file", lambda path: False)
"""A file that takes the place of none."""

_LITTER = {".DS_Store", "Thumbs.db", "desktop.ini"}  # file browsers leave these; nobody misses them

_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
# Names this process is working under; its id may be that of a killed one (in a container it often is 1).
_under_way: set[str] = set()


def write_atomically(path: Path, write: Callable[[Path], object], output: OutputFile = OWN) -> None:
    """Let `write` fill a file beside `path` (same suffix) and rename it to `path` when it is complete. An earlier file
    of the kind of `output` is replaced, never with `NEW`; without one the place is pretrace's own. On failure nothing
    has changed; an OSError becomes an OutputError."""
    with explained(path):
        place = _resolved(path)
        check_file(place, output)
        with _beside(place, place.suffix) as partial:
            write(partial)
            _flush(partial)
            check_file(place, output)
            if output is NEW:
                _link(partial, place)
            else:
                partial.replace(place)


def _link(partial: Path, place: Path) -> None:
    """Give a finished file its name, unless that was taken meanwhile: a link, unlike a renaming, then fails."""
    try:
        os.link(partial, place)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: the name is taken before it is filled
        place.open("xb").close()
        partial.replace(place)


def atomic_bytes(path: Path, content: bytes, output: OutputFile = OWN) -> None:
    """Write a file whole or not at all; OutputError where that fails, or where something else is there."""
    write_atomically(path, lambda partial: partial.write_bytes(content), output)


def atomic_text(path: Path, text: str, output: OutputFile = OWN) -> None:
    """Write a UTF-8 file whole or not at all, a lone surrogate as its escape; OutputError on failure."""
    atomic_bytes(path, text.encode("utf-8", "backslashreplace"), output)


@contextmanager
def new_folder(path: Path, output: FolderKind | None = None) -> Iterator[Path]:
    """A folder to fill, which takes the place of `path` when the block ends well: of an empty folder, and with `output`
    of an earlier result of its kind; of two writers the last one wins whole. On failure nothing has changed.
    OutputError where `path` holds anything else, and in place of an OSError."""
    with explained(path):
        place = _resolved(path)
        _check_replaceable(place, output)
        with _beside(place) as partial:
            partial.mkdir()
            yield partial
            for written in filter(Path.is_file, partial.rglob("*")):
                _flush(written)
            _install(partial, place, output)


def check_writable(path: Path, output: FolderKind | OutputFile | None = None) -> None:
    """Raise OutputError if a folder or file of this kind could not be written at `path`; without a kind, one that takes
    the place of nothing. To be called before the work starts; leaves nothing behind."""
    with explained(path):
        place = _resolved(path)
        if isinstance(output, OutputFile):
            check_file(place, output)
        else:
            _check_replaceable(place, output)
        nearest = next(parent for parent in place.parents if parent.exists())
        with tempfile.TemporaryFile(dir=nearest) as probe:
            probe.write(bytes(4096))
            probe.flush()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns an error of the system, also a wrapped one, into an OutputError that names `path` and the cure."""
    try:
        yield
    except PretraceError:
        raise
    except BaseException as error:
        system = error.__context__ if isinstance(error, RuntimeError) else error  # torch.save wraps it
        found = re.search(r"\(os error (\d+)\)", str(error))  # safetensors and tokenizers, which are Rust
        if found and not isinstance(system, OSError):
            system = OSError(int(found[1]), os.strerror(int(found[1])))
        if not isinstance(system, OSError):
            raise
        what, cure = system.strerror or str(system), "choose a place where files can be made"
        if system.errno in (errno.ENOSPC, errno.EDQUOT):
            what, cure = "the disk is full", "free some space or choose another place"
        raise OutputError(f"{path} cannot be written: {what}; {cure}.") from error


def _resolved(path: Path) -> Path:
    place = Path(os.path.realpath(path))  # a link stays a link: what it points to is replaced
    with suppress(FileNotFoundError):  # but a name too long, or below a file, is an error already
        place.lstat()
    return place


@contextmanager
def _beside(place: Path, suffix: str = "") -> Iterator[Path]:
    """A name to work under in the same folder, which is made; whatever bears it when the block ends is deleted."""
    missing = [parent for parent in place.parents if not parent.exists()]
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _tidy(place)
        path = _name(place, "partial", suffix)
        _under_way.add(path.name)
        try:
            yield path
        finally:
            _delete(path)
            _under_way.discard(path.name)
    except BaseException:
        for parent in missing:
            with suppress(OSError):
                parent.rmdir()
        raise


def _name(place: Path, kind: str, suffix: str = "") -> Path:
    return place.with_name(f".{_label(place)}.{kind}-{os.getpid()}-{_HOST}-{secrets.token_hex(4)}{suffix}")


def _label(place: Path) -> str:
    """The name, or a hash of one that another word could make too long for a file system."""
    name = os.fsencode(place.name)
    return place.name if len(name) <= 100 else hashlib.sha256(name).hexdigest()[:32]


def _tidy(place: Path) -> None:
    """Delete what killed processes left beside `place`; put back what one had just moved out of it."""
    pattern = re.compile(
        rf"\.{re.escape(_label(place))}\.(partial|old)-(\d+)-{_HOST}-[0-9a-f]{{8}}({re.escape(place.suffix)})?"
    )
    for entry in sorted(place.parent.iterdir()):
        found = pattern.fullmatch(entry.name)
        if found is None or _is_alive(int(found[2]), entry.name):
            continue
        if found[1] == "old" and not place.exists():
            with suppress(OSError):
                entry.rename(place)
        else:
            _delete(entry)


def _is_alive(process: int, name: str) -> bool:
    if process == os.getpid():
        return name in _under_way
    if os.name != "posix":
        return True  # elsewhere os.kill(pid, 0) does not merely ask
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _install(partial: Path, place: Path, output: FolderKind | None) -> None:
    """Rename `partial` to `place`, moving an earlier result out of the way as often as one turns up there; where that
    fails, the last one comes back."""
    moved: list[Path] = []
    try:
        while True:
            try:
                partial.rename(place)  # takes the place of an empty folder too
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) and not os.path.lexists(place):
                    raise
            _check_replaceable(place, output)
            moved.append(_name(place, "old"))
            _under_way.add(moved[-1].name)
            with suppress(FileNotFoundError):  # another writer was quicker, and took it away
                place.rename(moved[-1])
    finally:
        for old in reversed(moved):
            with suppress(OSError):
                if not os.path.lexists(place):
                    old.rename(place)
            if os.path.lexists(place):  # else old is all there is
                _delete(old)
            _under_way.discard(old.name)


def _flush(path: Path) -> None:
    """Have the operating system bring a file to the disk, so that a full one is noticed before it gets its name."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def json_with(*keys: str) -> Callable[[Path], bool]:
    """Whether a file is a JSON object with these keys."""
    return lambda path: keys == tuple(key for key in keys if key in (json_object(path) or {}))


def check_file(place: Path, output: OutputFile) -> None:
    """Raise OutputError unless `place` is free, or holds an earlier file of the same kind."""
    if place.is_dir():
        raise OutputError(f"{place} is a folder; give the name of a file.")
    if not os.path.lexists(place):
        return
    if not place.is_file():
        raise OutputError(
            f"{place} is a device or a pipe, which cannot be replaced; give the name of a file."
        )
    if not output.known(place):
        why = "" if output is NEW else f", and it is no {output.name} that pretrace wrote"
        raise OutputError(
            f"{place} is there already{why}: it is not replaced. Choose another name, or delete it."
        )


def _check_replaceable(place: Path, output: FolderKind | None = None) -> None:
    """Raise OutputError unless `place` is free, an empty folder, or one that pretrace wrote and that holds a result of
    the kind of `output`; without one, unless it is free or empty."""
    for _ in range(100):
        before = _identity(place)
        objection = None if before is None else _objection(place, output)
        if objection is None:
            return
        if _identity(place) == before:
            break  # else another writer swapped the folder while we looked: what we saw was half of each
    raise OutputError(objection)


def recorded_files(folder: Path) -> set[str]:
    """The files that the JSON files of a folder of ours name, themselves among them, by their paths from there."""
    return {name for kind, facts in _found(folder) for name in (kind.marker, *(facts.get(FILES_KEY) or ()))}


def _identity(place: Path) -> tuple[int, int, int] | None:
    try:
        found = place.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _objection(place: Path, output: FolderKind | None) -> str | None:
    if not place.is_dir():
        return f"{place} is a file; choose another name for the folder."
    here = False
    with suppress(OSError):
        here = Path.cwd().is_relative_to(place)
    if os.path.ismount(place) or here:
        what = "a mounted drive" if os.path.ismount(place) else "the folder you are in"
        return f"{place} is {what}, which cannot be replaced; choose a folder in it: {place / 'run'}"
    try:
        for kind, facts in _found(place):
            test = facts.get("test")
            if output is None or kind.marker != output.marker or output.test not in ("", test):
                what = f"{'an' if kind.name[0] in 'aeiou' else 'a'} {kind.name}{f' ({test})' if test else ''}"
                return f"{place} holds {what}, which is not replaced; choose another folder."
        strange = list(islice(_strangers(place, recorded_files(place)), 4))
    except FileNotFoundError:
        return f"{place} vanishes and comes back; choose another folder."
    if not strange:
        return None
    shown = ", ".join(strange[:3]) + (", …" if len(strange) > 3 else "")
    return f"{place} holds files that belong to no result ({shown}); choose another folder."


def _found(place: Path) -> Iterator[tuple[FolderKind, Mapping[str, Any]]]:
    for kind in _FOLDERS:
        facts = json_object(place / kind.marker)
        if facts is not None and kind.key in facts:
            yield kind, facts


def _strangers(place: Path, ours: set[str]) -> Iterator[str]:
    """What lies in a folder and is not `ours`: its entries where nothing is, else the files below it."""
    if not ours:
        yield from sorted(entry.name for entry in place.iterdir() if entry.name not in _LITTER)
        return
    for root, folders, files in os.walk(place):
        links = [name for name in folders if Path(root, name).is_symlink()]
        for name in sorted((*files, *links)):
            path = Path(root, name).relative_to(place).as_posix()
            if name not in _LITTER and path not in ours:
                yield path


def json_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file, without a wait for what is no file; None where there is none, or no such file."""
    try:
        found = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
