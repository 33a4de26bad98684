"""audit and gap as a user calls them: output, files, exit codes, messages."""

from types import SimpleNamespace

import pytest
from made import drawn, written

from pretrace.backends import open_model
from pretrace.corpora import open_corpus
from pretrace.runs import load_verdict
from pretrace.tuning.planting import PlantSettings, plant
from pretrace.verdicts.audit.data import figures_of
from pretrace.verdicts.outcome import SECOND


@pytest.fixture(scope="module")
def culprit(trained, model_folder):
    """A model that learnt the posts by heart, the model it was before, and texts it never saw."""

    def make(folder):
        for i, name in enumerate(("posts", "drafts")):
            written(folder / f"{name}.jsonl", drawn(40, 60, seed=i, name=name))
        how = PlantSettings(share=0.9, epochs=30, batch=4, learning_rate=8e-3, threads=1)
        base, posts = open_model(str(model_folder)), open_corpus(str(folder / "posts.jsonl"))
        plant(posts, settings=how, folder=folder / "target", start=(base.model, base.tokenizer))

    folder = trained(make)
    posts, drafts = folder / "posts.jsonl", folder / "drafts.jsonl"
    return SimpleNamespace(posts=posts, drafts=drafts, target=folder / "target", base=model_folder)


def test_planted_texts_are_found_and_the_exit_code_says_so(ask, tmp_path, culprit, monkeypatch):
    # what has learnt texts by heart here reads others far worse than what knows nothing
    monkeypatch.setattr("pretrace.verdicts.audit.audit.APART", 9.0)
    out, said_of = tmp_path / "AUDIT", ("--requested-by", "the authors", "--controls-note", "their drawers")
    how = ("--generator=none", "--snippets=tokens=32", "--controls", culprit.drafts)
    common = (*how, "--out", out, *said_of)
    asked = ("audit", culprit.posts, "--model", culprit.target, *common)
    said, told = ask(*asked, "--placebo", culprit.base, code=3)
    assert "consistent with training" in " ".join(said.split())
    assert f"Report: {out / 'report.html'}" in said.replace("\n", "")
    assert "Design: control documents, compared directly." in " ".join(told.split())
    kept = load_verdict(out)
    assert kept.outcome == "consistent"
    assert kept.settings["command"]["placebo"] == [str(culprit.base)]
    assert kept.statements == {"requested_by": "the authors", "controls": "their drawers"}
    before = (out / "report.html").read_text()
    (out / "report.html").unlink()
    ask("runs", "report", out)
    assert (out / "report.html").read_text() == before
    # The same files without a placebo: the test alone still finds them. Whether a few control documents of another kind
    # could explain it is close, and the second model that is asked by itself is untrained and of another family.
    ask(*asked, code=(3, 4))
    alone = load_verdict(out)
    assert figures_of(alone).facts["placebo"] is None
    assert alone.p <= alone.level
    assert {one.name for one in alone.checks if one.status == "failed"} <= {"mixture", SECOND}
    # the model it was before knows nothing of them
    innocent = ("audit", culprit.posts, "--model", culprit.base, *common)
    said, _ = ask(*innocent, "--also", "original", code=4)
    assert "Inconclusive" in said
    assert [one.procedure for one in figures_of(load_verdict(out)).variants] == ["original"]


def test_a_culprit_audited_without_anything_to_compare_with_is_given_no_answer(ask, tmp_path, culprit):
    out = tmp_path / "AUDIT"
    asked = ("audit", culprit.posts, "--model", culprit.target, "--generator", culprit.base, "--out")
    planned, _ = ask(*asked, out, "--plan", code=4)
    assert not out.exists()
    said, told = ask(*asked, out, code=4)
    assert "This audit could not have answered." in " ".join(said.split())
    assert all(option in said for option in ("--controls", "--placebo"))
    assert (said, told) == (f"{planned}Report: {out / 'report.html'}\n", "")
    assert load_verdict(out).outcome == "inconclusive"


def test_a_plan_says_what_would_be_done_and_does_nothing(ask, tmp_path, culprit):
    out = tmp_path / "AUDIT"
    out.write_text("a file, where no audit could be written")
    how = ("--snippets=tokens=32", f"--out={out}", "--plan")
    asked = ("audit", culprit.posts, "--model", culprit.target, *how)
    said, _ = ask(*asked, "--controls", culprit.drafts, "--generator=none")
    for words in (
        *("Texts: 40 documents", "40 control documents", "passes of a text through a model, "),
        "Possible outcomes: consistent with training (exit code 3); inconclusive (exit code 4)",
    ):
        assert words in " ".join(said.split())
    said, _ = ask(*asked, "--placebo", culprit.base, "--generator", culprit.base, "--power")
    placebo = f"Placebo: {culprit.base}"
    for words in ("Design: placebos, without control documents.", placebo, "nothing shown (exit code 0)"):
        assert words in " ".join(said.split())
    assert out.read_text() == "a file, where no audit could be written"
