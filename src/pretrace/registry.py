"""Things named by call expressions: `min_k(k=0.1)`, `dc_pdd(variant='cld')`, `stdlib(min_chars=500)`.

An expression is parsed with `ast` and may hold names, calls and literals alone; it never runs code. The
text of the expression, as written, is the name of the column, plot or corpus it makes.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import importlib.util
import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from pretrace.errors import ExpressionError

T = TypeVar("T")
Factory = Callable[..., T]


class Registry(Generic[T]):
    """Factories by name. `kind` is the word for messages: "score", "corpus".

    A factory is a frozen dataclass or a function; its keyword arguments are the parameters an
    expression may set, checked against their annotations.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._factories: dict[str, Factory[Any]] = {}

    def add(self, name: str) -> Callable[[Factory[Any]], Factory[Any]]:
        """A decorator that registers a factory; a name is given once."""

        def register(factory: Factory[Any]) -> Factory[Any]:
            if name in self._factories:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._factories[name] = factory
            return factory

        return register

    def __contains__(self, name: str) -> bool:
        return name in self._factories

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._factories))

    def factory(self, name: str) -> Factory[Any]:
        """The factory of a name; ExpressionError with the nearest names when there is none."""
        if name not in self._factories:
            near = difflib.get_close_matches(name, self._factories, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(self)}."
            raise ExpressionError(f"no {self.kind} is called {name!r}; {hint}")
        return self._factories[name]

    def summary(self, name: str) -> str:
        """The first line of the factory's docstring."""
        return (inspect.getdoc(self.factory(name)) or "").partition("\n")[0]

    def signature(self, name: str) -> str:
        """The name with its parameters and their defaults, as an expression would write them."""
        parameters = inspect.signature(self.factory(name)).parameters.values()
        shown = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
        return f"{name}({', '.join(shown)})" if shown else name

    def make(self, expression: str) -> T:
        """The object an expression names."""
        node = _expression(expression, self.kind).body
        return typing.cast(T, self._build(node, expression))

    def split(self, expressions: str) -> tuple[str, ...]:
        """The expressions of a comma-separated list, as written, without repeats."""
        if not expressions.strip():
            raise ExpressionError(f"no {self.kind} was named; there are {', '.join(self)}.")
        source = f"[{expressions}\n]"
        body = _expression(source, self.kind, shown=expressions).body
        assert isinstance(body, ast.List)
        parts = [ast.get_source_segment(source, element) or "" for element in body.elts]
        return tuple(dict.fromkeys(part.strip() for part in parts))

    def _build(self, node: ast.expr, expression: str) -> Any:
        if isinstance(node, ast.Name):
            return self._call(node.id, [], {}, expression)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if any(keyword.arg is None for keyword in node.keywords):
                raise _refused(expression, self.kind)
            arguments = [self._argument(argument, expression) for argument in node.args]
            keywords = {str(k.arg): self._argument(k.value, expression) for k in node.keywords}
            return self._call(node.func.id, arguments, keywords, expression)
        raise _refused(expression, self.kind)

    def _argument(self, node: ast.expr, expression: str) -> Any:
        if isinstance(node, ast.Name | ast.Call):
            return self._build(node, expression)
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, MemoryError, RecursionError):
            raise _refused(expression, self.kind) from None

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
        return factory(*bound.args, **bound.kwargs)


def require(good: bool, message: str) -> None:
    """Raise ExpressionError unless a parameter is in its range; for `__post_init__` of scores."""
    if not good:
        raise ExpressionError(message)


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
    allowed = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, type(int | str)) else (hint,)
    words = {float: "a number", int: "a whole number", str: "a text in quotes", bool: "True or False"}
    if typing.get_origin(hint) is typing.Literal:
        if value not in typing.get_args(hint):
            choices = ", ".join(map(repr, typing.get_args(hint)))
            raise ExpressionError(f"{expression}: {parameter} must be one of {choices}, found {value!r}.")
        return
    if not all(kind in words or kind is type(None) for kind in allowed):
        return
    for kind in allowed:
        if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
            return
        if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool):
            return
    wanted = " or ".join(words[kind] for kind in allowed if kind in words)
    raise ExpressionError(f"{expression}: {parameter} must be {wanted}, found {value!r}.")


def load_plugin(path: Path) -> None:
    """Import a Python file, which registers what it adds; ExpressionError where it is missing or fails.

    The same file is imported once.
    """
    name = f"pretrace_plugin_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return
    require(path.is_file(), f"--plugin {path}: there is no such file.")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ExpressionError(f"--plugin {path}: a plug-in is a Python file, such as my_scores.py.")
    module = sys.modules[name] = importlib.util.module_from_spec(
        spec
    )  # dataclasses look their module up by name
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a stranger's code may raise anything
        del sys.modules[name]
        reason = " ".join(str(error).split())[:300]
        raise ExpressionError(f"--plugin {path} failed: {type(error).__name__}: {reason}") from error
