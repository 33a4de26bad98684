"""The tables of audits and flagging in docs/results.md, and of ablations in benchmarks/results/papers.md."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.audits.ablation_settings import SETTINGS
from benchmarks.audits.documents import KEPT_APART
from benchmarks.audits.error_plots import Rate, counts, lanes
from benchmarks.papers.page_tables import Found, Row, estimate, grid


def audits(found: Found) -> str:
    """Error rates of audits: how often each design and procedure rejects true nulls and finds members."""
    rows = [row for row in found["rows"] if row["domain"] != KEPT_APART]
    made = []
    for name, test in lanes().items():
        some = [row for row in rows if test(row)]
        rates = [_rate([row for row in some if counts(row, kind)]) for kind in ("null", "member")]
        if any(rates):
            made.append([name, *rates])
    return f"""## Dataset inference: how often an audit errs

File: [audit_errors.json](../benchmarks/results/audit_errors.json). Planted models of 3.3 million parameters, eight
domains, level 0.05. A *false alarm* is a rejection for texts the model was not trained on, at any exposure; members
were read once. In brackets are Clopper-Pearson intervals, which take audits as independent; those of one domain share
a generator and, in part, documents ([how](../benchmarks/README.md), [what follows](audit.md#how-often-it-errs)).

{grid(["design or procedure", "false alarms", "members found"], made)}

![error rates](../benchmarks/results/audit_errors.png)

![by domain](../benchmarks/results/audit_errors_domains.png)
"""


def _rate(rows: Sequence[Row]) -> str:
    return str(Rate.of(rows)) if sum(row["audits"] for row in rows) else ""


def ablations(found: Found) -> str:
    """What each part of post-hoc dataset inference is for: the gap between texts, and what two procedures say."""
    texts = [row for row in found["rows"] if row["part"] == "texts"]
    classifiers = list(dict.fromkeys(row["classifier"] for row in texts if row["classifier"] != "length"))
    gaps = {(row["setting"], row["classifier"]): row["auc"] for row in texts}
    said = {(row["setting"], row["procedure"], row["kind"]): row for row in found.get("summary", ())}
    paper = {
        (row["setting"], row.get("classifier") or row.get("kind")): row.get("auc", row.get("p"))
        for row in found.get("published", ())
    }
    procedures = [name for name in ("paper", "pretrace") if any(key[1] == name for key in said)]
    heads = ["setting", *(f"{name} AUC (paper)" for name in classifiers)]
    heads += [f"`{name}`: {kind} rejected" for name in procedures for kind in ("null", "member")]
    heads += ["the paper's p: null, member"]
    made = []
    for setting in dict.fromkeys(row["setting"] for row in found.get("summary", ())):
        cells = [SETTINGS[setting].title if setting in SETTINGS else setting]
        for name in classifiers:
            published = paper.get((setting, name))
            ours = estimate(gaps.get((setting, name)))
            cells.append(f"{ours} ({published:.2f})" if published is not None else ours)
        for name in procedures:
            for kind in ("null", "member"):
                row = said.get((setting, name, kind))
                cells.append(f"{row['rejections']} of {row['audits']}" if row else "")
        ps = [paper.get((setting, kind)) for kind in ("null", "member")]
        cells.append(", ".join(_p(p) for p in ps) if None not in ps else "")
        made.append(cells)
    return f"""## Ablations of post-hoc dataset inference

File: [audit_ablations.json](audit_ablations.json). Tables 2 and 5 of the paper, on planted
models of 3 million parameters, {found["settings"]["pairs"]} pairs an audit; what is instructed is SmolLM2-135M, which
follows no instruction well, where the paper has GPT-4-Turbo. Few audits: they show direction and no rates.

{grid(heads, made)}

![ablations](audit_ablations.png)
"""


def _p(value: float | None) -> str:
    """A p-value as the paper prints it; it writes <0.001 for all that is stored as 0.001 there."""
    return "" if value is None else "<0.001" if value <= 0.001 else f"{value:g}"


MANY, SHOWN_RATES = 0.5, (0.05, 0.2)
"""Of what was measured: the share of members among the texts, and the rates."""


def _mean(rows: Sequence[Row], name: str) -> float:
    """Over domains; of a figure with its standard error the figure."""
    values = [row[name][0] if isinstance(row[name], list) else row[name] for row in rows]
    return sum(values) / len(values)


def _flagged(rows: Sequence[Row]) -> str:
    return f"{_mean(rows, 'power'):.0%}, false {_mean(rows, 'fdr'):.1%}"


def flagging(found: Found) -> str:
    """Whether flagging keeps its rate, and what it finds."""
    rows = [row for row in found["rows"] if row.get("part") == "flags"]
    settings = found["settings"]
    groups: dict[tuple[str, int], dict[float, list[Row]]] = {}
    for row in rows:
        if row["share"] == MANY and row["rate"] in SHOWN_RATES:
            groups.setdefault((row["score"], row["epochs"]), {}).setdefault(row["rate"], []).append(row)
    made = [
        [f"`{score}`", str(epochs), *(_flagged(some[rate]) for rate in SHOWN_RATES)]
        for (score, epochs), some in sorted(groups.items())
    ]
    nulls = {
        rate: max(r["any"] for r in rows if r["share"] == 0 and r["rate"] == rate) for rate in SHOWN_RATES
    }
    innocent = " and ".join(f"{share:.1%} of the draws at {rate:.0%}" for rate, share in nulls.items())
    sets = [row for row in found["rows"] if row.get("part") == "sets"]
    alike = [row for row in sets if not row["foreign"]]
    refused = sum(row["refused"]["either"] for row in alike)
    draws = sum(row["draws"] for row in alike)
    return f"""## Flagging single texts

File: [flagging.json](../benchmarks/results/flagging.json). The planted models above; {settings["texts"]} texts, half
of them members, held against {settings["known"]} known non-members, drawn anew {settings["draws"]} times, means over
the domains. Each cell has the members found, and the mean share of flagged texts that are no members, which must stay
below the rate.

{grid(["score", "epochs", *(f"at a rate of {rate:.0%}" for rate in SHOWN_RATES)], made, left=1)}

With no member among the texts anything was flagged in at most {innocent}.
Of sets that chance divided, {refused} of {draws} were refused by the controls that look at texts alone.

![flagging](../benchmarks/results/flagging.png)
"""
