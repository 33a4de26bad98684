"""How often an audit errs, by design: `python -m benchmarks.audits.errors --work FOLDER`.

Models whose members are known are audited with texts they were trained on (kind "member") and with texts of the same
draw that they were not (kind "null"). The models and what they said of the texts come from
`benchmarks.audits.readings`; here every design is tried on them, with control documents that the target was not
trained on either. Audits of one model and size have no document in common. A margin is chosen without the domain that
it is judged on.

Writes benchmarks/results/audit_errors.json, its plots, and the leans that the package itself carries.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks import ROOT
from benchmarks.audits.documents import KEPT_APART, MEASURED
from benchmarks.audits.error_plots import draw_domains, draw_rates
from benchmarks.audits.large import large_rows
from benchmarks.audits.literature import literature_rows
from benchmarks.audits.readings import EARLIER, OWN, TUNED
from benchmarks.audits.samples import (
    DRAWS,
    LEVEL,
    SNIPPET,
    WHOLE,
    Domain,
    Said,
    Subject,
    Values,
    alone,
    blocks,
    counted,
    differences,
    leads,
    part,
    scale_of,
    subjects,
)
from benchmarks.audits.wrong_controls import wrong_control_rows
from benchmarks.experiments import RESULTS, Ledger, Row
from pretrace.results.atomic import atomic_text
from pretrace.statistics.permutation import sign_flip_test, two_sample
from pretrace.types import Doubles

GRID = ((25, 50), (50, 50), (50, 200), (100, 100), (200, 200))
"""Suspect and control documents of an audit."""
ALONES = ("loss", "zlib", "min_k(k=0.2)", "min_k_plus_plus(k=0.2)", "min_k_plus_plus(k=1.0)")
NONE, MAX = "none", "largest p of own and tuned"
LEANS = ROOT / "src/pretrace/verdicts/audit/leans.json"


def against_controls(
    found: Values, grid: Sequence[tuple[int, int]] = GRID, *, seed: int = 0
) -> Iterator[Row]:
    """Rows of two-sample audits: a row a kind and size; `seed` draws who is in which audit."""
    rng = np.random.default_rng(seed)
    mine, others = (
        found.values[rng.permutation(np.flatnonzero(side))] for side in (found.members, ~found.members)
    )
    for suspect, controls in grid:
        if suspect + controls <= len(others):
            nulls = [others[i : i + suspect + controls] for i in blocks(len(others), suspect + controls)]
            yield _row("null", suspect, controls, [(one[:suspect], one[suspect:]) for one in nulls])
        number = min(len(mine) // suspect, len(others) // controls)
        pairs = [(part(mine, k, suspect), part(others, k, controls)) for k in range(number)]
        if pairs:
            yield _row("member", suspect, controls, pairs)


def _row(kind: str, suspect: int, controls: int, pairs: Sequence[tuple[Doubles, Doubles]]) -> Row:
    p = [two_sample(*pair, permutations=DRAWS, seed=k) for k, pair in enumerate(pairs)]
    return {"kind": kind, "documents": suspect, "controls": controls, **counted(p)}


def control_rows(subject: Subject) -> Iterator[Row]:
    """Real against real, with each placebo and with none."""
    said, pairs = subject.said(), subject.domain.pairs["drawn"]
    for name in (OWN, EARLIER):
        placebo = Said.of(subject.domain.beside, name, pairs)
        values = leads(said.whole, placebo.whole, scale_of(said, placebo))
        for row in against_controls(subject.by_document(values), seed=subject.seed):
            yield {"design": "controls", "placebo": name, "text": SNIPPET, **row}
    if "drawn/scores" not in subject.arrays:
        return
    values = alone(subject.arrays, "drawn", "loss") - alone(subject.domain.beside, OWN, "loss")
    for row in against_controls(subject.by_document(values, whole=True), seed=subject.seed):
        yield {"design": "controls", "placebo": OWN, "text": WHOLE, **row}
    for score in ALONES:
        values = alone(subject.arrays, "drawn", score)
        for row in against_controls(subject.by_document(values, whole=True), seed=subject.seed):
            yield {"design": "controls", "placebo": NONE, "score": score, "text": WHOLE, **row}


def difference_rows(subject: Subject) -> Iterator[Row]:
    """True less generated, in suspect and in control documents."""
    for name in (OWN, TUNED):
        for row in against_controls(subject.by_document(differences(subject, name)), seed=subject.seed):
            yield {"design": "differences", "placebo": name, "text": SNIPPET, **row}


def lean(subject: Subject, name: str) -> float:
    """How far true text lies above generated text in documents that the target was not trained on."""
    found = subject.by_document(differences(subject, name))
    return float(found.values[~found.members].mean())


def placebo_rows(subject: Subject, margins: dict[str, float]) -> Iterator[Row]:
    """Without control documents: p of each placebo beyond its margin, and the largest of two."""
    found = {name: subject.by_document(differences(subject, name)) for name in (OWN, EARLIER, TUNED)}
    first = found[OWN]
    rng = np.random.default_rng(subject.seed)
    for documents in (50, 100, 200):
        for kind, side in (("null", ~first.members), ("member", first.members)):
            order = rng.permutation(np.flatnonzero(side))
            sets = [order[i : i + documents] for i in blocks(len(order), documents)]
            if not sets:
                continue
            for margin, taken in (("none", 0.0), ("left out", None)):
                p = {
                    name: [
                        _flipped(v.values[rows] - (margins[name] if taken is None else 0.0)) for rows in sets
                    ]
                    for name, v in found.items()
                }
                p[MAX] = [max(pair) for pair in zip(p[OWN], p[TUNED], strict=True)]
                for name, ps in p.items():
                    yield {
                        "design": "placebos",
                        "placebo": name,
                        "margin": margin,
                        "kind": kind,
                        "documents": documents,
                        "controls": 0,
                        "text": SNIPPET,
                        **counted(ps),
                    }


def _flipped(values: Doubles) -> float:
    return sign_flip_test(values, flips=DRAWS).p


def run(work: Path, out: Path) -> None:
    """All rows of all domains that were read, and the files that are made from them."""
    domains = {
        name: Domain(work, name)
        for name in (*MEASURED, KEPT_APART)
        if list(work.glob(f"target-{name}-*.npz"))
    }
    everyone = [subject for domain in domains.values() for subject in subjects(domain)]
    placebos = (OWN, EARLIER, TUNED)
    found = [{**s.key, **{name: round(lean(s, name), 4) for name in placebos}} for s in everyone]
    ledger = Ledger(out, {"level": LEVEL, "permutations": DRAWS, "snippet_tokens": 64}, fresh=True)
    rows: list[Row] = []
    wrong: list[Row] = []
    for subject in everyone:
        print(subject.key, flush=True)
        margins = {
            n: max(f[n] for f in found if f["domain"] not in (subject.domain.name, KEPT_APART))
            for n in placebos
        }
        made = [
            *control_rows(subject),
            *difference_rows(subject),
            *placebo_rows(subject, margins),
            *literature_rows(subject),
        ]
        rows += [{"procedure": "pretrace", **subject.key, **row} for row in made]
        wrong += [{**subject.key, **row} for row in wrong_control_rows(subject)]
    rows += large_rows(work)
    ledger.content["rows"] = rows
    ledger.save(leans=found, wrong_controls=wrong)
    draw_rates(ledger.content, out.with_suffix(".png"), apart=KEPT_APART)
    draw_domains(ledger.content, out.with_name(f"{out.stem}_domains.png"))
    plain = [
        {"domain": f["domain"], "epochs": f["epochs"], "model": f["model"], "value": f[OWN]}
        for f in found
        if f["domain"] != KEPT_APART
    ]
    atomic_text(LEANS, json.dumps({"leans": plain}, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="the folder of benchmarks.audits.readings")
    parser.add_argument("--out", type=Path, default=RESULTS / "audit_errors.json")
    given = parser.parse_args()
    run(given.work, given.out)
