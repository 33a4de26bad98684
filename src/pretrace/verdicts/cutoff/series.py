"""The dated documents with what every model says of them and what the texts alone say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pretrace.baselines.text_features import surface_features, topic_components
from pretrace.errors import TextsError
from pretrace.scoring.plan import Models
from pretrace.statistics.documents import linked
from pretrace.types import Backend, Doubles, Skipped
from pretrace.verdicts.cutoff.dates import Dated
from pretrace.verdicts.cutoff.settings import CutoffSettings
from pretrace.verdicts.reading import Reader

BLIND = 2
"""How many columns of the surface features are taken: log length and zlib ratio."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Documents, one row each: `names`, `texts` (their pieces joined), `days`; the scores of the `target` and of each
    placebo, [documents]; `predictors` [documents, k] of the scores, and `features` [documents, f] of the texts alone
    that are watched at the cut-off. Pieces of a document with the same date were averaged."""

    names: tuple[str, ...]
    texts: tuple[str, ...]
    days: npt.NDArray[np.int64]
    target: Doubles
    placebos: tuple[Doubles, ...]
    predictors: Doubles
    features: Doubles
    skipped: tuple[Skipped, ...]

    def __len__(self) -> int:
        return len(self.names)


def read(
    found: Dated, reader: Reader, models: Models, references: Sequence[Backend], settings: CutoffSettings
) -> Series:
    """The series of the texts that every model could score; PretraceError as for `Reader.read`, TextsError where none
    is left."""
    asked = [("the target", models.target)]
    asked += [(f"the placebo {one.name}", one) for one in models.placebos]
    asked += [(f"the reference model {one.name}", one) for one in references]
    texts = [text.text for text in found.corpus.texts]
    missing: dict[int, str] = {}
    columns = []
    for name, model in asked:
        scored = reader.read(texts, under=model, stage=f"{name} reads the texts")
        columns.append(scored.values)
        for place in np.flatnonzero(np.isnan(scored.values)).tolist():
            missing.setdefault(place, f"{name}: {scored.reasons.get(place, 'it has no score')}")
    there = np.array([i for i in range(len(texts)) if i not in missing], dtype=np.int64)
    if not len(there):
        raise TextsError(f"none of {len(texts)} texts could be scored: {next(iter(missing.values()))}.")
    beside = 1 + len(models.placebos)
    gone = tuple(Skipped(found.corpus.texts[i].id, why, 0) for i, why in sorted(missing.items()))
    return _gathered(found, there, np.column_stack(columns), beside, settings, gone)


def _gathered(
    found: Dated,
    there: npt.NDArray[np.int64],
    scores: Doubles,
    beside: int,
    settings: CutoffSettings,
    gone: tuple[Skipped, ...],
) -> Series:
    """Texts gathered by document and date; the target's scores stand first, then placebos, then references."""
    texts = [found.corpus.texts[i] for i in there.tolist()]
    days = found.days[there]
    owner = linked(texts)
    keys = [(int(day), owner[text.document]) for day, text in zip(days, texts, strict=True)]
    order = {key: i for i, key in enumerate(sorted(set(keys)))}
    codes = np.array([order[key] for key in keys], dtype=np.int64)
    sizes = np.bincount(codes)
    means = np.column_stack([np.bincount(codes, weights=one) / sizes for one in scores[there].T])
    pieces: list[list[str]] = [[] for _ in order]
    for code, text in zip(codes.tolist(), texts, strict=True):
        pieces[code].append(text.text)
    joined = tuple("\n\n".join(some) for some in pieces)
    surface = surface_features(joined)[:, :BLIND]
    topics = topic_components(joined, settings.components, seed=settings.seed)
    return Series(
        names=tuple(name for _, name in order),
        texts=joined,
        days=np.array([day for day, _ in order], dtype=np.int64),
        target=means[:, 0],
        placebos=tuple(means[:, i] for i in range(1, beside)),
        predictors=np.column_stack([means[:, beside:], surface]),
        features=np.column_stack([surface, topics]) if len(topics) else surface,
        skipped=(*found.skipped, *gone),
    )
