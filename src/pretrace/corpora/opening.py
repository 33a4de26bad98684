"""From a word on the command line to a corpus."""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import replace
from pathlib import Path

from pretrace.corpora.columns import Columns
from pretrace.corpora.files import USUAL, found, read_stream, read_texts
from pretrace.corpora.hub import read_hub
from pretrace.corpora.registered import known_corpora
from pretrace.errors import TextsError
from pretrace.types import Corpus

_EXPRESSION = re.compile(r"\s*([A-Za-z_]\w*)\s*(\(.*\))?\s*", re.DOTALL)


def open_corpus(source: str, columns: Columns = USUAL) -> Corpus:
    """The corpus a source names.

    `-` is standard input; `hub:NAME[:CONFIG][:SPLIT]` a data set of the Hugging Face hub; a path that
    exists a file or folder; `stdlib` or `stdlib(min_chars=500)` a corpus that is built. A path that
    exists comes before a corpus of the same name, so that a file of one's own is never passed over;
    write `stdlib()` for the corpus and `./-` for a file called `-`. Raises TextsError where there is no
    such source, ExpressionError where a parameter of a built corpus is wrong.
    """
    if source == "-":
        return read_stream(sys.stdin.buffer, columns)
    if source.startswith("hub:"):
        return read_hub(source.removeprefix("hub:"), columns)
    if source.strip() and found(Path(source)):
        return read_texts(source, columns)
    return _built(source, columns)


def _built(source: str, columns: Columns) -> Corpus:
    written = _EXPRESSION.fullmatch(source)
    name = written[1] if written else ""
    registry = known_corpora()
    if name not in registry:
        near = difflib.get_close_matches(name, registry, n=3) if name else []
        cure = (
            f"did you mean the corpus {' or '.join(near)}?"
            if near
            else "check the path, or give - for standard input, hub:NAME for a data set of the hub, or the "
            f"name of a built corpus: {', '.join(registry)}."
        )
        raise TextsError(f"there is no file, folder or corpus {source[:200]!r}; {cure}")
    if columns.named:
        raise TextsError(
            f"{name} is a built corpus and has no columns to choose from, found {min(columns.named)!r}: leave it out."
        )
    return replace(registry.make(source), name=source.strip())
