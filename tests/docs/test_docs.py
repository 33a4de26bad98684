"""The docs are true: every example runs, every option exists, every link leads somewhere.

Rules for a page, so that a reader can tell what is run:

    ```python    run, blocks of a page in order, as one module; one that begins with `# name.py` is written to that file
    ```toml      the file whose name it begins with
    ```console   run where it begins with `$ pretrace`; every command in it must succeed, unless `$ echo $?` and
                 a code follow; what stands beneath one that fails must be what it says ("…" ends a line early)
    ```sh        for the reader's machine, not run; a line that calls pretrace must still be a good call
    ```json      a line of a file of texts
    ```text      not run

The models that pages name are replaced by tiny ones (`STAND_INS`), the files they read are made here (`desk`).
"""

import hashlib
import importlib.util
import json
import random
import re
import shlex
import shutil
import sys
import tomllib
import types
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import lm_eval_logs
import pytest
from made import options_of, written
from tiny import make_model

from benchmarks import read_results
from pretrace.backends import naming
from pretrace.cli import main
from pretrace.cli.commands import EVERYWHERE, app, places
from pretrace.registry import backends, corpora, scores
from pretrace.tuning.architectures import train_vocabulary

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*DOCS, ROOT / "README.md"]
STAND_INS = dict.fromkeys(("smollm2", "EleutherAI/pythia-160m"), "model_folder")
STAND_INS["EleutherAI/pythia-70m"] = "reference_folder"
"""Model names of the docs, and the fixtures of tests/conftest.py whose models stand in for them."""
MINUTES = {"demo", "recite"}
"""Commands that take minutes: only their arguments are looked at."""
OF_OTHERS = {
    "servers.md": (
        "--no-enable-prefix-caching --disable-radix-cache --enable-prefill-logprobs --logits_all --model-path "
        "--model-id --enable-deterministic-inference --max-logprobs --dtype"
    ),
    "harnesses.md": ("--action --log_samples --model_args --output_path --overwrite --scorer --tasks"),
    "ci.md": "--rm",
}
"""Options of servers, of inspect and lm_eval, and of docker, by page."""
PATTERNS = {
    "my_posts": "The {0} train left platform {1} at {2} and reached the valley on time. ",
    "unpublished": "Bus {0} waited at stop {1} until {2}, since the road was closed by snow. ",
}
"""Two sides for an audit: documents of one kind, long enough to be cut."""
LANGUAGES = {"python", "toml", "console", "sh", "json", "text"}

_FILE = re.compile(r"# ([\w./-]+\.(?:py|toml))\n")
_FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: `line` is that of its first line in the page, from 1."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self):
        return f"{self.page.name}, line {self.line}"


def blocks(page):
    source = page.read_text(encoding="utf-8")
    return [
        Block(page, source.count("\n", 0, found.start(2)) + 1, found[1], found[2])
        for found in _FENCE.finditer(source)
    ]


@pytest.fixture
def names(request):
    return {name: str(request.getfixturevalue(fixture)) for name, fixture in STAND_INS.items()}


@pytest.fixture(scope="module")
def packaged(tmp_path_factory):
    """The stand-in for smollm2 in defaults of options and in files: unpacking that takes half a minute. Its tokens are
    words, so that no piece of 16 tokens stands in two documents."""
    folder = tmp_path_factory.mktemp("models") / "packaged"
    make_model("gpt_neox").save_pretrained(folder)
    texts = [row["text"] for name, pattern in PATTERNS.items() for row in _made(name, pattern, range(61))]
    train_vocabulary(texts, size=416, max_tokens=256).save_pretrained(folder)
    return folder


@pytest.fixture
def desk(request, packaged, tmp_path, monkeypatch):
    """A folder with the files the pages read; what the pages register is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    for registry in (scores, corpora, backends):
        list(registry)  # all that is built in is there before anything is added
        monkeypatch.setattr(registry, "_factories", dict(registry._factories))
        monkeypatch.setattr(registry, "_origins", dict(registry._origins))
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # `main` sets its own
    monkeypatch.setattr(naming, "_packaged", lambda: naming.locate(str(packaged)))
    sentence = "The railway number {0} reached the valley in 18{0}, and nothing was the same again. "
    texts = [sentence.format(i) * (1 + i % 3) for i in range(24)]
    rows = [{"id": f"t{i}", "text": t, "label": i % 2, "group": f"d{i % 8}"} for i, t in enumerate(texts)]
    others = [{**row, "text": f"Elsewhere, {row['text']}"} for row in rows]
    files = dict.fromkeys(("texts", "labelled", "reference"), rows) | {"known": others}
    files["nonmembers"] = [row for row in others if not row["label"]]
    for name, pattern in PATTERNS.items():
        files[name] = _made(name, pattern, range(0, 60, 2))
    files["unpublished"] = _made("unpublished", PATTERNS["my_posts"], range(1, 61, 2))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    files |= _marked()
    (tmp_path / "writings").mkdir()
    writings = {
        "essay.md": "---\ntitle: Valley\n---\n\n# Valley\n\nThe train reached the valley on time.\n",
        "page.html": "<title>Snow</title><h1>Snow</h1><p>The road was <b>closed</b> by snow.</p>",
    }
    for name, content in writings.items():
        (tmp_path / "writings" / name).write_text(content, encoding="utf-8")
    for name, some in files.items():
        written(tmp_path / f"{name}.jsonl", some)
    model = str(request.getfixturevalue("model_folder"))
    for name, number, seed in (("logs", 40, 1), ("held_back_logs", 60, 2)):
        lm_eval_logs.log_as_written(tmp_path / name, lm_eval_logs.items(number, seed), model=model)
    return tmp_path


def _made(name, pattern, numbers):
    """Documents of eight sentences each, with numbers in them."""
    said = ("".join(pattern.format(i, j + i, 17 * i % 59 + j) for j in range(8)) for i in numbers)
    return [{"id": f"{name}{i}", "text": text} for i, text in zip(numbers, said, strict=True)]


def _marked():
    """Rows and items whose order can be drawn, and texts with random strings in them."""
    draw, nouns = random.Random(0), lm_eval_logs.NOUNS
    rows = (f"The {draw.choice(nouns)} is near the {draw.choice(nouns)}." for _ in range(96))
    hashes = (hashlib.sha256(f"my tool {i}".encode()).hexdigest() for i in range(20))
    items = [
        {"text": f"What did visitor {i} see?", "choices": draw.sample(nouns, 4), "right": i % 4}
        for i in range(40)
    ]
    return {
        "rows": rows,
        "quiz": items,
        "releases": [f"release {i}, sha256 {one}" for i, one in enumerate(hashes)],
    }


def put_in(text, names):
    """The text with every model name, as a whole word, replaced by its stand-in."""
    pattern = "|".join(rf"(?<![\w/-]){re.escape(name)}(?![\w/-])" for name in names)
    return re.sub(pattern, lambda found: names[found[0]], text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_run(page, names, desk, monkeypatch, capsys):
    module = types.ModuleType(f"docs_{page.stem}")  # dataclasses look their module up by name
    monkeypatch.setitem(sys.modules, module.__name__, module)
    shown = {block: named[1] for block in blocks(page) if (named := _FILE.match(block.text))}
    for block, name in shown.items():
        (desk / name).parent.mkdir(exist_ok=True)
        (desk / name).write_text(block.text, encoding="utf-8")
    for block in blocks(page):
        if block in shown:
            continue
        if block.language == "python":
            # Empty lines in front: a traceback then points to the line of the page.
            code = "\n" * (block.line - 1) + put_in(block.text, names)
            exec(compile(code, str(page), "exec"), module.__dict__)
        elif block.language == "console":
            for command in commands(block):
                command.check(names, monkeypatch, capsys)


def parse(words):
    """Raises an error that names the command or option of a stranger."""
    app().parse_args(words)


@dataclass(frozen=True)
class Command:
    """One `$ pretrace …` of a console block: the code it must leave with and the lines shown beneath it."""

    block: Block
    words: str
    code: int
    shown: tuple[str, ...]

    def check(self, names, monkeypatch, capsys):
        arguments = shlex.split(put_in(self.words, names))
        if arguments[1] in MINUTES:
            parse(arguments[1:])
            return
        monkeypatch.setattr(sys, "argv", arguments)
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        assert (left.value.code or 0) == self.code, f"{self.block}: {self.words}\n{said.err}"
        if self.code:
            for line in self.shown:
                assert line.removesuffix("…").strip() in said.err, f"{self.block}: {self.words}"


def commands(block):
    """The commands of a console block that begins with pretrace; an AssertionError for a stranger among them."""
    if not block.text.startswith("$ pretrace "):
        return []
    found = []
    for part in re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        words, *shown = part.strip("\n").split("\n")
        if words.strip() == "echo $?":
            found[-1] = replace(found[-1], code=int(shown[0]))
            continue
        assert words.startswith("pretrace "), f"{block}: put what is not run ({words}) into a sh block"
        found.append(Command(block, words, 0, tuple(filter(None, shown))))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_are_of_a_known_kind(page):
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block}: a block of {block.language!r} would not be run"
        if block.language == "console" and page in DOCS:  # the README also shows how to install
            assert commands(block), f"{block}: put what is not run into a sh block"
        if block.language == "toml":
            assert tomllib.loads(block.text)
            assert _FILE.match(block.text), f"{block}: say which file it is"
        if block.language == "json":
            assert all(json.loads(line).keys() >= {"id", "text"} for line in block.text.splitlines())
        if block.language == "sh":
            for line in block.text.splitlines():
                before, called, after = line.partition("pretrace ")
                if called and before in ("", ".venv/bin/"):
                    parse(shlex.split(after, comments=True))
    fences = re.findall(r"^```", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(blocks(page)), f"{page.name}: a block is not closed"


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_options_exist(page):
    options = {"--version", "--help", "--help-all", "--install-completion"}
    options |= {leaf.flag for one in (EVERYWHERE, *map(options_of, places())) for leaf in one.values()}
    options |= set(OF_OTHERS.get(page.name, "").split())
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", page.read_text(encoding="utf-8")))
    assert named <= options


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]+)#?([^)\s]*)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        file = page.parent / target
        assert file.exists(), f"{page.name} links to {target}"
        headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
        anchors = {"", *(re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings)}
        assert anchor in anchors, f"{page.name} links to {target}#{anchor}"


def generator():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_made_pages_and_tables_are_those_of_their_files():
    make = generator()
    assert all(f"\n## {name}\n" in make.render() for name in scores)
    assert make.tests().count("\n| ") >= len(make.offered_tests())
    tables = {make.AUDITS: (make.tests(),), make.SEARCH: (make.searched(), make.SCAN)}
    tables[make.METHODS] = make.methods(), make.BY_METHOD
    pages = {make.BY_DILUTION: make.by_dilution(), make.EVERY_METHOD: make.every_method()}
    pages[make.EVERY] = make.every_innocent()
    for path, table in tables.items():
        pages[path] = make.with_tests(path.read_text("utf-8"), *table)
    assert not [path for path, page in pages.items() if path.read_text("utf-8") != page], "docs/generate.py"


def test_the_page_of_innocents_has_every_row_of_the_file():
    make = generator()
    every, table = make.every_innocent(), make.innocents()
    rows = read_results(make.DESIGNS)["rows"]
    assert table in every
    page = make.AUDITS.read_text(encoding="utf-8")
    assert all(share in table and share in page for share in ("30.6%", "5.8%"))
    assert table.count("\n| ") == len({(row["test"], row["how"]) for row in rows if row["runs"]})
    shown = sum(bool(row["runs"]) + bool(row["members"]) for row in rows)
    assert every.count("\n| ") == shown + table.count("\n| ") + 3  # with the heads of the tables


def test_every_paper_that_a_score_cites_is_listed():
    papers = generator().PAPERS
    cited = {name: scores.summary(name) for name in scores}
    for name, summary in cited.items():
        authors = re.findall(r"\w+ (?:et al\.|and \w+) \d{4}[a-z]?", summary)
        assert authors, f"{name} names no source"
        assert set(authors) <= set(papers), f"{name}: add its paper to PAPERS in docs/generate.py"
