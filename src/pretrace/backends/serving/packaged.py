"""What the packaged model says of the check's sentences, so that a server that holds it can be compared with the truth.

`packaged.json` keeps its log-probabilities as numbers, and those it would give in the forms in which a server may
change them unseen: behind a start token, within a chat template, at other temperatures. A test computes them anew.
Of any other model nothing is known, and a server's numbers can only be compared with each other.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pretrace.backends.serving.self_check import WOBBLE, Probed
from pretrace.cache.location import cache_folder
from pretrace.errors import ModelError, OutputError
from pretrace.results.atomic import atomic_text

PLAIN = "plain"
_CLOSE = 0.02  # nats: the median by which the packaged model's own numbers may be moved by a number format
_SINGLE = 0.5  # nats: no number format moves one of them so far


@dataclass(frozen=True, slots=True)
class _Packaged:
    """The known numbers: `ids` of each sentence; in `forms` all numbers in a row, first tokens left out, and the same
    at other `temperatures`."""

    name: str
    ids: tuple[tuple[int, ...], ...]
    forms: Mapping[str, npt.NDArray[np.float64]]
    temperatures: Mapping[float, npt.NDArray[np.float64]]


@cache
def packaged() -> _Packaged:
    """The numbers in `packaged.json`."""
    text = (files("pretrace.backends.serving") / "packaged.json").read_text(encoding="utf-8")
    found = json.loads(text)
    return _Packaged(
        found["model"],
        tuple(tuple(one) for one in found["ids"]),
        {name: np.array(values) for name, values in found["forms"].items()},
        {float(one): np.array(values) for one, values in found["temperatures"].items()},
    )


def compared(name: str, asked: Sequence[tuple[int, ...]], numbers: Sequence[float]) -> str:
    """What the server holds, as far as the known numbers tell: the packaged model's name, "" for any other model.

    `asked` are the ids of the sentences, `numbers` those that the server gave. ModelError where they are the packaged
    model's, but changed.
    """
    known = packaged()
    if tuple(asked) != known.ids:
        return ""
    found = np.asarray(numbers)
    plain = known.forms[PLAIN]
    apart = np.abs(found - plain)
    if np.median(apart) <= _CLOSE:
        if apart.max() > _SINGLE:
            _refuse(
                name, f"{int((apart > _SINGLE).sum())} of {len(plain)} differ by up to {apart.max():.3g} nats"
            )
        if abs(_factor_and_constant(plain, found)[1]) > _CLOSE / 2:
            _refuse(name, "a constant was added")
        return known.name
    for form, numbers_there in known.forms.items():
        if np.median(np.abs(found - numbers_there)) <= _CLOSE:
            _refuse(name, f"they are those {form}")
    temperature, left = _temperature(found)
    if left <= _CLOSE:
        _refuse(name, f"they are those at the temperature {temperature:.2f}")
    factor, constant = _factor_and_constant(plain, found)
    if np.median(np.abs(found - factor * plain - constant)) <= _CLOSE * abs(factor) / 4:
        _refuse(name, f"they are multiplied by {factor:.3g} and moved by {constant:.2g}")
    return ""


def _factor_and_constant(
    known: npt.NDArray[np.float64], found: npt.NDArray[np.float64]
) -> tuple[float, float]:
    """The straight line that leads from the known numbers to those found, by least squares over their middle part."""
    keep = np.ones(len(known), dtype=bool)
    factor = constant = 0.0
    for _ in range(3):  # single numbers that were made up shall not turn the line
        factor, constant = (float(one) for one in np.polyfit(known[keep], found[keep], 1))
        apart = np.abs(found - factor * known - constant)
        keep = apart <= max(3 * float(np.median(apart)), 1e-6)
    return factor, constant


def _temperature(found: npt.NDArray[np.float64]) -> tuple[float, float]:
    """The temperature between two of the known ones that comes nearest, and the median of what is left."""
    known = sorted({**packaged().temperatures, 1.0: packaged().forms[PLAIN]}.items())
    nearest = (1.0, float("inf"))
    for (low, one), (high, other) in pairwise(known):
        step = other - one
        share = float(np.clip((found - one) @ step / (step @ step), 0, 1))
        left = float(np.median(np.abs(found - one - share * step)))
        nearest = min(nearest, (low + share * (high - low), left), key=lambda pair: pair[1])
    return nearest


def _refuse(name: str, how: str) -> None:
    raise ModelError(
        f"{name} answers as {packaged().name} does, whose numbers are known, but not with its numbers: {how}. "
        "Something between here and the model changes what it computes, or adds to what it reads. They cannot be used."
    )


# Models met before, by their answers to the check: a server that answers as before holds the same model.
#
# Numbers of a server move a little from one request to another, so they are compared and not hashed: the answers
# of the first meeting name the model from then on.


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
