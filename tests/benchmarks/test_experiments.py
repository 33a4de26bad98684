"""The experiments, on tiny models and made-up texts: they run, go on after a kill, and say what they measured."""

import pytest

from benchmarks.experiments import Ledger, thinned
from pretrace.types import Corpus, Text


def test_a_file_of_other_settings_is_left_alone(tmp_path):
    ledger = Ledger(tmp_path / "some.json", {"texts": 10})
    ledger.add({"seed": 0}, [{"auc": [0.5, 0.4, 0.6]}], {})
    with pytest.raises(SystemExit, match="texts 10 there and 11 here"):
        Ledger(tmp_path / "some.json", {"texts": 11})
    assert list(Ledger(tmp_path / "some.json", {"texts": 10}).todo([{"seed": 0}, {"seed": 1}])) == [
        {"seed": 1}
    ]
    assert not Ledger(tmp_path / "some.json", {"texts": 11}, fresh=True).content["rows"]


def test_thinning_takes_of_every_document_before_a_second_of_any():
    texts = tuple(
        Text(f"{g}-{i}", f"{g} {i}", g % 2 == 0, str(g)) for g in range(6) for i in range(1 + 3 * g)
    )
    some = thinned(Corpus("made up", texts), 8).texts
    assert len(some) == 8
    assert sum(bool(text.member) for text in some) == 4
    assert {text.group for text in some} == {"0", "1", "2", "3", "4", "5"}
    assert thinned(Corpus("made up", texts), 8).texts == some
    assert thinned(Corpus("made up", texts), 8, seed=1).texts != some
