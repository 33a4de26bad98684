"""Continuations: transformers' own where nothing is drawn, the model's distribution where something is, one
text's whatever stands in its batch."""

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from net.api import (
    Completer,
    Corpus,
    Memory,
    ModelError,
    Sampling,
    Text,
    TextsError,
    attach,
    continuation,
    distribution,
    draw,
    make_adapter,
    methods,
)
from tiny import SENTENCES, make_model, make_tokenizer, opened, pieces_tokenizer
from tokenizers import decoders, models

FAMILIES = ["gpt_neox", "llama", "opt", "gemma3_text", "granite", "gemma2", "mamba"]
GREEDY = Sampling(temperature=0)
FREE = Sampling()
PROMPTS = [*SENTENCES, "a", "one two", "The cat sat on", "The dog sat on", "", " ", "🙂"]
ODD = [*PROMPTS, "half \ud83d a", "NUL\x00"]


def generated(model, prompt, *, start, tokens, **settings):
    """What transformers' own greedy generation writes, special and unused ids left out."""
    tokenizer = make_tokenizer(start=start)
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    banned = [*tokenizer.all_special_ids, *range(len(tokenizer), model.config.vocab_size)]
    settings |= {"do_sample": False, "max_new_tokens": tokens, "min_new_tokens": tokens}
    mask = torch.ones_like(ids)
    made = model.generate(input_ids=ids, attention_mask=mask, suppress_tokens=banned, **settings)
    rust, old = tokenizer.backend_tokenizer, ids[0, start:].tolist()
    return continuation(rust, old, made[0, ids.shape[1] :].tolist())


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_is_transformers_own(family, start):
    backend = opened(family, start=start)
    completer = Completer(backend)
    assert completer.writer.caches or family == "mamba"  # taken up again since transformers 5.24 only
    prompts = [prompt for prompt in PROMPTS[2:] if prompt][::2]
    made = completer.complete(prompts, tokens=24, sampling=GREEDY, seed=0)  # past the sliding window of 16
    assert made == [generated(backend.model, prompt, start=start, tokens=24) for prompt in prompts]
    if family == "llama":
        again = completer.complete(prompts, tokens=24, sampling=Sampling(0, 1, 1.3), seed=0)
        settings = {"start": start, "tokens": 24, "repetition_penalty": 1.3}
        assert again == [generated(backend.model, prompt, **settings) for prompt in prompts] != made


def test_a_cache_that_says_something_else_is_not_used(monkeypatch):
    backend = opened("llama")
    right = Completer(backend).complete(SENTENCES, tokens=8, sampling=FREE, seed=0)
    body = backend.model.base_model
    plain = body.forward

    def forgetting(*args, cache=None, past_key_values=None, **named):
        return plain(*args, **named)  # every step reads one token alone

    monkeypatch.setattr(body, "forward", forgetting)
    completer = Completer(backend)
    assert not completer.writer.caches
    assert completer.complete(SENTENCES, tokens=8, sampling=FREE, seed=0) == right
    completer.writer.caches = True
    assert completer.complete(SENTENCES, tokens=8, sampling=FREE, seed=0) != right


@pytest.mark.parametrize("family", ["gpt_neox", "gemma2"])
@pytest.mark.parametrize("sampling", [FREE, Sampling(0.6, 0.9, 1.2)])
def test_a_continuation_depends_on_neither_batch_nor_order(family, sampling):
    completer = Completer(opened(family, start=True))

    def written(prompts, *, tokens=12, seed=3, by=completer):
        return by.complete(prompts, tokens=tokens, sampling=sampling, seed=seed)

    many = written(ODD)
    assert written(ODD[::-1])[::-1] == many
    assert [written([prompt])[0] for prompt in ODD] == many
    assert written(ODD * 2, by=Completer(completer.backend, budget=30)) == many * 2
    assert all(long.startswith(text) for text, long in zip(written(ODD, tokens=5), many, strict=True))
    assert sum(a == b for a, b in zip(written(ODD, seed=4), many, strict=True)) <= 1
    assert written([]) == []


@pytest.mark.parametrize("sampling", [FREE, Sampling(0.7), Sampling(1.3, 0.5), Sampling(0.6, 0.9, 1.2)])
def test_the_distribution_is_that_of_transformers(sampling):
    random = torch.Generator().manual_seed(1)
    logits = torch.randn(5, 3000, generator=random) * torch.tensor([[0.01], [0.3], [1.0], [3.0], [30.0]])
    ids = torch.randint(0, 3000, (5, 40), generator=random)
    banned = torch.zeros(3000, dtype=torch.bool)
    banned[[0, 17]] = True
    steps = [
        transformers.RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty),
        transformers.SuppressTokensLogitsProcessor([0, 17]),
        transformers.TemperatureLogitsWarper(sampling.temperature),
        transformers.TopPLogitsWarper(sampling.top_p),
    ]
    right = transformers.LogitsProcessorList(steps)(ids, logits.clone()).softmax(dim=1)
    found = distribution(logits, ids, banned, sampling)
    found = found / found.sum(dim=1, keepdim=True)
    assert found.dtype == torch.float32
    assert not found[:, banned].any()
    # Where the two sums pass top-p may differ by the last token, of tiny probability in a flat row.
    torch.testing.assert_close(found, right, rtol=5e-3, atol=1e-4)
    assert ((found > 0) != (right > 0)).sum() <= 5


def test_a_draw_is_where_the_sum_passes_the_number():
    random = np.random.default_rng(0)
    p = random.random((200, 30)).astype(np.float32) * (random.random((200, 30)) < 0.5)
    p[:, 7] += 0.01
    uniform = random.random(200)
    uniform[:4] = [0.0, 1 - 2**-53, 0.0, 1 - 2**-53]
    p[2:4, [0, -1]] = 0
    found = draw(torch.from_numpy(p), torch.from_numpy(uniform))
    for row, u, token in zip(p.astype(np.float64), uniform, found.tolist(), strict=True):
        total, at = 0.0, -1
        while total <= u * row.sum() and at < int(np.flatnonzero(row)[-1]):
            at += 1
            total += row[at]
        assert token == at
        assert row[token] > 0


def test_special_and_unused_ids_are_never_drawn(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "pretrace.backends.generation._continuation", lambda rust, old, new: str(drawn.extend(new))
    )
    completer = Completer(opened())
    completer.complete([f"{i}" for i in range(60)], tokens=100, sampling=Sampling(1e6), seed=0)
    assert len(drawn) == 60 * 100
    assert set(drawn) == set(range(2, 400))


@pytest.mark.parametrize("character", ["𝔘", "€", "ß", "🙂"])
def test_a_part_of_a_character_at_the_end_is_left_off(character):
    rust = make_tokenizer().backend_tokenizer
    old, new = rust.encode("a word").ids, rust.encode(f" and {character} {character}{character}").ids
    whole = f" and {character} {character}{character}"
    for number in range(len(new) + 1):
        text = continuation(rust, old, new[:number])
        shown = rust.decode([*old, *new[:number]])[len("a word") :]
        assert whole.startswith(text)
        assert text == shown.removesuffix("\ufffd")
    assert continuation(rust, old, new) == whole


@pytest.mark.parametrize("text", [" ab \ufffd", "\ufffd\ufffd\ufffd", " ab\ufffd."])
def test_a_sign_that_was_really_written_stays(text):
    rust, pieces = make_tokenizer().backend_tokenizer, words_in_pieces()
    for tokenizer in (rust, pieces):
        old = tokenizer.encode("ab").ids
        new = tokenizer.encode("ab" + text).ids[len(old) :]
        assert continuation(tokenizer, old, new) == text
    partly = [*rust.encode(text).ids, rust.encode("🙂").ids[0]]
    assert continuation(rust, rust.encode("x").ids, partly) == text


def words_in_pieces():
    names = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    merges = [("▁", "a"), ("▁", "b"), ("a", "b"), ("▁", "ab")]
    return pieces_tokenizer([*names, "▁", "a", "b", ".", "▁a", "▁b", "ab", "▁ab"], merges)


def test_a_tokenizer_that_loses_a_space_and_writes_bytes():
    rust = words_in_pieces()
    old = rust.encode("ab").ids
    assert rust.decode(old) == "ab"
    words = rust.encode("ab ab").ids  # with the space in front
    assert continuation(rust, old, words) == " ab ab"
    new = [*words, *rust.encode("🙂🙂").ids[1:]]
    made = [continuation(rust, old, new[:number]) for number in range(len(words), len(new) + 1)]
    assert made == [" ab ab"] * 4 + [" ab ab🙂"] * 4 + [" ab ab🙂🙂"]


def test_a_decoder_that_writes_the_prompt_differently():
    words = {"[UNK]": 0, "do": 1, "n't": 2, "not": 3}
    rust = tokenizers.Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    rust.decoder = decoders.WordPiece(cleanup=True)
    assert continuation(rust, [1], [3]) == " not"
    assert continuation(rust, [1], [2]) == "n't"


def test_an_adapter_is_in_place_while_it_writes_and_no_longer(tmp_path):
    def written(backend):
        return Completer(backend).complete(SENTENCES, tokens=10, sampling=GREEDY, seed=0)

    base = opened("llama")
    plain, folder = written(base), tmp_path / "lora"
    corpus = Corpus("made", tuple(Text(f"t{i}", text) for i, text in enumerate(SENTENCES)))
    make_adapter(base, corpus, methods.make("lora(rank=4, epochs=4, learning_rate=1e-2)"), folder=folder)
    tuned, other = attach(base, folder).backend, make_model("llama")
    made, settings = written(tuned), other.generation_config
    from peft import PeftModel

    peft = PeftModel.from_pretrained(other, str(folder)).eval()
    peft.generation_config = settings
    assert made == [generated(peft, prompt, start=False, tokens=10) for prompt in SENTENCES] != plain
    assert written(base) == plain
    assert Completer(tuned).fingerprint != Completer(base).fingerprint


def test_what_cannot_be_continued():
    with pytest.raises(ModelError, match="--generator"):
        Completer(Memory())
    with pytest.raises(TextsError, match="no start token"):
        Completer(opened()).complete(["a", ""], tokens=3, sampling=FREE, seed=0)
    completer = Completer(opened(max_tokens=16))
    eight = "one two three four five six seven eight"
    room = 16 - len(completer.spans(eight))
    assert completer.complete([eight], tokens=room, sampling=FREE, seed=0) != [""]
    with pytest.raises(ModelError, match="reads at most 16 tokens"):
        completer.complete([eight], tokens=room + 1, sampling=FREE, seed=0)
    with pytest.raises(ModelError, match=r"and \d\d were wanted"):
        completer.complete([eight * 3], tokens=1, sampling=FREE, seed=0)
    model = make_model("llama")
    backend = opened(model=model)
    with torch.no_grad():
        model.lm_head.weight[5] = torch.nan
    with pytest.raises(ModelError, match="not a finite number"):
        Completer(backend).complete(["a"], tokens=3, sampling=FREE, seed=0)
