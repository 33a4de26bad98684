"""What runs, audits and flaggings record, read with care: any plain value as rows and lines, and what several
sections say of one result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pretrace.backends.serving.address import served_as
from pretrace.results import wording
from pretrace.results.wording import named
from pretrace.types import Check, Measured, Run, Verdict

UNNAMED = "a model whose name was not recorded"
_LONGEST = 1000
_CODE = re.compile(r"^(\w+:)?[0-9a-fA-F]{12,}$|^\S*[/\\()=]\S*$")
_APART = {
    "texts": ("card",), "fitted": ("losses", "hashes"), "adapter": ("losses", "hashes"),
}  # fmt: skip
"""Settings that have a section of their own."""


def mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


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
        (name.replace("_", " "), cut(value, "result.json")) for name, value in flattened(figures, joint=": ")
    ]


def line(facts: Mapping[str, Any]) -> str:
    """The figures in one line, "auc 0.5123 · folds 5"; nothing where there are none."""
    return " · ".join(f"{name} {value}" for name, value in rounded(facts))


def cut(value: str, file: str) -> str:
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
    return [(name, cut(value, file), bool(_CODE.match(value))) for name, value in flattened(told)]


def drawn(run: Run) -> Run:
    """The rows that figures of the texts are drawn from: of a large run those that were drawn at random."""
    return run.rows(np.arange(len(run.ids)) < run.whole.sampled) if run.whole else run


def served(settings: Mapping[str, Any]) -> list[str]:
    """What servers could have done unseen, in a sentence a kind of thing, of those models that stood behind one."""
    found: dict[str, list[str]] = {}
    for role, model in mapping(settings.get("models")).items():
        said = mapping(model).get("unseen")
        if isinstance(said, str):
            subject = "the model in question" if role == "target" else f"the {role}"
            found.setdefault(said.removeprefix("The model "), []).append(subject)
    return [" and ".join(who).capitalize() + f" {said}" for said, who in found.items()]


def model_as_served(name: str, found: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, bool], ...]]:
    """A model's name for page one, by what was recorded of it, and smaller lines, each with whether it is a code: the
    address of its server, its revision, and the fingerprint of its weights."""
    own, url = served_as(name)
    own = str(found.get("served_model") or own or UNNAMED)
    server = str(found.get("server", ""))
    url = url or (server if "://" in server else "")
    lines: list[tuple[str, bool]] = [("served at", False), (named(url), True)] if url else []
    if revision := found.get("revision"):
        lines.append((f"revision {named(str(revision))}", False))
    weights = found.get("weights")
    if weights == "unknown":
        lines.append(("its weights are not known", False))
    elif isinstance(weights, str) and weights:
        lines += [("fingerprint of its weights:", False), (named(weights), True)]
    return named(own), tuple(lines)


def model_name(run: Run) -> str:
    """The name of the model that was asked, as the settings record it."""
    return model_names(run).get("target", UNNAMED)


def model_names(run: Run) -> dict[str, str]:
    """The names of all models that took part, by their roles: target, reference."""
    models = mapping(run.settings.get("models"))
    return {str(role): str(name) for role, one in models.items() if (name := mapping(one).get("name"))}


def compared(run: Run) -> tuple[Measured, ...]:
    """The rows that stand in one table: scores, and the baselines that never saw the model."""
    rows = run.evaluation.rows if run.evaluation else ()
    return tuple(row for row in rows if row.kind in ("score", "blind"))


def elsewhere(run: Run) -> bool:
    """Whether there are rows that stand among the controls: placebo or shuffled labels."""
    return run.evaluation is not None and len(compared(run)) < len(run.evaluation.rows)


def control(run: Run) -> Measured | None:
    blind = (row for row in compared(run) if row.kind == "blind")
    return max(blind, key=lambda row: row.auc.value, default=None)


def of_model(result: Run | Verdict, role: str) -> Mapping[str, Any]:
    """What was recorded of the model in this role; nothing where it was not."""
    return mapping(mapping(result.settings.get("models")).get(role))


def rejected(verdict: Verdict) -> bool:
    """Whether the test gave a result."""
    return verdict.p is not None and verdict.p <= verdict.level


def checks(verdict: Verdict) -> tuple[Check, ...]:
    """The checks that have something to say: beside a result of an audit nobody asks what could have been missed."""
    told = verdict.test == "audit" and rejected(verdict)
    return tuple(check for check in verdict.checks if not (told and check.name == "power"))


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
