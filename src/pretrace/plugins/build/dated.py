"""A WikiMIA of one's own (Shi et al. 2024): what is dated before a model's cutoff against what came after it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pretrace import __version__
from pretrace.plugins.build.blind import blind_baseline
from pretrace.plugins.build.patents import CUTTING, SIDES, OnProgress
from pretrace.plugins.build.writing import Built, Digest, LeftOut, Row, check_place, drawn_order, exact_key, write
from pretrace.corpora.columns import Columns
from pretrace.corpora.dates import Days, cutoff_day, days
from pretrace.corpora.opening import open_stream
from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.settings import check_ranges, like, option, seed_option, shared

_WHY = "texts from before and after a day are told apart by what they speak of."


@dataclass(frozen=True, slots=True)
class DatedSettings:
    """How members and non-members are told by their date.

    Members are dated more than `margin_days` days before `cutoff`, non-members on it or after. `words` takes the
    first so many words of each text, `length` the first so many characters; a shorter text is left out.
    `balanced` draws as many of the larger class as the smaller has.
    """

    cutoff: str = option(
        help="The day the model's training data ends; texts of that day and later are non-members.",
        panel=SIDES,
    )
    margin_days: int = option(0, "Leave out texts of so many days before the cutoff.", panel=SIDES)
    balanced: bool = option(False, "Draw as many of the larger class as the smaller has.", panel=SIDES)
    words: int | None = option(
        None,
        "Take the first so many words of each text (parted by white space); shorter ones are left out.",
        panel=CUTTING,
    )
    length: int | None = option(None, "Take the first so many characters instead.", panel=CUTTING)
    seed: int = seed_option()

    def __post_init__(self) -> None:
        cutoff_day(self.cutoff, "cutoff")
        require(self.margin_days >= 0, f"the margin is a number of days from 0 on, found {self.margin_days}.")
        require(self.margin_days < 365_000, f"a margin of {self.margin_days} days reaches before all dates.")
        require(self.words is None or self.words >= 1, f"words must be at least 1, found {self.words}.")
        require(self.length is None or self.length >= 1, f"length must be at least 1, found {self.length}.")
        require(
            self.words is None or self.length is None, "words and length both cut a text: give one of them."
        )
        check_ranges(self)


@dataclass(frozen=True, slots=True)
class DatedTexts:
    """Where the texts are, and the columns to read; None stands for text or input, id, and group."""

    source: str = option(
        help="A .jsonl, .csv, .tsv, .parquet or .arrow file, also packed, or hub:NAME, with a date a row.",
        metavar="TEXTS",
        path="in",
    )
    date: str = option(help="Column of the date.", name="date-column", panel=SIDES)
    text: str | None = like(Columns, "text")
    id: str | None = like(Columns, "id")
    group: str | None = like(Columns, "group")
    template: str | None = like(Columns, "template")
    split: str | None = like(Columns, "split")
    files: str | None = like(Columns, "files")
    encoding: str | None = like(Columns, "encoding")

    @property
    def columns(self) -> Columns:
        """How the texts are read; labels are not looked at."""
        return shared(Columns, self, label="")


class _Dated(NamedTuple):
    id: str
    text: str
    group: str
    days: Days
    member: bool = False


def build_dated(
    texts: DatedTexts,
    out: Path,
    settings: DatedSettings,
    *,
    on_progress: OnProgress = lambda what, done: None,
) -> Built:
    """The benchmark, written to `out` as JSON lines (id, text, label, group, date) with its card, which also says
    how well words alone tell its two sides apart.

    Texts that were not taken are counted by reason and named in the card. Raises a PretraceError for texts that
    cannot be read, where a class is empty, and where `out` holds something else.
    """
    columns = {"date": texts.date, **{k: name for k, name in texts.columns.recorded.items() if k != "label"}}
    record: dict[str, Any] = {"texts": texts.source, "columns": columns, **asdict(settings)}
    check_place(out, record)
    sorter = _Sorter(settings)
    found = sorter.distinct(sorter.sorted(_read(texts, sorter, on_progress)))
    rows: list[Row] = [
        {
            "id": one.id,
            "text": one.text,
            "label": int(one.member),
            "group": one.group or one.id,
            "date": str(one.days),
        }
        for one in sorter.drawn(found, texts)
    ]
    on_progress("asking the blind baseline", len(rows))
    told = blind_baseline(rows, seed=settings.seed, why=_WHY)
    sides = [[str(row["group"]) for row in rows if row["label"] == label] for label in (1, 0)]
    card = {
        "kind": "dated texts, built",
        "settings": record,
        "counts": {
            "texts": sorter.read,
            "members": len(sides[0]),
            "nonmembers": len(sides[1]),
            "groups_on_both_sides": len({*sides[0]} & {*sides[1]}),
        },
        "left_out": sorter.left_out.plain(),
        "notes": ["Texts were compared without white space; of two copies the older stayed."],
        "blind": told.plain(),
        "texts_sha256": str(sorter.digest),
        "versions": {"pretrace": __version__, "numpy": np.__version__},
    }
    return write(out, rows, card)


def _read(texts: DatedTexts, sorter: _Sorter, on_progress: OnProgress) -> Iterator[_Dated]:
    """The texts that have a date; TextsError where none has, naming what was found instead."""
    stream = open_stream(texts.source, replace(texts.columns, more=(texts.date,)))
    strange, some, seen = "", False, set[str]()
    for number, text in enumerate(stream.texts()):
        name, written = text.id, text.meta[texts.date]
        if name in seen:
            raise TextsError(
                f"{stream.source}: every text needs an id of its own, found {name!r} twice: mend the ids."
            )
        seen.add(name)
        sorter.read = number + 1
        sorter.digest.add((name, text.text, written))
        on_progress("reading texts", sorter.read)
        found = days(written)
        if found is None:
            strange = strange or written
            sorter.left_out.add("no usable date", name)
            continue
        some = True
        yield _Dated(name, text.text, text.group, found)
    if not some:
        raise TextsError(
            f"{stream.source}: the column {texts.date!r} holds no date that can be read, such as 2023-03-01; "
            f"found {strange[:60]!r}: name another column with --date-column."
        )


class _Sorter:
    """Sorts texts by date, and counts what is left out on the way."""

    def __init__(self, settings: DatedSettings) -> None:
        self.settings = settings
        self.left_out = LeftOut()
        self.digest = Digest()
        self.read = 0
        self.cutoff = cutoff_day(settings.cutoff, "cutoff")
        margin = timedelta(days=settings.margin_days)
        self.members_before = max(self.cutoff - date.min, margin) - margin + date.min

    def sorted(self, texts: Iterable[_Dated]) -> Iterator[_Dated]:
        """The texts whose date tells on which side they are, cut to size."""
        for one in texts:
            member = one.days.last < self.members_before
            if not member and one.days.first < self.cutoff:
                inside = one.days.first >= self.members_before and one.days.last < self.cutoff
                self.left_out.add(
                    "within the margin" if inside else "the date does not tell the side", one.id
                )
                continue
            text, length = one.text, self.settings.length
            if self.settings.words is not None:
                text = first_words(text, self.settings.words)
            elif length is not None:
                text = text[:length] if len(text) >= length else ""
            if not text.strip():
                self.left_out.add("too short" if one.text.strip() else "empty", one.id)
                continue
            yield one._replace(text=text, member=member)

    def distinct(self, texts: Iterable[_Dated]) -> list[_Dated]:
        """The texts without copies; of two the older stays, so that no text is on both sides."""
        kept: dict[str, _Dated] = {}
        for one in sorted(texts, key=lambda one: (one.days.first, one.days.last, one.id)):
            if kept.setdefault(exact_key(one.text), one) is not one:
                self.left_out.add("a copy of another text", one.id)
        return list(kept.values())

    def drawn(self, texts: Sequence[_Dated], asked: DatedTexts) -> list[_Dated]:
        """The texts of either class, as many of both where that was asked for, in the order of their ids."""
        sides = {label: {one.id: one for one in texts if one.member == label} for label in (True, False)}
        for label, side in sides.items():
            if not side:
                where = f"before {self.members_before}" if label else f"on {self.cutoff} or later"
                raise TextsError(
                    f"no text of {asked.source} is left that is dated {where}; of {self.read} were left out: "
                    f"{self.left_out}. Choose another --cutoff, a smaller margin, or add texts."
                )
        most = min(map(len, sides.values())) if self.settings.balanced else len(texts)
        kept: list[_Dated] = []
        for side in sides.values():
            order = drawn_order(side, self.settings.seed, "dated text")
            kept += [side[name] for name in order[:most]]
            for name in order[most:]:
                self.left_out.add("not drawn", name)
        return sorted(kept, key=lambda one: one.id)


def first_words(text: str, words: int) -> str:
    """The first so many words, parted by white space, as they stand; "" where there are fewer.

    >>> first_words("one  two\\nthree", 2), first_words("one", 2)
    ('one  two', '')
    """
    found = re.match(rf"\s*((?:\S++\s++){{{words - 1}}}\S++)", text)
    return found[1] if found else ""
