"""Where a text stands in a prompt whose tokens a provider gave back with their log-probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pretrace.types import Trace

LONGEST_TOKEN = 40
"""Characters that a prompt may lack at its beginning."""


def trace_in_prompt(tokens: Sequence[tuple[str, float]], text: str) -> Trace | None:
    """The log-probabilities of the text's own tokens, in nats; None where the text is not in the prompt word for word.

    `tokens` are the pieces of the prompt in order, as text, each with its log-probability. A chat template and other
    messages stand around the text; where the text occurs several times the last one counts. A token belongs to the
    text where its first character that is no white space stands in it. A text that the prompt begins with may lack its
    first token, which no model without a start token predicts. Token ids are not known and are all 0.
    """
    wanted = text.strip()
    pieces = [piece for piece, _ in tokens]
    begin = _begin("".join(pieces), wanted)
    if begin is None:
        return None
    ends = np.cumsum([len(piece) for piece in pieces])
    firsts = ends - [len(piece.lstrip()) or len(piece) for piece in pieces]
    inside = (firsts >= begin) & (firsts < begin + len(wanted))
    logp = np.array([value for _, value in tokens], dtype=np.float32)[inside]
    return Trace(np.zeros(len(logp), dtype=np.int32), logp) if len(logp) else None


def _begin(prompt: str, wanted: str) -> int | None:
    """Where the text begins in the prompt, below 0 where its first token is lacking; None where it is not there."""
    begin = prompt.rfind(wanted)
    if not wanted or begin >= 0:
        return begin if wanted else None
    lacking = range(1, min(len(wanted), LONGEST_TOKEN + 1))
    return next((-number for number in lacking if prompt.startswith(wanted[number:])), None)
