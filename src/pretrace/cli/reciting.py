"""`pretrace recite`: does the model print these texts? Check, open, ask, write, print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from pretrace.backends.serving.address import served_kind, text_kind
from pretrace.cli.answer import Answer
from pretrace.cli.notes import note
from pretrace.cli.options import Given
from pretrace.cli.paths import Source
from pretrace.cli.under_way import doing
from pretrace.corpora import open_corpus
from pretrace.errors import ModelError
from pretrace.results.atomic import check_writable
from pretrace.results.verdicts import VERDICTS
from pretrace.scoring.plan import Models
from pretrace.scoring.settings import Target
from pretrace.settings import MODEL, option
from pretrace.types import Backend
from pretrace.types.audit import COMPARED
from pretrace.verdicts.recite import ReciteSettings
from pretrace.verdicts.settings import Beside


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the texts are held against, and how the models are asked."""

    heldout: str | None = option(
        None,
        "Control texts of the same kind that the model cannot have read: without them nobody is accused.",
        panel=COMPARED,
        path="in",
        essential=True,
    )
    access: Literal["weights", "text"] = option(
        "weights",
        "weights: the chance of each text, from the model's probabilities; text: what it writes, also from a model "
        "that gives text alone (chat:URL, completions:URL).",
        panel=MODEL,
        essential=True,
    )
    budget: int = option(
        2_000, "Requests that may be sent, with --access text.", panel=MODEL, least=0, essential=True
    )
    budget_tokens: int = option(
        1_000_000,
        "Tokens of prompts and answers that may be paid for, with --access text.",
        panel=MODEL,
        least=0,
    )


def recite(
    source: Source, target: Target, asked: Asked, settings: ReciteSettings, beside: Beside, given: Given
) -> Answer:
    """Does the model print these texts, word for word? Held against control texts, other documents' ends and a second
    model. Exit code 3 when consistent with training, 0 when nothing was found (with --power), 4 when inconclusive."""
    from pretrace.cli.progress import Stages
    from pretrace.cli.verdicts import finished, named, opened
    from pretrace.verdicts import recite as room

    check_writable(beside.out, VERDICTS.of("recite"))
    columns = replace(source.columns, label=source.columns.label or "")
    corpus = open_corpus(source.texts, columns)
    controls = open_corpus(asked.heldout, columns) if asked.heldout else None
    text = asked.access == "text"
    # texts that are too short are found before a model is opened
    windows = room.windows_of(corpus, controls, most=room.MOST_ASKED if text else room.MOST_WINDOWS)
    if text:
        prompts = [one.prefix for one in windows.found]
        models = _opened_for_text(target, beside, asked, settings, prompts)
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


def _opened_for_text(
    target: Target, beside: Beside, asked: Asked, settings: ReciteSettings, prompts: Sequence[str]
) -> Models:
    """The models that are asked for continuations, the cost of asking told first; ModelError where it is too much."""
    from pretrace.backends import open_model
    from pretrace.backends.serving.continuing import Budget, cost, open_continuing
    from pretrace.verdicts.frame import with_second
    from pretrace.verdicts.recite import draws_of

    if beside.reference_model:
        raise ModelError(
            "recite takes no reference model: leave --reference-model away, or name it with --placebo."
        )
    if settings.power and text_kind(target.model):
        raise ModelError(
            "--power trains a copy of the target, and a model that gives text alone has no weights here: leave --power "
            "away, or open the weights."
        )
    names = (target.model, *beside.placebo)
    budget = Budget(asked.budget, asked.budget_tokens)
    for name in names:
        if text_kind(name):
            requests, tokens = cost(prompts, draws_of(settings.samples))
            note(
                f"{name}: up to {requests:,} requests and {tokens:,} tokens, less what it has answered before and was "
                "kept."
            )

    def one(name: str, *, first: bool) -> Backend:
        opening = target.opening
        if text_kind(name):
            opening = opening if first else replace(opening, served_model=None)
            return open_continuing(name, opening, budget=budget, cache=settings.cache)
        if served_kind(name):
            raise ModelError(f"{name}: with --access text a server is written completions:URL or chat:URL.")
        revision = opening.revision if first else beside.placebo_revision
        return open_model(name, **asdict(replace(opening.for_weights(), revision=revision)))

    with doing("opening the models"):
        models = Models(
            one(names[0], first=True), placebos=tuple(one(name, first=False) for name in names[1:])
        )
        return with_second(models, device=target.opening.device)
