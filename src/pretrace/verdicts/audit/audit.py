"""The audit of a collection: was the target trained on these texts? All rules are fixed before any result is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pretrace.corpora import Texts, corpus_of
from pretrace.errors import ExpressionError, ModelError, TextsError
from pretrace.scoring.plan import Models, check_placebos
from pretrace.scoring.provenance import record_corpus, record_software
from pretrace.types import AuditPlan, Backend, Corpus, Doubles, Generator, Quantity, Verdict
from pretrace.types.audit import DesignError
from pretrace.verdicts.audit.assessment import assess
from pretrace.verdicts.audit.built import (
    CONTROL,
    SUSPECT,
    documents_of,
    documents_table,
    pairs_of,
    pairs_table,
)
from pretrace.verdicts.audit.data import AuditData
from pretrace.verdicts.audit.generation import Prepared, check_apart, compared, synthesised, tuned_generator
from pretrace.verdicts.audit.placebo import leans, margin
from pretrace.verdicts.audit.planning import Planned, planned, taking_part
from pretrace.verdicts.audit.power import check_plantable
from pretrace.verdicts.audit.settings import ALONE, CALIBRATED, PRETRACE, AuditSettings
from pretrace.verdicts.audit.snippets import Named
from pretrace.verdicts.audit.watch import Timed, Unwatched, Watch
from pretrace.verdicts.draws import seed_of, texts_hash
from pretrace.verdicts.register import Entry, kth, note

UNREGISTERED = (
    "This audit was not entered in the register of this machine, and earlier tests of these texts were not looked up "
    "there. [--no-cache]"
)


def plan(
    texts: Corpus | Texts,
    models: Models | Backend | str,
    heldout: Corpus | Texts | None = None,
    *,
    generator: Backend | None = None,
    settings: AuditSettings | None = None,
) -> AuditPlan:
    """The plan of an audit: which outcomes are possible and what it costs, found in seconds without training.

    Parameters and errors as for `audit`; where no verdict is possible, the plan's `design` is None.
    """
    asked = _Asked.of(texts, models, generator, heldout, settings)
    return asked.planned().plan


def audit(
    texts: Corpus | Texts,
    models: Models | Backend | str,
    heldout: Corpus | Texts | None = None,
    *,
    generator: Backend | None = None,
    settings: AuditSettings | None = None,
    watch: Watch | None = None,
) -> Verdict:
    """The verdict on a collection: was the target trained on these texts?

    `heldout` are control documents: texts of the same kind, known to be unseen. Both are a corpus, or all that
    `open_corpus` takes: a list, a column of a table; `models` may be a model's name. `models.placebo` and
    `models.placebos` are models that never saw the texts, `models.reference` is one more for the literature's
    features. `generator` writes continuations where control documents are missing or differ as texts. Raises
    DesignError where no verdict could come of what there is, another PretraceError for what cannot be audited,
    before any model reads the texts.
    """
    asked = _Asked.of(texts, models, generator, heldout, settings)
    ready = asked.planned()
    if ready.plan.design is None and PRETRACE in (asked.settings.procedure, *asked.settings.also):
        raise DesignError(ready.plan)
    clock = Timed(watch or Unwatched())
    clock.planned(ready.plan)
    clock.plan(ready.stages)
    made = asked.prepared(ready, clock)
    data = asked.data(ready, made, clock)
    result = asked.called_back(assess(data, asked.named.corpus, ready.plan, made))
    record = _record(asked.corpus, asked.heldout, data, made)
    register = _registered(asked.entry(data), result, kept=asked.settings.cache)
    return replace(result, settings=record | {"timings": clock.seconds}, register=register)


@dataclass(frozen=True)
class _Asked:
    """The arguments of an audit, checked as far as that goes without reading a text."""

    corpus: Corpus
    models: Models
    placebos: tuple[Backend, ...]
    generator: Backend | None
    heldout: Corpus | None
    settings: AuditSettings
    named: Named
    named_heldout: Named | None

    @classmethod
    def of(
        cls,
        texts: Corpus | Texts,
        models: Models | Backend | str,
        generator: Backend | None,
        heldout: Corpus | Texts | None,
        settings: AuditSettings | None,
    ) -> _Asked:
        corpus, models = corpus_of(texts, "texts"), Models.of(models)
        heldout = corpus_of(heldout, "control documents") if heldout is not None else None
        first = (models.placebo.target,) if models.placebo is not None else ()
        placebos = (*first, *models.placebos)
        settings = settings or AuditSettings()
        _check(corpus, models.target, placebos, heldout, settings)
        named = Named.of(corpus, heldout)
        others = Named.of(heldout, corpus) if heldout is not None else None
        return cls(corpus, models, placebos, generator, heldout, settings, named, others)

    @property
    def seed(self) -> int:
        """The seed of all that is drawn, which follows from the texts and from what is compared with what."""
        cut, others = self.settings.snippets, self.heldout.texts if self.heldout is not None else ()
        return (
            seed_of(
                "audit",
                (text.text for text in self.corpus.texts),
                heldout=texts_hash(text.text for text in others),
                procedure=self.settings.procedure,
                snippets=[cut.tokens, cut.most, cut.pairs],
            )
            % 2**31
        )

    def entry(self, data: AuditData) -> Entry:
        """This audit for the register: what makes it this one and no other."""
        others = self.heldout.texts if self.heldout is not None else ()
        settings = {
            "procedure": self.settings.procedure,
            "heldout": texts_hash(text.text for text in others) if self.heldout is not None else None,
            "placebos": [str(one.facts.get("weights")) for one in data.placebos],
            "snippets": asdict(self.settings.snippets),
            "generator": str(self.generator.facts.get("weights"))
            if self.generator and data.controls
            else None,
        }
        target = self.models.target
        texts = (text.text for text in self.corpus.texts)
        return Entry.of("audit", texts, str(target.facts.get("weights")), settings, target.name)

    def called_back(self, result: Verdict) -> Verdict:
        """The audit with the owner's names of the documents, in the order of these."""
        mine = self.named.names
        # What a generator wrote in place of a document goes by the name of that document.
        named = (SUSPECT, mine), (CONTROL, self.named_heldout.names if self.named_heldout else mine)
        first, second = (_called(*documents_of(result, side), names) for side, names in named)
        pairs, others = (
            [replace(pair, document=names[pair.document]) for pair in pairs_of(result, side)]
            for side, names in named
        )
        written = (pairs_table((pairs, others)),) if pairs or others else ()
        return replace(result, tables=(documents_table((first, second)), *written))

    def planned(self) -> Planned:
        return planned(
            self.named.corpus,
            self.models.target,
            self.placebos,
            generator=self.generator,
            heldout=self.named_heldout.corpus if self.named_heldout else None,
            settings=self.settings,
            seed=self.seed,
        )

    def prepared(self, ready: Planned, clock: Timed) -> Prepared:
        """The samples that are compared, with continuations generated where the design needs them. The literature's
        procedures also work where our own has no design."""
        design = ready.plan.design
        if design == "controls" or (design is None and self.heldout is not None):
            return compared(ready.cuts, self.settings, seed=self.seed)
        if self.generator is None:
            raise ModelError(
                "without control documents an audit writes its own held-out texts and needs a generator: give "
                "--generator MODEL or --heldout."
            )
        return synthesised(ready.cuts, self.generator, self.settings, clock, seed=self.seed)

    def data(self, ready: Planned, made: Prepared, clock: Timed) -> AuditData:
        """What is tested, with the placebos that take part and the margin, where there is one."""
        design = ready.plan.design
        used = taking_part(design, self.placebos, ready.plan.placebos)
        target = self.models.target
        if design == "controls" and not used and Quantity.MOMENTS not in target.offers:
            raise ModelError(
                f"{target.name} gives no whole distributions, which the score of an audit without a placebo needs "
                f"({ALONE}): name a model of its family with --placebo, or open its weights here."
            )
        tunable = _tunable(used) if made.training else None
        if design in ("differences", "placebos") and tunable is not None:
            tuned = self._tuned(tunable, made, clock)
            # Beside control documents any placebo is as valid, and the tuned one sees more (docs/audit.md).
            used = (tuned,) if design == "differences" else (*used, tuned)
        return AuditData(
            made.samples,
            replace(self.models, placebo=None),
            self.settings,
            clock,
            controls=made.controls,
            placebos=used,
            margin=margin(leans()) if design == "placebos" else 0.0,
            negative_controls=self.placebos if self.generator is None else (*self.placebos, self.generator),
            seed=self.seed,
        )

    def _tuned(self, placebo: Backend, made: Prepared, clock: Timed) -> Backend:
        """The placebo with an adapter tuned on what the generator learnt from, so that it knows the domain as the
        target may; it is the generator itself where that began with the same weights."""
        assert made.generator is not None
        assert self.generator is not None
        if self.generator.facts.get("weights") == placebo.facts.get("weights"):
            return _backend(made.generator)
        texts = [snippet.text for snippet in made.training]
        settings = self.settings
        with clock.training("tuning a placebo") as on_step:
            tuned = tuned_generator(
                placebo, texts, settings.method, seed=self.seed, cache=settings.cache, on_step=on_step
            )
        return _backend(tuned)


def _check(
    corpus: Corpus,
    target: Backend,
    placebos: Sequence[Backend],
    heldout: Corpus | None,
    settings: AuditSettings,
) -> None:
    """Raise the errors that can be known before a text is cut."""
    if not corpus.texts:
        raise TextsError(f"{corpus.name} holds no texts.")
    if heldout is not None and not heldout.texts:
        raise TextsError(f"{heldout.name}, which should hold control documents, holds none.")
    if heldout is not None:
        check_apart(corpus, heldout)
    check_placebos(target, placebos)
    if settings.procedure == PRETRACE and PRETRACE in settings.also:
        raise ExpressionError("the procedure that decides is pretrace already: name others in --also.")
    if settings.power:
        if settings.procedure not in (PRETRACE, CALIBRATED):
            raise ExpressionError(
                f"power is measured for tests on documents, pretrace and calibrated, and not for "
                f"{settings.procedure}: leave --power away, or name that procedure in --also."
            )
        check_plantable(target)


def _called(
    documents: Sequence[str], values: Doubles, names: Mapping[str, str]
) -> tuple[tuple[str, ...], Doubles]:
    """The documents by these names, in the order of the names."""
    called = [names[one] for one in documents]
    order = sorted(range(len(called)), key=lambda i: called[i])
    return tuple(called[i] for i in order), values[order]


def _registered(entry: Entry, result: Verdict, *, kept: bool) -> tuple[str, ...]:
    """What the register of this machine says of this audit and of other tests of these texts; notes it where results
    are kept."""
    if not kept:
        return (UNREGISTERED,)
    found = kth(entry, result.level)
    note(entry, result.p, result.outcome)
    return (found.words(result.p), *found.others)


def _backend(generator: Generator) -> Backend:
    """The model that a generator writes with."""
    from pretrace.backends.generation import Completer

    assert isinstance(generator, Completer)
    return generator.backend


def _tunable(placebos: Sequence[Backend]) -> Backend | None:
    """The first placebo that has weights here."""
    from pretrace.backends.huggingface import HuggingFace

    return next((one for one in placebos if isinstance(one, HuggingFace)), None)


def _record(corpus: Corpus, heldout: Corpus | None, data: AuditData, made: Prepared) -> dict[str, Any]:
    """The settings, models, texts and versions that are needed to repeat the audit."""
    settings, models = data.settings, data.models
    used = {"target": models.target, "reference": models.reference}
    facts = {name: dict(model.facts) for name, model in used.items() if model is not None}
    facts |= {
        "placebo" if i == 1 else f"placebo {i}": dict(model.facts) for i, model in enumerate(data.placebos, 1)
    }
    if made.generator is not None:
        facts["generator"] = dict(made.generator.facts)
    return {
        "corpus": record_corpus(corpus),
        "heldout": record_corpus(heldout) if heldout is not None else None,
        "models": facts,
        "procedure": settings.procedure,
        "also": list(settings.also),
        "classifiers": list(settings.classifiers),
        "sampling": asdict(settings.sampling) if made.pairs else None,
        "generator_method": settings.method if made.pairs else None,
        "snippets": asdict(settings.snippets)
        | {
            "cut": len(made.cut.snippets),
            "judged": len(made.samples.suspect),
            "generator_learnt_from": len(made.training),
            "too_short": len(made.cut.short),
            "notes": [*made.cut.notes, *made.notes],
        },
        "power": [asdict(one) for one in settings.power],
        "seed": data.seed,
        "software": record_software(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
