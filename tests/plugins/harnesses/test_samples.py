"""`pretrace samples` on logs that the real lm_eval wrote here with a tiny model, and on damaged ones."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("lm_eval", reason="lm_eval is not installed (pip install 'pretrace[dev]')")

from lm_eval_logs import CHOOSING, LETTERS, WRITING, evaluated, items
from made import read_lines, written

import pretrace
from pretrace.errors import TextsError
from pretrace.plugins.harnesses.samples import (
    SamplesSettings,
    is_log,
    metric_of,
    read_log,
    samples,
)
from pretrace.runs import load, render
from pretrace.scoring.plan import Models
from pretrace.testing import Memory
from pretrace.verdicts.flag.planning import FlagSettings

PUBLISHED, HELD = items(40, 1), items(60, 2)


@pytest.fixture(scope="session")
def logs(tmp_path_factory, model_folder):
    """The folders of two evaluations: of the published items by three tasks, and of held-back items."""
    base = tmp_path_factory.mktemp("logs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datasets.config.HF_DATASETS_CACHE", base / "datasets")
        tasks = {"quiz": CHOOSING, "letters": LETTERS, "writing": WRITING}
        published = evaluated(base / "published", model_folder, PUBLISHED, tasks)
        return published, evaluated(base / "held", model_folder, HELD, {"quiz": CHOOSING})


@pytest.fixture
def ran(call):
    """Exit code and what was said of a command."""

    def made(*arguments):
        code, out, err = call(*arguments)
        return code, " ".join((out + err).split())

    return made


def test_requests_are_rebuilt_as_the_harness_made_them(logs, model_folder):
    log = read_log(str(logs[0]), task="quiz")
    assert is_log(str(logs[0]))
    assert is_log(str(log.path))
    assert not is_log(str(model_folder))
    assert (log.model, log._shots, log.filter) == (str(model_folder), 1, "none")
    assert len(log.items) == len(PUBLISHED)
    for item, doc in zip(log.items, PUBLISHED, strict=True):
        assert item.doc == doc
        assert list(item.continuations) == [f" {one}" for one in doc["choices"]]
    doc = PUBLISHED[3]
    own = f"Question: {doc['question']}\nAnswer: {doc['choices'][doc['answer']]}"
    assert log.corpus().texts[3].text == own
    assert log.corpus("question").texts[3].text == f"Question: {doc['question']}\nAnswer:"
    whole = log.corpus("prompt").texts[3].text
    assert whole.endswith(f"\n\n{own}")  # behind one example


def test_accuracies_of_the_log_are_those_of_the_harness(logs):
    (path,) = logs[0].rglob("results_*.json")
    told = json.loads(path.read_text())["results"]
    for task, metric in {"quiz": "acc", "letters": "acc", "writing": "exact_match"}.items():
        log = read_log(str(logs[0]), task=task)
        figure = np.mean([item.figures[metric] for item in log.items])
        assert figure == pytest.approx(told[task][f"{metric},{log.filter}"])


def test_letters_and_written_answers(logs):
    letters, doc = read_log(str(logs[0]), task="letters"), PUBLISHED[5]
    text = letters.corpus().texts[5].text
    assert text.endswith(f"C. {doc['choices'][2]}\nAnswer: {'ABC'[doc['answer']]}")
    writing = read_log(str(logs[0]), task="writing")
    assert writing.filter == "whole"
    assert "the figures are those of whole" in writing.notes[0]
    assert len(writing.items) == len(PUBLISHED)
    answer = doc["choices"][doc["answer"]]
    assert writing.corpus().texts[5].text == f"Question: {doc['question']}\nAnswer: {answer}"


def test_the_command(logs, tmp_path, monkeypatch, ran):
    monkeypatch.chdir(tmp_path)
    arguments = ["samples", logs[0], "--log=task=quiz", "--controls", logs[1], "--out", "OUT"]
    code, said = ran(*arguments, "--suspect-p", "0.2", "--flags-out", "FLAGS")
    verdict, flagged = load("OUT"), load("FLAGS")
    assert (code, verdict.test, verdict.outcome) == (4, "samples", "inconclusive"), said  # no --power
    assert f"Why there is no answer: {verdict.statement[:20]}" in said
    assert verdict.p == flagged.p
    column = verdict.table("items").columns
    suspect = column["suspect"] == 1
    assert np.array_equal(suspect, column["p"] <= 0.2)
    rights = column["acc"]
    assert verdict.effect.value == pytest.approx(rights[suspect].mean() - rights[~suspect].mean())
    assert verdict.effect.low < verdict.effect.value < verdict.effect.high
    (path,) = logs[0].rglob("results_*.json")
    total = json.loads(path.read_text())["results"]["quiz"]["acc,none"]
    assert verdict.figures["accuracy"]["items in all"][0] == pytest.approx(total)
    assert "does not show that training on them raised it" in verdict.trust[0]
    assert "accuracy, with its 95% interval" in render("OUT").read_text()
    assert verdict.settings["log"]["few-shot examples"] == 1


def test_items_that_were_seen_are_set_apart(logs):
    """A model to which a third of the items is familiar: those are suspect, and their accuracy stands beside."""
    log, held = read_log(str(logs[0]), task="quiz"), read_log(str(logs[1]))
    seen = [text.text for text in log.corpus().texts[:14]]
    flagging = FlagSettings(score="loss", cache=False, fdr=0.2)
    verdict, flagged = samples(
        log, held.corpus(), Models(Memory(seen)), SamplesSettings(), flagging, others=held
    )
    assert verdict.outcome == "consistent"
    rights = np.array([item.figures["acc"] for item in log.items])
    chosen = flagged.table("flags")["flagged"]
    assert chosen[:14].all()
    assert chosen[14:].sum() <= 5
    accuracy = verdict.figures["accuracy"]
    assert accuracy["suspect items"][0] == pytest.approx(rights[chosen].mean())
    assert accuracy["clean items"][0] == pytest.approx(rights[~chosen].mean())
    others = np.mean([one.figures["acc"] for one in held.items])
    assert accuracy["known non-members"][0] == pytest.approx(others)


def test_a_refused_flagging_has_no_sides(logs, tmp_path):
    """Known non-members of other words: nobody may be called suspect, and no difference is shown."""
    log = read_log(str(logs[0]), task="quiz")
    draw = np.random.default_rng(4)
    words = [f"{a}{b}" for a in ("rai", "fo", "clou", "sto") for b in "abcdefghij"]
    strange = pretrace.open_corpus([f"{i} {' '.join(draw.choice(words, 9))}" for i in range(60)])
    flagging = FlagSettings(score="loss", cache=False)
    seen = [text.text for text in log.corpus().texts]
    verdict, _ = samples(log, strange, Models(Memory(seen)), None, flagging)
    assert verdict.outcome == "inconclusive"
    assert (verdict.p, verdict.effect) == (None, None)
    assert list(verdict.figures["accuracy"]) == ["items in all"]
    assert np.isnan(verdict.table("items").columns["suspect"]).all()
    pretrace.runs.save(verdict, tmp_path / "refused")
    assert load(tmp_path / "refused").statement == verdict.statement


def rewritten(logs, folder, change):
    """A copy of the quiz's log in which each row was changed, without a results file."""
    (path,) = logs[0].rglob("samples_quiz_*.jsonl")
    return written(folder / path.name, [change(row) for row in read_lines(path)])


def older(row):
    """The form before lm-eval 0.4.3: arguments as lists, no hashes."""
    arguments = [list(one.values()) for one in row["arguments"].values()]
    return {name: value for name, value in row.items() if not name.endswith("hash")} | {
        "arguments": arguments
    }


def mended(row):
    return {**row, "arguments": json.loads(json.dumps(row["arguments"]).replace("visitor", "guest"))}


@pytest.mark.parametrize(
    ("change", "cure"),
    [
        (older, "was written by an older lm-eval, without hashes of the prompts: run the evaluation again"),
        (mended, "is not the one whose hash stands beside it"),
        (lambda row: {"text": "no sample"}, "is no sample of lm-eval"),
        (lambda row: {**row, "acc": [1, 2], "acc_norm": 7.5}, "is no figure from 0 to 1 of each item"),
    ],
)
def test_logs_that_cannot_be_read(logs, tmp_path, ran, change, cure):
    copy = rewritten(logs, tmp_path, change)
    code, said = ran("samples", copy, "--controls", logs[1], "--model", "x", "--out", tmp_path / "OUT")
    assert (code, cure in said) == (2, True)
    assert not (tmp_path / "OUT").exists()


def test_the_model_is_that_of_the_log(logs, tmp_path):
    log = read_log(str(logs[0]), task="quiz")
    config = {"model_args": "pretrained=org/name,revision=step100,dtype=float32"}
    named = replace(log, results={"model_source": "hf", "config": config})
    assert (named.model, named.revision) == ("org/name", "step100")
    assert (log.revision, log.config["output_type"]) == (None, "multiple_choice")
    for args, source in ((config["model_args"] + ",peft=lora", "hf"), ("model=gpt", "openai-completions")):
        with pytest.raises(TextsError, match=r"was made with '.*': name the model with --model"):
            _ = replace(log, results={"model_source": source, "config": {"model_args": args}}).model
    with pytest.raises(TextsError, match=r"does not say .*: name the model with --model"):
        _ = read_log(str(rewritten(logs, tmp_path, lambda row: row))).model


def test_a_metric_that_both_logs_have_is_taken(logs):
    quiz, held = read_log(str(logs[0]), task="quiz"), read_log(str(logs[1]))
    assert metric_of(quiz, held, None) == "acc"
    assert metric_of(quiz, held, "acc_norm") == "acc_norm"
    with pytest.raises(TextsError, match="those that have one are acc, acc_norm"):
        metric_of(quiz, held, "bleu")
