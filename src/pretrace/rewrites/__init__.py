"""What can be done to a text before a model reads it, by the expression a `View` carries.

A new rewrite is one new file in this folder: a class under `@rewrites.add(name)`, or, where letters or words
are disturbed at random, a plain function under `@disturbance(name)`.
"""

from __future__ import annotations

from pretrace.registry import rewrites
from pretrace.rewrites.forms import After, Disturbance, Lower, Neighbors, Plain, disturbances, readable
from pretrace.types import Rewrite

__all__ = [
    "After",
    "Disturbance",
    "Lower",
    "Neighbors",
    "Plain",
    "Rewrite",
    "disturbances",
    "readable",
    "rewrites",
]
