"""Whether a result folder is what was written: its hashes, its report, and the texts that it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pretrace import runs
from pretrace.corpora import Columns, open_stream
from pretrace.corpora.columns import FURTHER
from pretrace.errors import ExpressionError, OutputError, PretraceError
from pretrace.results.folder import Integrity, OpenFolder
from pretrace.results.output_checks import FolderKind
from pretrace.results.serialization import expect
from pretrace.scoring.provenance import texts_hash
from pretrace.verdicts.recompute import recompute

# Which texts a result is about: where they were, how they were read, and the hashes that were recorded of them.

Facts = Mapping[str, Any]
Measure = Callable[[tuple[str, ...]], tuple[str, ...]]
_COLUMNS = ("text", "label", "id", "group")


@dataclass(frozen=True, slots=True)
class Side:
    """Texts of a result: their role, the places they were read from, the SHA-256 of each place's texts, and what
    measures it now. `why` says why there is no hash, where there is none."""

    role: str
    places: tuple[str, ...]
    hashes: tuple[str, ...]
    measured: Measure
    why: str = "no hash of them was recorded"


def recorded_sides(content: Facts, settings: Facts, columns: Columns) -> tuple[Side, ...]:
    """The texts that a result recorded, from its JSON part; each name of `columns` that is not None replaces the
    recorded one."""
    return tuple(_Reader(settings, columns, str(content.get("test", ""))).sides())


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads texts as a command read them, whose options are `given`."""

    settings: Facts
    override: Columns
    test: str

    def sides(self) -> Iterator[Side]:
        """Every side, the texts in question first."""
        if self.test in ("marks", "triggers"):
            yield self._side("sealed", self._facts("corpus"), _sealed)
            if "answers" in self.settings:
                yield self._side("answers", self._facts("answers"), _answers)
            return
        yield self._first()
        for role in ("heldout", "nonmembers"):
            if self.settings.get(role):
                yield self._side(role, self._facts(role), self._hash_of_another)
        if self.given.get("reference") and self.settings.get("reference"):
            yield self._side("reference", self._facts("reference"), self._hash_of_another)

    @property
    def given(self) -> Facts:
        """The options that were given, {} where a program made the result."""
        return _mapping(self.settings.get("given")) or _mapping(self.settings.get("command"))

    @property
    def columns(self) -> Columns:
        """The columns that were read."""
        kept = _mapping(self.settings.get("columns"))
        named = {name: kept.get(name, self.given.get(f"{name}_column")) for name in _COLUMNS}
        own = {name: getattr(self.override, name) for name in _COLUMNS}
        more = {name: kept.get(name, self.given.get(name)) for name in FURTHER}
        return Columns(
            **{name: named[name] if own[name] is None else own[name] for name in _COLUMNS},
            **{name: value for name, value in more.items() if value},
        )

    def _facts(self, key: str) -> Facts:
        return _mapping(self.settings.get(key))

    def _side(self, role: str, facts: Facts, measure: Callable[[str], str]) -> Side:
        place = self.given.get(role) or facts.get("source") or ""
        hashed = facts.get("sha256")
        return Side(
            role,
            (str(place),) if place else (),
            (str(hashed),) if hashed else (),
            lambda places: tuple(measure(one) for one in places),
        )

    def _first(self) -> Side:
        """The texts in question, whole: a run may have scored a part of them."""
        facts = self._facts("whole_texts") or self._facts("texts") or self._facts("corpus")
        return self._side("texts", facts, self._hash)

    def _hash(self, place: str, columns: Columns | None = None) -> str:
        skip = bool(self.given.get("skip_unreadable"))
        return texts_hash(open_stream(place, columns or self.columns, skip_unreadable=skip).texts())

    def _hash_of_another(self, place: str) -> str:
        return self._hash(place, self.columns.of_another)


def _sealed(place: str) -> str:
    from pretrace.verdicts.marking.sealed import read_seal

    return texts_hash(read_seal(Path(place)).corpus.texts)


def _answers(place: str) -> str:
    from pretrace.verdicts.triggers import read_answers

    return texts_hash(read_answers(place).texts)


def _mapping(value: object) -> Facts:
    return value if isinstance(value, Mapping) else {}


State = Literal["yes", "no", "not recorded", "not given"]
"""Whether what is checked holds; "not recorded" where the folder does not say what it should be, "not given" where the
texts that it names are not here."""
Given = Mapping[str, str | Path | Sequence[str | Path]]
# What was recorded, held against what is there.

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was checked, whether it holds, and what was seen, in a sentence."""

    name: str
    state: State
    words: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found of a folder: `kind` is "run", "audit", "flagging" or "test result"."""

    folder: str
    kind: str
    checks: tuple[Checked, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing that could be checked is otherwise than it should be."""
        return all(one.state != "no" for one in self.checks)


def verify(folder: str | Path, texts: Given | None = None, *, columns: Columns | None = None) -> Verification:
    """What holds of a run, an audit, a flagging or another verdict: the hash of every file, whether the report is what
    rendering the tables gives, and whether its texts are those given now.

    `texts` says where texts are, by their role: "texts", "heldout", "nonmembers", "reference", "sealed", "answers".
    Those that are not named are looked for where they were, if that is a file or folder here.
    `columns` replace the recorded names of columns, each where it is not None. OutputError where the folder holds no
    result; ExpressionError for a role that it does not have; TextsError where texts that are named cannot be read.
    """
    place, named = Path(folder), texts or {}
    kind = runs.kind_of(place)
    opened, settings = _opened(kind, place)
    sides = recorded_sides(opened.content, settings, columns or Columns())
    roles = [one.role for one in sides]
    for role in named:
        if role not in roles:
            raise ExpressionError(f"{place} has no {role}; its texts are: {', '.join(roles) or 'none'}.")
    return Verification(
        str(place),
        kind.name,
        (*_own(kind, place, opened, settings), *(_texts(one, named.get(one.role)) for one in sides)),
    )


def verify_folder(folder: str | Path) -> Verification:
    """The same of the folder alone: its files, its seal and its report; its texts are not looked for."""
    place = Path(folder)
    kind = runs.kind_of(place)
    return Verification(str(place), kind.name, _own(kind, place, *_opened(kind, place)))


def _opened(kind: FolderKind, place: Path) -> tuple[OpenFolder, Mapping[str, Any]]:
    opened = OpenFolder(kind, place, believe=True)
    return opened, opened.explained(kind.marker, lambda: expect(opened.content.get("settings", {}), dict))


def _own(
    kind: FolderKind, place: Path, opened: OpenFolder, settings: Mapping[str, Any]
) -> tuple[Checked, ...]:
    state = opened.integrity(apart=runs.REPORT)
    return _files(state), _seal(state, kind, opened.seal), _report(place, settings), _numbers(place)


def _files(state: Integrity) -> Checked:
    wrong = [f"{name} is gone" for name in state.gone] + [f"{name} was changed" for name in state.changed]
    if not wrong:
        return Checked(
            "files", "yes", f"all {state.hashed} files with a recorded hash are as they were written"
        )
    more = f", and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
    return Checked("files", "no", f"{', '.join(wrong[:_NAMED])}{more}")


def _seal(state: Integrity, kind: FolderKind, seal: str) -> Checked:
    if state.seal is None:
        return Checked("seal", "not recorded", f"{kind.marker} holds no hash of itself")
    if not state.seal:
        return Checked("seal", "no", f"{kind.marker} was changed")
    words = (
        f"{kind.marker} is as it was sealed, with the SHA-256 {seal}: compare it with one that you received elsewhere. "
        "A hash shows damage and not forgery, for whoever rewrites a folder can seal it anew"
    )
    return Checked("seal", "yes", words)


def _numbers(place: Path) -> Checked:
    """Whether the tables give the numbers and the outcome that the folder tells."""
    try:
        found = recompute(runs.load(place))
    except (OutputError, KeyError, TypeError, ValueError) as error:
        return Checked("numbers", "no", f"they cannot be computed from the tables: {error}")
    if not found:
        return Checked("numbers", "not recorded", "the tables of this result give none of them")
    wrong = [one for one in found if not one.agrees]
    if wrong:
        told = [f"{one.name} is {_shown(one.recorded)}, the tables give {_shown(one.given)}" for one in wrong]
        more = f"; and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        return Checked("numbers", "no", "; ".join(told[:_NAMED]) + more)
    names = ", ".join(dict.fromkeys(one.name for one in found))
    return Checked("numbers", "yes", f"computed again from the tables, without a model: {names}")


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _report(place: Path, settings: Mapping[str, Any]) -> Checked:
    from pretrace import __version__

    try:
        made = runs.pages_of(place)
    except OutputError as error:
        return Checked("report", "no", f"it cannot be made from the tables: {error}")
    gone = [name for name in made if not (place / name).is_file()]
    if gone:
        return Checked("report", "no", f"{gone[0]} is gone; pretrace runs report {place} makes it anew")
    other_pages = [
        name
        for name, page in made.items()
        if (place / name).read_bytes() != page.encode("utf-8", "backslashreplace")
    ]
    if not other_pages:
        return Checked(
            "report", "yes", f"{' and '.join(made)} {'are' if len(made) > 1 else 'is'} what the tables give"
        )
    software = settings.get("software")
    written = software.get("pretrace") if isinstance(software, Mapping) else None
    other = f" (pretrace {written} made the result, this is {__version__})" if written != __version__ else ""
    return Checked("report", "no", f"{other_pages[0]} is not what the tables give{other}")


def _texts(side: Side, given: str | Path | Sequence[str | Path] | None) -> Checked:
    if not side.hashes:
        return Checked(side.role, "not recorded", side.why)
    if given is not None:
        places = (str(given),) if isinstance(given, str | Path) else tuple(map(str, given))
        return _compared(side, places)
    lacking = [one for one in side.places if not (Path(one).is_file() or Path(one).is_dir())]
    if lacking or not side.places:
        named = f"{lacking[0]} is not here" if lacking else "their place is not recorded"
        return Checked(side.role, "not given", f"{named}; say where they are with --{side.role}")
    try:
        return _compared(side, side.places)
    except PretraceError as error:
        return Checked(side.role, "no", f"{', '.join(side.places)} cannot be read as it was: {error}")


def _compared(side: Side, places: Sequence[str]) -> Checked:
    found, shown = side.measured(tuple(places)), ", ".join(places)
    if found == side.hashes:
        return Checked(side.role, "yes", f"{shown}: the hash that was recorded")
    return Checked(
        side.role, "no", f"{shown}: not the texts of this result (ids, texts, labels or order differ)"
    )
