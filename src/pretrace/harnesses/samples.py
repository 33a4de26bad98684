"""Accuracy on items that a model seems to have seen, beside its accuracy on the others, from the log of an evaluation.

`flag` says which items are suspect: those that stand out from known non-members by a score of the model. It withholds
its answer where a control says that the two sets differ by more than training, and then there are no two sides. The
sentences stand in `verdicts/words.toml`.
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
from pretrace.harnesses.sample_logs import KnownItems, SampleLog, SamplesSettings, metric_of
from pretrace.scoring.detect import detect
from pretrace.scoring.evidence import Progress
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.statistics.documents import by_document
from pretrace.statistics.intervals import score_difference, score_interval
from pretrace.types import (
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
from pretrace.verdicts.flag import FlagSettings, flag, flag_scored, plan
from pretrace.verdicts.wording import fill, say, sentences_of

SUSPECT, CLEAN, TOTAL, KNOWN = "suspect items", "clean items", "items in all", "known non-members"
"""The sides whose accuracy stands side by side."""
_OUTCOMES: Mapping[Outcome, Outcome] = {"flagged": "consistent", "set": "consistent", "none": "nothing"}
_LOGGED = (
    "model_source",
    "model_name",
    "lm_eval_version",
    "transformers_version",
    "chat_template_sha",
    "date",
)


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
    in `flag` and `SampleLog.corpus`.
    """
    settings = settings or SamplesSettings()
    metric = metric_of([log, known.log] if known.log else [log], settings.metric)
    corpus = log.corpus(settings.part, settings.group_field)
    flagged = flag(corpus, known.corpus, models, flagging, progress=progress)
    return _verdict(log, known, flagged, metric, settings, corpus.notes), flagged


def _verdict(
    log: SampleLog,
    known: KnownItems,
    flagged: Verdict,
    metric: str,
    settings: SamplesSettings,
    notes: tuple[str, ...],
) -> Verdict:
    """The flagging's answer, and the accuracy of each side, over documents."""
    texts, line = flagged.table("flags"), settings.suspect_p
    right = _figures(log, metric, texts["id"])
    chosen = {TOTAL: np.ones(len(texts), dtype=bool)}
    if flagged.outcome != "refused":
        suspect = texts["p"] <= line if line is not None else np.ma.filled(texts["flagged"], False)
        chosen |= {SUSPECT: suspect, CLEAN: ~suspect}
    documents = np.array(texts["document"], dtype=object)
    sides = {
        name: by_document(right[rows], documents[rows].tolist())[1]
        for name, rows in chosen.items()
        if rows.any()
    }
    if known.log is not None:
        others = flagged.table("known")
        sides[KNOWN] = by_document(_figures(known.log, metric, others["id"]), others["document"])[1]
    accuracy = {name: score_interval(values) for name, values in sides.items()}
    two = {SUSPECT, CLEAN} <= sides.keys()
    effect = score_difference(sides[SUSPECT], sides[CLEAN]) if two else None
    outcome, counts = _OUTCOMES.get(flagged.outcome, "inconclusive"), flagged.figures["counts"]
    numbers = {name: flagged.figures[name] for name in ("nonmembers", "score")} | {
        "task": log.task,
        "model": flagged.model,
        "file": log.path.name,
        "metric": metric,
        "share": f"{100 * (flagged.figures['fdr'] if line is None else line):g}%",
    }
    at_line = "line" if line is not None else "flagged"
    rates = {name: _percent(one) for name, one in accuracy.items()}
    each = ", ".join(f"{rate} of {len(sides[name]):,} {name}" for name, rate in rates.items())
    reasons = [say("samples.right", **numbers, sides=each)]
    if effect is not None:
        reasons.append(say("samples.difference", points=_points(effect)))
    else:
        number = int(chosen[SUSPECT].sum()) if SUSPECT in chosen else None
        reasons.append(say("samples.refused" if number is None else "samples.one_side", number=number))
    if KNOWN in sides:
        reasons.append(say("samples.beside", points=_points(score_difference(sides[TOTAL], sides[KNOWN]))))
    shown = {"line": line, "all": rates[TOTAL], "suspect": rates.get(SUSPECT), "clean": rates.get(CLEAN)}
    total = say(f"samples.sides.{at_line if two and outcome != 'inconclusive' else 'all'}", **shown)
    trust = ("no_proof", *(("answer",) * (settings.part != "question")), *(("known",) * (KNOWN in sides)))
    said: dict[str, Any] = fill(sentences_of("samples.said"), **numbers)
    compared = [say(f"samples.{one}", **numbers) for one in ("requests", f"read.{settings.part}", "scored")]
    ends = np.array([[one.value, one.low, one.high] for one in accuracy.values()]).T
    table = dict(zip(("accuracy", "low", "high"), ends, strict=True))
    table = {"items": np.array([float(len(one)) for one in sides.values()]), **table}
    marked = chosen[SUSPECT].astype(np.float64) if SUSPECT in chosen else np.full(len(texts), np.nan)
    items = {metric: right, **{name: texts[name] for name in ("score", "p", "q")}, "suspect": marked}
    return Verdict(
        test="samples",
        corpus=log.task,
        model=flagged.model,
        outcome=outcome,
        statement=say(f"samples.statement.{outcome}", **numbers, total=total),
        level=flagged.level,
        exact=False,
        p=flagged.p,
        units=flagged.units,
        unit="item",
        compared=(" ".join(compared), *(say(f"samples.{one}", **numbers) for one in (at_line, "stands"))),
        trust=tuple(say(f"samples.trust.{one}") for one in trust),
        effect=effect,
        checks=flagged.checks,
        reasons=(*reasons, flagged.statement, *flagged.reasons),
        advice=flagged.advice,
        notes=(*notes, *flagged.notes),
        figures={
            "metric": metric,
            "accuracy": {name: [one.value, one.low, one.high] for name, one in accuracy.items()},
            "flagged items": counts["flagged"],
        },
        tables=(
            Table("items", {"item": texts["id"], "document": texts["document"], **items}),
            Table("accuracy", {"side": tuple(sides), **table}),
        ),
        skipped=flagged.skipped,
        situation=Situation(documents=flagged.units, unseen=counts["known_documents"]),
        settings=_record(log, flagged.settings, {"metric": metric, "part": settings.part, "suspect_p": line}),
        **said,
    )


def _figures(log: SampleLog, metric: str, ids: Sequence[str]) -> Doubles:
    """The metric of these items."""
    found = {item.id: item.figures[metric] for item in log.items}
    return np.array([found[name] for name in ids])


def _percent(one: Estimate) -> str:
    return f"{100 * one.value:.1f}% [{100 * one.low:.1f}, {100 * one.high:.1f}]"


def _points(one: Estimate) -> str:
    return f"{100 * one.value:+.1f} percentage points [{100 * one.low:+.1f}, {100 * one.high:+.1f}]"


def _record(log: SampleLog, flagged: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What the flagging recorded, with the log in the place of its texts."""
    return {
        **{name: value for name, value in flagged.items() if name != "texts"},
        "corpus": flagged.get("texts", {}),
        "log": {
            "task": log.task,
            "file": log.path.name,
            "filter": log.filter,
            "few-shot examples": log.shots,
            **{name: log.results[name] for name in _LOGGED if log.results.get(name) is not None},
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

    def value(self, text: str, model: str = "") -> float:
        """The score of a text by the model, or another one; TextsError where it has none."""
        return self.values(Corpus("sample", (Text("sample", text),)), model or self.model)["sample"]

    def values(self, corpus: Corpus, model: str) -> dict[str, float]:
        """The scores of texts by a model, by id."""
        with _ASKING:
            run = detect(corpus, _models(model, self.counts), self.plan)
        return dict(zip(run.ids, run.matrix[:, 0].tolist(), strict=True))


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
    """The score of a text from log-probabilities that are there, as `check_given` allows."""
    (score,) = plan.scores.values()
    return float(score(Evidence(Text("sample", text), {View(): (trace,)})))  # type: ignore[operator]


def against_known(
    samples: Sequence[ScoredSample], reading: SampleReading, *, level: float, fdr: float
) -> Verdict:
    """The test of the samples that are not `known` against those that are and those of the file, as `flag` makes it.

    TextsError where there are too few known ones, or where both sides share texts.
    """
    asked = [one for one in samples if not one.known]
    others = [one for one in samples if one.known]
    if reading.nonmembers:
        file = _corpus(reading.nonmembers)
        values = reading.values(file, reading.model)
        placebos = reading.values(file, reading.placebo) if reading.placebo else {}
        others += [
            ScoredSample(
                f"{reading.nonmembers}: {one.id}",
                one.text,
                values[one.id],
                one.group,
                True,
                placebos.get(one.id, math.nan),
            )
            for one in file.texts
            if one.id in values
        ]
    if not others:
        raise TextsError(
            "there are no known non-members to compare with: name a file of them (-S nonmembers=FILE), or mark samples "
            "with metadata {'nonmember': True}."
        )
    corpus, known = (
        Corpus(name, tuple(Text(one.id, one.text, group=one.group) for one in side))
        for name, side in (("the samples", asked), ("the known non-members", others))
    )
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
    return flag_scored(run, made, settings, corpus=corpus, known=known, model=reading.model)


@cache
def _models(model: str, counts: str) -> Models:
    return Models(open_model(model), counts=Frequencies.load(Path(counts)) if counts else None)


@cache
def _corpus(path: str) -> Corpus:
    return open_corpus(path)
