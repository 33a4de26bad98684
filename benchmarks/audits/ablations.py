"""What each part of post-hoc dataset inference is good for: its tables 5 and 2 on planted models.

    python -m benchmarks.audits.ablations

A setting leaves one part out or puts another in its place, as the rows of the paper's table 5 do (1 to 3 write the
held-out texts otherwise, 4 and 5 cut otherwise, 6 and 7 test otherwise, 8 is the whole method). For each it measures
how far apart suspect and held-out texts are as texts (table 2), and what the paper's procedure and the default one say
of audits whose answer is known: texts that the target was trained on (kind "member"), and others of the same draw
(kind "null"). Targets, documents and what a generator of other documents writes are made where they are not there yet
(benchmarks/ablation_*.py). The default procedure is the one the results on file were made with: one constant margin
(`audit_ablation_settings.MARGIN`) and no control documents.

Writes benchmarks/results/audit_ablations.json and a plot, with the paper's figures beside; texts, adapters and models
are kept in the folder --work. Killed at any time it goes on with the same command.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks.audits.ablation_documents import DOMAINS, Setup
from benchmarks.audits.ablation_plots import draw_ablations
from benchmarks.audits.ablation_settings import NOTES, SETTINGS, TEXTS, published, summary
from benchmarks.audits.ablation_trials import BASE, LEVEL, METHOD, WITHOUT, Trials, default_answer
from benchmarks.audits.held_out_writing import Material, Writer, Writing, Written
from benchmarks.audits.preferring import SimPO
from benchmarks.experiments import DATA, RESULTS, Ledger, Row, explained, interval
from pretrace import Models, PretraceError, open_model
from pretrace.backends.huggingface import HuggingFace
from pretrace.baselines.classifier_two_sample import pair_gap
from pretrace.baselines.classifiers import classifiers
from pretrace.cache.location import cache_folder
from pretrace.types import Answer, Backend, Instructed, Pair, Sampling
from pretrace.verdicts.audit.checks import examples, pair_quality
from pretrace.verdicts.audit.data import AuditData
from pretrace.verdicts.audit.procedures.calibrated import outlier_share
from pretrace.verdicts.audit.procedures.post_hoc import PaperSettings, paper
from pretrace.verdicts.audit.settings import ORIGINAL, PAPER, AuditSettings
from pretrace.verdicts.audit.snippets import Samples

CLASSIFIERS = ("words", "gpt2")
SIZES = {
    "documents": (800, "evaluation documents of a domain (default 800)"),
    "learning": (80, "documents a generator of other documents learns from (default 80)"),
    "layers": (4, "layers of a base (default 4)"),
    "width": (192, "width of a base (default 192)"),
    "learnt-apart": (6, "at most so many snippets of each learning document (default 6)"),
}


@dataclass(eq=False)
class Ablations:
    """What the pieces of the experiment share, made when it is first wanted."""

    setup: Setup
    given: argparse.Namespace
    how: Writing
    _writers: dict[str, Writer] = field(default_factory=dict)

    @cached_property
    def trials(self) -> Trials:
        """The targets that are audited, and their documents."""
        return Trials(self.setup, self.how.method, self.given.learnt_apart, self.given.dtype)

    @cached_property
    def model(self) -> HuggingFace:
        """What generators are made of."""
        found = open_model(self.setup.model, dtype=self.given.dtype)
        if not isinstance(found, HuggingFace):
            raise SystemExit(
                f"a generator needs weights here, and {found.name} has none: name another --model."
            )
        return found

    def writer(self, domain: str) -> Writer:
        """What writes the held-out texts of a domain."""
        if domain not in self._writers:
            corpus = self.trials.divided[domain].evaluation
            material = Material.of(corpus, 2 * self.given.pairs, self.model.spans, self.how)
            folder = self.setup.work / "ablations" / domain
            self._writers[domain] = Writer(material, self.model, self._instructed, self.how, folder)
        return self._writers[domain]

    def written(self, domain: str, setting: str) -> Written:
        """The pairs of a setting."""
        way, writer = SETTINGS[setting].written, self.writer(domain)
        if way == "apart":
            judged = {snippet.id for snippet in writer.material.judged}
            pairs = tuple(p for p in self.trials.pairs(domain) if p.id in judged)
            return Written(pairs, {"asked": len(judged), "written": len(pairs)})
        found = writer.written(way)
        return Written(whole(found.pairs), found.facts) if setting == "whole" else found

    def measure(self, domain: str, setting: str, part: str) -> tuple[list[Row], Row]:
        """The rows of one piece, and what there is to tell of it."""
        began = time.monotonic()
        pairs, facts = self.written(domain, setting)
        if part == TEXTS:
            rows = list(self._gaps(pairs, setting))
            facts = {**facts, "quality": self._quality(domain, setting, pairs), "examples": _shown(pairs)}
        else:
            rows, facts = self._audited(domain, setting, pairs, seed=int(part.removeprefix("target ")))
        return rows, {**facts, "piece_seconds": round(time.monotonic() - began, 1)}

    def _gaps(self, pairs: Sequence[Pair], setting: str) -> Iterator[Row]:
        if SETTINGS[setting].tests:
            return  # the texts are those of the whole method
        for gap in pair_gap(pairs, self.given.gap, seed=self.how.seed, split=self.given.folds or "halves"):
            yield {"classifier": gap.classifier, "auc": interval(gap.auc), "texts": gap.texts}

    def _quality(self, domain: str, setting: str, pairs: Sequence[Pair]) -> Row:
        if SETTINGS[setting].tests:
            return {}
        learnt = self.writer(domain).learnt
        return {q.measure: [_short(q.true), _short(q.generated)] for q in pair_quality(pairs, learnt)}

    def _audited(
        self, domain: str, setting: str, pairs: Sequence[Pair], *, seed: int
    ) -> tuple[list[Row], Row]:
        """One member and one null audit of a target, by every procedure."""
        target, base, labelled = self.trials.target(domain, seed)
        models = Models(open_model(target, dtype="float32"))
        placebo = open_model(base, dtype="float32")
        rows: list[Row] = []
        for kind, member in (("member", True), ("null", False)):
            names = {text.id for text in labelled.texts if text.member is member}
            some = [pair for pair in pairs if pair.document in names]
            order = np.random.default_rng([seed, int(member)]).permutation(len(some))[: self.given.pairs]
            sides = Samples.of_pairs([some[i] for i in sorted(order.tolist())])
            settings = AuditSettings(classifiers=(self.given.classifier,))
            for against, answer in _answers(setting, AuditData(sides, models, settings, seed=seed), placebo):
                rows.append({"kind": kind, "placebo": against, **_row(answer)})
        return rows, {"target": Path(target).name, "base": Path(base).name}

    def _instructed(self) -> Instructed:
        from pretrace.building.instructed import open_instructed

        return open_instructed(self.how.instructed, dtype=self.given.dtype)


def _answers(setting: str, case: AuditData, placebo: Backend) -> Iterator[tuple[str, Answer]]:
    """What the procedures say of one audit, each with the placebo it had."""
    tests, seed = SETTINGS[setting].tests, case.seed
    if not tests:
        yield BASE, default_answer(case.samples, case.target, placebo, seed=seed)
        yield WITHOUT, case.answer(PAPER)
        return
    how = PaperSettings(
        outliers=outlier_share(case.parameters),
        constraint=tests != "weight constraint",
        calibrate=tests != "calibration",
    )
    classifier = classifiers.make(case.settings.classifiers[0])
    yield WITHOUT, paper(case.features, classifier=classifier, seed=seed, settings=how)
    if tests == "calibration":
        yield WITHOUT, case.answer(ORIGINAL)
        yield WITHOUT, default_answer(case.samples, case.target, seed=seed)


def whole(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs as whole snippets: prefix and true suffix beside prefix and written suffix."""
    return tuple(Pair(p.id, p.document, "", p.prefix + p.true, p.prefix + p.generated) for p in pairs)


def _row(answer: Answer) -> Row:
    row: Row = {"procedure": answer.procedure, "documents": answer.documents, "pairs": answer.pieces}
    row |= {"p": float(f"{answer.p:.4g}"), "rejected": answer.p <= LEVEL}
    row["effect"] = interval(answer.effect) if answer.effect else None
    for name in ("text", "combined"):
        seeds = answer.facts.get(f"auc {name} of each seed")
        if seeds:
            row[f"auc_{name}"] = _short(float(np.mean(seeds)))
    return row


def _shown(pairs: Sequence[Pair]) -> list[list[str]]:
    """A few pairs to look at: prefix, true, written."""
    return [[one.prefix, one.true, one.generated] for one in examples(pairs, 3, 0)]


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def pieces(given: argparse.Namespace) -> list[Row]:
    """All pieces, in the order in which they need each other's texts."""
    parts = [TEXTS, *(f"target {seed}" for seed in range(given.targets))]
    return [
        {"domain": domain, "setting": name, "part": part}
        for domain in given.domains
        for name in SETTINGS
        if name in given.settings
        for part in parts
        if part != TEXTS or not SETTINGS[name].tests
    ]


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA / "pile")
    parser.add_argument("--work", type=Path, default=cache_folder() / "benchmarks" / "audits")
    parser.add_argument("--out", type=Path, default=RESULTS / "audit_ablations.json")
    parser.add_argument("--fresh", action="store_true", help="begin anew, whatever the file holds")
    parser.add_argument("--limit", type=int, help="finish at most so many pieces in this call")
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=SETTINGS)
    parser.add_argument("--domains", nargs="+", default=["hackernews"], choices=DOMAINS)
    parser.add_argument("--targets", type=int, default=4, help="targets a domain (default 4)")
    parser.add_argument(
        "--pairs",
        type=int,
        default=200,
        help="pairs of an audit; of twice as many documents texts are written",
    )
    parser.add_argument("--model", default="smollm2", help="what generators are made of")
    parser.add_argument("--instructed", default="smollm2", help="what is asked to paraphrase and to complete")
    parser.add_argument("--dtype", default="bfloat16", choices=("float32", "bfloat16"))
    parser.add_argument("--method", default=METHOD, help="how a generator is tuned")
    parser.add_argument("--learnt", type=int, default=300, help="snippets a generator learns from")
    parser.add_argument("--preferences", type=int, default=150, help="of these, preferred to its own")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of preference optimisation")
    parser.add_argument("--shots", type=int, default=5, help="examples in an instruction (the paper: 10)")
    parser.add_argument("--classifier", default="words", help="text-only classifier of the paper's procedure")
    parser.add_argument("--gap", nargs="+", default=list(CLASSIFIERS), help="classifiers of the gap")
    parser.add_argument(
        "--folds", type=int, default=5, help="of the gap; 0 learns from one half, as the paper"
    )
    for name, (usual, words) in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=usual, help=words)
    return parser.parse_args()


def written(ledger: Ledger) -> None:
    """Write the results with what follows from them, and draw them."""
    rows = ledger.content["rows"]
    found = ledger.save(summary=summary(rows), published=published(), notes=NOTES)
    if rows:
        draw_ablations(found, {name: setting.title for name, setting in SETTINGS.items()}, ledger.path)


def main() -> None:
    """Do what is left to do, and write what is known then."""
    given = parsed()
    sizes = {name: getattr(given, name) for name in ("documents", "learning", "model", "layers", "width")}
    setup = Setup(data=given.data, work=given.work, **sizes)
    given.work.mkdir(parents=True, exist_ok=True)
    how = Writing(
        given.method,
        Sampling(),
        learnt=given.learnt,
        preferences=given.preferences,
        instructed=given.instructed,
        shots=given.shots,
        simpo=SimPO(rounds=given.rounds),
    )
    names = ("dtype", "pairs", "learnt_apart", "classifier", "gap", "folds")
    settings = {**setup.sizes, "writing": asdict(how), **{name: getattr(given, name) for name in names}}
    ledger = Ledger(given.out, settings, fresh=given.fresh)
    ablations = Ablations(setup, given, how)
    for key in ledger.todo(pieces(given), given.limit):
        ledger.add(key, *ablations.measure(**key))
    written(ledger)


if __name__ == "__main__":
    try:
        main()
    except PretraceError as error:
        raise explained(error) from None
