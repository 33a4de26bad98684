"""Sentences of a result as page one shows them: without options of a command, and with numbers that everybody can read.

A result keeps its sentences as the terminal prints them, with the options that would help and the effect in the unit
of its score. The page is read by people who type no command; the technical part has the figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pretrace.report.wording import p_value

_POWER = re.compile(r"^Run the (\w+) with --power, which measures what it (?:would|could) have seen\.$")
_FLAG_POWER = "Flag again with --power: it trains"
_IN_BRACKETS = re.compile(r" \([^()]*--[a-z][^()]*\)")
_WITH = re.compile(r",? (?:with|in|by) --[a-z][a-z-]*(?: [A-Z][A-Z_]*)?")
_OPTION = re.compile(r"--([a-z][a-z-]*)")
_P = re.compile(r"\bp = ([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)")
_EFFECT = re.compile(r" The effect is -?[0-9.].*?\]\.")
_MOVED = re.compile(
    r" It moved the copy by .*? The effect that was found is at most [^ ]+, which is (not )?less"
)


def plain(sentence: str) -> str:
    """The sentence for page one.

    >>> plain("The test gave p = 0.706. The effect is -0.0347 in units of the score x(k=0.2) [-0.1, 0.1].")
    'The test gave p = 0.71.'
    >>> plain("Name a model that never saw the texts with --placebo: its last checkpoint (--placebo-revision).")
    'Name a model that never saw the texts: its last checkpoint.'
    """
    said = _POWER.sub(
        r"Measure what the \1 would have seen: a copy of the model is trained on the texts.", sentence
    )
    said = said.replace(_FLAG_POWER, "Measure what the flagging would have seen: it trains")
    said = _OPTION.sub(lambda found: found[1].replace("-", " "), _WITH.sub("", _IN_BRACKETS.sub("", said)))
    said = _MOVED.sub(
        lambda found: f" The effect that was found is {found[1] or ''}smaller than what it left", said
    )
    return _P.sub(lambda found: f"p = {p_value(float(found[1]))}", _EFFECT.sub("", said))


def once(sentences: Iterable[str], beside: Iterable[str] = ()) -> tuple[str, ...]:
    """The sentences for page one, each once, without those that stand `beside` them already."""
    told = {plain(one) for one in beside}
    return tuple(one for one in dict.fromkeys(map(plain, sentences)) if one not in told)
