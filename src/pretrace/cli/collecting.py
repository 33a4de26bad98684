"""`pretrace collections`: check all that can be checked, open, ask, write, print."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from pretrace.backends.serving.address import served_kind
from pretrace.cli.answer import Answer
from pretrace.cli.options import Given
from pretrace.cli.paths import Source
from pretrace.cli.progress import Stages
from pretrace.cli.verdicts import BesideSeveral, opened_several
from pretrace.corpora import Columns, open_corpus
from pretrace.errors import ExpressionError
from pretrace.results.atomic import check_writable
from pretrace.results.verdicts import VERDICTS
from pretrace.scoring.settings import Target
from pretrace.settings import option
from pretrace.types import AuditPlan, Backend, Corpus
from pretrace.types.audit import COMPARED
from pretrace.verdicts.collections import CollectionSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlCollections:
    """Where the control collections are: one file each, or all in TEXTS."""

    controls: tuple[str, ...] = option(
        (),
        "A control collection: a file or folder of texts of the same site, kind and period, given as TEXTS is. Give it "
        "once for each; 19 or more for a level of 5%.",
        panel=COMPARED,
        path="in",
        essential=True,
    )
    collection_column: str = option(
        "",
        "Where TEXTS holds all collections: the column that says which one a row belongs to.",
        panel=COMPARED,
        essential=True,
    )
    suspect: str = option(
        "",
        "What that column says of the suspect collection; all others are controls.",
        panel=COMPARED,
        essential=True,
    )
    date_column: str = option(
        "", "Column of the date of a text, for the check that dates do not set it apart.", panel=COMPARED
    )
    generator: str = option(
        "",
        "The small model that writes in place of true text, for --value generated; any --model value with weights "
        "here.",
        panel=COMPARED,
        path="in",
    )

    def check(self) -> None:
        """ExpressionError where the collections are named in both ways, in neither, or in half of one."""
        if bool(self.collection_column) != bool(self.suspect):
            raise ExpressionError(
                "--collection-column names the column and --suspect what it says of the suspect collection: give both."
            )
        if bool(self.controls) == bool(self.suspect):
            raise ExpressionError(
                "control collections are named by --controls FILE, once for each, or by --collection-column and "
                "--suspect where one file holds all: give one of the two."
            )

    def open(self, source: Source) -> tuple[Corpus, tuple[Corpus, ...]]:
        """The suspect collection and the controls; TextsError where one cannot be read."""
        from pretrace.verdicts.collections import divided

        wanted = tuple(name for name in (self.collection_column, self.date_column) if name)
        columns: Columns = replace(source.columns, more=wanted)
        first = open_corpus(source.texts, columns)
        if self.suspect:
            return divided(first, self.collection_column, self.suspect)
        return first, tuple(open_corpus(name, columns) for name in self.controls)


def collections(
    source: Source,
    target: Target,
    inputs: ControlCollections,
    beside: BesideSeveral,
    settings: CollectionSettings,
    given: Given,
) -> Answer:
    """Was this collection used? Ranked among other collections of its kind: no earlier checkpoint is needed. Exit
    code 3 when it is consistent with training, 0 when nothing was shown (needs --power), 4 when inconclusive."""
    from pretrace.cli.verdicts import finished
    from pretrace.verdicts.collections import Company, gathered
    from pretrace.verdicts.collections import collections as rank

    inputs.check()
    settings.chosen(len(beside.reference_model), generator=bool(inputs.generator))
    check_writable(beside.out, VERDICTS.of("collections"))
    suspect, controls = inputs.open(source)
    gathered([suspect, *controls], settings.level)  # too few collections are found before a model is opened
    models, references = opened_several(target, beside, settings)
    generator = _generator(inputs.generator, target)
    company = Company(references, generator, inputs.date_column, beside.alone.statements)
    verdict = rank(suspect, controls, models, settings, company=company, watch=_Told())
    return finished(verdict, beside.out, given)


class _Told(Stages):
    """Stages on standard error; there is no plan to tell."""

    def planned(self, plan: AuditPlan, /) -> None:
        """Nothing is shown."""


def _generator(name: str, target: Target) -> Backend | None:
    from pretrace.backends import open_model

    opening = replace(target.opening, revision=None)
    if served_kind(target.model):
        opening = opening.for_weights()
    return open_model(name, **asdict(opening)) if name else None
