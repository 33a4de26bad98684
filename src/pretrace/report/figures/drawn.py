"""A figure of a report, with what is read to those who cannot see it."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure, its label for those who cannot see it, and its caption."""

    figure: Figure
    label: str
    caption: str
