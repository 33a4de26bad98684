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
from pretrace.types import Control, Corpus, Evidence, Quantity, Run, Text, Trace, Verdict, View
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
LONGEST_TOKEN = 40
"""Characters that a prompt may lack at its beginning."""


def trace_in_prompt(tokens: Sequence[tuple[str, float]], text: str) -> Trace | None:
    """The log-probabilities of the text's own tokens, in nats; None where the text is not in the prompt word for word
    (of several places the last counts). `tokens` are the pieces of the prompt with their log-probabilities; one belongs
    to the text where its first character that is no white space stands in it. A text that the prompt begins with may
    lack its first token, which no model without a start token predicts. Token ids are not known and are all 0."""
    wanted, pieces = text.strip(), [piece for piece, _ in tokens]
    prompt = "".join(pieces)
    lacking = range(1, min(len(wanted), LONGEST_TOKEN + 1))
    begin = prompt.rfind(wanted)
    if begin < 0:  # from here on: where it begins when its first token is lacking
        begin = next((-number for number in lacking if prompt.startswith(wanted[number:])), len(prompt))
    if not wanted:
        return None
    ends = np.cumsum([len(piece) for piece in pieces])
    firsts = ends - [len(piece.lstrip()) or len(piece) for piece in pieces]
    inside = (firsts >= begin) & (firsts < begin + len(wanted))
    logp = np.array([value for _, value in tokens], dtype=np.float32)[inside]
    return Trace(np.zeros(len(logp), dtype=np.int32), logp) if len(logp) else None


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
    """Test the samples against those that are known non-members and those of the file, as `flag` does. TextsError where
    they were read in different ways, for too few known ones, or where both sides share texts."""
    said: list[Any] = [(one.score.metadata or {}).get(_OWN) for one in scores]
    if not all(isinstance(own, Mapping) for own in said):
        raise TextsError(say("inspect.refused.other_scorer"))
    readings = {tuple(sorted(own["reading"].items())) for own in said}
    if len(readings) != 1:
        raise TextsError(say("inspect.refused.mixed"))
    reading = SampleReading(**dict(readings.pop()))
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

    Log-probabilities come from the output where the provider gave those of the prompt (`--prompt-logprobs 1` with
    vLLM). Otherwise pretrace opens `model` (any value of `--model`), or the evaluated one where its provider is hf or
    vllm. `nonmembers` is a file of texts of the same kind that the model cannot have seen. `placebo` is a model that
    saw none of the samples; it needs a model that pretrace opens. `part` is what is read of a sample, and `group` the
    metadata field that names its document. ExpressionError for a score that needs more than log-probabilities.
    """
    named = SampleReading(score, model, counts, nonmembers, placebo)
    plan = named.plan  # refuses before anything is generated

    async def score_sample(state: TaskState, target: Target) -> Score:
        asked, choices = state.input_text, state.output.choices if state.output else []
        text = {"input": asked, "target": target.text, "both": f"{asked}\n{target.text}"}[part]
        known = bool(state.metadata.get(NONMEMBER))
        document = str(state.metadata.get(group, "")) if group else ""
        given = choices[0].prompt_logprobs if choices else None  # where the provider gave those
        tokens = [(one.token, one.logprob) for one in given.content] if given else []
        try:
            value, blank, reading = await _read(named, plan, text, tokens)
        except TextsError as wrong:
            return Score.unscored(reason="scoring_failed", explanation=str(wrong))
        own = {"text": text, "known": known, "group": document, "reading": asdict(reading)}
        own |= {"placebo": blank} if placebo else {}
        return Score(value=value, metadata={_OWN: own})

    return score_sample


async def _read(
    named: SampleReading, plan: ScorePlan, text: str, given: Sequence[tuple[str, float]]
) -> tuple[float, float, SampleReading]:
    """The score of a text, that of the placebo (NaN without one), and how they were had; TextsError where the text has
    none."""
    if given and not (named.model or named.nonmembers or named.placebo):
        ((name, score),) = plan.scores.items()
        if "counts" in plan.uses or set(plan.needs.views) != {View()}:
            raise ExpressionError(say("inspect.refused.needs_ids", name=name))
        trace = trace_in_prompt(given, text)
        if trace is None:
            raise TextsError(say("inspect.refused.not_in_prompt"))
        evidence = Evidence(Text("sample", text), {View(): (trace,)})
        return float(score(evidence)), math.nan, named  # type: ignore[operator]
    reading = replace(named, model=named.model or opened_by(get_model()))
    corpus = Corpus("sample", (Text("sample", text),))
    found = [
        (await anyio.to_thread.run_sync(reading.values, corpus, model))["sample"] if model else math.nan
        for model in (reading.model, named.placebo)
    ]
    return found[0], found[1], reading


def opened_by(model: Model) -> str:
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
