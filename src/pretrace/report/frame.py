"""What every report is made of: sections, and templates that escape what strangers wrote and show what hides."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pretrace.backends.serving.address import called
from pretrace.errors import shown
from pretrace.report import facts, heat
from pretrace.results import wording
from pretrace.results.wording import named, shortened

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, the name links use (letters and hyphens), and markup; an `appendix` stands folded at the end."""

    title: str
    anchor: str
    body: Markup
    appendix: bool = False


Sections = Sequence[Callable[[Result], Section | Sequence[Section] | None]]
"""Functions that take a result and give a section, or some, or None where they have nothing to say on it."""


def section(
    title: str | Callable[[Any], str],
    anchor: str,
    template: str,
    *,
    appendix: bool | Callable[[Any], bool] = False,
    package: str = "",
) -> Callable[[Callable[[Any], Mapping[str, Any] | None]], Callable[[Any], Section | None]]:
    """Make a section of a function that gives the values of its template, or None where it has nothing to say."""

    def of_values(values: Callable[[Any], Mapping[str, Any] | None]) -> Callable[[Any], Section | None]:
        @functools.wraps(values)
        def made(result: Any) -> Section | None:
            found = values(result)
            if found is None:
                return None
            heading = title if isinstance(title, str) else title(result)
            folded = appendix if isinstance(appendix, bool) else appendix(result)
            return Section(heading, anchor, fill(template, found, package=package), folded)

        return made

    return of_values


def speaking(sections: Sections[Result], result: Result) -> tuple[Section, ...]:
    """The sections that have something to say on a result, in their order."""
    made: list[Section] = []
    for section in sections:
        some = section(result)
        made += [] if some is None else [some] if isinstance(some, Section) else some
    return tuple(made)


@dataclass(frozen=True, slots=True)
class ReportPage(Generic[Result]):
    """How a kind of result is shown as one HTML document: heading, sections in order, and a template's values."""

    heading: Callable[[Result], str]
    sections: Sections[Result]
    values: Callable[[Result], Mapping[str, Any]]
    template: str = "first_page.html"
    """By default a first page for everybody (the value `first`) and a technical part."""

    def render(self, result: Result, *, seal: str = "") -> str:
        """Render the whole report; `seal` is the hash of the result, "" for one that is not in a folder."""
        return self.pages(result)[0](seal)

    def pages(self, result: Result) -> tuple[Callable[[str], str], Callable[[str], str] | None]:
        """What makes the report of a seal, and the appendix as a document of its own, for paper; None without one."""
        made = speaking(self.sections, result)
        folded = [one for one in made if one.appendix]

        def render(template: str, sections: Sequence[Section], values: Mapping[str, Any], seal: str) -> str:
            own = {"title": self.heading(result), "sections": sections, "seal": seal}
            return str(fill(template, {**values, **own}))

        appendix = functools.partial(render, "appendix.html", folded, {}) if folded else None
        return lambda seal: render(self.template, made, self.values(result), seal), appendix


def fill(template: str, values: Mapping[str, Any], *, package: str = "") -> Markup:
    """A template filled in, all else escaped; those of another `package` with a folder of templates come first."""
    return Markup(_environment(package).get_template(template).render(values))


def titled(kind: str, corpus: str, model: str) -> str:
    """What stands in the browser's title bar: a model in a folder by the name of the folder."""
    if model.startswith(("/", "./", "../", "~")):
        model = Path(model).name or model
    return f"{kind}: {named(corpus, 80)}, {named(model, 80)}"


_FILTERS: tuple[Callable[..., object], ...] = (
    *(wording.brief, wording.fixed, wording.significant, wording.percent, wording.share, wording.count),
    *(wording.plural, wording.times, wording.p_value, wording.cases, wording.plain, wording.perplexity),
    *(wording.interval, wording.figure, wording.spread, wording.effect, wording.case_spread),
    *(named, shortened, called, facts.rounded, facts.line),
)


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
    environment.filters |= {function.__name__: function for function in _FILTERS}
    environment.globals |= {"heat_steps": heat.STEPS, "unseen_colour": heat.UNSEEN}
    return environment


def _safe(value: object) -> object:
    """Last stop of every value on its way into a page; line ends and tabs pass, other controls are spelled out."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return shown(value, keep="\n\t")
    return value
