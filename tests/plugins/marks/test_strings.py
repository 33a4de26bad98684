"""Random strings that stand in texts: which are found, how they are drawn anew, and that the test on them is exact."""

import hashlib
import re
import uuid

import numpy as np
import pytest
from net.api import (
    CanarySettings,
    Corpus,
    Memory,
    Models,
    Text,
    TextsError,
    check_canaries,
    natural_canaries,
    random_strings,
    randomisation_test,
)
from scipy.stats import binom, kstest

SHA = hashlib.sha256(b"pretrace a").hexdigest()
GIT = hashlib.sha1(b"pretrace b").hexdigest()
MD5 = hashlib.md5(b"pretrace c").hexdigest()
UUID4, UUID1 = "6f1c2d3e-4a5b-4c6d-9e8f-0a1b2c3d4e5f", "6f1c2d3e-4a5b-1c6d-9e8f-0a1b2c3d4e5f"


def found_in(*texts, alternatives=5, context=20, seed=0):
    corpus = Corpus("c", tuple(Text(f"t{i}", text) for i, text in enumerate(texts)))
    return random_strings(corpus, alternatives=alternatives, context=context, seed=seed)


def test_hashes_and_uuids_are_found_once_and_what_is_no_random_string_is_counted():
    found, left = found_in(
        f"The commit {GIT} and the file {SHA}.",
        f"Again {GIT}; then {MD5.upper()} and {UUID4}.",
        f"Time-based {UUID1}, zeros {'0' * 31}a, number {'1234567890' * 4}, part {SHA}x, short {SHA[:20]}.",
    )
    assert [one.string for one in found] == [GIT, SHA, MD5.upper(), UUID4]
    assert found[0].id == "t0@11"
    assert [one.form.kind for one in found] == [
        "40 hexadecimal digits", "64 hexadecimal digits", "32 hexadecimal digits", "UUID of version 4",
    ]  # fmt: skip
    assert found[1].context == f" {GIT} and the file "[-20:]
    assert left == {
        "found again": 1, "UUIDs of other versions": 1, "strings of fewer than 6 different characters": 1,
    }  # fmt: skip


def test_alternatives_have_the_format_and_keep_what_is_not_random():
    bare = "1e7b63a0c95d4f288c3d52f6b1e09a77"  # of version 4
    found, _ = found_in(f"{UUID4} {bare} {MD5.upper()} 0x{SHA}", alternatives=300)
    dashed, plain, upper, prefixed = found
    shape = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-9[0-9a-f]{3}-[0-9a-f]{12}")
    assert all(shape.fullmatch(one) for one in dashed.alternatives)
    assert all((one[12], one[16]) == ("4", "8") for one in plain.alternatives)
    assert all(re.fullmatch("[0-9A-F]{32}", one) for one in upper.alternatives)
    assert {one[12] for one in upper.alternatives} == set("0123456789ABCDEF")
    assert prefixed.context.endswith(" 0x")
    for one in found:
        assert len(set(one.alternatives)) == 300
        assert one.string not in one.alternatives
        digits = [c for other in one.alternatives for c in other if c != "-"]
        assert abs(np.mean([c.isdigit() for c in digits]) - 10 / 16) < 0.04


def test_three_hundred_nulls_reject_as_often_as_the_level_says():
    """Texts with fresh hashes each, and a model that likes some digits far better than others, whatever the hash."""
    rng = np.random.default_rng(2)
    weights = rng.standard_cauchy(256)
    p = np.array([_null(rng, weights, i) for i in range(300)])
    low, high = binom.ppf([0.005, 0.995], 300, 0.05)
    assert low <= np.count_nonzero(p <= 0.05) <= high
    assert kstest(p - rng.random(300) / 200, "uniform").pvalue > 0.01


def _null(rng, weights, run):
    texts = [f"id {rng.bytes(16).hex()} {uuid.UUID(bytes=rng.bytes(16), version=4)}" for _ in range(3)]
    found, _ = found_in(*texts, alternatives=4, seed=run)
    rows = [
        [weights[list(one.encode())] @ np.arange(len(one)) for one in (some.string, *some.alternatives)]
        for some in found
    ]
    return randomisation_test(rows, draws=199, seed=run).p


def test_a_model_that_knows_the_strings_in_their_place_is_found():
    texts = tuple(
        Text(f"t{i}", f"File {i}: {hashlib.sha256(bytes([i, i, 7])).hexdigest()} ends.") for i in range(12)
    )
    corpus = Corpus("files", texts)
    settings = CanarySettings(draws=1000, cache=False)
    models = Models(Memory([text.text for text in texts]), placebos=(Memory(name="p"),))
    found = check_canaries(corpus, models, settings)
    assert (found.outcome, found.p, found.units) == ("consistent", 1 / 1001, 12)
    assert found.effect.value == pytest.approx(len("File 1: ") + 64 - 1, rel=0.2)  # 1 a character
    assert "12 of 64 hexadecimal digits" in " ".join(found.notes)


def test_fewer_than_five_strings_are_no_test():
    made = [uuid.UUID(int=i * 7**40 % 2**128, version=4) for i in range(1, 5)]
    corpus = Corpus("few", tuple(Text(f"t{one}", f"It is {one}.") for one in made))
    with pytest.raises(TextsError, match=r"few holds 4 strings that may be random .* takes 5 or more"):
        natural_canaries(corpus, CanarySettings())
