"""The docstrings of the standard library as a corpus."""

import sys

import pytest

from pretrace.corpora import stdlib as module
from pretrace.corpora.stdlib import stdlib
from pretrace.errors import TextsError


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
    assert {text.group for text in made.texts} == {"a", "a.c"}
    assert made.notes == (
        "docstrings left out for standing elsewhere too, where they were kept: 1.",
        "source files left out for not parsing: 2.",
    )
    assert "b" not in sys.modules
    short = stdlib(min_chars=9, max_chars=9)
    assert [text.text for text in short.texts] == ["Doc of a.", "Doc of K.", "Setter \ufffd.", "Doc of b."]
    assert short.notes[0] == "docstrings left out for having more than 9 characters: 2."
    with pytest.raises(TextsError, match="no docstring"):
        stdlib(min_chars=10**7)
