"""What all rows of a job's parts share: the texts of some of them, and names as numbers in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.corpora import TextStream
from pretrace.jobs.job import Job
from pretrace.jobs.manifest import Parts
from pretrace.jobs.merge import manifests
from pretrace.results.tables import texts_of
from pretrace.types import Bools


def texts_at(job: Job, parts: Parts, stream: TextStream, chosen: Bools) -> list[str]:
    """The texts of some rows, `chosen` [rows of all parts]: the parts have their ids, and the source, read once
    more, what it says under these."""
    ids: list[str] = []
    begin = 0
    for manifest in manifests(job, parts):
        rows = np.flatnonzero(chosen[begin : begin + manifest.rows])
        if len(rows):
            ids += texts_of(parts.table(manifest, ["id"]).take(rows), "id")
        begin += manifest.rows
    wanted = set(ids)
    texts = {text.id: text.text for text in stream.texts() if text.id in wanted}
    return [texts[name] for name in ids]


def in_order(blocks: Sequence[Any]) -> tuple[Any, npt.NDArray[np.int32]]:
    """The different names in blocks of them, a sorted pyarrow array of bytes, and the number of each in that order.

    `blocks` are dictionary-encoded pyarrow arrays of bytes. Bytes of UTF-8 sort as the strings do.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    unified = pa.chunked_array(blocks).unify_dictionaries()
    names = unified.chunk(0).dictionary
    order = pc.sort_indices(names).to_numpy()
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    codes = np.concatenate([place[chunk.indices.to_numpy()] for chunk in unified.chunks])
    return names.take(pa.array(order)), codes
