"""Rows of results as tables of pyarrow and pandas, with the columns of the tables on disk."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from pretrace.errors import MissingPackageError
from pretrace.results.folder import Column, arrow_column
from pretrace.results.run import score_columns
from pretrace.types import Run, Table, Verdict


def to_arrow(result: object) -> Any:
    """The rows of a run or of a table, or those of the first table of a verdict, as a `pyarrow.Table`.

    A cell without a value is null. A column with a lone surrogate is of bytes (WTF-8), as on disk.
    """
    import pyarrow as pa

    return pa.table({name: arrow_column(values) for name, values in _columns(result).items()})


def to_pandas(result: object) -> Any:
    """The same as a `pandas.DataFrame`; labels as Int8 with NA. MissingPackageError without pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingPackageError("pandas", "to_pandas()") from None
    import pyarrow as pa

    return to_arrow(result).to_pandas(types_mapper={pa.int8(): pd.Int8Dtype()}.get)


@singledispatch
def _columns(result: object) -> dict[str, Column]:
    raise TypeError(f"a {type(result).__name__} has no rows")


@_columns.register
def _(run: Run) -> dict[str, Column]:
    return score_columns(run, controls=True)


@_columns.register
def _(verdict: Verdict) -> dict[str, Column]:
    if not verdict.tables:
        raise TypeError("this verdict has no table")
    return _columns(verdict.tables[0])


@_columns.register
def _(table: Table) -> dict[str, Column]:
    return {
        name: np.ma.masked_invalid(values) if isinstance(values, np.ndarray) else values
        for name, values in table.columns.items()
    }
