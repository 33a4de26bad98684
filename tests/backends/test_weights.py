"""A model is what its files say: no weight is made up, none of another shape is taken, and tensors name the weights."""

import json
import os
import warnings

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tiny import SENTENCES, make_model, make_tokenizer, naive_logp, opened, read

from pretrace import open_model
from pretrace.backends.naming import weights_hash
from pretrace.errors import ModelError
from pretrace.types import Quantity

NEW = transformers.__version__ >= "5"


def saved(folder, family="llama", change=dict, **config):
    """A tiny model with its tokenizer; `change` is done to its tensors, `config` is written into config.json."""
    make_model(family).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    file = folder / "model.safetensors"
    save_file(change(load_file(file)), file, metadata={"format": "pt"})
    said = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**said, **config}))
    return folder


def logp(folder, texts=SENTENCES):
    return [one.logp for one in read(open_model(str(folder), token_budget=4096), texts)]


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "_orig_mod.module.", ""])
def test_what_a_wrapper_put_before_a_name_is_taken_off(tmp_path, prefix):
    def named(name):  # without a prefix: layers that were compiled one by one
        return prefix + name if prefix else name.replace(".self_attn.", "._orig_mod.self_attn.")

    folder = saved(tmp_path / "wrapped", change=lambda w: {named(k): v for k, v in w.items()})
    plain = saved(tmp_path / "plain")
    assert np.array_equal(np.concatenate(logp(folder)), np.concatenate(logp(plain)))
    assert open_model(str(folder)).facts["weights"] == open_model(str(plain)).facts["weights"]


def test_weights_that_the_model_has_no_use_for_are_told_and_recorded_and_no_others(tmp_path):
    folder = saved(tmp_path / "m", change=lambda w: {**w, "score.weight": torch.ones(2, 32)})
    with pytest.warns(UserWarning, match=r"score\.weight"):
        model = open_model(str(folder))
    assert model.facts["unread_weights"] == ["score.weight"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_model(str(saved(tmp_path / "plain")))


def test_a_head_that_is_tied_needs_no_weight(tmp_path):
    assert np.isfinite(np.concatenate(logp(saved(tmp_path / "m", "gemma3_text")))).all()


@pytest.mark.parametrize("files", [2, 3])
def test_the_same_tensors_in_other_files_are_the_same_weights(tmp_path, files):
    whole = saved(tmp_path / "whole")
    tensors = load_file(whole / "model.safetensors")
    split = tmp_path / "split"
    split.mkdir()
    names = sorted(tensors)
    for i in range(files):
        save_file({name: tensors[name] for name in names[i::files]}, split / f"w{i}.safetensors")
    one, several = (sorted(folder.glob("*.safetensors")) for folder in (whole, split))
    assert weights_hash(one) == weights_hash(several)
    tensors["model.norm.weight"] = tensors["model.norm.weight"] + 1e-3
    save_file(tensors, whole / "model.safetensors")
    assert weights_hash(one) != weights_hash(several)


def test_weights_changed_in_place_with_the_same_size_and_time_are_another_model(tmp_path):
    folder = saved(tmp_path / "m")
    file = folder / "model.safetensors"
    before, stat = open_model(str(folder)).fingerprint, file.stat()
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert file.stat().st_size == stat.st_size
    assert file.stat().st_mtime_ns == stat.st_mtime_ns
    assert open_model(str(folder)).fingerprint != before


@pytest.mark.parametrize(
    "said",
    [
        {"hidden_act": "gelu"},
        {"rms_norm_eps": 1e-2},
        {"rope_theta": 7.0, "rope_parameters": {"rope_type": "default", "rope_theta": 7.0}},
    ],
)
def test_another_configuration_over_the_same_weights_is_another_model(tmp_path, said):
    one, other = saved(tmp_path / "one"), saved(tmp_path / "other", **said)
    fingerprints = [open_model(str(folder)).fingerprint for folder in (one, other)]
    assert fingerprints[0] != fingerprints[1]
    assert not np.array_equal(np.concatenate(logp(one)), np.concatenate(logp(other)))


def test_a_model_that_says_something_else_each_time_is_refused():
    model = make_model("llama")
    model.lm_head.register_forward_hook(lambda _, given, logits: logits + torch.randn_like(logits))
    with pytest.raises(ModelError, match="each time it reads the same text"):
        opened(model)


# Models that see later tokens, or read a text otherwise in company.


def built(folder, config, **sizes):
    torch.manual_seed(1)
    usual = {"vocab_size": 416, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    inner = {"intermediate_size": 48, "max_position_embeddings": 256}
    given = {**usual, **inner, **sizes}
    made = getattr(transformers, config)(**{name: size for name, size in given.items() if size is not None})
    model = transformers.AutoModelForCausalLM.from_config(made)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4.0)
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("config", "sizes"),
    [
        ("BertConfig", {}),
        (
            "XLNetConfig",
            {"max_position_embeddings": None, "d_model": 32, "n_head": 4, "d_inner": 48, "d_head": 8},
        ),
        ("XLMConfig", {"emb_dim": 32, "n_layers": 2, "n_heads": 4}),
        ("LlamaConfig", {"is_causal": False}),
        ("Gemma3TextConfig", {"use_bidirectional_attention": True, "head_dim": 8, "num_key_value_heads": 2}),
    ],
)
def test_a_model_that_sees_later_tokens_is_refused(tmp_path, config, sizes):
    folder = built(tmp_path / "m", config, **sizes)
    if not _sees_later_tokens(folder):
        pytest.skip("this transformers reads it in order")
    with pytest.raises(ModelError, match="sees the tokens after"):
        open_model(str(folder))


def _sees_later_tokens(folder):
    """By the model alone, in float64."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval().double()
    one, two = (naive_logp(model, [*range(5, 16), last])[:-1] for last in (16, 3))
    return np.abs(one - two).max() > 1e-6


def assert_as_read_whole_and_alone(folder, texts, longest=256):
    """Beside float64 log-probabilities of each text."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval().double()
    for text, found in zip(texts, logp(folder, texts), strict=True):
        ids = make_tokenizer()(text)["input_ids"][:longest]
        assert np.abs(found - naive_logp(model, ids)).max() < 1e-3


LONG = " ".join(SENTENCES)


def test_positions_that_change_with_the_longest_text_of_a_batch_leave_the_others_alone(tmp_path):
    factors = {"short_factor": [1.0] * 4, "long_factor": [9.0] * 4}
    rope = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 32, **factors}
    rope = {"rope_parameters": rope} if NEW else {"rope_scaling": {"type": "longrope", **factors}}
    how = {"num_key_value_heads": 4, "original_max_position_embeddings": 32, "pad_token_id": 0}
    folder = built(tmp_path / "m", "Phi3Config", **how, **rope)
    texts = [SENTENCES[0], LONG, SENTENCES[1], LONG[7:]]
    assert len(make_tokenizer()(texts[0])["input_ids"]) <= 32 < len(make_tokenizer()(texts[1])["input_ids"])
    assert_as_read_whole_and_alone(folder, texts)
    assert "more than 32 tokens" in open_model(str(folder)).facts["batches"]


def test_positions_that_grow_with_the_length_are_read_up_to_where_they_begin_to(tmp_path):
    rope = {"rope_type": "dynamic", "factor": 4.0} | ({"rope_theta": 1e4} if NEW else {})
    sizes = {"num_key_value_heads": 2, "max_position_embeddings": 32}
    sizes["rope_parameters" if NEW else "rope_scaling"] = rope
    folder = built(tmp_path / "m", "LlamaConfig", **sizes)
    assert_as_read_whole_and_alone(folder, [LONG, SENTENCES[0]], longest=32)


def test_a_table_of_positions_bounds_what_is_read(tmp_path):
    how = {"max_position_embeddings": 50, "is_decoder": True, "pad_token_id": 1}
    folder = built(tmp_path / "m", "XLMRobertaConfig", **how)
    model = open_model(str(folder))
    assert model.max_tokens == 48
    assert model.encode([LONG])[0].cut > 0
    assert np.isfinite(logp(folder, [LONG])[0]).all()


def test_a_failure_of_the_models_own_code_is_one_line(monkeypatch, tmp_path):
    model = open_model(str(saved(tmp_path / "m")))
    monkeypatch.setattr(model, "_body", lambda ids: 1 / 0)
    with pytest.raises(ModelError, match="failed while it read a text: division by zero"):
        model.run(model.encode(SENTENCES[:1]), Quantity.LOGP)


def test_of_a_model_that_reads_pictures_the_text_part_is_read(tmp_path):
    torch.manual_seed(1)
    text = transformers.LlamaConfig(
        vocab_size=416, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=256,
    )  # fmt: skip
    seen = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision = transformers.CLIPVisionConfig(image_size=28, patch_size=14, **seen)
    config = transformers.LlavaConfig(text_config=text, vision_config=vision, image_token_index=415)
    model = transformers.LlavaForConditionalGeneration(config)
    folder = tmp_path / "llava"
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    truth = naive_logp(model.eval(), make_tokenizer()(SENTENCES[0])["input_ids"])
    assert np.abs(logp(folder, SENTENCES[:1])[0] - truth).max() < 1e-4
