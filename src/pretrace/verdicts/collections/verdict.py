"""One collection ranked among others of its kind: gathered, read, ranked, checked, concluded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pretrace.auditing.watch import Timed, Unwatched, Watch
from pretrace.errors import ExpressionError, TextsError
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.scoring.provenance import record_corpus
from pretrace.types import Backend, Check, Corpus, Doubles, Power, Skipped, Verdict
from pretrace.verdicts.collections import words
from pretrace.verdicts.collections.blind import alike_check, blind_features
from pretrace.verdicts.collections.gathering import Gathered, gathered
from pretrace.verdicts.collections.material import Material, as_they_are, beside_generated
from pretrace.verdicts.collections.ranking import Ranked, enough_check, placebo_check, ranked
from pretrace.verdicts.collections.settings import CollectionSettings, Value
from pretrace.verdicts.collections.tables import tables
from pretrace.verdicts.collections.values import Scored
from pretrace.verdicts.outcome import Found, conclude
from pretrace.verdicts.planting import planted_shift, rank_power
from pretrace.verdicts.reading import Reader, chosen_score
from pretrace.verdicts.record import record
from pretrace.verdicts.references import check_references


@dataclass(frozen=True, slots=True)
class Company:
    """What stands beside the target: reference models of other families, a generator, the column with the date of each
    text (`Text.meta`), "" without, and what the one who asks says, for the report (`requested_by`, `placebo`)."""

    references: tuple[Backend, ...] = ()
    generator: Backend | None = None
    date_column: str = ""
    statements: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """All that is fixed before the target is asked, and what has been read of it."""

    gathered: Gathered
    material: Material
    reader: Reader
    company: Company
    settings: CollectionSettings
    value: Value
    _read: dict[str, Doubles] = field(default_factory=dict)

    def scores(self, model: Backend, stage: str) -> Doubles:
        """The score of each document under a model, [documents]; a model is asked once."""
        if model.fingerprint not in self._read:
            self._read[model.fingerprint] = self.material.by_document(
                lambda texts: self.reader.read(texts, under=model, stage=stage).values
            )
        return self._read[model.fingerprint]

    def scored(self, model: Backend, stage: str) -> Scored:
        """The documents under a model in the target's place, beside what predicts its scores."""
        predictors = None
        if self.company.references:
            others = [self.scores(one, f"reading with {one.name}") for one in self.company.references]
            predictors = np.column_stack([*others, self.material.blind()])
        codes, units = self.gathered.codes, len(self.gathered.names)
        return Scored(self.scores(model, stage), predictors, codes, units)


def collections(
    suspect: Corpus,
    controls: Sequence[Corpus],
    models: Models | Backend,
    settings: CollectionSettings | None = None,
    *,
    company: Company | None = None,
    watch: Watch | None = None,
) -> Verdict:
    """Whether the target knows `suspect` better than each of `controls`, collections of the same kind, by rank.

    p = (1 + controls whose mean value is at least the suspect collection's) / (1 + controls), exact if the collections
    are exchangeable where the model was trained on none of them or on any of them alike.
    Controls that it was trained on cost power and no validity. TextsError for fewer controls than the
    level takes, for a collection with fewer than 5 documents of its own, and for texts without a score;
    ExpressionError, ModelError for a value that lacks its models.
    """
    settings, company = settings or CollectionSettings(), company or Company()
    models = models if isinstance(models, Models) else Models(models)
    timed = Timed(watch or Unwatched())
    work, features = _prepared((suspect, *controls), models, settings, company, timed)
    scored = work.scored(models.target, "reading with the model in question")
    _check_scored(scored, work.gathered)
    found = ranked(scored, settings.level)
    checks = (
        alike_check(features, settings.level),
        enough_check(scored, work.gathered),
        *_placebos(work, models),
    )
    planted = _power(work, scored, models.target, timed) if settings.power else None
    notes = (*suspect.notes, *work.gathered.notes, *work.material.notes, *found.notes)
    return replace(
        _concluded(work, models.target.name, found, checks, planted),
        corpus=suspect.name,
        tables=tables(work.gathered, scored, found, features, company.references),
        notes=notes,
        statements=company.statements,
        skipped=(*work.gathered.skipped, *_unscored(scored, work.gathered)),
        settings=_record(work, suspect, controls, models, timed.seconds),
    )


def _prepared(
    corpora: Sequence[Corpus],
    models: Models,
    settings: CollectionSettings,
    company: Company,
    watch: Timed,
) -> tuple[_Work, dict[str, Doubles]]:
    """All that is fixed before the target is asked, and the text features of the collections."""
    value = settings.chosen(len(company.references), generator=company.generator is not None)
    score = _score(settings, models, company)
    check_references(models, company.references)
    together = gathered(corpora, settings, date_column=company.date_column)
    features = blind_features(together)  # a date that cannot be read is found before anything is generated
    if value == "generated" and company.generator is not None:
        material = beside_generated(together, company.generator, settings, watch)
    else:
        material = as_they_are(together)
    reader = Reader(models, score, watch, settings.cache)
    return _Work(together, material, reader, company, settings, value), features


def _record(
    work: _Work, suspect: Corpus, controls: Sequence[Corpus], models: Models, seconds: Mapping[str, float]
) -> dict[str, Any]:
    """Everything needed to repeat the test."""
    company = work.company
    hashes = [str(record_corpus(one)["sha256"]) for one in controls]
    more = {
        "control collections": dict(zip(work.gathered.names[1:], hashes, strict=True)),
        "references": {one.name: dict(one.facts) for one in company.references},
        "generator": dict(company.generator.facts) if company.generator is not None else None,
    }
    score = str(work.reader.score)
    return record({"corpus": suspect}, models, work.settings, score=score, seconds=seconds, more=more)


def _score(settings: CollectionSettings, models: Models, company: Company) -> str:
    """The score that texts are read with, checked against all models that will be asked."""
    if "reference" in ScorePlan.parse(settings.score or "loss").uses:
        raise ExpressionError(
            f"--score {settings.score} compares with one model, and here --value residual takes off what reference "
            "models predict: leave --score out, or name one of the target alone."
        )
    alone = replace(models, reference=None)
    score = chosen_score(settings.score, alone)
    for one in (*models.placebos, *company.references):
        ScorePlan.parse(score).check(replace(alone, target=one))
    return score


def _check_scored(scored: Scored, together: Gathered) -> None:
    empty = [name for name, count in zip(together.names, scored.counted(), strict=True) if not count]
    if empty:
        raise TextsError(
            f"no text of {', '.join(map(repr, empty[:3]))} could be scored: give longer texts, or leave it out."
        )


def _unscored(scored: Scored, together: Gathered) -> tuple[Skipped, ...]:
    lost = np.flatnonzero(~scored.usable).tolist()
    documents = [together.documents[place] for place in lost]
    return tuple(
        Skipped(f"{together.names[one.collection]}: {one.name}", "no text of it has a score", 0)
        for one in documents
    )


def _placebos(work: _Work, models: Models) -> tuple[Check, ...]:
    """The same rank with each placebo in the target's place."""
    if not models.placebos:
        return (words.no_placebo(),)
    made = []
    for number, one in enumerate(models.placebos, 1):
        found = ranked(work.scored(one, f"reading with the placebo {one.name}"), work.settings.level)
        made.append(placebo_check(one.name, number, found, work.settings.level))
    return tuple(made)


def _power(work: _Work, before: Scored, target: Backend, watch: Timed) -> Power:
    """The power, were half of the suspect documents trained on: how far they rise beyond the controls' mean rise."""
    first = before.values()
    mine = work.gathered.codes == 0
    texts = [one.whole for one in work.gathered.documents if one.collection == 0]

    def again(copy: Backend) -> Doubles:
        after = work.scored(copy, "reading with the planted copy").values()
        drift = float(np.nanmean((after - first)[~mine]))
        return np.asarray(after[mine] - drift)

    shift = planted_shift(target, texts, first[mine], again, work.settings, watch)
    return rank_power(before.means(first)[1:], shift, work.settings)


def _concluded(
    work: _Work, model: str, found: Ranked, checks: Sequence[Check], planted: Power | None
) -> Verdict:
    together, settings = work.gathered, work.settings
    name, references = together.names[0], bool(work.company.references)
    unit = words.unit(settings.score or "loss", work.value, references)
    accusing = tuple(check.name for check in checks if check.name.startswith("placebo"))
    of = f"the texts of {name}"
    one = Found(model, of, settings.level, found.p, found.effect, unit, planted, accusing)
    said = conclude(one, checks)
    story = words.Story(model, name, len(found.others), together.number, work.value, references)
    return Verdict(
        test="collections",
        corpus=name,
        model=model,
        outcome=said.outcome,
        statement=said.statement,
        level=settings.level,
        exact=False,  # once the collections are exchangeable, which no lot has made sure of
        assumption=words.ASSUMPTION,
        hypothesis=words.HYPOTHESIS,
        statistic=story.statistic,
        p=found.p,
        units=len(found.means),
        unit="collection",
        question=f"Was the collection {name} used to train {model}?",
        compared=story.compared(found),
        trust=story.trust(found),
        null=found.null,
        effect=found.effect,
        effect_unit=unit,
        standardised=found.standardised,
        planted=planted,
        checks=tuple(checks),
        reasons=said.reasons,
        advice=said.advice,
        figures=_figures(work, found),
        situation=words.situation(together),
    )


def _figures(work: _Work, found: Ranked) -> dict[str, Any]:
    """The test's own numbers; only the rank decides."""
    left = found.left_two_out
    return {
        "value": work.value,
        "controls": len(found.others),
        "documents of each collection": work.gathered.number,
        "controls at least as high": found.above,
        "mean value": found.own,
        "mean of the controls": float(found.others.mean()),
        "highest control": float(found.others.max()),
        "leave-two-out p": None if left is None else left.p,
        "leave-two-out share of lost pairs": None if left is None else left.share,
        "calibrated p": found.calibrated,
    }
