"""An index of infini-gram as a corpus: `infini-gram:FOLDER#TOKENIZER` here, `infini-gram:https://HOST/#INDEX` served.

It is asked for stretches of whole words. A run of `RUN` characters is looked for among the shortest stretches of that
length; where one is not there, its longest end that is there says how far to go on. So a text takes about half as many
questions as it has words. An index cuts tokens, so a passage is found where the corpus cuts it as the question does
(whole words, as written, behind a space); it counts places and not documents, and does not say where in one.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pretrace.backends.loading import open_tokenizer
from pretrace.backends.serving.address import holds_secret, split_url
from pretrace.backends.serving.client import Client
from pretrace.errors import MissingPackageError, ModelError, TextsError
from pretrace.plugins.scan.corpus import (
    INDEX,
    CorpusFile,
    DocumentFacts,
    FileFacts,
    Sighting,
    Unread,
    facts_of,
)
from pretrace.plugins.scan.folding import FoldedTexts
from pretrace.plugins.scan.searching import RUN, ScanPart, add_changes
from pretrace.results.wording import say

if TYPE_CHECKING:
    import tokenizers

NAMED = 5
"""Documents that are asked for of each text, of those that hold its longest passage."""
ASKED_AT_ONCE, SECONDS = 8, 60.0
"""Questions to a server that are under way at once, and how long an answer may take."""
LONGEST = 1000
"""Characters of a question to a server: what the published one takes."""
PAIRS, FEWEST_PAIRS = 200, 0.1
"""Pairs of words that show whether an index speaks the language of the texts, and the share that must be in it."""
_OPERATORS = re.compile(r"\s(?:AND|OR)\s")
"""Words that a server reads as its own operators."""
_WORDS = re.compile(r"\S+")


class Index(ABC):
    """Counts passages. `most` characters may be asked for at once, `at_once` questions may be under way."""

    most: int
    at_once: int
    documents = size = 0

    @abstractmethod
    def count(self, passage: str) -> int:
        """The places where whole words stand, as they are written; Unread where there is no answer."""

    @abstractmethod
    def holding(self, passage: str, most: int) -> list[tuple[int, DocumentFacts]]:
        """The numbers of documents that hold it, up to `most`, and what is known of them."""

    def backwards(self, passage: str) -> int:
        """The places where its tokens stand in the opposite order; 0 where that cannot be asked."""
        return 0

    def unasked(self, text: str) -> bool:
        """Whether a passage of this text cannot be asked for."""
        return False


class ServedIndex(Index):
    """An index behind the interface of infini-gram's own server (https://api.infini-gram.io)."""

    most, at_once = LONGEST, ASKED_AT_ONCE

    def __init__(self, url: str, name: str) -> None:
        self._name = name
        self._client = Client(url, requests=ASKED_AT_ONCE, seconds=SECONDS, keyless=True)

    def count(self, passage: str) -> int:
        """A passage with a word that the server takes for an operator is not asked for."""
        if _OPERATORS.search(passage):
            return 0
        found = self._asked({"query_type": "count", "query": passage}).get("count")
        if not isinstance(found, int) or found < 0:
            raise Unread(f"{self._client.url} gave no count, so it is no server of infini-gram.")
        return found

    def holding(self, passage: str, most: int) -> list[tuple[int, DocumentFacts]]:
        found = self._asked({"query_type": "find", "query": passage}).get("segment_by_shard")
        return _documents(
            found, most,
            lambda shard, rank: self._asked(
                {"query_type": "get_doc_by_rank", "query": passage, "s": shard, "rank": rank, "max_disp_len": 1}
            ),
        )  # fmt: skip

    def unasked(self, text: str) -> bool:
        return _OPERATORS.search(text) is not None

    def _asked(self, question: dict[str, Any]) -> dict[str, Any]:
        try:
            found = self._client.ask("/", {"index": self._name, **question})
        except ModelError as error:
            raise Unread(str(error)) from None
        if not isinstance(found, dict):
            raise Unread(f"{self._client.url} answers with something else than infini-gram's server does.")
        if "error" in found:
            raise Unread(f"{self._client.url} refuses: {self._client.plain(str(found['error']))}")
        return found


class LocalIndex(Index):
    """An index in a folder here, asked by infini-gram's own package with the ids of a passage in each of its forms."""

    most, at_once = 1 << 20, 1

    def __init__(self, folder: Path, tokenizer: str) -> None:
        try:
            from infini_gram.engine import InfiniGramEngine
        except ImportError:
            raise MissingPackageError("infini-gram", "An index of infini-gram") from None
        parts = sorted(folder.glob("tokenized.*"))
        if not parts:
            raise TextsError(f"{folder} holds no index of infini-gram: it has no file tokenized.0.")
        self.size = sum(one.stat().st_size for one in parts)
        self.documents = sum(one.stat().st_size for one in folder.glob("offset.*")) // 8
        self._tokenizer: tokenizers.Tokenizer | None = None
        size = 255
        if tokenizer:
            self._tokenizer = open_tokenizer(tokenizer).rust
            size = max(2, self._tokenizer.get_vocab_size())
        width = 1 if not tokenizer else 2 if size < 1 << 16 else 4
        mark = parts[0].open("rb").read(4)
        held = next((k for k in (4, 2, 1) if mark[:k] == b"\xff" * k), 0)
        if held != width:
            raise TextsError(
                say("scan.refused.token_width", folder=folder, held=held, width=width, index=INDEX)
            )
        self._engine: Any = InfiniGramEngine(
            # the end of a text plays no part in counts
            index_dir=str(folder), eos_token_id=size - 1, vocab_size=size, version=4,
            token_dtype={1: "u8", 2: "u16", 4: "u32"}[width],
        )  # fmt: skip

    def count(self, passage: str) -> int:
        return sum(int(self._engine.count(input_ids=one)["count"]) for one in self._forms(passage))

    def holding(self, passage: str, most: int) -> list[tuple[int, DocumentFacts]]:
        found: dict[int, DocumentFacts] = {}
        for ids in self._forms(passage):
            segments = self._engine.find(input_ids=ids)["segment_by_shard"]
            found |= _documents(
                segments, most, lambda s, r: self._engine.get_doc_by_rank(s=s, rank=r, max_disp_len=1)
            )
        return sorted(found.items())[:most]

    def backwards(self, passage: str) -> int:
        """An index of version 5 holds each document from its end to its beginning."""
        return sum(int(self._engine.count(input_ids=one[::-1])["count"]) for one in self._forms(passage))

    def _forms(self, passage: str) -> list[list[int]]:
        """The ids behind a space and at the beginning of a line, which are the same for bytes."""
        if self._tokenizer is None:
            return [list(passage.encode("utf-8", "replace"))]
        behind, alone = (
            list(self._tokenizer.encode(one, add_special_tokens=False).ids)
            for one in (f" {passage}", passage)
        )
        if behind[-len(alone) :] == alone:  # the space is a token of its own, or stands before any text
            return [alone]
        return [behind, alone]


def _open_index(file: CorpusFile) -> Index:
    """The index that an address names; TextsError for one that is written otherwise."""
    place, _, name = file.address.removeprefix(INDEX).partition("#")
    if "://" not in place:
        return LocalIndex(Path(place), name)
    parts = split_url(place)
    if parts is None or holds_secret(parts) or not name:
        raise TextsError(say("scan.refused.served_index", index=INDEX, address=file.address))
    return ServedIndex(place, name)


def _documents(
    segments: Any, most: int, document: Callable[[int, int], Any]
) -> list[tuple[int, DocumentFacts]]:
    """The first documents of the places that `find` names: number, and what the index keeps beside it."""
    found: dict[int, DocumentFacts] = {}
    with suppress(TypeError, ValueError, KeyError):
        for shard, (first, last) in enumerate(segments):
            for rank in range(int(first), min(int(last), int(first) + most)):
                if len(found) == most:
                    break
                told = document(shard, rank)
                found[int(told["doc_ix"])] = facts_of(str(told.get("metadata") or ""))
    return sorted(found.items())


# Runs


class Stretch(NamedTuple):
    """Characters [start, end) of a text that stand at so many places."""

    start: int
    end: int
    places: int

    @property
    def size(self) -> int:
        """Its characters."""
        return self.end - self.start


class _Words:
    """The words of a text, and at how many places stretches of them stand."""

    def __init__(self, text: str, index: Index) -> None:
        self.text, self.most, self._index = text, index.most, index
        self.spans = [(one.start(), one.end()) for one in _WORDS.finditer(text)]

    def size(self, first: int, last: int) -> int:
        """Characters of words [first, last)."""
        return self.spans[last - 1][1] - self.spans[first][0]

    def places(self, first: int, last: int) -> int:
        """The places of words [first, last); 0 for more than can be asked for at once."""
        if self.size(first, last) > self.most:
            return 0
        return self._index.count(self.text[self.spans[first][0] : self.spans[last - 1][1]])

    def enough(self, first: int) -> int:
        """The end of the shortest stretch of `RUN` characters from there on; beyond the words where there is none."""
        wanted = self.spans[first][0] + RUN
        return bisect_left(self.spans, wanted, lo=first, key=lambda one: one[1]) + 1

    def begins(self, first: int, last: int) -> int:
        """The first word from `first` on from which the words up to `last` stand there; `last` where none does."""
        return first + bisect_left(range(first, last), True, key=lambda i: self.places(i, last) > 0)

    def ends(self, first: int, last: int) -> int:
        """The last word up to which those from `first` on stand there, as up to `last`: by steps that grow."""
        step = 1
        while last < len(self.spans):
            there = min(last + step, len(self.spans))
            if not self.places(first, there):
                missing = bisect_left(range(last + 1, there), True, key=lambda i: not self.places(first, i))
                return last + missing
            last, step = there, 2 * step
        return last


def runs_of(text: str, index: Index) -> tuple[list[Stretch], list[Stretch], int]:
    """The runs of a text that an index holds, the pieces of which they are made, and the copies of the whole. Found are
    all stretches of whole words with `RUN` or more characters that it counts at one place or more, up to `Index.most`
    characters each."""
    words = _Words(text, index)
    runs = _longest(words)
    found = [Stretch(words.spans[a][0], words.spans[b - 1][1], words.places(a, b)) for a, b in runs]
    copies = found[0].places if runs == [(0, len(words.spans))] else 0
    return found, list(_pieces(words, runs)), copies


def _longest(words: _Words) -> list[tuple[int, int]]:
    """The stretches that stand there and are part of no longer one, first and last word (not included)."""
    runs: list[tuple[int, int]] = []
    first, last, number = 0, 0, len(words.spans)
    while first < number and (least := words.enough(first)) <= number:
        if last < least:
            if not words.places(first, least):
                first = words.begins(first + 1, least)
                continue
            last = least
        last = words.ends(first, last)
        runs.append((first, last))
        if last == number:
            break
        if words.size(first, last + 1) > words.most:  # it may go on: asked anew, with a run in common
            common = bisect_left(words.spans, words.spans[last - 1][1] - RUN + 1, key=lambda one: one[0]) - 1
            first = max(first + 1, common)
        else:
            first = words.begins(first + 1, last + 1)
    return runs


def _pieces(words: _Words, runs: Sequence[tuple[int, int]]) -> Iterator[Stretch]:
    """The runs in pieces of about `RUN` characters with their places: what is common in a rare run stands at many."""
    done = 0
    for begin, end in runs:
        at = max(begin, done)
        while at < end:
            behind = min(words.enough(at), end)
            start = at
            while start > begin and words.size(start, behind) < RUN:
                start -= 1  # a rest is counted with what stands before it
            # white space between words as well
            left = words.spans[at - 1][1] if at > begin else words.spans[at][0]
            yield Stretch(left, words.spans[behind - 1][1], words.places(start, behind))
            at = behind
        done = max(done, end)


# A search


class KeptIndex(Index):
    """An index that is asked nothing twice: its answers are written into the file `path` as they come. `check` may
    raise what ends the search."""

    def __init__(self, index: Index, path: Path | None, check: Callable[[], object]) -> None:
        self._index, self._path, self._check, self._lock = index, path, check, threading.Lock()
        self.most, self.at_once, self.documents, self.size = (
            index.most,
            index.at_once,
            index.documents,
            index.size,
        )
        self._known: dict[str, Any] = {}
        for line in path.read_bytes().split(b"\n") if path is not None and path.exists() else ():
            with suppress(ValueError):  # the last one may be cut
                self._known.update(json.loads(line))

    def _answer(self, kind: str, passage: str, *more: int) -> Any:
        asked = f"{kind} {passage}"
        if asked not in self._known:
            self._check()
            self._known[asked] = getattr(self._index, kind)(passage, *more)
            if self._path is not None:
                with self._lock, self._path.open("ab") as file:
                    file.write(b"\n" + json.dumps({asked: self._known[asked]}).encode())
        return self._known[asked]

    def count(self, passage: str) -> int:
        return int(self._answer("count", passage))

    def holding(self, passage: str, most: int) -> list[tuple[int, DocumentFacts]]:
        found = self._answer("holding", passage, most)
        return [(number, DocumentFacts(*facts)) for number, facts in found]

    def backwards(self, passage: str) -> int:
        return int(self._answer("backwards", passage))

    def unasked(self, text: str) -> bool:
        return self._index.unasked(text)


def ask_index(
    file: CorpusFile,
    texts: Sequence[str],
    folded: FoldedTexts,
    kept: Path | None,
    check: Callable[[], object],
) -> ScanPart:
    """What an index holds of texts. `kept` is the file of answers; `check` may raise what ends the search."""
    index, unread = KeptIndex(_open_index(file), kept, check), ""
    changes, part = list[tuple[int, int]](), ScanPart()
    part.counts, part.longest = np.zeros((len(texts), 3), np.int64), np.zeros(len(texts), np.int64)

    def one(i: int) -> None:
        runs, pieces, copies = runs_of(texts[i], index)
        if not runs:
            return
        at = _bytes_at(
            texts[i], int(folded.spans[i, 0]), {place for run in (*pieces, *runs) for place in run[:2]}
        )
        longest = max(runs, key=lambda run: run.size)
        named = index.holding(texts[i][longest.start : longest.end], NAMED)
        for piece in pieces:
            changes.extend([(at[piece.start], piece.places), (at[piece.end], -piece.places)])
        part.counts[i, :2], part.longest[i] = (max(piece.places for piece in pieces), copies), longest.size
        size = at[longest.end] - at[longest.start]
        part.best[i] = [Sighting(size, file.address, number, known) for number, known in named]

    try:
        unread = check_language(index, texts)
        if not unread and (some := sum(map(index.unasked, texts))):  # what was not asked for clears nobody
            unread = say("scan.index.operators", some=some, texts=len(texts))
        with ThreadPoolExecutor(index.at_once) as pool:
            for _ in pool.map(one, range(len(texts))):
                pass
    except Unread as error:
        unread = str(error)
    part.files = (FileFacts(file.address, index.documents, 0, index.size, unread),)
    part.changes = add_changes([np.array(changes, dtype=np.int64)])
    return part


def _bytes_at(text: str, first: int, places: set[int]) -> dict[int, int]:
    """The byte of UTF-8 at which each of these characters begins, where the text begins at byte `first`."""
    found, before = dict[int, int](), 0
    for place in sorted(places):
        first += len(text[before:place].encode("utf-8", "surrogatepass"))
        found[place], before = first, place
    return found


def check_language(index: Index, texts: Sequence[str]) -> str:
    """Why an index says nothing of these texts, "" where it does: pairs of their words must stand in it."""
    pairs = []
    for text in texts:
        words = [(one.start(), one.end()) for one in _WORDS.finditer(text)]
        pairs += [text[a[0] : b[1]] for a, b in itertools.pairwise(words)]
    some = pairs[:: max(1, len(pairs) // PAIRS)][:PAIRS]
    found = sum(index.count(one) > 0 for one in some)
    if some and found < FEWEST_PAIRS * len(some):
        return say("scan.index.other_words", pairs=len(some), found=found)
    turned = sum(index.backwards(one) > 0 for one in some)
    if turned > found:
        return say("scan.index.backwards")
    return ""


def seconds_for(file: CorpusFile, texts: Sequence[str]) -> tuple[int, float]:
    """About how many questions texts take, and how many seconds, timed on the first ten."""
    index, words = _open_index(file), [one.group() for text in texts[:50] for one in _WORDS.finditer(text)]
    began = time.perf_counter()
    for one in words[:10]:
        index.count(one)
    taken = (time.perf_counter() - began) / max(1, len(words[:10]))
    questions = sum(sum(1 for _ in _WORDS.finditer(text)) for text in texts) // 2
    return questions, questions * taken / index.at_once
