"""A Ray of two processors on this machine, started once for the tests that need one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Workers that died are started anew and import torch each time: on a busy machine that takes minutes."""
    for item in items:
        if "ray" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The package, connected; workers find a cache of their own, and no more of the disk than a store of 80 MB."""
    package = pytest.importorskip("ray")
    kept = {name: os.environ.get(name) for name in ("PRETRACE_CACHE", "RAY_USAGE_STATS_ENABLED")}
    os.environ |= {"PRETRACE_CACHE": str(tmp_path_factory.mktemp("workers")), "RAY_USAGE_STATS_ENABLED": "0"}
    package.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=80_000_000,
        log_to_driver=False,
        logging_level="ERROR",
    )
    for name, value in kept.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})
    yield package
    package.shutdown()
