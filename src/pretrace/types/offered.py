"""Methods of results whose work is done in rooms above: as a table of another library, and as HTML in a notebook.

The rooms above register what does it when `pretrace` is imported, so that this room imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

_OFFERED: dict[str, Callable[[Any], Any]] = {}


def offer(what: Literal["arrow", "pandas", "html"], make: Callable[[Any], Any]) -> None:
    """Have `make` do the work of `to_arrow`, `to_pandas` or `_repr_html_` of all results."""
    _OFFERED[what] = make


class Tabular:
    """A result with a row a text or document."""

    __slots__ = ()

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`, with the columns of the table on disk; of a large run those of its sample."""
        return _OFFERED["arrow"](self)

    def to_pandas(self) -> Any:
        """The same as a `pandas.DataFrame`; MissingPackageError without pandas."""
        return _OFFERED["pandas"](self)


class Shown:
    """A result that a notebook shows as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """A small table of a run; the first page of the report of anything else."""
        return str(_OFFERED["html"](self))
