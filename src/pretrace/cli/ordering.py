"""`pretrace order`: was a set with rows, or answer options, in random order among the training texts?"""

from __future__ import annotations

from dataclasses import replace

from pretrace.cli.answer import Answer
from pretrace.cli.options import Given
from pretrace.cli.paths import Source
from pretrace.cli.verdicts import Asked, opened_for_text
from pretrace.results.atomic import check_writable
from pretrace.results.verdicts import VERDICTS
from pretrace.scoring.settings import Target
from pretrace.verdicts.order import OrderSettings
from pretrace.verdicts.settings import Beside


def order(
    source: Source, target: Target, asked: Asked, settings: OrderSettings, beside: Beside, given: Given
) -> Answer:
    """Was this set, whose rows stand in random order, used? Repeats the lot that gave that order, and compares the
    published order of rows, or of answer options, with others, under the model in question and a second one. Exit code
    3 when consistent with training, 0 when nothing was found (with --power), 4 when inconclusive."""
    from pretrace.cli.progress import Stages
    from pretrace.cli.verdicts import finished, named, opened
    from pretrace.corpora import open_corpus
    from pretrace.verdicts.answering import draws_of
    from pretrace.verdicts.order import in_text, prompts_of, repeated
    from pretrace.verdicts.order import order as test

    check_writable(beside.out, VERDICTS.of("options" if settings.options else "order"))
    # the label column of a benchmark holds its answers, which are no part of this
    columns = replace(source.columns, label=source.columns.label or "", more=settings.columns)
    corpus = replace(source, columns=columns).open()
    original = open_corpus(settings.shuffled_from, columns) if settings.shuffled_from else None
    repeated(corpus, settings, original)  # before a model is opened
    if asked.text:
        _, questions = in_text(corpus, settings)
        models = opened_for_text(
            target, beside, asked, settings, lambda chat: prompts_of(questions, chat=chat), draws_of(0)
        )
    else:
        models = opened(named(target, beside, settings), second=True)
    verdict = test(
        corpus,
        models,
        settings,
        original=original,
        text=asked.text,
        watch=Stages(),
        statements=beside.statements,
    )
    return finished(verdict, beside.out, given)
