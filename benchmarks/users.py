"""What four users read, and how long they wait: `python -m benchmarks.users --demo FOLDER`.

FOLDER is what `scripts/demo` leaves (a small model, and the texts that it read). An author without control documents
and one with them, an owner who checks a benchmark in CI, a researcher who wants a table, and an arbiter who checks a
result: each command is run as they would, in a folder of their own. evidence/users.json has for each its
exit code, the words that it said, the seconds, and its last line. The clicks in the page are counted by
tests/plugins/serve/test_browser.py.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import RESULTS, write_results
from benchmarks.machine import commit, machine

RESULT = RESULTS / "users.json"
NOUNS = [
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
]
DONE = ["painted", "sold", "found", "lost", "carried", "opened", "closed", "broke", "mended", "hid"]


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


CHECK = "--model LATER --score ref --reference-model DEMO/model --placebo SIBLING --power --power-args epochs=32 --out"
"""A flagging as a model owner makes it who has an earlier checkpoint and a sibling, in CI."""
WALKS = (
    ("author without control documents", "ask items.jsonl --model DEMO/model"),
    ("author with control documents", "ask items.jsonl --model DEMO/model --controls known.jsonl --out A"),
    ("arbiter", "runs verify A/audit"),
    ("researcher", "evaluate DEMO/model/texts.jsonl --model DEMO/model --out R"),
    ("researcher's table", "runs table R --latex"),
    (
        "owner, before anything is read",
        "flag items.jsonl --controls known.jsonl --model DEMO/model --out F --dry-run",
    ),
    ("owner, in CI", "flag items.jsonl --controls known.jsonl --model DEMO/model --out F --power"),
    ("owner, makes a later model", "plant other.jsonl --model DEMO/model --epochs 1 --out LATER"),
    ("owner, makes its sibling", "plant more.jsonl --model DEMO/model --epochs 1 --out SIBLING"),
    (
        "owner with an earlier checkpoint and a sibling",
        f"flag items.jsonl --controls known.jsonl {CHECK} G",
    ),
    ("owner, with as many as that asks for", f"flag many.jsonl --controls many-known.jsonl {CHECK} H"),
)
"""Who gives a command, and the command, in order."""


def main() -> None:
    """Run all walks and write what they gave."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--demo", type=Path, required=True)
    demo = parser.parse_args().demo.resolve()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed, (name, number) in enumerate(
            (("items", 200), ("known", 400), ("other", 300), ("more", 300))
        ):
            written(Path(folder) / f"{name}.jsonl", number, seed)
        alone = {**os.environ, "PRETRACE_CACHE": str(Path(folder) / "cache")}
        for who, command in WALKS:
            start = time.monotonic()
            words = [sys.executable, "-m", "pretrace", *command.replace("DEMO", str(demo)).split()]
            ended = subprocess.run(words, cwd=folder, env=alone, capture_output=True, text=True, check=False)
            found = {
                "code": ended.returncode,
                "words": len(ended.stdout.split()),
                "seconds": round(time.monotonic() - start, 1),
                "last line": "".join(ended.stdout.strip().splitlines()[-1:]).replace(str(demo), "DEMO"),
            }
            rows.append({"who": who, "command": command, **found})
            print(rows[-1], flush=True)
            if asked := re.search(r"needs about ([\d,]+) texts and ([\d,]+) known", ended.stdout):
                for seed, name in enumerate(("many", "many-known")):
                    some = int(asked[seed + 1].replace(",", ""))
                    written(Path(folder) / f"{name}.jsonl", round(1.02 * some), seed)
    made = {"machine": machine(), "commit": commit(), "rows": rows}
    write_results(RESULT, made)


if __name__ == "__main__":
    main()
