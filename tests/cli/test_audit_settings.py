"""What the options of `audit` become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pretrace.auditing.settings import AuditSettings
from pretrace.cli.auditing import audit_settings
from pretrace.cli.job import Auditing, Writing


def settings(**given: Any) -> AuditSettings:
    return audit_settings(Writing(), Auditing(out=Path("A"), placebo=[], **given))


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


def test_the_procedure_of_the_release_can_be_asked_for() -> None:
    assert settings(procedure="release").procedure == "release"
    assert settings(also="paper, release").also == ("paper", "release")
