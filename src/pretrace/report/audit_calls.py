"""The command line and the Python call that make an audit again, from what it recorded of its settings."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from pretrace.report import facts
from pretrace.types import Verdict
from pretrace.verdicts.audit.built import figures_of

_SNIPPETS = ("tokens", "most", "pairs", "share", "learnt")


def command_line(audit: Verdict) -> str:
    """The command, every option written out; empty where the audit was not made from the command line."""
    found = audit.settings.get("command")
    if isinstance(found, str):
        return found
    given = dict(facts.mapping(found))
    texts = given.pop("texts", None)
    if texts is None:
        return ""
    given.pop("plan", None)
    words = [f"pretrace audit {shlex.quote(str(texts))}"]
    for name, value in given.items():
        words += _option(str(name), value)
    return " \\\n    ".join(words)


def python_call(audit: Verdict) -> str:
    """The same as a Python program; empty where no settings were recorded."""
    if not facts.mapping(audit.settings.get("models")):
        return ""
    return "\n".join(_lines(audit))


def _option(name: str, value: Any) -> Iterator[str]:
    """An option as it is given; nothing for one that is off or empty."""
    flag = f"--{name.replace('_', '-')}"
    if value is True:
        yield flag
    elif isinstance(value, list | tuple):
        for one in value:
            yield f"{flag} {shlex.quote(str(one))}"
    elif value is not None and value is not False and value != "":
        yield f"{flag} {shlex.quote(str(value))}"


def _lines(audit: Verdict) -> Iterator[str]:
    settings = audit.settings
    yield "import pretrace"
    yield "from pretrace.verdicts.audit.snippets import SnippetSettings"
    if settings.get("sampling"):
        yield "from pretrace.types import Sampling"
    yield ""
    columns = _columns(facts.mapping(settings.get("command")))
    yield f"corpus = pretrace.open_corpus({_source(settings.get('corpus'))}{columns})"
    yield f"target = {_opened(facts.of_model(audit, 'target'), audit.model)}"
    placebos = "".join(
        f"{_opened(facts.of_placebo(audit, one) or one.facts, one.name)}, "
        for one in figures_of(audit).placebos
    )
    yield f"models = pretrace.Models(target, placebos=({placebos.rstrip()}))"
    yield f"settings = {_settings(audit)}"
    named = ""
    if settings.get("heldout"):
        beside = f"{columns}.of_another" if columns else ""
        yield f"heldout = pretrace.open_corpus({_source(settings['heldout'])}{beside})"
        named += ", heldout=heldout"
    generator = facts.of_model(audit, "generator")
    if generator:
        yield f"generator = {_opened(_untuned(generator), 'generator')}"
        named += ", generator=generator"
    yield f"found = pretrace.audit(corpus, models{named}, settings=settings)"
    yield 'pretrace.save_verdict(found, "AUDIT")'


def _settings(audit: Verdict) -> str:
    settings = audit.settings
    cut = facts.mapping(settings.get("snippets"))
    snippets = {name: cut[name] for name in _SNIPPETS if name in cut}
    given = {"procedure": repr(figures_of(audit).procedure), "level": repr(audit.level)}
    if isinstance(also := settings.get("also"), list | tuple) and also:
        given["also"] = repr(tuple(also))
    if isinstance(classifiers := settings.get("classifiers"), list | tuple):
        given["classifiers"] = repr(tuple(classifiers))
    if method := settings.get("generator_method"):
        given["method"] = repr(method)
    given["snippets"] = _built("SnippetSettings", snippets)
    if sampling := settings.get("sampling"):
        given["sampling"] = _built("Sampling", facts.mapping(sampling))
    if power := settings.get("power"):
        tried = power if isinstance(power, list | tuple) else [power]  # one, before there were several
        made = [_built("pretrace.PlantSettings", facts.mapping(one)) for one in tried]
        given["power"] = f"({', '.join(made)},)"
    if audit.statements:
        given["statements"] = repr(dict(audit.statements))
    return "pretrace.AuditSettings(\n    " + ",\n    ".join(f"{k}={v}" for k, v in given.items()) + ",\n)"


def _built(name: str, given: Mapping[str, Any]) -> str:
    plain = {key: value for key, value in given.items() if isinstance(value, str | int | float)}
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in plain.items())})"


def _columns(command: Mapping[str, Any]) -> str:
    """Where in their file things stand, if the command line said it."""
    given = {name: command.get(f"{name}_column") for name in ("text", "label", "id", "group")}
    return f", {_built('pretrace.Columns', given)}" if any(given.values()) else ""


def _source(recorded: object) -> str:
    part = facts.mapping(recorded)
    return repr(str(part.get("source") or part.get("name") or "TEXTS"))


def _opened(recorded: Mapping[str, Any], name: str) -> str:
    fields = {
        "revision": "revision",
        "dtype": "dtype",
        "tokenizer_from": "tokenizer",
    }  # the last of a server's model
    given = {name: recorded[field] for field, name in fields.items() if recorded.get(field)}
    more = "".join(f", {key}={value!r}" for key, value in given.items())
    return f"pretrace.open_model({str(recorded.get('name') or name)!r}{more})"


def _untuned(generator: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the generator was before it was tuned, as far as that was recorded."""
    name = str(generator.get("name") or "")
    return {**generator, "name": str(generator.get("base") or name.split(" + ")[0])}
