"""The docstrings of the standard library as a corpus."""

import inspect
import json.decoder
import sys
import textwrap

import pytest

from pretrace.corpora import stdlib as module
from pretrace.corpora.stdlib import stdlib
from pretrace.errors import TextsError


@pytest.fixture(scope="module")
def corpus():
    return stdlib()


def test_agrees_with_inspect(corpus):
    texts = {text.id: text for text in corpus.texts}
    assert texts["json.decoder:JSONDecoder"].text == inspect.getdoc(json.decoder.JSONDecoder)
    assert texts["json.decoder:JSONDecoder"].group == "json.decoder"
    assert texts["textwrap:TextWrapper"].text == inspect.getdoc(textwrap.TextWrapper)
    assert texts["json:<module>"].text == inspect.cleandoc(json.__doc__ or "")


def test_limits(corpus):
    short = stdlib(max_chars=400)
    assert {text.id for text in short.texts} <= {text.id for text in corpus.texts}
    assert max(len(text.text) for text in short.texts) <= 400
    left_out = sum(len(text.text) > 400 for text in corpus.texts)
    assert any(note.startswith("docstrings left out for having more than 400") for note in short.notes)
    assert len(short) + left_out == len(corpus)
    with pytest.raises(TextsError, match="no docstring"):
        stdlib(min_chars=10**7)


def test_reads_and_never_runs(tmp_path, monkeypatch):
    sources = {
        "b.py": "'''Doc of b.'''\nraise SystemExit\n",
        "a/__init__.py": "'''Doc of a.'''\n",
        "a/c.py": """
class K:
    '''Doc of K.'''
    @property
    def p(self):
        '''
        Getter,
            indented.
        '''
    @p.setter
    def p(self, value):
        '''Setter \\ud800.'''
if 1:
    async def q():
        def inner():
            'Inner doc.'
else:
    def q(): "Doc of b."
""",
        "test/t.py": "'''Test doc.'''",
        "site-packages/s.py": "'''Installed doc.'''",
        "broken.py": "'''Broken doc.'''\nprint 1",
        "nul.py": "'''Doc\x00.'''",
    }
    for name, source in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    monkeypatch.setattr(module.sysconfig, "get_path", lambda name: str(tmp_path))
    made = stdlib(min_chars=1)
    assert [(text.id, text.text) for text in made.texts] == [
        ("a:<module>", "Doc of a."),
        ("a.c:K", "Doc of K."),
        ("a.c:K.p", "Getter,\n    indented."),
        ("a.c:K.p~2", "Setter \ufffd."),
        ("a.c:q.inner", "Inner doc."),
        ("a.c:q", "Doc of b."),
    ]
    assert made.notes == (
        "docstrings left out for standing elsewhere too, where they were kept: 1.",
        "source files left out for not parsing: 2.",
    )
    assert "b" not in sys.modules
