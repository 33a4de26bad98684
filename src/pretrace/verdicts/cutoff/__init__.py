"""A training cut-off in dated texts: a drop of what the model knows, ranked among drops at other dates."""

from pretrace.verdicts.cutoff.compare import cutoff
from pretrace.verdicts.cutoff.settings import CutoffSettings

__all__ = ["CutoffSettings", "cutoff"]
