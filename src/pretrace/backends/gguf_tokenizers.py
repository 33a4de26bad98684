"""The tokenizer of a GGUF file, which holds vocabulary, merges and flags, and of the pre-tokenizer its name only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from pretrace.backends.tokens import starting, wrap
from pretrace.errors import ModelError

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3 = _QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|")
_GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_TEKKEN = _GPT4O.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")
_DEEPSEEK3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_HAN_KANA = r"[\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+"
_BLOOM = r" ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+"
_DEEPSEEK_HAN = r"[\x{0800}-\x{9FA5}\x{AC00}-\x{D7FF}]+"
_CASED_LETTERS = (
    r"A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}"
    r"\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}"
    r"\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}"
    r"\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}"
    r"\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}"
    r"\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}"
    r"\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}"
    r"\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}"
    r"\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}"
    r"\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}"
    r"\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}"
    r"\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}"
)
_BYTES = "bytes"  # where bytes become characters, if not at the end: digits are not the same ones after that
_HAN = r"[\p{Han}]+"
_KIMI = (_HAN + "|" + _GPT4O).replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]").replace(r"[\r\n/]*", r"[\r\n]*")

_QWEN35 = _QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
_BAILING = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
_EXAONE = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
)
_BLANKS = "".join(rf"\s{{{n}}}(?!\S)|" for n in (512, 256, 128, 64, 32, 16, 8, 4)) + r"\s{1,2}(?!\S)|\s{1}"
_DEEPSEEK_SIGNS = r"\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+"
_YOUTU = (
    r"[\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}"
    r"\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|" + _HAN_KANA
)

_STEPS: Mapping[str, tuple[str, ...]] = {
    "gpt-2 phi-2 mpt olmo jais trillion gigachat a.x-4.0 mellum exaone4 granite-docling": (_GPT2,),
    "jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe modern-bert": (_GPT2,),
    "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2": (r"\p{N}", _GPT2),
    "falcon": (r"[\p{P}$+<=>^~|`]+", _GPT2, _BYTES, r"\p{N}+", "[0-9][0-9][0-9]"),
    "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano": (_LLAMA3,),
    "dbrx smaug-bpe glm4 chatglm-bpe": (_LLAMA3,),
    "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2": (_QWEN2,),
    "qwen35": (_QWEN35,),
    "ufakzeka": (_QWEN2.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)|", ""),),
    "laguna": (r"[^\n]+|[\n]+", _QWEN2),
    "minicpm5": (r"\p{N}{1,3}", _QWEN2.replace(r"\p{N}|", r"\p{N}+|")),
    "seed-coder": (_QWEN2.replace(r" ?[^\s\p{L}\p{N}]+[\r\n]*", r" ?[^\s\p{L}\p{N}\r\n]+"),),
    "bailingmoe bailingmoe2 llada-moe": (_BAILING,),
    "exaone-moe": (_EXAONE,),
    "jais-2": (_LLAMA3.removesuffix(r"\s+(?!\S)|\s+") + _BLANKS,),
    "tekken": (_TEKKEN,),
    "gpt-4o llama4 kanana2 talkie minimax-m2 granite-embed-multi-97m": (_GPT4O,),
    "tiny_aya cohere2moe": (r"\d{1,3}(?=(?:\d{3})*\b)", _GPT4O),
    "kimi-k2": (_KIMI,),
    "deepseek-v3 hunyuan-dense joyai-llm hy_v4": (r"\p{N}{1,3}", _HAN_KANA, _DEEPSEEK3),
    "deepseek-llm": (
        r"[\r\n]",
        rf"\s?[{_CASED_LETTERS}]+",
        _DEEPSEEK_SIGNS,
        r"\s+$",
        _DEEPSEEK_HAN,
        r"\p{N}+",
    ),
    "deepseek-coder": (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _DEEPSEEK_HAN, r"\p{N}"),
    "youtu": (_YOUTU, _GPT4O.replace("{1,3}", "")),
    "bloom poro-chat gpt3-finnish": (_BLOOM,),
    "viking": (_BLOOM, r"\p{N}"),
    "superbpe": (r"\p{N}+", r"(?=(\d{3})+(?!\d))"),
    "default": (r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
}
_PRE_TOKENIZERS = {name: steps for names, steps in _STEPS.items() for name in names.split()}
"""What each name of a pre-tokenizer means: a text is split by one regular expression after the other, matches and what
is between them apart. Source: llama.cpp, src/llama-vocab.cpp (2026) with the tokenizer.json files that it names."""
_STARTED = {name for name, steps in _PRE_TOKENIZERS.items() if steps in ((_LLAMA3,), (_TEKKEN,))}
_STARTED -= {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}
"""A start token goes in front where the file does not say whether."""
_WHOLE_WORDS = _STARTED | {"minicpm5", "youtu", "granite-embed-multi-97m"}
"""A word that is in the vocabulary is one token, whatever the merges make of it."""
_COMPOSED = frozenset(("qwen2", "qwen35", "olmo", "mpt", "command-r"))
"""Texts are brought to the normal form NFC first, as the tokenizer.json of these says."""
_UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 2, 3, 4, 5, 6  # types of tokens in a GGUF file
_ORIGINAL = "Name the folder or hub id of the original weights instead of the GGUF file."


def open_gguf_tokenizer(path: Path, label: str) -> Any:
    """Return a transformers tokenizer that reads texts as the GGUF file says. ModelError where the file names a
    tokenizer or pre-tokenizer that is not known."""
    facts = _read_facts(path)
    tokens, kind = list(facts["tokens"]), facts.get("model")
    if kind == "gpt2":
        rust = _byte_level(facts, tokens, label)
    elif kind in ("llama", "gemma4"):
        rust = _sentence_pieces(facts, tokens)
    else:
        raise ModelError(
            f"{label} names the tokenizer {kind!r}, which is not known for GGUF files. {_ORIGINAL}"
        )
    types = facts.get("token_type", ())
    rust.add_special_tokens([_added(t, True) for t, n in zip(tokens, types, strict=False) if n == _CONTROL])
    rust.add_tokens([_added(t, False) for t, n in zip(tokens, types, strict=False) if n == _USER_DEFINED])
    special = {
        f"{role}_token": tokens[facts[f"{name}_token_id"]]
        for role, name in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
        if facts.get(f"{name}_token_id", len(tokens)) < len(tokens)
    }
    pre = facts.get("pre")
    # The start token of Gemma 4 is flagged, and left to the chat template by the original tokenizer.
    start = kind != "gemma4" and facts.get("add_bos_token", kind == "llama" or pre in _STARTED)
    if start and "bos_token" in special:
        rust.post_processor = starting(special["bos_token"], facts["bos_token_id"])
    reader = f"GGUF, tokenizer {kind}" + (f", pre-tokenizer {pre}" if kind == "gpt2" else "")
    return wrap(rust, reader, chat_template=facts.get("chat_template"), **special)


def _read_facts(path: Path) -> dict[str, Any]:
    """Return what the file says of its tokenizer, by the names of the GGUF format without "tokenizer.ggml."."""
    from gguf import GGUFReader

    fields = GGUFReader(path).fields
    return {
        name.removeprefix("tokenizer.").removeprefix("ggml."): field.contents()
        for name, field in fields.items()
        if name.startswith("tokenizer.")
    }


def _byte_level(facts: Mapping[str, Any], tokens: Sequence[str], label: str) -> tokenizers.Tokenizer:
    """Return a byte-level BPE behind the pre-tokenizer that the file names."""
    pre = str(facts.get("pre", ""))
    if pre not in _PRE_TOKENIZERS:
        named = (
            f"names the pre-tokenizer {pre!r}, which is not known"
            if pre
            else "does not name its pre-tokenizer"
        )
        raise ModelError(f"{label} {named}, so its tokens cannot be told. {_ORIGINAL}")
    if "merges" not in facts:
        raise ModelError(f"{label} holds no merges, so its tokens cannot be told. {_ORIGINAL}")
    rust = tokenizers.Tokenizer(
        models.BPE(
            vocab={token: i for i, token in enumerate(tokens)},
            merges=[_parted(merge) for merge in facts["merges"]],
            ignore_merges=pre in _WHOLE_WORDS,
        )
    )
    if pre in _COMPOSED:
        rust.normalizer = normalizers.NFC()
    steps = _PRE_TOKENIZERS[pre]
    rust.pre_tokenizer = pre_tokenizers.Sequence(
        [_build_step(step) for step in (steps if _BYTES in steps else (*steps, _BYTES))]
    )
    rust.decoder = decoders.ByteLevel()
    return rust


def _build_step(step: str) -> Any:
    if step == _BYTES:
        return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if step == r"\p{N}":  # the same, by the name under which counting knows it
        return pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Split(Regex(step), "isolated")


def _sentence_pieces(facts: Mapping[str, Any], tokens: Sequence[str]) -> tokenizers.Tokenizer:
    """Return a BPE over characters, and bytes where it knows none, with blanks as U+2581.

    Merges that the file does not give follow from the scores of its tokens, as sentencepiece uses them.
    """
    vocabulary = {token: i for i, token in enumerate(tokens)}
    prefixed = facts.get("add_space_prefix", facts["model"] == "llama")
    if "merges" in facts:
        merges = [_parted(merge) for merge in facts["merges"]]
    else:
        types = facts.get("token_type", [1] * len(tokens))
        plain = [
            i for i, n in enumerate(types) if n not in (_UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE)
        ]
        plain.sort(key=lambda i: -facts["scores"][i])  # stable: of equal scores the first
        merges = [
            (left, right)
            for i in plain
            for left, right in _cuts(tokens[i])
            if left in vocabulary and right in vocabulary
        ]
    unknown = facts.get("unknown_token_id", 0)
    rust = tokenizers.Tokenizer(
        models.BPE(
            vocab=vocabulary,
            merges=merges,
            unk_token=tokens[unknown],
            fuse_unk=True,
            byte_fallback=all(f"<0x{byte:02X}>" in vocabulary for byte in range(256)),
        )
    )
    blank = normalizers.Replace(" ", "\u2581")
    rust.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), blank]) if prefixed else blank
    steps = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    rust.decoder = decoders.Sequence([*steps, *([decoders.Strip(" ", 1, 0)] if prefixed else [])])
    return rust


def _parted(merge: str) -> tuple[str, str]:
    """Return both sides of a merge as the file writes it; the left one may begin with a blank."""
    left, _, right = merge[1:].partition(" ")
    return merge[0] + left, right


def _cuts(token: str) -> list[tuple[str, str]]:
    """Return a token cut in two in every way, the longest beginning first."""
    return [(token[:at], token[at:]) for at in range(len(token) - 1, 0, -1)]


def _added(token: str, special: bool) -> AddedToken:
    return AddedToken(token, normalized=False, special=special)
