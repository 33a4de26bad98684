"""What the commands of all tests share: models opened from options, the result written, printed, and an exit code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pretrace.backends.serving.address import served_kind
from pretrace.cli.answer import Answer, of_folder
from pretrace.cli.printing import conclusion
from pretrace.cli.progress import doing
from pretrace.errors import ModelError
from pretrace.scoring.plan import Models
from pretrace.scoring.settings import Companions, ModelsSettings, Target
from pretrace.types import Verdict
from pretrace.verdicts.settings import Beside, TestSettings

_DRAWN = "what a test draws follows from its texts, so that nobody can try several draws: leave it away."
GONE = {
    "--seed": _DRAWN,
    "--shuffles": "19 other orders of each shard are read, and nobody can choose: leave it away.",
    "--orders": "23 other orders of an item with more than four options are read: leave it away.",
    "--shard-rows": "a shard has up to 8 rows, and nobody can choose what moves p: leave it away.",
    "--shard-tokens": "a shard has up to 2,048 tokens, and nobody can choose what moves p: leave it away.",
    "--joint": "an empty line stands between two rows, and nobody can choose what moves p: leave it away.",
}
"""Options that the tests had in an earlier version, and why they went."""
TESTS = ("mark check", "mark canaries", "order", "collections", "cutoff", "recite")


def named(target: Target, beside: Beside, settings: TestSettings) -> ModelsSettings:
    """The target with the reference model and the placebos that the options name, before they are opened.

    ModelError for a placebo that is the target, and for --power with a target on a server.
    """
    if settings.power and served_kind(target.model):
        raise ModelError(
            "--power trains a copy of the target, and a model on a server has no weights here: leave --power away, or "
            "open the weights."
        )
    companions = Companions(reference_model=beside.reference_model)
    return ModelsSettings.beside(
        target, beside.placebo, beside.placebo_revision, companions, several=True, cache=settings.cache
    )


def opened(wanted: ModelsSettings, *, second: bool = False) -> Models:
    """The models that `named` gives; errors as in `open_models`. With `second` the packaged model stands beside a
    target that is another one, where no placebo is named."""
    from pretrace.scoring.models import open_models
    from pretrace.verdicts.frame import with_second

    with doing("opening the models"):
        models = open_models(wanted)
        opening = wanted.target.opening
        return with_second(models, device=opening.device) if second else models


def finished(verdict: Verdict, out: Path, given: Mapping[str, Any], *, checked: str = "check") -> Answer:
    """Write the verdict with the options that were `given`; what it says, with the exit code of its outcome. Its checks
    are printed below the heading `checked`."""
    from pretrace.runs import save_verdict

    save_verdict(replace(verdict, settings={**verdict.settings, "command": dict(given)}), out)
    return of_folder(out, partial(conclusion, verdict, out, checked))
