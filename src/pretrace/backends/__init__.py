"""Models that can be asked. Torch is imported only when one is opened."""

from pretrace.backends.adapters import attach as open_adapter
from pretrace.backends.loading import (
    check_model,
    count_parameters,
    known_backends,
    open_model,
    open_tokenizer,
)

__all__ = [
    "check_model",
    "count_parameters",
    "known_backends",
    "open_adapter",
    "open_model",
    "open_tokenizer",
]
