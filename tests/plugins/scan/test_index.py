"""An index of infini-gram as a corpus: its runs against a naive loop, the real package, and a server."""

import json
import random
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from made import SYLLABLES, prose, written

from pretrace.backends.loading import open_tokenizer
from pretrace.plugins.scan.corpus import DocumentFacts
from pretrace.plugins.scan.index import Index, runs_of
from pretrace.plugins.scan.searching import RUN
from pretrace.runs import load


class Plain(Index):
    """An index of documents that are kept as they are."""

    at_once = 1

    def __init__(self, documents, most=1 << 20):
        self.texts, self.most, self.asked = documents, most, 0

    def count(self, passage):
        self.asked += 1
        return sum(len(re.findall(f"(?={re.escape(passage)})", one)) for one in self.texts)

    def holding(self, passage, most):
        return [(i, DocumentFacts()) for i, one in enumerate(self.texts) if passage in one][:most]


def covered_by_a_loop(text, index):
    """The characters of all stretches of whole words with enough characters that stand in the index."""
    words = [one.span() for one in re.finditer(r"\S+", text)]
    found = set()
    for i, (start, _) in enumerate(words):
        for _, end in words[i:]:
            if RUN <= end - start <= index.most and index.count(text[start:end]):
                found |= set(range(start, end))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_runs_cover_what_a_loop_over_all_stretches_covers(seed):
    rng = random.Random(seed)
    few = [rng.choice(SYLLABLES) for _ in range(6)]  # so that much is there by chance
    documents = [" ".join(rng.choice(few) for _ in range(80)) for _ in range(4)]
    pieces = [documents[i][a : a + rng.randrange(20, 160)] for i in range(3) for a in (rng.randrange(200),)]
    text = f"  {pieces[0]} odd {pieces[1]}  {pieces[2]} {prose(seed, 5)}"
    index = Plain(documents)
    runs, pieces, _ = runs_of(text, index)
    asked = index.asked
    wanted = covered_by_a_loop(text, index)
    assert {i for one in pieces for i in range(one.start, one.end)} == wanted
    assert {i for one in runs for i in range(one.start, one.end)} == wanted
    assert all(index.count(text[one.start : one.end]) == one.places for one in runs)
    places = [place for one in pieces for place in (one.start, one.end)]
    assert places == sorted(places)
    assert asked < 6 * len(text.split())


def test_a_text_takes_half_as_many_questions_as_words_and_a_whole_one_is_counted():
    index = Plain([prose(i) for i in range(5)] + [prose(0)])
    assert runs_of(prose(99, 400), index) == ([], [], 0)
    assert index.asked < 250
    _, pieces, copies = runs_of(f" {prose(0)}\n", index)
    assert copies == 2
    assert {one.places for one in pieces} == {2}


def test_a_run_longer_than_a_question_is_covered_by_several():
    text = prose(1, 300)
    index = Plain([text], most=200)
    runs, pieces, copies = runs_of(text, index)
    assert {i for one in pieces for i in range(one.start, one.end)} == set(range(len(text)))
    assert max(one.end - one.start for one in runs) <= 200
    assert copies == 0
    assert index.asked < 2 * 300


def small_index(folder, documents, width=1):
    """The files of an index over tokens of `width` bytes, as infini-gram 2.6 writes them: documents, suffix array,
    offsets."""
    folder.mkdir()
    mark = b"\xff" * width
    raw = b"".join(mark + one for one in documents)
    size = max(1, -(-(len(raw) - 1).bit_length() // 8))
    order = sorted(range(0, len(raw), width), key=lambda i: raw[i : i + 400])
    table = np.array(order, dtype="<u8").view(np.uint8).reshape(-1, 8)[:, :size]
    offsets = np.cumsum([0, *(len(one) + width for one in documents)])[:-1].astype("<u8")
    (folder / "tokenized.0").write_bytes(raw)
    (folder / "table.0").write_bytes(table.tobytes())
    (folder / "offset.0").write_bytes(offsets.tobytes())
    return folder


def rows(path, texts):
    return written(path, [{"id": f"t{i}", "text": one} for i, one in enumerate(texts)])


DOCUMENTS = [prose(0), f"Before. {prose(1)} After.", prose(1), *(prose(100 + i) for i in range(20))]
TEXTS = [prose(0), prose(1), f"{prose(2, 30)} {prose(0)[100:260]} {prose(3, 30)}", prose(4)]


@pytest.mark.parametrize("tokens", ["bytes", "words in pieces"])
def test_the_package_gives_the_rows_of_a_scan_of_the_files(tmp_path, call, model_folder, tokens):
    pytest.importorskip("infini_gram")
    texts = rows(tmp_path / "texts.jsonl", TEXTS)
    corpus = rows(tmp_path / "corpus.jsonl", DOCUMENTS)
    held, name, width = [one.encode() for one in DOCUMENTS], "", 1
    if tokens != "bytes":
        tokenizer = open_tokenizer(str(model_folder)).rust
        ids = [tokenizer.encode(one, add_special_tokens=False).ids for one in DOCUMENTS]
        held, name, width = [np.array(one, dtype="<u2").tobytes() for one in ids], f"#{model_folder}", 2
    index = small_index(tmp_path / "INDEX", held, width)
    found = {}
    for kind, source in (("asked", f"infini-gram:{index}{name}"), ("read", corpus)):
        code, said = call(texts, "--corpus", source, "--match", "exact", "--out", tmp_path / kind)
        assert code == 3, said
        found[kind] = load(tmp_path / kind).table("texts").columns
    asked, read = found["asked"], found["read"]
    assert asked["found"] == read["found"] == ("whole", "whole", "part", "no")
    assert asked["copies"].tolist() == read["copies"].tolist() == [1, 2, 0, 0]
    assert np.abs(asked["coverage"] - read["coverage"]).max() < 0.02  # parts of words at the ends
    hits = load(tmp_path / "asked").table("hits").columns
    held = list(zip(hits["id"], hits["document"], strict=True))
    assert held == [("t0", 0.0), ("t1", 1.0), ("t1", 2.0), ("t2", 0.0)]
    other = "" if name else f"#{model_folder}"
    code, said = call(texts, "--corpus", f"infini-gram:{index}{other}", "--match", "exact", "--plan")
    assert code == 2
    assert f"holds tokens of {width} bytes and not of {3 - width}" in said


class Serving(ThreadingHTTPServer):
    """The published interface over documents that are kept as they are; counts what it is asked."""

    def __init__(self, documents):
        self.index, self.asked, self.heads = Plain(documents), [], []
        self.refuses_from = None
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.heads.append(dict(self.headers))
                server.asked.append(body)
                told = json.dumps(server.answer(body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    def answer(self, body):
        """What the documentation says that is answered."""
        if body.get("index") != "v4_small":
            return {"error": "Invalid index!"}
        if self.refuses_from is not None and len(self.asked) > self.refuses_from:
            return {"error": "Internal server error"}
        kind, query = body["query_type"], body["query"]
        if kind != "get_doc_by_rank" and len(query) > 1000:
            return {"error": "Please limit your input to <= 1000 characters!"}
        if kind == "count":
            answer = {"approx": False, "latency": 0.1, "token_ids": [], "tokens": []}
            return {"count": self.index.count(query), **answer}
        held = self.index.holding(query, 100)
        if kind == "find":
            return {"cnt": len(held), "segment_by_shard": [[7, 7], [10, 10 + len(held)]], "latency": 0.1}
        assert kind == "get_doc_by_rank"
        assert body["s"] == 1
        number = held[body["rank"] - 10][0]
        kept = {"path": "part.jsonl", "linenum": number, "metadata": {"id": f"doc-{number}"}}
        answer = {"doc_len": 9, "disp_len": 1, "token_ids": [], "spans": []}
        return {"doc_ix": number, "metadata": json.dumps(kept), **answer}


@pytest.fixture
def server():
    """A served index of the documents."""
    made = Serving(DOCUMENTS)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def ask(tmp_path, call, server):
    """Scan the served index for texts."""

    def run(*texts):
        address = f"infini-gram:http://127.0.0.1:{server.server_port}/#v4_small"
        found = rows(tmp_path / "texts.jsonl", texts)
        return call(found, "--corpus", address, "--match", "exact", "--out", tmp_path / "OUT")

    return run


def test_a_served_index_is_asked_and_what_it_cannot_say_is_told(tmp_path, ask, server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-secret-of-another-server")
    code, said = ask(*TEXTS, f"{prose(5, 30)} AND {prose(0)[:200]}")
    assert code == 3, said
    found = load(tmp_path / "OUT")
    table = found.table("texts").columns
    assert table["found"] == ("whole", "whole", "part", "no", "part")
    assert table["copies"].tolist() == [1, 2, 0, 0, 0]
    hits = found.table("hits").columns
    assert hits["document id"][:3] == ("doc-0", "doc-1", "doc-2")
    compared = " ".join(found.compared)
    assert "which was asked and not read" in compared
    assert "none of this length was missed" not in compared
    assert not any(" AND " in one["query"] for one in server.asked)
    assert not any("a-secret" in str(head) for head in server.heads)
    assert "it was asked, and the corpus was not read" in found.assumption
    assert "1 of 5 texts hold the word AND or OR" in said


def test_a_text_of_which_a_passage_was_not_asked_for_is_not_cleared(ask, server):
    """Half of the only passage that stands there lies on either side of the server's own word."""
    known = prose(7, 60)
    passage = f"{known[:40]} AND {known[40:80]}"
    server.index.texts = [*DOCUMENTS, f"{prose(8, 20)} {passage} {prose(9, 20)}"]
    for _ in range(2):  # the second time its answers are known, which changes nothing
        code, said = ask(passage)
        assert code == 4, said
        assert "1 of 1 texts hold the word AND or OR" in said


def test_an_index_that_fails_is_told_and_nothing_is_asked_twice(ask, server):
    texts = [prose(300 + i, 90) for i in range(12)]
    words = [one.split() for one in texts]
    pairs = [f"{a} {b}" for some in words for a, b in zip(some[::7], some[1::7], strict=False)]
    server.index.texts = [*DOCUMENTS, " ".join(pairs)]
    server.refuses_from = 670  # of about 820
    code, said = ask(*texts)
    assert code == 4, said
    assert "Internal server error" in said
    assert "what it has answered is kept" in said
    before = len(server.asked)
    server.refuses_from = None
    code, said = ask(*texts)
    assert code == 0, said
    assert "as far as its index can tell" in said
    first, again = ({one["query"] for one in some} for some in (server.asked[:670], server.asked[before:]))
    assert any(len(query) >= RUN for query in again)
    assert not first & again


def test_an_index_in_another_language_clears_nobody(ask):
    code, said = ask(*(" ".join(f"wort{i}{k}" for k in range(40)) for i in range(5)))
    assert code == 4, said
    assert "0 stand in the index" in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--corpus", "infini-gram:http://127.0.0.1:1/"], "with the name of the index behind #"),
        (["--corpus", "infini-gram:http://127.0.0.1:1/#x", "--match", "folded"], "--match exact"),
        (["--corpus", "infini-gram:NOWHERE"], ""),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_asked_is_refused(tmp_path, call, words, told):
    texts = rows(tmp_path / "texts.jsonl", TEXTS)
    code, said = call(texts, "--match", "exact", *words, "--out", tmp_path / "OUT")
    assert code == 2, said
    assert told in said
