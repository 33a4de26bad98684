"""The commands, one function each: its parameters are its options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from pretrace import __version__
from pretrace.cli import options as o
from pretrace.cli import printing
from pretrace.cli.job import Job, Measuring, reads_texts

app = typer.Typer(
    name="pretrace",
    help="Was this text, or this collection, in the data a language model was pretrained on?",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"pretrace {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Was this text, or this collection, in the data a language model was pretrained on?"""


@app.command()
@reads_texts
def score(job: Job) -> None:
    """Score texts: one row a text, one column a score, higher = more member-like."""
    printing.finished(job)


@app.command()
@reads_texts
def evaluate(job: Job, resamples: o.Resamples = 1000, validation: o.Validation = 0.2) -> None:
    """Score labelled texts and measure: AUC, TPR at 5% FPR, accuracy, intervals, a blind baseline."""
    printing.finished(replace(job, measuring=Measuring(resamples, validation)))


@app.command()
def count(
    corpora: Annotated[
        list[str], typer.Argument(metavar="CORPUS...", help="Files, folders or corpora, as for `score`.")
    ],
    model: o.ModelOption,
    out: Annotated[Path, typer.Option(help="The table to write, such as counts.npz.", show_default=False)],
    text_column: o.TextColumn = None,
    revision: o.Revision = None,
    trust_remote_code: o.TrustRemoteCode = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads; one a core unless given.")] = None,
) -> None:
    """Count a model's tokens in reference texts, for dc_pdd: exact, parallel, resumable."""
    from pretrace.cli.counting import count_files
    from pretrace.corpora import Columns

    table = count_files(
        corpora,
        out,
        model=model,
        columns=Columns(text=text_column),
        workers=workers,
        opening={"revision": revision, "trust_remote_code": trust_remote_code},
    )
    printing.counted(table, out)


@app.command()
def show(
    text: Annotated[str, typer.Argument(help="The text itself, or - for standard input.")],
    model: o.ModelOption,
    revision: o.Revision = None,
    dtype: o.Dtype = "auto",
    device: o.Device = "auto",
    start: o.Start = "tokenizer",
    trust_remote_code: o.TrustRemoteCode = False,
    allow_pickle: o.AllowPickle = False,
) -> None:
    """Print a text's tokens coloured by how surprising each was to the model."""
    opening = {
        "revision": revision,
        "dtype": dtype,
        "device": device,
        "start": start,
        "trust_remote_code": trust_remote_code,
        "allow_pickle": allow_pickle,
    }
    printing.shown(text, model, opening)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder that a run was written to.")],
) -> None:
    """Render RUN/report.html again from the run's tables, without a model."""
    printing.rendered(run)


@app.command("list")
def list_names() -> None:
    """List scores, corpora and what --model takes, one line each."""
    printing.names()


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the demo's run.")] = Path("demo-run"),
    seed: o.Seed = 0,
) -> None:
    """Train a small model on half of a corpus, then tell that half from the other; at most 5 minutes."""
    from pretrace.cli.demo import run_demo

    run_demo(out, seed=seed)
