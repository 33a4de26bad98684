"""`pretrace cutoff`: check all that can be checked, read dated texts, test, write, print."""

from __future__ import annotations

from dataclasses import replace

from pretrace.cli.answer import Answer
from pretrace.cli.options import Given
from pretrace.cli.paths import Source
from pretrace.cli.verdicts import BesideSeveral, finished, opened_several
from pretrace.corpora import open_corpus
from pretrace.results.atomic import check_writable
from pretrace.results.verdicts import VERDICTS
from pretrace.scoring.settings import Target
from pretrace.verdicts.cutoff import CutoffSettings


def cutoff(
    source: Source, target: Target, beside: BesideSeveral, settings: CutoffSettings, given: Given
) -> Answer:
    """Years of dated texts and a stated training cut-off: does what the model knows drop there, as at no other date?
    Exit code 3 when the predictions are consistent with training, 0 when nothing was found (with --power), 4 when
    inconclusive."""
    from pretrace.cli.progress import Stages
    from pretrace.verdicts.cutoff import cutoff as test
    from pretrace.verdicts.cutoff import prepared

    check_writable(beside.out, VERDICTS.of("cutoff"))
    corpus = open_corpus(source.texts, replace(source.columns, more=(settings.date,)))
    prepared(corpus, settings)  # a series that is too short is found before a model is opened
    models, references = opened_several(target, beside, settings)
    verdict = test(
        corpus, models, settings, references=references, watch=Stages(), statements=beside.alone.statements
    )
    return finished(verdict, beside.out, given)
