"""Methods of results whose work is done in rooms above: as a table of another library, and as HTML in a notebook.

What does it is named here by its place and imported when it is asked for, so that this room imports none of those.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

_PLACES = {
    "arrow": ("pretrace.results.export", "to_arrow"),
    "pandas": ("pretrace.results.export", "to_pandas"),
    "html": ("pretrace.report.notebook", "html"),
}
"""Module and function; `_repr_html_` draws, so it is imported when a notebook asks."""


def _offered(what: Literal["arrow", "pandas", "html"], result: Any) -> Any:
    module, name = _PLACES[what]
    return getattr(import_module(module), name)(result)


class Tabular:
    """A result with a row a text or document."""

    __slots__ = ()

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`, with the columns of the table on disk; of a large run those of its sample."""
        return _offered("arrow", self)

    def to_pandas(self) -> Any:
        """The same as a `pandas.DataFrame`; MissingPackageError without pandas."""
        return _offered("pandas", self)


class Shown:
    """A result that a notebook shows as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """A small table of a run; the first page of the report of anything else."""
        return str(_offered("html", self))
