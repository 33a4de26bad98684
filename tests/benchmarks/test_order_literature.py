"""The published t-test over shards, as its formula says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t

from benchmarks.designs.order_literature import shard_t_test
from pretrace.errors import TextsError


def test_it_is_student_s_test_of_published_less_shuffled():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(12, 9))
    values[:, 0] += 0.4
    effects = [row[0] - sum(row[1:]) / 8 for row in values.tolist()]
    mean = sum(effects) / 12
    spread = math.sqrt(sum((one - mean) ** 2 for one in effects) / 11)
    assert shard_t_test(list(values)) == pytest.approx(float(t.sf(mean / (spread / math.sqrt(12)), 11)))


def test_values_that_do_not_vary_and_too_few_shards():
    assert shard_t_test([[1.0, 1.0], [2.0, 2.0]]) == 1.0
    assert shard_t_test([[2.0, 1.0], [3.0, 2.0]]) == 0.0
    with pytest.raises(TextsError, match="two shards or more, found 1"):
        shard_t_test([[1.0, 2.0]])
