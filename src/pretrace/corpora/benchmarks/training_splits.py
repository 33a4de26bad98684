"""Training splits against held-out ones: the Pile by subsets, and Dolma against Paloma."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pretrace.corpora.benchmarks.published import (
    Cells,
    PathLabels,
    Schema,
    add_card,
    keep_texts,
    read_by_path,
    read_sides,
)
from pretrace.errors import ExpressionError, TextsError
from pretrace.registry import corpora
from pretrace.types import Corpus

PILE_HUB = "pratyushmaini/llm_dataset_inference"
PILE_SUBSETS = {
    "ArXiv": "arxiv",
    "BookCorpus2": "bookcorpus2",
    "Books3": "books3",
    "DM Mathematics": "math",
    "Enron Emails": "enron",
    "EuroParl": "europarl",
    "FreeLaw": "freelaw",
    "Github": "github",
    "Gutenberg (PG-19)": "gutenberg",
    "HackerNews": "hackernews",
    "NIH ExPorter": "nih",
    "OpenSubtitles": "opensubtitles",
    "OpenWebText2": "openwebtext2",
    "PhilPapers": "philpapers",
    "Pile-CC": "cc",
    "PubMed Abstracts": "pubmed_abstracts",
    "PubMed Central": "pubmed_central",
    "StackExchange": "stackexchange",
    "USPTO Backgrounds": "uspto",
    "Ubuntu IRC": "ubuntu",
    "Wikipedia (en)": "wikipedia",
    "YoutubeSubtitles": "youtubesubtitles",
}
"""The Pile's subsets under their own names (`pile_set_name`), with the names that the hub's data set gives them."""

_PILE_FILES = PathLabels(
    members=("train", "member"), nonmembers=("val", "test", "nonmember", "non-member", "non_member")
)


def _subset(cells: Cells) -> Cells:
    """The Pile's own name of the subset, where the row brings it (`meta.pile_set_name`)."""
    meta = cells.get("meta")
    name = meta.get("pile_set_name") if isinstance(meta, Mapping) else cells.get("domain")
    return {"pile_set_name": name} if isinstance(name, str) and name else {}


_PILE = Schema(
    "the Pile", text="text", label="", meta=("pile_set_name",), used=("meta", "domain"), derive=_subset
)


@corpora.add("pile")
def pile(subset: str, path: str | None = None) -> Corpus:
    """One subset of the Pile, as 'HackerNews': its training split against its validation split.

    `subset` is the Pile's own name or the hub data set's ('Pile-CC' or 'cc'), whatever its case. `path` is a folder
    of files whose names (or folders) begin with train for members, with val or test for non-members, or one file
    with a column `label`; rows that name another subset in `meta.pile_set_name` are left out. Raises
    ExpressionError for an unknown subset, TextsError where the texts cannot be had.
    """
    name = subset_name(subset)
    if path is None:
        corpus = read_sides(f"{PILE_HUB}:{PILE_SUBSETS[name]}", ("train", "val"), _PILE, "pile")
    else:
        own = {_plain(name), _plain(PILE_SUBSETS[name])}
        inner = (
            sorted(Path(path).iterdir()) if Path(path).is_dir() else []
        )  # the subset's folder, as on the hub
        folder = next((one for one in inner if one.is_dir() and _plain(one.name) in own), Path(path))
        corpus = read_by_path(folder, _PILE_FILES, _PILE)
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


_DOLMA_SUBSETS = {"wikipedia": "Wikipedia", "common_crawl": "Common Crawl"}
_DOLMA_FILES = PathLabels(
    members=("dolma", "member", "train"),
    nonmembers=("paloma", "nonmember", "val", "test"),
    neither=("dolma-v1_5", "dolma_v1_5"),  # what Paloma calls its own part of Dolma, and a version of Dolma
)
_DOLMA = Schema("Dolma", text="text", label="", meta=("source", "subdomain"))


@corpora.add("dolma_paloma")
def dolma_paloma(subset: Literal["wikipedia", "common_crawl"], path: str | None = None) -> Corpus:
    """Texts of Dolma, on which OLMo was trained, against the held-out ones of Paloma.

    `path` is needed: a folder with files (or folders) of that source whose names begin with dolma for members and
    with paloma for non-members, JSON lines as published (`text`, `id`, `source`, …). dolma-v1_5 tells nothing, since
    Paloma too has a folder of that name. Where it has a folder of the subset's name, that one is read. Raises
    TextsError where the texts cannot be had.
    """
    if path is None:
        raise TextsError(
            "dolma_paloma needs files of yours: Dolma has 4.5 TB and a loading script, Paloma a licence to agree to. "
            f"Download {_DOLMA_SUBSETS[subset]} shards of allenai/dolma (v1.7) as dolma*.json.gz and the same part of "
            f"allenai/paloma (dolma-v1_5) as paloma*.jsonl.gz into a folder, then write "
            f"dolma_paloma({subset!r}, path='FOLDER')."
        )
    folder = Path(path) / subset if (Path(path) / subset).is_dir() else Path(path)
    corpus = read_by_path(folder, _DOLMA_FILES, _DOLMA)
    return add_card(corpus, "dolma_paloma", f"Dolma and Paloma, {_DOLMA_SUBSETS[subset]}")
