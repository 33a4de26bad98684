"""Numbers and words as the report prints them: a true minus sign, thousands apart, no false precision."""

from __future__ import annotations

import math

from pretrace.types import Estimate

MINUS = "−"


def fixed(value: float, digits: int = 3) -> str:
    """A figure with a set number of decimals.

    >>> fixed(-0.12345)
    '−0.123'
    """
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:.{digits}f}"
    return text.replace("-", MINUS) if float(text) else text.replace("-", "")


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


def plural(value: int, noun: str) -> str:
    """A count and its noun.

    >>> plural(1, "text"), plural(2000, "text")
    ('1 text', '2,000 texts')
    """
    return f"{count(value)} {noun}" if value == 1 else f"{count(value)} {noun}s"


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
