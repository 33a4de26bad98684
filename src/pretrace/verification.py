"""Whether a result folder is what was written: its hashes, its report, and the texts that it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pretrace import __version__, runs
from pretrace.corpora import Columns, open_stream
from pretrace.corpora.opening import texts_hash
from pretrace.corpora.reading import FURTHER
from pretrace.errors import ExpressionError, OutputError, PretraceError
from pretrace.registry import find_test
from pretrace.results.atomic import FILES_KEY
from pretrace.results.folder import OpenFolder, file_hash, mapping, page_bytes

Facts = Mapping[str, Any]
_COLUMNS = ("text", "label", "id", "group")


class _RecordedTexts(NamedTuple):
    """Texts of a result: role, recorded place and SHA-256 ("" for unrecorded), and what measures that of a place."""

    role: str
    place: str
    sha256: str
    measure: Callable[[str], str]


def _recorded_sides(content: Facts, columns: Columns) -> tuple[_RecordedTexts, ...]:
    """The texts that a result recorded, those in question first; names of `columns` replace the recorded ones."""
    settings = mapping(content.get("settings"))
    given = mapping(settings.get("given")) or mapping(settings.get("command"))

    def side(role: str, key: str, measure: Callable[[str], str]) -> _RecordedTexts:
        facts = mapping(settings.get(key))
        place = given.get(role) or facts.get("source") or ""
        return _RecordedTexts(role, str(place), str(facts.get("sha256") or ""), measure)

    test = find_test(str(content.get("test")))
    if test is not None and test.sources:
        return tuple(side(role, key, measure) for role, (key, measure) in test.sources.items())
    reading = mapping(given.get("reading"))
    kept = {"template": given.get("template"), **reading, **mapping(given.get("columns"))}
    kept |= mapping(settings.get("columns"))
    names: dict[str, Any] = {name: kept.get(name) for name in _COLUMNS}
    own = Columns(**names | {name: value for name in FURTHER if (value := kept.get(name))})
    own = replace(own, **{name: new for name in _COLUMNS if (new := getattr(columns, name)) is not None})

    def hashed(columns: Columns) -> Callable[[str], str]:
        how = {"skip_unreadable": bool(reading.get("skip_unreadable"))}
        return lambda place: texts_hash(open_stream(place, columns, **how).texts())

    # whole: a run may have scored a part of them
    first = next((key for key in ("whole_texts", "texts") if settings.get(key)), "corpus")
    others = [("controls", key) for key in ("heldout", "nonmembers")]
    others += [("reference", "reference")] if given.get("reference") else []
    return (
        side("texts", first, hashed(own)),
        *(side(role, key, hashed(own.of_another)) for role, key in others if settings.get(key)),
    )


State = Literal["yes", "no", "not recorded", "not given"]
"""Whether it holds; "not recorded" where the folder does not say, "not given" where the texts are not here."""
Given = Mapping[str, str | Path]
_NAMED = 3


@dataclass(frozen=True, slots=True)
class _VerifiedPart:
    """One thing that was checked, whether it holds, and what was seen, in a sentence."""

    name: str
    state: State
    words: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found of a folder: `kind` is "run", "audit", "flagging" or "test result"."""

    folder: str
    kind: str
    checks: tuple[_VerifiedPart, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing that could be checked is otherwise than it should be."""
        return all(one.state != "no" for one in self.checks)


def verify(folder: str | Path, texts: Given | None = None, *, columns: Columns | None = None) -> Verification:
    """What holds of a run, an audit, a flagging or another verdict: the hash of every file, whether the report is what
    rendering the tables gives, and whether its texts are those given now.

    `texts` says where texts are, by their role: "texts", "controls", "reference", "sealed", "answers".
    Those that are not named are looked for where they were, if that is a file or folder here.
    `columns` replace the recorded names of columns, each where it is not None. OutputError where the folder holds no
    result; ExpressionError for a role that it does not have; TextsError where texts that are named cannot be read.
    """
    named, own = texts or {}, verify_folder(folder)
    sides = _recorded_sides(_opened(folder).content, columns or Columns())
    roles = [one.role for one in sides]
    for role in named:
        if role not in roles:
            raise ExpressionError(f"{folder} has no {role}; its texts are: {', '.join(roles) or 'none'}.")
    return replace(own, checks=(*own.checks, *(_texts(one, named.get(one.role)) for one in sides)))


def verify_folder(folder: str | Path) -> Verification:
    """The same of the folder alone: its files, its seal and its report; its texts are not looked for."""
    opened = _opened(folder)
    checks = _files(opened), _seal(opened), _report(opened), _numbers(opened.folder)
    return Verification(str(opened.folder), opened.kind.name, checks)


def _opened(folder: str | Path) -> OpenFolder:
    return OpenFolder(runs.kind_of(Path(folder)), Path(folder), believe=True)


def _found(name: str, wrong: Sequence[str], words: str) -> _VerifiedPart:
    """A part that holds, as `words` say, unless something is wrong with it."""
    more = [f"and {len(wrong) - _NAMED} more"] if len(wrong) > _NAMED else []
    return _VerifiedPart(name, "no" if wrong else "yes", "; ".join([*wrong[:_NAMED], *more]) or words)


def _files(opened: OpenFolder) -> _VerifiedPart:
    files = mapping(opened.content.get(FILES_KEY))
    hashes = {name: value for name, value in files.items() if value is not None}
    there = {name: file_hash(opened.folder / name) for name in hashes if (opened.folder / name).is_file()}
    wrong = [f"{name} is gone" for name in hashes if name not in there]
    wrong += [f"{name} was changed" for name, found in there.items() if found != hashes[name]]
    return _found("files", wrong, f"all {len(hashes)} files with a recorded hash are as they were written")


def _seal(opened: OpenFolder) -> _VerifiedPart:
    marker = opened.kind.marker
    words = (
        f"{marker} is as it was sealed, with the SHA-256 {opened.seal}: compare it with one that you received "
        "elsewhere. The hash reveals damage but not forgery: whoever rewrites the folder can also write a new hash"
    )
    return _found("seal", [] if opened.seal_holds else [f"{marker} was changed"], words)


def _numbers(place: Path) -> _VerifiedPart:
    from pretrace.verdicts.recompute import recompute  # half a second, for all tests

    def shown(value: object) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    try:
        found = recompute(runs.load(place))
    except (OutputError, KeyError, TypeError, ValueError) as error:
        return _VerifiedPart("numbers", "no", f"they cannot be computed from the tables: {error}")
    if not found:
        return _VerifiedPart("numbers", "not recorded", "the tables of this result give none of them")
    odd = (one for one in found if not one.agrees)
    wrong = [f"{one.name} is {shown(one.recorded)}, the tables give {shown(one.given)}" for one in odd]
    names = ", ".join(dict.fromkeys(one.name for one in found))
    return _found("numbers", wrong, f"computed again from the tables, without a model: {names}")


def _report(opened: OpenFolder) -> _VerifiedPart:
    place = opened.folder
    try:
        made = runs.pages_of(place)
    except OutputError as error:
        return _VerifiedPart("report", "no", f"it cannot be made from the tables: {error}")
    wrong = []
    for name, page in made.items():
        if not (place / name).is_file():
            wrong.append(f"{name} is gone; pretrace runs report {place} renders it")
        elif (place / name).read_bytes() != page_bytes(page):
            settings = mapping(opened.content.get("settings"))
            version = mapping(settings.get("software")).get("pretrace", "unknown")
            by = f" (pretrace {version} made the result, this is {__version__})"
            wrong.append(f"{name} is not what the tables give{by if version != __version__ else ''}")
    return _found("report", wrong, f"{' and '.join(made)}: what the tables give")


def _texts(side: _RecordedTexts, given: str | Path | None) -> _VerifiedPart:
    if not side.sha256:
        return _VerifiedPart(side.role, "not recorded", "no hash of them was recorded")
    place = side.place if given is None else str(given)
    if given is None and not (place and Path(place).exists()):
        named = f"{place} is not here" if place else "their place is not recorded"
        return _VerifiedPart(side.role, "not given", f"{named}; say where they are with --{side.role}")
    try:
        same = side.measure(place) == side.sha256
    except PretraceError as error:
        if given is not None:
            raise
        return _VerifiedPart(side.role, "no", f"{place} cannot be read as it was: {error}")
    words = "the hash that was recorded" if same else "other texts (ids, texts, labels or order differ)"
    return _VerifiedPart(side.role, "yes" if same else "no", f"{place}: {words}")
