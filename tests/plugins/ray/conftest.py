"""A Ray of two processors on this machine, started once for the tests that need one."""

import os

import pytest
from jobs.conftest import lines as lines

os.environ.setdefault("RAY_worker_niceness", "0")  # at Ray's own 15 they stand still beside the other tests


def pytest_collection_modifyitems(items):
    """Workers that died are started anew and import torch each time: on a busy machine that takes minutes."""
    for item in items:
        if "ray" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def ray(tmp_path_factory):
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
