"""The options that several commands share, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_TEXTS = "Texts"
_MODEL = "Model"
_RUN = "Run"
_DETECTORS = "Detectors that are fitted"
_CONTROLS = "Controls"

TextsArgument = Annotated[
    str,
    typer.Argument(
        metavar="TEXTS",
        help="A .jsonl, .csv, .tsv, .parquet or .txt file (also .gz), a folder of .txt files, - for standard "
        "input, hub:NAME[:CONFIG][:SPLIT], or a corpus such as stdlib (see `pretrace list`).",
        show_default=False,
    ),
]
TextColumn = Annotated[
    str | None, typer.Option(help="Column of the text; text or input unless named.", rich_help_panel=_TEXTS)
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        help="Column of the label, 1 member, 0 non-member; label unless named.", rich_help_panel=_TEXTS
    ),
]
IdColumn = Annotated[
    str | None, typer.Option(help="Column of the id; id unless named.", rich_help_panel=_TEXTS)
]
GroupColumn = Annotated[
    str | None,
    typer.Option(
        help="Column of the document a text was cut from; intervals resample documents; group unless named.",
        rich_help_panel=_TEXTS,
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Read at most this many tokens of a text; the model's context unless given.",
        rich_help_panel=_TEXTS,
    ),
]
Windows = Annotated[
    bool,
    typer.Option(
        "--windows",
        help="Cut a longer text into windows of --max-tokens instead of dropping its end.",
        rich_help_panel=_TEXTS,
    ),
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        help="A hub id, a model folder, a .gguf file, or smollm2 (packaged).",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
ReferenceModel = Annotated[
    str | None,
    typer.Option(
        help="The smaller model that the score `ref` compares with; any --model value.",
        rich_help_panel=_MODEL,
    ),
]
Revision = Annotated[
    str | None, typer.Option(help="Branch, tag or commit of a hub model.", rich_help_panel=_MODEL)
]
Dtype = Annotated[
    str,
    typer.Option(help="auto (float32 on a CPU), float32, bfloat16 or float16.", rich_help_panel=_MODEL),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps, …", rich_help_panel=_MODEL)]
DeviceMap = Annotated[
    str | None,
    typer.Option(
        help="Spread the weights over several GPUs: auto (needs accelerate).", rich_help_panel=_MODEL
    ),
]
Start = Annotated[
    str,
    typer.Option(
        help="Start token before each text: tokenizer (as the tokenizer does), always or never.",
        rich_help_panel=_MODEL,
    ),
]
TokenBudget = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Tokens that go through the model at once; 2048 on a CPU unless given.",
        rich_help_panel=_MODEL,
    ),
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code",
        help="Run Python code that comes with the model. It can do anything you can.",
        rich_help_panel=_MODEL,
    ),
]
AllowPickle = Annotated[
    bool,
    typer.Option(
        "--allow-pickle",
        help="Open weights stored as a pickle. Opening one can run any code.",
        rich_help_panel=_MODEL,
    ),
]
Scores = Annotated[
    str,
    typer.Option(
        help='Expressions, comma-separated: "loss,min_k(k=0.1),dc_pdd". See `pretrace list`.',
        rich_help_panel=_RUN,
    ),
]
Counts = Annotated[
    Path | None, typer.Option(help="Token counts for dc_pdd, made by `pretrace count`.", rich_help_panel=_RUN)
]
Tuned = Annotated[
    Path | None,
    typer.Option(help="Adapter for fsd(...), made by `pretrace tune`.", rich_help_panel=_DETECTORS),
]
ReferenceTexts = Annotated[
    str | None,
    typer.Option(
        "--reference",
        help="Labelled texts that na_pdd and probe are fitted on, about 100 members and 100 non-members; given as "
        "TEXTS is. None of them may be among TEXTS.",
        rich_help_panel=_DETECTORS,
    ),
]
Neighbors = Annotated[
    str | None,
    typer.Option(
        help="Who proposes words for neighbor: causal (the target itself), causal:MODEL, or masked:HUB_ID.",
        rich_help_panel=_DETECTORS,
    ),
]
TuneShare = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=0.9,
        help="For fsd(...): tune on the non-members of this share of TEXTS, score the rest (the paper: 0.3).",
        rich_help_panel=_DETECTORS,
    ),
]
Method = Annotated[
    str,
    typer.Option(
        help="How to tune: lora, adalora or ia3, with settings where the paper's do not suit: "
        "\"lora(rank=8, epochs=1, on='members')\". See `pretrace list`.",
        rich_help_panel=_DETECTORS,
    ),
]
ReferenceShare = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=0.9,
        help="Set this share of TEXTS aside as the reference of na_pdd and probe, score the rest.",
        rich_help_panel=_DETECTORS,
    ),
]
Placebo = Annotated[
    str | None,
    typer.Option(
        help="A model that never saw the members (an earlier checkpoint, a sibling); any --model value. Every score "
        "is computed with it too: one that does as well there does not detect membership.",
        rich_help_panel=_CONTROLS,
    ),
]
PlaceboRevision = Annotated[
    str | None,
    typer.Option(help="Branch, tag or commit of the placebo on the hub.", rich_help_panel=_CONTROLS),
]
Out = Annotated[
    Path,
    typer.Option(
        help="Folder for run.json, scores.parquet, scores.csv, skipped.csv and report.html; a run that is "
        "already there is replaced.",
        show_default=False,
        rich_help_panel=_RUN,
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all that is drawn at random.", rich_help_panel=_RUN)]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        help="Keep no traces on disk (PRETRACE_CACHE); a killed run then starts anew.",
        rich_help_panel=_RUN,
    ),
]
Resamples = Annotated[
    int,
    typer.Option(min=100, help="Bootstrap resamples of documents for the intervals.", rich_help_panel=_RUN),
]
Validation = Annotated[
    float,
    typer.Option(
        min=0.05,
        max=0.95,
        help="Share of documents on which accuracy thresholds are chosen.",
        rich_help_panel=_RUN,
    ),
]

_TRAINING = "Training"
_NEW = "A new model (--model new)"

StartModel = Annotated[
    str,
    typer.Option(
        "--model",
        help="new for a small model from scratch, or any --model value: a copy of it is trained further.",
        rich_help_panel=_MODEL,
    ),
]
Share = Annotated[
    float, typer.Option(help="Share of the text that becomes members.", rich_help_panel=_TRAINING)
]
Epochs = Annotated[int, typer.Option(min=1, help="How often each member is seen.", rich_help_panel=_TRAINING)]
PlantMethod = Annotated[
    str,
    typer.Option(help="full trains all weights, lora an adapter that is merged.", rich_help_panel=_TRAINING),
]
LearningRate = Annotated[
    float | None,
    typer.Option(
        help="2e-3 for a new model, 5e-5 for another, 1e-3 for lora, unless given.", rich_help_panel=_TRAINING
    ),
]
Batch = Annotated[int, typer.Option(min=1, help="Texts a step.", rich_help_panel=_TRAINING)]
TrainTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        min=2,
        help="Longer texts are trained on in windows of so many tokens; 512, or the model's context where that "
        "is less, unless given.",
        rich_help_panel=_TRAINING,
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        help="float32, or bfloat16: computes in it, keeps float32 weights.", rich_help_panel=_TRAINING
    ),
]
Recompute = Annotated[
    bool,
    typer.Option(
        "--recompute",
        help="Gradient checkpointing: a third slower, far less memory.",
        rich_help_panel=_TRAINING,
    ),
]
Family = Annotated[str, typer.Option(help="gpt_neox or llama.", rich_help_panel=_NEW)]
Layers = Annotated[int, typer.Option(min=1, help="Transformer blocks.", rich_help_panel=_NEW)]
Width = Annotated[int, typer.Option(min=2, help="Size of the hidden state.", rich_help_panel=_NEW)]
Heads = Annotated[int, typer.Option(min=1, help="Attention heads.", rich_help_panel=_NEW)]
Vocabulary = Annotated[int, typer.Option(help="Most tokens its tokenizer learns.", rich_help_panel=_NEW)]
