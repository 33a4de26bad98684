"""The results of a workspace: a list with filters, one beside another, their files, and whether they are as written."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pretrace import runs
from pretrace.errors import OutputError
from pretrace.report import wording
from pretrace.report.facts import mapping
from pretrace.results.output_checks import FILES_KEY, MARKER
from pretrace.types import Run, Verdict
from pretrace.verification import verify_folder
from pretrace.web.workspace import Workspace, inside, read

OUTCOMES: Mapping[str, str] = {
    "consistent": "consistent with training",
    "nothing": "nothing shown",
    "inconclusive": "inconclusive",
    "found": "found in a corpus",
    "absent": "not in a corpus",
    "flagged": "texts flagged",
    "set": "the set stands out",
    "none": "nothing stands out",
    "missed": "could have been missed",
    "refused": "refused",
    "scored": "scored",
    "evaluated": "evaluated",
}


@dataclass(frozen=True, slots=True)
class ResultEntry:
    """One result in the list: its folder's name, what it is, of which texts and model, and how it ended."""

    name: str
    kind: str
    corpus: str
    model: str
    outcome: str
    statement: str
    at: float
    report: bool

    @property
    def words(self) -> str:
        """The outcome in words."""
        return OUTCOMES.get(self.outcome, self.outcome)


@dataclass(frozen=True, slots=True)
class IntegrityMark:
    """Whether a result is as it was written, and a sentence that says so."""

    sound: bool
    words: str


def entries(workspace: Workspace) -> list[ResultEntry]:
    """All results, the latest first."""
    found = [entry for place in workspace.room("results").iterdir() if (entry := _entry(place))]
    return sorted(found, key=lambda one: one.at, reverse=True)


def chosen(all_of_them: Sequence[ResultEntry], kind: str, name: str, outcome: str) -> list[ResultEntry]:
    """The entries of a kind and outcome whose name, texts or model hold some words; empty filters let all pass."""
    words = name.lower().split()
    return [
        one
        for one in all_of_them
        if (not kind or one.kind == kind)
        and (not outcome or one.outcome == outcome)
        and all(word in f"{one.name} {one.corpus} {one.model}".lower() for word in words)
    ]


def result_folder(workspace: Workspace, name: str) -> Path:
    """The folder of a result; RequestError (404) where there is none."""
    return inside(workspace.room("results"), name)


def _entry(place: Path) -> ResultEntry | None:
    if place.is_symlink() or place.name.startswith(
        "."
    ):  # what lies elsewhere, or is being written, is not shown
        return None
    for marker in runs.MARKERS:
        path = place / marker
        if path.is_file():
            return _read_entry(place, marker, path.stat().st_mtime_ns)
    return None


@lru_cache(maxsize=4096)
def _read_entry(place: Path, marker: str, changed: int) -> ResultEntry:
    facts, report = read(place / marker), (place / runs.REPORT).is_file()
    kind = runs.kind_of(place).name
    if kind == "test result":
        kind = str(facts.get("test", "test"))
    model = str(facts.get("model") or "")
    outcome = str(facts.get("outcome") or "")
    statement = str(facts.get("statement") or "")
    if marker == MARKER:
        models = mapping(mapping(facts.get("settings")).get("models"))
        model = str(mapping(models.get("target")).get("name") or "")
        outcome = "evaluated" if "metrics.json" in mapping(facts.get(FILES_KEY)) else "scored"
        number = mapping(facts.get("counts")).get("texts", 0)
        scores = facts.get("scores")
        many = len(scores) if isinstance(scores, list) else 0
        if isinstance(number, int):
            statement = f"{wording.plural(number, 'text')}, {wording.plural(many, 'score')}."
    return ResultEntry(
        place.name, kind, str(facts.get("corpus") or ""), model, outcome, statement, changed / 1e9, report
    )


def verified(folder: Path) -> IntegrityMark:
    """Whether a result is what was written: its files, its JSON part and its report. The one place that asks."""
    try:
        found = verify_folder(folder)
    except OutputError as error:
        return IntegrityMark(False, str(error).replace(f"{folder.parent}/", ""))
    wrong = "; ".join(one.words for one in found.checks if one.state == "no")
    if wrong:
        return IntegrityMark(False, f"{wrong.replace(f'{folder.parent}/', '')}. Make the result again.")
    return IntegrityMark(
        True, "Every file with a recorded hash is as it was written, and the report is what the tables give."
    )


def files(folder: Path) -> list[tuple[str, int]]:
    """The files of a result for download, with their sizes; what has a page of its own is not among them."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    names = ((path.relative_to(folder).as_posix(), path.stat().st_size) for path in found)
    return [(name, size) for name, size in names if name not in (runs.REPORT, runs.APPENDIX)]


def packed(folder: Path) -> Iterator[bytes]:
    """The files of a result as a zip, piece by piece; it is written beside and never lies in the workspace."""
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file() and not path.is_symlink():
                    archive.write(path, f"{folder.name}/{path.relative_to(folder).as_posix()}")
        file.seek(0)
        while piece := file.read(1 << 20):
            yield piece


def marker_hash(folder: Path) -> str:
    """The SHA-256 of the JSON part of a result, to be written down elsewhere."""
    for marker in runs.MARKERS:
        if (folder / marker).is_file():
            return hashlib.sha256((folder / marker).read_bytes()).hexdigest()
    return ""


def figures(found: object) -> dict[str, str]:
    """What a result found, name by name, in words and numbers."""
    if isinstance(found, Run):
        return dict(_of_run(found))
    return dict(_of_verdict(found)) if isinstance(found, Verdict) else {}


def _of_run(run: Run) -> Iterator[tuple[str, str]]:
    yield "Texts", wording.count(run.whole.texts if run.whole else len(run.ids))
    if run.evaluation is None:
        for score in run.scores:
            low, _, middle, _, high = run.quartiles(score)
            spread = f"{wording.significant(low)} to {wording.significant(high)}"
            yield f"{score}: median, range", f"{wording.significant(middle)} ({spread})"
        return
    for row in run.evaluation.rows:
        named = {"score": row.name, "blind": f"{row.name} (never saw the model)"}
        name = named.get(row.kind, f"{row.name} ({row.kind})")
        yield f"AUC: {name}", f"{wording.fixed(row.auc.value)} {wording.interval(row.auc)}"
        if row.kind == "score":
            yield f"TPR at 5% FPR: {name}", f"{wording.fixed(row.tpr.value)} {wording.interval(row.tpr)}"


def _of_verdict(verdict: Verdict) -> Iterator[tuple[str, str]]:
    yield "Outcome", OUTCOMES[verdict.outcome]
    yield "Statement", verdict.statement
    if verdict.test == "flag":
        counts = verdict.figures["counts"]
        yield "Score", verdict.figures["score"]
        known = wording.count(counts["known_documents"])
        yield "Documents", f"{wording.count(counts['documents'])}, known {known}"
        yield "Flagged documents", wording.count(counts["flagged_documents"])
        if verdict.p is not None:
            yield "p of the whole set", wording.p_value(verdict.p)
    else:
        if verdict.p is not None:
            yield "p", wording.p_value(verdict.p)
        controls = f", controls {wording.count(verdict.situation.unseen)}" if verdict.test == "audit" else ""
        yield f"{verdict.unit.capitalize()}s", f"{wording.count(verdict.units)}{controls}"
    if verdict.effect is not None:
        effect, spread = wording.effect(verdict.effect)
        yield "Effect", f"{effect} {spread} {verdict.effect_unit}".strip()
    yield from ((f"Check: {check.title}", check.status) for check in verdict.checks)
