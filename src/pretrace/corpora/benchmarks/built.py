"""Benchmarks that a user makes with `pretrace build`: CCNewsPDD, reworded news, and PatentMIA, Chinese patents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from pretrace.corpora.benchmarks.published import (
    Schema,
    carded,
    kept,
    one_table,
    published,
    stem,
    tables,
)
from pretrace.corpora.opening import shown
from pretrace.errors import TextsError
from pretrace.registry import corpora, require
from pretrace.types import Card, Corpus

KINDS = {
    "trans": "back-translated over French",
    "mask": "15% of tokens replaced by BERT",
    "prompt": "rewritten by an instruction model",
    "original": "as they were before any transformation",
}
NEWS_CARD = Card(
    title="CCNewsPDD",
    what="English news. Members are texts of Pile-CC as they are; non-members are CC-News articles of 2017 that were "
    "reworded, so that no model can have read them word for word.",
    size="As published 1,200 texts, half of them members, 309 tokens on average; a set built by a user as many as it "
    "holds.",
    licence="Not stated here: see its home. A set built by a user is under the terms of its texts.",
    citation="Tang et al. 2025, Identifying Pre-training Data in LLMs: A Neuron Activation-Based Detection Framework "
    "(NA-PDD)",
    home="https://github.com/tanghongyi0406/CCNewsPDD",
    flaws=(
        "Only the non-members are reworded in the published recipe, so a score may find the rewording and not the "
        "membership; a set built with --transform-both does not have this, and kind='original' undoes it.",
        "The sides come from two collections, Pile-CC and CC-News, made by different tools (NA-PDD, section 4).",
        "That the articles of 2017 were in no training data is held to be highly probable, not known (NA-PDD, "
        "section 4).",
    ),
)
_NEWS = Schema("CCNewsPDD", text="text", id="id", group="group", meta=("transformed", "split"))
_ORIGINAL = replace(_NEWS, text="original")


@corpora.add("ccnewspdd")
def ccnewspdd(path: str, kind: Literal["trans", "mask", "prompt", "original"] = "trans") -> Corpus:
    """News of Pile-CC against news of 2017 that were reworded (Tang et al. 2025).

    `path` is the folder that `pretrace build ccnews` writes, with trans.jsonl, mask.jsonl or prompt.jsonl, or one
    of them: JSON lines of `id`, `text`, `label`, `group`, `original` and `transformed`. `kind` says which; original
    takes the texts as they were before. Raises TextsError where the texts cannot be had.
    """
    require(kind in KINDS, f"ccnewspdd: kind must be {', '.join(map(repr, KINDS))}, found {kind!r}.")
    schema = _ORIGINAL if kind == "original" else _NEWS
    corpus = published(_file(Path(path), kind), schema)
    return carded(corpus, replace(NEWS_CARD, title=f"CCNewsPDD, {KINDS[kind]}"), "ccnewspdd")


def _file(path: Path, kind: str) -> Path:
    """The file of a kind: for `original` the first there is, since each holds the originals."""
    wanted = [name for name in KINDS if name != "original"] if kind == "original" else [kind]
    if not path.is_dir():
        (file,) = tables(path)
        if kind != "original" and stem(file) in KINDS and stem(file) != kind:
            raise TextsError(
                f"{shown(path)} holds the kind {stem(file)!r}, asked for {kind!r}: give the folder."
            )
        return file
    files = {stem(file): file for file in tables(path)}
    for name in wanted:
        if name in files:
            return files[name]
    names = " or ".join(f"{name}.jsonl" for name in wanted)
    raise TextsError(
        f"{shown(path)} holds no {names}, found {', '.join(sorted(files))}; build it: pretrace build ccnews "
        f"--transform {wanted[0]}."
    )


_PATENT_CARD = Card(
    title="PatentMIA",
    what="Snippets of 512 words from Chinese patent pages, one at random from a page, words told apart by jieba. "
    "Members were published before 1 January 2023, non-members have a priority date after 1 March 2024.",
    size="As published 10,000 snippets, half of them members; a set built by a user as many as the pages give.",
    licence="Not stated here: see its home. A set built by a user is under the terms of its pages.",
    citation="Zhang et al. 2024, Pretraining Data Detection for Large Language Models: A Divergence-based Calibration "
    "Method (EMNLP 2024, arXiv:2409.14781)",
    home="https://github.com/zhang-wei-chao/DC-PDD",
    flaws=(
        "Members and non-members come from different years, hence from different techniques and terms; read the blind "
        "baseline beside every score.",
        "Patents repeat claims of earlier ones, and boilerplate: a new patent may hold old sentences that a model has "
        "read.",
        "Lower-casing means nothing in Chinese, so the score lowercase does not apply (DC-PDD, results).",
    ),
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
    corpus = published(one_table(Path(path), "patentmia"), _PATENTS)
    if length is not None:
        corpus = kept(corpus, lambda text: text.meta["length"] == str(length), f"length {length}")
    return carded(corpus, _PATENT_CARD, "patentmia")
