"""What is settled before a model is asked: the two sets together, and what can be flagged among them at all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.scoring.plan import ScorePlan
from pretrace.settings import cache_option, check_ranges, option, seed_option
from pretrace.statistics.conformal import METHODS, Method, Resolution, needed, resolution
from pretrace.statistics.documents import linked
from pretrace.types import Corpus, Text

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
    "bh". `randomised` breaks ties of documents by lot instead of against the asked one. `seed` decides which texts of
    a document are drawn, and every other draw. `cache` False keeps no traces on disk.
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
    seed: int = seed_option()
    cache: bool = cache_option()
    plan: ScorePlan = field(init=False, repr=False, compare=False)
    """The score, parsed."""

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


FEWEST_KNOWN = 20
"""Known documents; with 19 a text could be flagged at 5% only if all of the texts are."""
CLEARING = 0.1
"""That nothing stands out is a result only where this share of the asked documents, all above every known one, would
have been noticed: flagged, or seen by the test of the set."""
TEXTS, KNOWN = "TEXTS: ", "KNOWN: "
"""What ids begin with while both sets are one corpus: two files may number their rows alike."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Both sets as one corpus (known non-members labelled, the others not), the document of each text by its id
    there (documents that share a text are one), how discoveries are controlled, how many documents are `asked` about
    and `known`, the `unit` that is flagged ("text", or "document" where one has several), and what there is to say."""

    corpus: Corpus
    documents: Mapping[str, str]
    method: Method
    resolution: Resolution
    asked: int
    known: int
    unit: str
    notes: tuple[str, ...]

    def noticed(self, least: int | None) -> int | None:
        """From how many documents on that stand above all known ones something is said: they are flagged, or the
        test of the set, which rejects from `least` on, does; None where neither ever would."""
        found = [number for number in (self.resolution.together, least) if number is not None]
        return min(found, default=None)

    def coarse(self, least: int | None) -> bool:
        """Whether the known documents are too few for "nothing stands out" to say anything."""
        noticed = self.noticed(least)
        return self.resolution.together is None or noticed is None or noticed > _clearing(self.asked)

    def enough(self, fdr: float) -> int:
        """The known documents with which a tenth of those asked about could be flagged."""
        return needed(_clearing(self.asked), self.asked, fdr, self.method)


def plan(corpus: Corpus, known: Corpus, settings: FlagSettings) -> Plan:
    """The two sets put together and looked over; nothing is asked of a model.

    TextsError where a set is empty, where known documents are fewer than 20 or some of their texts are labelled as
    members, and where the sets overlap. Where no text could be flagged at this rate the notes say so.
    """
    _check_apart(corpus, known)
    sides = [_placed(text, TEXTS, None) for text in corpus.texts]
    sides += [_placed(text, KNOWN, False) for text in known.texts]
    first = linked(sides)
    documents = {text.id: first[text.document] for text in sides}
    if len(documents) < len(sides):
        raise TextsError(f"some texts of {corpus.name} or {known.name} share an id; give each its own.")
    asked = [documents[text.id] for text in sides if text.member is None]
    others = [documents[text.id] for text in sides if text.member is False]
    held = len(set(others))
    if held < FEWEST_KNOWN:
        raise TextsError(
            f"{known.name} holds {held} documents ({len(known)} texts), and flagging takes known non-members from at "
            f"least {FEWEST_KNOWN} documents; add some (pieces of one document count once)."
        )
    number = len(set(asked))
    method: Method = "bh" if settings.method == "auto" else settings.method
    found = resolution(held, number, settings.fdr, method)
    unit = "text" if number == len(asked) else "document"
    both = Corpus(f"{corpus.name} against {known.name}", tuple(sides), corpus.source)
    made = Plan(both, documents, method, found, number, held, unit, ())
    return replace(made, notes=(*_resolved(made, settings.fdr), *_drawing(asked, others)))


def replanned(made: Plan, known: int, asked: int, settings: FlagSettings) -> Plan:
    """The plan for the known and asked documents that could be scored, where some could not."""
    if (known, asked) == (made.known, made.asked):
        return made
    about_documents = made.notes[len(_resolved(made, settings.fdr)) :]
    found = resolution(known, asked, settings.fdr, made.method)
    made = replace(made, resolution=found, known=known, asked=asked)
    return replace(made, notes=(*_resolved(made, settings.fdr), *about_documents))


def _clearing(asked: int) -> int:
    return max(1, math.ceil(CLEARING * asked))


def _check_apart(corpus: Corpus, known: Corpus) -> None:
    """TextsError where a side is empty, or a text or document is on both, or known members are among the known."""
    for side in (corpus, known):
        if not side.texts:
            raise TextsError(f"{side.name} holds no texts.")
    members = [text.id for text in known.texts if text.member]
    if members:
        raise TextsError(
            f"{len(members)} of the {len(known)} known non-members in {known.name} (such as {members[0]!r}) are "
            "labelled as members: leave them out, or mend the label."
        )
    contents = {text.text.strip() for text in known.texts} - {""}
    same = [text.id for text in corpus.texts if text.text.strip() in contents]
    if same:
        raise TextsError(
            f"{len(same)} of the {len(corpus)} texts of {corpus.name} (such as {same[0]!r}) are among the known "
            f"non-members in {known.name}: a text is one or the other; take them out of one of the two files."
        )
    # Without a group, the same id in two files is no sign of the same document.
    groups = {text.group for text in known.texts} - {""}
    shared = sorted({text.group for text in corpus.texts} & groups)
    if shared:
        raise TextsError(
            f"{len(shared)} documents (such as {shared[0]!r}) have texts in {corpus.name} and in {known.name}: a "
            "document was seen or it was not; take each out of one of the two files."
        )


def _placed(text: Text, side: str, member: bool | None) -> Text:
    group = f"{side}{text.group}" if text.group else ""
    return replace(text, id=f"{side}{text.id}", group=group, member=member)


def _resolved(made: Plan, fdr: float) -> tuple[str, ...]:
    """What the numbers allow, in a sentence; nothing where a single text could be flagged."""
    found, unit = made.resolution, made.unit
    if found.together == 1:
        return ()
    among = f"among {made.asked:,} {unit}s at a rate of {100 * fdr:g}%"
    least = f"With {made.known:,} known documents no p-value is below {found.smallest:.2g}"
    if found.together is None:
        return (
            f"{least}, and no {unit} can be flagged {among}: at least {found.needed:,} known non-members are needed, "
            f"{found.needed_alone:,} for one {unit} alone. The set as a whole is still tested.",
        )
    return (
        f"{least}: {among} at least {found.together:,} must stand above all of them before any is flagged. For one "
        f"{unit} alone {found.needed_alone:,} known non-members would be needed.",
    )


def _drawing(asked: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """How documents with several texts are counted; nothing where there are none."""
    counts = [*Counter(asked).values(), *Counter(known).values()]
    if max(counts) == 1:
        return ()
    each = min(counts)
    value = "one of its texts" if each == 1 else f"the mean of {each:,} of its texts"
    return (
        f"The {len(asked):,} texts come from {len(set(asked)):,} documents and the {len(known):,} known ones from "
        f"{len(set(known)):,}. A document counts once, by {value}: as many as the document with the fewest has, drawn "
        "by --seed. Whole documents are flagged.",
    )
