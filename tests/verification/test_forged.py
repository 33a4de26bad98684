"""Folders of every kind that were rewritten and sealed anew: their tables say otherwise."""

import functools
import hashlib
import json
import shutil
from dataclasses import replace

import pytest
from made import evaluate
from plugins.marks import test_exact as marking
from plugins.marks import test_variants as sentences
from plugins.marks.test_canary_gates import SETTINGS as CANARIES
from plugins.marks.test_canary_gates import corpus as sums
from plugins.recite import test_recite as reciting
from verdicts.audit.test_audit import MEMBERS, NEVER, NUMBERS, OTHERS, STRANGER, direct
from verdicts.flag.test_flagging import KNOWN, LOSS, MINE, target

from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.plugins.marks.canaries import check_canaries
from pretrace.plugins.marks.checking import check_marks, check_triggers
from pretrace.plugins.recite.recite import recite
from pretrace.results.serialization import to_json
from pretrace.runs import kind_of, render, save
from pretrace.scoring.detect import detect
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.testing import FakeBackend
from pretrace.types import Corpus, Text
from pretrace.verdicts.flag import flag
from pretrace.verification import verify_folder

SECOND = FakeBackend(name="second")


def run():
    said = [f"The {('dog', 'cat')[i % 2]} number {i} sat on mat {i}." for i in range(40)]
    texts = [Text(f"t{i}", text, bool(i % 2)) for i, text in enumerate(said)]
    found = detect(Corpus("cats", tuple(texts)), Models(NUMBERS), ScorePlan.parse(["loss"]))
    return replace(found, evaluation=evaluate(found, [text.text for text in texts], resamples=100))


def recited():
    words, how = reciting.by_words(), ModelSettings()
    models = [HuggingFace(reciting.net(i), words, name=str(i), weights=str(i), settings=how) for i in (1, 2)]
    settings = replace(reciting.SETTINGS, samples=0)
    asked = Models(models[0], placebos=(models[1],))
    return recite(reciting.TEXTS, asked, settings, controls=reciting.CONTROLS)


MADE = {
    "run": run,
    "audit": lambda: direct(OTHERS, STRANGER),
    "audit beside a placebo": lambda: direct(OTHERS, NEVER),
    "flagging": lambda: flag(MINE, KNOWN, Models(FakeBackend()), LOSS),
    "marks": lambda: check_marks(
        marking.sealed(), Models(FakeBackend(), placebos=(SECOND,)), marking.SETTINGS
    ),
    "triggers": lambda: check_triggers(
        seal := sentences.sealed(),
        sentences.answers(**sentences.words(seal, 1)),
        sentences.SETTINGS,
        model="served",
    ),
    "canaries": lambda: check_canaries(sums(), Models(FakeBackend(), placebos=(SECOND,)), CANARIES),
    "recite": recited,
    "audit of a culprit": lambda: direct(MEMBERS, NEVER),
    "flagging of a culprit": lambda: flag(MINE, KNOWN, target(), LOSS),
    "marks of a culprit": lambda: check_marks(
        seal := marking.sealed(),
        Models(FakeBackend([one.published for one in seal.documents]), placebos=(SECOND,)),
        marking.SETTINGS,
    ),
    "triggers of a culprit": lambda: check_triggers(
        seal := sentences.sealed(),
        sentences.answers(**sentences.words(seal)),
        sentences.SETTINGS,
        model="served",
    ),
}


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


def convict(content):
    content |= {"p": 0.0001, "outcome": "consistent", "exit_code": 3}
    content["statement"] = "The predictions of the model are consistent with training on these texts."
    for check in content["checks"]:
        check["status"] = "passed"


def acquit(content):
    none = content["test"] == "flag"
    content |= {"p": 0.9, "outcome": "none" if none else "inconclusive", "exit_code": 0 if none else 4}
    content["statement"] = "No sign of training on these texts was found."


def flag_the_set(content):
    content |= {"p": 0.0001, "outcome": "set", "exit_code": 3}
    content["figures"]["set_test"] |= {"p": 0.0001}


def raise_auc(content):
    row = next(row for row in content["rows"] if row["kind"] == "score")
    row["auc"] |= {"value": 0.99, "low": 0.97, "high": 1.0}


def turn_outcome(content):
    content |= {"outcome": "consistent", "exit_code": 3}


def reword(content):
    content["statement"] = "The predictions of the model are consistent with training on these texts."


def change_second(content):
    check = next(check for check in content["checks"] if check["name"] == "second")
    name = next(name for name in check["figures"] if name.startswith("p of "))
    check["figures"][name] = 0.987


def shrink_effect(content):
    content["effect"] |= {"value": 1.5, "low": 1.2, "high": 1.8}


FORGED = [
    ("run", raise_auc),
    ("flagging", flag_the_set),
    *(
        (kind, change)
        for kind in ("audit", "canaries", "recite", "marks", "triggers")
        for change in (convict, turn_outcome, reword)
    ),
    *((f"{kind} of a culprit", acquit) for kind in ("audit", "flagging", "marks", "triggers")),
    *(
        (kind, change)
        for kind in ("audit", "audit beside a placebo", "canaries")
        for change in (change_second, shrink_effect)
    ),
]


def test_culprits_are_found():
    found = {kind.partition(" ")[0]: made(kind).outcome for kind in MADE if "culprit" in kind}
    assert found.pop("flagging") == "flagged"
    assert found == dict.fromkeys(("audit", "marks", "triggers"), "consistent")


@pytest.mark.parametrize("kind", MADE)
def test_the_tables_of_a_folder_as_it_was_written_give_its_numbers(kind, written, tmp_path):
    found = verify_folder(written(kind, tmp_path / "RESULT"))
    states = {one.name: one.state for one in found.checks}
    assert states == dict.fromkeys(("files", "seal", "report", "numbers"), "yes")
    assert "SHA-256" in found.checks[1].words
    assert "not forgery" in found.checks[1].words


@pytest.mark.parametrize(
    ("kind", "change"), FORGED, ids=[f"{kind}, {change.__name__}" for kind, change in FORGED]
)
def test_a_folder_that_was_rewritten_and_sealed_anew_is_found(kind, change, written, tmp_path):
    folder = written(kind, tmp_path / "RESULT")
    rewrite(folder, change)
    states = {one.name: one.state for one in verify_folder(folder).checks}
    assert states == {"files": "yes", "seal": "yes", "report": "yes", "numbers": "no"}
