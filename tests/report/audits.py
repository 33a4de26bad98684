"""Audits to save and to report on: made from a seed, with the numbers and words a real one would have. What they say
stands in audits.toml."""

import functools
import tomllib
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from pretrace.backends.naming import called
from pretrace.results.folder import from_plain
from pretrace.results.wording import p_value, say
from pretrace.statistics.permutation import sensitivity
from pretrace.types import (
    Check,
    Estimate,
    Gap,
    Pair,
    Power,
    Verdict,
)
from pretrace.verdicts.audit import data
from pretrace.verdicts.audit.data import CONTROL, SUSPECT, documents_of, figures_of, pairs_of
from pretrace.verdicts.outcome import POWER as POWER_CURE
from pretrace.verdicts.outcome import null_of

MODEL, PLACEBO = "HuggingFaceTB/SmolLM2-135M", "HuggingFaceTB/SmolLM2-135M, checkpoint of step 240,000"
CORPUS = "Harbour notes 2009–2021"
UNIT, MARGIN, LEVEL = "of a typical token's lead", 0.031, 0.05
DATA = tomllib.loads(Path(__file__).with_name("audits.toml").read_text(encoding="utf-8"))
GIVE_CONTROLS = say("cures.controls")
CHECKS = tuple(Check(**one) for one in DATA["checks"])
NO_CONTROLS = Check(**DATA["no_controls"], cure=GIVE_CONTROLS)
POWERFUL = Check(**DATA["powerful"])
POWER = from_plain(Power, DATA["power"], "power")
OWN = data.Placebo(**DATA["own"])
FIGURES = from_plain(data.AuditFigures, DATA["figures"], "figures")
NAMES = {one.name for one in fields(data.AuditFigures)}
WORDS = ("assumption", "hypothesis", "statistic", "unit", "question", "compared", "effect_unit")


def answer_of(audit):
    """The test that decides."""
    own = figures_of(audit)
    shown = (audit.effect, audit.effect_unit, audit.standardised, own.facts)
    return data.Answer(own.procedure, audit.p, audit.statistic, audit.units, own.pieces, *shown)


def altered(audit, **parts):
    """The audit with other parts, by their names: of the verdict, of its figures and tables, and its answer."""
    own, answer = figures_of(audit), parts.pop("answer", None) or answer_of(audit)
    documents, others = documents_of(audit, SUSPECT), documents_of(audit, CONTROL)
    names = ("documents", "values", "heldout_documents", "heldout_values")
    values = data.DocumentValues(*map(parts.pop, names, (*documents, *others)))
    pairs = parts.pop("pairs", pairs_of(audit, SUSPECT)), parts.pop("control_pairs", pairs_of(audit, CONTROL))
    facts = {"procedure": answer.procedure, "pieces": answer.pieces, "facts": answer.facts}
    figures = replace(own, **facts, **{name: parts.pop(name) for name in NAMES & parts.keys()})
    audit = replace(audit, **parts)
    words = data.words_of(figures.design, answer, audit.corpus, called(audit.model))
    shown = data.shown_of(figures, values, pairs)
    return replace(
        audit, p=answer.p, units=answer.documents, effect=answer.effect, standardised=answer.standardised,
        figures=shown.figures, tables=shown.tables, situation=shown.situation,
        **{name: getattr(words, name) for name in WORDS},
    )  # fmt: skip


def plan_of(audit):
    """The plan of an audit that has one."""
    plan = figures_of(audit).plan
    assert plan is not None
    return plan


def estimate(value, half):
    return Estimate(value, value - half, value + half)


@functools.cache
def numbers(mean, documents, seed, against=None, controls=0):
    """Values drawn from a seed, against 0 or against `controls` documents around the mean `against`, and what the test
    of an audit makes of them."""
    random = np.random.default_rng(seed)
    values = random.normal(mean, 0.11, documents)
    others = random.normal(against, 0.11, controls) if controls else np.zeros(0)
    names = tuple(f"notes/{i:04d}.md" for i in range(documents))
    held = tuple(f"drawer/{i:03d}.md" for i in range(controls))
    found = data.DocumentValues(names, values, held, others, 0.0 if controls else MARGIN, UNIT)
    placebo = {"placebo": PLACEBO if controls else f"{PLACEBO} + lora"}
    return {
        "answer": data.answer(found, pieces=3 * documents - 7, seed=0, facts=placebo),
        "null": null_of(data.permuted(found), LEVEL, data.STATISTIC),
        "sensitivity": sensitivity(values, others, permutations=2_000) if controls else sensitivity(values),
        "documents": names, "values": values, "heldout_documents": held, "heldout_values": others,
    }  # fmt: skip


def said(name):
    """The outcome and the statement of an audit of that name."""
    told = DATA[name]
    return {"outcome": told["outcome"], "statement": told["statement"].format(model=MODEL, corpus=CORPUS)}


def found_words(answer):
    """What the verdict says of a test."""
    word = "at or below" if answer.p <= LEVEL else "above"
    return f"The test gave p = {p_value(answer.p)}, {word} the level of {LEVEL:g} that was set beforehand."


def planned(name, documents, **more):
    """The plan of an audit of that name."""
    counts = {"documents": documents, "snippets": 6 * documents, "passes": 12 * documents}
    return from_plain(
        data.AuditPlan, {**DATA["placebos"]["plan"], **DATA[name]["plan"], **counts, **more}, "plan"
    )


def bare():
    """The least an audit can hold."""
    shown = data.shown_of(
        data.AuditFigures("placebos", "pretrace", 1), data.DocumentValues(("d",), np.zeros(1))
    )
    least = Verdict(
        test="audit", corpus="c", model="m", outcome="inconclusive", statement="The audit is inconclusive.",
        level=LEVEL, exact=False, assumption="", hypothesis="", statistic="mean", p=1.0, units=1, unit="",
        question="", compared=(), figures=shown.figures, tables=shown.tables,
    )  # fmt: skip
    return altered(least)


def placebos(documents=203, *, seed=1, mean=0.041):
    """Design "placebos": own checkpoint, and a copy of it that the audit tuned. It rejects, and nothing is concluded
    from it without control documents."""
    found = numbers(mean, documents, seed)
    answer = found["answer"]
    first = replace(answer, p=answer.p / 2, facts={**answer.facts, "placebo": PLACEBO})
    plan = replace(planned("placebos", documents), placebos=(replace(OWN, closeness=None),))
    return altered(
        bare(), **found, **said("placebos"), corpus=CORPUS, model=MODEL, checks=(*CHECKS, NO_CONTROLS),
        reasons=(found_words(answer), f"{NO_CONTROLS.title}: this check failed. {NO_CONTROLS.words}"),
        advice=(GIVE_CONTROLS, CHECKS[-1].cure), answers=(first, answer),
        plan=replace(plan, cures=(GIVE_CONTROLS,)), variants=FIGURES.variants, placebos=(OWN,),
        leans=FIGURES.leans, gaps=FIGURES.gaps, pairs=pairs(16),
        statements=DATA["placebos"]["statements"], settings=settings(documents),
    )  # fmt: skip


def controls(documents=120, *, seed=7, mean=-0.03):
    """Design "controls": suspect and control documents compared directly, with the own checkpoint beside."""
    audit, told, found = placebos(), DATA["controls"], numbers(mean, documents, seed, -0.09, 74)
    plan = replace(planned("controls", documents, control_documents=74), placebos=plan_of(audit).placebos)
    return altered(
        audit, **found, **said("controls"), design="controls", answers=(found["answer"],), plan=plan,
        reasons=(found_words(found["answer"]),), advice=(), gaps=plan.gaps, leans=(), pairs=(),
        checks=tuple(check for check in CHECKS if check.name != "copies"), variants=(),
        statements={**audit.statements, "controls": told["note"]},
        settings={**audit.settings, "heldout": told["heldout"]},
    )  # fmt: skip


def nothing():
    """Design "differences": nothing was found, and the audit would have seen training."""
    audit, told = controls(203, seed=2, mean=-0.09), DATA["nothing"]
    plan = replace(planned("nothing", 203, control_documents=74), placebos=plan_of(audit).placebos)
    return altered(
        audit, **said("nothing"), design="differences", plan=plan, gaps=plan.gaps, planted=POWER,
        reasons=(found_words(answer_of(audit)), told["reason"]), advice=tuple(told["advice"]),
        checks=(*CHECKS, POWERFUL), pairs=pairs(16),
        control_pairs=tuple(replace(pair, id=f"drawer/{pair.id}") for pair in pairs(8)),
    )  # fmt: skip


def inconclusive():
    """A check failed, nothing was planted, the placebo is another family's and the texts are few."""
    audit, told = placebos(documents=38, seed=3, mean=0.044), DATA["inconclusive"]
    gap, placebo = (replace(CHECKS[i], status="failed", **told[CHECKS[i].name]) for i in (4, 6))
    answer, other = answer_of(audit), data.Placebo(**told["other"])
    return altered(
        audit, answer=replace(answer, facts={**answer.facts, "placebo": other.name}), answers=(),
        checks=(*CHECKS[:4], gap, CHECKS[5], placebo, CHECKS[7], NO_CONTROLS),
        reasons=(found_words(answer), *(f"{one.title}: this check failed. {one.words}" for one in (gap, placebo))),
        advice=(gap.cure, placebo.cure, GIVE_CONTROLS, CHECKS[7].cure), placebos=(other,), statements={},
    )  # fmt: skip


def missed():
    """Nothing found, and no telling what could have been missed: inconclusive without a failed check."""
    audit, cure = nothing(), POWER_CURE.format("audit")
    unmeasured = Check("power", POWERFUL.title, "not run", "It was not measured.", cure)
    reasons = (found_words(answer_of(audit)), DATA["missed"]["reason"])
    how = {"advice": (cure,), "checks": (*CHECKS, unmeasured), "planted": None}
    return altered(audit, **said("missed"), reasons=reasons, **how)


def without_placebo():
    """The target alone: nothing to subtract, so a procedure of the literature decides."""
    audit = inconclusive()
    statistic = "what the combined classifier adds to the text-only one, one value a document"
    bare = {"procedure": "paper", "effect": None, "standardised": None, "unit": "", "facts": {}}
    answer = replace(answer_of(audit), statistic=statistic, **bare)
    nothing = {"placebos": (), "variants": (), "leans": (), "null": None, "sensitivity": None, "plan": None}
    return altered(audit, answer=answer, **nothing)


def hostile():
    """Names and texts that would break a page, in every place that holds a text."""
    evil = '<script>alert("x")</script>\u202e\x00\ud800{{ 7*7 }}'
    audit = placebos(documents=5)
    answer, pair = answer_of(audit), Pair(evil, evil, evil, evil, evil)
    own = {"statistic": evil, "unit": evil, "procedure": evil, "facts": {evil: [evil], "placebo": evil}}
    target = {"name": evil, "revision": evil, "weights": evil}
    plan = data.AuditPlan(
        None, evil, ("inconclusive",), 5, 5, 0, (data.Placebo(evil, "own", None, evil),), (), (evil,)
    )
    return altered(
        audit, corpus=evil, model=evil, statement=evil, answer=replace(answer, **own),
        answers=(replace(answer, facts={"placebo": evil}),) * 2, plan=plan, reasons=(evil,), advice=(evil,),
        checks=(Check(evil, evil, "failed", evil, evil, {evil: evil}),),
        leans=({"domain": evil, "epochs": 1, "model": evil, "value": 0.01},),
        documents=(evil, *documents_of(audit, SUSPECT)[0][1:]), pairs=(pair,), control_pairs=(pair,),
        variants=(replace(FIGURES.variants[0], procedure=evil, statistic=evil, unit=evil),),
        placebos=(data.Placebo(evil, "other", 0.5, evil, {evil: {evil: None}}),),
        statements={"requested_by": evil, "placebo": evil, "controls": evil, evil: evil},
        gaps=(Gap(evil, estimate(0.6, 0.1), 10, evil),),
        settings={
            **dict.fromkeys((evil, "time"), evil),
            "corpus": {evil: evil, "notes": [evil], "sha256": evil, "source": evil},
            "models": {"target": target}, "command": {"texts": evil, evil: evil}, "timings": {evil: 3.0},
        },
    )  # fmt: skip


def pairs(number):
    """Texts to compare, with controls and markup among them."""
    texts = [tuple(one.values()) for one in DATA["pairs"]]
    places = [(f"notes/{i // 2:04d}.md#{i % 2}", f"notes/{i // 2:04d}.md") for i in range(number)]
    return tuple(Pair(*place, *texts[i % len(texts)]) for i, place in enumerate(places))


def settings(documents):
    """What an audit records of itself."""
    tuned = model(f"{MODEL} + lora", "3b1e") | {"adapter": {"method": "lora(rank=32)", "seed": 0}}
    models = {"target": model(MODEL, "3b1e"), "placebo": model(PLACEBO, "77aa"), "generator": tuned}
    counts = {"texts": documents + 9, "documents": documents}
    return {**DATA["settings"], "corpus": {**DATA["settings"]["corpus"], **counts}, "models": models}


def model(name, start):
    """What an audit records of a model."""
    hashes = {"weights": start + "0" * 56 + "f00d", "tokenizer": "5d" * 32}
    return {"name": name, "revision": start, **hashes, "dtype": "float32", "parameters": 134_515_008}
