"""Plug-ins: a file loaded by its path, and the package of examples/plugins, installed and used by the command."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pretrace
from pretrace.backends import known_backends, open_tokenizer
from pretrace.errors import ExpressionError, ModelError
from pretrace.frequencies import Frequencies
from pretrace.registry import backends, corpora, load_plugin, rewrites, scores
from pretrace.testing import make_evidence
from pretrace.types import Reference

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "plugins"
ANNOTATIONS = "from __future__ import annotations"
REGISTRIES = (scores, corpora, backends, rewrites)
SCORE = """
from dataclasses import dataclass
from pretrace.registry import scores
from pretrace.types import Needs, Quantity
@scores.add("{name}")
@dataclass(frozen=True)
class Length:
    '''How long a text is.'''
    times: float = {times}
    needs = Needs(Quantity.LOGP)
    def __call__(self, evidence):
        return self.times * len(evidence.text.text)
"""


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    """What a test registers is forgotten afterwards, also that packages were asked."""
    for registry in REGISTRIES:
        list(registry)
        for name in ("_factories", "_origins"):
            monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
        monkeypatch.setattr(registry, "_group", "")


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


class TestFiles:
    def test_what_it_registers_can_be_named(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        loaded = [load_plugin(EXAMPLES / f"{name}.py") for name in ("confident", "paragraphs", "letters")]
        assert loaded == [("score confident",), ("corpus paragraphs",), ("back end letters",)]
        written(tmp_path / "note.md", "It rained until noon.\n\nThen it snowed.")
        sample = written(tmp_path / "fox.txt", "the quick brown fox")
        model = pretrace.open_model(f"letters:{sample}", max_tokens=10)
        assert model.max_tokens == 10
        run = pretrace.detect(
            pretrace.open_corpus("paragraphs(folder='.', min_chars=12)"), model, "loss,confident(p=0.1)"
        )
        assert run.ids == ("note:0", "note:1")
        assert f"[{EXAMPLES / 'confident.py'}]" in scores.summary("confident")
        assert known_backends()["letters:NAME"].startswith("Predicts each character")
        # errors of the back end are its own
        with pytest.raises(ModelError, match=r"letters: there is no file nowhere\.txt"):
            pretrace.open_model("letters:nowhere.txt")
        with pytest.raises(ModelError, match="brings no tokenizer"):
            open_tokenizer("letters:nowhere.txt")

    def test_a_file_loaded_again_replaces_what_it_registered(self, tmp_path):
        path = written(tmp_path / "mine.py", SCORE.format(name="mine", times=1.0))
        load_plugin(path)
        written(path, SCORE.format(name="mine", times=2.0))  # of the same size, in the same second
        assert load_plugin(str(path)) == ("score mine",)
        assert scores.signature("mine") == "mine(times=2.0)"
        (tmp_path / "too").mkdir()
        load_plugin(written(tmp_path / "too" / "mine.py", SCORE.format(name="namesake", times=1.0)))
        written(path, SCORE.format(name="other", times=2.0))
        load_plugin(path)
        assert {"other", "namesake"} <= set(scores)
        assert "mine" not in scores
        written(path, SCORE.format(name="mine", times=1.0) + "\nundefined\n")
        with pytest.raises(ExpressionError, match="cannot be loaded"):
            load_plugin(path)
        assert "mine" not in scores  # nothing stays of a file that fails
        written(path, SCORE.format(name="mine", times=1.0))
        load_plugin(path)
        assert "mine" in scores

    def test_annotations_are_those_of_the_file(self, tmp_path):
        text = SCORE.format(name="mine", times=1.0)
        # dataclasses look for the module of annotations that are texts
        for more in (text + "assert Length.__annotations__ == {'times': float}\n", f"{ANNOTATIONS}\n{text}"):
            load_plugin(written(tmp_path / "mine.py", more))
            with pytest.raises(ExpressionError, match="times must be a number"):
                scores.make("mine(times='a')")

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("import json\n\nundefined\n", r"NameError: name 'undefined' is not defined \(.*mine.py, line 3\)\.$"),
            ("import json\ndef f(:\n", r"invalid syntax \(.*mine.py, line 2\)\.$"),
            ("def f():\n    1/0\n\nf()\n", r"ZeroDivisionError: division by zero \(.*mine.py, line 2\)\.$"),
            ("import json\njson.loads('{')\n", r"JSONDecodeError: .* \(.*mine.py, line 2\)\.$"),
            ("import sys\nsys.exit(3)\n", r"SystemExit: 3 \(.*mine.py, line 2\)\.$"),
            ("x = 1\n", r"mine.py registers nothing: put @scores.add"),
            (SCORE.format(name="loss", times=1), r"a score called 'loss' is built in.*mine.py, line \d\)\.$"),
            (SCORE.format(name="min-k", times=1), r"'min-k' names no score: take letters, digits and _"),
            ("from pretrace.registry import backends\nbackends.add('smollm2')(print)\n", "'smollm2' is built in"),
        ],
    )  # fmt: skip
    def test_one_line_says_what_is_wrong(self, tmp_path, text, said):
        path = written(tmp_path / "mine.py", text)
        with pytest.raises(ExpressionError, match=said) as caught:
            load_plugin(path)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)


class TestPackages:
    """Entry points of packages that are nothing but metadata beside a module in a folder."""

    @pytest.fixture
    def install(self, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(str(tmp_path))

        def installing(module, text, group="pretrace.scores"):
            written(tmp_path / f"{module}.py", text)
            info = tmp_path / f"{module}-1.0.dist-info"
            info.mkdir()
            written(info / "METADATA", f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
            written(info / "entry_points.txt", f"[{group}]\nany = {module}\n")
            importlib.invalidate_caches()
            monkeypatch.setattr(scores, "_group", "pretrace.scores")

        yield installing
        for path in tmp_path.glob("*.py"):
            sys.modules.pop(path.stem, None)

    def test_a_broken_package_is_named_and_the_others_work(self, install):
        install("pretrace_test_broken", "import json\nundefined\n")
        install("pretrace_test_taken", SCORE.format(name="loss", times=1.0))
        install("pretrace_test_whole", SCORE.format(name="whole", times=1.0))
        with pytest.warns(UserWarning, match="cannot be loaded") as caught:
            assert "whole" in set(scores)
        told = sorted(str(one.message) for one in caught)
        assert len(told) == 2
        assert re.search(r"package pretrace_test_broken .*NameError.*broken.py, line 2\)\.$", told[0])
        assert re.search(r"package pretrace_test_taken .*'loss' is built in", told[1])
        assert scores.summary("whole") == "How long a text is. [package pretrace_test_whole]"
        assert scores.make("loss") == pretrace.scores.parse("loss")["loss"]

    @pytest.mark.filterwarnings("error")
    def test_packages_are_asked_once_and_only_for_unknown_names(self, install):
        install("pretrace_test_broken", "undefined\n")
        scores.make("min_k(k=0.1)")
        warned = pytest.warns(UserWarning, match="pretrace_test_broken")
        with warned, pytest.raises(ExpressionError, match="no score"):
            scores.make("nothing_of_the_kind")
        assert "nothing_of_the_kind" not in set(scores)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package of examples/plugins, installed by pip into a folder of its own, without a network."""
    desk = tmp_path_factory.mktemp("package")
    package = shutil.copytree(EXAMPLES, desk / "my-package")
    pip = "-m pip install --quiet --no-deps --no-build-isolation --no-index -t".split()  # noqa: SIM905
    pip = [sys.executable, *pip, str(desk / "site"), str(package)]
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (desk / "notes").mkdir()
    monday = "It rained until noon on the hills.\n\nThen it snowed in the valley."
    written(desk / "notes" / "monday.md", monday)
    written(desk / "fox.txt", "the quick brown fox jumps over the lazy dog")
    return desk


@pytest.fixture
def ran(installed, program):
    """Runs the command, or other code, in a process that finds the package; what it left and said."""
    here = f"import os, sys; os.chdir({str(installed)!r}); sys.path.insert(0, {str(installed / 'site')!r})\n"

    def run(*arguments, code="from pretrace.cli import main; main()"):
        process = program(here + code, *arguments)
        out, said = process.communicate()
        return subprocess.CompletedProcess(arguments, process.returncode, out, said)

    return run


def test_an_installed_package_brings_its_score_corpus_and_back_end(installed, ran):
    corpus, wanted = "paragraphs(folder='notes', min_chars=12)", "loss,confident(p=0.01)"
    done = ran("score", corpus, "--model", "letters:fox.txt", "--scores", wanted, "--out", "RUN")
    assert done.returncode == 0, done.stderr
    run = pretrace.load_run(installed / "RUN")
    assert run.ids == ("monday:0", "monday:1")
    assert run.corpus == corpus
    sample = [*"the quick brown fox jumps over the lazy dog"]
    logp = np.log(
        [(sample.count(c) + 1) / (0x110000 + len(sample)) for c in "It rained until noon on the hills."[1:]]
    )
    assert np.isclose(run.column("loss")[0], logp.mean(), atol=1e-4)
    assert run.column("confident(p=0.01)").tolist() == [0, 0]


def test_an_installed_package_adds_a_command(ran):
    assert "longest" in ran("--help").stdout
    done = ran("longest", "notes", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["id"].startswith("monday")
    assert ran("longest").returncode == 2  # texts are missing, as with a command of ours


def test_an_installed_package_adds_a_test_and_the_section_of_its_report(installed, ran):
    made = """
import pretrace
from my_package.ranked import ranked
from pretrace.testing import Memory, made_texts

models = pretrace.Models(Memory(), placebos=(Memory(name="second"),))
found = ranked(made_texts("mine", 1), made_texts("others", 40), models)
pretrace.save_verdict(found, "RANKED")
"""
    done = ran(code=made)
    assert done.returncode == 0, done.stderr
    found = json.loads(ran("runs", "verify", "RANKED", "--json").stdout)
    assert {one["name"]: one["state"] for one in found["checks"]}["numbers"] == "yes"
    assert "<p>41 texts were ranked.</p>" in (installed / "RANKED/report.html").read_text(encoding="utf-8")


def test_the_package_passes_its_own_checks(ran):
    checks = (
        "import pytest; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', 'site/my_package/checks.py']))"
    )
    done = ran(code=checks)
    assert done.returncode == 0, done.stdout


def test_list_says_which_package_a_name_comes_from(ran):
    done = ran("list")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    for name in ("confident(p=0.5)", "paragraphs(folder='notes', min_chars=200)", "letters:NAME"):
        assert re.search(rf"{re.escape(name)} [^\[\]]*\[package my-package\]", said), name
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    ("file", "added"), [("confident.py", "score confident"), ("paragraphs.py", "corpus paragraphs")]
)
def test_a_fresh_process_is_told_what_a_file_added_and_nothing_else(tmp_path, file, added):
    """Issue 40: the first plug-in of a process was said to have registered all that is built in, and loading it again
    removed that."""
    shutil.copy(EXAMPLES / file, tmp_path)
    program = (
        "from pretrace.registry import corpora, load_plugin, scores\n"
        f"first, again = load_plugin({file!r}), load_plugin({file!r})\n"
        f"assert first == again == ({added!r},), (first, again)\n"
        "assert 'loss' in scores and 'stdlib' in corpora"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_page_shows_the_score_of_the_examples_and_another_is_fitted_first():
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    assert (EXAMPLES / "confident.py").read_text(encoding="utf-8").partition("\n\n")[2] in page
    counts = Frequencies(np.array([6, 1, 0]), tokenizer_hash="by hand")  # f = 0.7, 0.2, 0.1
    load_plugin(EXAMPLES / "lift.py")
    fitted = scores.make("lift").fit(Reference(counts, vocabulary=3))
    evidence = make_evidence(tokens=[0, 2], logp=np.log([0.7, 0.2]))
    assert np.isclose(fitted(evidence), np.log(2) / 2, atol=1e-6)
