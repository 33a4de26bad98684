"""The search against a naive one: every run of 50 characters, nothing else, in either engine, however documents lie."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pretrace.scan.corpus import Reader
from pretrace.scan.files import CorpusFile
from pretrace.scan.folding import folded, has_numba, lines_of, packed
from pretrace.scan.searching import RUN, Search, Table
from pretrace.scan.wording import sequences, words_of

ENGINES = [False, *([True] if has_numba() else [])]
WORDS = [
    "the",
    "of",
    "river",
    "Valley",
    "übung",
    "straße",
    "ΑΘΗΝΑ",
    "москва",
    "東京",
    "naïve",
    "harbour",
    "stone",
    "42",
    "--",
    "==",
    "\t",
    "\n\n",
    "",
    "x",
]


def made(rng: random.Random, words: int) -> str:
    """Odd prose: repeats, other scripts, runs of white space, capital letters."""
    return " ".join(rng.choice(WORDS) for _ in range(words))


def naive(text: bytes, document: bytes) -> set[tuple[int, int, int]]:
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


Run = tuple[int, int, int, int]


def searched(
    texts: list[bytes], documents: list[bytes], *, fast: bool, exact: bool = True
) -> list[list[Run]]:
    """The runs of each document, in order: text, first and last byte there, and the byte of the document."""
    buffer, spans = packed(documents, exact=exact, fast=fast)
    found: list[list[Run]] = [[] for _ in documents]
    for owner, text, start, end, at, characters in (
        Search(Table.of(texts), fast=fast).runs(buffer, spans).tolist()
    ):
        assert characters == len(texts[text][start:end].decode()) >= RUN
        found[owner].append((text, start, end, at))
    return found


def earliest(runs: Iterable[Run]) -> dict[tuple[int, int, int], int]:
    """For each run of a text where it begins first in the document."""
    found: dict[tuple[int, int, int], int] = {}
    for text, start, end, at in runs:
        found[text, start, end] = min(at, found.get((text, start, end), at))
    return found


@pytest.mark.parametrize("fast", ENGINES)
def test_every_run_is_found_and_no_other(fast: bool) -> None:
    rng = random.Random(5)
    texts = [folded(made(rng, 40)) for _ in range(4)] + [b"=" * 90, b"short"]
    documents = []
    for _ in range(12):
        one, other = rng.choice(texts), rng.choice(texts)
        begin, size = rng.randrange(len(one)), rng.randrange(20, 140)
        documents.append(
            folded(made(rng, 6)) + one[begin : begin + size] + folded(made(rng, 4)) + other[-70:]
        )
    documents.append(b"-" * 30 + b"=" * 120)
    wanted = [{(t, *run) for t, text in enumerate(texts) for run in naive(text, one)} for one in documents]
    found = searched(texts, documents, fast=fast)
    assert all(set(runs) <= every for runs, every in zip(found, wanted, strict=True))
    assert [earliest(runs) for runs in found] == [earliest(every) for every in wanted]
    assert sum(map(len, wanted)) > 20
    assert all(len(runs) == len(set(runs)) for runs in found)
    assert len(found[-1]) < len(wanted[-1])  # a run that a document holds several times is told once


@pytest.mark.skipif(not has_numba(), reason="both engines are wanted")
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_both_engines_give_the_same(seed: int) -> None:
    rng = random.Random(seed)
    originals = [made(rng, rng.randrange(1, 60)) for _ in range(6)]
    raw = [one.encode() for one in [*originals, "".join(originals), ""]]
    for exact in (False, True):
        slow, fast = packed(raw, exact=exact, fast=False), packed(raw, exact=exact, fast=True)
        assert np.array_equal(slow[0], fast[0])
        assert np.array_equal(slow[1], fast[1])
        texts = [folded(one, exact=exact) for one in originals[:3]]
        both = [searched(texts, raw, fast=some, exact=exact) for some in (False, True)]
        assert both[0] == both[1]


@pytest.mark.skipif(not has_numba(), reason="it is a kernel")
def test_texts_are_taken_out_of_json_lines_as_json_says() -> None:
    rows = [
        {"text": 'He said "No\\n" \u00dcber \U0001f600 \n\t end', "id": 1},
        {
            "id": 2,
            "meta": {"text": "not this", "more": [1, {"text": "nor this"}]},
            "text": "Two  \u00a0 words",
        },
        {"id": 3, "text": ""},
        {'a"b': "}{", "text": "braces } { [ ] in it, and \\ "},
    ]
    odd = [
        '{"text": 5}',
        "[1]",
        '{"text": "cut',
        '{"text": "a", "text": "b"}',
        "",
        '{"other": "x"}',
        '{"text": "\\q"}',
    ]
    lines = [json.dumps(row, ensure_ascii=i % 2 == 0) for i, row in enumerate(rows)]
    raw = "\n".join([*lines, *odd]).encode() + b"\n"
    for exact in (False, True):
        buffer, spans, irregular, places, _ = lines_of(raw, "text", exact=exact)
        theirs = [buffer[start:end].tobytes() for start, end in spans[: len(rows)].tolist()]
        ours, at = packed([row["text"].encode() for row in rows], exact=exact, fast=False)
        assert theirs == [ours[start:end].tobytes() for start, end in at.tolist()]
        assert irregular.tolist() == [False] * len(rows) + [True] * len(odd)
        assert [raw[a:b].rstrip(b"\n").decode() for a, b in places.tolist()] == [*lines, *odd]


@pytest.mark.skipif(not has_numba(), reason="both engines are wanted")
@settings(max_examples=60, deadline=None)
@given(some=st.lists(st.binary(max_size=60), max_size=8))
@example(some=[b"\xe0\x80\xa1"])  # a "!" in three bytes
def test_bytes_that_are_no_utf_8_are_read_alike(
    tmp_path_factory: pytest.TempPathFactory, some: list[bytes]
) -> None:
    clean = [one.translate(None, b'\\"\n') for one in some]
    raw = (
        b"".join(b'{"text": "a%sb"}\n' % one for one in clean) + b'{"text": "caf\xe9 \xff \t \\ud800 \xc3"}\n'
    ) + '{"text": "é"}\n'.encode() * 9  # or the file would be taken for one in another encoding
    path = tmp_path_factory.mktemp("odd") / "odd.jsonl"
    path.write_bytes(raw)
    for exact in (False, True):
        slow, fast = (
            list(Reader("text", exact, kind).documents(CorpusFile(str(path), 0))) for kind in (False, True)
        )
        for one, other in zip(slow, fast, strict=True):
            assert one.unreadable == other.unreadable == 0
            theirs = [[d.buffer[a:b].tobytes() for a, b in d.spans.tolist()] for d in (one, other)]
            assert theirs[0] == theirs[1]


@pytest.mark.parametrize("fast", ENGINES)
def test_what_is_found_in_a_document_depends_on_no_other(fast: bool) -> None:
    rng = random.Random(1)
    texts = [folded(made(rng, 50)) for _ in range(3)]
    documents = [folded(made(rng, 30)) + texts[i % 3][i : i + 80] for i in range(9)]
    together = searched(texts, documents, fast=fast)
    assert together == [searched(texts, [one], fast=fast)[0] for one in documents]
    assert searched(texts, documents[::-1], fast=fast)[::-1] == together


@pytest.mark.parametrize("fast", ENGINES)
def test_planted_runs_are_all_found(fast: bool) -> None:
    """Runs of 50 characters and more, with other case and white space, in documents of other words."""
    rng = random.Random(2)
    letters = "abcdefghijklmnopqrstuvwxyz      "
    originals = ["".join(rng.choice(letters) for _ in range(600)).strip() for _ in range(40)]
    texts = [folded(one) for one in originals]
    documents, wanted = [], []
    for number in range(1000 if fast else 200):
        which = rng.randrange(len(texts))
        size = rng.randrange(RUN, 120)
        begin = rng.randrange(len(texts[which]) - size)
        piece = texts[which][begin : begin + size].decode()
        changed = "".join(c.upper() if rng.random() < 0.3 else c for c in piece)
        changed = changed.replace(" ", rng.choice([" ", "\n", " \t ", "\u00a0"]))
        documents.append(
            f"{number}#{changed.strip() if piece == piece.strip() else changed}#{number}".encode()
        )
        wanted.append((which, begin, begin + size))
    found = searched(texts, documents, fast=fast, exact=False)
    for runs, (which, begin, end) in zip(found, wanted, strict=True):
        assert any(text == which and first <= begin and last >= end for text, first, last, _ in runs)


def test_many_texts_are_cut_more_thinly_and_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pretrace.scan.searching.SPARSE", 10)
    rng = random.Random(3)
    texts = [folded(made(rng, 40)) for _ in range(3)]
    assert Table.of(texts).stride == 3
    documents = [b"#" * i + texts[i % 3][i : i + 60 + i] + b"#" for i in range(30)]
    for fast in ENGINES:
        found = searched(texts, documents, fast=fast)
        wanted = [
            {(t, *run) for t, text in enumerate(texts) for run in naive(text, one)} for one in documents
        ]
        assert [set(runs) for runs in found] == wanted


def plainly_said(text: str) -> list[str]:
    """The words of a text, by the rule in a line of Python."""
    return "".join(c for c in text.lower() if c not in string.punctuation).split()


@pytest.mark.parametrize("fast", ENGINES)
def test_sequences_of_words_agree_with_those_of_a_naive_loop(fast: bool) -> None:
    rng = random.Random(6)
    texts = [made(rng, rng.randrange(0, 40)).replace("\u00a0", " ") for _ in range(30)] + [
        "",
        "-- ==",
        "One, two.",
    ]
    buffer, spans = packed([one.encode() for one in texts], exact=False, fast=fast)
    words, owners = words_of(buffer, spans, fast=fast)
    plain = [plainly_said(one) for one in texts]
    assert np.bincount(owners, minlength=len(texts)).tolist() == [len(one) for one in plain]
    flat = [word for one in plain for word in one]
    for some in (flat, words.tolist()):  # equal words, equal hashes; and no two words with one hash
        assert len(set(zip(flat, some, strict=True))) == len(set(flat)) == len(set(some))
    for size in (5, 13):
        hashes, theirs = sequences(words, owners, size)
        wanted = [
            (i, tuple(one[k : k + size])) for i, one in enumerate(plain) for k in range(len(one) - size + 1)
        ]
        assert theirs.tolist() == [i for i, _ in wanted]
        assert len(set(zip([w for _, w in wanted], hashes.tolist(), strict=True))) == len(
            {w for _, w in wanted}
        )


@pytest.mark.skipif(not has_numba(), reason="both engines are wanted")
def test_both_engines_hash_words_alike() -> None:
    rng = random.Random(8)
    raw = [made(rng, 30).encode() for _ in range(20)] + [bytes(rng.randrange(255) for _ in range(300))]
    both = [words_of(*packed(raw, exact=False, fast=fast), fast=fast) for fast in (False, True)]
    for one, other in zip(*both, strict=True):
        assert one.tolist() == other.tolist()
