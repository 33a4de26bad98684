"""`pretrace recite`: does the model print these texts? Check, open, ask, write, print."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pretrace.cli.answer import Answer
from pretrace.cli.options import Given, Source
from pretrace.cli.verdicts import Asked, opened_for_text
from pretrace.corpora import open_corpus
from pretrace.results.atomic import check_writable
from pretrace.results.verdicts import VERDICTS
from pretrace.scoring.plan import Target
from pretrace.settings import option
from pretrace.types.audit import COMPARED
from pretrace.verdicts.recite import ReciteSettings
from pretrace.verdicts.settings import Beside


@dataclass(frozen=True, slots=True, kw_only=True)
class Heldout:
    """What the texts are held against."""

    heldout: str | None = option(
        None,
        "Control texts of the same kind that the model cannot have read: without them nobody is accused.",
        panel=COMPARED,
        path="in",
        essential=True,
    )


def recite(
    source: Source,
    target: Target,
    held: Heldout,
    asked: Asked,
    settings: ReciteSettings,
    beside: Beside,
    given: Given,
) -> Answer:
    """Does the model print these texts, word for word? Held against control texts, other documents' ends and a second
    model. Exit code 3 when consistent with training, 0 when nothing was found (with --power), 4 when inconclusive."""
    from pretrace.cli.progress import Stages
    from pretrace.cli.verdicts import finished, named, opened
    from pretrace.verdicts import recite as room
    from pretrace.verdicts.answering import draws_of

    check_writable(beside.out, VERDICTS.of("recite"))
    columns = replace(source.columns, label=source.columns.label or "")
    corpus = open_corpus(source.texts, columns)
    controls = open_corpus(held.heldout, columns) if held.heldout else None
    text = asked.text
    # texts that are too short are found before a model is opened
    windows = room.windows_of(corpus, controls, most=room.MOST_ASKED if text else room.MOST_WINDOWS)
    if text:
        prompts = [one.prefix for one in windows.found]
        models = opened_for_text(
            target, beside, asked, settings, lambda _: prompts, draws_of(settings.samples)
        )
    else:
        models = opened(named(target, beside, settings), second=True)
    verdict = room.recite(
        corpus,
        models,
        settings,
        controls=controls,
        text=text,
        watch=Stages(),
        statements=beside.statements,
    )
    return finished(verdict, beside.out, given)
