"""The rule that chooses the comparison: every branch, and where it turns."""

from __future__ import annotations

import dataclasses

import pytest

from pretrace.baselines.classifier_two_sample import LENGTH
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.types import Estimate, Gap
from pretrace.verdicts.audit.designs import ALIKE, COMPARABLE, AuditMaterial, choose, differ

EVERYTHING = AuditMaterial(documents=60, controls=60, placebos=1, generator=True, power=False, judged=60)


def gap(auc: float, low: float = 0.51, *, name: str = "words") -> Gap:
    return Gap(name, Estimate(auc, low, 2 * auc - low), 120)


def given(**changed: int | bool) -> AuditMaterial:
    return dataclasses.replace(EVERYTHING, **changed)


@pytest.mark.parametrize(
    ("auc", "low", "apart"),
    [
        (ALIKE, 0.55, False),  # "up to" 0.60 is alike
        (ALIKE + 1e-9, 0.55, True),
        (0.75, 0.5, False),  # an interval that holds a coin shows nothing
        (0.75, 0.5 + 1e-9, True),
        (0.25, 0.2, False),  # below a coin nothing was learnt
    ],
)
def test_sets_differ_by_more_than_the_bound_and_more_than_chance(auc: float, low: float, apart: bool) -> None:
    assert differ(gap(auc, low), ALIKE) is apart


@pytest.mark.parametrize("controls", [0, 60])
def test_too_few_documents_come_first(controls: int) -> None:
    few = choose(given(documents=FEW_DOCUMENTS - 1, controls=controls), [gap(0.5)])
    assert few.design is None
    assert "There are 19 documents" in few.why
    assert few.outcomes == ("inconclusive",)
    assert choose(given(documents=FEW_DOCUMENTS, controls=controls), [gap(0.5)]).design is not None


@pytest.mark.parametrize(
    ("auc", "design"),
    [
        (0.50, "controls"),
        (ALIKE, "controls"),
        (ALIKE + 0.001, "differences"),
        (COMPARABLE, "differences"),
        (COMPARABLE + 0.001, None),
    ],
)
def test_control_documents_are_used_as_far_as_they_are_alike(auc: float, design: str | None) -> None:
    found = choose(EVERYTHING, [gap(auc)])
    assert found.design == design
    assert f"{auc:.2f}" in found.why


def test_the_classifier_that_sees_most_decides_and_the_length_never_does() -> None:
    assert choose(EVERYTHING, [gap(0.55), gap(0.7, name="gpt2")]).design == "differences"
    assert choose(EVERYTHING, [gap(0.55), gap(0.99, name=LENGTH)]).design == "controls"
    only = choose(EVERYTHING, [gap(0.55, name=LENGTH)])
    assert only.design is None
    assert "too few texts" in only.why
    assert choose(EVERYTHING, []).design is None


@pytest.mark.parametrize(
    ("placebos", "generator", "controls", "auc", "design", "cure"),
    [
        (0, False, 60, 0.55, "controls", "--placebo"),  # valid without; it would only see more with one
        (0, True, 60, 0.70, None, "--placebo"),
        (1, False, 60, 0.70, None, "--generator"),
        (1, True, 0, None, "placebos", "--heldout"),
        (0, True, 0, None, None, "--heldout"),
        (1, False, 0, None, None, "--heldout"),
    ],
)
def test_what_is_missing_is_named(
    placebos: int, generator: bool, controls: int, auc: float | None, design: str | None, cure: str
) -> None:
    there = given(placebos=placebos, generator=generator, controls=controls)
    found = choose(there, [] if auc is None else [gap(auc)])
    assert found.design == design
    assert any(cure in words for words in found.cures)
    accused = design in ("controls", "differences")
    assert found.outcomes == (("consistent", "inconclusive") if accused else ("inconclusive",))


@pytest.mark.parametrize(("controls", "auc", "design"), [(0, 0.5, "placebos"), (60, 0.7, "differences")])
def test_documents_left_to_judge_are_counted_where_a_generator_learns_from_some(
    controls: int, auc: float, design: str
) -> None:
    assert choose(given(controls=controls, judged=FEW_DOCUMENTS), [gap(auc)]).design == design
    short = choose(given(controls=controls, judged=FEW_DOCUMENTS - 1), [gap(auc)])
    assert short.design is None
    assert "leaves 19 documents" in short.why
    assert choose(given(judged=0), [gap(0.5)]).design == "controls"  # where nothing is generated


@pytest.mark.parametrize(("controls", "auc"), [(0, 0.5), (60, 0.5), (60, 0.7)])
def test_nothing_shown_is_possible_with_a_power_test_alone(controls: int, auc: float) -> None:
    with_power = choose(given(controls=controls, power=True), [gap(auc)])
    assert with_power.outcomes[-2:] == ("nothing", "inconclusive")
    assert "nothing" not in choose(given(controls=controls), [gap(auc)]).outcomes


@pytest.mark.parametrize("power", [False, True])
def test_without_control_documents_nobody_is_accused(power: bool) -> None:
    assert "consistent" not in choose(given(controls=0, power=power), []).outcomes
    assert "consistent" in choose(given(power=power), [gap(0.5)]).outcomes
    assert "consistent" in choose(given(power=power), [gap(0.7)]).outcomes
