"""Audits to save and to report on: made from a seed, with the numbers and words a real one would have."""

import functools
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from pretrace.backends.serving.address import called
from pretrace.results.rounding import p_value
from pretrace.statistics.intervals import difference_interval, mean_interval, standardised
from pretrace.statistics.permutation import PermutationTest, sign_flip_test, two_sample_test
from pretrace.statistics.sensitivity import sensitivity
from pretrace.types import (
    Answer,
    AuditFigures,
    AuditPlan,
    Check,
    Doubles,
    Estimate,
    Gap,
    Lean,
    Null,
    Pair,
    Placebo,
    Power,
    Quality,
    Sensitivity,
    Verdict,
)
from pretrace.verdicts.audit.built import (
    CONTROL,
    SUSPECT,
    documents_of,
    figures_of,
    pairs_of,
    shown_of,
    words_of,
)
from pretrace.verdicts.outcome import POWER as POWER_CURE
from pretrace.verdicts.wording import say

MODEL, PLACEBO = "HuggingFaceTB/SmolLM2-135M", "HuggingFaceTB/SmolLM2-135M, checkpoint of step 240,000"
TUNED = f"{PLACEBO} + lora"
UNIT = "of a typical token's lead"
MARGIN, LEVEL, DRAWS = 0.031, 0.05, 2_000

DATA = tomllib.loads(Path(__file__).with_name("audits.toml").read_text(encoding="utf-8"))
CHECKS = tuple(Check(**one) for one in DATA["checks"])


def audit_of(  # noqa: PLR0913 (an audit has many parts)
    answer,
    *,
    design="placebos",
    documents=(),
    values=None,
    heldout_documents=(),
    heldout_values=None,
    pairs=(),
    control_pairs=(),
    **parts,
):
    """An audit from all its parts, by their names: those of its figures, and those of a verdict."""
    own = {name: parts.pop(name) for name in FIGURES if name in parts}
    nothing = np.zeros(0)
    figures = AuditFigures(design, answer.procedure, answer.pieces, answer.facts, **own)
    words = words_of(figures, answer, parts["corpus"], called(parts["model"]))
    sides = (
        (documents, nothing if values is None else values),
        (heldout_documents, nothing if heldout_values is None else heldout_values),
    )
    shown = shown_of(figures, sides, (pairs, control_pairs))
    from_words = ("assumption", "hypothesis", "statistic", "unit", "question", "compared", "effect_unit")
    return Verdict(
        test="audit", exact=False, p=answer.p, units=answer.documents, effect=answer.effect,
        standardised=answer.standardised, figures=shown.figures, tables=shown.tables, situation=shown.situation,
        **{name: getattr(words, name) for name in from_words}, **parts,
    )  # fmt: skip


FIGURES = tuple(one.name for one in fields(AuditFigures))[4:]
SHARED = (
    "corpus", "model", "outcome", "statement", "level", "null", "planted", "checks", "reasons", "advice", "register",
    "statements", "settings",
)  # fmt: skip


def answer_of(audit):
    """The test that decides."""
    own, p = figures_of(audit), audit.p
    assert p is not None
    return Answer(
        own.procedure, p, audit.statistic, audit.units, own.pieces, audit.effect, audit.effect_unit,
        audit.standardised, own.facts,
    )  # fmt: skip


def altered(audit, **parts):
    """The audit with other parts, by their names."""
    own = figures_of(audit)
    documents, values = documents_of(audit, SUSPECT)
    others, held = documents_of(audit, CONTROL)
    told = {
        "answer": answer_of(audit), "design": own.design, "documents": documents, "values": values,
        "heldout_documents": others, "heldout_values": held,
        "pairs": pairs_of(audit, SUSPECT), "control_pairs": pairs_of(audit, CONTROL),
        **{name: getattr(own, name) for name in FIGURES},
        **{name: getattr(audit, name) for name in SHARED},
    }  # fmt: skip
    return audit_of(**{**told, **parts})


def plan_of(audit):
    """The plan of an audit that has one."""
    plan = figures_of(audit).plan
    assert plan is not None
    return plan


def estimate(value, half):
    return Estimate(value, value - half, value + half)


@functools.cache
def numbers(mean, documents, seed, against=None, controls=0):
    """Values drawn from a seed, against 0 or against `controls` documents around the mean `against`, and their test."""
    random = np.random.default_rng(seed)
    values = random.normal(mean, 0.11, documents)
    if against is None:
        test = sign_flip_test(values, flips=DRAWS)
        return Numbers(values, np.zeros(0), test, mean_interval(values), sensitivity(values))
    others = random.normal(against, 0.11, controls)
    test = two_sample_test(values, others, permutations=DRAWS)
    found = sensitivity(values, others, permutations=DRAWS)
    return Numbers(values, others, test, difference_interval(values, others), found)


@dataclass(frozen=True)
class Numbers:
    """The values of an audit, its test, the effect and what the result withstands."""

    values: Doubles
    others: Doubles
    test: PermutationTest
    effect: Estimate
    sensitivity: Sensitivity

    @property
    def null(self):
        counts, edges = np.histogram(self.test.null, 60)
        return Null(
            "mean over its standard error, skewness taken out",
            self.test.observed,
            self.test.critical(LEVEL),
            tuple(map(float, edges)),
            tuple(map(int, counts)),
        )

    def of(self, audit, **facts):
        """The audit with these numbers in the place of its own."""
        paired = not len(self.others)
        kind = "sign-flip" if paired else "two-sample"
        answer = Answer(
            procedure="pretrace",
            p=self.test.p,
            statistic=f"{kind} permutation test of document means"
            + (f", less a margin of {MARGIN:.3g}" if paired else ""),
            documents=len(self.values),
            pieces=3 * len(self.values) - 7,
            effect=self.effect,
            unit=UNIT,
            standardised=standardised(self.values) if paired else standardised(self.values, self.others),
            facts={"permutations": DRAWS, "margin": MARGIN if paired else 0.0, **facts},
        )
        return altered(
            audit,
            answer=answer,
            documents=tuple(f"notes/{number:04d}.md" for number in range(len(self.values))),
            values=self.values,
            heldout_documents=tuple(f"drawer/{number:03d}.md" for number in range(len(self.others))),
            heldout_values=self.others,
            null=self.null,
            sensitivity=self.sensitivity,
        )


def placebos(documents=203, *, seed=1, mean=0.041):
    """Design "placebos": own checkpoint, and a copy of it that the audit tuned. It rejects, and nothing is concluded
    from it without control documents."""
    audit = audit_of(
        corpus="Harbour notes 2009–2021",
        model=MODEL,
        design="placebos",
        outcome="inconclusive",
        statement=f"Inconclusive: this audit cannot say whether {MODEL} was trained on Harbour notes 2009–2021.",
        level=LEVEL,
        answer=Answer("pretrace", 1.0, "", 0, 0),
        checks=(*CHECKS, NO_CONTROLS),
        documents=(),
        values=np.zeros(0),
        advice=(GIVE_CONTROLS, CHECKS[-1].cure),
        variants=VARIANTS,
        placebos=(OWN,),
        leans=LEANS,
        gaps=GAPS,
        quality=QUALITY,
        pairs=pairs(16),
        statements={
            "requested_by": "Ines Albrecht, for the Harbour Writers’ Guild",
            "placebo": "Its repository dates the checkpoint to 2 March 2024; the notes went online on 19 May 2024.",
        },
        settings=settings(documents),
    )
    audit = numbers(mean, documents, seed).of(audit, placebo=TUNED)
    answer = answer_of(audit)
    first = replace(answer, p=answer.p / 2, facts={**answer.facts, "placebo": PLACEBO})
    return altered(
        audit,
        answers=(first, answer),
        reasons=(found_words(answer), f"{NO_CONTROLS.title}: no. {NO_CONTROLS.words}"),
        plan=AuditPlan(
            design="placebos",
            why="There are no control documents. The suspect texts are compared with what a generator wrote in their "
            "place, and the target with models that never saw them. That has accused the innocent on kinds of text "
            "that nobody had measured, so no accusation is made on it alone.",
            outcomes=("inconclusive",),
            documents=documents,
            snippets=6 * documents,
            placebos=(replace(OWN, closeness=None),),
            cures=(GIVE_CONTROLS,),
            passes=12 * documents,
            seconds=1240.0,
        ),
    )


def controls(documents=120, *, seed=7, mean=-0.03):
    """Design "controls": suspect and control documents compared directly, with the own checkpoint beside."""
    audit = placebos()
    audit = numbers(mean, documents, seed, -0.09, 74).of(audit, placebo=PLACEBO, control_documents=74)
    gaps = (
        Gap("words", Estimate(0.53, 0.47, 0.59), 402, "logistic regression on word counts"),
        Gap("length", Estimate(0.49, 0.43, 0.55), 402, ""),
    )
    plan = replace(
        plan_of(audit),
        design="controls",
        why="A classifier that sees only texts (words) tells suspect texts from control documents with an AUC of 0.53 "
        "[0.47, 0.59]; 0.5 is a coin. They are alike as texts, so the documents of both sides are compared directly.",
        outcomes=("consistent", "inconclusive"),
        documents=documents,
        control_documents=74,
        gaps=gaps,
        cures=(),
    )
    return altered(
        audit,
        design="controls",
        outcome="consistent",
        statement=f"What {MODEL} makes of Harbour notes 2009–2021 is consistent with training on these texts, or on "
        "copies of them.",
        answers=(answer_of(audit),),
        reasons=(found_words(answer_of(audit)),),
        advice=(),
        plan=plan,
        gaps=gaps,
        leans=(),
        pairs=(),
        quality=(),
        checks=tuple(check for check in CHECKS if check.name != "copies"),
        variants=(),
        statements={
            **audit.statements,
            "controls": "Notes from the same years that were never published, in a drawer.",
        },
        settings={**audit.settings, "heldout": {"name": "drawer", "sha256": "41" * 32, "documents": 74}},
    )


def nothing():
    """Design "differences": nothing was found, and the audit would have seen training."""
    audit = controls(203, seed=2, mean=-0.09)
    gaps = (Gap("words", Estimate(0.71, 0.66, 0.76), 402, "logistic regression on word counts"),)
    plan = replace(
        plan_of(audit),
        design="differences",
        why="A classifier that sees only texts (words) tells suspect texts from control documents with an AUC of 0.71 "
        "[0.66, 0.76]; 0.5 is a coin. They differ as texts, so they are not compared directly: in each, what stands "
        "there is compared with what a generator wrote in its place, and these differences are compared.",
        outcomes=("consistent", "nothing", "inconclusive"),
        gaps=gaps,
    )
    return altered(
        audit,
        design="differences",
        outcome="nothing",
        statement=f"Nothing was found: {MODEL} does not know Harbour notes 2009–2021 better than texts it cannot have "
        "seen, and training like the one that was tried here would have been seen.",
        reasons=(
            found_words(answer_of(audit)),
            f"Reading 101 of the documents once moved a copy of the target by 0.0460 [0.0370, 0.0550] {UNIT}. The "
            "effect that was found is at most 0.0310, which is less.",
        ),
        advice=("More documents would show weaker traces.",),
        checks=(*CHECKS, POWERFUL),
        plan=plan,
        gaps=gaps,
        pairs=pairs(16),
        control_pairs=tuple(replace(pair, id=f"drawer/{pair.id}") for pair in pairs(8)),
        quality=QUALITY,
        planted=POWER,
    )


def inconclusive():
    """A check failed, nothing was planted, the placebo is another family's and the texts are few."""
    audit = placebos(documents=38, seed=3, mean=0.044)
    gap = replace(
        CHECKS[4],
        status="failed",
        words="A classifier that never saw the model (gpt2) tells your texts from the generated ones with an AUC of "
        "0.74 [0.69, 0.79]; 0.5 is a coin, and above 0.70 nothing else is believed.",
        cure="Give control documents. Or train the generator longer or on more of the texts, or take one that knows "
        "their language. [--controls, --generator]",
    )
    placebo = replace(
        CHECKS[6],
        status="failed",
        words="There is no placebo of the target's family. What sets these texts apart in the target may set them "
        "apart in any model. Two families differ on any text, for reasons that have nothing to do with training on it.",
        cure="Name the base the target was tuned from, its last checkpoint before the texts can have come in, or a "
        "sibling trained as long without them. [--placebo, --placebo-revision]",
    )
    other = Placebo("google/gemma-3-270m", "other", 0.81, "of another family than the target")
    return altered(
        audit,
        outcome="inconclusive",
        statement=f"Inconclusive: this audit cannot say whether {MODEL} was trained on Harbour notes 2009–2021.",
        answer=replace(answer_of(audit), facts={**answer_of(audit).facts, "placebo": other.name}),
        answers=(),
        checks=(*CHECKS[:4], gap, CHECKS[5], placebo, CHECKS[7], NO_CONTROLS),
        reasons=(
            found_words(answer_of(audit)),
            f"{gap.title}: no. {gap.words}",
            f"{placebo.title}: no. {placebo.words}",
        ),
        advice=(gap.cure, placebo.cure, GIVE_CONTROLS, CHECKS[7].cure),
        placebos=(other,),
        statements={},
    )


def missed():
    """Nothing found, and no telling what could have been missed: inconclusive without a failed check."""
    audit = nothing()
    unmeasured = Check("power", POWERFUL.title, "not run", "It was not measured.", POWER_CURE.format("audit"))
    return altered(
        audit,
        outcome="inconclusive",
        statement=f"Inconclusive: no sign of training on Harbour notes 2009–2021 was found in {MODEL}, but this audit "
        "could have missed it.",
        reasons=(
            found_words(answer_of(audit)),
            "What this audit could have missed was not measured. A p-value above the level does not show that the "
            "texts were not used.",
        ),
        advice=(POWER_CURE.format("audit"),),
        checks=(*CHECKS, unmeasured),
        planted=None,
    )


def found_words(answer):
    """What the verdict says of a test."""
    word = "at or below" if answer.p <= LEVEL else "above"
    return f"The test gave p = {p_value(answer.p)}, {word} the level of {LEVEL:g} that was set beforehand."


def without_placebo():
    """The target alone: nothing to subtract, so a procedure of the literature decides."""
    audit = inconclusive()
    answer = replace(
        answer_of(audit),
        procedure="paper",
        effect=None,
        standardised=None,
        unit="",
        statistic="what the combined classifier adds to the text-only one, one value a document",
        facts={},
    )
    return altered(
        audit, placebos=(), answer=answer, variants=(), leans=(), null=None, sensitivity=None, plan=None
    )


def bare():
    """The least an audit can hold."""
    return audit_of(
        corpus="c",
        model="m",
        design="placebos",
        outcome="inconclusive",
        statement="The audit is inconclusive.",
        level=0.05,
        answer=Answer("pretrace", 1.0, "mean", 1, 1),
        checks=(),
        documents=("d",),
        values=np.zeros(1),
    )


def hostile():
    """Names and texts that would break a page, in every place that holds a text."""
    evil = '<script>alert("x")</script>\u202e\x00\ud800{{ 7*7 }}'
    audit = placebos(documents=5)
    check = Check(evil, evil, "failed", evil, evil, {evil: evil})
    return altered(
        audit,
        corpus=evil,
        model=evil,
        statement=evil,
        answer=replace(
            answer_of(audit), statistic=evil, unit=evil, procedure=evil, facts={evil: [evil], "placebo": evil}
        ),
        answers=(replace(answer_of(audit), facts={"placebo": evil}),) * 2,
        checks=(check,),
        documents=(evil, *documents_of(audit, SUSPECT)[0][1:]),
        reasons=(evil,),
        advice=(evil,),
        variants=(replace(VARIANTS[0], procedure=evil, statistic=evil, unit=evil),),
        placebos=(Placebo(evil, "other", 0.5, evil, {evil: {evil: None}}),),
        plan=AuditPlan(
            None, evil, ("inconclusive",), 5, 5, 0, (Placebo(evil, "own", None, evil),), (), (evil,)
        ),
        leans=(Lean(evil, 1, evil, 0.01),),
        statements={"requested_by": evil, "placebo": evil, "controls": evil, evil: evil},
        gaps=(Gap(evil, estimate(0.6, 0.1), 10, evil),),
        quality=(Quality(evil, 1.0, None, evil),),
        pairs=(Pair(evil, evil, evil, evil, evil),),
        control_pairs=(Pair(evil, evil, evil, evil, evil),),
        settings={
            evil: evil,
            "time": evil,
            "corpus": {evil: evil, "notes": [evil], "sha256": evil, "source": evil},
            "models": {"target": {"name": evil, "revision": evil, "weights": evil}},
            "command": {"texts": evil, evil: evil},
            "timings": {evil: 3.0},
        },
    )


def pairs(number):
    """Texts to compare, with controls and markup among them."""
    texts = [tuple(one.values()) for one in DATA["pairs"]]
    return tuple(
        Pair(f"notes/{i // 2:04d}.md#{i % 2}", f"notes/{i // 2:04d}.md", *texts[i % len(texts)])
        for i in range(number)
    )


def settings(documents):
    """What an audit records of itself."""
    tuned = model(f"{MODEL} + lora", "3b1e") | {"adapter": {"method": "lora(rank=32)", "seed": 0}}
    models = {"target": model(MODEL, "3b1e"), "placebo": model(PLACEBO, "77aa"), "generator": tuned}
    counts = {"texts": documents + 9, "documents": documents}
    return {**DATA["settings"], "corpus": {**DATA["settings"]["corpus"], **counts}, "models": models}


def model(name, start):
    """What an audit records of a model."""
    return {
        "name": name,
        "revision": start,
        "weights": start + "0" * 56 + "f00d",
        "tokenizer": "5d" * 32,
        "dtype": "float32",
        "parameters": 134_515_008,
    }


GIVE_CONTROLS = say("cures.controls")
NO_CONTROLS = Check(**DATA["no_controls"], cure=GIVE_CONTROLS)
POWERFUL = Check(**DATA["powerful"])
POWER = Power(
    probability=Estimate(0.94, 0.90, 0.97),
    needed=112,
    planted=101,
    epochs=1,
    effect=Estimate(0.046, 0.037, 0.055),
    curve=((20, 0.22), (50, 0.47), (100, 0.76), (150, 0.88), (203, 0.94), (400, 0.998), (800, 1.0)),
    facts={"method": "full, one epoch at 5e-5", "loss_before": 3.12},
)
OWN = Placebo(**DATA["own"])
LEANS = (
    Lean("Hacker News", 1, "SmolLM2-135M", 0.012),
    Lean("Wikipedia", 1, "SmolLM2-135M", 0.021),
    Lean("Hacker News", 4, "SmolLM2-135M", 0.019),
    Lean("Wikipedia", 4, "SmolLM2-135M", MARGIN),
)
VARIANTS = (
    Answer("paper", 0.0007, "ten t-tests of the two differences, 1 − Π(1 − p)", 203, 602, None, "", None, {}),
    Answer(
        "original",
        3e-19,
        "t-test of the scores of true against generated suffixes, without calibration",
        203,
        602,
        estimate(0.21, 0.03),
        "nats a token",
        0.88,
        {"auc": 0.63},
    ),
)
GAPS = (
    Gap("bag of words", estimate(0.51, 0.04), 1204, "logistic regression on word counts"),
    Gap("gpt2", estimate(0.54, 0.04), 1204, "two layers, from scratch"),
)
QUALITY = (
    Quality("mean length in characters", 148.2, 146.9),
    Quality("share of repeated 4-grams", 0.004, 0.011),
    Quality("words shared with the true suffix", None, 0.21, "content words, Jaccard"),
    Quality("exact copies of the true suffix", None, 0.0033),
)
