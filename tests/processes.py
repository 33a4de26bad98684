"""Traces, and Python processes that write them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pretrace.types import Trace

PRELUDE = """
import sys
from pathlib import Path
import numpy as np
from pretrace.errors import OutputError
from pretrace.cache.location import text_key
from pretrace.cache.traces import open_store
from pretrace.types import Quantity, Trace

def trace(seed, length=50, moments=True):
    random = np.random.default_rng(seed)
    tokens = random.integers(0, 50_000, length).astype(np.int32)
    logp, mean, std = random.normal(size=(3, length)).astype(np.float32)
    return Trace(tokens, logp, mean, std, seed) if moments else Trace(tokens, logp, cut=seed)

def same(one, two):
    return one is not None and two is not None and one.cut == two.cut and all(
        (a is None and b is None) or a.tobytes() == b.tobytes() and a.dtype == b.dtype
        for a, b in ((one.tokens, two.tokens), (one.logp, two.logp), (one.mean, two.mean), (one.std, two.std))
    )

folder = Path(sys.argv[1])
"""


@pytest.fixture
def trace() -> Callable[..., Trace]:
    """Builds a trace whose content depends on the seed alone."""

    def build(seed: int, length: int = 50, moments: bool = True) -> Trace:
        random = np.random.default_rng(seed)
        tokens = random.integers(0, 50_000, length).astype(np.int32)
        logp, mean, std = random.normal(size=(3, length)).astype(np.float32)
        return Trace(tokens, logp, mean, std, seed) if moments else Trace(tokens, logp, cut=seed)

    return build


@pytest.fixture
def same() -> Callable[[Trace | None, Trace | None], bool]:
    """Whether two traces agree to the last bit."""

    def agree(one: Trace | None, two: Trace | None) -> bool:
        if one is None or two is None or one.cut != two.cut or one.holds != two.holds:
            return False
        pairs = [(one.tokens, two.tokens), (one.logp, two.logp), (one.mean, two.mean), (one.std, two.std)]
        return all(
            (a is None and b is None)
            or (a is not None and b is not None and a.tobytes() == b.tobytes() and a.dtype == b.dtype)
            for a, b in pairs
        )

    return agree


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a Python process that knows `folder`, `trace`, `same` and the store; killed at the end."""
    running: list[subprocess.Popen[str]] = []

    def begin(code: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PRELUDE + code, str(tmp_path), *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()
