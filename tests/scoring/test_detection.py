"""Texts + scores + models → a Run: rows in order, one pass a view, nothing dropped in silence."""

from dataclasses import replace

import numpy as np
import pytest

from pretrace.errors import ExpressionError, ModelError, PretraceError, TableError, TextsError
from pretrace.scores import parse
from pretrace.scoring.detect import Options, _ModelScores, detect
from pretrace.scoring.plan import FittedScores, ScorePlan
from pretrace.testing import Memory, make_evidence
from pretrace.types import Corpus, Quantity, Text

WORDS = ["alpha", "Beta", "gamma", "Delta", "epsilon"]


def corpus(n=30):
    said = [" ".join(WORDS[(i * j) % 5] for j in range(1, 4 + i % 7)) for i in range(n)]
    texts = [Text(f"id{i}", text, i % 2 == 0) for i, text in enumerate(said)]
    return Corpus("made up", tuple(texts))


class Counting(Memory):
    """Remembers what it was asked."""

    def __init__(self, familiar=()):
        super().__init__(familiar)
        self.asked = []

    def run(self, batch, want, states=frozenset(), /):
        self.asked.append((len(batch), want))
        return super().run(batch, want, states)


def test_one_pass_a_view_whatever_the_number_of_scores():
    model = Counting()
    many = "loss,ppl,zlib," + ",".join(f"min_k(k=0.{k}),min_k_plus_plus(k=0.{k})" for k in range(1, 10))
    run = detect(corpus(30), model, many, Options(cache=False))
    assert sum(n for n, _ in model.asked) == 30
    assert run.matrix.shape == (30, 21)
    model.asked.clear()
    detect(corpus(30), model, many + ",lowercase")
    changed = sum(t.text.lower() != t.text for t in corpus(30).texts)
    assert sum(n for n, want in model.asked if want == Quantity.LOGP) == changed  # the rest is in the store
    assert sum(n for n, want in model.asked if want == Quantity.LOGP | Quantity.MOMENTS) == 30


def test_rows_are_the_texts_in_order_and_what_has_no_score_is_named():
    texts = list(corpus(10).texts)
    texts.insert(3, Text("empty", ""))
    texts.insert(7, Text("one", "x"))
    texts.append(Text("long", "y" * 100_000))
    run = detect(Corpus("c", tuple(texts)), Memory(), "loss,zlib")
    assert run.ids == tuple(t.id for t in texts if t.id not in ("empty", "one"))
    assert {(s.id, s.reason.split()[0]) for s in run.skipped} == {("empty", "the"), ("one", "a")}
    for text_id, value in zip(run.ids, run.column("loss"), strict=True):
        alone = detect(Corpus("c", (next(t for t in texts if t.id == text_id),)), Memory(), "loss")
        assert alone.matrix[0, 0] == value
    assert run.cut[-1] == 100_000 - 4096
    read = sum(len(t.text) for t in texts if t.id not in ("empty", "one"))
    assert run.settings["cut"] == {"texts": 1, "tokens": 95_904, "of_tokens": read - 11, "ids": ["long"]}
    assert np.isfinite(run.matrix).all()


def test_chunks_do_not_show(monkeypatch):
    every = corpus(70)  # each text twice, so that scores are equal
    whole = detect(every, Memory(), ["loss", "min_k( k = 0.2)"], Options(cache=False))
    assert whole.scores == ("loss", "min_k( k = 0.2)")
    for module in ("evidence", "detect"):
        monkeypatch.setattr(f"pretrace.scoring.{module}.CHUNK", 7)
    parts = detect(every, Memory(), "loss,min_k", Options(cache=False))
    np.testing.assert_array_equal(whole.matrix, parts.matrix)
    assert whole.heat == parts.heat


@pytest.mark.parametrize("number", [1, 5, 6, 7, 8, 30])
def test_heat_maps_are_the_ends_of_the_first_score(number):
    run = detect(corpus(number), Memory(), "min_k,loss")
    order = (-run.column("min_k")).argsort(kind="stable")
    ends = [*order[:3], *order[-3:]] if number > 6 else order
    assert [h.id for h in run.heat] == [run.ids[i] for i in ends]
    by_id = {t.id: t.text for t in corpus(30).texts}
    ranks = [order.tolist().index(run.ids.index(heat.id)) + 1 for heat in run.heat]
    notes = [heat.note.partition(" by")[0] for heat in run.heat]
    assert notes == [f"rank {rank} of {number}" for rank in ranks]
    for heat in run.heat:
        assert "".join(heat.pieces) == by_id[heat.id]
        assert heat.logp[0] is None
        assert all(value is not None and value < 0 for value in heat.logp[1:])


def test_what_is_missing_is_said_before_a_model_is_asked():
    for wanted, error, cure in (
        ("loss,ref", ModelError, "--reference-model"),
        ("dc_pdd", TableError, "pretrace count"),
        ("fsd(ppl)", ModelError, "--set-aside tuning"),
        ("na_pdd", TextsError, "--set-aside reference"),
        ("neighbor", ModelError, "--neighbors"),
    ):
        plan = ScorePlan.parse(wanted)
        with pytest.raises(error, match=cure):
            plan.require([])
        plan.require(plan.uses)
    assert ScorePlan.parse("loss,lowercase,ref,dc_pdd").passes == 3
    assert ScorePlan.parse("fsd(ppl),fsd(lowercase),loss").passes == 4
    assert ScorePlan.parse("loss,neighbor(m=7)").passes == 8
    model = Counting()
    with pytest.raises(ModelError, match="--reference-model"):
        detect(corpus(), model, "ref")
    with pytest.raises(ExpressionError, match="did you mean"):
        detect(corpus(), model, "min_q")
    assert model.asked == []


EXPRESSIONS = ["loss", "zlib", "min_k", "min_k(k=0.7)", "max_k", "min_k_plus_plus", "ppl", "surp"]


def some(lengths):
    generator = np.random.default_rng(5)
    found = []
    for i, n in enumerate(lengths):
        logp, mean, std = generator.normal(-4, 2, (3, n)).astype(np.float32)
        text = f"text {i} " * (i % 4 + 1)
        found.append(make_evidence(text, logp=logp.tolist(), mean=mean.tolist(), std=np.abs(std).tolist()))
    return found


def scored(scores, evidence):
    """The rows of these texts."""
    return _ModelScores(FittedScores(scores, {}, {}), ScorePlan.parse("loss")).read(evidence)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_together_as_alone(expression):
    evidence = some([5, 1, 17, 5, 0, 300, 17, 5, 9])
    ((name, score),) = parse(expression).items()
    alone = np.array([score(one) for one in evidence if not one.empty])
    found = scored({name: score}, evidence)
    assert [one.id for one in found.skipped] == [evidence[4].text.id]
    assert found.matrix[:, 0].tobytes() == alone.tobytes()


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
