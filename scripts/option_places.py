"""In how many places of the sources an option of a command stands; for `count-walks`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import rooms


@dataclass(frozen=True)
class Option:
    """A parameter of the command, or a field of a dataclass that is one. `owner` is that dataclass."""

    name: str
    annotation: str  # its dotted name
    place: str
    owner: str | None = None


class Sources:
    """The modules, and the classes and aliases by name."""

    def __init__(self) -> None:
        self.modules = list(rooms.read_modules().values())
        self.imported = {module.name: _imported(module) for module in self.modules}
        self.classes: dict[str, tuple[rooms.Module, ast.ClassDef]] = {}
        self.settings: set[str] = set()  # the classes with a field that is an option
        self.aliases: dict[str, str] = {}
        for module in self.modules:
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef):
                    self.classes[f"{module.name}.{node.name}"] = (module, node)
                    if any(_declared(part) for part in node.body):
                        self.settings.add(f"{module.name}.{node.name}")
                elif isinstance(node, ast.Assign) and "Annotated[" in ast.unparse(node.value):
                    name = f"{module.name}.{ast.unparse(node.targets[0])}"
                    self.aliases[name] = f"alias {module.name}:{node.lineno}"

    def resolved(self, module: rooms.Module, node: ast.expr | None) -> str:
        """The dotted name of what an annotation or a call names: `o.Seed` is "pretrace.cli.options.Seed"."""
        if node is None:
            return ""
        first, dot, rest = ast.unparse(node).strip("'\"").partition(".")
        return self.imported[module.name].get(first, f"{module.name}.{first}") + dot + rest

    def options(self, command: str) -> Iterator[Option]:
        """The options of the function of that name in the command line."""
        for module in self.modules:
            for node in module.tree.body if module.room == "cli" else ():
                if isinstance(node, ast.FunctionDef) and node.name == command:
                    for one in (*node.args.args, *node.args.kwonlyargs):
                        kind = self.resolved(module, one.annotation)
                        yield from self._of(Option(one.arg, kind, f"{module.name}:{one.lineno}"))

    def _of(self, option: Option) -> Iterator[Option]:
        """The option itself, or the options that are fields of the dataclass it is annotated with."""
        if option.annotation not in self.classes:
            yield option
            return
        for field, declared in self.fields(option.annotation):
            if declared or field.annotation in self.settings:
                yield from self._of(field)

    def fields(self, kind: str) -> Iterator[tuple[Option, bool]]:
        """The fields of a class, each with whether it is declared as an option."""
        module, node = self.classes[kind]
        for part in node.body:
            if isinstance(part, ast.AnnAssign):
                own = part.annotation
                if isinstance(own, ast.Subscript) and ast.unparse(own.value) == "Annotated":
                    own = own.slice.elts[0] if isinstance(own.slice, ast.Tuple) else own.slice
                of = self.resolved(module, own)
                yield (
                    Option(ast.unparse(part.target), of, f"{module.name}:{part.lineno}", kind),
                    _declared(part),
                )

    def copies(self, option: Option) -> Iterator[str]:
        """Where the option's value is copied into other settings, by their class or `replace`, or into a dict, and the
        field of the library that it is copied into. A function or object that is handed the value uses it."""
        for module in self.modules:
            for node in ast.walk(module.tree):
                if isinstance(node, ast.FunctionDef) and (read := self._reads(module, node, option)):
                    for line, made, keyword in _handed_on(node, read):
                        called = self.resolved(module, made)
                        if called and called not in self.settings and called != "dataclasses.replace":
                            continue
                        yield f"copy {module.name}:{line}"
                        fields = self.fields(called) if called in self.settings else ()
                        yield from (f"field {field.place}" for field, _ in fields if field.name == keyword)

    def _reads(self, module: rooms.Module, function: ast.FunctionDef, option: Option) -> set[str]:
        """The expressions that are the option's value inside a function: `auditing.level`, or a local name."""
        if option.owner is None:
            return set()
        arguments = function.args.args
        given = {one.arg for one in arguments if self.resolved(module, one.annotation) == option.owner}
        if function in self.classes[option.owner][1].body:
            given.add("self")
        read = {f"{name}.{option.name}" for name in given}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and ast.unparse(node.value) in read:
                read |= {ast.unparse(target) for target in node.targets}
        return read


def _declared(part: ast.stmt) -> bool:
    """Whether a field is declared as an option: by `option`, `like`, or a function that ends in `_option`."""
    made = part.value.func if isinstance(part, ast.AnnAssign) and isinstance(part.value, ast.Call) else None
    name = made.id if isinstance(made, ast.Name) else ""
    return name in ("option", "like") or name.endswith("_option")


def _imported(module: rooms.Module) -> dict[str, str]:
    """What the names that a module imports stand for."""
    found = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.asname: alias.name for alias in node.names if alias.asname}
    return found


def _handed_on(function: ast.FunctionDef, read: set[str]) -> Iterator[tuple[int, ast.expr | None, str]]:
    """Line, what is called or made, and the name under which the value is handed on."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if _has(keyword.value, read) and not _calls(keyword.value):
                    yield keyword.value.lineno, node.func, str(keyword.arg)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if ast.unparse(value) in read:
                    yield value.lineno, None, ast.unparse(key) if key else ""


def _has(node: ast.expr, read: set[str]) -> bool:
    return any(isinstance(part, ast.expr) and ast.unparse(part) in read for part in ast.walk(node))


def _calls(node: ast.expr) -> bool:
    """Whether a call with keywords of its own is inside, which is then counted by itself."""
    return any(isinstance(part, ast.Call) and part.keywords for part in ast.walk(node))


def places(command: str) -> dict[str, list[str]]:
    """The places of each option of a command: fields that declare it, its alias, copies of its value."""
    sources = Sources()
    found: dict[str, list[str]] = {}
    for option in sources.options(command):
        spots = {f"field {option.place}", *sources.copies(option)}
        if option.annotation in sources.aliases:
            spots.add(sources.aliases[option.annotation])
        found[option.name] = sorted({*found.get(option.name, []), *spots})
    return found
