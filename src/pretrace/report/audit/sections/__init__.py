"""The sections of an audit's technical part, one module each, as those of a run's report.

A module of this package is a section when it defines `ORDER`, its place, and `section(audit)`, which gives the
section or None where the audit has nothing to say on it. There is nothing else to register.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Protocol, cast

from pretrace.report.sections import Section
from pretrace.types import Audit


class _Module(Protocol):
    ORDER: int

    def section(self, audit: Audit, /) -> Section | None: ...


def sections(audit: Audit) -> tuple[Section, ...]:
    """Every section that has something to say on the audit, in reading order."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    modules = [cast(_Module, importlib.import_module(f"{__name__}.{name}")) for name in names]
    made = [module.section(audit) for module in sorted(modules, key=lambda module: module.ORDER)]
    return tuple(section for section in made if section is not None)
