"""Documents cut into snippets, divided into what a generator learns from and what is judged, and the samples compared.

Section 4.1 of "Unlocking Post-hoc Dataset Inference with Synthetic Data" (Zhao et al. 2025): short pieces
are completed well, and pieces of the same documents on both sides make the generator write in their style.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pretrace.errors import ShortTextsError
from pretrace.registry import require
from pretrace.settings import check_ranges, option
from pretrace.statistics.documents import link_documents
from pretrace.types import Corpus, Pair, Skipped, Text
from pretrace.types.audit import COMPARED
from pretrace.verdicts.draws import texts_hash
from pretrace.verdicts.wording import say

Spans = Callable[[str], npt.NDArray[np.int64]]
"""Characters [start, end) of each token of a text, shape [n, 2]: `Generator.spans` and `Backend.spans`."""


@dataclass(frozen=True, slots=True)
class SnippetSettings:
    """How documents are cut; ExpressionError for a value out of its range.

    A snippet has `tokens` tokens of the generator, the first half of them the prefix. At most `most` are taken
    of a document, drawn at random; None is the median over the documents that have any, at least 2, so that long
    ones do not outweigh the others (appendix C of the paper). `pairs` bounds the snippets that are judged (the
    paper: 2,000), `share` is their share of all where there are fewer; `learnt` bounds those a generator learns from.
    """

    tokens: int = option(64, "Tokens of a snippet; half is prefix, half is judged.", panel=COMPARED, least=8)
    most: int | None = option(
        None,
        "Snippets taken of a document; the median over documents unless given.",
        name="max-snippets",
        panel=COMPARED,
        least=1,
    )
    pairs: int = option(2000, "Snippets judged, at most; half of all at most.", panel=COMPARED, least=1)
    share: float = 0.5
    learnt: int | None = None

    def __post_init__(self) -> None:
        check_ranges(self)
        require(
            self.learnt is None or self.learnt >= 1, f"at least 1 snippet is learnt, found {self.learnt}."
        )
        require(
            0 < self.share <= 1, f"the share of snippets that are judged is in (0, 1], found {self.share}."
        )


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a document in two halves; together they stand in it as they are."""

    id: str
    document: str
    prefix: str
    suffix: str

    @property
    def text(self) -> str:
        """The whole piece."""
        return self.prefix + self.suffix


@dataclass(frozen=True, slots=True)
class SnippetCut:
    """Snippets in the order of the documents, the documents too short to give one, and what was left out."""

    snippets: tuple[Snippet, ...]
    short: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def documents(self) -> int:
        """How many documents have a snippet."""
        return len({snippet.document for snippet in self.snippets})


class Sample(NamedTuple):
    """A text that counts, the document it is from, and what stands before it, as context alone."""

    document: str
    text: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of the suspect texts and of held-out ones; with `paired` row i of both is the same place."""

    suspect: tuple[Sample, ...]
    heldout: tuple[Sample, ...]
    paired: bool = False

    @classmethod
    def of_pairs(cls, pairs: Sequence[Pair]) -> Samples:
        """True suffixes beside the generated ones, each after the same prefix."""
        true = tuple(Sample(pair.document, pair.true, pair.prefix) for pair in pairs)
        generated = tuple(Sample(pair.document, pair.generated, pair.prefix) for pair in pairs)
        return cls(true, generated, paired=True)

    @classmethod
    def of_snippets(cls, suspect: Sequence[Snippet], heldout: Sequence[Snippet]) -> Samples:
        """Whole snippets of suspect and of held-out documents."""
        first, second = (tuple(Sample(one.document, one.text) for one in side) for side in (suspect, heldout))
        return cls(first, second)

    def of_documents(self, names: Container[str]) -> Samples:
        """The samples of these suspect documents, with all held-out ones, or their partners."""
        rows = [i for i, sample in enumerate(self.suspect) if sample.document in names]
        heldout = tuple(self.heldout[i] for i in rows) if self.paired else self.heldout
        return replace(self, suspect=tuple(self.suspect[i] for i in rows), heldout=heldout)

    def corpora(self, *, whole: bool = False) -> tuple[Corpus, Corpus]:
        """Suspect and held-out samples as corpora, for what compares them without a model; `whole` ones of a document
        are one text."""
        made = []
        for name, side in (("suspect", self.suspect), ("heldout", self.heldout)):
            rows = enumerate(side)
            texts = [Text(f"{name} {i}", one.text, group=one.document) for i, one in rows]
            if whole:
                joined = join_documents((one.document, one.text) for one in side)
                texts = [
                    Text(f"{name} {document}", text, group=document) for document, text in joined.items()
                ]
            made.append(Corpus(name, tuple(texts)))
        return made[0], made[1]


def join_documents(rows: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The texts of each document as one, in their order."""
    found: dict[str, list[str]] = {}
    for document, text in rows:
        found.setdefault(document, []).append(text)
    return {document: "\n\n".join(some) for document, some in found.items()}


@dataclass(frozen=True, slots=True)
class NamedCorpus:
    """A corpus that calls its documents by what stands in them, and what its owner calls them.

    Everything that is drawn, ordered or divided by names then depends on the texts alone: the same texts as a folder
    and as an archive make the same audit. `names` maps each document of `corpus` to its owner's name.
    """

    corpus: Corpus
    names: Mapping[str, str]

    @classmethod
    def of(cls, corpus: Corpus, beside: Corpus | None = None) -> NamedCorpus:
        """The corpus with ids and groups made of hashes, in the order of these; the same document twice is one. A group
        that has texts in the corpus `beside` as well has one name in both."""
        found: dict[str, list[Text]] = {}
        for text in corpus.texts:
            found.setdefault(text.document, []).append(text)
        elsewhere: dict[str, list[str]] = {}
        for text in beside.texts if beside else ():
            if text.group:
                elsewhere.setdefault(text.group, []).append(text.text)
        names: dict[str, str] = {}
        documents: dict[str, list[Text]] = {}
        for owner in sorted(found):
            shared = elsewhere.get(owner, []) if found[owner][0].group else []
            name = texts_hash([*(text.text for text in found[owner]), *shared])[:16]
            if name not in names:
                names[name] = owner
                documents[name] = sorted(found[owner], key=lambda text: texts_hash((text.text,)))
        texts = (
            replace(text, id=f"{name}.{i}", group=name)
            for name in sorted(documents)
            for i, text in enumerate(documents[name])
        )
        return cls(replace(corpus, texts=tuple(texts)), names)


@dataclass(frozen=True, slots=True)
class Pieces:
    """All pieces of a corpus by document, in which each stands once, with the texts too short to give one, and in how
    many places each piece stands."""

    documents: Mapping[str, tuple[Snippet, ...]]
    short: tuple[Skipped, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, corpus: Corpus, spans: Spans, tokens: int) -> Pieces:
        """The pieces of so many tokens. Documents that share a text count as one, texts of one group are one document,
        and what stands in several places is taken once, so that what is judged was never learnt from."""
        document = link_documents(corpus.texts)
        pieces: dict[str, list[Snippet]] = {}
        short: list[Skipped] = []
        seen: Counter[str] = Counter()
        for text in corpus.texts:
            found = spans(text.text)
            made = _pieces(text, found, tokens)
            if not made:
                short.append(Skipped(text.id, f"shorter than a snippet of {tokens} tokens", len(found)))
            for piece in made:
                seen[piece.text] += 1
                if seen[piece.text] > 1:
                    continue
                name = document[text.document]
                pieces.setdefault(name, []).append(replace(piece, document=name))
        return cls({name: tuple(some) for name, some in pieces.items()}, tuple(short), dict(seen))

    @property
    def contents(self) -> Mapping[str, int]:
        """The text of each piece with white space as one space, as two sides are compared, and in how many places it
        stands."""
        counted: Counter[str] = Counter()
        for text, number in self.places.items():
            counted[_plain(text)] += number
        return counted

    def without(self, shared: frozenset[str]) -> Pieces:
        """The same without pieces of these `contents`, and without documents that hold no other."""
        kept = {
            name: tuple(piece for piece in some if _plain(piece.text) not in shared)
            for name, some in self.documents.items()
        }
        places = {text: number for text, number in self.places.items() if _plain(text) not in shared}
        return replace(self, documents={name: some for name, some in kept.items() if some}, places=places)

    def drawn(self, settings: SnippetSettings, *, seed: int) -> SnippetCut:
        """`most` pieces of every document at random. The draw depends on the seed and the documents' names, not on
        their order."""
        pieces = self.documents
        most = settings.most or max(2, round(median(map(len, pieces.values())))) if pieces else 0
        taken: list[Snippet] = []
        for name in sorted(pieces):
            some = pieces[name]
            order = np.random.default_rng([seed, *name.encode("utf-8", "surrogatepass")]).permutation(
                len(some)
            )
            taken += [some[i] for i in sorted(order[:most].tolist())]
        found = sum(map(len, pieces.values()))
        repeated = sum(self.places.values()) - len(self.places)
        return SnippetCut(tuple(taken), self.short, _notes(self.short, repeated, found, len(taken)))


def shared_pieces(suspect: Pieces, heldout: Pieces) -> tuple[frozenset[str], str]:
    """The contents of pieces that stand on both sides, and a sentence that counts and names them ("" without any).

    Boilerplate (a notice, a greeting, a licence) says nothing of either side: a model that read it anywhere knows it.
    """
    mine, theirs = suspect.contents, heldout.contents
    both = frozenset(mine.keys() & theirs.keys())
    if not both:
        return both, ""
    places = sum(side[one] for side in (mine, theirs) for one in both)
    names = [_shown(one) for one in sorted(both)]
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
    stand, were = ("passage stands", "was") if len(names) == 1 else ("passages stand", "were")
    numbers = {"number": len(names), "stand": stand, "were": were, "places": places, "listed": listed}
    return both, say("snippets.shared", **numbers)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _shown(text: str) -> str:
    line = _plain(text)
    return repr(line if len(line) <= 60 else line[:59] + "…")


def divide(
    snippets: Sequence[Snippet], settings: SnippetSettings | None = None, *, seed: int = 0
) -> tuple[tuple[Snippet, ...], tuple[Snippet, ...]]:
    """The snippets to judge and those a generator may learn from, shuffled and divided at random.

    Each document is given a snippet to judge before any is given a second, since documents are what the test
    counts. TextsError where there are too few of them.
    """
    settings = settings or SnippetSettings()
    order = _in_turn(snippets, np.random.default_rng(seed))
    count = min(settings.pairs, max(1, int(settings.share * len(order))))
    rest = order[count:]
    return tuple(order[:count]), tuple(rest if settings.learnt is None else rest[: settings.learnt])


def check_enough(cut: SnippetCut, corpus: Corpus, tokens: int, *, fewest: int, left_out: str = "") -> None:
    """Raise ShortTextsError where fewer than `fewest` snippets were cut, too few for any test; `left_out` says what was
    left out before."""
    if len(cut.snippets) >= fewest and cut.documents >= 2:
        return
    raise ShortTextsError(
        f"an audit wants at least {fewest} snippets of {tokens} tokens from at least 2 documents, and "
        f"{corpus.name} gives {len(cut.snippets)} from {cut.documents} ({len(cut.short)} texts are too short): "
        "add texts, or take shorter snippets (--tokens; in Python SnippetSettings.tokens)."
        f"{' ' * bool(left_out)}{left_out}"
    )


def _pieces(text: Text, spans: npt.NDArray[np.int64], tokens: int) -> list[Snippet]:
    """Consecutive pieces of so many tokens; none begins or ends inside a character."""
    whole = np.append(spans[:, 1] > spans[:, 0], True)  # whether a piece may begin at this token
    ends = np.append(spans[:, 0], len(text.text))
    made: list[Snippet] = []
    at = 0
    while at + tokens <= len(spans):
        marks = [_next(whole, at), _next(whole, at + tokens // 2), _next(whole, at + tokens)]
        start, middle, stop = (int(ends[mark]) for mark in marks)
        if start < middle < stop and text.text[start:middle].strip() and text.text[middle:stop].strip():
            name = f"{text.id}#{len(made)}"
            made.append(Snippet(name, text.document, text.text[start:middle], text.text[middle:stop]))
        at = max(marks[2], at + tokens)
    return made


def _next(whole: npt.NDArray[np.bool_], at: int) -> int:
    return at + int(np.argmax(whole[at:]))


def _in_turn(snippets: Sequence[Snippet], rng: np.random.Generator) -> list[Snippet]:
    """One of each document in random order, then the next of each, until none is left."""
    documents: dict[str, list[Snippet]] = {}
    for snippet in snippets:
        documents.setdefault(snippet.document, []).append(snippet)
    shuffled: Mapping[str, list[Snippet]] = {
        name: [documents[name][i] for i in rng.permutation(len(documents[name]))]
        for name in sorted(documents)
    }
    order: list[Snippet] = []
    for turn in range(max(map(len, shuffled.values()), default=0)):
        some = [pieces[turn] for pieces in shuffled.values() if turn < len(pieces)]
        order += [some[i] for i in rng.permutation(len(some))]
    return order


def _notes(short: Sequence[Skipped], repeated: int, found: int, taken: int) -> tuple[str, ...]:
    numbers = {"short": len(short), "repeated": repeated, "found": found, "taken": taken}
    said = {"short": bool(short), "repeated": repeated > 0, "taken": taken < found}
    return tuple(say(f"snippets.{name}", **numbers) for name, so in said.items() if so)
