"""The odd inputs, by name: what a case of `test_odd_inputs` names in its command line is made before it is run."""

import atexit
import functools
import gzip  # noqa: F401 (the table names it)
import io
import json
import os
import shutil
import struct
import tempfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = [
    {
        "id": f"t{i}",
        "text": f"The cat number {i} sat on the mat, and the dog of house {i * 7} saw it on day {i}.",
        "label": i % 2,
        "group": f"g{i}",
        "date": f"20{10 + i % 12}-03-01",
        "draft": f"A cat, number {i}, sat on a mat, and the dog of house {i * 7} saw it then.",
        "variant": f"The hen number {i} sat on the mat, and the dog of house {i * 7} saw it on day {i}.",
        "collection": f"s{i % 3}",
        "options": ["one", "two", "three", "four"],
    }
    for i in range(24)
]


def lines(some):
    return "".join(json.dumps(row) + "\n" for row in some).encode()


def rows(**changes):
    """The good rows with other cells; a callable is given the number of the row."""
    found = []
    for number, row in enumerate(ROWS):
        new = {name: value(number) if callable(value) else value for name, value in changes.items()}
        found.append({name: value for name, value in {**row, **new}.items() if value is not ...})
    return lines(found)


def parquet(**columns):
    def make(path):
        pq.write_table(pa.table({"text": [row["text"] for row in ROWS], **columns}), path, version="2.6")

    return make


def folder(**files):
    """A folder with files; `__` in a name is a dot."""

    def make(path):
        path.mkdir()
        for name, content in files.items():
            put(path / name.replace("__", "."), content)

    return make


def put(path, content):
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content(path)


def pipe(path):
    os.mkfifo(path)


def counts(array, **facts):
    known = {"kind": "token count table", "tokenizer_hash": "x", "source": "s", "texts": 3, "method": "m"}
    known |= facts

    def make(path):
        content = {"pretrace": np.array(json.dumps(known)), **({} if array is None else {"counts": array})}
        with path.open("wb") as file:
            np.savez(file, **content)

    return make


def absurd_counts(path):
    """A table whose header speaks of more numbers than any memory holds."""
    counts(np.ones(3, np.int64))(path)
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (%d,), }" % 10**15
    header += b" " * (118 - len(header)) + b"\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(24)
    content = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(path, "w") as new:
        new.writestr("pretrace.npy", old.read("pretrace.npy"))
        new.writestr("counts.npy", array)


def adapter(config=None, *, card=None, tensors=None):
    """A folder that looks like an adapter of ours, whose files are those that its card names."""
    from safetensors.numpy import save_file

    from pretrace.results.folder import file_hash

    def make(path):
        path.mkdir()
        save_file(tensors or {"a": np.zeros((2, 2), np.float32)}, path / "adapter_model.safetensors")
        known = {"peft_type": "LORA", "r": 8, "lora_alpha": 8, "target_modules": ["query_key_value"]}
        (path / "adapter_config.json").write_text(json.dumps({**known, **(config or {})}))
        (path / "texts.jsonl").write_bytes(lines([{"id": "a", "text": "b", "label": 0, "group": "a"}]))
        files = {one.name: file_hash(one) for one in path.iterdir()}
        of = base(path.parent / "MODEL") or {"name": "m", "weights": "w", "tokenizer": "t"}
        method = {"name": "lora", "expression": "lora"}
        full = {"pretrace_adapter": 1, "files": files, "method": method, "base": of, "seed": 0, "hashes": []}
        (path / "adapter_card.json").write_text(json.dumps({**full, **(card or {})}))

    return make


def base(model):
    """What a card says of the model it was made for."""
    if not model.is_dir():
        return None
    from pretrace.backends.huggingface import open_huggingface
    from pretrace.backends.naming import ModelSettings

    opened = open_huggingface(str(model), ModelSettings())
    return {"name": "m", "weights": opened.facts["weights"], "tokenizer": opened.tokenizer_hash}


def run(content):
    """A folder of a run with this run.json."""
    return folder(run__json=content)


def a_run(path):
    shutil.copytree(_saved_run(), path)


@functools.cache
def _saved_run():
    """A run that is saved once: drawing its report takes longer than most commands here."""
    from results.test_runs import example

    from pretrace.runs import save

    place = Path(tempfile.mkdtemp(prefix="pretrace-run-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    save(example(), place / "run")
    return place / "run"


def cut_run(path):
    a_run(path)
    table = path / "scores.parquet"
    table.write_bytes(table.read_bytes()[:-20])


def zipped(**files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, content in files.items():
            file.writestr(name.replace("__", "."), content)
    return made.getvalue()


FAR = pa.array([2**62] * 24, pa.timestamp("us"))
TABLE = tomllib.loads(Path(__file__).with_name("odd_files.toml").read_text(encoding="utf-8"))
FILES = {**{name: eval(code) for name, code in TABLE.items()}}
