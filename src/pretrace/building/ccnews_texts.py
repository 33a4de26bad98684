"""Which texts become part of a CCNewsPDD, and how much of each: the same for members and non-members."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pretrace.building.reading import Days, Table, days
from pretrace.building.segmenting import sentences
from pretrace.building.writing import LeftOut, drawn_order
from pretrace.corpora import Columns, open_corpus
from pretrace.corpora.hub import open_table, table_rows
from pretrace.corpora.reading import counted
from pretrace.errors import TextsError
from pretrace.statistics.words import WORD
from pretrace.types import Corpus, Text


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text as it would stand in the benchmark, before it is transformed."""

    id: str
    group: str
    text: str


def read_side(source: str, columns: Columns, *, date_column: str | None = None, year: int = 2017) -> Corpus:
    """The texts of a source, as `open_corpus` reads them; labels are not looked at.

    With a `date_column` only those published in the year are taken: all days the date may mean lie in it. Raises
    TextsError where there is no such column, or no text of that year.
    """
    columns = Columns(text=columns.text, label="", id=columns.id, group=columns.group)
    if date_column is None:
        return open_corpus(source, columns)
    reading = Table(source, columns, [date_column], [date_column])
    if source.startswith("hub:"):
        name, table = open_table(source.removeprefix("hub:"))
        rows = iter(table_rows(table, reading))
    else:
        name, rows = source, reading.rows(Path(source))
    # without an id a text is called by its row, as where all rows are taken
    every = [
        row
        if row.fields.get("id") not in (None, "")
        else row._replace(fields={**row.fields, "id": str(number)})
        for number, row in enumerate(rows)
    ]
    kept = [row for row in every if _within(days(row.fields.get(date_column)), year)]
    if not kept:
        raise TextsError(
            f"{source} has no text whose {date_column!r} lies in {year}: name the column of the publication date, or "
            "another year."
        )
    corpus = reading.corpus(kept, name)
    note = f"{counted(len(every) - len(kept), 'text')} left out: not published in {year}, or without a date."
    return replace(corpus, notes=(*corpus.notes, note))


def candidates(
    corpus: Corpus, side: str, *, seed: int, lengths: tuple[int, int], known: frozenset[bytes], left: LeftOut
) -> Iterator[Candidate]:
    """The texts of one side that can be used, in an order drawn from the seed, one of each document.

    A text is cut to the whole sentences among its first words, `lengths` being the fewest and the most words. What is
    left out goes to `left`: texts with too few words, repeated ones, and those that are `known` on the other side,
    as a whole or as far as they are taken.
    """
    by_id = {text.id: text for text in corpus.texts}
    documents: set[str] = set()
    seen: set[bytes] = set()
    for name in drawn_order(by_id, seed, f"ccnews {side}"):
        text = by_id[name]
        if text.document in documents:
            left.add(f"{side}: another text of the same document was taken", name)
            continue
        shown = cut(text.text, lengths[1])
        keys = {content_key(text.text), content_key(shown)}
        if words(shown) < lengths[0]:
            left.add(f"{side}: fewer than {lengths[0]} words", name)
        elif keys & known:
            left.add(f"{side}: also among the members", name)
        elif keys & seen:
            left.add(f"{side}: the same text as another", name)
        else:
            seen |= keys
            documents.add(text.document)
            yield Candidate(f"{side}-{name}", f"{side}-{text.document}", shown)


def words(text: str) -> int:
    """Words of a text; a character counts as one in scripts that are written without spaces.

    >>> words("It rained, twice."), words("今日は雨")
    (3, 4)
    """
    return sum(1 for _ in WORD.finditer(text))


def cut(text: str, most: int) -> str:
    """The sentences from the start of a text that have at most so many words, without white space at the ends; the
    first words of the first sentence where that alone has more.

    >>> cut("One two three. Four five. Six.", 5), cut("One two three four.", 2)
    ('One two three. Four five.', 'One two')
    """
    taken, room = [], most
    for sentence in sentences(text):
        number = words(sentence)
        if number > room:
            break
        taken.append(sentence)
        room -= number
    if not "".join(taken).strip() and words(text):
        at = next((found.end() for k, found in enumerate(WORD.finditer(text), 1) if k == most), len(text))
        return text[:at].strip()
    return "".join(taken).strip()


def content_key(text: str) -> bytes:
    """What two texts have in common that differ in case and white space alone."""
    plain = " ".join(text.split()).casefold()
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).digest()[:16]


def split_of(rank: int, size: int) -> str:
    """The part of the benchmark that text number `rank` of a side of `size` is in, in the paper's proportions.

    Of 600 a side the first 100 are the reference detectors are fitted on, the next 100 validation, and 400 the test
    (appendix C.1). The order is random.

    >>> [split_of(rank, 6) for rank in range(6)]
    ['reference', 'validation', 'test', 'test', 'test', 'test']
    """
    if 6 * rank < size:
        return "reference"
    return "validation" if 6 * rank < 2 * size else "test"


def _within(found: Days | None, year: int) -> bool:
    return found is not None and found.first.year == found.last.year == year


def contents(texts: Sequence[Text], most: int) -> frozenset[bytes]:
    """The keys of all texts, whole and cut to so many words, to find them again on the other side: articles may
    differ only behind what is taken of them."""
    return frozenset(content_key(one) for text in texts for one in (text.text, cut(text.text, most)))
