"""Options come from settings: names, defaults, ranges, help; and what every command refuses."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from processes import Call

from pretrace.cli.commands import Root, app
from pretrace.cli.options import Only, RawOptions, command_of
from pretrace.settings import LARGEST, option_of
from pretrace.tuning.planting import PlantSettings
from pretrace.verdicts.audit.settings import GENERATOR, PAPER_GENERATOR, AuditSettings
from pretrace.verdicts.flag import FlagSettings


def commands() -> dict[str, Any]:
    """Every command by its words, those of groups among them."""
    found = {}
    waiting = [("", typer.main.get_command(app))]
    while waiting:
        path, command = waiting.pop()
        inner = getattr(command, "commands", {})
        waiting += [(f"{path} {name}".strip(), one) for name, one in inner.items()]
        if not inner:
            found[path] = command
    return found


def taken(function: Callable[..., None], *arguments: str) -> Any:
    """What a command of this function is given."""
    single = typer.Typer(pretty_exceptions_enable=False)
    single.command()(command_of(function))
    single(list(arguments), standalone_mode=False)


@pytest.mark.parametrize(
    ("command", "settings"), [("audit", AuditSettings), ("flag", FlagSettings), ("plant", PlantSettings)]
)
def test_a_default_of_the_command_line_is_that_of_the_library(command: str, settings: type[Any]) -> None:
    defaults = {one.name: one.default for one in commands()[command].params}
    for field in fields(settings):
        described = option_of(field)
        if described is None or field.default is MISSING or described.read or field.name == "cache":
            continue
        assert defaults[(described.name or field.name).replace("-", "_")] == field.default, field.name


def test_settings_are_made_of_what_was_written() -> None:
    found: list[AuditSettings] = []
    written: list[RawOptions] = []

    def command(settings: AuditSettings, given: RawOptions) -> None:
        found.append(settings)
        written.append(given)

    taken(command)
    assert found.pop() == AuditSettings()
    [options] = written
    assert options["method"] == "lora"
    assert "plugin" not in options
    taken(
        command,
        *(
            "--also",
            "paper, release",
            "--procedure",
            "release",
            "--classifiers",
            "words,gpt2(preset='paper')",
        ),
        *("--method", "paper", "--temperature", "0.6", "--max-snippets", "3", "--no-cache"),
    )
    [made] = found
    assert (made.procedure, made.also) == ("release", ("paper", "release"))
    assert made.classifiers == ("words", "gpt2(preset='paper')")
    assert (made.method, GENERATOR) == (PAPER_GENERATOR, AuditSettings().method)
    assert (made.sampling.temperature, made.snippets.most) == (0.6, 3)
    assert not made.cache


def test_only_the_named_fields_are_options() -> None:
    def command(settings: Annotated[AuditSettings, Only(("level",))]) -> None:
        """Nothing."""

    parameters = set(command_of(command).__annotations__)
    assert parameters == {"level", "plugin", "json", "quiet", "config", "help_all"}


def test_the_help_lists_commands_by_question_on_one_screen(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = call("--help")[1]
    order = ["Was it used?", "Which texts?", "How well does a method tell?", "What was found?", "Options"]
    assert sorted(order, key=lambda title: said.index(f"─ {title} ─")) == order
    shown = [name for _, names, _ in Root.rows for name in names]
    assert sorted(shown) == sorted(one.words for one in Root.entries)  # each once
    assert len(Root.rows) <= 15
    for _, names, says in Root.rows:  # in a line
        assert re.search(rf"│ {', '.join(names)} +{re.escape(says)} *│", said)
    assert len(said.rstrip("\n").splitlines()) <= 39  # and the prompt


def test_the_help_of_an_audit_fits_one_screen_and_leads_to_the_rest(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = call("audit", "--help")[1]
    assert len(said.rstrip("\n").splitlines()) <= 39  # and the prompt
    assert max(map(len, said.splitlines())) <= 80
    assert "audit --help-all" in said
    for name in ("TEXTS", "--model", "--controls", "--placebo", "--generator", "--out", "--plan", "--power"):
        assert name in said
    assert "--repetition-penalty" not in said
    everything = call("audit", "--help-all")[1]
    for one in commands()["audit"].params:
        assert (one.opts[0] if one.param_type_name == "option" else "TEXTS") in everything


TEXTS = [{"id": f"{i}", "text": f"The cat number {i} sat on the mat.", "label": i % 2} for i in range(12)]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in TEXTS))
    return path


TABLE = tomllib.loads(Path(__file__).with_name("command_lines.toml").read_text(encoding="utf-8"))
OVERWRITING = {case: line.split() for case, line in TABLE["overwriting"].items()}


@pytest.mark.parametrize("case", OVERWRITING)
@pytest.mark.parametrize("how", ["plain", "link", "relative"])
def test_no_output_is_an_input(
    case: str, how: str, call: Call, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    planted = tmp_path / "planted"
    planted.mkdir()
    planted.joinpath("texts.jsonl").write_bytes(texts.read_bytes())
    planted.joinpath("card.json").write_text('{"pretrace_planted": 1, "files": {"texts.jsonl": ""}}')
    other = tmp_path / "other.jsonl"
    other.write_bytes(texts.read_bytes())
    places = {"T": texts, "OTHER": other, "P": planted, "M": tmp_path / "no-model"}
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}

    def named(word: str, places: dict[str, Path]) -> str:
        if word.startswith("P/"):
            return str(places["P"] / word[2:])
        if "'T'" in word:
            return word.replace("'T'", repr(str(places["T"])))
        return str(places.get(word, word))

    arguments = OVERWRITING[case]
    written = dict(places)
    if how == "link":
        for name in ("T", "OTHER", "P"):
            written[name] = tmp_path / f"link-{name}"
            written[name].symlink_to(places[name])
    elif how == "relative":
        written = {name: Path("..") / tmp_path.name / path.name for name, path in places.items()}
    *inputs, out = arguments
    code, _, said = call(*(named(word, places) for word in inputs), named(out, written))
    assert code == 2, said
    assert "names as an input: choose another --" in said
    assert said.count("\n") == 1
    assert {path: path.read_bytes() for path in before} == before


def test_a_word_that_is_no_path_may_be_the_name_of_the_output(
    call: Call, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loss").mkdir()
    said = call("score", texts, "--model", "no-model/here", "--scores", "loss", "--out", "loss")[2]
    assert "hub" in said


SEEDED = [name for name, one in commands().items() if "seed" in {p.name for p in one.params}]
NEEDED = {
    "--model": "M", "--out": "OUT", "--nonmembers": "N", "--controls": "N", "--date-column": "d", "--members": "N",
    "--transform": "mask", "--cutoff": "2023-01-01",
}  # fmt: skip


@pytest.mark.parametrize("seed", [-1, LARGEST + 1, 10**30])
@pytest.mark.parametrize("command", SEEDED)
def test_a_seed_out_of_range_is_one_line(command: str, seed: int, call: Call) -> None:
    parameters = commands()[command].params
    names = [one.opts[0] for one in parameters if one.required and one.opts[0] in NEEDED]
    given = [word for name in names for word in (name, NEEDED[name])]
    positional = ["texts.jsonl" for one in parameters if one.param_type_name == "argument"]
    code, _, said = call(*command.split(), *positional, *given, "--seed", seed)
    assert code == 2
    assert "--seed" in said
    assert said.count("\n") == 1


def test_every_command_takes_json_and_quiet_and_most_take_plugins() -> None:
    for name, one in commands().items():
        assert {"json", "quiet"} <= {p.name for p in one.params}, name
    without = {name for name, one in commands().items() if "plugin" not in {p.name for p in one.params}}
    assert without == {"runs report", "demo", "serve", "runs again", "cache info", "cache clear"}
