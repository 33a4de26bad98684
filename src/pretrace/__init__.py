"""pretrace: was this text, or this collection, in the data a language model was pretrained on?

corpus = pretrace.open_corpus("texts.jsonl")
model = pretrace.open_model("smollm2")
run = pretrace.detect(corpus, model, "loss,zlib,min_k(k=0.1)")
pretrace.save_run(pretrace.evaluate(run, corpus), "RUN")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "1.0.0rc1"

if TYPE_CHECKING:
    from pretrace.backends import open_adapter, open_model
    from pretrace.backends.proposals import open_proposer
    from pretrace.baselines import gap
    from pretrace.corpora import Columns, known_corpora, open_corpus
    from pretrace.errors import PretraceError
    from pretrace.frequencies import Frequencies, count
    from pretrace.plugins.marks import mark, publish, read_seal
    from pretrace.plugins.marks.canaries import check_canaries
    from pretrace.plugins.marks.checking import check_marks, check_triggers
    from pretrace.runs import load_run, load_verdict, save_run, save_verdict
    from pretrace.scoring.detect import Options, detect
    from pretrace.scoring.evaluation import evaluate
    from pretrace.scoring.holdout import set_aside
    from pretrace.scoring.plan import Models
    from pretrace.tuning import tune
    from pretrace.tuning.planting import PlantSettings, plant
    from pretrace.types import Corpus, Evaluation, Run, Situation, Text, Trace, Verdict
    from pretrace.verdicts.advise import advise
    from pretrace.verdicts.audit.audit import audit
    from pretrace.verdicts.audit.data import AuditSettings
    from pretrace.verdicts.flag.flag import flag
    from pretrace.verdicts.flag.planning import FlagSettings
    from pretrace.verification import Verification, verify

_PLACES = {
    "pretrace.backends": "open_adapter open_model",
    "pretrace.backends.proposals": "open_proposer",
    "pretrace.baselines": "gap",
    "pretrace.corpora": "Columns known_corpora open_corpus",
    "pretrace.errors": "PretraceError",
    "pretrace.frequencies": "Frequencies count",
    "pretrace.runs": "load_run load_verdict save_run save_verdict",
    "pretrace.scoring.detect": "Options detect",
    "pretrace.scoring.evaluation": "evaluate",
    "pretrace.scoring.holdout": "set_aside",
    "pretrace.scoring.plan": "Models",
    "pretrace.tuning": "tune",
    "pretrace.tuning.planting": "PlantSettings plant",
    "pretrace.types": "Corpus Evaluation Run Situation Text Trace Verdict",
    "pretrace.verdicts.advise": "advise",
    "pretrace.verdicts.audit.audit": "audit",
    "pretrace.verdicts.audit.data": "AuditSettings",
    "pretrace.plugins.marks.canaries": "check_canaries",
    "pretrace.verdicts.flag.flag": "flag",
    "pretrace.verdicts.flag.planning": "FlagSettings",
    "pretrace.plugins.marks": "mark publish read_seal",
    "pretrace.plugins.marks.checking": "check_marks check_triggers",
    "pretrace.verification": "Verification verify",
}
"""The public names by the module that each is taken from when it is first asked for, so that importing pretrace imports
nothing else; the imports above say the same to type checkers."""
_PLACE_OF = {name: module for module, names in _PLACES.items() for name in names.split()}


if not TYPE_CHECKING:  # to a type checker a name that is not here is a mistake

    def __getattr__(name: str) -> Any:
        """A public name, taken from its module."""
        if name not in _PLACE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_PLACE_OF[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """The public names, whether they were asked for or not."""
    return sorted({*globals(), *__all__})


__all__ = [
    "AuditSettings", "Columns", "Corpus", "Evaluation", "FlagSettings", "Frequencies", "Models", "Options",
    "PlantSettings", "PretraceError", "Run", "Situation", "Text", "Trace", "Verdict", "Verification",
    "__version__", "advise", "audit", "check_canaries", "check_marks", "check_triggers", "count", "detect",
    "evaluate", "flag", "gap", "known_corpora", "load_run", "load_verdict", "mark", "open_adapter",
    "open_corpus", "open_model", "open_proposer", "plant", "publish", "read_seal", "save_run", "save_verdict",
    "set_aside", "tune", "verify",
]  # fmt: skip
