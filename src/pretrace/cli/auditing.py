"""What `audit` and `gap` do, in order: check all that can be checked, open, ask, write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text as Plain

from pretrace.cli.job import Auditing, Opening, Source, Writing
from pretrace.cli.planning import described
from pretrace.cli.progress import Stages
from pretrace.corpora import Columns, open_corpus
from pretrace.errors import DesignError, ExpressionError, MissingPackageError, ModelError
from pretrace.results.atomic import check_writable

if TYPE_CHECKING:
    from pretrace.auditing.settings import AuditSettings
    from pretrace.scoring.plan import Models
    from pretrace.tuning.planting import PlantMethod
    from pretrace.types import Audit, AuditPlan, Backend, Gap

QUICK_PAIRS, QUICK_LEARNT = 200, 100
CANNOT_ANSWER = 4
"""The exit code where no verdict is possible with what there is, the same as for a verdict that is withheld."""


def carry_out(source: Source, opening: Opening, writing: Writing, auditing: Auditing) -> int:
    """Plan the audit, say the plan, do it, write it to `auditing.out` and print what was found; the exit code.

    On any error nothing is left there. With --plan it ends when the plan is said.
    """
    from pretrace.auditing.audit import audit, plan
    from pretrace.runs import save_audit

    settings = audit_settings(writing, auditing)
    out = auditing.out
    if not auditing.plan:
        if out is None:
            raise ExpressionError(
                "an audit is written to a folder: name it with --out, or ask for the --plan alone."
            )
        check_writable(out)
    corpus = open_corpus(source.texts, source.columns)
    heldout = open_corpus(writing.heldout, source.columns) if writing.heldout else None
    models = _models(opening, auditing)
    generator = _generator(opening, writing, needed=heldout is None)
    asked: dict[str, Any] = {"generator": generator, "heldout": heldout, "settings": settings}
    if auditing.plan or out is None:
        found = plan(corpus, models, **asked)
        shown(found, Console(highlight=False))
        return 0 if found.design else CANNOT_ANSWER
    try:
        made = audit(corpus, models, **asked, watch=_Told())
    except DesignError as error:
        shown(error.plan, Console(highlight=False))
        return CANNOT_ANSWER
    made = replace(made, settings={**made.settings, "command": _command(source, opening, writing, auditing)})
    save_audit(made, out)
    return printed(made, out)


class _Told(Stages):
    """Stages on standard error, with the plan before the first of them."""

    def planned(self, plan: AuditPlan, /) -> None:
        """What the audit can answer, and what it will cost."""
        shown(plan, Console(stderr=True, highlight=False))


def shown(plan: AuditPlan, console: Console) -> None:
    """Print what an audit could answer, and what it would cost."""
    for line in described(plan):
        console.print(Plain(line), soft_wrap=True)


def audit_settings(writing: Writing, auditing: Auditing) -> AuditSettings:
    """The options as an audit takes them; ExpressionError for one that is wrong, before anything is opened."""
    from pretrace.auditing.settings import GENERATOR, PAPER_GENERATOR, POWER_BATCH, AuditSettings
    from pretrace.auditing.snippets import SnippetSettings
    from pretrace.baselines.classifiers import classifiers
    from pretrace.tuning.planting import PlantSettings
    from pretrace.types import Sampling

    method = {"lora": GENERATOR, "paper": PAPER_GENERATOR}.get(writing.method, writing.method)
    pairs = writing.pairs
    if auditing.quick:
        pairs = min(pairs, QUICK_PAIRS)
    power = None
    if auditing.power:
        plant_method = cast("PlantMethod", auditing.power_method)
        power = PlantSettings(epochs=1, batch=POWER_BATCH, seed=auditing.seed, method=plant_method)
    return AuditSettings(
        procedure=auditing.procedure,
        also=tuple(name.strip() for name in auditing.also.split(",") if name.strip()),
        level=auditing.level,
        snippets=SnippetSettings(
            tokens=writing.tokens,
            most=writing.max_snippets,
            pairs=pairs,
            learnt=QUICK_LEARNT if auditing.quick else None,
        ),
        sampling=Sampling(writing.temperature, writing.top_p, writing.repetition_penalty),
        method=method,
        classifiers=classifiers.split(auditing.classifiers),
        power=power,
        statements={
            name: said
            for name, said in (
                ("requested_by", auditing.requested_by),
                ("placebo", auditing.placebo_note),
                ("controls", auditing.heldout_note),
            )
            if said
        },
        seed=auditing.seed,
        cache=not auditing.no_cache,
    )


def printed(audit: Audit, out: Path) -> int:
    """Print what was found; the exit code that tells a script the outcome."""
    from pretrace.results.audit import EXIT_CODES

    console = Console(highlight=False)
    console.print(Plain(audit.statement, style="bold"))
    for reason in audit.reasons:
        console.print(Plain(f"- {reason}"))
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("control")
    table.add_column("", no_wrap=True)
    for check in audit.checks:
        table.add_row(Plain(check.title), check.status)
    console.print(table)
    for advice in audit.advice:
        console.print(Plain(f"What would help: {advice}"))
    console.print(Plain(f"Report: {out / 'report.html'}"), soft_wrap=True)
    return EXIT_CODES[audit.outcome]


def compare(a: str, b: str, columns: Columns, *, classifiers: str, seed: int) -> None:
    """Print how well classifiers that see only texts tell two sets apart."""
    from pretrace.baselines.classifier_two_sample import gap

    found = gap(open_corpus(a, columns), open_corpus(b, columns), classifiers, seed=seed)
    Console(highlight=False).print(_gap_table(found))
    for one in found:
        if one.note:
            print(one.note)


def _gap_table(found: tuple[Gap, ...]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("classifier", overflow="fold")
    table.add_column("AUC", justify="right", no_wrap=True)
    table.add_column("texts", justify="right")
    for one in found:
        auc = f"{one.auc.value:.3f} [{one.auc.low:.3f}, {one.auc.high:.3f}]"
        table.add_row(Plain(one.classifier), auc, f"{one.texts:,}")
    table.caption = Plain(
        "0.5: no classifier of texts can tell A from B. Where one can, a membership score may, too."
    )
    return table


def _models(opening: Opening, auditing: Auditing) -> Models:
    """Target, placebos and reference."""
    from pretrace.backends import open_model
    from pretrace.scoring.plan import Models

    names = list(auditing.placebo)
    if auditing.placebo_revision and not names:
        names = [opening.model]  # an earlier state of the very same repository
    if opening.model in names and not auditing.placebo_revision and not opening.revision:
        raise ModelError(
            f"--placebo {opening.model} is the target itself: name an earlier checkpoint (--placebo-revision), the "
            "base it was tuned from, or a sibling."
        )
    if len(set(names)) < len(names):
        raise ModelError(f"--placebo names {max(names, key=names.count)} twice: name each model once.")
    target = open_model(opening.model, **opening.settings)
    settings = {**opening.settings, "revision": auditing.placebo_revision}
    placebos = tuple(open_model(name, **settings) for name in names)
    reference = None
    if auditing.reference_model:
        reference = open_model(auditing.reference_model, **{**opening.settings, "revision": None})
    return Models(target, reference=reference, placebos=placebos)


def _generator(opening: Opening, writing: Writing, *, needed: bool) -> Backend | None:
    """The model that writes continuations; none where control documents are given and none is wanted."""
    from pretrace.backends import open_model

    if writing.generator in ("", "none"):
        if needed:
            raise ExpressionError(
                "--generator names a model; with control documents (--heldout) none is needed."
            )
        return None
    names = ("device", "trust_remote_code", "allow_pickle")
    settings = {name: opening.settings[name] for name in names}
    try:
        return open_model(writing.generator, dtype=_dtype(writing.generator_dtype), **settings)
    except MissingPackageError:
        if needed:
            raise
        return None  # control documents may do without one; where they do not, the plan says so


def _dtype(wanted: str) -> str:
    """What the generator computes in: where nothing is said, what is fastest on this processor."""
    from pretrace.backends.loading import device_of
    from pretrace.tuning.number_format import fastest_format

    return fastest_format(device_of("auto").type) if wanted == "auto" else wanted


def _command(*groups: Any) -> dict[str, Any]:
    """The options as they were given."""
    from dataclasses import asdict

    given = {name: value for group in groups for name, value in asdict(group).items()}
    return {
        name: str(value) if name == "out" else value for name, value in given.items() if value is not None
    }
