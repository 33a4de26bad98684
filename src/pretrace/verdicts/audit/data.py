"""The data of an audit: its samples, its models, and what the models gave for the samples, each read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from pretrace.scoring.plan import Models
from pretrace.statistics.documents import by_document
from pretrace.types import Answer, Backend, Design, Doubles, Features, TextClassifier
from pretrace.verdicts.audit import sample_scores
from pretrace.verdicts.audit.generation import SCORING, reading
from pretrace.verdicts.audit.procedures.calibrated import (
    CalibratedSettings,
    calibrated,
    calibrated_values,
    outlier_share,
)
from pretrace.verdicts.audit.procedures.original import original
from pretrace.verdicts.audit.procedures.post_hoc import PaperSettings, ReleaseSettings, paper, release
from pretrace.verdicts.audit.sample_scores import (
    DocumentValues,
    SampleLogprobs,
    bytewise,
    expressions,
    features,
    gain_scale,
    logprob_gains,
    sample_logprobs,
)
from pretrace.verdicts.audit.settings import (
    ALONE,
    CALIBRATED,
    ORIGINAL,
    PAPER,
    PRETRACE,
    RELEASE,
    AuditSettings,
)
from pretrace.verdicts.audit.snippets import Samples
from pretrace.verdicts.audit.watch import Unwatched, Watch

UNIT = "of a typical token's lead"
ALONE_UNIT = "in units of the score " + ALONE


@dataclass(eq=False)
class AuditData:
    """What an audit tests, computed when it is first wanted.

    `samples` are suspect samples, with control samples or with generated ones in their place; `controls` are control
    samples with generated ones in their place. `placebos` are the models that never saw the texts, in the
    order of `models.placebo` and those named beside it; `margin` is what such a model may show without
    control documents. `negative_controls` are models that can take the target's place, where it should find nothing.
    `seed` follows from the texts.
    """

    samples: Samples
    models: Models
    settings: AuditSettings
    watch: Watch = field(default_factory=Unwatched)
    controls: Samples | None = None
    placebos: tuple[Backend, ...] = ()
    margin: float = 0.0
    negative_controls: tuple[Backend, ...] = ()
    seed: int = 0
    _logprobs: dict[int, tuple[SampleLogprobs, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.models.placebo is not None and not self.placebos:
            self.placebos = (self.models.placebo.target,)

    @property
    def design(self) -> Design:
        """What the suspect texts are compared with."""
        if not self.samples.paired:
            return "controls"
        return "placebos" if self.controls is None else "differences"

    @property
    def target(self) -> Backend:
        """The model that is audited."""
        return self.models.target

    def logprobs(self, model: Backend) -> tuple[SampleLogprobs, ...]:
        """What a model gives for the samples, and for the control documents' pairs where there are any."""
        if id(model) not in self._logprobs:
            asked = [one for one in (self.samples, self.controls) if one is not None]
            with self.watch.passes(reading(self.target, model)) as progress:
                cache, reads = self.settings.cache, self.models.read_by(model)
                self._logprobs[id(model)] = tuple(
                    sample_logprobs(reads, one, cache=cache, progress=progress) for one in asked
                )
        return self._logprobs[id(model)]

    def compared_with(self, placebo: Backend | None) -> DocumentValues:
        """One value a document: the target compared with this placebo, or the target alone."""
        if placebo is None:
            return self._alone
        by_byte = bytewise(self.target, placebo)
        pairs = list(zip(self.logprobs(self.target), self.logprobs(placebo), strict=True))
        both = [
            [(getattr(mine, side), getattr(other, side)) for mine, other in pairs]
            for side in ("suspect", "heldout")
        ]
        scale = gain_scale([*both[0], *both[1]], by_byte=by_byte)
        suspect, heldout = ([logprob_gains(*one, scale, by_byte=by_byte) for one in side] for side in both)
        return self._values(suspect, heldout, UNIT)

    def _values(self, suspect: Sequence[Doubles], heldout: Sequence[Doubles], unit: str) -> DocumentValues:
        """The values by document, from one number for each of the samples (and of the control pairs)."""
        mine = [sample.document for sample in self.samples.suspect]
        if self.design == "controls":
            theirs = [sample.document for sample in self.samples.heldout]
            return DocumentValues(*by_document(suspect[0], mine), *by_document(heldout[0], theirs), unit=unit)
        values = suspect[0] - heldout[0]
        if self.controls is None:
            return DocumentValues(*by_document(values - self.margin, mine), margin=self.margin, unit=unit)
        theirs = [sample.document for sample in self.controls.suspect]
        both = (*by_document(values, mine), *by_document(suspect[1] - heldout[1], theirs))
        return DocumentValues(*both, unit=unit)

    def placebo_alone(self, placebo: Backend) -> DocumentValues:
        """The placebo's mean log-probability a token in suspect and in control documents, in nats."""
        found = self.logprobs(placebo)[0]
        return self._values([found.suspect.per_token], [found.heldout.per_token], "nats a token")

    @cached_property
    def _alone(self) -> DocumentValues:
        """The target's own score `ALONE`, for documents that are compared with documents."""
        found = self._features((ALONE,))
        mine = by_document(found.suspect[:, 0], found.suspect_documents)
        return DocumentValues(
            *mine, *by_document(found.heldout[:, 0], found.heldout_documents), unit=ALONE_UNIT
        )

    @cached_property
    def features(self) -> Features:
        """The features of dataset inference, of both sides under the target."""
        return self._features(expressions(self.models.reference is not None))

    @cached_property
    def release_features(self) -> Features:
        """The features as the authors' published code computes them."""
        return self._features(expressions(self.models.reference is not None, release=True))

    def features_of(self, procedure: str) -> Features:
        """The features that a procedure learns from."""
        return self.release_features if procedure == RELEASE else self.features

    def _features(self, names: tuple[str, ...]) -> Features:
        with self.watch.passes(SCORING) as progress:
            models = replace(self.models, placebo=None)
            return features(self.samples, models, names, cache=self.settings.cache, progress=progress)

    def answer_from(self, procedure: str, found: Features) -> Answer:
        """What one of the literature's procedures, or our calibrated one, answers on these features."""
        seed, outliers = self.seed, outlier_share(self.parameters)
        if procedure == ORIGINAL:
            return original(found, seed=seed)
        if procedure == PAPER:
            how = PaperSettings(outliers=outliers)
            return paper(found, classifier=self._classifier, seed=seed, settings=how)
        if procedure == RELEASE:
            published = ReleaseSettings(outliers=outliers)
            return release(found, classifier=self._classifier, seed=seed, settings=published)
        ours = CalibratedSettings(outliers=outliers)
        return calibrated(found, classifier=self._classifier, seed=seed, settings=ours)

    def answer(self, procedure: str) -> Answer:
        """What a procedure answers; of the default the test that decides."""
        if procedure == PRETRACE:
            return max(self.answers, key=lambda one: one.p)
        return self.answer_from(procedure, self.features_of(procedure))

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """The default procedure's test, one a placebo that takes part; without any, of the target alone."""
        return tuple(
            sample_scores.answer(
                self.compared_with(placebo),
                pieces=len(self.samples.suspect),
                seed=self.seed,
                facts={"placebo": placebo.name if placebo else None},
            )
            for placebo in self.placebos or (None,)
        )

    @property
    def deciding(self) -> tuple[Backend, ...]:
        """The placebo whose test has the largest p, which decides; empty without placebos."""
        if not self.placebos:
            return ()
        return (self.placebos[int(np.argmax([one.p for one in self.answers]))],)

    @property
    def parameters(self) -> int:
        """The size of the target, by which the paper chooses how many outliers to replace."""
        return max(1, int(self.target.facts.get("parameters") or 1))

    @property
    def _classifier(self) -> TextClassifier:
        return self.settings.learners[self.settings.classifiers[0]]

    def values(self, procedure: str) -> DocumentValues:
        """One value a document, on which the procedure's test was made; of the paper's, which tests pieces,
        those of the default procedure."""
        return self._calibrated if procedure == CALIBRATED else self.compared_with(*self.deciding or (None,))

    @cached_property
    def _calibrated(self) -> DocumentValues:
        how = CalibratedSettings(outliers=outlier_share(self.parameters))
        return calibrated_values(self.features, classifier=self._classifier, seed=self.seed, settings=how)

    def with_target(self, target: Backend) -> AuditData:
        """The same samples for another target, compared with the same placebo."""
        models = replace(self.models, target=target, placebo=None)
        known = {id(one): self._logprobs[id(one)] for one in self.deciding if id(one) in self._logprobs}
        return replace(self, models=models, placebos=self.deciding, _logprobs=known)


def shuffled(found: Features, rng: np.random.Generator) -> Features:
    """The features with the documents assigned to the two sides at random."""
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
    """Unpaired sides: as many documents on either side as before."""
    names = sorted(set(found.suspect_documents) | set(found.heldout_documents))
    count = len(set(found.suspect_documents))
    mine = {names[i] for i in rng.permutation(len(names))[:count]}
    matrix = np.concatenate([found.suspect, found.heldout])
    texts = np.array((*found.suspect_texts, *found.heldout_texts), dtype=object)
    owners = np.array((*found.suspect_documents, *found.heldout_documents), dtype=object)
    first = np.array([owner in mine for owner in owners])
    return replace(
        found,
        suspect=matrix[first],
        heldout=matrix[~first],
        suspect_texts=tuple(texts[first]),
        heldout_texts=tuple(texts[~first]),
        suspect_documents=tuple(owners[first]),
        heldout_documents=tuple(owners[~first]),
    )
