"""The table of methods: a run that is added must hold and have a twin; rivals are held against `ref`."""

from argparse import Namespace

import pytest

from benchmarks.methods import __main__ as table
from pretrace import Corpus, Models, Options, detect, evaluate, runs
from pretrace.errors import OutputError
from pretrace.testing import Memory
from pretrace.types import Text


def evaluated(folder, *, placebo):
    texts = [Text(str(i), f"This is text number {i} of some.", member=i % 2 == 0) for i in range(24)]
    corpus = Corpus("made up", tuple(texts))
    twin = Models(Memory(name="twin")) if placebo else None
    models = Models(Memory([one.text for one in texts if one.member]), placebo=twin)
    run = evaluate(detect(corpus, models, "loss", Options(cache=False)), corpus, resamples=20)
    runs.save(run, folder)
    return folder


@pytest.fixture
def given(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "SUBMITTED", tmp_path / "methods")
    how = {"name": "mine", "kind": "letters", "copies": 4, "dilution": 2.0, "place": "late", "source": None}
    return Namespace(run=tmp_path / "run", **how)


def test_a_run_that_holds_is_added_with_its_twin(given):
    evaluated(given.run, placebo=True)
    table.add(given)
    (one,) = table.submitted(table.SUBMITTED)
    wanted = {"method": "loss", "copies": 4, "dilution": 2.0, "place": "late", "source": "mine"}
    assert wanted.items() <= one.items()
    assert one["value"][0] == 1.0
    assert one["never_saw"][0] < 0.8


def test_a_run_that_was_changed_or_has_no_twin_is_refused(given):
    evaluated(given.run, placebo=False)
    with pytest.raises(OutputError, match="never saw"):
        table.add(given)
    page = given.run / "report.html"
    page.write_text(page.read_text(encoding="utf-8") + " ", encoding="utf-8")
    with pytest.raises(OutputError, match="not as it was written"):
        table.add(given)


def test_the_table_on_file_is_what_the_results_on_file_give():
    assert table.MERGED.read_text(encoding="utf-8") == table.written()


def cell(number, **aucs):
    return [table.row(method=m, what="AUC", copies=number, value=[auc, 0, 1]) for m, auc in aucs.items()]


def test_a_rival_wins_where_it_leads_in_five_of_eight_cells_with_room():
    cells = (cell(i, ref=0.6, ez=0.64 if i < 5 else 0.6, wbc=0.64 if i < 4 else 0.5) for i in range(8))
    rows = [one for some in cells for one in some]
    told = table.against_ref([*rows, *cell(9, ref=0.99, ez=0.99, wbc=1.0)])
    assert told["ez"]["wins"] is True
    assert (told["wbc"]["wins"], told["wbc"]["ahead_by_0.03"], told["wbc"]["behind_by_0.03"]) == (False, 4, 4)
    assert (told["wbc"]["cells"], told["wbc"]["cells_with_room"]) == (9, 8)
    assert told["learned"]["wins"] is False
