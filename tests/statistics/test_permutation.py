"""The permutation tests against slow ones written out, their promises, intervals, and what pieces are worth."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from net.api import by_document, permutation, sign_flip, two_sample, two_sample_test
from net.api import documents as intervals
from scipy import stats

ODD = [1.5, -0.25, 3.0, 0.5, -1.0, 0.75, 2.0, -0.125]


def naive(first, second=(0.0, 0.0, 0.0)):
    """Hall's statistic of a difference of means, from mean, variance and third cumulant of each."""
    t = (first[0] - second[0]) / math.sqrt(first[1] + second[1])
    a = (first[2] - second[2]) / (first[1] + second[1]) ** 1.5
    return t + a * t * t / 3 + a * a * t**3 / 27 + a / 6


def cumulants(values):
    n, mean = len(values), sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / (n * (n - 1))
    return mean, variance, sum((v - mean) ** 3 for v in values) / n / n**2


def samples(number, law=lambda rng, n: rng.exponential(1, n) - 0.6):
    """So many small samples with a long tail, where the correction changes p."""
    rng = np.random.default_rng(3)
    return [law(rng, 8).tolist() for _ in range(number)]


@pytest.mark.parametrize("times", [1.0, 1 + 9 / math.sqrt(8)])
@pytest.mark.parametrize("values", [ODD, [-one for one in ODD], *samples(4)])
def test_all_flips_by_hand(values, times):
    """With the guard, skewness towards low values counts 1 + 9 / sqrt(8) times, towards high values once."""

    def statistic(some):
        mean, variance, third = cumulants(some)
        return naive((mean, variance, third * times if third < 0 else third))

    flips = product((-1, 1), repeat=8)
    every = np.array([statistic([s * v for s, v in zip(signs, values, strict=True)]) for signs in flips])
    test = permutation.sign_flip_test(values, guarded=times > 1)
    assert test.exact
    assert test.observed == pytest.approx(statistic(values))
    assert np.sort(test.null) == pytest.approx(np.sort(every))
    assert test.p == pytest.approx(np.mean(every >= test.observed - 1e-9), abs=1e-12)
    assert times > 1 or test.p == sign_flip(values)


def test_random_flips_come_near_all_of_them(monkeypatch):
    values = [*ODD, 0.9, -0.4, 0.1]
    exact = sign_flip(values)
    monkeypatch.setattr(permutation, "EXACT", 0)
    assert sign_flip(values, flips=20_000) == pytest.approx(exact, abs=4 * math.sqrt(exact / 20_000))


@pytest.mark.parametrize("cut", [3, 5])
@pytest.mark.parametrize("values", [ODD, *samples(3)])
def test_all_permutations_by_hand(values, cut):
    suspect, heldout = values[:cut], values[cut:]
    every = []
    for rows in combinations(range(8), cut):
        rest = [values[i] for i in range(8) if i not in rows]
        every.append(naive(cumulants([values[i] for i in rows]), cumulants(rest)))
    observed = naive(cumulants(suspect), cumulants(heldout))
    exact = sum(one >= observed - 1e-9 for one in every) / len(every)
    found = two_sample(suspect, heldout, permutations=20_000)
    assert found == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 20_000))


def test_the_null_travels_with_the_result():
    both = two_sample_test(ODD, ODD[:3], permutations=400, seed=2)
    assert both.observed == pytest.approx(naive(cumulants(ODD), cumulants(ODD[:3])))
    assert (both.null.shape, both.p) == ((400,), two_sample(ODD, ODD[:3], permutations=400, seed=2))
    assert both.p == (1 + np.count_nonzero(both.null >= both.observed - 1e-9)) / 401


@pytest.mark.parametrize("values", [[0.0] * 6, [0.0] * 40, [2.0] * 4])
def test_values_that_do_not_vary_have_a_null_of_zeros(values):
    flips = [permutation.sign_flip_test(values, flips=70)] if not values[0] else []
    for test in (*flips, two_sample_test(values, values, permutations=70)):
        assert (test.p, test.observed, set(test.null)) == (1.0, 0.0, {0.0})


@pytest.mark.parametrize("level", [0.05, 0.01, 0.3])
def test_the_critical_value_divides_what_rejects_from_what_does_not(level):
    rng = np.random.default_rng(7)
    for number, documents in ((1, 6), (199, 40), (500, 40)):
        for _ in range(40):
            test = permutation.sign_flip_test(rng.normal(0.4, 1, documents), flips=number)
            assert (test.observed >= test.critical(level)) == (test.p <= level)
    drawn, exact = (
        permutation.PermutationTest(1.0, 0.0, np.array([3.0, 1.0, 2.0, 2.0, 0.0]), one)
        for one in (False, True)
    )
    assert 3.0 < drawn.critical(0.2) == pytest.approx(3.0)
    assert [exact.critical(one) for one in (0.4, 0.2)] == pytest.approx([2.0, 2.0])
    assert exact.critical(0.19) == drawn.critical(0.1) == math.inf


@pytest.mark.parametrize("documents", range(1, 15))
def test_the_smallest_p_there_is(documents):
    values = [1.0] * documents
    least = max(0.5**documents, 1 / 10_001)
    assert sign_flip(values) == pytest.approx(least, rel=3 if documents > permutation.EXACT else 1e-12)
    assert (sign_flip(values) > 0.05) is (documents < 5)
    assert sign_flip([-1.0] * documents) == 1.0


@pytest.mark.parametrize("seed", range(8))
def test_the_same_sum_in_another_order_is_a_tie(seed):
    """0.1 + 0.2 is not 0.3, but in whole numbers of tenths it is."""
    tenths = np.random.default_rng(seed).integers(-6, 10, 9)
    every = np.array([naive(cumulants(np.array(signs) * tenths)) for signs in product((-1, 1), repeat=9)])
    exact = np.mean(every >= naive(cumulants(tenths)) - 1e-9)
    assert sign_flip(tenths / 10) == pytest.approx(exact, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.sampled_from([1e-150, 1e-3, 2.0, 1e150]),
    st.randoms(),
)
def test_neither_order_nor_unit_matters(values, unit, shuffler):
    values = [0.0 if abs(one) < 1e-100 else one for one in values]
    moved = [unit * one for one in values]
    p = sign_flip(values, flips=200)
    assert 0 < p <= 1
    assert sign_flip(moved, flips=200) == pytest.approx(p, abs=0.011)
    shuffled = shuffler.sample(values, len(values))
    assert sign_flip(shuffled, flips=200) == p
    others = [1.0, -2.0, 0.5]
    assert two_sample(shuffled, others[::-1], permutations=50) == two_sample(values, others, permutations=50)


def test_seeds_and_chunks(monkeypatch):
    rng = np.random.default_rng(0)
    values, others = rng.normal(0.2, 1, 60), rng.normal(0, 1, 40)
    assert sign_flip(values, seed=3) == sign_flip(values, seed=3)
    before = sign_flip(values), two_sample(values, others, permutations=2000)
    monkeypatch.setattr(permutation, "CELLS", 64)
    after = sign_flip(values, flips=2000), two_sample(values, others, permutations=2000)
    assert after == pytest.approx(before, abs=0.04)
    assert sign_flip(values + 1, flips=77) == 1 / 78
    assert two_sample(values + 9, others, permutations=77) == 1 / 78
    assert two_sample(others, values + 9, permutations=77) == 1.0


@pytest.mark.parametrize("a", [-2.0, -0.3, 0.0, 0.3, 2.0])
def test_the_correction_keeps_the_order(a):
    t = np.linspace(-6, 6, 400)
    found = permutation._skew_corrected(t, np.ones(400), np.full(400, a))
    assert (np.diff(found) > -1e-12).all()
    assert permutation._skew_corrected(np.array([1.5]), np.ones(1), np.array([a]))[0] == pytest.approx(
        1.5 + a * 0.75 + a * a * 0.125 + a / 6
    )


def test_intervals():
    rng = np.random.default_rng(2)
    first, second = rng.normal(1, 2, 17), rng.normal(0, 1, 9)
    one = intervals.mean_interval(first)
    assert (one.low, one.high) == pytest.approx(stats.t.interval(0.95, 16, first.mean(), stats.sem(first)))
    assert one.value == pytest.approx(first.mean())
    both = intervals.difference_interval(first, second)
    welch = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert (both.low, both.high) == pytest.approx((welch.low, welch.high))
    still = intervals.difference_interval([1.0, 1.0], [0.5, 0.5])
    assert (still.low, still.value, still.high) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 60), (10, 10), (500, 10_000)])
def test_the_interval_of_a_share(hits, trials):
    found = intervals.share_interval(hits, trials)
    expected = stats.binomtest(hits, trials).proportion_ci(0.95, method="exact")
    assert (found.value, found.low, found.high) == pytest.approx((hits / trials, expected.low, expected.high))


def test_standardised():
    assert intervals.standardised(ODD) == pytest.approx(np.mean(ODD) / np.std(ODD, ddof=1))
    deviation = math.sqrt((np.var(ODD, ddof=1) + np.var([1.0, 2.0], ddof=1)) / 2)
    assert intervals.standardised(ODD, [1.0, 2.0]) == pytest.approx((np.mean(ODD) - 1.5) / deviation)
    assert intervals.standardised([0.1] * 3) is None
    assert intervals.standardised([0.1]) is None
    assert intervals.standardised(ODD, [0.1]) is None


def test_means_by_document():
    names, means = by_document([1.0, 2.0, 4.0, 6.0], ["b", "a", "b\0", "b"])
    assert names == ("a", "b", "b\0")
    assert means.tolist() == [2.0, 3.5, 4.0]


# Score intervals against figures of Newcombe (1998).


def hits(number, trials):
    return np.arange(trials) < number


@pytest.mark.parametrize(
    ("number", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_score_intervals(number, trials, low, high):
    found = intervals.score_interval(hits(number, trials))
    assert (found.value, found.low, found.high) == pytest.approx((number / trials, low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_differences(first, second, low, high):
    found = intervals.score_difference(hits(*first), hits(*second))
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
