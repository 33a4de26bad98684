"""A server that lies: each lie, told while connecting, always, or from the middle of a run on, and where it is caught.

    python -m benchmarks.servers.lies            (a few minutes; goes on where it was ended)
    python -m benchmarks.servers.lies --write    (only the tables in docs/servers.md)

The servers imitate the four kinds, with the packaged SmolLM2 behind them, so that what they say is what a real model
says. Each is asked for 24 texts through `open_model` and the store of a run. "another model" stands for any model whose
numbers pretrace does not know: the known answers of SmolLM2 are put out of sight. What counts is what a run would have
kept on disk at the end: a row there that differs from the truth by more than 0.001 nats is wrong.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import json
import math
import os
import random
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import pretrace.backends.serving.opening as opening
from benchmarks import RESULTS, ROOT
from benchmarks.machine import commit, machine
from benchmarks.servers.imitation import Lie, Model, ModelServer, serving
from pretrace import open_model
from pretrace.cache.location import text_key
from pretrace.errors import PretraceError
from pretrace.scoring.evidence import open_store, trace
from pretrace.types import Quantity

RESULTS = RESULTS / "servers_lies.json"
DOCS = ROOT / "docs" / "servers.md"
KINDS = ("vllm", "sglang", "tgi", "completions")
WHEN = ("always", "connecting", "middle")
OUTCOMES = ("connecting", "run", "told", "silent", "right")
WORDS = {
    "connecting": "while connecting",
    "run": "during the run",
    "told": "wrong, with a note",
    "silent": "wrong, unseen",
    "right": "right",
}
WRONG = 1e-3  # nats
TEXTS = 24
BUDGET = 90
"""Tokens a request, so that there are several of them."""
Said = dict[str, Any]


def texts() -> list[str]:
    """Twenty-four texts, some of which begin alike, one with two numbers of tokens in common with another."""
    things = ("mill", "bridge", "letter", "garden", "window", "market", "river", "station")
    ends = (
        "was closed in spring, and nobody asked why.",
        "was painted green by the baker, who had bought it for his daughter.",
        "stood where the road turns; in 1912 it was moved.",
    )
    return [f"The {thing} {end}" for thing in things for end in ends]


def honest(server: ModelServer, ids: list[int]) -> Said:
    """What the model says, as it is."""
    return dict(server.model.said(ids))


def changed(change: Callable[[float], float]) -> Lie:
    """Every number changed in one way, those of the likeliest tokens and of written ones too."""

    def lie(server: ModelServer, ids: list[int]) -> Said:
        said = honest(server, ids)
        return {
            **said,
            "logp": [None, *map(change, said["logp"][1:])],
            "tops": [None, *([(id_, change(one)) for id_, one in top] for top in said["tops"][1:])],
            "written_logp": change(said["written_logp"]),
            "written_tops": [(id_, change(one)) for id_, one in said["written_tops"]],
        }

    return lie


def own_numbers(change: Callable[[list[float]], list[Any]]) -> Lie:
    """The numbers of the text's own tokens changed, all others left alone."""

    def lie(server: ModelServer, ids: list[int]) -> Said:
        said = honest(server, ids)
        return {**said, "logp": [None, *change(said["logp"][1:])]}

    return lie


def read_otherwise(*, counted: bool = False, **how: Any) -> Lie:
    """The numbers of the same tokens in other company, or at another temperature; `counted`: and it says so."""

    def lie(server: ModelServer, ids: list[int]) -> Said:
        said = dict(server.model.said(ids, **{name: given(server) for name, given in how.items()}))
        return said if counted else {**said, "read": len(ids)}

    return lie


def _one(value: Any) -> Lie:
    def change(numbers: list[float]) -> list[Any]:
        place = _drawn(numbers).randrange(len(numbers))
        return [value if i == place else one for i, one in enumerate(numbers)]

    return own_numbers(change)


def _consistent_zero(server: ModelServer, ids: list[int]) -> Said:
    """One entry of 0, with all other tokens at that place so unlikely that it could be."""
    said = honest(server, ids)
    place = 1 + _drawn(said["logp"][1:]).randrange(len(ids) - 1)
    for name, value in {
        "logp": 0.0,
        "ranks": 1,
        "tops": [
            (ids[place], 0.0),
            *((id_ + 1, -20.0 - i) for i, (id_, _) in enumerate(said["tops"][place][1:])),
        ],
    }.items():
        said[name] = [value if i == place else one for i, one in enumerate(said[name])]
    return said


def _noise(size: float) -> Lie:
    def change(numbers: list[float]) -> list[float]:
        source = random.Random(time.perf_counter_ns())  # other noise in every batch
        return [min(-1e-6, one + source.uniform(-size, size)) for one in numbers]

    return own_numbers(change)


def _drawn(numbers: list[float]) -> random.Random:
    """The same draw for the same text."""
    return random.Random(repr(numbers))


def _shuffled(numbers: list[float]) -> list[float]:
    return _drawn(numbers).sample(numbers, len(numbers))


def _another(server: ModelServer, ids: list[int]) -> Said:
    """The answer to the prompt that came before this one."""
    before = getattr(server, "before", None)
    server.before = ids  # type: ignore[attr-defined]
    return {**honest(server, before or ids), "read": len(ids)}


def _borrowed(server: ModelServer, ids: list[int]) -> Said:
    """The numbers of the prompt that came before, under the tokens of this one."""
    said, other = honest(server, ids), _another(server, ids)["logp"]
    return {**said, "logp": [*other[: len(ids)], *said["logp"][len(other) :]]}


def _first(server: ModelServer, ids: list[int]) -> Said:
    """The answer to the first prompt, given to all."""
    if not hasattr(server, "very_first"):
        server.very_first = ids  # type: ignore[attr-defined]
    return {**honest(server, server.very_first), "read": len(ids)}  # type: ignore[attr-defined]


def _around(which: int) -> Callable[[ModelServer], tuple[int, ...]]:
    def found(server: ModelServer) -> tuple[int, ...]:
        said = server.model.tokenizer.apply_chat_template(
            [{"role": "user", "content": "@@"}], tokenize=False, add_generation_prompt=True
        )
        part = said.split("@@")[which]
        return tuple(server.model.tokenizer(part, add_special_tokens=False)["input_ids"])

    return found


def _always(value: Any) -> Callable[[ModelServer], Any]:
    return lambda _: value


LIES: dict[str, tuple[str, Lie]] = {
    "none": ("nothing: an honest server", honest),
    "swapped": ("answers of neighbouring prompts swapped", _another),
    "borrowed": ("another prompt's numbers beside the tokens asked for", _borrowed),
    "first": ("the first prompt's answer given to all", _first),
    "early": ("numbers one token early", own_numbers(lambda some: [*some[1:], some[-1]])),
    "late": ("numbers one token late", own_numbers(lambda some: [some[0], *some[:-1]])),
    "shuffled": ("numbers shuffled within a text", own_numbers(_shuffled)),
    "temperature": ("a distribution at temperature 0.7", read_otherwise(temperature=_always(0.7))),
    "half": ("all numbers halved", changed(lambda one: one / 2)),
    "log10": ("logarithms to base 10", changed(lambda one: one / math.log(10))),
    "log2": ("logarithms to base 2", changed(lambda one: one / math.log(2))),
    "start": ("a hidden start token", read_otherwise(before=_always((0,)))),
    "start counted": (
        "a hidden start token that the count of tokens shows",
        read_otherwise(before=_always((0,)), counted=True),
    ),
    "template": ("a hidden chat template", read_otherwise(before=_around(0), after=_around(1))),
    "system": ("a hidden text in front", read_otherwise(before=_around(0))),
    "2 decimals": ("values rounded to 2 decimals", changed(lambda one: round(one, 2))),
    "3 decimals": ("values rounded to 3 decimals", changed(lambda one: round(one, 3))),
    "bias up": ("0.05 added to all numbers", changed(lambda one: one + 0.05)),
    "bias down": ("0.05 taken off all numbers", changed(lambda one: one - 0.05)),
    "bias own": (
        "0.05 taken off the text's own numbers",
        own_numbers(lambda some: [one - 0.05 for one in some]),
    ),
    "zero": ("one entry of 0 a text", _one(0.0)),
    "zero told": ("one entry of 0 a text, with likeliest tokens to match", _consistent_zero),
    "-9997": ("one entry of −9997 a text", _one(-9997.0)),
    "floor": (
        "numbers below −6 replaced by −9999",
        own_numbers(lambda some: [one if one > -6 else -9999.0 for one in some]),
    ),
    "noise small": ("noise of 0.004 nats, other in every request", _noise(0.004)),
    "noise": ("noise of 0.05 nats, other in every request", _noise(0.05)),
    "false": ("false for a number", _one(False)),
    "string": ("a number as a string", _one("-1.5")),
    "NaN": ("NaN for a number", _one(float("nan"))),
    "null": ("null for a number", _one(None)),
    "short": ("one number missing", own_numbers(lambda some: some[:-1])),
}
"""Each lie, in words and as what it makes of a prompt."""


class Liar(ModelServer):
    """A server that tells its lie at the time it is told to."""

    positions = 8192

    def __init__(self, model: Model, lie: Lie, when: str, *, with_ids: bool) -> None:
        super().__init__(model)
        self.with_ids = with_ids
        self.lie = self._said
        self.told, self.when = lie, when
        self.connected = False
        self.answered = 0
        self.limit = self.positions

    def _said(self, server: ModelServer, ids: list[int]) -> Said:
        with self.count:
            self.answered += self.connected
            lying = {
                "connecting": not self.connected,
                "always": True,
                "middle": self.answered > TEXTS // 2,
            }[self.when]
        return self.told(server, ids) if lying else honest(server, ids)


@contextmanager
def tokenizer_read_once() -> Iterator[None]:
    """A tokenizer is read from its folder once, and not for each of a thousand runs."""
    kept = opening.tokenizer_of, opening.Tokens
    opening.tokenizer_of, opening.Tokens = functools.cache(kept[0]), functools.cache(kept[1])  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        opening.tokenizer_of, opening.Tokens = kept  # type: ignore[misc]


@contextmanager
def unknown_model(known: bool) -> Iterator[None]:
    """The known answers of the packaged model are out of sight unless `known`."""
    kept = opening.compared
    opening.compared = kept if known else (lambda *_: "")
    try:
        yield
    finally:
        opening.compared = kept


def tried(
    model: Model, folder: Path, truth: list[Any], case: tuple[str, str, str, bool, bool]
) -> dict[str, Any]:
    """One run against one liar: where it was caught, what was said, and how far off the rows are that were kept."""
    name, when, kind, with_ids, known = case
    found: dict[str, Any] = {"lie": name, "when": when, "kind": kind, "ids": with_ids, "known": known}
    asked = texts()
    with (
        serving(Liar(model, LIES[name][1], when, with_ids=with_ids)) as server,
        unknown_model(known),
        warnings.catch_warnings(record=True) as warned,
        tempfile.TemporaryDirectory() as cache,
    ):
        warnings.simplefilter("always")
        os.environ["PRETRACE_CACHE"] = cache
        try:
            opened = open_model(
                f"{kind}:{server.root}", tokenizer=str(folder), token_budget=BUDGET, requests=2
            )
        except PretraceError as error:
            return {
                **found,
                "outcome": "connecting",
                "said": str(error).replace(server.root, "URL"),
                "off": 0.0,
            }
        server.connected = True
        with open_store(opened.fingerprint) as store:
            try:
                trace(opened, asked, Quantity.LOGP, store=store)
                caught = ""
            except PretraceError as error:
                caught = str(error).replace(server.root, "URL")
            kept = store.get([text_key(one) for one in asked], Quantity.LOGP)
        opened.close()  # type: ignore[attr-defined]
        off = max(
            (
                float(np.abs(a.logp - b.logp).max(initial=0))
                for a, b in zip(kept, truth, strict=True)
                if a is not None
            ),
            default=0.0,
        )
        # Only what goes with this server's numbers in the record and on page one, not what is said of every server.
        noted = "Its numbers moved" in opened.facts["unseen"] or "rounded" in opened.facts or bool(warned)
    if caught:
        outcome = "silent" if off > WRONG else "run"
    else:
        outcome = "right" if off <= WRONG else "told" if noted else "silent"
    return {
        **found,
        "outcome": outcome,
        "said": caught or (opened.facts["unseen"] if noted else ""),
        "off": off,
    }


def cases() -> Iterator[tuple[str, str, str, bool]]:
    """Every run against a model that is not known: lie, when, kind of server, whether answers name ids."""
    for ids, name, kind, when in itertools.product((True, False), LIES, KINDS, WHEN):
        if name != "none" or when == "always":
            yield name, when, kind, ids


def _key(case: tuple[Any, ...]) -> str:
    return json.dumps(case)


def measured() -> dict[str, Any]:
    """All runs; those of an earlier call that was ended are not made again."""
    place = RESULTS.with_suffix(".part.jsonl")
    sources = [Path(__file__), *sorted(Path(opening.__file__).parent.glob("*"))]
    digest = hashlib.sha256(b"".join(one.read_bytes() for one in sources if one.is_file())).hexdigest()[:16]
    done: dict[str, Any] = {}
    if place.exists():
        rows = [
            json.loads(line) for line in place.read_text(encoding="utf-8").splitlines() if line.endswith("}")
        ]
        done = {row["case"]: row["row"] for row in rows if row["code"] == digest}
    here = open_model("smollm2")
    model = Model(net=here.model, tokenizer=here.tokenizer)  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder:
        here.tokenizer.save_pretrained(folder)  # type: ignore[attr-defined]
        here.model.config.save_pretrained(folder)  # type: ignore[attr-defined]
        truth = trace(here, texts(), Quantity.LOGP, store=open_store(None))
        with place.open("a", encoding="utf-8") as sink, tokenizer_read_once():

            def row(case: tuple[str, str, str, bool, bool]) -> dict[str, Any]:
                if _key(case) not in done:
                    made = done[_key(case)] = tried(model, Path(folder), truth, case)
                    sink.write(json.dumps({"code": digest, "case": _key(case), "row": made}) + "\n")
                    sink.flush()
                return done[_key(case)]

            rows: list[dict[str, Any]] = []
            unknown: dict[str, Any] = {}
            for case in cases():
                when = case[1]
                # A lie that was caught while connecting when it was told always did not get any further.
                again = when == "connecting" and unknown["outcome"] == "connecting"
                unknown = {**unknown, "when": when} if again else row((*case, False))
                # What is caught without the known answers is caught with them; they are asked while connecting only.
                rest = unknown["outcome"] in ("told", "silent") and when != "middle"
                rows += [unknown, row((*case, True)) if rest else {**unknown, "known": True}]
    counts = {
        known: Counter(row["outcome"] for row in rows if row["known"] is known) for known in (True, False)
    }
    result = {
        "commit": commit(),
        "machine": machine(),
        "model": "SmolLM2-135M-Instruct, the packaged one, float32, behind imitation servers",
        "texts": TEXTS,
        "lies": {name: words for name, (words, _) in LIES.items()},
        "counts": {"packaged model": counts[True], "another model": counts[False]},
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    place.unlink()
    return result


def table(found: dict[str, Any]) -> str:
    """The lies as a table in Markdown: for each time, where its runs ended, with their number where not all did. Lies
    that ended alike stand in one row."""
    ended: dict[tuple[str, ...], list[str]] = {}
    for name, words in found["lies"].items():
        some = [row for row in found["rows"] if row["lie"] == name and not row["known"]]
        cells = tuple(_cell([row for row in some if row["when"] == when]) for when in WHEN)
        ended.setdefault(cells, []).append(words)
    lines = [
        "| the server's lie | always | while connecting only | from the middle on |",
        "|---|---|---|---|",
    ]
    lines += [f"| {' | '.join(('; '.join(words), *cells))} |" for cells, words in ended.items()]
    return "\n".join(lines)


def _cell(rows: list[dict[str, Any]]) -> str:
    counted = Counter(row["outcome"] for row in rows)
    told = [(one, counted[one]) for one in OUTCOMES if counted[one]]
    if len(told) == 1:
        return _shown(told[0][0])
    return ", ".join(f"{_shown(one)} ({number} of {len(rows)})" for one, number in told) or "–"


def _shown(outcome: str) -> str:
    return f"**{WORDS[outcome]}**" if outcome in ("silent", "told") else WORDS[outcome]


def unseen(found: dict[str, Any]) -> str:
    """What was wrong without being seen, of the packaged model and of another one."""
    lines = []
    for known, words in {False: "of any other model", True: "of the packaged model"}.items():
        rows = [row for row in found["rows"] if row["known"] is known]
        silent = sorted({found["lies"][row["lie"]] for row in rows if row["outcome"] == "silent"})
        number = sum(row["outcome"] == "silent" for row in rows)
        lines.append(f"- Unseen in {number} of {len(rows)} runs {words}: {'; '.join(silent) or 'nothing'}.")
    return "\n".join(lines)


def write_docs(found: dict[str, Any]) -> None:
    """Write table and counts between their marks in docs/servers.md."""
    text = DOCS.read_text(encoding="utf-8")
    begin, end = "<!-- lies: written by benchmarks/servers/lies.py -->\n", "<!-- end of lies -->"
    before, rest = text.split(begin)
    made = f"{table(found)}\n\n{unseen(found)}\n"
    DOCS.write_text(before + begin + made + end + rest.split(end, 1)[1], encoding="utf-8")


def main() -> None:
    """Measure, or take what was measured, and write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="only the tables in docs/servers.md")
    given = parser.parse_args()
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if given.write else measured()
    write_docs(found)
    print(json.dumps(found["counts"], indent=1))


if __name__ == "__main__":
    main()
