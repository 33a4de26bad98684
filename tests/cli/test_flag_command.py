"""flag as a user calls it, on a real tiny model: output, files, exit codes, messages."""

import csv
import json
from types import SimpleNamespace

import pytest
from made import drawn, written

from pretrace.corpora import open_corpus
from pretrace.runs import pages_of
from pretrace.tuning.planting import PlantSettings, plant


@pytest.fixture(scope="module")
def planted(trained, model_folder):
    """Texts of which some were planted in a model, known non-members of the same kind, and the model."""

    def make(folder):
        rows = drawn(140, 60)
        texts = written(folder / "texts.jsonl", rows[:40])
        written(folder / "known.jsonl", rows[40:])
        settings = PlantSettings(epochs=30, share=0.5, learning_rate=3e-3, batch=4)
        plant(open_corpus(str(texts)), settings=settings, folder=folder / "target", start=str(model_folder))

    folder = trained(make)
    texts = open_corpus(str(folder / "target" / "texts.jsonl")).texts
    sets = ("flag", folder / "texts.jsonl", "--controls", folder / "known.jsonl", "--model")
    return SimpleNamespace(sets=sets, model=folder / "target", members={t.id for t in texts if t.member})


def test_planted_texts_are_flagged_and_the_exit_code_says_so(call, tmp_path, planted, model_folder):
    out = tmp_path / "FLAGS"
    how = ("--score", "ref", "--reference-model", model_folder, "--fdr", 0.2)
    code, said, noted = call(*planted.sets, planted.model, *how, "--out", out)
    assert code == 3
    assert "No second model could show" in " ".join(said.split())
    assert "note: With 100 known documents" in noted
    with (out / "flags.csv").open(encoding="utf-8", newline="") as file:
        chosen = {row["id"] for row in csv.DictReader(file) if row["flagged"] == "1"}
    assert len(chosen & planted.members) > 2 * len(chosen - planted.members)
    found = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert (found["outcome"], found["exit_code"]) == ("flagged", 3)
    assert found["settings"]["command"]["reference_model"] == str(model_folder)
    assert pages_of(out)["report.html"] == (out / "report.html").read_text(encoding="utf-8")


def test_a_model_that_never_saw_them_flags_nothing(call, tmp_path, planted, model_folder):
    missed, coarse = (
        "Could have been missed: nothing stands out among the 40 texts",
        "at a rate of 0.01%, more than",
    )
    wrong_way_round = ("--placebo", planted.model, "--score", "loss", "--fdr", 0.3)
    for how, words, notes, second in (
        ((), missed, "", "tiny-llama"),  # which stands for the packaged model here
        (("--fdr", 0.0001, "--placebo", "none"), missed, coarse, "None"),
        (wrong_way_round, "Refused", "", str(planted.model)),
    ):
        code, said, noted = call(*planted.sets, model_folder, *how, "--out", tmp_path / "FLAGS")
        assert (code, words in " ".join(said.split()), notes in noted) == (4, True, True), said
        found = json.loads((tmp_path / "FLAGS" / "result.json").read_text(encoding="utf-8"))
        assert str(found["settings"]["models"].get("placebo", {}).get("name")).endswith(second)


def test_an_all_clear_takes_measured_power(call, tmp_path, planted, model_folder, monkeypatch):
    """A tenth of the texts is planted in a copy; read once it leaves no trace here, so nothing is cleared."""
    monkeypatch.setattr("pretrace.verdicts.flag.concluding.SIMULATED", 80)  # at twelve sizes
    how = ("--score", "loss", "--power", "--out", tmp_path / "FLAGS")
    code, said, _ = call(*planted.sets, model_folder, *how)
    words = " ".join(said.split())
    found = json.loads((tmp_path / "FLAGS" / "result.json").read_text(encoding="utf-8"))
    power = found["planted"]["probability"]["value"]
    assert (code, found["outcome"], found["planted"]["planted"] >= 4) == (4, "missed", True)
    assert power < 0.8
    assert f"in which a tenth of the documents were read like that, {power:.0%} [" in words
    page = (tmp_path / "FLAGS" / "report.html").read_text(encoding="utf-8")
    assert pages_of(tmp_path / "FLAGS")["report.html"] == page
