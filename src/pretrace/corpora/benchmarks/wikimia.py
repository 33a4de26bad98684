"""WikiMIA: beginnings of Wikipedia articles on events, in four lengths, and its two variants without dates."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pretrace.corpora.benchmarks import find_tables, join_parts, read_published, schema_of
from pretrace.corpora.formats import stem_of
from pretrace.corpora.reading import listed, shown
from pretrace.errors import TextsError
from pretrace.registry import corpora, require
from pretrace.types import Corpus

_ADDED_YEAR = 2023  # the year that FSD's variant `replacement` writes

_LONGEST_LEAD = 60  # characters before a time stamp among which a preposition is looked for

_PARTS: dict[str, str] = {}
for _name, _lines in tomllib.loads(
    Path(__file__).with_name("timestamps.toml").read_text(encoding="utf-8")
).items():
    _PARTS[_name] = re.sub(r"<([a-z_]+)>", lambda one: _PARTS[one[1]], _lines.replace("\n", ""))
_FORMS = "iso numeric day_month month_day month_year decade range circa prefixed clock bare"
_STAMP = re.compile("|".join(f"(?:{_PARTS[form]})" for form in _FORMS.split()))
_YEAR = re.compile(rf"(?<!\d){_PARTS['year']}(?!\d)")
_SHORT_END, _WHOLE_RANGE, _TENS, _THE = (
    re.compile(_PARTS[one]) for one in ("short_end", "range", "tens", "the")
)
_LEAD, _LINKING = (re.compile(_PARTS[one], re.IGNORECASE) for one in ("lead", "linking"))


def without_timestamps(text: str) -> str:
    """The text with its time stamps taken out, together with a preposition that only leads up to one.

    What is left keeps its characters; spaces, commas and brackets that a gap would leave behind go with it.

    >>> without_timestamps("On 4 July 2015, the 2015 FIFA World Cup (May 2015) drew 2000 people at 12:30.")
    'the FIFA World Cup drew 2000 people.'
    """
    spans: list[tuple[int, int]] = []
    for stamp in _STAMP.finditer(text):  # two with nothing but a link between them ("2014 to 2016") are one
        linked = spans and _LINKING.fullmatch(text, spans[-1][1], stamp.start())
        spans.append((spans.pop()[0] if linked else stamp.start(), stamp.end()))
    made, end = "", 0
    for start, stop in spans:
        made = _closed(made, text[end:start]) if end else text[:start]
        made, end = _led(made, text[start:stop]), stop
    return _closed(made, text[end:]) if end else text


def with_year(text: str) -> str:
    """The text with the year of every time stamp replaced by 2023, two-digit ends of ranges and decades likewise.

    >>> with_year("From 4 July 2015 to 2016, in the 2014-15 season of the 1990s, 1,999 people paid US$2015.")
    'From 4 July 2023 to 2023, in the 2023-23 season of the 2020s, 1,999 people paid US$2015.'
    """

    def moved(found: re.Match[str]) -> str:
        stamp, decade = found[0], str(_ADDED_YEAR // 10 * 10)
        if _TENS.search(stamp):
            return _TENS.sub(lambda tens: decade[-len(tens[0]) :], stamp)
        short = rf"\g<1>{_ADDED_YEAR % 100:02d}"
        ends = _SHORT_END.sub(short, stamp) if _WHOLE_RANGE.fullmatch(stamp) else stamp
        return _YEAR.sub(str(_ADDED_YEAR), ends)

    return _STAMP.sub(moved, text)


def _led(before: str, stamp: str) -> str:
    """What stands before a time stamp, without a preposition (and "the", before a decade) that leads up to it."""
    lead = _LEAD.search(before, max(0, len(before) - _LONGEST_LEAD))
    if lead is not None:
        article = (lead[1] or "").strip().lower()
        if article != "the" or _TENS.search(stamp):
            return before[: lead.start()]
    if _TENS.search(stamp):
        the = _THE.search(before, max(0, len(before) - _LONGEST_LEAD))
        return before[: the.start()] if the else before
    return before


def _closed(left: str, right: str) -> str:
    """Both sides of a gap put together: one space, none before a stop, no empty brackets, no comma after nothing."""
    while True:
        spaced = left[-1:].isspace() or right[:1].isspace() or not left
        head, tail = left.rstrip(" \t"), right.lstrip(" \t")
        if head[-1:] in ("(", "[") and tail[:1] in (")", "]"):
            left, right = head[:-1], tail[1:]
        elif tail[:1] in (",", ";") and (not head or head[-1] in ",;:.!?\n\u2013\u2014"):
            left, right = head, tail[1:]
        else:
            break
    if head[-1:] in ("(", "["):
        return head + tail.lstrip(",;\u2013\u2014- \t")
    if tail[:1] in (")", "]"):
        return head.rstrip(",;\u2013\u2014- \t") + tail
    if not head or head[-1] == "\n" or tail[:1] in (*".,;:!?\n\u2019'%", ""):
        return head.rstrip(",") + tail if tail[:1] in (".", "!", "?") else head + tail
    return head + (" " if spaced else "") + tail


LENGTHS = (32, 64, 128, 256)
_SHORTEST_BEGINNING = 8
"""Words that more than must agree for two texts to be of one article; shorter texts only if they are the same."""

_END = ""  # no word is empty: the mark of a whole text among beginnings
_REWRITES: dict[str, tuple[Callable[[str], str], str]] = {
    "deletion": (without_timestamps, "Time stamps taken out of"),
    "replacement": (with_year, "Years of time stamps replaced by 2023 in"),
}


@corpora.add("wikimia")
def wikimia(
    length: int | None = None,
    variant: Literal["plain", "deletion", "replacement"] = "plain",
    path: str | None = None,
) -> Corpus:
    """Wikipedia on events before 2017 against events of 2023, 32 to 256 words (Shi et al. 2024).

    `length` is 32, 64, 128 or 256, None for all four together (as FSD does); texts of one article are one group
    across lengths. `variant` takes time stamps out or writes 2023 for their years (FSD, table 6). `path` is a
    file of `input` and `label`, or a folder of files whose names hold `length32` and so on, as on the hub. The id
    is LENGTH/ROW. Raises TextsError where the texts cannot be had, ExpressionError for another length.
    """
    require(
        length in (None, *LENGTHS), f"wikimia: length must be 32, 64, 128, 256 or None, found {length!r}."
    )
    lengths, schema = LENGTHS if length is None else (length,), schema_of("wikimia")
    if path is None:
        parts = {str(n): read_published(f"{schema.hub}::WikiMIA_length{n}", schema) for n in lengths}
    else:
        parts = _files(Path(path), lengths)
    source = f"hub:{schema.hub}" if path is None else shown(path)
    corpus = _grouped(join_parts(parts, schema, source))
    absent = [str(n) for n in lengths if str(n) not in parts and "" not in parts]
    if absent:
        note = f"No texts of {' and '.join(absent)} words: no file here is named so."
        corpus = replace(corpus, notes=(*corpus.notes, note))
    if variant != "plain":
        rewrite, done = _REWRITES[variant]
        texts = tuple(replace(text, text=rewrite(text.text)) for text in corpus.texts)
        changed = sum(new.text != old.text for new, old in zip(texts, corpus.texts, strict=True))
        empty = sum(not text.text.strip() for text in texts)
        note = f"{done} {changed} of {len(texts)} texts, by rule, which left {empty} empty."
        corpus = replace(corpus, texts=texts, notes=(*corpus.notes, note))
    return corpus


def _files(path: Path, lengths: Sequence[int]) -> dict[str, Corpus]:
    """The tables of the lengths asked for, by length; a single file that names none is taken for all of them."""
    files, schema = find_tables(path), schema_of("wikimia")
    looked = ((re.search(r"length_?(\d+)", stem_of(file.name), re.IGNORECASE), file) for file in files)
    named = [(str(int(found[1])), file) for found, file in looked if found]
    if len(files) == 1 and not named and len(lengths) > 1:
        return {"": read_published(files[0], schema)}
    by_length = dict(named)
    if len(by_length) < len(named):
        raise TextsError(f"{shown(path)} holds more than one file of a length: put them into one.")
    if wanted := [str(n) for n in lengths if str(n) in by_length]:
        return {length: read_published(by_length[length], schema) for length in wanted}
    wanted, names = [f"length{n}" for n in lengths], listed([shown(file.name) for file in files])
    raise TextsError(
        f"{shown(path)} has no file with {' or '.join(wanted)} in its name, found {names}: add it."
    )


def _grouped(corpus: Corpus) -> Corpus:
    """One group an article: a text belongs to the shortest text it begins with, whose last word may be cut."""
    words = {text.id: tuple(text.text.split()) for text in corpus.texts}
    roots: dict[tuple[str, ...], str] = {}
    sizes: list[int] = []
    made: dict[str, str] = {}
    for text in sorted(corpus.texts, key=lambda text: len(words[text.id])):
        own = words[text.id]
        whole = (*own, _END)
        begun = (roots.get(own[:size]) for size in sizes)
        made[text.id] = roots.get(whole) or next(filter(None, begun), f"article {text.id}")
        roots.setdefault(whole, made[text.id])
        if len(own) > _SHORTEST_BEGINNING:
            roots.setdefault(own[:-1], made[text.id])
            sizes += [len(own) - 1] if len(own) - 1 not in sizes else []
    return replace(corpus, texts=tuple(replace(text, group=made[text.id]) for text in corpus.texts))
