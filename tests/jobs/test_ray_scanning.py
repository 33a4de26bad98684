"""`scan --engine ray` on a real Ray gives the result of this process, to the bit."""

import json

import numpy as np
from tiny import MORE_WORDS

from pretrace.cli import _called
from pretrace.runs import load_verdict


def test_scanned_on_ray(ray, sentences, tmp_path):
    # without controls, a text is found by 300 letters that stand in no other document
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(MORE_WORDS, 160)) for _ in range(12)]
    rows = [json.dumps({"id": f"t{i}", "text": text}) for i, text in enumerate(texts)]
    (tmp_path / "texts.jsonl").write_text("\n".join(rows), encoding="utf-8")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for k in range(4):
        held = [*texts[k : k + 3], *(f"{i} {sentences[i % 6]} {i}" for i in range(50))]
        lines = [json.dumps({"id": f"{k}-{i}", "text": text}) for i, text in enumerate(held)]
        (corpus / f"c{k}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (corpus / "c4.jsonl.gz").write_bytes(b"no gzip")
    command = ["scan", str(tmp_path / "texts.jsonl"), "--corpus", str(corpus), "--out"]
    for name, more in (("HERE", []), ("RAY", ["--engine", "ray", "--workers", "2"])):
        code, said = _called([*command, str(tmp_path / name), *more])
        assert code == 3, said
    here, there = load_verdict(tmp_path / "HERE"), load_verdict(tmp_path / "RAY")
    assert (here.statement, here.reasons, here.figures) == (there.statement, there.reasons, there.figures)
    for name in ("texts", "hits", "marked"):
        file = f"{name}.csv"
        assert (tmp_path / "HERE" / file).read_bytes() == (tmp_path / "RAY" / file).read_bytes()


def test_two_ways_to_divide_the_work_are_refused(tmp_path):
    command = ["scan", "texts.jsonl", "--corpus", str(tmp_path), "--out", str(tmp_path / "X")]
    for more, words in (
        (["--engine", "ray", "--shard", "1/2"], "--shard divides the files by hand"),
        (["--address", "auto"], "--address has no use without --engine ray"),
    ):
        code, said = _called([*command, *more])
        assert code == 2
        assert words in said
