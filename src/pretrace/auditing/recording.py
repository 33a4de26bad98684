"""What an audit writes down of itself: everything needed to make it again, and earlier audits of the same texts."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from pretrace.auditing.data import Case
from pretrace.auditing.preparing import Prepared
from pretrace.cache.register import earlier_audits, note_audit
from pretrace.scoring.provenance import record_corpus, record_software
from pretrace.types import Audit, Backend, Corpus


def record(corpus: Corpus, heldout: Corpus | None, case: Case, made: Prepared) -> dict[str, Any]:
    """Everything needed to make the audit again, and to see what it was made of."""
    settings, models = case.settings, case.models
    recorded = record_corpus(corpus)
    used = {"target": models.target, "reference": models.reference}
    facts = {name: dict(model.facts) for name, model in used.items() if model is not None}
    facts |= {_numbered(i): dict(model.facts) for i, model in enumerate(case.placebos, 1)}
    if made.generator is not None:
        facts["generator"] = dict(made.generator.facts)
    return {
        "corpus": recorded,
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
            "judged": len(made.sides.suspect),
            "generator_learnt_from": len(made.training),
            "too_short": len(made.cut.short),
            "notes": [*made.cut.notes, *made.notes],
        },
        "power": asdict(settings.power) if settings.power else None,
        "seed": settings.seed,
        "software": record_software(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "earlier": _earlier(recorded["sha256"], models.target) if settings.cache else [],
    }


def note(result: Audit) -> None:
    """Add the audit to this machine's register, where the next one of the same texts and weights finds it."""
    settings = result.settings
    note_audit(
        {
            "texts": settings["corpus"]["sha256"],
            "weights": str(settings["models"]["target"].get("weights")),
            "time": settings["time"],
            "procedure": settings["procedure"],
            "seed": settings["seed"],
            "placebo": result.answer.facts.get("placebo"),
            "p": result.answer.p,
            "outcome": result.outcome,
        }
    )


def _numbered(number: int) -> str:
    return "placebo" if number == 1 else f"placebo {number}"


def _earlier(texts: str, target: Backend) -> list[dict[str, Any]]:
    found = earlier_audits(texts, str(target.facts.get("weights")))
    return [
        {name: value for name, value in entry.items() if name not in ("texts", "weights")} for entry in found
    ]
