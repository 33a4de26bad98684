"""The draw by a public value: named before it exists, the same for everybody, and no value that was known before."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pretrace.errors import ExpressionError, OutputError, TextsError
from pretrace.scoring.plan import Models
from pretrace.testing import FakeBackend
from pretrace.types import Corpus, Text
from pretrace.verdicts.marking import mark as marking
from pretrace.verdicts.marking.sealed import Beacon, drawn, drawn_by, drawn_seal, named, read_seal, with_value
from pretrace.verdicts.marking.settings import MarkSettings
from pretrace.verdicts.marking.variants import Candidates
from pretrace.verdicts.marks import CheckSettings, check_marks, model_day

VALUE = hashlib.sha256(b"a value of the beacon").hexdigest()
NOW = datetime(2026, 3, 1, tzinfo=UTC)
TEXTS = Corpus("letters", tuple(Text(f"t{i}", f"Letter {i} tells of the valley.") for i in range(24)))
MADE = Candidates(
    {one.id: (one.text, f"The valley is what letter {one.id[1:]} tells of.") for one in TEXTS.texts}
)


def sealed(folder: Path, *, ago: timedelta = timedelta(hours=2), beacon: str | None = None) -> Path:
    """A sealed file, made some time ago; with a beacon of an hour after that, unless there is to be none."""
    made = datetime.now(UTC) - ago
    number = int((made + timedelta(hours=1)).timestamp() - 1_692_803_367) // 3 + 1
    settings = MarkSettings(variant_column=("other",), beacon="drand:99999999")
    seal = marking.mark(TEXTS, MADE, settings if beacon is None else MarkSettings(variant_column=("other",)))
    assert seal.is_drawn == (beacon is not None)
    place = folder / "sealed.json"
    marking.publish(seal, folder / "COMMIT", place)
    plain = json.loads(place.read_text())
    plain["made"] = made.isoformat(timespec="seconds")
    if beacon is None:
        plain["beacon"]["number"] = number
    place.write_text(json.dumps(plain))
    return place


def test_the_time_of_a_round_is_known_and_a_past_one_is_refused() -> None:
    # round 1 came at the genesis of quicknet, 2023-08-23 15:09:27 UTC, and each three seconds after that one more
    assert Beacon("drand", 1).time == datetime(2023, 8, 23, 15, 9, 27, tzinfo=UTC)
    assert Beacon("drand", 1201).time == datetime(2023, 8, 23, 16, 9, 27, tzinfo=UTC)
    assert named("drand:30000000", NOW).time > NOW
    for past in ("drand:1", "bitcoin:840000"):
        with pytest.raises(ExpressionError, match="no value of the future"):
            named(past, NOW)
    for wrong in ("drand", "moon:7", "drand:x", "", "drand:-1"):
        with pytest.raises(ExpressionError, match="names a public value"):
            named(wrong, NOW)
    with pytest.raises(ExpressionError, match="too far"):
        named("drand:999999999999", NOW)
    with pytest.raises(ExpressionError, match="no value of the future"):
        MarkSettings(canary=True, beacon="drand:5")


def test_a_value_must_look_like_one_of_its_beacon(tmp_path: Path) -> None:
    past, block = Beacon("drand", 1000), Beacon("bitcoin", 900_000)
    assert with_value(past, VALUE.upper()).value == VALUE
    (tmp_path / "beacon.txt").write_text(f"{VALUE}\n\nThis is round 1000.\n")
    assert with_value(past, str(tmp_path / "beacon.txt")).value == VALUE
    assert with_value(block, "0" * 19 + VALUE[19:]).value.startswith("0" * 19)
    with pytest.raises(TextsError, match="not the hash of a block"):
        with_value(block, VALUE)
    for wrong in ("0" * 64, "ab" * 32, "0" * 19 + VALUE[19:]):
        with pytest.raises(TextsError, match="no random value"):
            with_value(past, wrong)
    for wrong in (VALUE[:63], "nowhere.txt", "x" * 64):
        with pytest.raises(TextsError, match="64 hexadecimal digits"):
            with_value(past, wrong)
    with pytest.raises(TextsError, match="cannot be known yet"):
        with_value(Beacon("drand", 99_999_999), VALUE)


def test_the_draw_follows_from_commitment_value_and_id_and_is_fair() -> None:
    commitment, beacon = hashlib.sha256(b"sealed").hexdigest(), Beacon("drand", 1, VALUE)
    key = bytes.fromhex(commitment + VALUE)
    by_hand = int(hmac.new(key, b"t7", "sha256").hexdigest(), 16) % 5
    assert drawn(commitment, beacon, "t7", 5) == by_hand
    counts = Counter(drawn(commitment, beacon, f"t{i}", 4) for i in range(4000))
    assert all(abs(counts[k] - 1000) < 5 * (4000 * 3 / 16) ** 0.5 for k in range(4))
    other = hashlib.sha256(b"another sealed file").hexdigest()
    same = sum(drawn(commitment, beacon, f"t{i}", 2) == drawn(other, beacon, f"t{i}", 2) for i in range(1000))
    assert abs(same - 500) < 80


def test_two_steps_give_the_texts_that_the_value_decides(tmp_path: Path) -> None:
    place = sealed(tmp_path)
    assert {one.name for one in (tmp_path / "COMMIT").iterdir()} == {"commitment.txt"}
    said = (tmp_path / "COMMIT" / "commitment.txt").read_text()
    assert "round 99999999" in said
    assert "BEFORE that" in said
    seal = read_seal(place)
    with pytest.raises(TextsError, match="nothing was drawn yet"):
        _ = seal.published
    with pytest.raises(TextsError, match="give its value with --beacon-value"):
        drawn_seal(seal, None)
    with pytest.raises(TextsError, match="nothing was drawn by a beacon"):
        marking.publish_drawn(seal, tmp_path / "OUT")
    assert not (tmp_path / "OUT").exists()
    found = drawn_by(seal, VALUE)
    marking.publish_drawn(found, tmp_path / "OUT")
    rows = [json.loads(line) for line in (tmp_path / "OUT" / "published.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == [one.published for one in found.documents]
    assert {row["text"] in MADE.variants[row["id"]] for row in rows} == {True}
    kept = read_seal(place, str(tmp_path / "OUT" / "commitment.txt"))
    again = drawn_seal(kept, str(tmp_path / "OUT" / "beacon.txt"))
    assert again.documents == found.documents
    with pytest.raises(OutputError, match="never replaced"):
        marking.publish_drawn(found, tmp_path / "OUT")


def test_page_one_says_who_decided_and_what_was_not_verified(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    by_beacon = drawn_by(read_seal(sealed(tmp_path / "a")), VALUE)
    by_owner = read_seal(sealed(tmp_path / "b", beacon="none"))
    settings = CheckSettings(draws=1000, cache=False, model_date="2050")
    for seal, words in (
        (by_beacon, "If the commitment was published before that, nobody could choose the draw"),
        (by_owner, "No public value went into it"),
    ):
        knows = FakeBackend([one.published for one in seal.documents])
        found = check_marks(seal, Models(knows), settings)
        assert found.outcome == "consistent"
        page = " ".join((*found.compared, found.assumption))
        assert words in page
        assert "This time was not verified by this tool" in page
        assert "fixed beforehand" not in page
        assert found.exact == (seal is by_beacon)
    assert VALUE in " ".join(check_marks(by_beacon, Models(FakeBackend()), settings).compared)


def test_a_model_that_is_older_than_the_draw_is_not_accused(tmp_path: Path) -> None:
    seal = read_seal(sealed(tmp_path, beacon="none"))
    knows = Models(FakeBackend([one.published for one in seal.documents]))
    found = check_marks(seal, knows, CheckSettings(draws=1000, cache=False, model_date="2020-05"))
    assert (found.p, found.outcome) == (1 / 1001, "inconclusive")
    assert "cannot have read the published versions" in " ".join(found.reasons)
    same_day = f"{seal.made_at:%Y-%m-%d}"
    young = check_marks(seal, knows, CheckSettings(draws=1000, cache=False, model_date=same_day))
    assert young.outcome == "consistent"
    unknown = check_marks(seal, knows, CheckSettings(draws=1000, cache=False))
    assert unknown.outcome == "consistent"
    assert {check.name: check.status for check in unknown.checks}["older"] == "not run"
    with pytest.raises(ExpressionError, match="--model-date takes a day"):
        check_marks(seal, knows, CheckSettings(draws=1000, cache=False, model_date="soon"))


def test_a_models_day_is_what_is_stated_or_what_its_card_says(tmp_path: Path) -> None:
    assert model_day(str(tmp_path)) is None
    (tmp_path / "README.md").write_text(
        "---\nlicense: mit\nrelease_date: 2025-07-03\n---\n# A model\ndate: 2001-01-01\n"
    )
    day = model_day(str(tmp_path))
    assert day is not None
    assert (str(day[0]), day[1]) == ("2025-07-03", "as its card says")
    stated = model_day(str(tmp_path), "2024-02")
    assert stated is not None
    assert str(stated[0]) == "2024-02-29"
    packaged = model_day("smollm2")
    assert packaged is not None
    assert packaged[0].year == 2025


def test_a_sealed_file_from_the_future_is_refused_and_one_of_today_opens(tmp_path: Path) -> None:
    place = sealed(tmp_path, ago=timedelta(days=-2), beacon="none")
    with pytest.raises(TextsError, match="says that it was made"):
        read_seal(place)
    (tmp_path / "b").mkdir()
    assert read_seal(sealed(tmp_path / "b", ago=timedelta(hours=-20), beacon="none")).is_drawn
    old = json.loads((tmp_path / "b" / "sealed.json").read_text())
    assert old["pretrace_seal"] == 1
    assert "beacon" not in old  # as it was before there were beacons


def test_a_beacon_that_was_known_when_the_file_was_made_is_refused(tmp_path: Path) -> None:
    place = sealed(tmp_path)
    plain = json.loads(place.read_text())
    for change in (
        {"beacon": {**plain["beacon"], "number": 5}},
        {"beacon": {**plain["beacon"], "value": VALUE}},
        {"beacon": None},
        {"pretrace_seal": 1},
        {"pretrace_seal": 3},
        {"documents": [{**plain["documents"][0], "drawn": 0}, *plain["documents"][1:]]},
        {"made": "2026-01-01T00:00:00"},
    ):
        place.write_text(json.dumps({**plain, **change}))
        with pytest.raises(OutputError, match="damaged or no sealed file"):
            read_seal(place)


def test_a_lot_of_the_owner_is_no_draw_by_a_beacon(tmp_path: Path) -> None:
    seal = marking.mark(TEXTS, MADE, MarkSettings(variant_column=("other",)), lot=random.Random(1).randrange)
    with pytest.raises(TextsError, match="names no beacon"):
        drawn_by(seal, VALUE)
