"""The experiment on the tests without an earlier checkpoint, made tiny: it runs, goes on where it was, and the lots and
laws are what they say."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import designs, designs_lots, designs_summary
from benchmarks.designs_audits import Audit, Remembered, written
from benchmarks.designs_texts import OTHER, QUICK, cut, material, pieces, reworded, shuffles, vocabulary
from benchmarks.designs_worlds import World, membership, planted, stretches
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.plan import Models
from pretrace.types import Corpus, Text

PNG = b"\x89PNG"
DOMAIN = "wikipedia_en"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two domains of made-up texts."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "pile").mkdir()
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghij"), int(n))) for n in rng.integers(4, 9, size=60)]
    for name in (DOMAIN, OTHER[DOMAIN]):
        with gzip.open(folder / "pile" / f"{name}.jsonl.gz", "wt") as file:
            for _ in range(200):
                file.write(json.dumps({"text": " ".join(rng.choice(words, 45))}) + "\n")
    return folder


def call(monkeypatch: pytest.MonkeyPatch, folder: Path, data: Path, *more: object) -> dict[str, Any]:
    """What `main` leaves on file."""
    out = folder / "designs.json"
    given = [folder / "work", "--quick", "--data", data, "--domains", DOMAIN, "--out", out]
    given += ["--nulls", 8, "--members", 2, "--whole", 1, "--few", 1, *more]
    monkeypatch.setattr(sys, "argv", ["designs", *map(str, given)])
    designs.main()
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def test_it_runs_and_goes_on_where_it_was(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = tmp_path / "needed.json"
    needed.write_text('{"placebo": {"unit": "document"}}')
    found = call(monkeypatch, tmp_path, data, "--needed", needed)
    assert {row["design"] for row in found["rows"]} == set(designs.DESIGNS)
    kinds = {(row["design"], row["kind"].split(":")[0]) for row in found["rows"]}
    assert {(name, kind) for name in designs.DESIGNS for kind in ("null", "member")} <= kinds
    for row in found["rows"]:
        assert row["audits"] == len(row["p"]) + row["untested"]
        assert row["rejections"] == sum(p <= 0.05 for p in row["p"])
    assert {row["design"] for row in found["summary"]} == set(designs.DESIGNS)
    assert found["kept_apart"] == []
    advised = json.loads(needed.read_text())
    assert set(advised) == {"placebo", *designs.DESIGNS}
    for name in ("designs.png", "designs_order.png"):
        assert (tmp_path / name).read_bytes().startswith(PNG)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").rglob("*") if path.is_file()}
    assert call(monkeypatch, tmp_path, data)["rows"] == found["rows"]
    assert {path: path.stat().st_mtime_ns for path in before} == before
    with pytest.raises(SystemExit, match="other settings"):
        call(monkeypatch, tmp_path, data, "--nulls", 9)


def test_what_is_planted(data: Path) -> None:
    made, world = material(data, DOMAIN, QUICK), World(DOMAIN, 1)
    member, texts = membership(world, QUICK), planted(world, made, QUICK)
    lines = [line for text in texts for line in text.split("\n")]
    for kind, counts in {"documents": QUICK.documents, "shards": QUICK.shards, "items": QUICK.items}.items():
        assert [int((member[kind] == n).sum()) for n in (1, 4, 16, 0)] == list(counts)
    for i, times in enumerate(member["documents"].tolist()):
        if times >= 0:
            assert [texts.count(one) for one in made.variants[i]].count(times) >= 1
            assert texts.count(made.published[i]) == times
        else:
            assert all(texts.count(one) == 4 for one in made.variants[i])
    for i, times in enumerate(member["items"].tolist()):
        assert texts.count(made.items[i][0]) == times
        assert not any(one in texts for one in made.items[i][1:])
    for i, times in enumerate(member["shards"].tolist()):
        assert sum(lines.count(row) for row in made.shards[i]) == times * QUICK.rows
    never = made.shards[int(np.flatnonzero(member["shards"] == 0)[0])]
    assert not any(row in lines for row in never)


def test_stretches_hold_all_rows_in_order() -> None:
    rows = [f"row {i}" for i in range(23)]
    made = [stretches(rows, 10, turn) for turn in range(4)]
    assert all("\n".join(some).split("\n") == rows for some in made)
    assert len({some[0] for some in made}) > 1


def test_texts() -> None:
    words = vocabulary(["lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor amet"])
    assert words == {5: ["dolor", "ipsum", "lorem"]}
    text = "lorem ipsum dolor " * 10
    new = reworded(text, words, 0.1, np.random.default_rng(0))
    assert len(new) == len(text)
    assert sum(a != b for a, b in zip(text.split(), new.split(), strict=True)) <= 3
    assert cut("one two three", 9) == "one two"
    assert " ".join(pieces(text, 20)) == text.strip()
    kept, every = shuffles(QUICK, 3, 9), shuffles(QUICK, 3, 9, whole=True)
    assert all(
        order[0] == 0 and sorted(order) == list(range(QUICK.rows)) for shard in kept for order in shard
    )
    assert any(order[0] != 0 for shard in every for order in shard)
    assert shuffles(QUICK, 3, 4) == [shard[:4] for shard in kept]


def test_a_remembered_model_gives_what_the_model_gave() -> None:
    texts, values = ["one", "two", "three"], np.array([[-6.0, 3], [-10.0, 4], [-1.5, 1]])
    corpus = Corpus("c", tuple(Text(str(i), text) for i, text in enumerate(texts)))
    run = detect(corpus, Models(Remembered("m", texts, values)), "loss", Options(cache=False))
    assert run.matrix[:, 0] == pytest.approx([-2.0, -2.5, -1.5])
    assert run.tokens.tolist() == [3, 4, 1]


def test_the_chosen_alternative_comes_first() -> None:
    values = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert designs_lots.first_of(values, np.array([1, 2])).tolist() == [[2.0, 1.0, 3.0], [6.0, 4.0, 5.0]]


def test_laws_of_p() -> None:
    rng = np.random.default_rng(0)
    fair = rng.integers(1, 1001, size=400) / 1000
    assert designs_summary.discrete_uniform(fair, 1000)[1] > 0.05
    assert designs_summary.discrete_uniform(fair**2, 1000)[1] <= 0.01
    assert designs_summary.above_uniform(fair) < 1.36 / 20
    assert designs_summary.above_uniform(fair**2) > 0.2
    assert designs_summary.binomial_interval(300) == (8, 23)


def test_units_for_a_power() -> None:
    def row(units: int, share: float) -> dict[str, Any]:
        return {"copies": 1, "units": units, "share": [share, 0, 1]}

    rows = [row(10, 0.2), row(20, 0.6), row(40, 1.0)]
    assert designs_summary.needed(rows, 1) == 29
    assert designs_summary.needed(rows[:2], 1) is None
    assert designs_summary.needed(rows[2:], 1) == 40
    assert designs_summary.needed(rows, 4) is None


def test_rows_are_pooled() -> None:
    rows = [
        written([Audit.of(0.01), Audit.of(0.2), Audit(None, False)], design="marks", kind="null"),
        written([Audit(0.03, False)], design="marks", kind="null"),
    ]
    assert rows[0]["untested"] == 1
    (found,) = designs_summary.pooled(rows, "design")
    assert (found["audits"], found["rejections"], found["accused"]) == (4, 2, 1)
    assert found["share"][0] == 0.25
