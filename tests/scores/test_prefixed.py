"""Texts behind other texts: the prefix comes from texts that are never scored, and the numbers are a whole pass's."""

import numpy as np
import pytest
from tiny import SENTENCES, make_tokenizer, naive_logp, opened

from pretrace.scoring.detect import Options, detect
from pretrace.scoring.outlook import workload
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.testing import Memory
from pretrace.types import Corpus, Text

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog"]


def labelled(number, *, groups=100):
    generator = np.random.default_rng(3)
    texts = [" ".join(generator.choice(WORDS, 6)) + f" {i}." for i in range(number)]
    of = [f"g{i % 2} {i // 2 % groups}" for i in range(len(texts))]
    made = (Text(f"k{i}", text, member=i % 2 == 0, group=of[i]) for i, text in enumerate(texts))
    return Corpus("known", tuple(made))


FEW = Corpus("few", tuple(Text(str(i), t) for i, t in enumerate(SENTENCES)))
TWO = Corpus("two", (Text("a", "abcdef"), Text("b", "ghijkl")))
PLAIN = Options(cache=False, shuffles=0)


def mean_behind(backend, text, before):
    """The mean log-probability of a text behind others, from one whole pass."""
    tokenizer = make_tokenizer()
    context = backend.encode([text])[0].prefix.tolist() + (tokenizer(before)["input_ids"] if before else [])
    return naive_logp(backend.model, context + tokenizer(text)["input_ids"], max(1, len(context))).mean()


@pytest.mark.parametrize("start", ["never", "always"])
def test_it_is_the_likelihood_of_a_whole_pass(start):
    backend, known, score = opened("llama", make_tokenizer(), start=start), labelled(12), "recall(shots=2)"
    run = detect(FEW, Models(backend, labelled=known), score, PLAIN)
    told = run.settings["fitted"][score]["prefix"]["nonmembers"]
    text_of = {text.id: text for text in known.texts}
    assert not any(text_of[one].member for one in told)
    before = " ".join(text_of[one].text for one in told)
    for i, text in enumerate(SENTENCES):
        behind, alone = (mean_behind(backend, text, one) for one in (before, ""))
        assert run.matrix[i, 0] == pytest.approx(behind / alone, abs=1e-5)


def test_the_prefix_is_of_as_many_documents_as_shots():
    models = Models(Memory(), labelled=labelled(40, groups=3))
    run = detect(TWO, models, "recall(shots=3)", PLAIN)
    ids = run.settings["fitted"]["recall(shots=3)"]["prefix"]["nonmembers"]
    group = {text.id: text.group for text in models.labelled.texts}
    assert len({group[one] for one in ids}) == 3


def test_the_second_pass_is_counted_beforehand():
    models = Models(Memory(), labelled=labelled(20))
    plan = ScorePlan.parse("loss,recall")
    (found,) = workload([TWO], models, plan, labelled=models.labelled, cache=False)
    assert found.passes == 2 * 2
