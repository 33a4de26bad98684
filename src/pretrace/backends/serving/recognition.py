"""Models met before, by their answers to the check: a server that answers as before holds the same model.

Numbers of a server move a little from one request to another, so they are compared and not hashed: the answers
of the first meeting name the model from then on.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pretrace.backends.serving.self_check import WOBBLE, Probed
from pretrace.cache.location import cache_folder
from pretrace.errors import OutputError
from pretrace.results.atomic import atomic_text

_STILL = 1e-4  # nats: numbers that move less than this are computed in float32
_CLOSE_ANSWERS = 1e-3


def recognised(probed: Probed, *, url: str, named: Mapping[str, Any]) -> tuple[float, ...]:
    """The answers that name the model: those of its first meeting, or these, where it is new.

    `named` tells models apart besides their answers. A warning says so where the model behind an address gives other
    answers than the one before it. Where nothing can be kept on disk, every meeting is the first.
    """
    digest = hashlib.sha256(json.dumps(dict(named), sort_keys=True).encode()).hexdigest()
    try:
        place = cache_folder() / "servers" / f"{digest[:32]}.json"
    except OutputError:
        return probed.numbers
    met = _read(place)
    allowed = WOBBLE if probed.wobble > _STILL else _CLOSE_ANSWERS
    for one in met:
        if _apart(one["numbers"], probed.numbers) <= allowed:
            return tuple(one["numbers"])
    before = [one for one in met if one["url"] == url]
    if before:
        apart = _apart(before[-1]["numbers"], probed.numbers)
        warnings.warn(
            f"the model behind {url} gives other answers than on {before[-1]['time']} (up to {apart:.2g} nats): it is "
            "another model now. What the earlier one answered is not used.",
            stacklevel=2,
        )
    now = datetime.now(UTC).date().isoformat()
    met.append({"url": url, "time": now, "numbers": list(probed.numbers)})
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        atomic_text(place, json.dumps(met))
    except (OSError, OutputError):
        pass  # only for the next time: without it everything is asked anew
    return probed.numbers


def _read(place: Any) -> list[dict[str, Any]]:
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        return [
            {"url": str(one["url"]), "time": str(one["time"]), "numbers": [float(n) for n in one["numbers"]]}
            for one in found
        ]
    except (OSError, ValueError, LookupError, TypeError):
        return []


def _apart(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        return float("inf")
    return float(np.abs(np.subtract(one, other)).max(initial=0.0))
