"""Neighbours: only drawn positions change, words come from the model's own distribution, nothing is made twice."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from tiny import SENTENCES, make_model, make_tokenizer, opened, pieces_tokenizer

from pretrace.backends.proposals import (
    _causal_proposals,
    _logits_at,
    _masked_proposals,
    _Vocabulary,
    open_proposer,
)
from pretrace.backends.tokens import Tokens, readable
from pretrace.errors import ModelError
from pretrace.testing import Memory

ODD = ["tab\tand  two\n\nlines  ", "NUL\x00 and \u200b zero"]
ODD += ["🙂🙂 日本 e\u0301", "half \ud83d a pair", "a b"]
NOTHING_TO_REPLACE = ["", "a", " ", "\n \t", "  \n"]


def small_bert(vocabulary):
    torch.manual_seed(3)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    config = transformers.BertConfig(vocab_size=vocabulary, max_position_embeddings=40, **size)
    model = transformers.BertForMaskedLM(config)
    with torch.no_grad():  # fresh weights are so small that every prediction would be uniform
        for parameter in model.parameters():
            parameter.mul_(6.0)
    return model.eval()


def word_pieces(*, lowercase):
    """Whole words of the sentences and single letters. Not trained: trainers break ties at random."""
    plain = [sentence.lower() if lowercase else sentence for sentence in SENTENCES]
    words = sorted({word for one in plain for word in re.findall(r"[a-zA-Z]+|[0-9]+|[.,;:()']", one)})
    letters = sorted({letter for word in words for letter in word} - set(words))
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *letters]
    names += [f"##{letter}" for letter in sorted({letter for word in words for letter in word})]
    return transformers.BertTokenizer(vocab={n: i for i, n in enumerate(names)}, do_lower_case=lowercase)


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    tokenizer = word_pieces(lowercase=True)
    small_bert(len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def causal(*, start=False, family="gpt_neox", cache=False):
    return _causal_proposals(opened(family, start=start), cache=cache)


def masked(*, lowercase=False, cache=False):
    tokenizer = word_pieces(lowercase=lowercase)
    return _masked_proposals(small_bert(len(tokenizer)), tokenizer, name="bert", weights="b", cache=cache)


def proposer_of(kind, **how):
    return masked(lowercase=kind == "uncased", **how) if kind in ("masked", "uncased") else causal(**how)


KINDS = ["causal", "masked", "uncased"]


@pytest.mark.parametrize("kind", KINDS)
def test_only_drawn_positions_change(kind):
    asked = proposer_of(kind)
    texts = [*SENTENCES, *ODD, " ".join(SENTENCES)]
    made = asked.propose(texts, number=6, share=0.3, seed=1)
    changed = 0
    for text, draft, neighbors in zip(texts, asked._drafts(texts), made, strict=True):
        whole = "".join(draft.stretches)
        assert whole == readable(text)  # also beyond what the model reads
        for number, neighbor in enumerate(neighbors):
            drawn = draft.positions(share=0.3, seed=1, number=number // asked.sharing).tolist()
            assert len(drawn) == min(len(draft.open), max(1, round(0.3 * len(draft.open))))
            parts = [
                r"(\s*)(\S+)(\s*)" if i in drawn else re.escape(stretch)
                for i, stretch in enumerate(draft.stretches)
            ]
            found = re.fullmatch("".join(parts), neighbor)
            assert found, (whole, neighbor)
            changed += neighbor != whole
    unknown = 1 if kind == "masked" else 0  # to this one, a text of emoji is all unknown words
    assert changed == 6 * (len(texts) - unknown)


@pytest.mark.parametrize("kind", KINDS)
def test_a_replaced_word_is_another_one(kind):
    asked, text = proposer_of(kind), "The cat sat on the mat"
    [near] = asked.propose([text], number=30, share=1, seed=0)
    draft, *drafts = asked._drafts([text, *near])
    fixed = 1 if kind == "causal" else 0  # the first token, which nothing stands before
    assert [i for i in range(len(draft.stretches)) if i not in draft.open] == list(range(fixed))
    for one in drafts:
        assert one.stretches[:fixed] == draft.stretches[:fixed]
        if len(one.stretches) == len(draft.stretches):  # cut into tokens as they were drawn
            drawn = zip(one.stretches[fixed:], draft.stretches[fixed:], strict=True)
            assert all(new != was for new, was in drawn)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", NOTHING_TO_REPLACE)
def test_a_text_with_nothing_to_replace_is_its_own_neighbour(kind, text):
    both = proposer_of(kind, cache=True).propose([text, "one two three"], number=3, share=0.5, seed=0)
    assert both[0] == (text,) * 3
    assert "one two three" not in both[1]


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_do_not_depend_on_number_batch_or_order(kind):
    proposer = proposer_of(kind)
    texts = [*SENTENCES, *ODD]
    many = proposer.propose(texts, number=11, share=0.3, seed=0)
    few = proposer.propose(texts[::-1], number=5, share=0.3, seed=0)[::-1]
    alone = [proposer.propose([text], number=3, share=0.3, seed=0)[0] for text in texts]
    assert [some[:5] for some in many] == few
    assert [some[:3] for some in many] == alone
    assert proposer.propose(texts, number=5, share=0.3, seed=1) != few
    assert all(len(set(some)) > 1 for some in many[: len(SENTENCES)])
    assert proposer.propose([texts[0]] * 2, number=2, share=0.3, seed=0) == [many[0][:2]] * 2


def distances(found, words, own, *logits):
    """How far the words found are from what each row of logits says: a softmax over the 50 likeliest, without the own
    one."""
    for row in logits:
        order = sorted((i for i in words if i != own), key=lambda i: -row[i])[:50]
        odds = {words[i]: float(np.exp(row[i] - row[order[0]])) for i in order}
        share = {word: found.count(word) / len(found) for word in {*found, *odds}}
        total = sum(odds.values())
        yield sum(abs(share[word] - odds.get(word, 0) / total) for word in share) / 2


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].double().numpy()


@pytest.mark.parametrize("start", [False, True])
def test_a_causal_model_proposes_from_its_own_distribution(start):
    asked, text = causal(start=start), "one two three"
    tokenizer = make_tokenizer(start=start)
    (neighbors,) = asked.propose([text], number=4000, share=0.01, seed=0)
    ids = tokenizer(text)["input_ids"]
    logits = logits_of(asked.model, ids)
    (draft,) = asked._drafts([text])
    assert draft.tokens[-1] == ids[-1]
    before, own = "".join(draft.stretches[:-1]), draft.stretches[-1]
    replaced = [n.removeprefix(before) for n in neighbors if n.startswith(before) and n != text]
    words = {}
    for i in range(len(tokenizer)):
        word = tokenizer.decode([i])
        plain = i not in tokenizer.all_special_ids and word.strip().isprintable() and word.strip()
        if plain and "\ufffd" not in word and word.startswith(" ") == own.startswith(" "):
            words[i] = word
    assert len(replaced) > 500
    right, wrong = distances(replaced, words, ids[-1], logits[-2], logits[-1])
    assert right < 0.12
    assert wrong > 0.2


def test_a_masked_model_proposes_from_its_own_distribution():
    asked, tokenizer, text = masked(), word_pieces(lowercase=False), "one two three four"
    (neighbors,) = asked.propose([text], number=4000, share=0.5, seed=0)
    (draft,) = asked._drafts([text])
    assert [stretch.strip() for stretch in draft.stretches] == text.split()
    drawn = [tuple(draft.positions(0.5, 0, n // 4).tolist()) for n in range(4000)]
    ids = tokenizer(text)["input_ids"]
    with_masks = [tokenizer.mask_token_id if i in (2, 4) else t for i, t in enumerate(ids)]  # two and four
    words = {
        i: word
        for word, i in tokenizer.get_vocab().items()
        if not word.startswith("##") and word not in tokenizer.all_special_tokens and word.isalnum()
    }
    replaced = [n.split(" ")[1] for n, where in zip(neighbors, drawn, strict=True) if where == (1, 3)]
    replaced = [word for word in replaced if word.isalnum()]
    assert len(replaced) > 300
    logits = [logits_of(asked.model, one)[2] for one in (with_masks, ids)]
    right, wrong = distances(replaced, words, ids[2], *logits)
    assert "two" not in replaced
    assert right < 0.2
    assert wrong > 0.3


def test_an_uncased_model_keeps_the_capitals_of_the_text():
    text = "The CAT sat in 1869"
    (neighbors,) = masked(lowercase=True).propose([text], number=40, share=1, seed=0)
    words = [neighbor.split() for neighbor in neighbors]
    assert all(first[0] == first[0].upper() and third == third.lower() for first, _, third, *_ in words)
    assert any(len(second) > 1 and second.isupper() for _, second, *_ in words)


def counted(kind, *, cache):
    """A proposer that is asked for a text at a time, and the sets of positions that it was asked for."""
    proposer, sets = proposer_of(kind, cache=cache), []
    guess = proposer._guess
    proposer.batches = lambda lengths: [(i,) for i, length in enumerate(lengths) if length]
    proposer._guess = lambda drafts, positions: sets.extend(positions[0]) or guess(drafts, positions)
    return proposer, sets


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_nothing_is_made_twice(kind):
    whole = proposer_of(kind).propose(SENTENCES, number=9, share=0.3, seed=0)
    (few, first), (more, second), (again, third) = (counted(kind, cache=True) for _ in range(3))
    assert few.propose(SENTENCES, number=4, share=0.3, seed=0) == [some[:4] for some in whole]
    assert more.propose(SENTENCES, number=9, share=0.3, seed=0) == whole
    found = again.propose(SENTENCES[::-1], number=6, share=0.3, seed=0)
    assert found == [n[:6] for n in whole[::-1]]
    assert len(first) == len(SENTENCES) * 4 // few.sharing
    assert len(second) == len(SENTENCES) * (5 if kind == "causal" else 2)
    assert not third
    again.propose(SENTENCES, number=4, share=0.3, seed=2)
    assert len(third) == len(first)


BERTS = {
    "bert": transformers.BertConfig,
    "roberta": transformers.RobertaConfig,
    "deberta": transformers.DebertaV2Config,
    "modernbert": transformers.ModernBertConfig,
}
FAMILIES = ["gpt_neox", "llama", "opt", "gemma2", "gemma3_text", "granite"]


@pytest.mark.parametrize("family", [*FAMILIES, *BERTS])
def test_logits_at_positions_are_the_models_own(family, monkeypatch):
    if family in BERTS:
        inner = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
        special = {f"{name}_token_id": 0 for name in ("pad", "bos", "eos", "cls", "sep")}
        config = BERTS[family](vocab_size=90, max_position_embeddings=64, **inner, **special)
        model = transformers.AutoModelForMaskedLM.from_config(config).eval()
    else:
        model = make_model(family)
    size = model.config.vocab_size
    monkeypatch.setattr("pretrace.backends.proposals._SLICE_BYTES", 4 * size * 17)
    ids = torch.randint(1, 80, (3, 30), generator=torch.Generator().manual_seed(0))
    rows = torch.tensor([0] * 20 + [1] + [2] * 5)
    columns = torch.cat([torch.arange(20) + 3, torch.tensor([0, 29, 3, 2, 9, 7])])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    with torch.no_grad():
        wanted = model(**inputs).logits[rows, columns]
    slices = list(_logits_at(model, inputs, rows, columns))
    torch.testing.assert_close(torch.cat(slices), wanted, rtol=1e-4, atol=1e-4)
    if family != "opt":
        assert len(slices) == 2
    with torch.no_grad():  # the model is as it was
        torch.testing.assert_close(model(**inputs).logits[rows, columns], wanted)


def test_candidates_are_the_likeliest_of_the_kind_without_the_own():
    words = _Vocabulary(word_pieces(lowercase=False).backend_tokenizer)
    size = len(words.pieces)
    logits = torch.randn((6, size + 9), generator=torch.Generator().manual_seed(0)) * 3
    logits[:, size:] = 99.0  # a logits table is often larger than the tokenizer
    starts = np.flatnonzero(words.sound & words.begins).tolist()
    parts = np.flatnonzero(words.sound & ~words.begins).tolist()
    own = [starts[3], parts[0], starts[4], parts[5], starts[9], parts[7]]
    for row, token in enumerate(own):
        logits[row, token] = 50.0
    ids, weights = words.likeliest([logits[:4], logits[4:]], torch.tensor(own), top=12)
    for row, token in enumerate(own):
        kind = [i for i in (starts if token in starts else parts) if i != token]
        best = sorted(sorted(kind, key=lambda i: -float(logits[row, i]))[:12])
        assert ids[row].tolist() == best
        odds = np.exp([float(logits[row, i]) for i in best])
        np.testing.assert_allclose(weights[row] / weights[row].sum(), odds / odds.sum(), rtol=1e-5)
    _, none = words.likeliest([torch.full((1, size), -torch.inf)], torch.tensor(own[:1]), top=5)
    assert none.tolist() == [[0.0] * 5]
    with pytest.raises(ModelError, match="not a number"):
        words.likeliest([torch.full((1, size), torch.nan)], torch.tensor(own[:1]))


def test_a_tokenizer_that_invents_a_space_in_front():
    """As Llama's does: the word at the start is "▁The", and no space may come in with its replacement."""
    letters = [f"<0x{byte:02X}>" for byte in range(256)]
    names = ["<unk>", "<s>", *letters, "▁", "a", "▁a", "▁The", "▁cat", "▁A", "s", "<tool>"]
    rust = pieces_tokenizer(names)
    rust.add_special_tokens(["<unk>", "<s>", "<tool>"])
    words = _Vocabulary(rust)
    at = {name: i for i, name in enumerate(names)}
    assert words.pieces[at["▁cat"]] == " cat"
    assert words.begins[at["▁cat"]]
    assert words.sound[at["▁cat"]]
    assert not words.begins[at["s"]]
    unsound = ["<unk>", "<s>", "<tool>", "▁", "<0xE4>", "<0x0A>", "<0x00>"]
    assert not words.sound[[at[name] for name in unsound]].any()
    draft = words.draft("a a <tool> a", Tokens(rust), first=0)
    cat = np.array([[at["▁cat"]]]), np.ones((1, 1))
    for one in ("The", "  The\n"):
        whole, random = replace(draft, stretches=(one,)), np.random.default_rng(0)
        assert words.neighbor(whole, np.array([0]), cat, random) == one.replace("The", "cat")
    assert "".join(draft.stretches) == "a a <tool> a"
    assert "<tool>" not in [draft.stretches[i].strip() for i in draft.open]


def test_the_target_proposes_or_another_model_does(model_folder, bert_folder):
    target = opened("gpt_neox")
    for spec in ("causal", f"causal:{model_folder}", f"masked:{bert_folder}"):
        proposer = open_proposer(spec, target, cache=False)
        (neighbors,) = proposer.propose([SENTENCES[0]], number=3, share=0.3, seed=0)
        assert SENTENCES[0] not in neighbors
        assert proposer.facts["kind"] == spec.partition(":")[0]
        assert len(proposer.facts["weights"]) in (1, 64)
    assert open_proposer(f"masked:{bert_folder}").fingerprint == proposer.fingerprint


def test_models_that_cannot_propose_say_what_to_do(tmp_path, bert_folder, model_folder):
    for spec, words in {
        f"causal:{bert_folder}": r"sees the tokens after the one it predicts.*masked: in place of causal:",
        f"masked:{model_folder}": "could not be opened as a masked language model",
        f"masked:{model_folder / 'config.json'}": "is a file, not a model",
    }.items():
        with pytest.raises(ModelError, match=words) as raised:
            open_proposer(spec)
        assert "\n" not in str(raised.value)
    with pytest.raises(ModelError, match=r"target memory, which has none here"):
        open_proposer("causal", Memory())
    headless = tmp_path / "headless"
    transformers.BertModel.from_pretrained(bert_folder).save_pretrained(headless)
    word_pieces(lowercase=True).save_pretrained(headless)
    with pytest.raises(ModelError, match=r"lacks the weight cls.predictions"):
        open_proposer(f"masked:{headless}")
    with pytest.raises(ModelError, match="no mask token"):
        _masked_proposals(small_bert(400), make_tokenizer(), name="bert", weights="b")
