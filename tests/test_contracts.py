"""What every score, back end and verdict test must do: the checks of `pretrace.testing`, over all that are here."""

import random
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import pytest
from tiny import opened

from pretrace.registry import scores, tests
from pretrace.scoring.plan import Models
from pretrace.testing import Memory, check_model, check_score, check_test, made_texts
from pretrace.types import Corpus, Needs, Quantity, Text
from pretrace.verdicts.audit.audit import audit
from pretrace.verdicts.flag.flag import flag
from pretrace.verdicts.flag.planning import FlagSettings

EXPRESSIONS = {"dc_pdd": ["dc_pdd(a=10.0)"], "fsd": ["fsd(ppl)", "fsd(lowercase)", "fsd(zlib)", "fsd(min_k)"]}


@pytest.mark.parametrize("score", [one for name in scores for one in EXPRESSIONS.get(name, [name])])
def test_scores(score):
    check_score(score)


@pytest.mark.parametrize("budget", [1, 64, 4096])
@pytest.mark.parametrize("family", ["gpt_neox", "llama", "opt", "gemma3_text", "gemma2", "bloom"])
def test_models_with_weights(family, budget):
    for start in (False, True):
        check_model(opened(family, start=start, token_budget=budget, max_tokens=100))


@pytest.mark.parametrize("most", [7, 512])
def test_a_model_without_weights(most):
    check_model(Memory(max_tokens=most))


CONTROLS = made_texts("controls", 30)


def flagged(texts, models):
    placebo = Models(*models.placebos) if models.placebos else None
    models = replace(models, placebos=(), placebo=placebo)
    return flag(texts, made_texts("known", 100), models, FlagSettings(score="loss"))


CHECKED = {
    "audit": (lambda texts, models: audit(texts, models, CONTROLS), made_texts("audited", 40), {}),
    "flag": (flagged, made_texts("flagged", 40), {"alone": True}),
}
"""How the verdict of each test is made, of which texts, and what else its check is told."""
if find_spec("pretrace.plugins.recite"):
    from pretrace.plugins.recite import recite

    for name, text in (("recite", False), ("recite in text", True)):
        asked = partial(recite, controls=made_texts("controls", 8, words=100), text=text)
        CHECKED[name] = asked, made_texts("recited", 8, words=100), {}
if find_spec("pretrace.plugins.marks"):
    from pretrace.plugins import marks
    from pretrace.plugins.marks.canaries import check_canaries
    from pretrace.plugins.marks.checking import CheckSettings, check_marks

    def hashes(number):
        drawn = random.Random(5).getrandbits
        sums = (f"Build {i} of the tool has the sum {drawn(160):040x} as it was sent." for i in range(number))
        return Corpus("sums", tuple(Text(f"t{i}", text) for i, text in enumerate(sums)))

    def seal(texts):
        """What is sealed has an order: that of the texts."""
        found = marks.VariantCandidates({one.id: (one.text, one.text.title()) for one in texts.texts})
        own = marks.MarkSettings(variant_column=("other",))
        return marks.mark(by_text(texts), found, own, draw=random.Random(1).randrange)

    def ordered(texts):
        return marks.mark_order(by_text(texts), marks.OrderSettings(), {}, seed="5eed")[0]

    def by_text(texts):
        return replace(texts, texts=tuple(sorted(texts.texts, key=lambda one: one.text)))

    letters, rows = made_texts("letters", 24), made_texts("rows", 96, words=6)
    CHECKED |= {
        "canaries": (check_canaries, hashes(12), {}),
        "canaries in text": (partial(check_canaries, text=True), hashes(12), {}),
        "marks": (
            lambda texts, models: check_marks(seal(texts), models, CheckSettings()),
            letters,
            {"alone": True, "known": [one.published for one in seal(letters).documents]},
        ),
        "marks of an order": (
            lambda texts, models: check_marks(ordered(texts), models, CheckSettings()),
            rows,
            {"known": [one.published for one in ordered(rows).documents]},
        ),
    }


@pytest.mark.parametrize("name", CHECKED)
def test_verdict_tests(name):
    ask, texts, more = CHECKED[name]
    found = check_test(ask, texts, **more)
    assert found.test == name.partition(" ")[0]


def test_no_test_is_forgotten():
    """Triggers ask no model: tests/plugins/marks/test_variants.py."""
    assert {name for name in tests if tests.factory(name).__module__.startswith("pretrace.")} <= {
        *CHECKED,
        "triggers",
    }


class Shouting(Memory):
    """It finds a text likelier beside others."""

    def run(self, batch, want, states=frozenset(), /):
        found = super().run(batch, want, states)
        return [replace(one, logp=one.logp / len(found)) for one in found]


class Backwards:
    needs = Needs(Quantity.LOGP)

    def __call__(self, evidence, /):
        return -float(evidence.plain.logp.mean())


def test_what_breaks_a_contract_is_named():
    with pytest.raises(AssertionError, match="turn its sign"):
        check_score(Backwards())
    with pytest.raises(AssertionError, match="otherwise in company"):
        check_model(Shouting())
    with pytest.raises(AssertionError, match="accuses without a second model"):
        check_test(flagged, made_texts("flagged", 40))
    with pytest.raises(AssertionError, match="is not found"):
        check_test(*CHECKED["audit"][:2], known=["another text"])
