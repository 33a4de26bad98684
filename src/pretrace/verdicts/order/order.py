"""Was a set whose rows, or whose answer options, stand in random order among a model's training texts?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pretrace.auditing.watch import Timed, Unwatched, Watch
from pretrace.scoring.plan import Models
from pretrace.statistics.intervals import mean_interval, standardised
from pretrace.statistics.lots import lot_effects, lot_test
from pretrace.statistics.permutation import PermutationTest
from pretrace.types import (
    Backend,
    Check,
    Corpus,
    Doubles,
    Estimate,
    Power,
    Situation,
    Skipped,
    Table,
    Verdict,
)
from pretrace.verdicts.order import words as said
from pretrace.verdicts.order.checks import check_enough, placebo_check, stated_check
from pretrace.verdicts.order.gates import gate_values, order_check
from pretrace.verdicts.order.options import items
from pretrace.verdicts.order.settings import OrderSettings
from pretrace.verdicts.order.shards import shards
from pretrace.verdicts.order.units import Units
from pretrace.verdicts.order.values import Asked, OrderReader, asked, ranks
from pretrace.verdicts.outcome import Found, conclude, null_of
from pretrace.verdicts.planting import paired_power, planted_shift
from pretrace.verdicts.record import record


def order(
    corpus: Corpus,
    models: Models,
    settings: OrderSettings | None = None,
    *,
    watch: Watch | None = None,
    statements: Mapping[str, str] | None = None,
) -> Verdict:
    """The verdict on whether `models.target` was trained on the corpus in its published order.

    The texts of the corpus are its rows in that order; with `settings.options` they are questions, and the options
    stand in `Text.meta`. `models.reference` takes off what another model finds likely too, `models.placebos` must find
    nothing. TextsError for items without options and for too few units; other errors as for `detect`.
    """
    settings, timed = settings or OrderSettings(), Timed(watch or Unwatched())
    found = _Test.made(corpus, models, settings, timed)
    result = found.result()
    checks = found.checks(result)
    concluded = conclude(
        Found(
            model=models.target.name,
            of=found.words.of(corpus.name),
            level=settings.level,
            p=result.test.p,
            effect=result.effect,
            effect_unit=found.words.effect_unit,
            planted=result.planted,
            accusing=("placebo",),
        ),
        checks,
    )
    return replace(
        found.verdict(result, statements or {}),
        outcome=concluded.outcome,
        statement=concluded.statement,
        reasons=concluded.reasons,
        advice=concluded.advice,
        checks=checks,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Result:
    """The test of the target, the effect of each unit, the p-values of placebos, and what planting brought."""

    test: PermutationTest
    effects: Doubles
    placebos: Mapping[str, float]
    planted: Power | None

    @property
    def effect(self) -> Estimate | None:
        """The mean effect, None where there is one unit alone."""
        return mean_interval(self.effects) if len(self.effects) > 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class _Test:
    """The units, what the target made of their orders, and how to read them with another model."""

    corpus: Corpus
    models: Models
    settings: OrderSettings
    words: said.Words
    units: Units
    reader: OrderReader
    watch: Timed
    read: tuple[Doubles, ...]

    @classmethod
    def made(cls, corpus: Corpus, models: Models, settings: OrderSettings, watch: Timed) -> _Test:
        """Read the corpus in all orders with the target; errors as for `order`."""
        words, backends = said.words_for(settings), _backends(models)
        units = (
            items(corpus.texts, settings.option_columns)
            if settings.options
            else shards(corpus.texts, backends, settings)
        )
        chosen = asked(units.units, backends, settings)
        check_enough(chosen, settings, words)
        reader = OrderReader(chosen, models, watch, settings.cache)
        read = reader.read(models.target, "reading in all orders")
        return cls(corpus, models, settings, words, units, reader, watch, read)

    @property
    def asked(self) -> Asked:
        """The units with their orders."""
        return self.reader.asked

    @property
    def values(self) -> tuple[Doubles, ...]:
        """What is tested, [units][orders]."""
        return self.reader.values(self.read)

    def result(self) -> _Result:
        """The test with the target, with every placebo, and what --power measures."""
        effects = lot_effects(self.values)
        placebos = {
            one.name: self._tested(self.reader.values(self.reader.read(one, f"reading with {one.name}"))).p
            for one in self.models.placebos
        }
        planted = self._planted(effects) if self.settings.power else None
        return _Result(self._tested(self.values), effects, placebos, planted)

    def checks(self, result: _Result) -> tuple[Check, ...]:
        """What was stated, what the texts alone say of their order, and what placebos say."""
        seed = self.settings.seed
        blind = gate_values(self.asked.units, seed=seed)
        return (
            stated_check(self.settings),
            order_check(blind, cure=self.words.cure, seed=seed),
            placebo_check(result.placebos, self.settings.level),
        )

    def _tested(self, values: Sequence[Doubles]) -> PermutationTest:
        return lot_test(values, draws=self.settings.draws, seed=self.settings.seed)

    def _planted(self, effects: Doubles) -> Power:
        """What training a copy of the target on the published orders brings."""
        published = [texts[0] for texts in self.asked.texts]
        again = "reading with the planted copy"
        shift = planted_shift(
            self.models.target,
            published,
            effects,
            lambda copy: self.reader.effects(copy, again),
            self.settings,
            self.watch,
        )
        return paired_power(effects, shift, self.settings)

    def verdict(self, result: _Result, statements: Mapping[str, str]) -> Verdict:
        """What is known before the checks are weighed."""
        words, settings = self.words, self.settings
        corpus, model = self.corpus.name, self.models.target.name
        orders = max(map(len, self.asked.texts))
        skipped = (*self.units.skipped, *self.asked.skipped)
        return Verdict(
            test="options" if settings.options else "order",
            corpus=corpus,
            model=model,
            outcome="inconclusive",
            statement="",
            level=settings.level,
            exact=True,
            assumption=said.assumption(settings.stated, words),
            hypothesis=words.hypothesis,
            statistic=words.statistic,
            p=result.test.p,
            units=len(self.asked.units),
            unit=words.unit,
            question=said.question(model, corpus),
            compared=said.compared(words, corpus, len(self.asked.units), orders),
            trust=said.trust(words, len(skipped), len(self.models.placebos)),
            null=null_of(result.test, settings.level, words.statistic),
            effect=result.effect,
            effect_unit=words.effect_unit,
            standardised=standardised(result.effects),
            planted=result.planted,
            notes=self.corpus.notes,
            figures={**self._figures(skipped), "p of placebos": dict(result.placebos)},
            tables=(self._table(),),
            skipped=skipped,
            statements={**statements, **_stated(settings)},
            situation=Situation(rows=len(self.corpus)),
            settings=self._record(),
        )

    def _figures(self, skipped: Sequence[Skipped]) -> dict[str, Any]:
        orders = [len(texts) for texts in self.asked.texts]
        return {
            self.words.table: len(orders),
            **({} if self.settings.options else {"rows": sum(len(unit.parts) for unit in self.asked.units)}),
            "orders of each": [min(orders), max(orders)],
            "passes": self.asked.passes,
            "left out": dict(Counter(one.reason for one in skipped)),
        }

    def _table(self) -> Table:
        """One row a unit: log-probabilities in nats, the rank of the published order, the effect."""
        others = [row[1:] for row in self.read]
        numbers = {
            "options" if self.settings.options else "rows": [len(unit.parts) for unit in self.asked.units],
            "orders": [len(row) for row in self.read],
            "published": [row[0] for row in self.read],
            "others_mean": [row.mean() for row in others],
            "others_low": [row.min() for row in others],
            "others_high": [row.max() for row in others],
            "rank": [ranks(row)[0] for row in self.read],
            "effect": lot_effects(self.values),
        }
        names = tuple(unit.name for unit in self.asked.units)
        columns = {name: np.asarray(values, dtype=np.float64) for name, values in numbers.items()}
        return Table(self.words.table, {self.words.unit: names, **columns})

    def _record(self) -> dict[str, Any]:
        score = "log-probability of the text in nats"
        score += ", less that of the reference model" if self.models.reference is not None else ""
        return record(
            {"corpus": self.corpus}, self.models, self.settings, score=score, seconds=self.watch.seconds
        )


def _backends(models: Models) -> tuple[Backend, ...]:
    beside = () if models.reference is None else (models.reference,)
    return (models.target, *beside, *models.placebos)


def _stated(settings: OrderSettings) -> dict[str, str]:
    return {"order": settings.stated} if settings.stated else {}
