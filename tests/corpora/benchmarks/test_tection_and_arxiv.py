"""arXivTection, BookTection and ArxivMIA on files in their published form."""

import csv
import json

import pytest

from pretrace.corpora import open_corpus
from pretrace.corpora.benchmarks.loaders import arxiv_mia, arxivtection, booktection
from pretrace.errors import TextsError


def passages(path, *, sizes=(), answers="ACDB"):
    """A published CSV: a byte order mark, four options, CRLF line ends."""
    header = [*(f"Example_{letter}" for letter in "ABCD"), "Answer", "ID", "Label", "Length"]
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file)
        table.writerow(header if sizes else header[:-1])
        for i, answer in enumerate(answers):
            options = [
                f"{letter}{i}, true\nlines" if letter == answer else f"{letter}{i}" for letter in "ABCD"
            ]
            table.writerow([*options, answer, f"paper {i // 2}", int(i < 2), *([sizes[i]] if sizes else [])])
    return path


def test_the_answer_names_the_passage(tmp_path):
    corpus = arxivtection(str(passages(tmp_path / "0_arXivTection_data.csv")))
    assert [(t.text, t.member, t.group) for t in corpus.texts] == [
        ("A0, true\nlines", True, "paper 0"),
        ("C1, true\nlines", True, "paper 0"),
        ("D2, true\nlines", False, "paper 1"),
        ("B3, true\nlines", False, "paper 1"),
    ]
    assert corpus.name == "arxivtection"
    assert "50 papers" in corpus.card.flaws[1]


def test_an_answer_that_names_none(tmp_path):
    path = passages(tmp_path / "t.csv", answers="AE")
    with pytest.raises(TextsError, match=r"row 1 \(line \d+\): Answer should name the true passage.*'E'"):
        arxivtection(str(path))


def test_a_missing_option_is_a_missing_column(tmp_path):
    (tmp_path / "t.csv").write_text("Example_A,Answer,ID,Label\na,A,p,1\n")
    with pytest.raises(TextsError, match="lacks 'Example_B', 'Example_C', 'Example_D'"):
        arxivtection(str(tmp_path / "t.csv"))


def test_sizes_of_booktection(tmp_path):
    path = passages(tmp_path / "0_BookTection_data.csv", sizes=("small", "large", "small", "medium"))
    assert [t.id for t in booktection(path=str(tmp_path)).texts] == ["0", "1", "2", "3"]
    small = booktection("small", str(path))
    assert [(t.id, t.meta["Length"], t.group) for t in small.texts] == [
        ("0", "small", "paper 0"),
        ("2", "small", "paper 1"),
    ]
    assert small.notes == ("2 of 4 texts taken: those with Length small.",)
    with pytest.raises(TextsError, match="lacks 'Length'"):
        booktection(path=str(passages(tmp_path / "t.csv")))


@pytest.fixture
def abstracts(tmp_path):
    rows = [
        {"text": f"Title: T{i}\nAbstract: A", "field": ("cs", "math", "math")[i], "label": i % 2}
        for i in range(3)
    ]
    for name in ("arxiv_mia", "arxiv_mia_dev", "arxiv_mia_test"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_the_whole_of_arxiv_mia_and_a_field(abstracts):
    whole = arxiv_mia(path=str(abstracts))
    # the file of all, not dev and test once more
    assert [t.member for t in whole.texts] == [False, True, False]
    assert len({t.document for t in whole.texts}) == 3
    assert [t.id for t in arxiv_mia("math", str(abstracts)).texts] == ["1", "2"]


def test_fields_that_are_not_there(abstracts):
    with pytest.raises(TextsError, match="holds no text with field physics"):
        open_corpus(f"arxiv_mia('physics', {str(abstracts)!r})")
    (abstracts / "one.jsonl").write_text('{"text": "a", "field": "cs", "label": 1}\n')
    with pytest.raises(TextsError, match="holds no text with field math"):
        arxiv_mia("math", str(abstracts / "one.jsonl"))
