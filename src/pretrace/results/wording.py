"""How numbers and sentences are said, on a terminal, in a result and in reports.

Sentences stand in the `words.toml` of a room by their kind, and code gives their numbers. Numbers have a true minus
sign, thousands apart, and no more digits than a reader can use; chances are as people say them.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from pretrace.errors import shown
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.types import Estimate

MINUS = "−"


class _Sentences(Formatter):
    """Fills in numbers; "{p:p}" is a p-value with its two digits."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        return p_value(value) if format_spec == "p" else super().format_field(value, format_spec)


@cache
def _words() -> Mapping[str, Any]:
    def joined(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: joined(one) for name, one in part.items()}
        if isinstance(part, list):
            return tuple(map(joined, part))
        return re.sub(r"\s*\n\s*", " ", part.strip()) if isinstance(part, str) else part

    found: dict[str, Any] = {}
    for path in sorted(Path(__file__).parents[1].rglob("*words.toml")):
        found |= joined(tomllib.loads(path.read_text("utf-8")))
    cures = {name: one.replace("{fewest}", str(FEW_DOCUMENTS)) for name, one in found["cures"].items()}
    return {**found, "cures": cures}


def sentences_of(kind: str) -> Mapping[str, Any]:
    """Look up what stands under a kind ("audit.reverse"), its sentences not yet filled in."""
    found = _words()
    for name in kind.split("."):
        found = found[name]
    return found


def fill(part: Any, /, **numbers: object) -> Any:
    """Fill numbers into a sentence, or into each of several; the cures that several kinds share are known by name."""
    if isinstance(part, str):
        return _Sentences().vformat(part, (), {**_words()["cures"], **numbers})
    if isinstance(part, tuple):
        return tuple(fill(one, **numbers) for one in part)
    return {name: fill(one, **numbers) for name, one in part.items()} if isinstance(part, dict) else part


def say(kind: str, /, **numbers: object) -> str:
    """Say the sentence of a kind, "audit.reverse.words", with its numbers filled in."""
    return str(fill(sentences_of(kind), **numbers))


# Numbers. Examples of those without one stand in tests/report/test_wording.py.


def significant(value: float, digits: int = 4) -> str:
    """A figure of any size in a set number of significant digits.

    >>> significant(-12345.678), significant(0.000001234)
    ('−1.235e4', '1.234e−6')
    """
    text = f"{value:#.{digits}g}".rstrip(".")
    mantissa, e, exponent = text.partition("e")
    if e:
        text = f"{mantissa.rstrip('.')}e{int(exponent)}"
    return text.replace("-", MINUS)


def brief(value: float, digits: int = 4) -> str:
    """A figure with at most so many digits, and no idle zeros.

    >>> brief(0.66), brief(487.21931), brief(0.0033), brief(0.0), brief(2.0e-19, 2)
    ('0.66', '487.2', '0.0033', '0', '2e−19')
    """
    if not value:
        return "0"
    mantissa, e, exponent = significant(value, digits).partition("e")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + e + exponent


def p_value(p: float) -> str:
    """A p-value with two digits.

    >>> p_value(0.01234), p_value(0.0002), p_value(3.2e-19), p_value(1.0), p_value(0.0)
    ('0.012', '0.0002', '3.2e−19', '1', 'below 1e−300')
    """
    if p < 1e-300:
        return f"below 1e{MINUS}300"
    return brief(p, 2)


def recorded_p(p: object) -> str:
    """The p-value of an earlier test as its record has it.

    >>> recorded_p(0.0123), recorded_p(None)
    ('p = 0.012', 'no p')
    """
    return f"p = {p_value(p)}" if isinstance(p, int | float) else "no p"


def plural(value: int, noun: str) -> str:
    """A count and its noun.

    >>> plural(1, "text"), plural(2000, "text")
    ('1 text', '2,000 texts')
    """
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"


def times(number: int) -> str:
    """How often, in words.

    >>> times(1), times(2), times(5)
    ('once', 'twice', '5 times')
    """
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def listed(names: Sequence[str], most: int = 3) -> str:
    """Names for a message: the first few, and how many more there are.

    >>> listed(["a", "b", "c", "d"])
    "'a', 'b', 'c' and 1 more"
    """
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def fixed(value: float, digits: int = 3) -> str:
    """A figure with a set number of decimals."""
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:.{digits}f}"
    return text.replace("-", MINUS) if float(text) else text.replace("-", "")


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage: 0.1234 as "12.3%"."""
    return f"{fixed(100 * value, digits)}%"


def count(value: int) -> str:
    """A whole number with its thousands apart."""
    return f"{int(value):,}"


def first_of(names: Sequence[str], total: int) -> str:
    """The first of some names, and how many more there are: "a, b and 3 more"."""
    more = total - len(names)
    return ", ".join(names) + (f" and {count(more)} more" if more > 0 else "")


def interval(estimate: Estimate, *, share: bool = False) -> str:
    """The 95% interval of an estimate in brackets, as a `share` in percent; nothing where it has none."""
    if estimate.low == estimate.high == estimate.value:
        return ""
    low, high = (fixed(100 * end, 1) if share else fixed(end) for end in (estimate.low, estimate.high))
    return f"[{low}, {high}]"


def bracketed(estimate: Estimate, digits: int = 3, ends: int = 2) -> str:
    """An estimate with its 95% interval, for a terminal or a paper: "0.700 [0.65, 0.75]"."""
    return f"{estimate.value:.{digits}f} [{estimate.low:.{ends}f}, {estimate.high:.{ends}f}]"


def one_in(probability: float) -> str:
    """A probability as people say it: "1 in 250"; nothing from one half upwards."""
    if not 0 < probability < 0.5 or 1 / probability > 1e15:
        return ""
    odds = 1 / probability
    return f"1 in {odds:.1f}" if odds < 9.95 else f"1 in {float(f'{odds:.2g}'):,.0f}"


def perplexity(mean_logp: float) -> str:
    """exp of minus the mean log-probability, in words where it is beyond any number."""
    return significant(math.exp(-mean_logp)) if mean_logp > -700 else "beyond measure"


def often(p: float) -> str:
    """In how many audits something of this probability happens: "about 1 of 5,000", "about half of all"."""
    if p < 1e-6:
        return "fewer than 1 of 1,000,000"
    if p < 0.15:
        return f"about {one_in(p).replace(' in ', ' of ') if p < 0.1 else f'1 of {round(1 / p)}'}"
    tenths = round(10 * p)
    if tenths == 10:
        return "nearly all"
    return "about half of all" if tenths == 5 else f"about {tenths} of 10"


def share(level: float) -> str:
    """A level of a test as a percentage, with the digits it was given: 0.001 as "0.1%"."""
    return f"{100 * level:g}%"


def figure(estimate: Estimate) -> str:
    """The value of an estimate, with the digits that its interval leaves meaning."""
    digits = _decimals(estimate)
    return significant(estimate.value, 3) if digits is None else fixed(estimate.value, digits)


def spread(estimate: Estimate) -> str:
    """The 95% interval of an estimate in brackets, with as many digits; nothing where it has none."""
    if estimate.low == estimate.high:
        return ""
    digits = _decimals(estimate)
    low, high = (fixed(end, 3 if digits is None else digits) for end in (estimate.low, estimate.high))
    return f"[{low}, {high}]"


def effect(estimate: Estimate | None) -> tuple[str, str]:
    """The cells of a table for an effect: its value and its interval; a dash where none was measured."""
    return ("–", "") if estimate is None else (figure(estimate), spread(estimate))


def cases(probability: float) -> str:
    """A probability as a number of cases: "about 94 of 100 cases"."""
    if probability > 0.99:
        return "more than 99 of 100 cases"
    number = f"about {round(100 * probability)}" if probability >= 0.01 else "fewer than 1"
    return f"{number} of 100 cases"


def case_spread(probability: Estimate) -> str:
    """The 95% interval of a probability, in cases of 100."""
    low, high = (round(100 * min(1.0, max(0.0, end))) for end in (probability.low, probability.high))
    return f"95% interval {low} to {high} of 100"


def duration(seconds: float) -> str:
    """A time as people say it, in two units at most: "6 min 52 s"."""
    if seconds < 9.95:
        return f"{fixed(seconds, 1).removesuffix('.0')} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{count(minutes // 60)} h {minutes % 60} min"


def plain(sentence: str) -> str:
    """A sentence as page one has it: without the options, or the command, that may stand in brackets at its end."""
    return sentence.partition(" [--")[0].partition(" [pretrace ")[0]


def once(sentences: Iterable[str], beside: Iterable[str] = ()) -> tuple[str, ...]:
    """The sentences for page one, each once, without those that stand `beside` them already."""
    told = {plain(one) for one in beside}
    return tuple(one for one in dict.fromkeys(map(plain, sentences)) if one not in told)


def _decimals(estimate: Estimate) -> int | None:
    """Decimals that show two digits of half the interval; None where it has no finite width."""
    half = (estimate.high - estimate.low) / 2
    return min(12, max(0, 1 - math.floor(math.log10(half)))) if 0 < half < math.inf else None


def named(text: str, limit: int = 120) -> str:
    """A name or id on one line: unseen characters spelled out, shortened in the middle, never nothing."""
    short = text[: 2 * limit] + text[-limit:] if len(text) > 3 * limit else text
    return shortened(shown(short), limit) or "(empty)"


def shortened(text: str, limit: int) -> str:
    """The text, or its two ends around an ellipsis where it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"
