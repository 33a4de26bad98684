"""CCNewsPDD from texts a user has: members as they are, non-members transformed (Tang et al. 2025, section 4).

The published recipe draws members from Pile-CC and non-members from CC-News of 2017, 600 of each, of 309 tokens on
average, and transforms the non-members in one of three ways (`TransformMethod`). So a machine's hand is on one side
alone, and whoever recognises it tells the sides apart without asking any model. `transform_both` transforms the
members, too. The card shows what a bag of words that sees no model makes of the originals, of the recipe, and of both
sides transformed.

The paper leaves open how texts were chosen. Here, alike on both sides: one text a document, the whole sentences among
its first 256 words, at least 64 words; repeated texts and non-members that are among the members are left out; a text
whose transformation fails gives its place to the next in the drawn order.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from pretrace.backends.instructed import open_instructed
from pretrace.backends.naming import ModelSettings
from pretrace.backends.proposals import Proposals, open_proposer
from pretrace.corpora import Columns, open_corpus, open_stream
from pretrace.corpora.dates import days
from pretrace.corpora.opening import record_corpus
from pretrace.corpora.reading import refuse_repeated_ids
from pretrace.errors import TextsError
from pretrace.plugins.build import writing
from pretrace.plugins.build.set_similarity import shared_words
from pretrace.plugins.build.translating import (
    CUT,
    EMPTY,
    Changed,
    cut_pieces,
    open_translator,
    split_sentences,
)
from pretrace.registry import require
from pretrace.results.folder import record_software
from pretrace.results.wording import say
from pretrace.scoring.evidence import Progress
from pretrace.settings import Option, check_ranges, is_kept, option, seed_option
from pretrace.statistics.words import WORD
from pretrace.types import Corpus, Sampling, Text

TRANS = Option("With --transform trans: the translators, as in beams=1.", name="trans")
MASK = Option("With --transform mask: who proposes words, as in share=0.3.", name="mask")
WORDS = Option("How many words of a text are taken, as in least=32,most=128.", name="words", panel="")
REWRITE = Option("With --transform prompt: who rewrites, as in model=smollm2.", name="rewrite")

PLACE = "{text}"
PROMPT = "Rewrite: {text}"
"""The paper's prompt, for GPT-4o (table 4)."""
_OPENING = ("dtype", "device", "allow_pickle", "trust_remote_code")
"""How the models of a transformation may be opened."""
Opening = Annotated[ModelSettings, *_OPENING]


Change = Callable[[Sequence[str], int], list[Changed]]
"""What transforms texts in order, given a seed."""


@dataclass(frozen=True)
class BackTranslation:
    """CCNewsPDD(trans): to another language and back with MarianMT models. The paper names the languages (English,
    French, English), not the models; these are the pair's usual ones. `beams` None is each model's own number."""

    there: str = TRANS.key("Helsinki-NLP/opus-mt-en-fr", "MarianMT model, hub id or folder.", path="in")
    back: str = TRANS.key("Helsinki-NLP/opus-mt-fr-en", "MarianMT model that translates back.", path="in")
    beams: int | None = TRANS.key(None, "Beams; the model's own number unless given, 1 is greedy.", least=1)
    opening: Opening = field(default_factory=ModelSettings)
    kind = "trans"

    def __post_init__(self) -> None:
        check_ranges(self)

    def _open(self) -> tuple[Mapping[str, Any], Change]:
        """Facts of both translators, loaded, and what translates."""
        how: dict[str, Any] = {"beams": self.beams, "cache": is_kept()}
        there, back = (open_translator(model, self.opening, **how) for model in (self.there, self.back))

        def change(texts: Sequence[str], seed: int) -> list[Changed]:  # nothing is drawn: seed is not used
            abroad = there.translate(texts)
            home = back.translate([text for text, _ in abroad])
            return [
                (new, max(first, last, key=_FAULTS.index) or _same(old, new))
                for old, (_, first), (new, last) in zip(texts, abroad, home, strict=True)
            ]

        return {"there": dict(there.facts), "back": dict(back.facts)}, change


@dataclass(frozen=True)
class Masking:
    """CCNewsPDD(mask): a share of the tokens, drawn at random and masked together, replaced by words drawn from BERT's
    50 likeliest, never the old one (`backends.proposals`). The paper does not say which BERT, nor how the word is
    chosen. A text longer than BERT's context is masked in pieces."""

    model: str = MASK.key("bert-base-uncased", "Masked language model, hub id or folder.", path="in")
    share: float = MASK.key(0.15, "Share of the tokens that are replaced.")
    opening: Opening = field(default_factory=ModelSettings)
    kind = "mask"

    def __post_init__(self) -> None:
        require(0 < self.share < 1, f"--mask share must be between 0 and 1, found {self.share:g}.")

    def _open(self) -> tuple[Mapping[str, Any], Change]:
        """Facts of the masked language model, loaded, and what masks."""
        proposer = open_proposer(f"masked:{self.model}", cache=is_kept(), **asdict(self.opening))
        assert isinstance(proposer, Proposals)
        tokens = proposer.tokens
        assert tokens.max_tokens is not None
        most = tokens.max_tokens - len(tokens.prefix)

        def lengths(texts: Sequence[str]) -> list[int]:
            return [len(one.tokens) + one.cut for one in tokens.encode(texts)]

        def change(texts: Sequence[str], seed: int) -> list[Changed]:  # each piece's first neighbour, joined
            parts = [cut_pieces(text, most, lengths) for text in texts]
            every = [part for some in parts for part in some]
            made = iter(proposer.propose(every, number=1, share=self.share, seed=seed))
            joined = ["".join(next(made)[0] for _ in some) for some in parts]
            return [(new, _same(old, new)) for old, new in zip(texts, joined, strict=True)]

        return {**proposer.facts, "share": self.share, "piece": most}, change


@dataclass(frozen=True)
class Rewriting:
    """CCNewsPDD(prompt): rewritten by a model that follows instructions, the paper's being GPT-4o. `model` is what
    `open_instructed` takes; `prompt` holds {text}. Temperature 1 is that model's default; the paper does not give one.
    `tokens` is the most an answer may have: one that reaches it is not used."""

    model: str = REWRITE.key(
        "",
        "Who rewrites: any --model value, or server:http://host:port/v1#model-name (key: PRETRACE_API_KEY).",
        path="in",
    )
    prompt: str = REWRITE.key(PROMPT, "Instruction, with {text} for the text; the paper's unless given.")
    temperature: float = REWRITE.key(1.0, "Temperature of the rewriter; 0 is greedy.", least=0.0)
    tokens: int = REWRITE.key(1024, "Most tokens of an answer.", least=1)
    opening: Opening = field(default_factory=ModelSettings)
    kind = "prompt"

    def __post_init__(self) -> None:
        told = {"place": PLACE, "prompt": PROMPT, "found": self.prompt[:60]}
        require(PLACE in self.prompt, say("build.refused.prompt_place", **told))

    def _open(self) -> tuple[Mapping[str, Any], Change]:
        """Facts of the model, loaded, or of the server, and what rewrites."""
        model = open_instructed(self.model, self.opening, cache=is_kept())

        def change(texts: Sequence[str], seed: int) -> list[Changed]:
            asked = [self.prompt.replace(PLACE, text) for text in texts]
            sampling = Sampling(temperature=self.temperature)
            answers = model.answers(asked, tokens=self.tokens, sampling=sampling, seed=seed)
            return [
                (one.text, _same(text, one.text) if one.ended or not one.text else CUT)
                for text, one in zip(texts, answers, strict=True)
            ]

        return {**model.facts, "prompt": self.prompt}, change


TransformMethod = BackTranslation | Masking | Rewriting
"""A transformation before its models are opened: its settings, and `kind`, its name in the benchmark."""

_FAULTS = ("", EMPTY, CUT)
"""What may be wrong with a translation, the worst last."""


def _same(old: str, new: str) -> str:
    """What is wrong with a text of which nothing came back, or which came back as it was, white space aside."""
    if not new.strip():
        return EMPTY
    return "came back unchanged" if old.split() == new.split() else ""


def read_side(source: str, columns: Columns, *, date_column: str | None = None, year: int = 2017) -> Corpus:
    """The texts of a source without labels; with a `date_column` only those surely of the year, else TextsError."""
    columns = replace(columns, label="")
    if date_column is None:
        return open_corpus(source, columns)
    stream = open_stream(source, replace(columns, more=(date_column,)))
    every = list(stream.texts())
    dated = [(replace(text, meta={}), days(text.meta[date_column])) for text in every]
    kept = [text for text, found in dated if found and found.first.year == found.last.year == year]
    if not kept:
        told = {"source": source, "date_column": date_column, "year": year}
        raise TextsError(say("build.refused.unmarked_year", **told))
    refuse_repeated_ids([text.id for text in kept], source)
    note = f"Texts left out, not published in {year} or without a date: {len(every) - len(kept):,}."
    return Corpus(source, tuple(kept), source, (*stream.notes, note))


def _draw_candidates(
    corpus: Corpus, side: str, settings: CcnewsSettings, *, known: frozenset[bytes], left: writing.LeftOut
) -> Iterator[Text]:
    """The usable texts of one side in a drawn order, one of each document, cut to whole sentences. Too few words,
    repeated texts, and those `known` on the other side go to `left`."""
    by_id = {text.id: text for text in corpus.texts}
    documents: set[str] = set()
    seen: set[bytes] = set()
    for name in writing.drawn_order(by_id, settings.seed, f"ccnews {side}"):
        text = by_id[name]
        if text.document in documents:
            left[f"{side}: another text of the same document was taken"].append(name)
            continue
        shown = _take_sentences(text.text, settings.most_words)
        keys = {_content_key(text.text), _content_key(shown)}
        if len(WORD.findall(shown)) < settings.fewest_words:
            left[f"{side}: fewer than {settings.fewest_words} words"].append(name)
        elif keys & known:
            left[f"{side}: also among the members"].append(name)
        elif keys & seen:
            left[f"{side}: the same text as another"].append(name)
        else:
            seen |= keys
            documents.add(text.document)
            yield Text(f"{side}-{name}", shown, group=f"{side}-{text.document}")


def _take_sentences(text: str, most: int) -> str:
    """The sentences from the start of a text that have at most so many words, without white space at the ends; the
    first words of the first sentence where that alone has more.

    >>> _take_sentences("One two three. Four five. Six.", 5), _take_sentences("One two three four.", 2)
    ('One two three. Four five.', 'One two')
    """
    taken, room = [], most
    for sentence in split_sentences(text):
        number = len(WORD.findall(sentence))
        if number > room:
            break
        taken.append(sentence)
        room -= number
    if not "".join(taken).strip() and WORD.search(text):
        at = next((found.end() for k, found in enumerate(WORD.finditer(text), 1) if k == most), len(text))
        return text[:at].strip()
    return "".join(taken).strip()


def _content_key(text: str) -> bytes:
    """What two texts have in common that differ in case and white space alone."""
    plain = " ".join(text.split()).casefold()
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).digest()[:16]


def _split_of(rank: int, size: int) -> str:
    """The part of the benchmark that text number `rank` of a side of `size` is in, in the paper's proportions.

    Of 600 a side the first 100 are the reference detectors are fitted on, the next 100 validation, and 400 the test
    (appendix C.1). The order is random.

    >>> [_split_of(rank, 6) for rank in range(6)]
    ['reference', 'validation', 'test', 'test', 'test', 'test']
    """
    if 6 * rank < size:
        return "reference"
    return "validation" if 6 * rank < 2 * size else "test"


MEMBERS, NONMEMBERS = "member", "nonmember"
PAPER = (
    "Hongyi Tang, Zhihao Zhu and Yi Yang 2025, Identifying Pre-training Data in LLMs: A Neuron Activation-Based "
    "Detection Framework, section 4 and appendix C"
)
_TOGETHER = 16  # texts that are transformed, and shown as done, at a time


@dataclass(frozen=True, slots=True)
class CcnewsSettings:
    """How many texts of both sides together, how long, and whether members are transformed too."""

    texts: int = option(1200, "Number of texts, half of them members.", panel="", least=2)
    fewest_words: int = WORDS.key(64, "Shorter texts are left out.", name="least", least=1)
    most_words: int = WORDS.key(256, "Take whole sentences within this many words.", name="most", least=1)
    transform_both: bool = option(False, "Transform the members, too; the paper does not.", panel="")
    seed: int = seed_option()

    def __post_init__(self) -> None:
        check_ranges(self)
        require(self.texts % 2 == 0, f"--texts counts both sides and must be even, found {self.texts}.")
        require(
            self.fewest_words <= self.most_words,
            f"--words least must not be more than --words most, found {self.fewest_words} and {self.most_words}.",
        )


def build_ccnews(
    members: Corpus,
    nonmembers: Corpus,
    method: TransformMethod,
    *,
    folder: Path,
    settings: CcnewsSettings,
    progress: Progress = Progress(),  # noqa: B008 (nobody reads what it counts)
) -> writing.Built:
    """The benchmark, written to `folder/KIND.jsonl` with its card: id, text, label, group, original, transformed (0 or
    1), split. What models made is kept, so a killed build goes on. TextsError for too few texts, OutputError where
    something else is there, ModelError for a model that cannot be had."""
    out = folder / f"{method.kind}.jsonl"
    chosen = asdict(method)
    chosen["opening"] = {name: chosen["opening"][name] for name in _OPENING}
    sources = {"members": record_corpus(members), "nonmembers": record_corpus(nonmembers)}
    recorded = {**asdict(settings), "transform": method.kind, **chosen, "sources": sources}
    writing.check_place(out, recorded)
    left = writing.LeftOut(list)
    # whole and cut: articles may differ only behind what is taken of them
    cut = ((text.text, _take_sentences(text.text, settings.most_words)) for text in members.texts)
    among = frozenset(map(_content_key, chain.from_iterable(cut)))
    sides: dict[str, list[Text]] = {}
    for name, corpus, known in ((MEMBERS, members, frozenset[bytes]()), (NONMEMBERS, nonmembers, among)):
        sides[name] = list(_draw_candidates(corpus, name, settings, known=known, left=left))
        _refuse_few(name, len(sides[name]), settings)
    facts, change = method._open()
    rows: list[writing.Row] = []
    for name, some in sides.items():
        changed = name == NONMEMBERS or settings.transform_both
        pairs = [(one, one.text) for one in some[: settings.texts // 2]]
        if changed:
            pairs = _changed(name, some, change, settings, left, progress)
        rows += [
            {
                "id": one.id,
                "text": text,
                "label": int(name == MEMBERS),
                "group": one.group,
                "original": one.text,
                "transformed": int(changed),
                "split": _split_of(rank, len(pairs)),
            }
            for rank, (one, text) in enumerate(pairs)
        ]
    card = {
        "title": f"CCNewsPDD({method.kind}), built with pretrace",
        "after": PAPER,
        "settings": recorded,
        "models": dict(facts),
        "rows": _sizes(rows),
        "left_out": writing.record_left_out(left),
        "blind": _blind(rows, settings),
        "software": record_software(),
    }
    return writing.write(out, rows, card)


def _refuse_few(name: str, found: int, settings: CcnewsSettings) -> None:
    if found < settings.texts // 2:
        numbers = {"found": found, "fewer": 2 * found, "least": settings.fewest_words}
        raise TextsError(say("build.refused.few", wanted=settings.texts // 2, name=name, **numbers))


def _changed(
    name: str,
    drawn: Sequence[Text],
    change: Change,
    settings: CcnewsSettings,
    left: writing.LeftOut,
    progress: Progress,
) -> list[tuple[Text, str]]:
    """The first texts of a side whose transformation is sound, each with what it was changed into."""
    size = settings.texts // 2
    made: list[tuple[Text, str]] = []
    progress.begin(size)
    following = iter(drawn)
    while len(made) < size and (some := list(islice(following, min(_TOGETHER, size - len(made))))):
        begin, given = time.perf_counter(), [one.text for one in some]
        for one, (text, fault) in zip(some, change(given, settings.seed), strict=True):
            if fault:
                left[f"{name}: {fault}"].append(one.id)
            else:
                made.append((one, text))
        number = sum(len(WORD.findall(one.text)) for one in some)
        progress.advance(len(some), number, time.perf_counter() - begin, True)
    _refuse_few(name, len(made), settings)
    return made


def _sizes(rows: Sequence[writing.Row]) -> dict[str, Any]:
    """Texts, words and splits of each side, and how many of its words a transformed text has kept."""
    told: dict[str, Any] = {}
    for name, label in (("members", 1), ("nonmembers", 0)):
        side = [row for row in rows if row["label"] == label]
        changed = [(row["original"], row["text"]) for row in side if row["transformed"]]
        kept, splits = shared_words(changed), [row["split"] for row in side]
        words, before = (
            round(float(np.mean([len(WORD.findall(row[one])) for row in side])), 2)
            for one in ("text", "original")
        )
        told[name] = {
            "texts": len(side),
            "transformed": len(changed),
            "mean_words": words,
            "mean_words_originally": before,
            "words_shared_with_original": None if kept is None else round(kept, 4),
            "splits": {split: splits.count(split) for split in ("reference", "validation", "test")},
        }
    return told


def _blind(rows: Sequence[writing.Row], settings: CcnewsSettings) -> dict[str, Any]:
    """What a bag of words makes of the originals, the published recipe and both sides transformed."""
    plain = [{**row, "text": row["original"]} for row in rows]
    recipe = [{**row, "text": row["original"] if row["label"] else row["text"]} for row in rows]
    given = {
        "original": (plain, "the two collections differ as texts."),
        "published": (recipe, "the collections differ, or the machine that wrote one side shows."),
    }
    if settings.transform_both:
        why = "the collections differ even after the same machine went over both."
        given["transform_both"] = ([*rows], why)
    found = {
        name: writing.blind_baseline(some, seed=settings.seed, why=why) for name, (some, why) in given.items()
    }
    auc = {name: value for name, (_, value) in found.items() if value is not None}
    kind = "none" if len(auc) < len(found) else "both" if settings.transform_both else "alone"
    moved = auc.get("published", 0.0) - auc.get("original", 0.0)
    finding = say(f"build.blind.{kind}", moved=moved, **auc)
    return {"transform_both": None, **{name: told for name, (told, _) in found.items()}, "finding": finding}
