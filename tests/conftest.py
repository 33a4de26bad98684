"""Tiny real models, made once. Nothing is downloaded; nothing but `KEPT` is touched outside the test's folders."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers of pytest-xdist share the cores
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import fcntl
import gc
import hashlib
import inspect
import shutil
from pathlib import Path

import pytest
from tiny import SENTENCES, make_model, make_tokenizer

from pretrace.backends import naming

pytest_plugins = ["processes"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The tests of the list are marked `slow`; `scripts/test --fast` leaves them out."""
    slow = set((HERE / "slow.txt").read_text(encoding="utf-8").split())
    for item in items:
        if item.nodeid.partition("[")[0] in slow:
            item.add_marker("slow")


HERE = Path(__file__).parent
SRC = Path(naming.__file__).parents[1]
PACKAGED = naming._packaged
"""Finds the packaged model itself."""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is collected stays: looking for garbage meanwhile takes a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    """No later collection of garbage walks through what collecting left behind, and there are fewer of them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    """No test reads or writes the user's cache."""
    monkeypatch.setenv("PRETRACE_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True, scope="session")
def _float32_training():
    """Models are trained alike on any processor, those of fixtures too: the format "auto" means is not measured."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pretrace.backends.loading.fastest_format", lambda device="cpu": "float32")
        yield


KEPT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pretrace-tests"
"""What takes long to make, for all workers, worktrees and later runs on this machine."""


def kept(name, make, sources):
    """The folder that `make` filled: made once, and again for other sources or another torch or transformers."""
    import torch
    import transformers

    key = hashlib.sha256(f"{torch.__version__} {transformers.__version__}".encode())
    for path in sorted(sources):
        key.update(path.read_bytes())
    folder = KEPT / f"{name}-{key.hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            shutil.rmtree(folder / "made", ignore_errors=True)
            (folder / "made").mkdir()
            make(folder / "made")
            (folder / "done").touch()
    return folder / "made"


@pytest.fixture(scope="session")
def trained():
    """Gives the folder that a function filled with trained models, which nobody changes."""
    own = [SRC / room for room in ("backends", "corpora", "tuning")]
    sources = [path for room in own for path in room.glob("*.py")] + [HERE / "tiny.py", HERE / "made.py"]

    def once(make):
        file = Path(inspect.getfile(make))
        name = f"{file.stem}-{make.__qualname__.partition('.')[0]}"
        return kept(name, make, [*sources, file])

    return once


@pytest.fixture(autouse=True, scope="session")
def _small_packaged(request):
    """A tiny model stands for the packaged one, which is opened wherever no second model is named, and takes half a
    minute to unpack."""
    with pytest.MonkeyPatch.context() as patch:
        small = lambda: naming.locate(str(request.getfixturevalue("reference_folder")))  # noqa: E731
        patch.setattr(naming, "_packaged", small)
        yield


@pytest.fixture
def packaged(_own_cache, monkeypatch):
    """The name of the packaged model, with its weights unpacked in the test's cache."""
    from pretrace.backends import open_tokenizer

    def unpack(folder):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PRETRACE_CACHE", str(folder))
            open_tokenizer("smollm2")

    monkeypatch.setattr(naming, "_packaged", PACKAGED)
    sources = [SRC / "backends" / f"{name}.py" for name in ("loading", "naming", "tokens")]
    (Path(os.environ["PRETRACE_CACHE"]) / "gguf").symlink_to(kept("smollm2", unpack, sources) / "gguf")
    return "smollm2"


@pytest.fixture(scope="session")
def sentences():
    return list(SENTENCES)


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """A GPT-NeoX with its tokenizer, saved as a user would have it."""
    folder = tmp_path_factory.mktemp("models") / "tiny-neox"
    make_model("gpt_neox").save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def reference_folder(tmp_path_factory):
    """A Llama with another tokenizer rule, for `ref`."""
    folder = tmp_path_factory.mktemp("models") / "tiny-llama"
    make_model("llama").save_pretrained(folder)
    make_tokenizer(start=True).save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True)
def _no_plugin_stays():
    """Plug-ins that a test loaded are forgotten: workers that a later test starts would load them, too."""
    from pretrace import registry

    before = set(registry._files)
    yield
    for place in [one for one in registry._files if one not in before]:
        for where, name in registry._files.pop(place):
            where.remove(name)
