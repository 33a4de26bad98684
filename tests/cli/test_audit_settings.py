"""What the options of `audit` become."""

import dataclasses

from pretrace.cli.auditing import AuditOptions, completed
from pretrace.verdicts.audit.settings import AuditSettings, SnippetSettings


def settings(**given):
    return completed(AuditSettings(), AuditOptions(**given))


def test_power_is_measured_at_a_light_and_a_heavy_exposure_in_more_than_a_handful_of_steps():
    made = settings(power=True).power
    assert [(one.epochs, one.rate(existing=True)) for one in made] == [(1, 5e-5), (1, 5e-4)]
    # Half of an audit of 200 documents, a window each: six steps of 16 moved a model too little to be seen.
    assert all(100 // one.batch >= 20 for one in made)
    lora = settings(power=True, power_method="lora").power
    assert [round(one.rate(existing=True), 6) for one in lora] == [1e-3, 1e-2]
    assert settings().power == ()


def test_nobody_chooses_the_draws_of_an_audit():
    assert "seed" not in {field.name for field in dataclasses.fields(AuditSettings)}


def test_what_the_one_who_asks_says_is_passed_on_where_it_was_said():
    made = settings(requested_by="the authors", controls_note="their drawers")
    assert made.statements == {"requested_by": "the authors", "controls": "their drawers"}
    assert settings(placebo_note="its release notes").statements == {"placebo": "its release notes"}
    assert settings().statements == {}


def test_a_quick_audit_judges_and_learns_from_fewer_snippets():
    made = settings(quick=True).snippets
    assert (made.pairs, made.learnt) == (200, 100)
    few = completed(AuditSettings(snippets=SnippetSettings(pairs=50)), AuditOptions(quick=True)).snippets
    assert few.pairs == 50
