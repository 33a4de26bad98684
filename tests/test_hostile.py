"""Hostile plug-ins, devices, logs and names of models: each ends in one line and exit code 2, and nothing is written.

What needs a server or a browser of its own has its tests beside it: tests/plugins/serve/test_guard.py,
tests/backends/serving/test_lying_servers.py, tests/test_working_folder.py.
"""

import pytest
from made import mats, written

SCORE = """
import numpy as np
from pretrace.registry import scores
from pretrace.types import Needs, Quantity
@scores.add("odd")
class Odd:
    "A score."
    needs = Needs(Quantity.LOGP)
    def __call__(self, evidence):
        return {value}
"""
FACTORY = """
from pretrace.registry import backends, corpora, scores
@{kind}.add("odd")
def odd(*given):
    "Makes something."
    return {value}
"""
VALUES = (
    "None", "'1.5'", "'high'", "1j", "np.ones(3)", "[1, [2]]", "{}", "float('nan')", "object()",
    "(1.0, 2.0)", "b''",
)  # fmt: skip
MADE = {"scores": "TEXTS --model MODEL --scores odd", "corpora": "odd --model MODEL --scores loss"}
MADE["backends"] = "TEXTS --model odd:x --scores loss"
DEVICES = ("meta", "hpu", "privateuseone", "cuda:99", "nowhere", "mps", "xla", "")
JSON = (
    "[" * 100_000 + "]" * 100_000, "[" * 5_000, '{"a":' * 100_000, "9" * 5_000, "null", "\x00", '"\ud800"',
)  # fmt: skip
CONTROLS = ("\x00", "\x01", "\x1b[31m", "\r", "\t", "\x7f", "\u202e")
CASES = [
    *((f"score {MADE['scores']} --plugin FILE", SCORE.format(value=one)) for one in VALUES),
    *(
        (f"score {words} --plugin FILE", FACTORY.format(kind=kind, value=one))
        for kind, words in MADE.items()
        for one in ("None", "'text'", "1j", "[]", "object()")
    ),
    *((f"score TEXTS --model MODEL --scores loss --model-args=device={one}", "") for one in DEVICES),
    *(("samples FILE --model MODEL --controls TEXTS", one) for one in JSON),
    *(
        (f"mark texts TEXTS --sealed SEAL --rewriter {one}", "")
        for character in CONTROLS
        for one in (f"server:http://127.0.0.1:9/v1{character}#m", f"sm{character}ol")
    ),
]


@pytest.mark.parametrize(("line", "content"), CASES, ids=range(len(CASES)))
def test_it_is_refused_in_one_line(line, content, tmp_path, call, model_folder, monkeypatch):
    from pretrace.registry import backends, corpora, scores

    for registry in (backends, corpora, scores):
        list(registry)
        for name in ("_factories", "_origins"):
            monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    file = tmp_path / ("file.py" if "--plugin" in line else "samples_1.jsonl")
    file.write_text(content, encoding="utf-8", errors="surrogatepass")
    named = {"TEXTS": written(tmp_path / "a.jsonl", mats(4)), "MODEL": model_folder, "FILE": file}
    words = [named.get(one, one) for one in line.split(" ")]
    code, _, said = call(*words, "--out", tmp_path / "OUT")
    assert (code, said.count("\n"), said[:10]) == (2, 1, "pretrace: "), said
    assert not (tmp_path / "OUT").exists()
