"""Numbers in words and figures, for all reports: a true minus sign, thousands apart, chances as people say them,
and no more digits than the interval allows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from pretrace.errors import shown
from pretrace.results.rounding import MINUS as MINUS
from pretrace.results.rounding import brief as brief
from pretrace.results.rounding import p_value as p_value
from pretrace.results.rounding import plural as plural
from pretrace.results.rounding import significant as significant
from pretrace.results.rounding import times as times
from pretrace.types import Estimate, Lean

_DRAWS = ("draws", "flips", "permutations")
"""What a procedure may call the number of times it dealt the sides out anew."""


def fixed(value: float, digits: int = 3) -> str:
    """A figure with a set number of decimals.

    >>> fixed(-0.12345)
    '−0.123'
    """
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:.{digits}f}"
    return text.replace("-", MINUS) if float(text) else text.replace("-", "")


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage.

    >>> percent(0.1234)
    '12.3%'
    """
    return f"{fixed(100 * value, digits)}%"


def count(value: int) -> str:
    """A whole number with its thousands apart.

    >>> count(12345)
    '12,345'
    """
    return f"{int(value):,}"


def first_of(names: Sequence[str], total: int) -> str:
    """The first of some names, and how many more there are.

    >>> first_of(["a", "b"], 5), first_of(["a"], 1)
    ('a, b and 3 more', 'a')
    """
    more = total - len(names)
    return ", ".join(names) + (f" and {count(more)} more" if more > 0 else "")


def interval(estimate: Estimate, *, share: bool = False) -> str:
    """The 95% interval of an estimate in brackets, nothing where it has none.

    >>> interval(Estimate(0.7, 0.65, 0.75)), interval(Estimate(0.7, 0.7, 0.7))
    ('[0.650, 0.750]', '')
    """
    if estimate.low == estimate.high == estimate.value:
        return ""
    if share:
        return f"[{fixed(100 * estimate.low, 1)}, {fixed(100 * estimate.high, 1)}]"
    return f"[{fixed(estimate.low)}, {fixed(estimate.high)}]"


def bracketed(estimate: Estimate, digits: int = 3, ends: int = 2) -> str:
    """An estimate with its 95% interval, for a terminal or a paper.

    >>> bracketed(Estimate(0.7, 0.65, 0.75))
    '0.700 [0.65, 0.75]'
    """
    return f"{estimate.value:.{digits}f} [{estimate.low:.{ends}f}, {estimate.high:.{ends}f}]"


def one_in(probability: float) -> str:
    """A probability as people say it: "1 in 250"; nothing from one half upwards.

    >>> one_in(0.004), one_in(0.9), one_in(0.0)
    ('1 in 250', '', '')
    """
    if not 0 < probability < 0.5 or 1 / probability > 1e15:
        return ""
    odds = 1 / probability
    return f"1 in {odds:.1f}" if odds < 9.95 else f"1 in {float(f'{odds:.2g}'):,.0f}"


def perplexity(mean_logp: float) -> str:
    """exp of minus the mean log-probability, in words where it is beyond any number.

    >>> perplexity(-2.0), perplexity(-math.inf)
    ('7.389', 'beyond measure')
    """
    return significant(math.exp(-mean_logp)) if mean_logp > -700 else "beyond measure"


def often(p: float) -> str:
    """In how many audits something of this probability happens.

    >>> often(0.0002), often(0.28), often(0.5), often(1.0)
    ('about 1 of 5,000', 'about 3 of 10', 'about half of all', 'nearly all')
    """
    if p < 1e-6:
        return "fewer than 1 of 1,000,000"
    if p < 0.15:
        return f"about {one_in(p).replace(' in ', ' of ') if p < 0.1 else f'1 of {round(1 / p)}'}"
    tenths = round(10 * p)
    if tenths == 10:
        return "nearly all"
    return "about half of all" if tenths == 5 else f"about {tenths} of 10"


def strength(p: float, facts: Mapping[str, object]) -> str:
    """How often an answer at least this strong comes without training; a p-value from dealing the sides out anew
    cannot be lower than one in the number of times that was done, and the words say so where it is as low. `facts` are
    the numbers of the test."""
    draws = next((found for name in _DRAWS if isinstance(found := facts.get(name), int)), 0)
    if draws and p * (draws + 1) < 1.5:
        return f"at most 1 of {count(draws)}"
    return often(p)


def share(level: float) -> str:
    """A level of a test as a percentage, with the digits it was given.

    >>> share(0.05), share(0.001)
    ('5%', '0.1%')
    """
    return f"{100 * level:g}%"


def figure(estimate: Estimate) -> str:
    """The value of an estimate, with the digits that its interval leaves meaning.

    >>> figure(Estimate(0.04123, 0.0262, 0.0563)), figure(Estimate(12.345, 12.345, 12.345))
    ('0.041', '12.3')
    """
    digits = _decimals(estimate)
    return significant(estimate.value, 3) if digits is None else fixed(estimate.value, digits)


def spread(estimate: Estimate) -> str:
    """The 95% interval of an estimate in brackets, nothing where it has none.

    >>> spread(Estimate(0.04123, 0.0262, 0.0563)), spread(Estimate(1.0, 1.0, 1.0))
    ('[0.026, 0.056]', '')
    """
    digits = _decimals(estimate)
    if digits is None:
        return "" if estimate.low == estimate.high else f"[{fixed(estimate.low)}, {fixed(estimate.high)}]"
    return f"[{fixed(estimate.low, digits)}, {fixed(estimate.high, digits)}]"


def effect(estimate: Estimate | None) -> tuple[str, str]:
    """The cells of a table for an effect: its value and its interval; a dash where none was measured.

    >>> effect(Estimate(0.04123, 0.0262, 0.0563)), effect(None)
    (('0.041', '[0.026, 0.056]'), ('–', ''))
    """
    return ("–", "") if estimate is None else (figure(estimate), spread(estimate))


def cases(probability: float) -> str:
    """A probability as a number of cases.

    >>> cases(0.94), cases(0.999), cases(0.001)
    ('about 94 of 100 cases', 'more than 99 of 100 cases', 'fewer than 1 of 100 cases')
    """
    if probability > 0.99:
        return "more than 99 of 100 cases"
    number = f"about {round(100 * probability)}" if probability >= 0.01 else "fewer than 1"
    return f"{number} of 100 cases"


def case_spread(probability: Estimate) -> str:
    """The 95% interval of a probability, in cases of 100.

    >>> case_spread(Estimate(0.94, 0.9, 0.97))
    '95% interval 90 to 97 of 100'
    """
    low, high = (round(100 * min(1.0, max(0.0, end))) for end in (probability.low, probability.high))
    return f"95% interval {low} to {high} of 100"


def beside_leans(leans: Sequence[Lean], effect: Estimate | None, margin: float) -> str:
    """The effect, with the margin that was taken off, beside what innocent models showed; empty where none were
    measured.

    >>> beside_leans([Lean("mail", 1, "m", 0.03), Lean("code", 1, "m", 0.04)], Estimate(0.02, 0.01, 0.03), 0.04)
    'larger than any of the 2 leans that were measured on innocent models'
    """
    if not leans or effect is None:
        return ""
    below = sum(lean.value < effect.value + margin for lean in leans)
    which = "any" if below == len(leans) else count(below) if below else "none"
    return f"larger than {which} of the {plural(len(leans), 'lean')} that were measured on innocent models"


def duration(seconds: float) -> str:
    """A time as people say it, in two units at most.

    >>> duration(1.44), duration(52.3), duration(412.4), duration(7384)
    ('1.4 s', '52 s', '6 min 52 s', '2 h 3 min')
    """
    if seconds < 9.95:
        return f"{fixed(seconds, 1).removesuffix('.0')} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{count(minutes // 60)} h {minutes % 60} min"


def plain(sentence: str) -> str:
    """A sentence as page one has it: without the options, or the command, that may stand in brackets at its end.

    >>> plain("Measure what it would have seen. [--power]"), plain("Test it. [pretrace ask]"), plain("Wait [1, 2].")
    ('Measure what it would have seen.', 'Test it.', 'Wait [1, 2].')
    """
    return sentence.partition(" [--")[0].partition(" [pretrace ")[0]


def once(sentences: Iterable[str], beside: Iterable[str] = ()) -> tuple[str, ...]:
    """The sentences for page one, each once, without those that stand `beside` them already."""
    told = {plain(one) for one in beside}
    return tuple(one for one in dict.fromkeys(map(plain, sentences)) if one not in told)


def after(statement: str, title: str) -> str:
    """A statement without the words that stand above it as its title already.

    >>> after("Refused: they differ.", "Refused: ")
    'They differ.'
    """
    rest = statement.removeprefix(title)
    return rest[:1].upper() + rest[1:]


def _decimals(estimate: Estimate) -> int | None:
    """Decimals that show two digits of half the interval; None where it has no finite width."""
    half = (estimate.high - estimate.low) / 2
    if not 0 < half < math.inf:
        return None
    return min(12, max(0, 1 - math.floor(math.log10(half))))


def named(text: str, limit: int = 120) -> str:
    """A name or id on one line: unseen characters spelled out, shortened in the middle, never nothing."""
    return (
        shortened(shown(text[: 2 * limit] + text[-limit:] if len(text) > 3 * limit else text), limit)
        or "(empty)"
    )


def shortened(text: str, limit: int) -> str:
    """The text, or its two ends around an ellipsis where it is longer than `limit` characters.

    >>> shortened("abcdefghij", 5)
    'abc…j'
    """
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"
