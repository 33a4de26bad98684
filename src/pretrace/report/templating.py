"""The templates of the report: escaped, strict about names, and never showing a character that hides."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pretrace.report import heat, wording
from pretrace.report.visible import named, shortened, visible


def fill(template: str, values: Mapping[str, Any]) -> Markup:
    """A template of this package with its blanks filled: markup in which every other text is escaped."""
    return Markup(_environment().get_template(template).render(values))


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pretrace.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_safe,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "fixed": wording.fixed,
        "significant": wording.significant,
        "percent": wording.percent,
        "count": wording.count,
        "plural": wording.plural,
        "interval": wording.interval,
        "named": named,
        "shortened": shortened,
    }
    environment.globals["heat_steps"] = heat.STEPS
    environment.globals["unseen_colour"] = heat.UNSEEN
    return environment


def _safe(value: object) -> object:
    """Last stop of every value on its way into a page; line ends and tabs pass, other controls are spelled out."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value, keep="\n\t")
    return value
