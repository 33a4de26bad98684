"""Marked texts: does the model prefer, of each text, the variant that was published?

The sealed file itself and how it is made stand in `verdicts.marking`, what every test does in `verdicts.frame`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.backends.serving.address import called
from pretrace.corpora import Columns, open_corpus
from pretrace.corpora.dates import days
from pretrace.errors import ExpressionError, TextsError
from pretrace.results.atomic import atomic_bytes
from pretrace.results.output_checks import NEW
from pretrace.results.rounding import listed, recorded_p
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models, ScorePlan, weights_of
from pretrace.scoring.provenance import record_corpus
from pretrace.settings import option
from pretrace.statistics.intervals import share_interval
from pretrace.statistics.permutation import chance_of_hits
from pretrace.types import Backend, Check, Corpus, Doubles, Estimate, Situation, Table, Verdict
from pretrace.verdicts.draws import TextsSketch
from pretrace.verdicts.frame import (
    ByLot,
    Rows,
    TestDetails,
    Tested,
    TestWording,
    build_verdict,
    record,
    verdict,
    watched,
)
from pretrace.verdicts.marking.orders import JOINT, MOST_ROWS
from pretrace.verdicts.marking.sealed import MarkedText, Seal
from pretrace.verdicts.marking.variants import Trigger, collapsed
from pretrace.verdicts.reading import Read, ScoreReader, chosen_score
from pretrace.verdicts.register import RegisterEntry, read_tests
from pretrace.verdicts.settings import ALONE, BESIDE, TEST, TestSettings
from pretrace.verdicts.wording import fill, say, sentences_of, word_check


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
    """Check that the model may be younger than the draw: one that was finished before cannot have read what it
    decided."""
    drawn = f"{seal.made_at:%Y-%m-%d}"
    if day is None:
        return word_check("marks.older", None, words="unknown", model=model, drawn=drawn)
    said = f"{model} was finished by {day[0]} ({day[1]}), and the draw was made on {drawn}."
    if day[0] >= seal.made_at.date():
        return word_check("marks.older", True, said=said)
    figures = {"model": str(day[0]), "draw": drawn}
    return word_check("marks.older", False, figures, words="older", said=said)


def time_note(seal: Seal) -> str:
    """The time that the sealed file says, which nobody has verified."""
    return (
        f"The sealed file says that it was made on {seal.made_at.astimezone(UTC):%Y-%m-%d at %H:%M} UTC. This time was "
        "not verified by this tool."
    )


def seal_check(seal: Seal) -> Check:
    """The check that the seal is the one that was committed to, which reading it has made."""
    return word_check("marks.seal", True, sha256=seal.sha256)


def seal_words() -> dict[str, str]:
    """What the reports of all tests of a seal say of the draw and of what it shows."""
    return {name: say(f"marks.{name}") for name in ("assumption", "decided", "draw", "shows")}


def earlier_checks(seal: Seal) -> tuple[dict[str, Any], ...]:
    """List what this machine's register holds on tests of this seal, of any model, oldest first."""
    return tuple(line for line in read_tests() if _registered_settings(line).get("seal") == seal.sha256)


def tries_check(earlier: Sequence[Mapping[str, Any]], weights: str, asked: Mapping[str, Any]) -> Check:
    """Whether this seal was never tested against the same weights in another way (`asked` holds score and reference).

    The same test again gives the same p. Another one is a second chance, and the smallest of several p-values is no
    p-value.
    """
    same = [one for one in earlier if one.get("weights") == weights]
    differing = [one for one in same if {**_registered_settings(one), **asked} != _registered_settings(one)]
    numbers: dict[str, Any] = {"earlier": len(earlier), "same": len(same), "differing": len(differing)}
    if not differing:
        return word_check("marks.tries", True, **numbers)
    told = "; ".join(
        f"{one.get('time')}: score {_registered_settings(one).get('score')}, {recorded_p(one.get('p'))}"
        for one in differing[:5]
    )
    figures = {"earlier": [{name: one[name] for name in one if name != "texts"} for one in differing]}
    return word_check("marks.tries", False, figures, words="differing", told=told, **numbers)


def _registered_settings(line: Mapping[str, Any]) -> Mapping[str, Any]:
    found = line.get("settings")
    return found if isinstance(found, Mapping) else {}


def enough_check(sizes: Sequence[int], level: float, unit: str) -> Check:
    """Whether the draws have enough outcomes for p to reach the level at all."""
    ways = math.prod(sizes) if len(sizes) < 64 else 2**64
    good = bool(sizes) and 1 / ways <= level
    numbers: dict[str, Any] = {"number": len(sizes), "unit": unit, "least": 1 / ways, "level": level}
    return word_check("marks.enough", good, {unit + "s": len(sizes)}, **numbers)


def _refuse(names: Sequence[str], what: str, cure: str) -> None:
    if names:
        raise TextsError(f"the published texts hold {len(names):,} {what}: {listed(names)}; {cure}.")


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
        return self.words_of_kind("marks.said", differ=say(f"marks.made.{self.seal.source}"))

    def words_of_kind(self, kind: str, **numbers: str) -> TestWording:
        """The sentences of a kind, about this seal and this model."""
        return TestWording.of_kind(
            kind,
            unit=self.unit,
            name=self.seal.name,
            model=called(self.models.target.name),
            time=time_note(self.seal),
            effect_unit=effect_unit(self.score, totals=self.totals),
            **seal_words(),
            **numbers,
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
        parts, said = self.seal.parts, sentences_of(f"marks.{self.seal.parts}")
        divided = " " + fill(said["divided"], most=MOST_ROWS) if parts == "rows" else ""
        numbers = {"parts": said["parts"], "value": said["value"], "divided": divided}
        told = self.words_of_kind("marks.orders", **numbers)
        unit = effect_unit(self.score, totals=self.totals).replace("text", self.unit)
        return replace(told, effect_unit=unit) if parts == "rows" else told


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


@dataclass(frozen=True, slots=True)
class _Hits:
    """For each trigger the word that was published, the one that the answer says ("" for none), and whether there was
    an answer; `chances` holds 1 / K of each."""

    ids: tuple[str, ...]
    published: tuple[str, ...]
    said: tuple[str, ...]
    answered: tuple[bool, ...]
    chances: tuple[float, ...]

    @property
    def number(self) -> int:
        """How many answers say the published word."""
        return sum(word == said for word, said in zip(self.published, self.said, strict=True))

    @property
    def p(self) -> float:
        """The chance of as many hits or more, if answers know nothing of the lot."""
        return min(1.0, float(chance_of_hits(self.chances)[self.number :].sum()))

    def critical(self, level: float) -> int:
        """The fewest hits with p at or below the level; one more than there are triggers where none has."""
        tail = chance_of_hits(self.chances)[::-1].cumsum()[::-1]
        return int(np.argmax(tail <= level)) if tail[-1] <= level else len(tail)

    @property
    def tables(self) -> tuple[Table, Table]:
        """A row a trigger, and how likely each number of hits is by chance."""
        found = [float(word == said) for word, said in zip(self.published, self.said, strict=True)]
        sentences: dict[str, tuple[str, ...] | Doubles] = {
            "id": self.ids,
            "published": self.published,
            "said": self.said,
            "hit": np.array(found),
            "chance": np.array(self.chances),
        }
        law = chance_of_hits(self.chances)
        chance = {"hits": np.arange(len(law), dtype=np.float64), "probability": law}
        return Table("sentences", sentences), Table("chance", chance)


def _triggers_of(seal: Seal) -> list[tuple[MarkedText, Trigger]]:
    """The texts with a trigger; TextsError for a seal without any."""
    found = [(one, one.trigger) for one in seal.documents if one.trigger is not None]
    if not found:
        raise TextsError(
            "this sealed file has no trigger sentences: they come from mark --canary. Test it with --model."
        )
    return found


def write_prompts(seal: Seal, path: Path) -> int:
    """Write the prompts, one JSON line a text (id, prompt), and give their number. The words to choose from are not
    among them. TextsError for a seal without triggers, OutputError where the file cannot be written."""
    rows = [{"id": one.id, "prompt": trigger.prompt} for one, trigger in _triggers_of(seal)]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    atomic_bytes(path, lines.encode("utf-8", "backslashreplace"), NEW)
    return len(rows)


def read_answers(source: str) -> Corpus:
    """The answers of a file with `id` and `answer`."""
    return open_corpus(source, Columns(text="answer", id="id", label="", group=""))


def first_word(answer: str, words: Sequence[str]) -> str:
    """The first of the words that the answer says, as a whole word in any case; "" where it says none."""
    pattern = "|".join(re.escape(word) for word in words)
    found = re.search(rf"(?<!\w)({pattern})(?!\w)", answer, re.IGNORECASE)
    return found[1].lower() if found else ""


def hits_of(seal: Seal, answers: Corpus) -> _Hits:
    """What the answers say; a trigger without an answer counts as missed. TextsError for answers to other ids."""
    found, given = _triggers_of(seal), {text.id: text.text for text in answers.texts}
    strange = [name for name in given if name not in {one.id for one, _ in found}]
    if strange:
        raise TextsError(
            f"{answers.name} answers ids that have no trigger: {listed(strange)}; give the ids of the prompts."
        )
    said = [
        # some models repeat the prompt, whose names are words too
        first_word(given.get(one.id, "").replace(trigger.prompt, " "), trigger.words)
        for one, trigger in found
    ]
    return _Hits(
        tuple(one.id for one, _ in found),
        tuple(trigger.words[one.drawn] for one, trigger in found),
        tuple(said),
        tuple(one.id in given for one, _ in found),
        tuple(1 / len(trigger.words) for _, trigger in found),
    )


def check_triggers(
    seal: Seal,
    answers: Corpus,
    settings: CheckSettings,
    *,
    model: str,
    statements: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> Verdict:
    """The verdict of a sealed file on the `answers` of a model, which is named for the report; no model is opened.

    An answer hits where the first of the K words in it is the published one. TextsError as for `hits_of`.
    """
    hits = hits_of(seal, answers)
    number, chance = len(hits.ids), float(np.sum(hits.chances))
    recorded = record_corpus(answers)
    asked = {"score": "triggers", "reference": recorded["sha256"], "seal": seal.sha256}
    weights, of = f"named {model}", f"the published texts of {seal.name}"
    share = share_interval(hits.number, number)
    effect = Estimate(*(value - chance / number for value in (share.value, share.low, share.high)))
    words = TestWording.of_kind(
        "triggers.said",
        of=of,
        name=seal.name,
        model=model,
        time=time_note(seal),
        number=number,
        chance=chance,
        hits=hits.number,
        **seal_words(),
    )
    unanswered = number - sum(hits.answered)
    note = (f"{unanswered:,} sentences have no answer and count as missed.",) if unanswered else ()
    return build_verdict(
        "triggers",
        seal.name,
        model,
        words,
        Tested(hits.p, number, effect=effect),
        TestDetails(
            figures={
                "hits": hits.number,
                "expected by chance": round(chance, 2),
                "hits from which on the test rejects": hits.critical(settings.level),
            },
            tables=hits.tables,
            notes=(*seal.notes, *note, *notes),
            situation=Situation(documents=number, access="text"),
        ),
        (
            seal_check(seal),
            tries_check(earlier_checks(seal), weights, asked),
            older_check(seal, model, model_day(model, settings.model_date)),
            enough_check([round(1 / chance) for chance in hits.chances], settings.level, "trigger"),
        ),
        level=settings.level,
        power=None,
        accusing=(TRIES, OLDER),
        trainable=False,  # a model that is not here cannot be trained to see what a test would have found
        entry=RegisterEntry(
            "triggers", TextsSketch.of(one.published for one, _ in _triggers_of(seal)), weights, asked, model
        ),
        keep=settings.cache,
        statements=statements,
        settings=record(
            {"corpus": seal.corpus},
            {"target": {"name": model, "weights": "unknown"}},
            answers=recorded,
            sealed=seal.described,
            test={"level": settings.level},
            rule={"of": of, "unit": "text"},
        ),
    )
