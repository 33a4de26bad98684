"""One rule for all tests: what leads to each outcome."""

from dataclasses import replace

import pytest
from net.api import ENOUGH, SECOND, Check, Estimate, Found, Power, conclude

FOUND = Found("model", "the letters", 0.05, 0.01, Estimate(0.3, 0.2, 0.4))
PLANTED = Power(Estimate(0.9, 0.8, 1.0), 10, 20, 1, Estimate(0.5, 0.45, 0.55))
FAILED = Check("blind", "The texts are alike", "failed", "They are not.", "Take others.")


ABOVE = replace(FOUND, p=0.5)
CLEAR = replace(ABOVE, planted=PLANTED)
LOW = replace(PLANTED, probability=Estimate(ENOUGH - 0.01, 0.6, 0.9))
FLAGGING = replace(FOUND, noun="flagging")


def outcome(found, *checks):
    return conclude(found, checks).outcome


@pytest.mark.parametrize(
    ("found", "checks", "wanted"),
    [
        # a small p is consistent, and a failed check withholds it
        (FOUND, [], "consistent"),
        (replace(FOUND, p=0.05), [], "consistent"),
        (FOUND, [replace(FAILED, status="passed")], "consistent"),
        (FOUND, [FAILED], "inconclusive"),
        # a large one takes planting, with power, for an all-clear
        (ABOVE, [], "inconclusive"),
        (CLEAR, [], "nothing"),
        (replace(CLEAR, planted=replace(PLANTED, probability=Estimate(ENOUGH, 0.6, 0.9))), [], "nothing"),
        (replace(CLEAR, planted=LOW), [], "inconclusive"),
        (replace(CLEAR, effect=Estimate(0.3, 0.1, 0.46)), [], "inconclusive"),
        (replace(CLEAR, p=None), [], "inconclusive"),
        # checks that only accusations need, and those that only inform
        (replace(CLEAR, accusing=("blind",)), [FAILED], "nothing"),
        (CLEAR, [FAILED], "inconclusive"),
        (replace(CLEAR, accusing=("blind",), p=0.01), [FAILED], "inconclusive"),
        (FOUND, [replace(FAILED, name="power")], "consistent"),
        (CLEAR, [replace(FAILED, name="power")], "nothing"),
        # single texts were flagged
        (replace(FLAGGING, p=0.5, rejected=True), [], "consistent"),
        (replace(FLAGGING, rejected=False), [], "inconclusive"),
        (replace(FLAGGING, p=None, rejected=False, planted=PLANTED), [], "nothing"),
    ],
)
def test_what_leads_to_each_outcome(found, checks, wanted):
    assert outcome(found, *checks) == wanted


def test_an_all_clear_takes_power_and_says_which_training_is_excluded():
    found = conclude(replace(CLEAR, planted=LOW), ())
    assert "could have missed" in found.statement
    assert any("79%" in line and "80%" in line for line in found.reasons)
    how = replace(PLANTED, epochs=4, facts={"units": 40, "how": "all weights, in small steps"})
    said = conclude(replace(FOUND, p=0.5, planted=how, unit="shard"), ()).statement
    assert "20 shards of 40 were read 4 times by a copy of the model (all weights, in small steps)" in said
    assert "90% of such tests find it" in said


def test_nobody_is_accused_without_a_second_model_where_the_test_wants_one():
    wanted = replace(FOUND, second=True)
    asked = Check(SECOND, "Another model finds less", "passed", "It does.", "Name another one.")
    assert outcome(wanted, asked) == "consistent"
    for withheld in ([], [replace(asked, status="not run")], [replace(asked, status="failed")]):
        found = conclude(wanted, withheld)
        assert (found.outcome, found.withheld) == ("inconclusive", (SECOND,))
        assert "cannot say" in found.statement
        assert len(found.reasons) == 2
    assert "Name another one." in conclude(wanted, [replace(asked, status="not run")]).advice
    clear = replace(wanted, p=0.5, planted=PLANTED)
    for status in ("passed", "failed", "not run"):
        assert outcome(clear, replace(asked, status=status)) == "nothing"  # it withholds accusations alone
    assert outcome(FOUND, replace(asked, status="not run")) == "consistent"  # a test by a lot of our own
