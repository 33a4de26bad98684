"""The sentences of tests and checks: what the code names is there, and numbers are filled in."""

import re
from pathlib import Path

import pytest

import pretrace.verdicts
from pretrace.verdicts.wording import fill, say, sentences_of, word_check

SOURCES = [path.read_text(encoding="utf-8") for path in Path(pretrace.verdicts.__path__[0]).rglob("*.py")]
KINDS = sorted(
    {
        kind
        for text in SOURCES
        for kind in re.findall(r'(?<!\w)(?:say|of_kind|sentences_of)\(\s*"([^"]+)"', text)
    }
)
CHECKS = sorted({kind for text in SOURCES for kind in re.findall(r'word_check\(\s*"([^"]+)"', text)})


@pytest.mark.parametrize("kind", KINDS)
def test_every_sentence_that_the_code_names_is_there(kind):
    assert sentences_of(kind)


@pytest.mark.parametrize("kind", CHECKS)
def test_every_check_has_a_title_and_words(kind):
    found = sentences_of(kind)
    assert found["title"]
    assert found.keys() - {"title", "cure", "cure_not_run"}


def test_numbers_are_filled_in_and_what_they_say_is_not_read_again():
    assert say("audit.reverse.words", p=0.0123).endswith("well: p = 0.012.")
    assert fill(("{a:,}", {"b": "{a} {closer}"}), a=1234)[0] == "1,234"
    assert fill("of {name}", name="{closer}") == "of {closer}"
    with pytest.raises(KeyError):
        fill("{nothing}")


def test_a_check_keeps_the_cure_that_its_status_takes():
    good, bad, unmade = (
        word_check("flag.runs", made, words="few", documents=3) for made in (True, False, None)
    )
    assert (good.status, bad.status, unmade.status) == ("passed", "failed", "not run")
    assert (good.cure, bad.cure) == ("", unmade.cure)
    assert bad.cure.startswith("Give a group")
    assert word_check("audit.kinds", None, words="wordless").cure == ""
