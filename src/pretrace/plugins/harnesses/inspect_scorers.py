"""Scorers and a metric for inspect_ai, found there as `pretrace/loss`, `pretrace/min_k`, …

The value of a sample is a membership score of its text: higher means more likely seen. One sample proves nothing; the
metric `contamination` tests all samples together against known non-members.
"""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from logging import getLogger
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pretrace.backends import open_model
from pretrace.corpora import open_corpus
from pretrace.errors import ExpressionError, MissingPackageError, ModelError, PretraceError, TextsError
from pretrace.frequencies import Frequencies
from pretrace.results.wording import say
from pretrace.scores import scores as registered
from pretrace.scoring.detect import detect
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.types import Control, Corpus, Quantity, Run, Text, Verdict
from pretrace.verdicts.flag.flag import flag_run, set_test
from pretrace.verdicts.flag.planning import FlagSettings, plan

try:
    import anyio.to_thread
    from inspect_ai.model import Model, get_model
    from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, mean, metric, scorer
    from inspect_ai.solver import TaskState
except ImportError as missing:
    raise MissingPackageError("inspect-ai", "a scorer for inspect_ai") from missing

_BESIDE = {"labelled", "reference", "tuned", "neighbors"}
"""What a score may use that no scorer has."""
_ASKING = threading.Lock()
"""A model in this process reads one text at a time."""


@dataclass(frozen=True, slots=True)
class _SampleReading:
    """How samples are scored: one score by expression, the model as `open_model` takes it, token counts for dc_pdd, and
    a file of known non-members ("" where they are among the samples)."""

    score: str
    model: str = ""
    counts: str = ""
    nonmembers: str = ""
    placebo: str = ""

    @property
    def plan(self) -> ScorePlan:
        """The score, parsed; ExpressionError, by name, for one that log-probabilities of the model are not enough for,
        TableError for dc_pdd without `counts`."""
        plan = ScorePlan.parse(self.score)
        names = list(plan.scores)
        if len(names) != 1:
            raise ExpressionError(f"a scorer has one score, found {', '.join(names)}: use a scorer for each.")
        if _BESIDE & set(plan.uses) or any(one & ~Quantity.LOGP for one in plan.needs.views.values()):
            raise ExpressionError(say("inspect.refused.needs_more", name=names[0]))
        plan.require(["counts"] if self.counts else [])
        return plan

    def values(self, corpus: Corpus, model: str) -> dict[str, float]:
        """The scores of texts by a model, by id."""
        with _ASKING:
            run = detect(corpus, _models(model, self.counts), self.plan)
        return dict(zip(run.ids, run.matrix[:, 0].tolist(), strict=True))


@cache
def _models(model: str, counts: str) -> Models:
    return Models(open_model(model), counts=Frequencies.load(Path(counts)) if counts else None)


_open_once = cache(open_corpus)

Part = Literal["input", "target", "both"]
NONMEMBER = "nonmember"
"""The metadata of a sample that is a known non-member: `Sample(…, metadata={"nonmember": True})`."""
_OWN = "pretrace"
_log = getLogger(__name__)


@metric
def contamination(level: float = 0.05, fdr: float = 0.05) -> Metric:
    """Do the samples as a whole stand out from known non-members? The figures of `pretrace flag`, with its controls.

    `answer` is 1 where something stands out, 0 where nothing does, NaN where the test gives no answer. `p` is the
    p-value of the set; `above` samples lie above the line that `expected` of them would be above by chance;
    `flagged` stand out one by one at the rate `fdr`. They are NaN, and `withheld` is 1, where a control tells the two
    sets apart (`words_auc`, `length_auc`, `placebo_auc`; 0.5 is chance) or where they cannot be compared; the log
    says why. A small p is consistent with training on some of the samples, or on copies of them. It is no proof.
    """

    def compute(scores: list[SampleScore]) -> Value:
        if not scores:
            return _figures(None)
        try:
            found = _tested(scores, level=level, fdr=fdr)
        except PretraceError as wrong:
            _warn(f"contamination is withheld: {wrong}")
            return _figures(None)
        if found.outcome == "missed":  # without figures, which change while samples come in
            _warn(f"{found.figures['score']}: {say('inspect.missed')}")
        elif found.outcome == "refused":
            failed = [f"{check.title}: no" for check in found.checks if check.status == "failed"]
            test = set_test(found)
            why = "; ".join(failed) or (test.withheld if test else "")
            _warn(f"{found.figures['score']}: contamination is withheld: {why}")
        return _figures(found)

    return compute


@cache
def _warn(words: str) -> None:
    """Say it once: inspect_ai computes a metric again and again while samples come in."""
    _log.warning("pretrace: %s", words)


def _tested(scores: Sequence[SampleScore], *, level: float, fdr: float) -> Verdict:
    """Test the samples against those that are known non-members and those of the file, as `flag` does. TextsError for
    too few known ones, or where both sides share texts."""
    said: list[Any] = [(one.score.metadata or {}).get(_OWN) for one in scores]
    if not all(isinstance(own, Mapping) for own in said):
        raise TextsError(say("inspect.refused.other_scorer"))
    reading = _SampleReading(**said[0]["reading"])
    sides: tuple[list[Text], list[Text]] = [], []
    values: tuple[list[Any], list[Any]] = ([], [])  # of each text that of the model and that of the placebo
    for one, own in zip(scores, said, strict=True):
        sides[own["known"]].append(Text(str(one.sample_id), own["text"], group=own["group"]))
        values[own["known"]].append((one.score.as_float(), own.get("placebo", math.nan)))
    if reading.nonmembers:
        file, place = _open_once(reading.nonmembers), reading.nonmembers
        found = reading.values(file, reading.model)
        blank = reading.values(file, reading.placebo) if reading.placebo else {}
        for text in (text for text in file.texts if text.id in found):
            sides[1].append(Text(f"{place}: {text.id}", text.text, group=text.group))
            values[1].append((found[text.id], blank.get(text.id, math.nan)))
    if not sides[1]:
        raise TextsError(say("inspect.refused.no_known"))
    asked, known = Corpus("the samples", tuple(sides[0])), Corpus("the known non-members", tuple(sides[1]))
    settings = FlagSettings(score=reading.score, level=level, fdr=fdr, cache=False)
    made = plan(asked, known, settings)
    texts, table = made.both.corpus.texts, np.array([*values[0], *values[1]], dtype=np.float64)
    (name,) = settings.plan.scores
    run = Run(
        corpus=made.both.name,
        ids=tuple(text.id for text in texts),
        groups=tuple(text.document for text in texts),
        members=tuple(text.member for text in texts),
        tokens=np.zeros(len(texts), dtype=np.int32),
        cut=np.zeros(len(texts), dtype=np.int32),
        scores=(name,),
        matrix=table[:, :1],
        controls=(Control(name, "placebo", table[:, 1:]),) if reading.placebo else (),
    )
    return flag_run(run, made, reading.model)


def _figures(found: Verdict | None) -> dict[str, float | int]:
    withheld = found is None or found.outcome == "refused"
    test = set_test(found) if found and not withheld else None
    counts = found.figures["counts"] if found else {}
    auc = {one.name: one.figures["auc"][0] for one in (found.checks if found else ()) if "auc" in one.figures}
    return {
        "answer": 1 if found and found.outcome in ("flagged", "set") else math.nan,
        "p": math.nan if test is None or test.p is None else test.p,
        **{name: math.nan if test is None else getattr(test, name) for name in ("above", "expected")},
        "flagged": math.nan if withheld else counts["flagged_documents"],
        "withheld": int(withheld),
        "samples": counts.get("documents", math.nan),
        "nonmembers": counts.get("known_documents", math.nan),
        **{f"{name}_auc": auc.get(name, math.nan) for name in ("words", "length", "placebo")},
    }


@scorer(metrics=[mean(), contamination()])
def membership(  # noqa: PLR0913 (each is what -S sets of a scorer)
    score: str = "min_k",
    model: str = "",
    nonmembers: str = "",
    placebo: str = "",
    counts: str = "",
    part: Part = "input",
    group: str = "",
) -> Scorer:
    """A membership score of each sample, by an expression such as `min_k(k=0.1)`; higher means more likely seen.

    Pretrace opens `model` (any value of `--model`), or the evaluated one where its provider is hf or vllm. `nonmembers`
    is a file of texts of the same kind that the model cannot have seen. `placebo` is a model that saw none of the
    samples. `part` is what is read of a sample, and `group` the metadata field that names its document. ExpressionError
    for a score that needs more than log-probabilities.
    """
    named = _SampleReading(score, model, counts, nonmembers, placebo)
    _ = named.plan  # refuses before anything is generated

    async def score_sample(state: TaskState, target: Target) -> Score:
        asked = state.input_text
        text = {"input": asked, "target": target.text, "both": f"{asked}\n{target.text}"}[part]
        reading = replace(named, model=named.model or _opened_by(get_model()))
        corpus = Corpus("sample", (Text("sample", text),))

        async def value_of(model: str) -> float:
            return (await anyio.to_thread.run_sync(reading.values, corpus, model))["sample"]

        own = {"text": text, "known": bool(state.metadata.get(NONMEMBER)), "reading": asdict(reading)}
        own["group"] = str(state.metadata.get(group, "")) if group else ""
        try:
            value = await value_of(reading.model)
            own |= {"placebo": await value_of(placebo)} if placebo else {}
        except TextsError as wrong:
            return Score.unscored(reason="scoring_failed", explanation=str(wrong))
        return Score(value=value, metadata={_OWN: own})

    return score_sample


def _opened_by(model: Model) -> str:
    """How pretrace opens the evaluated model; ModelError where it has to be named."""
    provider, _, name = str(model).partition("/")
    if provider == "hf":
        return str(model.model_args.get("model_path") or name)
    url = getattr(model.api, "base_url", None)
    if provider == "vllm" and url:
        return f"vllm:{str(url).rstrip('/').removesuffix('/v1')}#{name}"
    raise ModelError(say("inspect.refused.other_provider", model=model))


def _named(name: str) -> Any:
    """The scorer of one registered score; what that score takes is given to the scorer."""

    def scorer_of_score(**given: Any) -> Scorer:
        own = {key: given.pop(key) for key in inspect.signature(membership).parameters if key in given}
        written = ", ".join(f"{key}={value!r}" for key, value in given.items())
        return membership(f"{name}({written})" if written else name, **own)

    scorer_of_score.__name__ = scorer_of_score.__qualname__ = name
    scorer_of_score.__doc__ = f"{registered.summary(name)} As `membership`, with the parameters of {name}."
    return scorer(metrics=[mean(), contamination()], name=name)(scorer_of_score)


SCORERS = {name: _named(name) for name in registered}
"""A scorer for each score by name; those that need more than log-probabilities refuse when they are made."""
