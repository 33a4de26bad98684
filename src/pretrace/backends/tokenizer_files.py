"""The tokenizer that tokenizer.json describes, where AutoTokenizer rebuilds another one by the name of a class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import processors

_PROBES = (
    "It's 1, 12, 123, 1234 and 1234567 of 3.14159; on 2026-11-26, 0x1F, ٣٤٥ ½ ² Ⅳ",
    "one  two   three    four          ten\u00a0 fixed\u3000wide",
    "def f(x):\n    if x == 10:\n        return  x+1\n\tif y:\n\t\tpass  \n\n\n    9\n",
    " leading",
    "trailing ",
    "   three and three   ",
    "\n\nlines\r\nand\ttabs\t\t1\n \n  2\r\r\n",
    "我想在2026年の東京で、한국어。！Ａｂ",
    "مرحبا بالعالم، שָׁלוֹם नमस्ते दुनिया",
    "ภาษาไทยไม่มีช่องว่าง",
    "Привет, МИР! Ёлка αβγΣς",
    "👩\u200d👩\u200d👧 🏳\ufe0f\u200d🌈 👍🏽🙂🙂",
    "don't I'M we'Ve they'LL you'd 'RE O'Neil l'été it’s 'quoted'",
    "https://example.org/a_b-c?d=1&e=%20#top someone@mail.example /usr/local/bin",
    "NASA HTTPServer iPhone XMLHttpRequest CamelCase snake_case UPPERlower ÉCOLE",
    "cafe\u0301 naïve ﬁne İstanbul straße zero\u200bwidth\ufeff soft\u00adhyphen",
    '#include <a.h> // x->y; a!=b && c||!d; "q" `q` $x @y ^^ ~~ {}[]() += \\n',
    "Wait...what?!! --- === *** ___ ......\n\n| a | b |\n|---|---|\n<b>&amp;</b>",
)
"""Where pre-tokenizers and normalisers differ: digits, blanks, code, scripts, emoji, contractions, capitals."""
KEPT_READER = "tokenizer_read_by.txt"
"""Beside a tokenizer.json that we wrote: what the tokenizer had been read by."""
_PIECES = 1024  # tokens of the vocabulary in the text that is made of it


def read_file(folder: Path) -> tokenizers.Tokenizer | None:
    """Return the tokenizer of the folder's tokenizer.json, without truncation and padding; None without that file."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        return None
    rust = tokenizers.Tokenizer.from_file(str(path))
    rust.no_truncation()
    rust.no_padding()
    return rust


def follow_file(rust: tokenizers.Tokenizer | None, auto: Any, folder: Path) -> Any:
    """Return AutoTokenizer's tokenizer where it reads texts as that of the file does, and otherwise one that reads them
    as the file says. Without a file there is nothing to compare."""
    reader = f"AutoTokenizer ({type(auto).__name__})"
    if rust is None:
        return _name_reader(auto, reader)
    config = folder / "tokenizer_config.json"
    said = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
    _set_start(rust, said.get("add_bos_token"), auto.bos_token)
    if getattr(auto, "backend_tokenizer", None) is not None and _read_alike(auto, rust):
        kept = folder / KEPT_READER
        return _name_reader(auto, kept.read_text(encoding="utf-8") if kept.is_file() else reader)
    named = {
        role: token
        for role, token in auto.special_tokens_map.items()
        if isinstance(token, str) and rust.token_to_id(token) is not None
    }
    options = {"chat_template": auto.chat_template, "model_max_length": auto.model_max_length}
    return wrap(rust, "tokenizer.json", **named, **options)


def reader_of(tokenizer: Any) -> str:
    """What a tokenizer was read by, as a run records it."""
    return str(getattr(tokenizer, "read_by", type(tokenizer).__name__))


def _name_reader(tokenizer: Any, reader: str) -> Any:
    tokenizer.read_by = reader
    return tokenizer


def wrap(rust: tokenizers.Tokenizer, reader: str, **options: Any) -> Any:
    """Return a transformers tokenizer that reads texts by the Rust tokenizer; `options` name its special tokens."""
    from transformers import PreTrainedTokenizerFast

    return _name_reader(
        PreTrainedTokenizerFast(tokenizer_object=rust, clean_up_tokenization_spaces=False, **options), reader
    )


def _set_start(rust: tokenizers.Tokenizer, wanted: object, bos: str | None) -> None:
    """Make the file's tokenizer put its start token in front or not, where tokenizer_config.json says so."""
    start = None if bos is None else rust.token_to_id(bos)
    if start is None or not isinstance(wanted, bool):
        return
    own = rust.encode("a").ids
    if wanted and start not in own:
        rust.post_processor = starting(str(bos), start)
    elif not wanted and own[:1] == [start]:
        rust.post_processor = None


def starting(token: str, number: int) -> processors.TemplateProcessing:
    """Return the post-processor that puts one token in front of a text."""
    return processors.TemplateProcessing(single=[token, "$A"], special_tokens=[(token, number)])


def _read_alike(auto: Any, rust: tokenizers.Tokenizer) -> bool:
    """Whether both give the same tokens for all probes, for the file's own tokens, and put the same in front."""
    added = [token.content for token in rust.get_added_tokens_decoder().values()]
    size = rust.get_vocab_size()
    pieces = rust.decode(list(range(0, size, max(1, size // _PIECES))), skip_special_tokens=False)
    texts = [*_PROBES, "x".join(f"{token} {token}y\n" for token in added), pieces]
    ours = [encoding.ids for encoding in rust.encode_batch(texts, add_special_tokens=False)]
    theirs = auto(texts, add_special_tokens=False)["input_ids"]
    return own_prefix(auto) == own_prefix(rust) and all(a == b for a, b in zip(ours, theirs, strict=True))


def own_prefix(tokenizer: Any) -> list[int]:
    """Return what the tokenizer puts in front of a text by itself."""
    if isinstance(tokenizer, tokenizers.Tokenizer):
        with_specials = tokenizer.encode("a", add_special_tokens=True).ids
        without = tokenizer.encode("a", add_special_tokens=False).ids
    else:
        with_specials = tokenizer("a", add_special_tokens=True)["input_ids"]
        without = tokenizer("a", add_special_tokens=False)["input_ids"]
    for at in range(len(with_specials) - len(without) + 1):
        if with_specials[at : at + len(without)] == without:
            return list(with_specials[:at])
    return []
