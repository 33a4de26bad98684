"""What the core does without: each folder here brings commands, scores or tests of its own, which are found by name in
these tables, and the core imports none of them."""

from importlib import import_module
from typing import Any

from pretrace.errors import ExpressionError

COMMANDS = {
    "recite": "pretrace.plugins.recite.command:recite",
    "mark texts": "pretrace.plugins.marks.commands:mark",
    "mark order": "pretrace.plugins.marks.commands:order",
    "mark check": "pretrace.plugins.marks.commands:check",
    "mark canaries": "pretrace.plugins.marks.commands:canaries",
    "scan": "pretrace.plugins.scan.command:scan",
    "samples": "pretrace.plugins.harnesses.command:samples",
    "build patents": "pretrace.plugins.build.commands:patents",
    "build ccnews": "pretrace.plugins.build.commands:ccnews",
    "build quality": "pretrace.plugins.build.commands:quality",
    "build gap": "pretrace.plugins.build.commands:gap",
    "serve": "pretrace.plugins.serve.command:serve",
}
"""Where the command of a plug-in is made, by what is typed."""
SCORES = {
    "codec": "pretrace.plugins.scores.prefixed",
    "con_recall": "pretrace.plugins.scores.prefixed",
    "coverage": "pretrace.plugins.scores.prefixed",
    "learned": "pretrace.plugins.scores.learned",
}
"""The module of a plug-in that registers each score."""
_MARKS = "pretrace.plugins.marks.checking"
TESTS = {
    "marks": _MARKS,
    "triggers": _MARKS,
    "canaries": "pretrace.plugins.marks.canaries",
    "recite": "pretrace.plugins.recite",
}
"""The module of a plug-in that registers each test, by the name that a result has of it."""
PAGES = {
    **dict.fromkeys(("marks", "canaries"), "pretrace.plugins.marks.page"),
    "recite": "pretrace.plugins.recite.page",
    "samples": "pretrace.plugins.harnesses.page",
    "scan": "pretrace.plugins.scan.result",
}
"""The module of a plug-in that registers what the report of each test has of its own."""


def find_plugin(module: str) -> Any:
    """Import a module of a plug-in, such as `scan.result`; ExpressionError where the plug-in is not there."""
    try:
        return import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(__name__):
            raise
        name = module.partition(".")[0]
        raise ExpressionError(
            f"this takes the plug-in {name} of pretrace, which is not installed here."
        ) from None
