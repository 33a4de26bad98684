"""Held-out texts written in every way that table 5 of post-hoc dataset inference compares (its sections 4.1 and 5.4).

All ways begin with the same documents and, but for `beginnings`, with the same snippet of each, and leave pairs of a
true and a written text. What was written is kept as one file a way; adapters and answers are kept as they come, so
that a run that was killed goes on.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.audits.instructions import COMPLETION, PARAPHRASE, continued, instruction
from benchmarks.audits.preferring import Choice, SimPO, prefer
from benchmarks.experiments import Row, Spoken
from pretrace.backends import open_adapter
from pretrace.backends.generation import Completer
from pretrace.backends.huggingface import HuggingFace
from pretrace.errors import TextsError
from pretrace.results.atomic import atomic_text
from pretrace.tuning import tune
from pretrace.types import Corpus, Instructed, Pair, Sampling, Text
from pretrace.verdicts.audit.generation import Draw, complete
from pretrace.verdicts.audit.snippets import Snippet, SnippetSettings, Spans, cut

EVERY = 1 << 20
"""More snippets than any document has."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How texts are written: `method` tunes a generator on `learnt` snippets; `preferences` of these teach it to
    prefer the true ones; an instruction to the model `instructed` shows `shots` of them. A snippet has `tokens`, a
    beginning `beginning`."""

    method: str
    sampling: Sampling = field(default_factory=Sampling)
    tokens: int = 64
    beginning: int = 128
    learnt: int = 300
    preferences: int = 150
    instructed: str = "smollm2"
    shots: int = 5
    simpo: SimPO = field(default_factory=SimPO)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Material:
    """What is written about: a snippet of each judged document, the other snippets of the same documents, in random
    order, and beginnings of the judged documents and of others."""

    judged: tuple[Snippet, ...]
    learnt: tuple[Snippet, ...]
    beginnings: tuple[Snippet, ...]
    others: tuple[Snippet, ...]

    @classmethod
    def of(cls, corpus: Corpus, documents: int, spans: Spans, how: Writing) -> Material:
        """From so many documents of the corpus, drawn at random; TextsError where it has no others besides."""
        order = np.random.default_rng([how.seed, 5]).permutation(len(corpus)).tolist()
        if documents >= len(order):
            raise TextsError(
                f"{corpus.name} has {len(order)} documents, and the ablations want more than the {documents} that are "
                "judged, for a generator to learn from: take fewer with --pairs."
            )
        mine, rest = (
            replace(corpus, texts=tuple(corpus.texts[i] for i in sorted(some)))
            for some in (order[:documents], order[documents:])
        )
        one, every = SnippetSettings(how.tokens, most=1), SnippetSettings(how.tokens, most=EVERY)
        judged = cut(mine, spans, one, seed=how.seed).snippets
        taken = {snippet.id for snippet in judged}
        left = [snippet for snippet in cut(mine, spans, every).snippets if snippet.id not in taken]
        shuffled = np.random.default_rng([how.seed, 6]).permutation(len(left)).tolist()
        return cls(
            judged=judged,
            learnt=tuple(left[i] for i in shuffled),
            beginnings=_beginnings(mine, spans, how.beginning),
            others=_beginnings(rest, spans, how.beginning),
        )


class Written(NamedTuple):
    """The pairs of one way of writing, and what there is to tell of them."""

    pairs: tuple[Pair, ...]
    facts: Row


class Writer:
    """Writes held-out texts for one domain in the ways of `WAYS`, each once; files are kept in `folder`.

    `instructed` opens the model that is asked to paraphrase and to complete, when it is first wanted.
    """

    def __init__(
        self,
        material: Material,
        model: HuggingFace,
        instructed: Callable[[], Instructed],
        how: Writing,
        folder: Path,
    ) -> None:
        self.material, self.model, self.how, self.folder = material, model, how, folder
        self._open = instructed

    @cached_property
    def instructed(self) -> Instructed:
        """The model that follows instructions."""
        return self._open()

    def written(self, way: str) -> Written:
        """The pairs of one way, written now unless the same are on file."""
        judged = self.material.beginnings if way == "beginnings" else self.material.judged
        path = self.folder / f"{way}-{self._settled(way, judged)}.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            return Written(tuple(Pair(*row) for row in found["pairs"]), found["facts"])
        began = time.monotonic()
        pairs = tuple(pair for pair in WAYS[way](self) if pair.generated.strip())
        facts = {"asked": len(judged), "written": len(pairs), "seconds": round(time.monotonic() - began, 1)}
        if not pairs:
            raise TextsError(f"no text was written in the way called {way}: there is nothing to measure.")
        rows = [[pair.id, pair.document, pair.prefix, pair.true, pair.generated] for pair in pairs]
        self.folder.mkdir(parents=True, exist_ok=True)
        atomic_text(path, json.dumps({"settings": asdict(self.how), "facts": facts, "pairs": rows}))
        return Written(pairs, facts)

    def _settled(self, way: str, judged: Sequence[Snippet]) -> str:
        """A hash of all that the texts of one way depend on."""
        chosen = {name: getattr(self.how, name) for name in (*_USUAL, *_MATTERS[way])}
        texts = [*(one.text for one in judged), "", *(one.text for one in self.material.learnt)]
        model = "" if way in INSTRUCTED else self.model.fingerprint
        others = [one.text for one in self.material.others] if way == "beginnings" else []
        return _digest([way, model, repr(chosen), *texts, "", *others])

    def complete(self) -> list[Pair]:
        """Suffixes by a generator that learnt from the other snippets of the same documents: the whole method."""
        return self._continued(self.tuned(self.learnt), self.material.judged)

    def preference(self) -> list[Pair]:
        """Suffixes by the same generator after it learnt to prefer true ones to its own, round by round."""
        folder = self.tuned(self.learnt)
        some = self.material.learnt[: min(self.how.preferences, self.how.learnt)]
        for number in range(self.how.simpo.rounds):
            named = _digest([folder.name, self._settled("preference", some), str(number)])
            into = self.folder / f"preferred-{named}"
            if not into.exists():
                # Other numbers each time, so that a round does not learn from the texts of the one before.
                own = self._continued(folder, some, seed=self.how.seed + 1 + number)
                choices = [Choice(one.prefix, one.true, one.generated) for one in own if one.generated]
                how = replace(self.how.simpo, seed=self.how.seed + number)
                prefer(self.model, folder, choices, how, folder=into, on_step=Spoken().on_step)
            folder = into
        return self._continued(folder, self.material.judged)

    def beginnings(self) -> list[Pair]:
        """The second halves of beginnings, by a generator that learnt from beginnings of other documents: as many
        tokens as it would learn from in snippets."""
        number = max(1, self.how.learnt * self.how.tokens // self.how.beginning)
        texts = [snippet.text for snippet in self.material.others[:number]]
        return self._continued(self.tuned(texts), self.material.beginnings)

    def paraphrase(self) -> list[Pair]:
        """Whole snippets, each beside what a model made of it that was asked to paraphrase."""
        judged = self.material.judged
        answers = self._followed(PARAPHRASE, [snippet.text for snippet in judged], self.how.tokens)
        return [
            Pair(one.id, one.document, "", one.text, self._first(text, len(self.model.spans(one.text))))
            for one, text in zip(judged, answers, strict=True)
        ]

    def completion(self) -> list[Pair]:
        """Suffixes by a model that was asked to complete; it may say the prefix again first, so it has the room."""
        judged = self.material.judged
        answers = self._followed(COMPLETION, [snippet.prefix for snippet in judged], self.how.tokens)
        return [
            Pair(
                one.id,
                one.document,
                one.prefix,
                one.suffix,
                self._first(continued(one.prefix, text), len(self.model.spans(one.suffix))),
            )
            for one, text in zip(judged, answers, strict=True)
        ]

    @property
    def learnt(self) -> list[str]:
        """The snippets a generator learns from."""
        return [snippet.text for snippet in self.material.learnt[: self.how.learnt]]

    def tuned(self, texts: Sequence[str]) -> Path:
        """The folder of the adapter that was tuned on the texts, tuned now unless it is there."""
        named = _digest([self.model.fingerprint, self.how.method, str(self.how.seed), *texts])
        folder = self.folder / f"generator-{named}"
        if not folder.exists():
            corpus = Corpus("generator-training texts", tuple(Text(str(i), t) for i, t in enumerate(texts)))
            self.folder.mkdir(parents=True, exist_ok=True)
            tune(
                self.model,
                corpus,
                self.how.method,
                folder=folder,
                seed=self.how.seed,
                on_step=Spoken().on_step,
            )
        return folder

    def _continued(self, folder: Path, snippets: Sequence[Snippet], *, seed: int | None = None) -> list[Pair]:
        """What the adapted model writes after each prefix, as many tokens as the true suffix has."""
        generator = Completer(open_adapter(self.model, folder).backend)
        tokens = self.how.beginning if snippets is self.material.beginnings else self.how.tokens
        draw = Draw(tokens - tokens // 2, self.how.sampling, self.how.seed if seed is None else seed)
        written = complete(generator, [one.prefix for one in snippets], draw, progress=Spoken())
        return [
            Pair(one.id, one.document, one.prefix, one.suffix, text)
            for one, text in zip(snippets, written, strict=True)
        ]

    def _followed(self, words: str, samples: Sequence[str], tokens: int) -> list[str]:
        """The answers to an instruction for each sample, with as many snippets of other documents as examples."""
        asked = [instruction(words, self._examples(number), sample) for number, sample in enumerate(samples)]
        found = self.instructed.answers(asked, tokens=tokens, sampling=self.how.sampling, seed=self.how.seed)
        return [one.text for one in found]

    def _examples(self, number: int) -> list[str]:
        """Snippets at random, none from the document of the judged snippet of that number."""
        own = self.material.judged[number].document
        order = np.random.default_rng([self.how.seed, 7, number]).permutation(len(self.material.learnt))
        found = (self.material.learnt[i] for i in order.tolist())
        return [one.text for one in found if one.document != own][: self.how.shots]

    def _first(self, text: str, tokens: int) -> str:
        """The first tokens of a text, so that neither side of a pair is the longer one."""
        ends = self.model.spans(text)[:, 1]
        return text if len(ends) <= tokens else text[: int(ends[tokens - 1])]


WAYS: dict[str, Callable[[Writer], list[Pair]]] = {
    "complete": Writer.complete,
    "beginnings": Writer.beginnings,
    "preference": Writer.preference,
    "paraphrase": Writer.paraphrase,
    "completion": Writer.completion,
}
INSTRUCTED = ("paraphrase", "completion")
_USUAL = ("sampling", "tokens", "seed")
_MATTERS = {
    "complete": ("method", "learnt"),
    "beginnings": ("method", "learnt", "beginning"),
    "preference": ("method", "learnt", "preferences", "simpo"),
    "paraphrase": ("instructed", "shots"),
    "completion": ("instructed", "shots"),
}
"""What of the settings each way depends on."""


def _beginnings(corpus: Corpus, spans: Spans, tokens: int) -> tuple[Snippet, ...]:
    """The first so many tokens of each document that has as many, in two halves."""
    pieces = cut(corpus, spans, SnippetSettings(tokens, most=EVERY)).snippets
    return tuple(piece for piece in pieces if piece.id.endswith("#0"))


def _digest(parts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part.encode("utf-8", "surrogatepass")).digest())
    return digest.hexdigest()[:16]
