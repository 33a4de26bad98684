"""The benchmarks by name, but WikiMIA: a function each, whose columns, sides and address stand in `schemas.toml`.

`path` is a file, or a folder with it, in the form in which it was published; without one the texts come from the hub.
TextsError where the texts cannot be had, ExpressionError for a part that there is not.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pretrace.corpora.benchmarks.published import (
    Cells,
    add_card,
    find_tables,
    keep_texts,
    keep_where,
    read_benchmark,
    read_both_sides,
    read_published,
    read_table,
    refuse_one_sided,
    schema_of,
    stem,
)
from pretrace.corpora.columns import kind_of
from pretrace.corpora.opening import shown
from pretrace.errors import ExpressionError, TextsError
from pretrace.registry import corpora, require
from pretrace.results.wording import say
from pretrace.types import Corpus

# Books and research papers, members and non-members told apart by date.


@corpora.add("bookmia")
def bookmia(path: str | None = None) -> Corpus:
    """Excerpts of 512 words from old books against books of 2023 (Shi et al. 2024). The group is the book."""
    return read_benchmark("bookmia", path)


@corpora.add("arxiv_mia")
def arxiv_mia(field: Literal["cs", "math"] | None = None, path: str | None = None) -> Corpus:
    """Abstracts of computer science and mathematics, older against newer (Liu et al. 2024)."""
    return read_benchmark("arxiv_mia", path, column="field", value=field)


def _passage(cells: Cells) -> Cells:
    answer = cells["Answer"]
    letter = answer.strip().upper() if isinstance(answer, str) else ""
    if letter not in ("A", "B", "C", "D"):
        found = repr(answer)[:40] if isinstance(answer, str) else kind_of(answer)
        raise ValueError(f"Answer should name the true passage, A, B, C or D, and holds {found}")
    return {"Example_ that Answer names": cells[f"Example_{letter}"]}


@corpora.add("arxivtection")
def arxivtection(path: str | None = None) -> Corpus:
    """Passages of research papers before 2022 against papers of 2023 (Duarte et al. 2024).

    The passage is the `Example_` column that `Answer` names, the group the paper (`ID`).
    """
    return read_benchmark("arxivtection", path, _passage)


@corpora.add("booktection")
def booktection(length: Literal["small", "medium", "large"] | None = None, path: str | None = None) -> Corpus:
    """Passages of books before 2022 against books of 2023, in three sizes (Duarte et al. 2024).

    `length` is about 64, 128 and 256 tokens, None for all together, as FSD does. The passage is the `Example_` column
    that `Answer` names, the group the book (`ID`).
    """
    return read_benchmark("booktection", path, _passage, column="Length", value=length)


# Benchmarks that a user makes with `pretrace build`.


@corpora.add("ccnewspdd")
def ccnewspdd(path: str, kind: Literal["trans", "mask", "prompt", "original"] = "trans") -> Corpus:
    """News of Pile-CC against news of 2017 that were reworded (Tang et al. 2025).

    `path` is the folder that `pretrace build ccnews` writes, or one of its files; `kind` original takes the texts as
    they were before.
    """
    schema = schema_of("ccnewspdd")
    file = _file_of_kind(Path(path), kind, schema.kinds)
    corpus = read_published(file, replace(schema, text="original") if kind == "original" else schema)
    return add_card(corpus, "ccnewspdd", f"CCNewsPDD, {schema.kinds[kind]}")


def _file_of_kind(path: Path, kind: str, kinds: Mapping[str, str]) -> Path:
    """The file of a kind: for `original` the first there is, since each holds the originals."""
    wanted = [name for name in kinds if name != "original"] if kind == "original" else [kind]
    if not path.is_dir():
        (file,) = find_tables(path)
        if kind != "original" and stem(file) in kinds and stem(file) != kind:
            raise TextsError(
                f"{shown(path)} holds the kind {stem(file)!r}, asked for {kind!r}: give the folder."
            )
        return file
    files = {stem(file): file for file in find_tables(path)}
    for name in wanted:
        if name in files:
            return files[name]
    names = " or ".join(f"{name}.jsonl" for name in wanted)
    raise TextsError(
        f"{shown(path)} holds no {names}, found {', '.join(sorted(files))}; build it: pretrace build ccnews "
        f"--transform {wanted[0]}."
    )


@corpora.add("patentmia")
def patentmia(path: str, length: int | None = None) -> Corpus:
    """Snippets of Chinese patents, before 2023 against after March 2024 (Zhang et al. 2024).

    `path` is a file as `pretrace build patents` writes it; `length` takes the snippets of that many words.
    """
    require(length is None or length > 0, f"patentmia: length must be a number of words, found {length!r}.")
    return read_benchmark("patentmia", path, column="length", value=length)


# Training splits against held-out ones.


PILE_SUBSETS: dict[str, str] = schema_of("pile").kinds
"""The Pile's subsets under their own names (`pile_set_name`), with the names that the hub's data set gives them."""


def _subset(cells: Cells) -> Cells:
    """The Pile's own name of the subset, where the row brings it (`meta.pile_set_name`)."""
    meta = cells.get("meta")
    name = meta.get("pile_set_name") if isinstance(meta, Mapping) else cells.get("domain")
    return {"pile_set_name": name} if isinstance(name, str) and name else {}


@corpora.add("pile")
def pile(subset: str, path: str | None = None) -> Corpus:
    """One subset of the Pile, as 'HackerNews': its training split against its validation split.

    `subset` is the Pile's own name or the hub data set's ('Pile-CC' or 'cc'), whatever its case. `path` is a folder
    of files whose names (or folders) begin with train for members, with val or test for non-members, or one file
    with a column `label`; rows that name another subset in `meta.pile_set_name` are left out.
    """
    name, schema = subset_name(subset), schema_of("pile", _subset)
    own = {_plain(name), _plain(PILE_SUBSETS[name])}
    corpus = read_both_sides(schema, path, f":{PILE_SUBSETS[name]}", lambda inner: _plain(inner) in own)
    if path is not None:
        corpus = keep_texts(
            corpus, lambda text: _plain(text.meta.get("pile_set_name", name)) in own, name, sides=True
        )
    return add_card(corpus, "pile", f"The Pile, {name}")


def subset_name(given: str) -> str:
    """The Pile's own name of a subset, given in any case, with or without blanks and signs.

    >>> subset_name("hacker news"), subset_name("cc"), subset_name("Ubuntu")
    ('HackerNews', 'Pile-CC', 'Ubuntu IRC')
    """
    known = {_plain(key): name for name, short in PILE_SUBSETS.items() for key in (name, short)}
    if _plain(given) in known:
        return known[_plain(given)]
    near = difflib.get_close_matches(_plain(given), known, n=1)
    hint = f"did you mean {known[near[0]]!r}?" if near else f"there are {', '.join(PILE_SUBSETS)}."
    raise ExpressionError(f"pile: the Pile has no subset {given!r}; {hint}")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


@corpora.add("dolma_paloma")
def dolma_paloma(subset: Literal["wikipedia", "common_crawl"], path: str | None = None) -> Corpus:
    """Texts of Dolma, on which OLMo was trained, against the held-out ones of Paloma.

    `path` is needed: a folder with files (or folders) of that source whose names begin with dolma for members and
    with paloma for non-members. dolma-v1_5 tells nothing, since Paloma too has a folder of that name. Where it has a
    folder of the subset's name, that one is read.
    """
    schema = schema_of("dolma_paloma")
    name = schema.kinds[subset]
    if path is None:
        raise TextsError(say("texts.dolma", name=name, subset=subset))
    corpus = read_both_sides(schema, path, inner=lambda inner: inner == subset)
    return add_card(corpus, "dolma_paloma", f"Dolma and Paloma, {name}")


# Texts of which others know from the training itself whether a model read them, and how often. Hubble, Train Once
# Answer All and the copyright traps were put into training at random, a known number of times; what CheckMIABench takes
# stands before or after a checkpoint; PANORAMA is made up, for fine-tunes of one's own.


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


@corpora.add("hubble")
def hubble(kind: str, copies: int | None = None, path: str | None = None) -> Corpus:
    """Texts put into the Hubble models 1 to 256 times, against texts put into none (Wei et al. 2025).

    `kind` is the name of the data set, as 'passages_wikipedia'. `copies` keeps the members of so many copies (1, 4, 16,
    64 or 256), and all non-members. `path` is a folder of files whose names begin with train and test, or one file. The
    column `duplicates` goes to the results, and `evaluate` measures by copies.
    """
    schema = schema_of("hubble", _hubble)
    known = ", ".join(schema.kinds)
    require(kind in schema.kinds, f"hubble: kind must be one of {known}; found {kind!r}.")
    corpus = read_both_sides(schema, path, f"/{kind}:", lambda inner: inner == kind)
    if odd := [text.id for text in corpus.texts if text.member is not (text.copies != 0)]:
        raise TextsError(say("texts.duplicates", source=corpus.source, text=odd[0]))
    refuse_one_sided(corpus, "duplicates above 0", "duplicates of 0")
    if copies is not None:
        have = sorted({text.copies or 0 for text in corpus.texts if text.member})
        require(copies in have, f"hubble: copies must be one of {', '.join(map(str, have))}, found {copies}.")
        what = f"{copies} copies, or none"
        corpus = keep_texts(corpus, lambda text: not text.member or text.copies == copies, what)
    return add_card(corpus, "hubble", f"Hubble, {kind}")


@corpora.add("toaa")
def toaa(condition: str, path: str | None = None, tokenizer: str = "allenai/OLMo-2-0425-1B") -> Corpus:
    """Sequences put into training 1 to 16 times, and others like them (TOAA, Bordt et al. 2025).

    `condition` as published: 'plain_16x', 'rare_8tok_4x', 'random_32tok_1x', 'model_based_8tok_16x'. `tokenizer` is
    that of the ids, a hub id or a folder with tokenizer.json.
    """
    decode = _decoder(tokenizer)

    def derive(cells: Cells) -> Cells:
        ids, member = cells["input_ids"], str(cells["membership"])
        if not isinstance(ids, list) or not all(isinstance(one, int) for one in ids) or not ids:
            raise ValueError(f"input_ids should hold a list of whole numbers and holds {kind_of(ids)}")
        if member not in ("0", "1"):
            raise ValueError(f"membership should hold 1 or 0 and holds {member[:40]!r}")
        copies = _whole(cells["duplication"], "duplication", 1) if member == "1" else 0
        found = decode(ids)
        name = f"{cells['condition']}/{member}/{cells['example_idx']}"
        return {"decoded": found or "", "copies": copies, "name": name, "round": str(int(found is not None))}

    corpus = read_table(schema_of("toaa", derive), path)
    conditions = sorted({text.meta["condition"] for text in corpus.texts})
    require(
        condition in conditions,
        f"toaa: condition must be one of {', '.join(conditions)}; found {condition!r}.",
    )
    corpus = keep_where(corpus, "condition", condition)
    corpus = keep_where(corpus, "round", 1, "the same tokens when read again as text")
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


@corpora.add("copyright_traps")
def copyright_traps(length: int = 100, copies: int = 1000, path: str | None = None) -> Corpus:
    """Sentences hidden in CroissantLLM's training 10 to 1,000 times, and others (Meeus et al. 2024).

    `length` is 25, 50 or 100 tokens. `path` is a folder of files whose names begin with seq_len_100_n_rep_1000 and the
    like, or one such file; the `perplexity_bucket` goes to the results.
    """
    require(length in (25, 50, 100), f"copyright_traps: length must be 25, 50 or 100, found {length}.")
    require(copies in (10, 100, 1000), f"copyright_traps: copies must be 10, 100 or 1000, found {copies}.")
    split = f"seq_len_{length}_n_rep_{copies}"
    schema = schema_of(
        "copyright_traps", lambda cells: {"copies": copies if str(cells["label"]) == "1" else 0}
    )
    source: str | Path = f"{schema.hub}::{split}"
    if path is not None:
        files = find_tables(Path(path))
        named = [file for file in files if stem(file).partition("-")[0] == split]
        if Path(path).is_dir() and len(named) != 1:
            raise TextsError(
                f"{shown(Path(path))} holds {len(named)} files whose names begin with {split}: wanted one."
            )
        source = named[0] if Path(path).is_dir() else files[0]
    corpus = read_published(source, schema)
    refuse_one_sided(corpus, "label 1", "label 0")
    return add_card(corpus, "copyright_traps", f"Copyright traps of {length} tokens, {copies} copies")


@corpora.add("checkmia")
def checkmia(split: str, path: str | None = None) -> Corpus:
    """Texts a model read before a checkpoint against texts that it read after it (CheckMIABench 2026).

    `split` is the name of the data set, as 'pythia_dedupe_mia_0-90000_90010-90025': steps of members, then steps of
    non-members. `path` is a folder with files whose names begin with member and with nonmember.
    """
    corpus = read_both_sides(schema_of("checkmia"), path, f"/{split}:")
    return add_card(corpus, "checkmia", f"CheckMIABench, {split}")


@corpora.add("panorama")
def panorama(kind: str | None = None, path: str | None = None) -> Corpus:
    """Posts and articles of made-up people, for fine-tunes of one's own (Selvam et al. 2025).

    `kind` is the content-type, as 'Social Media', None for all. The group is the person: `pretrace plant` then
    divides people, never their texts.
    """
    kinds = schema_of("panorama").kinds
    known = ", ".join(map(repr, kinds))
    require(kind is None or kind in kinds, f"panorama: kind must be one of {known} or None; found {kind!r}.")
    return read_benchmark("panorama", path, column="content-type", value=kind)
