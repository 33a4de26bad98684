"""The public names are where they are said to be; importing them or asking for help loads no heavy library."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pretrace


def test_a_name_that_is_not_public_is_no_attribute():
    assert set(pretrace.__all__) <= set(dir(pretrace))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pretrace.nothing


HEAVY = {
    "torch", "transformers", "peft", "sklearn", "scipy", "matplotlib", "pyarrow", "datasets", "pandas", "numpy",
    "regex", "jinja2", "selectolax", "numba", "rensa", "tokenizers", "safetensors", "ray", "fastapi",
}  # fmt: skip
"""What neither the public names nor the list of commands may need."""


def imported_by(code, **environment):
    """All modules that a new Python has imported once it has run the code."""
    told = "import atexit, sys; atexit.register(lambda: print('\\n', *sys.modules))\n"
    done = subprocess.run(
        [sys.executable, "-c", told + code], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert not done.returncode, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_importing_pretrace_imports_nothing_but_itself():
    found = imported_by("import pretrace")
    assert {name for name in found if name.startswith("pretrace")} == {"pretrace"}
    late = HEAVY | {"cyclopts", "rich", "dataclasses", "inspect"}
    assert not {name.partition(".")[0] for name in found} & late


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["build", "--help"]])
def test_the_list_of_commands_imports_no_command(words):
    code = f"import sys; sys.argv = ['pretrace', *{words}]; from pretrace.cli import main; main()"
    found = imported_by(code)
    assert {name.partition(".")[0] for name in found} & HEAVY == set()
    assert {name.split(".")[1] for name in found if name.startswith("pretrace.")} <= {
        "cli", "errors", "plugins", "registry", "results", "settings"
    }  # fmt: skip


NAMED = """
from pretrace.baselines import gap
from pretrace.baselines import classifiers
from pretrace.corpora import known_corpora
from pretrace.tuning.plan import methods
list(known_corpora()), methods.make("lora")
[classifiers.make(name) for name in ("gpt2(epochs=1)", "pretrained", "embeddings")]
"""


def test_naming_corpora_methods_and_classifiers_loads_only_small_libraries():
    found = {name.partition(".")[0] for name in imported_by(NAMED)}
    assert found & HEAVY <= {"numpy", "regex", "selectolax", "tokenizers"}


def test_a_name_is_taken_from_where_type_checkers_see_it():
    source = ast.parse(Path(pretrace.__file__).read_text(encoding="utf-8"))
    [typed] = [one for one in source.body if isinstance(one, ast.If) and len(one.body) > 5]
    imports = (one for one in typed.body if isinstance(one, ast.ImportFrom))
    seen = {name.name: one.module for one in imports for name in one.names}
    assert seen == pretrace._PLACE_OF
    assert set(seen) | {"__version__"} == set(pretrace.__all__)
    for name, module in seen.items():
        assert getattr(pretrace, name) is getattr(importlib.import_module(str(module)), name)


def test_the_version_is_the_same_wherever_it_stands():
    """And installed from sources it may lag behind: the installed metadata is not asked."""
    root = Path(pretrace.__file__).parents[2]
    named = {name: (root / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "CITATION.cff")}
    assert f'version = "{pretrace.__version__}"' in named["pyproject.toml"]
    assert f"version: {pretrace.__version__}\n" in named["CITATION.cff"]
