"""What a model's tokenizer files say, held against the tokenizers library itself: tokenizer.json and GGUF files."""

import json

import gguf
import pytest
import tokenizers
import transformers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

from pretrace.backends import open_model, open_tokenizer
from pretrace.backends.tokens import _PRE_TOKENIZERS, Tokens, open_gguf_tokenizer
from pretrace.errors import ModelError
from tests.tiny import SENTENCES, make_model, make_tokenizer

TEXTS = [
    "In 2026 there were 1234567 cases, it's said; 98765 of them in 1999.",
    "station   1998   1999   2000\nA           12     14     19\n",
    "def f(x):\n    if x == 1:\n        return 10\n    9\n\tpass\n",
    "  leading,  WE'LL go\r\n\r\n\n   7 miles ",
    "naïve café ÉCOLE 東京2026年。한국어 مرحبا ١٢٣ नमस्ते ภาษาไทย Привет",
    "👩\u200d👩\u200d👧 👍🏽 http://a.example/x?y=1&z=22 <s>inside</s> $5.00!!!???",
]
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def byte_level(*splits, whole=False):
    """A pre-tokenizer of steps, bytes last; GPT-2's pattern by the library's own step where `whole` is given."""
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=whole)
    return pre_tokenizers.Sequence([*splits, last])


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def trained(pre, *, normalizer=None):
    """A byte-level BPE whose merges were learnt behind the pre-tokenizer."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre
    if normalizer:
        made.normalizer = normalizer
    made.decoder = decoders.ByteLevel()
    how = {"special_tokens": ["<s>", "</s>"], "show_progress": False}
    how["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=700, **how)
    made.train_from_iterator([*TEXTS, *SENTENCES] * 3, trainer)
    return made


def write_folder(folder, family, truth, **config):
    folder.mkdir()
    truth.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"model_type": family, "vocab_size": 800}))
    named = {"bos_token": "<s>", "eos_token": "</s>", **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    return folder


def ids(tokens):
    return [[int(i) for i in one.tokens] for one in tokens.encode(TEXTS)]


def true_ids(truth):
    return [truth.encode(text, add_special_tokens=False).ids for text in TEXTS]


@pytest.mark.parametrize(
    ("family", "named"),
    [
        ("qwen2", "LlamaTokenizerFast"), ("qwen2", "Qwen2Tokenizer"), ("llama", "GPT2TokenizerFast"),
        ("llama", "Qwen2Tokenizer"), ("llama", "CohereTokenizerFast"), ("llama", "LlamaTokenizerFast"),
        ("gemma3_text", "PreTrainedTokenizerFast"),
    ],
)  # fmt: skip
def test_tokenizer_json_is_followed_whatever_class_is_named(tmp_path, family, named):
    truth = trained(byte_level(split(LLAMA3)))
    folder = write_folder(tmp_path / "model", family, truth, tokenizer_class=named)
    tokens = open_tokenizer(str(folder))
    assert ids(tokens) == true_ids(truth)
    assert tokens.prefix.tolist() == []


def test_the_start_token_is_that_of_the_file_or_of_its_configuration(tmp_path):
    truth = trained(byte_level(split(LLAMA3)))
    started = tokenizers.Tokenizer.from_str(truth.to_str())
    ends = {"single": "<s> $A </s>", "special_tokens": [("<s>", 0), ("</s>", 1)]}
    started.post_processor = processors.TemplateProcessing(**ends)
    cases = [(started, None, [0]), (started, False, []), (truth, True, [0]), (truth, None, [])]
    for i, (made, said, expected) in enumerate(cases):
        named = {"tokenizer_class": "Qwen2Tokenizer"} | ({} if said is None else {"add_bos_token": said})
        tokens = open_tokenizer(str(write_folder(tmp_path / f"{i}", "qwen2", made, **named)))
        assert tokens.prefix.tolist() == expected
        assert ids(tokens) == true_ids(truth)


def saved(folder, vocabulary, tokenizer=None):
    """A tiny model with embeddings of so many tokens."""
    make_model("llama", vocabulary=vocabulary).save_pretrained(folder)
    (tokenizer or make_tokenizer()).save_pretrained(folder)
    return folder


def test_a_run_records_what_the_tokenizer_was_read_by(tmp_path):
    folder = saved(tmp_path, 800)
    assert open_model(str(folder)).facts["tokenizer_read_by"].startswith("AutoTokenizer (")
    trained(byte_level(split(r"\p{N}{1,3}"))).save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "CohereTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    assert open_model(str(folder)).facts["tokenizer_read_by"] == "tokenizer.json"


# GGUF files.


def write_gguf(path, truth, pre, **facts):
    """A GGUF file that holds the tokenizer alone: its merges and the name of its pre-tokenizer."""
    spec = json.loads(truth.to_str())
    vocabulary = spec["model"]["vocab"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    tokens = sorted(vocabulary, key=vocabulary.get)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in ("<s>", "</s>") else 1 for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in spec["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    for name, value in facts.items():
        getattr(writer, name)(value)
    return written(writer, path)


def written(writer, path):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


TRUE_PRE_TOKENIZERS = {
    "gpt-2": byte_level(whole=True),
    "smollm": byte_level(pre_tokenizers.Digits(individual_digits=True), whole=True),
    "starcoder": byte_level(pre_tokenizers.Digits(individual_digits=True), whole=True),
    "falcon": pre_tokenizers.Sequence(
        [
            pre_tokenizers.Punctuation("contiguous"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            pre_tokenizers.Digits(individual_digits=False),
            split("[0-9][0-9][0-9]"),
        ]
    ),
    "llama-bpe": byte_level(split(LLAMA3)),
    "qwen2": byte_level(split(LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}"))),
    "deepseek-coder": byte_level(
        split("[\r\n]"),
        split(r"\s?\p{L}+"),
        split(r"\s?\p{P}+"),
        split("[一-龥ࠀ-一가-퟿]+"),
        pre_tokenizers.Digits(individual_digits=True),
    ),
    "deepseek-v3": byte_level(
        split(r"\p{N}{1,3}"),
        split("[一-龥぀-ゟ゠-ヿ]+"),
        split(
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
    ),
    "viking": byte_level(
        split(" ?[^(\\s|[.,!?…。，、।۔،])]+"), pre_tokenizers.Digits(individual_digits=True)
    ),
}


@pytest.mark.parametrize("name", TRUE_PRE_TOKENIZERS)
def test_a_gguf_file_is_read_by_the_pre_tokenizer_it_names(tmp_path, name):
    truth = trained(TRUE_PRE_TOKENIZERS[name])
    made = open_gguf_tokenizer(write_gguf(tmp_path / "a.gguf", truth, name), "a.gguf")
    tokens = Tokens(made)
    assert ids(tokens) == true_ids(truth)
    assert tokens.prefix.tolist() == ([0] if name == "llama-bpe" else [])
    assert [made.decode(one, skip_special_tokens=False) for one in ids(tokens)] == TEXTS
    assert tokens.read_by == f"GGUF, tokenizer gpt2, pre-tokenizer {name}"


def test_every_named_pre_tokenizer_splits_texts_and_loses_nothing():
    for name, steps in _PRE_TOKENIZERS.items():
        cascade = pre_tokenizers.Sequence([split(step) for step in steps if step != "bytes"])
        for text in TEXTS:
            pieces = [piece for piece, _ in cascade.pre_tokenize_str(text)]
            assert "".join(pieces) == text, name
            assert len(pieces) > 2, name


def test_the_start_token_of_a_gguf_file_is_as_it_says_and_an_unknown_pre_tokenizer_refused(tmp_path):
    truth, path = trained(TRUE_PRE_TOKENIZERS["llama-bpe"]), tmp_path / "a.gguf"
    for pre, said, expected in (("llama-bpe", False, []), ("qwen2", True, [0])):
        write_gguf(path, truth, pre, add_add_bos_token=said)
        assert Tokens(open_gguf_tokenizer(path, "a.gguf")).prefix.tolist() == expected
    for pre, says in (("newest", "'newest', which is not known"), (None, "names no pre")):
        write_gguf(path, truth, pre)
        with pytest.raises(ModelError, match=says):
            open_gguf_tokenizer(path, "a.gguf")


@pytest.mark.parametrize("prefixed", [True, False])
def test_sentence_pieces_of_a_gguf_file(tmp_path, prefixed):
    """Scores instead of merges: read as the tokenizer.json that LLaMA 2 and Gemma have, bytes and blanks included."""
    learnt = tokenizers.Tokenizer(models.BPE())
    blank = normalizers.Replace(" ", "▁")
    learnt.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), blank]) if prefixed else blank
    texts = [text for text in [*TEXTS, *SENTENCES] if "👩" not in text]
    learnt.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=500, show_progress=False))
    spec = json.loads(learnt.to_str())["model"]
    merged = ["".join(pair) for pair in spec["merges"]]
    letters = [token for token in spec["vocab"] if len(token) == 1]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokens += dict.fromkeys([*merged, *letters])
    scores = [0.0] * 259 + [-float(i) for i in range(len(tokens) - 259)]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (len(tokens) - 259)
    vocab, merges = {token: i for i, token in enumerate(tokens)}, [tuple(pair) for pair in spec["merges"]]
    how = {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    truth = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges, **how))
    truth.normalizer = learnt.normalizer
    truth.add_special_tokens(["<s>", "</s>"])
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_unk_token_id(0)
    if not prefixed:
        writer.add_add_space_prefix(False)
    made = open_gguf_tokenizer(written(writer, tmp_path / "a.gguf"), "a.gguf")
    read = Tokens(made)
    assert ids(read) == true_ids(truth)
    assert read.prefix.tolist() == [1]
    plain = [text for text in TEXTS if "<s>" not in text]
    assert [made.decode(made(text)["input_ids"][1:]) for text in plain] == plain


# Tokenizers that do not fit their model, or that the library cannot read.


def test_tokens_beyond_the_embeddings_are_refused_and_added_ones_in_a_text(tmp_path):
    with pytest.raises(ModelError, match="embeddings for 390 tokens, and 10 tokens"):  # the tokenizer has 400
        open_model(str(saved(tmp_path / "ordinary", 390)))
    tokenizer = make_tokenizer()
    tokenizer.add_special_tokens({"pad_token": "<|pad|>"})
    opened = open_model(str(saved(tmp_path / "added", 400, tokenizer)))
    assert len(opened.encode(["the cat sat"])[0].tokens)
    with pytest.raises(ModelError, match=r"contains '<\|pad\|>', token 400"):
        opened.encode(["the <|pad|> sat"])


@pytest.mark.parametrize("kind", ["type", "merge", "panic"])
def test_a_tokenizer_that_cannot_be_opened_is_one_line(tmp_path, kind):
    folder = write_folder(tmp_path / "model", "llama", trained(byte_level(whole=True)))
    spec = json.loads((folder / "tokenizer.json").read_text())
    if kind == "type":
        spec["model"]["type"] = "NewBPE"
    elif kind == "merge":
        spec["model"]["merges"].append(["zz!", "qq!"])
    else:  # a table of characters that points beyond its end
        spec["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "BAAAAP////8="}
    (folder / "tokenizer.json").write_text(json.dumps(spec))
    with pytest.raises(ModelError, match="could not be opened as a tokenizer") as raised:
        open_tokenizer(str(folder))
    assert "\n" not in str(raised.value)


def test_a_tokenizer_that_fails_at_a_text_is_one_line():
    rust = tokenizers.Tokenizer(models.WordLevel({"the": 0, "a": 1}, unk_token="[UNK]"))
    rust.pre_tokenizer = pre_tokenizers.Whitespace()
    tokens = Tokens(transformers.PreTrainedTokenizerFast(tokenizer_object=rust), start="never")
    for read in (lambda: tokens.encode(["the railway"]), lambda: tokens.spans("the railway")):
        with pytest.raises(ModelError, match="the tokenizer failed at a text"):
            read()
