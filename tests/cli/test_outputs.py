"""What pretrace did not write is not replaced, and a result is replaced only by one of its kind: for every option of
every command that names what is written."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from made import mats, options_of, written

from pretrace.cli import commands
from pretrace.frequencies import Frequencies
from pretrace.jobs import ShardJob
from pretrace.results.atomic import _FOLDERS
from pretrace.scoring.parts import PartsFolder

TEXTS = [
    {
        "id": f"{i}",
        "text": f"The cat number {i} sat on the mat. It was day {i} of the year, and the dog slept by the stove.",
        "label": i % 2,
        "date": f"20{15 + i}-03-01",
        "draft": f"A cat, number {i}, is on the mat. It was day {i} of that year.",
        "variant": f"The dog number {i} sat on the mat. It was day {i} of the year.",
    }
    for i in range(12)
]

TABLE = tomllib.loads(Path(__file__).with_name("command_lines.toml").read_text(encoding="utf-8"))
GIVEN = {command: line.split() for command, line in TABLE["given"].items()}
"""Arguments with which a command comes as far as its outputs; T, M and so on are made by `places`."""

FILES = {
    "mark check --prompts", "count --out", "build quality --figures", "mark texts --sealed",
    "mark order --sealed", "build patents --out",
}  # fmt: skip
BELOW = {
    "ask --out": ("scan",),
    "demo --out": ("model", "planted"),
    "build ccnews --out": ("mask.jsonl", "mask.card.json"),
}
"""What is written in the folder that these name."""
NEEDED = {
    "samples --flags-out": "--out", "mark texts --out": "--sealed", "mark order --out": "--sealed",
    "mark texts --sealed": "--out", "mark order --sealed": "--out", "score --parts": "--out",
    "evaluate --parts": "--out", "flag --parts": "--out",
}  # fmt: skip
"""The other output that is asked for with it."""
SHARDS = {"score --parts", "evaluate --parts", "flag --parts"}


def outputs():
    """Every option that names what is written, by command and option."""
    return {
        f"{path} {'' if leaf.option.metavar else leaf.flag}".strip(): leaf
        for path in commands.places()
        for leaf in options_of(path).values()
        if leaf.option.path == "out"
    }


OUTPUTS = outputs()


@pytest.fixture
def places(tmp_path):
    texts = written(tmp_path / "texts.jsonl", TEXTS)
    runs = tmp_path / "runs"
    runs.mkdir()
    given = {"texts": str(texts), "model": str(tmp_path / "no-model")}
    content = {"pretrace_run": 1, "files": {}, "settings": {"command": "score", "given": given}}
    (runs / "run.json").write_text(json.dumps(content))
    pages = tmp_path / "pages"
    pages.mkdir()
    sealed = tmp_path / "sealed.json"
    sealed.write_text("{}")
    return {"T": texts, "M": tmp_path / "no-model", "RUNS": runs, "PAGES": pages, "SEALED": sealed}


def words(case, places, out):
    """The command line of a case, whose output is to go to `out`."""
    if case == "runs merge":
        whole_job(out)
    command, _, option = case.partition(" --")
    given = [str(places.get(word, word)) for word in GIVEN[command]]
    other = [NEEDED[case], str(out.with_name("other"))] if case in NEEDED else []
    shard = ["--shard", "1/2"] if case in SHARDS else []
    return [*command.split(), *given, *other, *shard, *([f"--{option}"] if option else []), str(out)]


def contents(folder):
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_every_command_that_writes_is_here():
    assert {case.partition(" --")[0] for case in OUTPUTS} == set(GIVEN)


@pytest.mark.parametrize("case", OUTPUTS)
def test_what_pretrace_did_not_write_is_not_replaced(case, call, places, tmp_path):
    below = BELOW.get(case, ("",))
    for number, name in enumerate(below):
        out = tmp_path / f"victim{number}" / "out.jsonl"
        if case == "count --out":
            out = out.with_suffix(".npz")
        victim = out / name if name else out
        if case in FILES or name.endswith(("jsonl", "json")):
            victim.parent.mkdir(parents=True)
            victim.write_text("years of work\n")
        else:
            victim.mkdir(parents=True)
            (victim / "thesis.tex").write_text("years of work\n")
        check(case, call, places, out)


@pytest.mark.parametrize("kind", _FOLDERS, ids=lambda kind: kind.marker)
@pytest.mark.parametrize("case", sorted({*OUTPUTS} - FILES - set(BELOW) - SHARDS))
def test_a_result_is_replaced_only_by_one_of_its_kind(case, kind, call, places, tmp_path):
    out = tmp_path / "victim" / "out"
    out.mkdir(parents=True)
    facts = {kind.key: 1, "files": {"table.csv": ""}, "test": "another"}
    (out / kind.marker).write_text(json.dumps(facts))
    (out / "table.csv").write_text("a,b\n")
    if kind.marker == KIND_OF.get(case.partition(" --")[0], {}).get(case.partition(" --")[2], ""):
        # of the same kind: the command goes on, and fails for want of a model or of a whole run
        code, _, said = call(*words(case, places, out))
        assert (code, "is not replaced" in said) == (2, False)
        assert (out / "table.csv").read_text() == "a,b\n"
        return
    check(case, call, places, out)


def check(case, call, places, out):
    """The command is refused in a line, and everything is as it was."""
    given = words(case, places, out)
    before = contents(out.parent.parent)
    code, _, said = call(*given)
    assert code == 2, said
    known = ("not replaced", "belong to no result", "is not empty", "no parts of a run", "never")
    assert any(one in said for one in known)
    assert len([line for line in said.splitlines() if not line.startswith("pretrace: note: ")]) == 1, said
    assert contents(out.parent.parent) == before


RUNS_KIND = {"out": "run.json", "": "run.json"}
KIND_OF = {
    "score": RUNS_KIND, "evaluate": RUNS_KIND, "runs merge": RUNS_KIND, "tune": {"out": "adapter_card.json"},
    "plant": {"out": "card.json"},
}  # fmt: skip
"""Which folder an option replaces; none for tests, since the one that is there is of another test."""


def whole_job(out):
    """The parts of a run that is whole, beside its --out."""
    read = {"texts": "-", "columns": {}, "skip_unreadable": False}
    none = {"fingerprint": {}, "outlines": (), "settings": {"seed": 0}, "target": ""}
    job = ShardJob(**none, scores=("loss",), source=read)
    parts = out.with_name(f".{out.name}.parts")
    parts.mkdir(parents=True, exist_ok=True)
    job.save(parts)


def test_parts_are_deleted_and_nothing_else(tmp_path):
    whole_job(tmp_path / "out")
    parts = tmp_path / ".out.parts"
    (parts / f"{'0' * 32}-{'1' * 16}.parquet").write_text("")
    (parts / "thesis.tex").write_text("years of work\n")
    PartsFolder(parts, "").remove()
    assert [path.name for path in parts.iterdir()] == ["thesis.tex"]


def test_a_file_is_replaced_by_the_next_of_its_kind(call, tmp_path):
    texts, out = written(tmp_path / "texts.jsonl", mats(240)), tmp_path / "out"
    how = ("build", "quality", texts, texts, "--embeddings", "none", "--figures", out / "figures.json")
    for _ in range(2):
        assert call(*how)[0] == 0
    (out / "figures.json").write_text("years of work")
    assert call(*how)[0] == 2
    table = Frequencies(np.ones(3, np.int64), "hash")
    for _ in range(2):
        table.save(out / "counts.npz")
