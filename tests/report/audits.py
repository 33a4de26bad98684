"""Audits to save and to report on: made from a seed, with the numbers and words a real one would have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pretrace.types import Answer, Audit, Check, Estimate, Gap, Pair, Placebo, Power, Quality

MODEL, PLACEBO = "HuggingFaceTB/SmolLM2-135M", "HuggingFaceTB/SmolLM2-135M, checkpoint of step 240,000"

PREFIXES = (
    "The kettle had been on the stove since five, and by the time the children came down it had boiled itself",
    "It is a mistake to think that the harbour was built for the fishermen. The first stones were laid in",
    "My grandmother kept two ledgers: one for the butcher, and one, with a lock, for everything that",
    'def area(self) -> float:\n    """Square metres, without the <b>terrace</b>."""\n    return',
)
TRUE = (
    " dry. Nobody had the heart to say so; we drank milk instead, and my uncle told the story of the flood.",
    " 1794 by prisoners of war, who were paid in herring and, if the parish books are right, in gin.",
    " she could not forgive. The lock was brass. I have it on my desk, still shut, because the key went with her.",
    " self.width * self.depth - self.terrace.area()\n\n# {{ 7*7 }} & <script>alert(1)</script>",
)
GENERATED = (
    " over. They sat at the table and waited for their father, who had gone out to look for the dog again.",
    " 1851, when the railway company wanted a place to land the coal it could no longer bring over the hills.",
    " she had bought for the house. The second was the larger one, and she wrote in it every evening after tea.",
    " self.width * self.height\u202e\x07\n\n    def perimeter(self) -> float:",
)


def estimate(value: float, half: float) -> Estimate:
    return Estimate(value, value - half, value + half)


def of_mean(values: np.ndarray) -> Estimate:
    return estimate(float(values.mean()), float(1.96 * values.std(ddof=1) / np.sqrt(len(values))))


def consistent(documents: int = 203, *, seed: int = 1, mean: float = 0.041) -> Audit:
    """Synthetic comparison, own checkpoint as placebo, everything measured, all checks passed."""
    values = np.random.default_rng(seed).normal(mean, 0.11, documents)
    effect = of_mean(values)
    answer = Answer(
        procedure="pretrace",
        p=0.0002,
        statistic="mean over documents of (target − placebo mean log-probability of the true suffix given its "
        "prefix) − (the same of the generated suffix); one-sided sign-flip permutation test",
        documents=documents,
        pieces=3 * documents - 7,
        effect=effect,
        unit="nats a token",
        standardised=float(values.mean() / values.std(ddof=1)),
        facts={"permutations": 9_999, "effective_pieces": 2.4 * documents, "share_above_zero": 0.66},
    )
    return Audit(
        corpus="Harbour notes 2009–2021",
        model=MODEL,
        design="synthetic",
        outcome="consistent",
        statement="What HuggingFaceTB/SmolLM2-135M makes of Harbour notes 2009–2021 is consistent with training on "
        "these texts, or on copies of them.",
        level=0.05,
        answer=answer,
        checks=CHECKS,
        documents=tuple(f"notes/{number:04d}.md" for number in range(documents)),
        values=values,
        reasons=(
            "The deciding test rejects at the 5% level (p = 0.0002).",
            "All checks that were run have passed.",
            "Had the model been trained once on the texts, an audit of this size would have seen it with "
            "probability 0.94.",
        ),
        advice=(
            "Repeat the audit with another seed and another generator before anything rests on it.",
            "Keep the hashes at the end of this report with the texts, so that others can repeat the audit.",
        ),
        variants=VARIANTS,
        placebo=Placebo(
            PLACEBO,
            "own",
            0.993,
            "An earlier checkpoint of the same training run, from before the texts were put online: the best placebo "
            "there is.",
            {"revision": "8c4b…e1", "parameters": 134_515_008, "same_tokenizer": True},
        ),
        power=Power(
            probability=Estimate(0.94, 0.90, 0.97),
            needed=112,
            planted=documents,
            epochs=1,
            effect=estimate(0.046, 0.009),
            curve=((20, 0.22), (50, 0.47), (100, 0.76), (150, 0.88), (203, 0.94), (400, 0.998), (800, 1.0)),
            facts={"method": "LoRA, rank 32, one epoch at 2e-4", "audits": 200, "loss_before": 3.12},
        ),
        gaps=GAPS,
        quality=QUALITY,
        pairs=pairs(16),
        settings=settings(documents),
    )


def nothing() -> Audit:
    """No sign: the mean lies at zero, the checks passed, and the power was enough to say so."""
    audit = consistent(seed=2, mean=0.004)
    return replace(
        audit,
        outcome="nothing",
        statement="Nothing shown: what HuggingFaceTB/SmolLM2-135M makes of Harbour notes 2009–2021 does not differ "
        "from what it makes of texts like them.",
        answer=replace(audit.answer, p=0.32, effect=of_mean(audit.values)),
        reasons=(
            "The deciding test does not reject at the 5% level (p = 0.32).",
            "Had the model been trained once on the texts, an audit of this size would have seen it with "
            "probability 0.94: so a single pass over most of the texts is unlikely.",
        ),
        advice=("More documents would show weaker traces: about 450 to see half the effect.",),
        variants=(),
    )


def inconclusive() -> Audit:
    """A check failed, nothing was planted, the placebo is another family's and the texts are few."""
    audit = consistent(documents=38, seed=3, mean=0.044)
    gap = replace(
        CHECKS[4],
        status="failed",
        words="A classifier that never saw the model (gpt2) tells your texts from the generated ones with an AUC of "
        "0.74 [0.69, 0.79]; 0.5 is a coin, and above 0.70 nothing else is believed.",
        cure="Train the generator longer or on more of the texts, or take one that knows their language.",
    )
    placebo = replace(
        CHECKS[6],
        status="failed",
        words="google/gemma-3-270m is of another family than the target. On texts that neither was trained on the two "
        "agree to a correlation of 0.810. That it never saw the texts is your statement; no test can show it. Two "
        "families differ on any text, for reasons that have nothing to do with training on it.",
        cure="Name an earlier checkpoint of the target with --placebo or --placebo-revision, the base it was tuned "
        "from, or a sibling trained without these texts.",
    )
    power = Check(
        "power", "The audit could have seen it", "not run", "It was not measured.", "Run it with --power."
    )
    return replace(
        audit,
        outcome="inconclusive",
        statement="Inconclusive: this audit cannot say whether HuggingFaceTB/SmolLM2-135M was trained on Harbour notes "
        "2009–2021.",
        answer=replace(audit.answer, p=0.012),
        checks=(*CHECKS[:4], gap, CHECKS[5], placebo, CHECKS[7], power),
        reasons=(
            "The test gave p = 0.012, below the level of 0.05 that was set beforehand. The effect is 0.0468 nats per "
            "token [0.0061, 0.0876].",
            f"{gap.title}: no. {gap.words}",
            f"{placebo.title}: no. {placebo.words}",
        ),
        advice=(gap.cure, placebo.cure, CHECKS[7].cure, power.cure),
        placebo=replace(
            audit.placebo or Placebo("", "other", 0.0, ""),
            name="google/gemma-3-270m",
            grade="other",
            closeness=0.81,
            words="A model of another family: it differs from the target in much more than these texts.",
        ),
        power=None,
    )


def heldout() -> Audit:
    """Real held-out texts: two unpaired groups of documents."""
    audit = consistent(documents=120, seed=7, mean=-0.02)
    random = np.random.default_rng(8)
    values, others = random.normal(-0.02, 0.12, 120), random.normal(-0.09, 0.11, 74)
    difference = float(values.mean() - others.mean())
    return replace(
        audit,
        design="heldout",
        statement="The result is consistent with training on “Harbour notes 2009–2021”.",
        values=values,
        heldout_documents=tuple(f"unpublished/{number:03d}.md" for number in range(74)),
        heldout_values=others,
        answer=replace(
            audit.answer,
            p=0.0014,
            statistic="difference of the mean over documents of (target − placebo mean log-probability); "
            "one-sided two-sample permutation test",
            effect=estimate(difference, 0.034),
            standardised=0.61,
            pieces=402,
        ),
        pairs=(),
        quality=(),
    )


def without_placebo() -> Audit:
    """The target alone: nothing to subtract, so the calibrated classifiers decide."""
    audit = inconclusive()
    answer = replace(
        audit.answer,
        procedure="calibrated",
        effect=None,
        standardised=None,
        unit="",
        statistic="what the combined classifier adds to the text-only one, one value a document",
    )
    return replace(audit, placebo=None, answer=answer, variants=())


def bare() -> Audit:
    """The least an audit can hold."""
    return Audit(
        corpus="c",
        model="m",
        design="synthetic",
        outcome="inconclusive",
        statement="The audit is inconclusive.",
        level=0.05,
        answer=Answer("pretrace", 1.0, "mean", 1, 1),
        checks=(),
        documents=("d",),
        values=np.zeros(1),
    )


def hostile() -> Audit:
    """Names and texts that would break a page, in every place that holds a text."""
    evil = '<script>alert("x")</script>\u202e\x00\ud800{{ 7*7 }}'
    audit = consistent(documents=5)
    check = Check(evil, evil, "failed", evil, evil, {evil: evil})
    return replace(
        audit,
        corpus=evil,
        model=evil,
        statement=evil,
        answer=replace(audit.answer, statistic=evil, unit=evil, procedure=evil, facts={evil: [evil]}),
        checks=(check,),
        documents=(evil, *audit.documents[1:]),
        reasons=(evil,),
        advice=(evil,),
        variants=(replace(VARIANTS[0], procedure=evil, statistic=evil, unit=evil),),
        placebo=Placebo(evil, "other", 0.5, evil, {evil: {evil: None}}),
        gaps=(Gap(evil, estimate(0.6, 0.1), 10, evil),),
        quality=(Quality(evil, 1.0, None, evil),),
        pairs=(Pair(evil, evil, evil, evil, evil),),
        settings={evil: evil, "corpus": {evil: evil, "notes": [evil]}, "timings": {evil: 3.0}},
    )


def pairs(number: int) -> tuple[Pair, ...]:
    """Texts to compare, with controls and markup among them."""
    texts = list(zip(PREFIXES, TRUE, GENERATED, strict=True))
    return tuple(
        Pair(f"notes/{i // 2:04d}.md#{i % 2}", f"notes/{i // 2:04d}.md", *texts[i % len(texts)])
        for i in range(number)
    )


def settings(documents: int) -> dict[str, Any]:
    """What an audit records of itself."""
    return {
        "corpus": {
            "name": "Harbour notes 2009–2021",
            "source": "/home/ines/notes",
            "texts": documents + 9,
            "documents": documents,
            "sha256": "9f2d3c1b7e5a48d0c6b1f0e2d4a3958677665544332211ffeeddccbbaa998877",
            "notes": ["9 texts are shorter than 64 tokens and were put aside."],
        },
        "models": {
            "target": model(MODEL, "3b1e"),
            "placebo": model(PLACEBO, "77aa"),
            "generator": model(MODEL, "3b1e") | {"tuning": {"method": "lora", "rank": 32, "epochs": 3}},
        },
        "sampling": {"temperature": 1.0, "top_p": 1.0, "repetition_penalty": 1.0},
        "snippets": {"tokens": 64, "prefix": 32, "most_a_document": 4, "inference": 602, "training": 611},
        "earlier": [
            {"date": "2026-11-02", "procedure": "pretrace", "seed": 0, "p": 0.031, "outcome": "inconclusive"}
        ],
        "software": {"pretrace": "0.1.0", "torch": "2.13.0", "transformers": "5.1.0", "numpy": "2.3.4"},
        "timings": {"tune": 412.4, "generate": 96.1, "read": 141.7, "power": 803.2, "test": 1.4},
        "seed": 0,
        "command": "pretrace audit notes --model HuggingFaceTB/SmolLM2-135M --placebo …@step-240000 --power --out A",
    }


def model(name: str, start: str) -> dict[str, Any]:
    """What an audit records of a model."""
    return {
        "name": name,
        "weights": start + "0" * 56 + "f00d",
        "tokenizer": "5d" * 32,
        "dtype": "float32",
        "parameters": 134_515_008,
    }


CHECKS = (
    Check("documents", "At least 20 documents", "passed", "The test counts documents, and there are 203."),
    Check(
        "halves",
        "One half of your texts against the other shows nothing",
        "passed",
        "The suspect documents were divided at random and one half was put in the place of the held-out texts. There "
        "is nothing to find, and the test gave p = 0.55.",
        "",
        {"p": 0.5512345},
    ),
    Check(
        "reverse",
        "No difference in the opposite direction",
        "passed",
        "Training on the texts can only make the target know them better than expected. That it knows them worse was "
        "tested as well: p = 1.",
        "",
        {"p": 1.0},
    ),
    Check(
        "shuffled",
        "Without the truth about which text is which, nothing is found",
        "passed",
        "In 1,000 audits of the same numbers, which text is true and which is not was decided by lot. 51 of them "
        "rejected; up to 66 may, by chance.",
        "",
        {"repeats": 1000, "rejected": 51, "most": 66},
    ),
    Check(
        "gap",
        "The two sets of texts are alike as texts",
        "passed",
        "A classifier that never saw the model (gpt2) tells your texts from the generated ones with an AUC of 0.54 "
        "[0.50, 0.58]; 0.5 is a coin, and above 0.70 nothing else is believed.",
        "",
        {"bag of words": [0.51, 0.47, 0.55], "gpt2": [0.54, 0.5, 0.58]},
    ),
    Check(
        "copies",
        "The generated texts are not copies",
        "passed",
        "0% of the generated continuations are the true ones, word for word.",
        "",
        {"identical": 0.0033},
    ),
    Check(
        "placebo",
        "The target is held against a model that never saw the texts",
        "passed",
        "The placebo is the target in an earlier state: the best placebo there is. On texts that neither was trained "
        "on the two agree to a correlation of 0.993. That it never saw the texts is your statement; no test can show "
        "it.",
        "",
        {"grade": "own", "closeness": 0.993},
    ),
    Check(
        "stand-in",
        "A model that is not accused shows nothing",
        "not run",
        "There is no other model here that could take the target's place.",
        "Name one with --placebo.",
    ),
    Check(
        "power",
        "The audit could have seen it",
        "passed",
        "A copy of the target was trained on 203 of your documents, once. Had the target been trained like that, this "
        "audit would have seen it with probability 0.94.",
        "",
        {"probability": 0.94, "needed": 112},
    ),
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
