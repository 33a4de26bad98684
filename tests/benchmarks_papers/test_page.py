"""docs/results.md is what the results on file say, and every figure on it comes from a file that it names."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.papers import page
from benchmarks.papers.__main__ import FOLDER


def test_the_page_is_what_is_on_file(tmp_path: Path) -> None:
    made = tmp_path / "results.md", tmp_path / "papers.md"
    page.write_page(FOLDER, *made)
    for written, kept in zip(made, (page.PAGE, page.PAPERS), strict=True):
        assert written.read_text(encoding="utf-8") == kept.read_text(encoding="utf-8"), (
            "run python -m benchmarks.papers --page"
        )


def test_every_file_it_names_is_there() -> None:
    for one in (page.PAGE, page.PAPERS):
        named = re.findall(r"\]\(([^)#]+)", one.read_text(encoding="utf-8"))
        assert len(named) > 10
        assert [name for name in named if not (one.parent / name).exists()] == []
