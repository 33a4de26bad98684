"""Innocent audits whose control documents were typed, scanned or set less cleanly: `python -m benchmarks.audits.noise`.

100 documents of one kind are dealt out at random, 50 suspect and 50 control documents; then the control documents
alone are given a kind of noise. No model read either side, so each accusation is a mistake. Every document, clean and
with each noise, is read once by every model (`--read MODEL KIND`, into the cache of the work folder); the splits
(`--split`) are audits by the command's own functions on what was read. Models: the packaged SmolLM2; "old", a small
model from scratch, and "new", which is "old" after more text of the same kinds; "other", a small model with its own
vocabulary that read different text; "reader", which is "old" after it read one half of the documents of each kind
once, for what the audit still finds. `--summary` writes evidence/audit_noise.csv.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.audits.documents import Setup
from benchmarks.audits.models import make_base, make_target
from benchmarks.experiments import DATA
from benchmarks.machine import commit, machine
from pretrace import Models, open_corpus, open_model
from pretrace.backends import open_tokenizer
from pretrace.scoring.evidence import open_store, trace
from pretrace.statistics.sensitivity import controls_left_out
from pretrace.types import Backend, Corpus, Quantity, Text
from pretrace.verdicts.audit import checks
from pretrace.verdicts.audit.built import DocumentValues, p_value
from pretrace.verdicts.audit.data import AuditData, beyond
from pretrace.verdicts.audit.settings import AuditSettings
from pretrace.verdicts.audit.snippets import Pieces, Sample, Samples
from pretrace.verdicts.draws import LEAST_DRAWS

KINDS = ("hackernews", "wikipedia_en", "arxiv", "stdlib")
DOCUMENTS, CHARACTERS = 100, 620
MODELS = ("smollm2", "old", "new", "other", "reader")
SETUP = Setup(layers=4, width=192, vocabulary=4096)
SMALLER = Setup(layers=3, width=128, vocabulary=2048, epochs=1)
Rng = np.random.Generator
LEVEL, DRAWS = 0.05, 2000

_NEAR = {
    "q": "wa", "w": "qe", "e": "wr", "r": "et", "t": "ry", "y": "tu", "u": "yi", "i": "uo", "o": "ip", "p": "ol",
    "a": "sq", "s": "ad", "d": "sf", "f": "dg", "g": "fh", "h": "gj", "j": "hk", "k": "jl", "l": "ko", "z": "xa",
    "x": "zc", "c": "xv", "v": "cb", "b": "vn", "n": "bm", "m": "nk",
}  # fmt: skip
_LOOKS = (
    ("rn", "m"), ("m", "rn"), ("c", "e"), ("e", "c"), ("h", "b"), ("b", "h"), ("cl", "d"), ("d", "cl"), ("l", "1"),
    ("i", "l"), ("o", "0"), ("u", "n"), ("n", "u"), ("s", "5"), ("f", "t"), ("t", "f"), ("ii", "n"), ("vv", "w"),
)  # fmt: skip
_EDITS = (
    (r"\b(do|does|did|is|are|was|were|has|have|had|would|could|should)n't\b", r"\1 not"),
    (r"\bcan't\b", "cannot"), (r"\bwon't\b", "will not"), (r"\b(it|that|there|he|she)'s\b", r"\1 is"),
    (r"\b(we|you|they)'re\b", r"\1 are"), (r"\bI'm\b", "I am"), (r"\b(I|we|you|they)'ve\b", r"\1 have"),
    (r"\bin order to\b", "to"), (r"\ba lot of\b", "many"), (r"\butili[sz]e", "use"),
    (r"\bdue to the fact that\b", "as"),
    (r"\bwhich\b", "that"), (r"\b(However|Therefore|Thus|Moreover|Instead|Otherwise) (?!,)", r"\1, "),
    (r"(?<=\w) but ", ", but "), (r"\balso\b", "too"), (r"\bbig\b", "large"), (r"\bget\b", "obtain"),
    (r"\bshow(s?)\b", r"demonstrate\1"), (r"\bmake sure\b", "ensure"), (r"\bcan be used\b", "may be used"),
)  # fmt: skip


def _words(change: Callable[[str, Rng], str], fewest: int = 4) -> Callable[[str, float, Rng], str]:
    """Change a share of the words of so many letters or more."""

    def apply(text: str, share: float, rng: Rng) -> str:
        return re.sub(
            rf"[A-Za-z]{{{fewest},}}", lambda m: change(m[0], rng) if rng.random() < share else m[0], text
        )

    return apply


def _typed(word: str, rng: Rng) -> str:
    """One slip of the keys: two letters exchanged, one left out, doubled, or its neighbour."""
    at = int(rng.integers(1, len(word) - 1))
    slips = (
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
        word[:at] + str(rng.choice(list(_NEAR.get(word[at].lower(), word[at])))) + word[at + 1 :],
    )
    return slips[int(rng.integers(4))]


def _scanned(word: str, rng: Rng) -> str:
    """One letter, or two, taken for what looks like them."""
    able = [(a, b) for a, b in _LOOKS if a in word[1:]]
    if not able:
        return word
    a, b = able[int(rng.integers(len(able)))]
    return word[0] + word[1:].replace(a, b, 1)


def _hyphened(word: str, rng: Rng) -> str:
    at = int(rng.integers(3, len(word) - 2))
    return f"{word[:at]}- {word[at:]}"


def _ligatured(text: str, share: float, rng: Rng) -> str:
    """Ligatures as extraction from PDF leaves them."""
    signs = {"ffi": "\ufb03", "ffl": "\ufb04", "ff": "\ufb00", "fi": "\ufb01", "fl": "\ufb02"}
    return re.sub("ffi|ffl|ff|fi|fl", lambda m: signs[m[0]] if rng.random() < share else m[0], text)


def _curled(text: str, share: float, rng: Rng) -> str:
    """Typographic quotes in place of straight ones, in a share of the documents."""
    if rng.random() >= share:
        return text
    text = re.sub(r"(?<=\w)'(?=\w)|(?<=\S)'", "\u2019", text).replace("'", "\u2018")
    return re.sub(r'(?<!\w)"(?=\S)', "\u201c", text).replace('"', "\u201d")


def _expanded(match: re.Match[str], new: str, share: float, rng: Rng) -> str:
    return match.expand(new) if rng.random() < share else match[0]


def _edited(text: str, share: float, rng: Rng) -> str:
    """What an editor does to contractions, fillers and commas, in a share of the places."""
    for pattern, new in _EDITS:
        text = re.sub(pattern, partial(_expanded, new=new, share=share, rng=rng), text)
    return text


NOISE: dict[str, tuple[Callable[[str, float, Rng], str], tuple[float, ...]]] = {
    "typed": (_words(_typed), (0.01, 0.025, 0.05)),
    "scanned": (_words(_scanned), (0.01, 0.025, 0.05)),
    "hyphens": (_words(_hyphened, 6), (0.01, 0.03)),
    "ligatures": (_ligatured, (0.3, 1.0)),
    "curly quotes": (_curled, (0.3, 1.0)),
    "edited": (_edited, (0.5, 1.0)),
}
CELLS = (
    ("clean", 0.0),
    *((name, shares[-1]) for name, (_, shares) in NOISE.items()),
    *((name, shares[-2]) for name, (_, shares) in NOISE.items()),
    *((name, share) for name, (_, shares) in NOISE.items() for share in shares[:-2]),
)
"""Kinds of noise and shares of words, documents or places, in the order in which they are read."""


@dataclass(frozen=True)
class Bench:
    """The documents, the models and what they read, in a work folder."""

    work: Path
    data: Path = DATA

    def __post_init__(self) -> None:
        os.environ["PRETRACE_CACHE"] = str(self.work / "cache")

    @cached_property
    def divided(self) -> dict[str, tuple[list[str], list[str]]]:
        """Of each kind the documents, cut at a space, and other texts for the models to learn from."""
        found = {}
        for number, kind in enumerate(KINDS):
            if kind == "stdlib":
                corpus = open_corpus("stdlib(min_chars=300)")
            else:
                place = self.data / ("arxiv_mia" if kind == "arxiv" else f"pile/{kind}")
                corpus = open_corpus(f"{place}.jsonl.gz")
            whole: dict[str, str] = {}
            for text in corpus.texts:
                plain = text.text.strip()
                plain = plain.removeprefix("Title: ")
                if len(plain) > len(whole.get(text.document, "")):
                    whole[text.document] = plain
            order = np.random.default_rng([5, number]).permutation(len(whole))
            every = [list(whole.values())[i] for i in order]
            long = [one for one in every if len(one) >= (CHARACTERS if kind != "stdlib" else 500)]
            taken = set(long[:DOCUMENTS])
            cut = [one[:CHARACTERS].rsplit(" ", 1)[0] for one in long[:DOCUMENTS]]
            others = [
                text.text.strip()[:1000]
                for text in corpus.texts
                if text.text.strip().removeprefix("Title: ") not in taken
            ]
            found[kind] = cut, others
        return found

    def documents(self, kind: str, noise: str = "clean", share: float = 0.0) -> list[str]:
        """The documents of a kind with a noise, drawn for each document by its place alone."""
        texts = self.divided[kind][0]
        if noise == "clean":
            return texts
        apply = NOISE[noise][0]
        at = list(NOISE).index(noise), round(1000 * share), KINDS.index(kind)
        return [apply(text, share, np.random.default_rng([*at, i])) for i, text in enumerate(texts)]

    def members(self, kind: str) -> np.ndarray:
        """Which documents "reader" read, bool [documents]."""
        inside = np.random.default_rng([6, KINDS.index(kind)]).permutation(DOCUMENTS) < DOCUMENTS // 2
        return np.asarray(inside)

    def model(self, name: str) -> Backend:
        """A model, trained unless it is there."""
        if name == "smollm2":
            return open_model("smollm2")
        others = {kind: texts for kind, (_, texts) in self.divided.items()}
        folder = self.work / name
        if name in ("old", "other"):
            at = 0 if name == "old" else 300
            texts = [text for some in others.values() for text in some[at : at + 250]]
            if name == "other":  # pages that "old" never saw, and two kinds more
                for more in ("pubmed_abstracts", "stackexchange"):
                    corpus = open_corpus(str(self.data / f"pile/{more}.jsonl.gz"))
                    texts += [text.text[:1000] for text in corpus.texts[:150]]
            make_base(SETUP if name == "old" else SMALLER, texts, folder)
            return open_model(str(folder))
        if name == "new":
            learnt = [text for some in others.values() for text in some[600:720]]
        else:
            learnt = [
                text
                for kind in KINDS
                for text, inside in zip(self.divided[kind][0], self.members(kind), strict=True)
                if inside
            ]
        make_target(SETUP, 0, self.work / "old", [Text(str(i), t) for i, t in enumerate(learnt)], folder)
        return open_model(str(folder))

    def snippets(self, kind: str, noise: str, share: float) -> list[str]:
        """All snippets of these documents, as the command cuts them."""
        texts = tuple(Text(str(i), text) for i, text in enumerate(self.documents(kind, noise, share)))
        pieces = Pieces.of(Corpus(kind, texts), self.spans, 64)
        return [piece.text for some in pieces.documents.values() for piece in some]

    def read(self, name: str, kind: str, cells: slice) -> None:
        """Read every document of a kind in every form with a model; what is on file is not read again."""
        start, model = time.monotonic(), self.model(name)
        print(f"{name}: ready after {time.monotonic() - start:.0f} s", flush=True)
        with open_store(model.fingerprint) as store:
            for noise, share in CELLS[cells]:
                texts = self.snippets(kind, noise, share)
                trace(model, list(dict.fromkeys(texts)), Quantity.LOGP | Quantity.MOMENTS, store=store)
                print(
                    f"{name} {kind} {noise} {share}: {len(texts)} snippets, {time.monotonic() - start:.0f} s",
                    flush=True,
                )

    def values(
        self, kind: str, noise: str, share: float, model: Backend
    ) -> tuple[DocumentValues, DocumentValues]:
        """What a model makes of the documents of a kind, clean and with a noise: its own score, which a target alone is
        judged by, and its mean log-probability a token, which a second model is asked for."""
        sides = []
        for one in (("clean", 0.0), (noise, share)):
            texts = tuple(Text(f"{i:03}", text) for i, text in enumerate(self.documents(kind, *one)))
            pieces = Pieces.of(Corpus(kind, texts), self.spans, 64).documents
            sides.append([Sample(name, piece.text) for name in sorted(pieces) for piece in pieces[name]])
        samples = Samples(tuple(sides[0]), tuple(sides[1]))
        data = AuditData(samples, Models(model), AuditSettings())
        return data.compared_with(None), data.alone(model)

    @cached_property
    def spans(self) -> Callable[[str], npt.NDArray[np.int64]]:
        """How the command cuts texts."""
        return open_tokenizer("smollm2").spans

    def split(self, target: str, second: str, splits: int, kind: str, cells: int) -> Iterator[dict[str, Any]]:
        """So many audits of each of the first cells: a row an audit."""
        models = [self.model(name) for name in (target, second)]
        for noise, share in CELLS[:cells]:
            (own, _), (_, other) = (self.values(kind, noise, share, model) for model in models)
            for turn in range(splits):
                order = np.random.default_rng([8, KINDS.index(kind), turn]).permutation(DOCUMENTS)
                yield {
                    "kind": kind,
                    "noise": noise,
                    "share": share,
                    "target": target,
                    "second": second,
                    "turn": turn,
                    **audited(dealt(own, order), dealt(other, order), turn),
                }


def dealt(values: DocumentValues, order: npt.NDArray[np.int64]) -> DocumentValues:
    """Half of the documents as they are, the other half with their noise."""
    half = len(order) // 2
    names = np.array(values.documents)
    return DocumentValues(
        tuple(names[order[:half]]),
        values.values[order[:half]],
        tuple(names[order[half:]]),
        values.heldout_values[order[half:]],
    )


def audited(own: DocumentValues, other: DocumentValues, seed: int) -> dict[str, Any]:
    """The test, what a second model shows, and the checks of values that withhold the rejection."""
    p = p_value(own, seed=seed, draws=DRAWS)
    row: dict[str, Any] = {"p": p, "rejected": p <= LEVEL, "failed": []}
    if p > LEVEL:
        return row
    asked = p_value(other, seed=seed, draws=DRAWS)
    rest = beyond(own, other, seed=seed)
    left = controls_left_out(own.values, own.heldout_values, LEVEL, permutations=LEAST_DRAWS, seed=seed)
    failed = {
        "second finds it": asked <= LEVEL,
        "not beyond": rest.p > LEVEL,
        "mixture": checks.mixture_check(left or 0, own).status == "failed",
        "spread": checks.spread_check(own, seed=seed).status == "failed",
    }
    return row | {"failed": [name for name, one in failed.items() if one], "multiple": rest.dose}


def summarise(work: Path, place: Path) -> None:
    """Write a row for each noise, share, target and second model: audits, rejected, accused, and what withheld them."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for path in sorted(work.glob("splits-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            cells.setdefault((row["noise"], row["share"], row["target"], row["second"]), []).append(row)
    names = ("second finds it", "not beyond", "mixture", "spread")
    lines = [
        "noise,share,target,second,kinds,audits,rejected,"
        + ",".join(names)
        + ",accused,source,commit,machine"
    ]
    for key, rows in sorted(cells.items()):
        rejected = [row for row in rows if row["rejected"]]
        withheld = [sum(name in row["failed"] for row in rejected) for name in names]
        accused = sum(not row["failed"] for row in rejected)
        counts = [len({row["kind"] for row in rows}), len(rows), len(rejected), *withheld, accused]
        lines.append(
            ",".join(
                map(
                    str,
                    (
                        *key,
                        *counts,
                        "benchmarks/audits/noise.py",
                        commit(),
                        str(machine()["cpu"]).replace(",", " "),
                    ),
                )
            )
        )
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--read", nargs=4, metavar=("MODEL", "KIND", "FIRST", "LAST"))
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--split", nargs=3, metavar=("TARGET", "SECOND", "SPLITS"))
    parser.add_argument("--cells", type=int, default=len(CELLS))
    given = parser.parse_args()
    bench = Bench(given.work, given.data)
    if given.read:
        name, kind, first, last = given.read
        bench.read(name, kind, slice(int(first), int(last)))
    if given.split:
        target, second, number = given.split
        for kind in KINDS:
            path = given.work / f"splits-{target}-{second}-{kind}.jsonl"
            if path.exists():
                continue
            rows = list(bench.split(target, second, int(number), kind, given.cells))
            path.write_text("".join(json.dumps(row, default=bool) + "\n" for row in rows), encoding="utf-8")
            print(path.name, len(rows), flush=True)
    if given.summary:
        summarise(given.work, Path(__file__).parents[2] / "evidence" / "audit_noise.csv")
