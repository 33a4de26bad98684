"""What models with known members say of texts: `python -m benchmarks.audits.readings STAGE --work FOLDER`.

Everything that takes a model is done here, once, and what the models said is kept token by token; every test of
every design is then made from these numbers in minutes (`benchmarks.audits.errors`). Stages, in their order; each
can be killed, goes on with the first piece that is not on file, and can be shared by several processes with
`--domains`:

- `prepare`: documents divided and cut, from `--data`
- `bases`: a model from scratch
- `pairs`: one generator for all domains, and what it writes in each
- `train`: models trained on known members
- `read`: what all of them say of the texts
- `large`: the same for two copies of SmolLM2
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.audits.documents import (
    DOMAINS,
    KEPT_APART,
    MEASURED,
    PILE,
    Divided,
    Setup,
    all_divided,
    halved,
)
from benchmarks.audits.models import Target, home, make_base, make_target
from benchmarks.experiments import DATA, Spoken
from pretrace import Models, detect, open_model
from pretrace.results.atomic import atomic_bytes, atomic_text, write_atomically
from pretrace.scoring.detect import Options
from pretrace.scoring.evidence import open_store, trace
from pretrace.types import Backend, Corpus, Generator, Pair, Quantity, Sampling, Text
from pretrace.verdicts.audit.data import expressions
from pretrace.verdicts.audit.generation import Draw, complete, tuned_generator
from pretrace.verdicts.audit.settings import GENERATOR
from pretrace.verdicts.audit.snippets import SnippetSettings, cut

ALONE = (
    "loss",
    "zlib",
    *(f"min_k(k={k})" for k in (0.1, 0.2, 0.4)),
    *(f"min_k_plus_plus(k={k})" for k in (0.1, 0.2, 0.4, 1.0)),
)
"""Scores of whole documents under one model, for audits without a placebo."""
CROSS = 100
"""Documents of each other domain that some targets read as well: controls of the wrong kind."""
LEARNT = 40
"""Snippets of each domain that the generator learns from."""
METHOD = GENERATOR.replace("epochs=6", "epochs=2, precision='float32'")
OWN, EARLIER, TUNED = "own", "earlier", "tuned"

Halves = npt.NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Material:
    """The pairs of a domain: of each evaluation document one snippet drawn at random, and its beginning."""

    drawn: tuple[Pair, ...]
    first: tuple[Pair, ...]


LARGE_PART = 24
"""Documents of a domain that a large target is trained on."""
LONGER = ("hackernews", "pubmed_abstracts", "github", "arxiv")
"""Domains whose targets are also trained for two and four epochs."""
STREAM = Target(0, stream=True)
"""A target that read half of every domain; it is audited in all of them."""


def targets(domain: str, seeds: int) -> list[Target]:
    """The targets that are audited in a domain."""
    made = [Target(seed) for seed in range(seeds)]
    made += [Target(0, epochs=epochs) for epochs in (2, 4) if domain in LONGER]
    return made if domain == KEPT_APART else [*made, STREAM]


class Store:
    """The folder of the experiment."""

    def __init__(self, work: Path, setup: Setup) -> None:
        self.work, self.setup = work, setup
        self._divided: dict[str, Divided] = {}

    def prepare(self, data: Path) -> None:
        """Write the divided documents of all domains as one file."""
        found = all_divided(self.setup, data)
        plain = {
            domain: {name: [_plain(text) for text in part.texts] for name, part in parts._asdict().items()}
            for domain, parts in found.items()
        }
        written = json.dumps({"sizes": self.setup.sizes, "domains": plain}).encode()
        atomic_bytes(self.work / "documents.json.gz", gzip.compress(written, mtime=0))

    @property
    def divided(self) -> dict[str, Divided]:
        """The documents of all domains."""
        if not self._divided:
            with gzip.open(self.work / "documents.json.gz", "rt", encoding="utf-8") as file:
                plain = json.load(file)["domains"]
            self._divided = {
                domain: Divided(*(_corpus(domain, parts[name]) for name in Divided._fields))
                for domain, parts in plain.items()
            }
        return self._divided

    def learnt(self, tokens: Backend) -> list[str]:
        """The snippets that the generator learns from: as many of every domain."""
        settings, found = SnippetSettings(most=1), []
        for parts in self.divided.values():
            found += [s.text for s in cut(parts.learning, tokens.spans, settings, seed=0).snippets[:LEARNT]]
        return found

    def generator(self) -> Generator:
        """SmolLM2 with an adapter tuned on the learning documents of all domains."""
        model = self.large()
        return tuned_generator(
            model, self.learnt(model), METHOD, seed=self.setup.seed, on_step=Spoken().on_step
        )

    def large(self) -> Backend:
        """SmolLM2 as the generator and the large targets begin with it."""
        return open_model(self.setup.model)

    def write_pairs(self, domain: str, generator: Generator) -> None:
        """One snippet of each evaluation text with what the generator writes there, and its beginning."""
        path = self.work / f"pairs-{domain}.json"
        if path.exists():
            return
        alone = tuple(replace(text, group="") for text in self.divided[domain].evaluation.texts)
        corpus = Corpus(domain, alone)
        drawn = cut(corpus, generator.spans, SnippetSettings(most=1), seed=self.setup.seed).snippets
        every = cut(corpus, generator.spans, SnippetSettings(most=1000), seed=self.setup.seed).snippets
        tokens = SnippetSettings().tokens
        draw = Draw(tokens - tokens // 2, Sampling(), self.setup.seed)
        written = complete(generator, [s.prefix for s in drawn], draw, progress=Spoken())
        rows = [[s.id, s.document, s.prefix, s.suffix, text] for s, text in zip(drawn, written, strict=True)]
        first = [[s.id, s.document, s.prefix, s.suffix, ""] for s in every if s.id.endswith("#0")]
        atomic_text(path, json.dumps({"drawn": rows, "first": first}))

    def material(self, domain: str) -> Material:
        """The pairs of a domain."""
        found = json.loads((self.work / f"pairs-{domain}.json").read_text(encoding="utf-8"))
        return Material(*(tuple(Pair(*row) for row in found[name]) for name in ("drawn", "first")))

    def folder(self, domain: str, target: Target) -> Path:
        """Where a target lies."""
        return self.work / "targets" / f"{'all' if target.stream else domain}-{target.name}"

    def train(self, domain: str, target: Target) -> None:
        """Train a target on its members, unless it is there."""
        begin = time.perf_counter()
        start: Path | str = self.setup.model if target.large else self.work / home(target.scale).name
        domains = [one for one in self.divided if one != KEPT_APART] if target.stream else [domain]
        halves = [halved(self.divided[one].evaluation, target.seed) for one in domains]
        members = [text for half in halves for text in half.texts if text.member]
        make_target(self.setup, target, start, members, self.folder(domain, target))
        print(f"{self.folder(domain, target).name}: {time.perf_counter() - begin:.1f} s", flush=True)

    def tuned(self, domain: str) -> Path:
        """The base trained on what a generator of this domain would learn from, wholly."""
        folder = self.work / "targets" / f"{domain}-tuned"
        learning = self.divided[domain].learning.texts
        make_target(self.setup, Target(self.setup.seed), self.work / home().name, learning, folder)
        return folder

    def read_beside(self, domain: str) -> None:
        """What the placebos say of a domain's texts."""
        path = self.work / f"beside-{domain}.npz"
        if path.exists():
            return
        base, material, found = home(), self.material(domain), {}
        folders = {OWN: base.name, EARLIER: f"{base.name}-earlier"}
        models = {name: self.work / folder for name, folder in folders.items()} | {TUNED: self.tuned(domain)}
        texts = [text.text for text in self.divided[domain].evaluation.texts]
        for name, folder in models.items():
            model = open_model(str(folder))
            found |= dict(said(model, material.drawn, name))
            if name == OWN:
                found |= dict(alone(model, texts, name))
                found |= dict(said(model, material.first, "first"))
        _save(path, found)

    def write_large(self) -> None:
        """Two copies of SmolLM2, each trained on some documents of every Pile domain, and what they and SmolLM2 say."""
        path = self.work / "large.npz"
        if path.exists():
            return
        found: dict[str, npt.NDArray[Any]] = {}
        for seed in (0, 1):
            part = slice(seed * LARGE_PART, (seed + 1) * LARGE_PART)
            members = [text for name in PILE for text in self.divided[name].evaluation.texts[part]]
            target = Target(seed, large=True)
            make_target(self.setup, target, self.setup.model, members, self.folder("all", target))
        folders = {str(seed): str(self.folder("all", Target(seed, large=True))) for seed in (0, 1)}
        for name, folder in {OWN: self.setup.model, **folders}.items():
            model = open_model(folder)
            for domain in PILE:
                found |= dict(said(model, self.large_pairs(domain), f"{name} {domain}"))
        _save(path, found)

    def large_pairs(self, domain: str) -> list[Pair]:
        """The pairs of the first documents of a domain: two parts to train on, two for controls."""
        first = {text.id for text in self.divided[domain].evaluation.texts[: 4 * LARGE_PART]}
        return [pair for pair in self.material(domain).drawn if pair.document in first]

    def read_target(self, domain: str, target: Target) -> None:
        """What a target says of a domain's texts."""
        path = self.work / f"target-{domain}-{target.name}.npz"
        if path.exists() or not (self.folder(domain, target) / "config.json").is_file():
            return
        model, material = open_model(str(self.folder(domain, target))), self.material(domain)
        corpus = halved(self.divided[domain].evaluation, target.seed)
        found = {"member": np.array([bool(text.member) for text in corpus.texts])}
        found |= dict(said(model, material.drawn, "drawn"))
        if target.epochs == 1:
            found |= dict(alone(model, [text.text for text in corpus.texts], "drawn"))
        if not target.stream and target.seed == 0 and target.epochs in (1, 4):
            found |= dict(said(model, material.first, "first"))
            for other in (one for one in MEASURED if one != domain):
                found |= dict(said(model, self.material(other).drawn[:CROSS], other))
        if not target.stream and target.seed == 0 and target.epochs == 1:
            found["features"] = _features(model, open_model(str(self.work / home().name)), material.drawn)
        _save(path, found)
        print(path.stem, flush=True)


def said(model: Backend, pairs: Sequence[Pair], name: str) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Arrays `name/true` (log-probabilities of prefix and true suffix, one after the other), `name/lengths` and
    `name/before` (tokens a pair, and those of them in the prefix), and the same of the generated suffixes alone."""
    for kind in ("true", "generated") if any(pair.generated for pair in pairs) else ("true",):
        texts = [pair.prefix + getattr(pair, kind) for pair in pairs]
        traces = trace(model, texts, Quantity.LOGP, store=open_store(None))
        ends = [model.spans(text)[:, 1] for text in texts]
        before = [
            int((e[len(e) - len(t) :] <= len(pair.prefix)).sum())
            for e, t, pair in zip(ends, traces, pairs, strict=True)
        ]
        keep = [0 if kind == "true" else b for b in before]
        logp = [t.logp[start:] for t, start in zip(traces, keep, strict=True)]
        yield f"{name}/{kind}", np.concatenate(logp).astype(np.float16)
        yield f"{name}/{kind} lengths", np.array([len(one) for one in logp], dtype=np.int16)
        if kind == "true":
            yield f"{name}/before", np.array(before, dtype=np.int16)


def alone(model: Backend, texts: Sequence[str], name: str) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """`name/scores`: the scores `ALONE` of whole texts, float32 [texts, scores]."""
    run = detect(_numbered(texts), Models(model), ALONE, Options(cache=False))
    yield f"{name}/scores", run.matrix.astype(np.float32)


def _features(model: Backend, base: Backend, pairs: Sequence[Pair]) -> npt.NDArray[np.float32]:
    """The literature's features of true and generated suffixes, float32 [2, pairs, features]; the last one is the
    ratio to the base."""
    texts = [pair.true for pair in pairs] + [pair.generated for pair in pairs]
    run = detect(_numbered(texts), Models(model, reference=base), expressions(True), Options(cache=False))
    found = np.full((len(texts), run.matrix.shape[1]), np.nan)  # a text without a prediction has no row
    found[[int(name) for name in run.ids]] = run.matrix
    return np.stack([found[: len(pairs)], found[len(pairs) :]]).astype(np.float32)


def _numbered(texts: Sequence[str]) -> Corpus:
    return Corpus("texts", tuple(Text(str(i), text) for i, text in enumerate(texts)))


def _save(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    def write(place: Path) -> None:
        with place.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    write_atomically(path, write)


def _plain(text: Text) -> list[Any]:
    return [text.id, text.text, text.group, dict(text.meta)]


def _corpus(domain: str, rows: Iterable[Sequence[Any]]) -> Corpus:
    return Corpus(domain, tuple(Text(r[0], r[1], group=r[2], meta=r[3]) for r in rows), domain)


def run(store: Store, given: argparse.Namespace) -> None:
    """Do one stage."""
    if given.stage == "prepare":
        store.prepare(given.data)
    elif given.stage == "bases":
        background = [text.text for one in store.divided.values() for text in one.background.texts]
        make_base(store.setup, home(), background, store.work)
    elif given.stage == "pairs":
        generator = store.generator()
        for domain in given.domains:
            store.write_pairs(domain, generator)
    elif given.stage == "large":
        store.write_large()
    for domain in given.domains if given.stage in ("train", "read") else ():
        if given.stage == "read":
            store.read_beside(domain)
        for target in targets(domain, given.targets):
            (store.train if given.stage == "train" else store.read_target)(domain, target)


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=("prepare", "bases", "pairs", "train", "read", "large"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--model", default="smollm2", help="what generators and large targets are made of")
    parser.add_argument("--domains", nargs="+", default=DOMAINS, choices=DOMAINS)
    parser.add_argument("--targets", type=int, default=2, help="targets a domain at one epoch (default 2)")
    return parser.parse_args()


if __name__ == "__main__":
    options = parsed()
    options.work.mkdir(parents=True, exist_ok=True)
    run(Store(options.work, Setup(model=options.model)), options)
