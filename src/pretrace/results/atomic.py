"""Files and folders written whole or not at all: made beside their place, then renamed into it.

What is under way is called `.NAME.partial-PID-…`, what it replaces is for a moment `.NAME.old-PID-…`; both
lie in the same folder as NAME. What a killed process left of them is tidied away when met again.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pretrace.errors import OutputError, PretraceError
from pretrace.results.output_checks import NEW, OWN, FolderKind, OutputFile, check_file, check_replaceable

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
        check_replaceable(place, output)
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
            check_replaceable(place, output)
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
            check_replaceable(place, output)
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
