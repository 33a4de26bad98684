"""What can be done to a text before a model reads it, by the name a `View` carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Rewrite = Callable[[str], str]

REWRITES: Mapping[str, Rewrite] = {"plain": lambda text: text, "lower": str.lower}
