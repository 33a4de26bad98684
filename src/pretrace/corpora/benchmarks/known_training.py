"""Texts of which others know from the training itself whether a model read them, and how often.

Hubble, Train Once Answer All and the copyright traps were put into training at random, a known number of times; what
CheckMIABench takes stands before or after a checkpoint; PANORAMA is made up, for fine-tunes of one's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pretrace.corpora.benchmarks.published import (
    MEMBERS,
    NONMEMBERS,
    Cells,
    PathLabels,
    Schema,
    add_card,
    find_tables,
    join_parts,
    keep_texts,
    read_by_path,
    read_published,
    read_sides,
    read_table,
    refuse_one_sided,
    stem,
)
from pretrace.corpora.columns import kind_of
from pretrace.corpora.opening import shown
from pretrace.errors import TextsError
from pretrace.registry import corpora, require
from pretrace.types import Corpus

_HUBBLE_HUB = "allegrolab"
_HUBBLE_KINDS = (
    "passages_gutenberg_popular", "passages_gutenberg_unpopular", "passages_wikipedia", "paraphrases_mrpc",
    "paraphrases_paws", "biographies_yago", "biographies_ecthr", "chats_personachat", "testset_popqa", "testset_mmlu",
    "testset_hellaswag", "testset_piqa", "testset_winogrande-mcq", "testset_winogrande-infill", "testset_munch",
    "testset_ellie",
)  # fmt: skip
_HUBBLE_FILES = PathLabels(members=("train",), nonmembers=("test",))


def _whole(value: object, column: str, least: int = 0) -> int:
    """A number of copies; ValueError in words that fit after "row 3: "."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{column} should hold a whole number and holds {kind_of(value)}")
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if number != int(number) or number < least:
        raise ValueError(
            f"{column} should hold a whole number, {least} or more, and holds {str(value)[:40]!r}"
        )
    return int(number)


def _hubble(cells: Cells) -> Cells:
    """Copies and label from `duplicates`, and the title of what a passage was cut from, where `meta` has one."""
    duplicates = _whole(cells["duplicates"], "duplicates")
    meta: Any = cells.get("meta")
    if isinstance(meta, str):
        try:
            meta = json.loads(meta)
        except ValueError:
            meta = None
    title = meta.get("title") if isinstance(meta, Mapping) else None
    return {
        "copies": duplicates,
        "member": "1" if duplicates else "0",
        "document": title if isinstance(title, str) else "",
    }


_HUBBLE = Schema(
    "Hubble",
    text="text",
    label="member",
    group="document",
    needed=("duplicates",),
    meta=("duplicates", "copies"),
    used=("meta",),
    derive=_hubble,
    derived=("member", "document", "copies"),
)


@corpora.add("hubble")
def hubble(kind: str, copies: int | None = None, path: str | None = None) -> Corpus:
    """Texts put into the Hubble models 1 to 256 times, against texts put into none (Wei et al. 2025).

    `kind` is the name of the data set, as 'passages_wikipedia' or 'biographies_yago'. `copies` keeps the members of so
    many copies (1, 4, 16, 64 or 256), and all non-members. `path` is a folder of files whose names begin with train and
    test, or one file, of the columns `text` and `duplicates`. The column `duplicates` goes to the results, and
    `evaluate` measures by copies. Raises ExpressionError for another kind, TextsError where the texts cannot be had.
    """
    known = ", ".join(_HUBBLE_KINDS)
    require(kind in _HUBBLE_KINDS, f"hubble: kind must be one of {known}; found {kind!r}.")
    if path is None:
        home = f"{_HUBBLE_HUB}/{kind}"
        parts = {side: read_published(f"{home}::{split}", _HUBBLE) for side, split in _SPLITS.items()}
        corpus = join_parts(parts, "hubble", f"hub:{home}")
    else:
        folder = Path(path) / kind if (Path(path) / kind).is_dir() else Path(path)
        files = find_tables(folder)
        if len(files) == 1:
            corpus = read_published(files[0], _HUBBLE)
        else:
            corpus = _by_copies(read_by_path(folder, _HUBBLE_FILES, _HUBBLE))
    refuse_one_sided(corpus, "duplicates above 0", "duplicates of 0")
    corpus = _of_copies(corpus, copies, "hubble")
    return add_card(corpus, "hubble", f"Hubble, {kind}")


_SPLITS = {MEMBERS: "train", NONMEMBERS: "test"}


def _by_copies(corpus: Corpus) -> Corpus:
    """The labels that follow from the copies, whatever the files are called; TextsError where a name says another."""
    odd = [text.id for text in corpus.texts if text.member is not (text.copies != 0)]
    if odd:
        raise TextsError(
            f"{corpus.source}: the duplicates of {odd[0]!r} do not fit the name of its file, where train holds members "
            "and test none: give the files as published."
        )
    return corpus


def _of_copies(corpus: Corpus, copies: int | None, name: str) -> Corpus:
    """All non-members, and of the members those of so many copies; ExpressionError for a number that no member has."""
    if copies is None:
        return corpus
    have = sorted({text.copies or 0 for text in corpus.texts if text.member})
    require(copies in have, f"{name}: copies must be one of {', '.join(map(str, have))}, found {copies}.")
    return keep_texts(
        corpus, lambda text: not text.member or text.copies == copies, f"{copies} copies, or none"
    )


_TOAA_TOKENIZER = "allenai/OLMo-2-0425-1B"


def _toaa(decode: Callable[[list[int]], str | None]) -> Callable[[Cells], Cells]:
    def derive(cells: Cells) -> Cells:
        ids, member = cells["input_ids"], str(cells["membership"])
        if not isinstance(ids, list) or not all(isinstance(one, int) for one in ids) or not ids:
            raise ValueError(f"input_ids should hold a list of whole numbers and holds {kind_of(ids)}")
        if member not in ("0", "1"):
            raise ValueError(f"membership should hold 1 or 0 and holds {member[:40]!r}")
        copies = _whole(cells["duplication"], "duplication", 1) if member == "1" else 0
        found = decode(ids)
        name = f"{cells['condition']}/{member}/{cells['example_idx']}"
        return {
            "decoded": found or "",
            "copies": copies,
            "name": name,
            "round": "0" if found is None else "1",
        }

    return derive


@corpora.add("toaa")
def toaa(condition: str, path: str | None = None, tokenizer: str = _TOAA_TOKENIZER) -> Corpus:
    """Sequences put into training 1 to 16 times, and others like them (TOAA, Bordt et al. 2025).

    `condition` as published: 'plain_16x', 'rare_8tok_4x', 'random_32tok_1x', 'model_based_8tok_16x'. `path` is a
    parquet file as published, or a folder with it; `tokenizer` the tokenizer of the ids, a hub id or a folder with
    tokenizer.json. Raises TextsError where the texts or the tokenizer cannot be had.
    """
    decode = _decoder(tokenizer)
    schema = Schema(
        "TOAA",
        text="decoded",
        label="membership",
        id="name",
        needed=("condition", "input_ids", "duplication", "example_idx"),
        meta=("condition", "copies", "round"),
        used=("suffix_type", "n_suffix_tokens"),
        derive=_toaa(decode),
        derived=("decoded", "copies", "name", "round"),
    )
    corpus = read_table(schema, "sbordt/TOAA-Membership-Inference::train", path)
    conditions = sorted({text.meta["condition"] for text in corpus.texts})
    require(
        condition in conditions,
        f"toaa: condition must be one of {', '.join(conditions)}; found {condition!r}.",
    )
    corpus = keep_texts(corpus, lambda text: text.meta["condition"] == condition, f"condition {condition}")
    corpus = keep_texts(
        corpus, lambda text: text.meta["round"] == "1", "the same tokens when read again as text"
    )
    refuse_one_sided(corpus, "membership 1", "membership 0")
    texts = tuple(
        replace(text, meta={name: text.meta[name] for name in ("condition", "copies")})
        for text in corpus.texts
    )
    return add_card(replace(corpus, texts=texts), "toaa", f"Train Once, Answer All, {condition}")


def _decoder(name: str) -> Callable[[list[int]], str | None]:
    """From token ids to text, without start and end tokens; None where the text is not cut into the same tokens."""
    from tokenizers import Tokenizer

    place = Path(name) / "tokenizer.json" if Path(name).is_dir() else Path(name)
    try:
        made = Tokenizer.from_file(str(place)) if place.is_file() else Tokenizer.from_pretrained(name)
    except Exception as error:  # noqa: BLE001 - the library raises a bare Exception for anything
        reason = " ".join(str(error).split())[:200]
        raise TextsError(
            f"toaa: the tokenizer {name!r} cannot be had ({reason}): give tokenizer='FOLDER', with a tokenizer.json."
        ) from None
    special = {number for number, token in made.get_added_tokens_decoder().items() if token.special}

    def decode(ids: list[int]) -> str | None:
        own = [one for one in ids if one not in special]
        text: str = made.decode(own, skip_special_tokens=False)
        return text if text and made.encode(text, add_special_tokens=False).ids == own else None

    return decode


_TRAPS_HUB = "imperial-cpg/copyright-traps"
TRAP_LENGTHS, TRAP_COPIES = (25, 50, 100), (10, 100, 1000)


@corpora.add("copyright_traps")
def copyright_traps(length: int = 100, copies: int = 1000, path: str | None = None) -> Corpus:
    """Sentences hidden in CroissantLLM's training 10 to 1,000 times, and others (Meeus et al. 2024).

    `length` is 25, 50 or 100 tokens. `path` is a folder of files whose names begin with seq_len_100_n_rep_1000 and the
    like, or one such file, of the columns `text`, `label` and `perplexity_bucket`, which goes to the results. Raises
    TextsError where the texts cannot be had, ExpressionError for another length or number of copies.
    """
    require(length in TRAP_LENGTHS, f"copyright_traps: length must be 25, 50 or 100, found {length}.")
    require(copies in TRAP_COPIES, f"copyright_traps: copies must be 10, 100 or 1000, found {copies}.")
    split = f"seq_len_{length}_n_rep_{copies}"
    schema = Schema(
        "the copyright traps",
        text="text",
        needed=("perplexity_bucket",),
        meta=("perplexity_bucket", "copies"),
        derive=lambda cells: {"copies": copies if str(cells["label"]) == "1" else 0},
        derived=("copies",),
    )
    source = f"{_TRAPS_HUB}::{split}" if path is None else _named(Path(path), split)
    corpus = read_published(source, schema)
    refuse_one_sided(corpus, "label 1", "label 0")
    return add_card(corpus, "copyright_traps", f"Copyright traps of {length} tokens, {copies} copies")


def _named(path: Path, beginning: str) -> Path:
    """The one file whose name begins so, as the hub's files do; a file that was named itself."""
    files = find_tables(path)
    named = [file for file in files if stem(file).partition("-")[0] == beginning]
    if path.is_dir() and len(named) != 1:
        raise TextsError(
            f"{shown(path)} holds {len(named)} files whose names begin with {beginning}: wanted one."
        )
    return named[0] if path.is_dir() else files[0]


_CHECKMIA = Schema("CheckMIABench", text="text", label="")
_CHECKMIA_FILES = PathLabels(members=("member",), nonmembers=("nonmember", "non-member", "non_member"))


@corpora.add("checkmia")
def checkmia(split: str, path: str | None = None) -> Corpus:
    """Texts a model read before a checkpoint against texts that it read after it (CheckMIABench 2026).

    `split` is the name of the data set, as 'pythia_dedupe_mia_0-90000_90010-90025': steps of members, then steps of
    non-members. `path` is a folder with files whose names begin with member and with nonmember, of the column `text`.
    Raises TextsError where the texts cannot be had.
    """
    if path is None:
        splits = ("member", "nonmember")
        corpus = read_sides(f"jeffreygwang/{split}:", splits, _CHECKMIA, "checkmia")
    else:
        corpus = read_by_path(Path(path), _CHECKMIA_FILES, _CHECKMIA)
    return add_card(corpus, "checkmia", f"CheckMIABench, {split}")


_PANORAMA_KINDS = (
    "Article", "Social Media", "Forum Post", "Online Review", "Blog/News Article Comment", "Online Ad",
)  # fmt: skip
_PANORAMA = Schema(
    "PANORAMA", text="text", label="", group="id", needed=("content-type",), meta=("content-type",)
)


@corpora.add("panorama")
def panorama(kind: str | None = None, path: str | None = None) -> Corpus:
    """Posts and articles of made-up people, for fine-tunes of one's own (Selvam et al. 2025).

    `kind` is the content-type, as 'Social Media', None for all. The group is the person: `pretrace plant` then
    divides people, never their texts. `path` is a file as published, or a folder with it, of the columns `id`,
    `content-type` and `text`. Raises TextsError where the texts cannot be had, ExpressionError for another kind.
    """
    known = ", ".join(map(repr, _PANORAMA_KINDS))
    require(
        kind is None or kind in _PANORAMA_KINDS,
        f"panorama: kind must be one of {known} or None; found {kind!r}.",
    )
    corpus = read_table(_PANORAMA, "srirxml/PANORAMA::train", path)
    if kind is not None:
        corpus = keep_texts(corpus, lambda text: text.meta["content-type"] == kind, f"content-type {kind}")
    return add_card(corpus, "panorama")
