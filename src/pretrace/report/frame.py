"""What every report is made of: sections, and templates that escape what strangers wrote and show what hides."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pretrace.backends.serving.address import called
from pretrace.errors import shown
from pretrace.report import heat, wording
from pretrace.report.visible import named, shortened

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, the name links use (letters and hyphens), and the markup beneath it. An `appendix` stands folded at
    the end, and is not printed with the rest: a file of its own, beside the report, is for paper."""

    title: str
    anchor: str
    body: Markup
    appendix: bool = False


Sections = Sequence[Callable[[Result], Section | None]]
"""Functions that take a result and give a section, or None where they have nothing to say on it."""


def speaking(sections: Sections[Result], result: Result) -> tuple[Section, ...]:
    """The sections that have something to say on a result, in their order."""
    return tuple(made for section in sections if (made := section(result)) is not None)


def fill(template: str, values: Mapping[str, Any], *, package: str = "") -> Markup:
    """A template with its blanks filled: markup in which every other text is escaped. Templates are those of this
    package, and of another `package` with a folder of templates, which come first."""
    return Markup(_environment(package).get_template(template).render(values))


def titled(kind: str, corpus: str, model: str) -> str:
    """What stands in the browser's title bar."""
    return f"{kind}: {named(corpus, 80)}, {named(model, 80)}"


def two_parts(title: str, first: Markup, sections: Sequence[Section], seal: str) -> str:
    """A whole report with a first page for everybody and a technical part, as one HTML document; `seal` is the hash of
    the result, "" for one that is not in a folder."""
    values = {"title": title, "first": first, "sections": sections, "seal": seal}
    return str(fill("first_page.html", values))


def apart(title: str, sections: Sequence[Section], seal: str) -> str:
    """The appendix of a report as an HTML document of its own, for paper; `seal` is the hash of the result."""
    return str(fill("appendix.html", {"title": title, "sections": sections, "seal": seal}))


@functools.cache
def _environment(package: str) -> Environment:
    packages = [name for name in (package, "pretrace.report") if name]
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_safe,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    numbers = (wording.fixed, wording.significant, wording.percent, wording.count, wording.plural)
    words = (wording.interval, wording.p_value, named, shortened, wording.plain, called)
    environment.filters |= {function.__name__: function for function in (*numbers, *words)}
    environment.globals |= {"heat_steps": heat.STEPS, "unseen_colour": heat.UNSEEN}
    return environment


def _safe(value: object) -> object:
    """Last stop of every value on its way into a page; line ends and tabs pass, other controls are spelled out."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return shown(value, keep="\n\t")
    return value
