"""Test servers over tiny models, and the models opened here beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from model_servers import Model, ModelServer, serving

from pretrace import open_model
from pretrace.types import Backend


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "PRETRACE_API_KEY", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pretrace.backends.serving.client.RETRIES", 2)
    monkeypatch.setattr("pretrace.backends.serving.client.FIRST_WAIT", 0.01)


@pytest.fixture(scope="session")
def plain(model_folder: Path) -> Model:
    """A GPT-NeoX, whose tokenizer puts no start token in front."""
    return Model(model_folder)


@pytest.fixture(scope="session")
def started(reference_folder: Path) -> Model:
    """A Llama, whose tokenizer puts one in front."""
    return Model(reference_folder)


@pytest.fixture
def server(plain: Model) -> Iterator[ModelServer]:
    with serving(ModelServer(plain)) as server:
        yield server


@pytest.fixture
def opened(server: ModelServer, model_folder: Path) -> Callable[..., Backend]:
    """Opens the server's model as one kind of server."""

    def open_it(kind: str = "vllm", **settings: object) -> Backend:
        return open_model(f"{kind}:{server.root}", **{"tokenizer": str(model_folder), **settings})

    return open_it
