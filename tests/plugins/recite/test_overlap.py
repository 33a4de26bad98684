"""Common runs of words and edit distances, against plain loops."""

import numpy as np
import pytest

from pretrace.plugins.recite import _common_runs, _edit_distance, _share_covered
from pretrace.statistics.words import RUN, Worded, in_runs


def made(rng, length):
    return " ".join(rng.choice(["a", "b", "Ünd", "d,", "e."], length))


@pytest.mark.parametrize("seed", range(5))
def test_against_plain_loops(seed):
    rng = np.random.default_rng(seed)
    one, other = made(rng, int(rng.integers(0, 40))), made(rng, int(rng.integers(0, 200)))
    first, second = Worded.of(one).words, Worded.of(other).words
    inside = [False] * len(first)
    for i in range(len(first)):
        for k in range(len(second)):
            n = 0
            while i + n < len(first) and k + n < len(second) and first[i + n] == second[k + n]:
                n += 1
            if n >= RUN:
                inside[i : i + n] = [True] * n
    assert in_runs(first, Worded.of(other).grams, RUN).tolist() == inside
    runs = [
        [*map(int, run.split("-"))] for run in _common_runs(Worded.of(one), Worded.of(other).grams).split()
    ]
    assert [at for run in runs for at in run] == sorted({at for run in runs for at in run})
    assert sum(len(Worded.of(one[start:end]).words) for start, end in runs) == sum(inside)
    table = [[max(i, k) for k in range(len(other) + 1)] for i in range(len(one) + 1)]
    for i in range(1, len(one) + 1):
        for k in range(1, len(other) + 1):
            change = table[i - 1][k - 1] + (one[i - 1] != other[k - 1])
            table[i][k] = min(table[i - 1][k] + 1, table[i][k - 1] + 1, change)
    assert _edit_distance(one, other) == table[-1][-1]


def test_signs_of_chinese_are_words_of_their_own_and_nothing_has_nothing_in_common():
    text = Worded.of("春眠不觉晓,处处闻啼鸟 spring")
    assert len(text.words) == 11
    assert _share_covered(text, Worded.of("他说:春眠不觉晓!").grams) == pytest.approx(5 / 11)
    assert _share_covered(Worded.of(""), text.grams) == 0
    assert _edit_distance("", "abc") == 3
