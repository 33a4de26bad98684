"""The membership scores that the classifiers of dataset inference are given, by the expressions that name them."""

from __future__ import annotations

SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""The shares of tokens at which the release takes min-k and max-k."""

_LIKELIHOOD = (
    "ppl",
    *(f"min_k(k={k})" for k in SHARES),
    *(f"max_k(k={k})" for k in SHARES),
    "zlib",
)
_DISTURBANCES = (
    ("typos", 0.1),
    ("deletion", 0.25),
    ("case", 0.25),
    ("whitespace", 0.25),
    ("underscore", 0.25),
)

RELEASE: tuple[str, ...] = (
    *_LIKELIHOOD,
    *(f"perturbed(kind='{kind}', share={share})" for kind, share in _DISTURBANCES),
)
"""The feature families of the releases (Maini et al. 2024; post-hoc DI section 2), as score expressions.

Shares are those the releases disturb their texts with, and ratios are of log-perplexities. They also replace words
by synonyms, which takes a dictionary of English and is left out here.
"""

PERPLEXITIES: tuple[str, ...] = (
    *_LIKELIHOOD,
    *(f"perturbed(kind='{kind}', share={share}, perplexity=True)" for kind, share in _DISTURBANCES),
)
"""The same with ratios of perplexities, as the releases take them; again without synonyms."""

COMMAND: tuple[str, ...] = (
    *(f"max_k(k={k})" for k in SHARES[2:5]),
    "perturbed(kind='deletion', share=0.25, perplexity=True)",
    "perturbed(kind='whitespace', share=0.25, perplexity=True)",
    "perturbed(kind='deletion', share=0.25, perplexity=True, difference=True)",
)
"""The six scores that the command shipped with post-hoc DI asks for. What its code calls min-k averages the lowest
losses, those of the most likely tokens: `max_k` here."""

REFERENCE: tuple[str, ...] = ("ref",)
"""What is added where there is a reference model."""

REFERENCE_PERPLEXITIES: tuple[str, ...] = ("ref(perplexity=True)",)
"""The same as a ratio of perplexities."""


def expressions(reference: bool, release: bool = False) -> tuple[str, ...]:
    """The scores of every piece of text; `reference` says whether there is a reference model, `release` asks for
    ratios of perplexities in place of log-perplexities, as the releases take them."""
    if release:
        return PERPLEXITIES + (REFERENCE_PERPLEXITIES if reference else ())
    return RELEASE + (REFERENCE if reference else ())
