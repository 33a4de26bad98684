"""The registry every score adds itself to."""

from pretrace.registry import Registry
from pretrace.types import Recipe, Score

scores: Registry[Score | Recipe] = Registry("score")
