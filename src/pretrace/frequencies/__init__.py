"""How often each token of a tokenizer occurs in a reference corpus: the table DC-PDD is calibrated with.

    table       the counts, their smoothing, and their file (arrays: npz files that say what they are)
    counting    texts → table: exact, parallel, resumed after a kill (tally, checkpoint)
    seams       where a text may be cut so that its parts tokenise as they do inside it (patterns, neighbours)
    pieces      texts cut at their seams, distinct pieces counted
    encoding    pieces or whole texts → token counts

Counting is fast because text repeats itself: a text is cut at its seams with a table look-up per byte,
the distinct pieces are counted, and the tokenizer sees each of them once.
"""

from pretrace.frequencies.counting import Counting, count
from pretrace.frequencies.table import Frequencies

__all__ = ["Counting", "Frequencies", "count"]
