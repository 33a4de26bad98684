"""Chinese through every score: finite numbers where a score means something, a plain refusal where it does not."""

import numpy as np

from pretrace.backends import open_model
from pretrace.rewrites import Lower
from pretrace.scores import scores
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.plan import Models
from pretrace.testing import Memory
from pretrace.types import Corpus, Missing, Recipe, Text

CHINESE = (
    "本发明涉及一种用于检测水质的装置，包括壳体、设置在壳体内的传感器以及控制器。",
    "所述控制器与传感器连接，用于在水位过高时发出警报。",
    "短句。",
)
ENGLISH = ("The River was High in March.", "Nothing of the kind: Paris is not in Spain.")
OUTSIDE = {"fsd", "neighbor", "lowercase"}


def scored(model, wanted, *texts):
    corpus = Corpus("patents", tuple(Text(f"t{i}", text) for i, text in enumerate(texts)))
    return detect(corpus, model, wanted, Options(cache=False))


def test_every_score_gives_a_number_for_chinese(model_folder):
    """Every registered score that wants nothing but the target and a short text, but lowercase."""
    made = {name: scores.make(name) for name in scores if name not in OUTSIDE}
    plain = {name: score for name, score in made.items() if not isinstance(score, Recipe)}
    names = [
        name for name, score in plain.items() if {view.model for view in score.needs.views} <= {"target"}
    ]
    assert {"loss", "zlib", "min_k", "min_k_plus_plus", "perturbed"} <= set(names)
    run = scored(Models(open_model(str(model_folder))), ",".join(names), *CHINESE)
    assert run.ids == ("t0", "t1", "t2")
    assert np.isfinite(run.matrix).all()
    assert len(set(run.column("loss"))) == 3


def test_a_chinese_text_keeps_its_other_scores_and_one_without_any_is_skipped():
    run = scored(Memory(), "loss,lowercase", ENGLISH[0], CHINESE[0], ENGLISH[1], "")
    assert run.ids == ("t0", "t1", "t2")
    assert run.missing == (Missing("t1", "lowercase", Lower.formless),)
    assert np.isnan(run.column("lowercase")).tolist() == [False, True, False]
    assert [(one.id, one.reason) for one in run.skipped] == [("t3", "the text is empty")]
    alone = scored(Memory(), "loss,lowercase", *ENGLISH)
    assert run.matrix[[0, 2]].tolist() == alone.matrix.tolist()
    run = scored(Memory(), "lowercase", ENGLISH[0], CHINESE[0], "a quiet day by the sea")
    assert run.ids == ("t0", "t2")
    assert [(one.id, one.reason) for one in run.skipped] == [("t1", Lower.formless)]
    assert not run.missing
    assert run.matrix[1, 0] == -1.0  # in lower case among others it keeps its value
