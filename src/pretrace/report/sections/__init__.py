"""The sections of a report, one module each.

A module of this package is a section when it defines `ORDER`, its place, and `section(run)`, which gives the
section or None where the run has nothing to say on it. There is nothing else to register.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Protocol, cast

from markupsafe import Markup

from pretrace.types import Run


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, the name links use (letters and hyphens), and the markup beneath it."""

    title: str
    anchor: str
    body: Markup


class _Module(Protocol):
    ORDER: int

    def section(self, run: Run, /) -> Section | None: ...


def sections(run: Run) -> tuple[Section, ...]:
    """Every section that has something to say on the run, in reading order."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    modules = [cast(_Module, importlib.import_module(f"{__name__}.{name}")) for name in names]
    made = [module.section(run) for module in sorted(modules, key=lambda module: module.ORDER)]
    return tuple(section for section in made if section is not None)
