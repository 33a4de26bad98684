"""Real texts to measure on: benchmark data beside the checkout, else the docstrings of the standard library."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def some_texts(number: int) -> tuple[str, list[str]]:
    """A name and that many texts: ArxivMIA abstracts where they lie beside the checkout, else `stdlib`."""
    path = DATA / "arxiv_mia.jsonl.gz"
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as file:
            texts = [json.loads(line)["text"] for line, _ in zip(file, range(2000), strict=False)]
        step = max(1, len(texts) // number)
        return "ArxivMIA abstracts", texts[::step][:number]
    from pretrace import open_corpus

    texts = [text.text for text in open_corpus("stdlib").texts]
    step = max(1, len(texts) // number)
    return "stdlib docstrings", texts[::step][:number]
