"""Marked texts: does the model prefer, of each text, the variant that was published?"""

from __future__ import annotations

import math
import re
import secrets
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar

import numpy as np

from pretrace.backends.naming import called
from pretrace.corpora import Columns, open_corpus
from pretrace.corpora.dates import days
from pretrace.corpora.opening import record_corpus, texts_hash
from pretrace.errors import ExpressionError, TextsError
from pretrace.plugins import marks
from pretrace.plugins.marks import ORDERED, MarkedText, Seal, Trigger
from pretrace.registry import tests
from pretrace.results.atomic import NEW, atomic_bytes
from pretrace.results.folder import json_lines
from pretrace.results.wording import fill, listed, recorded_p, say, sentences_of, times
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models, ScorePlan, weights_of
from pretrace.settings import option, shared
from pretrace.statistics.documents import share_interval
from pretrace.statistics.permutation import chance_of_hits
from pretrace.types import Backend, Check, Corpus, Doubles, Estimate, Situation, Table, Verdict
from pretrace.verdicts import frame
from pretrace.verdicts.frame import power_of
from pretrace.verdicts.outcome import ENOUGH, word_check
from pretrace.verdicts.reading import read_scores
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

    def plan(self, *, reference: bool, advised: str = ALONE) -> ScorePlan:
        """The score as a plan, before a model is open; a PretraceError where it is wrong or needs what is not there."""
        plan = ScorePlan.parse(self.score or (BESIDE if reference else advised))
        if len(plan.scores) != 1:
            raise ExpressionError(say("marks.refused.one_score", number=len(plan.scores), score=self.score))
        plan.require(["reference"] if reference else [])
        if reference and "reference" not in plan.uses:
            raise ExpressionError(f"--reference-model has no use: --score {self.score} does not ask it.")
        return plan


V = TypeVar("V")
_CARD_DATE = re.compile(r"(?m)^(?:release_date|released|date|created|trained)\s*:\s*[\"']?([^\"'#\n]+)")


def check_published(seal: Seal, published: Corpus) -> tuple[str, ...]:
    """Notes on what was published, compared with the seal apart from white space. TextsError for a text that the seal
    has not, that is none of its variants, or is another variant than the one drawn, and for a shard in another order. A
    text that is missing stays in the test: leaving texts out afterwards would be a choice."""
    plain, missing = marks.collapsed, list[str]()
    texts = {text.id: plain(text.text) for text in published.texts}
    if seal.parts == "options":
        raise TextsError(say("marks.published.refused.options"))
    if seal.parts:  # every shard stands in the rows as it was drawn
        rows = plain(marks.JOINT.join(text.text for text in published.texts))
        wrong = {"order": [one.id for one in seal.documents if plain(one.published) not in rows]}
    else:
        variants = {one.id: [plain(text) for text in one.realised_first] for one in seal.texts}
        wrong = {"changed": [name for name, text in texts.items() if text not in variants.get(name, [])]}
        wrong["other"] = [name for name, text in texts.items() if text in variants.get(name, [])[1:]]
        missing = sorted({one.id for one in seal.documents} - texts.keys())
    for kind, names in wrong.items():
        if names:
            raise TextsError(say(f"marks.published.refused.{kind}", number=len(names), names=listed(names)))
    lacking = [say("marks.published.missing", missing=len(missing), names=listed(missing))] if missing else []
    return (say("marks.published.texts", number=len(published)), *lacking)


def _model_day(name: str, stated: str = "") -> tuple[date, str] | None:
    """The last day on which a model can be finished, `stated` or by its card, and how that is known; or None."""
    if stated:
        if (found := days(stated)) is None:
            raise ExpressionError(f"--model-date takes a day, such as 2026-03-31; found {stated[:40]!r}.")
        return found.last, "as the one who asks says"
    if name == "smollm2":
        return date(2025, 2, 28), "the package that holds it is older than that"
    try:
        card = (Path(name) / "README.md").read_text("utf-8", "replace")[:20_000]
    except (OSError, ValueError):
        return None
    front = card.split("---")[1] if card.startswith("---") and card.count("---") > 1 else ""
    dates = [day for one in _CARD_DATE.findall(front) if (day := days(one.strip())) is not None]
    return (max(one.last for one in dates), "as its card says") if dates else None


@dataclass(frozen=True, eq=False, kw_only=True)
class _SealedTest(frame.Test[V]):
    """What the tests of a seal share. Pretrace made the random draw itself, so no second model is needed."""

    settings: CheckSettings
    seal: Seal

    second = False
    accusing = ("tries", "older")
    sources: ClassVar = {"sealed": ("corpus", lambda at: texts_hash(marks.read_seal(Path(at)).corpus.texts))}

    @property
    def _unit(self) -> str:
        """What has variants, orders or a trigger."""
        return self.seal.unit

    @abstractmethod
    def _outcomes(self, values: V) -> list[int]:
        """The numbers of outcomes of each draw."""

    @property
    def registered(self) -> Mapping[str, Any]:
        return {**super().registered, "seal": self.seal.sha256}

    @property
    def _sealed(self) -> dict[str, Any]:
        """What a result records of the seal."""
        return {name: getattr(self.seal, name) for name in ("sha256", "made", "source", "about")}

    def _worded(self, kind: str, **numbers: object) -> frame.TestWording:
        """The sentences of a kind, with what all say of the draw, of its unverified time and of the result."""
        made = f"{self.seal.made_at.astimezone(UTC):%Y-%m-%d at %H:%M}"
        kinds = ("assumption", "decided", "draw", "shows", "time")
        said = {one: say(f"marks.{one}", made=made) for one in kinds}
        model, name = called(self.models.target.name), self.seal.name
        return frame.TestWording.of_kind(kind, unit=self._unit, model=model, name=name, **said, **numbers)

    def checks(self, values: V) -> tuple[Check, ...]:
        """Another test of this seal on the same weights would be a second chance, and a model that is older than the
        draw has not read what it gave."""
        seal, target = self.seal, self.models.target
        tests = [line for line in read_tests() if isinstance(line.get("settings"), Mapping)]
        earlier = [line for line in tests if line["settings"].get("seal") == seal.sha256]
        same = [line for line in earlier if line.get("weights") == weights_of(target)]
        differing = [line for line in same if {**line["settings"], **self.registered} != line["settings"]]
        told = "; ".join(
            f"{line.get('time')}: score {line['settings'].get('score')}, {recorded_p(line.get('p'))}"
            for line in differing[:5]
        )
        numbers: dict[str, Any] = {"earlier": len(earlier), "same": len(same), "differing": len(differing)}
        shown = [{name: line[name] for name in line if name != "texts"} for line in differing]
        words, figures = ("differing", {"earlier": shown}) if differing else ("words", {})
        tries = word_check("marks.tries", not differing, figures, words=words, told=told, **numbers)
        return word_check("marks.seal", True, sha256=seal.sha256), tries, self._older(), self._enough(values)

    def _enough(self, values: V) -> Check:
        """Whether the draws have enough outcomes for p to reach the level at all."""
        sizes, level, unit = self._outcomes(values), self.settings.level, self._unit
        ways = math.prod(sizes) if len(sizes) < 64 else 2**64
        numbers: dict[str, Any] = {"number": len(sizes), "unit": unit, "least": 1 / ways, "level": level}
        return word_check("marks.enough", 1 / ways <= level, {unit + "s": len(sizes)}, **numbers)

    def _older(self) -> Check:
        name, drawn = self.models.target.name, self.seal.made_at.date()
        both: dict[str, Any] = {"model": name, "drawn": drawn}
        if (known := _model_day(name, self.settings.model_date)) is None:
            return word_check("marks.older", None, words="unknown", **both)
        day, how = known
        words, figures = ("older", {"model": str(day), "draw": str(drawn)}) if day < drawn else ("words", {})
        return word_check("marks.older", not figures, figures, words=words, day=day, how=how, **both)


def check_marks(
    seal: Seal,
    models: Models,
    settings: CheckSettings,
    *,
    statements: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    watch: Watch | None = None,
) -> Verdict:
    """The verdict of a sealed file on `models.target`, an exact test; its placebos must show nothing."""
    plan = settings.plan(reference=models.reference is not None, advised=seal.score)
    plan.check(models)
    (score,) = plan.scores
    kind = _Orders if seal.parts else _Marks
    own: dict[str, Any] = {"score": score, "seal": seal, "watch": frame.watched(watch)}
    test = kind(corpus=seal.corpus, models=models, settings=settings, **own)
    return frame.verdict(test, statements=statements, notes=notes)


@tests.add("marks")
@dataclass(frozen=True, eq=False, kw_only=True)
class _Marks(_SealedTest[frame.Rows], frame.RandomisationTest):
    """The test of marked texts."""

    _read: dict[str, Any] = field(default_factory=dict)

    name = "marks"

    @classmethod
    def of_result(cls, found: Verdict) -> type[_Marks]:
        return _Orders if found.unit in ORDERED.values() else cls

    @property
    def _totals(self) -> bool:
        """Whether values are summed over a text."""
        return self.seal.totals and self.score in (ALONE, BESIDE)

    def read(self, model: Backend, stage: str) -> frame.Rows:
        """The score of every variant, the published one first; in nats a text for canary sentences."""
        texts = [text for one in self.seal.documents for text in one.realised_first]
        how: dict[str, Any] = {"stage": stage, "watch": self.watch, "cache": self.settings.cache}
        read = read_scores(replace(self.models, target=model), self.score, texts, **how)
        ends = np.cumsum([len(one.variants) for one in self.seal.documents])
        rows = tuple(np.split(read.totals if self._totals else read.values, ends[:-1]))
        if model is self.models.target:
            places = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
            cut = len(set(places[read.cut > 0].tolist()))
            reasons = {int(places[i]): why for i, why in sorted(read.reasons.items(), reverse=True)}
            self._read.update(cut=cut, reasons=reasons)
        return rows

    def planted(self) -> Sequence[str]:
        return [one.published for one in self.seal.documents]

    def _outcomes(self, values: frame.Rows) -> list[int]:
        return [len(row) for row in values if np.isfinite(row).all()]

    def words(self, values: frame.Rows) -> frame.TestWording:
        source = say(f"marks.made.{self.seal.source}")
        return self._worded("marks.said", differ=source, effect_unit=self._effect_unit)

    @property
    def _effect_unit(self) -> str:
        """The unit of an effect."""
        if self.score not in (ALONE, BESIDE):
            return f"of the score {self.score}"
        return f"nats a {self._unit}" if self._totals else "nats a token"

    def shown(self, values: frame.Rows) -> frame.TestDetails:
        names, sizes = [one.id for one in self.seal.documents], self._outcomes(values)
        cut, reasons = int(self._read["cut"]), self._read["reasons"]
        above = int(np.count_nonzero(self.effects(values) > 0))
        return frame.TestDetails(
            figures={
                f"marked {self._unit}s": len(self.seal.documents),
                f"{self._unit}s without variants": len(self.seal.unmarked),
                f"variants a {self._unit}": marks.say_range(sizes),
                f"{self._unit}s whose published variant lies above the others' mean": above,
            },
            tables=(self.units_table("texts", names, values),),
            skipped=self.left_out(names, values, reasons),
            notes=(*self.seal.notes, *((say("marks.cut", cut=cut, unit=self._unit),) if cut else ())),
            situation=Situation(documents=len(sizes)),
            recorded={"sealed": self._sealed, "totals": self._totals},
        )


class _Orders(_Marks):
    """The same for an order that was drawn: of rows, or of answer options. Items differ more than their orders,
    so the rank of each order among those of its item is compared. Nobody is accused without a second model."""

    second = True
    compares = False

    def compared(self, values: frame.Rows) -> frame.Rows:
        return tuple(map(ranks, values)) if self.seal.parts == "options" else values

    def words(self, values: frame.Rows) -> frame.TestWording:
        numbers = fill(sentences_of(f"marks.{self.seal.parts}"), most=marks.MOST_ROWS, own=self._effect_unit)
        return self._worded("marks.orders", **numbers)


def ranks(values: Doubles) -> Doubles:
    """The ranks of values over their number, the highest 1, the mean rank for equal values; NaN where one is."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, nan_policy="propagate") / len(values))


def _triggers_of(seal: Seal) -> list[tuple[MarkedText, Trigger]]:
    """The texts with a trigger; TextsError for a seal without any."""
    found = [(one, one.trigger) for one in seal.documents if one.trigger is not None]
    if not found:
        raise TextsError(say("triggers.none"))
    return found


def write_prompts(seal: Seal, path: Path) -> int:
    """Write the prompts without the words to choose from, one JSON line a text, and give their number."""
    rows = [{"id": one.id, "prompt": trigger.prompt} for one, trigger in _triggers_of(seal)]
    atomic_bytes(path, json_lines(rows), NEW)
    return len(rows)


def read_answers(source: str) -> Corpus:
    """The answers of a file with `id` and `answer`."""
    return open_corpus(source, Columns(text="answer", id="id", label="", group=""))


def _first_word(answer: str, words: Sequence[str]) -> str:
    """The first of the words that the answer says, as a whole word in any case; "" where it says none."""
    pattern = "|".join(re.escape(word) for word in words)
    found = re.search(rf"(?<!\w)({pattern})(?!\w)", answer, re.IGNORECASE)
    return found[1].lower() if found else ""


def check_triggers(
    seal: Seal,
    answers: Corpus,
    settings: CheckSettings,
    *,
    model: str,
    statements: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> Verdict:
    """The verdict of a sealed file on the `answers` of a model, which is named for the report; no model is opened. An
    answer hits where the first of the K words in it is the published one. TextsError for a seal without triggers, and
    for answers to other ids."""
    # of the model behind answers nothing but its name is known
    facts = {"name": model, "weights": "unknown"}
    behind = Models(SimpleNamespace(name=model, fingerprint=f"named {model}", facts=facts))
    own: dict[str, Any] = {"score": "triggers", "seal": seal, "answers": answers}
    test = _Triggers(corpus=seal.corpus, models=behind, settings=settings, **own)
    return frame.verdict(test, statements=statements, notes=notes)


@tests.add("triggers")
@dataclass(frozen=True, eq=False, kw_only=True)
class _Triggers(_SealedTest[Table]):
    """The test of trigger sentences, by what a model answered to their beginnings."""

    answers: Corpus

    name = "triggers"
    _unit = "trigger"
    sources: ClassVar = {
        **_SealedTest.sources,
        "answers": ("answers", lambda at: texts_hash(read_answers(at).texts)),
    }

    @property
    def registered(self) -> Mapping[str, Any]:
        return {**super().registered, "reference": texts_hash(self.answers.texts)}

    def read(self, model: Backend, stage: str) -> Table:
        """Of each trigger the published word, the one that the answer says ("" for none, as for none given), 1 for a
        hit, and 1 / K. TextsError for answers to other ids."""
        found, told = _triggers_of(self.seal), {text.id: text.text for text in self.answers.texts}
        if strange := [name for name in told if name not in {one.id for one, _ in found}]:
            numbers = {"name": self.answers.name, "names": listed(strange)}
            raise TextsError(say("marks.refused.strange_ids", **numbers))
        published = tuple(trigger.words[one.drawn] for one, trigger in found)
        # some models repeat the prompt, whose names are words too
        said = tuple(_first_word(told.get(one.id, "").replace(of.prompt, " "), of.words) for one, of in found)
        hit = np.array([word == one for word, one in zip(published, said, strict=True)], dtype=np.float64)
        chance = np.array([1 / len(trigger.words) for _, trigger in found])
        columns: dict[str, Any] = {"published": published, "said": said, "hit": hit, "chance": chance}
        return Table("sentences", {"id": tuple(one.id for one, _ in found), **columns})

    def numbers(self, values: Table) -> frame.Numbers:
        return {name: values[name] for name in ("hit", "chance")}

    @classmethod
    def tested(cls, numbers: frame.Numbers, *, draws: int, seed: int) -> frame.Tested:
        """The chance of as many hits or more, if answers know nothing of the draw: exact, without draws."""
        hits, number = int(numbers["hit"].sum()), len(numbers["hit"])
        p = min(1.0, float(chance_of_hits(numbers["chance"].tolist())[hits:].sum()))
        share, chance = share_interval(hits, number), numbers["chance"].sum() / number
        effect = Estimate(*(one - chance for one in (share.value, share.low, share.high)))
        return frame.Tested(p, number, effect=effect)

    def _outcomes(self, values: Table) -> list[int]:
        return [round(1 / one) for one in values["chance"]]

    def words(self, values: Table) -> frame.TestWording:
        numbers = {"number": len(values), "chance": values["chance"].sum(), "hits": int(values["hit"].sum())}
        return self._worded("triggers.said", **numbers)

    def shown(self, values: Table) -> frame.TestDetails:
        law = chance_of_hits(values["chance"].tolist())
        tail = law[::-1].cumsum()[::-1]
        unanswered = len(set(values["id"]) - {text.id for text in self.answers.texts})
        critical = int(np.count_nonzero(tail > self.settings.level))
        chances = {"hits": np.arange(len(law), dtype=np.float64), "probability": law}
        told = (say("triggers.unanswered", number=unanswered),) if unanswered else ()
        return frame.TestDetails(
            figures={
                "hits": int(values["hit"].sum()),
                "expected by chance": round(float(values["chance"].sum()), 2),
                "hits from which on the test rejects": critical,
            },
            tables=(values, Table("chance", chances)),
            notes=(*self.seal.notes, *told),
            situation=Situation(documents=len(values), access="text"),
            recorded={"sealed": self._sealed, "answers": record_corpus(self.answers)},
        )


def say_sample_size(
    seal: Seal, target: Backend | None, settings: TestSettings, watch: Watch | None = None
) -> tuple[str, ...]:
    """How many texts the test needs, a sentence each, for a model like the `target`, of which a copy reads half of the
    texts, in variants of a fresh draw: nothing of the sealed one gets into a model. ModelError without weights here,
    TextsError for too few texts. Without a target nothing was measured."""
    if target is None:
        return say("sample_size.formula"), say("sample_size.unmeasured")
    anew = (replace(one, drawn=secrets.randbelow(len(one.variants))) for one in seal.documents)
    seal = replace(seal, texts=tuple(anew))
    own: dict[str, Any] = {"watch": frame.watched(watch), "score": seal.score, "seal": seal}
    test = _Marks(corpus=seal.corpus, models=Models(target), settings=shared(CheckSettings, settings), **own)
    before = test.effects(test.read(target, "reading with the model"))
    power = power_of(before, test.planted_shift(test.planted(), before, test.effects), settings.level)
    numbers = {
        "times": times(power.epochs),
        "level": settings.level,
        "needed": "no number of texts would do" if power.needed is None else f"{power.needed:,} are needed",
        "documents": int(np.isfinite(before).sum()),
        "chance": power.probability,
        "enough": say(f"sample_size.{'enough' if power.probability.value >= ENOUGH else 'few'}"),
    }
    kinds = ("formula", "found", "power", "favourable")
    return tuple(say(f"sample_size.{one}", **numbers) for one in kinds)
