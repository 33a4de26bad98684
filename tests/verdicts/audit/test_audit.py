"""Whole audits: members found, non-members not, and every way to be wrong.

Where something is generated, generator and base are real tiny models; else a model is made of numbers. The target is
the base with what it remembers added, so that exposure is all they differ in (benchmarks/audits/command.py audits
models that were really trained).
"""

import dataclasses
import re

import numpy as np
import pytest
from report.audits import answer_of, plan_of
from tiny import MORE_WORDS

from pretrace.backends import open_model
from pretrace.scoring.plan import Models
from pretrace.testing import Memory
from pretrace.tuning.architectures import Architecture
from pretrace.tuning.planting import PlantSettings, plant
from pretrace.types import Corpus, Text
from pretrace.verdicts.audit import checks
from pretrace.verdicts.audit.audit import audit
from pretrace.verdicts.audit.checks import ALIKE, COMPARABLE
from pretrace.verdicts.audit.data import CONTROL, SUSPECT, AuditSettings, documents_of, figures_of, pairs_of
from pretrace.verdicts.audit.snippets import SnippetSettings
from pretrace.verdicts.recompute import recompute

TINY = Architecture(layers=2, width=64, heads=4, vocabulary=300, max_tokens=128)
METHOD = "lora(rank=4, epochs=1, learning_rate=0.0003, on='all')"
HOW = AuditSettings(snippets=SnippetSettings(tokens=24, most=4), method=METHOD, cache=False)
CHARACTERS = dataclasses.replace(HOW, snippets=SnippetSettings(tokens=64, most=4))
"""For models whose tokens are characters."""


def made_up(name, number, *, seed, mixed=0.0, length=60):
    """Documents of words drawn one by one, which a model soon writes as well as anybody; a share of them, `mixed`,
    are words that stand nowhere else."""
    rng = np.random.default_rng(seed)
    other = ["Zug", "grün", "Öl"]
    words = np.array([*MORE_WORDS, *other])
    p = np.array([(1 - mixed) / len(MORE_WORDS)] * len(MORE_WORDS) + [mixed / len(other)] * len(other))
    texts = (Text(f"{name}{i}", " ".join(rng.choice(words, length, p=p))) for i in range(number))
    return Corpus(name, tuple(texts))


MEMBERS, OTHERS, FRESH = (made_up(name, 40, seed=s) for name, s in (("mine", 2), ("others", 3), ("fresh", 9)))
UNLIKE = made_up("unlike", 40, seed=4, mixed=0.04)
"""About half of its snippets hold a word that none of the others does."""
FOREIGN = made_up("foreign", 40, seed=5, mixed=1.0)


class Remembers:
    """A model that gives every token a little more than `base` does where it stands, with so many tokens before it, in
    the texts it remembers, and everywhere else some more or less by lot, most of it as all such models do: exposure and
    nothing else."""

    def __init__(self, base, name, texts=None, *, back=8):
        for same in ("offers", "tokenizer_hash", "vocabulary", "max_tokens", "encode", "spans", "pack"):
            setattr(self, same, getattr(base, same))
        self.base, self.name, self.back = base, name, back
        self.fingerprint = f"{base.fingerprint} {name}"
        self.facts = {**base.facts, "name": name, "weights": name}
        encoded = base.encode([text.text for text in texts.texts] if texts else [])
        self.known = {run for one in encoded for run in self.runs(one.tokens.tolist())}

    def runs(self, ids):
        """Each token with those before it."""
        return [tuple(ids[max(0, i + 1 - self.back) : i + 1]) for i in range(len(ids))]

    def run(self, batch, want, states=frozenset(), /):
        traces = []
        for one, trace in zip(batch, self.base.run(batch, want, states), strict=True):
            ids = one.tokens.tolist()
            met = np.array([run in self.known for run in self.runs(ids)][-len(trace) :])
            noise = np.random.default_rng(ids).normal(0, 0.4, len(trace))
            noise += np.random.default_rng([len(self.name), *ids]).normal(0, 0.3, len(trace))
            logp = (trace.logp + noise + 0.3 * met).astype(np.float32)
            traces.append(dataclasses.replace(trace, logp=logp))
        return traces


NUMBERS = Memory(name="numbers")
CULPRIT = Remembers(NUMBERS, "culprit", MEMBERS, back=32)
NEVER = Remembers(NUMBERS, "never saw them")
STRANGER = Remembers(NUMBERS, "stranger", back=32)
STRANGER.tokenizer_hash = "other tokens"
"""Of another family."""


@pytest.fixture(scope="module", autouse=True)
def _quick():
    """Classifiers compare the same texts once."""
    compared = {}

    def once(cuts, settings, seed):
        key = repr((cuts, settings.classifiers, seed))
        if key not in compared:
            compared[key] = gaps(cuts, settings, seed)
        return compared[key]

    with pytest.MonkeyPatch.context() as patch:
        gaps = checks.gaps_between
        patch.setattr("pretrace.verdicts.audit.checks.gaps_between", once)
        yield


@pytest.fixture(scope="module")
def base(trained):
    """A model that writes such texts; the target is the base that remembers the members."""

    def make(folder):
        new = PlantSettings(share=0.9, epochs=9, batch=16, learning_rate=5e-3, threads=1, architecture=TINY)
        plant(made_up("background", 120, seed=1), settings=new, folder=folder / "base")

    return open_model(str(trained(make) / "base"))


def against(base, corpus, *placebos, **more):
    models = Models(Remembers(base, "target", MEMBERS), placebos=placebos or (base,))
    return audit(corpus, models, generator=base, **{"settings": HOW, **more})


def made_again(audit):
    """What `runs verify` computes of the tables, by name; it must agree."""
    found = {one.name: one for one in recompute(audit)}
    assert all(one.agrees for one in found.values())
    return found


def status(audit):
    return {check.name: check.status for check in audit.checks}


def test_without_control_documents_members_stand_out_and_are_no_accusation(base):
    found, null = (against(base, corpus) for corpus in (MEMBERS, OTHERS))
    snippets = null.settings["snippets"]
    assert snippets["judged"] == len(pairs_of(null, SUSPECT))  # and was not learnt from
    assert snippets["generator_learnt_from"] + snippets["judged"] == snippets["cut"]
    assert (figures_of(found).design, found.outcome) == ("placebos", "inconclusive"), found.reasons
    assert [name for name, one in status(found).items() if one == "failed"] == ["controls"]
    assert (found.p < 0.01, found.effect.low > 0) == (True, True)
    assert {"p", "effect", "outcome", "statement"} <= made_again(found).keys()
    assert any(name.startswith("p (“No difference in the opposite") for name in made_again(null))
    assert set(found.table("values")["model"]) == {"target"}  # no second model is asked without controls
    assert "second" not in status(found)
    assert set(found.table("values")["margin"]) == {figures_of(found).margin} != {0.0}
    assert set(figures_of(found).plan.cures) <= set(found.advice)
    assert found.settings["models"]["generator"]["name"]
    assert documents_of(found, SUSPECT)[0] == tuple(sorted(text.id for text in MEMBERS.texts))
    assert found.effect.value == pytest.approx(documents_of(found, SUSPECT)[1].mean())
    assert figures_of(found).leans == figures_of(null).leans
    # without a power test nothing is never said
    assert (null.p > 0.05, null.outcome) == (True, "inconclusive")
    assert null.settings["models"]["target"]["weights"] == "target"
    assert figures_of(null).plan.outcomes == ("inconclusive",)
    # the placebo that the audit tunes takes part
    names = [answer.facts["placebo"] for answer in figures_of(found).answers]
    assert names == [base.name, f"{base.name} + lora"]
    assert found.p == max(answer.p for answer in figures_of(found).answers)
    assert found.settings["models"]["placebo 2"]["adapter"]["method"].startswith("lora(rank=4")
    assert [one.name for one in figures_of(found).placebos] == [base.name]
    assert figures_of(found).placebos[0].grade == "sibling"
    assert figures_of(found).placebos[0].closeness is not None


def test_the_largest_p_of_all_placebos_counts(base):
    """A placebo that saw the texts hides them, so a single one of those named takes the rejection back."""
    saw = Remembers(base, "saw them as well", MEMBERS)
    result = against(base, MEMBERS, base, saw)
    p = {answer.facts["placebo"]: answer.p for answer in figures_of(result).answers}
    assert len(p) == 3
    assert p[base.name] < 0.01 < 0.05 < p[saw.name] == max(p.values()) == result.p
    assert result.outcome == "inconclusive"
    assert figures_of(result).placebo.name == saw.name


def test_control_documents_that_differ_as_texts_are_compared_by_differences(base):
    found, null = (against(base, corpus, heldout=UNLIKE) for corpus in (MEMBERS, OTHERS))
    for result in (found, null):
        assert figures_of(result).design == "differences"
        assert ALIKE + 0.02 < figures_of(result).gaps[0].auc.value < COMPARABLE - 0.02
        assert set(documents_of(result, CONTROL)[0]) == {text.id for text in UNLIKE.texts}
        assert pairs_of(result, SUSPECT)
        assert {pair.document for pair in pairs_of(result, CONTROL)} == set(documents_of(result, CONTROL)[0])
        assert [answer.facts["placebo"] for answer in figures_of(result).answers] == [f"{base.name} + lora"]
        assert figures_of(result).facts["margin"] == 0
        assert not figures_of(result).leans
    assert found.p < 0.01 < null.p
    # The base sees as well that the two kinds of text differ, so nobody is accused.
    assert (found.outcome, status(found)["second"]) == ("inconclusive", "failed")
    assert null.outcome == "inconclusive"


def direct(corpus, *placebos, **more):
    models = Models(CULPRIT, placebos=placebos)
    return audit(corpus, models, **{"heldout": FRESH, "settings": CHARACTERS, **more})


@pytest.mark.parametrize("placebos", [(NEVER,), (STRANGER,)], ids=["of the family", "of another"])
def test_control_documents_and_a_second_model_give_a_valid_answer(placebos):
    found, null = direct(MEMBERS, *placebos), direct(OTHERS, *placebos)
    family = placebos[0] is NEVER
    for result in (found, null):
        assert figures_of(result).design == "controls"
        assert set(documents_of(result, CONTROL)[0]) == {text.id for text in FRESH.texts}
        assert not pairs_of(result, SUSPECT)
        assert status(result)["placebo"] == ("passed" if family else "not run")
        assert status(result)["second"] == "passed"
        [answer] = figures_of(result).answers
        assert answer.facts["placebo"] == (placebos[0].name if family else None)
        assert (figures_of(result).placebo is None) == (not family)
    assert (found.outcome, found.p < 0.01) == ("consistent", True), found.reasons
    assert (status(found)["mixture"], status(null)["mixture"]) == ("passed", "not run")
    assert {"p", "outcome"} <= made_again(found).keys() & made_again(null).keys()
    mine, controls = (documents_of(found, side)[1].mean() for side in (SUSPECT, CONTROL))
    assert found.effect.value == pytest.approx(mine - controls)
    assert (null.p > 0.05, null.outcome) == (True, "inconclusive")


def test_the_opposite_direction_is_no_training():
    """The control documents are the ones it knows: no rejection, and the audit says that something is wrong."""
    turned = direct(OTHERS, NEVER, heldout=MEMBERS)
    assert turned.p > 0.95
    assert (turned.outcome, status(turned)["reverse"]) == ("inconclusive", "failed")


def test_other_procedures_are_shown_and_decide_nothing():
    names = ("paper", "original", "release")
    found = direct(OTHERS, NEVER, settings=dataclasses.replace(CHARACTERS, also=names))
    assert tuple(one.procedure for one in figures_of(found).variants) == names
    assert all(0 <= one.p <= 1 for one in figures_of(found).variants)
    assert answer_of(found) == answer_of(direct(OTHERS, NEVER))
    paper = direct(OTHERS, NEVER, settings=dataclasses.replace(CHARACTERS, procedure="paper"))
    values = paper.table("values")
    own, controls = (values["value"][values["control"] == side].mean() for side in (0, 1))
    assert paper.effect.value != pytest.approx(own - controls)  # which is that of the default procedure
    assert "mixture" not in status(paper)
    assert made_again(paper).keys() == {"outcome", "statement"}  # its p does not follow from the tables


def test_a_procedure_of_the_literature_goes_on_without_a_design_and_is_not_believed(base):
    chosen = dataclasses.replace(HOW, procedure="paper")
    alone = audit(MEMBERS, Remembers(base, "target", MEMBERS), generator=base, settings=chosen)
    assert (figures_of(alone).procedure, alone.outcome) == ("paper", "inconclusive")
    assert status(alone)["placebo"] == status(alone)["controls"] == "failed"
    apart = direct(MEMBERS, settings=dataclasses.replace(CHARACTERS, procedure="paper"), heldout=FOREIGN)
    assert (status(apart)["gap"], apart.outcome) == ("failed", "inconclusive")


def test_nothing_is_said_where_planting_excludes_what_was_found(base):
    models = Models(base, placebos=(Remembers(base, "never saw them"),))
    found = {}
    for epochs, rate in ((1, 1e-7), (20, 2e-2)):
        power = PlantSettings(epochs=epochs, batch=4, learning_rate=rate, threads=1)
        settings = dataclasses.replace(HOW, power=(power,))
        found[epochs] = audit(OTHERS, models, heldout=FRESH, settings=settings)
    weak, strong = (one.planted for one in found.values())
    assert weak.planted == strong.planted == 20
    assert weak.probability.value < 0.2 < 0.9 < strong.probability.value
    assert [one.outcome for one in found.values()] == ["inconclusive", "nothing"]
    assert [status(one)["power"] for one in found.values()] == ["failed", "passed"]
    assert all("nothing" in plan_of(one).outcomes for one in found.values())


def test_power_is_not_measured_beside_a_rejection(monkeypatch):
    monkeypatch.setattr("pretrace.verdicts.frame.check_plantable", lambda target: None)
    found = direct(MEMBERS, NEVER, settings=dataclasses.replace(CHARACTERS, power=(PlantSettings(),)))
    assert (found.outcome, found.planted, "power" in status(found)) == ("consistent", None, False)


NOTICE = "if this is your first visit be sure to check out the faq! " * 2


def headed(corpus):
    """Every text after a notice, which fills a snippet of 64 characters and more."""
    texts = (dataclasses.replace(t, text=NOTICE + t.text) for t in corpus.texts)
    return dataclasses.replace(corpus, texts=tuple(texts))


def test_boilerplate_on_both_sides_is_left_out_counted_and_named():
    culprit = Remembers(NUMBERS, "culprit", headed(MEMBERS), back=32)
    models = Models(culprit, placebos=(NEVER,))
    found = audit(headed(MEMBERS), models, heldout=headed(FRESH), settings=CHARACTERS)
    (note,) = figures_of(found).plan.notes
    assert int(re.findall(r"in (\d+) snippets", note)[0]) >= len(MEMBERS) + len(FRESH)
    assert "if this is your first visit" in note
    assert note in found.settings["snippets"]["notes"]
    assert found.outcome == "consistent", found.reasons


def test_control_documents_of_another_kind_withhold_an_accusation():
    """Nobody read anything: the target knows one kind better than the placebo does, and six controls are of another."""
    knows = Remembers(NUMBERS, "knows the kind", Corpus("both", (*OTHERS.texts, *FRESH.texts)), back=32)
    strangers = made_up("strangers", 40, seed=11)
    mixed = Corpus("mixed", (*FRESH.texts[:34], *strangers.texts[:6]))
    found = audit(OTHERS, Models(knows, placebos=(NEVER,)), heldout=mixed, settings=CHARACTERS)
    assert (found.p < 0.05, found.outcome) == (True, "inconclusive")
    assert {"mixture", "spread"} & {name for name, one in status(found).items() if one == "failed"}
    assert figures_of(found).sensitivity.left_out < 6


def test_a_placebo_that_reads_worse_must_be_exceeded_by_a_multiple(monkeypatch):
    monkeypatch.setattr(
        "pretrace.verdicts.audit.audit.APART", -1.0
    )  # as if every placebo were far from its target
    found, null = direct(MEMBERS, NEVER), direct(OTHERS, NEVER)
    assert figures_of(null).placebos[0].beyond is None  # nothing was rejected
    p = figures_of(found).placebos[0].beyond
    assert status(found)["placebo"] == ("passed" if p <= 0.05 else "failed")
    assert (found.outcome == "consistent") == (p <= 0.05)
