"""A command of a package: `pretrace longest TEXTS` names the longest text."""

from pretrace.cli.commands import Reply
from pretrace.corpora.opening import Source


def longest(source: Source) -> Reply:
    """Name the longest text."""
    text = max(source.open().texts, key=lambda one: len(one.text))
    own = {"id": text.id, "characters": len(text.text)}
    return Reply([f"{text.id}: {len(text.text):,} characters"], own=own)
