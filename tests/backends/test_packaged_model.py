"""The packaged GGUF model, as the demo opens it: the real file, unpacked once, the real numbers."""

import numpy as np
import pytest
import tokenizers
from tiny import naive_logp, read
from tokenizers import pre_tokenizers

from pretrace.backends import open_model, open_tokenizer
from pretrace.backends.huggingface import HuggingFace
from pretrace.cache import cache_folder

TEXT = "The quick brown fox jumps over the lazy dog."


@pytest.mark.timeout(600)
def test_smollm2(packaged):
    model = open_model(packaged)
    assert isinstance(model, HuggingFace)
    [made] = read(model, [TEXT])
    ids = [*model.tokens.prefix.tolist(), *model.encode([TEXT])[0].tokens.tolist()]
    np.testing.assert_allclose(made.logp, naive_logp(model.model, ids), atol=1e-4)
    assert made.logp.mean() > -6  # a model that has learnt English; random weights give -10.8

    [unpacked] = (cache_folder() / "gguf").iterdir()
    assert (unpacked / "model.safetensors").is_file()
    again = open_tokenizer("smollm2")
    assert again.hash == model.tokenizer_hash
    assert model.facts["family"] == "llama"
    # As SmolLM2 was trained: single digits, then GPT-2's pattern; blanks before a number are of another length so.
    true = tokenizers.Tokenizer.from_str(model.tokens.rust.to_str())
    true.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    for text in (
        "station   1998   1999\nA           12     14",
        "if x == 1:\n        return 10\n    9\n",
        TEXT,
    ):
        assert model.encode([text])[0].tokens.tolist() == true.encode(text).ids
    assert model.facts["tokenizer_read_by"] == "GGUF, tokenizer gpt2, pre-tokenizer smollm"


def test_a_gguf_file_without_room_to_unpack(tmp_path, monkeypatch):
    """Where the cache cannot be written the file itself is read."""
    from pretrace.backends import loading, naming

    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("PRETRACE_CACHE", str(blocked / "cache"))
    located = naming.locate("smollm2")
    assert loading._unpacked(located, "0" * 64, loading.ModelSettings()) is located
