"""What the test of an order is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from pretrace.registry import require
from pretrace.settings import TEXTS, option
from pretrace.verdicts.settings import TEST, TestSettings

ORDER = "Order"
"""The group of options on what is put into another order."""
FEWEST_ROWS = 3
"""Rows of a shard: the first stays where it is, and two others can change places."""


def unescaped(written: str) -> str:
    r"""What is typed for --joint, with \n and \t as line end and tab."""
    return written.replace("\\n", "\n").replace("\\t", "\t")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSettings(TestSettings):
    """How the order of rows, or of answer options, is tested; ExpressionError for a value out of its range.

    `stated` says how the published order came about. `block_column` names columns within whose values rows change
    places. With `options` the options of each item change places instead of the rows.
    """

    stated: str = option(
        "",
        "How the published order came about, such as “shuffled by the authors with a seed before release”. Without it "
        "there is no verdict.",
        panel=TEST,
        essential=True,
    )
    shuffles: int = option(19, "Other orders of each shard that are read.", panel=ORDER, least=1, most=9999)
    shard_rows: int | None = option(
        None,
        "At most so many rows a shard; as many as the model's context holds unless given.",
        panel=ORDER,
        least=FEWEST_ROWS,
        essential=True,
    )
    shard_tokens: int = option(
        2048, "At most so many tokens a shard, where the model's context holds more.", panel=ORDER, least=16
    )
    joint: str = option(
        "\n\n",
        r"What stands between two rows, \n for a line end.",
        panel=ORDER,
        read=unescaped,
        written=r"\n\n",
    )
    block_column: tuple[str, ...] = option(
        (),
        "Column of a date, topic or split: rows only change places with rows of the same value. Several: give it more "
        "than once, or with commas.",
        panel=TEXTS,
        essential=True,
    )
    options: str = option(
        "",
        "Column with the list of an item's answer options, or several columns with commas: the order of the options is "
        "tested, and TEXTS' text is the question.",
        panel=TEXTS,
        essential=True,
    )
    orders: int = option(
        23,
        "Other orders of an item with more than four options that are read.",
        panel=ORDER,
        least=1,
        most=9999,
    )

    def __post_init__(self) -> None:
        TestSettings.__post_init__(self)
        require(
            not (self.options and self.block_column),
            "--block-column is for rows, --options for the options of an item: give one of the two.",
        )

    @property
    def blocks(self) -> tuple[str, ...]:
        """The columns within whose values rows change places."""
        return _names(self.block_column)

    @property
    def option_columns(self) -> tuple[str, ...]:
        """The columns of the options, none where the order of rows is tested."""
        return _names((self.options,))

    @property
    def columns(self) -> tuple[str, ...]:
        """The further columns of TEXTS that are read (`Columns.more`)."""
        return self.blocks + self.option_columns


def _names(written: tuple[str, ...]) -> tuple[str, ...]:
    found = (name.strip() for one in written for name in one.split(","))
    return tuple(dict.fromkeys(filter(None, found)))
