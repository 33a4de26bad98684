"""`pretrace mark check` and `canaries`: check all that can be checked, open models, test, write, print."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pretrace.backends.settings import ModelSettings
from pretrace.cli.answer import Answer, lines
from pretrace.cli.options import Given
from pretrace.cli.paths import Source
from pretrace.cli.verdicts import Asked, finished, named, opened, opened_for_text
from pretrace.errors import ExpressionError, ModelError, TextsError
from pretrace.results.atomic import check_writable
from pretrace.results.output_checks import NEW
from pretrace.results.verdicts import VERDICTS
from pretrace.scoring.settings import Target
from pretrace.settings import MODEL, Option, like, option
from pretrace.types import Verdict
from pretrace.verdicts.canaries import CanarySettings
from pretrace.verdicts.marks import CheckSettings
from pretrace.verdicts.settings import TEST, Beside

if TYPE_CHECKING:
    from pretrace.verdicts.marking.sealed import Seal

_TRIGGERS = "Servers that give text only"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInputs:
    """What the sealed file is held against, and where the result goes."""

    commitment: str | None = option(
        None,
        "The SHA-256 that was published, or the file that holds it.",
        panel=TEST,
        path="in",
        essential=True,
    )
    beacon_value: str | None = option(
        None,
        "For a sealed file of mark texts --beacon: the beacon's value (64 hexadecimal digits), or beacon.txt.",
        panel=TEST,
        path="in",
        essential=True,
    )
    texts: str | None = option(
        None,
        "The texts as they were published, to be compared with the sealed file; given as TEXTS is elsewhere.",
        panel=TEST,
        path="in",
        essential=True,
    )
    model: str | None = option(
        None,
        "The model in question: a hub id, a model folder, a .gguf file, smollm2, or a server: vllm:URL, sglang:URL, "
        "tgi:URL, completions:URL. With --answers its name, for the report.",
        panel=MODEL,
        path="in",
        essential=True,
    )
    opening: ModelSettings = field(default_factory=ModelSettings)
    prompts: Path | None = option(
        None,
        "Write the beginnings of the trigger sentences to this file (JSON lines: id, prompt), and end.",
        panel=_TRIGGERS,
        path="out",
        essential=True,
    )
    answers: str | None = option(
        None,
        "A file with what a model answered to them (id, answer); no model is opened.",
        panel=_TRIGGERS,
        path="in",
        essential=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckBeside:
    """Models beside the target, and where the result goes, which --prompts does without."""

    reference_model: str | None = like(Beside, "reference_model")
    placebo: tuple[str, ...] = like(Beside, "placebo")
    placebo_revision: str | None = like(Beside, "placebo_revision")
    placebo_note: str = like(Beside, "placebo_note")
    requested_by: str = like(Beside, "requested_by")
    out: Path | None = like(Beside, "out", default=None)

    def chosen(self) -> Beside:
        """The same with a folder for the result; ExpressionError where there is none."""
        if self.out is None:
            raise ExpressionError("a test writes its result to a folder: name it with --out.")
        return Beside(**{one.name: getattr(self, one.name) for one in fields(self)})


def check(
    sealed: Annotated[
        Path,
        Option(
            "The sealed file that `pretrace mark texts` wrote.", metavar="SEALED", path="in", essential=True
        ),
    ],
    inputs: CheckInputs,
    companions: CheckBeside,
    settings: CheckSettings,
    given: Given,
) -> Answer:
    """Was a model trained on texts that were marked? An exact test of the sealed draw. Exit code 3 for "consistent with
    training", 0 for "nothing shown" (with --power), 4 when there is no answer."""
    from pretrace.corpora import open_corpus
    from pretrace.verdicts.marking.sealed import drawn_seal, read_seal
    from pretrace.verdicts.marks import check_published
    from pretrace.verdicts.triggers import write_prompts

    if inputs.prompts is not None:
        if inputs.answers is not None:
            raise ExpressionError("--prompts writes what --answers answers: give one of them.")
        check_writable(inputs.prompts, NEW)
        number = write_prompts(read_seal(sealed, inputs.commitment), inputs.prompts)
        said = f"{number:,} prompts in {inputs.prompts}: put each to the model as it is, keep id and answer."
        return Answer(say=lines(said), statement=said, own={"prompts": number, "file": str(inputs.prompts)})
    beside = companions.chosen()
    if inputs.commitment is None:
        raise TextsError(
            "a test takes the commitment that was published: give --commitment, a SHA-256 or its file."
        )
    answered = inputs.answers is not None
    check_writable(beside.out, VERDICTS.of("triggers" if answered else "marks"))
    _check(inputs, beside, settings)
    seal = drawn_seal(read_seal(sealed, inputs.commitment), inputs.beacon_value)
    notes = check_published(seal, open_corpus(inputs.texts)) if inputs.texts else ()
    verdict = (_by_answers if answered else _by_model)(seal, inputs, beside, settings, notes)
    return finished(verdict, beside.out, given)


def canaries(
    source: Source, target: Target, asked: Asked, beside: Beside, settings: CanarySettings, given: Given
) -> Answer:
    """Does a model know the random strings of these texts (hashes, UUIDs)? Each is compared with fresh strings of the
    same format, under the model in question and a second one. Exit code 3 for "consistent with training", 0 for
    "nothing shown" (with --power), 4 when there is no answer."""
    from pretrace.cli.progress import Stages
    from pretrace.verdicts.answering import draws_of
    from pretrace.verdicts.canaries import check_canaries, natural_canaries, prompts_of

    check_writable(beside.out, VERDICTS.of("canaries"))
    corpus = source.open()
    found = natural_canaries(corpus, settings, text=asked.text)
    if asked.text:
        models = opened_for_text(target, beside, asked, settings, lambda _: prompts_of(found), draws_of(0))
    else:
        models = opened(named(target, beside, settings), second=True)
    verdict = check_canaries(
        corpus,
        models,
        settings,
        canaries=found,
        text=asked.text,
        statements=beside.statements,
        watch=Stages(),
    )
    return finished(verdict, beside.out, given)


def _check(inputs: CheckInputs, beside: Beside, settings: CheckSettings) -> None:
    """A PretraceError for what fits together badly, before anything is read or opened."""
    if inputs.answers is None:
        if inputs.model is None:
            raise ModelError(
                "name the model in question with --model; for a server that gives text only, see --prompts."
            )
        if settings.score or beside.reference_model:
            settings.plan(reference=beside.reference_model is not None)
        return
    unused = {
        "--reference-model": beside.reference_model,
        "--placebo": beside.placebo or beside.placebo_revision,
        "--score": settings.score,
        "--power": settings.power,
    }
    found = [name for name, value in unused.items() if value]
    if found:
        raise ExpressionError(
            f"{found[0]} has no use with --answers, where no model is opened: leave it away."
        )


def _by_model(
    seal: Seal, inputs: CheckInputs, beside: Beside, settings: CheckSettings, notes: tuple[str, ...]
) -> Verdict:
    from pretrace.cli.progress import Stages
    from pretrace.verdicts.marks import check_marks

    target = Target(model=str(inputs.model), opening=inputs.opening)
    models = opened(named(target, beside, settings))
    return check_marks(seal, models, settings, statements=beside.statements, notes=notes, watch=Stages())


def _by_answers(
    seal: Seal, inputs: CheckInputs, beside: Beside, settings: CheckSettings, notes: tuple[str, ...]
) -> Verdict:
    from pretrace.verdicts.triggers import check_triggers, read_answers

    answers = read_answers(str(inputs.answers))
    model = inputs.model or "the model that answered"
    return check_triggers(seal, answers, settings, model=model, statements=beside.statements, notes=notes)
