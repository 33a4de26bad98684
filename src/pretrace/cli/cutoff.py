"""`pretrace cutoff`: check all that can be checked, read dated texts, test, write, print."""

from __future__ import annotations

from dataclasses import replace

from pretrace.cli.answer import Answer
from pretrace.cli.options import Given
from pretrace.cli.paths import Source
from pretrace.cli.references import BesideSeveral, opened_several
from pretrace.cli.verdicts import finished
from pretrace.corpora import open_corpus
from pretrace.results.atomic import check_writable
from pretrace.scoring.settings import Target
from pretrace.verdicts.cutoff.settings import CutoffSettings


def cutoff(
    source: Source, target: Target, beside: BesideSeveral, settings: CutoffSettings, given: Given
) -> Answer:
    """Years of dated texts and a stated training cut-off: does what the model knows drop there, as at no other date?
    Exit code 3 when the predictions are consistent with training, 0 when nothing was shown, 4 when there is no
    answer, as with a series that is too short."""
    from pretrace.cli.progress import Stages
    from pretrace.verdicts.cutoff import cutoff as compare
    from pretrace.verdicts.cutoff.dates import cutoff_day, dated
    from pretrace.verdicts.cutoff.windows import windows

    check_writable(beside.out)
    day = cutoff_day(settings.cutoff)
    corpus = open_corpus(source.texts, replace(source.columns, more=(settings.date,)))
    usable = dated(corpus, settings.date, day, skip_undated=settings.skip_undated)
    windows(usable.days, day, settings.months, settings.fewest)  # before a model is opened
    models, references = opened_several(target, beside, settings)
    found = compare(corpus, models, settings, references=references, watch=Stages())
    return finished(replace(found, statements=beside.alone.statements), beside.out, given)
