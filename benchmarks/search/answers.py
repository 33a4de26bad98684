"""The exact tests in text alone, on small models: which row comes next, which option, how does a hash go on?

    python -m benchmarks.search.answers --worlds 10

A world is two small models trained from scratch on texts of one made-up language, one of which has read a set of rows,
a quiz with options and texts with hashes besides, each at 1, 4, 16 and 64 copies. Both are asked with weights and in
text alone, through the functions that the commands call, with all their checks. The nulls of a world are 30 more sets
of each kind, made in the same way, that neither model has read: asked in text alone. With weights the same tests have
their nulls in results/innocents_models.json.

Writes the part "answers" of benchmarks/results/recite.json, and goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.search.recite import COPIES, cached, keep, kept, made_words, shared, tally, trained
from pretrace.backends.generation import Completer
from pretrace.backends.huggingface import HuggingFace
from pretrace.scoring.plan import Models
from pretrace.types import Corpus, Text, Verdict
from pretrace.verdicts.audit.generation import complete
from pretrace.verdicts.canaries import CanarySettings, check_canaries, natural_canaries
from pretrace.verdicts.canaries import prompts_of as halves
from pretrace.verdicts.order import OrderSettings, in_text, order, prompts_of
from pretrace.verdicts.reading import draws_of

ROWS, WORDS, ITEMS, STRINGS, NULLS = 64, 10, 24, 20, 30
"""Rows of a set, words of a row, items of a quiz, texts with a hash, and nulls of each kind that a world makes."""
BY_ROWS = OrderSettings(shuffled_with="sha256")
BY_OPTIONS = OrderSettings(shuffled_with="sha256", options="choices", answer="right")
Rng = np.random.Generator


@dataclass(frozen=True)
class Language:
    """Words, and which one follows which."""

    words: tuple[str, ...]
    law: Any

    @classmethod
    def of(cls, rng: Rng) -> Language:
        """A language in which few words follow each."""
        words = tuple(sorted(set(made_words(rng))))
        return cls(words, rng.dirichlet(np.full(len(words), 0.05), len(words)))

    def some(self, rng: Rng, number: int) -> str:
        """So many words in a row."""
        row = [int(rng.integers(len(self.words)))]
        while len(row) < number:
            row.append(int(rng.choice(len(self.words), p=self.law[row[-1]])))
        return " ".join(self.words[i] for i in row)

    def tokenizer(self) -> Any:
        """Words are tokens, and so is every other character."""
        import tokenizers
        import transformers as t

        own = [*self.words, *(f" {word}" for word in self.words), "\n", *map(chr, range(32, 127))]
        known = {"<s>": 0, "</s>": 1, **{one: i for i, one in enumerate(own, 2)}}
        rust = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="<s>"))
        split = tokenizers.Regex(rf" ?(?:{'|'.join(self.words)})(?![a-z0-9])|[\s\S]")
        rust.pre_tokenizer = tokenizers.pre_tokenizers.Split(split, "isolated")
        rust.decoder = tokenizers.decoders.Fuse()
        return t.PreTrainedTokenizerFast(tokenizer_object=rust, bos_token="<s>", eos_token="</s>")


@dataclass(frozen=True)
class Sets:
    """What is published: rows and options in the order of their hashes, and texts with a random string each."""

    rows: Corpus
    quiz: Corpus
    sums: Corpus

    @classmethod
    def of(cls, language: Language, rng: Rng) -> Sets:
        """Made anew."""
        rows = sorted((language.some(rng, WORDS) for _ in range(ROWS)), key=_hash)
        quiz = []
        for i in range(ITEMS):
            question = f"{language.some(rng, 4)}?"
            # each begins with another of five words, so that who knows the kind names one of them
            made = [f"{first} {language.some(rng, 2)}" for first in language.words[:5]]
            options = sorted(made, key=lambda one, of=question: _hash(f"{of}\n{one}"))
            right = options[int(rng.integers(5))]
            quiz.append(Text(f"q{i}", question, meta={"choices": json.dumps(options), "right": right}))
        sums = [
            f"{language.some(rng, 6)} {rng.bytes(20).hex()} {language.some(rng, 3)}" for _ in range(STRINGS)
        ]
        return cls(
            Corpus("rows", tuple(Text(f"r{i}", one) for i, one in enumerate(rows))),
            Corpus("quiz", tuple(quiz)),
            Corpus("sums", tuple(Text(f"s{i}", one) for i, one in enumerate(sums))),
        )

    def read(self) -> list[str]:
        """What a model reads that reads all of it once: pieces of the file of rows, the items, the texts."""
        rows = [one.text for one in self.rows.texts]
        pieces = ["\n\n".join(rows[at : at + 9]) for at in range(0, ROWS, 8)]
        items = []
        for one in self.quiz.texts:
            listed = json.loads(str(one.meta["choices"]))
            items.append("\n".join([one.text, *(f"{a}. {c}" for a, c in zip("ABCDE", listed, strict=True))]))
        return [*pieces, *items, *(one.text for one in self.sums.texts)]

    def verdicts(self, models: Models, *, text: bool) -> dict[str, Verdict]:
        """The three tests."""
        return {
            "order of rows": order(self.rows, models, BY_ROWS, text=text),
            "order of options": order(self.quiz, models, BY_OPTIONS, text=text),
            "canaries": check_canaries(self.sums, models, text=text),
        }

    def prompts(self) -> list[str]:
        """What the three tests ask in text alone."""
        found = [
            one
            for corpus, how in ((self.rows, BY_ROWS), (self.quiz, BY_OPTIONS))
            for one in prompts_of(in_text(corpus, how)[1], chat=False)
        ]
        return [*found, *halves(natural_canaries(self.sums, CanarySettings(), text=True))]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def world(seed: int) -> dict[str, Any]:
    """Two models, and what the tests say of sets that one has read at each number of copies, and of others."""
    rng = np.random.default_rng([28, seed])
    language = Language.of(rng)
    tokenizer = language.tokenizer()
    planted = {copies: Sets.of(language, rng) for copies in COPIES}
    nulls = [Sets.of(language, rng) for _ in range(NULLS)]
    others = [text for _ in range(12) for text in Sets.of(language, rng).read()]
    read = [text for copies, sets in planted.items() for text in sets.read() for _ in range(copies)]
    instead = [text for _ in range(12) for text in Sets.of(language, rng).read()]
    target = trained(tokenizer, [*read, *others], 1000 * seed + 1, f"answers {seed}, model 1")
    second = trained(tokenizer, [*instead, *others], 1000 * seed + 2, f"answers {seed}, model 2")
    models = Models(target, placebos=(second,))
    found: dict[str, Any] = {"read": {}, "nulls": []}
    with cached():
        prompts = [one for sets in (*planted.values(), *nulls) for one in sets.prompts()]
        for model in (target, second):
            assert isinstance(model, HuggingFace)
            complete(Completer(model, budget=1 << 16), prompts, draws_of(0)[0])
        for copies, sets in planted.items():
            for text in (False, True):
                how = "text alone" if text else "weights"
                for name, verdict in sets.verdicts(models, text=text).items():
                    found["read"][f"{name}, {copies} copies, {how}"] = _told(verdict)
        for sets in nulls:
            found["nulls"].append(
                {name: _told(one) for name, one in sets.verdicts(models, text=True).items()}
            )
    return found


def _told(verdict: Verdict) -> dict[str, Any]:
    failed = [one.name for one in verdict.checks if one.status == "failed"]
    return {"p": verdict.p, "outcome": verdict.outcome, "failed": failed}


def main() -> None:
    """Worlds until there are enough."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=10)
    given = parser.parse_args()
    rows = kept().get("answers", {}).get("worlds", [])
    for seed in range(len(rows), given.worlds):
        began = time.monotonic()
        rows.append(world(seed))
        keep(
            "answers",
            {
                "sizes": {"rows": ROWS, "items": ITEMS, "hashes": STRINGS},
                "read": {name: tally([row["read"][name] for row in rows]) for name in rows[0]["read"]},
                "nulls": {
                    name: tally([one[name] for row in rows for one in row["nulls"]])
                    for name in rows[0]["nulls"][0]
                },
                "sets share": f"{NULLS} nulls of a kind share the two models that are asked; none shares a text.",
                "worlds": rows,
            },
        )
        shared()
        print(f"world {seed}: {time.monotonic() - began:.0f} s", kept()["answers"]["nulls"], flush=True)
        print({name: one["accused"] for name, one in kept()["answers"]["read"].items()}, flush=True)


if __name__ == "__main__":
    main()
