"""The documents of the ablations: who is audited, what a generator of other documents learns from, and background."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pretrace import open_corpus
from pretrace.backends import open_tokenizer
from pretrace.errors import TextsError
from pretrace.types import Corpus, Text

if TYPE_CHECKING:
    from pretrace.verdicts.audit.snippets import Spans

DOMAINS = ("hackernews", "wikipedia_en", "pubmed_abstracts", "stackexchange")


@dataclass(frozen=True, slots=True)
class Setup:
    """Sizes of the experiment. `documents` are the evaluation documents of a domain, each cut to its first
    `tokens` tokens of `model` and none shorter than `fewest`; `learning` are those the generator learns from, and
    the others are background, at most `characters` of each. A base trains `epochs` at a peak of `rate`; a
    target at `target_rate`, a third of that, which a cosine schedule passes in the last third of a training."""

    data: Path
    work: Path
    model: str = "smollm2"
    documents: int = 800
    learning: int = 80
    tokens: int = 256
    fewest: int = 128
    characters: int = 8000
    layers: int = 4
    width: int = 192
    vocabulary: int = 4096
    epochs: int = 3
    rate: float = 2e-3
    batch: int = 8
    precision: str = "bfloat16"
    seed: int = 0

    @property
    def sizes(self) -> dict[str, Any]:
        """All of it but the folders, in plain values."""
        return {name: value for name, value in asdict(self).items() if name not in ("data", "work")}

    @property
    def target_rate(self) -> float:
        """The peak learning rate of a target."""
        return round(self.rate / 3, 6)


class Divided(NamedTuple):
    """The documents of a domain by what they are for; the background's are whole."""

    evaluation: Corpus
    learning: Corpus
    background: Corpus


def divide(setup: Setup, domain: str, spans: Spans) -> Divided:
    """The unique documents of a domain that are long enough, at random in three parts."""
    path = setup.data / f"{domain}.jsonl.gz"
    kept: dict[str, tuple[Text, str]] = {}
    for text in open_corpus(str(path)).texts:
        whole = text.text.strip()
        ends = spans(whole[: 12 * setup.tokens])[:, 1]
        if len(ends) >= setup.fewest:
            first = whole[: int(ends[min(setup.tokens, len(ends)) - 1])].rstrip()
            name = f"{domain}-{len(kept)}"
            kept.setdefault(first, (Text(name, first), whole[: setup.characters]))
    wanted = setup.documents + setup.learning
    if len(kept) <= wanted:
        raise TextsError(
            f"{path} has {len(kept)} documents of {setup.fewest} tokens or more, and the experiment wants more "
            f"than {wanted}: choose fewer with --documents."
        )
    found = list(kept.values())
    order = np.random.default_rng([setup.seed, DOMAINS.index(domain)]).permutation(len(found))
    cut = [found[i][0] for i in order]
    whole_ones = [Text(found[i][0].id, found[i][1]) for i in order]

    def part(texts: list[Text]) -> Corpus:
        return Corpus(domain, tuple(texts), str(path))

    return Divided(
        part(cut[: setup.documents]), part(whole_ones[setup.documents : wanted]), part(whole_ones[wanted:])
    )


def all_divided(setup: Setup) -> dict[str, Divided]:
    """The documents of every domain, cut by the tokens of the generator's model."""
    tokens = open_tokenizer(setup.model)
    return {domain: divide(setup, domain, tokens.spans) for domain in DOMAINS}


def halved(corpus: Corpus, seed: int) -> Corpus:
    """The corpus with a random half of its documents as members, exactly half of them."""
    chosen = np.random.default_rng([seed, 1]).permutation(len(corpus))[: len(corpus) // 2]
    members = set(chosen.tolist())
    return replace(corpus, texts=tuple(replace(t, member=i in members) for i, t in enumerate(corpus.texts)))
