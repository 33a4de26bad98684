"""How often the audit's test with control documents rejects where nobody read anything, by language and by code.

Six languages: the messages of Vim's catalogues (`/usr/share/vim`, Debian's package vim-runtime), joined in their order
to documents of 300 bytes. Three programming languages: C headers, Perl's own modules (`/usr/share/perl`) and
modules of Python's standard library, 600 characters from the middle of a file, a file a document. No text enters
the repository.

The documents of a kind are divided at random into 50 that stand for the suspect ones and 50 that stand for controls, so
that any model is innocent of the difference, whatever it read. They are read once; the halves are drawn 2,000 times,
and the test of the audit without a placebo (`min_k_plus_plus`, one value a document, 199 permutations) is made on each.
A second row is not exchangeable: suspect documents are drawn from the first half of the source, controls from the last.
What the test says there is no membership either; `words` is how well a classifier of words tells the two apart, which
the audit looks at first (0.60 and beyond chance stops it).

`python -m benchmarks.audits.languages [--model smollm2]` writes benchmarks/results/languages.json, a model at a time.
"""

from __future__ import annotations

import argparse
import re
import struct
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.experiments import RESULTS, Ledger, explained
from pretrace import Options, PretraceError, detect, open_model
from pretrace.baselines.blind import bag_of_words
from pretrace.statistics.intervals import share_interval
from pretrace.statistics.permutation import two_sample
from pretrace.statistics.roc import auc
from pretrace.types import Corpus, Doubles, Text

LANGUAGES = {
    "German": "de", "French": "fr", "Spanish": "es", "Russian": "ru", "Japanese": "ja", "Chinese": "zh_CN.UTF-8",
}  # fmt: skip
SIDE, DOCUMENTS, DRAWS, PERMUTATIONS = 50, 200, 2_000, 199
BYTES, CHARACTERS = 300, 600
SETTINGS = {"side": SIDE, "documents": DOCUMENTS, "draws": DRAWS, "permutations": PERMUTATIONS}


def catalogue(body: bytes) -> Iterator[tuple[str, str]]:
    """The messages of a file of GNU gettext with their translations (the first of several forms). The module of the
    standard library reads no header in another encoding than UTF-8."""
    order = "<" if body[:4] == b"\xde\x12\x04\x95" else ">"
    number, keys, values = struct.unpack_from(f"{order}3I", body, 8)

    def part(table: int, i: int) -> bytes:
        length, start = struct.unpack_from(f"{order}2I", body, table + 8 * i)
        return body[start : start + length].partition(b"\0")[0]

    encoding = re.search(rb"charset=([\w-]+)", part(values, 0))
    name = encoding.group(1).decode() if encoding else "utf-8"
    for i in range(number):
        yield part(keys, i).decode(name, "replace"), part(values, i).decode(name, "replace")


def messages(language: str) -> list[str]:
    """Documents of messages in their order."""
    found = sorted(Path("/usr/share/vim").glob(f"vim*/lang/{language}/LC_MESSAGES/vim.mo"))
    if not found:
        raise SystemExit(f"no Vim catalogue of {language} under /usr/share/vim: install vim-runtime.")
    made, open_ = [], ""
    for key, said in catalogue(found[-1].read_bytes()):
        if key and said.strip() and said != key:
            open_ = f"{open_}\n{said.strip()}".strip()
            if len(open_.encode()) >= BYTES:
                made.append(open_)
                open_ = ""
    return made


def middles(paths: Iterator[Path]) -> list[str]:
    """The middle of each file that is long enough, from the beginning of a line."""
    made: dict[str, None] = {}
    for path in sorted(paths):
        text = path.read_text(encoding="utf-8", errors="replace")
        start = text.find("\n", len(text) // 2) + 1
        part = text[start : start + CHARACTERS]
        if len(part) == CHARACTERS and part.count("\n") >= 5:  # not a file that a program made smaller
            made.setdefault(part)
    return list(made)


def kinds() -> dict[str, Callable[[], list[str]]]:
    """What makes the documents of each kind."""
    library = Path(sysconfig.get_path("stdlib"))
    own = {name: (lambda code=code: messages(code)) for name, code in LANGUAGES.items()}
    return {
        **own,
        "C": lambda: middles(Path("/usr/include").rglob("*.h")),
        "Perl": lambda: middles(Path("/usr/share/perl").rglob("*.pm")),
        "Python": lambda: middles(one for one in library.rglob("*.py") if "site-packages" not in one.parts),
    }


def drawn(values: Doubles, *, apart: bool) -> list[float]:
    """The p-values of the test on halves drawn at random, or on documents of the first half against the last."""
    rng = np.random.default_rng(0)
    found, half = [], len(values) // 2
    for i in range(DRAWS):
        if apart:
            one, other = rng.permutation(half)[:SIDE], half + rng.permutation(len(values) - half)[:SIDE]
        else:
            order = rng.permutation(len(values))
            one, other = order[:SIDE], order[SIDE : 2 * SIDE]
        found.append(two_sample(values[one], values[other], permutations=PERMUTATIONS, seed=i))
    return found


def measure(kind: str, documents: Sequence[str], model: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The two rows of a kind."""
    if len(documents) < 2 * SIDE:
        raise SystemExit(f"{kind}: {len(documents)} documents here, wanted {2 * SIDE} or more.")
    places = np.unique(np.linspace(0, len(documents) - 1, DOCUMENTS).astype(int))
    texts = [documents[i] for i in places]
    corpus = Corpus(kind, tuple(Text(f"d{i}", text) for i, text in enumerate(texts)))
    run = detect(corpus, open_model(model, dtype="float32"), "min_k_plus_plus", Options(cache=False))
    values = run.column("min_k_plus_plus")
    half = len(texts) // 2
    rows = []
    for how, apart in (("random halves", False), ("first half against last", True)):
        ps = drawn(values, apart=apart)
        rejected = sum(p <= 0.05 for p in ps)
        interval = share_interval(rejected, len(ps))
        one = {"how": how, "runs": len(ps), "rejected": rejected}
        rows.append({**one, "share": [round(v, 4) for v in (interval.value, interval.low, interval.high)]})
    first = np.arange(len(texts)) < half
    words = bag_of_words(texts, first, [str(i) for i in range(len(texts))], seed=0)
    rows[1]["words"] = None if words.scores is None else round(float(auc(words.scores, first)), 3)
    return rows, {"found": len(documents), "read": len(texts), "tokens": int(run.tokens.sum())}


def main() -> None:
    """Measure what is not on file yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--named", help="what the model is called in the file (default: --model)")
    parser.add_argument("--out", type=Path, default=RESULTS / "languages.json")
    given = parser.parse_args()
    makers = kinds()
    ledger = Ledger(given.out, SETTINGS)
    for key in ledger.todo([{"kind": kind, "model": given.named or given.model} for kind in makers]):
        rows, facts = measure(key["kind"], makers[key["kind"]](), given.model)
        ledger.add(key, rows, {**facts, "python": sys.version.split()[0]})
        print(rows, flush=True)


if __name__ == "__main__":
    try:
        main()
    except PretraceError as error:
        raise explained(error) from None
