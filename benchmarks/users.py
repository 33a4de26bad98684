"""What four users read, and how long they wait: `python -m benchmarks.users --demo FOLDER`.

FOLDER is what `scripts/demo` leaves (a small model, and the texts that it read). An author without control documents
and one with them, an owner who checks a benchmark in CI, a researcher who wants a table, and an arbiter who checks a
result: each command is run as they would, in a folder of their own. benchmarks/results/users.json has for each its
exit code, the words that it said, the seconds, and its last line. The clicks in the page are counted by
tests/web/test_browser.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.machine import commit, machine

RESULT = Path(__file__).parent / "results" / "users.json"
NOUNS = (
    "harbour",
    "meadow",
    "lantern",
    "baker",
    "river",
    "window",
    "letter",
    "garden",
    "market",
    "bridge",
    "mill",
)
DONE = ("painted", "sold", "found", "lost", "carried", "opened", "closed", "broke", "mended", "hid")


def written(place: Path, number: int, seed: int) -> None:
    """Write so many made-up items, a row each."""
    random = np.random.default_rng(seed)
    rows = (
        {
            "text": " ".join(
                f"The {random.choice(NOUNS)} was {random.choice(DONE)} by the {random.choice(NOUNS)} "
                f"in {random.integers(1700, 2000)}."
                for _ in range(8)
            )
        }
        for _ in range(number)
    )
    place.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def walks(demo: Path) -> dict[str, tuple[str, ...]]:
    """The commands, in order, by who gives them."""
    model, small = str(demo / "model"), "items.jsonl"
    return {
        "author without control documents": ("ask", small, "--model", model),
        "author with control documents": (
            "ask",
            small,
            "--model",
            model,
            "--unseen",
            "known.jsonl",
            "--out",
            "A",
        ),
        "owner, before anything is read": (
            *("flag", small, "--nonmembers", "known.jsonl", "--model", model, "--out", "F", "--dry-run"),
        ),
        "owner, in CI": (
            "flag",
            small,
            "--nonmembers",
            "known.jsonl",
            "--model",
            model,
            "--out",
            "F",
            "--power",
        ),
        "researcher": ("evaluate", str(demo / "model" / "texts.jsonl"), "--model", model, "--out", "R"),
        "researcher's table": ("runs", "table", "R", "--latex"),
        "arbiter": ("runs", "verify", "A/audit"),
    }


def main() -> None:
    """Run all walks and write what they gave."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--demo", type=Path, required=True)
    demo = parser.parse_args().demo.resolve()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed, name in enumerate(("items", "known")):
            written(Path(folder) / f"{name}.jsonl", 150, seed)
        for who, words in walks(demo).items():
            start = time.monotonic()
            command = [sys.executable, "-m", "pretrace", *words]
            ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            said = ended.stdout.split()
            last = ended.stdout.strip().splitlines()[-1:]
            shown = " ".join(word.replace(str(demo), "DEMO") for word in words)
            seconds = round(time.monotonic() - start, 1)
            rows.append(
                {
                    "who": who,
                    "command": shown,
                    "code": ended.returncode,
                    "words": len(said),
                    "seconds": seconds,
                }
                | {"last line": "".join(last).replace(str(demo), "DEMO")}
            )
            print(rows[-1], flush=True)
    made = {"machine": machine(), "commit": commit(), "rows": rows}
    RESULT.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
