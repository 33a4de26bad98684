"""arXivTection, BookTection and ArxivMIA on files in their published form."""

import csv

import pytest
from made import written

from pretrace.corpora import open_corpus
from pretrace.corpora.benchmarks.loaders import arxiv_mia, arxivtection, booktection, ccnewspdd, patentmia
from pretrace.errors import ExpressionError, TextsError


def passages(path, *, sizes=(), answers="ACDB"):
    """A published CSV: a byte order mark, four options, CRLF line ends."""
    header = [*(f"Example_{letter}" for letter in "ABCD"), "Answer", "ID", "Label", "Length"]
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file)
        table.writerow(header if sizes else header[:-1])
        for i, answer in enumerate(answers):
            options = [f"{a}{i}, true\nlines" if a == answer else f"{a}{i}" for a in "ABCD"]
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


def test_tables_that_make_no_passage(tmp_path):
    path = passages(tmp_path / "t.csv", answers="AE")
    with pytest.raises(TextsError, match=r"row 1 \(line \d+\): Answer should name the true passage.*'E'"):
        arxivtection(str(path))
    (tmp_path / "t.csv").write_text("Example_A,Answer,ID,Label\na,A,p,1\n")
    with pytest.raises(TextsError, match="lacks 'Example_B', 'Example_C', 'Example_D'"):
        arxivtection(str(tmp_path / "t.csv"))


def test_sizes_of_booktection(tmp_path):
    path = passages(tmp_path / "0_BookTection_data.csv", sizes=("small", "large", "small", "medium"))
    assert [t.id for t in booktection(path=str(tmp_path)).texts] == ["0", "1", "2", "3"]
    small = booktection("small", str(path))
    found = [(t.id, t.meta["Length"], t.group) for t in small.texts]
    assert found == [("0", "small", "paper 0"), ("2", "small", "paper 1")]
    assert small.notes == ("2 of 4 texts taken: those with Length small.",)
    with pytest.raises(TextsError, match="lacks 'Length'"):
        booktection(path=str(passages(tmp_path / "t.csv")))


def test_the_whole_of_arxiv_mia_and_a_field(tmp_path):
    fields = ("cs", "math", "math")
    rows = [{"text": f"Title: T{i}\nAbstract: A", "field": fields[i], "label": i % 2} for i in range(3)]
    for name in ("arxiv_mia", "arxiv_mia_dev", "arxiv_mia_test"):
        written(tmp_path / f"{name}.jsonl", rows)
    whole = arxiv_mia(path=str(tmp_path))
    # the file of all, not dev and test once more
    assert [t.member for t in whole.texts] == [False, True, False]
    assert len({t.document for t in whole.texts}) == 3
    assert [t.id for t in arxiv_mia("math", str(tmp_path)).texts] == ["1", "2"]
    one = written(tmp_path / "one.jsonl", rows[:1])
    for path, field in ((tmp_path, "physics"), (one, "math")):
        with pytest.raises(TextsError, match=f"holds no text with field {field}"):
            open_corpus(f"arxiv_mia({field!r}, {str(path)!r})")


def snippet(page, length, label):
    told = {"label": label, "group": page, "date": "2022-01-01", "length": length}
    return {"id": f"{page}#{length}", "text": "专利" * length, **told}


def article(name, label, kind):
    changed = "" if label else f" by {kind}"
    return {
        "id": name, "text": f"news {name}{changed}", "label": label, "group": f"page {name}",
        "original": f"news {name}", "transformed": 1 - label, "split": "test",
    }  # fmt: skip


def test_patents_and_one_length_of_them(tmp_path):
    rows = [snippet(page, n, int(page == "A")) for page in "AB" for n in (64, 512)]
    written(tmp_path / "patentmia.jsonl", rows)
    (tmp_path / "patentmia.card.json").write_text("{}")
    for path in (tmp_path, tmp_path / "patentmia.jsonl"):
        whole = open_corpus(f"patentmia(path={str(path)!r})")
        assert [(t.id, t.member, t.group) for t in whole.texts] == [
            (f"{page}#{length}", page == "A", page) for page in "AB" for length in (64, 512)
        ]
    short = patentmia(str(tmp_path), length=64)
    assert [t.id for t in short.texts] == ["A#64", "B#64"]
    assert short.texts[0].meta["date"] == "2022-01-01"
    with pytest.raises(TextsError, match="no text with length 100"):
        patentmia(str(tmp_path), 100)
    with pytest.raises(ExpressionError, match="length must be a number of words, found 0"):
        patentmia(str(tmp_path), 0)
    with pytest.raises(TextsError, match="lacks 'id', 'group', 'length'"):
        patentmia(str(written(tmp_path / "t.jsonl", [{"text": "a", "label": 1}])))
    with pytest.raises(ExpressionError, match=r"written patentmia\(path, length=None\)"):
        open_corpus("patentmia()")


@pytest.fixture
def news(tmp_path):
    for kind in ("mask", "prompt"):
        written(tmp_path / f"{kind}.jsonl", [article("a", 1, kind), article("b", 0, kind)])
        (tmp_path / f"{kind}.card.json").write_text("{}")
    return tmp_path


def test_news_of_each_kind(news):
    masked = open_corpus(f"ccnewspdd(path={str(news)!r}, kind='mask')")
    assert [(t.id, t.text, t.member, t.group, t.meta["transformed"]) for t in masked.texts] == [
        ("a", "news a", True, "page a", "0"),
        ("b", "news b by mask", False, "page b", "1"),
    ]
    assert ccnewspdd(str(news), "prompt").texts[1].text == "news b by prompt"
    assert ccnewspdd(str(news / "prompt.jsonl"), "prompt").texts[1].text == "news b by prompt"
    original = ccnewspdd(str(news), "original")
    assert [t.text for t in original.texts] == ["news a", "news b"]
    assert "before any transformation" in original.card.title


def test_news_that_were_not_built(news):
    with pytest.raises(TextsError, match=r"names begin with 'trans'.* it has 'mask.jsonl', 'prompt.jsonl'"):
        ccnewspdd(str(news))
    with pytest.raises(TextsError, match=r"mask.jsonl holds texts of another kind: ask for kind='mask'"):
        ccnewspdd(str(news / "mask.jsonl"), "prompt")
    with pytest.raises(ExpressionError, match="kind must be one of 'trans', 'mask', 'prompt', 'original'"):
        open_corpus(f"ccnewspdd({str(news)!r}, kind='masked')")
