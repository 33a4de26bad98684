"""Every detector where members and non-members differ in nothing but exposure.

Run it as `python -m benchmarks.papers.planted_domains`.

Of each domain of the Pile some documents, one excerpt of each, are divided at random; a model is trained
further on one half, for one epoch and for four, and every score has to tell the halves apart. The model
before planting is the placebo: what a score reaches there it reaches without membership. It is also the
reference model of `ref`, the strongest honest one there is (an earlier checkpoint), and proposes the words
of `neighbor`. Token counts for `dc_pdd` are of the other domains.

Writes evidence/planted_domains.json, .md and a figure a domain; planted models are kept in the
folder --work, and killed at any time it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.experiments import (
    Ledger,
    Spoken,
    explained,
    figures,
    options,
    settings_of,
    sizes,
    thinned,
)
from benchmarks.papers.planted_table import table
from benchmarks.texts import DATA
from pretrace import (
    Frequencies,
    Models,
    Options,
    PretraceError,
    count,
    detect,
    evaluate,
    open_corpus,
    open_model,
)
from pretrace.backends.huggingface import HuggingFace
from pretrace.errors import ModelError, TextsError
from pretrace.results.atomic import atomic_text
from pretrace.scoring.evaluation import BLIND
from pretrace.scoring.holdout import CorpusParts, set_aside
from pretrace.types import Backend, Corpus

if TYPE_CHECKING:
    from pretrace.tuning.planting import PlantSettings

DOMAINS = ("hackernews", "wikipedia_en", "pubmed_abstracts", "stackexchange")
SCORES = (
    *("loss", "ppl", "zlib", "lowercase", "min_k", "min_k(k=0.1)", "min_k_plus_plus", "dc_pdd", "ref"),
    *("fsd(ppl)", "fsd(zlib)", "fsd(lowercase)", "fsd(min_k)", "neighbor(m=5)"),
    *("na_pdd", "na_pdd(preset='appendix')", "probe"),
)
NOTES = {
    "ref": "the reference is the model before planting, which is the placebo too: there it is 0.5 by construction",
    "neighbor(m=5)": "words proposed by the model before planting, from what stands before them (causal)",
    "dc_pdd": "token counts of the other domains' texts",
}
SPARE = 16
"""Tokens a planted model's windows are longer than an excerpt: for start and end, and for seams."""


def excerpts(path: Path, model: Backend, *, texts: int, tokens: int, seed: int) -> Corpus:
    """That many documents at random, each cut to its first so many tokens; shorter ones are passed over, so
    that length says nothing."""
    corpus = open_corpus(str(path))
    kept = []
    for text in corpus.texts:
        whole = text.text.strip()
        spans = model.spans(whole[: 12 * tokens])
        if len(spans) > tokens:
            end = int(spans[tokens - 1, 1])
            kept.append(replace(text, text=whole[:end].rstrip(), member=None))
    if len(kept) < texts:
        raise TextsError(f"{path} has {len(kept)} documents of more than {tokens} tokens, wanted {texts}.")
    return thinned(replace(corpus, texts=tuple(kept)), texts, seed=seed)


def planted(corpus: Corpus, folder: Path, start: str, settings: PlantSettings) -> Corpus:
    """The corpus with its labels; the model that was trained on the members is in `folder` afterwards, or was
    there already. TextsError where the folder holds a model of other texts or settings."""
    from pretrace.tuning.planting import plant, split_members

    labelled = split_members(corpus, settings.share, settings.seed)
    if not (folder / "card.json").is_file():
        plant(corpus, settings=settings, folder=folder, start=start, on_step=Spoken().on_step)
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    kept = open_corpus(str(folder / "texts.jsonl"))
    same = [(text.text, text.member) for text in kept.texts] == [
        (text.text, text.member) for text in labelled.texts
    ]
    if not same or card["settings"] != json.loads(json.dumps(asdict(settings))):
        raise TextsError(
            f"{folder} was planted on other texts or with other settings: delete it, or name another folder "
            "with --work."
        )
    return labelled


def counted(domain: str, data: Path, base: HuggingFace) -> Frequencies:
    """Token counts of the other domains' texts."""
    others = [data / f"{name}.jsonl.gz" for name in DOMAINS if name != domain]
    texts = [text.text for path in others if path.exists() for text in open_corpus(str(path)).texts]
    source = ", ".join(path.name for path in others)
    return count(texts, base.tokens.rust, tokenizer_hash=base.tokenizer_hash, source=source)


def models(
    target: Backend, base: HuggingFace, parts: CorpusParts, *, counts: Frequencies, seed: int
) -> Models:
    """Target and placebo, each with all that the scores ask."""
    from pretrace.backends.proposals import open_proposer
    from pretrace.tuning import tuned_model
    from pretrace.tuning.plan import methods

    proposer = open_proposer("causal", base)

    def around(model: Backend) -> Models:
        assert parts.tuning is not None
        tuned = tuned_model(model, parts.tuning, methods.make("lora"), seed=seed, on_step=Spoken().on_step)
        return Models(
            model, reference=base, counts=counts, tuned=tuned, proposer=proposer, labelled=parts.reference
        )

    return replace(around(target), placebo=around(base))


class Experiment:
    """The pieces of the experiment: a domain and a number of epochs each."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.base = self._open(arguments.model)

    def measure(self, domain: str, epochs: int) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
        """The rows of one domain and number of epochs, and what there is to tell of them."""
        from pretrace.tuning.planting import PlantSettings

        given, begin = self.arguments, time.perf_counter()
        corpus = excerpts(
            given.data / f"{domain}.jsonl.gz",
            self.base,
            texts=given.texts,
            tokens=given.tokens,
            seed=given.seed,
        )
        settings = PlantSettings(
            epochs=epochs,
            seed=given.seed,
            max_tokens=given.tokens + SPARE,
            learning_rate=given.learning_rate,
            precision="bfloat16",
        )
        folder = given.work / f"{domain}-{epochs}"
        labelled = planted(corpus, folder, given.model, settings)
        made = time.perf_counter() - begin
        parts = set_aside(labelled, tuning=given.tune_share, reference=given.reference_share, seed=given.seed)
        counts = counted(domain, given.data, self.base)
        asked = models(self._open(str(folder)), self.base, parts, counts=counts, seed=given.seed)
        how = Options(seed=given.seed, shuffles=given.shuffles, progress=Spoken())
        run = evaluate(detect(parts.test, asked, SCORES, how), parts.test, seed=given.seed)
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        facts = {
            **sizes(run),
            "planted": {name: card[name] for name in ("tokens", "losses")},
            "tuned_texts": asked.tuned.card["texts"] if asked.tuned else 0,
            "reference_texts": len(parts.reference) if parts.reference else 0,
            "seconds": {"planting": round(made, 1), "all": round(time.perf_counter() - begin, 1)},
        }
        rows = figures(run)
        blind = next((row["auc"] for row in rows if row["score"] == BLIND), None)
        return [{**row, "blind": blind} if row["kind"] == "score" else row for row in rows], facts

    def _open(self, name: str) -> HuggingFace:
        model = open_model(name, dtype=self.arguments.dtype)
        if not isinstance(model, HuggingFace):
            raise ModelError(f"planting needs a model with local weights; {name} has none here.")
        return model


def parsed() -> argparse.Namespace:
    """The options."""
    parser = options(__doc__ or "", "planted_domains", texts=400, tokens=128)
    parser.add_argument("--data", type=Path, default=DATA / "pile")
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps the planted models")
    parser.add_argument("--domains", nargs="+", default=DOMAINS, choices=DOMAINS)
    parser.add_argument("--epochs", nargs="+", type=int, default=(1, 4))
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--tune-share", type=float, default=0.15)
    parser.add_argument("--reference-share", type=float, default=0.25)
    parser.add_argument("--shuffles", type=int, default=20, help="fits on shuffled labels")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    """Measure what is not on file yet."""
    arguments = parsed()
    names = ("learning_rate", "tune_share", "reference_share", "shuffles", "seed")
    ledger = Ledger(arguments.out, settings_of(arguments, *names), fresh=arguments.fresh)
    keys = [
        {"domain": domain, "epochs": epochs} for domain in arguments.domains for epochs in arguments.epochs
    ]
    experiment: Experiment | None = None
    for key in ledger.todo(keys, arguments.limit):
        experiment = experiment or Experiment(arguments)
        ledger.add(key, *experiment.measure(key["domain"], key["epochs"]))
    found = ledger.save(notes=NOTES)
    if found["rows"]:
        atomic_text(arguments.out.with_suffix(".md"), table(found))


if __name__ == "__main__":
    try:
        main()
    except PretraceError as error:
        raise explained(error) from None
