"""One rule for all tests: what leads to each outcome."""

from dataclasses import replace

import pytest
from net.api import ENOUGH, SECOND, Check, Estimate, Found, Power, conclude, exposure

FOUND = Found("model", "the letters", 0.05, 0.01, Estimate(0.3, 0.2, 0.4), "nats a token")
PLANTED = Power(Estimate(0.9, 0.8, 1.0), 10, 20, 1, Estimate(0.5, 0.45, 0.55))
FAILED = Check("blind", "The texts are alike", "failed", "They are not.", "Take others.")


def outcome(found, *checks):
    return conclude(found, checks).outcome


def test_a_small_p_is_consistent_and_a_failed_check_withholds_it():
    assert outcome(FOUND) == "consistent"
    assert outcome(FOUND, FAILED) == "inconclusive"
    assert outcome(FOUND, replace(FAILED, status="passed")) == "consistent"
    assert outcome(replace(FOUND, p=0.05)) == "consistent"


def test_a_large_p_takes_planting_for_an_all_clear():
    above = replace(FOUND, p=0.5)
    assert outcome(above) == "inconclusive"
    assert outcome(replace(above, planted=PLANTED)) == "nothing"
    wide = replace(above, planted=PLANTED, effect=Estimate(0.3, 0.1, 0.46))
    assert outcome(wide) == "inconclusive"


def test_checks_that_only_accusations_need_do_not_withhold_an_all_clear():
    clear = replace(FOUND, p=0.5, planted=PLANTED, accusing=("blind",))
    assert outcome(clear, FAILED) == "nothing"
    assert outcome(replace(clear, accusing=()), FAILED) == "inconclusive"
    assert outcome(replace(clear, p=0.01), FAILED) == "inconclusive"


def test_without_a_test_nothing_is_said():
    assert outcome(replace(FOUND, p=None, planted=PLANTED)) == "inconclusive"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (FOUND, "consistent with training on the letters"),
        (replace(FOUND, p=0.5), "could have missed it"),
        (replace(FOUND, p=0.5, planted=PLANTED), "Nothing was found"),
        (replace(FOUND, p=None), "cannot say whether model was trained on the letters"),
    ],
)
def test_the_statement_says_the_outcome(found, said):
    assert said in conclude(found, ()).statement


def test_advice_names_the_power_and_cures():
    above = conclude(replace(FOUND, p=0.5), [replace(FAILED, status="not run")])
    assert any("--power" in line for line in above.advice)
    assert "Take others." in above.advice


def test_an_all_clear_takes_power():
    above = replace(FOUND, p=0.5, planted=PLANTED)
    low = replace(PLANTED, probability=Estimate(ENOUGH - 0.01, 0.6, 0.9))
    assert (
        outcome(replace(above, planted=replace(PLANTED, probability=Estimate(ENOUGH, 0.6, 0.9)))) == "nothing"
    )
    found = conclude(replace(above, planted=low), ())
    assert found.outcome == "inconclusive"
    assert "could have missed" in found.statement
    assert any("79%" in line and "80%" in line for line in found.reasons)
    assert any("more texts" in line for line in found.advice)


def test_an_all_clear_says_which_training_is_excluded():
    how = replace(PLANTED, epochs=4, facts={"units": 40, "how": "all weights, in small steps"})
    said = conclude(replace(FOUND, p=0.5, planted=how, unit="shard"), ()).statement
    assert exposure(how, "shard") in said
    assert "20 shards of 40 were read 4 times by a copy of the model (all weights, in small steps)" in said
    assert "90% of such tests find it" in said
    assert "does not exclude weaker training" in said


def test_nobody_is_accused_without_a_second_model_where_the_test_wants_one():
    wanted = replace(FOUND, second=True)
    asked = Check(SECOND, "Another model finds less", "passed", "It does.", "Name another one.")
    assert outcome(wanted, asked) == "consistent"
    for withheld in ([], [replace(asked, status="not run")], [replace(asked, status="failed")]):
        found = conclude(wanted, withheld)
        assert (found.outcome, found.withheld) == ("inconclusive", (SECOND,))
        assert "model that cannot have seen the texts" in found.statement
        assert len(found.reasons) == 2
    assert "Name another one." in conclude(wanted, [replace(asked, status="not run")]).advice
    clear = replace(wanted, p=0.5, planted=PLANTED)
    for status in ("passed", "failed", "not run"):
        assert outcome(clear, replace(asked, status=status)) == "nothing"  # it withholds accusations alone
    assert outcome(FOUND, replace(asked, status="not run")) == "consistent"  # a test by a lot of our own


def test_checks_that_only_inform_withhold_nothing():
    told = replace(FOUND, informing=("blind",))
    assert outcome(told, FAILED) == "consistent"
    assert outcome(replace(told, p=0.5, planted=PLANTED), FAILED) == "nothing"


def test_audits_and_flaggings_say_it_in_their_own_words():
    audit = replace(FOUND, noun="audit", said={"consistent": "It looks like training."})
    assert conclude(audit, ()).statement == "It looks like training."
    assert "this audit could have missed it" in conclude(replace(audit, p=0.5), ()).statement
    flagging = replace(FOUND, noun="flagging", p=0.5, rejected=True)  # single texts were flagged
    assert outcome(flagging) == "consistent"
    assert outcome(replace(flagging, p=0.01, rejected=False)) == "inconclusive"
    assert outcome(replace(flagging, p=None, rejected=False, planted=PLANTED)) == "nothing"
