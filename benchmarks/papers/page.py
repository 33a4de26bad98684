"""docs/results.md, from the results on file: every figure on it stands in a file that the page names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.experiments import RESULTS
from benchmarks.papers import page_audits
from benchmarks.papers import page_tables as t
from benchmarks.papers.figures import tables
from pretrace.results.atomic import atomic_text

PAGE = Path(__file__).resolve().parents[2] / "docs" / "results.md"
SHOWN = "../benchmarks/results"
Found = Mapping[str, Any]

HEAD = """# Results

*Written by `python -m benchmarks.papers --page` from the files in `benchmarks/results`; do not edit. Each section
names the file
that holds its figures, with the machine, the commit and all settings.*

Everything here was measured on SmolLM2-135M, or on models of 3 million parameters trained for the purpose, on two
cores without
a graphics processor. The papers used models of 70 million to 20 billion parameters. So figures beside the papers' say
whether a method behaves alike on a small model; they are no replication of the papers, and none is claimed.

Three things to keep in mind while reading:

- **The blind row decides what a table can show.** A bag of words never sees the model. Where it tells members from
  non-members, so can a detector that knows nothing of membership.
- **Labels are certain only where we planted them.** SmolLM2 was published after the articles of arXivTection and
ArxivMIA, and
  may have read any of them. There, an AUC of 0.5 is what an honest detector should show if it read all or none.
- **Brackets are 95% intervals** from resampling documents, and a table that was run on fewer texts says so.
"""


def write_page(folder: Path, path: Path = PAGE) -> Path:
    """Write the page from the results in the folder of tables and beside it; the path it was written to."""
    parts = [HEAD, *_sections(folder)]
    atomic_text(path, "\n".join(part.rstrip("\n") + "\n" for part in parts))
    return path


def _sections(folder: Path) -> Iterator[str]:
    planted = _read("planted_domains")
    if planted:
        yield _planted(planted)
    for name, section in (("arxivtection_fsd", _arxivtection), ("arxiv_mia", _arxiv_mia)):
        found = _read(name)
        if found:
            yield section(found)
    files = sorted(folder.glob("*.json"))
    if files:
        yield "## Tables and figures of the papers, run on what is here\n"
        yield _RUNS
        order = {name: place for place, name in enumerate(tables())}
        found_files = [(path, json.loads(path.read_text(encoding="utf-8"))) for path in files]
        found_files = [one for one in found_files if "compared" in one[1]]  # else it is still being measured
        found_files.sort(key=lambda one: (order.get(one[1]["settings"]["table"], len(order)), one[0].name))
        for path, found in found_files:
            yield _table(path, found)
    for name, section in (
        ("audit_errors", page_audits.audits),
        ("audit_ablations", page_audits.ablations),
        ("flagging", page_audits.flagging),
    ):
        found = _read(name)
        if found and found["rows"] and "commit" in found:
            yield section(found)
    done = {found["settings"]["table"] for _, found in found_files} if files else set()
    if _read("audit_ablations"):
        done |= {name for name, one in tables().items() if "audit_ablations" in one.by and one.here == "yes"}
    yield _missing(done)


_RUNS = """Run by `python -m benchmarks.papers TABLE`. Where a table's own corpora are not to be had here, its
settings were run on another
corpus, which is named; then the paper's figures are shown but no difference is given, since it would compare two
corpora. Base
scores are judged on the same texts as the tuned ones.
"""


def _planted(found: Found) -> str:
    settings = found["settings"]
    return f"""## The papers' methods side by side, where the labels are exact

{_file("planted_domains.json", found)}
Of each domain of the Pile {settings["texts"]} documents were divided at random and SmolLM2 was trained further on
one half at a learning rate of {settings["learning_rate"]:g}: members and non-members differ in nothing but
exposure. Each cell has the AUC on the planted model / on the model before planting, the placebo. An interval is about
{t.half_width(found):.2f} to either side (in the file). After one epoch:

{t.planted(found, epochs=1)}

After four epochs:

{t.planted(found, epochs=4)}

{t.survivors(found)} The table with the survivors is [planted_domains.md]({SHOWN}/planted_domains.md). Post-hoc
dataset inference answers for a collection and not for a text: its part of this comparison are the error rates below.
"""


def _arxivtection(found: Found) -> str:
    return f"""## arXivTection, whole: FSD

{_file("arxivtection_fsd.json", found)}
*Passages* draws the tuning texts as the paper does, so that passages of one article stand on both sides; *articles*
draws whole articles. The paper's column is LLaMA-7B (FSD, table 1).

{t.beside(found, by="protocol", model="LLaMA-7B")}

![arXivTection]({SHOWN}/arxivtection_fsd.png)

{t.against_blind(found)}
"""


_BEFORE_NOTEBOOK = "f7c9d1b"
_NOTEBOOK = """
The row of `pool='notebook'` is out of date: it was measured when this pooling divided by the number of positions. It
divides by the number of texts now, as the authors' code does, and was not measured again.
"""


def _arxiv_mia(found: Found) -> str:
    return f"""## ArxivMIA, whole: NA-PDD, the probe, and one-pass scores

{_file("arxiv_mia.json", found)}
Fitted on {found["settings"]["reference"]} texts set aside, drawn anew for each seed. The paper's column is
TinyLLaMA-1.1B (NA-PDD, table 2).

{t.beside(found, by=None, model="TinyLLaMA-1.1B")}
{_NOTEBOOK if found["commit"].startswith(_BEFORE_NOTEBOOK) else ""}
![ArxivMIA]({SHOWN}/arxiv_mia.png)

{t.against_blind(found)}
"""


def _table(path: Path, found: Found) -> str:
    settings = found["settings"]
    relative = f"papers/{path.name}"
    picture = path.with_suffix(".png")
    on, table = f", on {settings['on']}" if settings["on"] else "", tables().get(settings["table"])
    lines = [
        f"### {settings['table']}{on}: {found['what']}",
        "",
        _file(relative, found) + " " + t.how(found),
        "",
    ]
    lines += [t.table(found), ""]
    if table is not None and table.notes:
        lines += [f"On the paper's table: {table.notes}", ""]
    if picture.exists():
        lines += [f"![{settings['table']}]({SHOWN}/papers/{picture.name})", ""]
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


def _file(name: str, found: Found) -> str:
    commits: Sequence[str] = sorted({run["commit"] for run in found.get("runs", ()) if "commit" in run})
    return f"File: [{name}]({SHOWN}/{name}), commit {', '.join(commits) or found['commit']}."
