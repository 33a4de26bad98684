"""`pretrace samples`: the log of an evaluation, read, compared with known non-members, written, printed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from pretrace.backends.naming import ModelSettings
from pretrace.cli.commands import RawOptions, Reply, output_option
from pretrace.cli.scoring import FlagInputs, check_flagging, models_of_flagging
from pretrace.cli.telling import doing, watched, with_command, write_verdict
from pretrace.corpora import open_corpus
from pretrace.plugins.harnesses.samples import SamplesSettings, is_log, metric_of, read_log
from pretrace.plugins.harnesses.samples import samples as compare
from pretrace.results.atomic import check_writable
from pretrace.runs import FLAGGING as FLAGGING_FOLDER
from pretrace.runs import VERDICTS, save_verdict
from pretrace.scoring.plan import Companions, Target, open_models, with_texts
from pretrace.settings import MODEL, like, option
from pretrace.verdicts.flag.planning import FLAGGING, FlagSettings
from pretrace.verdicts.settings import input_option


@dataclass(frozen=True, slots=True, kw_only=True)
class _SamplesInputs:
    """Which log, how the evaluated model is opened, what the items are compared with, and where results go."""

    logs: str = option(
        help="What lm_eval wrote with --log_samples: its output folder, or one samples_TASK_DATE.jsonl.",
        metavar="LOGS",
        path="in",
        essential=True,
    )
    model: str = input_option(
        "",
        "The evaluated model, as other commands take it; the one that the log names unless given.",
        panel=MODEL,
    )
    opening: ModelSettings = field(default_factory=ModelSettings)
    controls: str = input_option(
        help="Items of the same kind that the model cannot have seen, from 20 documents or more: texts as `flag` takes "
        "them, or a log of the same task, whose accuracy then stands beside.",
        panel=FLAGGING,
    )
    out: Path = output_option(
        help="Folder for report.html, result.json, items.csv and accuracy.csv; a result there is replaced.",
        panel=FLAGGING,
    )
    flags_out: Path | None = option(None, "Folder for the whole flagging.", panel=FLAGGING, path="out")
    placebo: str | None = like(FlagInputs, "placebo")
    companions: Companions = field(default_factory=Companions)


def samples(
    inputs: _SamplesInputs, settings: SamplesSettings, flagging: FlagSettings, given: RawOptions
) -> Reply:
    """Accuracy on items that a model seems to have seen, beside that on the others, from what lm_eval --log_samples
    wrote. Exit codes as for flag: 3 when items or the set stand out, 0 when neither and --power showed
    that it would have been seen, 4 when there is no answer."""
    check_flagging(flagging, inputs.companions)
    kinds = (VERDICTS.of("samples"), FLAGGING_FOLDER)
    for folder, kind in zip((inputs.out, inputs.flags_out), kinds, strict=True):
        if folder:
            check_writable(folder, kind)
    log, others = read_log(inputs.logs, task=settings.task, filter=settings.filter), None
    if is_log(inputs.controls):  # its items are read as the others are
        others = read_log(inputs.controls, task=settings.task, filter=settings.filter)
        corpus = replace(others.corpus(settings.part, settings.group_field), name=inputs.controls)
    else:
        corpus = open_corpus(inputs.controls)
    metric_of(log, others, settings.metric)
    target = Target(model=inputs.model, opening=inputs.opening)
    if not inputs.model:  # the one that the log names, at the revision that it names
        revision = inputs.opening.revision or log.revision
        target = Target(model=log.model, opening=replace(inputs.opening, revision=revision))
    wanted = models_of_flagging(target, inputs.companions, inputs.placebo)
    flagging.plan.check_servers(wanted.roles)
    with doing("opening the models"):
        models = open_models(wanted)
    models = with_texts(models, wanted)
    with watched("reading") as progress:
        verdict, flagged = compare(log, corpus, models, settings, flagging, others=others, progress=progress)
    if inputs.flags_out:
        save_verdict(with_command(flagged, given), inputs.flags_out)
    return write_verdict(verdict, inputs.out, given)
