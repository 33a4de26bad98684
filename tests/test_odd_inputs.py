"""Odd inputs, one table over all commands: each is refused in a line that names the cure, or done; never a traceback.

A case is a command line, the promised exit code, and words of the message. The files that it names are made by
`odd_files`. What closes streams or has a console of another kind runs in a fork of this process, all else in it.
"""

import io
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from forks import forked, warm
from odd_files import FILES, put


@dataclass(frozen=True)
class Case:
    """A command line, its exit code, and words of its message; `>` in the line stands for a model that is not there and
    a folder for the result, NESTED for many brackets, DIGITS for a number of 400 digits."""

    line: str
    code: int
    says: str
    stdin: bytes = b""
    environment: dict[str, str] = field(default_factory=dict)
    closed: tuple[int, ...] = ()
    unread: bool = False

    @property
    def words(self):
        """The words of the command line."""
        line = self.line.replace(">", "--model NOWHERE --out OUT").replace("NESTED", "min_k(" * 500)
        return line.replace("DIGITS", "9" * 400).split(" ")

    @property
    def name(self):
        more = [*self.environment.values(), *(f"{number} closed" for number in self.closed)]
        more += ["nobody reads"] if self.unread else []
        return " ".join([self.line, *more, *(["from a pipe"] if self.stdin else [])])


def read_cases(wanted):
    """The rows of `odd_inputs.tsv` of a kind: command line, exit code, and words of the message or of the output. `any`
    runs as it is, `console` on consoles that are not UTF-8, `closed` with closed standard streams."""
    table = Path(__file__).with_name("odd_inputs.tsv").read_text(encoding="ascii").splitlines()
    rows = [row.encode("ascii").decode("unicode_escape").split("\t") for row in table]
    return [(line, int(code), says) for kind, code, line, says in rows if kind == wanted]


OTHERS = [
    Case("score - >", 2, "lead the texts here with |", closed=(0,)),
    Case("score - >", 2, "name its encoding with --reading encoding", stdin=b"\x00\xff\xfe"),
    Case("show - --model NOWHERE", 2, "lead the texts here with |", closed=(0,)),
    Case("show - --model NOWHERE", 2, "- to read standard input", stdin=b" \n"),
    Case("runs report run", 0, "", environment={"SOURCE_DATE_EPOCH": "x"}),
    Case("runs report run", 0, "", environment={"SOURCE_DATE_EPOCH": "99999999999999999"}),
    Case("runs report run", 0, "", environment={"COLUMNS": "0", "LINES": "x"}),
    Case("list", 0, "", environment={"COLUMNS": "x", "TERM": "\x1b"}),
    Case("cache info", 0, "", environment={"PRETRACE_CACHE": "good.jsonl"}),
    Case("list", 0, "", environment={"PRETRACE_PROGRESS": "good.jsonl"}),
    *(
        Case(line, 0, "", unread=True)
        for line in ("list", "list --json", "--help", "ask good.jsonl", "cache info")
    ),
    Case("scan good.jsonl --corpus corpus --out OUT", 0, "", unread=True),
]
ALL = [
    *(Case(*row) for row in read_cases("any")),
    *(
        Case(*row, environment={"PYTHONIOENCODING": name})
        for row in read_cases("console")
        for name in ("ascii", "cp1252")
    ),
    *(Case(*row, closed=closed) for row in read_cases("closed") for closed in ((0,), (1,), (2,), (0, 1, 2))),
    *OTHERS,
]


def made(case, folder, models):
    """The files and models that a command line names."""
    named = set(case.words)
    for name in named & set(models):
        (folder / name).symlink_to(models[name])
    for name, content in FILES.items():
        if name in named or name in case.environment.values():
            put(folder / name, content)
    if "page" in named and "dates.csv" in named:
        put(folder / "dates.csv", FILES["dates.csv"])


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def run(tmp_path, monkeypatch, call):
    """Runs a case in a folder of its own: exit code, output, what was said, and the files before and after."""

    def ran(case, models):
        here = tmp_path / "here"
        here.mkdir()
        made(case, here, models)
        before = listing(here)
        environment = {"PRETRACE_CACHE": str(tmp_path / "cache"), **case.environment}
        if case.closed or case.unread or "PYTHONIOENCODING" in environment:
            warm()
            how = {"closed": case.closed, "unread": case.unread}
            left = forked(case.words, here, stdin=case.stdin, environment=environment, **how)
        else:
            for name, value in environment.items():
                monkeypatch.setenv(name, value)
            monkeypatch.chdir(here)
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(case.stdin), "utf-8"))
            left = call(*case.words)
        return *left, before, listing(here)

    return ran


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name.encode("unicode_escape").decode())
def test_odd_input(case, run, model_folder, reference_folder):
    code, out, err, before, after = run(case, {"MODEL": model_folder, "SECOND": reference_folder})
    said = out + err
    assert "Traceback" not in said, said
    assert code == case.code, (code, said)
    assert said == "" or not case.unread, said
    assert not set(said) & {"\x1b", "\x07", "\u202e", "\r"}
    if code in (0, 3):
        assert case.says in said, said
    if code == 2 and 2 not in case.closed:
        assert after == before
        assert err.startswith("pretrace: ") or case.line.startswith("runs verify ")
        assert case.says in said, said
