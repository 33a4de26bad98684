"""Sealed files and time: what page one says of it, a model that is older than the draw, a file from the future."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pretrace.errors import ExpressionError, OutputError, TextsError
from pretrace.scoring.plan import Models
from pretrace.testing import FakeBackend
from pretrace.types import Corpus, Text
from pretrace.verdicts.marking import mark as marking
from pretrace.verdicts.marking.sealed import read_seal
from pretrace.verdicts.marking.settings import MarkSettings
from pretrace.verdicts.marking.variants import VariantCandidates
from pretrace.verdicts.marks import CheckSettings, check_marks, model_day

TEXTS = Corpus("letters", tuple(Text(f"t{i}", f"Letter {i} tells of the valley.") for i in range(24)))
MADE = VariantCandidates(
    {one.id: (one.text, f"The valley is what letter {one.id[1:]} tells of.") for one in TEXTS.texts}
)


def sealed(folder: Path, *, ago: timedelta = timedelta(hours=2)) -> Path:
    """A sealed file, made some time ago."""
    seal = marking.mark(TEXTS, MADE, MarkSettings(variant_column=("other",)))
    place = folder / "sealed.json"
    marking.publish(seal, folder / "PUB", place)
    plain = json.loads(place.read_text())
    plain["made"] = (datetime.now(UTC) - ago).isoformat(timespec="seconds")
    place.write_text(json.dumps(plain))
    return place


def test_page_one_says_who_decided_and_what_was_not_verified(tmp_path: Path) -> None:
    seal = read_seal(sealed(tmp_path))
    knows = FakeBackend([one.published for one in seal.documents])
    found = check_marks(seal, Models(knows), CheckSettings(draws=1000, cache=False, model_date="2050"))
    assert (found.outcome, found.exact) == ("consistent", False)
    page = " ".join((*found.compared, found.assumption))
    assert "No public value went into it" in page
    assert "This time was not verified by this tool" in page


def test_a_model_that_is_older_than_the_draw_is_not_accused(tmp_path: Path) -> None:
    seal = read_seal(sealed(tmp_path))
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
    place = sealed(tmp_path, ago=timedelta(days=-2))
    with pytest.raises(TextsError, match="says that it was made"):
        read_seal(place)
    (tmp_path / "b").mkdir()
    assert read_seal(sealed(tmp_path / "b", ago=timedelta(hours=-20))).documents


def test_a_seal_that_mark_cannot_have_made_is_refused(tmp_path: Path) -> None:
    place = sealed(tmp_path)
    plain = json.loads(place.read_text())
    for change in (
        {"pretrace_seal": 3},
        {"documents": [{**plain["documents"][0], "drawn": -1}, *plain["documents"][1:]]},
        {"made": "2026-01-01T00:00:00"},
    ):
        place.write_text(json.dumps({**plain, **change}))
        with pytest.raises(OutputError, match="damaged or no sealed file"):
            read_seal(place)
