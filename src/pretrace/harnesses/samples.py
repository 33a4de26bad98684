"""Accuracy on items that a model seems to have seen, beside its accuracy on the others, from the log of an evaluation.

`flag` says which items are suspect: those that stand out from known non-members by a score of the model. It withholds
its answer where a control says that the two sets differ by more than training, and then there are no two sides.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.backends import open_model
from pretrace.corpora import open_corpus
from pretrace.errors import ExpressionError, TextsError
from pretrace.frequencies import Frequencies
from pretrace.harnesses.sample_logs import ItemTexts, KnownItems, SampleLog, SamplesSettings, metric_of
from pretrace.scoring.detect import detect
from pretrace.scoring.evidence import Progress
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.statistics.documents import by_document
from pretrace.statistics.intervals import score_difference, score_interval
from pretrace.types import (
    Bools,
    Control,
    Corpus,
    Doubles,
    Estimate,
    Evidence,
    Outcome,
    Quantity,
    Run,
    Situation,
    Table,
    Text,
    Trace,
    Verdict,
    View,
)
from pretrace.verdicts.flag import FlagSettings, flag, flag_run, plan

SUSPECT, CLEAN, TOTAL, KNOWN = "suspect items", "clean items", "items in all", "known non-members"
"""The sides whose accuracy stands side by side."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedSides:
    """Right and wrong of every judged item, in the flagging's order; `suspect` is None where none may be called so.

    `known` has one figure a document of known non-members that were evaluated too. `line` is the p-value up to which
    items are suspect, None where those are that were flagged.
    """

    log: SampleLog
    flagged: Verdict
    metric: str
    right: Doubles
    suspect: Bools | None
    known: Doubles | None
    line: float | None

    @classmethod
    def of(
        cls, log: SampleLog, known: KnownItems, flagged: Verdict, metric: str, line: float | None
    ) -> ComparedSides:
        figures = {item.id: item.figures[metric] for item in log.items}
        texts, others = flagged.table("flags"), flagged.table("known")
        told = flagged.outcome != "refused"
        right = np.array([figures[name] for name in texts["id"]])
        chosen = texts["p"] <= line if line is not None and told else np.ma.filled(texts["flagged"], False)
        beside = None
        if known.log is not None:
            own = {item.id: item.figures[metric] for item in known.log.items}
            values = np.array([own[name] for name in others["id"]])
            beside = by_document(values, others["document"])[1]
        return cls(log, flagged, metric, right, chosen if told else None, beside, line)

    @property
    def sides(self) -> dict[str, Doubles]:
        """One figure a document of each side that has any, by name."""
        names = np.array(self.flagged.table("flags")["document"], dtype=object)
        chosen = {TOTAL: np.ones(len(names), dtype=bool)}
        if self.suspect is not None:
            chosen |= {SUSPECT: self.suspect, CLEAN: ~self.suspect}
        found = {
            name: by_document(self.right[rows], names[rows].tolist())[1]
            for name, rows in chosen.items()
            if rows.any()
        }
        return found | ({} if self.known is None else {KNOWN: self.known})

    @property
    def difference(self) -> Estimate | None:
        """Accuracy of suspect less that of clean items; None unless there are both."""
        sides = self.sides
        return score_difference(sides[SUSPECT], sides[CLEAN]) if {SUSPECT, CLEAN} <= sides.keys() else None

    @property
    def beside(self) -> Estimate | None:
        """Accuracy of all items less that of the known non-members; None where those were not evaluated."""
        return None if self.known is None else score_difference(self.sides[TOTAL], self.known)


_READ = {
    "item": "Of each request the item itself was read, without the examples in front of it, and the right answer.",
    "question": "Of each request the item itself was read, without the examples in front of it and without an answer.",
    "prompt": "Each request was read whole, with the examples in front of the item, and the right answer.",
}
_ANSWER = (
    "The score reads the right answer too: an answer that the model finds likely for any reason makes its item both "
    "right and suspect. Compare with --part question, which leaves answers out."
)
UNIT = "of accuracy: suspect items less clean ones"
_NO_PROOF = (
    "A higher accuracy on suspect items does not show that training on them raised it: items that a model finds likely "
    "are often easier, also for a model that never saw them. Nor does an equal accuracy show that nothing was seen. To "
    "say how much training on the items brought takes the same evaluation of a model that did not see them."
)


def statement(found: ComparedSides, outcome: Outcome, accuracy: Mapping[str, Estimate]) -> str:
    """The answer in one sentence, with the accuracy of both sides where there are two."""
    task, model = found.log.task, found.flagged.model
    total = f"accuracy on all items is {_percent(accuracy[TOTAL])}"
    if outcome == "inconclusive":
        return f"Inconclusive: this log cannot say whether {model} was trained on items of {task}; {total}."
    if SUSPECT in accuracy and CLEAN in accuracy:
        suspect, clean = _percent(accuracy[SUSPECT]), _percent(accuracy[CLEAN])
        sides = ("suspect items", "clean ones")
        if found.line is not None:
            sides = (f"items whose p is at most {found.line:g}", "the others")
        total = f"accuracy is {suspect} on {sides[0]} and {clean} on {sides[1]}"
    if outcome == "nothing":
        return f"Nothing was found: no item of {task} stands out; {total}."
    return f"The predictions of {model} are consistent with training on items of {task}, or on copies of them; {total}."


def accuracies(
    found: ComparedSides, accuracy: Mapping[str, Estimate], sizes: Mapping[str, int]
) -> tuple[str, ...]:
    """The accuracy of each side in a sentence, and their differences; intervals are 95%, over documents."""
    sides = ", ".join(f"{_percent(one)} of {sizes[name]:,} {name}" for name, one in accuracy.items())
    reasons = [f"Right by {found.metric}: {sides} (95% intervals)."]
    if found.difference is not None:
        reasons.append(f"Suspect items less clean ones: {_points(found.difference)}.")
    elif found.suspect is None:
        reasons.append(
            "The flagging was refused, so no item may be called suspect, and there are no two sides."
        )
    else:
        reasons.append(f"No two sides can be compared: {int(found.suspect.sum()):,} items are suspect.")
    if found.beside is not None:
        reasons.append(f"All items less the known non-members: {_points(found.beside)}.")
    return tuple(reasons)


def assumption(found: ComparedSides) -> str:
    """What must hold for p to mean what it says."""
    return (
        f"Items of {found.log.task} that were not seen could as well have been among the known non-members "
        f"({found.flagged.figures['nonmembers']})."
    )


def compared(found: ComparedSides, settings: SamplesSettings) -> tuple[str, ...]:
    """What was read, what suspect means, and what stands side by side."""
    flagged, log = found.flagged, found.log
    read = (
        "The requests are those in the log, each checked against the hash that the harness wrote beside it. "
        f"{_READ[settings.part]} {flagged.model} scored them with {flagged.figures['score']}."
    )
    suspect = (
        f"An item is called suspect where it stands out from the known non-members ("
        f"{flagged.figures['nonmembers']}): at most "
        f"{100 * flagged.figures['fdr']:g}% of suspect items are so by chance, on average."
        if found.line is None
        else f"An item is called suspect where at most {100 * found.line:g}% of unseen items would score as high. That "
        "share of the items that were not seen is among them."
    )
    beside = f"Beside it stands the accuracy that {log.path.name} has for these items."
    return (
        read,
        f"{suspect} The others are called clean, which does not show that they were not seen.",
        beside,
    )


def trust(found: ComparedSides, settings: SamplesSettings) -> tuple[str, ...]:
    """What the comparison does not prove."""
    said = (_NO_PROOF,) if settings.part == "question" else (_NO_PROOF, _ANSWER)
    if found.beside is None:
        return said
    return (
        *said,
        f"{KNOWN.capitalize()} were evaluated in the same way. A higher accuracy on the published items is what "
        "training on them would bring, and also what easier items would bring.",
    )


def _percent(one: Estimate) -> str:
    return f"{100 * one.value:.1f}% [{100 * one.low:.1f}, {100 * one.high:.1f}]"


def _points(one: Estimate) -> str:
    return f"{100 * one.value:+.1f} percentage points [{100 * one.low:+.1f}, {100 * one.high:+.1f}]"


_OUTCOMES: Mapping[Outcome, Outcome] = {"flagged": "consistent", "set": "consistent", "none": "nothing"}


def samples(
    log: SampleLog,
    known: KnownItems,
    models: Models,
    settings: SamplesSettings | None = None,
    flagging: FlagSettings | None = None,
    *,
    progress: Progress | None = None,
) -> tuple[Verdict, Verdict]:
    """The accuracy of suspect items beside that of the others, and the flagging that tells them apart.

    The outcome is that of the flagging: "consistent" where items or the set stand out, "nothing" where neither does and
    `flagging.power` showed that a tenth of the items, if seen, would have been noticed, else "inconclusive". Errors as
    in `flag` and `ItemTexts`.
    """
    settings = settings or SamplesSettings()
    metric = metric_of([log, known.log] if known.log else [log], settings.metric)
    corpus = ItemTexts(log, settings.part, settings.group_field).corpus()
    flagged = flag(corpus, known.corpus, models, flagging, progress=progress)
    return verdict_of(
        ComparedSides.of(log, known, flagged, metric, settings.suspect_p), corpus, settings
    ), flagged


def verdict_of(found: ComparedSides, corpus: Corpus, settings: SamplesSettings) -> Verdict:
    """The result as it is written down: the flagging's answer, and the accuracy of each side."""
    flagged, task = found.flagged, found.log.task
    counts = flagged.figures["counts"]
    outcome = _OUTCOMES.get(flagged.outcome, "inconclusive")
    accuracy = {name: score_interval(values) for name, values in found.sides.items()}
    sizes = {name: len(values) for name, values in found.sides.items()}
    return Verdict(
        test="samples",
        corpus=task,
        model=flagged.model,
        outcome=outcome,
        statement=statement(found, outcome, accuracy),
        level=flagged.level,
        exact=False,
        assumption=assumption(found),
        hypothesis=f"No item of {task} was among the training texts: they and the known non-members are exchangeable.",
        statistic="the larger of a rank sum and a sum of squared log ranks, over one score an item",
        p=flagged.p,
        units=flagged.units,
        unit="item",
        question=f"Was {flagged.model} trained on items of {task}, and is it better on those?",
        compared=compared(found, settings),
        trust=trust(found, settings),
        effect=found.difference,
        effect_unit=UNIT,
        checks=flagged.checks,
        reasons=(*accuracies(found, accuracy, sizes), flagged.statement, *flagged.reasons),
        advice=flagged.advice,
        notes=(*corpus.notes, *flagged.notes),
        figures={
            "metric": found.metric,
            "accuracy": {name: [one.value, one.low, one.high] for name, one in accuracy.items()},
            "flagged items": counts["flagged"],
        },
        tables=(_items(found), _sides(accuracy, sizes)),
        skipped=flagged.skipped,
        situation=Situation(documents=flagged.units, unseen=counts["known_documents"]),
        settings=_record(found, settings),
    )


def _items(found: ComparedSides) -> Table:
    """One row an item: its document, whether it was right, score, p, q, and whether it is suspect (1), where p and
    that are known."""
    texts = found.flagged.table("flags")
    suspect = np.full(len(texts), np.nan) if found.suspect is None else found.suspect.astype(np.float64)
    numbers = {found.metric: found.right, **{name: texts[name] for name in ("score", "p", "q")}}
    return Table("items", {"item": texts["id"], "document": texts["document"], **numbers, "suspect": suspect})


def _sides(accuracy: Mapping[str, Estimate], sizes: Mapping[str, int]) -> Table:
    columns = {
        "items": np.array([float(sizes[name]) for name in accuracy]),
        "accuracy": np.array([one.value for one in accuracy.values()]),
        "low": np.array([one.low for one in accuracy.values()]),
        "high": np.array([one.high for one in accuracy.values()]),
    }
    return Table("accuracy", {"side": tuple(accuracy), **columns})


def _record(found: ComparedSides, settings: SamplesSettings) -> dict[str, Any]:
    log, flagged = found.log, dict(found.flagged.settings)
    told = (
        "model_source",
        "model_name",
        "lm_eval_version",
        "transformers_version",
        "chat_template_sha",
        "date",
    )
    chosen = {"metric": found.metric, "part": settings.part, "suspect_p": settings.suspect_p}
    return {
        **{name: value for name, value in flagged.items() if name != "texts"},
        "corpus": flagged.get("texts", {}),
        "log": {
            "task": log.task,
            "file": log.path.name,
            "filter": log.filter,
            "few-shot examples": log.shots,
            **{name: log.results[name] for name in told if log.results.get(name) is not None},
        },
        "test": {name: value for name, value in chosen.items() if value is not None},
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


_BESIDE = {
    "labelled": "is fitted on texts whose labels are known",
    "reference": "compares the model with a second one",
    "tuned": "compares the model with a tuned copy of it",
    "neighbors": "needs a model that proposes other words",
}
_ASKING = threading.Lock()
"""A model in this process reads one text at a time."""


@dataclass(frozen=True, slots=True)
class SampleReading:
    """How samples are scored: one score by expression, the model as `open_model` takes it ("" where log-probabilities
    are given), token counts for dc_pdd, and a file of known non-members ("" where they are among the samples)."""

    score: str
    model: str = ""
    counts: str = ""
    nonmembers: str = ""
    placebo: str = ""

    @property
    def plan(self) -> ScorePlan:
        """The score, parsed; ExpressionError where log-probabilities of the model are not all that it needs."""
        return _logprob_plan(self.score, counts=bool(self.counts))

    def value(self, text: str) -> float:
        """The score of a text by the model; TextsError where it has none."""
        return self._one(self.model, text)

    def placebo_value(self, text: str) -> float:
        """The same by the placebo."""
        return self._one(self.placebo, text)

    def known(self, model: str) -> dict[str, float]:
        """The scores of the known non-members in the file, by id."""
        with _ASKING:
            run = detect(_corpus(self.nonmembers), _models(model, self.counts), self.plan)
        return dict(zip(run.ids, run.matrix[:, 0].tolist(), strict=True))

    def _one(self, model: str, text: str) -> float:
        with _ASKING:
            run = detect(Corpus("sample", (Text("sample", text),)), _models(model, self.counts), self.plan)
        return float(run.matrix[0, 0])


@dataclass(frozen=True, slots=True)
class ScoredSample:
    """A sample with its score, and with that of the placebo (NaN where there is none); `known` says that the model
    cannot have seen it."""

    id: str
    text: str
    value: float
    group: str = ""
    known: bool = False
    placebo: float = math.nan


def _logprob_plan(expression: str, *, counts: bool) -> ScorePlan:
    """The plan of one score that log-probabilities are enough for; ExpressionError, by name, for any other.

    TableError for dc_pdd without `counts`.
    """
    plan = ScorePlan.parse(expression)
    names = list(plan.scores)
    if len(names) != 1:
        raise ExpressionError(f"a scorer has one score, found {', '.join(names)}: use a scorer for each.")
    missing = [said for name, said in _BESIDE.items() if name in plan.uses]
    if any(quantity & ~Quantity.LOGP for quantity in plan.needs.views.values()):
        missing.insert(0, "needs more than the log-probability of each token")
    if missing:
        raise ExpressionError(
            f"{names[0]} {missing[0]}, and a scorer in a harness has the log-probabilities of one model alone: use "
            "loss, ppl, zlib, min_k, max_k, lowercase, perturbed or dc_pdd here, or `pretrace score` on the texts."
        )
    plan.require(["counts"] if counts else [])
    return plan


def check_given(plan: ScorePlan) -> None:
    """ExpressionError for a score that cannot be had from log-probabilities which a provider gave back."""
    (name,) = plan.scores
    if "counts" in plan.uses or set(plan.needs.views) != {View()}:
        raise ExpressionError(
            f"{name} needs token ids or another form of the text, which the log-probabilities in the output do not "
            "give: name the model for pretrace to open (-S model=…)."
        )


def value_of(plan: ScorePlan, text: str, trace: Trace) -> float:
    """The score of a text from log-probabilities that are there; ExpressionError as for `check_given`."""
    check_given(plan)
    (score,) = plan.scores.values()
    return float(score(Evidence(Text("sample", text), {View(): (trace,)})))  # type: ignore[operator]


def against_known(
    samples: Sequence[ScoredSample], reading: SampleReading, *, level: float, fdr: float
) -> Verdict:
    """The test of the samples that are not `known` against those that are and those of the file, as `flag` makes it.

    TextsError where there are too few known ones, or where both sides share texts.
    """
    asked = tuple(one for one in samples if not one.known)
    others = [one for one in samples if one.known]
    if reading.nonmembers:
        others += _from_file(reading)
    if not others:
        raise TextsError(
            "there are no known non-members to compare with: name a file of them (-S nonmembers=FILE), or mark samples "
            "with metadata {'nonmember': True}."
        )
    corpus, known = _side("the samples", asked), _side("the known non-members", others)
    settings = FlagSettings(score=reading.score, level=level, fdr=fdr, cache=False)
    made = plan(corpus, known, settings)
    rows = (*asked, *others)
    placebo = np.array([one.placebo for one in rows])
    (name,) = settings.plan.scores
    run = Run(
        corpus=made.corpus.name,
        ids=tuple(text.id for text in made.corpus.texts),
        groups=tuple(text.document for text in made.corpus.texts),
        members=tuple(text.member for text in made.corpus.texts),
        tokens=np.zeros(len(rows), dtype=np.int32),
        cut=np.zeros(len(rows), dtype=np.int32),
        scores=(name,),
        matrix=np.array([[one.value] for one in rows], dtype=np.float64),
        controls=(Control(name, "placebo", placebo[:, None]),) if reading.placebo else (),
    )
    return flag_run(run, made, reading.model)


def _side(name: str, samples: Sequence[ScoredSample]) -> Corpus:
    return Corpus(name, tuple(Text(one.id, one.text, group=one.group) for one in samples))


def _from_file(reading: SampleReading) -> list[ScoredSample]:
    values = reading.known(reading.model)
    placebo = reading.known(reading.placebo) if reading.placebo else {}
    return [
        ScoredSample(
            f"{reading.nonmembers}: {one.id}",
            one.text,
            values[one.id],
            one.group,
            True,
            placebo.get(one.id, math.nan),
        )
        for one in _corpus(reading.nonmembers).texts
        if one.id in values
    ]


@cache
def _models(model: str, counts: str) -> Models:
    return Models(open_model(model), counts=Frequencies.load(Path(counts)) if counts else None)


@cache
def _corpus(path: str) -> Corpus:
    return open_corpus(path)
