"""What the commands of all tests share: models opened from options, the result written, printed, and an exit code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Printed
from rich.text import Text as Plain

from pretrace.cli.answer import Answer, of_folder
from pretrace.cli.under_way import doing
from pretrace.scoring.plan import Models
from pretrace.scoring.settings import Companions, ModelsSettings, Target
from pretrace.types import Verdict
from pretrace.verdicts.settings import Beside


def opened(target: Target, beside: Beside, *, cache: bool) -> Models:
    """The target with the reference model and the placebos that the options name; errors as in `open_models`."""
    from pretrace.auditing.placebo import check_placebos
    from pretrace.scoring.models import check_placebo, named_placebos, open_models

    wanted = ModelsSettings(
        target=target,
        companions=Companions(reference_model=beside.reference_model),
        placebos=named_placebos(beside.placebo, beside.placebo_revision, target.model),
        placebo_revision=beside.placebo_revision,
        several=True,
        cache=cache,
    )
    check_placebo(wanted)
    with doing("opening the models"):
        models = open_models(wanted)
    check_placebos(models.target, models.placebos)
    return models


def finished(verdict: Verdict, out: Path, given: Mapping[str, Any]) -> Answer:
    """Write the verdict with the options that were `given`; what it says, with the exit code of its outcome."""
    from pretrace.runs import save_verdict

    save_verdict(replace(verdict, settings={**verdict.settings, "command": dict(given)}), out)
    return of_folder(out, partial(_printed, verdict, out))


def _printed(verdict: Verdict, out: Path, console: Console) -> None:
    from pretrace.runs import REPORT

    console.print(Plain(verdict.statement, style="bold"))
    for reason in verdict.reasons:
        console.print(Plain(f"- {reason}"))
    table = Printed(box=None, padding=(0, 2, 0, 0))
    table.add_column("check")
    table.add_column("", no_wrap=True)
    for check in verdict.checks:
        table.add_row(Plain(check.title), check.status)
    if verdict.checks:
        console.print(table)
    for advice in verdict.advice:
        console.print(Plain(f"What would help: {advice}"))
    console.print(Plain(f"Report: {out / REPORT}"), soft_wrap=True)
