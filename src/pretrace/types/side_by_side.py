"""Several runs on one page: models by corpora, and the settings in which the runs differ."""

from __future__ import annotations

from dataclasses import dataclass

from pretrace.types.results import Estimate, Survival


@dataclass(frozen=True, slots=True)
class RunScore:
    """What one run says of one score.

    `auc` and `tpr` (at 5% false positives) are None for a run without an evaluation; `median` is that of the
    texts, None where none has the score. `texts` have the score. `placebo` and `shuffled` are the AUCs of its controls,
    `lead` and `survives` as in `Measured`; None where there is no such control.
    """

    score: str
    texts: int
    median: float | None
    auc: Estimate | None = None
    tpr: Estimate | None = None
    placebo: Estimate | None = None
    lead: Estimate | None = None
    survives: Survival | None = None
    shuffled: Estimate | None = None


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the runs, numbered from 1: where it lies, its place in the table (`model` and `corpus`, told apart where
    two share a name), its texts, its strongest blind control (None without one), and its scores.

    Of a large run, medians are those of `sampled` texts; 0 for a run that holds all of its texts.
    """

    number: int
    folder: str
    model: str
    corpus: str
    texts: int
    members: int
    nonmembers: int
    sampled: int
    blind_name: str
    blind: Estimate | None
    scores: tuple[RunScore, ...]

    def score(self, name: str) -> RunScore | None:
        """What the run says of the score of this name; None where it does not have it."""
        return next((one for one in self.scores if one.score == name), None)


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting in which runs differ: each value with the numbers of its runs, and what follows from that.

    `compares` says whether numbers of these runs can still be held against each other.
    """

    setting: str
    values: tuple[tuple[str, tuple[int, ...]], ...]
    compares: bool
    words: str


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Runs side by side, in the order given. `scores` are those that are shown; `differences` begin with those that
    forbid a comparison."""

    runs: tuple[ComparedRun, ...]
    scores: tuple[str, ...]
    differences: tuple[Difference, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The rows of the table."""
        return tuple(dict.fromkeys(run.model for run in self.runs))

    @property
    def corpora(self) -> tuple[str, ...]:
        """The columns of the table."""
        return tuple(dict.fromkeys(run.corpus for run in self.runs))

    def cell(self, model: str, corpus: str, score: str) -> tuple[tuple[ComparedRun, RunScore], ...]:
        """What the runs of this model and corpus say of a score: often one, none where there is no such run."""
        here = [run for run in self.runs if (run.model, run.corpus) == (model, corpus)]
        return tuple((run, found) for run in here if (found := run.score(score)) is not None)
