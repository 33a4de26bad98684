"""The reader of the papers' figures: what it makes of good files, and what it says of bad ones."""

import re

import pytest

from benchmarks.papers.figures import Figure, setting_of, tables
from pretrace.corpora import known_corpora
from pretrace.errors import TextsError
from pretrace.scores import scores

ENTRY = """
[{name}]
what = "AUC of two scores."
kind = "{kind}"
percent = true
digits = 1
runs = "A model."
here = "yes"
"""
ROWS = """corpus,score,setting,model,metric,value
wikimia(length=64),min_k(k=0.1),,Pythia-6.9B,auc,0.695
pile('HackerNews'),fsd(zlib),"tuned_on=('wikimia()', 'arxivtection'), texts=100",OPT-6.7B,tpr,0.180
"""


def write(folder, paper="fsd", kind="detection", **csvs):
    """A paper with an entry for each table and its CSV where there is one."""
    (folder / paper).mkdir()
    entries = [ENTRY.format(name=name, kind=kind if text else "other") for name, text in csvs.items()]
    (folder / f"{paper}.toml").write_text('title = "On α"\n' + "".join(entries), encoding="utf-8")
    for name, text in csvs.items():
        if text:
            (folder / paper / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder


def test_a_table_is_read_with_what_it_is(tmp_path):
    (table,) = tables(write(tmp_path, table1=ROWS)).values()
    assert (table.name, table.paper, table.kind, table.here) == ("fsd.table1", "On α", "detection", "yes")
    assert (table.percent, table.digits, table.notes) == (True, 1, "")
    tuned = {"tuned_on": ("wikimia()", "arxivtection"), "texts": 100}
    assert table.figures == (
        Figure("wikimia(length=64)", "min_k(k=0.1)", {}, "Pythia-6.9B", "auc", 0.695),
        Figure("pile('HackerNews')", "fsd(zlib)", tuned, "OPT-6.7B", "tpr", 0.18),
    )


@pytest.mark.parametrize("text", ["100", "counts=C4", "of=open('x')", "a=1)(b=2", "**{'a': 1}"])
def test_anything_but_names_with_values_is_no_setting(text):
    assert setting_of("tuned='lora(rank=8)', shift=-0.5") == {"tuned": "lora(rank=8)", "shift": -0.5}
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        setting_of(text)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("wikimia,ppl,,GPT-3,auc", "wanted 6 cells, found 5"),
        ("wikimia(length,ppl,,GPT-3,auc,0.5", "'wikimia(length' is no expression"),
        ("wikimia,ppl,on=x,GPT-3,auc,0.5", "'on=x' is no setting"),
        ("wikimia,ppl,,GPT-3,auc,nan", "found 'auc' and 'nan'"),
        ("wikimia(length=64),min_k(k=0.1),,Pythia-6.9B,auc,0.7", "the same figure as on line 2"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, row, said):
    write(tmp_path, table1=ROWS + row + "\n")
    path = tmp_path / "fsd" / "table1.csv"
    with pytest.raises(TextsError, match=re.escape(f"{path} line 4: ") + ".*" + re.escape(said)):
        tables(tmp_path)


def test_what_the_papers_print_can_be_run_and_lies_in_its_range():
    for table in tables().values():
        for one in table.figures:
            if table.kind == "detection":
                scores.make(one.score)
                known_corpora().factory(one.corpus.partition("(")[0])
                assert one.value is not None
                assert 0 <= one.value <= 1, (table.name, one)
