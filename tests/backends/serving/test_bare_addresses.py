"""An address as `--model`, without the kind of its server: what the refusal tells."""

import pytest

from pretrace.backends import open_model
from pretrace.errors import ModelError


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            "https://api.openai.com/v1",
            r"api\.openai\.com gives .* generated tokens only.*mark --canary.*vllm:http",
        ),
        ("https://api.anthropic.com", "or none"),
        ("http://localhost:8000/v1", r"write vllm:http://localhost:8000 for vLLM.*--served-model"),
        ("https://huggingface.co/EleutherAI/pythia-160m", "name the model alone"),
        ("https://notopenai.com/x.gguf", "what kind of server"),
    ],
)
def test_the_cure_is_named(model, words):
    with pytest.raises(ModelError, match=words) as caught:
        open_model(model)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", ["https://me:hunter2@host/v1", "http://host/v1?key=hunter2"])
def test_a_secret_is_not_repeated(model):
    with pytest.raises(ModelError, match="PRETRACE_API_KEY") as caught:
        open_model(model)
    assert "hunter2" not in str(caught.value)
