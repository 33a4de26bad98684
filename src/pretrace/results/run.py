"""Runs on disk: a folder of tables and JSON that is there whole or not at all.

`run.json` comes last into the folder and holds the SHA-256 of every other file, so that a damaged file, or
one of another run, is noticed when the run is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pretrace.errors import OutputError
from pretrace.results import encoding, plain, tables
from pretrace.results.atomic import new_folder
from pretrace.results.output_checks import FILES_KEY, FORMAT_KEY, MARKER
from pretrace.types import Control, Evaluation, Run

T = TypeVar("T")

FORMAT = 1
SCORES, METRICS, HEAT, CONTROLS = "scores.parquet", "metrics.json", "heat.json", "controls.parquet"


def save_run(run: Run, folder: Path, *, extra: Callable[[Path], object] | None = None) -> None:
    """Write a run to `folder`, in place of an earlier run there; on failure nothing has changed.

    `extra` may add files (a report) to the folder before it takes its place. Raises TypeError or
    ValueError where the run holds what cannot be written, OutputError where `folder` cannot be.
    """
    settings = encoding.plain_settings(run.settings)
    tables.check_rows(run)
    with new_folder(folder) as partial:
        tables.write_parquet(run, partial / SCORES)
        tables.write_csv(run, partial / "scores.csv")
        if run.controls:
            tables.write_controls(run, partial / CONTROLS)
        tables.write_skipped(run.skipped, partial / "skipped.csv")
        tables.write_cut(run, partial / "cut.csv")
        if run.evaluation is not None:
            metrics = plain.to_plain(run.evaluation, "evaluation")
            (partial / METRICS).write_bytes(encoding.to_json(metrics))
        if run.heat:
            (partial / HEAT).write_bytes(encoding.to_json(encoding.heat_to_plain(run.heat)))
        if extra is not None:
            extra(partial)
        facts = _facts(run, settings, _hashes(partial))
        (partial / MARKER).write_bytes(encoding.to_json(facts))


def load_run(folder: Path) -> Run:
    """The run that `save_run` wrote to `folder`, to the last bit.

    Raises OutputError, naming the file, where `folder` is not a run, is damaged, or was written by a
    newer pretrace.
    """
    facts = _read(folder, MARKER, encoding.from_json)
    _check_format(folder, facts)
    return _damage_named(folder, MARKER, lambda: _load(folder, facts))


def _load(folder: Path, facts: Mapping[str, Any]) -> Run:
    hashes: dict[str, Any] = encoding.expect(facts[FILES_KEY], dict)
    scores = tuple(encoding.expect(score, str) for score in encoding.expect(facts["scores"], list))

    def part(name: str, parse: Callable[[bytes], T]) -> T:
        return _read(folder, name, parse, checksum=str(hashes[name]))

    rows = part(SCORES, lambda content: tables.read_parquet(content, scores))
    heat = part(HEAT, lambda c: encoding.heat_from_plain(encoding.from_json(c))) if HEAT in hashes else ()
    evaluation = part(METRICS, _evaluation) if METRICS in hashes else None
    controls: tuple[Control, ...] = ()
    if "controls" in facts:  # not in runs without, nor in those from before there were any
        outline = encoding.expect(facts["controls"], list)
        controls = part(CONTROLS, lambda content: tables.read_controls(content, outline))
    if any(len(control.values) != len(rows.ids) for control in controls):
        raise ValueError("the controls have another number of rows than the scores")
    return Run(
        corpus=encoding.expect(facts["corpus"], str),
        scores=scores,
        skipped=encoding.skipped_from_plain(facts["skipped"]),
        heat=heat,
        evaluation=evaluation,
        controls=controls,
        settings=encoding.expect(facts["settings"], dict),
        **rows._asdict(),
    )


def _evaluation(content: bytes) -> Evaluation:
    # Fields that an earlier pretrace did not write (comparisons, survives) are at their defaults.
    return plain.from_plain(Evaluation, encoding.from_json(content), "evaluation")


def _facts(run: Run, settings: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    counts = {
        "texts": len(run.ids),
        "members": sum(member is True for member in run.members),
        "nonmembers": sum(member is False for member in run.members),
        "unlabelled": sum(member is None for member in run.members),
        "groups": len({group or id for group, id in zip(run.groups, run.ids, strict=True)}),
        "skipped": len(run.skipped),
        "tokens": int(run.tokens.sum(dtype="int64")),
        "cut_texts": int((run.cut > 0).sum()),
        "cut_tokens": int(run.cut.sum(dtype="int64")),
    }
    controls = {"controls": tables.outline_controls(run)} if run.controls else {}
    return {
        FORMAT_KEY: FORMAT,
        "corpus": run.corpus,
        "scores": list(run.scores),
        **controls,
        "counts": counts,
        "settings": settings,
        "skipped": encoding.skipped_to_plain(run.skipped),
        FILES_KEY: files,
    }


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _sha256(path) for path in files}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_format(folder: Path, facts: Mapping[str, Any]) -> None:
    found = facts.get(FORMAT_KEY)
    if not isinstance(found, int):
        raise OutputError(f"{folder} is not a pretrace run: its {MARKER} was written by something else.")
    if found > FORMAT:
        raise OutputError(
            f"{folder} was written by a newer pretrace (format {found}, this one reads {FORMAT}): upgrade."
        )


def _read(folder: Path, name: str, parse: Callable[[bytes], T], *, checksum: str | None = None) -> T:
    path = folder / name
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        found = "there is no such folder" if not folder.exists() else f"there is no {name} in it"
        raise OutputError(
            f"{folder} is not a pretrace run: {found}; give a folder that --out wrote."
        ) from None
    except OSError as error:
        raise OutputError(f"{path} cannot be read: {error.strerror or error}.") from error
    if checksum is not None and hashlib.sha256(content).hexdigest() != checksum:
        raise OutputError(
            f"{path} is damaged, was changed or belongs to another run; run the detection again."
        )
    return _damage_named(folder, name, lambda: parse(content))


def _damage_named(folder: Path, name: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise OutputError(
            f"{folder} is not a pretrace run: its {name} is damaged ({error}); run the detection again."
        ) from error
