"""Tables of detectors: AUC, true positive rate and accuracy of scores on labelled texts, in a table's settings.

Figures that share a corpus and settings are one piece of work: one run, every score of it at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.experiments import Row, figures, sizes
from benchmarks.papers.data import Given, counted, divided, opened, spoken
from benchmarks.papers.figures import Figure
from pretrace import Models, Options, detect, evaluate, open_model
from pretrace.backends.huggingface import HuggingFace
from pretrace.errors import ModelError, PretraceError, TextsError
from pretrace.scoring.detect import check_labels
from pretrace.scoring.holdout import CorpusParts
from pretrace.scoring.plan import ScorePlan
from pretrace.tuning.plan import TuningMethod, expression, methods
from pretrace.types import Corpus, Text, Tuned

METRICS = ("auc", "tpr", "accuracy")
TUNED_ON = 0.3
"""Share of the texts drawn for tuning (FSD, appendix C.1)."""
REFERENCE = 100
"""Members, and as many non-members, that detectors are fitted on (NA-PDD, section 5)."""
SIZES = {"1Gb": 0.1, "10Gb": 1.0, "15Gb": 1.0}
"""Parts of the reference corpus at hand that stand for the paper's sizes."""
KNOWN = {"tuned", "on", "tuned_on", "texts", "reference", "counts", "size", "length"}


@dataclass(frozen=True, slots=True)
class Piece:
    """One run: a corpus, settings beyond the usual ones, and the scores wanted. `beside` are all scores of the
    table: what any of them is tuned or fitted on is set aside for all, so that all are judged on the same texts."""

    corpus: str
    setting: tuple[tuple[str, Any], ...] = ()
    scores: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def key(self) -> Row:
        """What names it in a file of results."""
        return {"corpus": self.corpus, "setting": written(dict(self.setting))}


def written(setting: Mapping[str, Any]) -> str:
    """Settings as a table's file writes them."""
    return ", ".join(f"{name}={value!r}" for name, value in setting.items())


def pieces(wanted: Iterable[Figure], given: Given) -> list[Piece]:
    """The runs that figures ask for, in the order of the figures."""
    found: dict[tuple[str, tuple[tuple[str, Any], ...]], dict[str, None]] = {}
    for figure in wanted:
        key = (given.on or figure.corpus, tuple(figure.setting.items()))
        found.setdefault(key, {})[figure.score] = None
    everything = tuple(dict.fromkeys(score for scores in found.values() for score in scores))
    return [Piece(corpus, setting, tuple(scores), everything) for (corpus, setting), scores in found.items()]


@dataclass
class Bench:
    """Models that are opened once for all pieces, by how many tokens they read of a text."""

    given: Given
    _open: dict[tuple[str, int | None], HuggingFace] = field(default_factory=dict)

    def model(self, name: str, tokens: int | None = None) -> HuggingFace:
        """The model, opened with the caller's numbers. ModelError where its weights are not here."""
        if (name, tokens) not in self._open:
            model = open_model(name, dtype=self.given.dtype, max_tokens=tokens)
            if not isinstance(model, HuggingFace):
                raise ModelError(f"the tables are run on a model with weights here; {name} has none.")
            self._open[name, tokens] = model
        return self._open[name, tokens]

    def measure(self, piece: Piece) -> tuple[list[Row], Row]:
        """A row a score and blind baseline, and what there is to tell of the run.

        Scores that lack something here have a row with `why` instead of figures. PretraceError where the corpus
        or what the settings name is not to be had.
        """
        begin, given, setting = time.perf_counter(), self.given, dict(piece.setting)
        unknown = sorted(setting.keys() - KNOWN)
        if unknown:
            raise TextsError(f"this setting of the paper has no counterpart here: {', '.join(unknown)}.")
        able, rows = self._able(piece.scores)
        corpus = opened(piece.corpus, given)
        check_labels(corpus)  # before anything is tuned
        beside = [score for score in piece.beside if not self._lacks(score)]
        aside = ScorePlan.parse(beside).uses if beside else frozenset()
        parts = self._parts(corpus, aside, setting)
        models, facts = self._models(parts, ScorePlan.parse(able).uses, able, setting)
        options = Options(seed=given.seed, shuffles=given.shuffles, progress=spoken())
        run = evaluate(detect(parts.test, models, able, options), parts.test, seed=given.seed)
        facts |= {**sizes(run), "split": given.split, "seconds": round(time.perf_counter() - begin, 1)}
        return figures(run) + rows, facts

    def _able(self, scores: Iterable[str]) -> tuple[list[str], list[Row]]:
        """The scores that can run, and for the others rows that say why not."""
        able, rows = [], []
        for score in scores:
            why = self._lacks(score)
            if why:
                rows.append({"score": score, "kind": "not run", "why": why})
            else:
                able.append(score)
        if not able:
            raise TextsError("; ".join(dict.fromkeys(row["why"] for row in rows)))
        return able, rows

    def _lacks(self, score: str) -> str:
        try:
            used = ScorePlan.parse([score]).uses
        except PretraceError as error:
            return str(error)
        if "reference" in used and not self.given.reference_model:
            return f"{score} wants a smaller model of the family: give one with --reference-model."
        if "neighbors" in used and not self.given.neighbors:
            return f"{score} wants a model that proposes words: give one with --neighbors."
        if score.startswith("dc_pdd") and not self.given.counts:
            return f"{score} wants a reference corpus: give one with --counts NAME=PATH."
        return ""

    def _parts(self, corpus: Corpus, aside: frozenset[str], setting: Mapping[str, Any]) -> CorpusParts:
        """What is tuned on, fitted on and judged."""
        each = int(setting.get("reference", REFERENCE))
        parts = divided(
            corpus,
            self.given,
            tuning=TUNED_ON if "tuned" in aside else 0.0,
            reference=2 * each / len(corpus) if "labelled" in aside else 0.0,
        )
        if parts.tuning is None or "tuned_on" not in setting:
            return parts
        drawn: list[Text] = []
        sources = setting["tuned_on"]
        for source in (sources,) if isinstance(sources, str) else sources:
            own = source == corpus.name
            part = parts if own else divided(opened(source, self.given), self.given, tuning=TUNED_ON)
            assert part.tuning is not None
            drawn += part.tuning.texts if own else _apart(part.tuning.texts)
        return replace(parts, tuning=replace(parts.tuning, texts=tuple(drawn)))

    def _models(
        self, parts: CorpusParts, used: frozenset[str], scores: Iterable[str], setting: Mapping[str, Any]
    ) -> tuple[Models, Row]:
        given, facts = self.given, {}
        target = self.model(given.model, setting.get("length"))
        models = Models(target, labelled=parts.reference)
        if "tuned" in used:
            tuned = self._tuned(target, parts, setting)
            models, names = replace(models, tuned=tuned), ("texts", "groups", "tokens", "losses")
            facts["tuning"] = {name: tuned.card[name] for name in names}
        if "reference" in used and given.reference_model:
            models = replace(models, reference=self.model(given.reference_model))
        if "neighbors" in used and given.neighbors:
            from pretrace import open_proposer

            models = replace(models, proposer=open_proposer(given.neighbors, target))
        if any(score.startswith("dc_pdd") for score in scores):
            name = str(setting.get("counts", next(iter(given.counts))))
            counts = counted(name, SIZES.get(str(setting.get("size")), 1.0), target, given)
            models, facts["counts"] = replace(models, counts=counts), counts.source
        return models, facts

    def _tuned(self, target: HuggingFace, parts: CorpusParts, setting: Mapping[str, Any]) -> Tuned:
        from pretrace.tuning import tuned_model

        assert parts.tuning is not None
        method = tuning_of(setting)
        print(f"  tuning by {expression(method)}", flush=True)
        return tuned_model(target, parts.tuning, method, seed=self.given.seed, on_step=spoken().on_step)


def tuning_of(setting: Mapping[str, Any]) -> TuningMethod:
    """The tuning that settings ask for: LoRA with the paper's numbers where they say nothing.

    >>> tuning_of({"tuned": "lora(rank=8)", "on": "members", "texts": 50}).limit
    50
    """
    method = methods.make(str(setting.get("tuned", "lora")))
    on = setting.get("on")
    if on in ("members", "nonmembers", "all"):
        method = replace(method, on=on)
    if "texts" in setting:
        method = replace(method, limit=int(setting["texts"]))
    return method


def _apart(texts: Iterable[Text]) -> tuple[Text, ...]:
    """Texts of another corpus under names that are not those of ours; without labels they count as non-members."""
    return tuple(
        replace(
            text,
            id=f"other:{text.id}",
            group=f"other:{text.group}" if text.group else "",
            member=bool(text.member),
        )
        for text in texts
    )
