"""What a table is run with: corpora from files at hand or by their hub names, thinned to a limit, and divided."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.experiments import Spoken, thinned
from benchmarks.texts import DATA
from pretrace import Frequencies, count, known_corpora, open_corpus
from pretrace.backends.huggingface import HuggingFace
from pretrace.errors import TextsError
from pretrace.scoring.holdout import CorpusParts, set_aside
from pretrace.types import Corpus

AT_HAND = {"arxivtection": DATA / "arxivtection.csv.gz", "arxiv_mia": DATA / "arxiv_mia.jsonl.gz"}
"""Benchmarks whose published files lie beside the checkout."""
SPLITS = ("documents", "texts")
"""How texts are set aside: by whole documents, or text by text as the papers do."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the caller chose. `data` and `counts` are paths by the names that tables use; `limit` is the number of
    texts a corpus is thinned to. `on` is judged in place of every corpus that a table judges, and `instead` are other
    sources by the names of corpora, wherever a table has them: neither is what the paper measured."""

    model: str = "smollm2"
    dtype: str = "bfloat16"
    data: Mapping[str, Path] = field(default_factory=dict)
    counts: Mapping[str, Path] = field(default_factory=dict)
    limit: int | None = None
    on: str | None = None
    instead: Mapping[str, str] = field(default_factory=dict)
    split: str = "documents"
    seed: int = 0
    reference_model: str | None = None
    neighbors: str | None = None
    generator: str = "smollm2"
    shuffles: int = 20


def opened(expression: str, given: Given) -> Corpus:
    """The corpus of a table, its texts labelled; thinned where there is a limit. TextsError as for any corpus."""
    source = given.instead.get(name_of(expression), expression)
    if source == expression and _needs_path(located(source, {**AT_HAND, **given.data})):
        raise TextsError(
            f"{name_of(source)} is not on the hub: build it (pretrace build) and name it, "
            f"--data {name_of(source)}=PATH."
        )
    corpus = open_corpus(located(source, {**AT_HAND, **given.data}) if source == expression else source)
    corpus = replace(corpus, name=expression if source == expression else f"{source} for {expression}")
    if given.limit is not None and given.limit < len(corpus):
        return thinned(corpus, given.limit, seed=given.seed)
    return corpus


def _needs_path(expression: str) -> bool:
    """Whether a corpus is read from the user's own files alone, and none are named."""
    known, name = known_corpora(), name_of(expression)
    if name not in known or "path=" in expression:
        return False
    path = inspect.signature(known.factory(name)).parameters.get("path")
    return path is not None and path.default is path.empty


def name_of(expression: str) -> str:
    """The name of the corpus that an expression makes.

    >>> name_of("wikimia(length=64)")
    'wikimia'
    """
    return expression.partition("(")[0].strip()


def located(expression: str, data: Mapping[str, Path]) -> str:
    """The expression with the path of the files at hand, where there are any and it names none.

    >>> located("wikimia(length=64)", {"wikimia": Path("w.jsonl")})
    "wikimia(length=64, path='w.jsonl')"
    """
    node = ast.parse(expression, mode="eval").body
    call = node if isinstance(node, ast.Call) else ast.Call(func=node, args=[], keywords=[])
    name = name_of(expression)
    if name not in data or any(keyword.arg == "path" for keyword in call.keywords) or not data[name].exists():
        return expression
    call.keywords.append(ast.keyword(arg="path", value=ast.Constant(str(data[name]))))
    return ast.unparse(ast.fix_missing_locations(call))


def divided(corpus: Corpus, given: Given, *, tuning: float = 0.0, reference: float = 0.0) -> CorpusParts:
    """The corpus divided into texts to tune on, reference texts and the others, by the split that was chosen."""
    if given.split == "documents":
        return set_aside(corpus, tuning=tuning, reference=reference, seed=given.seed)
    loose = replace(corpus, texts=tuple(replace(text, group="") for text in corpus.texts))
    parts = set_aside(loose, tuning=tuning, reference=reference, seed=given.seed)
    whole = {text.id: text for text in corpus.texts}

    def again(part: Corpus) -> Corpus:
        return replace(part, texts=tuple(whole[text.id] for text in part.texts))

    some = (again(part) if part is not None else None for part in (parts.tuning, parts.reference))
    return CorpusParts(*some, again(parts.test))


def counted(name: str, share: float, model: HuggingFace, given: Given) -> Frequencies:
    """Token counts of the first part of a reference corpus, by characters; TextsError where it is not at hand."""
    if name not in given.counts:
        raise TextsError(f"no reference corpus stands for {name!r} here: give one with --counts {name}=PATH.")
    path = given.counts[name]
    files = sorted(path.glob("*.jsonl.gz")) if path.is_dir() else [path]
    texts = [text.text for file in files for text in open_corpus(str(file)).texts]
    ahead = share * sum(map(len, texts))
    kept = []
    for text in texts:
        if ahead <= 0:
            break
        kept.append(text)
        ahead -= len(text)
    source = f"{path.name}, the first {share:.0%}"
    return count(kept, model.tokens.rust, tokenizer_hash=model.tokenizer_hash, source=source)


def spoken() -> Spoken:
    """Progress as lines of text."""
    return Spoken()
