"""Test servers over tiny models, and the models opened here beside them."""

import pytest
from model_servers import Model, ModelServer, serving

from pretrace import open_model


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "PRETRACE_API_KEY", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pretrace.backends.serving.client.RETRIES", 2)
    monkeypatch.setattr("pretrace.backends.serving.client.FIRST_WAIT", 0.01)


@pytest.fixture(scope="session")
def plain(model_folder):
    """A GPT-NeoX, whose tokenizer puts no start token in front."""
    return Model(model_folder)


@pytest.fixture(scope="session")
def started(reference_folder):
    """A Llama, whose tokenizer puts one in front."""
    return Model(reference_folder)


@pytest.fixture
def server(plain):
    with serving(ModelServer(plain)) as server:
        yield server


@pytest.fixture
def opened(server, model_folder):
    """Opens the server's model as one kind of server."""

    def open_it(kind="vllm", **settings):
        return open_model(f"{kind}:{server.root}", **{"tokenizer": str(model_folder), **settings})

    return open_it
