"""What is settled before a model is asked: the two sets together, and what can be flagged among them at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.scoring.plan import ScorePlan
from pretrace.settings import CONTROLS, cache_option, check_ranges, like, option
from pretrace.statistics.conformal import METHODS, Method
from pretrace.statistics.documents import linked
from pretrace.types import Corpus, Text
from pretrace.verdicts.draws import seed_from, texts_hash
from pretrace.verdicts.flag.apart import Apart
from pretrace.verdicts.flag.copies import Sketches, near_copies
from pretrace.verdicts.flag.prospect import Prospect, prospect
from pretrace.verdicts.settings import TestSettings

SCORE = "min_k_plus_plus"
"""Of the scores that need nothing but the target it survived its controls most often on planted domains: in 7 of
8, `loss` in 5 (benchmarks/results/planted_domains.json). `ref` with an earlier checkpoint survived in 8 of 8."""
FLAGGING = "Flagging"
HIGHEST = 0.5
LOWEST_LEVEL = 0.001
"""What the permutations of a test of the set can still show."""


@dataclass(frozen=True, slots=True)
class FlagSettings:
    """How texts are flagged; ExpressionError for a value out of its range or a score that is fitted on labels.

    `fdr` is about the flags and `level` about the test of the whole set. `method` is "bh", "by", or "auto", which is
    "bh". `randomised` breaks ties of documents by lot instead of against the asked one. `power` trains a copy of the
    target on a tenth of the documents, which an all-clear needs. `cache` False keeps no traces on disk. All draws
    follow from the texts.
    """

    score: str = option(
        SCORE,
        "The score that decides, chosen beforehand: any that is not fitted on labels. With an earlier checkpoint "
        "of the model at hand: ref, and --reference-model CHECKPOINT.",
        panel=FLAGGING,
        essential=True,
    )
    fdr: float = option(
        0.05,
        "The share of the flagged texts (documents, where they have several texts) that may be false, on average.",
        panel=FLAGGING,
        essential=True,
    )
    level: float = option(
        0.05,
        "How often the test of the TEXTS as a whole may say that they stand out where none was seen.",
        panel=FLAGGING,
        essential=True,
    )
    method: Literal["auto", "bh", "by"] = option(
        "auto",
        "How that rate is kept: bh (documents are independent of each other), by (they depend on each other; "
        "stricter), or auto: bh.",
        panel=FLAGGING,
    )
    randomised: bool = option(
        False, "Break ties of scores at random instead of against the text.", panel=FLAGGING
    )
    power: bool = option(
        False,
        "Measure what this flagging would have seen: train a copy of the target on a tenth of the TEXTS (needed for "
        "exit code 0).",
        panel=CONTROLS,
        essential=True,
    )
    power_epochs: int = like(TestSettings, "power_epochs")
    power_method: Literal["full", "lora"] = like(TestSettings, "power_method")
    cache: bool = cache_option()
    plan: ScorePlan = field(init=False, repr=False, compare=False)
    """The score, parsed."""

    @property
    def matters(self) -> dict[str, Any]:
        """What makes this flagging another one: for the draws and the register."""
        return {
            "score": self.score,
            "fdr": self.fdr,
            "level": self.level,
            "method": self.controlled,
            "randomised": self.randomised,
        }

    @property
    def controlled(self) -> Method:
        """How false discoveries are controlled."""
        return "bh" if self.method == "auto" else self.method

    def __post_init__(self) -> None:
        require(
            0 < self.fdr <= HIGHEST, f"--fdr is a rate above 0 and up to {HIGHEST:g}, found {self.fdr:g}."
        )
        require(
            LOWEST_LEVEL <= self.level <= HIGHEST,
            f"--level lies between {LOWEST_LEVEL:g} and {HIGHEST:g}, found {self.level:g}.",
        )
        require(
            self.method in ("auto", *METHODS),
            f"--method is auto, {' or '.join(METHODS)}, found {self.method!r}.",
        )
        check_ranges(self)
        plan = ScorePlan.parse(self.score)
        object.__setattr__(self, "plan", plan)
        names = list(plan.scores)
        require(
            len(names) == 1,
            f"one score decides which texts are flagged, found {len(names)} ({', '.join(names)}): choose one before "
            "looking.",
        )
        require(
            "labelled" not in plan.uses,
            f"{names[0]} is fitted on known members, and flagging is for those who have none: use {SCORE}, loss, or "
            "ref with --reference-model.",
        )


TEXTS, KNOWN = "TEXTS: ", "KNOWN: "
"""What ids begin with while both sets are one corpus: two files may number their rows alike."""


@dataclass(frozen=True, slots=True)
class Draws:
    """The hashes of the texts in question and of the known ones, from which all draws follow: nobody chooses a seed."""

    asked: str
    known: str

    def seed(self, settings: FlagSettings) -> int:
        """The seed of all draws of a flagging."""
        return seed_from("flag", f"{self.asked} {self.known}", **settings.matters)


@dataclass(frozen=True, slots=True)
class Plan:
    """Both sets as one corpus (known non-members labelled, the others not), the document of each text by its id
    there (documents that share a text, and near copies without a group, are one), what can be flagged among them, and
    where the draws come from."""

    corpus: Corpus
    documents: Mapping[str, str]
    prospect: Prospect
    draws: Draws

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say before a model is asked."""
        return self.prospect.notes


def plan(corpus: Corpus, known: Corpus, settings: FlagSettings) -> Plan:
    """The two sets put together and looked over; nothing is asked of a model.

    TextsError where a set is empty, where known documents are fewer than 20 or some of their texts are labelled as
    members, and where the sets overlap. Where no text could be flagged at this rate the notes say so.
    """
    _check_apart(corpus, known)
    sides = [placed(text, TEXTS, None) for text in corpus.texts]
    sides += [placed(text, KNOWN, False) for text in known.texts]
    first = linked(sides)
    names = sorted(first)
    place = {name: number for number, name in enumerate(names)}
    codes = np.array([place[text.document] for text in sides], dtype=np.int64)
    sketches = Sketches()
    for text in sides:
        sketches.add(text.text, alone=not text.group)
    already = np.array([place[first[name]] for name in names], dtype=np.int64)
    copies = near_copies(sketches, codes, already, len(corpus))
    documents = {text.id: names[copies.first[code]] for text, code in zip(sides, codes.tolist(), strict=True)}
    if len(documents) < len(sides):
        raise TextsError(f"some texts of {corpus.name} or {known.name} share an id; give each its own.")
    asked, others = (
        list(Counter(documents[text.id] for text in sides if text.member is member).values())
        for member in (None, False)
    )
    both = Corpus(f"{corpus.name} against {known.name}", tuple(sides), corpus.source)
    found = prospect(
        asked, others, fdr=settings.fdr, method=settings.controlled, name=known.name, more=copies.notes
    )
    draws = Draws(*(texts_hash(text.text for text in side.texts) for side in (corpus, known)))
    return Plan(both, documents, found, draws)


def _check_apart(corpus: Corpus, known: Corpus) -> None:
    """TextsError where a side is empty, or a text or document is on both, or known members are among the known."""
    both = Apart(corpus.name, known.name, len(corpus), len(known))
    both.refuse_members([text.id for text in known.texts if text.member])
    contents = {text.text.strip() for text in known.texts} - {""}
    both.refuse_same([text.id for text in corpus.texts if text.text.strip() in contents])
    # Without a group, the same id in two files is no sign of the same document.
    groups = {text.group for text in known.texts} - {""}
    both.refuse_shared({text.group for text in corpus.texts} & groups)


def placed(text: Text, side: str, member: bool | None) -> Text:
    """The text as it stands among those of both sets."""
    group = side + text.group if text.group else ""
    return Text(side + text.id, text.text, member, group, text.meta)
