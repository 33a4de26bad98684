"""What is to be seen in an upload before any test: columns, number, length and languages of texts, dates, and more."""

from __future__ import annotations

import statistics
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pretrace.corpora import Columns, open_corpus
from pretrace.corpora.formats import rows_of
from pretrace.corpora.reading import Reading
from pretrace.errors import TextsError
from pretrace.types import Corpus, Situation
from pretrace.verdicts.advise import Names
from pretrace.verdicts.looking import look
from pretrace.web.languages import languages
from pretrace.web.uploads import Upload
from pretrace.web.workspace import Workspace, record_in, save

LETTERS_READ = 2_000_000
"""Characters of all texts together that are looked at for their scripts."""
_SCRIPTS_SHOWN = 4
_TABLES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".gz")


@dataclass(frozen=True, slots=True)
class Facts:
    """What was seen in an upload. Lengths are in characters; `scripts` are shares of the letters by script,
    `languages` those of the texts by code, among `languages_of` texts that were looked at.
    `problem` says why nothing else could be seen, `columns` then what there is to choose from."""

    text_column: str = ""
    texts: int = 0
    documents: int = 0
    members: int = 0
    nonmembers: int = 0
    columns: tuple[str, ...] = ()
    shortest: int = 0
    median: int = 0
    longest: int = 0
    empty: int = 0
    duplicates: int = 0
    scripts: Mapping[str, float] = field(default_factory=dict)
    languages: Mapping[str, float] = field(default_factory=dict)
    languages_of: int = 0
    said: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    situation: Situation = field(default_factory=Situation)
    names: Names = field(default_factory=Names)
    problem: str = ""
    other_labels: bool = False
    """Whether a column called label says something else than membership, and must be left out."""

    @property
    def column_options(self) -> tuple[str, ...]:
        """The options by which a command reads the same columns."""
        text = (f"--text-column={self.text_column}",) if self.text_column else ()
        return (*text, *(("--label-column=",) if self.other_labels else ()))


def facts_of(workspace: Workspace, upload: Upload) -> Facts:
    """What was seen in an upload, from its file; looked at now where that was not done."""
    place = workspace.room("texts") / upload.id / "facts.json"
    return record_in(Facts, place) or seen(workspace, upload)


def seen(workspace: Workspace, upload: Upload, text_column: str = "") -> Facts:
    """Look at an upload and keep what was seen; a file that cannot be read gives a `problem`."""
    path = workspace.within(upload.path)
    columns: tuple[str, ...] = ()
    chosen = Columns(text=text_column or None)
    try:
        columns = _columns(str(path))
        other = False
        try:
            corpus = open_corpus(str(path), chosen)
        except TextsError:
            corpus, other = open_corpus(str(path), Columns(text=text_column or None, label="")), True
        found = replace(_measured(corpus, str(path), chosen, columns), other_labels=other)
    except TextsError as error:
        said = str(error).replace(str(path), upload.name)
        found = Facts(text_column=text_column, columns=columns, problem=said)
    save(workspace.room("texts") / upload.id / "facts.json", found)
    return found


def _measured(corpus: Corpus, path: str, chosen: Columns, columns: tuple[str, ...]) -> Facts:
    texts = [text.text for text in corpus.texts]
    lengths = [len(text) for text in texts]
    told, (spoken, among) = look(path, chosen), languages(texts)
    return Facts(
        text_column=chosen.text or "",
        texts=len(texts),
        documents=told.situation.documents,
        members=sum(text.member is True for text in corpus.texts),
        nonmembers=sum(text.member is False for text in corpus.texts),
        columns=columns,
        shortest=min(lengths),
        median=round(statistics.median(lengths)),
        longest=max(lengths),
        empty=sum(not text.strip() for text in texts),
        duplicates=len(texts) - len(set(texts)),
        scripts=scripts(texts),
        languages=spoken,
        languages_of=among,
        said=told.said[1:],
        notes=corpus.notes,
        situation=told.situation,
        names=told.names,
    )


def scripts(texts: Sequence[str]) -> dict[str, float]:
    """The share of each script among the letters of the first texts, the largest first.

    >>> scripts(["abc", "а1"])
    {'Latin': 0.75, 'Cyrillic': 0.25}
    """
    counted: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    read = 0
    for text in texts:
        characters.update(text)
        read += len(text)
        if read > LETTERS_READ:
            break
    for character, number in characters.items():
        if character.isalpha():
            counted[unicodedata.name(character, "other").split()[0].capitalize()] += number
    total = sum(counted.values())
    return {_SCRIPTS.get(name, name): n / total for name, n in counted.most_common(_SCRIPTS_SHOWN)}


_SCRIPTS = {"Cjk": "Chinese characters", "Hiragana": "Japanese (hiragana)", "Katakana": "Japanese (katakana)"}


class _Names(Reading):
    """A reading that takes note of the columns of a table."""

    def pick(self, found: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(found))


def _columns(path: str) -> tuple[str, ...]:
    """The columns of a table's first row; none of a folder or a .txt file."""
    place = Path(path)
    if place.is_dir() or not place.name.lower().endswith(_TABLES) or ".txt" in place.suffixes:
        return ()
    first = next(iter(rows_of(place, _Names(Columns(), place.name))), None)
    return tuple(first.fields) if first else ()
