"""NA-PDD, the probe and every one-pass score on ArxivMIA: `python -m benchmarks.papers.arxiv_mia`.

NA-PDD in five settings and the probe are fitted on 200 texts set aside, drawn anew for each seed; all others
are scored. Beside them stand blind baselines, the same detectors fitted on shuffled labels, and the paper's
figures (tables 2 and 3).

Writes benchmarks/results/arxiv_mia.json and .png; killed at any time it goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.experiments import (
    DATA,
    Ledger,
    Spoken,
    explained,
    figures,
    means,
    options,
    settings_of,
    sizes,
    thinned,
)
from benchmarks.papers.fitted_plots import draw_arxiv_mia
from benchmarks.papers.rows import na_pdd_arxiv_mia
from pretrace import Models, Options, PretraceError, detect, evaluate, open_corpus, open_model
from pretrace.scoring.holdout import set_aside
from pretrace.types import Backend, Corpus

FITTED = (
    "na_pdd",
    "na_pdd(preset='appendix')",
    "na_pdd(pool='mean')",
    "na_pdd(pool='notebook')",
    "na_pdd(by_absolute=True)",
    "probe",
)
ONE_PASS = ("loss", "ppl", "zlib", "lowercase", "min_k", "min_k_plus_plus")


def measure(
    model: Backend, corpus: Corpus, *, reference: int, shuffles: int, seed: int
) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    """The rows of one draw of the reference, and what there is to tell of it."""
    begin = time.perf_counter()
    parts = set_aside(corpus, reference=reference / len(corpus), seed=seed)
    assert parts.reference is not None
    models = Models(model, labelled=parts.reference)
    asked = Options(seed=seed, shuffles=shuffles, progress=Spoken())
    run = evaluate(detect(parts.test, models, [*ONE_PASS, *FITTED], asked), parts.test, seed=seed)
    labels = [text.member for text in parts.reference.texts]
    facts = {
        **sizes(run),
        "reference": {"members": labels.count(True), "nonmembers": labels.count(False)},
        "fitted": run.settings.get("fitted", {}),
        "seconds": round(time.perf_counter() - begin, 1),
    }
    return figures(run), facts


def main() -> None:
    """Measure what is not on file yet, and draw."""
    parser = options(__doc__ or "", "arxiv_mia", texts=2000, tokens=None)
    parser.add_argument("--data", type=Path, default=DATA / "arxiv_mia.jsonl.gz")
    parser.add_argument("--reference", type=int, default=200, help="texts detectors are fitted on")
    parser.add_argument("--shuffles", type=int, default=20, help="fits on shuffled labels")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    corpus = open_corpus(str(arguments.data))
    corpus = thinned(corpus, arguments.texts) if arguments.texts < len(corpus) else corpus
    ledger = Ledger(arguments.out, settings_of(arguments, "reference", "shuffles"), fresh=arguments.fresh)
    size = {"reference": arguments.reference, "shuffles": arguments.shuffles}
    model: Backend | None = None
    for key in ledger.todo([{"seed": seed} for seed in range(arguments.seeds)], arguments.limit):
        model = model or open_model(arguments.model, dtype=arguments.dtype, max_tokens=arguments.tokens)
        ledger.add(key, *measure(model, corpus, **size, seed=key["seed"]))
    rows = ledger.content["rows"]
    found = ledger.save(
        texts={"corpus": "ArxivMIA", "number": len(corpus)}, means=means(rows), published=na_pdd_arxiv_mia()
    )
    if rows:
        draw_arxiv_mia(found, arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    try:
        main()
    except PretraceError as error:
        raise explained(error) from None
