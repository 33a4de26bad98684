"""`pretrace recite`: does the model print these texts? Check, open, ask, write, print."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pretrace.cli import note
from pretrace.cli.commands import RawOptions, Reply
from pretrace.cli.opening import TextAccess, opened_for_access
from pretrace.cli.telling import Stages, write_verdict
from pretrace.corpora import open_corpus
from pretrace.corpora.opening import Source
from pretrace.plugins import recite as recitation
from pretrace.plugins.recite import ReciteSettings
from pretrace.results.atomic import check_writable
from pretrace.runs import VERDICTS
from pretrace.scoring.plan import Target
from pretrace.settings import Option
from pretrace.types import COMPARED
from pretrace.verdicts.settings import ModelsBeside

_CONTROLS = Option(
    "Control texts of the same kind that the model cannot have read: without them nobody is accused.",
    panel=COMPARED,
    path="in",
    essential=True,
)


def recite(
    source: Source,
    target: Target,
    *,
    controls: Annotated[str | None, _CONTROLS] = None,
    asked: TextAccess,
    settings: ReciteSettings,
    beside: ModelsBeside,
    given: RawOptions,
) -> Reply:
    """Does the model print these texts, word for word? Compared with control texts, other documents' ends and a second
    model. Exit code 3 when consistent with training, 0 when nothing was found (with --power), 4 when inconclusive."""
    check_writable(beside.out, VERDICTS.of("recite"))
    columns = replace(source.columns, label=source.columns.label or "")
    corpus = replace(source, columns=columns).open()
    unseen = open_corpus(controls, columns.of_another) if controls else None
    text = asked.text
    # texts that are too short are found before a model is opened
    windows = recitation.windows_of(corpus, unseen, settings, text=text)
    prompts = [one.prefix for one in windows.found]
    models = opened_for_access(target, beside, asked, settings, prompts, settings.samples)
    note(f"{len(prompts):,} windows are asked; and as many of a second model where one is needed.")
    own: dict[str, Any] = {"windows": windows, "watch": Stages(), "statements": beside.statements}
    made = recitation.recite(corpus, models, settings, controls=unseen, text=text, **own)
    return write_verdict(made, beside.out, given)
