"""The labels of reference texts, for the scores that learn from them."""

from __future__ import annotations

import numpy as np

from pretrace.errors import TextsError
from pretrace.types import Bools, Needs, Reference


def known(reference: Reference, score: str, needs: Needs) -> Bools:
    """Which reference texts are members; TextsError where one is unlabelled or was not read, or where a
    side has fewer than 2."""
    for e in reference.evidence:
        if e.text.member is None:
            raise TextsError(
                f"{score} learns from texts with known labels, and reference text {e.text.id!r} has none; label "
                "it or leave it out."
            )
        if any(state not in e.plain.states for states in needs.states.values() for state in states):
            raise TextsError(
                f"{score} looks inside the model while it reads, and reference text {e.text.id!r} was not read: "
                "it has no token to predict; leave it out."
            )
    members = np.array([bool(e.text.member) for e in reference.evidence], dtype=bool)
    found = int(members.sum()), int((~members).sum())
    if min(found) < 2:
        raise TextsError(
            f"{score} learns from reference texts: wanted at least 2 members and 2 non-members, found {found[0]} and "
            f"{found[1]}; give more with --reference (the paper takes 100 of each)."
        )
    return members
