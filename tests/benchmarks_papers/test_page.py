"""evidence/papers.md is what the results on file say, and it names the file of every figure."""

import re

from benchmarks.papers import page
from benchmarks.papers.__main__ import FOLDER


def test_the_page_is_what_is_on_file(tmp_path):
    written = page.write_page(FOLDER, tmp_path / "papers.md")
    assert written.read_text(encoding="utf-8") == page.PAPERS.read_text(encoding="utf-8"), (
        "run python -m benchmarks.papers --page"
    )


def test_every_file_it_names_is_there():
    named = re.findall(r"\]\(([^)#]+)", page.PAPERS.read_text(encoding="utf-8"))
    assert len(named) > 10
    assert [name for name in named if not (page.PAPERS.parent / name).exists()] == []
