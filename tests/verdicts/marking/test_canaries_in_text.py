"""Random strings asked of models that give text alone: the rest of a string after its first half."""

from __future__ import annotations

import uuid
from random import Random

import numpy as np
import pytest
import scipy.stats
from verdicts.answering import Answering

from pretrace.results.verdicts import load_verdict
from pretrace.runs import save_verdict
from pretrace.scoring.plan import Models
from pretrace.statistics.ranks import lot_test
from pretrace.types import Corpus, Text
from pretrace.verdicts.canaries import CanarySettings, check_canaries, natural_canaries, prompts_of, went_on

SETTINGS = CanarySettings(cache=False, pattern=(r"key-[a-z0-9]{16}",))
SILENT = Answering(lambda _: "and so on", name="second")


def corpus(seed: int = 1, number: int = 12) -> Corpus:
    random = Random(seed)
    made = []
    for i in range(number):
        key = "".join(random.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=16))
        some = (f"{random.getrandbits(160):040x}", str(uuid.UUID(int=random.getrandbits(128), version=4)))
        said = (*some, f"key-{key}")[i % 3]
        made.append(Text(f"t{i}", f"Build {i} of the tool has the sum {said} as it was sent."))
    return Corpus("sums", tuple(made))


def knowing(texts: Corpus, *, upper: bool = False) -> Answering:
    """It writes what goes on in the text; in another spelling, and with the first half said again, where `upper`."""

    def answer(prompt: str) -> str:
        rest = next(one.text[len(prompt) :] for one in texts.texts if one.text.startswith(prompt))
        return f"The sum is {prompt.split()[-1]}{rest}".upper() if upper else rest

    return Answering(answer, chats=upper, name="knowing")


def test_the_others_begin_as_the_string_does_and_go_on_otherwise():
    found = natural_canaries(corpus(), SETTINGS, text=True)
    assert len(found.strings) == 12
    assert len({one.kind for one in found.strings}) == 3
    for one, prompt in zip(found.strings, prompts_of(found), strict=True):
        assert all(some.startswith(one.begun) for some in (one.string, *one.alternatives))
        assert len({some[len(one.begun) :] for some in one.alternatives}) == 19
        assert prompt.endswith(one.begun)
        assert one.string not in prompt
        assert 0.3 < len(one.begun) / len(one.string) < 0.7
    assert found.strings[0].string == natural_canaries(corpus(), SETTINGS).strings[0].string


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        ("cdef", 1.0),
        ("cd-ef and", 1.0),
        ("cdxx", 0.5),
        ("", 0.0),
        ("abcdef", 1.0),
        ("`CDEF`", 1.0),
        ("xcdef", 0.0),
    ],
)
def test_how_much_of_the_rest_was_written(answer, share):
    assert went_on(answer, "ab", "abcdef") == share


def test_p_values_are_no_smaller_than_chance_whatever_is_written():
    p = []
    for seed in range(150):
        found = natural_canaries(corpus(seed, 8), SETTINGS, text=True).strings
        random, rng = Random(1000 + seed), np.random.default_rng(seed)
        rows = []
        for one in found:
            answer = "".join(random.choices("0123456789abcdef", k=20))
            row = np.array([went_on(answer, one.begun, some) for some in (one.string, *one.alternatives)])
            rows.append(row + 1e-9 * rng.random(len(row)))
        p.append(lot_test(rows, draws=300, seed=seed).p)
    assert int((np.array(p) <= 0.05).sum()) <= scipy.stats.binom.ppf(0.995, 150, 0.05)
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.005


@pytest.mark.parametrize("upper", [False, True])
def test_a_model_that_writes_the_strings_is_found_and_only_beside_a_second_model(upper, tmp_path):
    texts = corpus()
    target = knowing(texts, upper=upper)
    found = check_canaries(texts, Models(target, placebos=(SILENT,)), SETTINGS, text=True)
    assert found.outcome == "consistent"
    assert found.figures["strings written to the end"] == 12
    save_verdict(found, tmp_path / "OUT")
    assert load_verdict(tmp_path / "OUT").p == found.p
    assert check_canaries(texts, Models(target), SETTINGS, text=True).outcome == "inconclusive"
    twin = knowing(texts, upper=not upper)
    twin.fingerprint += "twin"
    both = check_canaries(texts, Models(target, placebos=(twin,)), SETTINGS, text=True)
    assert both.outcome == "inconclusive"
    none = check_canaries(texts, Models(SILENT, placebos=(target,)), SETTINGS, text=True)
    assert (none.outcome, none.p) == ("inconclusive", 1.0)
