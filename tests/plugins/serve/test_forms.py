"""The options of commands as forms, and filled forms as arguments."""

import pytest

from pretrace.plugins.serve.forms import COMMANDS, CommandForm, Field, forms
from pretrace.plugins.serve.workspace import RequestError

FORMS = forms()


def fields(command):
    return {field.name: field for field in FORMS[command].fields}


def test_every_test_has_a_form_that_names_a_model_and_no_output():
    assert set(COMMANDS.values()) <= FORMS.keys()
    for form in FORMS.values():
        names = [field.name for field in form.fields]
        assert ("model" in names) != (form.command == "scan")  # a search asks no model
        assert not {"out", "texts", "plugin", "trust-remote-code", "allow-pickle"} & {*names}


def test_a_number_keeps_its_bounds():
    form = CommandForm(("made", "up"), "", (Field("months", "number", "How many.", least=1, most=120),))
    assert form.arguments({"months": ["120"]}, str) == ["--months=120"]
    for written in ("121", "0", "many", "nan"):
        with pytest.raises(RequestError, match="Months is a number, 1 to 120"):
            form.arguments({"months": [written]}, str)


def test_a_value_cannot_become_another_option():
    given = {"model": ["--plugin=evil.py"], "controls": ["u"], "score": ["loss"]}
    made = FORMS["flag"].arguments(given, lambda upload: f"/w/{upload}.jsonl")
    assert made == ["--model=--plugin=evil.py", "--controls=/w/u.jsonl", "--score=loss"]


def test_lines_become_an_option_each():
    given = {"model": ["m"], "placebo": ["one\n two \n\n"], "power": ["on"]}
    made = FORMS["canaries"].arguments(given, str.upper)
    assert made == ["--model=m", "--placebo=one", "--placebo=two", "--power"]
