"""Commands that are killed, and caches that are damaged: is the result that of a run that nobody disturbed?

    python -m benchmarks.scale.kills            (about ten minutes on two cores; goes on where it was ended)

Each command reads texts with a small random model. By the name of a command: SIGKILL at a random moment, so many times
over, then started again until it ends. `page`: the same for a job of the page, by the page's own *go on*. `caches`: the
cache of a finished run is damaged or withheld, and the command starts again. Equal means that tables hold the same
values, JSON files too but for times and paths, and other files the same bytes; reports, which quote them, are left out.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import RESULTS
from benchmarks.machine import commit, machine
from benchmarks.scale.texts import make_model
from pretrace.results.atomic import atomic_text
from pretrace.web.jobs import Jobs
from pretrace.web.workspace import Workspace

RESULTS = RESULTS / "kills.json"
KILLS = 8
"""Killed so many times, at random moments of the first half of its time; then it may end."""
TEXTS = 80
LONGEST = 120.0  # seconds of a command
Files = dict[str, Any]


def make_inputs(work: Path) -> None:
    """A model and its earlier checkpoint, texts with labels and groups, controls, and a corpus to search."""
    for number, name in enumerate(("model", "earlier")):
        make_model(work / name)
        config = work / name / "config.json"
        longer = {**json.loads(config.read_bytes()), "max_position_embeddings": 2048}
        config.write_text(json.dumps(longer), encoding="utf-8")
        if number:
            _moved(work / name)
    rng = random.Random(3)
    things = ["".join(rng.choices("abcdefghilmnoprstu", k=5)) for _ in range(400)]

    def row(kind: str, i: int) -> dict[str, Any]:
        drawn = random.Random(f"{kind} {i}")
        text = f"The {' '.join(drawn.choices(things, k=140))} in {drawn.randrange(1800, 2000)}."
        label = {} if kind == "known" else {"label": i % 2}
        return {"id": f"{kind}{i}", "text": text, "group": f"{kind}{i}", **label}

    for kind in ("suspect", "control", "known"):
        lines = [json.dumps(row(kind, i)) for i in range(TEXTS)]
        (work / f"{kind}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    corpus = work / "corpus"
    corpus.mkdir()
    for part in range(8):
        rows = [row("suspect" if i % 7 == 0 else f"other{part}-", i) for i in range(TEXTS)]
        (corpus / f"{part:02}.jsonl").write_text(
            "\n".join(json.dumps({"text": one["text"]}) for one in rows), encoding="utf-8"
        )


def _moved(folder: Path) -> None:
    """Other weights in the same form."""
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    save_file({name: one * 0.9 for name, one in load_file(path).items()}, path, metadata={"format": "pt"})


def commands(work: Path) -> dict[str, list[str]]:
    """The command lines, without --out."""
    suspect, control, known = (str(work / f"{kind}.jsonl") for kind in ("suspect", "control", "known"))
    model = ["--model", str(work / "model")]
    placebo = ["--placebo", str(work / "earlier")]
    return {
        "score": ["score", suspect, *model, "--scores", "loss,zlib,min_k,min_k_plus_plus"],
        "evaluate": ["evaluate", suspect, *model, "--scores", "loss,min_k"],
        "flag": ["flag", suspect, "--nonmembers", known, *model, "--score", "loss"],
        "audit": ["audit", suspect, "--heldout", control, *model, *placebo],
        "recite": ["recite", suspect, "--heldout", control, *model, *placebo],
        "scan": ["scan", suspect, "--corpus", str(work / "corpus"), "--workers", "1"],
    }


def started(words: Sequence[str], cache: Path, *, limit: int = 0) -> int:
    """The process of `pretrace WORDS`, forked from this one; its output goes beside the cache. `limit`: no file grows
    beyond so many bytes."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        os.setsid()
        os.environ |= {"PRETRACE_CACHE": str(cache), "HOME": str(cache.parent), "SOURCE_DATE_EPOCH": "0"}
        said = os.open(cache.parent / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(said, 1)
        os.dup2(said, 2)
        if limit:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(number, "wb", closefd=False), "utf-8", write_through=True)
            for number in (1, 2)
        )
        sys.argv = ["pretrace", *words]
        from pretrace.cli import main

        try:
            main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        if sys.exc_info()[0]:
            traceback.print_exc()  # what the interpreter would print
        os._exit(code)


def ended(process: int, seconds: float = LONGEST) -> int:
    """The exit code of a process, negative where a signal ended it: our own after so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        gone, status = os.waitpid(process, os.WNOHANG)
        if gone:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def content(out: Path) -> Files:
    """What a result holds, by file: JSON without times and paths, tables by their columns, other files as they are."""
    found: Files = {}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if path.is_dir() or path.suffix == ".html":
            continue  # a report quotes the rest, and how long it took
        if path.suffix == ".json":
            found[name] = _lasting(json.loads(path.read_bytes()))
        elif path.suffix == ".parquet":
            found[name] = pq.read_table(path).to_pydict()
        else:
            found[name] = path.read_bytes()
    return found


_PASSING = re.compile(
    r"second|tim(e|ing)|date|created|made|hash|sha256|^files$|^out$|given|command|cache|reused|asked|memory|version|speed|folder"
)


def _lasting(value: Any) -> Any:
    """What is the same whenever a command is run: no times, no places, no hashes of what holds them."""
    if isinstance(value, Mapping):
        return {name: _lasting(one) for name, one in value.items() if not _PASSING.search(str(name))}
    return [_lasting(one) for one in value] if isinstance(value, list) else value


def killed(name: str, words: Sequence[str], work: Path, times: int = KILLS) -> dict[str, Any]:
    """A command that is killed so many times, beside one that is not."""
    place = work / f"kills-{name}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    before = time.monotonic()
    code = ended(started([*words, "--out", str(place / "WHOLE")], place / "cache-whole"))
    whole, took = content(place / "WHOLE"), time.monotonic() - before
    rng, out, hit, half = random.Random(name), place / "OUT", 0, 0
    for _ in range(times):
        process = started([*words, "--out", str(out)], place / "cache")
        hit += ended(process, rng.uniform(0.0, took / 2)) == -signal.SIGKILL
        half += out.exists() and content(out) != whole
        if out.exists():
            shutil.rmtree(out)  # it had ended before its moment came
    again = ended(started([*words, "--out", str(out)], place / "cache"))
    left = sorted(one.name for one in place.iterdir() if one.name.startswith((".OUT", "OUT.")))
    found = {
        "seconds": round(took, 1), "kills": hit, "half written": half, "code": code, "code after": again,
        "equal": bool(whole) and content(out) == whole, "files": len(whole), "left behind": left,
    }  # fmt: skip
    shutil.rmtree(place)
    return found


def page(words: Sequence[str], work: Path, times: int = KILLS) -> dict[str, Any]:
    """A job of the page that is killed so many times, and goes on when it is asked to."""
    place = work / "page"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    workspace = Workspace.at(place / "workspace")
    jobs, rng, hit = Jobs(workspace), random.Random("page"), 0
    results = workspace.folder / "results"
    took = LONGEST
    for number in range(2):  # the first one also reads what the second finds in the system's memory
        before = time.monotonic()
        os.environ["PRETRACE_CACHE"] = str(place / f"cache-whole-{number}")
        first = jobs.add(
            "score", (*words, "--out", str(results / f"WHOLE-{number}")), f"results/WHOLE-{number}"
        )
        _over(jobs, first.id)
        took = min(took, time.monotonic() - before)
    whole = content(results / "WHOLE-0")
    os.environ["PRETRACE_CACHE"] = str(place / "cache")
    job = jobs.add("score", (*words, "--out", str(results / "OUT")), "results/OUT")
    for _ in range(times):
        time.sleep(rng.uniform(0.0, took))
        with suppress(ProcessLookupError):
            os.kill(jobs.get(job.id).pid, signal.SIGKILL)
        state = _over(jobs, job.id)
        hit += state == "stopped"
        if state == "done":
            break
        jobs = Jobs(workspace)  # as after a restart of the page
        jobs.resume(jobs.get(job.id))
    state = _over(jobs, job.id)
    found = {
        "kills": hit,
        "state": state,
        "equal": content(results / "OUT") == whole,
        "seconds": round(took, 1),
    }
    shutil.rmtree(place)
    return found


def _over(jobs: Jobs, name: str) -> str:
    """How a job ended."""
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        jobs.tick()
        state = jobs.state(jobs.get(name))
        if state.over:
            return state.name
        time.sleep(0.02)
    raise TimeoutError(jobs.log(jobs.get(name)))


def kept_files(cache: Path) -> list[Path]:
    """The databases of a cache, the largest first."""
    return sorted(cache.rglob("*.sqlite"), key=lambda path: -path.stat().st_size)


def _cut(share: float) -> Callable[[Path], None]:
    def damage(cache: Path) -> None:
        for path in kept_files(cache):
            os.truncate(path, int(path.stat().st_size * share))

    return damage


def _bits(cache: Path) -> None:
    for path in kept_files(cache):
        rng, body = random.Random(path.name), bytearray(path.read_bytes())
        for _ in range(200):
            body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
        path.write_bytes(body)


def _filled(body: bytes) -> Callable[[Path], None]:
    def damage(cache: Path) -> None:
        for path in kept_files(cache):
            path.write_bytes(body)

    return damage


def _told(sql: str) -> Callable[[Path], None]:
    def damage(cache: Path) -> None:
        for path in kept_files(cache):
            connection = sqlite3.connect(path)
            connection.executescript(sql)
            connection.close()

    return damage


def _swapped(cache: Path) -> None:
    """The traces of two texts change places."""
    for path in kept_files(cache):
        connection = sqlite3.connect(path)
        rows = connection.execute("SELECT id, body FROM entries ORDER BY id LIMIT 2").fetchall()
        if len(rows) == 2:
            for (number, _), (_, body) in zip(rows, reversed(rows), strict=True):
                connection.execute("UPDATE entries SET body = ? WHERE id = ?", (body, number))
        connection.commit()
        connection.close()


def _logs(cache: Path) -> None:
    for path in kept_files(cache):
        path.with_name(f"{path.name}-wal").write_bytes(os.urandom(100_000))


def _folders(cache: Path) -> None:
    for path in kept_files(cache):
        path.unlink()
        path.mkdir()


def _pipes(cache: Path) -> None:
    for path in kept_files(cache):
        path.unlink()
        os.mkfifo(path)


def _links(cache: Path) -> None:
    for path in kept_files(cache):
        path.unlink()
        path.symlink_to(path.name)


def _emptied(cache: Path) -> None:
    shutil.rmtree(cache)
    cache.mkdir()


def _gone(cache: Path) -> None:
    shutil.rmtree(cache)
    cache.write_bytes(b"no folder")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "cut to nothing": _cut(0.0),
    "cut to a half": _cut(0.5),
    "200 bits turned": _bits,
    "text in its place": _filled(b"this is no database\n" * 100),
    "zeros in its place": _filled(bytes(100_000)),
    "of another version": _told("UPDATE meta SET value = X'3939' WHERE name = 'format'"),
    "of another model": _told("UPDATE meta SET value = X'78' WHERE name = 'fingerprint'"),
    "without its table": _told("DROP TABLE entries"),
    "with another table": _told("DROP TABLE entries; CREATE TABLE entries (x TEXT)"),
    "bodies of another kind": _told("UPDATE entries SET body = 'text'"),
    "empty bodies": _told("UPDATE entries SET body = X''"),
    "two texts changed over": _swapped,
    "a log of garbage": _logs,
    "a folder in its place": _folders,
    "a pipe in its place": _pipes,
    "a link to itself in its place": _links,
    "a file in place of the cache": _gone,
}


@contextmanager
def held(cache: Path) -> Iterator[None]:
    """Every database of a cache is held by another writer."""
    connections = [sqlite3.connect(path, isolation_level=None) for path in kept_files(cache)]
    for one in connections:
        one.execute("BEGIN IMMEDIATE")
    yield
    for one in connections:
        one.close()


def caches(words: Sequence[str], work: Path) -> dict[str, Any]:
    """What becomes of a command whose cache is damaged or withheld: exit code, and whether its result is the same."""
    place = work / "caches"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    ended(started([*words, "--out", str(place / "WHOLE")], place / "sound"))
    whole, found = content(place / "WHOLE"), {}

    def case(name: str, damage: Callable[[Path], None], *, limit: int = 0) -> None:
        here = place / re.sub(r"\W", "-", name)
        here.mkdir()
        shutil.copytree(place / "sound", here / "cache")
        damage(here / "cache")
        process = started([*words, "--out", str(here / "OUT")], here / "cache", limit=limit)
        code, said = ended(process), (here / "said.txt").read_text(encoding="utf-8", errors="replace")
        there = (here / "OUT").exists()
        found[name] = {
            "code": code,
            "equal": content(here / "OUT") == whole if there else None,
            "traceback": "Traceback" in said,
            "said": next(
                (line[:200].replace(str(here), "…") for line in said.splitlines() if "cache" in line), ""
            ),
        }
        with suppress(OSError):
            shutil.rmtree(here)

    for name, damage in DAMAGES.items():
        case(name, damage)
    case("no file may grow beyond 200 kB", _emptied, limit=200_000)
    return found


def locked(words: Sequence[str], work: Path) -> dict[str, Any]:
    """A cache that another process writes to, for longer than anyone waits."""
    place = work / "locked"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    ended(started([*words, "--out", str(place / "WHOLE")], place / "cache"))
    before = time.monotonic()
    with held(place / "cache"):
        code = ended(started([*words, "--out", str(place / "OUT")], place / "cache"))
    said = (place / "said.txt").read_text(encoding="utf-8")
    lines = [line for line in said.splitlines() if "held by another" in line]
    found = {
        "code": code, "seconds": round(time.monotonic() - before), "result": (place / "OUT").exists(),
        "said": bool(lines), "traceback": "Traceback" in said,
    }  # fmt: skip
    shutil.rmtree(place)
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--times", type=int, default=KILLS, help="kills of each command")
    asked.add_argument(
        "--only", nargs="*", default=None, help="parts: commands by name, page, caches, locked"
    )
    given = asked.parse_args()
    for name in ("pretrace.cli.commands", "pretrace.scoring.plan", "pretrace.backends.huggingface"):
        __import__(name)
    found: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        work = Path(folder)
        make_inputs(work)
        lines = commands(work)
        parts: dict[str, Callable[[], dict[str, Any]]] = {
            **{name: (lambda n=name: killed(n, lines[n], work, given.times)) for name in lines},  # type: ignore[misc]
            "page": lambda: page(lines["score"], work, given.times),
            "caches": lambda: caches(lines["score"], work),
            "locked": lambda: locked(lines["score"], work),
        }
        for name, part in parts.items():
            if (name in found and given.only is None) or (given.only is not None and name not in given.only):
                continue
            found[name] = part()
            print(name, json.dumps(found[name]), flush=True)
            found |= {"machine": machine(), "commit": commit(), "texts": TEXTS}
            atomic_text(RESULTS, json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
