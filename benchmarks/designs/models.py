"""Does a test accuse a small model of texts it has not read? `python -m benchmarks.designs.models --work FOLDER`.

Two models of about a million parameters are trained once, in the work folder, on texts of five domains of the Pile;
half of what each reads the other reads, too. Every null is then a fresh draw of other texts (other documents, orders,
draws, dates, sides), and the test is the function that the command calls, with all its checks, where one model is in
question and the other is the second model or placebo. "rejected" counts p at or below 5% (of `flag`: the test of the
set, or a text that is flagged), "accused" what ends in exit code 3. What a test refuses as bad input (exit code 2)
counts as neither, and stands in `refused`.

Kinds that fit a test's assumption stand beside kinds that do not: strings that the text foretells. A killed run goes
on; `--runs` sets how many nulls a kind are wanted. `--summary` writes evidence/innocents_models.json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import RESULTS, write_results
from benchmarks.machine import commit, machine
from benchmarks.texts import DATA
from pretrace import Models, open_model
from pretrace.errors import TextsError
from pretrace.plugins.marks import MarkSettings, VariantCandidates, mark
from pretrace.plugins.marks.canaries import check_canaries
from pretrace.plugins.marks.checking import CheckSettings, check_marks
from pretrace.tuning.architectures import Architecture
from pretrace.tuning.planting import PlantSettings, plant
from pretrace.types import Corpus, Text
from pretrace.verdicts.flag.flag import flag
from pretrace.verdicts.flag.planning import FlagSettings

DOMAINS = ("wikipedia_en", "hackernews", "pubmed_abstracts", "stackexchange", "nih_exporter")
TRAINING, CHARACTERS = 200, 1500
"""Documents of a domain that are for training, and the characters of one that are read."""
LEVEL = 0.05
OUT = RESULTS / "innocents_models.json"
Rng = np.random.Generator
Found = tuple[bool, bool]
"""Whether a test rejected, and whether it accused."""


class World:
    """The texts and the two models."""

    def __init__(self, work: Path, data: Path) -> None:
        os.environ["PRETRACE_CACHE"] = str(work / "cache")
        self.texts = {domain: texts_of(data, domain) for domain in DOMAINS}
        learning = [
            Text(f"{domain}-{i}", text)
            for domain in DOMAINS
            for i, text in enumerate(self.texts[domain][:TRAINING])
        ]
        shape = Architecture(layers=2, width=128, vocabulary=2048, max_tokens=1024)
        for seed, name in enumerate(("target", "second")):
            if not (work / name).exists():
                plant(
                    Corpus("learning", tuple(learning)),
                    settings=PlantSettings(epochs=2, seed=seed, architecture=shape),
                    folder=work / name,
                )
        target, second = (open_model(str(work / name)) for name in ("target", "second"))
        self.models = Models(target, placebos=(second,))

    def documents(self, rng: Rng, number: int, domain: str = "") -> list[str]:
        """So many documents that neither model has read, of one domain."""
        of = self.texts[domain or DOMAINS[int(rng.integers(len(DOMAINS)))]][TRAINING:]
        return [of[i] for i in rng.permutation(len(of))[:number].tolist()]


def texts_of(data: Path, domain: str) -> list[str]:
    """The documents of a domain of the Pile in `data`, each once, of at most so many characters as are read."""
    with gzip.open(data / "pile" / f"{domain}.jsonl.gz", "rt", encoding="utf-8") as file:
        found = [str(json.loads(line)["text"]).strip()[:CHARACTERS] for line in file]
    return [text for text in dict.fromkeys(found) if len(text) >= 400]


def _corpus(texts: list[str], **meta: list[str]) -> Corpus:
    rows = [{name: values[i] for name, values in meta.items()} for i in range(len(texts))]
    return Corpus("set", tuple(Text(f"t{i}", text, meta=rows[i]) for i, text in enumerate(texts)))


def _strings(foretold: bool) -> Callable[[World, Rng], Found]:
    """20 documents with a random string each, of which the text tells the beginning or not."""

    def made(world: World, rng: Rng) -> Found:
        strings = [rng.bytes(20).hex() for _ in range(20)]
        texts = [
            f"{text[:150]} ({one[:7] + ', ' if foretold else ''}{one})"
            for text, one in zip(world.documents(rng, 20), strings, strict=True)
        ]
        return _end(check_canaries(_corpus(texts), world.models))

    return made


def _named(texts: list[str], of: int) -> Corpus:
    return Corpus("part", tuple(Text(f"{of}-{i}", text) for i, text in enumerate(texts)))


def _flagged(strange: float) -> Callable[[World, Rng], Found]:
    """100 texts and 100 known ones of one domain; a share of those asked is of another."""

    def made(world: World, rng: Rng) -> Found:
        first, other = rng.permutation(len(DOMAINS))[:2].tolist()
        texts = world.documents(rng, 200, DOMAINS[first])
        half = len(texts) // 2
        asked, known = texts[:half], texts[half:]
        number = round(strange * half)
        asked[:number] = world.documents(rng, number, DOMAINS[other])
        found = flag(_named(asked, 0), _named(known, 1), world.models, FlagSettings(score="loss"))
        shift = next(one for one in found.checks if one.name == "drift")
        return shift.status != "not run", found.outcome in ("flagged", "set")

    return made


def _marked(world: World, rng: Rng) -> Found:
    """24 texts of which one of two versions was published by a draw that pretrace made; no placebo is asked."""
    texts = [text for text in world.documents(rng, 24) if len(text) >= 400]
    corpus = _corpus(texts)
    versions = {one.id: (one.text[:200], one.text[200:400]) for one in corpus.texts}
    seal = mark(corpus, VariantCandidates(versions), MarkSettings(variant_column=("other",)))
    return _end(check_marks(seal, Models(world.models.target), CheckSettings(cache=False)))


def _end(found: Any) -> Found:
    return bool(found.p is not None and found.p <= LEVEL), found.outcome == "consistent"


KINDS: dict[tuple[str, str], Callable[[World, Rng], Found]] = {
    ("canaries", "random hashes in texts"): _strings(False),
    ("canaries", "hashes whose beginning stands before them"): _strings(True),
    ("flag", "100 and 100 texts of one domain"): _flagged(0.0),
    ("flag", "15% of those asked are of another domain"): _flagged(0.15),
    ("marks", "one of two versions at random"): _marked,
}


def read(path: Path) -> list[dict[str, Any]]:
    """What is on file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []


def measure(work: Path, data: Path, runs: int, only: list[str]) -> None:
    """Make the nulls that are not on file, of all kinds alike."""
    path, world = work / "nulls.jsonl", World(work, data)
    done = {(row["test"], row["kind"], row["run"]) for row in read(path)}
    for run in range(runs):
        for (test, kind), made in KINDS.items():
            if (test, kind, run) in done or (only and test not in only):
                continue
            rng = np.random.default_rng([run, *f"{test} {kind}".encode()])
            row: dict[str, Any] = {"test": test, "kind": kind, "run": run}
            try:
                row["rejected"], row["accused"] = made(world, rng)
            except TextsError as error:
                row |= {"rejected": False, "accused": False, "refused": str(error)}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def summary(work: Path) -> None:
    """Count what is on file."""
    found, rows = read(work / "nulls.jsonl"), []
    for test, kind in KINDS:
        some = [row for row in found if (row["test"], row["kind"]) == (test, kind)]
        if not some:
            continue
        counts = {name: sum(row[name] for row in some) for name in ("rejected", "accused")}
        refused = sum("refused" in row for row in some)
        rows.append(
            {"test": test, "kind": kind, "how": "models", "runs": len(some), **counts}
            | {"refused": refused, "members": None, "before": None}
        )
    note = (
        "Two models of 2 layers and 128 dimensions, one in question and one beside it, that have read none of the "
        "texts; 300 nulls a kind are wanted. Run it again: it goes on."
    )
    content = {"machine": machine(), "commit": commit(), "level": LEVEL, "note": note, "rows": rows}
    write_results(OUT, content)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=[], help="tests")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if given.summary:
        summary(given.work)
    else:
        measure(given.work, given.data, given.runs, given.only)
