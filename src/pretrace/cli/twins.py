"""`pretrace twins`: check all that can be checked, read both versions, test, write, print."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pretrace.cli.answer import Answer
from pretrace.cli.options import Given
from pretrace.cli.paths import Source
from pretrace.cli.references import BesideSeveral, opened_several
from pretrace.cli.verdicts import finished
from pretrace.corpora import open_corpus
from pretrace.errors import ExpressionError
from pretrace.results.atomic import check_writable
from pretrace.scoring.settings import Target
from pretrace.settings import option
from pretrace.types import Corpus
from pretrace.verdicts.settings import TEST
from pretrace.verdicts.twins.settings import TwinSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    """Where the drafts are: in a column of TEXTS, or in a file of their own."""

    draft_column: str | None = option(
        None, "Column of TEXTS that holds the draft of each text.", panel=TEST, essential=True
    )
    drafts: str | None = option(
        None,
        "A file with the drafts, each under the id of its published text; given as TEXTS is.",
        panel=TEST,
        path="in",
        essential=True,
    )

    def open(self, source: Source) -> tuple[Corpus, Corpus]:
        """The published texts and their drafts; ExpressionError unless one place is named, TextsError where they
        cannot be read."""
        from pretrace.verdicts.twins.pairs import drafts_in

        if (self.draft_column is None) == (self.drafts is None):
            raise ExpressionError("name the drafts with one of --draft-column and --drafts.")
        if self.drafts is not None:
            return source.open(), open_corpus(self.drafts, source.columns)
        column = str(self.draft_column)
        published = open_corpus(source.texts, replace(source.columns, more=(column,)))
        return published, drafts_in(published, column)


def twins(
    source: Source,
    target: Target,
    drafts: Drafts,
    beside: BesideSeveral,
    settings: TwinSettings,
    given: Given,
) -> Answer:
    """Published texts beside their drafts: does the model find the published versions likelier than the changes
    explain? Says how much hidden bias the result withstands, and accuses only beside a placebo. Exit code 3 when the
    predictions are consistent with training, 0 when nothing was shown, 4 when there is no answer."""
    from pretrace.cli.progress import Stages
    from pretrace.verdicts.twins import twins as compare
    from pretrace.verdicts.twins.pairs import paired

    check_writable(beside.out)
    published, unpublished = drafts.open(source)
    paired(published, unpublished)  # before a model is opened
    models, references = opened_several(target, beside, settings)
    found = compare(published, unpublished, models, settings, references=references, watch=Stages())
    return finished(replace(found, statements=beside.alone.statements), beside.out, given)
