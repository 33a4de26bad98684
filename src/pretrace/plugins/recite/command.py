"""`pretrace recite`: does the model print these texts? Check, open, ask, write, print."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pretrace.cli import note
from pretrace.cli.answer import Reply
from pretrace.cli.opening import TextAccess, opened_for_access
from pretrace.cli.options import RawOptions
from pretrace.cli.printing import write_verdict
from pretrace.cli.progress import Stages
from pretrace.corpora import open_corpus
from pretrace.corpora.opening import Source
from pretrace.plugins.recite import recite as room
from pretrace.plugins.recite.recite import ReciteSettings
from pretrace.results.atomic import check_writable
from pretrace.results.verdicts import VERDICTS
from pretrace.scoring.settings import Target
from pretrace.types import COMPARED
from pretrace.verdicts.reading import draws_of
from pretrace.verdicts.settings import ModelsBeside, input_option


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heldout:
    """What the texts are held against."""

    controls: str | None = input_option(
        None,
        "Control texts of the same kind that the model cannot have read: without them nobody is accused.",
        panel=COMPARED,
    )


def recite(
    source: Source,
    target: Target,
    held: _Heldout,
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
    controls = open_corpus(held.controls, columns.of_another) if held.controls else None
    text = asked.text
    # texts that are too short are found before a model is opened
    windows = room.windows_of(corpus, controls, settings, text=text)
    prompts = [one.prefix for one in windows.found]
    models = opened_for_access(target, beside, asked, settings, prompts, draws_of(settings.samples))
    note(f"{len(prompts):,} windows are asked; and as many of a second model where one is needed.")
    own: dict[str, Any] = {"windows": windows, "watch": Stages(), "statements": beside.statements}
    made = room.recite(corpus, models, settings, controls=controls, text=text, **own)
    return write_verdict(made, beside.out, given)
