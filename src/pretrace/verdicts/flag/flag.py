"""Score both sets, look whether they may be compared, flag documents and test the set as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from pretrace.corpora import Texts, corpus_of
from pretrace.errors import ModelError
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.evidence import Progress, Silent
from pretrace.scoring.outlook import Unwatched, Watch
from pretrace.scoring.plan import Models, check_placebos
from pretrace.scoring.provenance import record_corpus
from pretrace.statistics.controls import placebos
from pretrace.statistics.documents import Grouping
from pretrace.types import Backend, Bools, Corpus, Run, Skipped, Table, Verdict
from pretrace.verdicts.flag.built import build_flagging, rows_table
from pretrace.verdicts.flag.checks import Read
from pretrace.verdicts.flag.concluding import Rows, SettledFlagging, Sides, concluded, run_checks
from pretrace.verdicts.flag.planning import TEXTS, DetectionLimits, FlagPlan, FlagSettings, plan
from pretrace.verdicts.flag.power import measured
from pretrace.verdicts.planting import check_plantable


def flag(
    texts: Corpus | Texts,
    nonmembers: Corpus | Texts,
    models: Models | Backend | str,
    settings: FlagSettings | None = None,
    *,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Verdict:
    """Which of the texts stand out from the known non-members by one score of the target, and whether all do.

    Both are a corpus, or all that `open_corpus` takes: a list, a column of a table. `models` may be a model's name.
    The outcome is "flagged" where a document is flagged, "set" where none is and the set as a whole stands out,
    "refused", without p-values, where a control tells the two sets apart or could not have done so, "none" where
    nothing stands out and `settings.power` showed that a tenth of the documents, if read, would have, else "missed".
    With a placebo in `models` the same is done with it, and it must find nothing. Raises what `plan` and `detect`
    raise, LeakError among it where a model was tuned on one of the texts, and ModelError where the power is asked for
    and the target has no weights here.
    """
    settings = settings or FlagSettings()
    corpus, known = corpus_of(texts, "texts"), corpus_of(nonmembers, "non-members")
    models = Models.of(models)
    if models.placebo is not None:
        check_placebos(models.target, (models.placebo.target,), models.reference)
    if settings.power:
        check_power(models)
    made = plan(corpus, known, settings)
    how = Options(cache=settings.cache, progress=progress or Silent())
    run = detect(made.corpus, models, settings.plan, how)
    asking = Asking(models, watch or Unwatched()) if settings.power else None
    return flag_scored(
        run, made, settings, corpus=corpus, known=known, model=models.target.name, asking=asking
    )


def check_power(models: Models) -> None:
    """ModelError where no copy of the target can be trained."""
    try:
        check_plantable(models.target)
    except ModelError as error:
        raise ModelError(f"{error} Leave --power away; without it nothing ends with exit code 0.") from error


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """The models that can still be asked once the texts were scored, and who watches."""

    models: Models
    watch: Watch


def settle(  # noqa: PLR0913 (what was scored, and who can still be asked)
    rows: Rows,
    read: Read,
    limits: DetectionLimits,
    settings: FlagSettings,
    *,
    seed: int,
    skipped: Iterable[Skipped],
    asking: Asking | None = None,
    without: str = "",
) -> SettledFlagging:
    """Conclude from the scored rows of both sets: check, measure the power where it decides and can be measured, and
    settle the outcome. `read` gives the texts of chosen rows, `without` says why there are no models to ask.

    TextsError where too few texts could be scored.
    """
    sides = Sides.of(rows, settings, seed, (one.reason for one in skipped))
    limits = limits.scored(sides.known, sides.number)
    found = run_checks(sides, limits, read)
    power, share, why = None, None, ""
    if found.quiet and settings.power:
        why = without
        if asking is not None:
            power, share, why = measured(found, read, asking.models, asking.watch)
    return SettledFlagging(sides, limits, concluded(found, power, share), why)


def flag_scored(  # noqa: PLR0913 (what was read, of what, and who can still be asked)
    run: Run,
    made: FlagPlan,
    settings: FlagSettings,
    *,
    corpus: Corpus,
    known: Corpus,
    model: str,
    asking: Asking | None = None,
) -> Verdict:
    """The same from scores that are there: `run` has the texts of `made.corpus`, both sets, and one score. Without
    `asking` the power cannot be measured."""
    run, seed = run.complete, made.draws.seed(settings)
    content = {text.id: text.text for text in made.corpus.texts}
    documents = [made.documents[name] for name in run.ids]
    texts = [content[name] for name in run.ids]
    rows = Rows(
        asked=np.array([member is None for member in run.members], dtype=bool),
        documents=Grouping.of(documents).codes if documents else np.zeros(0, dtype=np.int64),
        scores=np.asarray(run.matrix[:, 0]),
        placebo=next(iter(placebos(run).values()), None),
        lengths=np.array([len(text) for text in texts], dtype=np.float64),
    )

    def read(chosen: Bools) -> list[str]:
        return [texts[i] for i in np.flatnonzero(chosen).tolist()]

    def table(side: Bools, *, known: bool) -> Table:
        chosen = np.flatnonzero(side)
        ids, groups, theirs = ([one[i] for i in chosen.tolist()] for one in (run.ids, run.groups, documents))
        return rows_table(settled.sides, settled.end, chosen, (ids, groups, theirs), known=known)

    settled = settle(rows, read, made.prospect, settings, seed=seed, skipped=run.skipped, asking=asking)
    return build_flagging(
        settled,
        settings,
        names=(corpus.name, known.name),
        model=model,
        score=run.scores[0],
        tables=(table(rows.asked, known=False), table(~rows.asked, known=True)),
        skipped=tuple(replace(one, id=one.id.removeprefix(TEXTS)) for one in run.skipped),
        left=len(run.skipped),
        draws=made.draws,
        recorded=record(record_corpus(corpus), record_corpus(known), run.settings, settings, seed),
    )


def record(
    texts: Mapping[str, Any],
    nonmembers: Mapping[str, Any],
    made: Mapping[str, Any],
    settings: FlagSettings,
    seed: int,
) -> dict[str, Any]:
    """Everything needed to do it again: of the run's record, with the two sets each by itself."""
    rest = {name: value for name, value in made.items() if name not in ("texts", "seed")}
    asked = {name: value for name, value in asdict(settings).items() if name not in ("cache", "plan")}
    return {**asked, "seed": seed, "texts": dict(texts), "nonmembers": dict(nonmembers), **rest}
