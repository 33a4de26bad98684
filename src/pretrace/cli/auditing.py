"""`pretrace audit`: check all that can be checked, say the plan, open, ask, write, print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pretrace.backends import loading, open_model
from pretrace.backends.naming import ModelSettings
from pretrace.cli import quiet
from pretrace.cli.commands import CANNOT_ANSWER, RawOptions, Reply, output_option, print_lines
from pretrace.cli.telling import Stages, doing, with_command, write_verdict
from pretrace.corpora import open_corpus
from pretrace.corpora.opening import Source
from pretrace.errors import ExpressionError, MissingPackageError
from pretrace.results.atomic import check_writable
from pretrace.results.wording import duration
from pretrace.runs import AUDIT as AUDIT_FOLDER
from pretrace.runs import REPORT, save_verdict
from pretrace.scoring.plan import Companions, ModelsSettings, Target, open_models
from pretrace.settings import MODEL, like, option, requested_option, statements_of
from pretrace.types import COMPARED, GENERATING, Backend, Corpus, Outcome
from pretrace.verdicts.advise import foresee
from pretrace.verdicts.audit.audit import Audit
from pretrace.verdicts.audit.data import AUDIT, BESIDE, AuditPlan, AuditSettings, DesignError, exposures
from pretrace.verdicts.settings import TestSettings, input_option

QUICK_PAIRS, QUICK_LEARNT = 200, 100
_PACKAGED = "smollm2"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """What the texts are compared with, and what is done with the answer."""

    controls: str | None = input_option(
        None,
        "Control documents: texts of the same kind that are known to be unseen, given as TEXTS is. "
        "Recommended: with them, no other model is needed.",
        panel=COMPARED,
    )
    controls_note: str = option(
        "",
        "Where the control documents come from, and how they are known to be unseen, for the report.",
        panel=COMPARED,
        states="controls",
    )
    generator: str = input_option(
        _PACKAGED,
        "The small model that is tuned on a part of TEXTS and writes held-out continuations; any --model value.",
        panel=COMPARED,
    )
    generator_dtype: str = GENERATING.key(
        "auto", "Number format; auto takes the fastest on this processor.", name="dtype"
    )
    placebo: tuple[str, ...] = input_option(
        (),
        "A model that never saw TEXTS: an earlier checkpoint of the target (@REVISION, the best), the base it was "
        "tuned from, or a sibling; any --model value, or NAME@REVISION. Give it more than once for several: the "
        "largest p counts. The packaged smollm2, if installed, is asked as well.",
        panel=BESIDE,
    )
    placebo_note: str = option(
        "",
        "How the placebo is known to be earlier than TEXTS, for the report.",
        panel=BESIDE,
        states="placebo",
    )
    reference_model: str | None = option(
        None,
        "The smaller model that the score `ref` compares with; any --model value.",
        panel=MODEL,
        path="in",
    )
    power: bool = option(
        False,
        "Measure which training this audit would detect: train two copies of the target on half of TEXTS, one lightly "
        "and one heavily (each text read once, at learning rates of 5e-5 and 5e-4), and audit the copies. Needed for "
        "“nothing shown”, which names the lightest training that it excludes.",
        panel=BESIDE,
        essential=True,
    )
    power_method: Literal["full", "lora"] = like(TestSettings, "power_method")
    quick: bool = option(
        False,
        "At most 200 snippets of suspect texts and of controls, a generator tuned on at most 100 of each.",
        panel=AUDIT,
        essential=True,
    )
    plan: bool = option(
        False,
        "Say what this audit could answer and what it would cost, and stop: nothing is trained, no text is read.",
        panel=AUDIT,
        essential=True,
    )
    requested_by: str = requested_option(AUDIT, essential=True)
    out: Path | None = output_option(
        None,
        "Folder for report.html, result.json, the generated texts and every table; an audit that is already "
        "there is replaced.",
        panel=AUDIT,
    )


def audit(
    source: Source, target: Target, inputs: AuditOptions, settings: AuditSettings, given: RawOptions
) -> Reply:
    """Was this collection used? A test with its controls, a report, and an exit code: 0 nothing shown, 3 consistent
    with training on it, 4 inconclusive. Give control documents with --controls; see --plan first."""
    out = inputs.out
    if not inputs.plan:
        if out is None:
            raise ExpressionError(
                "an audit is written to a folder: name it with --out, or ask for the --plan alone."
            )
        check_writable(out, AUDIT_FOLDER)
    corpus = source.open()
    controls = open_corpus(inputs.controls, source.columns.of_another) if inputs.controls else None
    planned = open_audit(corpus, controls, target, inputs, settings)
    if inputs.plan or out is None:
        return _foreseen(planned.plan)
    if planned.plan.design is not None and not quiet():
        print_lines(_described(planned.plan), stderr=True)
    return make_audit(planned, out, given)


def open_audit(
    corpus: Corpus, controls: Corpus | None, target: Target, inputs: AuditOptions, settings: AuditSettings
) -> Audit:
    """Open the models of an audit: what there is to plan, and to make."""
    settings = _completed(settings, inputs)
    companions = Companions(reference_model=inputs.reference_model)
    wanted = ModelsSettings(
        target=target, companions=companions, placebos=inputs.placebo, several=True, second=True
    )
    with doing("opening the models"):
        models = open_models(wanted)
    generator = _generator(target.opening, inputs, needed=controls is None)
    sides: dict[str, Any] = {"corpus": corpus, "heldout": controls}
    return Audit(**sides, models=models, generator=generator, settings=settings, watch=Stages())


def make_audit(planned: Audit, out: Path, given: RawOptions) -> Reply:
    """Make an audit, and write it with the options of its command."""
    try:
        made = planned.run()
    except DesignError as error:
        save_verdict(with_command(error.verdict, given), out)
        return _foreseen(error.plan, out)
    return write_verdict(made, out, given)


def _foreseen(plan: AuditPlan, out: Path | None = None) -> Reply:
    """What an audit could answer; exit code 4 where that is nothing. `out` is the folder with the page of a refusal."""
    label = "The words that tell the two sides apart" if plan.control_documents else "Report"
    page = [] if out is None else [f"{label}: {out / REPORT}"]
    return Reply(
        [*_described(plan), *page],
        outcome="plan" if plan.design else "cannot answer",
        code=0 if plan.design else CANNOT_ANSWER,
        statement=plan.why,
        own={"plan": plan},
    )


_OUTCOMES: dict[Outcome, str] = {
    "consistent": "consistent with training (exit code 3)",
    "nothing": "nothing shown (exit code 0)",
    "inconclusive": "inconclusive (exit code 4)",
}
_DESIGNS = {
    "controls": "control documents, compared directly",
    "differences": "control documents, compared by differences",
    "placebos": "placebos, without control documents",
}


def _described(plan: AuditPlan) -> Iterator[str]:
    """The plan as lines for a terminal."""
    controls = f", {plan.control_documents:,} control documents" if plan.control_documents else ""
    yield f"Texts: {plan.documents:,} documents, {plan.snippets:,} snippets{controls}"
    yield from plan.notes
    for placebo in plan.placebos:
        yield f"Placebo: {placebo.name} ({placebo.grade}): {placebo.words}"
    if plan.design is None:
        yield f"This audit could not have answered. {plan.why}"
    else:
        yield f"Design: {_DESIGNS[plan.design]}. {plan.why}"
        yield f"Possible outcomes: {'; '.join(_OUTCOMES[one] for one in plan.outcomes)}"
        if "nothing" not in plan.outcomes:
            yield 'It cannot end with "nothing shown": that takes --power, which measures what it could have seen.'
        yield from foresee("controls", plan.situation)  # nothing without control documents
        time = "" if plan.seconds is None else f", about {duration(plan.seconds)}"
        yield f"Work: {plan.passes:,} passes of a text through a model{time}"
    yield from (f"What would help: {cure}" for cure in plan.cures)


def _completed(settings: AuditSettings, inputs: AuditOptions) -> AuditSettings:
    """The settings with what --quick, --power and the notes for the report add to them."""
    snippets = settings.snippets
    if inputs.quick:
        snippets = replace(snippets, pairs=min(snippets.pairs, QUICK_PAIRS), learnt=QUICK_LEARNT)
    power = exposures(inputs.power_method) if inputs.power else settings.power
    return replace(settings, statements=statements_of(inputs), snippets=snippets, power=power)


def _generator(opening: ModelSettings, inputs: AuditOptions, *, needed: bool) -> Backend | None:
    """The model that writes continuations; none where control documents are given and none is wanted."""
    # Control documents alone are compared directly or not at all: what is packaged is not opened for nothing.
    idle = not needed and not inputs.placebo and inputs.generator == _PACKAGED
    if idle or inputs.generator in ("", "none"):
        if needed:
            raise ExpressionError(
                "--generator names a model; with control documents (--controls) none is needed."
            )
        return None
    if (dtype := inputs.generator_dtype) == "auto":
        dtype = loading.fastest_format(loading.device_of("auto").type)
    try:
        return open_model(inputs.generator, **asdict(opening.for_another(dtype=dtype)))
    except MissingPackageError:
        if needed:
            raise
        return None  # control documents may do without one; where they do not, the plan says so
