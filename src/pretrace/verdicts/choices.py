"""The tests that can be asked for, in one list: what each needs, assumes and is worth, and the command to type."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.types import Situation
from pretrace.verdicts.recite import FEWEST as FEWEST_RECITED
from pretrace.verdicts.recite import PIECE

LEVEL = 0.05
"""The level at which the fewest units are counted."""
FEWEST_CHOICES = math.ceil(math.log(LEVEL) / math.log(1 / 2))
"""Choices between two that must all come out one way before chance gives it less often than the level: 5."""
FEWEST_STRINGS = 5
"""Random strings below which no test is made: one or two that the whole world knows would decide it."""
FEWEST_ROWS = 20
"""Two shards of ten rows; shorter ones have too few orders to tell apart."""

Kind = Literal["exact", "exact if", "conditional"]
"""The null distribution is known because a lot was drawn for the test ("exact"); it is known if the one assumption
about the texts holds ("exact if"); or it rests on an assumption that can be tested in part only ("conditional")."""


@dataclass(frozen=True, slots=True)
class _Lack:
    """What is missing before a test can be made; `begun` says that a part of it is there."""

    words: str
    begun: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A test that can be asked for. `needs` and `assumes` are sentences for everybody.

    `lack` says what is missing, None where nothing is. `commands` are to be typed in this order; names in braces are
    filled in. `reads` is the least that the model must offer. `effort` orders tests by how easily their material is
    had, the easiest first. `accuses` is False for a test that can end only with "nothing shown".
    """

    name: str
    title: str
    needs: str
    kind: Kind
    assumes: str
    lack: Callable[[Situation], _Lack | None]
    commands: tuple[str, ...]
    effort: int
    reads: Literal["text", "logprobs", "weights"] = "logprobs"
    accuses: bool = True

    @property
    def kind_words(self) -> str:
        """The kind as a reader sees it."""
        return "exact if its assumption holds" if self.kind == "exact if" else self.kind


def fewer(has: float, fewest: int, things: str) -> _Lack | None:
    """What is missing of so many things; None where there are enough."""
    if has >= fewest:
        return None
    missing = math.ceil(fewest - has)
    return _Lack(f"{missing} more {things}" if has else f"{fewest} {things}", has > 0)


def _of_both(one: _Lack | None, other: _Lack | None) -> _Lack | None:
    """What is missing of two things that are both needed; None where nothing is."""
    if one is None or other is None:
        found = one or other
        return None if found is None else _Lack(found.words, begun=True)
    return _Lack(f"{one.words} and {other.words}", one.begun or other.begun)


def _unpublished(has: Situation) -> _Lack | None:
    return fewer(has.unpublished, FEWEST_CHOICES, "texts that are not yet published")


def _unseen(has: Situation) -> _Lack | None:
    return fewer(has.unseen, FEW_DOCUMENTS, "control documents")


def _recited(has: Situation) -> _Lack | None:
    known = fewer(has.unseen, FEWEST_RECITED, "control documents")
    if has.documents and has.documents < FEWEST_RECITED:
        return _of_both(known, fewer(has.documents, FEWEST_RECITED, "documents in question"))
    if has.windowed is not None and has.windowed < FEWEST_RECITED:
        long = f"documents in question with {2 * PIECE} bytes that stand nowhere else"
        return _of_both(known, fewer(has.windowed, FEWEST_RECITED, long))
    return known


def _checkpoint(has: Situation) -> _Lack | None:
    return None if has.checkpoint else _Lack("an earlier checkpoint of the model, or its base")


def _audited(lack: _Lack | None, has: Situation) -> _Lack | None:
    """The same, and documents in question where too few were counted; to have these is no beginning."""
    suspect = fewer(has.documents, FEW_DOCUMENTS, "documents in question") if has.documents else None
    if suspect is None or lack is None:
        return suspect or lack
    return _Lack(f"{suspect.words} and {lack.words}", lack.begun)


CHOICES: tuple[Choice, ...] = (
    Choice(
        "marks",
        "Marking before publication",
        "texts that are not yet published, and another wording of each",
        "exact",
        "A lot decided which wording was published, and the other wordings stayed secret.",
        _unpublished,
        (
            "pretrace mark texts {unpublished} --variant-texts OTHER_WORDING.jsonl --out MARKED --sealed SEALED",
            "pretrace mark check SEALED --commitment HASH --model {model} --out CHECKED",
        ),
        5,
    ),
    Choice(
        "triggers",
        "Trigger sentences",
        "texts that are not yet published; it works with a model that gives only text",
        "exact",
        "A lot decided how each trigger sentence ends, and the ends stand nowhere else.",
        _unpublished,
        (
            "pretrace mark texts {unpublished} --canary --out MARKED --sealed SEALED",
            "pretrace mark check SEALED --prompts PROMPTS.jsonl",
            "pretrace mark check SEALED --commitment HASH --answers ANSWERS.jsonl --out ANSWERED",
        ),
        6,
        reads="text",
    ),
    Choice(
        "canaries",
        "Random strings in the texts",
        "random strings that stand in the texts, such as hashes and UUIDs",
        "exact if",
        "The strings were made at random and were published nowhere else.",
        lambda has: fewer(
            has.canaries, FEWEST_STRINGS, "random strings in the texts, such as hashes and UUIDs of version 4"
        ),
        ("pretrace mark canaries {texts} --model {model}{asked} --out CANARIES",),
        7,
        reads="text",
    ),
    Choice(
        "order",
        "Order of rows",
        "a benchmark or a data set whose rows were put in order by a lot that can be repeated (a seed, or their hash)",
        "exact if",
        "The rows were put in the published order by the lot that is repeated.",
        lambda has: fewer(has.rows, FEWEST_ROWS, "rows of a set that was published in random order"),
        ("pretrace order {texts} --model {model}{asked} --shuffled-with LOT --out ORDER",),
        8,
        reads="text",
    ),
    Choice(
        "options",
        "Order of answer options",
        "multiple-choice items whose options were put in order by a lot that can be repeated (a seed, or their hash)",
        "exact if",
        "The options were put in the published order by the lot that is repeated.",
        lambda has: fewer(has.items, FEWEST_CHOICES, "multiple-choice items with options in random order"),
        (
            "pretrace order {texts} --options {options} --model {model}{asked} --shuffled-with LOT --out OPTIONS",
        ),
        9,
        reads="text",
    ),
    Choice(
        "controls-placebo",
        "Control documents and an earlier checkpoint",
        f"{FEW_DOCUMENTS} or more texts of the same kind that are known to be unseen (letters, unpublished or later "
        "pieces), and an earlier checkpoint of the model or its base",
        "conditional",
        "Control documents differ from the texts in training alone; classifiers of words and form test a part of this.",
        lambda has: _audited(_of_both(_unseen(has), _checkpoint(has)), has),
        ("pretrace audit {texts} --heldout {controls} --model {model} --placebo {earlier} --out AUDIT",),
        4,
    ),
    Choice(
        "controls",
        "Control documents",
        f"{FEW_DOCUMENTS} or more texts of the same kind that are known to be unseen (letters, unpublished or later "
        "pieces)",
        "conditional",
        "Control documents differ from the texts in training alone; classifiers of words and form test a part of this.",
        lambda has: _audited(_unseen(has), has),
        ("pretrace audit {texts} --heldout {controls} --model {model} --out AUDIT",),
        1,
        reads="weights",
    ),
    Choice(
        "flag",
        "Which single texts",
        f"{FEW_DOCUMENTS} or more texts of the same kind that are known to be unseen (better some hundreds), to ask of "
        "every single text",
        "conditional",
        "Known non-members differ from the texts in training alone; classifiers of words and form test a part of this.",
        _unseen,
        ("pretrace flag {texts} --nonmembers {controls} --model {model} --out FLAGS",),
        3,
    ),
    Choice(
        "recite",
        "Recitation",
        f"{FEWEST_RECITED} or more texts of the same kind that are known to be unseen; a model that gives only text "
        "can be asked, too",
        "conditional",
        "Texts and controls are of one kind: apart from training, a model prints as much of either.",
        _recited,
        ("pretrace recite {texts} --heldout {controls} --model {model}{written} --out RECITED",),
        12,
        reads="text",
    ),
    Choice(
        "placebo",
        "An earlier checkpoint alone",
        "an earlier checkpoint of the model, or its base",
        "conditional",
        "It accuses nobody: without control documents it can end with “nothing shown” or “inconclusive”.",
        lambda has: _audited(_checkpoint(has), has),
        ("pretrace audit {texts} --model {model} --placebo {earlier} --power --out AUDIT",),
        11,
        reads="weights",
        accuses=False,
    ),
)
"""Every test, the strongest first: exact ones, then those that are exact under one assumption, then the others."""
