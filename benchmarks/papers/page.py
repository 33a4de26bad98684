"""evidence/papers.md, from the results on file: the best score of each table, then the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import RESULTS, read_results
from benchmarks.papers import page_tables as t
from benchmarks.papers.figures import tables
from pretrace.results.atomic import atomic_text

PAPERS = RESULTS / "papers.md"
Found = Mapping[str, Any]

HEAD = """# Tables and figures of the papers

*Written by `python -m benchmarks.papers --page` from the files in `evidence/papers`; do not edit. Each file
has the machine, the commit and all settings.*

These tables of the papers were run with SmolLM2-135M on two cores without a graphics processor. The papers used models
of 70 million to 20 billion parameters. The figures say whether a method behaves alike on a small model. They are no
replication of the papers.

- **The blind row decides what a table can show.** A bag of words never sees the model. If it tells members from
  non-members, a detector can do so without any training on them.
- **The labels of arXivTection and ArxivMIA are not certain.** SmolLM2 was published after their articles, and may have
  read any of them. There an honest detector may show an AUC of 0.5. Where [we planted the
  members](../docs/detectors.md#do-they-pass-their-controls) labels are exact.
- **Tokens of another version.** When these were made, `smollm2` read digits after two or more blanks with other tokens
  than it was trained with: in 20% of the texts of Hacker News, 15% of Wikipedia, 12% of GitHub, 9% of Stack Exchange,
  0.7% of arXivTection, none of ArxivMIA; 0.4% of the tokens at most. Placebos were read in the same way.
- **Another corpus.** Where a table's own corpora are not to be had here, its settings were run on another corpus, which
  is named. Then the paper's figures are shown without a difference, since it would compare two corpora.
- **Brackets are 95% intervals** from resampling documents. Base scores are judged on the same texts as the tuned ones.
"""


def write_page(folder: Path, path: Path = PAPERS) -> Path:
    """Write the page from the results in the folder of tables, and return its path."""
    files = sorted(folder.glob("*.json"))
    found = [(one, read_results(one)) for one in files]
    found = [one for one in found if "compared" in one[1]]  # else it is still being measured
    order = {name: place for place, name in enumerate(tables())}
    found.sort(key=lambda one: (order.get(one[1]["settings"]["table"], len(order)), one[0].name))
    done = {one["settings"]["table"] for _, one in found}
    done |= {name for name, one in tables().items() if one.by and one.here == "yes"}
    _write(path, [HEAD, _runs(found), *(_table(*one) for one in found), _missing(done)])
    return path


def _write(path: Path, parts: Sequence[str]) -> None:
    atomic_text(path, "\n".join(part.rstrip("\n") + "\n" for part in parts))


def _runs(tables_run: Sequence[tuple[Path, Found]]) -> str:
    return f"""## The best score of each table

With its published figure, and the bag of words on the same texts. On arXivTection and ArxivMIA the bag of words is
ahead of every score, so these tables show no membership. Each table whole, and what was not run, follow.

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
        _file(relative, found) + " " + t.how(found),
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


def _file(name: str, found: Found) -> str:
    commits: Sequence[str] = sorted({run["commit"] for run in found.get("runs", ()) if "commit" in run})
    return f"File: [{name}]({name}), commit {', '.join(commits) or found['commit']}."
