"""The public names are pinned; importing them or asking for help loads no heavy library."""

from __future__ import annotations

import subprocess
import sys

import pretrace

PUBLIC = [
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


def test_the_public_names_are_these() -> None:
    assert pretrace.__all__ == PUBLIC
    assert all(hasattr(pretrace, name) for name in PUBLIC)


def test_import_is_light() -> None:
    heavy = [
        "torch",
        "transformers",
        "peft",
        "sklearn",
        "scipy",
        "matplotlib",
        "pyarrow",
        "datasets",
        "pandas",
    ]
    code = f"import sys, pretrace, pretrace.cli.commands; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
