"""Figures with the digits that a reader can use: one way to round, for the terminal, the sentences and the reports."""

from __future__ import annotations

from collections.abc import Sequence

MINUS = "−"


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
