"""An audit's features of pieces without upper and lower case: all there, unless lower-casing itself is asked for."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import make_model, make_tokenizer

from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.errors import TextsError
from pretrace.scoring.plan import Models
from pretrace.verdicts.audit.data import expressions, features
from pretrace.verdicts.audit.snippets import Sample, Samples

CHINESE = [Sample(f"c{i}", "检测水质的装置" * (i + 2)) for i in range(4)]
ENGLISH = [Sample(f"e{i}", f"The River was High in March {1900 + i}.") for i in range(3)]


@pytest.fixture(scope="module")
def models() -> Models:
    return Models(
        HuggingFace(
            make_model("gpt_neox"), make_tokenizer(), name="neox", weights="neox", settings=ModelSettings()
        )
    )


def test_chinese_pieces_and_numbers_have_every_feature(models: Models) -> None:
    sides = Samples(tuple(CHINESE), (*ENGLISH, Sample("n", "12 345 6789, 10")), paired=False)
    found = features(sides, models, expressions(False), cache=False)
    assert found.suspect.shape == (4, 21)
    assert found.heldout.shape == (4, 21)
    assert np.isfinite(found.suspect).all()
    # nothing to disturb gives -1
    column = found.names.index("perturbed(kind='case', share=0.25)")
    assert found.suspect[:, column].tolist() == [-1.0] * 4


def test_lowercase_leaves_caseless_pieces_out_and_refuses_texts_of_them_alone(models: Models) -> None:
    mixed = Samples((*ENGLISH, CHINESE[0]), tuple(ENGLISH), paired=False)
    found = features(mixed, models, ["loss", "lowercase"], cache=False)
    assert found.suspect_documents == ("e0", "e1", "e2")
    alone = Samples(tuple(CHINESE[:2]), tuple(CHINESE[2:]), paired=False)
    with pytest.raises(TextsError, match=r"no letter of the texts has two cases.*leave lowercase out"):
        features(alone, models, ["loss", "lowercase"], cache=False)
