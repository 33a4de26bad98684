"""Whether one side of two sets holds a group of its own: a scan over the groups of a tree that sees no sides.

Documents of another kind are like each other, so they stand together in a tree of likeness (average linkage). The
statistic is the most surprising group: the smallest chance (hypergeometric) that so many or more of its documents are
of one side. Its null comes from dealing the sides out anew over the same tree, so the p-value is exact where the
documents of both sides are exchangeable. Our own; a scan statistic in the manner of Kulldorff 1997.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pretrace.registry import require
from pretrace.types import Bools, Doubles

FEWEST = 3
"""Documents of a group that counts; the largest holds half of all."""
DRAWN = 1000


def own_group(
    alike: npt.ArrayLike, side: npt.ArrayLike, *, permutations: int = DRAWN, seed: int = 0
) -> tuple[float, Bools]:
    """The p-value that documents of this side form groups of their own by chance, and the most surprising group.

    `alike` [documents, documents] is a likeness of at most 1, such as a cosine; `side` [documents] is True for the side
    that may hold strangers. (1 + the deals that surprise as much) / (permutations + 1); 1.0 and an empty group where no
    group of the tree counts.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    likeness, mine = np.asarray(alike, dtype=np.float64), np.asarray(side, dtype=bool)
    count = len(mine)
    require(likeness.shape == (count, count), f"a likeness of {count} documents by as many is wanted.")
    require(bool(mine.any() and not mine.all()), "both sides need a document.")
    far = np.sqrt(np.maximum(2 - likeness - likeness.T, 0.0))
    np.fill_diagonal(far, 0.0)
    inside = list(np.eye(count, dtype=bool))
    for first, second, *_ in linkage(squareform(far, checks=False), "average"):
        inside.append(inside[int(first)] | inside[int(second)])
    groups = np.array([one for one in inside if FEWEST <= one.sum() <= count // 2])
    if not len(groups):
        return 1.0, np.zeros(count, dtype=bool)
    dealt = np.random.default_rng(seed).permuted(np.broadcast_to(mine, (permutations, count)), axis=1)
    surprise = _surprises(groups, np.concatenate([mine[None], dealt]))
    reached = int(np.count_nonzero(surprise[1:].max(1) >= surprise[0].max() - 1e-12))
    return (1 + reached) / (permutations + 1), groups[int(surprise[0].argmax())]


def _surprises(groups: Bools, sides: Bools) -> Doubles:
    """Of each group [draws, groups] minus the logarithm of the chance of so many or more of the side."""
    from scipy.stats import hypergeom

    sizes, held = np.unique(groups.sum(1), return_inverse=True)
    inside = (sides.astype(np.float64) @ groups.T.astype(np.float64)).round().astype(np.int64)
    numbers = np.arange(int(sizes.max()) + 1)
    table = -hypergeom.logsf(numbers[None] - 1, sides.shape[1], int(sides[0].sum()), sizes[:, None])
    return np.asarray(table[held[None], inside])
