"""The p-values of the audit's tests are uniform under the null."""

import numpy as np
import pytest
from net.api import by_document, sign_flip, two_sample
from scipy import stats

AUDITS, DRAWS = 500, 199
SHARED = 0.05
"""The share of a snippet's variance that it has in common with the others of its document."""


def snippets(rng, documents, tail="none"):
    """Null values of snippets, 1 … 60 a document, and the document of each."""
    sizes = np.minimum(1 + rng.geometric(1 / 20, documents), 60)
    codes = np.repeat(np.arange(documents), sizes)
    draw = {
        "none": rng.standard_normal,
        "heavy": lambda n: rng.standard_t(3, n) / np.sqrt(3),
        "below": lambda n: 1 - rng.standard_exponential(n),
    }[tail]
    values = np.sqrt(SHARED) * draw(documents)[codes] + np.sqrt(1 - SHARED) * draw(len(codes))
    return values, [f"document {code}" for code in codes]


def uniform(p_values, draws=DRAWS):
    """The p of Kolmogorov and Smirnov, each value spread over the step it stands for."""
    spread = np.random.default_rng(0).random(len(p_values)) / (1 + draws)
    return stats.kstest(np.array(p_values) - spread, "uniform").pvalue


@pytest.mark.parametrize("tail", ["none", "heavy"])
@pytest.mark.parametrize("documents", [9, 20, 60, 200])
def test_one_value_a_document_is_uniform(documents, tail):
    rng = np.random.default_rng(documents)
    values = (by_document(*snippets(rng, documents, tail))[1] for _ in range(AUDITS))
    found = [sign_flip(means, flips=DRAWS, seed=seed) for seed, means in enumerate(values)]
    # up to 13 documents nothing is drawn: p comes in steps of 2^-documents
    assert uniform(found, draws=2**9 - 1 if documents == 9 else DRAWS) > 0.01
    assert np.mean(np.array(found) <= 0.05) == pytest.approx(0.05, abs=0.03)


@pytest.mark.parametrize("tail", ["none", "heavy", "below"])
@pytest.mark.parametrize(("documents", "heldout"), [(20, 20), (60, 25), (25, 60)])
def test_against_held_out_documents_it_is_uniform(documents, heldout, tail):
    rng = np.random.default_rng(documents)
    found = []
    for seed in range(AUDITS):
        sides = (by_document(*snippets(rng, number, tail))[1] for number in (documents, heldout))
        found.append(two_sample(*sides, permutations=DRAWS, seed=seed))
    assert uniform(found) > 0.01
    assert np.mean(np.array(found) <= 0.05) == pytest.approx(0.05, abs=0.03)


def test_a_long_tail_below_costs_little_where_there_are_documents():
    rng = np.random.default_rng(6)
    below = (by_document(*snippets(rng, 100, "below"))[1] for _ in range(AUDITS))
    found = [sign_flip(one, flips=DRAWS, seed=seed) for seed, one in enumerate(below)]
    assert np.mean(np.array(found) <= 0.05) < 0.08
