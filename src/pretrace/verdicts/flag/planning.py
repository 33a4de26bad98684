"""What is settled before a model is asked: the two sets together, and what can be flagged among them at all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pretrace.corpora.near_copies import BANDS, Sketches, link
from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.scoring.plan import ScorePlan
from pretrace.settings import CONTROLS, cache_option, check_ranges, like, option
from pretrace.statistics.conformal import METHODS, Method, Resolution, needed, resolution
from pretrace.statistics.documents import Numbers, link_documents
from pretrace.types import Corpus, Text
from pretrace.verdicts.draws import TextsSketch, seed_from, texts_hash
from pretrace.verdicts.settings import TestSettings
from pretrace.verdicts.wording import say

FEWEST_KNOWN = 20
"""Known documents; with 19 a text could be flagged at 5% only if all of the texts are."""
CLEARING = 0.1
"""That nothing stands out is a result only where this share of the asked documents, read in training, would have been
noticed: flagged, or seen by the test of the set (`verdicts.flag.power`)."""


@dataclass(frozen=True, slots=True)
class DetectionLimits:
    """How discoveries are controlled, how many documents are `asked` about and `known`, the `unit` that is flagged
    ("text", or "document" where one has several), and what there is to say `about` documents."""

    method: Method
    fdr: float
    asked: int
    known: int
    unit: str
    about: tuple[str, ...] = ()

    @property
    def resolution(self) -> Resolution:
        """How fine p-values can be."""
        return resolution(self.known, self.asked, self.fdr, self.method)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers allow, unless a single text could be flagged, and how documents were put together."""
        found = self.resolution
        if found.together == 1:
            return self.about
        numbers = {
            "rate": f"{100 * self.fdr:g}%",
            "unit": self.unit,
            "asked": self.asked,
            "known": self.known,
        }
        words = "flag.limits.never" if found.together is None else "flag.limits.together"
        return (say(words, found=found, **numbers), *self.about)

    def noticed(self, least: int | None) -> int | None:
        """From how many documents on that stand above all known ones something is said: they are flagged, or the
        test of the set, which rejects from `least` on, does; None where neither ever would."""
        found = [number for number in (self.resolution.together, least) if number is not None]
        return min(found, default=None)

    def coarse(self, least: int | None) -> bool:
        """Whether a tenth of the documents could not have been noticed, however much they stood out."""
        noticed = self.noticed(least)
        return noticed is None or noticed > self.tenth

    @property
    def tenth(self) -> int:
        """A tenth of the documents in question, at least one."""
        return max(1, math.ceil(CLEARING * self.asked))

    @property
    def enough(self) -> int:
        """The known documents with which a tenth of those asked about could be flagged."""
        return needed(self.tenth, self.asked, self.fdr, self.method)

    def scored(self, known: int, asked: int) -> DetectionLimits:
        """The same for the known and asked documents that could be scored, where some could not."""
        return replace(self, known=known, asked=asked)


def prospect(
    asked: npt.ArrayLike,
    known: npt.ArrayLike,
    *,
    fdr: float,
    method: Method,
    name: str,
    more: tuple[str, ...] = (),
) -> DetectionLimits:
    """What can be flagged, from the number of texts of each document in question and of each known one.

    TextsError where known documents, those of `name`, are fewer than 20. Where no text could be flagged at this rate
    the notes say so; `more` are notes on how documents were put together.
    """
    mine, others = (np.asarray(side, dtype=np.int64) for side in (asked, known))
    held, number = len(others), len(mine)
    if held < FEWEST_KNOWN:
        raise TextsError(
            f"{name} holds {held} documents ({others.sum()} texts), and flagging takes known non-members from at "
            f"least {FEWEST_KNOWN} documents; add some (pieces of one document, and near copies, count once)."
        )
    unit = "text" if number == mine.sum() else "document"
    return DetectionLimits(method, fdr, number, held, unit, (*_drawing(mine, others), *more))


def _drawing(asked: npt.NDArray[np.int64], known: npt.NDArray[np.int64]) -> tuple[str, ...]:
    """How documents with several texts are counted; nothing where there are none."""
    if max(asked.max(), known.max()) == 1:
        return ()
    each = int(min(asked.min(), known.min()))
    value = "one of its texts" if each == 1 else f"the mean of {each:,} of its texts"
    return (
        f"The {asked.sum():,} texts come from {len(asked):,} documents and the {known.sum():,} known ones from "
        f"{len(known):,}. A document counts once, by {value}: as many as the document with the fewest has, drawn "
        "by lot. Whole documents are flagged.",
    )


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """`first` [documents] is the document that each is linked to, `linked` how many documents that leaves fewer, and
    `across` how many of the texts in question are near copies of known ones."""

    first: Numbers
    linked: int
    across: int

    @property
    def notes(self) -> tuple[str, ...]:
        """What was linked, in sentences; nothing where nothing was."""
        found = []
        if self.linked:
            found.append(
                f"Near copies: {self.linked:,} documents say mostly the same as others on their side, and count with "
                "these as one."
            )
        if self.across:
            found.append(
                f"Texts in question that say mostly the same as a known non-member: {self.across:,}. What the model "
                "makes of those cannot differ; take such texts out of one of the two files."
            )
        return tuple(found)


def near_copies(sketches: Sketches, codes: npt.NDArray[np.integer], first: Numbers, asked: int) -> Copies:
    """What is linked beyond `first` [documents]: `codes` [texts] are the documents of the texts, the first `asked` of
    which are those in question. The two sides are never linked with each other."""
    before, both = len(np.unique(first[codes])), np.zeros(asked, dtype=bool)
    for number in range(BANDS):
        hashes = sketches.band(number)
        both |= (hashes[:asked] != 0) & np.isin(hashes[:asked], hashes[asked:])
    linked = link(sketches, codes, first, (slice(0, asked), slice(asked, None)))
    after = len(np.unique(linked[codes]))
    return Copies(linked, before - after, int(both.sum()))


def check_apart(
    asked: str,
    known: str,
    numbers: tuple[int, int],
    *,
    members: Sequence[str],
    same: Sequence[str],
    shared: Collection[str],
) -> None:
    """TextsError where a set is empty, and for what must not be, by the names of both sets and their `numbers`:
    known texts that are labelled as `members`, texts in question that are among the known ones (`same`), and documents
    that have texts on both sides (`shared`)."""
    for name, number in zip((asked, known), numbers, strict=True):
        if not number:
            raise TextsError(f"{name} holds no texts.")
    if members:
        raise TextsError(
            f"{len(members)} of the {numbers[1]} known non-members in {known} (such as {members[0]!r}) are labelled as "
            "members: leave them out, or mend the label."
        )
    if same:
        raise TextsError(
            f"{len(same)} of the {numbers[0]} texts of {asked} (such as {same[0]!r}) are among the known non-members "
            f"in {known}: a text is one or the other; take them out of one of the two files."
        )
    if shared:
        raise TextsError(
            f"{len(shared)} documents (such as {min(shared)!r}) have texts in {asked} and in {known}: a document was "
            "seen or it was not; take each out of one of the two files."
        )


SCORE = "min_k_plus_plus"
"""Of the scores that need nothing but the target it survived its controls most often on planted domains: in 7 of
8, `loss` in 5 (benchmarks/results/planted_domains.json). `ref` with an earlier checkpoint survived in 8 of 8."""
FLAGGING = "Flagging"
HIGHEST = 0.5
_LOWEST_LEVEL = 0.001
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
            _LOWEST_LEVEL <= self.level <= HIGHEST,
            f"--level lies between {_LOWEST_LEVEL:g} and {HIGHEST:g}, found {self.level:g}.",
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
    """The hashes of the texts in question and of the known ones, from which all draws follow: nobody chooses a seed.
    `sketch` is of the texts in question, for the register."""

    asked: str
    known: str
    sketch: TextsSketch

    def seed(self, settings: FlagSettings) -> int:
        """The seed of all draws of a flagging."""
        return seed_from("flag", f"{self.asked} {self.known}", **settings.matters)


@dataclass(frozen=True, slots=True)
class FlagPlan:
    """Both sets as one corpus (known non-members labelled, the others not), the document of each text by its id
    there (documents that share a text, and near copies, are one), what can be flagged among them, and
    where the draws come from."""

    corpus: Corpus
    documents: Mapping[str, str]
    prospect: DetectionLimits
    draws: Draws

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say before a model is asked."""
        return self.prospect.notes


def plan(corpus: Corpus, known: Corpus, settings: FlagSettings) -> FlagPlan:
    """The two sets put together and looked over; nothing is asked of a model.

    TextsError where a set is empty, where known documents are fewer than 20 or some of their texts are labelled as
    members, and where the sets overlap. Where no text could be flagged at this rate the notes say so.
    """
    contents = {text.text.strip() for text in known.texts} - {""}
    # Without a group, the same id in two files is no sign of the same document.
    groups = {text.group for text in known.texts} - {""}
    check_apart(
        corpus.name,
        known.name,
        (len(corpus), len(known)),
        members=[text.id for text in known.texts if text.member],
        same=[text.id for text in corpus.texts if text.text.strip() in contents],
        shared={text.group for text in corpus.texts} & groups,
    )
    sides = [placed(text, TEXTS, None) for text in corpus.texts]
    sides += [placed(text, KNOWN, False) for text in known.texts]
    first = link_documents(sides)
    names = sorted(first)
    place = {name: number for number, name in enumerate(names)}
    codes = np.array([place[text.document] for text in sides], dtype=np.int64)
    sketches = Sketches()
    for text in sides:
        sketches.add(text.text)
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
    asked_hash, known_hash = (texts_hash(text.text for text in side.texts) for side in (corpus, known))
    draws = Draws(asked_hash, known_hash, TextsSketch.of(text.text for text in corpus.texts))
    return FlagPlan(both, documents, found, draws)


def placed(text: Text, side: str, member: bool | None) -> Text:
    """The text as it stands among those of both sets."""
    group = side + text.group if text.group else ""
    return Text(side + text.id, text.text, member, group, text.meta)
