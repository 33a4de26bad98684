"""Figures of an audit in words: chances as people say them, no more digits than the interval allows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pretrace.report.wording import MINUS, count, fixed, one_in, plural, significant
from pretrace.types import Answer, Design, Estimate, Lean, Outcome

DESIGNS: dict[Design, str] = {
    "controls": "control documents, compared directly",
    "differences": "control documents, compared by differences between true and generated text",
    "placebos": "true and generated text, compared with placebos and without control documents",
}
OUTCOMES: dict[Outcome, str] = {
    "consistent": "consistent with training",
    "nothing": "nothing shown",
    "inconclusive": "inconclusive",
}
_DRAWS = ("draws", "flips", "permutations")
"""What a procedure may call the number of times it dealt the sides out anew."""


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


def strength(answer: Answer) -> str:
    """How often an answer at least this strong comes without training; a p-value from dealing the sides out anew
    cannot be lower than one in the number of times that was done, and the words say so where it is as low."""
    draws = next((answer.facts[name] for name in _DRAWS if isinstance(answer.facts.get(name), int)), 0)
    if draws and answer.p * (draws + 1) < 1.5:
        return f"at most 1 of {count(draws)}"
    return often(answer.p)


def p_value(p: float) -> str:
    """A p-value with two digits.

    >>> p_value(0.01234), p_value(0.0002), p_value(3.2e-19), p_value(1.0), p_value(0.0)
    ('0.012', '0.0002', '3.2e−19', '1', 'below 1e−300')
    """
    if p < 1e-300:
        return f"below 1e{MINUS}300"
    return brief(p, 2)


def brief(value: float, digits: int = 4) -> str:
    """A figure with at most so many digits, and no idle zeros.

    >>> brief(0.66), brief(487.21931), brief(0.0033), brief(0.0), brief(2.0e-19, 2)
    ('0.66', '487.2', '0.0033', '0', '2e−19')
    """
    if not value:
        return "0"
    mantissa, e, exponent = significant(value, digits).partition("e")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + e + exponent


def share(level: float) -> str:
    """A level of a test as a percentage, with the digits it was given.

    >>> share(0.05), share(0.001)
    ('5%', '0.1%')
    """
    return f"{100 * level:g}%"


def times(number: int) -> str:
    """How often, in words.

    >>> times(1), times(2), times(5)
    ('once', 'twice', '5 times')
    """
    return {1: "once", 2: "twice"}.get(number, f"{count(number)} times")


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


def cases(probability: float) -> str:
    """A probability as a number of cases.

    >>> cases(0.94), cases(0.999), cases(0.001)
    ('about 94 of 100 cases', 'more than 99 of 100 cases', 'fewer than 1 of 100 cases')
    """
    if probability > 0.99:
        return "more than 99 of 100 cases"
    return (
        "fewer than 1 of 100 cases"
        if probability < 0.01
        else f"about {round(100 * probability)} of 100 cases"
    )


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
    """A time as people say it.

    >>> duration(1.44), duration(412.4), duration(7384)
    ('1.4 s', '6 min 52 s', '2 h 03 min')
    """
    if seconds < 59.95:
        return f"{fixed(seconds, 1)} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{count(whole // 3600)} h {whole % 3600 // 60:02d} min"


def _decimals(estimate: Estimate) -> int | None:
    """Decimals that show two digits of half the interval; None where it has no finite width."""
    half = (estimate.high - estimate.low) / 2
    if not 0 < half < math.inf:
        return None
    return min(12, max(0, 1 - math.floor(math.log10(half))))
