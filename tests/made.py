"""Runs, and rows of evaluations, with what a test is about and nothing else."""

import gzip
import json
import random
from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from tiny import MORE_WORDS

from pretrace.cli import commands
from pretrace.cli.commands import _command_of
from pretrace.corpora import TextStream
from pretrace.scoring.evaluation import measure
from pretrace.scoring.parts import ScoredRows
from pretrace.statistics.permutation import sign_flip_test, two_sample_test
from pretrace.statistics.roc import _RankedScores
from pretrace.testing import Memory
from pretrace.types import Corpus, Curve, Estimate, Measured, Run, Text


def options_of(words):
    """The options of a command by name, without those of every command."""
    return getattr(commands, words).default_command.declared


def call_function(function, *words, name="command"):
    """Carry out a command of this function."""
    made = _command_of(function, name)
    how = {"print_error": False, "exit_on_error": False, "result_action": "return_value"}
    return made([str(word) for word in words], **how)


def written(path, rows):
    """A file of JSON lines, packed where its name says so; a row may be a text alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    some = [{"text": row} if isinstance(row, str) else row for row in rows]
    content = "".join(json.dumps(row) + "\n" for row in some).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def read_lines(path):
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def drawn(number, words, *, seed=0, name="t", of=MORE_WORDS):
    """Rows of texts whose words are drawn one by one."""
    rng = np.random.default_rng(seed)
    return [{"id": f"{name}{i}", "text": " ".join(rng.choice(of, words))} for i in range(number)]


_FIRST = ("bar", "lo", "mi", "ren", "su", "ta", "vo", "wen")
SYLLABLES = [a + b for a in _FIRST for b in ("da", "kel", "mo", "rin")]


def prose(seed, words=60):
    """Words that come in this order nowhere else."""
    rng = random.Random(seed)
    return " ".join(rng.choice(SYLLABLES) + str(rng.randrange(100)) for _ in range(words))


def mats(number, word="cat"):
    """Rows of short texts, half of them members."""
    said = f"The {word} number {{}} sat on the mat."
    return [{"id": f"{word}{i}", "text": said.format(i), "label": i % 2} for i in range(number)]


def row(name, auc, kind="score", **parts):
    """A row with this AUC, by default 0.1 wide on both sides, in the place of its other figures too."""
    found = auc if isinstance(auc, Estimate) else Estimate(auc, auc - 0.1, auc + 0.1)
    curve = Curve((0.0, 1.0), (0.0, 1.0))
    figures = {"auc": found, "tpr": found, "accuracy": found, "threshold": 0.0, "curve": curve}
    return Measured(name=name, kind=kind, **{**figures, **parts})


def run_of(matrix, members, **parts):
    """A run of scores [texts, scores], whose texts are called t0, t1, …"""
    values, rows = np.asarray(matrix, dtype=np.float64), len(members)
    own = {
        "corpus": "test",
        "ids": tuple(f"t{i}" for i in range(rows)),
        "groups": ("",) * rows,
        "members": tuple(None if member is None else bool(member) for member in members),
        "tokens": np.full(rows, 5, np.int32),
        "cut": np.zeros(rows, np.int32),
        "scores": tuple(f"score{k}" for k in range(values.shape[1])),
        "matrix": values,
    }
    return Run(**{**own, **parts})


class Uneven(Memory):
    """A back end whose numbers depend on the batch, as those of real ones do."""

    def run(self, batch, want, states=frozenset(), /):
        shift = np.float32(max(len(one.tokens) for one in batch) * 1e-6)
        return [replace(one, logp=one.logp - shift) for one in super().run(batch, want, states)]


EMPTY = run_of(np.zeros((0, 0)), ())


def sign_flip(values, **how):
    """The p-value of the sign-flip test without its guard."""
    return sign_flip_test(values, guarded=False, **how).p


def two_sample(suspect, heldout, **how):
    """The p-value of the two-sample test."""
    return two_sample_test(suspect, heldout, **how).p


def tpr_at_fpr(scores, members, fpr):
    """The largest true positive rate among thresholds whose false positive rate is at most `fpr`."""
    ranked = _RankedScores.of(scores, members)
    return float(ranked.figures(np.ones((1, len(members)), dtype=np.float32), (fpr,))[0, 1])


def evaluate(run, texts, *, blind=True, **how):
    """The figures of a run, where `texts[i]` is the text of row i; without `blind`, no words are classified."""
    some = tuple(Text(name, text) for name, text in zip(run.ids, texts, strict=False))
    rows, stream = ScoredRows.of_run(run, some), TextStream.of(Corpus(run.corpus, some))
    with nullcontext() if blind else patch("pretrace.scoring.evaluation._judged", lambda *_: (None, "")):
        return measure(rows, stream, **how)
