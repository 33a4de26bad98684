"""The literature's procedures where nothing is to be found, and how far a lean may go: no model, made-up scores.

`python -m benchmarks.audits.procedure_null`. Pairs of texts get scores from a law in which both sides are alike, and
every procedure tests them: a share of rejections above 5% is a fault of the procedure, not of the texts. Then scores
of suspect texts are raised by a part of a standard deviation, as a target raises true texts over generated ones that
it has never read, and it is counted which parts of a procedure keep it from calling that membership.

Writes benchmarks/results/procedure_null.json; killed at any time it goes on where it was.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.experiments import RESULTS, Ledger
from pretrace.statistics.intervals import any_of, share_interval, t_test
from pretrace.types import Answer, Bools, Doubles, Features
from pretrace.verdicts.audit.procedures.calibrated import CalibratedSettings, calibrated, scaled_by_suspect
from pretrace.verdicts.audit.procedures.original import OriginalSettings, original
from pretrace.verdicts.audit.procedures.post_hoc import PaperSettings, ReleaseSettings, paper, release

PLAIN, RATIO = 21, "ref"
"""Scores of the target alone, and the one that holds it against its base."""
PAIRS, LEVEL, OUTLIERS = 200, 0.05, 0.2
Rng = np.random.Generator


class Reader:
    """A text-only classifier: a logistic regression of the one number that a made-up text consists of."""

    def fit(self, texts: Sequence[str], labels: Bools, /, *, seed: int) -> Callable[[Sequence[str]], Doubles]:
        """The fitted classifier; nothing in it is drawn."""
        z, weight, bias = np.array(texts, dtype=np.float64), 0.0, 0.0
        for _ in range(60):
            wrong = 1 / (1 + np.exp(-(weight * z + bias))) - labels
            weight, bias = weight - 2 * float((wrong * z).mean()), bias - 2 * float(wrong.mean())
        return lambda some: np.asarray(1 / (1 + np.exp(-(weight * np.array(some, dtype=np.float64) + bias))))


@dataclass(frozen=True, slots=True)
class Law:
    """How scores are made, all in standard deviations of a score unless it says otherwise.

    `tail` is "none", "heavy" (Student, 3 degrees) or "below" (minus a log-normal, as minus a perplexity). `shared` is
    the share of the variance that texts of one document on one side have in common. `gap` shifts the held-out texts'
    own number, which the text classifier reads, and `read` times that number is in every score but the ratio. `plain`
    raises suspect texts in those and `ratio` in the ratio, in standard deviations of a pair's difference.
    """

    tail: str = "none"
    documents: int = PAIRS
    shared: float = 0.0
    gap: float = 0.0
    read: float = 0.0
    plain: float = 0.0
    ratio: float = 0.0

    def features(self, seed: int) -> Features:
        """One audit's pairs."""
        rng = np.random.default_rng(seed)
        names = tuple(f"d{i % self.documents}" for i in range(PAIRS))
        own = rng.standard_normal((2, PAIRS))
        own[1] += self.gap
        scores = self._scores(rng)
        scores[:, :, :-1] += self.read * own[:, :, None]
        scores[0] += np.append(np.full(PLAIN, self.plain), self.ratio) * (scores[0] - scores[1]).std(axis=0)
        if self.tail == "below":
            scores = -np.exp(-0.8 * scores)
        texts = [tuple(f"{number:.6f}" for number in side) for side in own]
        labels = (*(f"s{k}" for k in range(PLAIN)), RATIO)
        return Features(labels, scores[0], scores[1], texts[0], texts[1], names, names)

    def _scores(self, rng: Rng) -> Doubles:
        """[side, pair, score]: a fifth is the pair's, 40% the text's, the rest the score's; the ratio stands apart."""
        shape = (2, PAIRS, PLAIN + 1)
        pair, noise = rng.standard_normal((1, PAIRS, 1)), self._noise(rng, shape)
        text = self._noise(rng, (2, PAIRS, 1))
        document = rng.standard_normal((2, self.documents, 1))[:, np.arange(PAIRS) % self.documents]
        found = np.sqrt(0.2) * pair + np.sqrt(0.4) * text + np.sqrt(0.4) * noise
        found[:, :, -1] = noise[:, :, -1]
        return np.asarray(np.sqrt(1 - self.shared) * found + np.sqrt(self.shared) * document)

    def _noise(self, rng: Rng, shape: tuple[int, ...]) -> Doubles:
        if self.tail == "heavy":
            return np.asarray(rng.standard_t(3, shape) / np.sqrt(3))
        return rng.standard_normal(shape)


NULLS = {
    "long tail": Law("below"),
    "normal": Law(),
    "heavy tails": Law("heavy"),
    "long tail, 20 documents": Law("below", documents=20, shared=0.1),
}
LEANS = {
    "every score: 0.3": Law(gap=0.5, plain=0.3, ratio=0.3),
    "every score: 0.2": Law(gap=0.5, plain=0.2, ratio=0.2),
    "every score: 0.4": Law(gap=0.5, plain=0.4, ratio=0.4),
    "the ratio alone: 0.8": Law(gap=0.5, ratio=0.8),
    "what the text shows: 0.3": Law(gap=0.5, read=-0.75),
    "against membership: 0.3": Law(gap=0.5, plain=-0.3, ratio=0.3),
    "none": Law(gap=0.5),
}
"""Kinds of lean and their sizes. The texts of the two sides differ everywhere; the classifier's AUC is about 0.64."""

MARGINS = {
    "paired": (True, (0.0, 0.12, 0.2, 0.31, 0.4)),
    "unpaired": (False, (0.0, 0.17, 0.3, 0.44, 0.6)),
}
"""Effects in standard deviations, of pairs' differences or of either side."""

Test = Callable[[Features, int], Answer]


def _paper(**how: Any) -> Test:
    settings = PaperSettings(outliers=OUTLIERS, **how)
    return lambda found, seed: paper(found, classifier=Reader(), seed=seed, settings=settings)


def _by_side(found: Features, seed: int) -> Answer:
    """The paper's test after outliers were replaced side by side; its own scaling undoes that by the suspect side."""
    suspect, heldout = scaled_by_suspect(found.suspect, found.heldout, outliers=OUTLIERS)
    settings = PaperSettings(seeds=1, outliers=0.0)
    return paper(
        replace(found, suspect=suspect, heldout=heldout), classifier=Reader(), seed=seed, settings=settings
    )


def _release(seeds: int) -> Test:
    settings = ReleaseSettings(seeds=seeds, outliers=OUTLIERS)
    return lambda found, seed: release(found, classifier=Reader(), seed=seed, settings=settings)


def _original(settings: OriginalSettings) -> Test:
    return lambda found, seed: original(found, seed=seed, settings=settings)


def _calibrated(found: Features, seed: int) -> Answer:
    settings = CalibratedSettings(outliers=OUTLIERS, flips=999)
    return calibrated(found, classifier=Reader(), seed=seed, settings=settings)


def _unratioed(test: Test) -> Test:
    def without(found: Features, seed: int) -> Answer:
        some = replace(
            found, names=found.names[:-1], suspect=found.suspect[:, :-1], heldout=found.heldout[:, :-1]
        )
        return test(some, seed)

    return without


def _ratio_alone(found: Features, seed: int) -> Answer:
    """All pairs, one paired t-test of the likelihood ratio: nothing is learnt, nothing is halved."""
    p, effect = t_test(found.suspect[:, -1], found.heldout[:, -1], paired=True)
    return Answer("ratio", p, "", PAIRS, PAIRS, effect)


SINGLE: Mapping[str, Test] = {
    "paper, one split": _paper(seeds=1),
    "paper, outliers by side, one split": _by_side,
    "release, one split": _release(1),
    "original, one split": _original(OriginalSettings(seeds=1)),
    "original of the release": _original(OriginalSettings.of_release()),
}
JOINED: Mapping[str, Test] = {
    "paper": _paper(),
    "release": _release(10),
    "original": _original(OriginalSettings()),
}
PARTS: Mapping[str, Test] = {
    "paper": _paper(),
    "paper without the ratio": _unratioed(_paper()),
    "paper, free weights": _paper(constraint=False),
    "paper without calibration": _paper(calibrate=False),
    "its classifiers, one test of all pairs": _calibrated,
    "original": _original(OriginalSettings()),
    "original without the ratio": _unratioed(_original(OriginalSettings())),
    "the ratio itself, one test of all pairs": _ratio_alone,
}


def counted(tests: Mapping[str, Test], law: Law, seeds: range) -> Iterator[dict[str, Any]]:
    """A row a procedure: how many of the audits it rejects, and its mean effect."""
    found: dict[str, list[Answer]] = {name: [] for name in tests}
    for seed in seeds:
        features = law.features(seed)
        for name, test in tests.items():
            found[name].append(test(features, seed))
    for name, answers in found.items():
        rejected = np.array([answer.p <= LEVEL for answer in answers])
        share = share_interval(int(rejected.sum()), len(rejected))
        effects = [answer.effect.value for answer in answers if answer.effect]
        yield {
            "procedure": name,
            "audits": len(answers),
            "rejected": round(share.value, 4),
            "interval": [round(share.low, 4), round(share.high, 4)],
            "one split": _split_share(answers),
            "effect": round(float(np.mean(effects)), 4) if effects else None,
        }


def margins(effect: float, *, paired: bool, audits: int) -> dict[str, Any]:
    """How often a mean difference of `effect` standard deviations is found without anything to learn: by ten random
    halves joined, by one of them, and by all pairs. `paired`: of the differences, else of either side."""
    joined = one = whole = 0
    for seed in range(audits):
        rng = np.random.default_rng([seed, 5])
        sides = rng.standard_normal((2, PAIRS))
        sides[0] += effect
        sides[1] *= not paired
        tested = [rng.permutation(PAIRS)[PAIRS // 2 :] for _ in range(10)]
        ps = [t_test(sides[0][rows], sides[1][rows], paired=paired)[0] for rows in tested]
        joined += any_of(ps) <= LEVEL
        one += ps[0] <= LEVEL
        whole += t_test(*sides, paired=paired)[0] <= LEVEL
    shares = {"rejected": joined, "one split": one, "all pairs": whole}
    return {"effect": effect, "audits": audits, **{name: hits / audits for name, hits in shares.items()}}


def _split_share(answers: Sequence[Answer]) -> float | None:
    """Of ten splits of every audit, the share that rejects by itself."""
    every = [p for answer in answers for p in answer.facts.get("p of each seed", ())]
    return round(float(np.mean(np.array(every) <= LEVEL)), 4) if every else None


def main() -> None:
    """Run what is not on file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nulls", type=int, default=200, help="nulls of procedures with one split")
    options.add_argument("--joined", type=int, default=40, help="nulls of procedures with ten splits")
    options.add_argument("--leans", type=int, default=10, help="audits of each size of lean")
    options.add_argument("--margins", type=int, default=300, help="audits of each effect without learning")
    options.add_argument("--out", default=str(RESULTS / "procedure_null.json"))
    chosen = options.parse_args()
    settings = {"pairs": PAIRS, "scores": PLAIN + 1, "level": LEVEL, "outliers": OUTLIERS}
    ledger = Ledger(RESULTS.joinpath(chosen.out), settings)
    work: dict[tuple[str, str], tuple[Mapping[str, Test], Law, int]] = {}
    for name, law in LEANS.items():
        work["lean", name] = (PARTS, law, chosen.leans)
    for name, law in NULLS.items():
        work["null", name] = (SINGLE, law, chosen.nulls)
    for name, law in NULLS.items():
        work["null, joined", name] = (JOINED, law, chosen.joined)
    for key in ledger.todo([{"part": "margin", "law": law} for law in MARGINS]):
        paired, effects = MARGINS[key["law"]]
        ledger.add(key, [margins(d, paired=paired, audits=chosen.margins) for d in effects], {})
    for key in ledger.todo([{"part": part, "law": law} for part, law in work]):
        began = time.perf_counter()
        tests, law, audits = work[key["part"], key["law"]]
        rows = list(counted(tests, law, range(audits)))
        ledger.add(key, rows, {"seconds": round(time.perf_counter() - began, 1)})


if __name__ == "__main__":
    main()
