"""The tests of this package, run by pytest."""

from my_package.letters import Letters
from my_package.lift import Lift
from my_package.ranked import ranked

from pretrace.testing import check_model, check_score, check_test, made_texts


def test_scores() -> None:
    check_score("confident(p=0.1)")
    check_score(Lift())


def test_model() -> None:
    check_model(Letters("the quick brown fox", 100))


def test_verdict() -> None:
    others = made_texts("others", 40)
    check_test(lambda text, models: ranked(text, others, models), made_texts("mine", 1))
