"""Strings that look random and are not: each kind is refused, or told by a score that sees no model. Fair ones pass."""

import hashlib
import uuid
from random import Random

import numpy as np
import pytest
import scipy.stats

from pretrace.plugins.marks.canaries import (
    CanarySettings,
    blind_check,
    check_canaries,
    few_check,
    known_check,
    natural_canaries,
    random_strings,
    went_on,
)
from pretrace.scoring.plan import Models
from pretrace.statistics.permutation import randomisation_test
from pretrace.testing import Memory
from pretrace.types import Corpus, Text

HEX = "0123456789abcdef"


def found_in(texts):
    corpus = Corpus("c", tuple(Text(f"t{i}", text) for i, text in enumerate(texts)))
    return random_strings(corpus, context=200, seed=3)


def digits(rng, number):
    return rng.bytes(number).hex()[:number]


def spelled(_, rng):
    words = " ".join(rng.choice(["apple", "bridge", "copper", "garden", "island"], 8))
    return f"data {words.encode()[:20].hex()}"


ELSEWHERE = "with a beginning or end that stands elsewhere in the text"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda one, _: f"* fix ([{one[:7]}](https://github.com/a/b/commit/{one[:40]}))", ELSEWHERE),
        (lambda one, _: f"image {one[-12:].upper()} is sha256:{one}", ELSEWHERE),
        # made from a time, or from a name
        (lambda one, _: f"id {one[:12]}1{one[12:15]}9a3b{one[15:27]}", "UUIDs of other versions"),
        (lambda one, _: f"id {uuid.uuid5(uuid.NAMESPACE_DNS, one).hex}", "UUIDs of other versions"),
        # the times differ, the machine is the same
        (lambda one, _: f"id {one[:20]}0242ac120002", "sharing their beginning or end with another string"),
        (
            lambda one, rng: f"block {'0' * int(rng.integers(6, 12))}{one}"[:70],
            "with a run at the beginning or end that a random string hardly has",
        ),
        (spelled, "that spell a text"),
    ],
)
def test_strings_that_can_be_guessed_are_left_out(make, why):
    rng = np.random.default_rng(1)
    found, left = found_in([make(digits(rng, 64), rng) for _ in range(20)])
    assert len(found) <= 1
    assert left[why] >= 10


def test_known_strings_are_left_out():
    inputs = [b"", b"\n", b"hello", b"7", b"a", b"Hello, World!"]
    known = [hashlib.md5(one).hexdigest() for one in inputs]
    known += [hashlib.sha1(b"blob 0\0").hexdigest(), hashlib.sha256(b"password").hexdigest()]
    known += [hashlib.md5(b"zanzibar-42 is here").hexdigest()]
    found, left = found_in([f"file {one}" for one in known[:-1]] + [f"zanzibar-42 is here\n{known[-1]}"])
    assert not found
    assert left == {"hashes of words": 8, "UUIDs of other versions": 1}  # one of them looks like a UUID
    found, left = found_in(["id 9B1DEB4D-3B7D-4BAD-9BDD-2B0D7B3DCB6D, F47AC10B-58CC-4372-A567-0E02B2C3D479"])
    assert (found, left) == ((), {"known examples": 2})


def test_one_string_in_two_spellings_counts_once_and_not_after_itself():
    one = uuid.UUID(int=0x1E7B63A0C95D4F288C3D52F6B1E09A77)
    found, left = found_in([f"{one} and {str(one).upper()} and {one.hex}"])
    assert [some.string for some in found] == [str(one)]
    assert left["found again"] == 2
    # as a part of a longer name it is no string of its own, and gives away the one that follows
    found, left = found_in([f"key{one.hex}x is now {one}"])
    assert (found, left) == ((), {"with a beginning or end that stands elsewhere in the text": 1})


def test_alternatives_pass_what_the_strings_pass():
    rng = np.random.default_rng(2)
    found, _ = found_in([f"md5 {digits(rng, 32)}" for _ in range(60)])
    others = [other for one in found for other in one.alternatives]
    free = [o for one in found for o in one.alternatives if 12 in one.form.varies]
    assert len(free) > 500
    looks = [o[12] in "1235678" and o[16] in "89ab" for o in free]
    assert not any(looks)  # where nothing is said of versions, 11% of random digits would
    heads = [one.string[:4] for one in found]
    assert len(set(heads)) == len(heads)
    assert not any(len(other) - len(other.lstrip(other[0])) > 4 for other in others)


def luhn(rng):
    first = digits(rng, 39)
    numbers = [int(c) for c in first if c.isdigit()]
    total = sum(d if i % 2 else (2 * d - 9 if d > 4 else 2 * d) for i, d in enumerate(reversed(numbers)))
    return f"card {first}{-total % 10}"


def positive(rng):
    return f"id {HEX[int(rng.integers(8))]}{digits(rng, 39)}"


def words(rng):
    said = "".join(rng.choice(["c0de", "beef", "cafe", "5afe", "f00d", "ace5", "d1ce"], 13))
    return f"key {digits(rng, 6)}{said}{digits(rng, 6)}"


@pytest.mark.parametrize(
    ("make", "by"),
    [
        (luhn, "check digits"),
        (positive, "the same characters in one place"),
        (words, "the same sequences of characters"),
    ],
)
def test_what_no_rule_refuses_is_told_without_a_model(make, by):
    rng = np.random.default_rng(4)
    found, _ = found_in([make(rng) for _ in range(30)])
    assert len(found) >= 5
    check = blind_check(found, 0)
    assert check.status == "failed"
    assert check.figures["p"][by] <= check.figures["level"]


NEAR = "the distance from a string that stands before it"


def test_a_sorted_list_is_told_by_its_neighbours():
    rng = np.random.default_rng(5)
    rows = sorted(digits(rng, 64) for _ in range(30))
    found, _ = found_in(["\n".join(f"{one}  file{i}.tar" for i, one in enumerate(rows))])
    assert len(found) > 20
    assert blind_check(found, 0).figures["p"][NEAR] < 0.01
    mixed = [rows[i] for i in rng.permutation(30)]
    fair, _ = found_in(["\n".join(f"{one}  file{i}.tar" for i, one in enumerate(mixed))])
    assert blind_check(fair, 0).figures["p"][NEAR] > 0.05


def test_fair_strings_are_seldom_told():
    failed = 0
    for run in range(30):
        rng = np.random.default_rng([6, run])
        found, _ = found_in([f"id {digits(rng, 40)}" for _ in range(12)])
        failed += blind_check(found, run).status == "failed"
    assert failed <= 8  # 10% of 30 are 3; more than 8 come about once in 300


def test_hashes_of_words_that_a_tokenizer_holds_are_told():
    rng = np.random.default_rng(8)
    made = [digits(rng, 32) for _ in range(6)] + [hashlib.md5(b"orchard").hexdigest()]
    found, _ = found_in([f"id {one}" for one in made])
    check = known_check(found, {"orchard", "valley"})
    assert check.status == "failed"
    assert "1 strings are among them ('t6@3')" in check.words
    assert known_check(found, {"valley"}).status == "passed"
    assert known_check(found, ()).status == "not run"


def test_one_string_that_everybody_knows_carries_no_result():
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(20, 20))
    rows[0, 0] += 60
    one = few_check(tuple(rows), 0.05, draws=1000, seed=0)
    assert one.status == "failed"
    rows = rng.normal(size=(20, 20))
    rows[:, 0] += 1.5
    assert few_check(tuple(rows), 0.05, draws=1000, seed=0).status == "passed"


# Random strings asked of models that give text alone: the rest of a string after its first half.


SETTINGS = CanarySettings(cache=False)


def corpus(seed=1, number=12):
    random = Random(seed)
    made = []
    for i in range(number):
        some = (f"{random.getrandbits(160):040x}", str(uuid.UUID(int=random.getrandbits(128), version=4)))
        said = some[i % 2]
        made.append(Text(f"t{i}", f"Build {i} of the tool has the sum {said} as it was sent."))
    return Corpus("sums", tuple(made))


def test_the_others_begin_as_the_string_does_and_go_on_otherwise():
    found = natural_canaries(corpus(), SETTINGS, text=True)
    assert len(found.strings) == 12
    assert len({one.form.kind for one in found.strings}) == 2
    for one, prompt in zip(found.strings, found.prompts, strict=True):
        assert all(some.startswith(one.begun) for some in (one.string, *one.alternatives))
        assert len({some[len(one.begun) :] for some in one.alternatives}) == 19
        assert prompt.endswith(one.begun)
        assert one.string not in prompt
        assert 0.3 < len(one.begun) / len(one.string) < 0.7
    assert found.strings[0].string == natural_canaries(corpus(), SETTINGS).strings[0].string


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        ("cdef", 1.0), ("cd-ef and", 1.0), ("cdxx", 0.5), ("", 0.0), ("abcdef", 1.0), ("`CDEF`", 1.0),
        ("xcdef", 0.0),
    ],
)  # fmt: skip
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
        p.append(randomisation_test(rows, draws=300, seed=seed).p)
    assert int((np.array(p) <= 0.05).sum()) <= scipy.stats.binom.ppf(0.995, 150, 0.05)
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.005


def test_strings_written_to_the_end_are_counted():
    texts, second = corpus(), Memory(name="second")
    knowing = Models(Memory([one.text for one in texts.texts]), placebos=(second,))
    assert check_canaries(texts, knowing, SETTINGS, text=True).figures["strings written to the end"] == 12
