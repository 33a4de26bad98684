"""What commands found: written to its folder, and said on standard output, plain enough to read without colour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table

from pretrace.cli.commands import CANNOT_ANSWER, Reply, plain_table, prose
from pretrace.report.tables import NAMES
from pretrace.results.wording import bracketed, first_of, percent, plural
from pretrace.runs import REPORT, kind_of_test, save
from pretrace.types import Run, Verdict
from pretrace.verdicts.outcome import EXIT_CODES

if TYPE_CHECKING:
    from pretrace.scoring.outlook import Workload


_PREVIEW, _COLUMNS = 10, 4
_FIGURES = ("level", "p", "effect", "units", "unit")
_MEASURED = ("name", "kind", "auc", "tpr", "accuracy", "texts")


def write_run(run: Run, out: Path, **more: Any) -> Reply:
    """Write a run, with `more` files; what it found and where it lies. The answer has its JSON part (`result`), and the
    figures that matter most (`figures`)."""
    found = run.evaluation
    table, findings = (measured(run), found.findings) if found else (_preview(run), ())
    content = save(run, out, **more)
    figures: dict[str, Any] = {"counts": content["counts"]}
    if found:
        rows = [{name: getattr(row, name) for name in _MEASURED} for row in found.rows]
        figures |= {"rows": rows, "findings": findings}
    told = map(prose, (*(f"- {one}" for one in findings), *_losses(run)))
    return Reply(
        [table, *told, f"Report: {out / REPORT}"],
        statement=findings[0] if found else f"Texts scored: {content['counts']['texts']:,}.",
        folder=out,
        report=out / REPORT,
        own={"kind": "run", "figures": figures, "result": content},
    )


def write_verdict(
    found: Verdict,
    out: Path,
    given: Mapping[str, Any],
    *shown: RenderableType,
    checked: bool = True,
    **more: Any,
) -> Reply:
    """Write a verdict, with the options that were `given` and `more` files; what the test found: the statement, its
    reasons, what else is `shown`, the checks if they are to be listed, what would help, and where the report lies."""
    reasons = [f"- {one}" for one in (*found.reasons, *(_effects(found) if checked else ()))]
    listed = reasons if found.test == "scan" else map(prose, reasons)  # a search may name a file
    said: list[RenderableType] = [prose(found.statement, "bold"), *listed, *shown]
    if checked and found.checks:
        table = plain_table("check", "", rows=[(one.title, one.status) for one in found.checks])
        table.columns[1].no_wrap = True
        said.append(table)
    said += map(prose, found.register[:1] if checked else ())
    said += [f"Report: {out / REPORT}", *closing(found)]
    content = save(with_command(found, given), out, **more)
    main = {name: content[name] for name in _FIGURES if content.get(name) is not None}
    kind, figures = kind_of_test(found.test).name, {**main, **content["figures"]}
    return Reply(
        said,
        outcome=found.outcome,
        code=content["exit_code"],
        statement=found.statement,
        folder=out,
        report=out / REPORT,
        verdict=found,
        own={"kind": kind, "figures": figures, "result": content},
    )


def with_command(verdict: Verdict, given: Mapping[str, Any]) -> Verdict:
    """The verdict with the options that its command was given."""
    return replace(verdict, settings={**verdict.settings, "command": dict(given)})


def closing(found: Verdict) -> Iterator[str]:
    """The last lines below a verdict: why it has no answer, where it has none, and what would help."""
    if EXIT_CODES[found.outcome] == CANNOT_ANSWER:
        own = [one for one in found.reasons if one not in found.register]
        failed = tuple(
            f"{check.title}: this check failed." for check in found.checks if check.status == "failed"
        )
        else_ = found.statement if found.test in ("flag", "samples") or not own else own[-1]
        yield f"Why there is no answer: {next((one for one in own if failed and one.startswith(failed)), else_)}"
    for advice in found.advice:
        yield f"What would help: {advice}"


def _effects(found: Verdict) -> Iterator[str]:
    """The effect, and what training moved a copy by, in the unit of the score; page one of the report has neither."""
    planted = found.planted and found.planted.effect
    for words, one in (("The effect is", found.effect), ("Training moved the copy by", planted)):
        if one:
            yield f"{words} {one.value:.4f} {found.effect_unit} [{one.low:.4f}, {one.high:.4f}]."


def foretold(work: Sequence[Workload], *more: str) -> Reply:
    """What a run would ask of each model, with `more` lines."""
    first = "Dry run: no text went through a model."
    said, own = [first, *(one.line for one in work), *more], {"work": [asdict(one) for one in work]}
    return Reply(said, outcome="dry run", statement=first, own=own)


def measured(run: Run) -> Table:
    """Each score and control with its figures and 95% intervals."""
    assert run.evaluation is not None
    texts = _texts_of(run)
    rows = []
    for row in run.evaluation.rows:
        rests = f" ({row.texts:,} texts)" if row.texts is not None and row.texts < texts else ""
        name = NAMES.get(row.kind, "{}").format(row.name)
        rows.append((name + rests, *map(bracketed, (row.auc, row.tpr, row.accuracy))))
    title = f"{run.corpus}: {texts} texts, {run.evaluation.groups} documents; 95% intervals"
    figures = "AUC", "TPR at 5% FPR", "accuracy"  # narrow: it must fit in 80 columns
    return plain_table("score", numbers=figures, rows=rows, title=prose(title))


def _preview(run: Run) -> Table:
    """The texts that are the highest in the first score, with the first of their scores."""
    names, rows = run.scores[:_COLUMNS], []
    for i in (-run.matrix[:, 0]).argsort(kind="stable")[:_PREVIEW]:
        values = ("–" if one != one else f"{one:.4g}" for one in run.matrix[i, :_COLUMNS])
        rows.append((run.ids[i], str(run.tokens[i]), *values))
    more = len(run.scores[_COLUMNS:])
    caption = f"{plural(more, 'more score')} in {'scores/' if run.whole else 'scores.csv'}" if more else ""
    title = prose(f"{run.corpus}: {plural(_texts_of(run), 'text')}, the highest by {run.scores[0]}")
    table = plain_table("id", numbers=("tokens", *names), rows=rows, caption=caption, title=title)
    for column in table.columns[2:]:
        column.no_wrap, column.overflow = False, "fold"
    return table


def _losses(run: Run) -> Iterator[str]:
    """Lines on what was not scored and what was cut, so that nothing is lost in silence."""
    whole = run.whole
    if number := whole.skipped if whole else len(run.skipped):
        names = first_of([f"{s.id!r} ({s.reason})" for s in run.skipped[:3]], number)
        yield f"Not scored: {plural(number, 'text')}: {names}; all in skipped.csv."
    if run.missing:
        one, texts = run.missing[0], whole.lacking if whole else len({one.id for one in run.missing})
        yield (
            f"Without a value of some score: {plural(texts, 'text')}, such as {one.id!r} of {one.score} "
            f"({one.reason}); all in missing.csv."
        )
    cut, dropped, tokens = int((run.cut > 0).sum()), int(run.cut.sum()), int(run.tokens.sum())
    if whole:
        cut, dropped, tokens = whole.cut_texts, whole.cut_tokens, whole.tokens
    if cut:
        first = run.settings["cut"]["ids"][0] if whole else run.ids[int((run.cut > 0).argmax())]
        yield (
            f"Cut: {plural(cut, 'text')} (the first is {first!r}) lost {dropped:,} tokens at the end, "
            f"{percent(dropped / (dropped + tokens))} of all: cut them, with their group, into shorter ones."
        )
    yield from (f"Note: {note}" for note in run.settings.get("texts", {}).get("notes", ()))


def _texts_of(run: Run) -> int:
    return run.whole.texts if run.whole else len(run.ids)
