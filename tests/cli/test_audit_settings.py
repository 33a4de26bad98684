"""What the options of `audit` become."""

from __future__ import annotations

from typing import Any

from pretrace.auditing.settings import AuditSettings
from pretrace.auditing.snippets import SnippetSettings
from pretrace.cli.auditing import AuditInputs, completed


def settings(seed: int = 0, **given: Any) -> AuditSettings:
    return completed(AuditSettings(seed=seed), AuditInputs(**given))


def test_power_is_measured_in_more_than_a_handful_of_steps() -> None:
    made = settings(power=True, seed=3).power
    assert made is not None
    assert (made.epochs, made.seed) == (1, 3)
    # Half of an audit of 200 documents, a window each: six steps of 16 moved a model too little to be seen.
    assert 100 // made.batch >= 20
    assert settings().power is None


def test_what_the_one_who_asks_says_is_passed_on_where_it_was_said() -> None:
    made = settings(requested_by="the authors", heldout_note="their drawers")
    assert made.statements == {"requested_by": "the authors", "controls": "their drawers"}
    assert settings(placebo_note="its release notes").statements == {"placebo": "its release notes"}
    assert settings().statements == {}


def test_a_quick_audit_judges_and_learns_from_fewer_snippets() -> None:
    made = settings(quick=True).snippets
    assert (made.pairs, made.learnt) == (200, 100)
    few = completed(AuditSettings(snippets=SnippetSettings(pairs=50)), AuditInputs(quick=True)).snippets
    assert few.pairs == 50
