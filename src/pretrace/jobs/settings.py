"""How a job over very many texts is divided among workers, and what becomes of records that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pretrace.jobs.job import Turn
from pretrace.settings import RUN, TEXTS, option


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Which shards are done here, where parts lie, what is left out; ExpressionError for a turn that is none."""

    shard: str | None = option(
        None,
        "I/N: of the shards of TEXTS do every N-th from the I-th, as one of N jobs of a cluster; then "
        "`pretrace merge OUT`.",
        panel=RUN,
    )
    parts: Path | None = option(
        None,
        "Folder for the parts of the table until all are there, shared by the workers; .OUT.parts unless given.",
        panel=RUN,
        path="out",
    )
    skip_unreadable: bool = option(
        False,
        "Leave records out that cannot be read, list them in unreadable.jsonl, and go on.",
        panel=TEXTS,
    )

    def __post_init__(self) -> None:
        if self.shard is not None:
            Turn.parse(self.shard)

    @property
    def turn(self) -> Turn:
        """The shards that are done here."""
        return Turn.parse(self.shard) if self.shard is not None else Turn()
