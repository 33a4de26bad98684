"""The test of random strings that stand in the texts: does the model prefer them to fresh ones of their format?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pretrace.errors import TextsError
from pretrace.scoring.plan import Models
from pretrace.statistics.intervals import standardised
from pretrace.types import Corpus, Situation, Table, Verdict
from pretrace.verdicts.marking.check import Tested, by_lot
from pretrace.verdicts.marking.settings import CanarySettings
from pretrace.verdicts.marking.strings import Found as FoundString
from pretrace.verdicts.marking.strings import random_strings
from pretrace.verdicts.marking.values import Unit, timed_watch
from pretrace.verdicts.outcome import Conclusion, Found, conclude, null_of
from pretrace.verdicts.reading import Reader, Watched, chosen_score
from pretrace.verdicts.record import record

UNIT = "nats a string"
STATISTIC = (
    "the sum over strings of the log-probability of the string that stands in the text less the mean over it and its "
    "alternatives, over its standard deviation in fresh draws"
)


@dataclass(frozen=True, slots=True)
class NaturalCanaries:
    """The random strings of a corpus with their alternatives, and how many were left out for which reason."""

    strings: tuple[FoundString, ...]
    left_out: Mapping[str, int]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found and what was left out, in sentences."""
        kinds = Counter(one.kind for one in self.strings)
        found = ", ".join(f"{number:,} of {kind}" for kind, number in sorted(kinds.items()))
        left = ", ".join(f"{number:,} {why}" for why, number in sorted(self.left_out.items()))
        said = (f"Strings in the test: {found}.",) if found else ()
        return said + ((f"Left out: {left}.",) if left else ())


def natural_canaries(corpus: Corpus, settings: CanarySettings) -> NaturalCanaries:
    """The random strings of the texts; TextsError where there are none. Opens no model."""
    found, left = random_strings(
        corpus,
        settings.pattern,
        alternatives=settings.alternatives,
        context=settings.context,
        seed=settings.seed,
    )
    made = NaturalCanaries(found, left)
    if not found:
        raise TextsError(
            f"{corpus.name} holds no hash of 32, 40 or 64 digits and no UUID of version 4"
            f"{', and no string of the pattern' if settings.pattern else ''}: name strings that were drawn at random "
            f"with --pattern. {' '.join(made.notes)}".rstrip()
        )
    return made


def check_canaries(
    corpus: Corpus,
    models: Models,
    settings: CanarySettings,
    *,
    canaries: NaturalCanaries | None = None,
    statements: Mapping[str, str] | None = None,
    watch: Watched | None = None,
) -> Verdict:
    """The verdict on random strings in the texts: each is compared with fresh strings of its format, in its context.

    `canaries` are those of `natural_canaries`, which are looked for unless given. Errors as there and as for `read`.
    """
    timed = timed_watch(watch)
    found = canaries or natural_canaries(corpus, settings)
    score = chosen_score("", models)
    units = [
        Unit(one.id, tuple(one.context + some for some in (one.string, *one.alternatives)))
        for one in found.strings
    ]
    owner = {text.id: text.text for text in corpus.texts}
    reader = Reader(models, score, timed, settings.cache)
    planted = [owner[one.text] for one in found.strings]
    result = by_lot(reader, units, settings, totals=True, unit="string", planted=planted)
    recorded = record({"corpus": corpus}, models, settings, score=score, seconds=timed.seconds)
    verdict = _verdict(corpus, models, settings, found, result, recorded)
    return replace(verdict, statements=dict(statements or {}))


def _verdict(
    corpus: Corpus,
    models: Models,
    settings: CanarySettings,
    found: NaturalCanaries,
    result: Tested,
    recorded: Mapping[str, Any],
) -> Verdict:
    name, values = models.target.name, result.values
    effects, concluded = values.effects, _concluded(corpus, name, settings, result)
    notes = found.notes
    if values.cut:
        notes += (f"{values.cut:,} strings stand beyond what the model reads: read less with --context.",)
    return Verdict(
        test="canaries",
        corpus=corpus.name,
        model=name,
        outcome=concluded.outcome,
        statement=concluded.statement,
        level=settings.level,
        exact=True,
        assumption=_ASSUMPTION + (_OWN if settings.pattern else ""),
        hypothesis="The strings that stand in the texts are no likelier to the model than others of their format.",
        statistic=STATISTIC,
        p=result.test.p,
        units=len(values.usable),
        unit="string",
        question=f"Was {name} trained on texts with the random strings of {corpus.name}?",
        compared=_COMPARED,
        trust=(_TRUST, _ELSEWHERE),
        null=null_of(result.test, settings.level, STATISTIC),
        effect=result.effect,
        effect_unit=UNIT,
        standardised=standardised(effects[np.isfinite(effects)]),
        planted=result.planted,
        checks=result.checks,
        reasons=concluded.reasons,
        advice=concluded.advice,
        notes=notes,
        figures={"strings": len(found.strings), "alternatives a string": settings.alternatives},
        tables=(_table(found, result),),
        skipped=values.skipped,
        situation=Situation(documents=len(corpus)),
        settings=recorded,
    )


def _concluded(corpus: Corpus, model: str, settings: CanarySettings, result: Tested) -> Conclusion:
    of = f"the texts of {corpus.name} that hold these strings"
    found = Found(model, of, settings.level, result.test.p, result.effect, UNIT, result.planted)
    return conclude(found, result.checks)


_COMPARED = (
    "Some strings in the texts were drawn at random by a machine: hashes, or identifiers such as UUIDs. Nobody can "
    "guess them.",
    "For each string others of the same format were drawn, and it was measured how likely the model finds each of them "
    "in the same place. A model that was trained on the texts finds the string that stands there more likely.",
)
_ASSUMPTION = (
    "The strings were drawn at random: each string of the same format was as likely. A hash counts as random where "
    "nobody can have chosen it."
)
_OWN = " That strings found by a pattern are random is the statement of the one who asks."
_TRUST = (
    "A model that has never seen a random string cannot find it likelier than another one of the same format, except "
    "by chance."
)
_ELSEWHERE = (
    "A string may also stand elsewhere: in a copy of the text, in a repository, or as the hash of a file that many "
    "people have. Then the result shows that the model saw the string, and not that it saw these texts."
)


def _table(found: NaturalCanaries, result: Tested) -> Table:
    table = result.values.table("strings")
    said = {
        "text": tuple(one.text for one in found.strings),
        "format": tuple(one.kind for one in found.strings),
        "string": tuple(one.string for one in found.strings),
    }
    columns = dict(table.columns)
    return Table(table.name, {"id": columns.pop("id"), **said, **columns})
