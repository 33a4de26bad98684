"""`flag` and `audit` with `--found`: what a scan found of the same texts is shown and changes nothing."""

import pytest
from made import drawn, written

from pretrace.runs import load, pages_of


@pytest.fixture
def place(tmp_path, command):
    """Forty texts, of which ten stand in a corpus, forty others of the same kind, and the scan."""
    sides = {name: drawn(40, 60, seed=i, name=name) for i, name in enumerate(("mine", "known"))}
    mine, _ = (written(tmp_path / f"{name}.jsonl", rows) for name, rows in sides.items())
    held = [row["text"] for row in sides["mine"][:10]]
    corpus = written(tmp_path / "corpus.jsonl", [*held, f"{held[0]} again"])
    # whole, but each too short to be called found without controls
    assert command("scan", mine, "--corpus", corpus, "--out", tmp_path / "FOUND")[0] == 4
    return tmp_path


def flagged(place, model, out, *more):
    sets = (place / "mine.jsonl", "--controls", place / "known.jsonl", "--model", model)
    return ("flag", *sets, "--out", place / out, *more)


def pages(folder):
    return " ".join((folder / "report.html").read_text(encoding="utf-8").split())


SAID = "10 of 40 stand in it whole or nearly whole"


def test_a_flagging_shows_what_was_found_and_is_the_same(place, model_folder, command, monkeypatch):
    plain, said = command(*flagged(place, model_folder, "PLAIN"))
    assert SAID not in said
    code, said = command(*flagged(place, model_folder, "BESIDE", "--found", place / "FOUND"))
    assert code == plain
    assert SAID in said
    page = pages(place / "BESIDE")
    assert page.count(SAID) == 2  # page one and the section
    assert "What a search found of these texts" in page
    assert "In the corpus" in page
    assert "In the corpus" not in pages(place / "PLAIN")
    one, other = load(place / "PLAIN"), load(place / "BESIDE")
    assert (one.p, one.outcome, one.statement, one.reasons) == (
        other.p,
        other.outcome,
        other.statement,
        other.reasons,
    )
    rows = other.settings["found"]["rows"]
    assert {row["id"] for row in rows} == {f"mine{i}" for i in range(10)}
    assert {row["id"]: row["copies"] for row in rows}["mine0"] == 2
    assert pages_of(place / "BESIDE")["report.html"] == (place / "BESIDE/report.html").read_text(
        encoding="utf-8"
    )
    tables = [(place / name / "flags.csv").read_bytes() for name in ("PLAIN", "BESIDE")]
    assert tables[0] == tables[1]
    monkeypatch.setattr("pretrace.scoring.parts.SHARD", 16)
    for part in ("1/2", "2/2"):
        how = flagged(place, model_folder, "PARTS", "--found", place / "FOUND", "--shard", part)
        assert command(*how)[0] == 0
    code, said = command("runs", "merge", place / "PARTS")
    assert (code, SAID in said) == (plain, True)
    assert SAID in pages(place / "PARTS")


def test_an_audit_shows_what_was_found_and_is_the_same(place, model_folder, reference_folder, command):
    sets = ("audit", place / "mine.jsonl", "--controls", place / "known.jsonl", "--model", model_folder)
    sets = (*sets, "--placebo", reference_folder)  # the packaged model takes a minute to unpack
    plain, said = command(*sets, "--generator", "none", "--out", place / "PLAIN")
    assert SAID not in said
    code, said = command(*sets, "--generator", "none", "--out", place / "BESIDE", "--found", place / "FOUND")
    assert (code, SAID in said) == (plain, True), said
    assert pages(place / "BESIDE").count(SAID) == 2
    one, other = load(place / "PLAIN"), load(place / "BESIDE")
    assert (one.p, one.outcome, one.reasons) == (other.p, other.outcome, other.reasons)


@pytest.mark.parametrize("kind", ["flag", "audit"])
def test_what_is_no_scan_of_these_texts_is_refused(place, model_folder, command, kind):
    words = ("--controls", place / "mine.jsonl", "--model", model_folder, "--out", place / "X", "--found")
    for texts, found, why in (
        (place / "mine.jsonl", place / "corpus.jsonl", "--found takes the --out of `pretrace scan`"),
        (place / "known.jsonl", place / "FOUND", "did not look for the text 'known0'"),
    ):
        code, said = command(kind, texts, *words, found)
        assert (code, why in said) == (2, True), said
        assert not (place / "X").exists()
