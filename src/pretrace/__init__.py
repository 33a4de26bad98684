"""pretrace: was this text, or this collection, in the data a language model was pretrained on?

corpus = pretrace.open_corpus("texts.jsonl")
model = pretrace.open_model("smollm2")
run = pretrace.detect(corpus, model, "loss,zlib,min_k(k=0.1)")
pretrace.save_run(pretrace.evaluate(run, corpus), "RUN")
"""

from __future__ import annotations

__version__ = "0.1.0"

from pretrace.backends import open_model
from pretrace.corpora import Columns, known_corpora, open_corpus
from pretrace.detection import Models, Options, detect, evaluate
from pretrace.errors import PretraceError
from pretrace.frequencies import Frequencies, count
from pretrace.runs import load_run, save_run
from pretrace.types import Corpus, Evaluation, Run, Text, Trace

__all__ = [
    "Columns",
    "Corpus",
    "Evaluation",
    "Frequencies",
    "Models",
    "Options",
    "PretraceError",
    "Run",
    "Text",
    "Trace",
    "__version__",
    "count",
    "detect",
    "evaluate",
    "known_corpora",
    "load_run",
    "open_corpus",
    "open_model",
    "save_run",
]
