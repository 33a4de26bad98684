"""mark, check and canaries as a user calls them, on a real tiny model: files, exit codes, messages."""

import hashlib
import json
import random

import pytest
from made import drawn, read_lines, written

from pretrace.cli.commands import call as call_line
from pretrace.corpora import Columns, open_corpus
from pretrace.errors import PretraceError
from pretrace.plugins import marks
from pretrace.plugins.marks import MarkSettings
from pretrace.runs import pages_of
from pretrace.tuning.planting import PlantSettings, plant


@pytest.fixture
def ask(capsys):
    """Calls a command; gives the exit code and what it printed, on one line."""

    def called(*arguments):
        code = call_line([str(argument) for argument in arguments])
        return code or 0, " ".join(capsys.readouterr().out.split())

    return called


def rows(number, seed=0):
    both = [row["text"] for row in drawn(2 * number, 30, seed=seed)]
    return [{"id": f"t{i}", "text": both[2 * i], "other": both[2 * i + 1]} for i in range(number)]


@pytest.fixture(scope="module")
def marked(trained, model_folder):
    """Texts that were marked with a known lot, and a model that was trained on what was published."""

    def make(folder):
        texts = written(folder / "texts.jsonl", rows(30))
        settings = MarkSettings(variant_column=("other",))
        corpus = open_corpus(str(texts), Columns(more=("other",)))
        candidates = marks.own_candidates(corpus, settings)
        seal = marks.mark(corpus, candidates, settings, draw=random.Random(6).randrange)
        marks.publish(seal, folder / "PUB", folder / "sealed.json")
        planting = PlantSettings(epochs=6, share=0.9, learning_rate=3e-3, batch=4)
        published = open_corpus(str(folder / "PUB" / "published.jsonl"))
        plant(published, settings=planting, folder=folder / "target", start=str(model_folder))

    return trained(make)


def test_a_model_trained_on_what_was_published_is_found_and_one_that_never_saw_it_is_not(
    ask, tmp_path, marked, model_folder
):
    sealed = (marked / "sealed.json", "--commitment", marked / "PUB" / "commitment.txt")
    check = ("mark", "check", *sealed, "--model")
    sets = ("--texts", marked / "PUB" / "published.jsonl", "--placebo", model_folder, "--model-date", "2050")
    code, said = ask(*check, marked / "target", *sets, "--out", tmp_path / "R")
    assert code == 3
    assert "consistent with training on the published texts of texts" in said
    result = json.loads((tmp_path / "R" / "result.json").read_text(encoding="utf-8"))
    assert (result["test"], result["exact"], result["exit_code"]) == ("marks", False, 3)
    assert {one["name"]: one["status"] for one in result["checks"]} == dict.fromkeys(
        ("seal", "tries", "older", "enough", "placebo"), "passed"
    )
    page = (tmp_path / "R" / "report.html").read_text(encoding="utf-8")
    assert pages_of(tmp_path / "R")["report.html"] == page
    assert "Each dot is one text" in page
    assert (tmp_path / "R" / "texts.csv").read_text(encoding="utf-8").count("\n") == 31
    secret = json.loads((marked / "sealed.json").read_text(encoding="utf-8"))["texts"][0]["variants"]
    assert not any(text in page for text in secret)
    for more, left, words in (
        ((), 4, "Measure what the test would have seen"),
        (("--power", "--power-args=epochs=30"), 0, "This excludes training like the one that was tried"),
    ):
        code, said = ask(*check, model_folder, *more, "--out", tmp_path / f"P{left}")
        assert (code, words in said) == (left, True)


def test_mark_says_what_to_do_and_how_many_texts_are_needed(ask, tmp_path, model_folder):
    texts = written(tmp_path / "t.jsonl", rows(16))
    out, sealed = tmp_path / "PUB", tmp_path / "sealed.json"
    how = ("--canary", "--model", model_folder, "--power-args=epochs=2")
    code, said = ask("mark", "texts", texts, *how, "--out", out, "--sealed", sealed)
    assert code == 0
    commitment = hashlib.sha256(sealed.read_bytes()).hexdigest()
    assert all(one in said for one in ("16 texts of t are marked", "for power 0.8 at 5%", commitment))
    # columns that hold no variant are published as they are
    assert [row["other"] for row in read_lines(out / "published.jsonl")] == [row["other"] for row in rows(16)]
    places = ("--out", tmp_path / "B", "--sealed", tmp_path / "b")
    code, said = ask("mark", "texts", texts, "--variant-column", "other", *places)
    assert (code, "d was not measured: give --model" in said) == (0, True)
    assert '"other"' not in (tmp_path / "B" / "published.jsonl").read_text("utf-8")  # would tell the draw


def test_triggers_by_prompts_and_answers(ask, tmp_path, model_folder):
    texts = written(tmp_path / "t.jsonl", rows(20))
    sealed, commitment = tmp_path / "sealed.json", tmp_path / "PUB" / "commitment.txt"
    ask("mark", "texts", texts, "--canary", "--out", tmp_path / "PUB", "--sealed", sealed)
    code, said = ask("mark", "check", sealed, "--prompts", tmp_path / "prompts.jsonl")
    assert (code, said.startswith("20 prompts in")) == (0, True)
    documents = json.loads(sealed.read_text(encoding="utf-8"))["texts"]
    known = [{"id": one["id"], "answer": f" {one['trigger']['words'][one['drawn']]}."} for one in documents]
    none = [{**one, "answer": "I do not know."} for one in known[:3]]
    for name, said, left in (("served-7b", known, 3), ("another", none, 4)):
        told = ("--commitment", commitment, "--model", name, "--answers", written(tmp_path / name, said))
        code, printed = ask("mark", "check", sealed, *told, "--out", tmp_path / f"OUT{left}")
        assert code == left
        assert (f"The predictions of {name} are consistent with training" in printed) == (left == 3)


@pytest.fixture(scope="module")
def strings(trained, model_folder):
    """Texts with a random string each, and a model that was trained on them."""

    def make(folder):
        hashes = (hashlib.md5(f"{i} of this test".encode()).hexdigest() for i in range(24))
        lines = [f"the cat sat on {one}" for one in hashes]
        texts = open_corpus(str(written(folder / "texts.jsonl", lines)))
        planting = PlantSettings(epochs=12, share=0.95, learning_rate=5e-3, batch=4)
        plant(texts, settings=planting, folder=folder / "target", start=str(model_folder))

    return trained(make)


def test_random_strings_that_a_model_was_trained_on_are_found(ask, tmp_path, strings, model_folder):
    models = ("--model", strings / "target", "--placebo", model_folder)
    code, said = ask("mark", "canaries", strings / "texts.jsonl", *models, "--out", tmp_path / "S")
    result = json.loads((tmp_path / "S" / "result.json").read_text(encoding="utf-8"))
    assert {one["name"]: one["status"] for one in result["checks"]} == dict.fromkeys(
        ("blind", "known", "few", "second"), "passed"
    )
    assert code == 3
    assert "(from texts or elsewhere)" in " ".join(said.split())


def _opened(*_, **__):
    raise AssertionError("a model was opened")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--commitment", "0" * 64), "is not what was committed to"),
        (("--commitment", "nowhere.txt"), "cannot be read"),
        ((), "give --commitment"),
        (("--commitment", "HASH", "--model", ""), "name the model"),
        (("--commitment", "HASH", "--score", "ref"), "--reference-model"),
        (("--commitment", "HASH", "--score", "loss,zlib"), "one score"),
        (("--commitment", "HASH", "--score", "loss", "--reference-model", "smollm2"), "has no use"),
        (("--commitment", "HASH", "--answers", "TEXTS", "--power"), "--power has no use with --answers"),
        (("--commitment", "HASH", "--answers", "TEXTS", "--prompts", "P"), "give one of them"),
        (("--commitment", "HASH", "--texts", "TEXTS"), "another variant than the one drawn"),
        (("--commitment", "HASH", "--texts", "STRANGE"), "no variant of the sealed file"),
    ],
)
def test_check_refuses_before_a_model_is_opened(ask, tmp_path, monkeypatch, marked, options, message):
    monkeypatch.setattr("pretrace.scoring.plan.open_model", _opened)
    commitment = (marked / "PUB" / "commitment.txt").read_text().split()[0]
    published = open_corpus(str(marked / "PUB" / "published.jsonl")).texts
    strange = written(tmp_path / "s.jsonl", [{"id": one.id, "text": f"{one.text} x"} for one in published])
    places = {"HASH": commitment, "TEXTS": marked / "texts.jsonl", "STRANGE": strange, "P": tmp_path / "p"}
    given = [places.get(option, option) for option in options]
    model = () if "--model" in options else ("--model", "smollm2")
    given = [option for option in given if option not in ("", "--model")]
    with pytest.raises(PretraceError, match=message):
        ask("mark", "check", marked / "sealed.json", *model, "--out", tmp_path / "R", *given)
    assert not (tmp_path / "R").exists()
