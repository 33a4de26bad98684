"""Rows of results as tables of pyarrow and pandas, with the columns of the tables on disk."""

from __future__ import annotations

from typing import Any

import numpy as np

from pretrace.errors import MissingPackageError
from pretrace.results.folder import Column, arrow_table
from pretrace.results.run import score_columns
from pretrace.types import Run, Table, Verdict


def to_arrow(result: object) -> Any:
    """The rows of a run or of a table, or those of the first table of a verdict, as a `pyarrow.Table`.

    A cell without a value is null. A column with a lone surrogate is of bytes (WTF-8), as on disk.
    """
    return arrow_table(_columns(result))


def to_pandas(result: object) -> Any:
    """The same as a `pandas.DataFrame`; labels as Int8 with NA. MissingPackageError without pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingPackageError("pandas", "to_pandas()") from None
    import pyarrow as pa

    return to_arrow(result).to_pandas(types_mapper={pa.int8(): pd.Int8Dtype()}.get)


def _columns(result: object) -> dict[str, Column]:
    if isinstance(result, Run):
        return score_columns(result, controls=True)
    if isinstance(result, Verdict) and not result.tables:
        raise TypeError("this verdict has no table")
    table = result.tables[0] if isinstance(result, Verdict) else result
    if not isinstance(table, Table):
        raise TypeError(f"a {type(result).__name__} has no rows")
    return {
        name: np.ma.masked_invalid(values) if isinstance(values, np.ndarray) else values
        for name, values in table.columns.items()
    }
