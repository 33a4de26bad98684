"""A run, an audit, a flagging, another verdict or runs side by side with the report, written and read as one folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pretrace.results import audit as audits
from pretrace.results import export as exported
from pretrace.results import flags, side_by_side, verdicts
from pretrace.results import run as runs
from pretrace.results.folder import Kind, Render, Write, seal_of
from pretrace.results.output_checks import (
    COMPARISON,
    FLAGS,
    MARKER,
    RESULT,
    VERDICT,
    OutputFile,
    check_file,
    recorded_files,
)
from pretrace.results.serialization import from_json
from pretrace.types import Audit, Flagged, Run, SideBySide, Verdict

Result = Run | Audit | Flagged | Verdict | SideBySide
_KINDS = {
    VERDICT: audits.AUDIT,
    RESULT: verdicts.VERDICTS,
    FLAGS: flags.FLAGGING,
    COMPARISON: side_by_side.COMPARISONS,
    MARKER: runs.RUN,
}
_LOADERS: dict[str, Callable[[Path], Result]] = {
    VERDICT: audits.load_audit,
    RESULT: verdicts.load_verdict,
    FLAGS: flags.load_flags,
    COMPARISON: side_by_side.load_side_by_side,
    MARKER: runs.load_run,
}

REPORT = "report.html"


def save(result: Result, folder: str | Path) -> None:
    """Write tables, figures and report to `folder`, whole or not at all, in place of an earlier result there.

    Raises OutputError where nothing can be written, or where `folder` holds something else.
    """
    place, rendered = Path(folder), _rendered(result)
    if isinstance(result, Run):
        runs.save_run(result, place, rendered=rendered)
    elif isinstance(result, Audit):
        audits.save_audit(result, place, rendered=rendered)
    elif isinstance(result, Verdict):
        verdicts.save_verdict(result, place, rendered=rendered)
    elif isinstance(result, SideBySide):
        side_by_side.save_side_by_side(result, place, rendered=rendered)
    else:
        flags.save_flags(result, place, rendered=rendered)


def load(folder: str | Path) -> Result:
    """The run, audit, flagging, verdict or comparison that `save` wrote to `folder`, to the last bit.

    Raises OutputError, naming the file, where the folder holds none, where a file is damaged or was changed, or where
    a newer pretrace wrote it.
    """
    place = Path(folder)
    return _LOADERS[kind_of(place).marker](place)


def kind_of(folder: Path) -> Kind:
    """What kind of result lies in a folder, by its JSON part; that of a run where there is none."""
    return next((kind for marker, kind in _KINDS.items() if (folder / marker).exists()), runs.RUN)


def render(folder: str | Path) -> Path:
    """The report of the result in `folder`, made anew in its place; errors as in `load` and `save`."""
    result, place = load(folder), Path(folder)
    check_file(place / REPORT, OutputFile("report", lambda path: path.name in recorded_files(place)))
    _rendered(result)[REPORT](place / REPORT, seal_of(kind_of(place), place))
    return place / REPORT


def report_of(folder: str | Path) -> str:
    """The report of the result in `folder` as it would be made now, which is not written; errors as in `load`."""
    result, place = load(folder), Path(folder)
    return str(_report_of(result).render(result, seal=seal_of(kind_of(place), place)))


def export(folder: str | Path, file: str | Path) -> None:
    """Write the result in `folder` to `file`, an SQLite database, in place of an earlier file there; of a large run all
    rows, not its sample. OutputError where the folder holds no result, or where the file cannot be written."""
    place, result = Path(folder), load(folder)
    content = from_json((place / kind_of(place).marker).read_bytes())
    exported.export(result, content, place, Path(file))


def save_run(run: Run, folder: str | Path, *, beside: Write | None = None) -> None:
    """`save`, for a run; `beside` may add files to the folder, or write its tables anew, before the report."""
    runs.save_run(run, Path(folder), extra=beside, rendered=_rendered(run))


def scan(folder: str | Path) -> Any:
    """All rows of a run as a `pyarrow.dataset.Dataset`, which reads them as they are wanted: of a large run the whole
    table and not the sample. Of a large flagging all texts in question. OutputError where the folder holds neither."""
    from pyarrow import dataset

    place, whole = Path(folder), None
    if (place / FLAGS).exists():
        whole = load_flags(folder).whole
    if whole is not None:
        names = list(whole.parts)
    else:
        run = load_run(folder)
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


def save_flags(flagged: Flagged, folder: str | Path, *, beside: Mapping[str, Write] | None = None) -> None:
    """`save`, for a flagging; `beside` writes further tables, by their names in the folder."""
    flags.save_flags(flagged, Path(folder), beside=beside, rendered=_rendered(flagged))


def load_flags(folder: str | Path) -> Flagged:
    """`load`, where nothing but a flagging will do."""
    return flags.load_flags(Path(folder))


def save_verdict(verdict: Verdict, folder: str | Path) -> None:
    """`save`, for a verdict of a test that needs no earlier checkpoint."""
    save(verdict, folder)


def load_verdict(folder: str | Path) -> Verdict:
    """`load`, where nothing but such a verdict will do."""
    return verdicts.load_verdict(Path(folder))


def _rendered(result: Result) -> dict[str, Render]:
    """What is made from a result beside its tables: the report, by the name of its file."""
    return {REPORT: lambda path, seal: _report_of(result).write(result, path, seal=seal)}


def _report_of(result: Result) -> Any:
    """The module that makes the report of such a result."""
    import pretrace.report.audit as audit_report
    import pretrace.report.flags as flags_report
    import pretrace.report.run as run_report
    import pretrace.report.side_by_side as comparison_report
    import pretrace.report.verdict as verdict_report

    if isinstance(result, Run):
        return run_report
    if isinstance(result, Audit):
        return audit_report
    if isinstance(result, SideBySide):
        return comparison_report
    return verdict_report if isinstance(result, Verdict) else flags_report
