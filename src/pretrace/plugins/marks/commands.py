"""`pretrace mark`: texts marked at random (`texts`, `order`), and models asked about them (`check`, `canaries`)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.console import RenderableType

from pretrace.backends import open_model
from pretrace.backends.instructed import open_instructed
from pretrace.backends.naming import ModelSettings
from pretrace.backends.proposals import open_proposer
from pretrace.cli.commands import RawOptions, Reply, output_option, prose
from pretrace.cli.opening import TextAccess, open_beside, opened_for_access
from pretrace.cli.telling import Stages, write_verdict
from pretrace.corpora import open_corpus
from pretrace.corpora.opening import Source, further_columns
from pretrace.errors import ExpressionError, ModelError, TextsError
from pretrace.plugins import marks
from pretrace.plugins.marks import checking
from pretrace.plugins.marks.canaries import CanarySettings, check_canaries, natural_canaries
from pretrace.results.atomic import NEW, check_writable
from pretrace.results.wording import say
from pretrace.runs import VERDICTS
from pretrace.scoring.plan import Target
from pretrace.settings import MODEL, Option, like, shared
from pretrace.verdicts.frame import check_plantable
from pretrace.verdicts.settings import TEST, ModelsBeside, TestSettings, input_option

_written = partial(Option, path="out", essential=True)
_OUT = _written("New folder: published.jsonl, and commitment.txt to publish or timestamp with it.")
_SEALED = _written("New file, its owner's alone: all variants and the draw. Keep it secret and safe.")
_MODEL = Option(
    "An open model, with weights here, like the one you expect: a copy of it is trained on the texts to estimate how "
    "many texts the test needs.",
    panel=MODEL,
    path="in",
    essential=True,
)


def mark(
    source: Source,
    settings: marks.MarkSettings,
    *,
    out: Annotated[Path, _OUT],
    sealed: Annotated[Path, _SEALED],
    model: Annotated[str | None, _MODEL] = None,
    opening: ModelSettings,
    planting: Annotated[TestSettings, "level", "power_epochs", "power_method"],
) -> Reply:
    """Mark texts before you publish them: a random draw decides which of several variants of each text you publish. The
    variants and the draw are sealed in a file, whose hash is your commitment. Later, `pretrace mark check` says exactly
    whether a model was trained on what you published."""
    if settings.words == "causal" and model is None:
        raise ModelError(say("marks.refused.words_causal"))
    marks.check_places(out, sealed)
    columns = replace(source.columns, more=settings.variant_column)
    corpus = replace(source, columns=columns).open()
    candidates = marks.own_candidates(corpus, settings, source.columns)
    similar = None if model is None else open_model(model, **asdict(opening))
    if similar is not None:
        check_plantable(similar)  # ModelError where no copy of it can be trained, for the sample size
    if candidates is None:
        how = opening.for_another()
        if settings.rewriter is not None:
            maker: Any = open_instructed(settings.rewriter, how, cache=settings.cache)
        else:
            own = {} if settings.words == "causal" else asdict(how)
            maker = open_proposer(str(settings.words), similar, cache=settings.cache, **own)
        candidates = marks.model_candidates(corpus, settings, maker)
    seal = marks.mark(corpus, candidates, settings)
    advice = checking.say_sample_size(seal, similar, replace(planting, cache=settings.cache), Stages())
    seal = replace(seal, about={**seal.about, "advice": list(advice)})
    rows = marks.rows_to_publish(seal, further_columns(source.texts, columns, corpus))
    return _publish(seal, rows, out, sealed, advice)


def order(
    source: Source,
    settings: marks.OrderSettings,
    out: Annotated[Path, _OUT],
    sealed: Annotated[Path, _SEALED],
) -> Reply:
    """Put the rows of a set, or the answer options of its items, in a random order before you publish it. The order and
    the others that the draw could have given are sealed in a file, whose hash is your commitment. Later, `pretrace mark
    check` tests whether a model was trained on the rows in that order."""
    marks.check_places(out, sealed)
    corpus = source.open()
    further = further_columns(source.texts, source.columns, corpus)
    seal, rows = marks.mark_order(corpus, settings, further)
    return _publish(seal, rows, out, sealed)


def _publish(seal: marks.Seal, rows: bytes, out: Path, sealed: Path, advice: tuple[str, ...] = ()) -> Reply:
    commitment = marks.publish(seal, out, sealed, rows)
    unit, notes, published = seal.unit, [*seal.notes, *advice], out / marks.PUBLISHED
    first = f"{len(seal.documents):,} {unit}s of {seal.name} are marked."
    number = marks.say_range([len(one.variants) for one in seal.documents])
    left = [f"Not marked: {one.id!r} ({one.reason})." for one in seal.unmarked[:3]]
    said: list[RenderableType] = [
        prose(first, "bold"),
        *(prose(f"- {line}") for line in (f"One of {number} versions of each was drawn.", *notes, *left)),
        f"Publish these texts, unchanged: {published}",
        f"Publish or timestamp this commitment: {commitment}",
        f"Keep this file secret and safe: {sealed}",
    ]
    own = {
        "marked": len(seal.documents),
        "not_marked": [
            {"id": one.id, "text": one.published, "reason": one.reason, "group": one.group}
            for one in seal.unmarked
        ],
        "notes": notes,
        "commitment": commitment,
        "published": str(published),
        "sealed": str(sealed),
    }
    return Reply(said, outcome="marked", statement=first, folder=out, own=own)


_TRIGGERS = "Servers that give text only"


@dataclass(frozen=True, slots=True, kw_only=True)
class _CheckInputs:
    """What the sealed file is compared with, and where the result goes, which --prompts does without."""

    commitment: str | None = input_option(None, "The published SHA-256, or a file that holds it.", panel=TEST)
    texts: str | None = input_option(None, "Texts as published, compared with the sealed file.", panel=TEST)
    model: str | None = input_option(
        None,
        "The model in question: a hub id, a model folder, a .gguf file, smollm2, or a server: vllm:URL, "
        "completions:URL. With --answers its name, for the report.",
        panel=MODEL,
    )
    opening: ModelSettings = field(default_factory=ModelSettings)
    prompts: Path | None = output_option(
        None, "Write the beginnings of trigger sentences here (id, prompt), and stop.", panel=_TRIGGERS
    )
    answers: str | None = input_option(
        None, "A file with what a model answered to them (id, answer); no model is opened.", panel=_TRIGGERS
    )
    reference_model: str | None = like(ModelsBeside, "reference_model")
    placebo: tuple[str, ...] = like(ModelsBeside, "placebo")
    placebo_note: str = like(ModelsBeside, "placebo_note")
    requested_by: str = like(ModelsBeside, "requested_by")
    out: Path | None = like(ModelsBeside, "out", default=None)


def check(
    sealed: Annotated[
        Path, Option("The file that `mark` sealed.", metavar="SEALED", path="in", essential=True)
    ],
    inputs: _CheckInputs,
    settings: checking.CheckSettings,
    given: RawOptions,
) -> Reply:
    """Was a model trained on texts that were marked? An exact test of the sealed draw. Exit code 3 for "consistent with
    training", 0 for "nothing shown" (with --power), 4 when there is no answer."""
    if inputs.prompts is not None:
        if inputs.answers is not None:
            raise ExpressionError("--prompts writes what --answers answers: give one of them.")
        check_writable(inputs.prompts, NEW)
        number = checking.write_prompts(marks.read_seal(sealed, inputs.commitment), inputs.prompts)
        said = f"{number:,} prompts in {inputs.prompts}: put each to the model as it is, keep id and answer."
        return Reply([said], statement=said, own={"prompts": number, "file": str(inputs.prompts)})
    if inputs.out is None:
        raise ExpressionError("a test writes its result to a folder: name it with --out.")
    beside = shared(ModelsBeside, inputs)
    if inputs.commitment is None:
        raise TextsError(say("marks.refused.no_commitment"))
    check_writable(beside.out, VERDICTS.of("marks" if inputs.answers is None else "triggers"))
    unused: dict[str, Any] = {"--reference-model": beside.reference_model, "--placebo": beside.placebo}
    unused |= {"--score": settings.score, "--power": settings.power}
    for found, value in unused.items() if inputs.answers is not None else ():
        if value:
            raise ExpressionError(say("marks.refused.no_use", found=found))
    if inputs.answers is None and inputs.model is None:
        raise ModelError(say("marks.refused.no_model"))
    if settings.score or beside.reference_model:
        settings.plan(reference=beside.reference_model is not None)
    seal = marks.read_seal(sealed, inputs.commitment)
    notes = checking.check_published(seal, open_corpus(inputs.texts)) if inputs.texts else ()
    told: dict[str, Any] = {"statements": beside.statements, "notes": notes}
    if inputs.answers is not None:
        model, answers = inputs.model or "the model that answered", checking.read_answers(inputs.answers)
        verdict = checking.check_triggers(seal, answers, settings, model=model, **told)
    else:
        target = Target(model=str(inputs.model), opening=inputs.opening)
        models = open_beside(target, beside, settings, second=bool(seal.parts))
        verdict = checking.check_marks(seal, models, settings, watch=Stages(), **told)
    return write_verdict(verdict, beside.out, given)


def canaries(
    source: Source,
    target: Target,
    asked: TextAccess,
    beside: ModelsBeside,
    settings: CanarySettings,
    given: RawOptions,
) -> Reply:
    """Does a model know the random strings of these texts (hashes, UUIDs)? Each is compared with fresh strings of the
    same format, under the model in question and a second one. Exit code 3 for "consistent with training", 0 for
    "nothing shown" (with --power), 4 when there is no answer."""
    check_writable(beside.out, VERDICTS.of("canaries"))
    corpus = source.open()
    found = natural_canaries(corpus, settings, text=asked.text)
    prompts = [one.prompt for one in found[0]]
    models = opened_for_access(target, beside, asked, settings, prompts, 0)
    told: dict[str, Any] = {"statements": beside.statements, "watch": Stages()}
    verdict = check_canaries(corpus, models, settings, canaries=found, text=asked.text, **told)
    return write_verdict(verdict, beside.out, given)
