"""Tests of what only a GPU shows. They are skipped where there is none; PRETRACE_GPU_TESTS=cpu runs them on the
processor, to see that they work."""

import os
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
WANTED = os.environ.get("PRETRACE_GPU_TESTS", "cuda")


def pytest_collection_modifyitems(items):
    """Every test of this folder is marked `gpu`, and skipped with a reason without CUDA."""
    usable = WANTED == "cpu" or torch.cuda.is_available()
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            if not usable:
                item.add_marker(pytest.mark.skip(reason="no GPU with CUDA here"))


@pytest.fixture(scope="session")
def device():
    return torch.device(WANTED)
