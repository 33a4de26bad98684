"""`evaluate --labels`: members and non-members by what a scan found, in one piece and in shards."""

import json

import numpy as np
import pytest
from made import written

from pretrace.corpora import open_stream
from pretrace.errors import TextsError
from pretrace.plugins.scan.result import LabelledStream
from pretrace.runs import load_run
from pretrace.statistics.roc import auc

COPIES = (1, 1, 2, 2, 4, 4, 8, 8)


@pytest.fixture
def scanned(tmp_path, command):
    """Twenty texts: 8 stand in the corpus, 1 to 8 times, 10 do not, one does by half, and one is too short."""
    words = [f"w{i * 104729 % 99991:x}" for i in range(20 * 70)]
    texts = [" ".join(words[70 * i : 70 * i + 70]) for i in range(19)] + ["short"]
    rows = [{"id": f"t{i}", "text": one, "label": 1, "group": f"g{i}"} for i, one in enumerate(texts)]
    mine = written(tmp_path / "texts.jsonl", rows)
    corpus = [texts[i] + f" copy {k}" for i, number in enumerate(COPIES) for k in range(number)]
    corpus = written(tmp_path / "corpus.jsonl", [*corpus, f"said: {texts[18][:100]} and so on"])
    code, said = command("scan", mine, "--corpus", corpus, "--out", tmp_path / "FOUND")
    assert code == 3, said
    return tmp_path


def evaluate(place, model, out, *more):
    how = ("--scores=loss,zlib", "--labels", place / "FOUND", "--measuring=resamples=100")
    return ("evaluate", place / "texts.jsonl", "--model", model, *how, "--out", place / out, *more)


def test_labels_and_copies_come_from_the_scan(scanned, model_folder, command):
    code, said = command(*evaluate(scanned, model_folder, "RUN"))
    assert code == 0, said
    run = load_run(scanned / "RUN")
    assert run.members == (True,) * 8 + (False,) * 10
    assert run.copies.tolist() == [*COPIES, *[0] * 10]
    assert "copies" in (scanned / "RUN" / "scores.csv").read_text(encoding="utf-8").splitlines()[0]
    found = {(one.score, one.least, one.most): one for one in run.evaluation.by_copies}
    assert {key[1:] for key in found} == {(1, 1), (2, 2), (3, 4), (5, 8)}
    members, copies, loss = np.array(run.members), run.copies, run.column("loss")
    for least, most in ((1, 1), (3, 4), (5, 8)):
        here = ~members | (copies >= least) & (copies <= most)
        assert found["loss", least, most].auc.value == pytest.approx(auc(loss[here], members[here]))
        assert found["loss", least, most].members == 2
    page = " ".join((scanned / "RUN" / "report.html").read_text(encoding="utf-8").split())
    assert "AUC by the number of copies" in page
    assert "5 to 8 copies" in page
    assert "2 texts are neither and were left out" in said + page
    assert run.settings["labels"]["scan"] == str(scanned / "FOUND")


def test_in_shards_and_merged_the_evaluation_is_the_same(scanned, model_folder, command, monkeypatch):
    assert command(*evaluate(scanned, model_folder, "RUN"))[0] == 0
    monkeypatch.setattr("pretrace.scoring.parts.SHARD", 5)
    for part in ("1/2", "2/2"):
        code, said = command(*evaluate(scanned, model_folder, "PARTS", "--shard", part))
        assert code == 0, said
    code, said = command("runs", "merge", scanned / "PARTS")
    assert code == 0, said
    runs = [load_run(scanned / name) for name in ("RUN", "PARTS")]
    whole, merged = (
        {(one.score, one.least, one.members): one.auc.value for one in run.evaluation.by_copies}
        for run in runs
    )
    assert merged == pytest.approx(whole)
    copies = [dict(zip(run.ids, run.copies.tolist(), strict=True)) for run in runs]
    assert copies[0] == copies[1]


def test_labels_are_refused_where_they_would_mislead(scanned, model_folder, command):
    def refused(*words):
        code, said = command(*words)
        assert code == 2
        assert not (scanned / "X").exists()
        return said

    both = evaluate(scanned, model_folder, "X", "--columns=label=label")
    assert "--labels and --columns label both give the labels" in refused(*both)
    rows = [json.loads(line) for line in (scanned / "texts.jsonl").read_text(encoding="utf-8").splitlines()]
    written(scanned / "texts.jsonl", [rows[0] | {"text": "changed"}, *rows[1:]])
    assert "'t0' of" in refused(*evaluate(scanned, model_folder, "X"))
    written(scanned / "texts.jsonl", [*rows, rows[0] | {"id": "new"}])
    assert "did not look for the text 'new'" in refused(*evaluate(scanned, model_folder, "X"))
    assert "holds no result of a scan" in refused(
        *evaluate(scanned, model_folder, "X", "--labels", scanned / "texts.jsonl")
    )


def test_a_scan_that_could_not_read_all_gives_no_labels(scanned, command):
    (scanned / "bad.jsonl.gz").write_bytes(b"no gzip at all")
    out = scanned / "PART"
    corpus = ("--corpus", scanned / "corpus.jsonl", "--corpus", scanned / "bad.jsonl.gz")
    assert command("scan", scanned / "texts.jsonl", *corpus, "--out", out)[0] == 3
    with pytest.raises(TextsError, match=r"could not read .*bad\.jsonl\.gz"):
        LabelledStream(open_stream(scanned / "texts.jsonl"), out)
