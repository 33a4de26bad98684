"""Lies that a server of `model_servers` can tell of a prompt, by name."""

import random
import time

from model_servers import Lie


def honest(server, ids):
    """What the model says, as it is."""
    return dict(server.model.said(ids))


def changed(change):
    """Every number changed in one way, those of the likeliest tokens and of written ones too."""

    def lie(server, ids):
        said = honest(server, ids)
        return {
            **said,
            "logp": [None, *map(change, said["logp"][1:])],
            "tops": [None, *([(id_, change(one)) for id_, one in top] for top in said["tops"][1:])],
            "written_logp": change(said["written_logp"]),
        }

    return lie


def own_numbers(change):
    """The numbers of the text's own tokens changed, all others left alone."""

    def lie(server, ids):
        said = honest(server, ids)
        return {**said, "logp": [None, *change(said["logp"][1:])]}

    return lie


def _one(value):
    def change(numbers):
        place = _drawn(numbers).randrange(len(numbers))
        return [value if i == place else one for i, one in enumerate(numbers)]

    return own_numbers(change)


def _noise(size):
    def change(numbers):
        source = random.Random(time.perf_counter_ns())  # other noise in every batch
        return [min(-1e-6, one + source.uniform(-size, size)) for one in numbers]

    return own_numbers(change)


def _drawn(numbers):
    """The same draw for the same text."""
    return random.Random(repr(numbers))


def _shuffled(numbers):
    return _drawn(numbers).sample(numbers, len(numbers))


def _another(server, ids):
    """The answer to the prompt that came before this one."""
    before = getattr(server, "before", None)
    server.before = ids  # type: ignore[attr-defined]
    return {**honest(server, before or ids), "read": len(ids)}


def _first(server, ids):
    """The answer to the first prompt, given to all."""
    if not hasattr(server, "very_first"):
        server.very_first = ids  # type: ignore[attr-defined]
    return {**honest(server, server.very_first), "read": len(ids)}  # type: ignore[attr-defined]


LIES: dict[str, Lie] = {
    "swapped": _another, "first": _first, "shuffled": own_numbers(_shuffled),
    "start counted": lambda server, ids: {**server.model.said(ids, before=(0,))}, "-9997": _one(-9997.0),
    "noise small": _noise(0.004), "noise": _noise(0.05), "false": _one(False), "string": _one("-1.5"),
    "NaN": _one(float("nan")), "null": _one(None),
}  # fmt: skip
"""Each lie, as what it makes of a prompt."""
