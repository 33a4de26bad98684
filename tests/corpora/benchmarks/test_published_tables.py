"""Benchmarks that are one table in a published schema: what they say, and what is wrong with others, in one line."""

import csv

import pytest
from made import written

from pretrace.corpora import open_corpus
from pretrace.corpora.benchmarks import _Schema, find_tables, patentmia
from pretrace.errors import ExpressionError, TextsError

SCHEMA = _Schema("Bench", ("passage", "label", "book"), "passage", group="book", meta=("page",))
FIELDS, SIZES = ("cs", "math", "math"), ("small", "large", "small", "medium")


def excerpt(i):
    book = {"book_id": i // 2 or None, "book": f"B{i // 2}", "snippet_id": i % 2}
    return {**book, "snippet": f"text {i}", "label": int(i < 2)}


def passage(i, answer, **more):
    options = {f"Example_{a}": f"{a}{i}, true\nlines" if a == answer else f"{a}{i}" for a in "ABCD"}
    return {**options, "Answer": answer, "ID": f"paper {i // 2}", "Label": int(i < 2), **more}


def snippet(page, length):
    told = {"label": int(page == "A"), "group": page, "date": "2022-01-01", "length": length}
    return {"id": f"{page}#{length}", "text": "专利" * length, **told}


def article(name, label, kind):
    text, told = f"news {name}", {"label": label, "group": f"page {name}", "transformed": 1 - label}
    return {
        "id": name,
        "text": text if label else f"{text} by {kind}",
        "original": text,
        "split": "test",
        **told,
    }


def as_table(path, rows):
    """A published CSV: a byte order mark, CRLF line ends."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    return path


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder for each benchmark as it is published, with what lies beside its table."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "bookmia/book_data.jsonl", [excerpt(i) for i in range(4)])
    (tmp_path / "bookmia/README.md").write_text("")
    for name in ("arxiv_mia", "arxiv_mia_dev", "arxiv_mia_test"):
        rows = [{"text": f"Title: T{i}", "field": FIELDS[i], "label": i % 2} for i in range(3)]
        written(tmp_path / f"arxiv_mia/{name}.jsonl", rows)
    as_table(tmp_path / "arxivtection/a.csv", [passage(i, one) for i, one in enumerate("ACDB")])
    sized = [passage(i, one, Length=size) for i, (one, size) in enumerate(zip("ACDB", SIZES, strict=True))]
    as_table(tmp_path / "booktection/0_BookTection_data.csv", sized)
    written(tmp_path / "patentmia/patentmia.jsonl", [snippet(page, n) for page in "AB" for n in (64, 512)])
    for kind in ("mask", "prompt"):
        rows = [article("a", 1, kind), article("b", 0, kind)]
        written(tmp_path / f"ccnewspdd/{kind}.jsonl", rows)
        (tmp_path / f"ccnewspdd/{kind}.card.json").write_text("{}")
    (tmp_path / "patentmia/patentmia.card.json").write_text("{}")
    return tmp_path


PASSAGES = [f"{a}{i}, true\nlines|{i < 2}|paper {i // 2}" for i, a in enumerate("ACDB")]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("bookmia(path='bookmia')", [f"{i}|text {i}|{i < 2}|B{i // 2}" for i in range(4)]),
        ("bookmia(path='bookmia/book_data.jsonl')", [f"{i}|text {i}|{i < 2}|B{i // 2}" for i in range(4)]),
        ("arxivtection(path='arxivtection')", [f"{i}|{one}" for i, one in enumerate(PASSAGES)]),
        ("booktection(path='booktection')", [f"{i}|{one}" for i, one in enumerate(PASSAGES)]),
        ("booktection('small', 'booktection')", [f"0|{PASSAGES[0]}", f"2|{PASSAGES[2]}"]),
        # the file of all, not dev and test once more
        ("arxiv_mia(path='arxiv_mia')", ["0|Title: T0|False|", "1|Title: T1|True|", "2|Title: T2|False|"]),
        ("arxiv_mia('math', 'arxiv_mia')", ["1|Title: T1|True|", "2|Title: T2|False|"]),
        ("patentmia('patentmia', 64)", [f"A#64|{'专利' * 64}|True|A", f"B#64|{'专利' * 64}|False|B"]),
        ("ccnewspdd('ccnewspdd', 'mask')", ["a|news a|True|page a", "b|news b by mask|False|page b"]),
        ("ccnewspdd('ccnewspdd/prompt.jsonl', 'prompt')", ["a|news a|True|page a", "b|news b by prompt|False|page b"]),
        ("ccnewspdd('ccnewspdd', 'original')", ["a|news a|True|page a", "b|news b|False|page b"]),
    ],
)  # fmt: skip
def test_what_a_published_table_says(desk, expression, found):
    corpus = open_corpus(expression)
    assert [f"{t.id}|{t.text}|{t.member}|{t.group}" for t in corpus.texts] == found


def test_further_columns_notes_and_titles(desk):
    books = open_corpus("bookmia(path='bookmia')").texts
    assert (books[0].meta["book_id"], books[3].meta) == ("", {"book_id": "1", "snippet_id": "1"})
    small = open_corpus("booktection('small', 'booktection')")
    assert (small.texts[0].meta["Length"], small.name) == ("small", "booktection('small', 'booktection')")
    assert small.notes == ("2 of 4 texts taken: those with Length small.",)
    assert open_corpus("patentmia('patentmia')").texts[0].meta["date"] == "2022-01-01"
    assert "before any transformation" in open_corpus("ccnewspdd('ccnewspdd', 'original')").card["title"]


@pytest.mark.parametrize(
    ("expression", "error", "said"),
    [
        ("arxiv_mia('physics', 'arxiv_mia')", TextsError, "holds no text with field physics"),
        ("arxivtection('odd.csv')", TextsError, r"row 1 \(line \d+\): Answer should name the true passage.*'E'"),
        ("arxivtection('arxiv_mia/arxiv_mia.jsonl')", TextsError, "lacks 'Label', 'ID', 'Exam.*found 'text', 'field'"),
        ("booktection(path='arxivtection')", TextsError, "lacks 'Length'"),
        ("patentmia('patentmia', 100)", TextsError, "no text with length 100"),
        ("patentmia('patentmia', 0)", ExpressionError, "length must be a number of words, found 0"),
        ("patentmia()", ExpressionError, r"written patentmia\(path, length=None\)"),
        ("ccnewspdd('ccnewspdd')", TextsError, r"names begin with 'trans'.* it has 'mask.jsonl', 'prompt.jsonl'"),
        ("ccnewspdd('ccnewspdd/mask.jsonl', 'prompt')", TextsError, "of another kind: ask for kind='mask'"),
        ("ccnewspdd('ccnewspdd', 'masked')", ExpressionError, "kind must be one of 'trans', 'mask', 'prompt', 'orig"),
    ],
)  # fmt: skip
def test_what_is_refused(desk, expression, error, said):
    as_table(desk / "odd.csv", [passage(0, "A"), passage(1, "E")])
    with pytest.raises(error, match=said):
        open_corpus(expression)


def test_the_data_files_of_a_folder(tmp_path):
    beside = (".hidden/x.csv", "README.txt", "dataset_infos.json", "a.card.json")
    for name in ("b/train.jsonl", "a.csv.gz", *beside):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = [file.relative_to(tmp_path).as_posix() for file in find_tables(tmp_path)]
    assert found == ["a.csv.gz", "b/train.jsonl"]
    said = r"holds 0 files whose names begin with 'patentmia'.*'a.csv.gz', 'b/train.jsonl': name the one"
    with pytest.raises(TextsError, match=said):
        patentmia(str(tmp_path))
