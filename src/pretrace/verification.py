"""Whether a result folder is what was written: its hashes, its report and its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pretrace import __version__, runs
from pretrace.errors import OutputError
from pretrace.results.folder import OpenFolder, file_hash, page_bytes
from pretrace.results.output_checks import FILES_KEY

Facts = Mapping[str, Any]


def _mapping(value: object) -> Facts:
    return value if isinstance(value, Mapping) else {}


State = Literal["yes", "no", "not recorded"]
"""Whether it holds; "not recorded" where the folder does not say."""
_NAMED = 3


@dataclass(frozen=True, slots=True)
class VerifiedPart:
    """One thing that was checked, whether it holds, and what was seen, in a sentence."""

    name: str
    state: State
    words: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found of a folder: `kind` is "run", "audit", "flagging" or "test result"."""

    folder: str
    kind: str
    checks: tuple[VerifiedPart, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing that could be checked is otherwise than it should be."""
        return all(one.state != "no" for one in self.checks)


def verify(folder: str | Path) -> Verification:
    """What holds of a run, an audit, a flagging or another verdict: the hash of every file and of the JSON part, and
    whether the report and the numbers are what the tables give. OutputError where the folder holds no result."""
    opened = OpenFolder(runs.kind_of(Path(folder)), Path(folder), believe=True)
    checks = _files(opened), _seal(opened), _report(opened), _numbers(opened.folder)
    return Verification(str(opened.folder), opened.kind.name, checks)


def _found(name: str, wrong: Sequence[str], words: str) -> VerifiedPart:
    """A part that holds, as `words` say, unless something is wrong with it."""
    more = [f"and {len(wrong) - _NAMED} more"] if len(wrong) > _NAMED else []
    return VerifiedPart(name, "no" if wrong else "yes", "; ".join([*wrong[:_NAMED], *more]) or words)


def _files(opened: OpenFolder) -> VerifiedPart:
    files = _mapping(opened.content.get(FILES_KEY))
    hashes = {name: value for name, value in files.items() if value is not None}
    there = {name: file_hash(opened.folder / name) for name in hashes if (opened.folder / name).is_file()}
    wrong = [f"{name} is gone" for name in hashes if name not in there]
    wrong += [f"{name} was changed" for name, found in there.items() if found != hashes[name]]
    return _found("files", wrong, f"all {len(hashes)} files with a recorded hash are as they were written")


def _seal(opened: OpenFolder) -> VerifiedPart:
    marker = opened.kind.marker
    words = (
        f"{marker} is as it was sealed, with the SHA-256 {opened.seal}: compare it with one that you received "
        "elsewhere. The hash reveals damage but not forgery: whoever rewrites the folder can also write a new hash"
    )
    return _found("seal", [] if opened.seal_holds else [f"{marker} was changed"], words)


def _numbers(place: Path) -> VerifiedPart:
    from pretrace.verdicts.recompute import recompute  # half a second, for all tests

    def shown(value: object) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    try:
        found = recompute(runs.load(place))
    except (OutputError, KeyError, TypeError, ValueError) as error:
        return VerifiedPart("numbers", "no", f"they cannot be computed from the tables: {error}")
    if not found:
        return VerifiedPart("numbers", "not recorded", "the tables of this result give none of them")
    odd = (one for one in found if not one.agrees)
    wrong = [f"{one.name} is {shown(one.recorded)}, the tables give {shown(one.given)}" for one in odd]
    names = ", ".join(dict.fromkeys(one.name for one in found))
    return _found("numbers", wrong, f"computed again from the tables, without a model: {names}")


def _report(opened: OpenFolder) -> VerifiedPart:
    place = opened.folder
    try:
        made = runs.pages_of(place)
    except OutputError as error:
        return VerifiedPart("report", "no", f"it cannot be made from the tables: {error}")
    wrong = []
    for name, page in made.items():
        if not (place / name).is_file():
            wrong.append(f"{name} is gone; pretrace runs report {place} renders it")
        elif (place / name).read_bytes() != page_bytes(page):
            settings = _mapping(opened.content.get("settings"))
            version = _mapping(settings.get("software")).get("pretrace", "unknown")
            by = f" (pretrace {version} made the result, this is {__version__})"
            wrong.append(f"{name} is not what the tables give{by if version != __version__ else ''}")
    return _found("report", wrong, f"{' and '.join(made)}: what the tables give")
