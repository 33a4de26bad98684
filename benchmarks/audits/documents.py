"""The documents of the audits' experiments: who is audited, what a generator learns from, and background.

Eight domains are measured. A ninth, `dm_mathematics`, is kept apart: nothing was chosen on it, and it was looked
at when everything else was settled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pretrace import open_corpus
from pretrace.backends import open_tokenizer
from pretrace.errors import TextsError
from pretrace.types import Corpus, Text

if TYPE_CHECKING:
    from pretrace.verdicts.audit.snippets import Spans

PILE = ("hackernews", "wikipedia_en", "pubmed_abstracts", "stackexchange", "nih_exporter", "github")
MEASURED = (*PILE, "arxiv", "stdlib")
KEPT_APART = "dm_mathematics"
DOMAINS = (*MEASURED, KEPT_APART)


@dataclass(frozen=True, slots=True)
class Setup:
    """Sizes of the experiment. `documents` are the evaluation documents of a domain, each cut to its first
    `tokens` tokens of `model` and none shorter than `fewest`; `learning` are those the generator learns from, and
    the others are background, at most `characters` of each. A base trains `epochs` at a peak of `rate`; a
    target at `target_rate`, a third of that, which a cosine schedule passes in the last third of a training."""

    model: str = "smollm2"
    documents: int = 800
    learning: int = 80
    tokens: int = 256
    fewest: int = 128
    characters: int = 3000
    layers: int = 4
    width: int = 192
    vocabulary: int = 4096
    epochs: int = 2
    rate: float = 2e-3
    batch: int = 8
    precision: str = "float32"
    seed: int = 0

    @property
    def target_rate(self) -> float:
        """The peak learning rate of a target."""
        return round(self.rate / 3, 6)


class Divided(NamedTuple):
    """The documents of a domain by what they are for; the background's are whole."""

    evaluation: Corpus
    learning: Corpus
    background: Corpus


def opened(data: Path, domain: str) -> Corpus:
    """The texts of a domain; the docstrings of one module are one document."""
    return open_corpus("stdlib" if domain == "stdlib" else str(data / "pile" / f"{domain}.jsonl.gz"))


def divide(setup: Setup, data: Path, domain: str, spans: Spans) -> Divided:
    """The unique texts of a domain that are long enough, at random in three parts, by whole documents."""
    fewest = setup.fewest if domain != "stdlib" else setup.fewest // 2
    kept: dict[str, tuple[Text, str]] = {}
    for text in opened(data, domain).texts:
        whole = text.text.strip()
        ends = spans(whole[: 12 * setup.tokens])[:, 1]
        if len(ends) >= fewest:
            first = whole[: int(ends[min(setup.tokens, len(ends)) - 1])].rstrip()
            one = Text(f"{domain}-{len(kept)}", first, group=text.group, meta=text.meta)
            kept.setdefault(first, (one, whole[: setup.characters]))
    wanted = setup.documents + setup.learning
    if len(kept) <= wanted:
        raise TextsError(
            f"{domain} has {len(kept)} texts of {fewest} tokens or more, and the experiment wants more than {wanted}."
        )
    ordered = _shuffled(list(kept.values()), np.random.default_rng([setup.seed, DOMAINS.index(domain)]))
    ends = [_end(ordered, setup.documents), _end(ordered, wanted)]

    def part(start: int, stop: int | None, *, whole: bool) -> Corpus:
        some = ordered[start:stop]
        texts = (replace(one, text=long) if whole else one for one, long in some)
        return Corpus(domain, tuple(texts), domain)

    return Divided(
        part(0, ends[0], whole=False), part(ends[0], ends[1], whole=True), part(ends[1], None, whole=True)
    )


def all_divided(setup: Setup, data: Path, domains: Sequence[str] = DOMAINS) -> dict[str, Divided]:
    """The documents of the domains, cut by the tokens of the generator's model."""
    tokens = open_tokenizer(setup.model)
    return {domain: divide(setup, data, domain, tokens.spans) for domain in domains}


def _shuffled(found: list[tuple[Text, str]], rng: np.random.Generator) -> list[tuple[Text, str]]:
    """The documents in random order, the texts of each together."""
    documents: dict[str, list[tuple[Text, str]]] = {}
    for one in found:
        documents.setdefault(one[0].document, []).append(one)
    names = sorted(documents)
    return [one for i in rng.permutation(len(names)).tolist() for one in documents[names[i]]]


def _end(ordered: Sequence[tuple[Text, str]], wanted: int) -> int:
    """The first place from `wanted` on at which a document ends."""
    at = wanted
    while at < len(ordered) and ordered[at][0].document == ordered[at - 1][0].document:
        at += 1
    return at
