"""Twins: published texts beside their drafts, with a figure of how much hidden bias the result withstands."""

from pretrace.verdicts.twins.compare import twins
from pretrace.verdicts.twins.pairs import drafts_in
from pretrace.verdicts.twins.settings import TwinSettings

__all__ = ["TwinSettings", "drafts_in", "twins"]
