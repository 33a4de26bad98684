"""The nouns of pretrace: texts → traces → scores → statistics → report. Imports nothing of ours.

Everything here is immutable. Arrays are numpy; one entry of a trace is one token the model predicted.
"""

from pretrace.types.arrays import Doubles, Floats, Ints
from pretrace.types.asking import Backend, Encoded
from pretrace.types.results import Curve, Estimate, Evaluation, Heat, Measured, Run, Skipped
from pretrace.types.scoring import Recipe, Reference, Score, TokenTable
from pretrace.types.texts import Corpus, Text
from pretrace.types.traces import Evidence, Needs, Quantity, Trace, View

__all__ = [
    "Backend",
    "Corpus",
    "Curve",
    "Doubles",
    "Encoded",
    "Estimate",
    "Evaluation",
    "Evidence",
    "Floats",
    "Heat",
    "Ints",
    "Measured",
    "Needs",
    "Quantity",
    "Recipe",
    "Reference",
    "Run",
    "Score",
    "Skipped",
    "Text",
    "TokenTable",
    "Trace",
    "View",
]
