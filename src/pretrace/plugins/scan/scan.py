"""`scan`: which of these texts stand in a corpus, and where? Planned, searched file by file, concluded.

Every file that was read leaves a part in a folder beside the result. A scan that is killed goes on with the files that
have none, and so does another machine that shares the folder (`shard`). The answer is the same to the bit.
"""

from __future__ import annotations

import hashlib
import threading
import time
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, get_args
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from pretrace.corpora import Columns
from pretrace.corpora.opening import record_corpus
from pretrace.errors import OutputError, TextsError
from pretrace.frequencies.counting import count_cores
from pretrace.plugins.scan import searching
from pretrace.plugins.scan.corpus import CorpusFile, CorpusReader, FileFacts, files_of
from pretrace.plugins.scan.folding import FoldedTexts, Numbers, Strings, fold_pieces, streams_of
from pretrace.plugins.scan.searching import COMMON, GRAM, NEAR, RUN, SHINGLE, SLIGHT, WHOLE, TextSequences
from pretrace.registry import require
from pretrace.results.atomic import atomic_text, write_atomically
from pretrace.results.folder import record_software
from pretrace.results.wording import duration, fill, first_of, plural, say, sentences_of
from pretrace.scoring.parts import Spread, Turn
from pretrace.settings import TEXTS, Option, check_ranges, option, requested_option, statements_of
from pretrace.types import Corpus, Estimate, Skipped, Table, Text, Verdict

SEARCH = "Search"
"""The group of options on how the corpus is searched."""
LEVEL = 0.01
"""The chance at which so many more texts than controls may be whole where both are alike."""
_PROBED = 50 << 20
"""Bytes that a plan reads to tell the time."""
_MARKED, _MARKED_CHARACTERS = 20, 6000
"""Texts that the report shows with their passages marked, and characters of each."""
_UNIQUE, _FEW = 300, 3
"""Letters and digits of a passage in no other document than those that hold the whole text, from which on no other text
of this kind would have it in common with them; and how many these documents may be."""
_MANY = 5
"""Documents that hold a passage and break off at the same places, from which on it is a template."""
_COMMON_DOCUMENTS, _TIMES = 100, 10
"""A passage is common in so many documents, and so many times as many as the text's rarest quarter."""
_EVERYWHERE = 1000
"""Documents from which on a passage is common in any case."""
CORPUS = Option("How the corpus is read, as in column=body.", name="corpus-reading", panel=TEXTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSettings:
    """How a corpus is searched; ExpressionError for a value out of its range."""

    match: Literal["folded", "exact"] = option(
        "folded",
        "folded: letters and digits are compared, whatever stands between them. exact: every byte counts.",
        panel=SEARCH,
        essential=True,
    )
    near: bool = option(
        False,
        "Also name near copies: documents that share 80% or more of their sequences of 5 words with a text (Jaccard "
        "index). Slower.",
        panel=SEARCH,
        essential=True,
    )
    overlap: bool = option(
        False,
        "Also say how many of a text's sequences of 13 words stand in the corpus, punctuation left aside, as tools for "
        "decontamination do. Slower.",
        panel=SEARCH,
        essential=True,
    )
    corpus_column: str | None = CORPUS.key(
        None,
        "The one column of the corpus that is read; all columns with text unless named.",
        name="column",
        essential=True,
    )
    corpus_encoding: str | None = CORPUS.key(
        None, "Encoding of its files that are not UTF-8, as in cp1252.", name="encoding"
    )
    workers: int = option(
        0,
        "Files that are read at once; as many as there are cores unless given.",
        panel=SEARCH,
        least=0,
        most=1024,
    )
    shard: str = option(
        "",
        "Read the K-th of N parts of the files alone, as 3/64, on one of several machines that share --out; run "
        "without it afterwards, to conclude.",
        panel=SEARCH,
    )
    requested_by: str = requested_option(SEARCH)

    def __post_init__(self) -> None:
        check_ranges(self)
        Columns(encoding=self.corpus_encoding)  # which knows all encodings
        require(self.match in ("folded", "exact"), f"--match is folded or exact, found {self.match!r}.")
        require(self.match == "folded" or not (self.near or self.overlap), say("scan.refused.near_exact"))
        _ = self._turn

    @property
    def _turn(self) -> Turn:
        """The files that are read here."""
        return Turn.parse(self.shard) if self.shard else Turn()


@dataclass(eq=False)
class Searching:
    """What is looked for, in which `files`, which `sources` name, and how. `texts` are those of both sides
    as they are given, `written` in bytes, and `folded` as they are compared, those of the collection first and the
    control texts behind them. `name` is what the corpus is called, by its sources, `columns` says which of it are
    searched, and `digest` is a hash of what is looked for, and how. TextsError where no text is long enough to be
    found, and for a source with no file that is read."""

    corpus: Corpus
    heldout: Corpus | None
    sources: tuple[str, ...]
    settings: ScanSettings

    def __post_init__(self) -> None:
        self.files = files_of(self.sources)
        self.exact = self.settings.match == "exact"
        self.texts = (*self.corpus.texts, *(self.heldout.texts if self.heldout else ()))
        self.written = [one.text.encode("utf-8", "surrogatepass") for one in self.texts]
        self.folded = FoldedTexts(self.written, exact=self.exact)
        if all(len(self.folded.letters(i)) <= RUN for i in range(len(self.corpus))):
            raise TextsError(say("scan.refused.too_short", name=self.corpus.name, run=RUN))
        settings, column = self.settings, self.settings.corpus_column
        names = [Path(one).name or one for one in self.sources]
        self.name = first_of(names[:3], len(names))
        self.columns = "in every column with text" if column is None else f"in the column {column!r} alone"
        texts = hashlib.sha256(
            f"{settings.match} {len(self.corpus)} ".encode() + self.folded.buffer.tobytes()
        )
        more = (name for name in ("near", "overlap") if getattr(settings, name))
        self.digest = " ".join((texts.hexdigest(), *more))

    @cached_property
    def _table(self) -> searching.BlockTable:
        """The texts as documents are compared with them."""
        near, overlap = self.settings.near, self.settings.overlap
        shingles = TextSequences(self.written, SHINGLE) if near else None
        return searching.BlockTable(
            self.folded, shingles, TextSequences(self.written, GRAM) if overlap else None
        )

    def _open(self) -> tuple[str, Callable[[CorpusFile], searching.ScanPart]]:
        """In a worker: the hash of what is looked for, and what searches a file."""
        return self.digest, partial(_search_file, self)

    def _workers(self, files: int) -> int:
        """How many of so many files are read at once."""
        return max(1, min(self.settings.workers or count_cores(), files))


def plan_scan(asked: Searching) -> tuple[str, dict[str, Any]]:
    """What a scan would read, in a sentence or two and in figures (files, bytes as they lie there, seconds), timed on
    the first 50 MB (None: there are none); nothing is kept."""
    files = asked.files
    for most in (1, _PROBED):  # the kernels are compiled before the clock runs
        began, read = time.perf_counter(), 0
        for file in files:
            if read < most:
                read += _search_file(asked, file, most=most - read).files[0].bytes
    took = time.perf_counter() - began
    size = sum(file.size for file in files)
    seconds = took * size / read / asked._workers(len(files)) if read and size else None
    words = say("scan.plan.read", files=len(files), size=size / 1e6, columns=asked.columns)
    if seconds is not None:
        words += f" {say('scan.plan.takes', seconds=duration(seconds), probed=read / 1e6)}"
    figures = {"files": len(files), "bytes": size, "probed": read, "seconds": seconds}
    return words, figures | {"columns": asked.columns}


def scan(
    asked: Searching,
    parts: Path,
    *,
    watch: Callable[[int, int, int, int], object] = lambda *_: None,
    elsewhere: Spread | None = None,
) -> Verdict | None:
    """Search the files that have no part in the folder `parts` yet, and conclude; None where parts of other machines
    are missing (`ScanSettings.shard`). `watch` is told files read, of how many, bytes read, of how many. OutputError
    where `parts` belongs to other texts."""
    began, turn = time.perf_counter(), asked.settings._turn
    mine = [file for i, file in enumerate(asked.files) if turn.takes(i)]
    _claim_folder(parts, asked.digest)
    missing = [  # those that broke off are tried again
        file for file in mine if (part := _part(parts, file)) is None or any(one.unread for one in part.files)
    ]
    lock, stop, size = threading.Lock(), threading.Event(), sum(file.size for file in mine)
    done = [len(mine) - len(missing), size - sum(file.size for file in missing)]

    def add(read: int, *, files: int = 0) -> None:
        if stop.is_set():
            raise CancelledError
        with lock:  # over all threads
            done[:] = done[0] + files, done[1] + read
            watch(done[0], len(mine), done[1], size)

    if missing and elsewhere:
        pieces = ((file, f"the file {file.address}", file) for file in missing)
        for file, part in elsewhere(asked._open, pieces):
            write_atomically(_path(parts, file), part.save)
            add(file.size, files=1)
    elif missing:
        _search(asked, missing, parts, add, stop)
    # one at a time: a part holds much where much was found
    whole = searching.merge_parts(_part(parts, file) for file in asked.files)
    return None if whole is None else _Findings(asked, whole)._verdict(time.perf_counter() - began)


def _search_file(
    asked: Searching,
    file: CorpusFile,
    *,
    read: Callable[[int], object] = lambda _: None,
    most: int | None = None,
) -> searching.ScanPart:
    """What is found in one file, or in the first bytes of it, as many as `most`; `read` is told of bytes, and may raise
    what ends the search."""
    settings, before = asked.settings, 0
    reader = CorpusReader(file, settings.corpus_column, asked.exact, settings.corpus_encoding)
    search = searching.FileSearch(asked._table, file.address)
    for stream in reader.documents(most):
        read(reader.read.bytes - before)
        search.add_words(stream, reader.facts)
        search.add(stream, reader.facts)
        before = reader.read.bytes
    return search.part(reader.read)


def _search(
    asked: Searching,
    files: Sequence[CorpusFile],
    parts: Path,
    add: Callable[..., None],
    stop: threading.Event,
) -> None:
    """Search files, several at once, each into a part of its own; the first error ends them all, by `stop`."""
    _ = asked._table  # made once, before there are threads

    def one(file: CorpusFile) -> None:
        try:
            add(0)
            part = _search_file(asked, file, read=add)
            write_atomically(_path(parts, file), part.save)
            add(0, files=1)
        except CancelledError:
            return
        except BaseException:
            stop.set()  # before this thread takes the next file
            raise

    with ThreadPoolExecutor(asked._workers(len(files))) as pool:
        try:
            list(pool.map(one, files))
        finally:
            stop.set()


def _claim_folder(parts: Path, digest: str) -> None:
    """Make the folder for the parts of a scan; OutputError where it holds anything else."""
    mark = parts / "scan.txt"
    known = mark.read_text(encoding="utf-8") if mark.exists() else None
    if known != digest and parts.exists() and any(parts.iterdir()):
        raise OutputError(say("scan.refused.other_parts", folder=parts))
    parts.mkdir(parents=True, exist_ok=True)
    if known is None:
        atomic_text(mark, digest)


def delete_parts(parts: Path) -> None:
    """Delete the parts of a scan that was concluded; what stands there beside them stays."""
    for one in [*parts.glob("*.npz"), parts / "scan.txt"]:
        one.unlink(missing_ok=True)
    with suppress(OSError):
        parts.rmdir()


def _path(parts: Path, file: CorpusFile) -> Path:
    """The part of a file: a file that changed has another one."""
    changed = 0
    with suppress(OSError, ValueError):
        changed = 0 if "://" in file.address else Path(file.address).lstat().st_mtime_ns
    named = f"{file.address}\n{file.size}\n{changed}".encode("utf-8", "surrogatepass")
    return parts / f"{hashlib.sha256(named).hexdigest()[:32]}.npz"


def _part(parts: Path, file: CorpusFile) -> searching.ScanPart | None:
    """The part of a file, None where there is none that can be read."""
    try:
        return searching.ScanPart.load(_path(parts, file))
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile, zlib.error):
        return None


State = Literal["whole", "template", "part", "common", "no", "too short"]
STATES: tuple[State, ...] = get_args(State)


class _FoundText:
    """What the corpus holds of one text, whose characters begin at the bytes `first`, and where the documents that hold
    it change (`changes`). Its passages go from character `starts` to `ends` and stand in `counts` documents.
    `coverage` is the share of its characters in runs, `common` the share in passages that stand in very many documents,
    `own` that in others, `single` that in one document, `longest` its longest run in characters, `documents` how many
    hold a run, `copies` how many hold the whole text. `near` counts near copies, `jaccard` is that of the nearest."""

    single, jaccard = 0.0, np.nan

    def __init__(
        self, whole: searching.ScanPart, text: int, first: npt.NDArray[np.intp], changes: Numbers
    ) -> None:
        edges = first.searchsorted(np.concatenate(([0], changes[:, 0], first[-1:])))
        wide = edges[1:] > edges[:-1]
        self.starts, self.ends = edges[:-1][wide], edges[1:][wide]
        self.counts = np.concatenate(([0], changes[:, 1])).cumsum()[wide]
        sizes, found = self.ends - self.starts, self.counts > 0
        common = found & _is_common(self.counts, _quarter(self.counts[found], sizes[found]))
        self.characters, self.longest = int(edges[-1]), int(whole.longest[text])
        self.coverage, self.common = (
            int(sizes[some].sum()) / max(1, self.characters) for some in (found, common)
        )
        self.own = self.coverage - self.common
        self.documents, self.copies, self.near = whole.counts[text].tolist()
        self.state = self._find_state()

    def _find_state(self) -> State:
        """Whether the text stands in the corpus: "whole" in one place; as a "template", with other words at the same
        places in many documents; in "part"; "common" (only in passages of very many documents), "no" or "too short"."""
        if self.characters < RUN:
            return "too short"
        if self.own > SLIGHT or (self.longest >= _UNIQUE and self.own):
            return "whole" if self.copies else "template" if self._is_template else "part"
        if self.coverage > SLIGHT:
            return "common"
        return "part" if self.near else "no"

    @property
    def _is_template(self) -> bool:
        """Whether many documents hold the text's passages and all break off at the same places between them."""
        most = -_quarter(-self.counts, self.ends - self.starts)
        edges = np.flatnonzero(np.diff(self.counts <= most / 2, prepend=False, append=False))
        starts, ends = self.starts[edges[::2]], self.ends[edges[1::2] - 1]
        inside = (starts > 0) & (ends < self.characters) & (ends - starts <= RUN)
        return most >= _MANY and bool(inside.any())


def _summarise_texts(whole: searching.ScanPart, texts: FoldedTexts) -> list[_FoundText]:
    """What was found of each text."""
    mine = np.searchsorted(whole.changes[:, 0], texts.spans + np.array([0, 1])).tolist()
    found = [
        _FoundText(whole, text, texts.letters(text), whole.changes[first:last] - (texts.spans[text, 0], 0))
        for text, (first, last) in enumerate(mine)
    ]
    for one in reversed(whole.best):  # the largest amount of a text comes first
        found[one.text].single = one.amount / int(texts.sizes[one.text])
    for one in reversed(whole.nearest):
        found[one.text].jaccard = one.amount
    return found


def _is_common(documents: Any, usual: float) -> Any:
    """Whether passages in so many documents are common, beside the `usual` number of the text's rarest quarter."""
    return (documents >= _EVERYWHERE) | ((documents >= _COMMON_DOCUMENTS) & (documents >= _TIMES * usual))


def _quarter(counts: Numbers, sizes: Numbers) -> float:
    """How many documents hold the rarest quarter of some characters at most: passages of `sizes` stand in `counts`."""
    order = counts.argsort()
    reached = sizes[order].cumsum()
    return float(counts[order[reached.searchsorted(reached[-1] / 4)]]) if len(counts) else 0.0


def _written_place(raw: bytes, place: int) -> int:
    """Where the folded byte at `place` of a string is written in it."""
    found = bisect_right(range(len(raw) + 1), place, key=lambda end: len(fold_pieces([raw[:end]])[0])) - 1
    while 0 < found < len(raw) and raw[found] & 0xC0 == 0x80:
        found -= 1
    return found


def _find_own_files(files: Sequence[CorpusFile], path: str) -> tuple[CorpusFile, ...]:
    """The files of the corpus that are the file of the texts itself, or lie in their folder; no address is one."""
    place = Path(path).resolve()
    local = (one for one in files if path and "://" not in one.address)
    return tuple(one for one in local if Path(one.address).resolve().is_relative_to(place))


_OWN: tuple[State, ...] = ("whole", "template", "part")
"""The states of texts with passages that are not common."""


class _FoundSide:
    """The texts of one side: how many are in each state, and of its documents how many have a whole text, of how many
    able (`units`)."""

    def __init__(self, texts: Sequence[Text], found: Sequence[_FoundText]) -> None:
        self.counts = Counter(one.state for one in found)
        documents = {(text.document, one.state) for text, one in zip(texts, found, strict=True)}
        self.whole = sum(state == "whole" for _, state in documents)
        self.units = len({document for document, state in documents if state != "too short"})

    def count(self, *states: State) -> int:
        """How many texts have one of these states."""
        return sum(self.counts[state] for state in states)


class _Findings:
    """What a search came to: `found` of each text, the sides, the 13-word `overlap`, what was not read (`unread`), the
    `chance` of so many whole documents or more in a random division from the controls, and the whole texts with a
    `unique` passage where there are no controls."""

    def __init__(self, asked: Searching, whole: searching.ScanPart) -> None:
        self.asked, self.whole, suspect = asked, whole, len(asked.corpus)
        self.found = found = _summarise_texts(whole, asked.folded)
        self.mine = _FoundSide(asked.corpus.texts, found[:suspect])
        self.controls = _FoundSide(asked.heldout.texts, found[suspect:]) if asked.heldout else None
        grams = asked._table.grams if asked.settings.overlap else None
        self.overlap = grams.shares(whole.grams) if grams else np.full(len(found), np.nan)
        self.unread = [one for one in whole.files if one.unread or one.unreadable]
        self.chance: float | None = None
        if other := self.controls:  # Fisher's exact test, one-sided
            from scipy.stats import hypergeom

            both = self.mine.units + other.units, self.mine.whole + other.whole
            self.chance = float(hypergeom.sf(self.mine.whole - 1, *both, self.mine.units))
        self.unique = 0 if self.controls or not self.mine.whole else _count_unique(asked, found)

    @property
    def _outcome(self) -> Literal["found", "absent", "inconclusive"]:
        """Found where whole texts are more than controls, or have passages of their own; absent where all was read."""
        if self.unique > 0 if self.chance is None else self.chance <= LEVEL:
            return "found"
        is_open = self.unread or self.mine.count(*_OWN, "common", "too short")
        return "inconclusive" if is_open else "absent"

    def _verdict(self, seconds: float) -> Verdict:
        """The result, of a search that took so many seconds."""
        asked, mine, controls, corpus = self.asked, self.mine, self.controls, self.asked.corpus
        found = self.found[: len(corpus)]
        usable = [one for one in found if one.state != "too short"]
        coverage = float(np.mean([one.coverage for one in usable]))
        read = self.whole.files
        figures: dict[str, Any] = {"found": {state: mine.counts[state] for state in STATES}}
        if not controls:
            figures["whole texts with a long passage of their own"] = self.unique
        figures |= {
            "mean coverage": coverage,
            "documents read": sum(one.documents for one in read),
            "documents that could not be read": sum(one.unreadable for one in read),
            "files": len(asked.files),
            "bytes": sum(one.bytes for one in read),
        }
        if controls:
            figures |= {
                "control texts found": controls.count(*_OWN),
                "control texts whole": controls.counts["whole"],
                "control texts": controls.counts.total(),
                "p of so many more whole texts than controls": self.chance,
            }
        given = {name: value for name, value in asdict(asked.settings).items() if value not in (None, "")}
        return Verdict(
            test="scan",
            corpus=corpus.name,
            model="",
            outcome=self._outcome,
            **self._words(figures),
            **fill(sentences_of("scan.said"), run=RUN, name=corpus.name, where=asked.name),
            level=0.0,
            exact=True,
            p=None,
            units=len(usable),
            effect=Estimate(coverage, coverage, coverage),
            figures=figures,
            tables=self._tables(),
            skipped=tuple(
                Skipped(text.id, say("scan.skipped", run=RUN), 0)
                for text, one in zip(corpus.texts, found, strict=True)
                if one.state == "too short"
            ),
            statements=statements_of(asked.settings),
            settings={
                "corpus": record_corpus(corpus),
                **({"heldout": record_corpus(asked.heldout)} if asked.heldout else {}),
                "searched": {
                    "sources": list(asked.sources),
                    "files": [asdict(one) for one in asked.files[:1000]],
                    "more files": max(0, len(asked.files) - 1000),
                    "not read": [asdict(one) for one in self.unread[:1000]],
                },
                "test": given,
                "software": record_software(),
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                "timings": {"searching": round(seconds, 3)},
            },
        )

    def _words(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        """The sentences of a search by the fields of its verdict."""
        asked, mine, controls, settings = self.asked, self.mine, self.controls, self.asked.settings
        short = mine.counts["too short"]
        own = _find_own_files(asked.files, asked.corpus.source)
        broken = [one for one in self.unread if one.unread]
        unread = [one.unread or say("scan.unreadable", **asdict(one)) for one in self.unread[:5]]
        is_open, seen = self._outcome == "inconclusive", mine.count(*_OWN, "common")
        answer: str = self._outcome
        if self._outcome == "found" or mine.counts["whole"]:
            answer = f"{'whole' if is_open else 'found'}_{'controls' if controls else 'alone'}"
        elif seen:
            answer = "passages"
        few_controls = controls and mine.whole * controls.units > controls.whole * mine.units

        def counted(*states: State) -> str:
            """How many texts, and how many controls, are in one of these states."""
            sides = {"some": mine.count(*states), "total": mine.counts.total(), "name": asked.corpus.name}
            if controls:
                sides |= {"known": controls.count(*states), "controls": controls.counts.total()}
            return say(f"scan.statement.of_{'both' if controls else 'texts'}", **sides)

        numbers: dict[str, Any] = {
            "whole": counted("whole"), "own": counted(*_OWN), "seen": counted("template", "part", "common"),
            "mine": mine, "controls": controls, "number": len(asked.corpus), "short": short,
            "files": plural(len(asked.files), "file"), "documents": plural(figures["documents read"], "document"),
            "size": figures["bytes"] / 1e6, "where": asked.name, "columns": asked.columns,
            "run": RUN, "unique": _UNIQUE, "many": _MANY,
            "whole_share": WHOLE, "slight": SLIGHT, "common_documents": COMMON, "chance": self.chance,
            "level": LEVEL, "texts_own": first_of([one.address for one in own[:5]], len(own)),
            "unread": first_of(["; ".join(unread)], len(self.unread) - len(unread) + 1),
        }  # fmt: skip

        def chosen(part: str, **holds: object) -> tuple[str, ...]:
            """The sentences of a part that hold, in order."""
            return tuple(say(f"scan.{part}.{kind}", **numbers) for kind, true in holds.items() if true)

        statement = chosen("statement", **{answer: True}, unread=self.unread, short=short)
        return {
            "statement": " ".join(statement),
            "notes": (*asked.corpus.notes, *chosen("notes", read=True)),
            "compared": chosen(
                "compared", files=True, exact=asked.exact, folded=not asked.exact,
                words=settings.near or settings.overlap,
            ),
            "trust": chosen(
                "trust", corpus=True, exact=asked.exact, folded=not asked.exact, common=True,
                no_controls=not controls,
            ),
            "reasons": (
                *chosen("reasons", found=True, short=short, controls=controls, unread=self.unread, own=own),
                *self._word_by_word(),
            ),
            "advice": chosen(
                "advice", files=bool(broken), own=own, controls=seen and not controls,
                more_controls=is_open and few_controls, short=is_open and short, absent=self._outcome == "absent",
            ),
        }  # fmt: skip

    def _word_by_word(self) -> Iterator[str]:
        """What near copies and the overlap of words came to, of the texts and of the control texts."""
        suspect = len(self.asked.corpus)
        for kind, part in (("texts", slice(0, suspect)), ("control texts", slice(suspect, None))):
            near = [one.near for one in self.found[part]] if self.asked.settings.near else []
            able = self.overlap[part][~np.isnan(self.overlap[part])]
            numbers: dict[str, Any] = {"kind": kind, "near": NEAR, "shingle": SHINGLE, "gram": GRAM}
            if near:
                some = {"number": sum(one > 0 for one in near), "texts": len(near), "copies": sum(near)}
                yield say("scan.near", **numbers, **some)
            if len(able):
                some = {"number": int((able > 0).sum()), "texts": len(able), "mean": able.mean()}
                yield say("scan.overlap", **numbers, **some)

    def _passages(self, text: int) -> Iterator[tuple[str, int]]:
        """The first passages of a text as they are written in it, with the documents of each."""
        raw, found, at, most = self.asked.written[text], self.found[text], 0, _MARKED_CHARACTERS
        letters = self.asked.folded.letters(text)
        for last, documents in zip(found.ends.tolist(), found.counts.tolist(), strict=True):
            end = int(letters[last])
            if last == found.characters:
                end = len(raw)
            elif not self.asked.exact:
                end = _written_place(raw[: 8 * most], end)
            said = raw[at:end].decode("utf-8", "ignore")
            yield said[:most], documents
            at, most = end, most - len(said)
            if most <= 0:
                return

    def _tables(self) -> tuple[Table, ...]:
        """The texts, their hits and near copies, and the passages of those that were found most, the worst first."""
        asked, found, texts = self.asked, self.found, self.asked.corpus.texts
        ids = tuple(text.id for text in asked.texts)
        sets = ("texts",) * len(texts) + ("heldout",) * (len(found) - len(texts))
        names = ["characters", "coverage", "single", "common", "longest", "documents", "copies"]
        names += ["near", "jaccard"] if asked.settings.near else []
        numbers = {
            "near copies" if k == "near" else k: np.array([float(getattr(one, k)) for one in found])
            for k in names
        }
        if asked.settings.overlap:
            numbers["13-word overlap"] = self.overlap

        def seen(some: Sequence[searching.Sighting]) -> list[tuple[Any, ...]]:
            """Of each sighting text, set and rank, the amount, and where it is."""
            each = ((i, enumerate(mine, 1)) for i, mine in groupby(some, itemgetter(0)))
            return [(ids[i], sets[i], rank, *one[1:]) for i, mine in each for rank, one in mine]

        states = tuple(one.state for one in found)
        order = sorted(
            range(len(texts)), key=lambda i: (STATES.index(states[i]), -found[i].single, -found[i].own, i)
        )
        marked = [
            (texts[i].id, states[i], passage, documents)
            for i in order[:_MARKED]
            if found[i].coverage
            for passage, documents in self._passages(i)
        ]
        place = ("file", "document", "document id", "url", "date")
        hits = [(*row[:3], *row[4:], row[3]) for row in seen(self.whole.best)]
        tables = (
            Table("texts", {"id": ids, "set": sets, "found": states, **numbers}),
            _table("hits", ("id", "set", "rank", *place, "bytes"), hits),
            _table("marked", ("id", "found", "passage", "documents"), marked),
            _table("near", ("id", "set", "rank", "jaccard", *place), seen(self.whole.nearest)),
        )
        return tables if asked.settings.near else tables[:-1]


def _count_unique(asked: Searching, found: Sequence[_FoundText]) -> int:
    """Whole texts with a long stretch of characters that no document holds but those that hold the whole text, which
    are few, and no other text of the collection."""
    search = searching.FileSearch(asked._table)
    for stream in streams_of([Strings.of(asked.written)], exact=asked.exact):
        search.add(stream, lambda _: ("", "", ""))
    number, own = 0, _summarise_texts(search.part(FileFacts("")), asked.folded)
    for one, beside in zip(found, own, strict=True):  # there are no controls
        if one.state == "whole" and one.copies <= _FEW:
            there, others = (np.repeat(two.counts, two.ends - two.starts) for two in (one, beside))
            alone = (there > 0) & (there <= one.copies) & (others <= 1)
            edges = np.flatnonzero(np.diff(alone, prepend=False, append=False))
            number += bool((edges[1::2] - edges[::2] >= _UNIQUE).any())
    return number


_NUMBERS = frozenset(("rank", "document", "documents", "bytes", "jaccard"))


def _table(name: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Table:
    """Rows as a table; the columns of `_NUMBERS` are float64."""
    cells = {column: tuple(row[i] for row in rows) for i, column in enumerate(columns)}
    return Table(name, {k: np.array(v, dtype=np.float64) if k in _NUMBERS else v for k, v in cells.items()})
