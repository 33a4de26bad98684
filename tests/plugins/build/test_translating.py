"""Translations by a real MarianMT model: sentence by sentence, nothing lost in silence, nothing made twice."""

import importlib.util

import pytest
from tiny_marian import SAYINGS, make_marian

from pretrace.backends.naming import ModelSettings
from pretrace.errors import MissingPackageError, ModelError
from pretrace.plugins.build.translating import CUT, EMPTY, _Translator, open_translator


def opened(folder, **how):
    return open_translator(str(folder), ModelSettings(), **how)


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    return make_marian(tmp_path_factory.mktemp("models") / "en-fr", SAYINGS)


def test_sentence_by_sentence_with_the_space_between(marian):
    first, second, *rest = SAYINGS
    texts = [" ".join(SAYINGS), f"  {first}\n\n{second} ", *rest, "", " \n"]
    found = opened(marian).translate(texts)
    french = list(SAYINGS.values())
    expected = [" ".join(french), f"  {french[0]}\n\n{french[1]} ", *french[2:], "", " \n"]
    assert [text for text, _ in found] == expected
    assert not any(fault for _, fault in found)


def test_greedy_or_the_models_own_beams(marian):
    assert opened(marian).beams == 2
    greedy = opened(marian, beams=1)
    assert greedy.fingerprint != opened(marian).fingerprint
    assert [text for text, _ in greedy.translate(list(SAYINGS))] == list(SAYINGS.values())


def test_a_long_text_is_translated_whole(marian):
    translator = opened(marian)
    sentence = " ".join(f"word{i}" for i in range(100))  # more than the model reads
    pieces = translator._pieces(sentence)
    assert len(pieces) > 5
    assert len(translator.translate([sentence])[0][0].split()) >= len(pieces)


def test_what_has_no_end_is_counted(marian):
    translator = opened(marian, cache=False)
    bias = translator._model.final_logits_bias
    bias[0, 0] = -1e4
    assert translator.translate(["It rained for seven days."])[0][1] == CUT
    bias[0, 0] = 1e4
    [none] = translator.translate(["It rained for seven days. ***"])
    assert (none[0].strip(), none[1]) == ("", EMPTY)


def test_nothing_is_translated_twice(marian, monkeypatch):
    seen = []
    real = _Translator._batch

    def watched(self, texts):
        if len(seen) + len(texts) > limit:
            raise KeyboardInterrupt
        seen.extend(texts)
        return real(self, texts)

    monkeypatch.setattr(_Translator, "_batch", watched)
    limit, translator = 3, opened(marian)
    translator._budget = 20  # one sentence at a time
    with pytest.raises(KeyboardInterrupt):
        translator.translate([" ".join(SAYINGS)])
    assert len(seen) == 3
    limit, again = 8, opened(marian)
    again._budget = 20
    assert again.translate([" ".join(SAYINGS), *SAYINGS])[0][0] == " ".join(SAYINGS.values())
    assert sorted(seen) == sorted(SAYINGS)


def test_what_is_no_marian_model(marian, model_folder, tmp_path):
    with pytest.raises(ModelError, match=r"is no MarianMT model \(its kind is gpt_neox\)"):
        opened(model_folder)
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "model.safetensors", "vocab.json", "target.spm"):
        (bare / name).write_bytes((marian / name).read_bytes())
    with pytest.raises(ModelError, match=r"lacks source\.spm"):
        opened(bare)


@pytest.mark.parametrize("package", ["sentencepiece", "sacremoses"])
def test_missing_package(package, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else real(name))
    with pytest.raises(MissingPackageError, match=r"pretrace\[all\]"):
        opened("anything")
