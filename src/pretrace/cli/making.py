"""What is made here for scores to use: adapters (`tune`), planted models (`plant`), token counts (`count`), and the
demo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from pretrace.backends import open_model, open_tokenizer
from pretrace.backends.huggingface import open_huggingface
from pretrace.backends.naming import ModelSettings
from pretrace.cli import note
from pretrace.cli.commands import Reply
from pretrace.cli.telling import counted, trained, watched, write_run
from pretrace.corpora import Columns, open_corpus, open_stream
from pretrace.corpora.opening import Source
from pretrace.errors import ExpressionError, OutputError
from pretrace.frequencies import Counting
from pretrace.frequencies import count as make_table
from pretrace.frequencies.table import COUNTS
from pretrace.results.atomic import ADAPTER, PLANTED, check_writable
from pretrace.results.run import RUN
from pretrace.results.wording import plural
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.evaluation import evaluate
from pretrace.scoring.plan import EvaluationSettings, ScoreSettings, Target
from pretrace.settings import MODEL, Option
from pretrace.tuning import make_adapter
from pretrace.tuning.artifacts import record_tuning
from pretrace.tuning.plan import methods
from pretrace.tuning.planting import DEMO, PlantSettings
from pretrace.tuning.planting import plant as make_planted

NEW = "new"
_DEMO_SCORES = "loss,zlib,lowercase,min_k,min_k(k=0.1),min_k_plus_plus"


_Seed = Annotated[ScoreSettings, "seed"]


def tune(
    source: Source,
    target: Target,
    out: Annotated[
        Path, Option("Folder for the adapter and its card.", panel="", path="out", essential=True)
    ],
    settings: Annotated[EvaluationSettings, "method"],
    drawn: _Seed,
) -> Reply:
    """Tune a model on a few known non-members, for fsd(...): an adapter, with a card of how it was made."""
    how = methods.make(settings.method)
    check_writable(out, ADAPTER)
    corpus = source.open()
    model = open_huggingface(target.model, target.opening)
    with trained() as on_step:
        adapter = make_adapter(model, corpus, how, folder=out, seed=drawn.seed, on_step=on_step)
    card = adapter.card
    first = (
        f"Tuned on {card['texts']} texts, {card['tokens']:,} tokens an epoch; loss by epoch in nats a token: "
        f"{_losses(card)}"
    )
    said = [
        first,
        f"Adapter: {out}",
        f"Try: pretrace evaluate TEXTS --model {target.model} --tuned {out} --scores 'ppl,fsd(ppl)' --out RUN",
    ]
    return Reply(said, statement=first, folder=out, own={"card": record_tuning(card)})


def plant(
    source: Source,
    settings: PlantSettings,
    out: Annotated[
        Path, Option("Folder for the model, labels and card.", panel="", path="out", essential=True)
    ],
    model: Annotated[
        str,
        Option(
            "new for a small model from scratch, or any --model value: a copy of it is trained further.",
            panel=MODEL,
            path="in",
            essential=True,
        ),
    ] = NEW,
) -> Reply:
    """Train a model on a random part of the texts, so that its members are known without a doubt."""

    new = model == NEW
    if new and settings.method != "full":
        raise ExpressionError(
            "a new model has nothing to adapt: --method lora needs --model with an existing one."
        )
    if settings.max_tokens:
        architecture = replace(settings.architecture, max_tokens=settings.max_tokens)
        settings = replace(settings, architecture=architecture)
    check_writable(out, PLANTED)
    corpus = source.open()
    start = None if new else model
    with trained() as on_step:
        made = make_planted(corpus, settings=settings, folder=out, start=start, on_step=on_step)
    members, others = made.card["members"], made.card["nonmembers"]
    first = (
        f"Members: {members['texts']:,} texts of {members['groups']:,} documents; "
        f"non-members: {others['texts']:,} of {others['groups']:,}."
    )
    said = [
        first,
        f"Loss by epoch in nats a token: {_losses(made.card)}",
        f"Model, labels and card: {out}",
        f"Try: pretrace evaluate {out / 'texts.jsonl'} --model {out} --out RUN",
    ]
    return Reply(said, statement=first, folder=out, own={"card": record_tuning(made.card)})


class _Sources:
    """The texts of several sources one after the other, as often as they are asked for, streamed: they may be larger
    than memory."""

    def __init__(self, names: Sequence[str], columns: Columns) -> None:
        only = replace(columns, label="", id="", group="")
        self.streams = [open_stream(name, only) for name in names]

    def __iter__(self) -> Iterator[str]:
        return (text.text for stream in self.streams for text in stream.texts())


def count(
    corpora: Annotated[
        tuple[str, ...], Option("Files, folders or corpora, as for `score`.", metavar="CORPUS...", path="in")
    ],
    target: Annotated[Target, "model"],
    out: Annotated[Path, Option("The table to write, such as counts.npz.", panel="", path="out")],
    opening: Annotated[ModelSettings, "revision", "trust_remote_code"],
    columns: Annotated[Columns, "text"],
    settings: Counting,
) -> Reply:
    """Count a model's tokens in reference texts, for dc_pdd: exact, parallel, resumable."""

    if out.suffix != ".npz":
        raise OutputError(
            f"a count table is an .npz file: --out {out.with_suffix('.npz')}, found {out.name}."
        )
    check_writable(out, COUNTS)
    texts = _Sources(corpora, columns)
    tokens = open_tokenizer(target.model, **asdict(opening))
    checkpoint = None if "-" in corpora else out.with_name(f".{out.name}.counting")
    with counted() as on_progress:
        table = make_table(
            texts,
            tokens.rust,
            tokenizer_hash=tokens.hash,
            source=", ".join(corpora),
            settings=replace(settings, checkpoint=checkpoint),
            on_progress=on_progress,
        )
    table.save(out)
    seen = int((table.counts > 0).sum())
    said = f"{plural(table.total, 'token')} of {plural(table.texts, 'text')}, {seen:,} distinct: {out}"
    own = {"file": str(out), "tokens": table.total, "texts": table.texts, "distinct": seen}
    return Reply([said], statement=said, own=own)


def demo(
    *,
    out: Annotated[Path, Option("Folder for the demo's run.", panel="", path="out")] = Path("demo-run"),
    drawn: _Seed,
) -> Reply:
    """Train a small model on half of a corpus, then tell that half from the other; at most 5 minutes."""
    for name, kind in (("model", PLANTED), ("planted", RUN)):
        check_writable(out / name, kind)
    note(
        "a small language model is trained on half of the modules of Python's standard library (their docstrings), and "
        "asked which half that was. It is known, so the answer can be checked."
    )
    how = replace(DEMO, seed=drawn.seed)
    with trained() as on_step:
        made = make_planted(open_corpus("stdlib"), settings=how, folder=out / "model", on_step=on_step)
    with watched("scoring") as progress:
        model, settings = open_model(str(out / "model")), {"command": "demo", "card": "model/card.json"}
        options = Options(seed=drawn.seed, progress=progress, settings=settings)
        run = evaluate(detect(made.corpus, model, _DEMO_SCORES, options), made.corpus, seed=drawn.seed)
    answer = write_run(run, out / "planted")
    more = f"Try it on your own text: pretrace show 'A sentence of yours.' --model {out / 'model'}"
    return replace(answer, said=[*answer.said, more])


def _losses(card: Mapping[str, Any]) -> str:
    return " → ".join(f"{loss:.3f}" for loss in card["losses"])
