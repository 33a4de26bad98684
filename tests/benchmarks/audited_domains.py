"""Made-up domains for the tests of the audits' experiments."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

from tiny import SENTENCES

from benchmarks.audits.documents import Setup

POOL = " ".join(SENTENCES).split()
DOMAINS = ("hackernews", "arxiv", "dm_mathematics")
"""One without groups, one in documents of three texts and two periods, and the one kept apart."""


def made_up(name: str, number: int, words: int = 80) -> list[str]:
    """Texts of about 200 tokens, each with its own beginning."""
    draw = random.Random(name)
    return [f"{name} {i} " + " ".join(draw.choices(POOL, k=words)) for i in range(number)]


def write_domains(folder: Path, number: int = 36) -> Path:
    """The files of `DOMAINS` where the experiments look for them; in each a text that is too short and one twice."""
    (folder / "pile").mkdir(parents=True)
    for domain in DOMAINS:
        rows: list[dict[str, Any]] = [{"text": text} for text in made_up(domain, number)]
        if domain == "arxiv":
            rows = [
                {**row, "group": f"paper {i // 3}", "label": int(i < number // 2)}
                for i, row in enumerate(rows)
            ]
        path = folder / ("arxiv_mia" if domain == "arxiv" else f"pile/{domain}")
        with gzip.open(f"{path}.jsonl.gz", "wt", encoding="utf-8") as file:
            for row in (*rows, rows[0], {**rows[0], "text": "too short"}):
                file.write(json.dumps(row) + "\n")
    return folder


def small(model: Path, **more: Any) -> Setup:
    """Everything as small as it can be."""
    sizes: dict[str, Any] = {"documents": 16, "learning": 5, "tokens": 140, "layers": 1, "width": 16}
    return Setup(**{**sizes, "vocabulary": 300, "epochs": 1, "model": str(model), **more})
