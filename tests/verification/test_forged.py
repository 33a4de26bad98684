"""Folders of every kind that were rewritten and sealed anew: their tables say otherwise."""

import functools
import hashlib
import json
import shutil
from dataclasses import replace

import pytest
from made import evaluate
from plugins.marks import test_variants as sentences
from test_contracts import CHECKED
from verdicts.audit.test_audit import NUMBERS, OTHERS, STRANGER, direct

from pretrace.plugins.marks.checking import check_triggers
from pretrace.results.folder import to_json
from pretrace.runs import kind_of, render, save
from pretrace.scoring.detect import detect
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.testing import Memory
from pretrace.types import Corpus, Text
from pretrace.verification import verify_folder

SECOND = Memory(name="second")


def run():
    said = [f"The {('dog', 'cat')[i % 2]} number {i} sat on mat {i}." for i in range(40)]
    texts = [Text(f"t{i}", text, bool(i % 2)) for i, text in enumerate(said)]
    found = detect(Corpus("cats", tuple(texts)), Models(NUMBERS), ScorePlan.parse(["loss"]))
    return replace(found, evaluation=evaluate(found, [text.text for text in texts], resamples=100))


def triggered(place):
    seal = sentences.sealed()
    said = sentences.answers(**sentences.words(seal, place))
    return check_triggers(seal, said, sentences.SETTINGS, model="served")


MADE = {
    "run": run,
    "audit beside another family": lambda: direct(OTHERS, STRANGER),
    "triggers": lambda: triggered(1),
    "triggers of a culprit": lambda: triggered(0),
}
for name, (ask, texts, more) in CHECKED.items():
    known = more.get("known") or [text.text for text in texts.texts]
    for kind, target in ((name, Memory()), (f"{name} of a culprit", Memory(known))):
        MADE[kind] = functools.partial(ask, texts, Models(target, placebos=(SECOND,)))


@functools.cache
def made(kind):
    return MADE[kind]()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Gives a folder of a kind, which is saved once."""

    @functools.cache
    def saved(kind):
        folder = tmp_path_factory.mktemp("saved") / "RESULT"
        save(made(kind), folder)
        return folder

    return lambda kind, folder: shutil.copytree(saved(kind), folder)


def rewrite(folder, change):
    """Rewrite the JSON part, seal it anew and make the report of it, as a forger would."""
    path = folder / kind_of(folder).marker
    content = json.loads(path.read_text(encoding="utf-8"))
    metrics = folder / "metrics.json"
    if metrics.is_file():
        figures = json.loads(metrics.read_text(encoding="utf-8"))
        change(figures)
        metrics.write_bytes(to_json(figures))
        content["files"]["metrics.json"] = hashlib.sha256(metrics.read_bytes()).hexdigest()
    else:
        change(content)
    del content["sha256"]
    content["sha256"] = hashlib.sha256(to_json(content)).hexdigest()
    path.write_bytes(to_json(content))
    render(folder)


SAID = "The predictions of the model are consistent with training on these texts."
ACCUSING = {"outcome": "consistent", "exit_code": 3}
ACQUITTED = {"p": 0.9, "statement": "No sign of training on these texts was found."}
CHANGES = {
    "accused": ACCUSING,
    "reworded": {"statement": SAID},
    "acquitted": {**ACQUITTED, "outcome": "inconclusive", "exit_code": 4},
    "none flagged": {**ACQUITTED, "outcome": "none", "exit_code": 0},
    "the set flagged": {"p": 1e-4, "outcome": "set", "exit_code": 3, "figures": {"set_test": {"p": 1e-4}}},
    "a smaller effect": {"effect": {"value": 1.5, "low": 1.2, "high": 1.8}},
}
"""What replaces parts of the JSON part; what takes more is a function."""


def merge(content, change):
    for name, value in change.items():
        content[name] = merge(content[name], value) if isinstance(value, dict) else value
    return content


def convict(content):
    merge(content, {**ACCUSING, "p": 0.0001, "statement": SAID})
    for check in content["checks"]:
        check["status"] = "passed"


def raise_auc(content):
    row = next(row for row in content["rows"] if row["kind"] == "score")
    row["auc"] |= {"value": 0.99, "low": 0.97, "high": 1.0}


def change_second(content):
    check = next(check for check in content["checks"] if check["name"] == "second")
    name = next(name for name in check["figures"] if name.startswith("p of "))
    check["figures"][name] = 0.987


TESTS = ("audit", "canaries", "recite", "marks", "triggers")
FORGED = [
    ("run", raise_auc),
    ("flag", "the set flagged"),
    ("flag of a culprit", "none flagged"),
    *((kind, change) for kind in TESTS for change in (convict, "accused", "reworded")),
    *((f"{kind} of a culprit", "acquitted") for kind in ("audit", "marks", "triggers")),
    *(
        (kind, change)
        for kind in ("audit", "audit beside another family", "canaries")
        for change in (change_second, "a smaller effect")
    ),
]


@pytest.mark.parametrize("kind", MADE)
def test_the_tables_of_a_folder_as_it_was_written_give_its_numbers(kind, written, tmp_path):
    found = verify_folder(written(kind, tmp_path / "RESULT"))
    states = {one.name: one.state for one in found.checks}
    assert states == dict.fromkeys(("files", "seal", "report", "numbers"), "yes")
    assert "SHA-256" in found.checks[1].words
    assert "not forgery" in found.checks[1].words


@pytest.mark.parametrize(("kind", "change"), FORGED)
def test_a_folder_that_was_rewritten_and_sealed_anew_is_found(kind, change, written, tmp_path):
    folder = written(kind, tmp_path / "RESULT")
    rewrite(folder, change if callable(change) else functools.partial(merge, change=CHANGES[change]))
    states = {one.name: one.state for one in verify_folder(folder).checks}
    assert states == {"files": "yes", "seal": "yes", "report": "yes", "numbers": "no"}
