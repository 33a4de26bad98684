"""Runs to report on: made from a seed, with the numbers a real run would have."""

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from made import run_of

from pretrace.types import Control, Curve, Estimate, Evaluation, Heat, Measured, Skipped

NAMES = (
    "loss", "zlib", "min_k(k=0.1)", "min_k(k=0.2)", "min_k_plus_plus(k=0.2)", "lowercase",
    "dc_pdd(a=0.01, variant='full')", "fsd(min_k_plus_plus(k=0.2))",
)  # fmt: skip
PROSE = (
    "The court held that the burden of proof lies with the party that relies on the fact.\n"
    "In the spring of 1893 a small steamer named Halcyon left Trieste with forty crates of quicksilver, "
    "two sealed letters and a passenger whose name appears on no list.\n\tNothing more was heard of her "
    "until a fisherman from Vis drew up a brass plate, engraved, much corroded, and signed in a hand that "
    "nobody could read. "
)
SETTINGS = {
    "command": "evaluate", "seed": 0,
    "models": {
        "target": {"name": "EleutherAI/pythia-410m", "weights": f"sha256:{'3f' * 32}", "max_tokens": 2048},
        "reference": {"name": "EleutherAI/pythia-70m", "revision": None},
    },
    "texts": {"source": "texts.jsonl", "notes": ["2 empty lines left out", "no bytes replaced"]},
    "nested": [{"score": "loss", "value": -2.25}, {"score": "zlib", "value": -0.0125}],
}  # fmt: skip


def estimate(value, spread):
    return Estimate(value, max(0.0, value - spread), min(1.0, value + spread))


def measured(name, kind, members, others):
    """A row with a true ROC curve and invented intervals."""
    pooled = np.concatenate([members, others])
    cuts = np.quantile(pooled, np.linspace(1, 0, 120))
    fpr = (0.0, *(float((others >= c).mean()) for c in cuts), 1.0)
    tpr = (0.0, *(float((members >= c).mean()) for c in cuts), 1.0)
    auc = float((members[:, None] > others[None, :]).mean())
    low = max((t for f, t in zip(fpr, tpr, strict=True) if f <= 0.05), default=0.0)
    return Measured(
        name=name, kind=kind, auc=estimate(auc, 0.042), tpr=estimate(low, 0.06),
        accuracy=estimate(0.5 + (auc - 0.5) * 0.8, 0.045), threshold=float(np.median(pooled)),
        curve=Curve(fpr, tpr),
    )  # fmt: skip


def heat(id, surprise, seed, *, note=""):
    """Pieces as a tokenizer cuts them: the space leads, long words fall apart, the line's end stands alone."""
    pieces = re.findall(r" ?[^ \n]{1,6}|\n", PROSE)
    logp = -np.random.default_rng(seed).exponential(surprise, len(pieces) - 1)
    return Heat(id, tuple(pieces), (None, *logp.tolist()), note)


def labelled(names=NAMES, texts=200, *, seed=0):
    rng = np.random.default_rng(seed)
    gain = rng.uniform(0.0, 1.2, len(names))
    member = np.arange(texts) % 2 == 0
    matrix = rng.normal(size=(texts, len(names))) * 0.5 + member[:, None] * gain * 0.5 - 2.5
    rows = [measured(n, "score", matrix[member, j], matrix[~member, j]) for j, n in enumerate(names)]
    blind = rng.normal(size=texts) + member * 0.3
    rows.append(measured("bag of words", "blind", blind[member], blind[~member]))
    ids = tuple(f"wiki/{i:05d}" for i in range(texts))
    findings = ("The best score has an AUC of 0.77.", "min_k(k=0.1) is at chance on these texts.")
    counted = int(member.sum()), int((~member).sum()), texts * 3 // 4, 1000, texts // 5
    return run_of(
        matrix,
        member,
        corpus="wikimia_64",
        ids=ids,
        groups=tuple(f"article-{i * 3 // 4}" for i in range(texts)),
        tokens=rng.integers(40, 90, texts).astype(np.int32),
        cut=np.where(np.arange(texts) % 50 == 7, 120, 0).astype(np.int32),
        scores=tuple(names),
        skipped=tuple(Skipped(f"wiki/{n}", "no token to predict", n) for n in range(2)),
        heat=(heat(ids[0], 1.1, 0, note="rank 1 of 200 by score"), heat(ids[3], 3.6, 3)),
        evaluation=Evaluation(tuple(rows), *counted, findings),
        settings=SETTINGS,
    )


def unlabelled(texts=40, names=NAMES[:3], *, seed=3):
    rng = np.random.default_rng(seed)
    ids = tuple(f"chapter-{i:02d}.txt" for i in range(texts))
    tokens = rng.integers(300, 900, texts).astype(np.int32)
    matrix = rng.gamma(3.0, 1.0, size=(texts, len(names))) * -0.8
    shown = tuple(heat(name, 1.8, 0, note="rank 1 of 200 by score") for name in ids[:1])
    settings = {"models": {"target": {"name": "HuggingFaceTB/SmolLM2-135M"}}, "seed": 0}
    own = {"corpus": "my_novel", "ids": ids, "groups": ids, "tokens": tokens, "scores": tuple(names)}
    return run_of(matrix, (None,) * texts, heat=shown, settings=settings, **own)


def facts(layers=6):
    """What fitted scores tell: NA-PDD and a probe."""
    grid, names = itertools.product((0.5, 1.0, 1.5), (1.2, 1.5), (2, 5)), ("threshold", "alpha", "k")
    of_layers = [{"layer": i, "members": 90 + 7 * i, "nonmembers": 80 - i} for i in range(layers)]
    sides = {"members": 101, "nonmembers": 99}
    return {
        "na_pdd": {
            "layers": [
                row | {"difference": 10 + 8 * i, "chosen": i >= layers - 2} for i, row in enumerate(of_layers)
            ],
            "settings": {"threshold": 1.0, "alpha": 1.5, "k": 2, "pool": "any", "gated": False},
            "reference": sides,
            "sensitivity": [
                dict(zip(names, one, strict=True)) | {"auc": 0.5 + one[0] / 10 + one[2] / 50} for one in grid
            ],
        },
        "probe": {
            "layers": [{"layer": i, "auc": 0.5 + 0.04 * i} for i in range(layers + 1)],
            "chosen": layers,
            "reference": sides,
        },
    }


ADAPTER = {
    "method": {"name": "lora", "expression": "lora(r=16, alpha=32)", "r": 16, "alpha": 32}, "corpus": "arxiv",
    "texts": 1200, "nonmembers": 1200, "losses": [3.5, 3.1, 2.75], "hashes": ["ab" * 16] * 3,
}  # fmt: skip


def controlled(names=("loss", "na_pdd", "probe"), texts=40):
    """A labelled run whose scores stand beside a placebo, two of them beside shuffled labels as well."""
    run = labelled(names, texts)
    rng = np.random.default_rng(5)
    member = np.arange(texts) % 2 == 0
    rows, controls = list(run.evaluation.rows), []
    for j, name in enumerate(names):
        values = rng.normal(size=(texts, 1)) + 0.2 * member[:, None]
        row = measured(name, "placebo", values[member, 0], values[~member, 0])
        lead = run.evaluation.rows[j].auc.value - row.auc.value
        rows.append(replace(row, lead=Estimate(lead, lead - 0.05, lead + 0.05)))
        controls.append(Control(name, "placebo", values))
    for name in names[1:]:
        values = rng.normal(size=(texts, 20))
        row = measured(name, "shuffled", values[member, 0], values[~member, 0])
        rows.append(replace(row, auc=Estimate(0.5, 0.38, 0.62)))
        controls.append(Control(name, "shuffled", values))
    models = {"target": {"name": "planted"}, "placebo": {"name": "EleutherAI/pythia-160m"}}
    return replace(
        run,
        evaluation=replace(run.evaluation, rows=tuple(rows)),
        controls=tuple(controls),
        settings={"models": models, "adapter": ADAPTER, "fitted": facts()},
    )


HOSTILE = (
    "<script>alert(1)</script>", "</style><script>alert(1)</script>", "javascript:alert(1)",
    '"><img src=x onerror=alert(1)>',
    "<svg onload=alert(1)><use href='https://evil.example/x.svg#a'/></svg>",
    "</title></head><body onload=alert(1)>", "{{ 7*7 }}{% raw %}", "$x^2$ \\frac{1}{2} $",
    "a\x00b\x1b[31mred", "abc\u202eevil\u2066\u200b\ufeff", "\ud800 lone", "\ufffe\uffff", "_hidden",
    "&lt;b&gt; &amp; ]]> <!-- -->", "x" * 3000, "", "🦜 模型 نموذج",
)  # fmt: skip


def hostile():
    run = labelled(HOSTILE, 40)
    n = len(run.ids)
    ids = tuple(f"{HOSTILE[i % len(HOSTILE)]}{i}" for i in range(n))
    evaluation = run.evaluation
    rows = (*evaluation.rows[:-1], replace(evaluation.rows[-1], name="<script>blind</script>"))
    pieces = (*HOSTILE, "\n", "\r\n", "\t", "")
    logp = tuple(-0.5 * i for i in range(len(pieces) - 2))
    return replace(
        run,
        **{"corpus": HOSTILE[1], "ids": ids, "groups": ids},
        skipped=tuple(Skipped(text, text, 0) for text in HOSTILE),
        heat=(Heat(ids[0], pieces, (None, *logp, -math.inf), HOSTILE[3]), Heat(HOSTILE[9], ("a",), (None,))),
        evaluation=replace(evaluation, rows=rows, findings=HOSTILE),
        settings={
            "model": {"name": HOSTILE[0]},
            **{f"{text}k": text for text in HOSTILE},
            "deep": [[HOSTILE[2]]],
        },
    )


@pytest.fixture(name="hostile")
def _hostile():
    return hostile()


def _given(builder):
    """A fixture by the name of a builder, which it gives."""
    return pytest.fixture(name=builder.__name__)(lambda: builder)


_labelled, _unlabelled, _controlled = map(_given, (labelled, unlabelled, controlled))
