"""What is settled before a model is asked: the two sets together, and what can be flagged among them at all."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pretrace.corpora import TextStream
from pretrace.corpora.opening import OnUnreadable, content_of, record_texts
from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.results.wording import say
from pretrace.scoring.parts import in_order
from pretrace.scoring.plan import ScorePlan
from pretrace.settings import CONTROLS, check_ranges, is_kept, like, option
from pretrace.statistics.conformal import METHODS, Method, least_together, needed
from pretrace.statistics.documents import BANDS, Numbers, Sketches, linked_numbers
from pretrace.types import Corpus, Text
from pretrace.verdicts.register import TextsSketch, seed_from, text_digest
from pretrace.verdicts.settings import TestSettings

FEWEST_KNOWN = 20
"""Known documents; with 19 a text could be flagged at 5% only if all of the texts are."""
CLEARING = 0.1
"""An all-clear takes that this share of the asked documents, if read, would have been noticed (`measured`)."""


@dataclass(frozen=True, slots=True)
class DetectionLimits:
    """What can be flagged among so many documents, the `unit` that is flagged, and notes `about` them."""

    settings: FlagSettings
    asked: int
    known: int
    unit: str
    about: tuple[str, ...] = ()

    @property
    def together(self) -> int | None:
        """The documents in question that must stand above all known ones before any is flagged; None for never."""
        return least_together(self.known, self.asked, *self.settings.rate)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers allow, unless a single text could be flagged, and how documents were put together."""
        if self.together == 1:
            return self.about
        any_, alone = (needed(some, self.asked, *self.settings.rate) for some in (self.asked, 1))
        numbers: dict[str, Any] = {"least": 1 / (self.known + 1), "needed": any_, "alone": alone}
        numbers |= {"together": so_many(self.together), "rate": f"{100 * self.settings.fdr:g}%"}
        return (say("flag.limits", limits=self, **numbers), *self.about)

    @property
    def tenth(self) -> int:
        """A tenth of the documents in question, at least one."""
        return max(1, math.ceil(CLEARING * self.asked))


def so_many(documents: int | None) -> str:
    """How many documents something takes; None where not all would do."""
    return "more than there are" if documents is None else f"{documents:,}"


def prospect(
    sizes: Sequence[npt.ArrayLike], settings: FlagSettings, name: str, more: tuple[str, ...] = ()
) -> DetectionLimits:
    """What can be flagged, from the `sizes` in texts of each document on both sides, with notes on coarse p-values and
    `more` on how documents were put together. TextsError where known documents, of `name`, are fewer than 20."""
    mine, others = (np.asarray(side, dtype=np.int64) for side in sizes)
    held, number, texts = len(others), len(mine), mine.sum()
    if held < FEWEST_KNOWN:
        numbers = {"held": held, "texts": others.sum(), "fewest": FEWEST_KNOWN}
        raise TextsError(say("flag.plan.known", name=name, **numbers))
    if max(mine.max(), others.max()) > 1:
        each = int(min(mine.min(), others.min()))
        value = "one of its texts" if each == 1 else f"the mean of {each:,} of its texts"
        numbers = {"texts": texts, "asked": number, "others": others.sum(), "known": held}
        more = (say("flag.plan.drawing", value=value, **numbers), *more)
    return DetectionLimits(settings, number, held, "text" if number == texts else "document", more)


def near_copies(
    sketches: Sketches, codes: npt.NDArray[np.integer], first: Numbers, asked: int
) -> tuple[Numbers, tuple[str, ...]]:
    """For each document the one it is linked to beyond `first` [documents], with notes; `codes` [texts], `asked` texts
    first."""
    across = np.zeros(asked, dtype=bool)  # texts in question that are near copies of known ones
    for number in range(BANDS):
        hashes = sketches.band(number)
        across |= (hashes[:asked] != 0) & np.isin(hashes[:asked], hashes[asked:])
    linked = sketches.link(codes, first, (slice(0, asked), slice(asked, None)))
    fewer = len(np.unique(first[codes])) - len(np.unique(linked[codes]))
    told = (("linked", fewer), ("across", int(across.sum())))
    return linked, tuple(say(f"flag.plan.{name}", number=number) for name, number in told if number)


SCORE = "min_k_plus_plus"
"""The score that needs the target alone and survived its controls most often (evidence/planted_domains.json)."""
FLAGGING = "Flagging"
HIGHEST = 0.5
_LOWEST_LEVEL = 0.001
"""What the permutations of a test of the set can still show."""


@dataclass(frozen=True, slots=True)
class FlagSettings:
    """How texts are flagged; ExpressionError for a value out of its range or a score that is fitted on labels.

    `fdr` is about the flags and `level` about the test of the whole set. `method` is "bh", "by", or "auto", which is
    "bh". `randomised` breaks ties of documents at random instead of against the asked one. `power` trains a copy of the
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
    cache: bool = field(default_factory=is_kept)
    plan: ScorePlan = field(init=False, repr=False, compare=False)
    """The score, parsed."""

    @property
    def matters(self) -> dict[str, Any]:
        """What makes this flagging another one: for the draws and the register."""
        kept = {name: getattr(self, name) for name in ("score", "fdr", "level", "randomised")}
        return {**kept, "method": self.rate[1]}

    @property
    def rate(self) -> tuple[float, Method]:
        """At which rate false discoveries are controlled, and how."""
        return self.fdr, "bh" if self.method == "auto" else self.method

    def __post_init__(self) -> None:
        told = partial(say, lowest=_LOWEST_LEVEL, highest=HIGHEST, methods=" or ".join(METHODS))
        require(0 < self.fdr <= HIGHEST, told("flag.plan.fdr", found=self.fdr))
        require(_LOWEST_LEVEL <= self.level <= HIGHEST, told("flag.plan.level", found=self.level))
        require(self.method in ("auto", *METHODS), told("flag.plan.method", found=repr(self.method)))
        check_ranges(self)
        plan = ScorePlan.parse(self.score)
        object.__setattr__(self, "plan", plan)
        names = list(plan.scores)
        require(len(names) == 1, told("flag.plan.scores", number=len(names), found=", ".join(names)))
        require("labelled" not in plan.uses, told("flag.plan.fitted", score=names[0], usual=SCORE))


_BLOCK = 20_480
TEXTS, KNOWN = "TEXTS: ", "KNOWN: "
"""What ids begin with while both sets are one corpus: two files may number their rows alike."""


@dataclass(slots=True)
class _SetSide:
    """What was seen of one of the two sets."""

    texts: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    digests: bytearray = field(default_factory=bytearray)

    def add(self, text: Text) -> None:
        """A text as its file has it."""
        self.texts += 1
        self.digest.update(content_of(text))
        self.digests += text_digest(text.text)

    @property
    def hash(self) -> str:
        """The `texts_hash` of the texts, from which all draws follow: nobody chooses a seed."""
        parts = np.frombuffer(self.digests, dtype=">u8").reshape(-1, 4)
        order = np.lexsort(parts.T[::-1])
        return hashlib.sha256(parts[order].tobytes()).hexdigest()


@dataclass(slots=True)
class _GatheredSets:
    """What one reading of both sets found; of each text in order a hash of what it says, and if it has a group."""

    asked: _SetSide = field(default_factory=_SetSide)
    known: _SetSide = field(default_factory=_SetSide)
    members: list[str] = field(default_factory=list)
    contents: array[int] = field(default_factory=lambda: array("q"))
    grouped: bytearray = field(default_factory=bytearray)
    sketches: Sketches = field(default_factory=Sketches)
    _names: list[bytes] = field(default_factory=list)
    _blocks: list[Any] = field(default_factory=list)

    def add(self, text: Text, both: Text) -> None:
        """A text, as its file has it and as it stands among both sets."""
        (self.asked if both.member is None else self.known).add(text)
        if text.member and both.member is not None:
            self.members.append(text.id)
        self.grouped.append(bool(text.group))
        self.sketches.add(text.text)
        content = text.text.strip()
        self.contents.append(hash(content) if content else 0)
        self._names.append(both.document.encode("utf-8", "surrogatepass"))
        if len(self._names) == _BLOCK:
            self._pack()

    def _pack(self) -> None:
        import pyarrow as pa

        if self._names:
            self._blocks.append(pa.array(self._names, pa.large_binary()).dictionary_encode())
            self._names = []

    @property
    def documents(self) -> LinkedDocuments:
        """The documents, those that share a text as one."""
        self._pack()
        names, codes = in_order(self._blocks)
        contents = np.frombuffer(self.contents, np.int64)
        first = linked_numbers(contents, codes, len(names))
        linked, notes = near_copies(self.sketches, codes, first, self.asked.texts)
        return LinkedDocuments(names, codes, linked.astype(np.int32), notes)


@dataclass(frozen=True, slots=True, eq=False)
class LinkedDocuments:
    """The sorted `names` of all documents (a pyarrow array of bytes); the number of each text's, [texts]; of each the
    first that it shares a text or near copy with, directly or through others, [documents]; notes on near copies."""

    names: Any
    codes: npt.NDArray[np.int32]
    first: npt.NDArray[np.int32]
    notes: tuple[str, ...] = ()

    def found(self, texts: slice, groups: Any) -> Numbers:
        """The documents of rows of some texts, by the names in a pyarrow column; ValueError for a name of none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        numbers = np.unique(self.codes[texts])
        places = pc.index_in(groups.cast(pa.large_binary()), value_set=self.names.take(pa.array(numbers)))
        if places.null_count:
            raise ValueError("a document that none of its texts has")
        return np.asarray(self.first[numbers[places.to_numpy()]], dtype=np.int64)

    def name(self, numbers: Numbers) -> list[str]:
        """The names of documents by their numbers."""
        import pyarrow as pa

        return [
            name.decode("utf-8", "surrogatepass") for name in self.names.take(pa.array(numbers)).to_pylist()
        ]


class BothSets(TextStream):
    """The texts in question and then the known non-members, by the ids that they have in one corpus."""

    def __init__(self, asked: TextStream, known: TextStream) -> None:
        super().__init__(f"{asked.name} against {known.name}", f"{asked.source} and {known.source}")
        self.asked, self.known = asked, known
        self._gathered: _GatheredSets | None = None
        self._looked = False

    def texts(self, tell: OnUnreadable | None = None) -> Iterator[Text]:
        """The texts in order; what a first reading to the end finds is kept until it is asked for (`gathered`)."""
        seen = None if self._looked else _GatheredSets()
        for stream, mark, member in ((self.asked, TEXTS, None), (self.known, KNOWN, False)):
            for text in stream.texts(tell):
                group = mark + text.group if text.group else ""
                both = Text(mark + text.id, text.text, member, group, text.meta)
                if seen:
                    seen.add(text, both)
                yield both
        self.notes = (*self.asked.notes, *self.known.notes)
        if seen and not self._looked:
            self._gathered, self._looked = seen, True

    @property
    def corpus(self) -> Corpus:
        """Both sets in memory."""
        return Corpus(self.name, tuple(self.texts()), self.asked.source)

    def gathered(self) -> _GatheredSets:
        """What a reading of both sets found, which is some 50 bytes a text; it is given away."""
        if not self._looked:
            for _ in self.texts():
                pass
        found, self._gathered = self._gathered, None
        assert found is not None
        return found


@dataclass(frozen=True, slots=True, eq=False)
class FlagPlan:
    """Both sets as one stream (only known ones are labelled), their documents, and what can be flagged among them."""

    both: BothSets
    documents: LinkedDocuments
    prospect: DetectionLimits
    hashes: tuple[str, str]
    """The `texts_hash` of each set, those in question first."""
    sketch: TextsSketch
    """Of the texts in question."""
    records: Mapping[str, Any]
    """What a flagging records of both sets, each as `record_corpus` says it."""

    @property
    def settings(self) -> FlagSettings:
        """How the texts are flagged."""
        return self.prospect.settings

    @classmethod
    def of(cls, both: BothSets, settings: FlagSettings) -> FlagPlan:
        """The two sets looked over; nothing is asked of a model. TextsError where a set is empty, where known documents
        are fewer than 20 or some of their texts are labelled as members, where texts in question are among the known
        ones, and where documents have texts on both sides."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found, asked, known = both.gathered(), both.asked.name, both.known.name
        texts, others = found.asked.texts, found.known.texts
        for name, number in ((asked, texts), (known, others)):
            if not number:
                raise TextsError(f"{name} holds no texts.")

        def check(kind: str, names: Sequence[str]) -> None:
            if names:
                numbers = {"asked": asked, "known": known, "texts": texts, "others": others}
                first = repr(min(names) if kind == "shared" else names[0])
                raise TextsError(say(f"flag.plan.{kind}", number=len(names), first=first, **numbers))

        check("members", found.members)
        hashes = np.frombuffer(found.contents, np.int64)
        # read again where hashes are equal
        equal = hashes[texts:][np.isin(hashes[texts:], hashes[:texts]) & (hashes[texts:] != 0)]
        suspected, same = set(np.unique(equal).tolist()), list[str]()
        if suspected:
            said = (text.text.strip() for text in both.known.texts())
            contents = {content for content in said if hash(content) in suspected}
            same = [text.id for text in both.asked.texts() if text.text.strip() in contents]
        check("same", same)
        documents, grouped = found.documents, np.frombuffer(found.grouped, np.bool_)
        sides = slice(0, texts), slice(texts, None)
        groups = [np.unique(documents.codes[side][grouped[side]]) for side in sides]
        mine, theirs = (documents.names.take(pa.array(one)) for one in groups)
        renamed = pc.binary_replace_slice(theirs, 0, len(KNOWN), TEXTS.encode())
        there = pc.is_in(mine, value_set=renamed).to_numpy(zero_copy_only=False)
        check("shared", [name.removeprefix(TEXTS) for name in documents.name(groups[0][there])])
        linked = documents.first[documents.codes]
        sizes = [np.unique(linked[side], return_counts=True)[1] for side in sides]
        groups_of = [len(np.unique(documents.codes[side])) for side in sides]
        records = {
            "texts": record_texts(both.asked, texts, groups_of[0], found.asked.digest.hexdigest()),
            "nonmembers": record_texts(both.known, others, groups_of[1], found.known.digest.hexdigest()),
        }
        limits = prospect(sizes, settings, known, documents.notes)
        sketch = TextsSketch.of_digests(found.asked.digests)
        return cls(both, documents, limits, (found.asked.hash, found.known.hash), sketch, records)

    @property
    def seed(self) -> int:
        """The seed of all draws."""
        return seed_from("flag", " ".join(self.hashes), **self.settings.matters)


def plan(corpus: Corpus, known: Corpus, settings: FlagSettings) -> FlagPlan:
    """`FlagPlan.of` for texts in memory; TextsError also where two of a set share an id."""
    for one in (corpus, known):
        if len({text.id for text in one.texts}) < len(one):
            raise TextsError(say("flag.plan.ids", asked=corpus.name, known=known.name))
    return FlagPlan.of(BothSets(TextStream.of(corpus), TextStream.of(known)), settings)
