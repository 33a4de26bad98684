"""docs/results.md and benchmarks/results/papers.md, from the results on file: each figure stands in a file named there.

The first has what a reader needs; the second has the papers' tables, one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.experiments import RESULTS
from benchmarks.papers import page_tables as t
from benchmarks.papers.figures import tables
from pretrace.results.atomic import atomic_text

PAGE = Path(__file__).resolve().parents[2] / "docs" / "results.md"
PAPERS = RESULTS / "papers.md"
SHOWN = "../benchmarks/results"
Found = Mapping[str, Any]

HEAD = """# Results

*Written by `python -m benchmarks.papers --page` from the files in `benchmarks/results`; do not edit.*

All of this was measured on SmolLM2-135M, or on models of 3 million parameters trained for the purpose, on two cores
without a graphics processor. The papers used models of 70 million to 20 billion parameters. The figures say whether a
method behaves alike on a small model. They are no replication of the papers.

- **The blind row decides what a table can show.** A bag of words never sees the model. Where it tells members from
  non-members, so can a detector that knows nothing of membership.
- **Labels are certain only where we planted them.** SmolLM2 was published after the articles of arXivTection and
  ArxivMIA, and may have read any of them. There an honest detector may show an AUC of 0.5.
- **Tokens of another version.** When these were made, `smollm2` read digits behind two or more blanks with other tokens
  than it was trained with: in 20% of the texts of Hacker News, 15% of Wikipedia, 12% of GitHub, 9% of Stack Exchange,
  0.7% of arXivTection, none of ArxivMIA; 0.4% of the tokens at most. Placebos were read alike.
- **Brackets are 95% intervals** from resampling documents.

Other figures stand with what they are about: [which method finds most](methods.md), [audits by their
defaults](audit.md#how-often-it-errs), [innocents of each test](audits.md#innocents-of-each-kind),
[flagging](flagging.md#what-was-measured), [scans](scan.md#measured),
[servers](servers.md#what-a-server-could-do-unseen), [speed and size](scaling.md#what-to-type-and-what-it-costs).
Studies that are done have [a row a figure](../evidence/README.md).
"""


PAPERS_HEAD = """# Tables and figures of the papers, run on what is here

*Written by `python -m benchmarks.papers --page` from the files in `benchmarks/results/papers`; do not edit. Each file
has the machine, the commit and all settings. [Results](../../docs/results.md) says how to read them.*

Run by `python -m benchmarks.papers TABLE`. Where a table's own corpora are not to be had here, its settings were run
on another corpus, which is named. Then the paper's figures are shown without a difference, since it would compare two
corpora. Base scores are judged on the same texts as the tuned ones.
"""


def write_page(folder: Path, path: Path = PAGE, papers: Path = PAPERS) -> Path:
    """Write both pages from the results in the folder of tables and beside it; the path of the first."""
    files = sorted(folder.glob("*.json"))
    found = [(one, json.loads(one.read_text(encoding="utf-8"))) for one in files]
    found = [one for one in found if "compared" in one[1]]  # else it is still being measured
    order = {name: place for place, name in enumerate(tables())}
    found.sort(key=lambda one: (order.get(one[1]["settings"]["table"], len(order)), one[0].name))
    done = {one["settings"]["table"] for _, one in found}
    done |= {name for name, one in tables().items() if one.by and one.here == "yes"}
    _write(papers, [PAPERS_HEAD, *(_table(*one) for one in found), _missing(done)])
    _write(path, [HEAD, *_sections(found)])
    return path


def _write(path: Path, parts: Sequence[str]) -> None:
    atomic_text(path, "\n".join(part.rstrip("\n") + "\n" for part in parts))


def _sections(tables_run: Sequence[tuple[Path, Found]]) -> Iterator[str]:
    planted = _read("planted_domains")
    if planted:
        yield _planted(planted)
    if tables_run:
        yield _runs(tables_run)


def _runs(tables_run: Sequence[tuple[Path, Found]]) -> str:
    return f"""## Tables and figures of the papers

[Each table whole, and what was not run, with the reason]({SHOWN}/papers.md). Here the best score of
each, beside the published figure of the same row and the bag of words on the same texts. On arXivTection and
ArxivMIA the bag of words is ahead of every score, so these tables show no membership.

{t.best(tables_run)}

\\* Published for other texts, which are not to be had here.
"""


def _planted(found: Found) -> str:
    settings = found["settings"]
    return f"""## The papers' methods side by side, where the labels are exact

{_file("planted_domains.json", found)} Of each domain of the Pile {settings["texts"]} documents were divided at random
and SmolLM2 was trained further on one half, for one epoch and for four, at a learning rate of
{settings["learning_rate"]:g}: members and non-members differ in nothing but exposure. The model before that is the
placebo. {t.survivors(found)}

[A row a detector](detectors.md#do-they-pass-their-controls), [every cell]({SHOWN}/planted_domains.md).
"""


def _table(path: Path, found: Found) -> str:
    settings = found["settings"]
    relative = f"papers/{path.name}"
    on, table = f", on {settings['on']}" if settings["on"] else "", tables().get(settings["table"])
    lines = [
        f"## {settings['table']}{on}: {found['what']}",
        "",
        _file(relative, found, shown="") + " " + t.how(found),
        "",
    ]
    lines += [t.table(found), ""]
    if table is not None and table.notes:
        lines += [f"On the paper's table: {table.notes}", ""]
    return "\n".join(lines)


def _missing(done: set[str]) -> str:
    rows = [table for name, table in tables().items() if name not in done and table.kind != "other"]
    lines = ["## What was not run, and why", ""]
    lines += ["| table | what it is | why not here |", "| --- | --- | --- |"]
    lines += [f"| {one.name} | {one.what} | {_why(one.here)} |" for one in rows]
    return "\n".join(lines) + "\n"


def _why(here: str) -> str:
    return here.partition(":")[2].strip() or "runs here; not run yet"


def _read(name: str) -> Found | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _file(name: str, found: Found, shown: str = f"{SHOWN}/") -> str:
    commits: Sequence[str] = sorted({run["commit"] for run in found.get("runs", ()) if "commit" in run})
    return f"File: [{name}]({shown}{name}), commit {', '.join(commits) or found['commit']}."
