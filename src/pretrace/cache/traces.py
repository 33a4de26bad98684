"""Traces kept between runs: what a model made of a text, and what was read inside it (`Trace.states`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pretrace.cache.database import Kind
from pretrace.cache.entries import STATE, TRACE, Entries, Entry
from pretrace.types import Continued, Drawn, Firing, Peak, Quantity, State, States, Trace

_KIND = Kind("traces", "trace cache", "traces")
_TRACE = ""  # its label; that of a state is the state's name


class Traces(Entries):
    """The traces of one back end, whose fingerprint names weights, dtype, tokenizer, start rule and length limit.

    It can be pickled: the copy opens the same file by itself.
    """

    def __init__(self, fingerprint: str | None, folder: Path | None = None) -> None:
        self._arguments = fingerprint, folder
        super().__init__(_KIND, fingerprint, folder)

    def get(self, keys: Sequence[bytes], want: Quantity, states: States = frozenset()) -> list[Trace | None]:
        """For each key the stored trace, if it carries at least what is wanted, or None.

        A trace may carry more quantities than were wanted, and exactly the states. Its arrays are read-only.
        """
        want &= Quantity.LOGP | Quantity.MOMENTS  # the others are states
        traces = self.find(keys, _TRACE, TRACE)
        read = {state: self.find(traces, state_name(state), STATE) for state in states}
        found = {}
        for key, trace in traces.items():
            inside = {state: arrays[key] for state, arrays in read.items() if key in arrays}
            if trace.holds & want == want and len(inside) == len(states):
                found[key] = replace(trace, states=inside)
        return [found.get(key) for key in keys]

    def put(self, keys: Sequence[bytes], traces: Sequence[Trace]) -> None:
        """Store one trace a key in one transaction: all of them or none.

        A trace takes the place of one with fewer quantities, never of one with more; states are added to
        those that are there. Raises OutputError when the disk is full; what was stored before stays readable.
        """
        pairs = list(zip(keys, traces, strict=True))
        entries: list[Entry[Any]] = [Entry(key, _TRACE, trace, TRACE) for key, trace in pairs]
        entries += [
            Entry(key, state_name(state), array, STATE)
            for key, trace in pairs
            for state, array in trace.states.items()
        ]
        self.write(entries)

    def __reduce__(self) -> tuple[type[Traces], tuple[str | None, Path | None]]:
        return Traces, self._arguments


def open_store(fingerprint: str | None, folder: Path | None = None) -> Traces:
    """The traces stored for a back end's fingerprint, below `cache_folder()` unless a folder is given;
    for None a store that keeps nothing. Raises OutputError where the folder cannot be written."""
    return Traces(fingerprint, folder)


def state_name(state: State) -> str:
    """The name a state has on disk: equal for equal states, and another for every other.

    >>> state_name(Firing("any", threshold=1))
    'firing any>1.0 gated=False'
    """
    if isinstance(state, Firing):
        threshold = float(state.threshold) + 0.0  # -0.0 equals 0.0
        return f"firing {state.pool}>{threshold!r} gated={bool(state.gated)}"
    if isinstance(state, Drawn):
        return f"drawn k={int(state.k)} temperature={float(state.temperature)!r}"
    if isinstance(state, Peak):
        return "peak"
    if isinstance(state, Continued):
        sampled = f"samples={int(state.samples)} share={float(state.share)!r}"
        return f"continued {sampled} temperature={float(state.temperature)!r} seed={int(state.seed)}"
    return f"hidden {'all' if state.layer is None else int(state.layer)}"
