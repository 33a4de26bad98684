"""Accuracy on items that a model seems to have seen, beside its accuracy on the others, from the log of an evaluation.

`flag` says which items are suspect: those that stand out from known non-members by a score of the model. It withholds
its answer where a control says that the two sets differ by more than training, and then there are no two sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pretrace.harnesses import samples_words as said
from pretrace.harnesses.comparing import Compared, KnownItems, SamplesSettings
from pretrace.harnesses.prompt_texts import TextOf
from pretrace.harnesses.sample_logs import SampleLog, metric_of
from pretrace.scoring.evidence import Progress
from pretrace.scoring.plan import Models
from pretrace.statistics.intervals import score_interval
from pretrace.types import Corpus, Estimate, Outcome, Situation, Table, Verdict
from pretrace.verdicts.flag import FlagSettings, flag

_OUTCOMES: Mapping[Outcome, Outcome] = {"flagged": "consistent", "set": "consistent", "none": "nothing"}


def samples(
    log: SampleLog,
    known: KnownItems,
    models: Models,
    settings: SamplesSettings | None = None,
    flagging: FlagSettings | None = None,
    *,
    progress: Progress | None = None,
) -> tuple[Verdict, Verdict]:
    """The accuracy of suspect items beside that of the others, and the flagging that tells them apart.

    The outcome is that of the flagging: "consistent" where items or the set stand out, "nothing" where neither does and
    `flagging.power` showed that a tenth of the items, if seen, would have been noticed, else "inconclusive". Errors as
    in `flag` and `TextOf`.
    """
    settings = settings or SamplesSettings()
    metric = metric_of([log, known.log] if known.log else [log], settings.metric)
    corpus = TextOf(log, settings.part, settings.group_field).corpus()
    flagged = flag(corpus, known.corpus, models, flagging, progress=progress)
    return verdict_of(Compared.of(log, known, flagged, metric, settings.suspect_p), corpus, settings), flagged


def verdict_of(found: Compared, corpus: Corpus, settings: SamplesSettings) -> Verdict:
    """The result as it is written down: the flagging's answer, and the accuracy of each side."""
    flagged, task = found.flagged, found.log.task
    counts = flagged.figures["counts"]
    outcome = _OUTCOMES.get(flagged.outcome, "inconclusive")
    accuracy = {name: score_interval(values) for name, values in found.sides.items()}
    sizes = {name: len(values) for name, values in found.sides.items()}
    return Verdict(
        test="samples",
        corpus=task,
        model=flagged.model,
        outcome=outcome,
        statement=said.statement(found, outcome, accuracy),
        level=flagged.level,
        exact=False,
        assumption=said.assumption(found),
        hypothesis=f"No item of {task} was among the training texts: they and the known non-members are exchangeable.",
        statistic="the larger of a rank sum and a sum of squared log ranks, over one score an item",
        p=flagged.p,
        units=flagged.units,
        unit="item",
        question=f"Was {flagged.model} trained on items of {task}, and is it better on those?",
        compared=said.compared(found, settings),
        trust=said.trust(found, settings),
        effect=found.difference,
        effect_unit=said.UNIT,
        checks=flagged.checks,
        reasons=(*said.accuracies(found, accuracy, sizes), flagged.statement, *flagged.reasons),
        advice=flagged.advice,
        notes=(*corpus.notes, *flagged.notes),
        figures={
            "metric": found.metric,
            "accuracy": {name: [one.value, one.low, one.high] for name, one in accuracy.items()},
            "flagged items": counts["flagged"],
        },
        tables=(_items(found), _sides(accuracy, sizes)),
        skipped=flagged.skipped,
        situation=Situation(
            documents=flagged.units, unseen=counts["known_documents"], items=len(found.log.items)
        ),
        settings=_record(found, settings),
    )


def _items(found: Compared) -> Table:
    """One row an item: its document, whether it was right, score, p, q, and whether it is suspect (1), where p and
    that are known."""
    texts = found.flagged.table("flags")
    suspect = np.full(len(texts), np.nan) if found.suspect is None else found.suspect.astype(np.float64)
    numbers = {found.metric: found.right, **{name: texts[name] for name in ("score", "p", "q")}}
    return Table("items", {"item": texts["id"], "document": texts["document"], **numbers, "suspect": suspect})


def _sides(accuracy: Mapping[str, Estimate], sizes: Mapping[str, int]) -> Table:
    """One row a side: documents, accuracy, and its 95% interval."""
    columns = {
        "items": np.array([float(sizes[name]) for name in accuracy]),
        "accuracy": np.array([one.value for one in accuracy.values()]),
        "low": np.array([one.low for one in accuracy.values()]),
        "high": np.array([one.high for one in accuracy.values()]),
    }
    return Table("accuracy", {"side": tuple(accuracy), **columns})


def _record(found: Compared, settings: SamplesSettings) -> dict[str, Any]:
    """Everything needed to do it again: of the flagging, of the log, and what its results file says of the model."""
    log, flagged = found.log, dict(found.flagged.settings)
    told = (
        "model_source",
        "model_name",
        "lm_eval_version",
        "transformers_version",
        "chat_template_sha",
        "date",
    )
    chosen = {"metric": found.metric, "part": settings.part, "suspect_p": settings.suspect_p}
    return {
        **{name: value for name, value in flagged.items() if name != "texts"},
        "corpus": flagged.get("texts", {}),
        "log": {
            "task": log.task,
            "file": log.path.name,
            "filter": log.filter,
            "few-shot examples": log.shots,
            **{name: log.results[name] for name in told if log.results.get(name) is not None},
        },
        "test": {name: value for name, value in chosen.items() if value is not None},
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
