"""The null at scale, made small: the laws are what they say, the rows add up, and it goes on after a kill."""

import numpy as np
import pytest

from benchmarks.audits import null as audit_null
from pretrace.statistics.permutation import sign_flip_test


def test_many_sign_flip_tests_at_once_are_the_one_that_is_shipped():
    values = audit_null.TAILS["exponential below"](np.random.default_rng(0), (6, 9))
    every = 1.0 - 2.0 * (np.arange(2**9)[:, None] >> np.arange(9) & 1)
    for guarded in (True, False):
        found = audit_null.flipped(values, every, guarded=guarded)
        exact = [sign_flip_test(one, guarded=guarded).p for one in values]
        assert (found * 513 - 1) / 512 == pytest.approx(exact)
