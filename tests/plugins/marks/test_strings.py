"""Random strings that stand in texts: which are found and how they are drawn anew; each kind that looks random and is
not is refused, or told by a score that sees no model; fair ones pass, and the test on them is exact."""

import base64
import hashlib
import re
import uuid
from random import Random

import numpy as np
import pytest
from net.api import Corpus, Memory, Models, Text, canaries, randomisation_test
from scipy.stats import binom, kstest

SHA = hashlib.sha256(b"pretrace a").hexdigest()
GIT = hashlib.sha1(b"pretrace b").hexdigest()
MD5 = hashlib.md5(b"pretrace c").hexdigest()
UUID4, UUID1 = "6f1c2d3e-4a5b-4c6d-9e8f-0a1b2c3d4e5f", "6f1c2d3e-4a5b-1c6d-9e8f-0a1b2c3d4e5f"
BARE4 = "1e7b63a0c95d4f288c3d52f6b1e09a77"


def found_in(*texts, alternatives=19, context=200, seed=3):
    some = [Text(f"t{i}", text) for i, text in enumerate(texts)]
    return canaries.random_strings(some, alternatives=alternatives, context=context, seed=seed)


def digits(rng, number):
    return rng.bytes(number).hex()[:number]


def test_hashes_and_uuids_are_found_once_and_what_is_no_random_string_is_counted():
    found, left = found_in(
        f"The commit {GIT} and the file {SHA}.",
        f"Again {GIT}; then {MD5.upper()} and {UUID4} and {UUID4.upper()} and {UUID4.replace('-', '')}.",
        f"Time-based {UUID1}, zeros {'0' * 31}a, number {'1234567890' * 4}, part {SHA}x, short {SHA[:20]}.",
        context=20,
    )
    assert [one.string for one in found] == [GIT, SHA, MD5.upper(), UUID4]
    assert found[0].id == "t0@11"
    assert [one.kind for one in found] == [
        "40 hexadecimal digits", "64 hexadecimal digits", "32 hexadecimal digits", "UUID of version 4",
    ]  # fmt: skip
    assert found[1].context == f" {GIT} and the file "[-20:]
    assert left == {
        "found again": 3, "UUIDs of other versions": 1, "strings of fewer than 6 different characters": 1,
    }  # fmt: skip
    # as a part of a longer name it is no string of its own, and gives away the one that follows
    assert found_in(f"key{BARE4}x is now {uuid.UUID(BARE4)}") == ((), {ELSEWHERE: 1})


def test_alternatives_have_the_format_keep_what_is_not_random_and_pass_what_the_strings_pass():
    found, _ = found_in(f"{UUID4} {BARE4} {MD5.upper()} 0x{SHA}", alternatives=300)
    dashed, plain, upper, prefixed = found
    shape = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-9[0-9a-f]{3}-[0-9a-f]{12}")
    assert all(shape.fullmatch(one) for one in dashed.alternatives)
    assert all((one[12], one[16]) == ("4", "8") for one in plain.alternatives)
    assert all(re.fullmatch("[0-9A-F]{32}", one) for one in upper.alternatives)
    assert {one[12] for one in upper.alternatives} == set("0123456789ABCDEF")
    assert prefixed.context.endswith(" 0x")
    for one in found:
        assert len({one.string, *one.alternatives}) == 301
        made = [c for other in one.alternatives for c in other if c != "-"]
        assert abs(np.mean([c.isdigit() for c in made]) - 10 / 16) < 0.04
    free = found_in(MD5, alternatives=600)[0][0].alternatives
    looks = [o[12] in "1235678" and o[16] in "89ab" for o in free]
    assert (len(free), any(looks)) == (600, False)  # of random digits 11% would, where no version is named
    assert not any(len(other) - len(other.lstrip(other[0])) > 4 for other in free)


def spelled(_, rng):
    words = " ".join(rng.choice(["apple", "bridge", "copper", "garden", "island"], 8))
    return f"data {words.encode()[:20].hex()}"


ELSEWHERE = "with a beginning or end that stands elsewhere in the text"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda one, _: f"* fix ([{one[:7]}](https://github.com/a/b/commit/{one[:40]}))", ELSEWHERE),
        (lambda one, _: f"image {one[-12:].upper()} is sha256:{one}", ELSEWHERE),
        # the same string is written in another way in the text: a model copies it
        (lambda one, _: f"Fingerprint {bytes.fromhex(one).hex(':').upper()}, for scripts {one}", ELSEWHERE),
        (lambda one, _: f"{{{', '.join(f'0x{b:02X}' for b in bytes.fromhex(one))}}} // {one}", ELSEWHERE),
        (lambda one, _: f"sha256-{base64.b64encode(bytes.fromhex(one)).decode()} {one}", ELSEWHERE),
        (lambda one, _: f"little endian {bytes.fromhex(one)[::-1].hex(' ')}, big endian {one}", ELSEWHERE),
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
    found, left = found_in(*(make(digits(rng, 64), rng) for _ in range(20)))
    assert len(found) <= 1
    assert left[why] >= 10


def test_known_strings_are_left_out():
    inputs = [b"", b"\n", b"hello", b"7", b"a", b"Hello, World!"]
    known = [hashlib.md5(one).hexdigest() for one in inputs]
    known += [hashlib.sha1(b"blob 0\0").hexdigest(), hashlib.sha256(b"password").hexdigest()]
    own = f"zanzibar-42 is here\n{hashlib.md5(b'zanzibar-42 is here').hexdigest()}"
    # one of them looks like a UUID
    left = {"hashes of words": 8, "UUIDs of other versions": 1}
    assert found_in(*(f"file {one}" for one in known), own) == ((), left)
    found, left = found_in("id 9B1DEB4D-3B7D-4BAD-9BDD-2B0D7B3DCB6D, F47AC10B-58CC-4372-A567-0E02B2C3D479")
    assert (found, left) == ((), {"known examples": 2})


def luhn(rng):
    first = digits(rng, 39)
    numbers = [int(c) for c in first if c.isdigit()]
    total = sum(d if i % 2 else (2 * d - 9 if d > 4 else 2 * d) for i, d in enumerate(reversed(numbers)))
    return f"card {first}{-total % 10}"


def positive(rng):
    return f"id {int(rng.integers(8))}{digits(rng, 39)}"


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
    found, _ = found_in(*(make(rng) for _ in range(30)))
    assert len(found) >= 5
    check = canaries.blind_check(found, 0)
    assert check.status == "failed"
    assert check.figures["p"][by] <= check.figures["level"]


def test_a_sorted_list_is_told_by_its_neighbours():
    rng = np.random.default_rng(5)
    rows = sorted(digits(rng, 64) for _ in range(30))
    for order, told in ((range(30), True), (rng.permutation(30), False)):
        found, _ = found_in("\n".join(f"{rows[i]}  file{i}.tar" for i in order))
        assert len(found) > 20
        p = canaries.blind_check(found, 0).figures["p"]["the distance from a string that stands before it"]
        assert p < 0.01 if told else p > 0.05


def test_fair_strings_are_seldom_told():
    failed = 0
    for run in range(30):
        rng = np.random.default_rng([6, run])
        found, _ = found_in(*(f"id {digits(rng, 40)}" for _ in range(12)))
        failed += canaries.blind_check(found, run).status == "failed"
    assert failed <= 8  # 10% of 30 are 3; more than 8 come about once in 300


def test_hashes_of_words_that_a_tokenizer_holds_are_told():
    rng = np.random.default_rng(8)
    found, _ = found_in(
        *(f"id {digits(rng, 32)}" for _ in range(6)), f"id {hashlib.md5(b'orchard').hexdigest()}"
    )
    check = canaries.known_check(found, {"orchard", "valley"})
    assert check.status == "failed"
    assert "1 strings are among them ('t6@3')" in check.words
    assert canaries.known_check(found, {"valley"}).status == "passed"
    assert canaries.known_check(found, ()).status == "not run"


def test_one_string_that_everybody_knows_carries_no_result():
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(20, 20))
    rows[0, 0] += 60
    assert canaries.few_check(tuple(rows), 0.05, draws=1000, seed=0).status == "failed"
    rows = rng.normal(size=(20, 20))
    rows[:, 0] += 1.5
    assert canaries.few_check(tuple(rows), 0.05, draws=1000, seed=0).status == "passed"


SETTINGS = canaries.CanarySettings(draws=1000, cache=False)


def sums(seed=1, number=12):
    random, made = Random(seed), []
    for i in range(number):
        both = f"{random.getrandbits(160):040x}", str(uuid.UUID(int=random.getrandbits(128), version=4))
        said = both[i % 2]
        made.append(Text(f"t{i}", f"Build {i} of the tool has the sum {said} as it was sent."))
    return Corpus("sums", tuple(made))


def null_of_likings(rng, seed):
    """Texts with fresh hashes each, and a model that likes some digits far better than others, whatever the hash."""
    texts = (f"id {rng.bytes(16).hex()} {uuid.UUID(bytes=rng.bytes(16), version=4)}" for _ in range(3))
    for one in found_in(*texts, alternatives=4, seed=seed)[0]:
        yield np.array([LIKINGS[list(some.encode())] @ np.arange(len(some)) for some in one.every])


LIKINGS = np.random.default_rng(2).standard_cauchy(256)


def null_of_answers(rng, seed):
    """What is written goes on as a string does by chance alone, from its first half."""
    random = Random(1000 + seed)
    for one in canaries.natural_canaries(sums(seed, 8), SETTINGS, text=True)[0]:
        answer = "".join(random.choices("0123456789abcdef", k=20))
        row = np.array([canaries._went_on(answer, one.begun, some) for some in one.every])
        yield row + 1e-9 * rng.random(len(row))


@pytest.mark.parametrize(("null", "number"), [(null_of_likings, 300), (null_of_answers, 150)])
def test_nulls_reject_as_often_as_the_level_says(null, number):
    rng = np.random.default_rng(3)
    p = np.array([randomisation_test([*null(rng, i)], draws=199, seed=i).p for i in range(number)])
    low, high = binom.ppf([0.005, 0.995], number, 0.05)
    assert low <= np.count_nonzero(p <= 0.05) <= high
    assert kstest(p - rng.random(number) / 200, "uniform").pvalue > 0.005


def test_the_others_begin_as_the_string_does_and_go_on_otherwise():
    found, _ = canaries.natural_canaries(sums(), SETTINGS, text=True)
    whole, _ = canaries.natural_canaries(sums(), SETTINGS)
    assert [one.string for one in found] == [one.string for one in whole]
    assert len({one.kind for one in found}) == 2
    for one in found:
        assert all(some.startswith(one.begun) for some in one.every)
        assert len({some[len(one.begun) :] for some in one.alternatives}) == 19
        assert one.prompt.endswith(one.begun)
        assert one.string not in one.prompt
        assert 0.45 < len(one.begun) / len(one.string) < 0.6
    second = Memory(name="second")
    knowing = Models(Memory([one.text for one in sums().texts]), placebos=(second,))
    figures = canaries.check_canaries(sums(), knowing, SETTINGS, text=True).figures
    assert figures["strings written to the end"] == 12


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        ("cdef", 1.0), ("cd-ef and", 1.0), ("cdxx", 0.5), ("", 0.0), ("abcdef", 1.0), ("`CDEF`", 1.0),
        ("xcdef", 0.0),
    ],
)  # fmt: skip
def test_how_much_of_the_rest_was_written(answer, share):
    assert canaries._went_on(answer, "ab", "abcdef") == share
