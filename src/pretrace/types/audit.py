"""What an audit works on and what comes out of it: pieces of text, tests, checks, the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from pretrace.errors import PretraceError
from pretrace.settings import option
from pretrace.types.results import Estimate
from pretrace.types.traces import Doubles

COMPARED = "What the texts are compared with"
"""The group of options on control documents and generated texts."""

Outcome = Literal[
    "nothing", "consistent", "inconclusive", "found", "absent",
    "flagged", "set", "none", "missed", "refused",
]  # fmt: skip
"""Nothing shown, by an audit that would have seen training; consistent with training on the texts; or no answer,
because a control failed or the audit could have missed it. Of a search in a corpus: texts were found, or none stands in
all that was read.

Of a flagging: documents are flagged; none is, but the set as a whole stands out; neither, and a tenth of the documents,
if seen, would have been noticed; neither, but that could have been missed; or no
answer, because a control says that the two sets differ, or could differ, by more than membership."""

Design = Literal["controls", "differences", "placebos"]
"""What the suspect texts are compared with. "controls": control documents of the same kind, known to be unseen.
"differences": what a generator wrote in their place, and the same difference in control documents. "placebos":
what a generator wrote, and nothing else; other models are all that says how large a difference is to be expected."""

Status = Literal["passed", "failed", "not run"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a generator draws the next token; temperature 1 with the whole distribution is what it learnt.

    `top_p` keeps the likeliest tokens that together reach this probability, `repetition_penalty` divides the
    positive logits of tokens that already stand in the text (prompt included) and multiplies the negative
    ones. The authors' release of post-hoc dataset inference uses 0.6, 0.9 and 1.2.
    """

    temperature: float = option(
        1.0,
        "Temperature of the generator's sampling; 1 samples from the distribution that it learned.",
        panel=COMPARED,
    )
    top_p: float = option(
        1.0, "Sample only from the likeliest tokens whose probabilities add up to this.", panel=COMPARED
    )
    repetition_penalty: float = option(
        1.0, "Make tokens that already occurred less likely; 1 switches this off.", panel=COMPARED
    )


class Generator(Protocol):
    """A model that continues texts. `fingerprint` names everything a continuation depends on besides the
    prompt, its length, the sampling and the seed; `facts` is what an audit records."""

    name: str
    fingerprint: str
    facts: Mapping[str, Any]

    def spans(self, text: str, /) -> npt.NDArray[np.int64]:
        """Characters [start, end) of each token of a text, shape [n, 2]."""
        ...

    def complete(self, prompts: Sequence[str], /, *, tokens: int, sampling: Sampling, seed: int) -> list[str]:
        """What the model writes after each prompt: `tokens` tokens, as text to be set right behind it.
        A continuation depends on the prompt, the seed and the settings alone, not on its batch."""
        ...


class TextClassifier(Protocol):
    """A classifier that sees texts and nothing else."""

    def fit(
        self, texts: Sequence[str], labels: npt.NDArray[np.bool_], /, *, seed: int
    ) -> Callable[[Sequence[str]], Doubles]:
        """What maps texts to the probability of the label True, float64 [texts], each in (0, 1)."""
        ...


@dataclass(frozen=True, slots=True)
class Pair:
    """One place in a suspect text: what stands there after `prefix`, and what a generator wrote instead.

    `document` names the document (or group of documents that share text) it was cut from.
    """

    id: str
    document: str
    prefix: str
    true: str
    generated: str


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Membership scores of pieces of text on two sides, for the classifiers of an audit.

    `suspect` is float64 [n, k] and `heldout` [m, k], finite, higher = more member-like; with `paired` row i
    of both belongs to the same place in the same document, and n = m. Texts and documents go with the rows.
    """

    names: tuple[str, ...]
    suspect: Doubles
    heldout: Doubles
    suspect_texts: tuple[str, ...]
    heldout_texts: tuple[str, ...]
    suspect_documents: tuple[str, ...]
    heldout_documents: tuple[str, ...]
    paired: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What one procedure answers: a hypothesis test.

    `p` is one-sided: small means the target knows the suspect texts better than it should. `effect` is in the
    unit `unit` names, with its 95% interval; `standardised` is the effect over its standard deviation between
    documents. `facts` holds what else was found (AUCs, weights, the p-value of each seed), in plain values.
    """

    procedure: str
    p: float
    statistic: str
    documents: int
    pieces: int
    effect: Estimate | None = None
    unit: str = ""
    standardised: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """A control of the audit: `title` for a table, `words` says in a sentence or two what was done and seen,
    `cure` what would help where it failed. `figures` holds its numbers in plain values."""

    name: str
    title: str
    status: Status
    words: str
    cure: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        good: bool,
        words: str,
        cure: str = "",
        figures: Mapping[str, Any] | None = None,
    ) -> Check:
        """A check that was made; the cure is kept where it failed."""
        return cls(name, title, "passed" if good else "failed", words, "" if good else cure, figures or {})


@dataclass(frozen=True, slots=True)
class Placebo:
    """The model the target is held against, and how good a one it is.

    `grade` is "own" (the target before it could have seen the texts: its base or an earlier checkpoint),
    "sibling" (same architecture and tokenizer, other weights) or "other" (another family). `closeness` is
    the correlation of both models' mean log-probabilities on text that neither was trained on, None where it took
    no part.
    """

    name: str
    grade: Literal["own", "sibling", "other"]
    closeness: float | None
    words: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Null:
    """The statistic that was tested, and what chance makes of it: a histogram of its values for texts not used.

    `edges` [bins + 1] and `counts` [bins] hold every drawn value; at or above `critical` lie so few of them that
    the test rejects. `observed` may lie outside the edges.
    """

    statistic: str
    observed: float
    critical: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How much hidden bias a result withstands; None where the test does not reject, or has no such bound.

    `gamma_sign` and `gamma_wilcoxon` are Rosenbaum's Γ*: the odds at which an innocent document may lie above 0
    before the sign test, or Wilcoxon's, no longer rejects. `shift` is what can be taken from every suspect
    document, in the effect's unit, before the two-sample test no longer rejects. `left_out` is how many control
    documents can be left out, those that the model knows least first, before it no longer rejects.
    """

    gamma_sign: float | None = None
    gamma_wilcoxon: float | None = None
    shift: float | None = None
    left_out: int | None = None


@dataclass(frozen=True, slots=True)
class Lean:
    """How far true text lay above generated text on an innocent model: measured where the members are known."""

    domain: str
    epochs: int
    model: str
    value: float


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What an audit can answer, known before a model is asked for the texts and before anything is trained.

    `design` is None where no verdict is possible; `why` says in a sentence or two how it was chosen. `outcomes` are
    those that are possible. `cures` say what would make a verdict possible or stronger. `documents` and `snippets`
    are of the suspect texts, `control_documents` of the control documents. `passes` counts texts that go
    through a model; `seconds` is a guess of the time (None without one). `notes` tell what was left out on both sides.
    `parameters` are those of the target, 0 where nobody knows them.
    """

    design: Design | None
    why: str
    outcomes: tuple[Outcome, ...]
    documents: int
    snippets: int
    control_documents: int = 0
    placebos: tuple[Placebo, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cures: tuple[str, ...] = ()
    passes: int = 0
    seconds: float | None = None
    notes: tuple[str, ...] = ()
    parameters: float = 0.0


class DesignError(PretraceError):
    """No audit of these texts and models could come to a verdict; the `plan` says why, and what would change it.
    `verdict` says the same as a result that can be saved, with its page."""

    def __init__(self, plan: AuditPlan, verdict: Any = None) -> None:
        self.plan, self.verdict = plan, verdict
        super().__init__(" ".join((f"this audit could not have answered. {plan.why}", *plan.cures)))


@dataclass(frozen=True, slots=True)
class Power:
    """What the audit could have seen: documents of the suspect were planted in a copy of the target.

    `probability` is the share of such audits that reject, at the number of documents of this one;
    `needed` the documents that 80% would take (None where no number would do). `curve` holds pairs of
    a number of documents and the probability there. `planted` documents were trained on, `epochs` times.
    """

    probability: Estimate
    needed: int | None
    planted: int
    epochs: int
    effect: Estimate
    curve: tuple[tuple[int, float], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gap:
    """How well a classifier that saw only texts tells two sets apart: AUC, 0.5 where it cannot."""

    classifier: str
    auc: Estimate
    texts: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Quality:
    """One measure of the generated texts beside the same of the true ones (None where it has no meaning)."""

    measure: str
    true: float | None
    generated: float | None
    words: str = ""


@dataclass(frozen=True, slots=True)
class AuditFigures:
    """What an audit found besides what every verdict holds; the figures of its `Verdict`, by these names.

    `design` says what was compared. `procedure` is the test that decides, made on `pieces` of the documents; `facts`
    are its numbers, `placebo` among them: the model of the deciding test, which has the largest p of all. `answers`
    holds one test a placebo. `variants` are further procedures that were asked for: they are shown and decide nothing.
    `leans` are what innocent models showed where it was measured, for a design without control documents. `powers` are
    those of all exposures that were tried, the lightest first; the one that decides is the verdict's `planted`.
    """

    design: Design
    procedure: str
    pieces: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()
    sensitivity: Sensitivity | None = None
    plan: AuditPlan | None = None
    variants: tuple[Answer, ...] = ()
    placebos: tuple[Placebo, ...] = ()
    leans: tuple[Lean, ...] = ()
    powers: tuple[Power, ...] = ()
    gaps: tuple[Gap, ...] = ()
    quality: tuple[Quality, ...] = ()

    @property
    def compared_with(self) -> str | None:
        """The name of the model of the deciding test, which may be one that the audit tuned itself; None without."""
        found = self.facts.get("placebo")
        return found if isinstance(found, str) else None

    @property
    def placebo(self) -> Placebo | None:
        """The placebo of the deciding test; None where the audit tuned it itself, or where the target was looked at
        alone."""
        return next((one for one in self.placebos if one.name == self.compared_with), None)

    @property
    def margin(self) -> float:
        """What was taken off the values, since innocent models lean towards true text as well; 0 where nothing was."""
        found = self.facts.get("margin")
        return float(found) if isinstance(found, int | float) and self.design == "placebos" else 0.0
