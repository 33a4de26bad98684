"""CCNewsPDD: the paper's sizes and sides, real models on a small scale, and nothing half made."""

import json
import os
import re
import signal
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from made import read_lines as rows_of
from made import written
from tiny_marian import SAYINGS, make_marian, reworded

from pretrace.backends.naming import ModelSettings
from pretrace.corpora import Columns, open_corpus
from pretrace.errors import TextsError
from pretrace.plugins.build import ccnews
from pretrace.plugins.build.ccnews import (
    CUT,
    EMPTY,
    BackTranslation,
    CcnewsSettings,
    Masking,
    Rewriting,
    _split_of,
    _take_sentences,
    build_ccnews,
    read_side,
)
from pretrace.types import Corpus, Text

PAGES = ["page", "site", "forum", "home", "click", "shop", "review", "menu"]
NEWS = ["mayor", "council", "police", "match", "coach", "court", "vote", "bank"]
BOTH = ["the", "of", "and", "to", "in", "was", "on", "for", "with", "at"]


def corpus(name, number, own, *, seed=0):
    rng = np.random.default_rng([seed, len(own[0])])
    texts = []
    for i in range(number):
        sentences = [" ".join(rng.choice([*own, *BOTH], 8)).capitalize() + "." for _ in range(6)]
        texts.append(Text(f"{name}{i}", " ".join(sentences)))
    return Corpus(name, tuple(texts), source=name)


MEMBERS, NONMEMBERS = corpus("pile", 40, PAGES), corpus("news", 60, NEWS)
SMALL = CcnewsSettings(texts=36, fewest_words=10, most_words=32)


@dataclass(frozen=True)
class Marked:
    """Puts a word into every text; some it gets wrong. What it was given is remembered."""

    faulty: str = "nothing"
    given: list[str] = field(default_factory=list, compare=False)
    opening: ModelSettings = field(default_factory=ModelSettings)
    kind = "trans"

    def _open(self):
        return {"model": "marker", "weights": "0" * 64}, self._change

    def _change(self, texts, seed):
        self.given.extend(texts)
        why = {True: "came back odd", False: ""}
        return [(f"{text} Machina.", why[bool(re.search(self.faulty, text))]) for text in texts]


def test_the_published_recipe(tmp_path):
    built = build_ccnews(MEMBERS, NONMEMBERS, Marked(), folder=tmp_path, settings=SMALL)
    rows = rows_of(tmp_path / "trans.jsonl")
    assert rows == list(built.rows)
    assert set(rows[0]) == {"id", "text", "label", "group", "original", "transformed", "split"}
    assert [sum(row["label"] == label for row in rows) for label in (0, 1)] == [18, 18]
    assert len({row["id"] for row in rows}) == 36
    for row in rows:
        assert row["transformed"] == 1 - row["label"]
        assert row["text"] == row["original"] + (" Machina." if row["transformed"] else "")
        source = MEMBERS if row["label"] else NONMEMBERS
        [text] = [t.text for t in source.texts if row["id"].endswith(f"member-{t.id}")]
        assert text.startswith(row["original"])
        assert len(row["original"].split()) == 32  # four whole sentences of eight words
    splits = [(row["label"], row["split"]) for row in rows]
    assert [splits.count((1, name)) for name in ("reference", "validation", "test")] == [3, 3, 12]
    assert open_corpus(tmp_path / "trans.jsonl").texts[0].member is True


@pytest.mark.parametrize("both", [False, True])
def test_the_card_tells_what_the_transformation_gives_away(tmp_path, both):
    same = Corpus("more pages", corpus("more", 40, PAGES, seed=1).texts)
    settings = replace(SMALL, texts=60, transform_both=both)
    card = build_ccnews(MEMBERS, same, Marked(), folder=tmp_path, settings=settings).card
    blind, sides = card["blind"], card["rows"]
    assert blind["original"]["bag_of_words_auc"][0] < 0.75
    assert blind["published"]["bag_of_words_auc"][0] > 0.85
    assert "so much a detector may owe to the transformation" in blind["finding"]
    assert card["models"] == {"model": "marker", "weights": "0" * 64}
    assert (sides["members"]["transformed"], sides["nonmembers"]["transformed"]) == (30 * both, 30)
    assert 0.9 < sides["nonmembers"]["words_shared_with_original"] < 1
    if both:
        assert blind["transform_both"]["bag_of_words_auc"][0] < 0.75
    else:
        assert blind["transform_both"] is sides["members"]["words_shared_with_original"] is None


def test_what_cannot_be_used_gives_its_place_to_the_next(tmp_path):
    members = Corpus("m", (*MEMBERS.texts, Text("short", "Too short.")))
    twin = NONMEMBERS.texts[0]
    more = Text("copied", MEMBERS.texts[3].text.upper()), Text("twin", f" {twin.text}\n")
    siblings = (Text(f"s{one.id}", one.text, group="one page") for one in corpus("n", 2, NEWS, seed=5).texts)
    nonmembers = Corpus("n", (*NONMEMBERS.texts, *more, *siblings))
    method = Marked(faulty="^[A-M]")
    build_ccnews(members, nonmembers, method, folder=tmp_path, settings=SMALL)
    rows = rows_of(tmp_path / "trans.jsonl")
    assert len(rows) == 36
    left = json.loads((tmp_path / "trans.card.json").read_text())["left_out"]
    assert left["member: fewer than 10 words"] == {"count": 1, "ids": ["short"]}
    assert left["nonmember: also among the members"]["ids"] == ["copied"]
    assert left["nonmember: the same text as another"]["count"] == 1
    assert left["nonmember: another text of the same document was taken"]["count"] == 1
    assert left["nonmember: came back odd"]["count"] > 0
    assert not any(re.match("[A-M]", row["original"]) for row in rows if not row["label"])
    assert len(method.given) == len(set(method.given))


def test_texts_that_differ_only_behind_what_is_taken_are_one(tmp_path):
    def longer(texts, tail):
        said = f"{tail} of this there was no more to say."
        return tuple(Text(f"{tail}{text.id}", f"{text.text} {said}") for text in texts)

    copies = longer(MEMBERS.texts[:5], "Late")
    copies += longer(NONMEMBERS.texts[:3], "And") + longer(NONMEMBERS.texts[:3], "But")
    both = Corpus("news", (*copies, *NONMEMBERS.texts[3:]), source="news")
    built = build_ccnews(MEMBERS, both, Marked(), folder=tmp_path, settings=SMALL)
    originals = [row["original"] for row in built.rows]
    assert len(set(originals)) == len(originals) == 36
    every = replace(SMALL, texts=80)
    built = build_ccnews(MEMBERS, both, Marked(), folder=tmp_path / "all", settings=every)
    assert built.card["left_out"]["nonmember: also among the members"]["count"] == 5
    assert built.card["left_out"]["nonmember: the same text as another"]["count"] == 3


def test_too_few_texts_before_any_model_is_opened(tmp_path):
    method = Marked()
    with pytest.raises(TextsError, match="600 members of at least 10 words were wanted, found 40"):
        build_ccnews(MEMBERS, NONMEMBERS, method, folder=tmp_path, settings=CcnewsSettings(fewest_words=10))
    with pytest.raises(TextsError, match=r"18 nonmembers .* found 0"):
        build_ccnews(MEMBERS, NONMEMBERS, Marked(faulty="."), folder=tmp_path, settings=SMALL)
    assert not method.given
    assert not list(tmp_path.iterdir())


def test_the_papers_split_and_lengths():
    splits = [_split_of(rank, 600) for rank in range(600)]
    assert [splits.count(name) for name in ("reference", "validation", "test")] == [100, 100, 400]
    assert _take_sentences("One two three.\n\nFour five six. Seven", 6) == "One two three.\n\nFour five six."
    assert _take_sentences("a" * 100_000, 5) == "a" * 100_000
    assert _take_sentences("", 5) == ""
    assert _take_sentences("今日は雨。明日は晴。", 5) == "今日は雨。"


def test_only_the_year_that_was_asked_for(tmp_path):
    path = tmp_path / "news.jsonl"
    dates = ["2017-03-01 10:00:00", "2016-12-31", "2017", "", "5 May 2017", "2017-12-31/"]
    written(path, [{"text": f"t{i}", "label": "sport", "date": d} for i, d in enumerate(dates)])
    found = read_side(str(path), Columns(), date_column="date")
    assert [(text.id, text.text) for text in found.texts] == [("0", "t0"), ("2", "t2"), ("4", "t4")]
    assert "Texts left out, not published in 2017 or without a date: 3." in found.notes
    assert len(read_side(str(path), Columns())) == 6
    with pytest.raises(TextsError, match="no column 'day'"):
        read_side(str(path), Columns(), date_column="day")
    with pytest.raises(TextsError, match="lies in 1999"):
        read_side(str(path), Columns(), date_column="date", year=1999)


@pytest.fixture(scope="module")
def translators(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    home = {french: reworded(english) for english, french in SAYINGS.items()}
    return make_marian(folder / "en-fr", SAYINGS), make_marian(folder / "fr-en", home)


def sayings(name, number, seed):
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.permutation(list(SAYINGS))[:6]) for _ in range(number)]
    return Corpus(name, tuple(Text(f"{name}{i}", text) for i, text in enumerate(dict.fromkeys(texts))))


def test_back_translation_by_real_models(tmp_path, translators):
    method = BackTranslation(*map(str, translators))
    settings = CcnewsSettings(texts=12, fewest_words=5)
    build_ccnews(sayings("m", 8, 0), sayings("n", 8, 1), method, folder=tmp_path, settings=settings)
    for row in rows_of(tmp_path / "trans.jsonl"):
        changed = " ".join(map(reworded, re.findall(r"[^.]+\.", row["original"].replace(". ", "."))))
        assert row["text"] == (row["original"] if row["label"] else changed)
    models = json.loads((tmp_path / "trans.card.json").read_text())["models"]
    assert len(models["there"]["weights"]) == len(models["back"]["weights"]) == 64
    assert models["there"]["weights"] != models["back"]["weights"]


def test_a_fault_of_either_way_is_one_of_the_text(monkeypatch):
    class Faulty:
        facts = {}  # noqa: RUF012

        def __init__(self, *faults):
            self.translate = lambda texts: [(f"{t}!", f) for t, f in zip(texts, faults, strict=True)]

    ways = iter([Faulty("", CUT, EMPTY), Faulty(CUT, EMPTY, "")])
    monkeypatch.setattr(ccnews, "open_translator", lambda *_, **__: next(ways))
    _, change = BackTranslation()._open()
    found = change(["a", "b", "c"], 0)
    assert [fault for _, fault in found] == [CUT, CUT, EMPTY]


def test_masking_by_a_real_model(tmp_path):
    import torch
    import transformers

    words = sorted({*BOTH, *NEWS, *PAGES})
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *words]
    tokenizer = transformers.BertTokenizer(vocab={n: i for i, n in enumerate(names)}, do_lower_case=True)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(names), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=24,  # shorter than the texts
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "bert")
    tokenizer.save_pretrained(tmp_path / "bert")
    masking = Masking(str(tmp_path / "bert"), share=0.25)
    build_ccnews(MEMBERS, NONMEMBERS, masking, folder=tmp_path, settings=SMALL)
    changed = []
    for row in rows_of(tmp_path / "mask.jsonl"):
        old, new = (row[name].lower().split() for name in ("original", "text"))
        assert len(old) == len(new)
        differ = [x != y for x, y in zip(old, new, strict=True)]
        assert row["transformed"] or not any(differ)
        if row["transformed"]:
            changed.append(np.mean(differ))
            assert any(differ[len(differ) * 2 // 3 :])  # beyond the model's context too
    assert 0.15 < np.mean(changed) < 0.35


def test_rewriting_by_a_server(tmp_path, chat):
    chat.answer = lambda content: content.removeprefix("Rewrite: ").upper()
    chat.ends_by = lambda answer: "length" if answer.startswith(("M", "C")) else "stop"
    for _ in range(2):
        build_ccnews(MEMBERS, NONMEMBERS, Rewriting(chat.source), folder=tmp_path, settings=SMALL)
        for row in rows_of(tmp_path / "prompt.jsonl"):
            assert row["text"] == (row["original"] if row["label"] else row["original"].upper())
        card = json.loads((tmp_path / "prompt.card.json").read_text())
        assert card["models"]["prompt"] == "Rewrite: {text}"
        assert card["left_out"]["nonmember: cut off at the limit of length"]["count"] > 0
        asked = [one["messages"][0]["content"] for one in chat.asked]
        assert len(asked) == len(set(asked))


_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {here!r}]
from test_ccnews import sayings
from pretrace.plugins.build.ccnews import CcnewsSettings, build_ccnews
from pretrace.plugins.build.ccnews import BackTranslation
from pretrace.plugins.build.translating import _Translator
real, left = _Translator._batch, int(sys.argv[1])
def batch(self, texts):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    print("batch", *texts, sep="|", flush=True)
    return real(self, texts)
_Translator._batch = batch
settings = CcnewsSettings(texts=12, fewest_words=5)
method = BackTranslation({there!r}, {back!r})
build_ccnews(sayings("m", 8, 0), sayings("n", 8, 1), method, folder=Path({out!r}), settings=settings)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_killed_and_started_again(tmp_path, translators, program):
    here = Path(__file__).parent
    there, back = map(str, translators)
    places = {"tests": str(here.parents[1]), "here": str(here), "out": str(tmp_path / "out")}
    code = _KILLED.format(**places, there=there, back=back)
    made = []
    for batches, expected in ((1, -signal.SIGKILL), (99, 0)):
        done = program(code, batches)
        out, complaints = done.communicate()
        assert done.returncode == expected, complaints
        made += [s for line in out.splitlines() if line.startswith("batch") for s in line.split("|")[1:]]
        assert (tmp_path / "out" / "trans.jsonl").exists() == (expected == 0)
    assert len(made) == len(set(made)) == 16  # each sentence there and back once
    assert not list((tmp_path / "out").glob(".*"))
