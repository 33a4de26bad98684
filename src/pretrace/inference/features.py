"""The membership scores that the classifiers of dataset inference are given, by the expressions that name them."""

from __future__ import annotations

SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""The shares of tokens at which the release takes min-k and max-k."""

RELEASE: tuple[str, ...] = (
    "ppl",
    *(f"min_k(k={k})" for k in SHARES),
    *(f"max_k(k={k})" for k in SHARES),
    "zlib",
    "perturbed(kind='typos', share=0.1)",
    "perturbed(kind='deletion', share=0.25)",
    "perturbed(kind='case', share=0.25)",
    "perturbed(kind='whitespace', share=0.25)",
    "perturbed(kind='underscore', share=0.25)",
)
"""The feature families of the releases (Maini et al. 2024; post-hoc DI section 2), as score expressions.

Shares are those the releases disturb their texts with. They also replace words by synonyms, which takes a
dictionary of English and is left out here.
"""

REFERENCE: tuple[str, ...] = ("ref",)
"""What is added where there is a reference model."""


def expressions(reference: bool) -> tuple[str, ...]:
    """The scores of every piece of text; `reference` says whether there is a reference model."""
    return RELEASE + (REFERENCE if reference else ())
