"""Tables of dataset inference: the p-value of a procedure, and AUCs of classifiers, for members or for others.

The texts of one label are the suspect set; what they are held against is written by a generator, or for
`heldout='real'` a half of the non-members that is not the suspect. Ablations of how held-out texts are made
are the matter of `python -m benchmarks.audits.ablations`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.experiments import Row, interval
from benchmarks.papers.data import Given, opened
from benchmarks.papers.detection import Piece
from pretrace import AuditSettings, Models, audit, gap, open_model
from pretrace.baselines.classifiers import classifiers
from pretrace.errors import TextsError
from pretrace.types import Backend, Corpus, Text, Verdict
from pretrace.verdicts.audit.built import SUSPECT, documents_of, figures_of
from pretrace.verdicts.audit.settings import PROCEDURES
from pretrace.verdicts.audit.snippets import SnippetSettings

METRICS = ("p", "auc", "auc_text", "auc_combined")
KNOWN = {"kind", "heldout", "snippets"}


@dataclass
class Bench:
    """Models that are opened once for all pieces."""

    given: Given
    _open: dict[str, Backend] = field(default_factory=dict)

    def measure(self, piece: Piece) -> tuple[list[Row], Row]:
        """A row a procedure or classifier, and what there is to tell. PretraceError for what is not to be had."""
        begin, setting = time.perf_counter(), dict(piece.setting)
        unknown = sorted(setting.keys() - KNOWN)
        if unknown:
            raise TextsError(f"this command has no counterpart to the paper's {', '.join(unknown)}.")
        suspects, others = _sides(opened(piece.corpus, self.given), setting, seed=self.given.seed)
        rows, facts = [], {"texts": len(suspects)}
        for score in piece.scores:
            if score.partition("(")[0] in classifiers:
                if others is None:
                    raise TextsError("this command runs text-only classifiers on real held-out texts alone.")
                found = gap(suspects, others, score, seed=self.given.seed)[0]
                rows.append({"score": score, "kind": "classifier", "auc": interval(found.auc)})
                continue
            made = self._audited(score, suspects, others, setting)
            rows.append({"score": score, "kind": "procedure", **measured(made)})
        return rows, {**facts, "seconds": round(time.perf_counter() - begin, 1)}

    def _audited(
        self, procedure: str, suspects: Corpus, others: Corpus | None, setting: Mapping[str, Any]
    ) -> Verdict:
        if procedure not in PROCEDURES:
            raise TextsError(f"no procedure is called {procedure!r}; there are {', '.join(PROCEDURES)}.")
        snippets = SnippetSettings(most=setting.get("snippets"))
        settings = AuditSettings(procedure=procedure, snippets=snippets)
        generator = None if others is not None else self._model(self.given.generator)
        models = Models(self._model(self.given.model))
        return audit(suspects, models, generator=generator, heldout=others, settings=settings)

    def _model(self, name: str) -> Backend:
        if name not in self._open:
            self._open[name] = open_model(name, dtype=self.given.dtype)
        return self._open[name]


def measured(verdict: Verdict) -> Row:
    """The figures of an answer as the paper's tables have them: AUCs are means over the seeds."""
    found = figures_of(verdict)
    documents, _ = documents_of(verdict, SUSPECT)
    made: Row = {"p": float(f"{verdict.p:.4g}"), "documents": len(documents), "pieces": found.pieces}
    names = {"auc_text": "auc text of each seed", "auc_combined": "auc combined of each seed"}
    for name, fact in names.items():
        if fact in found.facts:
            made[name] = round(float(np.mean(found.facts[fact])), 4)
    return made


def _sides(corpus: Corpus, setting: Mapping[str, Any], *, seed: int) -> tuple[Corpus, Corpus | None]:
    """The suspect texts, and real held-out ones where the table has them."""
    member = {"member": True, "nonmember": False}.get(str(setting.get("kind", "member")))
    if member is None:
        raise TextsError(f"a suspect set is of kind 'member' or 'nonmember', found {setting['kind']!r}.")
    texts = [text for text in corpus.texts if text.member is member]
    if setting.get("heldout") != "real":
        return _named(corpus, texts, "suspect"), None
    if member:
        return _named(corpus, texts, "suspect"), _named(corpus, _of(corpus, False), "held-out")
    documents = sorted({text.document for text in texts})
    order = np.random.default_rng(seed).permutation(len(documents))
    first = {documents[i] for i in order[: len(order) // 2].tolist()}
    halves = ([t for t in texts if (t.document in first) is side] for side in (True, False))
    suspect, heldout = (
        _named(corpus, half, name) for half, name in zip(halves, ("suspect", "held-out"), strict=True)
    )
    return suspect, heldout


def _of(corpus: Corpus, member: bool) -> list[Text]:
    return [text for text in corpus.texts if text.member is member]


def _named(corpus: Corpus, texts: Sequence[Text], part: str) -> Corpus:
    if not texts:
        raise TextsError(f"{corpus.name} has no {part} texts: it wants texts with labels of both kinds.")
    bare = tuple(replace(text, member=None) for text in texts)
    return replace(corpus, name=f"{corpus.name} ({part})", texts=bare)
