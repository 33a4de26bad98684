"""The options of `audit` and `gap`, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_AUDIT = "Audit"
_HELDOUT = "What the texts are compared with"
_CONTROLS = "Models beside the target, and controls"

Heldout = Annotated[
    str | None,
    typer.Option(
        help="Control documents: texts of the same kind that are known to be unseen, given as TEXTS is. "
        "Recommended: with them, no other model is needed.",
        rich_help_panel=_HELDOUT,
    ),
]
GeneratorModel = Annotated[
    str,
    typer.Option(
        "--generator",
        help="The small model that is tuned on a part of TEXTS and writes held-out continuations; any --model value.",
        rich_help_panel=_HELDOUT,
    ),
]
GeneratorDtype = Annotated[
    str,
    typer.Option(
        help="What the generator computes in; auto takes what is fastest on this processor.",
        rich_help_panel=_HELDOUT,
    ),
]
GeneratorMethod = Annotated[
    str,
    typer.Option(
        "--method",
        help='How the generator is tuned, as for `tune`, "paper" for the paper\'s 100 epochs, or "none".',
        rich_help_panel=_HELDOUT,
    ),
]
Temperature = Annotated[
    float,
    typer.Option(help="Of the generator's sampling; 1 writes what it learnt.", rich_help_panel=_HELDOUT),
]
TopP = Annotated[
    float,
    typer.Option(help="Draw from the likeliest tokens that reach this together.", rich_help_panel=_HELDOUT),
]
RepetitionPenalty = Annotated[
    float,
    typer.Option(help="Make tokens that were used less likely; 1 does not.", rich_help_panel=_HELDOUT),
]
SnippetTokens = Annotated[
    int,
    typer.Option(
        "--tokens", help="Tokens of a snippet; half is prefix, half is judged.", rich_help_panel=_HELDOUT
    ),
]
MaxSnippets = Annotated[
    int | None,
    typer.Option(
        help="Snippets taken of a document; the median over documents unless given.", rich_help_panel=_HELDOUT
    ),
]
Pairs = Annotated[
    int, typer.Option(help="Snippets judged, at most; half of all at most.", rich_help_panel=_HELDOUT)
]
AuditPlacebo = Annotated[
    list[str],
    typer.Option(
        "--placebo",
        help="A model that never saw TEXTS: an earlier checkpoint of the target (the best), the base it was tuned "
        "from, or a sibling; any --model value. Give it more than once for several: the largest p counts.",
        default_factory=list,
        show_default=False,
        rich_help_panel=_CONTROLS,
    ),
]
PowerFlag = Annotated[
    bool,
    typer.Option(
        "--power",
        help="Measure what this audit could have seen: plant a part of TEXTS in a copy of the target and audit that.",
        rich_help_panel=_CONTROLS,
    ),
]
PowerMethod = Annotated[
    str,
    typer.Option(
        help="How texts are planted: full trains all weights, lora an adapter.", rich_help_panel=_CONTROLS
    ),
]
Classifiers = Annotated[
    str,
    typer.Option(
        help="Text-only classifiers, comma-separated: words, gpt2, gpt2(preset='paper'), embeddings, pretrained.",
        rich_help_panel=_CONTROLS,
    ),
]
Procedure = Annotated[
    str,
    typer.Option(
        help="What decides: pretrace, calibrated, paper, release, original. Choose before looking.",
        rich_help_panel=_AUDIT,
    ),
]
Also = Annotated[
    str,
    typer.Option(
        help="Further procedures to show, comma-separated; they decide nothing.", rich_help_panel=_AUDIT
    ),
]
Level = Annotated[float, typer.Option(help="The level of the test.", rich_help_panel=_AUDIT)]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="At most 200 snippets of suspect texts and of controls, a generator tuned on at most 100 of each.",
        rich_help_panel=_AUDIT,
    ),
]
AuditOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Folder for report.html, verdict.json, the generated texts and every table; an audit that is already "
        "there is replaced.",
        show_default=False,
        rich_help_panel=_AUDIT,
    ),
]
Plan = Annotated[
    bool,
    typer.Option(
        "--plan",
        help="Say what this audit could answer and what it would cost, and stop: nothing is trained, no text is read.",
        rich_help_panel=_AUDIT,
    ),
]
RequestedBy = Annotated[
    str,
    typer.Option(help="Who asks, for the first page of the report.", rich_help_panel=_AUDIT),
]
PlaceboNote = Annotated[
    str,
    typer.Option(
        help="How the placebo is known to be earlier than TEXTS, for the report.", rich_help_panel=_CONTROLS
    ),
]
ControlNote = Annotated[
    str,
    typer.Option(
        "--heldout-note",
        help="Where the control documents come from, and how they are known to be unseen, for the report.",
        rich_help_panel=_HELDOUT,
    ),
]
