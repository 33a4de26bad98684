"""docs/results.md and benchmarks/results/papers.md, from the results on file: each figure stands in a file named there.

The first has what a reader needs; the second has the papers' tables, one after the other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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

These tables of the papers were run with SmolLM2-135M on two cores without a graphics processor. The papers used models
of 70 million to 20 billion parameters. The figures say whether a method behaves alike on a small model. They are no
replication of the papers.

- **The blind row decides what a table can show.** A bag of words never sees the model. If it tells members from
  non-members, a detector can do so without any training on them.
- **The labels of arXivTection and ArxivMIA are not certain.** SmolLM2 was published after their articles, and may have
  read any of them. There an honest detector may show an AUC of 0.5. Where [we planted the
  members](detectors.md#do-they-pass-their-controls) labels are exact.
- **Tokens of another version.** When these were made, `smollm2` read digits after two or more blanks with other tokens
  than it was trained with: in 20% of the texts of Hacker News, 15% of Wikipedia, 12% of GitHub, 9% of Stack Exchange,
  0.7% of arXivTection, none of ArxivMIA; 0.4% of the tokens at most. Placebos were read in the same way.
- **Brackets are 95% intervals** from resampling documents.

Other figures are on the pages of their subjects. Finished studies have [a row a figure](../evidence/README.md).
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
    _write(path, [HEAD, _runs(found)])
    return path


def _write(path: Path, parts: Sequence[str]) -> None:
    atomic_text(path, "\n".join(part.rstrip("\n") + "\n" for part in parts))


def _runs(tables_run: Sequence[tuple[Path, Found]]) -> str:
    return f"""## Tables and figures of the papers

[Each table whole, and what was not run, with the reason]({SHOWN}/papers.md). Here the best score of each table with a
published figure, that figure, and the bag of words on the same texts. On arXivTection and ArxivMIA the bag of words is
ahead of every score, so these tables show no membership.

{t.best(tables_run)}

\\* Published for other texts, which are not available here.
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


def _file(name: str, found: Found, shown: str = f"{SHOWN}/") -> str:
    commits: Sequence[str] = sorted({run["commit"] for run in found.get("runs", ()) if "commit" in run})
    return f"File: [{name}]({shown}{name}), commit {', '.join(commits) or found['commit']}."
