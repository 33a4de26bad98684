"""What a file of texts offers to the tests: its documents, and random strings in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pretrace.backends import count_parameters
from pretrace.backends.serving.address import served_kind, text_kind
from pretrace.corpora import Columns, open_corpus
from pretrace.corpora.columns import FURTHER
from pretrace.corpora.opening import repeated_column
from pretrace.errors import TextsError
from pretrace.results.rounding import plural
from pretrace.statistics.documents import FEW_DOCUMENTS
from pretrace.types import Corpus, Situation
from pretrace.verdicts import register
from pretrace.verdicts.advise import LEVEL, Names
from pretrace.verdicts.recite import windowed

_RANDOM = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{32,128}\b", re.IGNORECASE)
"""UUIDs, and hexadecimal hashes from MD5 to SHA-512."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen in a file: the part of the situation that it settles, the columns for the commands, and a sentence
    on each thing."""

    situation: Situation
    names: Names
    said: tuple[str, ...]


def look(source: str, columns: Columns, corpus: Corpus | None = None) -> Seen:
    """What stands in `source`, as far as that can be seen; errors as for `open_corpus`. `corpus` is its texts, where
    they were read already."""
    # What a label says is no matter here, and a column of that name may say something else than membership.
    given, columns = columns, replace(columns, label="")
    options = () if corpus is not None else tuple(_options_of(source, given))
    corpus = open_corpus(source, columns) if corpus is None else corpus
    documents = len({text.document for text in corpus.texts})
    canaries = len({one.lower() for text in corpus.texts for one in _RANDOM.findall(text.text)})
    said = [f"{plural(len(corpus), 'text')} of {plural(documents, 'document')}."]
    if canaries:
        said.append(f"{plural(canaries, 'random string')} (UUIDs, hashes) in the texts.")
    if not any(text.group for text in corpus.texts) and (
        name := repeated_column(Path(source), FEW_DOCUMENTS)
    ):
        said.append(
            f"The values of the column {name!r} repeat: if they name what texts belong to, give --group-column {name}."
        )
    has = Situation(documents=documents, canaries=canaries, windowed=windowed(corpus))
    return Seen(has, Names(columns=options), (*said, *_tested(corpus)))


def situate(has: Situation, model: str, *, unseen: int = 0, checkpoint: bool = False) -> Situation:
    """What was seen, with so many control documents, and with what the model offers and its size, as far as its name
    and the headers of its files tell: what `ask`, the page and reports plan with."""
    access: Literal["weights", "logprobs", "text"] = "weights"
    if served_kind(model):
        access = "logprobs"
    elif text_kind(model):
        access = "text"
    return replace(
        has, unseen=unseen, checkpoint=checkpoint, access=access, parameters=float(count_parameters(model))
    )


def _options_of(source: str, columns: Columns) -> Iterator[str]:
    try:
        open_corpus(source, columns)
    except TextsError:  # the column of labels says something else
        columns = replace(columns, label="")
    for name in ("text", "label", "id", "group"):
        if (value := getattr(columns, name)) is not None:
            yield from (f"--{name}-column", value)
    for name in FURTHER:
        if (value := getattr(columns, name)) and name != "chat_of":
            yield from (f"--{name}",) if value is True else (f"--{name}", value)


def _tested(corpus: Corpus) -> Iterator[str]:
    known = register.known(text.text for text in corpus.texts)
    if known:
        made = "1 test of these texts was" if len(known) == 1 else f"{len(known):,} tests of these texts were"
        number = len(known) + 1
        yield (
            f"On this machine {made} made. Another one would be the {register.ordinal(number)}: for {number:,} "
            f"tests the level is {LEVEL / number:.3g} each, and for one {LEVEL:g}."
        )
        yield from known
