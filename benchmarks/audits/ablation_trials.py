"""What the ablations audit: targets with known members, pairs of true and written texts, and the default's statistic.

The results on file were made when the default procedure had one constant margin in place of control documents. It is
kept here with that margin, so that audits that are added agree with those on file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from benchmarks.audits.ablation_documents import Divided, Setup, all_divided
from benchmarks.audits.ablation_models import make_base, make_target
from benchmarks.audits.ablation_settings import MARGIN
from benchmarks.experiments import Row, Spoken
from pretrace import open_model
from pretrace.results.atomic import atomic_text
from pretrace.statistics.documents import by_document
from pretrace.types import Answer, Backend, Corpus, Pair, Sampling
from pretrace.verdicts.audit.data import bytewise, gain_scale, logprob_gains, sample_logprobs
from pretrace.verdicts.audit.document_values import DocumentValues, answer
from pretrace.verdicts.audit.generation import Draw, complete, tuned_generator
from pretrace.verdicts.audit.settings import GENERATOR
from pretrace.verdicts.audit.snippets import Samples, SnippetSettings, cut

METHOD = GENERATOR.replace("epochs=6", "epochs=3")
"""What the results on file were made with; six epochs leave less of a gap where there are few snippets."""
LEVEL = 0.05
WITHOUT, BASE = "none", "own"
"""What the target is compared with: nothing, or its base."""


@dataclass(eq=False)
class Trials:
    """Targets with known members, and pairs whose generator learnt from other documents; made when first wanted.

    `method` tunes that generator on at most `learnt` snippets of each learning document; `dtype` is what its model is
    read in.
    """

    setup: Setup
    method: str = METHOD
    learnt: int = 6
    dtype: str = "bfloat16"

    @cached_property
    def divided(self) -> dict[str, Divided]:
        """The documents of all domains."""
        return all_divided(self.setup)

    def target(self, domain: str, seed: int) -> tuple[str, str, Corpus]:
        """Target and base, and the documents with their labels; trained now where they are not there."""
        background = tuple(text for one in self.divided.values() for text in one.background.texts)
        base = make_base(self.setup, domain, Corpus("background of all domains", background))
        folder, labelled = make_target(self.setup, domain, seed, self.divided[domain].evaluation)
        return str(folder), str(base), labelled

    def pairs(self, domain: str) -> tuple[Pair, ...]:
        """A snippet of each evaluation document of a domain with its continuation, written now unless on file."""
        path = self.setup.work / f"pairs-{domain}-plain.json"
        settings: Row = {"method": self.method, "learnt": self.learnt, **self.setup.sizes}
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["settings"] != settings:
                raise SystemExit(
                    f"{path} was written with other settings: delete it, or give another --work."
                )
            return tuple(Pair(*row) for row in found["pairs"])
        made, facts = self._written(domain)
        rows = [[pair.id, pair.document, pair.prefix, pair.true, pair.generated] for pair in made]
        atomic_text(path, json.dumps({"settings": settings, "facts": facts, "pairs": rows}))
        return made

    def _written(self, domain: str) -> tuple[tuple[Pair, ...], Row]:
        parts, seed = self.divided[domain], self.setup.seed
        model = open_model(self.setup.model, dtype=self.dtype)
        learnt = cut(parts.learning, model.spans, SnippetSettings(most=self.learnt), seed=seed).snippets
        settings = SnippetSettings(most=1)
        judged = cut(parts.evaluation, model.spans, settings, seed=seed).snippets
        print(f"{domain}: the generator learns from {len(learnt)} snippets", flush=True)
        texts = [snippet.text for snippet in learnt]
        generator = tuned_generator(model, texts, self.method, seed=seed, on_step=Spoken().on_step)
        draw = Draw(settings.tokens - settings.tokens // 2, Sampling(), seed)
        written = complete(generator, [snippet.prefix for snippet in judged], draw, progress=Spoken())
        some = zip(judged, written, strict=True)
        made = tuple(Pair(s.id, s.document, s.prefix, s.suffix, text) for s, text in some if text)
        return made, {"learnt_snippets": len(texts), "snippets": len(judged), "pairs": len(made)}


def default_answer(
    sides: Samples, target: Backend, placebo: Backend | None = None, *, seed: int, margin: float = MARGIN
) -> Answer:
    """The default procedure's test without control documents: of each document the bounded lead of the target over
    the placebo on true text, less that on generated text, less `margin`; are they above 0?

    Without a placebo the lead is the target's mean log-probability a token, in nats.
    """
    mine = sample_logprobs(target, sides)
    true, generated = mine.suspect.per_token, mine.heldout.per_token
    if placebo is not None:
        other, by_byte = sample_logprobs(placebo, sides), bytewise(target, placebo)
        both = (mine.suspect, other.suspect), (mine.heldout, other.heldout)
        scale = gain_scale(both, by_byte=by_byte)
        true, generated = (logprob_gains(*one, scale, by_byte=by_byte) for one in both)
    values = true - generated - margin
    found = DocumentValues(*by_document(values, [piece.document for piece in sides.suspect]), margin=margin)
    return answer(found, pieces=len(values), seed=seed, facts={})
