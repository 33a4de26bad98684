"""Options come from settings: names, defaults, ranges, help; and what every command refuses."""

import re
import tomllib
from pathlib import Path

import pytest
from made import call_function, options_of, written

from pretrace.backends.naming import ModelSettings
from pretrace.cli.auditing import AuditOptions, _completed
from pretrace.cli.commands import EVERYWHERE, RawOptions, places
from pretrace.corpora.opening import Source
from pretrace.verdicts.audit.data import GENERATOR, PAPER_GENERATOR, AuditSettings
from pretrace.verdicts.audit.snippets import SnippetSettings


def test_settings_are_made_of_what_was_written(monkeypatch):
    found = []

    def command(settings: AuditSettings, given: RawOptions):
        found.append((settings, given))

    call_function(command)
    assert (found[0][0], found[0][1]["classifiers"]) == (AuditSettings(), "words,form")
    assert "plugin" not in found[0][1]
    words = ["--also", "paper, release", "--procedure", "release", "--classifiers"]
    words += ["words,gpt2(preset='paper')", "--generator-args", "method=paper,temperature=0.6"]
    words += ["--snippets", "most=3"]
    call_function(command, *words)
    made = found[1][0]
    assert (made.procedure, made.also) == ("release", ("paper", "release"))
    assert made.classifiers == ("words", "gpt2(preset='paper')")
    assert (made.method, GENERATOR) == (PAPER_GENERATOR, AuditSettings().method)
    assert (made.sampling.temperature, made.snippets.most) == (0.6, 3)
    assert made.cache
    monkeypatch.setenv("PRETRACE_CACHE", "off")
    call_function(command, *words)
    assert not found[2][0].cache


def keyed(*words):
    """How a model is opened, and what is recorded, by these words."""
    found = []

    def command(source: Source, opening: ModelSettings, given: RawOptions):
        found.append((opening, given))

    call_function(command, "posts.jsonl", *words)
    return found[0]


def test_keys_of_an_option_add_up_and_are_recorded_by_name():
    words = ("--model-args", "dtype=bfloat16, max-tokens=512", "--model-args", "trust_remote_code=true")
    opening, given = keyed(*words, "--columns", "text=prompt,completion,id='a,b=c'")
    assert opening == ModelSettings(dtype="bfloat16", max_tokens=512, trust_remote_code=True)
    assert given["model_args"] == {"dtype": "bfloat16", "max_tokens": 512, "trust_remote_code": True}
    assert given["columns"] == {"text": "prompt,completion", "id": "a,b=c"}
    assert keyed()[0] == ModelSettings()


def test_the_help_lists_commands_by_question_on_one_screen(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = call("--help")[1]
    order = ["Was it used?", "Which texts?", "How well does a method tell?", "What was found?", "Options"]
    assert sorted(order, key=lambda title: said.index(f"─ {title} ─")) == order
    for words in places():
        assert re.search(rf"^│ {words.split()[0]} +[A-Z][^.]+\.? *│$", said, re.MULTILINE), words  # in a line
    assert len(said.rstrip("\n").splitlines()) <= 41  # and the prompt


def test_the_help_of_an_audit_fits_one_screen_and_leads_to_the_rest(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = call("audit", "--help")[1]
    assert len(said.rstrip("\n").splitlines()) <= 45  # a screen and a few lines
    assert max(map(len, said.splitlines())) <= 80
    assert "audit --help-all" in said
    for name in ("TEXTS", "--model", "--controls", "--placebo", "--generator", "--out", "--plan", "--power"):
        assert name in said
    assert "repetition_penalty" not in said
    everything = call("audit", "--help-all")[1]
    assert all(one.flag in everything for one in options_of("audit").values())


TEXTS = [{"id": f"{i}", "text": f"The cat number {i} sat on the mat.", "label": i % 2} for i in range(12)]


@pytest.fixture
def texts(tmp_path):
    return written(tmp_path / "texts.jsonl", TEXTS)


TABLE = tomllib.loads(Path(__file__).with_name("command_lines.toml").read_text(encoding="utf-8"))
OVERWRITING = {case: line.split() for case, line in TABLE["overwriting"].items()}


@pytest.mark.parametrize("case", OVERWRITING)
@pytest.mark.parametrize("how", ["plain", "link", "relative"])
def test_no_output_is_an_input(case, how, call, texts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    planted = tmp_path / "planted"
    planted.mkdir()
    planted.joinpath("texts.jsonl").write_bytes(texts.read_bytes())
    planted.joinpath("card.json").write_text('{"pretrace_planted": 1, "files": {"texts.jsonl": ""}}')
    other = tmp_path / "other.jsonl"
    other.write_bytes(texts.read_bytes())
    places = {"T": texts, "OTHER": other, "P": planted, "M": tmp_path / "no-model"}
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    named = {f"{name}/texts.jsonl": path / "texts.jsonl" for name, path in places.items()} | places
    *inputs, out = (word.replace("'T'", repr(str(texts))) for word in OVERWRITING[case])
    goal = named[out]
    if how == "link":
        goal = tmp_path / "link"
        goal.symlink_to(named[out])
    elif how == "relative":
        goal = Path("..") / tmp_path.name / named[out].relative_to(tmp_path)
    code, _, said = call(*(named.get(word, word) for word in inputs), goal)
    assert code == 2, said
    assert "names as an input: choose another --" in said
    assert said.count("\n") == 1
    assert {path: path.read_bytes() for path in before} == before


def test_a_word_that_is_no_path_may_be_the_name_of_the_output(call, texts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loss").mkdir()
    assert "hub" in call("score", texts, "--model", "no-model/here", "--scores", "loss", "--out", "loss")[2]


def test_every_command_takes_json_quiet_and_a_config_and_most_take_plugins(call):
    everywhere = {one.flag for one in EVERYWHERE.values()}
    assert everywhere == {"--plugin", "--json", "--quiet", "--config"}
    assert all(flag in call("audit", "--help-all")[1] for flag in everywhere)
    for name in ("runs report", "demo", "serve", "cache info", "cache clear"):
        positional = ["X" for one in options_of(name).values() if one.option.metavar]
        code, _, said = call(*name.split(), *positional, "--plugin", "mine.py")
        assert (code, "Unknown option: --plugin." in said) == (2, True), said


def settings(**given):
    return _completed(AuditSettings(), AuditOptions(**given))


def test_power_is_measured_at_a_light_and_a_heavy_exposure_in_more_than_a_handful_of_steps():
    made = settings(power=True).power
    assert [(one.epochs, one.plan(existing=True).learning_rate) for one in made] == [(1, 5e-5), (1, 5e-4)]
    # Half of an audit of 200 documents, a window each: six steps of 16 moved a model too little to be seen.
    assert all(100 // one.batch >= 20 for one in made)
    lora = settings(power=True, power_method="lora").power
    assert [round(one.plan(existing=True).learning_rate, 6) for one in lora] == [1e-3, 1e-2]
    assert settings().power == ()


def test_what_the_one_who_asks_says_is_passed_on_where_it_was_said():
    made = settings(requested_by="the authors", placebo_note="its release notes")
    assert made.statements == {"requested_by": "the authors", "placebo": "its release notes"}


def test_a_quick_audit_judges_and_learns_from_fewer_snippets():
    made = settings(quick=True).snippets
    assert (made.pairs, made.learnt) == (200, 100)
    few = _completed(AuditSettings(snippets=SnippetSettings(pairs=50)), AuditOptions(quick=True)).snippets
    assert few.pairs == 50
