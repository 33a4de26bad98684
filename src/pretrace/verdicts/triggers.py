"""Trigger sentences: whether a model that gives text alone ends them with the word that was published."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pretrace.corpora import Columns, open_corpus
from pretrace.errors import TextsError
from pretrace.results.atomic import atomic_bytes
from pretrace.results.output_checks import NEW
from pretrace.results.rounding import listed
from pretrace.scoring.provenance import record_corpus
from pretrace.statistics.intervals import share_interval
from pretrace.statistics.ranks import chance_of_hits
from pretrace.types import Corpus, Doubles, Estimate, Situation, Table, Verdict
from pretrace.verdicts.draws import TextsSketch
from pretrace.verdicts.frame import TestDetails, Tested, TestWording, build_verdict
from pretrace.verdicts.marking.sealed import MarkedText, Seal
from pretrace.verdicts.marking.variants import Trigger
from pretrace.verdicts.marks import (
    ASSUMPTION,
    DECIDED,
    DRAW,
    KNOWN,
    OLDER,
    TRIES,
    CheckSettings,
    earlier_checks,
    enough_check,
    model_day,
    older_check,
    seal_check,
    time_note,
    tries_check,
)
from pretrace.verdicts.record import record
from pretrace.verdicts.register import RegisterEntry


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
    words = TestWording(
        unit="sentence",
        read="text",
        of=of,
        question=f"Was {model} trained on the published texts of “{seal.name}”?",
        compared=(f"{_ADDED} {DECIDED} {time_note(seal)}", DRAW, _ASKED),
        hypothesis="The answers do not depend on which words were drawn and published.",
        assumption=ASSUMPTION,
        statistic="the number of answers whose first word out of the K is the published one",
        effect_unit="of the sentences more than by chance",
        exact=False,
        trust=(_TRUST.format(number=number, expected=chance, hits=hits.number), KNOWN),
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


_ADDED = "Before publication one sentence was added to each text, which may end with one of several words."
_ASKED = (
    "The model was given the beginning of each sentence. A model that was trained on the texts ends it with the "
    "published word more often than the lot allows."
)
_TRUST = (
    "A model that was not trained on the published texts cannot know what the lot decided. Of {number:,} sentences it "
    "ends about {expected:.1f} with the published word, by chance; {hits:,} were found."
)
