"""The report of a flagging: what it says to whom, safe with hostile names, and the same bytes again."""

import numpy as np
import pytest
from report.flaggings import flagging, known_of, texts_of
from report.test_report_html import render, words

from pretrace.types import Check, Skipped
from pretrace.verdicts.flag.concluding import SetTest


def made(outcome="flagged", texts=60, known=200, **changes):
    rng = np.random.default_rng(3)
    scores = rng.normal(size=texts)
    chosen = np.zeros(texts, dtype=bool)
    if outcome == "flagged":
        chosen[:7], scores[:7] = True, 5.0 + rng.normal(size=7)
    told = outcome != "refused"
    p = np.where(chosen, 1 / (known + 1), rng.random(texts)) if told else np.zeros(0)
    ids = tuple(f"text {i}" for i in range(texts))
    others = tuple(f"k{i}" for i in range(known))
    status = "passed" if told else "failed"
    models, alike = (
        {"target": {"name": "some/model"}},
        ("words", "Alike by words", status, "AUC 0.9.", "Take others."),
    )
    given = {
        "corpus": "mine", "model": "some/model", "score": "min_k_plus_plus",
        "statement": "Refused: they differ." if not told else "7 of the 60 texts of mine are flagged.",
        "set_test": SetTest(0.0004, 0.05, 9, 3.0, 4, 9999) if told else None,
        "checks": (Check(*alike, {"auc": [0.9, 0.8, 0.95]}),),
        "skipped": (Skipped("nothing", "the text is empty", 0),),
        "settings": {"seed": 0, "models": models, "texts": {"sha256": "ab" * 32}},
    } | changes  # fmt: skip
    columns = {"documents": ids, **given.pop("columns", {})}
    names = columns.pop("ids", ids)
    asked = texts_of(names, columns.pop("scores", scores), p, chosen.tolist(), **columns)
    return flagging(outcome, asked, known_of(others, rng.normal(size=known)), **given)


def test_a_first_page_for_anybody():
    said = words(render(made()))
    for part in (
        *("7 of 60 texts flagged", "nothing (the text is empty)", "ab" * 32),
        "on average at most 5% are flagged wrongly: here less than one of the 7",
        "60 texts of “mine” were set beside 200 documents of “known”",
    ):
        assert part in said
    assert "prove" not in said


def test_a_refusal_shows_no_p_values():
    said = words(render(made("refused")))
    assert all(
        one in said for one in ("No text is flagged or cleared", "Alike by words AUC 0.9.", "withheld")
    )
    assert said.count("Refused") == 1


def test_the_set_as_a_whole_has_its_sentence_its_figure_and_its_own_rate():
    said = words(render(made("set", statement="No single text is flagged, but as a whole they do.")))
    for words_of in (
        "The set as a whole stands out No single text is flagged",
        "The set as a whole stands out (p = 0.0004, tested at a level of 5%). Of its documents, 9 of 60 are above",
        "about 3 would be expected there",
        "p = 0.0004 at a level of 5%; 9,999 permutations",
        "from 4 texts on that stand above all known ones",
    ):
        assert words_of in said
    no = SetTest(None, 0.05, 9, 3.0, 4, 9999, "the two sets also differ a little by their words")
    passed = (Check("words", "Alike by words", "passed", "AUC 0.53."),)
    withheld = words(render(made("refused", set_test=no, checks=passed)))
    assert (
        "The set as a whole: no answer, because the two sets also differ a little by their words" in withheld
    )


@pytest.mark.parametrize("scores", [[0.0], [1e300], [-3.0, -3.0]])
def test_few_and_odd_scores_are_drawn(scores):
    one = made("none", texts=len(scores), columns={"scores": np.array(scores)})
    assert "<svg" in render(one)
    many = made("none", texts=150)
    said = words(render(many))
    assert "The 100 highest scores of 150" in said
    assert f" text {many.table('flags')['score'].argmax()} " in said
