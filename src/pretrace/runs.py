"""A run, an audit, a flagging, another verdict or runs side by side with the report, written and read as one folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pretrace.results import audit as audits
from pretrace.results import export as exported
from pretrace.results import flags, side_by_side, verdicts
from pretrace.results import run as runs
from pretrace.results.folder import Write
from pretrace.results.output_checks import COMPARISON, FLAGS, MARKER, RESULT, VERDICT
from pretrace.results.serialization import from_json
from pretrace.types import Audit, Flagged, Run, SideBySide, Verdict

Result = Run | Audit | Flagged | Verdict | SideBySide

REPORT = "report.html"


def save(result: Result, folder: str | Path) -> None:
    """Write tables, figures and report to `folder`, whole or not at all, in place of an earlier result there.

    Raises OutputError where nothing can be written, or where `folder` holds something else.
    """
    place, write_report = Path(folder), _reporter(result)
    if isinstance(result, Run):
        runs.save_run(result, place, extra=write_report)
    elif isinstance(result, Audit):
        audits.save_audit(result, place, extra=write_report)
    elif isinstance(result, Verdict):
        verdicts.save_verdict(result, place, extra=write_report)
    elif isinstance(result, SideBySide):
        side_by_side.save_side_by_side(result, place, extra=write_report)
    else:
        flags.save_flags(result, place, extra=write_report)


def load(folder: str | Path) -> Result:
    """The run, audit, flagging, verdict or comparison that `save` wrote to `folder`, to the last bit.

    Raises OutputError, naming the file, where the folder holds none, where a file is damaged or was changed, or where
    a newer pretrace wrote it.
    """
    place = Path(folder)
    if (place / VERDICT).exists():
        return audits.load_audit(place)
    if (place / RESULT).exists():
        return verdicts.load_verdict(place)
    if (place / COMPARISON).exists():
        return side_by_side.load_side_by_side(place)
    return flags.load_flags(place) if (place / FLAGS).exists() else runs.load_run(place)


def render(folder: str | Path) -> Path:
    """The report of the result in `folder`, made anew in its place; errors as in `load` and `save`."""
    _reporter(load(folder))(Path(folder))
    return Path(folder) / REPORT


def export(folder: str | Path, file: str | Path) -> None:
    """Write the result in `folder` to `file`, an SQLite database, in place of an earlier file there; of a large run all
    rows, not its sample. OutputError where the folder holds no result, or where the file cannot be written."""
    place, result = Path(folder), load(folder)
    content = from_json((place / _marker(place)).read_bytes())
    exported.export(result, content, place, Path(file))


def save_run(run: Run, folder: str | Path, *, beside: Write | None = None) -> None:
    """`save`, for a run; `beside` may add files to the folder, or write its tables anew, before the report."""
    write_report = _reporter(run)

    def extra(partial: Path) -> None:
        if beside is not None:
            beside(partial)
        write_report(partial)

    runs.save_run(run, Path(folder), extra=extra)


def scan(folder: str | Path) -> Any:
    """All rows of a run as a `pyarrow.dataset.Dataset`, which reads them as they are wanted: of a large run the whole
    table and not the sample. OutputError where the folder holds no run."""
    from pyarrow import dataset

    place, run = Path(folder), load_run(folder)
    names = [part.name for part in run.whole.parts] if run.whole else [runs.SCORES]
    return dataset.dataset([str(place / name) for name in names], format="parquet")


def load_run(folder: str | Path) -> Run:
    """`load`, where nothing but a run will do."""
    return runs.load_run(Path(folder))


def save_audit(audit: Audit, folder: str | Path) -> None:
    """`save`, for an audit."""
    save(audit, folder)


def load_audit(folder: str | Path) -> Audit:
    """`load`, where nothing but an audit will do."""
    return audits.load_audit(Path(folder))


def save_flags(flagged: Flagged, folder: str | Path) -> None:
    """`save`, for a flagging."""
    save(flagged, folder)


def load_flags(folder: str | Path) -> Flagged:
    """`load`, where nothing but a flagging will do."""
    return flags.load_flags(Path(folder))


def save_verdict(verdict: Verdict, folder: str | Path) -> None:
    """`save`, for a verdict of a test that needs no earlier checkpoint."""
    save(verdict, folder)


def load_verdict(folder: str | Path) -> Verdict:
    """`load`, where nothing but such a verdict will do."""
    return verdicts.load_verdict(Path(folder))


def _marker(folder: Path) -> str:
    """The JSON part of the result in a folder; that of a run where there is no other."""
    others = (VERDICT, RESULT, COMPARISON, FLAGS)
    return next((marker for marker in others if (folder / marker).exists()), MARKER)


def _reporter(result: Result) -> Callable[[Path], None]:
    """What writes the report of a result into a folder."""
    import pretrace.report.audit as audit_report
    import pretrace.report.flags as flags_report
    import pretrace.report.run as run_report
    import pretrace.report.side_by_side as comparison_report
    import pretrace.report.verdict as verdict_report

    if isinstance(result, Run):
        return lambda folder: run_report.write(result, folder / REPORT)
    if isinstance(result, Audit):
        return lambda folder: audit_report.write(result, folder / REPORT)
    if isinstance(result, Verdict):
        return lambda folder: verdict_report.write(result, folder / REPORT)
    if isinstance(result, SideBySide):
        return lambda folder: comparison_report.write(result, folder / REPORT)
    return lambda folder: flags_report.write(result, folder / REPORT)
