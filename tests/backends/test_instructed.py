"""Answers: transformers' own where nothing is drawn, ended where the model ends, the same in any batch."""

import pytest
import torch
from tiny import SENTENCES, make_model, make_tokenizer

from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.instructed import _LocalInstructed
from pretrace.backends.naming import ModelSettings
from pretrace.errors import ExpressionError, ModelError
from pretrace.types import Sampling

GREEDY, FREE = Sampling(temperature=0), Sampling()
TEMPLATE = "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}</s>{% endfor %}<s>"
ASKED = [*SENTENCES, "a", "one two", "🙂", "half \ud83d a pair"]


def opened(template=None, *, limit=None, eager=0.0, cache=True):
    """A tiny model; `eager` makes it end sooner."""
    tokenizer = make_tokenizer(start=True)
    tokenizer.chat_template = template
    model = make_model("llama")
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    if eager:
        head = torch.nn.Linear(32, 416)
        with torch.no_grad():
            head.weight.copy_(model.get_output_embeddings().weight)
            head.bias.zero_()
            head.bias[tokenizer.eos_token_id] = eager
        model.set_output_embeddings(head)
    settings = ModelSettings(max_tokens=limit)
    return _LocalInstructed(
        HuggingFace(model, tokenizer, name="tiny", weights=f"w{eager}", settings=settings), cache=cache
    )


@pytest.mark.parametrize("template", [None, TEMPLATE])
def test_greedy_is_transformers_own(template):
    model = opened(template, eager=1.5 if template is None else 3.0)
    tokenizer, weights = model.backend.tokenizer, model.backend.model
    ended = set()
    found = model.answers(ASKED[:-1], tokens=24, sampling=GREEDY, seed=0)
    for text, answer in zip(ASKED, found, strict=False):
        prompt = f"<s>user: {text}</s><s>" if template else f"<s>{text}\n\n"
        ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False).input_ids
        banned = [tokenizer.bos_token_id, *range(len(tokenizer), 416)]
        mask = torch.ones_like(ids)
        settings = {"max_new_tokens": 24, "do_sample": False, "suppress_tokens": banned, "pad_token_id": 1}
        new = weights.generate(input_ids=ids, attention_mask=mask, **settings)[0, ids.shape[1] :].tolist()
        assert answer.ended == (tokenizer.eos_token_id in new)
        expected = tokenizer.decode([i for i in new if i != tokenizer.eos_token_id]).strip()
        assert answer.text.rstrip("\ufffd") == expected.rstrip("\ufffd")
        ended.add(answer.ended)
    assert ended == {True, False}  # or nothing was tested


def test_an_answer_is_its_own_in_any_batch_and_of_its_seed_and_written_once(monkeypatch):
    def asked(model, texts=ASKED, seed=3):
        return model.answers(texts, tokens=30, sampling=FREE, seed=seed)

    model = opened(TEMPLATE, eager=6.0, cache=False)
    together = asked(model)
    assert together == [asked(model, [text])[0] for text in reversed(ASKED)][::-1]
    assert asked(model) == together != asked(model, seed=4)
    assert asked(model, []) == []
    first, again = asked(opened(TEMPLATE)), opened(TEMPLATE)
    monkeypatch.setattr(again.writer, "_write", lambda *_: pytest.fail("asked again"))
    assert asked(again) == first


def test_the_template_is_part_of_the_fingerprint():
    assert opened(None).fingerprint != opened(TEMPLATE).fingerprint
    assert opened(None).facts["chat_template"] is None


def test_room_and_refusals():
    model = opened(limit=24)
    [answer] = model.answers(["one two"], tokens=500, sampling=GREEDY, seed=0)  # as far as the model reads
    assert answer.text
    assert not answer.ended
    with pytest.raises(ModelError, match=r"reads at most 24 tokens, and \d+ were wanted"):
        model.answers(["one two", SENTENCES[0] * 3], tokens=4, sampling=GREEDY, seed=0)
    with pytest.raises(ExpressionError, match="temperature"):
        model.answers(["a"], tokens=4, sampling=Sampling(temperature=-1), seed=0)
    awkward = opened("{{ raise_exception('users must speak second') }}")
    with pytest.raises(ModelError, match="users must speak second"):
        awkward.answers(["a"], tokens=4, sampling=GREEDY, seed=0)
