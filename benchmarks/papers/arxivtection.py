"""FSD on arXivTection, split as in its paper and split by article: `python -m benchmarks.papers.arxivtection`.

Four scores and FSD of each, LoRA with the paper's settings, in two protocols side by side. "passages" is the
paper's split: 30% of the passages are drawn, their non-members tune, the others are scored, so that passages
of one article stand on both sides. "articles" draws whole articles. The difference between the two is what
FSD learns of the very articles it then judges. Beside both stand blind baselines, which see no model at all;
one of them may learn from other passages of the article it judges, as FSD may in the first protocol.

Writes benchmarks/results/arxivtection_fsd.json and .png; killed at any time it goes on where it was.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.experiments import (
    DATA,
    Ledger,
    Spoken,
    explained,
    figures,
    interval,
    means,
    options,
    settings_of,
    sizes,
    thinned,
)
from benchmarks.papers.data import Given, divided, opened
from benchmarks.papers.fitted_plots import draw_arxivtection
from benchmarks.papers.rows import fsd_arxivtection
from pretrace import Models, Options, PretraceError, detect, evaluate, open_model
from pretrace.baselines.blind import bag_of_words
from pretrace.baselines.classifiers import WIDENING
from pretrace.scoring.holdout import Parts
from pretrace.statistics.resampling import group_bootstrap
from pretrace.types import Backend, Corpus, Run

PROTOCOLS = {"passages": "texts", "articles": "documents"}
PLAIN = ("ppl", "lowercase", "zlib", "min_k")
SCORES = ",".join(f"{score},fsd({score})" for score in PLAIN)
SHARE = 0.3
"""Of the texts, drawn for tuning: appendix C.1 of the paper."""
STRADDLING = "bag of words, same articles"


def split(corpus: Corpus, protocol: str, seed: int) -> Parts:
    """The texts to tune on and those to score, drawn by passage or by article."""
    return divided(corpus, Given(split=PROTOCOLS[protocol], seed=seed), tuning=SHARE)


def measure(model: Backend, corpus: Corpus, protocol: str, seed: int) -> tuple[list[dict[str, Any]], Any]:
    """The rows of one split, and what there is to tell of it."""
    from pretrace.tuning.adapters import tuned_model
    from pretrace.tuning.methods import methods

    begin = time.perf_counter()
    spoken = Spoken()
    parts = split(corpus, protocol, seed)
    assert parts.tuning is not None
    tuned = tuned_model(model, parts.tuning, methods.make("lora"), seed=seed, on_step=spoken.on_step)
    run = detect(parts.test, Models(model, tuned=tuned), SCORES, Options(seed=seed, progress=spoken))
    run = evaluate(run, parts.test, seed=seed)
    facts = {
        **sizes(run),
        "tuning": {name: tuned.card[name] for name in ("texts", "groups", "tokens", "losses")},
        "articles_on_both_sides": len(
            {text.group for text in parts.tuning.texts if not text.member}
            & {text.group for text in parts.test.texts}
        ),
        "seconds": round(time.perf_counter() - begin, 1),
    }
    return [*figures(run), straddling(run, parts.test, seed)], facts


def straddling(run: Run, corpus: Corpus, seed: int) -> dict[str, Any]:
    """The row of a bag of words that may learn from other passages of the article it judges."""
    texts = {text.id: text.text for text in corpus.texts}
    members = np.array(run.members, dtype=bool)
    judged = bag_of_words([texts[name] for name in run.ids], members, run.ids, seed=seed)
    if judged.scores is None:
        raise PretraceError(f"the blind baseline {STRADDLING!r} could not be trained: {judged.note}")
    drawn = group_bootstrap(judged.scores[:, None], members, groups=run.groups, seed=seed).widened(
        0, WIDENING
    )
    row: dict[str, Any] = {"score": STRADDLING, "kind": "blind"}
    return {**row, "auc": interval(drawn.auc.estimate(0)), "tpr": interval(drawn.tpr.estimate(0))}


def main() -> None:
    """Measure what is not on file yet, and draw."""
    parser = options(__doc__ or "", "arxivtection_fsd", texts=1549, tokens=None)
    parser.add_argument("--data", type=Path, default=DATA / "arxivtection.csv.gz")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    corpus = opened("arxivtection", Given(data={"arxivtection": arguments.data}))
    corpus = thinned(corpus, arguments.texts) if arguments.texts < len(corpus) else corpus
    ledger = Ledger(arguments.out, settings_of(arguments), fresh=arguments.fresh)
    keys = [{"seed": seed, "protocol": name} for seed in range(arguments.seeds) for name in PROTOCOLS]
    model: Backend | None = None
    for key in ledger.todo(keys, arguments.limit):
        model = model or open_model(arguments.model, dtype=arguments.dtype, max_tokens=arguments.tokens)
        ledger.add(key, *measure(model, corpus, key["protocol"], key["seed"]))
    rows = ledger.content["rows"]
    found = ledger.save(
        texts={"corpus": "arXivTection", "number": len(corpus)},
        means=means(rows, "protocol"),
        published=fsd_arxivtection(),
    )
    if rows:
        draw_arxivtection(found, arguments.out.with_suffix(".png"))


if __name__ == "__main__":
    try:
        main()
    except PretraceError as error:
        raise explained(error) from None
