"""A WikiMIA of one's own (Shi et al. 2024): what is dated before a model's cutoff against what came after it."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any

from pretrace.corpora.columns import Columns
from pretrace.corpora.dates import Days, cutoff_day, days
from pretrace.corpora.opening import open_stream
from pretrace.corpora.reading import refuse_repeated_ids
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
    margin_days: int = option(
        0, "Leave out texts from this many days before the cutoff.", panel=SIDES, least=0, most=364_999
    )
    balanced: bool = option(False, "Draw as many of the larger class as the smaller has.", panel=SIDES)
    words: int | None = option(
        None,
        "Take the first N words of each text (separated by white space); shorter texts are left out.",
        panel=CUTTING,
        least=1,
    )
    length: int | None = option(None, "Take the first N characters instead.", panel=CUTTING, least=1)
    seed: int = seed_option()

    def __post_init__(self) -> None:
        cutoff_day(self.cutoff, "cutoff")
        require(self.words is None or self.length is None, say("build.refused.words_and_length"))
        check_ranges(self)

    @property
    def edges(self) -> tuple[date, date]:
        """The day before which members are dated, and the one from which on non-members are."""
        cutoff, margin = cutoff_day(self.cutoff, "cutoff"), timedelta(days=self.margin_days)
        return max(cutoff - date.min, margin) - margin + date.min, cutoff


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
    rows = _drawn(_rows(texts, settings, made), texts.source, settings, made)
    on_progress("asking the blind baseline", len(rows))
    both = ({row["group"] for row in rows if row["label"] == label} for label in (1, 0))
    return made.write(
        out,
        rows,
        writing.blind_baseline(rows, seed=settings.seed, why=_WHY)[0],
        kind="dated texts, built",
        settings=record,
        counts={"groups_on_both_sides": len(set.intersection(*both))},
        notes=["Texts were compared without white space; of two copies the older stayed."],
    )


def _rows(texts: DatedTexts, settings: DatedSettings, made: writing.Building) -> list[writing.Row]:
    """The texts whose date tells on which side they are, cut to size; TextsError where none has a date, naming what was
    found instead."""
    stream = open_stream(texts.source, replace(texts.columns, label="", more=(texts.date,)))
    edges = settings.edges
    rows: list[writing.Row] = []
    names: list[str] = []
    strange: list[str] = []
    for one in stream.texts():
        written, text = one.meta[texts.date], one.text
        names.append(one.id)
        made.note(one.id, text, written)
        found = days(written)
        if found is None:
            strange.append(written)
        if settings.words is not None:
            text = first_words(text, settings.words)
        elif settings.length is not None:
            text = text[: settings.length] if len(text) >= settings.length else ""
        side = _side(found, *edges)
        if not (isinstance(side, str) or text.strip()):
            side = "too short" if one.text.strip() else "empty"
        if isinstance(side, str):
            made.left_out[side].append(one.id)
        else:
            row = {"id": one.id, "text": text, "label": int(side), "group": one.group or one.id}
            rows.append({**row, "date": str(found)})
    refuse_repeated_ids(names, stream.source)
    if len(strange) == len(names):
        found_instead = next(filter(None, strange), "")[:60]
        where = {"source": stream.source, "date": texts.date}
        raise TextsError(say("build.refused.no_date", **where, found=found_instead))
    return rows


def _side(found: Days | None, before: date, cutoff: date) -> bool | str:
    """True for a member, False for a non-member, or in words why a text is neither."""
    if found is None:
        return "no usable date"
    if found.last < before or found.first >= cutoff:
        return found.last < before
    inside = before <= found.first and found.last < cutoff
    return "within the margin" if inside else "the date does not tell the side"


def _drawn(
    rows: list[writing.Row], source: str, settings: DatedSettings, made: writing.Building
) -> list[writing.Row]:
    """The rows of either class without copies, as many of both where that was asked for, in the order of their ids."""
    # of two copies the older stays, so that no text is on both sides
    kept = made.distinct(sorted(rows, key=lambda row: (row["date"], row["id"])))
    sides = [{row["id"]: row for row in kept if row["label"] == label} for label in (1, 0)]
    before, cutoff = settings.edges
    for side, where in zip(sides, (f"before {before}", f"on {cutoff} or later"), strict=True):
        if not side:
            numbers = {"source": source, "read": made.read, "left_out": made.left_out}
            raise TextsError(say("build.refused.side_empty", where=where, **numbers))
    most = min(map(len, sides)) if settings.balanced else len(rows)
    drawn: list[writing.Row] = []
    for side in sides:
        names = writing.drawn_order(side, settings.seed, "dated text")
        drawn += [side[name] for name in names[:most]]
        made.left_out["not drawn"] += names[most:]
    return sorted(drawn, key=lambda row: row["id"])


def first_words(text: str, words: int) -> str:
    """The first so many words, parted by white space, as they stand; "" where there are fewer.

    >>> first_words("one  two\\nthree", 2), first_words("one", 2)
    ('one  two', '')
    """
    found = re.match(rf"\s*((?:\S++\s++){{{words - 1}}}\S++)", text)
    return found[1] if found else ""
