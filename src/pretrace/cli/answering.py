"""What the commands with `--access text` share: how models are asked for text alone, at which cost, and opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from pretrace.backends.serving.address import served_kind, text_kind
from pretrace.cache.generated import Draw
from pretrace.cli.progress import doing
from pretrace.cli.streams import note
from pretrace.errors import ModelError
from pretrace.scoring.plan import Models
from pretrace.scoring.settings import Target
from pretrace.settings import MODEL, option
from pretrace.types import Backend
from pretrace.verdicts.settings import Beside, TestSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How the models are asked, and how much may be asked for."""

    access: Literal["weights", "text"] = option(
        "weights",
        "How the model is asked: weights, for its probabilities, or text, for what it writes, also of a model that "
        "gives text alone (chat:URL, completions:URL).",
        panel=MODEL,
        essential=True,
    )
    budget: int = option(
        2_000,
        "Requests that may be sent to each model, with --access text.",
        panel=MODEL,
        least=0,
        essential=True,
    )
    budget_tokens: int = option(
        1_000_000,
        "Tokens of prompts and answers that may be paid for with each model, with --access text.",
        panel=MODEL,
        least=0,
    )

    @property
    def text(self) -> bool:
        """Whether the models are asked for text alone."""
        return self.access == "text"


def opened_for_text(
    target: Target,
    beside: Beside,
    asked: Asked,
    settings: TestSettings,
    prompts: Callable[[bool], Sequence[str]],
    draws: Sequence[Draw],
) -> Models:
    """The models that are asked to continue `prompts` (of one that chats, or of another) so often, the cost of asking
    told first; ModelError where it is too much."""
    from pretrace.backends import open_model
    from pretrace.backends.serving.continuing import Budget, cost, open_continuing
    from pretrace.verdicts.frame import with_second

    if beside.reference_model:
        raise ModelError(
            "with --access text no reference model is taken off: leave --reference-model away, or name it with "
            "--placebo."
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
            requests, tokens = cost(prompts(text_kind(name) == "chat"), draws)
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
