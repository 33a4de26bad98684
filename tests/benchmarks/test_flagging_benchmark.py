"""The draws of the flagging benchmark: apart, of the right mixture, and figures that a naive loop gives too."""

from __future__ import annotations

import argparse
import json

import numpy as np
import pytest
from tiny import SENTENCES

from benchmarks.designs import flagging as benchmark
from benchmarks.designs.flagging import (
    FOREIGN,
    RATES,
    SCORES,
    Pool,
    Sizes,
    drawn,
    flags,
    keys,
    placebo_refusals,
    refusals,
)
from benchmarks.designs.flagging_plots import draw
from pretrace.errors import TextsError
from pretrace.tuning.planting import PlantSettings, plant
from pretrace.types import Corpus, Text


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Fewer resamples for the intervals of the controls."""
    monkeypatch.setattr("pretrace.verdicts.flag.checks.RESAMPLES", 300)


SIZES = Sizes(known=40, asked=20, draws=40, seed=0)


def pool(shift=2.5, number=160):
    rng = np.random.default_rng(0)
    members = np.arange(number) < number // 2
    before = rng.normal(size=number)
    target = before + shift * members
    return Pool(members, dict.fromkeys(SCORES, target), dict.fromkeys(SCORES, before))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_draws_hold_what_they_should(share):
    members = pool().members
    for known, asked in drawn(members, share, SIZES):
        assert len(known) == 40
        assert len(asked) == 20
        assert not members[known].any()
        assert members[asked].sum() == 20 * share
        assert len(set(known) | set(asked)) == 60


def test_false_shares_stay_below_the_rate_and_members_are_found():
    found = flags(pool(), "loss", 0.5, SIZES)
    assert [row["rate"] for row in found] == list(RATES)
    for row in found:
        assert row["fdr"][0] <= row["rate"] + 3 * row["fdr"][1]
        assert row["before_any"] <= row["rate"] + 0.2
    assert found[-1]["power"] > 0.6
    nothing = flags(pool(), "loss", 0.0, SIZES)
    assert all(row["power"] == 0 for row in nothing)
    assert nothing[0]["any"] == pytest.approx(nothing[0]["fdr"][0], abs=1e-4)
    assert placebo_refusals(pool(), "loss", SIZES, draws=10) <= 2


def test_sets_of_another_kind_are_refused_and_alike_ones_are_not():
    rng = np.random.default_rng(1)

    def corpus(words):
        return Corpus("c", tuple(Text(str(i), " ".join(rng.choice(words, 30))) for i in range(80)))

    own, other = corpus(["a1", "b2", "c3", "d4"]), corpus(["e5", "f6", "c3", "d4"])
    few = Sizes(known=40, asked=20, draws=4, seed=0)
    assert refusals(own, [other], 0.0, few)["either"] <= 1
    assert refusals(own, [other], 1.0, few)["words"] == 4


def test_a_planted_model_is_measured_whole(tmp_path, model_folder):
    rng = np.random.default_rng(2)
    texts = tuple(Text(str(i), " ".join(rng.choice(SENTENCES[4].split(), 12))) for i in range(60))
    settings = PlantSettings(epochs=1, batch=8)
    plant(Corpus("c", texts), settings=settings, folder=tmp_path / "hackernews-1", start=str(model_folder))
    given = argparse.Namespace(
        work=tmp_path,
        model=str(model_folder),
        dtype="float32",
        known=20,
        texts=10,
        draws=3,
        set_draws=2,
        seed=0,
    )
    rows, facts = benchmark.of_model({"domain": "hackernews", "epochs": 1}, given)
    assert len(rows) == 5 * 3 * 4
    assert facts["members"] + facts["nonmembers"] == 60
    rows, _ = benchmark.of_texts({"domain": "hackernews"}, given)
    assert [(row["foreign"], row["draws"]) for row in rows] == [(0.0, 2)]


def test_what_there_is_decides_what_is_measured(tmp_path):
    with pytest.raises(TextsError, match=r"benchmarks\.papers\.planted_domains"):
        keys(tmp_path)
    for name in ("hackernews-1", "hackernews-4", "wikipedia_en-4", "wikipedia_en-1"):
        (tmp_path / name).mkdir()
        if name != "wikipedia_en-1":
            (tmp_path / name / "card.json").write_text("{}")
    found = keys(tmp_path)
    assert [key.get("epochs") for key in found if key["part"] == "flags"] == [1, 4, 4]
    assert [key["domain"] for key in found if key["part"] == "sets"] == ["hackernews", "wikipedia_en"]


def test_the_plot_is_drawn(tmp_path):
    rows = [
        {"part": "flags", "domain": "d", "epochs": e, "score": s, "share": 0.5, **row}
        for e in (1, 4)
        for s in SCORES[:2]
        for row in flags(pool(), s, 0.5, Sizes(40, 20, 5, 0))
    ]
    settings = {"texts": 20, "known": 40, "draws": 5, "model": "smollm2", "dtype": "float32"}
    rows.append({"part": "sets", "domain": "d", "foreign": FOREIGN[0], "draws": 1, "refused": {}})
    draw(json.loads(json.dumps({"settings": settings, "rows": rows})), tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 5000
    assert benchmark.NOTES
