"""What a scan of a corpus costs and finds: `python -m benchmarks.search.scan PART… [--data FOLDER] [--work FOLDER]`.

Parts, each written into evidence/scan.json as soon as it is measured; one that is there for this commit is
not measured again (`--again`):

- `speed-FORMAT-TEXTS`: MB a second on one core; FORMAT is jsonl, zst or parquet, TEXTS 40, 400, 1500 or 20000.
- `grep-TEXTS`: `grep -F -f` on the same file, looking for pieces of the texts.
- `memory`: peak memory with a corpus of 1 GB and of 10 GB. `--large` sets the second one, in GB.

`speed` and `grep` stand for all parts of that name. Parts on file that are not listed here are those of commit b6cbc54.
The corpus is made from the JSON lines of `--data`: words of each document in another order, so that little is found,
and one document in a hundred as it is.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import RESULTS, read_results, write_results
from benchmarks.machine import commit, machine
from benchmarks.speed.memory import status
from pretrace.plugins.scan import scan as room
from pretrace.plugins.scan.searching import BlockTable
from pretrace.types import Corpus, Text

RESULT = RESULTS / "scan.json"
SIZES = (40, 400, 1500, 20_000)
FORMATS = ("jsonl", "zst", "parquet")
MEGABYTES = 256
"""Of the file that is searched for speed."""
TIMES = 4
"""How often that file is searched in one scan, under other names."""
SMALL = 32
"""Of the part of it that slower programs are given."""
PIECE = 32
"""Bytes of the pieces that programs look for which search for strings alone."""
RUNS = 3


def documents(data: Path) -> list[str]:
    """The texts of all files."""
    found = []
    for path in sorted(data.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found += [json.loads(line)["text"] for line in lines]
    return found


def texts(data: Path, number: int) -> list[Text]:
    """So many texts, of real documents drawn with a seed: whole ones, or pieces of 1,400 characters where there are not
    enough documents."""
    some = documents(data)
    random.Random(1).shuffle(some)
    some = [one for one in some if len(one) >= 200]
    if number > len(some):
        some = [one[i : i + 1400] for one in some for i in range(0, max(1, len(one) - 200), 1400)]
        random.Random(2).shuffle(some)
    return [Text(str(i), one) for i, one in enumerate(some[:number])]


def shuffled(rng: random.Random, text: str) -> str:
    """The words of a text in another order."""
    words = text.split(" ")
    rng.shuffle(words)
    return " ".join(words)


def lines(data: Path, megabytes: float) -> Iterator[bytes]:
    """JSON lines of the corpus, so many megabytes of them."""
    some, rng, made, number = documents(data), random.Random(3), 0, 0
    while made < megabytes * 1e6:
        whole = rng.random() < 0.01
        text = rng.choice(some)
        row = {"id": number, "text": text if whole else shuffled(rng, text)}
        line = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        made, number = made + len(line), number + 1
        yield line


def corpus(data: Path, work: Path, kind: str, megabytes: int) -> Path:
    """The corpus as a file of this kind, made once."""
    path = work / f"corpus-{megabytes}.{'jsonl.zst' if kind == 'zst' else kind}"
    if path.exists():
        return path
    print(f"making {path}", file=sys.stderr, flush=True)
    part = path.with_name(f"part-{path.name}")
    if kind == "jsonl":
        with part.open("wb") as file:
            file.writelines(lines(data, megabytes))
    else:
        plain = corpus(data, work, "jsonl", megabytes)
        if kind == "zst":
            import zstandard

            with plain.open("rb") as read, part.open("wb") as file:
                zstandard.ZstdCompressor(3).copy_stream(read, file)
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            found = [json.loads(line)["text"] for line in plain.open("rb")]
            pq.write_table(pa.table({"text": found}), part)
    part.rename(path)
    return path


def asked(wanted: list[Text], *sources: Path, workers: int = 1) -> room.Searching:
    """A scan of these files for these texts."""
    made = Corpus("texts", tuple(wanted))
    return room.Searching(made, None, tuple(map(str, sources)), room.ScanSettings(workers=workers))


def speed(data: Path, work: Path, *, kind: str, number: int, **_: Any) -> dict[str, Any]:
    """MB a second of one core, the best of three scans of a GB, from opening it to the finished result: the same file
    under four names. `processor` is by the time that the processor spent, which other programs hardly change."""
    path, wanted = corpus(data, work, kind, MEGABYTES), texts(data, number)
    held = sum(len(line) for line in corpus(data, work, "jsonl", MEGABYTES).open("rb"))
    read = TIMES * (held if kind != "parquet" else sum(_text_bytes(path)))
    folder = work / f"speed-{kind}"
    folder.mkdir(exist_ok=True)
    names = [folder / f"c{k}{path.name[path.name.index('.') :]}" for k in range(TIMES)]
    for name in names:
        if not name.exists():
            os.link(path, name)
    path.read_bytes()  # into the memory of the system: what is measured is no disk
    taken, spent, found = [], [], None
    for k in range(RUNS + 1):  # the first one compiles
        shutil.rmtree(work / "speed.parts", ignore_errors=True)
        search = asked(wanted, *names)
        began, before = time.perf_counter(), time.process_time()
        table = BlockTable(search.folded)
        made, made_in = time.perf_counter() - began, time.process_time() - before
        began, before = time.perf_counter(), time.process_time()
        found = room.scan(search, work / "speed.parts")
        taken.append(time.perf_counter() - began)
        spent.append(time.process_time() - before)
        if not k:
            taken.clear()
            spent.clear()
    assert found is not None
    return {
        "texts": number,
        "text MB": round(int(search.folded.sizes.sum()) / 1e6, 2),
        "blocks": len(table.hashes.keys),
        "MB": round(read / 1e6, 1),
        "seconds": [round(one, 3) for one in taken],
        "processor seconds": [round(one, 3) for one in spent],
        "seconds for the table": round(made, 3),
        "MB/s": round(read / 1e6 / min(taken), 1),
        "processor MB/s": round(read / 1e6 / min(spent), 1),
        "processor MB/s without the table": round(read / 1e6 / max(1e-9, min(spent) - made_in), 1),
        "found": found.figures["found"],
    }


def _text_bytes(path: Path) -> Iterator[int]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(columns=["text"]):
        yield int(pc.sum(pc.binary_length(batch.column("text"))).as_py())


def _pieces(data: Path, number: int) -> list[str]:
    """Aligned pieces of the texts, as long as a block: what a search for strings must be given."""
    found = {}
    for one in texts(data, number):
        plain = json.dumps(one.text, ensure_ascii=False)[1:-1]
        for i in range(0, len(plain) - PIECE + 1, PIECE):
            found[plain[i : i + PIECE]] = None
    return [one for one in found if "\n" not in one]


def _small(data: Path, work: Path) -> Path:
    path = work / f"corpus-{SMALL}.jsonl"
    if not path.exists():
        part = path.with_name("part-small")
        with part.open("wb") as file:
            file.writelines(lines(data, SMALL))
        part.rename(path)
    return path


def grep(data: Path, work: Path, *, number: int, **_: Any) -> dict[str, Any]:
    """`grep -F -c -f`, which says which lines hold a piece of any text, but not of which."""
    path, pieces = _small(data, work), work / "pieces.txt"
    pieces.write_text("\n".join(_pieces(data, number)), encoding="utf-8", errors="replace")
    began = time.perf_counter()
    try:
        done = subprocess.run(
            ["grep", "-F", "-c", "-f", str(pieces), str(path)],
            capture_output=True, timeout=120, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"texts": number, "over": "120 seconds"}
    taken = time.perf_counter() - began
    size = path.stat().st_size / 1e6
    return {
        "texts": number,
        "MB": round(size, 1),
        "MB/s": round(size / taken, 1),
        "lines": int(done.stdout or 0),
    }


def memory(data: Path, work: Path, *, large: int, **_: Any) -> dict[str, Any]:
    """Peak memory of a scan of 1 GB and of `large` GB, each in a process of its own. Every GB is the same file under
    links with other names, so each is read and searched, and what is found is found so many times."""
    base = corpus(data, work, "jsonl", 500)
    found: dict[str, Any] = {"texts": 400}
    for size in (1, large):
        folder = work / f"memory-{size}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for k in range(2 * size):
            changed(base, folder / f"c{k:02}.jsonl", k)
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.search.scan", "--peak", str(folder), "--data", str(data),
             "--work", str(work)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        found[f"{size} GB"] = json.loads(done.stdout.splitlines()[-1])
        shutil.rmtree(folder)
    found["ratio"] = round(found[f"{large} GB"]["peak MB"] / found["1 GB"]["peak MB"], 3)
    return found


def changed(base: Path, path: Path, k: int) -> None:
    """A copy of the corpus with other ids and, but for the first, one letter in another one's place."""
    letters = bytes.maketrans(
        b"abcdefghijklmnop", bytes(b"abcdefghijklmnop"[(i + k) % 16] for i in range(16))
    )
    with base.open("rb") as read, path.open("wb") as file:
        for line in read:
            head, text, rest = line.partition(b'"text": "')
            escaped = b"\\" in rest
            file.write(head + text + (rest if escaped or not k else rest.translate(letters)))


def peak(data: Path, work: Path, folder: Path) -> None:
    """One scan for 400 texts, and the peak memory of this process."""
    search = asked(texts(data, 400), *sorted(folder.glob("*.jsonl")))
    shutil.rmtree(work / "memory.parts", ignore_errors=True)
    began = time.perf_counter()
    room.scan(search, work / "memory.parts")
    took = time.perf_counter() - began
    size = sum(one.size for one in search.files) / 1e6
    print(json.dumps({"MB": round(size), "peak MB": status("VmHWM") // 1000, "MB/s": round(size / took, 1)}))


def measured(part: str, options: argparse.Namespace) -> dict[str, Any]:
    """What a part came to."""
    name, _, rest = part.partition("-")
    if name == "speed":
        kind, _, number = rest.partition("-")
        return speed(options.data, options.work, kind=kind, number=int(number))
    if name == "grep":
        return grep(options.data, options.work, number=int(rest))
    plain: dict[str, Callable[..., dict[str, Any]]] = {"memory": memory}
    return plain[part](options.data, options.work, large=options.large)


def main() -> None:
    """Measure the parts that are named."""
    every = [*(f"speed-{k}-{n}" for k in FORMATS for n in SIZES)]
    every += [*(f"grep-{n}" for n in SIZES), "memory"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=[])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("/tmp/scanbench"))
    parser.add_argument("--large", type=int, default=10)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--peak", type=Path)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.peak:
        peak(options.data, options.work, options.peak)
        return
    wanted = [
        one for one in every if any(one == part or one.startswith(f"{part}-") for part in options.parts)
    ]
    unknown = [
        part for part in options.parts if not any(one == part or one.startswith(f"{part}-") for one in every)
    ]
    if unknown or not wanted:
        parser.error(f"name parts of {', '.join(every)}")
    for part in wanted:
        found = read_results(RESULT) if RESULT.exists() else {"parts": {}}
        if not options.again and found["parts"].get(part, {}).get("commit") == commit():
            continue
        told = measured(part, options)
        found = read_results(RESULT) if RESULT.exists() else {"parts": {}}
        found["machine"] = machine()
        found["parts"][part] = {
            **told,
            "commit": commit(),
            "command": f"python -m benchmarks.search.scan {part}",
        }
        write_results(RESULT, found)
        print(part, json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
