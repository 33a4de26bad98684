"""Strings that look random, and models that cannot know them: how often `pretrace mark canaries` rejects and accuses.

    python -m benchmarks.designs.marking --runs 2000

Simulated: fresh strings of every kind in their texts, and a reader that has seen none of them but knows all that can be
known: the law of the characters in this kind (from 400 other strings), what of a string stands in the context before
it, whether it is near a string that stands before it, and the hashes of common words. Its value of a string is that,
with noise and a taste for digits.

The second model is not asked, as if it knew nothing, which is the worst case: "accused" is what the rules for strings,
the scores without a model and the check on few strings let through. A run goes on where it ended.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import string
import tempfile
import uuid
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import RESULTS, read_results, write_results
from benchmarks.machine import commit, machine
from pretrace.plugins.marks.canaries import blind_check, few_check, known_check, random_strings
from pretrace.statistics.permutation import randomisation_test
from pretrace.types import Doubles, Text
from pretrace.verdicts.advise import FEWEST_STRINGS

RESULT = RESULTS / "innocents_marking.json"
LEVEL, DRAWS, STRINGS, ALTERNATIVES, CONTEXT, STEP = 0.05, 999, 20, 19, 200, 100
NOISE = 0.7
"""Nats by which a character moves the value of a string for no reason that could be known: a taste for pairs of
characters, drawn anew for every run."""
HEX = "0123456789abcdef"
WORDS = """
acorn almond amber anchor apple arrow autumn badger bakery basket beacon bottle branch bridge bucket butter
button candle carpet castle cherry copper cotton desert dragon engine family father flower forest friend
garden ginger guitar hammer harbour history honey house island jacket kitchen ladder language letter market
mirror monday morning mountain number orange orchard paper pencil people picture planet pocket potato purple
rabbit river school season silver sister software spring square station summer system table teacher thunder
ticket travel tunnel velvet village violin water weather window winter yellow
""".split()  # noqa: SIM905
Rng = np.random.Generator
Made = tuple[list[str], list[str]]
"""Texts with strings, and the strings themselves."""


def main() -> None:
    """Add the rows of one part to the result."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--runs", type=int, default=2000)
    asked.add_argument("--kinds", nargs="*", default=[])
    asked.add_argument("--out", type=Path, default=RESULT)
    given = asked.parse_args()
    for name in given.kinds or KINDS:
        for first in range(0, given.runs, STEP):
            _add(given, name, first + STEP, lambda i, name=name: simulated(KINDS[name], i))


def _add(
    given: argparse.Namespace, kind: str, until: int, run: Callable[[int], tuple[bool, bool, bool]]
) -> None:
    """Make the runs of a cell up to a number, of those that are not there yet, and write them down."""
    found = read_results(given.out) if given.out.is_file() else {"rows": []}
    key = {"test": "canaries", "kind": kind, "how": "simulated"}
    rows = found["rows"]
    row = next((one for one in rows if key.items() <= one.items()), None)
    if row is None:
        row = {**key, **_empty(), "members": None, "before": None}
        rows.append(row)
    for i in range(row["runs"], until):
        tested, rejected, accused = run(i)
        row["runs"] += 1
        row["tested"] += tested
        row["rejected"] += rejected
        row["accused"] += accused
    found |= {"machine": machine(), "commit": commit()}
    write_results(given.out, found)
    print(kind, row, flush=True)


def _empty() -> dict[str, int]:
    return {"runs": 0, "tested": 0, "rejected": 0, "accused": 0}


def simulated(kind: Callable[[Rng, int], Made], run: int) -> tuple[bool, bool, bool]:
    """Whether a test could be made of fresh strings, whether it rejected, and whether it accused."""
    rng = np.random.default_rng([run, 17])
    texts, _ = kind(rng, STRINGS)
    law = _law(kind)
    taste = rng.normal(0, NOISE, (128, 128))

    def value(context: str, some: str) -> float:
        row = _codes(some)
        return reader(law, context, some) + float(taste[row[:-1], row[1:]].sum())

    return tested(texts, run, lambda rows: [np.array([value(c, s) for s in row]) for c, row in rows])


@cache
def _law(kind: Callable[[Rng, int], Made]) -> Law:
    return Law(kind(np.random.default_rng(18), 400)[1])


def tested(
    texts: Sequence[str],
    run: int,
    values: Callable[[Sequence[tuple[str, Sequence[str]]]], list[Doubles]],
) -> tuple[bool, bool, bool]:
    """The test as the command makes it, with `values` in the place of a model."""
    some = [Text(str(i), text) for i, text in enumerate(texts)]
    found, _ = random_strings(some, alternatives=ALTERNATIVES, context=CONTEXT, seed=run)
    if len(found) < FEWEST_STRINGS:
        return False, False, False
    rows = values([(one.context, (one.string, *one.alternatives)) for one in found])
    if randomisation_test(rows, draws=DRAWS, seed=run).p > LEVEL:
        return True, False, False
    gates = [few_check(tuple(rows), LEVEL, draws=DRAWS, seed=run), blind_check(found, run)]
    if all(gate.status == "passed" for gate in gates):
        gates.append(known_check(found, _words()))
    return True, True, all(gate.status == "passed" for gate in gates)


@cache
def _words() -> frozenset[str]:
    """The words of the packaged model's tokenizer, which is opened once a day."""
    kept = Path(tempfile.gettempdir()) / f"pretrace-words-{date.today()}.json"
    if not kept.is_file():
        from pretrace.backends import open_model
        from pretrace.backends.tokens import vocabulary_of

        kept.write_text(json.dumps(sorted(vocabulary_of(open_model("smollm2")))), "utf-8")
    return frozenset(json.loads(kept.read_text("utf-8")))


class Law:
    """What can be learned of a kind of string from many: its characters by place, and each after the one before."""

    def __init__(self, strings: Sequence[str]) -> None:
        rows = [_codes(one) for one in strings]
        self.places = {n: np.full((n, 128), 1 / 16) for n in {len(row) for row in rows}}
        self.pairs = np.full((128, 128), 1 / 16)
        for row in rows:
            self.places[len(row)][np.arange(len(row)), row] += 1
            np.add.at(self.pairs, (row[:-1], row[1:]), 1)
        for table in (*self.places.values(), self.pairs):
            table /= table.sum(axis=1, keepdims=True) - 7
        self.mean = np.mean([self.value(one) for one in strings])

    def value(self, some: str) -> float:
        """The log-likelihood of a string in nats."""
        row = _codes(some)
        after = np.append(1 / 16, self.pairs[row[:-1], row[1:]])
        placed = self.places.get(len(row))
        both = after if placed is None else (placed[np.arange(len(row)), row] + after) / 2
        return float(np.log(both).sum())


def _codes(some: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(some.lower().encode("ascii"), dtype=np.uint8)


def reader(law: Law, context: str, some: str) -> float:
    """What one that reads well makes of a string after its context, in nats."""
    near, one = _plain(context), _plain(some)
    head = next((k for k in range(len(one), 2, -1) if one[:k] in near), 0)
    tail = next((k for k in range(len(one), 2, -1) if one[-k:] in near), 0)
    value = law.value(some) + 2.5 * (head + tail)
    words = [w for w in near.replace("/", " ").replace(",", " ").split() if len(w) >= 8]
    if words:
        value += 3 * np.exp(-20 * min(abs(_number(one) - _number(w)) for w in words))
    if one in FAMOUS:
        value += 60
    return float(value)


def _plain(text: str) -> str:
    return text.lower().replace("-", "").replace("\n", " ")


def _number(word: str) -> float:
    return sum(
        string.printable.index(c) % 36 / 36.0 ** (i + 1)
        for i, c in enumerate(word[:6])
        if c in string.printable
    )


def _hex(rng: Rng, digits: int) -> str:
    return rng.bytes(digits).hex()[:digits]


def _prose(rng: Rng, number: int) -> str:
    return " ".join(rng.choice(WORDS, number))


def _texts(make: Callable[[Rng], str], rng: Rng, number: int) -> Made:
    """A text a string, with prose before it."""
    strings = [make(rng) for _ in range(number)]
    texts = [f"{_prose(rng, 12)}: {one} {_prose(rng, 4)}." for one in strings]
    return texts, strings


def _of(make: Callable[[Rng], str]) -> Callable[[Rng, int], Made]:
    return lambda rng, number: _texts(make, rng, number)


def _changelog(rng: Rng, number: int) -> Made:
    strings = [_hex(rng, 40) for _ in range(number)]
    texts = [
        f"* **{w}:** {_prose(rng, 5)} ([{s[:7]}](https://github.com/some/{w}/commit/{s}))"
        for s, w in zip(strings, rng.choice(WORDS, number), strict=True)
    ]
    return texts, strings


def _checksums_sorted(rng: Rng, number: int) -> Made:
    strings = sorted(_hex(rng, 64) for _ in range(number))
    return ["\n".join(f"{one}  {_prose(rng, 1)}.tar.gz" for one in strings)], strings


def _checksums(rng: Rng, number: int) -> Made:
    strings = [_hex(rng, 64) for _ in range(number)]
    return ["\n".join(f"{one}  {_prose(rng, 1)}.tar.gz" for one in strings)], strings


def _two_cases(rng: Rng, number: int) -> Made:
    """Each UUID twice in a text: without hyphens in capitals, then as usual."""
    strings = [str(_uuid4(rng)) for _ in range(number)]
    texts = [f"{_prose(rng, 8)} {{{s.upper().replace('-', '')}}} = {s} {_prose(rng, 3)}." for s in strings]
    return texts, strings


def _suffix_before(rng: Rng, number: int) -> Made:
    """Docker's way: the last twelve digits as a name, then the whole."""
    strings = [_hex(rng, 64) for _ in range(number)]
    return [f"{_prose(rng, 5)} {s[-12:]} sha256:{s} {_prose(rng, 3)}." for s in strings], strings


def _uuid4(rng: Rng) -> uuid.UUID:
    return uuid.UUID(bytes=rng.bytes(16), version=4)


def _uuid1(rng: Rng) -> str:
    """One clock and one machine, over a year."""
    ticks = int(0x1EC_0000_0000_0000 + rng.integers(315_360_000_000_000))
    low, mid, high = ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 & 0xFFF
    return f"{low:08x}{mid:04x}1{high:03x}9a3b0242ac120002"


def _uuid7(rng: Rng) -> str:
    stamp = int(1.6e12 + rng.integers(1.5e11))
    return f"{stamp:012x}7{_hex(rng, 3)}{HEX[8 + int(rng.integers(4))]}{_hex(rng, 15)}"


def _uuid5(rng: Rng) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{_prose(rng, 2)}{int(rng.integers(1e9))}")).replace("-", "")


def _work(zeros: Callable[[Rng], int]) -> Callable[[Rng], str]:
    def make(rng: Rng) -> str:
        number = zeros(rng)
        return "0" * number + _hex(rng, 64 - number)

    return make


def _hex_words(rng: Rng) -> str:
    return _prose(rng, 6).encode()[:20].hex()


def _md5_word(rng: Rng) -> str:
    return hashlib.md5(str(rng.choice(WORDS)).encode()).hexdigest()


def _one_famous(rng: Rng, number: int) -> Made:
    texts, strings = _texts(lambda r: _hex(r, 32), rng, number)
    known = hashlib.md5(str(rng.choice(WORDS)).encode()).hexdigest()
    texts[0], strings[0] = texts[0].replace(strings[0], known), known
    return texts, strings


def _empty_files(rng: Rng, number: int) -> Made:
    """A list of files with the hashes of the empty file, of a line feed and of small numbers among them."""
    texts, strings = _texts(lambda r: _hex(r, 32), rng, number)
    for i, content in enumerate((b"", b"\n", b"1", b"hello")):
        known = hashlib.md5(content).hexdigest()
        texts[i], strings[i] = texts[i].replace(strings[i], known), known
    return texts, strings


def _leading(rng: Rng) -> str:
    """Made at random, but the first digit is never 8 to f, as in many identifiers that must be positive."""
    return HEX[int(rng.integers(8))] + _hex(rng, 39)


def _examples(rng: Rng, number: int) -> Made:
    """UUIDs of version 4, half of them the examples that documentation prints, which every model has read."""
    texts, strings = _texts(lambda r: str(_uuid4(r)), rng, number)
    for i, known in enumerate(EXAMPLES):
        texts[i], strings[i] = texts[i].replace(strings[i], known), known
    return texts, strings


EXAMPLES = (
    "550e8400-e29b-41d4-a716-446655440000",
    "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d",
    "3fa85f64-5717-4562-b3fc-2c963f66afa6",
    "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
)
FAMOUS = {hashlib.md5(one.encode()).hexdigest() for one in ("", "\n", "1", "hello", *WORDS)}
FAMOUS |= {one.replace("-", "") for one in EXAMPLES}
KINDS: dict[str, Callable[[Rng, int], Made]] = {
    "random hashes (SHA-256)": _of(lambda r: _hex(r, 64)),
    "random UUIDs of version 4": _of(lambda r: str(_uuid4(r))),
    "checksums, one list": _checksums,
    "changelog: short hash, then the whole": _changelog,
    "image names: end of the hash, then the whole": _suffix_before,
    "UUIDs in two spellings": _two_cases,
    "UUIDs of version 1 without hyphens": _of(_uuid1),
    "UUIDs of version 5 without hyphens": _of(_uuid5),
    "UUIDs of version 7 without hyphens": _of(_uuid7),
    "block hashes, 8 to 19 leading zeros": _of(_work(lambda r: int(r.integers(8, 20)))),
    "block hashes, 3 leading zeros": _of(_work(lambda r: 3)),
    "first digit below 8": _of(_leading),
    "hexadecimal digits of words": _of(_hex_words),
    "MD5 of words": _of(_md5_word),
    "one MD5 of a word in 20": _one_famous,
    "MD5 of an empty file and others": _empty_files,
    "UUIDs, 5 of 20 known examples": _examples,
    "checksums, a sorted list": _checksums_sorted,
}


if __name__ == "__main__":
    main()
