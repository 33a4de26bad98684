"""Scores, corpora and back ends by name, those of plug-ins among them.

A name is written as a call expression: `min_k(k=0.1)`, `dc_pdd(variant='cld')`, `stdlib(min_chars=500)`. An
expression is parsed with `ast` and may hold names, calls and literals alone; it never runs code. The text of the
expression, as written, is the name of the column, plot or corpus it makes.

A plug-in imports `scores`, `corpora`, `backends` or `rewrites` from here and registers its own with their `add`. It
is a file (`load_plugin`), or a package with an entry point in the group `pretrace.scores`, `pretrace.corpora`,
`pretrace.backends`, `pretrace.tests` or `pretrace.sections` (`test_pages`), whose module is imported when a name is not
known otherwise, or when all names are listed.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import pkgutil
import sys
import traceback
import types
import typing
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pretrace.errors import ExpressionError, PretraceError
from pretrace.errors import require as require  # a score finds both beside its registry
from pretrace.errors import require_least as require_least
from pretrace.plugins import PAGES, SCORES, TESTS

if TYPE_CHECKING:
    from pretrace.types import Backend, Corpus, Recipe, Rewrite, Score

T = TypeVar("T")
_Factory = Callable[..., T]


def nearest(name: str, known: Collection[str]) -> str:
    """What is meant by a name that nothing has, as the end of a sentence."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(known))}."


class Registry(Generic[T]):
    """Factories by name. `kind` is the word for messages: "score", "corpus".

    A factory is a frozen dataclass or a function; its keyword arguments are the parameters an
    expression may set, checked against their annotations.
    """

    def __init__(
        self,
        kind: str,
        package: str = "",
        *,
        has: str = "",
        group: str = "",
        reserved: tuple[str, ...] = (),
        places: Mapping[str, str] | None = None,
    ) -> None:
        """The modules of `package` register what is built in, or the module of `places` each name, and the entry points
        of `group` what packages of others add; `has` is what everything of the kind has, and `reserved` are names that
        nobody may register."""
        self.kind = kind
        self._package, self._places = package, dict(places or {})
        self._group = group
        self._reserved, self._has = reserved, has
        self._factories: dict[str, _Factory[Any]] = {}
        self._origins: dict[str, str] = {}

    def add(self, name: str) -> Callable[[_Factory[Any]], _Factory[Any]]:
        """A decorator that registers a factory; a name is given once."""

        def register(factory: _Factory[Any]) -> _Factory[Any]:
            if not _built_in(factory):
                self._load_built_in()
            if name in self._reserved or (name in self._factories and _built_in(self._factories[name])):
                raise ExpressionError(f"a {self.kind} called {name!r} is built in: give yours another name.")
            if name in self._factories:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            require(name.isidentifier(), f"{name!r} names no {self.kind}: take letters, digits and _.")
            self._factories[name] = factory
            if _loads and not _built_in(factory):  # the first plug-in of a process brings these in
                origin, added = _loads[-1]
                self._origins[name] = origin
                added.append((self, name))
            return factory

        return register

    def remove(self, name: str) -> None:
        """Forget a name, for a plug-in that is loaded anew."""
        self._factories.pop(name, None)
        self._origins.pop(name, None)

    def __contains__(self, name: str) -> bool:
        self._load_place(name)
        for load in (self._load_built_in, self._load_packages):
            if name in self._factories:
                break
            load()
        return name in self._factories

    def __iter__(self) -> Iterator[str]:
        self._load_built_in()
        self._load_packages()
        return iter(sorted(self._factories))

    def _load_place(self, name: str) -> None:
        """Import the module that registers a name; a plug-in of ours that was taken away registers nothing."""
        module = self._places.pop(name, "")
        try:
            if module:
                importlib.import_module(module)
        except ModuleNotFoundError as missing:
            if not module.startswith(missing.name or " "):
                raise

    def _load_built_in(self) -> None:
        for name in list(self._places):
            self._load_place(name)
        if self._package:
            package = importlib.import_module(self._package)
            for module in pkgutil.walk_packages(package.__path__, prefix=f"{self._package}."):
                importlib.import_module(module.name)

    def _load_packages(self) -> None:
        from importlib.metadata import entry_points

        group, self._group = self._group, ""  # once
        for entry in entry_points(group=group) if group else ():
            try:
                with _loading(f"package {entry.dist.name if entry.dist else entry.module}"):
                    entry.load()
            except ExpressionError as error:
                warnings.warn(str(error), stacklevel=2)

    def factory(self, name: str) -> _Factory[Any]:
        """The factory of a name; ExpressionError with the nearest names when there is none."""
        if name not in self:
            raise ExpressionError(f"no {self.kind} is called {name!r}{nearest(name, list(self))}")
        return self._factories[name]

    def summary(self, name: str) -> str:
        """The first line of the factory's docstring, and the plug-in it comes from, if any."""
        line = (inspect.getdoc(self.factory(name)) or "").partition("\n")[0]
        return f"{line} [{self._origins[name]}]".lstrip() if name in self._origins else line

    def signature(self, name: str) -> str:
        """The name with its parameters and their defaults, as an expression would write them."""
        parameters = inspect.signature(self.factory(name)).parameters.values()
        shown = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
        return f"{name}({', '.join(shown)})" if shown else name

    def make(self, expression: str) -> T:
        """The object an expression names."""
        node = _expression(expression, self.kind).body
        if not isinstance(node, ast.Name | ast.Call):
            raise _refused(expression, self.kind)
        return typing.cast(T, self._value(node, expression))

    def several(self, expressions: str | Sequence[str]) -> dict[str, T]:
        """The objects that expressions name, one after another or in a comma-separated list, by the expressions as
        they are written. ExpressionError for an unknown name, an unknown parameter or a value out of range."""
        written = expressions if isinstance(expressions, str) else ",".join(expressions)
        return {expression: self.make(expression) for expression in self.split(written)}

    def split(self, expressions: str) -> tuple[str, ...]:
        """The expressions of a comma-separated list, as written, without repeats."""
        if not expressions.strip():
            raise ExpressionError(f"no {self.kind} was named; there are {', '.join(self)}.")
        source = f"[{expressions}\n]"
        body = _expression(source, self.kind, shown=expressions).body
        assert isinstance(body, ast.List)
        parts = [ast.get_source_segment(source, element) or "" for element in body.elts]
        return tuple(dict.fromkeys(part.strip() for part in parts))

    def _value(self, node: ast.expr, expression: str) -> Any:
        """What a name or a call makes, or a literal says."""
        if isinstance(node, ast.Name):
            node = ast.Call(node, [], [])
        try:
            if not isinstance(node, ast.Call):
                return ast.literal_eval(node)
        except (ValueError, TypeError, MemoryError, RecursionError):
            raise _refused(expression, self.kind) from None
        if not isinstance(node.func, ast.Name) or any(keyword.arg is None for keyword in node.keywords):
            raise _refused(expression, self.kind)
        arguments = [self._value(argument, expression) for argument in node.args]
        keywords = {str(k.arg): self._value(k.value, expression) for k in node.keywords}
        return self._call(node.func.id, arguments, keywords, expression)

    def _call(self, name: str, arguments: list[Any], keywords: dict[str, Any], expression: str) -> Any:
        factory = self.factory(name)
        signature = inspect.signature(factory)
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise ExpressionError(f"{expression}: {error}; it is written {self.signature(name)}.") from None
        hints = typing.get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
        for parameter, value in bound.arguments.items():
            _check_type(expression, parameter, value, hints.get(parameter, Any))
        return self.checked(expression, factory(*bound.args, **bound.kwargs))

    def checked(self, name: str, made: Any) -> Any:
        """What a factory made; ExpressionError where a plug-in made something else."""
        require(
            hasattr(made, self._has or "__class__"),
            f"{name} makes {made!r:.100}, which is no {self.kind}: it has no {self._has}. This is a mistake in the "
            "plug-in.",
        )
        return made


def _expression(source: str, kind: str, *, shown: str | None = None) -> ast.Expression:
    try:
        return ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise _refused(shown or source, kind) from None


def _refused(expression: str, kind: str) -> ExpressionError:
    short = expression if len(expression) <= 80 else expression[:77] + "..."
    return ExpressionError(
        f"{short!r} is not a {kind}: write a name or a call with literal values, such as name or name(k=0.1)."
    )


def _check_type(expression: str, parameter: str, value: Any, hint: Any) -> None:
    origin, several = typing.get_origin(hint), (typing.Literal, typing.Union, type(int | str))
    allowed = typing.get_args(hint) if origin in several else (hint,)
    words = {float: "a number", int: "a whole number", str: "a text in quotes", bool: "True or False"}
    if origin is typing.Literal:
        fits, wanted = value in allowed, f"one of {', '.join(map(repr, allowed))}"
    else:
        taken = {float: (int, float)}
        fits = not all(kind in words or kind is type(None) for kind in allowed) or any(
            isinstance(value, taken.get(kind, kind)) and (kind is bool or not isinstance(value, bool))
            for kind in allowed
        )
        wanted = " or ".join(words[kind] for kind in allowed if kind in words)
    require(fits, f"{expression}: {parameter} must be {wanted}, found {value!r}.")


def _built_in(factory: _Factory[Any]) -> bool:
    return str(getattr(factory, "__module__", "")).startswith("pretrace.")


scores: Registry[Score | Recipe] = Registry(
    "score", "pretrace.scores", has="needs", group="pretrace.scores", places=SCORES
)
corpora: Registry[Corpus] = Registry("corpus", "pretrace.corpora", has="texts", group="pretrace.corpora")
rewrites: Registry[Rewrite] = Registry("rewrite", "pretrace.rewrites", has="__call__")
_RESERVED = ("smollm2", "vllm", "completions")
backends: Registry[Backend] = Registry("back end", has="run", group="pretrace.backends", reserved=_RESERVED)
"""What opens the models of plug-ins: `--model mine:NAME` calls the factory `mine` with NAME and the settings."""
tests: Registry[Any] = Registry("test", has="of_result", group="pretrace.tests", places=TESTS)
"""The tests of plug-ins, ours among them, by the name that a result has of its test (`verdicts.frame.Test`)."""
_PAGES = {"audit": "pretrace.report.audit", "flag": "pretrace.report.flags", **PAGES}
test_pages: Registry[Any] = Registry("page", has="draw", group="pretrace.sections", places=_PAGES)
"""What the reports of these tests have of their own (`report.verdict.TestPage`)."""


def find_test(name: str) -> Any:
    """The registered test of a name, None where there is none."""
    return tests.factory(name) if name in tests else None


_Added = list[tuple[Registry[Any], str]]
_loads: list[tuple[str, _Added]] = []
"""The plug-ins that are being imported, the innermost last, and what each has registered."""
_files: dict[Path, _Added] = {}
_MODULE = "pretrace_plugin_"


def load_plugin(path: str | Path) -> tuple[str, ...]:
    """What a Python file registers when it is run: ("score confident", "corpus paragraphs").

    A file that is loaded again is run again, and replaces what it registered before. Raises ExpressionError, with
    the line at fault, where there is no such file, it fails, or it registers nothing.
    """
    path = Path(path)
    require(path.is_file(), f"there is no plug-in {path}: give the path of a Python file.")
    place = path.resolve()
    for registry, name in _files.pop(place, []):
        registry.remove(name)
    module = types.ModuleType(f"{_MODULE}{zlib.crc32(bytes(place)):08x}")  # the same in each process
    module.__file__ = str(place)
    with _loading(str(path)) as added:
        sys.modules[module.__name__] = module  # dataclasses look their module up by name
        exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
    require(bool(added), f"the plug-in {path} registers nothing: put @scores.add('NAME') above a score.")
    _files[place] = added
    return tuple(f"{registry.kind} {name}" for registry, name in added)


def plugin_fault(error: BaseException) -> str | None:
    """What to say of an error that a loaded plug-in raised while it was used; None where none did."""
    for one in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(one.filename).resolve() in _files:
            return f"the plug-in {one.filename} failed in line {one.lineno}: {_named(error)}."
    return None


def _named(error: BaseException) -> str:
    reason = " ".join(str(error).split()).rstrip(".")[:300]
    return reason if isinstance(error, PretraceError) else f"{type(error).__name__}: {reason}".rstrip(": ")


def loaded_plugins() -> tuple[Path, ...]:
    """The files that were loaded, in order, for another process to load them too."""
    return tuple(_files)


@contextmanager
def _loading(origin: str) -> Iterator[_Added]:
    """What is registered meanwhile is of this origin; where the plug-in fails, none of it stays."""
    added: _Added = []
    _loads.append((origin, added))
    try:
        yield added
    except BaseException as error:  # code of others can raise anything
        for registry, name in added:
            registry.remove(name)
        if isinstance(error, KeyboardInterrupt):
            raise
        raise ExpressionError(f"the plug-in {origin} cannot be loaded: {_told(error)}.") from error
    finally:
        _loads.pop()


def _told(error: BaseException) -> str:
    """An error of a plug-in on one line, with the file and line of the plug-in."""
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({error.filename}, line {error.lineno})"
    ours = (__file__, "<frozen", str(Path(importlib.__file__).parent))
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith(ours)]
    lines = [one.lineno for one in frames if one.filename == frames[0].filename]
    return f"{_named(error)} ({frames[0].filename}, line {lines[-1]})" if frames else _named(error)
