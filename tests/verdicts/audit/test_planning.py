"""What an audit can answer is known before any model reads a text, and before anything is trained."""

from dataclasses import replace

import pytest
from verdicts.audit.test_audit import made_up

from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models
from pretrace.testing import Memory
from pretrace.tuning.planting import PlantSettings
from pretrace.types import Corpus, Text
from pretrace.verdicts.audit.audit import Audit, audit
from pretrace.verdicts.audit.checks import graded, taking_part
from pretrace.verdicts.audit.data import AuditSettings, DesignError
from pretrace.verdicts.audit.snippets import SnippetSettings

HOW = AuditSettings(snippets=SnippetSettings(tokens=80, most=4), cache=False)


def plan(corpus, models, **settings):
    return Audit(corpus=corpus, models=models, **settings).plan


class Unread(Memory):
    """A model that must not be asked for any text."""

    def __init__(self, name, *, tokens="form", **facts):
        super().__init__(name=name)
        self.tokenizer_hash = tokens
        self.facts = {**self.facts, "weights": name, "parameters": 10**9, **facts}

    def run(self, batch, want, states=frozenset(), /):
        raise AssertionError(f"{self.name} was asked for {len(batch)} texts")


TARGET, BASE, SIBLING = Unread("target"), Unread("base"), Unread("sibling")
ELSEWHERE = Unread("elsewhere", tokens="other")


MINE = made_up("mine", 40, seed=2, length=90)
ALIKE = made_up("others", 40, seed=3, length=90)
SINGLE = AuditSettings(snippets=SnippetSettings(tokens=80, most=1), cache=False)
FEW, THIRTY = (Corpus(name, MINE.texts[:number]) for name, number in (("few", 19), ("thirty", 30)))
APART = made_up("German", 40, seed=4, mixed=1.0, length=90)


def test_a_plan_says_what_an_audit_would_do_and_reads_nothing():
    found = plan(MINE, Models(TARGET), heldout=ALIKE, settings=HOW)
    assert found.design == "controls"
    assert (found.documents, found.control_documents) == (40, 40)
    assert found.outcomes == ("consistent", "inconclusive")
    assert found.passes == 2 * found.snippets == 2 * 160
    assert found.seconds
    assert found.gaps
    placebos = (BASE, SIBLING, ELSEWHERE)
    models = Models(TARGET, placebos=placebos)
    written = Audit(corpus=MINE, models=models, generator=SIBLING, settings=HOW)
    assert written.plan.design == "placebos"
    assert [one.grade for one in written.plan.placebos] == ["sibling", "sibling", "other"]
    # true and generated, half of the snippets, three models of the family
    assert written.plan.passes == 3 * 2 * 80
    assert written.plan.seconds > found.seconds
    read = ["reading with the target", "reading with base", "reading with sibling"]
    made = ["training the generator", "writing continuations"]
    assert [stage.name for stage in written.stages] == [*made, *read]


@pytest.mark.parametrize("placebos", [(), (BASE,)])
def test_texts_of_two_editors_are_not_compared_directly(placebos):
    """Issue 21: a classifier of words does not see line breaks, spaces and capitals, and a model finds one likelier."""
    spaced = Corpus("spaced", tuple(Text(t.id, t.text.replace(" ", "  ")) for t in ALIKE.texts))
    found = plan(MINE, Models(TARGET, placebos=placebos), heldout=spaced, settings=HOW)
    assert found.design is None
    assert "only texts (form)" in found.why
    assert "Bring both sets into one form" in found.cures[0]


class Noting(Watch):
    """Notes the stages that were planned, and those that were entered."""

    ahead: tuple[str, ...] = ()

    def plan(self, stages, after, /):
        self.ahead = tuple(stage.name for stage in stages)


def test_power_is_planned_as_a_training_and_a_reading(monkeypatch):
    monkeypatch.setattr("pretrace.verdicts.frame.check_plantable", lambda target: None)
    power = replace(HOW, power=(PlantSettings(),))
    models = Models(TARGET, placebos=(BASE,))
    direct = Audit(corpus=MINE, models=models, heldout=ALIKE, generator=BASE, settings=power)
    names = [stage.name for stage in direct.stages]
    assert names[2:] == ["planting texts in a copy", "reading with the target"]
    assert "nothing" in direct.plan.outcomes


@pytest.mark.parametrize("beside", [(), ("base",)], ids=["alone", "beside a placebo"])
@pytest.mark.parametrize("also", [(), ("original",)], ids=["ours", "and another procedure"])
def test_an_audit_enters_the_stages_that_were_planned(beside, also):
    watch, target = Noting(), Memory(name="target")
    placebos = tuple(Memory(name=name) for name in beside)
    for one in (target, *placebos):
        one.facts = {**one.facts, "weights": one.name}
    audit(MINE, Models(target, placebos=placebos), ALIKE, settings=replace(HOW, also=also), watch=watch)
    assert list(watch.seconds) == list(dict.fromkeys(watch.ahead))


@pytest.mark.parametrize(
    ("models", "heldout", "why"),
    [
        (Models(TARGET), None, "neither control documents nor a model that never saw the texts"),
        (Models(TARGET, placebos=(ELSEWHERE,)), None, "neither control documents nor a model"),
        (Models(TARGET, placebo=Models(BASE)), APART, "They differ so much as texts"),
    ],
)
def test_an_audit_without_a_design_is_refused_before_a_model_reads(models, heldout, why):
    asked = {"generator": BASE, "heldout": heldout, "settings": HOW}
    with pytest.raises(DesignError, match=why) as refused:
        audit(MINE, models, **asked)
    assert refused.value.plan.design is None
    assert refused.value.plan.cures
    assert (refused.value.plan.passes, refused.value.plan.seconds) == (0, None)
    placebos = (models.placebo.target,) if models.placebo else models.placebos
    assert plan(MINE, Models(TARGET, placebos=placebos), **asked) == refused.value.plan


def test_few_documents_of_one_snippet_are_enough_where_none_is_learnt_from():
    # a document with a single snippet is judged or learnt from, and half of 30 are too few to be judged
    assert plan(THIRTY, Models(TARGET), heldout=ALIKE, settings=SINGLE).design == "controls"


def test_the_design_decides_which_placebos_take_part():
    models = (ELSEWHERE, SIBLING, BASE)
    grades = [graded(TARGET, model) for model in models]
    grades[2] = grades[2].__class__("base", "own", None, "the base")
    assert taking_part("controls", models, grades) == (BASE,)
    assert taking_part("placebos", models, grades) == (BASE, SIBLING)
    assert taking_part("differences", models, grades) == (BASE, SIBLING)
    assert taking_part("controls", models[:1], grades[:1]) == ()


def test_one_odd_paragraph_in_half_of_the_documents_is_seen_in_whole_documents():
    """Of single snippets so few are odd that no classifier of them tells the sides apart by much."""
    foreign = made_up("quoted", 40, seed=9, mixed=1.0, length=14).texts
    parts = (foreign[i].text if i % 2 else "" for i in range(len(ALIKE.texts)))
    both = zip(ALIKE.texts, parts, strict=True)
    texts = (Text(t.id, f"{t.text[:80]} {part} {t.text[80:]}" if part else t.text) for t, part in both)
    found = plan(MINE, Models(TARGET), heldout=Corpus("quoting", tuple(texts)), settings=HOW)
    assert found.design is None
    assert "whole documents" in found.why
    single = {one.classifier: one.auc.value for one in found.gaps}
    assert max(single["words"], single["form"]) < 0.7
