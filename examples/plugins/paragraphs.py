"""A corpus: the paragraphs of Markdown files."""

from pathlib import Path

from pretrace.errors import TextsError
from pretrace.registry import corpora
from pretrace.types import Corpus, Text


@corpora.add("paragraphs")
def paragraphs(folder: str = "notes", min_chars: int = 200) -> Corpus:
    """Paragraphs of the Markdown files in a folder, from `min_chars` characters on."""
    texts, short = [], 0
    for path in sorted(Path(folder).glob("*.md")):
        for number, paragraph in enumerate(path.read_text(encoding="utf-8").split("\n\n")):
            if len(paragraph.strip()) < min_chars:
                short += 1
                continue
            texts.append(Text(f"{path.stem}:{number}", paragraph.strip(), group=path.stem))
    if not texts:
        raise TextsError(f"{folder} holds no .md file with a paragraph of {min_chars} characters.")
    note = f"paragraphs left out for having fewer than {min_chars} characters: {short}."
    return Corpus("paragraphs", tuple(texts), source=folder, notes=(note,))
