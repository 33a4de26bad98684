"""Items with answer options: which of them have an order that could have been drawn by lot.

No rule looks at the published order of the options, only at the set of them. Options that are all numbers or dates are
left out in whatever order they stand. Were they left out only where they are sorted, then the items that stay would no
longer have every order with the same chance, and the test would no longer be exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pretrace.errors import TextsError
from pretrace.types import Skipped, Text
from pretrace.verdicts.order.units import Unit, Units
from pretrace.verdicts.record import listed

REFERRING = "an option refers to others"
NUMBERS = "its options are numbers or dates, which usually stand sorted"
USUAL = "its options have a usual order, such as yes and no"
SAME = "two of its options are the same"
ONE = "it has fewer than two options"
TWICE = "the same options stand further up"
MANY = "it has more than 26 options"
LETTERS = 26

_WHOLE = r"(?:all|none|any|some|both|either|neither|each|most|two|three|more than one|one or more)"
_LISTED = r"\(?\b(?:[A-H]|[1-8]|I{1,3}|IV|VI?)\b\)?"
_REFERS = (
    re.compile(
        rf"\b{_WHOLE}\b.{{0,20}}\b(?:above|below|these|those|options?|answers?|choices?)\b", re.IGNORECASE
    ),
    re.compile(
        r"\b(?:the above|mentioned above|(?:all|none|both|neither) of (?:them|the others))\b", re.IGNORECASE
    ),
    re.compile(
        r"^\W*(?:all|none|both|neither|either|all are (?:correct|true)|none are (?:correct|true))\W*$", re.I
    ),
    re.compile(
        rf"{_LISTED}(?:\s*,\s*{_LISTED})*\s*(?:,|&|/|\band\b|\bor\b|\bnor\b|\bbut not\b)+\s*{_LISTED}"
    ),
    re.compile(r"\bboth\s+\(?[a-h]\)?\s+and\s+\(?[a-h]\)?(?!\w)", re.IGNORECASE),
    re.compile(r"\([a-h1-8]\)\s*(?:,|&|/|and|or|nor)\s*\([a-h1-8]\)", re.IGNORECASE),
    re.compile(r"^\W*(?:all|none|both|neither|either)\b.{0,20}\b(?:are|is|apply|applies)\b", re.IGNORECASE),
    re.compile(rf"^\W*{_LISTED}\W*\bonly\b", re.IGNORECASE),
)
_NUMBER = re.compile(r"[-+−–~≈<>≤≥$€£¥]*\s*\d[\d.,:/×^*\s%°-]*(?:e[-+]?\d+)?")
_MONTHS = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(rf"\b(?:{_MONTHS}\b|mon(?:day)?\b|tue(?:sday)?\b|wed(?:nesday)?\b|thu(?:rsday)?\b|fri(?:day)?\b|"
                   r"sat(?:urday)?\b|sun(?:day)?\b)", re.IGNORECASE)  # fmt: skip
_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve twenty thirty hundred thousand million first "
    "second third fourth fifth once twice"
)
_COUNTED = re.compile(rf"\b(?:{'|'.join(_WORDS.split())})\b", re.IGNORECASE)
_PAIRS = frozenset(
    (
        *("yes", "no", "true", "false", "correct", "incorrect", "maybe", "unknown", "same", "unchanged"),
        *(
            "always",
            "sometimes",
            "never",
            "increase",
            "increases",
            "decrease",
            "decreases",
            "positive",
            "negative",
        ),
        *("entailment", "neutral", "contradiction", "agree", "disagree"),
    )
)
_SAYING = 3
"""Words beside a number or date up to which an option counts as one: "12 per cent", "in the year 1869"."""


def items(texts: Sequence[Text], columns: Sequence[str]) -> Units:
    """The items whose options may have been put in order by lot; TextsError for items without any options."""
    found = [options_of(text, columns) for text in texts]
    bare = [text.id for text, options in zip(texts, found, strict=True) if not options]
    if bare:
        raise TextsError(
            f"{len(bare):,} of {len(texts):,} items have no options in {' '.join(columns)} ({listed(bare)}): name "
            "the column with the list of options, or one column an option, with --options."
        )
    units, skipped = [], []
    seen: set[tuple[str, ...]] = set()
    for text, options in zip(texts, found, strict=True):
        # Options that come again were hardly put in order again: such items would count one lot many times.
        key = tuple(sorted(option.casefold() for option in options))
        reason = TWICE if key in seen else left_out(options)
        seen.add(key)
        if reason:
            skipped.append(Skipped(text.id, reason, 0))
            continue
        places = tuple(range(len(options)))
        units.append(Unit(text.id, options, (places,), head=text.text.strip(), lettered=True))
    return Units(tuple(units), tuple(skipped), len(units))


def options_of(text: Text, columns: Sequence[str]) -> tuple[str, ...]:
    """The options of an item: the list in one column, or one column each, without empty ones."""
    cells = [text.meta.get(name, "") for name in columns]
    found = _list(cells[0]) if len(cells) == 1 else cells
    return tuple(option.strip() for option in found if option.strip())


def left_out(options: Sequence[str]) -> str:
    """Why an item with these options is no part of the test, "" where it is; the same for every order of them."""
    if len(options) < 2:
        return ONE
    if len(options) > LETTERS:
        return MANY
    if len({option.casefold() for option in options}) < len(options):
        return SAME
    if any(pattern.search(option) for pattern in _REFERS for option in options):
        return REFERRING
    if all(ordered(option) for option in options):
        return NUMBERS
    if all(set(re.findall(r"[a-z]+", option.casefold())) & _PAIRS for option in options):
        return USUAL
    return ""


def ordered(option: str) -> bool:
    """Whether an option is a number or a date, with a few words beside it at most."""
    rest, numbers = _NUMBER.subn(" ", option)
    rest, dates = _DATE.subn(" ", rest)
    rest, words = _COUNTED.subn(" ", rest)
    return bool(numbers or dates or words) and len(re.findall(r"[^\W\d_]+", rest)) <= _SAYING


def _list(cell: str) -> list[str]:
    """The options in a cell: a JSON list, or an object with such a list under "text" or "choices"."""
    try:
        value = json.loads(cell)
    except ValueError:
        return []
    if isinstance(value, dict):
        value = value.get("text", value.get("choices"))
    return [str(one) for one in value] if isinstance(value, list) else []
