"""What is read inside a model while it reads a text: a few numbers a unit, pooled over the positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Pool = Literal["any", "mean", "count"]


@dataclass(frozen=True, slots=True)
class Firing:
    """Which feed-forward neurons a text activates (NA-PDD eq. 2); every position the model read counts.

    `pool` "any": the activation exceeds `threshold` at some position; "mean": its mean over the positions
    does. Both are bits, packed along the neurons (`numpy.packbits`): uint8 [layers, ceil(neurons / 8)].
    "count" is the number of positions at which it does: uint32 [layers, neurons]. A layer with fewer
    neurons than the widest is padded with zeros. `gated` takes the product with the gate's partner, the
    input of the down projection, where a gated layer has one, instead of the activation function's output.
    """

    pool: Pool = "any"
    threshold: float = 1.0
    gated: bool = False


@dataclass(frozen=True, slots=True)
class Hidden:
    """Hidden states at the last token the model read, as transformers numbers them: 0 is the embedding, the
    last is what the output layer reads. All of them, float32 [layers + 1, width], or one, float32 [width]."""

    layer: int | None = None


State = Firing | Hidden
