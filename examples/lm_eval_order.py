"""What examples/lm_eval_order.yaml calls: the order test on answer options, inside lm-evaluation-harness.

The "choices" of an item are its options in the published order and in others, each as one text. The harness gives the
log-probability of each, and `p` is how often chance alone would put the published orders so high among the others. It
holds only if the published order was drawn by lot. It is NaN where the order can be told from a random one without a
model; what this example does not have are a second model and the lot that gave the order. So a small p accuses nobody
here: what makes an order likelier for every model is no sign of training (`pretrace order` repeats the lot).
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from pretrace.statistics.ranks import lot_test
from pretrace.types import Text
from pretrace.verdicts.order import OrderSettings, Unit, drawn_orders, gate_values, items, order_check, ranks

OTHERS = 23
"""Other orders of an item that are read; four options have no more."""


def usable(docs: Any) -> Any:
    """The items whose options may have been put in order by lot; the rule does not look at the published order."""
    texts = [
        Text(str(i), doc["question"], meta={"choices": json.dumps(doc["choices"])})
        for i, doc in enumerate(docs)
    ]
    return docs.select([int(unit.name) for unit in items(texts, OrderSettings(options="choices")).units])


def orders(doc: dict[str, Any]) -> list[str]:
    """The lettered options in the published order, then in others."""
    unit = _unit(doc)
    return unit.texts(drawn_orders(unit, OTHERS, np.random.default_rng(0)))


def published(doc: dict[str, Any]) -> int:
    """The place of the published order among them."""
    return 0


def compared(doc: dict[str, Any], results: list[tuple[float, bool]]) -> dict[str, Any]:
    """The ranks of the log-probabilities, the published order first, and the options for the check without a model."""
    values = np.array([logp for logp, _ in results])
    return {"p": {"ranks": ranks(values).tolist(), "options": doc["choices"]}}


def p_value(found: list[dict[str, Any]]) -> float:
    """The p-value over all items; NaN where the check withholds it."""
    units = [_unit({"choices": one["options"]}) for one in found]
    check = order_check(gate_values(units, seed=0), cure="", seed=0)
    return math.nan if check.status == "failed" else lot_test([one["ranks"] for one in found]).p


def _unit(doc: dict[str, Any]) -> Unit:
    options = tuple(doc["choices"])
    return Unit("", options, (tuple(range(len(options))),), lettered=True)
