"""A WikiMIA of one's own (Shi et al. 2024): what is dated before a model's cutoff against what came after it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pretrace.corpora.columns import Columns
from pretrace.corpora.dates import Days, cutoff_day, days
from pretrace.corpora.opening import open_stream
from pretrace.errors import TextsError
from pretrace.plugins.build import writing
from pretrace.plugins.build.patents import CUTTING, SIDES
from pretrace.registry import require
from pretrace.results.wording import say
from pretrace.settings import COLUMNS, check_ranges, option, seed_option

Unlabelled = Annotated[Columns, "text", "id", "group", "template", "split", "files", "encoding"]
"""How texts are read whose labels are not."""
_WHY = "texts from before and after a day are told apart by what they speak of."


@dataclass(frozen=True, slots=True)
class DatedSettings:
    """How members and non-members are told by their date. Members are dated more than `margin_days` days before
    `cutoff`, non-members on it or after. `words` takes the first so many words of each text, `length` the first so many
    characters; a shorter text is left out. `balanced` draws as many of the larger class as the smaller has."""

    cutoff: str = option(
        help="The day the model's training data ends; texts of that day and later are non-members.",
        panel=SIDES,
    )
    margin_days: int = option(0, "Leave out texts from this many days before the cutoff.", panel=SIDES)
    balanced: bool = option(False, "Draw as many of the larger class as the smaller has.", panel=SIDES)
    words: int | None = option(
        None,
        "Take the first N words of each text (separated by white space); shorter texts are left out.",
        panel=CUTTING,
    )
    length: int | None = option(None, "Take the first N characters instead.", panel=CUTTING)
    seed: int = seed_option()

    def __post_init__(self) -> None:
        cutoff_day(self.cutoff, "cutoff")
        require(self.margin_days >= 0, f"the margin is a number of days from 0 on, found {self.margin_days}.")
        require(self.margin_days < 365_000, f"a margin of {self.margin_days} days reaches before all dates.")
        require(self.words is None or self.words >= 1, f"words must be at least 1, found {self.words}.")
        require(self.length is None or self.length >= 1, f"length must be at least 1, found {self.length}.")
        require(self.words is None or self.length is None, say("build.refused.words_and_length"))
        check_ranges(self)


@dataclass(frozen=True, slots=True)
class DatedTexts:
    """Where the texts are, and the columns to read; labels are not looked at."""

    source: str = option(
        help="A .jsonl, .csv, .tsv, .parquet or .arrow file, also packed, or hub:NAME, with a date a row.",
        metavar="TEXTS",
        path="in",
    )
    date: str = COLUMNS.key(help="Column of the date.")
    columns: Unlabelled = field(default_factory=Columns)


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
    on_progress: writing.OnProgress = lambda what, done: None,
) -> writing.Built:
    """The benchmark, written to `out` as JSON lines (id, text, label, group, date) with its card. PretraceError for
    texts that cannot be read, where a class is empty, and where `out` holds something else."""
    columns = {"date": texts.date, **{k: name for k, name in texts.columns.recorded.items() if k != "label"}}
    record: dict[str, Any] = {"texts": texts.source, "columns": columns, **asdict(settings)}
    writing.check_place(out, record)
    made = writing.Building("texts", on_progress)
    kept: dict[str, _Dated] = {}
    found = _sorted(_read(texts, made), settings, made)
    for one in sorted(found, key=lambda one: (one.days.first, one.days.last, one.id)):
        # of two copies the older stays, so that no text is on both sides
        if kept.setdefault(writing.exact_key(one.text), one) is not one:
            made.left_out["a copy of another text"].append(one.id)
    rows: list[writing.Row] = [
        {"id": one.id, "text": one.text, "label": int(one.member), "group": one.group or one.id, "date": str(one.days)}
        for one in _drawn(list(kept.values()), texts.source, settings, made)
    ]  # fmt: skip
    on_progress("asking the blind baseline", len(rows))
    both = ({row["group"] for row in rows if row["label"] == label} for label in (1, 0))
    return made.write(
        out,
        rows,
        writing.blind_baseline(rows, seed=settings.seed, why=_WHY),
        kind="dated texts, built",
        settings=record,
        counts={"groups_on_both_sides": len(set.intersection(*both))},
        notes=["Texts were compared without white space; of two copies the older stayed."],
    )


def _read(texts: DatedTexts, made: writing.Building) -> Iterator[_Dated]:
    """The texts that have a date; TextsError where none has, naming what was found instead."""
    stream = open_stream(texts.source, replace(texts.columns, label="", more=(texts.date,)))
    strange, some, seen = "", False, set[str]()
    for text in stream.texts():
        name, written = text.id, text.meta[texts.date]
        if name in seen:
            raise TextsError(say("build.refused.repeated_text", source=stream.source, name=name))
        seen.add(name)
        made.note(name, text.text, written)
        found = days(written)
        if found is None:
            strange = strange or written
            made.left_out["no usable date"].append(name)
            continue
        some = True
        yield _Dated(name, text.text, text.group, found)
    if not some:
        source, date = stream.source, texts.date
        raise TextsError(say("build.refused.no_date", source=source, date=date, found=strange[:60]))


def _edges(settings: DatedSettings) -> tuple[date, date]:
    """The day before which members are dated, and the one from which on non-members are."""
    cutoff, margin = cutoff_day(settings.cutoff, "cutoff"), timedelta(days=settings.margin_days)
    return max(cutoff - date.min, margin) - margin + date.min, cutoff


def _sorted(texts: Iterable[_Dated], settings: DatedSettings, made: writing.Building) -> Iterator[_Dated]:
    """The texts whose date tells on which side they are, cut to size."""
    before, cutoff = _edges(settings)
    for one in texts:
        member = one.days.last < before
        if not member and one.days.first < cutoff:
            inside = one.days.first >= before and one.days.last < cutoff
            made.left_out["within the margin" if inside else "the date does not tell the side"].append(one.id)
            continue
        text, length = one.text, settings.length
        if settings.words is not None:
            text = first_words(text, settings.words)
        elif length is not None:
            text = text[:length] if len(text) >= length else ""
        if text.strip():
            yield one._replace(text=text, member=member)
        else:
            made.left_out["too short" if one.text.strip() else "empty"].append(one.id)


def _drawn(
    texts: Sequence[_Dated], source: str, settings: DatedSettings, made: writing.Building
) -> list[_Dated]:
    """The texts of either class, as many of both where that was asked for, in the order of their ids."""
    sides = {label: {one.id: one for one in texts if one.member == label} for label in (True, False)}
    before, cutoff = _edges(settings)
    for label, side in sides.items():
        if not side:
            where = f"before {before}" if label else f"on {cutoff} or later"
            numbers = {"source": source, "read": made.read, "left_out": made.left_out}
            raise TextsError(say("build.refused.side_empty", where=where, **numbers))
    most = min(map(len, sides.values())) if settings.balanced else len(texts)
    kept: list[_Dated] = []
    for side in sides.values():
        for rank, name in enumerate(writing.drawn_order(side, settings.seed, "dated text")):
            if rank < most:
                kept.append(side[name])
            else:
                made.left_out["not drawn"].append(name)
    return sorted(kept, key=lambda one: one.id)


def first_words(text: str, words: int) -> str:
    """The first so many words, parted by white space, as they stand; "" where there are fewer.

    >>> first_words("one  two\\nthree", 2), first_words("one", 2)
    ('one  two', '')
    """
    found = re.match(rf"\s*((?:\S++\s++){{{words - 1}}}\S++)", text)
    return found[1] if found else ""
