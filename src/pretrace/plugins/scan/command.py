"""`pretrace scan`: are these texts in this corpus? Plan or search, write, print."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pretrace.cli import note
from pretrace.cli.commands import RawOptions, Reply, output_option
from pretrace.cli.telling import Activity, shown, write_verdict
from pretrace.corpora import open_corpus
from pretrace.corpora.opening import Source
from pretrace.errors import ExpressionError
from pretrace.plugins.scan.scan import ScanSettings, Searching, delete_parts, plan_scan
from pretrace.plugins.scan.scan import scan as search
from pretrace.plugins.scan.searching import RUN
from pretrace.registry import require
from pretrace.results.atomic import check_writable
from pretrace.results.wording import duration, say
from pretrace.runs import VERDICTS
from pretrace.scoring.parts import EngineSettings
from pretrace.settings import TEXTS, option
from pretrace.types import COMPARED, Corpus
from pretrace.verdicts.settings import input_option


@dataclass(frozen=True, slots=True, kw_only=True)
class _Searched:
    """Which corpus is searched, for which control texts, and where the result goes."""

    corpus: tuple[str, ...] = input_option(
        (),
        "What is searched: a .jsonl, .parquet, .txt, .warc or .wet file (also .gz, .zst), a folder, a pattern, or an "
        "address such as hf://datasets/NAME or s3://BUCKET. May be given more than once.",
        panel=TEXTS,
    )
    controls: str | None = input_option(
        None,
        "Control texts of the same kind, searched for in the same pass: what is found of them too is common.",
        panel=COMPARED,
    )
    plan: bool = option(
        False, "Say what would be read and how long it takes, and stop.", panel=TEXTS, essential=True
    )
    engine: EngineSettings = field(default_factory=EngineSettings)
    out: Path | None = output_option(
        None,
        "Folder for report.html, result.json, texts.csv and hits.csv; an earlier scan there is replaced.",
        panel=TEXTS,
    )


def scan(source: Source, searched: _Searched, settings: ScanSettings, given: RawOptions) -> Reply:
    """Are these texts in this corpus? Reads the corpus once and finds every passage of 50 or more characters that it
    shares with a text. Exit code 3 when a text was found, 0 when none stands in all that was read, 4 when not all could
    be read."""
    require(bool(searched.corpus), say("scan.refused.no_corpus"))
    require(searched.plan or searched.out is not None, say("scan.refused.no_out"))
    if searched.out is not None:
        check_writable(searched.out, VERDICTS.of("scan"))
    if searched.engine.on_ray and settings.shard:
        raise ExpressionError(say("cluster.both"))
    columns = replace(source.with_text_column(note).columns, label=source.columns.label or "")
    corpus = replace(source, columns=columns).open()
    heldout = open_corpus(searched.controls, columns.of_another) if searched.controls else None
    asked = Searching(corpus, heldout, searched.corpus, settings)
    if searched.plan or searched.out is None:
        words, plan = plan_scan(asked)
        return Reply([words], outcome="plan", statement=words, own={"plan": plan})
    parts = searched.out.parent / f"{searched.out.name}.parts"
    with _shown() as watch, searched.engine.spread(settings.workers) as elsewhere:
        found = search(asked, parts, watch=watch, elsewhere=elsewhere)
    if found is None:
        words = (
            f"This part was read. Other parts are missing in {parts}: run them, then once without --shard."
        )
        return Reply([words], outcome="part", statement=words)
    answer = write_verdict(found, searched.out, given, checked=False)
    if not found.settings["searched"]["not read"]:
        delete_parts(parts)
    return answer


@contextmanager
def _shown() -> Iterator[Callable[[int, int, int, int], None]]:
    """Show the progress of a search, which is told files read, of how many, and bytes read, of how many."""
    seen = list[tuple[int, int, int, int]]()  # the first and the last

    def line() -> str:
        if not seen:
            return ""
        files, of, read, size = seen[-1]
        speed = max(1.0, (read - seen[0][2]) / max(1e-9, time.monotonic() - activity.since))
        done = f"searched {read / 1e6:,.0f} of {size / 1e6:,.0f} MB ({files:,} of {of:,} files)"
        return f"{done}, {speed / 1e6:,.0f} MB/s, {duration(max(0, size - read) / speed)} left"

    def note_read(files: int, of: int, read: int, size: int) -> None:
        seen[1:] = [(files, of, read, size)]

    with shown(Activity("opening the corpus", line)) as activity:
        yield note_read


def foresee(corpus: Corpus, searched: tuple[str, ...]) -> tuple[str, str]:
    """What a search of these texts would find, and what it costs, in words."""
    words, _ = plan_scan(Searching(corpus, None, searched, ScanSettings()))
    return f"certain for every passage of {RUN} characters or more.", words
