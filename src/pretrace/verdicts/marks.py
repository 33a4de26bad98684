"""Marked texts: does the model prefer, of each text, the variant that was published?

The sealed file itself and how it is made stand in `verdicts.marking`, what every test does in `verdicts.frame`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.backends.serving.address import called
from pretrace.corpora.dates import days
from pretrace.errors import ExpressionError, TextsError
from pretrace.results.rounding import listed, recorded_p
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models, ScorePlan, weights_of
from pretrace.settings import option
from pretrace.types import Backend, Check, Corpus, Doubles, Situation, Verdict
from pretrace.verdicts.frame import ByLot, Rows, TestDetails, TestWording, verdict, watched
from pretrace.verdicts.marking.orders import JOINT, MOST_ROWS
from pretrace.verdicts.marking.sealed import Seal
from pretrace.verdicts.marking.variants import collapsed
from pretrace.verdicts.reading import Read, ScoreReader, chosen_score
from pretrace.verdicts.register import read_tests
from pretrace.verdicts.settings import ALONE, BESIDE, TEST, TestSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings(TestSettings):
    """How marks are tested. `score` "" is the one that the sealed file advises."""

    score: str = option(
        "",
        "The score of a text, one expression, chosen before you look at a result. loss unless given, ref with "
        "--reference-model.",
        panel=TEST,
        essential=True,
    )
    model_date: str = option(
        "",
        "When the model was finished or published, as far as you know (a day, or a month). A model that is older than "
        "the draw cannot have read what was published.",
        panel=TEST,
    )

    def plan(self, *, reference: bool) -> ScorePlan:
        """The score as a plan, before a model is open; a PretraceError where it is wrong or needs what is not there."""
        plan = ScorePlan.parse(self.score or ("ref" if reference else "loss"))
        if len(plan.scores) != 1:
            raise ExpressionError(
                f"a test reads with one score, found {len(plan.scores)} in {self.score!r}: name one."
            )
        plan.require(["reference"] if reference else [])
        if reference and "reference" not in plan.uses:
            raise ExpressionError(f"--reference-model has no use: --score {self.score} does not ask it.")
        return plan


TRIES, OLDER = "tries", "older"
"""The names of the checks on earlier tests of the same seal, and on a model that is older than the draw."""
_CARD_DATE = re.compile(
    r"^(?:release_date|released|date|created|trained)\s*:\s*[\"']?([^\"'#\n]+)", re.MULTILINE
)
_PACKAGED = ("smollm2", date(2025, 2, 28), "the package that holds it is older than that")


def check_published(seal: Seal, published: Corpus) -> tuple[str, ...]:
    """Notes on what was published, compared with the seal apart from white space.

    TextsError for a text that the seal has not, that is none of its variants, or is another variant than the one
    drawn. A text that is missing stays in the test: leaving texts out afterwards would be a choice.
    """
    if seal.parts:
        return _check_order(seal, published)
    drawn = {one.id: one.published for one in seal.documents} | {one.id: one.text for one in seal.unmarked}
    variants = {one.id: {collapsed(text) for text in one.variants} for one in seal.documents}
    changed = [
        text
        for text in published.texts
        if text.id in drawn and collapsed(text.text) != collapsed(drawn[text.id])
    ]
    other = [text.id for text in changed if collapsed(text.text) in variants.get(text.id, ())]
    _refuse(
        [text.id for text in published.texts if text.id not in drawn],
        "ids that the sealed file has not",
        "give the published texts under the ids of published.jsonl",
    )
    _refuse(
        [text.id for text in changed if text.id not in other],
        "texts that are none of their variants in the sealed file",
        "give the texts as they were published",
    )
    _refuse(
        other,
        "texts that are another variant than the one drawn",
        "the test holds only for what the lot decided; publish the variant that was drawn",
    )
    compared = f"{len(published):,} published texts were compared with the sealed file: they are those drawn."
    missing = sorted(set(variants) - {text.id for text in published.texts})
    return (compared, *_missing_note(missing))


def _check_order(seal: Seal, published: Corpus) -> tuple[str, ...]:
    """The note of `check_published` for an order: every shard stands in the rows as it was drawn."""
    if seal.parts == "options":
        raise TextsError("--texts compares texts, and a lot put answer options in order here: leave it away.")
    rows = collapsed(JOINT.join(text.text for text in published.texts))
    _refuse(
        [one.id for one in seal.documents if collapsed(one.published) not in rows],
        "shards that stand in another order than the one drawn",
        "the test holds only for what the lot decided; publish the rows in the order of published.jsonl",
    )
    return (f"{len(published):,} published rows were compared with the sealed file: they stand as drawn.",)


def _missing_note(missing: Sequence[str]) -> tuple[str, ...]:
    if not missing:
        return ()
    return (
        f"{len(missing):,} marked texts are not among the published ones ({listed(missing)}). They stay in the test, "
        "which costs power but keeps it exact.",
    )


def model_day(name: str, stated: str = "") -> tuple[date, str] | None:
    """The last day on which a model can have been finished, and how that is known: as `stated`, or as the card in its
    folder says. None where nobody says it; what a file system says of files proves nothing.

    ExpressionError for a statement that is no date.
    """
    if stated:
        found = days(stated)
        if found is None:
            raise ExpressionError(f"--model-date takes a day, such as 2026-03-31; found {stated[:40]!r}.")
        return found.last, "as the one who asks says"
    if name == _PACKAGED[0]:
        return _PACKAGED[1], _PACKAGED[2]
    try:
        card = (Path(name) / "README.md").read_text("utf-8", "replace")[:20_000]
    except (OSError, ValueError):
        return None
    front = card.split("---")[1] if card.startswith("---") and card.count("---") > 1 else ""
    dates = [day for one in _CARD_DATE.findall(front) if (day := days(one.strip())) is not None]
    return (max(one.last for one in dates), "as its card says") if dates else None


def older_check(seal: Seal, model: str, day: tuple[date, str] | None) -> Check:
    """Whether the model may be younger than the draw: one that was finished before cannot have read what it decided."""
    title = "The model is not older than the draw"
    drawn = f"{seal.made_at:%Y-%m-%d}"
    cure = "Test a model that was finished after the texts were published."
    if day is None:
        words = (
            f"Nobody says when {model} was finished. A model that was finished before {drawn}, when the draw was made, "
            "cannot have read the published versions, and a small p would then be chance or a mistake."
        )
        return Check(
            OLDER, title, "not run", words, "Say when the model was finished, as far as that is known."
        )
    said = f"{model} was finished by {day[0]} ({day[1]}), and the draw was made on {drawn}."
    if day[0] >= seal.made_at.date():
        return Check(OLDER, title, "passed", said)
    words = (
        f"{said} So the model is older than the draw and cannot have read the published versions. A small p is then "
        "chance, or the versions or the draw were chosen with the model at hand."
    )
    return Check(OLDER, title, "failed", words, cure, {"model": str(day[0]), "draw": drawn})


def time_note(seal: Seal) -> str:
    """The time that the sealed file says, which nobody has verified."""
    return (
        f"The sealed file says that it was made on {seal.made_at.astimezone(UTC):%Y-%m-%d at %H:%M} UTC. This time was "
        "not verified by this tool."
    )


def seal_check(seal: Seal) -> Check:
    """The check that the seal is the one that was committed to, which reading it has made."""
    return Check(
        "seal",
        "The sealed file is the one that was committed to",
        "passed",
        f"Its SHA-256 is {seal.sha256}, as the commitment says. That the commitment was made before the model was "
        "trained is for its publication or timestamp to show.",
    )


def earlier_checks(seal: Seal) -> tuple[dict[str, Any], ...]:
    """List what this machine's register holds on tests of this seal, of any model, oldest first."""
    return tuple(line for line in read_tests() if _registered_settings(line).get("seal") == seal.sha256)


def tries_check(earlier: Sequence[Mapping[str, Any]], weights: str, asked: Mapping[str, Any]) -> Check:
    """Whether this seal was never tested against the same weights in another way (`asked` holds score and reference).

    The same test again gives the same p. Another one is a second chance, and the smallest of several p-values is no
    p-value.
    """
    title = "This seal was not tested on this model in another way before"
    same = [one for one in earlier if one.get("weights") == weights]
    differing = [one for one in same if {**_registered_settings(one), **asked} != _registered_settings(one)]
    words = (
        f"This machine knows of {len(earlier):,} earlier tests of this sealed file, {len(same):,} of them on this "
        "model."
    )
    if not differing:
        return Check(TRIES, title, "passed", f"{words} None was made in another way.")
    told = "; ".join(
        f"{one.get('time')}: score {_registered_settings(one).get('score')}, {recorded_p(one.get('p'))}"
        for one in differing[:5]
    )
    words += (
        f" {len(differing):,} had another score, another reference model or other answers ({told}). Whoever tries "
        "several ways finds a small p by chance more often than the level says."
    )
    cure = "Take the result of the first test that was made, or mark new texts."
    earlier = [{name: value for name, value in one.items() if name != "texts"} for one in differing]
    return Check(TRIES, title, "failed", words, cure, {"earlier": earlier})


def _registered_settings(line: Mapping[str, Any]) -> Mapping[str, Any]:
    found = line.get("settings")
    return found if isinstance(found, Mapping) else {}


def enough_check(sizes: Sequence[int], level: float, unit: str) -> Check:
    """Whether the draws have enough outcomes for p to reach the level at all."""
    ways = math.prod(sizes) if len(sizes) < 64 else 2**64
    title = f"There are enough {unit}s for the level"
    words = f"The smallest p-value that {len(sizes):,} {unit}s allow is about {1 / ways:.2g}; the level is {level:g}."
    good = bool(sizes) and 1 / ways <= level
    return Check.of("enough", title, good, words, f"Test more {unit}s.", {unit + "s": len(sizes)})


def _refuse(names: Sequence[str], what: str, cure: str) -> None:
    if names:
        raise TextsError(f"the published texts hold {len(names):,} {what}: {listed(names)}; {cure}.")


ASSUMPTION = (
    "For every text one variant was drawn by lot and published, and the others were kept secret until the model was "
    "trained. That it was a lot is the owner's word: if it was, the chance is known exactly."
)
DECIDED = "A lot decided which of them was published. The variants and the draw were sealed in a file."
DRAW = (
    "The draw was made by the computer of the owner of the texts, when the file was made. No public value went into "
    "it. That it was a lot, and that it was not chosen to suit a model, is the owner's word. A dated copy of the "
    "commitment shows only that the draw is older than that copy."
)
_TRUST = (
    "A model that was not trained on the published texts cannot know what the lot decided. So it prefers the published "
    "variant of a text only by chance, whatever the model is and whatever the texts are about."
)
KNOWN = (
    "A result that speaks for training says that the published versions reached the model. It does not say by which "
    "way: a copy of them, a quotation, or another site that took them over would give the same result."
)


def _compared(seal: Seal, model: str) -> tuple[str, ...]:
    made = {
        "columns": "were written by the owner of the texts",
        "texts": "were written by the owner of the texts",
        "rewriter": "were written by a model that rewrote the text",
        "words": "differ in a few words",
        "canary": "differ in the last word of one added sentence",
        "order": "differ in the order of their parts",
    }[seal.source]
    return (
        f"Before publication there were several variants of each text. They {made}. {DECIDED} {time_note(seal)}",
        DRAW,
        f"Now it was measured how likely {model} finds every variant. A model that was trained on the published "
        "variants finds them more likely than the ones that nobody has seen.",
    )


def check_marks(
    seal: Seal,
    models: Models,
    settings: CheckSettings,
    *,
    statements: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    watch: Watch | None = None,
) -> Verdict:
    """The verdict of a sealed file on `models.target`: an exact test, whatever the model is.

    Each placebo of `models` is tested in the same way and must show nothing. The test is noted in this machine's
    register unless `settings.cache` is False. Errors as for `detect`, TextsError where no text can be tested.
    """
    score = chosen_score(settings.score or ("" if models.reference is not None else seal.score), models)
    kind = Orders if seal.parts else Marks
    test = kind(
        corpus=seal.corpus, models=models, settings=settings, watch=watched(watch), score=score, seal=seal
    )
    return verdict(test, statements=statements, notes=notes)


@dataclass(frozen=True, eq=False, kw_only=True)
class Marks(ByLot):
    """The test of marked texts. Pretrace drew the lot itself, so no second model is needed."""

    settings: CheckSettings
    seal: Seal
    _read: dict[str, Any] = field(default_factory=dict)

    name = "marks"
    unit = "text"
    second = False
    accusing = (TRIES, OLDER)

    @property
    def totals(self) -> bool:
        """Whether values are summed over a text."""
        return self.seal.totals and self.score in (ALONE, BESIDE)

    @property
    def registered(self) -> Mapping[str, Any]:
        return {**super().registered, "seal": self.seal.sha256}

    def read(self, model: Backend, stage: str) -> Rows:
        """The score of every variant, the published one first; in nats a text for canary sentences."""
        reader = ScoreReader(self.models, self.score, self.watch, self.settings.cache)
        rows, read = variant_values(self.seal, reader, model, stage, totals=self.totals)
        if model is self.models.target:
            places = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
            cut = len(set(places[read.cut > 0].tolist()))
            reasons = {int(places[i]): why for i, why in sorted(read.reasons.items(), reverse=True)}
            self._read.update(cut=cut, reasons=reasons)
            if not any(np.isfinite(row).all() for row in rows):
                raise TextsError(f"no text can be tested: {reasons.get(0) or 'a value is missing'}.")
        return rows

    def planted(self) -> Sequence[str]:
        return [one.published for one in self.seal.documents]

    def checks(self, values: Rows) -> tuple[Check, ...]:
        name, weights = self.models.target.name, weights_of(self.models.target)
        sizes = [len(row) for row in values if np.isfinite(row).all()]
        return (
            seal_check(self.seal),
            tries_check(earlier_checks(self.seal), weights, self.registered),
            older_check(self.seal, name, model_day(name, self.settings.model_date)),
            enough_check(sizes, self.settings.level, self.unit),
        )

    def words(self, values: Rows) -> TestWording:
        name = called(self.models.target.name)
        return TestWording(
            unit=self.unit,
            of=f"the published texts of {self.seal.name}",
            question=f"Was {name} trained on the published texts of “{self.seal.name}”?",
            compared=_compared(self.seal, name),
            hypothesis="The values of the variants do not depend on which of them were drawn and published.",
            assumption=ASSUMPTION,
            statistic="the sum over texts of the published variant's value less the mean of all its variants' values, "
            "over its standard deviation in fresh draws",
            effect_unit=effect_unit(self.score, totals=self.totals),
            exact=False,
            trust=(_TRUST, KNOWN),
            preferred="the published versions",
        )

    def shown(self, values: Rows) -> TestDetails:
        effects = self.effects(values)
        names = [one.id for one in self.seal.documents]
        sizes = [len(row) for row, effect in zip(values, effects, strict=True) if np.isfinite(effect)]
        cut, reasons = int(self._read["cut"]), self._read["reasons"]
        long = (
            f"{cut:,} {self.unit}s are longer than the model reads; what differs beyond that takes no part."
        )
        return TestDetails(
            figures={
                f"marked {self.unit}s": len(self.seal.documents),
                f"{self.unit}s without variants": len(self.seal.unmarked),
                f"variants a {self.unit}": f"{min(sizes)}"
                if min(sizes) == max(sizes)
                else f"{min(sizes)} to {max(sizes)}",
                f"{self.unit}s whose published variant lies above the others' mean": int(
                    np.count_nonzero(effects > 0)
                ),
            },
            tables=(self.units_table("texts", names, values),),
            skipped=self.left_out(names, values, reasons),
            notes=(*self.seal.notes, *((long,) if cut else ())),
            situation=Situation(documents=len(sizes)),
            recorded={"sealed": self.seal.described, "totals": self.totals},
        )


ORDERED = {"rows": "shard", "options": "item"}
"""What has one order, by what a sealed lot put in order."""


class Orders(Marks):
    """The same for an order that was drawn by lot: of rows, or of answer options. Items differ more than their orders,
    so the rank of each order among those of its item is compared. Nobody is accused without a second model."""

    second = True
    repeatable = True

    @property
    def unit(self) -> str:  # type: ignore[override]
        """What has one order: a shard of rows, or an item."""
        return ORDERED[str(self.seal.parts)]

    def compared(self, values: Rows) -> Rows:
        return tuple(map(ranks, values)) if self.seal.parts == "options" else values

    def words(self, values: Rows) -> TestWording:
        rows = self.seal.parts == "rows"
        parts, name = "rows" if rows else "answer options", called(self.models.target.name)
        divided = f" The rows were divided into shards, runs of up to {MOST_ROWS} neighbours." if rows else ""
        return replace(
            super().words(values),
            of=f"{self.seal.name} with its {parts} in the published order",
            question=f"Was {name} trained on “{self.seal.name}”?",
            compared=(
                f"Before publication a lot put the {parts} of {self.seal.name} in order. The lot and the orders that "
                f"it could have given were sealed in a file. {time_note(self.seal)}",
                DRAW,
                f"Now it was measured how likely {name} finds every {self.unit} in the published order and in others."
                f"{divided} A model that was trained on the published {parts} finds their order more likely.",
            ),
            hypothesis=f"The values of the orders of a {self.unit} do not depend on which of them was drawn.",
            assumption="A lot put the "
            f"{parts} in the published order, and no other order that it could have given was published. That it was a "
            "lot is the owner's word: if it was, the chance is known exactly.",
            statistic=f"the sum over {self.unit}s of the published order's "
            f"{'value' if rows else 'rank among the orders'} less the mean over all, over its standard deviation in "
            "fresh draws",
            effect_unit=effect_unit(self.score, totals=self.totals).replace("text", self.unit)
            if rows
            else "in rank, from 0 to 1",
            trust=(
                f"A model that was not trained on the published {parts} cannot know what the lot decided.",
                f"Training on the same {parts} in another order leaves nothing that this test could find.",
            ),
            preferred="the published order",
        )


def ranks(values: Doubles) -> Doubles:
    """The ranks of values over their number, the highest 1, the mean rank for equal values; NaN where one is."""
    from scipy.stats import rankdata

    return (
        np.asarray(rankdata(values) / len(values))
        if np.isfinite(values).all()
        else np.full_like(values, np.nan)
    )


def variant_values(
    seal: Seal, reader: ScoreReader, model: Backend, stage: str, *, totals: bool
) -> tuple[Rows, Read]:
    """The score of every variant of a seal under a model, the published one first, and all that was read; `totals` are
    sums over a text."""
    read = reader.read(
        [text for one in seal.documents for text in one.realised_first], under=model, stage=stage
    )
    values = read.totals if totals else read.values
    ends = np.cumsum([len(one.variants) for one in seal.documents])
    return tuple(np.split(values, ends[:-1])), read


def effect_unit(score: str, *, totals: bool) -> str:
    """The unit of an effect."""
    if score not in (ALONE, BESIDE):
        return f"of the score {score}"
    return "nats a text" if totals else "nats a token"
