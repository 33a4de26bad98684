"""What can go wrong, as one tree.

PretraceError
├── TextsError         the texts, their file, columns, labels or ids
├── ExpressionError    a score or corpus that was named wrongly, or a value out of its range
├── ModelError         a model that cannot be opened, or cannot give what a score needs
├── TableError         a token count table that is damaged or belongs to another tokenizer
├── LeakError          a text that a score was fitted on is about to be scored
├── DesignError        an audit that could not answer: no comparison is possible with what there is (exit code 4)
├── EngineError        no Ray cluster where one was named, no room on it, or workers that die
├── OutputError        no place to write, or something there already
└── MissingPackageError  an optional package that is not installed

A message says what was wanted, what was found and what to do, in one or two sentences. The command
line prints it on one line and leaves with exit code 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pretrace.types import AuditPlan


class PretraceError(Exception):
    """Something a user can mend: the message names the cure."""


class TextsError(PretraceError):
    """The texts cannot be read as asked: file, columns, labels, ids."""


class ExpressionError(PretraceError):
    """A score or corpus expression is wrong: unknown name, unknown parameter, value out of range."""


class ModelError(PretraceError):
    """A model cannot be opened safely, or cannot give what a score needs."""


class TableError(PretraceError):
    """A token count table is damaged, or was counted with another tokenizer."""


class LeakError(PretraceError):
    """A text that was used for fitting is about to be scored."""


class DesignError(PretraceError):
    """No audit of these texts and models could come to a verdict; the `plan` says why, and what would change it."""

    def __init__(self, plan: AuditPlan) -> None:
        self.plan = plan
        super().__init__(" ".join((f"this audit could not have answered. {plan.why}", *plan.cures)))


class EngineError(PretraceError):
    """Workers elsewhere cannot be had, or die again and again."""


class OutputError(PretraceError):
    """The results cannot be written where they were asked for."""


class MissingPackageError(PretraceError):
    """An optional package is needed; the message gives its pip line."""

    def __init__(self, package: str, purpose: str, extra: str = "", *, alone: bool = False) -> None:
        """Without an `extra` the package is named itself. `alone`: it is installed by itself, without what it asks for,
        which pretrace does not use."""
        line = f"--no-deps {package}" if alone else f"'pretrace[{extra}]'" if extra else package
        super().__init__(f"{purpose} needs the package {package}, which is not installed: pip install {line}")
