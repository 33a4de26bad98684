"""PatentMIA from patent pages a user has (Zhang et al. 2024, DC-PDD, section 2.2).

The paper takes 5,000 Chinese patents published before 2023-01-01 as members, 5,000 with a priority date after
2024-03-01 as non-members, cleans the pages, and of each takes 512 consecutive words (jieba) from a random place.
What it did to clean them it does not say beyond a reference; what is done here is said below and in the card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from pretrace import __version__
from pretrace.baselines.blind import blind_baseline
from pretrace.building.pages import (
    PAGES,
    Near,
    PageColumns,
    Pages,
    PatentPage,
    drop_lines,
    exact_key,
    find_boilerplate,
    sort_page,
)
from pretrace.building.segmenting import ChineseWords, chinese_share, take_prefixes
from pretrace.building.writing import Built, Digest, LeftOut, Row, check_place, drawn_order, keyed, write
from pretrace.corpora.dates import cutoff_day
from pretrace.errors import ExpressionError, TextsError
from pretrace.registry import require
from pretrace.settings import check_ranges, option, seed_option

OnProgress = Callable[[str, int], None]
"""Told what is done and how many pages are through it."""

SIDES, CLEANING, CUTTING = "Members and non-members", "Cleaning", "Cutting"
"""Groups of options."""

_WHY = "patents of different years differ in their subjects and words."


def _lengths(written: str) -> tuple[int, ...]:
    parts = [part.strip() for part in written.split(",") if part.strip()]
    if not all(part.isdecimal() and part.isascii() for part in parts):
        raise ExpressionError(
            f"--lengths wants whole numbers, such as 64,128,256,512; found {written[:60]!r}."
        )
    return tuple(map(int, parts))


@dataclass(frozen=True, slots=True)
class PatentSettings:
    """How the benchmark is made.

    Members were published before `before`, non-members have a priority date after `after`. A row is `words`
    jieba words; with `lengths`, the first n of them for each n. `size` is the most pages of either class.
    `chinese` is the least share of Chinese characters of a page, `boilerplate` the share of pages from which on
    a line is taken out, `near` the Jaccard index from which on two pages are one (0: only exact copies are).
    """

    before: str = option("2023-01-01", "Members were published before this day.", panel=SIDES)
    after: str = option("2024-03-01", "Non-members have a priority date after this day.", panel=SIDES)
    words: int = option(512, "Words of a snippet, told apart by jieba.", panel=CUTTING)
    lengths: tuple[int, ...] = option(
        (),
        "Give the first so many words of each snippet instead, a row a length: 64,128,256,512.",
        panel=CUTTING,
        read=_lengths,
    )
    size: int | None = option(
        None,
        "The most pages of either class (the paper: 5000); as many as there are unless given.",
        panel=SIDES,
    )
    chinese: float = option(0.3, "Least share of Chinese characters in a page.", panel=CLEANING)
    boilerplate: float = option(
        0.2, "Take out lines that stand on more than this share of the pages.", panel=CLEANING
    )
    near: float = option(
        0.8,
        "Pages this alike are one: Jaccard index of 8-character shingles, 0.7 to 1; 0 for exact copies alone.",
        panel=CLEANING,
    )
    seed: int = seed_option()

    def __post_init__(self) -> None:
        before, after = cutoff_day(self.before, "before"), cutoff_day(self.after, "after")
        require(
            before <= after,
            f"members come first: --before {before} must not be later than --after {after}.",
        )
        require(self.words >= 1, f"a snippet has at least one word, found words {self.words}.")
        wrong = [length for length in self.lengths if not 1 <= length <= self.words]
        require(
            not wrong, f"lengths lie between 1 and the {self.words} words of a snippet, found {wrong[:1]}."
        )
        require(
            len(set(self.lengths)) == len(self.lengths), f"lengths must differ, found {list(self.lengths)}."
        )
        require(self.size is None or self.size >= 1, f"size must be at least 1, found {self.size}.")
        for name, share in (("chinese", self.chinese), ("boilerplate", self.boilerplate)):
            require(0 <= share <= 1, f"{name} is a share between 0 and 1, found {share}.")
        require(
            self.near == 0 or 0.7 <= self.near <= 1, f"near is 0 or between 0.7 and 1, found {self.near}."
        )
        check_ranges(self)


@dataclass(frozen=True, slots=True)
class PatentPages:
    """Where the pages are: a folder or a table, its columns, and a table of dates."""

    source: Path = option(
        help="A folder of .html and .txt files, or a .jsonl, .csv, .tsv or .parquet file with a page a row.",
        metavar="PAGES",
        path="in",
    )
    columns: PageColumns = field(default_factory=PageColumns)
    dates: Path | None = option(
        None,
        "A table with the columns page, published and priority, for pages that do not tell.",
        panel=PAGES,
        path="in",
    )


def build_patents(
    pages: PatentPages,
    out: Path,
    settings: PatentSettings,
    *,
    on_progress: OnProgress = lambda what, done: None,
) -> Built:
    """The benchmark, written to `out` as JSON lines (id, text, label, group, date, length) with its card.

    Pages that were not taken are counted by reason and named in the card. Raises a PretraceError for pages that
    cannot be read, where jieba is missing, where a class has no page, and where `out` holds something else.
    """
    where = {"pages": str(pages.source), "dates": None if pages.dates is None else str(pages.dates)}
    record = {**where, "columns": asdict(pages.columns), **asdict(settings)}
    check_place(out, record)
    words = ChineseWords()
    builder = _Builder(settings, words, on_progress)
    reader = Pages(pages.source, pages.columns, pages.dates)
    kept = builder.distinct(builder.cleaned(builder.dated(reader)))
    rows = builder.rows(kept)
    longest = [row for row in rows if row["length"] == max(settings.lengths, default=settings.words)]
    members, others = ({row["group"] for row in rows if row["label"] == label} for label in (1, 0))
    near = f" Near copies: a Jaccard index of {settings.near:g} or more over shingles of 8 characters."
    card = {
        "kind": "PatentMIA, built",
        "settings": record,
        "counts": {
            "pages": builder.read,
            "members": len(members),
            "nonmembers": len(others),
            "rows": len(rows),
        },
        "left_out": builder.left_out.plain(),
        "boilerplate_lines": dict(list(builder.lines.items())[:50]),
        "notes": [
            *reader.notes(),
            f"{len(builder.lines)} lines that stand on more than {settings.boilerplate:.0%} of the pages were taken "
            "out.",
            "Copies were told by their text without white space; of two the member, else the older stayed."
            + (near if settings.near else ""),
            "Words are those of jieba's default cut, punctuation marks among them and white space not.",
        ],
        "blind": blind_baseline(longest, seed=settings.seed, why=_WHY).plain(),
        "pages_sha256": str(builder.digest),
        "versions": {"pretrace": __version__, "jieba": words.version, "numpy": np.__version__},
    }
    return write(out, rows, card)


class _Builder:
    """The steps from pages to rows, each counting what it leaves out."""

    def __init__(self, settings: PatentSettings, words: ChineseWords, on_progress: OnProgress) -> None:
        self.settings = settings
        self.words = words
        self.on_progress = on_progress
        self.left_out = LeftOut()
        self.lines: Mapping[str, int] = {}
        self.digest = Digest()
        self.read = 0
        self._before = cutoff_day(settings.before, "before")
        self._after = cutoff_day(settings.after, "after")

    def dated(self, pages: Iterable[PatentPage]) -> dict[bool, list[PatentPage]]:
        """Pages by class: members under True."""
        found: dict[bool, list[PatentPage]] = {True: [], False: []}
        for page in pages:
            self.read += 1
            self.on_progress("reading pages", self.read)
            self.digest.add((page.id, page.text, str(page.dates.published), str(page.dates.priority)))
            label = sort_page(page.dates, self._before, self._after)
            if isinstance(label, str):
                self.left_out.add(label, page.id)
            elif chinese_share(page.text) < self.settings.chinese:
                self.left_out.add("too little Chinese", page.id)
            else:
                found[label].append(page)
        return found

    def cleaned(self, found: dict[bool, list[PatentPage]]) -> dict[bool, list[PatentPage]]:
        """The same pages without the lines that stand on many of them."""
        texts = (page.text for some in found.values() for page in some)
        self.lines = find_boilerplate(texts, self.settings.boilerplate)
        return {
            label: [replace(page, text=drop_lines(page.text, self.lines)) for page in some]
            for label, some in found.items()
        }

    def distinct(self, found: dict[bool, list[PatentPage]]) -> dict[bool, list[PatentPage]]:
        """The pages without copies; of two the older stays, so that a copy of a member is no non-member."""
        exact: set[str] = set()
        near = Near(self.settings.near)
        kept: dict[bool, list[PatentPage]] = {True: [], False: []}
        for label, some in found.items():
            for page in sorted(some, key=lambda page: (_date(page, label), page.id)):
                self.on_progress("comparing pages", sum(map(len, kept.values())))
                key = exact_key(page.text)
                if key in exact:
                    self.left_out.add("a copy of another page", page.id)
                elif self.settings.near and near.known(page.text):
                    self.left_out.add("nearly a copy of another page", page.id)
                else:
                    exact.add(key)
                    kept[label].append(page)
        return kept

    def rows(self, kept: dict[bool, list[PatentPage]]) -> list[Row]:
        """As many rows of either class, in the order of their ids; TextsError where a class is empty."""
        first, second = sorted((True, False), key=lambda label: (len(kept[label]), not label))
        few = self._cut(kept[first], first, self.settings.size)
        many = self._cut(kept[second], second, len(few))
        for page, _ in few[len(many) :]:
            self.left_out.add("not drawn", page.id)
        both = [*few[: len(many)], *many]
        return [row for _, rows in sorted(both, key=lambda item: item[0].id) for row in rows]

    def _cut(
        self, pages: Sequence[PatentPage], label: bool, most: int | None
    ) -> list[tuple[PatentPage, list[Row]]]:
        """The rows of the first pages that are long enough, in an order drawn from seed and id; TextsError where there
        is none."""
        by_id = {page.id: page for page in pages}
        found: list[tuple[PatentPage, list[Row]]] = []
        for name in drawn_order(by_id, self.settings.seed, "patent page"):
            page = by_id[name]
            if most is not None and len(found) >= most:
                self.left_out.add("not drawn", name)
                continue
            rows = self._snippet(page, label)
            if rows:
                found.append((page, rows))
                self.on_progress("cutting members" if label else "cutting non-members", len(found))
            else:
                self.left_out.add("too short", name)
        if not found:
            of_side = (
                f"published before {self._before}" if label else f"whose priority date is after {self._after}"
            )
            raise TextsError(
                f"there is no page of {self.settings.words} words {of_side}; of {self.read} pages were left out: "
                f"{self.left_out}. Add pages, give their dates with --dates, or ask for fewer --words."
            )
        return found

    def _snippet(self, page: PatentPage, label: bool) -> list[Row]:
        """The rows of one page; none where it has too few words."""
        settings = self.settings
        if len(page.text) < settings.words:
            return []
        spans = self.words.spans(page.text)
        places = len(spans) - settings.words + 1
        if places < 1:
            return []
        # the place comes from the page's own name, so that other pages may come and go
        start = int(np.random.default_rng(keyed("snippet", settings.seed, page.id)).integers(places))
        lengths = settings.lengths or (settings.words,)
        return [
            {
                "id": f"{page.id}#{length}" if settings.lengths else page.id,
                "text": text,
                "label": int(label),
                "group": page.id,
                "date": _date(page, label),
                "length": length,
            }
            for length, text in zip(lengths, take_prefixes(page.text, spans, start, lengths), strict=True)
        ]


def _date(page: PatentPage, label: bool) -> str:
    return str(page.dates.published if label else page.dates.priority)
