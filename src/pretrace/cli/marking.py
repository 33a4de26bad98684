"""`pretrace mark texts` and `draw`: check all that can be checked, make the variants, draw, seal, measure, print."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console

from pretrace.backends.settings import ModelSettings
from pretrace.cli.answer import Answer, Plain, lines
from pretrace.cli.options import Only
from pretrace.cli.paths import Source
from pretrace.corpora.opening import further_columns
from pretrace.errors import ModelError
from pretrace.settings import MODEL, RUN, Option, option
from pretrace.types import Corpus
from pretrace.verdicts.marking.settings import MarkSettings
from pretrace.verdicts.settings import TestSettings

if TYPE_CHECKING:
    from pretrace.types import Backend
    from pretrace.verdicts.marking.advice import SampleSize
    from pretrace.verdicts.marking.sealed import Seal
    from pretrace.verdicts.marking.variants import Candidates

_PLANTING = Only(("level", "power_epochs", "power_method"), essential=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkOutputs:
    """Where the marked texts and the sealed file go, and the model for the sample size."""

    out: Path = option(
        help="New folder for what is published: published.jsonl, and commitment.txt to publish or timestamp with it "
        "(with --beacon commitment.txt alone, to publish before the beacon comes).",
        panel=RUN,
        path="out",
        essential=True,
    )
    sealed: Path = option(
        help="New file for all variants and the draw, readable by its owner alone. Keep it secret and safe; it is "
        "never overwritten.",
        panel=RUN,
        path="out",
        essential=True,
    )
    model: str | None = option(
        None,
        "An open model like the one that may come, with weights here: a copy of it reads the texts, which says how "
        "many texts the test needs.",
        panel=MODEL,
        path="in",
        essential=True,
    )
    opening: ModelSettings = field(default_factory=ModelSettings)


def mark(
    source: Source,
    settings: MarkSettings,
    outputs: MarkOutputs,
    planting: Annotated[TestSettings, _PLANTING],
) -> Answer:
    """Mark texts before you publish them: of several variants of each text a lot decides which one you publish. The
    variants and the draw are sealed in a file, whose hash is your commitment. Later, `pretrace mark check` says exactly
    whether a model was trained on what you published."""
    from pretrace.verdicts.marking import mark as marking
    from pretrace.verdicts.marking.advice import words_of
    from pretrace.verdicts.marking.variants import checked_texts

    if settings.words == "causal" and outputs.model is None:
        raise ModelError(
            "--words causal lets --model propose the words: give --model, or --words causal:MODEL."
        )
    marking.check_places(outputs.out, outputs.sealed)
    columns = replace(source.columns, more=settings.variant_column)
    corpus = checked_texts(replace(source, columns=columns).open())
    candidates = marking.own_candidates(corpus, settings, source.columns)
    model = _opened(outputs)
    candidates = candidates or _made(corpus, settings, outputs, model)
    seal = marking.mark(corpus, candidates, settings)
    size = _measured(seal, model, replace(planting, cache=settings.cache))
    advice = words_of(size, planting.level)
    seal = marking.with_advice(seal, advice)
    further = further_columns(source.texts, columns, corpus)
    commitment = marking.publish(seal, outputs.out, outputs.sealed, further)
    return _marked(seal, advice, commitment, outputs)


def _opened(outputs: MarkOutputs) -> Backend | None:
    """The model that the sample size is measured with; ModelError where no copy of it can be trained."""
    from pretrace.backends import open_model
    from pretrace.verdicts.audit.power import check_plantable

    if outputs.model is None:
        return None
    model = open_model(outputs.model, **asdict(outputs.opening))
    check_plantable(model)
    return model


def _made(corpus: Corpus, settings: MarkSettings, outputs: MarkOutputs, model: Backend | None) -> Candidates:
    """The variants of a rewriter or of a proposer of words, which are opened here."""
    from pretrace.backends.proposals import open_proposer
    from pretrace.building.instructed import open_instructed
    from pretrace.verdicts.marking.mark import model_candidates

    names = ("dtype", "device", "trust_remote_code", "allow_pickle")
    how = {name: getattr(outputs.opening, name) for name in names}
    if settings.rewriter is not None:
        rewriter = open_instructed(settings.rewriter, cache=settings.cache, **how)
        return model_candidates(corpus, settings, rewriter=rewriter)
    own = {} if settings.words == "causal" else how
    proposer = open_proposer(str(settings.words), model, cache=settings.cache, **own)
    return model_candidates(corpus, settings, proposer=proposer)


def _measured(seal: Seal, model: Backend | None, settings: TestSettings) -> SampleSize | None:
    from pretrace.cli.progress import Stages
    from pretrace.scoring.plan import Models
    from pretrace.verdicts.marking.advice import sample_size

    return None if model is None else sample_size(seal, Models(model), settings, watch=Stages())


def _marked(seal: Seal, advice: tuple[str, ...], commitment: str, outputs: MarkOutputs) -> Answer:
    """What was done, what to do next, and whether the texts are enough."""
    first = f"{len(seal.documents):,} texts of {seal.name} are marked."
    sizes = [len(one.variants) for one in seal.documents]
    between = f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
    notes = [*seal.notes, *advice]
    listed = [f"One of {between} variants of each was drawn.", *notes]
    listed += [f"Not marked: {one.id!r} ({one.reason})." for one in seal.unmarked[:3]]
    published = outputs.out / "published.jsonl"
    rest = (
        f"Publish these texts, unchanged: {published}",
        f"Publish or timestamp this commitment: {commitment}",
        f"Keep this file secret and safe: {outputs.sealed}",
    )
    if seal.beacon is not None:
        first = f"{len(seal.documents):,} texts of {seal.name} are ready to be marked; nothing is drawn yet."
        listed[0] = f"One of {between} variants of each will be drawn by {seal.beacon.words}."
        rest = (
            f"1. Publish or timestamp this commitment before the beacon comes ({seal.beacon.when}): {commitment}",
            f"2. Keep this file secret and safe: {outputs.sealed}",
            f"3. When it has come, take its value ({seal.beacon.where}) and draw: "
            f"pretrace mark draw {outputs.sealed} --beacon-value VALUE --out NEW_FOLDER",
        )

    def say(console: Console) -> None:
        console.print(Plain(first, style="bold"))
        for line in listed:
            console.print(Plain(f"- {line}"))
        lines(*rest)(console)

    own = {
        "marked": len(seal.documents),
        "not_marked": seal.unmarked,
        "notes": notes,
        "commitment": commitment,
    }
    own |= {"published": str(published) if seal.is_drawn else None, "sealed": str(outputs.sealed)}
    if seal.beacon is not None:
        own["beacon"] = {"source": seal.beacon.source, "number": seal.beacon.number, "when": seal.beacon.when}
    return Answer(say=say, outcome="marked", statement=first, folder=outputs.out, own=own)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawInputs:
    """The value of the beacon, and where the drawn texts go."""

    beacon_value: str = option(
        help="The value of the beacon that the sealed file names: 64 hexadecimal digits, or a file that holds them.",
        panel=RUN,
        path="in",
        essential=True,
    )
    out: Path = option(
        help="New folder for what is published: published.jsonl, with commitment.txt and beacon.txt.",
        panel=RUN,
        path="out",
        essential=True,
    )


def draw(
    sealed: Annotated[
        Path,
        Option(
            "The sealed file of `pretrace mark texts --beacon`.", metavar="SEALED", path="in", essential=True
        ),
    ],
    inputs: DrawInputs,
) -> Answer:
    """The second step of `mark texts --beacon`: when the beacon has come, its value and your commitment decide which
    version of each text you publish. The same value always gives the same draw."""
    from pretrace.verdicts.marking import mark as marking
    from pretrace.verdicts.marking.sealed import drawn_by, read_seal

    marking.check_folder(inputs.out)
    seal = drawn_by(read_seal(sealed), inputs.beacon_value)
    marking.publish_drawn(seal, inputs.out)
    published, beacon = inputs.out / marking.PUBLISHED, inputs.out / marking.BEACON
    first = f"{len(seal.documents):,} texts of {seal.name} are drawn."
    rest = (
        f"Publish these texts, unchanged: {published}",
        f"Publish or keep the value that decided: {beacon}",
        f"Keep this file secret and safe: {sealed}",
    )
    own = {"drawn": len(seal.documents), "commitment": seal.sha256, "published": str(published)}
    return Answer(say=lines(first, *rest), outcome="drawn", statement=first, folder=inputs.out, own=own)
