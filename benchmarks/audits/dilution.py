"""What a collection leaves in a model that read much else: AUC and power by copies, dilution and place.

Of PubMed abstracts (Pile) 400 are drawn as the collection and 400 as non-members, one excerpt of 96 tokens each. A
model from scratch reads the collection once, 4 or 16 times among 1, 10, 100 or 1,000 times as much other text: other
Pile domains, the other abstracts, and the standard library's docstrings, each window once as far as they go. The
copies stand `throughout`, or in one block whose middle is at a tenth of the training (`early`), at half (`middle`) or
at nine tenths (`late`), moved inside where it does not fit. A twin reads the same other text and never the
collection: it is the placebo of every score, the reference of `ref`, `wbc`, `ez` and `learned`, and the placebo of the
audit. The classifier of `learned` is carried over from a model of another seed, with another tokenizer, that read other
abstracts four times among as much other text.

`python -m benchmarks.audits.dilution --work FOLDER [--sizes 1 3 10] [--dilutions 1 10 100] [--copies 1 4 16] [--places
throughout early middle late] [--seeds 0 1 2]` does the cells that are not on file yet, the cheapest first, and writes
evidence/dilution.json after each, a law fitted with one cell left out, and what the planner
takes from it (src/pretrace/verdicts/measured_here.json). A killed training goes on where it was; `--limit 0` trains
nothing and makes the law anew. `cells_not_run` in the file names those of the whole plan that are missing.

Power is that of the audit's two-sample permutation test of one value a document, p-values alone: 200 sets of documents
drawn with replacement from those read and from those not, so that at 400 what chance makes of these documents counts
as an effect.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from benchmarks import RESULTS
from benchmarks.experiments import Ledger, Spoken, explained, figures
from benchmarks.texts import DATA
from pretrace import Models, Options, PretraceError, count, detect, evaluate, open_corpus, open_model
from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.tokens import Tokens
from pretrace.results.atomic import atomic_text
from pretrace.results.folder import json_lines
from pretrace.scoring.plan import ScorePlan
from pretrace.statistics.permutation import auc_power, two_sample_test
from pretrace.tuning.architectures import Architecture, new_model
from pretrace.tuning.plan import TrainingPlan
from pretrace.tuning.planting import windows
from pretrace.types import Corpus, Doubles, Text
from pretrace.verdicts.audit.data import logprob_gains, logprobs
from pretrace.verdicts.audit.snippets import Sample

COLLECTION, OTHERS = (
    "pubmed_abstracts",
    ("wikipedia_en", "stackexchange", "hackernews", "github", "nih_exporter"),
)
DOCUMENTS, TOKENS = 400, 96
SHAPES = {
    1: Architecture(family="llama", layers=4, width=128, heads=4, vocabulary=2048, max_tokens=128),
    3: Architecture(family="llama", layers=4, width=224, heads=7, vocabulary=2048, max_tokens=128),
    10: Architecture(family="llama", layers=6, width=352, heads=11, vocabulary=2048, max_tokens=128),
}
"""About so many million parameters."""
DILUTIONS, COPIES = (1, 10, 100, 1000), (1, 4, 16)
PLACES = {"throughout": None, "early": 0.1, "middle": 0.5, "late": 0.9}
SCORES = (
    *("loss", "zlib", "lowercase", "min_k", "min_k(k=0.1)", "min_k_plus_plus", "gap_k", "surp", "dc_pdd"),
    *("ref", "wbc", "ez", "coverage(samples=4)"),
)
SIZES, DRAWS, PERMUTATIONS = (25, 50, 100, 200, 400), 200, 199
HIGHEST = 0.9995
"""An AUC of 1 counts as this one: no finite effect has 1."""
APART = 2.5
"""A d' above which it is hardly measured."""
SCORES_FORESEEN = ("min_k_plus_plus", "ref")
FORESEEN = SCORES_FORESEEN[0]
"""The score of the planner: the best of those that need no other model where the published figures are from."""
HELD = 0.9
"""The share of left-out cells that an interval is to hold."""
SETTLED = 19
"""So many runs were on file when the form of the law and of its interval was settled; later ones test them."""
PACKAGED = Path(__file__).parents[2] / "src/pretrace/verdicts/measured_here.json"
SETTINGS = {"documents": DOCUMENTS, "tokens": TOKENS, "batch": 16, "learning_rate": 2e-3, "draws": DRAWS}


@dataclass(frozen=True, slots=True)
class Texts:
    """The collection with its labels, and the other text in the order of a seed."""

    labelled: Corpus
    other: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ready:
    """The same as token ids: a window a member, and windows of other text; and the architecture's first weights."""

    members: list[list[int]]
    other: list[list[int]]


def texts(data: Path, seed: int) -> Texts:
    """Members and non-members drawn at random, and all that is read beside them."""
    rng = np.random.default_rng([seed, 1])
    own = [text.text.strip() for text in open_corpus(str(data / f"{COLLECTION}.jsonl.gz")).texts]
    long = [text for text in own if len(text) >= 6 * TOKENS]
    order = rng.permutation(len(long))
    drawn = [long[i] for i in order[: 2 * DOCUMENTS]]
    labelled = tuple(
        Text(f"d{i}", text[: 6 * TOKENS], member=i < DOCUMENTS, group=f"d{i}") for i, text in enumerate(drawn)
    )
    taken = set(drawn)
    other = [text for text in own if text not in taken]
    for name in OTHERS:
        other += [text.text for text in open_corpus(str(data / f"{name}.jsonl.gz")).texts]
    other += [text.text for text in open_corpus("stdlib").texts]
    return Texts(Corpus("dilution", labelled), tuple(other))


def cut(found: Texts, tokenizer: Any) -> tuple[Texts, Ready]:
    """Each text of the collection cut to its first tokens, and everything as token ids."""
    encode, end = Tokens(tokenizer, start="always"), [int(tokenizer.eos_token_id)]
    kept = []
    for text in found.labelled.texts:
        spans = tokenizer(text.text, return_offsets_mapping=True)["offset_mapping"]
        kept.append(
            Text(text.id, text.text[: spans[min(TOKENS, len(spans)) - 1][1]], text.member, text.group)
        )
    labelled = Corpus(found.labelled.name, tuple(kept))
    members = [
        [*e.prefix.tolist(), *e.tokens.tolist(), *end]
        for e in encode.encode([t.text for t in kept if t.member])
    ]
    other = [
        window
        for e in encode.encode(found.other)
        for window in windows([*e.prefix.tolist(), *e.tokens.tolist(), *end], TOKENS + 2)
        if len(window) > TOKENS // 2
    ]
    return Texts(labelled, found.other), Ready(members, other)


def stream(ready: Ready, cell: Mapping[str, Any], *, twin: bool) -> list[list[int]]:
    """What a model reads, in order."""
    wanted, seed = cell["dilution"] * DOCUMENTS, cell["seed"]
    rng = np.random.default_rng([seed, 2])
    order: list[int] = []
    while len(order) < wanted:  # beyond what there is, other text is read again in another order
        order += rng.permutation(len(ready.other)).tolist()
    other = [ready.other[i] for i in order[:wanted]]
    if twin:
        return other
    rng = np.random.default_rng([seed, 3])
    block = [ready.members[i] for _ in range(cell["copies"]) for i in rng.permutation(len(ready.members))]
    middle = PLACES[cell["place"]]
    if middle is None:
        places = np.sort(rng.choice(len(other) + len(block), len(block), replace=False))
        marked, mine, rest = set(places.tolist()), iter(block), iter(other)
        return [next(mine) if i in marked else next(rest) for i in range(len(other) + len(block))]
    total = len(other) + len(block)
    start = min(max(0, round(middle * total - len(block) / 2)), len(other))
    return [*other[:start], *block, *other[start:]]


def model_of(
    folder: Path, ready: Ready, cell: Mapping[str, Any], tokenizer_texts: Sequence[str], *, twin: bool
) -> Path:
    """The folder of a trained model, which is trained where it is not there yet."""
    name = f"{cell['size']}m-d{cell['dilution']}-s{cell['seed']}"
    place = folder / (f"{name}-twin" if twin else f"{name}-c{cell['copies']}-{cell['place']}")
    if (place / "config.json").is_file():
        return place
    from pretrace.tuning.training import train

    model, tokenizer = new_model(tokenizer_texts, architecture=SHAPES[cell["size"]], seed=cell["seed"])
    plan = TrainingPlan(
        batch=SETTINGS["batch"], learning_rate=SETTINGS["learning_rate"], warmup=0.05, seed=cell["seed"],
        shuffled=False, save_minutes=3.0,
    )  # fmt: skip
    checkpoint = folder / f".{place.name}.training"
    train(model, stream(ready, cell, twin=twin), plan, on_step=Spoken().on_step, checkpoint=checkpoint)
    tokenizer.save_pretrained(place)
    model.save_pretrained(place)  # the configuration is written with the weights
    checkpoint.unlink(missing_ok=True)
    return place


def audit_power(members: Doubles, nonmembers: Doubles, *, seed: int) -> dict[str, float]:
    """The share of audits that reject at 5%, by the number of documents on each side."""
    found = {}
    for size in SIZES:
        rng = np.random.default_rng([seed, size])
        rejected = [
            two_sample_test(
                rng.choice(members, size), rng.choice(nonmembers, size), permutations=PERMUTATIONS, seed=i
            ).p
            <= 0.05
            for i in range(DRAWS)
        ]
        found[str(size)] = round(float(np.mean(rejected)), 4)
    return found


class Experiment:
    """The cells of one seed share their texts and their tokens."""

    def __init__(self, work: Path, data: Path) -> None:
        self.work, self.data = work, data
        self.seed = -1

    def prepare(self, seed: int) -> None:
        """Texts and tokens of a seed."""
        if seed == self.seed:
            return
        found = texts(self.data, seed)
        self.spelled = [*found.other[::5], *(text.text for text in found.labelled.texts)]
        _, tokenizer = new_model(self.spelled, architecture=SHAPES[1], seed=seed)
        self.found, self.ready = cut(found, tokenizer)
        self.seed = seed

    def _classifier(self, seed: int) -> Path:
        """The folder of a run that records a classifier of `learned` fitted on a model of another seed, without the
        texts of this one."""
        other = 1 if seed == 0 else 0
        folder = self.work / f"learned-s{seed}"
        if (folder / "run.json").is_file():
            return folder
        self.prepare(seed)
        here = {text.text[:100] for text in self.found.labelled.texts}
        self.prepare(other)
        cell = {"size": 1, "dilution": 1, "copies": 4, "place": "throughout", "seed": other}
        target, twin = self._models(cell)
        apart = tuple(text for text in self.found.labelled.texts if text.text[:100] not in here)
        asked = Models(target, reference=twin, labelled=Corpus("another seed", apart))
        facts = ScorePlan.parse("learned").fit(asked, cache=False).facts
        folder.mkdir(exist_ok=True)
        atomic_text(folder / "run.json", json.dumps({"settings": {"fitted": facts}}))
        return folder

    def _models(self, cell: Mapping[str, Any]) -> tuple[HuggingFace, HuggingFace]:
        """The model of a cell and its twin."""
        self.prepare(cell["seed"])
        folders = [model_of(self.work, self.ready, cell, self.spelled, twin=twin) for twin in (False, True)]
        target, twin = (open_model(str(folder), dtype="float32") for folder in folders)
        assert isinstance(target, HuggingFace)
        assert isinstance(twin, HuggingFace)
        return target, twin

    def measure(self, cell: Mapping[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The rows of a cell, and what there is to tell of it."""
        begin = time.perf_counter()
        carried = f"learned(run={str(self._classifier(cell['seed']))!r})"
        target, twin = self._models(cell)
        labelled = self.found.labelled
        counts = count(
            list(self.found.other[::10]),
            target.tokens.rust,
            tokenizer_hash=target.tokenizer_hash,
            source="other text",
        )
        beside = Models(twin, reference=twin, counts=counts)
        asked = Models(target, reference=twin, counts=counts, placebo=beside)
        scores = [*SCORES, carried]
        run = evaluate(detect(labelled, asked, scores, Options(cache=False, seed=0)), labelled, seed=0)
        rows = [
            {**row, "score": "learned" if row["score"] == carried else row["score"]}
            for row in figures(run)
            if row["kind"] == "score"
        ]
        member = np.array([bool(text.member) for text in labelled.texts])
        name = "min_k_plus_plus"
        alone = run.column(name)
        unseen = next(one.values[:, 0] for one in run.controls if (one.score, one.kind) == (name, "placebo"))
        samples = [Sample(text.id, text.text) for text in labelled.texts]
        read = [logprobs(one, samples, cache=False) for one in (target, twin)]
        (gains,) = logprob_gains([(read[0], read[1])])
        learned = float(np.mean(read[0].per_token[member]) - np.mean(read[1].per_token[member]))
        elsewhere = float(np.mean(read[0].per_token[~member]) - np.mean(read[1].per_token[~member]))
        facts = {
            "parameters": sum(weight.numel() for weight in target.model.parameters()),
            "tokens": sum(len(one) - 1 for one in stream(self.ready, cell, twin=False)),
            "nats_gained": {"members": round(learned, 4), "nonmembers": round(elsewhere, 4)},
            "loss": round(-float(np.mean(read[0].per_token[~member])), 4),
            "audit": {
                "without_placebo": audit_power(alone[member], alone[~member], seed=cell["seed"]),
                "with_placebo": audit_power(gains[member], gains[~member], seed=cell["seed"]),
                "twin_without_placebo": audit_power(unseen[member], unseen[~member], seed=cell["seed"]),
            },
            "seconds": round(time.perf_counter() - begin, 1),
        }
        return rows, facts


def law(found: Mapping[str, Any]) -> dict[str, Any]:
    """d' of a score as exp(a + b log copies + c log dilution + e log size), fitted to the mean of the seeds of each
    cell, and what it foresees for each cell when it is fitted without it.

    Where in the training the texts stood is left out, as nobody who asks knows it: it is part of the spread. A d'
    counts as 0.01 at least and 2.5 at most, above which single documents are told apart nearly without fail.
    `interval` is where nine of ten measured AUCs should lie: so many standard errors around the law as hold nine of ten
    of the cells that it was fitted to, each foreseen by the others (`factor`). Both are made without the cell that is
    foreseen.
    """
    made = {}
    for score in SCORES_FORESEEN:
        fit = _Cells.of(found, score)
        if len({(copies, dilution) for _, dilution, copies, _ in fit.cells}) < 5:
            continue
        every = np.arange(len(fit.cells))
        left_out = []
        for i, cell in enumerate(fit.cells):
            low, middle, high = fit.foreseen(fit.design[i], every[every != i], fit.seeds[i])
            size, dilution, copies, place = cell
            left_out.append(
                {
                    "size": size, "dilution": dilution, "copies": copies, "place": place, "seeds": int(fit.seeds[i]),
                    "auc": round(_auc(fit.measured[i]), 4), "foreseen": round(_auc(middle), 4),
                    "interval": [round(_auc(low), 4), round(_auc(high), 4)],
                    "inside": bool(low <= min(fit.measured[i], APART) <= max(low, high)),
                }
            )  # fmt: skip
        weights, _, spread = fit.fitted(every)
        away = [abs(one["auc"] - one["foreseen"]) for one in left_out]
        made[score] = {
            "exponents": {name: round(float(w), 4) for name, w in zip(fit.names, weights, strict=True)},
            "spread": round(spread, 4),
            "factor": round(fit.factor(every), 4),
            "left_out": left_out,
            "mean_error_left_out": round(float(np.mean(away)), 4),
            "cells_in_interval": sum(one["inside"] for one in left_out),
            "cells": len(left_out),
        }
    return made


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of a score as a regression: what was measured, from how many seeds, with what error."""

    names: tuple[str, ...]
    cells: list[tuple[Any, ...]]
    design: Doubles
    measured: Doubles
    seeds: Doubles

    @staticmethod
    def of(found: Mapping[str, Any], score: str, runs: int | None = None) -> _Cells:
        """The cells of all runs, or of the first so many."""
        kept = {_cell(run) for run in found["runs"][:runs]}
        effects: dict[tuple[Any, ...], list[float]] = {}
        for row in found["rows"]:
            if row["score"] == score and _cell(row) in kept:
                effects.setdefault(_cell(row)[:-1], []).append(_effect(row["auc"][0]))
        cells = list(effects)
        sizes = len({cell[0] for cell in cells}) > 1
        return _Cells(
            ("constant", "copies", "dilution", *(("parameters",) if sizes else ())),
            cells,
            np.array([_line(cell, sizes) for cell in cells]),
            np.array([float(np.mean(effects[cell])) for cell in cells]),
            np.array([len(effects[cell]) for cell in cells]),
        )

    def fitted(self, some: Any) -> tuple[Doubles, Doubles, float]:
        """Weights of a regression of some cells with known errors, their covariance, and the spread around it beyond
        these errors, 0.05 at least: each cell weighs by its own error and the spread together, in ten rounds."""
        design, capped = self.design[some], np.minimum(self.measured[some], APART)
        logs, error, spread = np.log(capped), _error(capped, self.seeds[some]), 0.2
        for _ in range(10):
            precision = 1 / (error**2 + spread**2)
            covariance = np.linalg.pinv((design.T * precision) @ design)
            weights = covariance @ (design.T * precision) @ logs
            rest = logs - design @ weights
            free = max(1, len(logs) - np.linalg.matrix_rank(design))
            more = float(np.sum(precision * (rest**2 - error**2)) / np.sum(precision)) * len(logs) / free
            spread = math.sqrt(max(0.05**2, more))
        return weights, covariance, spread

    def expected(self, line: Doubles, some: Any, seeds: float) -> tuple[float, float]:
        """log d' as some cells foresee it, and its standard error for a cell measured with so many seeds."""
        weights, covariance, spread = self.fitted(some)
        log = float(line @ weights)
        own = float(_error(np.asarray(min(APART, math.exp(log))), np.asarray(seeds)))
        return log, math.sqrt(float(line @ covariance @ line) + spread**2 + own**2)

    def factor(self, some: Any) -> float:
        """So many standard errors hold nine of ten of these cells, each foreseen by the others."""
        away = []
        for i in some:
            log, error = self.expected(self.design[i], some[some != i], self.seeds[i])
            away.append(abs(math.log(min(self.measured[i], APART)) - min(log, math.log(APART))) / error)
        rank = min(len(away), math.ceil(HELD * (len(away) + 1)))
        return float(np.sort(away)[rank - 1])

    def foreseen(self, line: Doubles, some: Any, seeds: float) -> tuple[float, float, float]:
        """d' as some cells foresee it: the low end of its interval, the middle and the high end, 2.5 at most."""
        log, error = self.expected(line, some, seeds)
        half = self.factor(some) * error
        low, middle, high = (min(APART, math.exp(log + sign * half)) for sign in (-1, 0, 1))
        return low, middle, high


def _line(cell: tuple[Any, ...], sizes: bool) -> list[float]:
    size, dilution, copies, _ = cell
    return [1.0, math.log(copies), math.log(dilution), *([math.log(size)] if sizes else [])]


def _error(effect: Doubles, seeds: Doubles) -> Doubles:
    """The standard error of the logarithm of a d' measured on so many sets of 400 documents a side."""
    return np.asarray(np.sqrt((2 / DOCUMENTS + effect**2 / (4 * DOCUMENTS)) / seeds) / effect)


def _effect(auc: float) -> float:
    return max(0.01, math.sqrt(2) * NormalDist().inv_cdf(min(HIGHEST, auc)))


def _auc(effect: float) -> float:
    return NormalDist().cdf(effect / math.sqrt(2))


def power_of(auc: float, documents: int) -> float:
    """The power that the planner foresees from an AUC."""
    return auc_power(min(HIGHEST, max(0.5001, auc)), documents, documents)


def planner(found: Mapping[str, Any]) -> dict[str, Any]:
    """The power of the audit without a placebo, foreseen and measured, for every cell (the mean of its seeds) and
    number of documents: how many lie within 0.15. `from_auc` takes the AUC that was measured, `from_law` the one that a
    law fitted without this cell foresees; there `in_interval` counts the measured powers between those of the ends of
    the interval. `places_together` is the same of the mean over the places in the training that are on file, which is
    what the planner speaks of: nobody who asks knows the place; there no run of that size, dilution and number of
    copies is in the fit. `later` holds the runs that came after the form of the law was settled against the law of
    those before."""
    own: dict[tuple[Any, ...], list[float]] = {}
    for row in found["rows"]:
        if row["score"] == FORESEEN:
            own.setdefault(_cell(row)[:-1], []).append(row["auc"][0])
    measured = _measured_power(found["runs"])
    left_out = {
        _cell({"seed": 0, **one})[:-1]: one for one in law(found).get(FORESEEN, {}).get("left_out", ())
    }
    aucs = {cell: (0.0, float(np.mean(some)), 1.0) for cell, some in own.items()}
    made = {"from_auc": _held(aucs, measured)}
    if left_out:
        laid = {
            cell: (one["interval"][0], one["foreseen"], one["interval"][1]) for cell, one in left_out.items()
        }
        made["from_law"] = {**_held(laid, measured), "in_interval": _inside(laid, measured)}
        made["places_together"] = _places_together(found, measured)
    later = found["runs"][SETTLED:]
    if later and left_out:
        before = _Cells.of(found, FORESEEN, SETTLED)
        every, sizes = np.arange(len(before.cells)), "parameters" in before.names
        laid = {}
        for run in later:
            ends = before.foreseen(np.array(_line(_cell(run)[:-1], sizes)), every, 1)
            laid[_cell(run)[:-1]] = tuple(_auc(one) for one in ends)
        after = _measured_power(later)
        made["later"] = {
            "runs": len(later),
            "aucs_in_interval": sum(
                laid[_cell(row)[:-1]][0] <= row["auc"][0]
                and (
                    row["auc"][0] <= laid[_cell(row)[:-1]][2]
                    or laid[_cell(row)[:-1]][2] >= _auc(APART) - 1e-9
                )
                for row in found["rows"]
                if row["score"] == FORESEEN and _cell(row) in {_cell(run) for run in later}
            ),
            **_held(laid, after),
            "in_interval": _inside(laid, after),
        }
    return made


def _places_together(
    found: Mapping[str, Any], measured: Mapping[tuple[Any, ...], Mapping[int, float]]
) -> dict[str, Any]:
    """The powers of `planner` by size, dilution and copies, of all places together."""
    fit = _Cells.of(found, FORESEEN)
    every, laid, mean = np.arange(len(fit.cells)), {}, {}
    for cell in dict.fromkeys(cell[:3] for cell in fit.cells if cell in measured):
        here = np.array([own[:3] == cell for own in fit.cells])
        ends = fit.foreseen(fit.design[here][0], every[~here], 1)
        places = [measured[own] for own in fit.cells if own[:3] == cell and own in measured]
        laid[*cell, "all"] = tuple(_auc(one) for one in ends)
        mean[*cell, "all"] = {size: float(np.mean([one[size] for one in places])) for size in places[0]}
    return {**_held(laid, mean), "in_interval": _inside(laid, mean)}


def _measured_power(runs: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], dict[int, float]]:
    """The power of the audit by cell and number of documents, the mean of the seeds."""
    power: dict[tuple[Any, ...], dict[int, list[float]]] = {}
    for run in runs:
        for size, share in run["audit"]["without_placebo"].items():
            power.setdefault(_cell(run)[:-1], {}).setdefault(int(size), []).append(share)
    return {
        cell: {size: float(np.mean(some)) for size, some in sizes.items()} for cell, sizes in power.items()
    }


def _held(
    laid: Mapping[tuple[Any, ...], tuple[float, ...]], measured: Mapping[tuple[Any, ...], Mapping[int, float]]
) -> dict[str, Any]:
    """How many powers foreseen from the middle AUC lie within 0.15 of the measured one."""
    away = {
        (cell, size): abs(power_of(laid[cell][1], size) - share)
        for cell, sizes in measured.items()
        for size, share in sizes.items()
        if cell in laid
    }
    return {
        "cells_and_sizes": len(away),
        "within_0.15": sum(one <= 0.15 for one in away.values()),
        "largest": round(max(away.values()), 4),
        "beyond": [
            f"{cell[0]}M, {cell[1]} times, {cell[2]} copies, {cell[3]}: {size} documents"
            for (cell, size), one in away.items()
            if one > 0.15
        ],
    }


def _inside(
    laid: Mapping[tuple[Any, ...], tuple[float, ...]], measured: Mapping[tuple[Any, ...], Mapping[int, float]]
) -> int:
    """How many measured powers lie between those foreseen from the ends of an interval, to half a draw."""
    room = 0.5 / DRAWS
    return sum(
        power_of(laid[cell][0], size) - room <= share <= power_of(laid[cell][2], size) + room
        for cell, sizes in measured.items()
        for size, share in sizes.items()
        if cell in laid
    )


def packaged(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the planner takes from these cells, one entry a size: by copies the AUC foreseen, with the ends of its
    interval, over the dilutions at which models of that size read the texts once, the case that the planner speaks of:
    a dilution that only many copies were measured at says nothing of one."""
    fit = _Cells.of(found, FORESEEN)
    every, sizes = np.arange(len(fit.cells)), "parameters" in fit.names
    twins = [row["placebo"]["auc"][0] for row in found["rows"] if row["score"] == FORESEEN]
    held = law(found)[FORESEEN]
    made = []
    for size in sorted({cell[0] for cell in fit.cells}):
        of_size = [run for run in found["runs"] if run["size"] == size]
        most = max(run["dilution"] for run in of_size if run["copies"] == 1)
        auc = {}
        for copies in COPIES:
            ends = [
                fit.foreseen(np.array(_line((size, dilution, copies, ""), sizes)), every, 1)
                for dilution in (1, most)
            ]
            middle = math.sqrt(ends[0][1] * ends[1][1])
            auc[str(copies)] = [
                round(_auc(min(one[0] for one in ends)), 4), round(_auc(middle), 4),
                round(min(HIGHEST, _auc(max(one[2] for one in ends))), 4),
            ]  # fmt: skip
        made.append(
            {
                "name": "our models",
                "source": f"evidence/dilution.json; AUC of {FORESEEN} that a law foresees",
                "parameters": of_size[0]["parameters"],
                "tokens": max(run["tokens"] for run in of_size if run["dilution"] <= most),
                "unseen": [min(twins), max(twins)],
                "auc": auc,
                "held": [held["cells_in_interval"], held["cells"]],
                "beside": most,
            }
        )
    return made


def _cell(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("size", "dilution", "copies", "place", "seed"))


def finished(ledger: Ledger) -> None:
    """Write what follows from all cells."""
    found = ledger.content
    ledger.save(law=law(found), planner=planner(found), cells_not_run=not_run(found))
    if ledger.path == RESULTS / "dilution.json":
        lines = ",\n ".join(json.dumps(one) for one in packaged(found))
        atomic_text(PACKAGED, f"[{lines}]\n")


def cells(given: argparse.Namespace) -> list[dict[str, Any]]:
    """All cells that are asked for, the cheapest first, and of equal ones those read throughout."""
    every = [
        {"size": size, "dilution": dilution, "copies": copies, "place": place, "seed": seed}
        for size, dilution, copies, place, seed in itertools.product(
            given.sizes, given.dilutions, given.copies, given.places, given.seeds
        )
    ]
    order = list(PLACES)
    return sorted(
        every,
        key=lambda one: (
            one["size"] * one["dilution"], one["place"] != "throughout", one["seed"], order.index(one["place"]),
            one["copies"],
        ),
    )  # fmt: skip


def not_run(found: Mapping[str, Any]) -> list[str]:
    """The cells of the whole plan (seed 0) that are not on file."""
    done = {(run["size"], run["dilution"], run["copies"], run["place"]) for run in found["runs"]}
    plan = itertools.product(SHAPES, DILUTIONS, COPIES, PLACES)
    return [
        f"{size}M, {d} times, {c} copies, {place}"
        for size, d, c, place in plan
        if (size, d, c, place) not in done
    ]


def labelled_rows(labelled: Corpus, characters: int | None) -> list[dict[str, Any]]:
    """The texts as `pretrace evaluate` reads them, whole or their beginnings: scores that this benchmark leaves out are
    measured on a model in its folder that way, and added by `python -m benchmarks.methods add`."""
    return [
        {"id": one.id, "text": one.text[:characters], "label": int(bool(one.member))}
        for one in labelled.texts
    ]


def main() -> None:
    """Measure what is not on file yet."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps the models")
    parser.add_argument("--data", type=Path, default=DATA / "pile")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1], choices=list(SHAPES))
    parser.add_argument("--dilutions", nargs="+", type=int, default=[1, 10, 100], choices=DILUTIONS)
    parser.add_argument("--copies", nargs="+", type=int, default=list(COPIES), choices=COPIES)
    parser.add_argument("--places", nargs="+", default=list(PLACES), choices=list(PLACES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--limit", type=int, help="finish at most so many cells in this call")
    parser.add_argument("--out", type=Path, default=RESULTS / "dilution.json")
    parser.add_argument("--texts", type=Path, help="write the labelled texts of the first seed here, and end")
    parser.add_argument("--characters", type=int, help="with --texts: cut each to so many")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    if given.texts is not None:
        experiment = Experiment(given.work, given.data)
        experiment.prepare(given.seeds[0])
        given.texts.write_bytes(json_lines(labelled_rows(experiment.found.labelled, given.characters)))
        return
    ledger = Ledger(given.out, SETTINGS)
    experiment = Experiment(given.work, given.data)
    for cell in ledger.todo(cells(given), given.limit):
        rows, facts = experiment.measure(cell)
        ledger.add(cell, rows, facts)
        finished(ledger)
        print(json.dumps({row["score"]: row["auc"][0] for row in rows}), facts["seconds"], flush=True)
    if ledger.content["runs"]:
        finished(ledger)


if __name__ == "__main__":
    try:
        main()
    except PretraceError as error:
        raise explained(error) from None
