"""Hostile inputs by family: how many were tried, and how many ended as promised.

Each case gives whether it ended as promised: refused in one line with exit code 2, or done. The table is printed
(`pytest -s`), and a family that keeps less than it promises fails. What needs a server or a browser of its own has its
tests beside it: tests/plugins/serve/test_guard.py, tests/backends/serving/test_lying_servers.py,
tests/test_working_folder.py.
"""

import itertools
import json

import pytest

SCORE = """
import numpy as np
from pretrace.registry import scores
from pretrace.types import Needs, Quantity
@scores.add("{name}")
class Odd:
    "A score."
    needs = Needs(Quantity.LOGP)
    def __call__(self, evidence):
        return {value}
"""
FACTORY = """
from pretrace.registry import backends, corpora, scores
@{kind}.add("{name}")
def odd(*given):
    "Makes something."
    return {value}
"""
VALUES = (
    "None", "'1.5'", "'high'", "1j", "np.ones(3)", "[1, [2]]", "{}", "float('nan')", "object()",
    "(1.0, 2.0)", "b''",
)  # fmt: skip
DEVICES = ("meta", "hpu", "privateuseone", "cuda:99", "nowhere", "mps", "xla", "")
JSON = (
    "[" * 100_000 + "]" * 100_000, "[" * 5_000, '{"a":' * 100_000, "9" * 5_000, "null", "\x00", '"\ud800"',
)  # fmt: skip
CONTROLS = ("\x00", "\x01", "\x1b[31m", "\r", "\t", "\x7f", "\u202e")


@pytest.fixture
def families(tmp_path, call, model_folder):
    """The families, each with its cases."""
    texts = tmp_path / "a.jsonl"
    texts.write_text("".join(json.dumps({"text": f"the cat sat on mat {i}"}) + "\n" for i in range(4)))
    numbers = itertools.count()

    def refused(*words):
        def case():
            out = tmp_path / f"OUT{next(numbers)}"
            code, _, said = call(*words, "--out", out)
            return code == 2 and said.count("\n") == 1 and said.startswith("pretrace: ") and not out.exists()

        return case

    def plugged(code, *words, **values):
        name = f"odd{next(numbers)}"
        place = tmp_path / f"{name}.py"
        place.write_text(code.format(name=name, **values))
        given = [texts, "--model", model_folder, *(one.format(name) for one in words)]
        return refused("score", *(given[1:] if words[0] == "{}" else given), "--plugin", place)

    def log(content):
        place = tmp_path / f"samples_{next(numbers)}.jsonl"
        place.write_text(content, encoding="utf-8", errors="surrogatepass")
        return place

    score = ("score", texts, "--model", model_folder)
    rewritten = ("mark", "texts", texts, "--sealed", tmp_path / "SEAL", "--rewriter")
    return {
        "scores of plug-ins": (plugged(SCORE, "--scores", "{}", value=one) for one in VALUES),
        "plug-ins that make something else": (
            plugged(FACTORY, *words, kind=kind, value=one)
            for kind, words in {
                "scores": ("--scores", "{}"),
                "corpora": ("{}", "--scores", "loss"),
                "backends": ("--model", "{}:x", "--scores", "loss"),
            }.items()
            for one in ("None", "'text'", "1j", "[]", "object()")
        ),
        "devices": (refused(*score, "--scores", "loss", f"--model-args=device={one}") for one in DEVICES),
        "logs of evaluations": (
            refused("samples", log(one), "--model", model_folder, "--controls", texts) for one in JSON
        ),
        "rewriters with control characters": (
            refused(*rewritten, one)
            for character in CONTROLS
            for one in (f"server:http://127.0.0.1:9/v1{character}#m", f"sm{character}ol")
        ),
    }


def test_families(families, monkeypatch):
    from pretrace.registry import backends, corpora, scores

    for registry in (backends, corpora, scores):
        list(registry)
        for name in ("_factories", "_origins"):
            monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    kept = {name: [case() for case in cases] for name, cases in families.items()}
    print("\n| family | tried | as promised |\n|---|---|---|")
    for name, ended in kept.items():
        print(f"| {name} | {len(ended)} | {sum(ended)} |")
    lost = {name: [i for i, one in enumerate(ended) if not one] for name, ended in kept.items()}
    assert not any(lost.values()), lost
