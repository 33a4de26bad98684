"""How the models of a test with several of them are opened: for their probabilities, or asked for text alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from pretrace.backends import open_model
from pretrace.backends.naming import SERVED, served_kind, text_kind
from pretrace.backends.serving.continuing import cost, open_continuing
from pretrace.cli import note
from pretrace.cli.telling import doing
from pretrace.errors import ModelError
from pretrace.results.wording import say
from pretrace.scoring.plan import Companions, Models, ModelsSettings, Target, open_models, with_second
from pretrace.settings import MODEL, Option, option
from pretrace.types import Backend
from pretrace.verdicts.reading import draws_of
from pretrace.verdicts.settings import ModelsBeside, TestSettings


def open_beside(
    target: Target, beside: ModelsBeside, settings: TestSettings, *, second: bool = True
) -> Models:
    """Open the target with the reference model and the placebos that the options name, with `second` the packaged one
    beside them where no placebo is named.

    ModelError for a placebo that is the target, and for --power with a target on a server.
    """
    if settings.power and served_kind(target.model):
        raise ModelError(
            "--power trains a copy of the target, and a model on a server has no weights here: omit --power, or "
            "open the weights."
        )
    companions = Companions(reference_model=beside.reference_model)
    placebos, second = beside.placebo, second and not beside.placebo
    wanted = ModelsSettings(
        target=target, companions=companions, placebos=placebos, several=True, second=second
    )
    with doing("opening the models"):
        return open_models(wanted)


BUDGET = Option(
    "What may be asked of each model with --access text, as in requests=500.", name="budget", panel=MODEL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextAccess:
    """How the models are asked, and how much may be asked for."""

    access: Literal["weights", "text"] = option(
        "weights",
        "How the model is asked: weights, for its probabilities, or text, for what it writes, also of a model that "
        "gives text alone (chat:URL, completions:URL).",
        panel=MODEL,
        essential=True,
    )
    budget: int = BUDGET.key(2_000, "Requests to each model.", name="requests", least=0, essential=True)
    budget_tokens: int = BUDGET.key(1_000_000, "Tokens of prompts and answers.", name="tokens", least=0)

    @property
    def text(self) -> bool:
        """Whether the models are asked for text alone."""
        return self.access == "text"


def opened_for_access(
    target: Target,
    beside: ModelsBeside,
    asked: TextAccess,
    settings: TestSettings,
    prompts: Sequence[str],
    samples: int,
) -> Models:
    """Open the models, those that give text alone to continue `prompts` in so many `samples` beside the likeliest, the
    cost told first; ModelError where it is too much."""
    if not asked.text:
        return open_beside(target, beside, settings)
    if beside.reference_model:
        raise ModelError(say("answers.reference"))
    if settings.power and text_kind(target.model):
        raise ModelError(
            "--power trains a copy of the target, and a model that gives text alone has no weights here: omit "
            "--power, or open the weights."
        )
    how = {"most_requests": asked.budget, "most_tokens": asked.budget_tokens, "cache": settings.cache}
    placebos = target.with_revisions(beside.placebo)
    for name in (target.model, *(name for name, _ in placebos)):
        if text_kind(name):
            requests, tokens = cost(prompts, draws_of(samples))
            note(say("answers.cost", name=name, requests=requests, tokens=tokens))

    def one(name: str, revision: str | None, *, first: bool) -> Backend:
        opening = target.opening
        if text_kind(name):
            opening = opening if first else replace(opening, served_model=None)
            return open_continuing(name, opening, **how)
        if served_kind(name):
            raise ModelError(f"{name}: with --access text a server is written completions:URL or chat:URL.")
        return open_model(name, **asdict(replace(opening.without(SERVED), revision=revision)))

    with doing("opening the models"):
        others = tuple(one(*placebo, first=False) for placebo in placebos)
        models = Models(one(target.model, target.opening.revision, first=True), placebos=others)
        return models if others else with_second(models, device=target.opening.device)
