"""Who is to be a member: whole documents drawn at random, so that the labels are exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.statistics.linking import linked
from pretrace.types import Corpus


def split_members(corpus: Corpus, share: float = 0.5, seed: int = 0) -> Corpus:
    """The corpus with every text labelled: whole groups drawn at random are members, the rest are not.

    The members hold about `share` of the characters: groups are taken in a random order until taking
    another would lead further away, so that no group is passed over for its size and members differ from
    non-members by chance alone. Groups that have a text in common (but for white space at its ends) are
    drawn as one, else a non-member would be trained on. Labels the corpus had are replaced. The draw
    depends on the names of the groups, their sizes and the seed, not on the order of the texts.
    TextsError where there is nothing to divide, ExpressionError unless 0 < share < 1.
    """
    require(0 < share < 1, f"the members' share of the text must be between 0 and 1, found {share}.")
    require(seed >= 0, f"a seed is 0 or more, found {seed}.")
    document = linked(corpus.texts)
    sizes: dict[str, int] = dict.fromkeys(sorted(set(document.values())), 0)
    for text in corpus.texts:
        sizes[document[text.document]] += len(text.text)
    if len(sizes) < 2:
        raise TextsError(_indivisible(corpus, len(document)))
    names = list(sizes)
    order = np.random.default_rng(seed).permutation(len(names))
    reached = np.cumsum([sizes[names[i]] for i in order])
    # At least one group on either side; the first of equally near places, so the answer is one.
    taken = int(np.argmin(np.abs(reached[:-1] - share * reached[-1]))) + 1
    members = {names[i] for i in order[:taken]}
    texts = tuple(replace(text, member=document[text.document] in members) for text in corpus.texts)
    return replace(corpus, texts=texts)


def _indivisible(corpus: Corpus, documents: int) -> str:
    if documents >= 2:
        return (
            f"all {documents} groups of {corpus.name} share texts with one another, so none can be a member "
            "without the others: take the repeated texts out."
        )
    found = f"1 group with {len(corpus)} texts" if corpus.texts else "no texts"
    return f"drawing members wants at least 2 groups (documents) of texts; {corpus.name} has {found}."
