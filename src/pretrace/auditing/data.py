"""The texts of an audit, its models, and what they said: each model is asked once, and only when it is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from pretrace.auditing import documents
from pretrace.auditing.documents import DocumentValues
from pretrace.auditing.features import expressions
from pretrace.auditing.procedures.calibrated import CalibratedSettings, calibrated, calibrated_values
from pretrace.auditing.procedures.calibration import outlier_share
from pretrace.auditing.procedures.original import original
from pretrace.auditing.procedures.paper import PaperSettings, paper
from pretrace.auditing.procedures.release import ReleaseSettings, release
from pretrace.auditing.reading import Readings, bounded_lead, bytewise, read_sides, token_scale
from pretrace.auditing.scoring import features
from pretrace.auditing.settings import (
    ALONE,
    CALIBRATED,
    ORIGINAL,
    PAPER,
    PRETRACE,
    RELEASE,
    AuditSettings,
)
from pretrace.auditing.sides import Sides
from pretrace.auditing.watch import Unwatched, Watch
from pretrace.baselines.classifiers import classifiers
from pretrace.scoring.plan import Models
from pretrace.statistics.documents import by_document
from pretrace.types import Answer, Backend, Design, Doubles, Features

UNIT = "of a typical token's lead"
ALONE_UNIT = "in units of the score " + ALONE


@dataclass(eq=False)
class Case:
    """The material of an audit.

    `sides` are suspect pieces, with control pieces or with generated ones in their place; `controls` are control
    pieces with generated ones in their place. `placebos` are the models that never saw the texts, in the
    order of `models.placebo` and those named beside it; `margin` is what an innocent model may show without
    control documents.
    """

    sides: Sides
    models: Models
    settings: AuditSettings
    watch: Watch = field(default_factory=Unwatched)
    controls: Sides | None = None
    placebos: tuple[Backend, ...] = ()
    margin: float = 0.0
    _said: dict[int, tuple[Readings, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.models.placebo is not None and not self.placebos:
            self.placebos = (self.models.placebo.target,)

    @property
    def design(self) -> Design:
        """What the suspect texts are compared with."""
        if not self.sides.paired:
            return "controls"
        return "placebos" if self.controls is None else "differences"

    @property
    def target(self) -> Backend:
        """The model in question."""
        return self.models.target

    def said(self, model: Backend) -> tuple[Readings, ...]:
        """What a model said of the sides, and of the control documents' pairs where there are any."""
        if id(model) not in self._said:
            stage = "reading with the target" if model is self.target else f"reading with {model.name}"
            asked = [one for one in (self.sides, self.controls) if one is not None]
            with self.watch.passes(stage) as progress:
                cache = self.settings.cache
                self._said[id(model)] = tuple(
                    read_sides(model, one, cache=cache, progress=progress) for one in asked
                )
        return self._said[id(model)]

    def against(self, placebo: Backend | None) -> DocumentValues:
        """One value a document: the target compared with this placebo, or looked at alone."""
        if placebo is None:
            return self._alone
        by_byte = bytewise(self.target, placebo)
        pairs = list(zip(self.said(self.target), self.said(placebo), strict=True))
        every = [(mine.suspect, other.suspect) for mine, other in pairs]
        every += [(mine.heldout, other.heldout) for mine, other in pairs]
        scale = token_scale(every, by_byte=by_byte)
        suspect, heldout = (
            [
                bounded_lead(getattr(mine, side), getattr(other, side), scale, by_byte=by_byte)
                for mine, other in pairs
            ]
            for side in ("suspect", "heldout")
        )
        return self._values(suspect, heldout, UNIT)

    def _values(self, suspect: Sequence[Doubles], heldout: Sequence[Doubles], unit: str) -> DocumentValues:
        """The values by document from one number a piece of the sides (and of the control pairs)."""
        mine = [piece.document for piece in self.sides.suspect]
        if self.design == "controls":
            theirs = [piece.document for piece in self.sides.heldout]
            return DocumentValues(*by_document(suspect[0], mine), *by_document(heldout[0], theirs), unit=unit)
        values = suspect[0] - heldout[0]
        if self.controls is None:
            return DocumentValues(*by_document(values - self.margin, mine), margin=self.margin, unit=unit)
        theirs = [piece.document for piece in self.controls.suspect]
        both = (*by_document(values, mine), *by_document(suspect[1] - heldout[1], theirs))
        return DocumentValues(*both, unit=unit)

    def by_itself(self, placebo: Backend) -> DocumentValues:
        """What the placebo makes of suspect and of control documents: mean log-probability a token, in nats."""
        said = self.said(placebo)[0]
        return self._values([said.suspect.per_token], [said.heldout.per_token], "nats a token")

    @cached_property
    def _alone(self) -> DocumentValues:
        """The target's own score `ALONE`, for documents that are compared with documents."""
        found = self._scores(self.sides, (ALONE,))
        mine, theirs = (
            by_document(column[:, 0], names)
            for column, names in (
                (found.suspect, found.suspect_documents),
                (found.heldout, found.heldout_documents),
            )
        )
        return DocumentValues(*mine, *theirs, unit=ALONE_UNIT)

    @cached_property
    def features(self) -> Features:
        """The features of dataset inference, of both sides under the target."""
        return self._scores(self.sides, expressions(self.models.reference is not None))

    @cached_property
    def release_features(self) -> Features:
        """The features as the authors' published code computes them."""
        return self._scores(self.sides, expressions(self.models.reference is not None, release=True))

    def features_of(self, procedure: str) -> Features:
        """The features that a procedure learns from."""
        return self.release_features if procedure == RELEASE else self.features

    def _scores(self, sides: Sides, names: tuple[str, ...]) -> Features:
        with self.watch.passes("scoring with the target") as progress:
            models = replace(self.models, placebo=None)
            return features(sides, models, names, cache=self.settings.cache, progress=progress)

    def answer_from(self, procedure: str, found: Features) -> Answer:
        """What one of the literature's procedures, or our calibrated one, answers on these features."""
        classifier = classifiers.make(self.settings.classifiers[0])
        seed, outliers = self.settings.seed, outlier_share(self.parameters)
        if procedure == PAPER:
            return paper(found, classifier=classifier, seed=seed, settings=PaperSettings(outliers=outliers))
        if procedure == RELEASE:
            return release(
                found, classifier=classifier, seed=seed, settings=ReleaseSettings(outliers=outliers)
            )
        if procedure == ORIGINAL:
            return original(found, seed=seed)
        return calibrated(
            found, classifier=classifier, seed=seed, settings=CalibratedSettings(outliers=outliers)
        )

    def answer(self, procedure: str) -> Answer:
        """What a procedure answers; of the default the test that decides."""
        if procedure == PRETRACE:
            return max(self.answers, key=lambda one: one.p)
        return self.answer_from(procedure, self.features_of(procedure))

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """The default procedure's test, one a placebo that takes part; without any, of the target alone."""
        some = self.placebos or (None,)
        return tuple(self._answer(one) for one in some)

    def _answer(self, placebo: Backend | None) -> Answer:
        found = self.against(placebo)
        facts: dict[str, object] = {"placebo": placebo.name if placebo else None}
        return documents.answer(found, pieces=len(self.sides.suspect), seed=self.settings.seed, facts=facts)

    @property
    def deciding(self) -> Backend | None:
        """The placebo whose test has the largest p, which decides."""
        if not self.placebos:
            return None
        return self.placebos[int(np.argmax([one.p for one in self.answers]))]

    @property
    def decided_by(self) -> tuple[Backend, ...]:
        """The same as a tuple, empty without one."""
        return () if self.deciding is None else (self.deciding,)

    @property
    def parameters(self) -> int:
        """The size of the target, by which the paper chooses how many outliers to replace."""
        return max(1, int(self.target.facts.get("parameters") or 1))

    def values(self, procedure: str) -> DocumentValues:
        """One value a document, on which the procedure's test was made; of the paper's, which tests pieces,
        those of the default procedure."""
        return self._calibrated if procedure == CALIBRATED else self.against(self.deciding)

    @cached_property
    def _calibrated(self) -> DocumentValues:
        classifier = classifiers.make(self.settings.classifiers[0])
        how = CalibratedSettings(outliers=outlier_share(self.parameters))
        found = calibrated_values(self.features, classifier=classifier, seed=self.settings.seed, settings=how)
        return DocumentValues(found.documents, found.values, found.heldout_documents, found.heldout_values)

    def with_target(self, target: Backend) -> Case:
        """The same case with another model accused, compared with the same placebo."""
        models = replace(self.models, target=target, placebo=None)
        said = {id(model): self._said[id(model)] for model in self.decided_by if id(model) in self._said}
        return replace(self, models=models, placebos=self.decided_by, _said=said)


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
