"""What every report is made of: sections, rows of what a result recorded, and templates that escape what strangers
wrote and show what hides."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pretrace.backends.naming import called
from pretrace.errors import shown
from pretrace.report import heat
from pretrace.results import wording
from pretrace.results.folder import mapping
from pretrace.results.wording import named, shortened
from pretrace.types import Run, Verdict

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


Pages = tuple[Callable[[str], str], Callable[[str], str] | None]
"""What makes the report of the hash of a result ("" for one that is not in a folder), and its appendix as a document of
its own, for paper; None without one."""


def speaking(sections: Sections[Result], result: Result) -> tuple[Section, ...]:
    """The sections that have something to say on a result, in their order."""
    made: list[Section] = []
    for section in sections:
        some = section(result)
        made += [] if some is None else [some] if isinstance(some, Section) else some
    return tuple(made)


def make_pages(
    title: str,
    sections: Sequence[Section],
    values: Callable[[], Mapping[str, Any]],
    template: str = "first_page.html",
) -> Pages:
    """Make the pages of a result. By default the report is a first page for everybody (the value `first`) and a
    technical part of `sections`; its `values` are asked for when it is rendered."""
    folded = [one for one in sections if one.appendix]

    def render(template: str, sections: Sequence[Section], values: Mapping[str, Any], seal: str) -> str:
        return str(fill(template, {**values, "title": title, "sections": sections, "seal": seal}))

    appendix = functools.partial(render, "appendix.html", folded, {}) if folded else None
    return lambda seal: render(template, sections, values(), seal), appendix


def fill(template: str, values: Mapping[str, Any], *, package: str = "") -> Markup:
    """A template filled in, all else escaped; those of another `package` with a folder of templates come first."""
    return Markup(_environment(package).get_template(template).render(values))


def titled(kind: str, corpus: str, model: str) -> str:
    """What stands in the browser's title bar: a model in a folder by the name of the folder."""
    if model.startswith(("/", "./", "../", "~")):
        model = Path(model).name or model
    return f"{kind}: {named(corpus, 80)}, {named(model, 80)}"


# Rows of what runs, audits and flaggings record: any plain value may stand there, and is read with care.


UNNAMED = "a model whose name was not recorded"
_LONGEST = 1000
_CODE = re.compile(r"^(\w+:)?[0-9a-fA-F]{12,}$|^\S*[/\\()=]\S*$")
_APART = {
    "texts": ("card",), "fitted": ("losses", "hashes"), "adapter": ("losses", "hashes"),
}  # fmt: skip
"""Settings that have a section of their own."""


def of_model(result: Run | Verdict, role: str) -> Mapping[str, Any]:
    """What was recorded of the model in this role; nothing where it was not."""
    return mapping(mapping(result.settings.get("models")).get(role))


def flattened(settings: Mapping[str, Any], path: str = "", joint: str = ".") -> Iterator[tuple[str, str]]:
    """Every setting as (name, printed value), a part of another behind its name and the `joint`; a list of plain values
    is one value, and parts of a table are numbered."""
    for key, value in settings.items():
        name = f"{path}{key}"
        if _is_table(value):
            value = dict(enumerate(value, 1))
        if isinstance(value, Mapping) and value:
            yield from flattened(value, f"{name}{joint}", joint)
        elif isinstance(value, list | tuple | set | frozenset | Mapping):
            items = [_printed(item) for item in value]
            yield name, ", ".join(sorted(items) if isinstance(value, set | frozenset) else items) or "none"
        else:
            yield name, _printed(value)


def without_tables(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The same without its tables: lists that hold mappings or lists, at any depth."""
    return {
        str(key): without_tables(value) if isinstance(value, Mapping) else value
        for key, value in facts.items()
        if not _is_table(value)
    }


def rounded(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every figure as (name, value), with no more digits than a reader can use."""
    figures = {name: _figure(value, name) for name, value in facts.items()}
    return [
        (name.replace("_", " "), _cut(value, "result.json")) for name, value in flattened(figures, joint=": ")
    ]


def line(facts: Mapping[str, Any]) -> str:
    """The figures in one line, "auc 0.5123 · folds 5"; nothing where there are none."""
    return " · ".join(f"{name} {value}" for name, value in rounded(facts))


def _cut(value: str, file: str) -> str:
    """A value of at most a thousand characters; of a longer one the beginning, and the file that has the rest."""
    if len(value) <= _LONGEST:
        return value
    return f"{value[:_LONGEST]}… ({wording.count(len(value))} characters; {file} has them all)"


def settings_rows(settings: Mapping[str, Any], file: str) -> list[tuple[str, str, bool]]:
    """Every setting as a name, its value (of a long one the beginning, and the `file` that has the rest) and whether
    that is a code, in the order they were recorded; what has a section of its own is omitted."""
    told = {key: value for key, value in settings.items() if key != "given"}  # most say it again
    for key, apart in _APART.items():
        if isinstance(told.get(key), Mapping):
            kept = told[key] if key == "texts" else without_tables(told[key])
            told[key] = {name: fact for name, fact in kept.items() if name not in apart}
    return [(name, _cut(value, file), bool(_CODE.match(value))) for name, value in flattened(told)]


def served(settings: Mapping[str, Any]) -> list[str]:
    """What servers could have done unseen, in a sentence a kind of thing, of those models that stood behind one."""
    found: dict[str, list[str]] = {}
    for role, model in mapping(settings.get("models")).items():
        said = mapping(model).get("unseen")
        if isinstance(said, str):
            subject = "the model in question" if role == "target" else f"the {role}"
            found.setdefault(said.removeprefix("The model "), []).append(subject)
    return [" and ".join(who).capitalize() + f" {said}" for said, who in found.items()]


def _is_p(name: str) -> bool:
    return name == "p" or name.startswith(("p_", "p "))


def _is_table(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(item, Mapping | list | tuple) for item in value)


def _printed(value: Any) -> str:
    if value is None:
        return "none"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value) or "(empty)"


def _figure(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {one: _figure(item, name if _is_p(name) else one) for one, item in value.items()}
    if isinstance(value, list | tuple):
        return [_figure(item, name) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if _is_p(name):
        return wording.p_value(value)
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return wording.count(int(value)).replace("-", wording.MINUS)
    return wording.brief(value)


_FILTERS: tuple[Callable[..., object], ...] = (
    *(wording.brief, wording.fixed, wording.significant, wording.percent, wording.share, wording.count),
    *(wording.plural, wording.times, wording.p_value, wording.cases, wording.plain, wording.perplexity),
    *(wording.interval, wording.figure, wording.spread, wording.effect, wording.case_spread),
    *(named, shortened, called, rounded, line),
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
