"""Runs the same commands with two states of this repository and compares all that they write and print.

OLD and NEW are checkout folders, commits or branches. Both are run with the same Python and packages, one thread, the
same texts and a cache of their own. Tables are compared cell by cell to the last bit, JSON key by key, exit codes and
printed text as they are. One line says how each file compares; HTML and pictures are listed and not counted.
Leaves with 0 where all is equal, 1 where something differs, 2 for a wrong argument.

With --work DIR the runs are kept, and a state whose `src` is committed is not run again. A state that is compared
with itself is run twice: what differs then is not deterministic.
"""

from __future__ import annotations

import argparse
import json
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from outputs_of_state import STEPS, NoStateError, State, Step, checked_out, run_state, state_of

IGNORED = {
    "time": "when it was run",
    "timings": "how long each part of an audit took",
    "versions": "pretrace's own is among them; those of the other packages are the same for both",
}
"""Keys of a JSON that may differ, at any depth, and why."""
IGNORED_ABOVE = {"sha256": "of the JSON it stands in, whose time and timings it covers"}
"""The same at the top of a JSON only: further down these names hold hashes of texts and tables, which count."""
RENDERED = {".html", ".png", ".svg"}


def bits(value: Any) -> Any:
    """A cell in a form that is equal only where all bits are; every NaN is the same."""
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("<d", value)
    if isinstance(value, list | tuple):
        return [bits(one) for one in value]
    if isinstance(value, dict):
        return {name: bits(one) for name, one in value.items()}
    return (type(value).__name__, value)


def differing_table(old: Path, new: Path) -> str:
    """The first cell in which two parquet tables differ, "" where none does."""
    one, two = pq.read_table(old), pq.read_table(new)
    columns = [[(field.name, str(field.type)) for field in table.schema] for table in (one, two)]
    if columns[0] != columns[1]:
        return f"columns {columns[0]} / {columns[1]}"
    if one.num_rows != two.num_rows:
        return f"rows {one.num_rows} / {two.num_rows}"
    for name in one.column_names:
        cells = zip(one[name].to_pylist(), two[name].to_pylist(), strict=True)
        for row, (a, b) in enumerate(cells):
            if bits(a) != bits(b):
                return f"row {row}, column {name}: {a!r} / {b!r}"
    return ""


def differing_key(old: Any, new: Any, *, new_keys: bool, at: str = "") -> str:
    """The first key whose values differ, with both, "" where none does; ignored keys are left out."""
    if isinstance(old, dict) and isinstance(new, dict):
        ignored = IGNORED.keys() | (set() if at else IGNORED_ABOVE.keys())
        for name in sorted((old.keys() | new.keys()) - ignored):
            key = f"{at}.{name}" if at else name
            if name not in new or (name not in old and not new_keys):
                return f"key {key} only in {'NEW' if name in new else 'OLD'}"
            if name in old and (found := differing_key(old[name], new[name], new_keys=new_keys, at=key)):
                return found
        return ""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        found = (
            differing_key(a, b, new_keys=new_keys, at=f"{at}[{i}]")
            for i, (a, b) in enumerate(zip(old, new, strict=True))
        )
        return next(filter(None, found), "")
    return "" if bits(old) == bits(new) else f"key {at}: {str(old)[:80]} / {str(new)[:80]}"


def differing_array(old: Path, new: Path) -> str:
    """The first array in which two .npz files differ, "" where none does."""
    with np.load(old) as one, np.load(new) as two:
        for name in sorted({*one.files, *two.files}):
            if name not in one.files or name not in two.files:
                return f"array {name} only in {'OLD' if name in one.files else 'NEW'}"
            if one[name].dtype != two[name].dtype or one[name].tobytes() != two[name].tobytes():
                return f"array {name}"
    return ""


def differing_line(old: bytes, new: bytes) -> str:
    """The first line in which two files or printed texts differ, "" where they are the same bytes."""
    if old == new:
        return ""
    lines = old.splitlines(), new.splitlines()
    for number, (a, b) in enumerate(zip(*lines, strict=False), start=1):
        if a != b:
            return f"line {number}: {a[:80]!r} / {b[:80]!r}"
    return f"lines {len(lines[0])} / {len(lines[1])}"


def compare_file(name: str, old: Path, new: Path, *, new_keys: bool) -> str:
    """How the files `name` of two folders differ, "" where they are equal; names of the folders are no difference."""
    if name.endswith(".parquet"):
        return differing_table(old / name, new / name)
    if name.endswith(".npz"):
        return differing_array(old / name, new / name)
    one, two = ((root / name).read_bytes().replace(str(root).encode(), b"RUN") for root in (old, new))
    if name.endswith(".json"):
        return differing_key(json.loads(one), json.loads(two), new_keys=new_keys)
    return differing_line(one, two)


def compare_folders(
    old: Path, new: Path, *, without: Sequence[str] = (), new_keys: bool = False, strict: bool = False
) -> Iterator[tuple[str, bool]]:
    """A line for each file below either folder, but not below `without`, and whether it counts as a difference."""
    files = [
        {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} for root in (old, new)
    ]
    for name in sorted(name for name in files[0] | files[1] if Path(name).parts[0] not in without):
        rendered = Path(name).suffix in RENDERED and not strict
        if name not in files[0] or name not in files[1]:
            yield f"only in {'OLD' if name in files[0] else 'NEW'}: {name}", True
        elif not (found := compare_file(name, old, new, new_keys=new_keys)):
            yield f"equal: {name}", False
        elif rendered:
            yield f"differs (rendered, not counted): {name}", False
        else:
            yield f"differs: {name}: {found}", True


def compare_step(step: Step, old: State, new: State) -> tuple[str, bool]:
    """A line for a step's exit codes and printed text, and whether it counts as a difference."""
    one, two = (json.loads((s.place / "steps" / f"{step.name}.json").read_bytes()) for s in (old, new))
    codes = one["exit_code"], two["exit_code"]
    if codes[0] != codes[1] or codes[0] not in step.codes:
        return (
            f"differs: pretrace {step.arguments[0]} ({step.name}): exit codes {codes[0]} / {codes[1]}",
            True,
        )
    found = differing_line(one["printed"].encode(), two["printed"].encode())
    name = f"pretrace {step.arguments[0]} ({step.name}): exit code {codes[0]} and what it prints"
    return (f"differs: {name}: {found}", True) if found else (f"equal: {name}", False)


def compare(old: State, new: State, steps: Sequence[Step], *, new_keys: bool, strict: bool) -> int:
    """Print how all steps compare; the number of differences."""
    lines = [compare_step(step, old, new) for step in steps]
    left_out = [step.name for step in STEPS if step not in steps]
    lines += compare_folders(old.run, new.run, without=left_out, new_keys=new_keys, strict=strict)
    for line, _ in lines:
        print(line)
    return sum(counts for _, counts in lines)


def parsed() -> argparse.Namespace:
    """The command line; leaves with 2 where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="compare-outputs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", metavar="OLD", help="a checkout folder, a commit or a branch")
    parser.add_argument("new", metavar="NEW", help="the same")
    parser.add_argument("--work", type=Path, help="folder that keeps the runs; without it they are deleted")
    parser.add_argument(
        "--python", default=sys.executable, help="Python that runs both (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="leave the demo out")
    parser.add_argument(
        "--allow-new-keys", action="store_true", help="NEW's JSON may have keys that OLD's lacks"
    )
    parser.add_argument("--strict", action="store_true", help="HTML and pictures count, too")
    asked = parser.parse_args()
    if shutil.which(asked.python) is None:
        parser.error(f"no Python at {asked.python}")
    return asked


def main() -> int:
    """0 where all is equal, 1 where something differs, 2 for a wrong argument."""
    asked = parsed()
    steps = [step for step in STEPS if not (asked.quick and step.name == "demo")]
    with ExitStack() as stack:
        work = (asked.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))).resolve()
        try:
            old, new = (
                state_of(stack.enter_context(checked_out(given)), work) for given in (asked.old, asked.new)
            )
            if new.place == old.place:  # a state against itself
                new = replace(new, place=old.place.with_name(f"{old.place.name}-again"))
            for state in (old, new):
                run_state(state, steps, asked.python)
        except NoStateError as error:
            print(f"compare-outputs: {error}", file=sys.stderr)
            return 2
        differences = compare(old, new, steps, new_keys=asked.allow_new_keys, strict=asked.strict)
    print(f"{differences} differences" if differences else "All is equal.")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
