"""Benchmarks that a user makes with `pretrace build`: CCNewsPDD, reworded news, and PatentMIA, Chinese patents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from pretrace.corpora.benchmarks.published import (
    Schema,
    add_card,
    find_tables,
    keep_texts,
    read_published,
    read_table,
    stem,
)
from pretrace.corpora.opening import shown
from pretrace.errors import TextsError
from pretrace.registry import corpora, require
from pretrace.types import Corpus

KINDS = {
    "trans": "back-translated over French",
    "mask": "15% of tokens replaced by BERT",
    "prompt": "rewritten by an instruction model",
    "original": "as they were before any transformation",
}
_NEWS = Schema("CCNewsPDD", text="text", id="id", group="group", meta=("transformed", "split"))
_ORIGINAL = replace(_NEWS, text="original")


@corpora.add("ccnewspdd")
def ccnewspdd(path: str, kind: Literal["trans", "mask", "prompt", "original"] = "trans") -> Corpus:
    """News of Pile-CC against news of 2017 that were reworded (Tang et al. 2025).

    `path` is the folder that `pretrace build ccnews` writes, with trans.jsonl, mask.jsonl or prompt.jsonl, or one
    of them: JSON lines of `id`, `text`, `label`, `group`, `original` and `transformed`. `kind` says which; original
    takes the texts as they were before. Raises TextsError where the texts cannot be had.
    """
    corpus = read_published(_file(Path(path), kind), _ORIGINAL if kind == "original" else _NEWS)
    return add_card(corpus, "ccnewspdd", f"CCNewsPDD, {KINDS[kind]}")


def _file(path: Path, kind: str) -> Path:
    """The file of a kind: for `original` the first there is, since each holds the originals."""
    wanted = [name for name in KINDS if name != "original"] if kind == "original" else [kind]
    if not path.is_dir():
        (file,) = find_tables(path)
        if kind != "original" and stem(file) in KINDS and stem(file) != kind:
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


_PATENTS = Schema(
    "PatentMIA", text="text", id="id", group="group", needed=("length",), meta=("date", "length")
)


@corpora.add("patentmia")
def patentmia(path: str, length: int | None = None) -> Corpus:
    """Snippets of Chinese patents, before 2023 against after March 2024 (Zhang et al. 2024).

    `path` is a file as `pretrace build patents` writes it: JSON lines of `id`, `text`, `label`, `group` (the patent),
    `date` and `length` (words). `length` takes the snippets of that many words, None all of them. Raises
    TextsError where the texts cannot be had, or none has that length.
    """
    require(length is None or length > 0, f"patentmia: length must be a number of words, found {length!r}.")
    corpus = read_table(_PATENTS, "", path, "patentmia")
    if length is not None:
        corpus = keep_texts(corpus, lambda text: text.meta["length"] == str(length), f"length {length}")
    return add_card(corpus, "patentmia")
