"""Texts from files, folders, standard input, the hub, and builders: one door, `open_corpus`.

A new corpus is one new file here: a function that returns a `Corpus`, under `@corpora.add("name")`.
"""

from pretrace.corpora.columns import Columns
from pretrace.corpora.files import read_texts, stream_texts
from pretrace.corpora.lengths import windows
from pretrace.corpora.opening import open_corpus
from pretrace.corpora.registered import corpora, known_corpora

__all__ = ["Columns", "corpora", "known_corpora", "open_corpus", "read_texts", "stream_texts", "windows"]
