"""pretrace: was this text, or this collection, in the data a language model was pretrained on?

corpus = pretrace.open_corpus("texts.jsonl")
model = pretrace.open_model("smollm2")
run = pretrace.detect(corpus, model, "loss,zlib,min_k(k=0.1)")
pretrace.save_run(pretrace.evaluate(run, corpus), "RUN")
"""

from __future__ import annotations

__version__ = "0.1.0"

from pretrace.backends import open_adapter, open_model, open_proposer
from pretrace.corpora import Columns, known_corpora, open_corpus
from pretrace.detection import Models, Options, detect, evaluate
from pretrace.errors import PretraceError
from pretrace.frequencies import Frequencies, count
from pretrace.runs import load_run, save_run
from pretrace.setting_aside import set_aside
from pretrace.tuning import tune
from pretrace.tuning.planting import PlantSettings, plant
from pretrace.types import Corpus, Evaluation, Run, Text, Trace

__all__ = [
    "Columns",
    "Corpus",
    "Evaluation",
    "Frequencies",
    "Models",
    "Options",
    "PlantSettings",
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
    "open_adapter",
    "open_corpus",
    "open_model",
    "open_proposer",
    "plant",
    "save_run",
    "set_aside",
    "tune",
]
