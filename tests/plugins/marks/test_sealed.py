"""The sealed file: for its owner alone, never overwritten, and refused when it is another."""

import hashlib
import json
import random
import stat

import pytest

from pretrace.corpora import open_corpus
from pretrace.errors import OutputError, TextsError
from pretrace.plugins import marks
from pretrace.plugins.marks import MarkSettings, VariantCandidates, read_seal
from pretrace.plugins.marks.checking import CheckSettings, check_marks, check_published
from pretrace.results.atomic import NEW, atomic_bytes
from pretrace.scoring.plan import Models
from pretrace.testing import Memory
from pretrace.types import Corpus, Text

TEXTS = Corpus("letters", tuple(Text(f"t{i}", f"Text {i}.", group=f"g{i // 2}") for i in range(6)))


def _refused(*_):
    raise PermissionError(1, "Operation not permitted")


@pytest.fixture
def seal():
    made = {f"t{i}": (f"Text {i}.", f"Version {i}.") for i in range(6) if i != 2}
    settings = MarkSettings(variant_column=("other",))
    candidates = VariantCandidates(made, {"t2": "no variant"})
    return marks.mark(TEXTS, candidates, settings, draw=random.Random(4).randrange)


def test_what_is_written_is_what_is_read_and_what_is_published(seal, tmp_path):
    out, place = tmp_path / "PUB", tmp_path / "secret" / "seal.json"
    commitment = marks.publish(seal, out, place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert hashlib.sha256(place.read_bytes()).hexdigest() == commitment
    back = read_seal(place, str(out / "commitment.txt"))
    assert (back.documents, back.unmarked, back.nonce) == (seal.documents, seal.unmarked, seal.nonce)
    assert back.sha256 == commitment
    assert read_seal(place, commitment.upper()).sha256 == commitment
    published = open_corpus(out / "published.jsonl")
    assert [text.id for text in published.texts] == [f"t{i}" for i in range(6)]  # in the order of the texts
    assert [text.group for text in published.texts] == [text.group for text in TEXTS.texts]
    assert published.texts[2].text == "Text 2."
    assert {path.name for path in out.iterdir()} == {"published.jsonl", "commitment.txt"}
    others = {one.variants[1 - one.drawn] for one in seal.documents}
    said = "".join(path.read_text(encoding="utf-8") for path in out.iterdir())
    assert not any(text in said for text in others)  # what was not drawn stays secret
    assert [path.name for path in place.parent.iterdir()] == ["seal.json"]


def test_nothing_is_ever_overwritten(seal, tmp_path):
    out, place, link = tmp_path / "PUB", tmp_path / "seal.json", tmp_path / "link.json"
    marks.publish(seal, out, place)
    before = place.read_bytes()
    link.symlink_to(tmp_path / "nowhere")
    for at, sealed, said in (
        (tmp_path / "OTHER", place, "never overwritten"),
        (tmp_path / "OTHER", link, "never overwritten"),
        (out, tmp_path / "other.json", "choose another folder"),
    ):
        with pytest.raises(OutputError, match=said):
            marks.publish(seal, at, sealed)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["PUB", "link.json", "seal.json"]
    assert place.read_bytes() == before


@pytest.mark.parametrize("links", [True, False])
def test_where_one_of_both_fails_neither_is_left(seal, tmp_path, monkeypatch, links):
    place = tmp_path / "seal.json"
    if not links:  # a file system without links
        monkeypatch.setattr("os.link", _refused)
    monkeypatch.setattr("pretrace.results.atomic._install", _refused)
    with pytest.raises(OutputError, match="cannot be written"):
        marks.publish(seal, tmp_path / "PUB", place)
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_links_gets_a_sealed_file_too(seal, tmp_path, monkeypatch):
    monkeypatch.setattr("os.link", _refused)
    place = tmp_path / "seal.json"
    commitment = marks.publish(seal, tmp_path / "PUB", place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert read_seal(place, commitment).documents == seal.documents
    other = tmp_path / "other.json"
    looks = iter([lambda: None, lambda: other.write_text("theirs")])  # just behind the last look
    monkeypatch.setattr("pretrace.results.atomic.check_file", lambda place, output: next(looks)())
    with pytest.raises(OutputError, match="exists"):
        atomic_bytes(other, b"ours", NEW)
    assert other.read_text() == "theirs"


@pytest.mark.parametrize("inside", ["PUB/seal.json", "PUB/deep/seal.json", "door/seal.json"])
def test_the_secret_never_lies_in_what_is_published(seal, tmp_path, inside):
    (tmp_path / "door").symlink_to(tmp_path / "PUB")
    with pytest.raises(OutputError, match="must stay secret"):
        marks.publish(seal, tmp_path / "PUB", tmp_path / inside)
    assert not (tmp_path / "PUB").exists()


def test_an_altered_or_another_file_is_refused(seal, tmp_path):
    place = tmp_path / "seal.json"
    commitment = marks.publish(seal, tmp_path / "PUB", place)
    content = place.read_text()
    plain = json.loads(content)
    first, *others = plain["texts"]

    def changed(**more):
        return json.dumps({**plain, **more})

    place.write_text(changed(texts=[{**first, "drawn": 1 - first["drawn"]}, *others]))
    with pytest.raises(TextsError, match="not what was committed to"):
        read_seal(place, commitment)
    for wrong in (
        *("{}", "no json", content[:-20], json.dumps([1])),
        *(changed(texts=[{**first, "drawn": drawn}, *others]) for drawn in (7, -1)),
        *(changed(pretrace_seal=3), changed(made="2026-01-01T00:00:00")),
    ):
        place.write_text(wrong)
        with pytest.raises(OutputError, match="damaged or no sealed file"):
            read_seal(place)


def test_published_texts_must_be_those_that_were_drawn(seal):
    drawn = {text.id: text.text for text in seal.published}

    def published(**changes):
        return Corpus("site", tuple(Text(name, text) for name, text in {**drawn, **changes}.items()))

    other = next(one for one in seal.documents if one.id == "t3")
    reflowed = drawn["t0"].replace(" ", "\n  ")
    assert "those drawn" in check_published(seal, published(t0=reflowed))[0]
    with pytest.raises(TextsError, match="another variant than the one drawn: 't3'"):
        check_published(seal, published(t3=other.variants[1 - other.drawn]))
    with pytest.raises(TextsError, match=r"4 are no variant .*: 't0', 't1', 't2' and 1 more"):
        check_published(seal, published(t0="x", t1="x", t2="x", t4="x"))
    with pytest.raises(TextsError, match="an id that is not in it: 'new'"):
        check_published(seal, published(new="x"))
    fewer = Corpus("site", tuple(text for text in published().texts if text.id != "t5"))
    assert "1 marked texts are not among" in check_published(seal, fewer)[1]


# Sealed files and time: what page one says of it, a model that is older than the draw, a file from the future.


def test_a_model_that_is_older_than_the_draw_is_not_accused(seal):
    knows = Models(Memory([one.published for one in seal.documents]))

    def tested(day):
        return check_marks(seal, knows, CheckSettings(draws=1000, cache=False, model_date=day))

    found = tested("2020-05")
    assert (found.p <= 0.05, found.outcome) == (True, "inconclusive")
    assert "cannot have read the published versions" in " ".join(found.reasons)
    for day, status in ((f"{seal.made_at:%Y-%m-%d}", "passed"), ("", "not run")):  # the same day, and unknown
        found = tested(day)
        older = {one.name: one.status for one in found.checks}["older"]
        assert (found.outcome, older) == ("consistent", status)


def test_a_models_day_is_what_is_stated_or_what_its_card_says(seal, tmp_path):
    def told(name, day=""):
        settings = CheckSettings(draws=1000, cache=False, model_date=day)
        return check_marks(seal, Models(Memory(name=str(name))), settings).checks[2].words

    assert told(tmp_path).startswith("Nobody says when")
    card = "---\nlicense: mit\nrelease_date: 2025-07-03\n---\n# A model\ndate: 2001-01-01\n"
    (tmp_path / "README.md").write_text(card)
    days = told(tmp_path), told(tmp_path, "2024-02"), told("smollm2")
    assert [one.partition(" by ")[2][:10] for one in days] == ["2025-07-03", "2024-02-29", "2025-02-28"]
