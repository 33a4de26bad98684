"""Small tokenizers of every kind that is told apart, trained on docstrings of this Python."""

import argparse
import functools
import inspect
import itertools
import json
import random
import re
import string
import textwrap

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, trainers
from tokenizers import pre_tokenizers as pre

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)
UPPER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
LOWER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = rf"{UPPER}{CONTRACTION}|{LOWER}{CONTRACTION}|\p{{N}}{{1,3}}|{REST}"
TEKKEN = rf"{UPPER}|{LOWER}|\p{{N}}|{REST}"

MERGING = ("llama2", "mistral", "gemma", "metaspace")
PATTERNED = (
    "gpt2", "roberta", "prefix space", "pythia", "smollm", "digit runs", "llama3", "qwen", "cl100k",
    "o200k", "tekken", "odd tokens", "odd tokens, llama3",
)  # fmt: skip
SEAMLESS = ("bert", "unigram", "own pattern", "lower case", "words", "composed")


def prose():
    """About 150 kB of documentation and source."""
    modules = (argparse, re, textwrap, json, functools)
    return [part for module in modules for part in inspect.getsource(module).split("\n\n\n")]


def odd_texts():
    """Short strings of a few characters, so that merges join across every kind of neighbour."""
    random_source = random.Random(5)
    alphabets = ["ab1'./ \n\t\r_éд"] * 4 + ["12", "abAB"]
    return ["".join(random_source.choices(alphabets[number % 6], k=9)) for number in range(4000)]


def bytelevel(*stages, **settings):
    """A byte-level BPE model trained on windows of text, set behind a pre-tokenizer only afterwards: it has
    merges across everything that the pre-tokenizer should keep apart."""

    def build():
        tokenizer = Tokenizer(models.BPE(ignore_merges=settings.get("ignore_merges", False)))
        windows = pre.Split(Regex(r"[\s\S]{1,9}"), "isolated")
        tokenizer.pre_tokenizer = pre.Sequence([windows, pre.ByteLevel(False, use_regex=False)])
        tokenizer = trained(tokenizer, settings.get("added", ["<|endoftext|>", "<filename>"]))
        tokenizer.normalizer = settings.get("normalizer")
        tokenizer.pre_tokenizer = pre.Sequence(list(stages)) if len(stages) > 1 else stages[0]
        return tokenizer

    return build


def split(pattern, *before, **settings):
    stage = pre.Split(Regex(pattern), "isolated")
    return bytelevel(*before, stage, pre.ByteLevel(add_prefix_space=False, use_regex=False), **settings)


def sentencepiece(normalizer, stage, **model):
    """A BPE model trained word by word, then set up to take whole texts as one word."""

    def build():
        words = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, **model))
        words.normalizer = TO_MARK
        words.pre_tokenizer = pre.Split(Regex("▁*[^▁]*"), "isolated")
        words = trained(words, ["<unk>", "<s>"], [*string.ascii_letters, *string.digits, "▁"])
        words.normalizer = normalizer
        spec = json.loads(words.to_str())
        spec["pre_tokenizer"] = None
        words = Tokenizer.from_str(json.dumps(spec))
        if stage is not None:
            words.pre_tokenizer = stage
        return words

    return build


def trained(tokenizer, added, alphabet=None):
    trainer = trainers.BpeTrainer(
        vocab_size=1200,
        special_tokens=[token for token in added if isinstance(token, str)],
        initial_alphabet=pre.ByteLevel.alphabet() if alphabet is None else alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(itertools.chain(prose(), odd_texts()), trainer)
    tokenizer.add_tokens([token for token in added if not isinstance(token, str)])
    return tokenizer


def wordpiece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=500, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(prose(), trainer)
    return tokenizer


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre.Metaspace()
    made = {"unk_token": "<unk>", "special_tokens": ["<unk>"], "show_progress": False}
    trainer = trainers.UnigramTrainer(vocab_size=300, **made)
    tokenizer.train_from_iterator(prose()[:40], trainer)
    return tokenizer


def words():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre.Whitespace()
    return trained(tokenizer, ["<unk>"], [])


SPACES = [AddedToken(content, normalized=True) for content in ("  ", "   ", "    ", " " * 8, "K x")]
WIDE = [
    AddedToken("<mask>", lstrip=True, special=True),
    AddedToken("<eat>", rstrip=True),
    AddedToken("ab", single_word=True),
]
ODD = ["<|endoftext|>", "\n", "\t\t", "@", "he", "(x", "y)", AddedToken("'' ", normalized=True)]
GPT2 = pre.ByteLevel(add_prefix_space=False)
TO_MARK = normalizers.Replace(" ", "▁")
BUILDERS = {
    "gpt2": bytelevel(GPT2),
    "roberta": bytelevel(GPT2, added=["<|endoftext|>", *WIDE]),
    "prefix space": bytelevel(pre.ByteLevel(add_prefix_space=True)),
    "pythia": bytelevel(GPT2, normalizer=normalizers.NFC(), added=["<|endoftext|>", *SPACES]),
    "smollm": bytelevel(pre.Digits(individual_digits=True), GPT2, added=["<|endoftext|>", "<12>", "> 3"]),
    "digit runs": bytelevel(pre.Digits(individual_digits=False), GPT2, added=["<|endoftext|>", "> 3"]),
    "llama3": split(LLAMA3, ignore_merges=True),
    "qwen": split(LLAMA3.replace("{1,3}", ""), normalizer=normalizers.NFC()),
    "cl100k": split(CL100K),
    "o200k": split(O200K),
    "tekken": split(TEKKEN),
    "composed": bytelevel(GPT2, normalizer=normalizers.NFC(), added=[AddedToken("é x", normalized=True)]),
    "odd tokens": bytelevel(GPT2, added=ODD),
    "odd tokens, llama3": split(LLAMA3, added=ODD),
    "llama2": sentencepiece(
        normalizers.Sequence([normalizers.Prepend("▁"), TO_MARK]), None, byte_fallback=True
    ),
    "mistral": sentencepiece(None, pre.Metaspace(prepend_scheme="first", split=False)),
    "gemma": sentencepiece(TO_MARK, pre.Split(" ", "merged_with_previous"), byte_fallback=True),
    "metaspace": sentencepiece(None, pre.Metaspace(prepend_scheme="always")),
    "bert": wordpiece,
    "unigram": unigram,
    "own pattern": split(r"\w+|\W+"),
    "lower case": bytelevel(GPT2, normalizer=normalizers.Lowercase()),
    "words": words,
}


@functools.cache
def build(kind):
    return BUILDERS[kind]()


@pytest.fixture(scope="session")
def built():
    """A tokenizer by its kind, trained once."""
    return build


@pytest.fixture(scope="session")
def documents():
    return prose()


def pytest_generate_tests(metafunc):
    patterned = tuple(kind for kind in PATTERNED if not kind.startswith(("odd", "pythia", "roberta")))
    groups = {"cuttable": PATTERNED + MERGING, "patterned": patterned, "any_kind": tuple(BUILDERS)}
    for name, kinds in {**groups, "seamless": SEAMLESS}.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, kinds)
