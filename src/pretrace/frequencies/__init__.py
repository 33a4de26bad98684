"""How often each token of a tokenizer occurs in a reference corpus: the table DC-PDD is calibrated with.

Counting is fast because text repeats itself: a text is cut at its seams (where its parts tokenise as they do inside it)
with a table look-up per byte, the distinct pieces are counted, and the tokenizer sees each of them once.
"""

from pretrace.frequencies.counting import Counting, count
from pretrace.frequencies.table import Frequencies

__all__ = ["Counting", "Frequencies", "count"]
