"""The nouns of pretrace: texts → traces → scores → statistics → report. Imports nothing of ours.

Everything here is immutable. Arrays are numpy; one entry of a trace is one token the model predicted.
"""

from pretrace.types.arrays import Doubles, Floats, Ints
from pretrace.types.asking import Backend, Encoded, Proposer, Tuned
from pretrace.types.results import Control, Curve, Estimate, Evaluation, Heat, Measured, Run, Skipped
from pretrace.types.scoring import Fitted, Recipe, Reference, Score, TokenTable
from pretrace.types.states import Firing, Hidden, State
from pretrace.types.texts import Corpus, Text
from pretrace.types.traces import Evidence, Needs, Quantity, States, Trace, View, quantity_of

__all__ = [
    "Backend",
    "Control",
    "Corpus",
    "Curve",
    "Doubles",
    "Encoded",
    "Estimate",
    "Evaluation",
    "Evidence",
    "Firing",
    "Fitted",
    "Floats",
    "Heat",
    "Hidden",
    "Ints",
    "Measured",
    "Needs",
    "Proposer",
    "Quantity",
    "Recipe",
    "Reference",
    "Run",
    "Score",
    "Skipped",
    "State",
    "States",
    "Text",
    "TokenTable",
    "Trace",
    "Tuned",
    "View",
    "quantity_of",
]
