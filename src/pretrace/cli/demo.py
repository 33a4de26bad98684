"""`pretrace demo`: runs the demo and says what it did."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.text import Text as Plain

from pretrace.cli.printing import measured, preview
from pretrace.cli.progress import trained, watched
from pretrace.demo import plant_and_find, show_smollm2
from pretrace.errors import MissingPackageError


def run_demo(out: Path, *, seed: int) -> None:
    """Both halves of the demo, with a sentence on what each shows."""
    console = Console(highlight=False)
    begin = time.perf_counter()
    console.print(
        "1. Training a small language model on half of the modules of Python's standard library (their "
        "docstrings), then asking which half it was trained on. That is known, so the answer can be checked."
    )
    with trained() as on_step, watched("scoring") as progress:
        run = plant_and_find(out, seed=seed, on_step=on_step, progress=progress)
    assert run.evaluation is not None
    console.print(measured(run))
    for finding in run.evaluation.findings:
        console.print(Plain(f"- {finding}"))
    console.print()
    console.print(
        "2. SmolLM2-135M-Instruct, a model that was trained on the open web, on three famous openings and three texts "
        "written for this demo. Six texts prove nothing; they show what a score looks like."
    )
    try:
        with watched("scoring") as progress:
            console.print(preview(show_smollm2(out, seed=seed, progress=progress)))
        second = f"{out / 'smollm2' / 'report.html'}"
    except MissingPackageError as error:
        second = f"left out: {error}"
    console.print(f"Done in {time.perf_counter() - begin:.0f} s. Reports, for any browser:")
    console.print(Plain(f"  {out / 'planted' / 'report.html'}"), soft_wrap=True)
    console.print(Plain(f"  {second}"), soft_wrap=True)
    console.print(Plain(f"Try: pretrace score stdlib --model {out / 'model'} --out RUN"), soft_wrap=True)
