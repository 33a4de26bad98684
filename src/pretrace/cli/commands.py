"""The commands, one function each: its parameters are its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pretrace import __version__
from pretrace.cli import audit_options, printing
from pretrace.cli import options as o
from pretrace.cli.building import build
from pretrace.cli.building_ccnews import ccnews
from pretrace.cli.flagging import flag
from pretrace.cli.job import (
    Asking,
    Auditing,
    Job,
    Measuring,
    Opening,
    Planting,
    Running,
    Source,
    Writing,
    grouped,
)
from pretrace.cli.quality import quality

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
@grouped
def score(source: Source, opening: Opening, asking: Asking, running: Running) -> None:
    """Score texts: one row a text, one column a score, higher = more member-like."""
    printing.finished(Job(source, opening, asking, running))


@app.command()
@grouped
def evaluate(
    source: Source, opening: Opening, asking: Asking, measuring: Measuring, running: Running
) -> None:
    """Score labelled texts and measure: AUC, TPR at 5% FPR, accuracy, intervals, and the controls beside them."""
    printing.finished(Job(source, opening, asking, running, measuring))


@app.command()
@grouped
def audit(source: Source, opening: Opening, writing: Writing, auditing: Auditing) -> None:
    """Was this collection used? A test with its controls, a report, and an exit code: 0 nothing shown, 3 consistent
    with training on it, 4 inconclusive. Give control documents with --heldout; see --plan first."""
    from pretrace.cli.auditing import carry_out

    raise typer.Exit(carry_out(source, opening, writing, auditing))


@app.command()
def gap(
    a: Annotated[str, typer.Argument(metavar="A", help="Texts, as for `score`.", show_default=False)],
    b: Annotated[
        str, typer.Argument(metavar="B", help="The texts they are compared with.", show_default=False)
    ],
    classifiers: audit_options.Classifiers = "words",
    text_column: o.TextColumn = None,
    id_column: o.IdColumn = None,
    group_column: o.GroupColumn = None,
    seed: o.Seed = 0,
) -> None:
    """How far apart two sets of texts are, by classifiers that see no model."""
    from pretrace.cli.auditing import compare
    from pretrace.corpora import Columns

    columns = Columns(text=text_column, id=id_column, group=group_column)
    compare(a, b, columns, classifiers=classifiers, seed=seed)


app.command()(quality)
app.command()(flag)
build.command()(ccnews)
app.add_typer(build, name="build")


@app.command()
@grouped
def tune(
    source: Source,
    opening: Opening,
    out: Annotated[Path, typer.Option(help="Folder for the adapter and its card.", show_default=False)],
    method: o.Method = "lora",
    seed: o.Seed = 0,
) -> None:
    """Tune a model on a few known non-members, for fsd(...): an adapter, with a card of how it was made."""
    from pretrace.cli.training import tune_texts

    tune_texts(source, opening, out, method=method, seed=seed)


@app.command()
@grouped
def plant(
    source: Source,
    out: Annotated[Path, typer.Option(help="Folder for the model, labels and card.", show_default=False)],
    planting: Planting,
    seed: o.Seed = 0,
) -> None:
    """Train a model on a random part of the texts, so that its members are known without a doubt."""
    from pretrace.cli.training import plant_texts

    plant_texts(source, planting, out, seed=seed)


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
