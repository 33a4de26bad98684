"""Whether a placebo is another model than the target, by the weights of both."""

from __future__ import annotations

from collections.abc import Sequence

from pretrace.errors import ModelError
from pretrace.types import Backend


def check_placebos(target: Backend, placebos: Sequence[Backend]) -> None:
    """Raise ModelError where a placebo has the weights of the target or of another placebo."""
    known = {weights_of(target): "the target"}
    for placebo in placebos:
        weights = weights_of(placebo)
        if weights in known:
            raise ModelError(
                f"the placebo {placebo.name} has the very weights of {known[weights]}: a placebo is a model that was "
                "not trained on the texts, such as an earlier checkpoint (--placebo-revision) or the base of a "
                "fine-tune; name each once."
            )
        known[weights] = f"the placebo {placebo.name}"


def weights_of(model: Backend) -> str:
    """What names a model's weights: their hash, or the fingerprint where they are not here, as on a server."""
    weights = model.facts.get("weights")
    return str(weights) if weights not in (None, "unknown") else model.fingerprint
