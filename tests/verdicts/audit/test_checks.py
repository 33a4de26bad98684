"""Each control fails where it should, and passes where it should."""

from functools import partial

import numpy as np
import pytest
from net.api import (
    DOSE,
    AuditData,
    AuditSettings,
    Beyond,
    DocumentValues,
    Estimate,
    Gap,
    Logprobs,
    Memory,
    Models,
    Placebo,
    Sample,
    answer,
    beyond,
    checks,
    controls_left_out,
    null_of,
    permuted,
    placebo_check,
)

MARGIN = 0.05


def values(mean, number=60, *, spread=1.0, seed=0):
    drawn = np.random.default_rng(seed).normal(mean, spread, number)
    return DocumentValues(tuple(f"d{i}" for i in range(number)), drawn)


def reverse_p(found):
    return checks.reverse_check(found, seed=0).figures["p"]


def two_sided(mean, *, seed=0):
    rng = np.random.default_rng(seed)
    names, others = tuple(f"s{i}" for i in range(60)), tuple(f"h{i}" for i in range(50))
    return DocumentValues(names, rng.normal(mean, 1, 60), others, rng.normal(0, 1, 50))


SUSPECT = (Sample("a", "1"), Sample("b", "2"), Sample("a", "3"))
HELD = (Sample("h", "4"), Sample("i", "5"))


LEADS, TURNED = [0.5, 1.0, 9.0], [-1.0, 1.0, -1.0]
FOUR = [LEADS, TURNED, [1.0, 0.5], [0.5, -1.0]]


@pytest.mark.parametrize(
    ("design", "parts", "leads", "margin", "mine", "controls"),
    [
        ("placebos", (SUSPECT, SUSPECT), [LEADS, TURNED], 0.25, [1.5, -0.25], []),
        ("controls", (SUSPECT, HELD), [LEADS, [-1.0, 1.0]], 0.0, [0.75, 1.0], [-1.0, 1.0]),
        ("differences", (SUSPECT, SUSPECT, HELD, HELD), FOUR, 0.0, [1.75, 0.0], [0.5, 1.5]),
    ],
)
def test_values_are_averaged_by_document_before_anything_is_tested(
    design, parts, leads, margin, mine, controls
):
    """The scale is the median lead without its sign, here 1, and no lead counts for more than that. The placebo gives
    each token 0."""
    placebo = Memory(name="placebo")
    how = {"paired": design != "controls", "placebos": (placebo,), "margin": margin}
    case = AuditData(parts, Models(Memory(name="target")), AuditSettings(), **how)
    for model, times in ((case.target, 1), (placebo, 0)):
        rows = (
            Logprobs(tuple(times * np.array([one]) for one in side), np.full(len(side), 4)) for side in leads
        )
        case._logprobs[id(model)] = tuple(rows)
    found = case.compared_with(placebo)
    assert (case.design, found.paired, found.margin) == (design, design == "placebos", margin)
    assert (found.documents, found.values.tolist()) == (("a", "b"), mine)
    assert found.heldout_documents == (("h", "i") if controls else ())
    assert found.heldout_values.tolist() == controls


def test_the_margin_stands_against_both_directions():
    rng = np.random.default_rng(3)
    drawn = rng.normal(0, 0.02, 80)
    names = tuple(map(str, range(80)))
    within = DocumentValues(names, drawn + 0.03 - MARGIN, margin=MARGIN)
    assert permuted(within).p > 0.9
    assert reverse_p(within) > 0.9
    below = DocumentValues(names, drawn - 0.08 - MARGIN, margin=MARGIN)
    assert reverse_p(below) < 0.001


@pytest.mark.parametrize("made", [values, two_sided])
def test_the_test_sees_a_shift_in_its_own_direction_alone(made):
    assert permuted(made(1.0)).p < 0.001 < 0.9 < permuted(made(-1.0)).p
    assert reverse_p(made(-1.0)) < 0.001 < 0.9 < reverse_p(made(1.0))


@pytest.mark.parametrize("made", [values, two_sided])
@pytest.mark.parametrize("mean", [0.0, 0.2, -0.3])
def test_the_null_that_is_shown_agrees_with_p(made, mean):
    """The statistic can be moved to an edge of the histogram: what lies above it there is what p counts."""
    found = made(mean)
    null, p = null_of(permuted(found), 0.05, "statistic"), answer(found, pieces=60, seed=0, facts={}).p
    counts, edges = np.array(null.counts), np.array(null.edges)
    assert counts.sum() == 10_000
    low, high = (counts[edges[side:][: len(counts)] >= null.observed].sum() for side in (0, 1))
    assert low <= p * 10_001 - 1 <= high  # whole bins above the statistic, and with the bin it lies in
    assert (p <= 0.05) == (null.observed >= null.critical)


SHORT = DocumentValues(tuple("abcdefghijklmnopqrstuvwxyz"), np.zeros(26), ("h",), np.zeros(1))


@pytest.mark.parametrize(
    ("check", "failed", "passed"),
    [
        (checks.documents_check, values(0, 19), values(0, 20)),
        (checks.documents_check, SHORT, values(0, 20)),
        (partial(checks.reverse_check, seed=0), values(-0.8), values(0.8)),  # a difference the wrong way
        (checks.copies_check, 0.21, 0.2),
    ],
)
def test_a_check_fails_where_it_should_alone(check, failed, passed):
    assert (check(failed).status, check(passed).status) == ("failed", "passed")


@pytest.mark.parametrize(
    ("auc", "low", "design", "status"),
    [
        (0.55, 0.52, "placebos", "passed"),
        (0.72, 0.68, "placebos", "failed"),
        (0.28, 0.24, "placebos", "passed"),  # below chance: nothing was learnt
        (0.72, 0.45, "placebos", "passed"),
        (0.58, 0.55, "controls", "passed"),
        (0.64, 0.58, "controls", "failed"),  # a procedure of the literature goes on without a design
        (0.72, 0.68, "differences", "passed"),
        (0.84, 0.78, "differences", "failed"),
    ],
)
def test_texts_too_far_apart_decide_nothing(auc, low, design, status):
    found = checks.gap_check([Gap("words", Estimate(auc, low, 2 * auc - low), 100)], "Why.", design)
    assert found.status == status
    assert bool(found.cure) == (status == "failed")
    assert ("Why." in found.words) == (design != "placebos")
    assert checks.gap_check([], "Why.", design).status == "not run"


def with_controls(controls, suspect):
    names = tuple(f"s{i}" for i in range(len(suspect))), tuple(f"h{i}" for i in range(len(controls)))
    return DocumentValues(names[0], suspect, names[1], controls)


def test_a_rejection_that_a_few_strange_controls_explain_is_withheld():
    """Seven controls of fifty lie far below, as documents of a kind do that the model knows less."""
    rng = np.random.default_rng(4)
    suspect, controls = rng.normal(0, 1, 50), rng.normal(0, 1, 50)
    strange = np.concatenate([controls[7:], controls[:7] - 6])
    for found, status in (
        (with_controls(strange, suspect), "failed"),
        (with_controls(controls, suspect + 1.5), "passed"),
    ):
        assert permuted(found).p < 0.05
        left = controls_left_out(found.values, found.heldout_values, 0.05)
        assert (left < 8) == (status == "failed")
        assert checks.mixture_check(left, found).status == status
        assert checks.spread_check(found, seed=0).status == status
    assert controls_left_out(controls, suspect + 1.5, 0.05) is None
    assert checks.mixture_check(None, found).status == "not run"


def placebo(name, grade, closeness=None):
    return Placebo(name, grade, closeness, f"words of {name}")


@pytest.mark.parametrize(
    ("grades", "design", "status"),
    [
        ((), "controls", "not run"),  # control documents that are alike need none
        (("other",), "controls", "not run"),
        (("own",), "controls", "passed"),
        ((), "placebos", "failed"),
        (("other",), "differences", "failed"),
        (("other", "sibling"), "differences", "passed"),
    ],
)
def test_a_placebo_is_needed_where_the_design_rests_on_it(grades, design, status):
    found = placebo_check([placebo(grade, grade) for grade in grades], design, 0.05)
    assert found.status == status
    assert bool(found.cure) == (status != "passed")
    if status == "passed":
        assert "no test can show it" in found.words
        assert "words of other" not in found.words


@pytest.mark.parametrize(
    ("p", "status", "words"),
    [(None, "passed", ""), (0.05, "passed", "it does (p = 0.05)"), (0.06, "failed", "it does not")],
)
def test_beside_a_much_worse_reader_the_target_must_show_more_than_a_multiple(p, status, words):
    one = Placebo("early", "own", 0.7, "an earlier checkpoint", apart=0.16, beyond=p)
    found = placebo_check([one], "controls", 0.05)
    assert (found.status, words in found.words) == (status, True)
    assert ("16% of the loss" in found.words) == (p is not None)


def test_control_documents_that_form_a_group_of_their_own_withhold_an_accusation():
    rng = np.random.default_rng(5)
    here, away = (np.array([f"{stem}{i}" for i in range(60)]) for stem in ("here", "away"))
    texts = [" ".join(rng.choice(here, 40)) for _ in range(92)]
    strange = [" ".join(rng.choice(away, 40)) for _ in range(8)]

    def checked(first, second):
        sides = ([Sample(one, one) for one in side] for side in (first, second))
        return checks.kinds_check(tuple(sides), seed=0, rejected=True)

    found = checked(texts[:50], [*texts[50:], *strange])
    assert found.status == "failed"
    assert (found.figures["group"], found.figures["controls"]) == (8, 8)
    rng = np.random.default_rng(0)  # its p is 0.96; by chance one seed of twenty fails
    plain = [" ".join(rng.choice(here, 40)) for _ in range(100)]
    assert checked(plain[:50], plain[50:]).status == "passed"
    assert checked(["a"], ["b"]).status == "not run"


@pytest.mark.parametrize(
    ("target", "second", "told"),
    [(0.0, 0.0, "not more"), (0.8, 0.8, "not more"), (1.2, 0.0, "more"), (3.0, 0.8, "more")],
)
def test_the_target_must_show_more_than_a_multiple_of_what_a_second_model_shows(target, second, told):
    """Both find the same documents hard; noise in the control documents raises both, training the target alone."""
    rng = np.random.default_rng(4)
    hard, own, other = rng.normal(size=(3, 2, 60))
    shift = np.array([[1.0], [0.0]])
    mine, theirs = (
        with_controls(sides[1], sides[0])
        for sides in (hard + 0.3 * own + target * shift, 5 * (hard + 0.3 * other + second * shift))
    )
    found = beyond(mine, theirs, seed=0)
    assert found.dose == DOSE
    assert (found.p <= 0.05) == (told == "more"), found
    strange = with_controls(*rng.normal(size=(2, 60)))
    assert beyond(mine, strange, seed=0) == Beyond(1.0, float("inf"))
    hardly = with_controls(*(0.25 * hard + other)[::-1])  # a correlation of 0.25: too little, though not none
    assert 0.1 < np.corrcoef(mine.within, hardly.within)[0, 1] < 1 / 3
    assert beyond(mine, hardly, seed=0) == Beyond(1.0, float("inf"))
