"""Chinese has no capitals: the scores that want them have no value for it, and the others keep theirs."""

import numpy as np

from pretrace.rewrites import Lower
from pretrace.scoring.detect import Options, detect
from pretrace.testing import Memory
from pretrace.types import Corpus, Missing, Text

CHINESE = "所述控制器与传感器连接，用于在水位过高时发出警报。"
ENGLISH = ("The River was High in March.", "Nothing of the kind: Paris is not in Spain.")


def scored(model, wanted, *texts):
    corpus = Corpus("patents", tuple(Text(f"t{i}", text) for i, text in enumerate(texts)))
    return detect(corpus, model, wanted, Options(cache=False))


def test_a_chinese_text_keeps_its_other_scores_and_one_without_any_is_skipped():
    run = scored(Memory(), "loss,lowercase", ENGLISH[0], CHINESE, ENGLISH[1], "")
    assert run.ids == ("t0", "t1", "t2")
    assert run.missing == (Missing("t1", "lowercase", Lower.formless),)
    assert np.isnan(run.column("lowercase")).tolist() == [False, True, False]
    assert [(one.id, one.reason) for one in run.skipped] == [("t3", "the text is empty")]
    alone = scored(Memory(), "loss,lowercase", *ENGLISH)
    assert run.matrix[[0, 2]].tolist() == alone.matrix.tolist()
    run = scored(Memory(), "lowercase", ENGLISH[0], CHINESE, "a quiet day by the sea")
    assert run.ids == ("t0", "t2")
    assert [(one.id, one.reason) for one in run.skipped] == [("t1", Lower.formless)]
    assert not run.missing
    assert run.matrix[1, 0] == -1.0  # in lower case among others it keeps its value
