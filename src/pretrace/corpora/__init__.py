"""Texts from files, folders, standard input, the hub, lists and builders: one door, `open_corpus`.

A new corpus is one new file here: a function that returns a `Corpus`, under `@corpora.add("name")`.
"""

from pretrace.corpora.opening import Texts, TextStream, corpus_of, known_corpora, open_corpus, open_stream
from pretrace.corpora.reading import Columns
from pretrace.registry import corpora

__all__ = [
    "Columns",
    "TextStream",
    "Texts",
    "corpora",
    "corpus_of",
    "known_corpora",
    "open_corpus",
    "open_stream",
]
