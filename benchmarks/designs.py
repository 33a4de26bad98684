"""The tests that need no earlier checkpoint, on models whose members are known: `python -m benchmarks.designs WORK`.

Small models are trained from scratch with members of every design at 1, 4 and 16 copies (`designs_worlds.py`); every
design is then audited on units that a model read, on units that it never read, and where its assumption is broken on
purpose. One domain, hackernews, is kept apart: nothing was chosen on it.

Models and what they say of every text are kept in WORK; results are written piece by piece; killed at any time, the
same command goes on. Writes benchmarks/results/designs.json with figures beside it, and with --needed the numbers of
`pretrace advise`. --quick makes everything tiny and shows only that it works.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.designs_audits import Effort, Row, Seen
from benchmarks.designs_conditional import collections, remember_features
from benchmarks.designs_lots import canaries, gates, marks, options, order, scheme, triggers
from benchmarks.designs_pairs import cutoff, twins
from benchmarks.designs_plots import draw_order, draw_power
from benchmarks.designs_summary import advice, pooled, summary
from benchmarks.designs_texts import BACKGROUND, DOMAINS, KEPT_APART, OTHER, QUICK, Material, Sizes, material
from benchmarks.designs_worlds import (
    World,
    base,
    kept,
    logp,
    membership,
    opened,
    plain,
    published_scheme,
    train,
    values,
)
from benchmarks.experiments import DATA, RESULTS, Ledger
from pretrace.results.atomic import atomic_text

Measure = Callable[[Seen, Effort, np.random.Generator], list[Row]]
DESIGNS: Mapping[str, Measure] = {
    "marks": marks,
    "canaries": canaries,
    "triggers": triggers,
    "options": options,
    "order": order,
    "collections": collections,
    "cutoff": cutoff,
    "twins": twins,
}
GATES, SCHEME = "gates", "scheme"
"""Two further pieces on the order: its blind gates; and the published test, on the first model of each domain that is
not kept apart, since its passes take as long as all else."""


def worlds(domains: Sequence[str], seeds: int) -> list[World]:
    """The models, those of the domain that is kept apart last."""
    ordered = [*(d for d in domains if d != KEPT_APART), *(d for d in domains if d == KEPT_APART)]
    return [World(domain, seed) for domain in ordered for seed in range(seeds)]


def read(made: Sequence[World], texts: Mapping[str, Material], sizes: Sizes, data: Path, work: Path) -> None:
    """Train what is not trained yet, and read what is not read yet."""
    out = work / "values"
    start = BACKGROUND if not sizes.tiny else tuple(texts)
    reference = opened(base("reference", sizes, data, work, start))
    for domain, own in texts.items():
        kept(out / f"base-reference-{domain}.npz", lambda o=own: values(reference, o, sizes, alone=True))
    for shape in dict.fromkeys(world.shape for world in made):
        model = opened(base(shape, sizes, data, work, start))
        for domain in dict.fromkeys(world.domain for world in made):
            kept(out / f"base-{shape}-{domain}-plain.npz", lambda d=domain, m=model: plain(m, texts[d]))
    for world in made:
        own, far = texts[world.domain], texts[OTHER[world.domain]].published[: sizes.others]
        model = opened(train(world, own, sizes, data, work))
        kept(out / f"{world.name}.npz", lambda m=model, o=own: values(m, o, sizes))
        kept(out / f"{world.name}-other.npz", lambda m=model, f=far: {"published": logp(m, f)})
        if world.seed == 0 and world.domain != KEPT_APART:
            member = membership(world, sizes)["shards"]
            kept(
                out / f"{world.name}-published.npz",
                lambda m=model, o=own, n=member: published_scheme(m, o, n, sizes),
            )


def measure(
    ledger: Ledger,
    made: Sequence[World],
    texts: Mapping[str, Material],
    sizes: Sizes,
    work: Path,
    effort: Effort,
) -> None:
    """Audit every design on every world that is not on file yet."""
    keys = [
        {"design": name, "domain": world.domain, "seed": world.seed, "shape": world.shape}
        for world in made
        for name in (*DESIGNS, GATES, SCHEME)
        if name != SCHEME or (work / "values" / f"{world.name}-published.npz").is_file()
    ]
    for key in ledger.todo(keys):
        world = World(key["domain"], key["seed"], key["shape"])
        seen = Seen.read(world, texts, sizes, work)
        rng = np.random.default_rng([world.seed, zlib.crc32(f"{key['design']} {world.name}".encode())])
        audits = {**DESIGNS, GATES: gates, SCHEME: scheme}[key["design"]]
        ledger.add(key, audits(seen, effort, rng), {})


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path, help="folder that keeps models and values")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument(
        "--domains", nargs="+", default=(*DOMAINS, KEPT_APART), choices=(*DOMAINS, KEPT_APART)
    )
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--nulls", type=int, default=100, help="null audits of a design and model")
    parser.add_argument(
        "--members", type=int, default=60, help="audits of a point of a power curve and model"
    )
    parser.add_argument(
        "--whole", type=int, default=50, help="null audits through the whole of a public function"
    )
    parser.add_argument(
        "--few", type=int, default=12, help="other audits through the whole of a public function"
    )
    parser.add_argument("--out", type=Path, default=RESULTS / "designs.json")
    parser.add_argument("--needed", type=Path, help="where to write the numbers of `pretrace advise`")
    parser.add_argument("--fresh", action="store_true", help="begin anew, whatever the file holds")
    parser.add_argument("--quick", action="store_true", help="everything tiny, on one domain")
    return parser.parse_args()


def main() -> None:
    """Train, read, audit, sum up and draw what is not there yet."""
    given = parsed()
    sizes = QUICK if given.quick else Sizes()
    domains = tuple(given.domains[:1]) if given.quick else tuple(given.domains)
    effort = Effort(given.nulls, given.members, given.whole, given.few)
    remember_features()
    texts = {
        d: material(given.data, d, sizes) for d in dict.fromkeys([*domains, *(OTHER[d] for d in domains)])
    }
    made = worlds(domains, 1 if given.quick else given.seeds)
    settings = json.loads(json.dumps({"sizes": sizes.plain, "effort": asdict(effort)}))
    ledger = Ledger(given.out, settings, fresh=given.fresh)
    read(made, texts, sizes, given.data, given.work)
    measure(ledger, made, texts, sizes, given.work, effort)
    finish(ledger, given.out, given.needed, effort)


def finish(ledger: Ledger, out: Path, needed: Path | None, effort: Effort) -> None:
    """Sum up all rows, draw the figures, and write what `pretrace advise` says."""
    rows = ledger.content["rows"]
    names = ("design", "copies", "units", "rows", "test", "value", "drafts", "level", "passes")
    found = ledger.save(
        summary=summary(rows, effort.draws, lambda row: row["domain"] != KEPT_APART),
        kept_apart=summary(rows, effort.draws, lambda row: row["domain"] == KEPT_APART),
        power=pooled([row for row in rows if row["kind"] == "member"], *names),
    )
    draw_power(found["power"], out.with_suffix(".png"))
    draw_order(found["power"], out.with_name(f"{out.stem}_order.png"))
    if needed is not None:
        known = json.loads(needed.read_text(encoding="utf-8")) if needed.is_file() else {}
        fresh = advice(rows, "benchmarks/results/designs.json, small models from scratch")
        atomic_text(needed, laid_out({**known, **fresh}))


def laid_out(needed: Mapping[str, Mapping[str, object]]) -> str:
    """JSON with a line a test."""
    lines = (f" {json.dumps(name)}: {json.dumps(one)}" for name, one in needed.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    main()
