"""Does flagging keep its rate of false flags, and what does it find?

Run it as `python -m benchmarks.designs.flagging --work FOLDER`.

On planted models (the folder that `python -m benchmarks.papers.planted_domains --work FOLDER` filled) every text's
membership is known and members differ from non-members in nothing else. Each model scores its texts once;
then known non-members and texts in question are drawn anew thousands of times, with a share of members
among the texts of 0, 10 and 50%, and flagged at several rates. Beside it stands the model before planting,
as target (it must flag next to nothing) and as placebo (how often it would refuse by chance).

The controls that look at texts alone are measured on the same domains without any model: how often sets that
chance divided are refused, and how often sets of which a quarter or all are from another domain.

Writes benchmarks/results/flagging.json and a figure; killed at any time it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.designs.flagging_plots import draw
from benchmarks.experiments import Ledger, Spoken, explained, options, settings_of
from benchmarks.papers.planted_domains import DOMAINS
from pretrace import Models, Options, PretraceError, detect, open_corpus, open_model
from pretrace.errors import TextsError
from pretrace.statistics.conformal import adjusted, flagged, p_values, resolution
from pretrace.statistics.controls import placebos
from pretrace.types import Check, Corpus, Doubles
from pretrace.verdicts.flag import SCORE
from pretrace.verdicts.flag.checks import placebo_check, set_checks

SCORES = ("min_k_plus_plus", "loss", "zlib", "min_k", "ref")
RATES = (0.05, 0.1, 0.2, 0.3)
SHARES = (0.0, 0.1, 0.5)
FOREIGN = (0.0, 0.25, 1.0)
NOTES = {
    "fdr": "mean over draws of the false share of the flagged texts (0 where none is), with its standard error",
    "power": "mean over draws of the share of members that were flagged",
    "any": "share of draws in which any text was flagged",
    "before": "the same texts and draws with the scores of the model before planting, which saw none of them",
    "ref": "the reference is the model before planting, so before planting it is 0 for every text",
    "together": "texts that must stand above all known ones before any is flagged; null where no number would do",
}

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The texts of a domain with every score, [texts], on the planted model and on the one before planting."""

    members: npt.NDArray[np.bool_]
    target: Mapping[str, Doubles]
    before: Mapping[str, Doubles]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many known non-members and texts in question a draw takes, and how many draws are made."""

    known: int
    asked: int
    draws: int
    seed: int


def scored(folder: Path, model: str, dtype: str) -> Pool:
    """The scores of a planted model's own texts, through the trace cache."""
    corpus = open_corpus(str(folder / "texts.jsonl"))
    base = open_model(model, dtype=dtype)
    models = Models(
        open_model(str(folder), dtype=dtype), reference=base, placebo=Models(base, reference=base)
    )
    run = detect(corpus, models, SCORES, Options(progress=Spoken()))
    if not run.labelled:
        raise TextsError(f"some texts of {folder} have no label: is it a planted model?")
    target = {name: run.column(name) for name in run.scores}
    return Pool(np.array(run.members, dtype=bool), target, placebos(run))


def drawn(members: npt.NDArray[np.bool_], share: float, sizes: Sizes) -> Iterator[tuple[Rows, Rows]]:
    """Rows of known non-members and of texts in question, a share of them members, one draw after the other."""
    rng = np.random.default_rng([sizes.seed, round(100 * share)])
    inside, outside = np.flatnonzero(members), np.flatnonzero(~members)
    number = round(share * sizes.asked)
    for _ in range(sizes.draws):
        others = rng.permutation(outside)
        known, rest = others[: sizes.known], others[sizes.known :][: sizes.asked - number]
        yield known, np.concatenate((rng.permutation(inside)[:number], rest))


def flags(pool: Pool, score: str, share: float, sizes: Sizes) -> list[dict[str, Any]]:
    """A row a rate: false share, power and how often anything is flagged, on target and before planting."""
    found: dict[tuple[str, float], list[tuple[float, float, bool]]] = {}
    for known, asked in drawn(pool.members, share, sizes):
        seen = pool.members[asked]
        for which, columns in (("target", pool.target), ("before", pool.before)):
            values = columns[score]
            q = adjusted(p_values(values[asked], values[known]))
            for rate in RATES:
                chosen = flagged(q, rate)
                number = max(1, int(chosen.sum()))
                false = float((chosen & ~seen).sum() / number)
                power = float(chosen[seen].mean()) if seen.any() else 0.0
                found.setdefault((which, rate), []).append((false, power, bool(chosen.any())))
    return [_row(found, rate, sizes) for rate in RATES]


def _row(
    found: Mapping[tuple[str, float], list[tuple[float, float, bool]]], rate: float, sizes: Sizes
) -> dict[str, Any]:
    target = np.array(found["target", rate], dtype=np.float64)
    before = np.array(found["before", rate], dtype=np.float64)
    error = target[:, 0].std(ddof=1) / np.sqrt(len(target)) if len(target) > 1 else 0.0
    return {
        "rate": rate,
        "together": resolution(sizes.known, sizes.asked, rate).together,
        "fdr": [round(float(target[:, 0].mean()), 4), round(float(error), 4)],
        "power": round(float(target[:, 1].mean()), 4),
        "any": round(float(target[:, 2].mean()), 4),
        "before_any": round(float(before[:, 2].mean()), 4),
    }


def placebo_refusals(pool: Pool, score: str, sizes: Sizes, *, draws: int) -> int:
    """Of so many draws, those in which the model before planting, as placebo, would refuse; half are members."""
    refused = 0
    values = pool.before[score]
    for known, asked in drawn(pool.members, 0.5, replace(sizes, draws=draws)):
        rows = np.concatenate((asked, known))
        q = adjusted(p_values(values[asked], values[known]))
        number = int(flagged(q, 0.05).sum())
        mine = np.arange(len(rows)) < len(asked)
        names = [str(row) for row in rows]
        check = placebo_check(values[rows], mine, names, flagged=number, rate=0.05, seed=sizes.seed)
        refused += check.status == "failed"
    return refused


def refusals(own: Corpus, others: Sequence[Corpus], foreign: float, sizes: Sizes) -> dict[str, int]:
    """Draws in which each text-only control fails, where a share of the texts in question is of another domain."""
    rng = np.random.default_rng([sizes.seed, round(100 * foreign)])
    failed = {"words": 0, "length": 0, "either": 0}
    for draw_number in range(sizes.draws):
        order = rng.permutation(len(own))
        known = [own.texts[i] for i in order[: sizes.known]]
        number = round(foreign * sizes.asked)
        asked = [own.texts[i] for i in order[sizes.known :][: sizes.asked - number]]
        if number:
            other = others[draw_number % len(others)]
            asked += [other.texts[i] for i in rng.permutation(len(other))[:number]]
        texts = [text.text for text in (*asked, *known)]
        mine = np.arange(len(texts)) < len(asked)
        checks = set_checks(texts, mine, [str(i) for i in range(len(texts))], seed=draw_number)
        bad = [check.name for check in checks if _failed(check)]
        for name in (*bad, *(["either"] if bad else [])):
            failed[name] += 1
    return failed


def _failed(check: Check) -> bool:
    return check.status == "failed"


def of_model(
    key: Mapping[str, Any], given: argparse.Namespace
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows of one planted model."""
    begin = time.perf_counter()
    pool = scored(given.work / f"{key['domain']}-{key['epochs']}", given.model, given.dtype)
    seconds = {"scoring": round(time.perf_counter() - begin, 1)}
    sizes = Sizes(given.known, given.texts, given.draws, given.seed)
    rows = [
        {"score": score, "share": share, **row}
        for score in SCORES
        for share in SHARES
        for row in flags(pool, score, share, sizes)
    ]
    refused = placebo_refusals(pool, SCORE, sizes, draws=given.set_draws)
    seconds["all"] = round(time.perf_counter() - begin, 1)
    members = int(pool.members.sum())
    facts = {"members": members, "nonmembers": len(pool.members) - members}
    return rows, {**facts, "placebo_refused": refused, "placebo_draws": given.set_draws, "seconds": seconds}


def of_texts(
    key: Mapping[str, Any], given: argparse.Namespace
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """How often the text-only controls refuse, on one domain's texts."""
    begin = time.perf_counter()
    corpora = {name: _texts(given.work, name) for name in DOMAINS if _folders(given.work, name)}
    own = corpora.pop(key["domain"])
    rows = []
    for foreign in FOREIGN:
        draws = given.set_draws if not foreign else max(1, given.set_draws // 4)
        if foreign and not corpora:
            continue
        sizes = Sizes(given.known, given.texts, draws, given.seed)
        failed = refusals(own, list(corpora.values()), foreign, sizes)
        rows.append({"foreign": foreign, "draws": draws, "refused": failed})
    return rows, {"seconds": {"all": round(time.perf_counter() - begin, 1)}}


def _folders(work: Path, domain: str) -> list[Path]:
    return sorted(path for path in work.glob(f"{domain}-*") if (path / "card.json").is_file())


def _texts(work: Path, domain: str) -> Corpus:
    return open_corpus(str(_folders(work, domain)[0] / "texts.jsonl"))


def keys(work: Path) -> list[dict[str, Any]]:
    """What there is to measure in a folder of planted models; TextsError where there is nothing."""
    found: list[dict[str, Any]] = []
    for domain in DOMAINS:
        folders = _folders(work, domain)
        found += [
            {"part": "flags", "domain": domain, "epochs": int(folder.name.rsplit("-", 1)[1])}
            for folder in folders
        ]
        found += [{"part": "sets", "domain": domain}] * bool(folders)
    if not found:
        raise TextsError(
            f"{work} holds no planted models: make them with python -m benchmarks.papers.planted_domains --work {work}."
        )
    return found


def parsed() -> argparse.Namespace:
    """The options."""
    parser = options(__doc__ or "", "flagging", texts=40, tokens=None)
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps the planted models")
    parser.add_argument("--known", type=int, default=150, help="known non-members of a draw")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--set-draws", type=int, default=60, help="draws for the controls")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    """Measure what is not on file yet, and draw."""
    given = parsed()
    ledger = Ledger(given.out, settings_of(given, "known", "draws", "set_draws", "seed"), fresh=given.fresh)
    for key in ledger.todo(keys(given.work), given.limit):
        ledger.add(key, *(of_model if key["part"] == "flags" else of_texts)(key, given))
    found = ledger.save(notes=NOTES)
    if any(row["part"] == "flags" for row in found["rows"]):
        draw(json.loads(given.out.read_text(encoding="utf-8")), given.out.with_suffix(".png"))


if __name__ == "__main__":
    try:
        main()
    except PretraceError as error:
        raise explained(error) from None
