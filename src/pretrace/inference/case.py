"""One case: the two sides, the models, and what they said, each asked once and only when it is wanted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from pretrace.fitting import Models
from pretrace.inference import documents
from pretrace.inference.calibration import outlier_share
from pretrace.inference.classifiers import classifiers
from pretrace.inference.documents import DocumentValues
from pretrace.inference.features import expressions
from pretrace.inference.procedures.calibrated import CalibratedSettings, calibrated, calibrated_values
from pretrace.inference.procedures.original import original
from pretrace.inference.procedures.paper import PaperSettings, paper
from pretrace.inference.reading import Leads, Readings, bounded_leads, bytewise, read_sides
from pretrace.inference.scoring import features
from pretrace.inference.settings import CALIBRATED, ORIGINAL, PAPER, PRETRACE, AuditSettings, Unwatched, Watch
from pretrace.inference.sides import Sides
from pretrace.types import Answer, Backend, Features


@dataclass(eq=False)
class Case:
    """The material of an audit. `models.placebo` is what the target is held against, where there is one."""

    sides: Sides
    models: Models
    settings: AuditSettings
    watch: Watch = field(default_factory=Unwatched)

    @property
    def target(self) -> Backend:
        """The model in question."""
        return self.models.target

    @property
    def placebo(self) -> Backend | None:
        """The model that never saw the texts."""
        return self.models.placebo.target if self.models.placebo else None

    @cached_property
    def of_target(self) -> Readings:
        """What the target says of both sides."""
        return self._read(self.target, "asking the target")

    @cached_property
    def of_placebo(self) -> Readings | None:
        """What the placebo says of both sides, None without one."""
        return self._read(self.placebo, "asking the placebo") if self.placebo else None

    @cached_property
    def leads(self) -> Leads:
        """The bounded lead of target over placebo; without a placebo the plain mean log-probability a token."""
        mine, theirs = self.of_target, self.of_placebo
        if theirs is None:
            return Leads(mine.suspect.per_token, mine.heldout.per_token, 1.0)
        return bounded_leads(mine, theirs, by_byte=bytewise(self.target, self.placebo))

    @cached_property
    def features(self) -> Features:
        """The literature's features of both sides under the target."""
        with self.watch.passes("asking the target for features") as progress:
            names = expressions(self.models.reference is not None)
            models = replace(self.models, placebo=None)
            return features(self.sides, models, names, cache=self.settings.cache, progress=progress)

    @property
    def chosen(self) -> str:
        """The procedure that decides: without a placebo the default falls back on calibrated classifiers."""
        alone = self.settings.procedure == PRETRACE and self.placebo is None
        return CALIBRATED if alone else self.settings.procedure

    def answer(self, procedure: str) -> Answer:
        """What a procedure answers."""
        if procedure == PRETRACE:
            return documents.answer(self.sides, self.leads, seed=self.settings.seed)
        return self.answer_from(procedure, self.features)

    def answer_from(self, procedure: str, found: Features) -> Answer:
        """What one of the literature's procedures, or our calibrated one, answers on these features."""
        classifier = classifiers.make(self.settings.classifiers[0])
        seed, outliers = self.settings.seed, outlier_share(self.parameters)
        if procedure == PAPER:
            return paper(found, classifier=classifier, seed=seed, settings=PaperSettings(outliers=outliers))
        if procedure == ORIGINAL:
            return original(found, seed=seed)
        return calibrated(
            found, classifier=classifier, seed=seed, settings=CalibratedSettings(outliers=outliers)
        )

    @property
    def parameters(self) -> int:
        """The size of the target, by which the paper chooses how many outliers to replace."""
        return max(1, int(self.target.facts.get("parameters") or 1))

    def values(self, procedure: str) -> DocumentValues:
        """One value a document, on which the procedure's test was made; of the paper's, which tests pieces,
        those of the default procedure."""
        return self._calibrated if procedure == CALIBRATED else documents.of_leads(self.sides, self.leads)

    @cached_property
    def _calibrated(self) -> DocumentValues:
        classifier = classifiers.make(self.settings.classifiers[0])
        how = CalibratedSettings(outliers=outlier_share(self.parameters))
        found = calibrated_values(self.features, classifier=classifier, seed=self.settings.seed, settings=how)
        return DocumentValues(found.documents, found.values, found.heldout_documents, found.heldout_values)

    def with_target(self, target: Backend) -> Case:
        """The same case with another model accused."""
        return Case(self.sides, replace(self.models, target=target), self.settings, self.watch)

    def _read(self, model: Backend, stage: str) -> Readings:
        with self.watch.passes(stage) as progress:
            return read_sides(model, self.sides, cache=self.settings.cache, progress=progress)


def shuffled(found: Features, rng: np.random.Generator) -> Features:
    """The features with the two sides dealt out at random, document by document."""
    if not found.paired:
        return _dealt(found, rng)
    names = sorted(set(found.suspect_documents))
    swap = dict(zip(names, rng.random(len(names)) < 0.5, strict=True))
    rows = np.array([swap[name] for name in found.suspect_documents])
    left, right = found.suspect_texts, found.heldout_texts
    return replace(
        found,
        suspect=np.where(rows[:, None], found.heldout, found.suspect),
        heldout=np.where(rows[:, None], found.suspect, found.heldout),
        suspect_texts=tuple(b if out else a for a, b, out in zip(left, right, rows, strict=True)),
        heldout_texts=tuple(a if out else b for a, b, out in zip(left, right, rows, strict=True)),
    )


def _dealt(found: Features, rng: np.random.Generator) -> Features:
    """Unpaired sides: documents are dealt out anew, as many to either side as before."""
    names = sorted(set(found.suspect_documents) | set(found.heldout_documents))
    count = len(set(found.suspect_documents))
    mine = {names[i] for i in rng.permutation(len(names))[:count]}
    matrix = np.concatenate([found.suspect, found.heldout])
    texts = (*found.suspect_texts, *found.heldout_texts)
    owners = (*found.suspect_documents, *found.heldout_documents)
    first = np.array([owner in mine for owner in owners])
    return replace(
        found,
        suspect=matrix[first],
        heldout=matrix[~first],
        suspect_texts=tuple(text for text, side in zip(texts, first, strict=True) if side),
        heldout_texts=tuple(text for text, side in zip(texts, first, strict=True) if not side),
        suspect_documents=tuple(owner for owner, side in zip(owners, first, strict=True) if side),
        heldout_documents=tuple(owner for owner, side in zip(owners, first, strict=True) if not side),
    )
