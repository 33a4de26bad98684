"""The published test of an order, beside which `pretrace order` is measured: a t-test over shards.

Oren et al. (2023), "Proving Test Set Contamination in Black Box Language Models", arXiv 2310.17623, section 3.2. For
each shard the log-probability of the published order less the mean over shuffled orders of the same rows; a one-sided
t-test over shards that the mean lies above 0. It is approximate: Student's law holds for many shards or normal values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.stats import ttest_1samp

from pretrace.errors import TextsError
from pretrace.statistics.ranks import lot_effects


def shard_t_test(values: Sequence[npt.ArrayLike]) -> float:
    """The p-value, from one array a shard: [1 + shuffles] log-probabilities, the published order first.

    1 where no shard differs from its shuffles; TextsError for fewer than two shards.
    """
    if len(values) < 2:
        raise TextsError(f"a t-test takes two shards or more, found {len(values)}.")
    effects = lot_effects(values)
    if not np.ptp(effects):
        return 0.0 if effects[0] > 0 else 1.0
    return float(ttest_1samp(effects, 0.0, alternative="greater").pvalue)
