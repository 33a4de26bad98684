"""Scores that are fitted, and the controls beside them: what is asked of whom, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from pretrace.cache import text_key
from pretrace.errors import LeakError, ModelError, TableError, TextsError
from pretrace.frequencies import Frequencies
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.evaluation import evaluate
from pretrace.scoring.plan import Models, _shuffled
from pretrace.testing import Memory, make_evidence
from pretrace.types import Corpus, Quantity, Reference, Text, Tuned

WORDS = ["alpha", "Beta", "gamma", "Delta", "epsilon", "zeta"]


def texts(number, name):
    generator = np.random.default_rng(number)
    # not by turns: the probe sees the last character, and would tell odd numbers from even ones
    members = generator.permutation(np.arange(number) % 2 == 0)
    texts = (f"{name} {i} {' '.join(generator.choice(WORDS, 6))}" for i in range(number))
    return tuple(Text(f"{name}{i}", text, bool(members[i])) for i, text in enumerate(texts))


CORPUS = Corpus("test", texts(60, "t"))
LABELLED = Corpus("labelled", texts(40, "r"))
FAMILIAR = [text.text for text in CORPUS.texts + LABELLED.texts if text.member]


def test_a_placebo_tells_membership_from_domain():
    placebo = Models(Memory(name="placebo"), labelled=LABELLED)
    models = Models(Memory(FAMILIAR), labelled=LABELLED, placebo=placebo)
    run = evaluate(detect(CORPUS, models, "loss,na_pdd,probe"), CORPUS, resamples=200)
    assert [(c.score, c.kind, c.values.shape) for c in run.controls] == [
        ("loss", "placebo", (60, 1)),
        ("na_pdd", "placebo", (60, 1)),
        ("probe", "placebo", (60, 1)),
        ("na_pdd", "shuffled", (60, 20)),
        ("probe", "shuffled", (60, 20)),
    ]
    alone = detect(CORPUS, placebo, "loss,na_pdd,probe", Options(shuffles=0))
    for i, control in enumerate(run.controls[:3]):
        np.testing.assert_array_equal(control.values[:, 0], alone.matrix[:, i])
    rows = {(row.name, row.kind): row for row in run.evaluation.rows}
    for name in run.scores:
        assert rows[name, "score"].auc.value > 0.7
        assert rows[name, "placebo"].auc.value < 0.7
        lead = rows[name, "placebo"].lead
        assert lead.low > 0
    assert rows["na_pdd", "shuffled"].auc.low < 0.5 < rows["na_pdd", "score"].auc.value
    assert run.settings["models"]["placebo"]["name"] == "placebo"
    assert set(run.settings["fitted"]) == {"na_pdd", "probe"}


def test_shuffles_keep_the_labels_of_a_document_together():
    grouped = [Text(f"{i}", f"text {i}", i % 4 < 2, f"d{i % 4}") for i in range(24)]
    evidence = tuple(replace(make_evidence(logp=[-1.0, -2.0]), text=text) for text in grouped)
    seen = set()
    for repeat in range(12):
        dealt = _shuffled(Reference(evidence=evidence), [0, repeat]).evidence
        labels = {e.text.document: e.text.member for e in dealt}
        assert all(labels[e.text.document] == e.text.member for e in dealt)
        assert sum(labels.values()) == 2
        seen.add(tuple(sorted(labels.items())))
    assert len(seen) > 2


def test_what_was_fitted_or_tuned_on_is_not_scored():
    leaking = Corpus("leaking", (*CORPUS.texts, replace(LABELLED.texts[3], id="copy")))
    with pytest.raises(LeakError, match=r"'copy'.*reference texts.*--set-aside reference"):
        detect(leaking, Models(Memory(), labelled=LABELLED), "na_pdd")
    tuned = Tuned(Memory(name="tuned"), frozenset({text_key(CORPUS.texts[7].text)}), {})
    with pytest.raises(LeakError, match=r"'t7'.*tuned on.*--set-aside tuning"):
        detect(CORPUS, Models(Memory(), tuned=tuned), "fsd(loss)")


class Unasked(Memory):
    def __init__(self, **parts):
        super().__init__(name="other" if parts else "m")
        self.__dict__.update(parts)

    def run(self, *arguments):
        raise AssertionError("asked")


OTHER, CLOSED = Unasked(tokenizer_hash="another"), Unasked(offers=Quantity.LOGP)
MEMBERS = Corpus("members", tuple(text for text in LABELLED.texts if text.member))
COUNTS = Frequencies(np.zeros(1, np.int64), "characters")
COUNTED, PLACEBO = Models(Unasked(), counts=COUNTS), Models(OTHER, counts=COUNTS)


@pytest.mark.parametrize(
    ("models", "score", "error", "message"),
    [
        (replace(COUNTED, placebo=PLACEBO), "dc_pdd", TableError, r"another tokenizer.*other"),
        (Models(Unasked(), labelled=LABELLED, placebo=Models(OTHER)), "na_pdd", TextsError, "--reference"),
        (Models(Memory(), labelled=MEMBERS), "na_pdd", TextsError, "non-members"),
        (Models(CLOSED, labelled=LABELLED), "na_pdd", ModelError, "cannot give NEURONS .*na_pdd needs"),
    ],
)
def test_what_will_not_do_is_refused_before_a_model_is_asked(models, score, error, message):
    with pytest.raises(error, match=message):
        detect(CORPUS, models, score)


def test_a_text_that_only_the_placebo_cannot_read_keeps_its_score():
    class Short(Memory):
        """Predicts nothing of texts that are not longer than two characters."""

        def encode(self, some):
            made = super().encode(some)
            return [replace(e, tokens=e.tokens[: 0 if len(e.tokens) < 3 else None]) for e in made]

    corpus = Corpus("c", (*CORPUS.texts, Text("two", "ab", True)))
    models = Models(Memory(), placebo=Models(Short(name="short")))
    run = detect(corpus, models, "loss")
    assert run.ids[-1] == "two"
    assert np.isfinite(run.matrix).all()
    assert np.flatnonzero(np.isnan(run.controls[0].values[:, 0])).tolist() == [60]
    [gone] = run.missing
    assert (gone.id, gone.score, gone.reason.split(":")[0]) == ("two", "loss", "under the placebo model")
    assert not run.skipped
