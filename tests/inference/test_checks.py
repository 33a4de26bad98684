"""Each control fails where it should, and passes where it should."""

from __future__ import annotations

import numpy as np
import pytest

from pretrace.inference import checks
from pretrace.inference.documents import TOLERANCE, DocumentValues, answer, of_leads, p_value, reversed_p
from pretrace.inference.reading import Leads
from pretrace.inference.sides import Piece, Sides
from pretrace.types import Doubles, Estimate, Gap, Power

RNG = np.random.default_rng(0)


def values(mean: float, number: int = 60, *, spread: float = 1.0, seed: int = 0) -> DocumentValues:
    drawn = np.random.default_rng(seed).normal(mean, spread, number)
    return DocumentValues(tuple(f"d{i}" for i in range(number)), drawn)


def two_sided(mean: float, *, seed: int = 0) -> DocumentValues:
    rng = np.random.default_rng(seed)
    names, others = tuple(f"s{i}" for i in range(60)), tuple(f"h{i}" for i in range(50))
    return DocumentValues(names, rng.normal(mean, 1, 60), others, rng.normal(0, 1, 50))


def test_values_are_averaged_by_document_before_anything_is_tested() -> None:
    suspect = (Piece("a", "1"), Piece("b", "2"), Piece("a", "3"))
    sides = Sides(suspect, suspect, paired=True)
    leads = Leads(np.array([1.0, 5.0, 2.0]), np.array([0.0, 1.0, 0.5]), 1.0)
    found = of_leads(sides, leads, tolerance=0.25)
    assert found.documents == ("a", "b")
    assert found.values.tolist() == [1.0, 3.75]
    held = Sides(suspect, (Piece("h", "4"), Piece("h", "5")))
    apart = of_leads(held, Leads(np.array([1.0, 5.0, 2.0]), np.array([1.0, 2.0]), 1.0))
    assert apart.values.tolist() == [1.5, 5.0]
    assert apart.heldout_values.tolist() == [1.5]
    assert not apart.paired


def test_the_tolerance_stands_against_both_directions() -> None:
    rng = np.random.default_rng(3)
    drawn = rng.normal(0, 0.02, 80)
    names = tuple(map(str, range(80)))
    within = DocumentValues(names, drawn + 0.03 - TOLERANCE, tolerance=TOLERANCE)
    assert p_value(within) > 0.9
    assert reversed_p(within) > 0.9
    below = DocumentValues(names, drawn - 0.08 - TOLERANCE, tolerance=TOLERANCE)
    assert reversed_p(below) < 0.001


@pytest.mark.parametrize("made", [values, two_sided])
def test_the_test_sees_a_shift_in_its_own_direction_alone(made: object) -> None:
    assert callable(made)
    assert p_value(made(1.0)) < 0.001 < 0.9 < p_value(made(-1.0))
    assert reversed_p(made(-1.0)) < 0.001 < 0.9 < reversed_p(made(1.0))


def test_the_answer_tells_effect_unit_and_effective_pieces() -> None:
    documents = [f"d{i // 4}" for i in range(160)]
    shared = np.repeat(RNG.normal(0, 1, 40), 4)
    pieces = tuple(Piece(name, "x") for name in documents)
    leads = Leads(shared + 0.6, np.zeros(160), 0.3)
    found = answer(Sides(pieces, pieces, paired=True), leads, seed=0)
    assert (found.documents, found.pieces, found.unit) == (40, 160, "of a typical token's lead")
    assert found.effect is not None
    assert found.effect.value == pytest.approx(float(shared.mean()) + 0.6 - TOLERANCE)
    assert found.effect.low < found.effect.value < found.effect.high
    assert found.facts["intraclass_correlation"] > 0.9
    assert found.facts["effective_pieces"] < 50
    assert found.facts["scale_nats"] == 0.3


def test_few_documents_give_no_verdict() -> None:
    assert checks.documents_check(values(0, 19)).status == "failed"
    assert checks.documents_check(values(0, 20)).status == "passed"
    short = DocumentValues(tuple("abcdefghijklmnopqrstuvwxyz"), np.zeros(26), ("h",), np.zeros(1))
    assert checks.documents_check(short).status == "failed"


def test_halves_are_alike_unless_a_few_documents_are_not() -> None:
    failed = [
        checks.halves_check(values(0.5, seed=seed), seed=seed).status == "failed" for seed in range(200)
    ]
    assert np.mean(failed) < 0.04  # by chance in one of a hundred
    drawn = values(0.0).values.copy()
    order = np.random.default_rng([0, 1]).permutation(60)
    drawn[order[:30]] += 3.0
    found = checks.halves_check(DocumentValues(tuple(map(str, range(60))), drawn), seed=0)
    assert found.status == "failed"
    assert found.cure
    assert checks.halves_check(values(0, 3), seed=0).status == "not run"


def test_a_difference_the_wrong_way_is_noticed() -> None:
    assert checks.reverse_check(values(-0.8), seed=0).status == "failed"
    assert checks.reverse_check(values(0.8), seed=0).status == "passed"


@pytest.mark.parametrize("made", [values, two_sided])
def test_shuffled_sides_keep_the_level(made: object) -> None:
    assert callable(made)
    found = checks.shuffled_check(checks.flipped_p(made(2.0)), repeats=200, level=0.05, seed=0)
    assert found.status == "passed"
    assert 2 <= found.figures["rejected"] <= found.figures["most"]


def test_a_procedure_that_always_rejects_is_noticed() -> None:
    found = checks.shuffled_check(lambda rng: 0.5 * float(rng.random() < 0.5), repeats=50, level=0.05, seed=0)
    assert found.status == "failed"


@pytest.mark.parametrize(
    ("auc", "low", "design", "status"),
    [
        (0.55, 0.52, "synthetic", "passed"),
        (0.72, 0.68, "synthetic", "failed"),
        (0.28, 0.24, "synthetic", "passed"),  # below chance: nothing was learnt
        (0.72, 0.45, "synthetic", "passed"),
        (0.64, 0.58, "heldout", "failed"),
        (0.58, 0.55, "heldout", "passed"),
    ],
)
def test_texts_too_far_apart_decide_nothing(auc: float, low: float, design: str, status: str) -> None:
    found = checks.gap_check([Gap("words", Estimate(auc, low, 2 * auc - low), 100)], design)
    assert found.status == status
    assert bool(found.cure) == (status == "failed")


def power(probability: float, needed: int | None) -> Power:
    return Power(Estimate(probability, 0, 1), needed, 100, 1, Estimate(0.1, 0, 0.2))


def test_low_power_says_what_would_be_needed() -> None:
    assert checks.power_check(power(0.9, 80)).status == "passed"
    low = checks.power_check(power(0.3, 700))
    assert low.status == "failed"
    assert "About 700 documents" in low.cure
    assert "closer placebo" in checks.power_check(power(0.05, None)).cure
    assert checks.power_check(None).status == "not run"


def test_copies_and_stand_ins() -> None:
    assert checks.copies_check(0.5).status == "failed"
    assert checks.copies_check(0.0).status == "passed"
    assert checks.standin_check("m", 0.001, 0.05).status == "failed"
    assert checks.standin_check("m", 0.3, 0.05).status == "passed"
    assert checks.standin_check(None, 1.0, 0.05).status == "not run"


def test_flipping_keeps_the_numbers() -> None:
    found = two_sided(1.0)
    dealt = checks.flipped(found, np.random.default_rng(1))
    both: list[Doubles] = [np.concatenate([one.values, one.heldout_values]) for one in (found, dealt)]
    assert sorted(both[0]) == sorted(both[1])
    assert not np.array_equal(*both)
    assert np.array_equal(
        np.abs(checks.flipped(values(1), np.random.default_rng(1)).values), np.abs(values(1).values)
    )
