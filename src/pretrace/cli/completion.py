"""What a shell completes in the values of options: names of scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def scores(incomplete: str) -> list[str]:
    """What a list of scores may go on with: the names that begin as its last one does.

    >>> scores("loss,zl")
    ['loss,zlib']
    """
    from pretrace.scores import scores as known

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in known if name.startswith(last)]


COMPLETED: Mapping[str, Callable[[str], list[str]]] = {"scores": scores, "score": scores}
"""By the name of the option."""
