"""Files and folders are there whole or not at all, whoever fails, is killed or writes at the same time."""

import inspect
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from pretrace.errors import OutputError
from pretrace.results import atomic
from pretrace.results.atomic import OWN, atomic_bytes, atomic_text, check_writable, new_folder
from pretrace.results.run import RUN


def fill(folder, word):
    """What save_run does, in little: some files, then the marker that lists them."""
    for number in range(3):
        (folder / f"{number}.txt").write_text(word)
    (folder / "sub").mkdir()
    (folder / "sub" / "deep.txt").write_text(word)
    files = dict.fromkeys(["0.txt", "1.txt", "2.txt", "sub/deep.txt"], "hash")
    (folder / "run.json").write_text(json.dumps({"pretrace_run": 1, "files": files, "word": word}))


def words(folder):
    """What the files of a folder say; one word unless runs were mixed."""
    marker = json.loads((folder / "run.json").read_text())["word"]
    return {path.read_text() for path in folder.rglob("*.txt")} | {marker}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(run, word):
    with new_folder(run, RUN) as folder:
        fill(folder, word)


@pytest.fixture
def begin(start):
    """Starts a process that knows `fill` and what writes."""
    return lambda code, *arguments: start(WRITER + code, *arguments)


def test_files_are_written_and_replaced_and_a_check_leaves_nothing(tmp_path):
    path = tmp_path / "new" / "folders" / "file.json"
    check_writable(path, OWN)
    check_writable(path.parent, RUN)
    assert names(tmp_path) == []
    atomic_text(path, "one\n")
    assert path.read_bytes() == b"one\n"
    atomic_bytes(path, b"\x00two")
    assert path.read_bytes() == b"\x00two"
    atomic.write_atomically(path, lambda one: one.write_text(f"{one.suffix} {one.parent == path.parent}"))
    assert path.read_text() == ".json True"
    with path.open() as reader:
        atomic_text(path, "é\ud800")
        assert reader.read() == ".json True"  # who reads an old file reads it to the end
    assert path.read_bytes() == "é\\ud800".encode()
    check_writable(path, OWN)
    assert names(path.parent) == ["file.json"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failing_writer_changes_nothing(tmp_path, failure):
    def write(beside):
        beside.write_text("half")
        raise failure

    (tmp_path / "file").write_text("old")
    for path in (tmp_path / "file", tmp_path / "new" / "folder" / "file"):
        with pytest.raises(failure):
            atomic.write_atomically(path, write)
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_what_is_not_a_file_is_not_replaced_by_one(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="is a folder"):
        atomic_text(tmp_path / "folder", "")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(OutputError, match="device or a pipe"):
            atomic_text(path, "")
        with pytest.raises(OutputError, match="device or a pipe"):
            check_writable(path, OWN)
    assert names(tmp_path) == ["folder", "pipe"]


def test_a_name_may_be_as_long_as_the_file_system_takes(tmp_path):
    atomic_text(tmp_path / ("v" * 251 + ".txt"), "new")
    with new_folder(tmp_path / ("w" * 255), RUN) as folder:
        fill(folder, "word")
    assert words(tmp_path / ("w" * 255)) == {"word"}


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real" / "file")
    (tmp_path / "run").symlink_to(tmp_path / "real" / "run")
    atomic_text(tmp_path / "link", "new")
    with new_folder(tmp_path / "run", RUN) as folder:
        fill(folder, "word")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").read_text() == "new"
    assert (tmp_path / "run").is_symlink()
    assert words(tmp_path / "real" / "run") == {"word"}


@pytest.mark.parametrize("before", ["nothing", "empty", "run"])
def test_a_folder_is_there_when_it_is_complete_and_a_failure_leaves_it_as_it_was(tmp_path, before):
    run = tmp_path / "parent" / "run"
    if before != "nothing":
        run.mkdir(parents=True)
    if before == "run":
        fill(run, "old")
    with pytest.raises(RuntimeError), new_folder(run, RUN) as folder:  # noqa: PT012
        fill(folder, "new")
        assert run.exists() == (before != "nothing")
        assert folder.name.startswith(f".run.partial-{os.getpid()}")
        raise RuntimeError
    if before == "nothing":
        assert names(tmp_path) == []
    else:
        assert names(run.parent) == ["run"]
        assert (words(run) == {"old"}) if before == "run" else (names(run) == [])
    write(run, "one")
    assert words(run) == {"one"}
    assert names(run.parent) == ["run"]


def test_an_earlier_run_is_put_back_when_the_new_one_is_lost(tmp_path):
    write(tmp_path / "run", "old")
    with pytest.raises(OutputError, match="cannot be written"), new_folder(tmp_path / "run", RUN) as folder:
        folder.rmdir()
    assert names(tmp_path) == ["run"]
    assert words(tmp_path / "run") == {"old"}


def test_a_run_that_is_swapped_while_it_is_checked(tmp_path, begin):
    code = """
import os, shutil
while True:
    (folder / "new").mkdir()
    fill(folder / "new", "word")
    if (folder / "run").exists():
        os.rename(folder / "run", folder / "old")
    os.rename(folder / "new", folder / "run")
    shutil.rmtree(folder / "old", ignore_errors=True)
    print(flush=True)
"""
    begin(code).stdout.readline()
    for _ in range(3000):
        check_writable(tmp_path / "run", RUN)


def test_an_earlier_run_is_replaced_with_all_its_files(tmp_path):
    run = tmp_path / "run"
    write(run, "one")
    (run / "one.csv").write_text("one")
    facts = json.loads((run / "run.json").read_text())
    facts["files"]["one.csv"] = ""
    (run / "run.json").write_text(json.dumps(facts))
    (run / ".DS_Store").write_text("litter")
    write(run, "two")
    assert words(run) == {"two"}
    assert names(run) == ["0.txt", "1.txt", "2.txt", "run.json", "sub"]
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ({"thesis.tex": "years"}, "thesis.tex"),
        ({"run.json": "{}"}, "run.json"),
        ({"run.json": '{"name": "jog", "km": 5}', "map.png": ""}, "map.png, run.json"),
        ({"run.json": "[1]"}, "run.json"),
        ({"run.json": "{"}, "run.json"),
        (
            {"run.json": '{"pretrace_run": 1, "files": {"a.csv": ""}}', "a.csv": "", "notes.txt": ""},
            "notes.txt",
        ),
    ],
)
def test_a_folder_with_anything_else_is_left_alone(tmp_path, content, shown):
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    message = rf"holds files that belong to no result \({shown}\); choose another folder"
    with pytest.raises(OutputError, match=message):
        check_writable(tmp_path, RUN)
    with pytest.raises(OutputError, match=message), new_folder(tmp_path, RUN) as folder:
        fill(folder, "word")
    assert {name: (tmp_path / name).read_text() for name in names(tmp_path)} == content


def test_files_that_turn_up_while_working_are_left_alone(tmp_path):
    run = tmp_path / "run"
    message = "that belong to no result"
    with pytest.raises(OutputError, match=message), new_folder(run, RUN) as folder:  # noqa: PT012
        fill(folder, "word")
        run.mkdir()
        (run / "thesis.tex").write_text("years")
    assert names(tmp_path) == ["run"]
    assert names(run) == ["thesis.tex"]


def test_places_that_cannot_be_replaced(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "here" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here" / "below")
    cases = {
        tmp_path / "file": "is a file", Path("/proc"): "mounted drive", Path("/"): "mounted drive",
        Path(): "the folder you are in", tmp_path / "here": "the folder you are in",
    }  # fmt: skip
    proc = Path("/proc/pretrace")
    deep = (tmp_path / "file" / "run", proc, proc / "run", tmp_path / ("x" * 300))
    for path, message in (cases | dict.fromkeys(deep, "cannot be written: .*; choose a place")).items():
        with pytest.raises(OutputError, match=message):
            check_writable(path, RUN)
        with pytest.raises(OutputError, match=message), new_folder(path, RUN):
            pass
    for path in (tmp_path / "file" / "report.html", Path("/proc/report.html")):
        for use in (lambda path: check_writable(path, OWN), lambda path: atomic_text(path, "")):
            with pytest.raises(OutputError, match="cannot be written"):
                use(path)
    assert names(tmp_path) == ["file", "here"]


WRITER = f"""
import json, time
from pretrace.results.atomic import atomic_bytes, new_folder, write_atomically
from pretrace.results.run import RUN
{inspect.getsource(fill)}
"""


def test_writers_at_once_never_leave_a_mixture(tmp_path, begin):
    code = """
for number in range(60):
    with new_folder(folder / "run", RUN) as partial:
        fill(partial, f"{sys.argv[2]} {number}")
"""
    processes = [begin(code, name) for name in "abc"]
    seen = 0
    while any(process.poll() is None for process in processes):
        try:
            marker = json.loads((tmp_path / "run" / "run.json").read_text())
        except FileNotFoundError:
            continue
        assert set(marker["files"]) == {"0.txt", "1.txt", "2.txt", "sub/deep.txt"}
        seen += 1
    assert [process.communicate()[1] for process in processes] == [""] * 3
    assert seen
    (word,) = words(tmp_path / "run")
    assert word.endswith(" 59")
    assert names(tmp_path) == ["run"]


def test_what_killed_writers_left_is_tidied_away(tmp_path, begin):
    code = """
def write(beside):
    beside.write_bytes(b"half")
    print("writing", flush=True)
    time.sleep(60)

if sys.argv[2] == "file":
    write_atomically(folder / "report.html", write)
with new_folder(folder / "run", RUN) as partial:
    write(partial / "0.txt")
"""
    processes = [begin(code, kind) for kind in ("file", "folder")]
    for process in processes:
        process.stdout.readline()
    write(tmp_path / "run", "word")
    atomic_text(tmp_path / "report.html", "whole")
    assert len(names(tmp_path)) == 4  # what living processes are at is left to them
    for process in processes:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    write(tmp_path / "run", "word")
    atomic_text(tmp_path / "report.html", "whole")
    assert names(tmp_path) == ["report.html", "run"]


def test_a_run_moved_aside_by_a_killed_writer_is_put_back(tmp_path):
    process = subprocess.Popen(["true"])
    process.wait()
    old = tmp_path / f".run.old-{process.pid}-{atomic._HOST}-0123abcd"
    old.mkdir()
    fill(old, "old")
    with pytest.raises(RuntimeError), new_folder(tmp_path / "run", RUN):
        raise RuntimeError
    assert names(tmp_path) == ["run"]
    assert words(tmp_path / "run") == {"old"}


def test_leftovers_of_a_killed_process_with_our_own_number(tmp_path):
    others = f".run.partial-{os.getpid()}-00000000-0123abcd"  # another machine's: not ours to judge
    for name in (f".run.partial-{os.getpid()}-{atomic._HOST}-0123abcd", others):
        (tmp_path / name).mkdir()
    with new_folder(tmp_path / "run", RUN) as outer:
        fill(outer, "outer")
        write(tmp_path / "run", "inner")
    assert words(tmp_path / "run") == {"outer"}
    assert names(tmp_path) == [others, "run"]


def test_a_full_disk_is_named_and_nothing_is_left(tmp_path, begin):
    code = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    with new_folder(folder / "run", RUN) as partial:
        (partial / "0.txt").write_bytes(bytes(5000))
except OutputError as error:
    print(error)
try:
    atomic_bytes(folder / "file", bytes(5000))
except OutputError as error:
    print(error)
"""
    out, errors = begin(code).communicate()
    assert errors == ""
    assert out.count("cannot be written: File too large; choose a place") == 2
    full = "the disk is full; free some space"
    with pytest.raises(OutputError, match=full), new_folder(tmp_path / "run", RUN):
        Path("/dev/full").write_text("x")
    assert names(tmp_path) == []
