"""The tables and figures of the four papers, by name: `python -m benchmarks.papers fsd.table1 --model smollm2`.

Prints what the paper has, what ours is and the difference, and writes both to a file of results. Killed at any
time, the same command goes on: finished pieces are on file, traces and adapters in the cache. `--list` names all
tables and says which can run on what is here; `--page` writes evidence/papers.md from the
results on file.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from benchmarks import RESULTS
from benchmarks.experiments import Ledger, Row, explained
from benchmarks.papers import detection
from benchmarks.papers.comparing import compared, printed
from benchmarks.papers.data import SPLITS, Given
from benchmarks.papers.detection import Piece, pieces
from benchmarks.papers.figures import Table, tables
from pretrace import PretraceError

FOLDER = RESULTS / "papers"


def listed() -> None:
    """Print every table: its name, what it is, and whether it runs here."""
    for name, table in tables().items():
        print(f"{name:22} {table.kind:10} here: {table.here}")
        print(f"{'':22} {table.what}")


def path_of(table: Table, given: Given, folder: Path) -> Path:
    """The file of results: named after the table and all that sets a run of it apart."""
    parts = [table.name, Path(given.model).name, given.on or "", *given.instead]
    parts += [f"limit {given.limit}" if given.limit else "", given.split if given.split != SPLITS[0] else ""]
    parts += [f"seed {given.seed}" if given.seed else ""]
    slugs = (re.sub(r"[^\w.]+", "-", part).strip("-") for part in parts if part)
    return folder / f"{'--'.join(slugs)}.json"


def settings_of(table: Table, given: Given) -> Row:
    """What the results of one file must agree in."""
    paths = {name: str(path.name) for name, path in {**given.data, **given.counts}.items()}
    return {
        "table": table.name,
        **{name: getattr(given, name) for name in ("model", "dtype", "limit", "on", "split", "seed")},
        **{"instead": dict(given.instead), "files": paths},
        **{name: getattr(given, name) for name in ("reference_model", "neighbors", "generator", "shuffles")},
    }


def run(table: Table, given: Given, path: Path, *, fresh: bool = False) -> None:
    """Measure what is not on file yet, write and print. SystemExit for a table that has nothing to run."""
    wanted = [one for one in (*table.figures, *table.drawn) if one.metric in detection.METRICS]
    if table.by or table.kind != "detection" or not wanted:
        raise SystemExit(f"{table.name} is not run by this command: {table.by or table.runs}")
    bench = detection.Bench(given)
    ledger, failed = Ledger(path, settings_of(table, given), fresh=fresh), []
    todo = {tuple(piece.key.values()): piece for piece in pieces(wanted, given)}
    for key in ledger.todo([piece.key for piece in todo.values()]):
        piece: Piece = todo[tuple(key.values())]
        try:
            ledger.add(key, *bench.measure(piece))
        except PretraceError as error:
            print(f"  not run: {error}", flush=True)
            failed.append({**key, "score": "", "kind": "failed", "why": str(error)})
    rows = compared(wanted, [*ledger.content["rows"], *failed], given)
    if ledger.content["rows"]:
        ledger.save(paper=table.paper, what=table.what, compared=rows)
    printed(table, rows, given)
    if failed and not ledger.content["rows"]:
        raise SystemExit(f"error: nothing of {table.name} could be measured: see why above.")


def pairs_of(given: list[str], option: str) -> dict[str, str]:
    """NAME=VALUE options as a mapping; SystemExit where one is not of that form."""
    made = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not (name and equals and value):
            raise SystemExit(f"error: {option} wants NAME=VALUE, found {one!r}.")
        made[name.strip()] = value.strip()
    return made


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as fsd.table1, dc_pdd.figure2")
    parser.add_argument("--list", action="store_true", help="name all tables and stop")
    parser.add_argument("--page", action="store_true", help="write the page from the results on file")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--dtype", default="bfloat16", choices=("float32", "bfloat16"))
    parser.add_argument("--limit", type=_number, help="at most so many texts of a corpus; told in the result")
    parser.add_argument("--on", help="a corpus to judge in place of the paper's, such as arxivtection")
    parser.add_argument(
        "--instead", nargs="*", default=[], metavar="CORPUS=SOURCE", help="another source for a corpus"
    )
    parser.add_argument("--data", nargs="*", default=[], metavar="CORPUS=PATH", help="a benchmark's files")
    parser.add_argument(
        "--counts", nargs="*", default=[], metavar="NAME=PATH", help="reference corpora of dc_pdd"
    )
    parser.add_argument("--split", default=SPLITS[0], choices=SPLITS, help="how texts are set aside")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reference-model", help="the smaller model of ref")
    parser.add_argument("--neighbors", help="what proposes words for neighbor: a masked model, or causal")
    parser.add_argument("--generator", default="smollm2", help="what held-out texts are written by")
    parser.add_argument("--shuffles", type=int, default=20, help="fits on shuffled labels")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the results")
    parser.add_argument("--fresh", action="store_true", help="begin anew, whatever the file holds")
    asked = parser.parse_args()
    if not (asked.tables or asked.list or asked.page):
        parser.error("name a table, or ask for --list or --page")
    return asked


def _number(text: str) -> int:
    """A number of texts."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of texts is 1 or more, found {text!r}")
    return int(text)


def main() -> None:
    """Do what was asked."""
    asked = parsed()
    if asked.list:
        listed()
    known = tables()
    for name in asked.tables:
        if name not in known:
            raise SystemExit(f"error: no table is called {name!r}: --list names them all.")
    given = Given(
        model=asked.model,
        dtype=asked.dtype,
        data={name: Path(value) for name, value in pairs_of(asked.data, "--data").items()},
        counts={name: Path(value) for name, value in pairs_of(asked.counts, "--counts").items()},
        limit=asked.limit,
        on=asked.on,
        instead=pairs_of(asked.instead, "--instead"),
        split=asked.split,
        seed=asked.seed,
        reference_model=asked.reference_model,
        neighbors=asked.neighbors,
        generator=asked.generator,
        shuffles=asked.shuffles,
    )
    for name in asked.tables:
        run(known[name], given, path_of(known[name], given, asked.out), fresh=asked.fresh)
    if asked.page:
        from benchmarks.papers.page import write_page

        print(f"wrote {write_page(asked.out)}")


if __name__ == "__main__":
    try:
        main()
    except PretraceError as error:
        raise explained(error) from None
