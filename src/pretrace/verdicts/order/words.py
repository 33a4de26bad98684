"""The sentences of the order test, for a reader without statistics, for rows and for answer options."""

from __future__ import annotations

from dataclasses import dataclass

from pretrace.verdicts.order.settings import OrderSettings


@dataclass(frozen=True, slots=True)
class Words:
    """How the things that the test counts are called, and what is said of them."""

    unit: str
    table: str
    parts: str
    effect_unit: str
    statistic: str
    hypothesis: str
    cure: str
    """What helps where the order carries meaning."""
    unseen: str
    """What training the test cannot find."""

    def of(self, corpus: str) -> str:
        """What the model would have been trained on."""
        return f"{corpus} with its {self.parts} in the published order"


ROWS = Words(
    unit="shard",
    table="shards",
    parts="rows",
    effect_unit="nats a shard",
    statistic="sum over shards of the log-probability of the published order less the mean over the orders read",
    hypothesis="The log-probability of a shard does not depend on which of its orders was published.",
    cure="The order carries meaning, and any model may find it likelier, or less likely, than another. Where it only "
    "carries a date, topic or split, name that column with --block-column: rows then change places within it.",
    unseen="Training on the same rows in another order, or on each row by itself, leaves nothing that it could find.",
)
OPTIONS = Words(
    unit="item",
    table="items",
    parts="answer options",
    effect_unit="in rank, from 0 to 1",
    statistic="sum over items of the rank of the published order among the orders read less the mean rank",
    hypothesis="The log-probability of an item does not depend on which order of its options was published.",
    cure="The options stand in an order that carries meaning, and any model may find it likelier, or less likely, than "
    "another: leave out the items where they are sorted by hand, by a rule that looks only at what the options say.",
    unseen="Training on the same items with their options in another order, or on questions and answers alone, leaves "
    "nothing that it could find.",
)


def words_for(settings: OrderSettings) -> Words:
    """The words for rows, or for options."""
    return OPTIONS if settings.options else ROWS


def question(model: str, corpus: str) -> str:
    """What the report asks."""
    return f"Was {model} trained on {corpus}?"


def compared(words: Words, corpus: str, units: int, orders: int) -> tuple[str, ...]:
    """What was compared, and why this tells training from no training."""
    many = f"up to {orders - 1:,} other orders" if orders > 2 else "one other order"
    read = (
        f"The rows were divided into {units:,} shards (runs of neighbours that fit into the model at once). The model "
        f"read each shard in the published order and in {many} of the same rows."
        if words is ROWS
        else f"The model read {units:,} items, each with its options in the published order and in {many}."
    )
    return (
        f"The {words.parts} of {corpus} were published in one order out of very many that would have done as well. A "
        "model that was not trained on the published set has no way of knowing which one it was.",
        f"{read} A model that was trained on the set finds the published order likelier than the others. For a model "
        f"that was not, the published order is as often above the others as below.",
    )


def assumption(stated: str, words: Words) -> str:
    """What must hold for p to mean what it says."""
    if not stated:
        return (
            f"It holds if the {words.parts} were put into the published order by lot. Nobody has stated how that order "
            "came about."
        )
    return (
        f"It holds if the {words.parts} were put into the published order by lot. This was stated of it: “{stated}”. "
        "Nothing is assumed about the model."
    )


def trust(words: Words, skipped: int, placebos: int) -> tuple[str, ...]:
    """How far the answer can be trusted."""
    found = [
        f"The test sees training on this set with its {words.parts} in this order. {words.unseen}",
    ]
    if skipped:
        found.append(
            f"Left out: {skipped:,}, each with its reason at the end of this report. No reason depends on the order "
            "that was published."
        )
    if not placebos:
        found.append("The test was not tried on a model that cannot have seen the set (--placebo).")
    return tuple(found)
