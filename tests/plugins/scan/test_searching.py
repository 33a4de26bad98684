"""The search against a naive one: every run of 50 characters, nothing else, however documents lie."""

import json
import random
import unicodedata

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from net.api import (
    REPEATS,
    CorpusFile,
    FileSearch,
    FoldedTexts,
    Reader,
    Strings,
    Table,
    cut_of,
    fold_pieces,
    fold_strings,
    hash_of,
    streams_of,
    strings_of_item,
    strings_of_lines,
)
from plugins.scan.plain_folding import fold_strings_plainly

RUN = 50
WORDS = [
    "the", "of", "river", "Valley", "übung", "straße", "ΑΘΗΝΑ", "москва", "東京", "naïve", "harbour", "stone",
    "42", "--", "==", "\t", "\n\n", "", "x",
]  # fmt: skip


def made(rng, words):
    """Odd prose: repeats, other scripts, runs of white space, capital letters."""
    return " ".join(rng.choice(WORDS) for _ in range(words))


def folded(text):
    return fold_pieces([text.encode("utf-8", "surrogatepass")])[0]


def naive(text, document):
    """Every common run that cannot be made longer and has `RUN` characters or more: its bytes in the text, and where it
    begins in the document."""
    found = set()
    for i in range(len(text)):
        for j in range(len(document)):
            if text[i] != document[j] or (i and j and text[i - 1] == document[j - 1]):
                continue
            size = 0
            while i + size < len(text) and j + size < len(document) and text[i + size] == document[j + size]:
                size += 1
            first, last = i, i + size
            while first < last and text[first] & 0xC0 == 0x80:
                first += 1
            if last < len(text) and text[last] & 0xC0 == 0x80:
                last -= 1
                while last > first and text[last] & 0xC0 == 0x80:
                    last -= 1
            if sum(byte & 0xC0 != 0x80 for byte in text[first:last]) >= RUN:
                found.add((first, last, j + first - i))
    return found


def searched(texts, documents, *, exact=True):
    """The runs of each document, a column of its own, in order: text, first and last byte there, and the byte of the
    document."""
    found = [[] for _ in documents]
    strings = Strings.of(documents, columns=range(len(documents)))
    search = FileSearch(Table(FoldedTexts(texts, exact=True)))
    for stream in streams_of([strings], exact=exact):
        for owner, text, start, end, at, characters, _ in search._runs(stream).tolist():
            assert characters == len(texts[text][start:end].decode())
            there = (
                len(documents[owner]) - int(stream.ends[np.searchsorted(stream.begins, at, "right") - 1]) + at
            )
            if characters >= RUN:
                found[owner].append((text, start, end, there))
    return found


def earliest(runs):
    """For each run of a text where it begins first in the document."""
    found = {}
    for text, start, end, at in runs:
        found[text, start, end] = min(at, found.get((text, start, end), at))
    return found


@pytest.mark.parametrize("every", [24, 8], ids=["few texts", "many texts, cut more thinly"])
def test_every_run_is_found_and_no_other(monkeypatch, every):
    monkeypatch.setattr("pretrace.plugins.scan.searching.SPARSE", 10 if every == 8 else 10**6)
    rng = random.Random(5)
    texts = [folded(made(rng, 40)) for _ in range(4)] + [b"=" * 90, b"short"]
    assert Table(FoldedTexts(texts, exact=True)).every == every
    documents = []
    for _ in range(12):
        one, other = rng.choice(texts), rng.choice(texts)
        begin, size = rng.randrange(len(one)), rng.randrange(20, 140)
        documents.append(
            folded(made(rng, 6)) + one[begin : begin + size] + folded(made(rng, 4)) + other[-70:]
        )
    documents.append(b"-" * 30 + b"=" * 120)
    wanted = [{(t, *run) for t, text in enumerate(texts) for run in naive(text, one)} for one in documents]
    found = searched(texts, documents)
    assert all(set(runs) <= every for runs, every in zip(found, wanted, strict=True))
    rest = [earliest({run for run in every if run[0] != 4}) for every in wanted]  # the fifth repeats itself
    assert [earliest({run for run in runs if run[0] != 4}) for runs in found] == rest
    assert sum(map(len, wanted)) > 20
    assert all(len(runs) == len(set(runs)) for runs in found)
    assert len(found[-1]) < len(wanted[-1])  # a run that a document holds several times is told once


SIGNS = (
    "< </ <br/> <b\u00a0class='x'> > & &amp; amp; lt; &lt; &gt; &nbsp; &eacute; &#233; &#xe9; &#xD800; \\ \\n \\u00e9 "
    "\\u003c \\u003e \\u0026 \\ud83d\\ude00 \\ud83d [3] 1984. \\t (7) | : - ! !-- ? a É e\u0301 \u0323 \u0301 \u00ad "
    "\u200b İ ẞ ς Σ ﬁ Ａ 가 \u1100\u1161 ﷺ 東京 😀 q\u0307\u0323 ´ ﾞ \u0345 ᾳ ᾼ \u00a0 xxxxxxx u n"
)
MARKUP = [*SIGNS.split(" "), " ", "\n", "\n 12. ", "\t", "\x00"]
"""Pieces of which odd strings are made."""
PIECES = st.lists(st.one_of(st.sampled_from(MARKUP), st.text(max_size=3)), max_size=25).map("".join)
RAW = st.lists(
    st.one_of(PIECES.map(lambda one: one.encode("utf-8", "surrogatepass")), st.binary(max_size=6)), max_size=4
).map(b"".join)


@settings(max_examples=400, deadline=None)
@given(st.lists(RAW, max_size=4))
def test_kernels_fold_as_the_rule_in_python(some):
    for spaced, exact in ((False, False), (True, False), (False, True)):
        strings = Strings.of(some)
        plain = fold_strings_plainly(strings, [None] * len(some), exact=exact, spaced=spaced)
        both = [plain, fold_strings(strings, exact=exact, spaced=spaced)]
        assert both[0][0].tobytes() == both[1][0].tobytes()
        assert both[0][1].tolist() == both[1][1].tolist()


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), PIECES))
@example("İẞΣ ΟΔΥΣΣΕΥΣ ΟΔΥΣΣΕΎΣ straße ﬁ")
def test_a_string_folds_as_it_does_in_other_forms(text):
    wanted = folded(text)
    for ascii_alone in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_alone)[1:-1]
        assert folded(once) == folded(json.dumps(once)[1:-1]) == wanted


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Nd", "Nl", "No"], exclude_characters="&<\\\u0307")))
@example("İẞΣ ΟΔΥΣΣΕΥΣ ΟΔΥΣΣΕΎΣ straße ﬁ Iıi")
def test_a_string_folds_as_it_does_in_other_letters(text):
    """No digits: "0." may number a line, which its other forms do not. Capitals write out an iota below a letter."""
    assume("\u0345" not in unicodedata.normalize("NFD", text))
    wanted = folded(text)
    spaced = any(unicodedata.normalize("NFKD", one)[0] == " " for one in text)  # an accent that stands alone
    for form in ("NFC", "NFD", *(() if spaced else ("NFKC", "NFKD"))):
        assert folded(unicodedata.normalize(form, text)) == wanted
    assert folded(text.casefold()) == folded(text.lower()) == folded(text.upper()) == wanted
    assert folded("\u00ad".join(text)) == folded("\u200b".join(text)) == wanted


@settings(max_examples=100, deadline=None)
@given(PIECES, st.integers(2000, 9000), st.integers(0, 10**6))
def test_a_long_string_folds_in_pieces_as_the_whole_does(piece, size, seed):
    some = [piece.encode("utf-8", "surrogatepass"), *(one.encode() for one in MARKUP), b"words and lines\n"]
    rng, raw = random.Random(seed), b""
    while len(raw) < size:
        raw += rng.choice(some)
    cut = cut_of(raw)
    assert b"".join(fold_pieces([raw[:cut], raw[cut:]])) == folded(raw.decode("utf-8", "surrogatepass"))


def test_what_stands_across_rows_and_buffers_is_one_run():
    rng = random.Random(4)
    text, other = (folded(made(rng, size)).decode().encode("ascii", "ignore") for size in (600, 60))
    rows = [text[i : i + 30] for i in range(0, len(text), 30)]
    search = FileSearch(Table(FoldedTexts([text, other], exact=True)))
    batches, number = [], 7
    for begin in range(0, len(rows), 4):  # a few rows at a time, with another column beside them
        some = rows[begin : begin + 4]
        written = [one for row in some for one in (b"beside", row)]
        numbers = [number + i // 2 for i in range(len(written))]
        batches.append(Strings.of(written, rows=numbers, columns=[1, 2] * len(some)))
        number += len(some)
    found = [row for stream in streams_of(batches, exact=True) for row in search._runs(stream).tolist()]
    assert [row[:4] for row in found] == [[7, 0, 0, len(text)]]


def test_a_text_that_repeats_itself_is_followed_from_few_places():
    for unit in ("ab", "the quick brown fox jumps over the lazy dog"):
        number = REPEATS * 20
        text = unit.encode() * number
        table = Table(FoldedTexts([text, b"another text, of which nothing is repeated in any way"]))
        assert len(table.places) <= len(unit) * REPEATS + 60
        (found,) = searched([text], [b"before " + text + b" behind"])
        assert (0, 0, len(text), 7) in found
        assert len(found) <= 4 * REPEATS


def test_strings_are_taken_out_of_json_lines_as_json_says():
    items = [
        {"text": 'He said "No\\n" \u00dcber \U0001f600 \n\t end', "id": 1},
        {
            "id": "2",
            "meta": {"text": "nested", "more": [1, {"text": "deeper"}, ["list", []]]},
            "text": "Two  \u00a0",
        },
        {"id": 3, "text": "", 'a"b': "}{", "c": "braces } { [ ] in it, and \\ "},
        ["a list", {"x": None}],
        "a string",
    ]
    odd = ['{"text": "cut', "", '{"text": "a"} more', "{]", "[" * 99 + '"deep"' + "]" * 99]
    lines = [json.dumps(item, ensure_ascii=i % 2 == 0) for i, item in enumerate([*items, {"text": 5}, [1]])]
    raw = "\n".join([*lines, *odd]).encode() + b"\n"
    found, places, left = strings_of_lines(raw, 10)
    assert [raw[a:b].decode() for a, b in places.tolist()] == [one for one in (*lines, *odd) if one]
    assert left.tolist() == list(range(len(lines), len(lines) + len(odd) - 1))
    wanted = [(10 + i, *one) for i, item in enumerate(items) for one in strings_of_item(item)]
    buffer, spans = fold_strings(found, exact=True)
    theirs = [buffer[start:end].tobytes() for start, end in spans.tolist()]
    assert theirs == [written for _, written, _ in wanted]
    assert found.rows.tolist() == [row for row, _, _ in wanted]
    assert found.columns.tolist()[:2] == [column for _, _, column in wanted[:2]]
    named = [hash_of(0, one) for one in (b"text", b"c")]
    theirs = [one for one in wanted if one[2] in named]
    assert [(10 + i, *one) for i, item in enumerate(items) for one in strings_of_item(item, named)] == theirs
    some, _, _ = strings_of_lines(raw, 10, named)
    assert list(zip(some.rows.tolist(), some.columns.tolist(), strict=True)) == [one[::2] for one in theirs]


@settings(max_examples=60, deadline=None)
@given(some=st.lists(st.binary(max_size=60), max_size=8))
@example(some=[b"\xe0\x80\xa1"])  # a "!" in three bytes
def test_bytes_that_are_no_utf_8_are_read_alike(tmp_path_factory, some):
    clean = [one.translate(None, b'\\"\n') for one in some]
    raw = (
        b"".join(b'{"text": "a%sb"}\n' % one for one in clean) + b'{"text": "caf\xe9 \xff \t \\ud800 \xc3"}\n'
    ) + '{"text": "é"}\n'.encode() * 9  # or the file would be taken for one in another encoding
    path = tmp_path_factory.mktemp("odd") / "odd.jsonl"
    path.write_bytes(raw)
    lines = raw.decode("utf-8", "surrogateescape").split("\n")
    items = [json.loads(line, strict=False) for line in lines if line]
    written = [one for item in items for one, _ in strings_of_item(item)]
    behind = [b"", *[None] * (len(written) - 1)]
    for exact in (False, True):
        reader = Reader(CorpusFile(str(path), 0), "text", exact)
        (stream,) = reader.documents()
        assert reader.read.unreadable == 0
        plain, spans = fold_strings_plainly(Strings.of(written), behind, exact=exact, spaced=False)
        assert stream.buffer.tobytes() == plain.tobytes()
        assert stream.spans.tolist() == spans.tolist()
