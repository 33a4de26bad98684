"""Models with known members for audits by the command: a base from scratch, and a target a domain and seed.

The base learns the background of eight domains. A target is the base trained once through on random documents of one
domain, so that members and non-members differ in nothing but exposure, and the base is the model
that cannot have seen them. Everything lies in a work folder and is made once; a killed run goes on.
"""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks.audits.documents import Setup, all_divided
from benchmarks.audits.models import make_base, make_target
from pretrace.results.atomic import atomic_bytes
from pretrace.types import Corpus, Text

DOMAINS = (
    "hackernews",
    "wikipedia_en",
    "pubmed_abstracts",
    "stackexchange",
    "nih_exporter",
    "github",
    "dm_mathematics",
    "stdlib",
)
SETUP = Setup(documents=480, learning=1, epochs=1, layers=3, width=128, vocabulary=2048)
"""480 evaluation documents of a domain, at most 256 tokens each."""
BACKGROUND, BACKGROUND_CHARACTERS = 150, 1000
"""Other documents of each domain that the base reads once, and how much of each."""
MEMBERS, OTHERS = 60, 110
"""Evaluation documents that a target is trained on, and others that are audited; drawn anew for each target."""


@dataclass(frozen=True)
class Worlds:
    """The work folder: the documents of all domains, the base, and the targets."""

    work: Path
    data: Path
    setup: Setup = SETUP

    @cached_property
    def documents(self) -> dict[str, dict[str, list[list[str]]]]:
        """Of each domain the evaluation and the background documents, each as [document, text]."""
        path = self.work / "documents.json.gz"
        if not path.is_file():
            made = all_divided(self.setup, self.data, DOMAINS[:-1])
            # Docstrings are short, and those of a module are one document: nearly all are needed.
            made |= all_divided(replace(self.setup, documents=1200), self.data, DOMAINS[-1:])
            plain = {
                domain: {
                    part: [[text.document, text.text] for text in getattr(parts, part).texts]
                    for part in ("evaluation", "background")
                }
                for domain, parts in made.items()
            }
            self.work.mkdir(parents=True, exist_ok=True)
            atomic_bytes(path, gzip.compress(json.dumps(plain).encode(), mtime=0))
        with gzip.open(path, "rt", encoding="utf-8") as file:
            found: dict[str, dict[str, list[list[str]]]] = json.load(file)
        return found

    def base(self) -> Path:
        """The folder of the base, trained unless it is there."""
        texts = [
            text[:BACKGROUND_CHARACTERS]
            for parts in self.documents.values()
            for _, text in parts["background"][:BACKGROUND]
        ]
        make_base(self.setup, texts, self.work / "base-0")
        return self.work / "base-0"

    def evaluation(self, domain: str) -> dict[str, list[str]]:
        """The texts of each evaluation document of a domain."""
        found: dict[str, list[str]] = {}
        for name, text in self.documents[domain]["evaluation"]:
            found.setdefault(name, []).append(text)
        return found

    def members(self, domain: str, seed: int) -> tuple[list[str], list[str]]:
        """The documents that this domain's target of this seed is trained on, and the others, in random order."""
        names = sorted(self.evaluation(domain))
        order = np.random.default_rng([seed, DOMAINS.index(domain), 7]).permutation(len(names))
        return [names[i] for i in order[:MEMBERS]], [names[i] for i in order[MEMBERS : MEMBERS + OTHERS]]

    def target(self, domain: str, seed: int) -> Path:
        """The folder of a target, trained unless it is there."""
        folder = self.work / f"target-{domain}-{seed}"
        inside, texts = set(self.members(domain, seed)[0]), self.evaluation(domain)
        read = [Text(f"{name}-{i}", t) for name in texts if name in inside for i, t in enumerate(texts[name])]
        make_target(self.setup, seed, self.base(), read, folder)
        return folder

    def forget(self, domain: str, seed: int) -> None:
        """Delete a target that is not needed any more."""
        shutil.rmtree(self.work / f"target-{domain}-{seed}", ignore_errors=True)

    def corpus(self, domain: str, names: list[str], *, called: str) -> Corpus:
        """These documents of a domain, their texts as one document each."""
        texts = self.evaluation(domain)
        made = [Text(f"{name}-{i}", t, group=name) for name in names for i, t in enumerate(texts[name])]
        return Corpus(called, tuple(made))


def joined(name: str, *parts: Corpus) -> Corpus:
    """The texts of several corpora as one."""
    return replace(parts[0], name=name, texts=tuple(text for part in parts for text in part.texts))
