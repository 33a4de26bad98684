"""Scores over many texts at once are those of each text, to the last bit."""

from dataclasses import replace

import numpy as np
import pytest

from pretrace.errors import PretraceError
from pretrace.scores import parse
from pretrace.scoring.detect import ModelScores
from pretrace.scoring.plan import FittedScores, ScorePlan
from pretrace.testing import make_evidence, make_trace
from pretrace.types import Stackable, Text

EXPRESSIONS = ["loss", "zlib", "min_k", "min_k(k=0.7)", "max_k", "min_k_plus_plus", "ppl", "surp"]


def some(lengths, *, moments=True):
    generator = np.random.default_rng(5)
    found = []
    for i, n in enumerate(lengths):
        logp, mean, std = generator.normal(-4, 2, (3, n)).astype(np.float32)
        more = {"mean": mean.tolist(), "std": np.abs(std).tolist()} if moments else {}
        found.append(make_evidence(f"text {i} " * (i % 4 + 1), logp=logp.tolist(), **more))
    return found


def scored(scores, evidence):
    """The rows of these texts."""
    return ModelScores(FittedScores(scores, {}, {}), ScorePlan.parse("loss")).read(evidence)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_together_as_alone(expression):
    evidence = some([5, 1, 17, 5, 0, 300, 17, 5, 9])
    ((name, score),) = parse(expression).items()
    alone = np.array([score(one) for one in evidence if not one.empty])
    found = scored({name: score}, evidence)
    assert [one.id for one in found.skipped] == [evidence[4].text.id]
    assert found.matrix[:, 0].tobytes() == alone.tobytes()


def test_stacks_are_used_where_a_score_takes_them():
    class Counting:
        needs = parse("loss")["loss"].needs
        stacks: list[int] = []  # noqa: RUF012 - of this test alone

        def __call__(self, evidence, /):
            raise AssertionError("a text alone")

        def over(self, traces, texts, /):
            self.stacks.append(len(traces.logp))
            return traces.logp.sum(axis=-1, dtype=np.float64)

    score = Counting()
    assert isinstance(score, Stackable)
    scored({"counting": score}, some([4, 4, 4, 7, 0], moments=False))
    assert Counting.stacks == [3, 1]


def test_a_number_that_is_none_is_told_with_its_text():
    class Wrong:
        needs = parse("loss")["loss"].needs

        def __call__(self, evidence, /):
            return float("inf")

        def over(self, traces, texts, /):
            return np.array([float("inf") if text.id == "b" else 0.0 for text in texts])

    evidence = [replace(make_evidence(logp=[-1.0]), text=Text(name, name)) for name in "ab"]
    with pytest.raises(PretraceError, match="gave inf for text 'b'"):
        scored({"wrong": Wrong()}, evidence)


@pytest.mark.parametrize("sizes", [(40,), (3, 30, 7), (1,) * 40])
def test_texts_that_are_offered_together_are_kept_as_one_by_one(sizes):
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 12, 40) / 4.0  # with ties
    texts, traces = [Text(str(i), "") for i in range(40)], [make_trace([0.0])] * 40
    together, alone = scored({}, []), scored({}, [])
    at = 0
    for size in sizes:
        some = slice(at, at := at + size)
        together.rank(scores[some], texts[some], traces[some])
    for score, text, trace in zip(scores.tolist(), texts, traces, strict=True):
        alone.rank(np.array([score]), (text,), (trace,))
    assert [one[:2] for one in together.ends] == [one[:2] for one in alone.ends]
    assert together.seen == alone.seen == 40
