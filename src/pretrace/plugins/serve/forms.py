"""The essential options of the commands as fields of a form, and a filled form as the arguments of a command.

The fields are the options of the command line, which come from the settings; nothing is declared anew here. A value
always stands behind `--name=`, so that none can be taken for another option, and texts are chosen among the uploads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from typing import Any, Literal, get_args, get_origin

from pretrace.cli.commands import made, places
from pretrace.plugins.serve.jobs import AHEAD
from pretrace.plugins.serve.settings import Limits
from pretrace.plugins.serve.uploads import UploadFacts
from pretrace.plugins.serve.workspace import RequestError
from pretrace.results.wording import say, sentences_of
from pretrace.settings import join_keys
from pretrace.verdicts.advise import Advised

_FieldKind = Literal["line", "lines", "number", "switch", "choice", "texts", "model", "models"]
Values = Mapping[str, Sequence[str]]
COMMANDS: Mapping[str, str] = {
    "canaries": "canaries", "controls-placebo": "audit", "controls": "audit", "flag": "flag", "placebo": "audit",
}  # fmt: skip
"""The command of each test that starts here; seals of marks are secret and belong into no upload."""
_OPTION = re.compile(r"--([a-z][a-z-]*)(?: [A-Z]+)?")


OFFERED = ("score", "evaluate", "flag", "audit", "mark canaries", "scan")
"""The commands that can be started from the page."""
TEXTS = ("controls", "reference")
"""Options that name texts; on the page they are chosen among the uploads."""
LEFT_OUT = ("plan", "seed", "tuned", "plugin")
"""Essential options that the page has no place for: those of files on this machine, and of what is typed rarely."""
ALWAYS = ("requested-by",)
"""Options that the page asks for whether they are essential or not: a report without them has a blank."""


@dataclass(frozen=True, slots=True)
class Field:
    """One option: its name without dashes (option.key for a key), what a value is, and what the settings say of it."""

    name: str
    kind: _FieldKind
    help: str
    default: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None

    def written(self, values: Values) -> list[str]:
        """What stands in the field, without what is empty."""
        found = [one.strip() for one in values.get(self.name, ()) if one.strip()]
        if self.kind in ("lines", "models"):
            return [line.strip() for one in found for line in one.splitlines() if line.strip()]
        return found

    @property
    def label(self) -> str:
        """The name as a reader sees it."""
        return _label(self.name)

    @property
    def bounds(self) -> str:
        """What a number may be, in words; empty where nothing is known."""
        low, high = ("" if end is None else f"{end:g}" for end in (self.least, self.most))
        if low and high:
            return f"{low} to {high}"
        return f"{low} or more" if low else f"{high} at most" if high else ""

    @property
    def words(self) -> str:
        """The help for those who fill in a form and type no command."""
        said = self.help.replace("`", "")
        for typed, seen in sentences_of("typed").items():
            said = said.replace(typed, seen)
        return _OPTION.sub(lambda found: f"“{_label(found[1])}”", said)


def _label(name: str) -> str:
    words = name.replace("-", " ")
    return sentences_of("labels").get(name) or words[:1].upper() + words[1:]


@dataclass(frozen=True, slots=True)
class CommandForm:
    """A command with its fields, those first that must be filled; `words` are what is typed after `pretrace`, `ahead`
    the option by which it says what it would do and how long that takes, "" where it has none."""

    words: tuple[str, ...]
    summary: str
    fields: tuple[Field, ...]
    ahead: str = ""

    @property
    def command(self) -> str:
        """What the command is called by itself."""
        return self.words[-1]

    def filled(self, given: Mapping[str, str]) -> CommandForm:
        """The form with other defaults, by field."""
        fields = (replace(one, default=given.get(one.name, one.default)) for one in self.fields)
        return replace(self, fields=tuple(fields))

    def arguments(
        self,
        values: Values,
        path_of: Callable[[str], str],
        find_model: Callable[[str, str, str], object] = lambda *named: None,
    ) -> list[str]:
        """The options of the command as they were filled in; `path_of` gives the path of an upload, `find_model`
        refuses a model (label, name, field). RequestError, naming the field, for an empty one, and what is no choice.
        Numbers are checked by the command."""
        made: list[str] = []
        for field in self.fields:
            written = field.written(values)
            if field.required and not written:
                raise RequestError(f"{field.label} is needed: {field.words}", 422, field=field.name)
            if field.kind == "switch":
                made += [f"--{field.name}"] if written else []
                continue
            for one in written:
                _check(field, one)
                if field.kind in ("model", "models") and one != field.default:
                    find_model(field.label, one, field.name)
                name, _, key = field.name.partition(".")
                given = path_of(one) if field.kind == "texts" else join_keys({key: one}) if key else one
                made.append(f"--{name}={given}")
        return made


def forms() -> dict[str, CommandForm]:
    """The commands that can be started from the page, with their essential options."""
    found = {}
    for one in filter(OFFERED.__contains__, places()):
        command, words = made(one).default_command, tuple(one.split())
        fields = []
        for leaf in (key for one in command.declared.values() for key in one.keys.values() or [one]):
            own, name = leaf.option, leaf.name.replace("_", "-").replace(" ", ".")
            left_out = own.metavar or own.path == "out" or name in LEFT_OUT
            if left_out or not (own.essential or name in ALWAYS):
                continue
            fields.append(Field(
                name, _kind(leaf), own.help, leaf.shown, leaf.default is MISSING,
                tuple(get_args(leaf.hint)) if get_origin(leaf.hint) is Literal else (), own.least, own.most,
            ))  # fmt: skip
        fields.sort(key=lambda field: not field.required)
        ahead = next((option for option in AHEAD if option[2:].replace("-", "_") in command.declared), "")
        found[words[-1]] = CommandForm(words, command.__doc__, tuple(fields), ahead)
    return found


def _kind(leaf: Any) -> _FieldKind:
    several = get_origin(leaf.hint) is tuple
    if leaf.name in TEXTS:
        return "texts"
    if leaf.option.path == "in":
        return "models" if several else "model"
    if leaf.hint is bool:
        return "switch"
    if get_origin(leaf.hint) is Literal:
        return "choice"
    if several:
        return "lines"
    return "number" if {int, float} & {leaf.hint, *get_args(leaf.hint)} else "line"


def check_part(label: str, written: str) -> None:
    """RequestError where what was written in a field of one line cannot be a part of a command."""
    if "\0" in written:
        raise RequestError(f"{label} holds a character that cannot be part of a command: take it out.", 422)
    most = Limits().part_characters  # systems take no longer parts of a command than some 100,000 bytes
    if len(written) > most:
        raise RequestError(
            say("serve.refused.part_characters", label=label, number=len(written), most=most), 422
        )


def _check(field: Field, written: str) -> None:
    check_part(field.label, written)
    if field.kind == "choice" and written not in field.choices:
        raise RequestError(f"{field.label} is one of {', '.join(field.choices)}.", 422, field=field.name)


def prefilled(
    form: CommandForm, row: Advised | None, facts: UploadFacts, given: Mapping[str, str]
) -> CommandForm:
    """The form of a test with what is known of the case: columns that were seen, and what the page was told."""
    alone = row is not None and row.choice.name == "placebo"
    known = {"columns.text": facts.text_column, **given}
    if alone:
        known |= {"controls": "", "power": "on"}
    if row is None:
        known["placebo"] = ""
    return form.filled({name: value for name, value in known.items() if value})
