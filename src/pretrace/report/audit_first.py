"""The first page of an audit's report, without a technical term: who asked, the answer, the figures, the checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from markupsafe import Markup

from pretrace.report import advice as advising
from pretrace.report import audit_plots as plots
from pretrace.report import facts, wording
from pretrace.report.chance_plots import against_chance, strength
from pretrace.report.facts import sentences
from pretrace.report.frame import fill
from pretrace.report.svg import to_svg
from pretrace.report.wording import named
from pretrace.types import AuditFigures, Check, Power, Verdict
from pretrace.verdicts.audit.built import CONTROL, SUSPECT, documents_of, figures_of
from pretrace.verdicts.audit.designs import ALIKE, widest_gap

_ADVICE = 3
"""Sentences of advice that stand here; the test has all."""
_STATUS = ("failed", "passed", "not run")
_TITLES = ("Nothing was found", "Nothing shown", "Inconclusive")
"""What a statement may begin with, before a colon; it stands above the rest of the statement."""
_GAVE = "The test gave p ="
"""How the reason begins that says what the test found."""
UNSTATED = "not stated"
_GRADES = {
    "own": "an earlier state of the model in question",
    "sibling": "a model of the same kind, trained apart from it",
    "other": "a model of another family",
}
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A row: what it is about, what is recorded, and smaller lines beneath it, each with whether it is a code."""

    label: str
    value: str
    notes: tuple[tuple[str, bool], ...] = ()


def first_page(audit: Verdict) -> Markup:
    """The answer, who asked and what was compared, the figures, how strong it is, the checks, and what would help."""
    own = figures_of(audit)
    title = next((one for one in _TITLES if audit.statement.startswith(f"{one}:")), "")
    made = {status: [one for one in facts.checks(audit) if one.status == status] for status in _STATUS}
    failed, others = made["failed"], made["passed"] + made["not run"]
    likely = advising.foreseeable(audit)
    advised = wording.once(audit.advice)
    values = {
        "audit": audit,
        "title": title,
        "statement": wording.after(audit.statement, title and f"{title}: "),
        "own": own,
        "suspects": len(documents_of(audit, SUSPECT)[0]),
        "controls": len(documents_of(audit, CONTROL)[0]),
        "rows": identity(audit),
        "failed": [
            (one, "" if audit.outcome == "inconclusive" else words) for one, words in why_failed(failed)
        ],
        "others": others,
        "advice": advised[:_ADVICE],
        "advised": len(advised),
        "reasons": wording.once(audit.reasons),
        "why": why_inconclusive(audit, failed),
        "withheld": facts.rejected(audit) and audit.outcome == "inconclusive",
        "meant": _meant(audit, own),
        "served": (*facts.served(audit.settings), *sentences(audit.settings)),
        "foreseen": likely,
    }
    return fill("audit/first.html", values | _compared(own) | _drawn(audit, own) | _strength(audit, own))


def why_inconclusive(audit: Verdict, failed: Sequence[Check]) -> tuple[str, ...]:
    """Why a verdict is inconclusive, for the box of the answer: each failed check with its reason, and what else
    withheld it; where nothing did, the reasons as they are."""
    told = [f"{check.title}: no. {words}" for check, words in why_failed(failed)]
    others = [one for one in audit.reasons if not any(one.startswith(check.title) for check in failed)]
    if facts.rejected(audit):  # then what the test gave is no reason
        kept = [one for one in others if not one.startswith(_GAVE)]
        others = kept if kept or told else others
    return tuple(told[:3]) + wording.once(others)


def why_failed(failed: Sequence[Check]) -> list[tuple[Check, str]]:
    """Each failed check with why it matters, in full: its first sentence alone may say the opposite."""
    return [(one, wording.plain(one.words)) for one in failed]


def identity(audit: Verdict) -> tuple[Row, ...]:
    """The date, who asked, the model, those it is compared with, the texts and the control documents."""
    said, own = audit.statements, figures_of(audit)
    return (
        Row("Date of the audit", when(audit.settings.get("time"))),
        Row("Requested by", said.get("requested_by") or UNSTATED),
        Row("Model in question", *facts.model_as_served(audit.model, facts.of_model(audit, "target"))),
        *_models(audit, own),
        Row(
            "Suspect texts", _listed(len(documents_of(audit, SUSPECT)[0]), "document"), _hash(audit, "corpus")
        ),
        *_controls(audit, own),
    )


def when(found: object) -> str:
    """A recorded time as people write it, the day alone where it cannot be read.

    >>> when("2026-11-22T14:03:09+00:00"), when(None)
    ('22 November 2026, 14:03 UTC', 'not recorded')
    """
    if not isinstance(found, str):
        return "not recorded"
    try:
        moment = datetime.fromisoformat(found)
    except ValueError:
        return named(found)
    month = _MONTHS[moment.month - 1]
    return f"{moment.day} {month} {moment.year}, {moment:%H:%M} {moment.tzname() or ''}".strip()


def _compared(own: AuditFigures) -> dict[str, object]:
    """What the sentences on the comparison say."""
    other, tuned = _other(own)
    return {
        "other": other,
        "tuned": tuned,
        "tests": len(own.answers),
        "margin": own.margin,
        "told_apart": _told_apart(own),
    }


def _other(own: AuditFigures) -> tuple[str | None, bool]:
    """The name of the model that the deciding test compares with, and whether it is a copy that the audit tuned: the
    name is then that of the placebo it was made from."""
    other = own.compared_with
    base = next((one.name for one in own.placebos if other and other.startswith(f"{one.name} + ")), None)
    return (base, True) if base and own.placebo is None else (other, False)


def _told_apart(own: AuditFigures) -> str:
    """How often a program that sees only texts tells a suspect text from a control document, by the classifier that
    decides; empty where it is not known, or there are none."""
    deciding = widest_gap(own.plan.gaps, (ALIKE,)) if own.plan else None
    if own.design == "placebos" or deciding is None:
        return ""
    widest = deciding.auc
    low, high = round(100 * max(0.0, widest.low)), round(100 * min(1.0, widest.high))
    return f"{round(100 * widest.value)} of 100 cases (95% interval {low} to {high})"


def _drawn(audit: Verdict, own: AuditFigures) -> dict[str, object]:
    """The two figures, and what their captions count."""
    found, others = documents_of(audit, SUSPECT)[1], documents_of(audit, CONTROL)[1]
    ahead = int((found > 0).sum())
    shows_test = own.procedure == "pretrace"
    values: dict[str, object] = {
        "ahead": ahead,
        "behind": len(found) - ahead,
        "per_dot": plots.per_dot(audit),
        "shows_test": shows_test,
        "level": wording.share(audit.level),
        "dots": "",
        "hill": "",
    }
    if len(found):
        label = f"One dot for each of {len(found)} suspect and {len(others)} control documents."
        values["dots"] = to_svg(plots.documents(audit), name="dots", label=label, titles=plots.titles(audit))
    if audit.null and shows_test:
        label = (
            f"A histogram of the {sum(audit.null.counts)} results that chance gave, the result of this audit at "
            f"{strength(audit.null.observed, wording.brief(audit.null.observed, 3))}, and a line at "
            f"{strength(audit.null.critical, wording.brief(audit.null.critical, 3))}."
        )
        values["hill"] = to_svg(against_chance(audit.null), name="hill", label=label)
    return values


def _strength(audit: Verdict, own: AuditFigures) -> dict[str, object]:
    """How often chance gives as much, what hidden bias the result withstands, what innocent models showed, and what
    the audit could have seen."""
    shown = facts.rejected(audit) and own.procedure == "pretrace"
    found, effect = own.sensitivity if shown else None, audit.effect
    gamma, shift = (found.gamma_sign, found.shift) if found else (None, None)
    leans, p = wording.beside_leans(own.leans, effect, own.margin), audit.p
    power = audit.planted
    return {
        "often": wording.strength(p, own.facts) if p is not None else "",
        "p": wording.p_value(p) if p is not None else "",
        "withstands": gamma is not None or shift is not None or leans,
        "gamma": wording.brief(gamma, 2) if gamma is not None else "",
        "shift": wording.brief(shift, 2) if shift is not None else "",
        "effect": wording.figure(effect) if effect else "",
        "leans": leans,
        "seen": [_seen(one) for one in own.powers or ((power,) if power else ())],
        "register": audit.register[0] if audit.register else "",
        "left_out": _left_out(audit, own) if shown else "",
    }


def _meant(audit: Verdict, own: AuditFigures) -> str:
    """What the effect says of documents, in cases of 100; empty where the decision is not made on them."""
    found, others = documents_of(audit, SUSPECT)[1], documents_of(audit, CONTROL)[1]
    if not len(found) or own.procedure != "pretrace":
        return ""
    if not len(others):
        ahead = int((found > 0).sum())
        return f"In {wording.count(ahead)} of the {wording.plural(len(found), 'document')} the true text is ahead."
    ranked = np.searchsorted(np.sort(others), found, side="left") + np.searchsorted(
        np.sort(others), found, side="right"
    )
    share = int(ranked.sum()) / (2 * len(others) * len(found))  # a tie counts half
    return (
        "Of one suspect document and one control document drawn by lot, the suspect one lies ahead in "
        f"{wording.cases(share)}; 50 is no difference."
    )


def _seen(power: Power) -> tuple[str, str, str]:
    """The training that was tried, how often such an audit finds it, and the interval of that."""
    chance = power.probability
    how = str(power.facts.get("how", ""))
    said = f"{wording.times(power.epochs)}{f' ({how})' if how else ''}"
    return said, wording.cases(chance.value), wording.case_spread(chance)


def _left_out(audit: Verdict, own: AuditFigures) -> str:
    """How many control documents of another kind could not explain the result; empty where that was not recorded."""
    number = own.sensitivity.left_out if own.sensitivity else None
    if number is None:
        return ""
    controls = len(documents_of(audit, CONTROL)[0])
    return f"{wording.count(number)} of the {wording.count(controls)} control documents ({number / controls:.0%})"


def _models(audit: Verdict, own: AuditFigures) -> Iterator[Row]:
    """Each model that never saw the texts, and how that is known."""
    used = [placebo for placebo in own.placebos if placebo.grade != "other" or len(own.placebos) == 1]
    if not used:
        yield Row("Compared with", "no other model")
        return
    how = audit.statements.get("placebo") or UNSTATED
    for placebo in used:
        recorded = {**placebo.facts, **facts.of_placebo(audit, placebo)}
        name, marks = facts.model_as_served(placebo.name, recorded)
        yield Row("Compared with", name, ((_GRADES[placebo.grade], False), *marks))
    each = "it" if len(used) == 1 else "each"
    yield Row(f"How {each} is known not to have seen the texts", how)


def _controls(audit: Verdict, own: AuditFigures) -> Iterator[Row]:
    if own.design == "placebos":
        yield Row("Control documents", "none")
        return
    counted = _listed(len(documents_of(audit, CONTROL)[0]), "control document")
    yield Row("Control documents", counted, _hash(audit, "heldout"))
    yield Row("Where they come from", audit.statements.get("controls") or UNSTATED)


def _listed(number: int, noun: str) -> str:
    return f"{wording.plural(number, noun)}, each listed in documents.csv"


def _hash(audit: Verdict, part: str) -> tuple[tuple[str, bool], ...]:
    return hash_of(facts.mapping(audit.settings.get(part)))


def hash_of(texts: Mapping[str, Any]) -> tuple[tuple[str, bool], ...]:
    """The hash of some texts, by what was recorded of them; nothing where it was not."""
    found = texts.get("sha256")
    return (("SHA-256 of the texts:", False), (named(found), True)) if isinstance(found, str) else ()
