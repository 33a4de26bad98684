"""Documents cut into snippets, divided into what a generator learns from and what is judged, and the samples compared.

Section 4.1 of "Unlocking Post-hoc Dataset Inference with Synthetic Data" (Zhao et al. 2025): short pieces
are completed well, and pieces of the same documents on both sides make the generator write in their style.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pretrace.backends.instructed import Completer
from pretrace.cache import TEXT, Draw, Entries, text_key
from pretrace.errors import ShortTextsError, TextsError
from pretrace.registry import require
from pretrace.results.wording import listed, say
from pretrace.scoring.evidence import Progress
from pretrace.settings import Option, check_ranges
from pretrace.statistics.documents import link_documents
from pretrace.tuning import tuned_model
from pretrace.tuning.plan import OnStep, methods
from pretrace.types import COMPARED, Backend, Corpus, Skipped, Text
from pretrace.verdicts.register import texts_hash

T = TypeVar("T")
Spans = Callable[[str], npt.NDArray[np.int64]]
"""Characters [start, end) of each token of a text, shape [n, 2]: `Completer.spans` and `Backend.spans`."""


_SNIPPETS = Option("How documents are cut into snippets, as in tokens=32.", name="snippets", panel=COMPARED)


@dataclass(frozen=True, slots=True)
class SnippetSettings:
    """How documents are cut; ExpressionError for a value out of its range.

    `most` is the median over the documents that have any, at least 2, unless given, so that long ones do not outweigh
    the others (appendix C of the paper). `pairs` bounds the snippets that are judged (the paper: 2,000), `share` is
    their share of all where there are fewer; `learnt` bounds those a generator learns from.
    """

    tokens: int = _SNIPPETS.key(64, "Tokens of a snippet; half is prefix, half is judged.", least=8)
    most: int | None = _SNIPPETS.key(
        None, "Snippets taken of a document; the median over documents unless given.", least=1
    )
    pairs: int = _SNIPPETS.key(2000, "Most snippets that are judged; never more than half of all.", least=1)
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

    def judged(self, snippets: int) -> int:
        """How many of so many snippets are judged."""
        return min(self.pairs, max(1, int(self.share * snippets)))


class Sample(NamedTuple):
    """A text that counts, the document it is from, and what stands before it, as context alone. A snippet is one: a
    piece of a document, its second half after its first."""

    document: str
    text: str
    prefix: str = ""
    id: str = ""

    @property
    def whole(self) -> str:
        """The text after what stands before it, as in the document."""
        return self.prefix + self.text


@dataclass(frozen=True, slots=True)
class SnippetCut:
    """Snippets in the order of the documents, the documents too short to give one, what was left out, and what was left
    out on both sides."""

    snippets: tuple[Sample, ...]
    short: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()

    @property
    def documents(self) -> int:
        return len({snippet.document for snippet in self.snippets})


Parts = tuple[tuple[Sample, ...], ...]
"""Samples of suspect and of control documents; where texts were written, of either side as they are and as written."""


def by_name(rows: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """What goes by each name, in its order."""
    found: dict[str, list[T]] = {}
    for name, one in rows:
        found.setdefault(name, []).append(one)
    return found


def join_documents(samples: Iterable[Sample]) -> dict[str, str]:
    """The texts of each document as one, in their order."""
    found = by_name((one.document, one.text) for one in samples)
    return {document: "\n\n".join(some) for document, some in found.items()}


def rename_documents(corpus: Corpus, beside: Corpus | None = None) -> tuple[Corpus, Mapping[str, str]]:
    """Call documents by what stands in them, so that all draws depend on the texts alone and a folder and an archive
    make the same audit: with ids and groups made of hashes, each document once, a group in `beside` too by one name;
    and the owner's name of each."""
    found = by_name((text.document, text) for text in corpus.texts)
    elsewhere = by_name((text.group, text.text) for text in (beside.texts if beside else ()) if text.group)
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
    return replace(corpus, texts=tuple(texts)), names


def cut_pieces(corpus: Corpus, spans: Spans, tokens: int) -> SnippetCut:
    """All pieces of so many tokens, in their order, and the texts too short for one. Documents that share a text count
    as one, and texts of one group."""
    document = link_documents(corpus.texts)
    pieces, short = list[Sample](), list[Skipped]()
    for text in corpus.texts:
        found = spans(text.text)
        made = _pieces(text, document[text.document], found, tokens)
        if not made:
            short.append(Skipped(text.id, f"shorter than a snippet of {tokens} tokens", len(found)))
        pieces += made
    return SnippetCut(tuple(pieces), tuple(short))


def draw_snippets(
    cut: SnippetCut, settings: SnippetSettings, *, seed: int, without: Container[str] = ()
) -> SnippetCut:
    """Draw `most` pieces of every document, `without` those that say the like; by the seed and the documents' names,
    whatever their order. What stands in several places is taken once, so that what is judged was never learnt from."""
    kept = [piece for piece in cut.snippets if _plain(piece.whole) not in without]
    once: dict[str, Sample] = {}
    for piece in kept:
        once.setdefault(piece.whole, piece)
    pieces, taken = by_name((piece.document, piece) for piece in once.values()), list[Sample]()
    most = settings.most or max(2, round(median(map(len, pieces.values())))) if pieces else 0
    for name in sorted(pieces):
        some, key = pieces[name], [seed, *name.encode("utf-8", "surrogatepass")]
        order = np.random.default_rng(key).permutation(len(some))
        taken += [some[i] for i in sorted(order[:most].tolist())]
    fewer = len(taken) < len(once)
    numbers = {"short": len(cut.short), "repeated": len(kept) - len(once), "taken": len(taken) * fewer}
    notes = (say(f"snippets.{name}", **numbers, found=len(once)) for name, some in numbers.items() if some)
    return SnippetCut(tuple(taken), cut.short, tuple(notes))


def _plain(text: str) -> str:
    return " ".join(text.split())


def _pieces(text: Text, document: str, spans: npt.NDArray[np.int64], tokens: int) -> list[Sample]:
    """Consecutive pieces of so many tokens; none begins or ends inside a character."""
    whole = np.append(spans[:, 1] > spans[:, 0], True)  # whether a piece may begin at this token
    ends = np.append(spans[:, 0], len(text.text))
    made: list[Sample] = []
    at = 0
    while at + tokens <= len(spans):
        marks = [place + int(np.argmax(whole[place:])) for place in (at, at + tokens // 2, at + tokens)]
        start, middle, stop = (int(ends[mark]) for mark in marks)
        if start < middle < stop and text.text[start:middle].strip() and text.text[middle:stop].strip():
            halves = text.text[middle:stop], text.text[start:middle]
            made.append(Sample(document, *halves, f"{text.id}#{len(made)}"))
        at = max(marks[2], at + tokens)
    return made


def divide(
    snippets: Sequence[Sample], settings: SnippetSettings | None = None, *, seed: int = 0
) -> tuple[tuple[Sample, ...], tuple[Sample, ...]]:
    """The snippets to judge and those a generator may learn from, divided at random; each document is given one to
    judge before any is given a second, since documents are counted."""
    settings, rng = settings or SnippetSettings(), np.random.default_rng(seed)
    documents = sorted(by_name((one.document, one) for one in snippets).items())
    shuffled = [[some[i] for i in rng.permutation(len(some))] for _, some in documents]
    order: list[Sample] = []
    for turn in range(max(map(len, shuffled), default=0)):
        some = [pieces[turn] for pieces in shuffled if turn < len(pieces)]
        order += [some[i] for i in rng.permutation(len(some))]
    count = settings.judged(len(order))
    rest = order[count:]
    return tuple(order[:count]), tuple(rest if settings.learnt is None else rest[: settings.learnt])


def compared(cuts: Sequence[SnippetCut], settings: SnippetSettings, *, seed: int) -> Parts:
    """Snippets of the suspect texts and of control documents, as they are; nothing is generated."""
    whole = replace(settings, share=1.0)
    return tuple(whole_snippets(divide(one.snippets, whole, seed=seed)[0]) for one in cuts)


def whole_snippets(snippets: Iterable[Sample]) -> tuple[Sample, ...]:
    """Snippets of which both halves count."""
    return tuple(Sample(one.document, one.whole) for one in snippets)


def cut_alike(
    given: Sequence[Corpus], model: Backend, settings: SnippetSettings, *, seed: int
) -> tuple[SnippetCut, ...]:
    """The snippets of the `given` suspect texts and controls, cut alike. What stands in both is boilerplate (a notice,
    a licence) that says nothing of either side: it is left out, counted and named in notes. ShortTextsError where
    either gives too few."""
    tokens = settings.tokens
    pieces = [cut_pieces(one, model.spans, tokens) for one in given]
    counted = [Counter(_plain(piece.whole) for piece in one.snippets) for one in pieces]
    both, note = (counted[0].keys() & counted[1].keys() if len(given) == 2 else set()), ""
    if both:
        places = sum(side[one] for side in counted for one in both)
        names = listed([one if len(one) <= 60 else one[:59] + "…" for one in sorted(both)])
        note = say("snippets.shared", number=len(both), places=places, listed=names)
    cuts = []
    for texts, some in zip(given, pieces, strict=True):
        made = draw_snippets(some, settings, seed=seed, without=both)
        if len(made.snippets) < _FEWEST_SNIPPETS or made.documents < 2:
            numbers = {
                "least": _FEWEST_SNIPPETS,
                "tokens": tokens,
                "cut": made,
                "shared": f" {note}" * bool(note),
            }
            counts = {"snippets": len(made.snippets), "short": len(made.short)}
            raise ShortTextsError(say("snippets.few", name=texts.name, **numbers, **counts))
        cuts.append(replace(made, shared=(note,) if note else ()))
    return tuple(cuts)


_FEWEST_SNIPPETS = 20


def check_apart(corpus: Corpus, heldout: Corpus) -> None:
    """Raise TextsError where a whole text stands on both sides."""
    known = {text.text.strip(): text.id for text in corpus.texts}
    same = [text for text in heldout.texts if text.text.strip() in known]
    if same:
        numbers = {"number": len(same), "controls": len(heldout), "known": known[same[0].text.strip()]}
        raise TextsError(say("asked.same", first=same[0], **numbers))


NO_TUNING = "none"
TRAINING, WRITING, TUNING = "training the generator", "writing continuations", "tuning a placebo"
SCORING = "scoring with the target"
"""Names of stages, with those of `reading`."""
_CHUNK = 256  # prompts generated, and stored, together


def reading(target: Backend, model: Backend) -> str:
    """The stage in which the target, or a model beside it, reads what both sides are compared by."""
    return "reading with the target" if model is target else f"reading with {model.name}"


def complete(
    generator: Completer,
    prompts: Sequence[str],
    draw: Draw,
    *,
    cache: bool = True,
    progress: Progress | None = None,
) -> list[str]:
    """What the generator writes after each prompt, to be set right behind it, in the prompts' order.

    Only what is not on disk yet is generated, and every chunk is stored when it is done. Chunks are planned over all
    the prompts, whatever is stored, those of similar length together, the longest first: a run that was killed goes on
    with the same batches. `cache` False keeps nothing. Raises what the generator raises, and OutputError where the
    cache cannot be written.
    """
    progress = progress or Progress()
    texts = {text_key(prompt): prompt for prompt in prompts}
    progress.begin(len(texts))
    with Entries("continuations", generator.fingerprint if cache else None) as store:
        known = store.find(texts, draw.label, TEXT)
        progress.advance(len(known), draw.tokens * len(known), 0.0, False)
        order: list[bytes] = []
        if len(known) < len(texts):
            lengths = {key: len(generator.spans(text)) for key, text in texts.items()}
            order = sorted(texts, key=lambda key: (-lengths[key], key))
        for at in range(0, len(order), _CHUNK):
            missing = [key for key in order[at : at + _CHUNK] if key not in known]
            if not missing:
                continue
            begin, asked = time.perf_counter(), [texts[key] for key in missing]
            made = generator.complete(asked, tokens=draw.tokens, sampling=draw.sampling, seed=draw.seed)
            store.write([(key, draw.label, one, TEXT) for key, one in zip(missing, made, strict=True)])
            known |= zip(missing, made, strict=True)
            progress.advance(len(missing), draw.tokens * len(missing), time.perf_counter() - begin, True)
    return [known[text_key(prompt)] for prompt in prompts]


def tuned_generator(
    model: Backend,
    texts: Sequence[str],
    method: str,
    *,
    seed: int = 0,
    cache: bool = True,
    on_step: OnStep | None = None,
) -> Completer:
    """A generator that learnt to write like the texts: the model with an adapter tuned on all of them by `method`, such
    as "lora(rank=32, epochs=3)"; with "none", or without texts, the model as it stands. `cache` keeps the adapter.
    ExpressionError for another method, ModelError where the model has no weights here."""
    if method.strip() == NO_TUNING or not texts:
        return Completer(model)
    # Without labels, so that whatever side the method names it is given all of them.
    learnt = Corpus("generator-training texts", tuple(Text(str(i), text) for i, text in enumerate(texts)))
    how: dict[str, Any] = {"seed": seed, "cache": cache, "on_step": on_step}
    return Completer(tuned_model(model, learnt, methods.make(method), **how).backend)
