"""pretrace: was this text, or this collection, in the data a language model was pretrained on?

corpus = pretrace.open_corpus("texts.jsonl")
model = pretrace.open_model("smollm2")
run = pretrace.detect(corpus, model, "loss,zlib,min_k(k=0.1)")
pretrace.save_run(pretrace.evaluate(run, corpus), "RUN")
"""

from __future__ import annotations

__version__ = "0.1.0"

from pretrace.backends import open_adapter, open_model, open_proposer
from pretrace.baselines.classifier_two_sample import gap
from pretrace.corpora import Columns, known_corpora, open_corpus
from pretrace.errors import PretraceError
from pretrace.frequencies import Frequencies, count
from pretrace.results.frames import to_arrow, to_pandas
from pretrace.runs import (
    load_audit,
    load_run,
    load_verdict,
    save_audit,
    save_run,
    save_verdict,
)
from pretrace.scoring.detect import Options, detect, evaluate
from pretrace.scoring.holdout import set_aside
from pretrace.scoring.plan import Models
from pretrace.statistics.paired import compare
from pretrace.tuning import tune
from pretrace.tuning.planting import PlantSettings, plant
from pretrace.types import Audit, Corpus, Evaluation, Run, Situation, Text, Trace, Verdict
from pretrace.types.offered import offer
from pretrace.verdicts.advise import advise
from pretrace.verdicts.audit.audit import audit
from pretrace.verdicts.audit.settings import AuditSettings
from pretrace.verdicts.canaries import check_canaries
from pretrace.verdicts.collections import CollectionSettings, collections
from pretrace.verdicts.cutoff import CutoffSettings, cutoff
from pretrace.verdicts.flag import FlagSettings, flag
from pretrace.verdicts.marking.mark import mark, publish
from pretrace.verdicts.marking.sealed import read_seal
from pretrace.verdicts.marks import check_marks
from pretrace.verdicts.order import OrderSettings, order
from pretrace.verdicts.triggers import check_triggers
from pretrace.verification import Verification, verify


def _html(result: Run | Audit | Verdict) -> str:
    from pretrace.report.notebook import html  # draws, so it is imported when a notebook asks

    return html(result)


offer("arrow", to_arrow)
offer("pandas", to_pandas)
offer("html", _html)

__all__ = [
    "Audit",
    "AuditSettings",
    "CollectionSettings",
    "Columns",
    "Corpus",
    "CutoffSettings",
    "Evaluation",
    "FlagSettings",
    "Frequencies",
    "Models",
    "Options",
    "OrderSettings",
    "PlantSettings",
    "PretraceError",
    "Run",
    "Situation",
    "Text",
    "Trace",
    "Verdict",
    "Verification",
    "__version__",
    "advise",
    "audit",
    "check_canaries",
    "check_marks",
    "check_triggers",
    "collections",
    "compare",
    "count",
    "cutoff",
    "detect",
    "evaluate",
    "flag",
    "gap",
    "known_corpora",
    "load_audit",
    "load_run",
    "load_verdict",
    "mark",
    "open_adapter",
    "open_corpus",
    "open_model",
    "open_proposer",
    "order",
    "plant",
    "publish",
    "read_seal",
    "save_audit",
    "save_run",
    "save_verdict",
    "set_aside",
    "tune",
    "verify",
]
