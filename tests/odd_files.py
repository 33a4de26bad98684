"""The odd inputs, by name: what a case of `test_odd_inputs` names in its command line is made before it is run."""

# ruff: noqa: E501 - an input is a line

from __future__ import annotations

import atexit
import functools
import gzip
import io
import json
import os
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS: list[dict[str, Any]] = [
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
Make = bytes | Callable[[Path], None]


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def rows(**changes: Any) -> bytes:
    """The good rows with other cells; a callable is given the number of the row."""
    found = []
    for number, row in enumerate(ROWS):
        new = {name: value(number) if callable(value) else value for name, value in changes.items()}
        found.append({name: value for name, value in {**row, **new}.items() if value is not ...})
    return lines(found)


def parquet(**columns: Any) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        pq.write_table(pa.table({"text": [row["text"] for row in ROWS], **columns}), path, version="2.6")

    return make


def folder(**files: Make) -> Callable[[Path], None]:
    """A folder with files; `__` in a name is a dot."""

    def make(path: Path) -> None:
        path.mkdir()
        for name, content in files.items():
            put(path / name.replace("__", "."), content)

    return make


def put(path: Path, content: Make) -> None:
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content(path)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def counts(array: Any, **facts: Any) -> Callable[[Path], None]:
    known = {
        "kind": "token count table",
        "tokenizer_hash": "x",
        "source": "s",
        "texts": 3,
        "method": "m",
        **facts,
    }

    def make(path: Path) -> None:
        content = {"pretrace": np.array(json.dumps(known)), **({} if array is None else {"counts": array})}
        with path.open("wb") as file:
            np.savez(file, **content)

    return make


def absurd_counts(path: Path) -> None:
    """A table whose header speaks of more numbers than any memory holds."""
    counts(np.ones(3, np.int64))(path)
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (%d,), }" % 10**15
    header += b" " * (118 - len(header)) + b"\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(24)
    content = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(path, "w") as new:
        new.writestr("pretrace.npy", old.read("pretrace.npy"))
        new.writestr("counts.npy", array)


def adapter(config: Any = None, *, card: Any = None, tensors: Any = None) -> Callable[[Path], None]:
    """A folder that looks like an adapter of ours, whose files are those that its card names."""
    from safetensors.numpy import save_file

    from pretrace.results.folder import file_hash

    def make(path: Path) -> None:
        path.mkdir()
        save_file(tensors or {"a": np.zeros((2, 2), np.float32)}, path / "adapter_model.safetensors")
        known = {
            "peft_type": "LORA",
            "r": 8,
            "lora_alpha": 8,
            "target_modules": ["query_key_value"],
            **(config or {}),
        }
        (path / "adapter_config.json").write_text(json.dumps(known))
        (path / "texts.jsonl").write_bytes(lines([{"id": "a", "text": "b", "label": 0, "group": "a"}]))
        files = {one.name: file_hash(one) for one in path.iterdir()}
        full = {
            "pretrace_adapter": 1,
            "files": files,
            "method": {"name": "lora", "expression": "lora"},
            "base": base(path.parent / "MODEL") or {"name": "m", "weights": "w", "tokenizer": "t"},
            "seed": 0,
            "hashes": [],
            **(card or {}),
        }
        (path / "adapter_card.json").write_text(json.dumps(full))

    return make


def base(model: Path) -> dict[str, str] | None:
    """What a card says of the model it was made for."""
    if not model.is_dir():
        return None
    from pretrace.backends.huggingface import open_huggingface
    from pretrace.backends.settings import ModelSettings

    opened = open_huggingface(str(model), ModelSettings())
    return {"name": "m", "weights": opened.identity.weights, "tokenizer": opened.identity.tokenizer}


def run(content: Make) -> Callable[[Path], None]:
    """A folder of a run with this run.json."""
    return folder(run__json=content)


def a_run(path: Path) -> None:
    shutil.copytree(_saved_run(), path)


@functools.cache
def _saved_run() -> Path:
    """A run that is saved once: drawing its report takes longer than most commands here."""
    from results.test_runs import example

    from pretrace.runs import save

    place = Path(tempfile.mkdtemp(prefix="pretrace-run-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    save(example(), place / "run")
    return place / "run"


def cut_run(path: Path) -> None:
    a_run(path)
    table = path / "scores.parquet"
    table.write_bytes(table.read_bytes()[:-20])


def zipped(**files: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, content in files.items():
            file.writestr(name.replace("__", "."), content)
    return made.getvalue()


FAR = pa.array([2**62] * 24, pa.timestamp("us"))
FILES: dict[str, Make] = {
    "good.jsonl": lines(ROWS),
    "empty.jsonl": b"",
    "blank.txt": b"\n \n\n",
    "list.jsonl": b"[1]\n",
    "string.jsonl": b'"a"\n',
    "broken.jsonl": b'{"text": "a"}\n{"text": \n',
    "deep.jsonl": b'{"text": ' + b"[" * 100_000 + b"\n",
    "deep.json": b"[" * 100_000,
    "digits.jsonl": b'{"text": "a", "id": ' + b"1" * 5000 + b"}\n",
    "null.jsonl": b'{"text": null}\n',
    "number.jsonl": b'{"text": 3}\n',
    "nothing.jsonl": b'{"text": ""}\n{"text": " "}\n',
    "twice.jsonl": rows(id="x"),
    "labels.jsonl": rows(label="perhaps"),
    "members.jsonl": rows(label=1),
    "unlabelled.jsonl": rows(label=...),
    "known.jsonl": rows(text=lambda i: ROWS[i]["variant"].replace("hen", "cat") + " Nobody else did."),
    "few.jsonl": lines([{"text": row["draft"] + " It went away after that."} for row in ROWS[:19]]),
    "emptied.jsonl": rows(variant=" "),
    "copy": lambda path: path.symlink_to(path.parent / "MODEL"),
    "untexted.jsonl": rows(text=...),
    "listed.jsonl": rows(id=lambda i: [i]),
    "utf16.jsonl": lines(ROWS).decode().encode("utf-16"),
    "escape.jsonl": rows(
        id=lambda i: f"\x1b[31m{i}\x07\r", text=lambda i: f"{i} \x1b]0;owned\x07 \u202e text"
    ),
    "open.csv": b'text,id\n"a,b\nc,d\n',
    "ragged.csv": b"text,id\na,b\nc\n",
    "twice.csv": b"text,text\na,b\n",
    "header.csv": b"text,id\n",
    "escape.csv": b"text,\x1b[31mid\x1b[0m\na,b\n",
    "broken.parquet": b"PAR1junk",
    "far.parquet": parquet(date=FAR),
    "farid.parquet": parquet(id=FAR),
    "fardays.parquet": parquet(date=pa.array([2**31 - 1] * 24, pa.int32()).cast(pa.date32())),
    "zone.parquet": parquet(date=pa.array([0] * 24, pa.timestamp("s", tz="Mars/Olympus"))),
    "broken.jsonl.gz": b"\x1f\x8bjunk",
    "cut.jsonl.gz": gzip.compress(lines(ROWS))[:-30],
    "broken.pdf": b"%PDF-1.4 junk",
    "broken.docx": b"PK junk",
    "empty.docx": zipped(a__txt=b""),
    "feed.xml": b"<rss><channel><item><title>a</title>",
    "bomb.xml": b'<!DOCTYPE a [<!ENTITY b "cc"><!ENTITY d "&b;&b;">]><rss><channel><item><title>&d;</title></item></channel>'
    b"</rss>",
    "unknown.xyz": b"what",
    "pipe.jsonl": pipe,
    "pipes": folder(a__txt=b"one text", b__txt=pipe),
    "documentpipes": folder(a__md=b"one text", b__md=pipe),
    "nofiles": folder(),
    "readme": folder(README__md=b"about"),
    "loop": lambda path: path.symlink_to(path.name),
    "loops": lambda path: (path.mkdir(), (path / "a.txt").symlink_to("a.txt"))[0],  # type: ignore[func-returns-value]
    "early.jsonl": rows(date=lambda i: "0001-01-01" if i == 3 else f"20{10 + i % 12}-03-01"),
    "late.jsonl": rows(date=lambda i: "9999-12-31" if i == 3 else f"20{10 + i % 12}-03-01"),
    "month.jsonl": rows(date=lambda i: "9999-12" if i == 3 else f"20{10 + i % 12}-03"),
    "words.jsonl": rows(date="yesterday"),
    "first.jsonl": rows(date=lambda i: f"000{1 + i // 12}-{1 + i % 12:02}-15"),
    "last.jsonl": rows(date=lambda i: f"999{8 + i // 12}-{1 + i % 12:02}-15"),
    "instant.jsonl": rows(date=lambda i: 10**18 + i),
    "letters.jsonl": rows(text=lambda i: "a" * 5000 + f" {i}"),
    "raises.py": b"raise RuntimeError('no \x1b[31mluck')\n",
    "leaves.py": b"import sys\nsys.exit(0)\n",
    "leaves_later.py": b"from pretrace.registry import scores\n@scores.add('mine')\ndef mine(): raise SystemExit(0)\n",
    "raises_later.py": b"from pretrace.registry import scores\n@scores.add('mine')\n"
    b"def mine(): raise RuntimeError('no luck')\n",
    "generates.py": b"raise GeneratorExit('no')\n",
    "recurses.py": b"def f(): f()\nf()\n",
    "syntax.py": b"def f(:\n",
    "nothing.py": b"x = 1\n",
    "nul.py": b"x = '\0'\n",
    "latin.py": b"x = '\xff'\n",
    "deep.py": b"x = " + b"(" * 5000 + b")" * 5000 + b"\n",
    "deep.toml": b"x = " + b"[" * 5000 + b"]" * 5000 + b"\n",
    "tables.toml": b"x = " + b"{a = " * 3000 + b"1" + b"}" * 3000 + b"\n",
    "no.toml": b"x = \n",
    "latin.toml": b"x = '\xff'\n",
    "unknown.toml": b'[score]\n"\\u001b[31m" = 3\n',
    "number.toml": b"[score]\nseed = 99999999999999999999999999\n",
    "nan.toml": b"[score]\nseed = nan\n",
    "date.toml": b"[score]\nseed = 2024-01-01\n",
    "digits.toml": b"x = " + b"1" * 5000 + b"\n",
    "junk.npz": b"junk",
    "floats.npz": counts(np.ones(3)),
    "infinite.npz": counts(np.array([np.inf, 1.0])),
    "infinite_texts.npz": counts(np.ones(3, np.int64), texts=float("inf")),
    "nan_texts.npz": counts(np.ones(3, np.int64), texts=float("nan")),
    "negative.npz": counts(np.array([-1, 2])),
    "negative_texts.npz": counts(np.ones(3, np.int64), texts=-5),
    "overflow.npz": counts(np.array([2**63 - 1, 2**63 - 1])),
    "square.npz": counts(np.ones((2, 2), np.int64)),
    "none.npz": counts(None),
    "zero.npz": counts(np.zeros(0, np.int64)),
    "other.npz": counts(np.ones(3, np.int64), kind="checkpoint"),
    "list.npz": counts(np.ones(3, np.int64), kind=[1]),
    "absurd.npz": absurd_counts,
    "pipe.npz": pipe,
    "deep.npz": zipped(pretrace__npy=b"\x93NUMPY\x01\x00v\x00" + b"(" * 117 + b"\n"),
    "odd_kind": adapter({"peft_type": "MAGIC"}),
    "no_kind": adapter({"peft_type": None}),
    "other_kind": adapter({"peft_type": "PROMPT_TUNING", "num_virtual_tokens": 3, "task_type": "CAUSAL_LM"}),
    "odd_layers": adapter({"target_modules": ["nowhere"]}),
    "odd_pattern": adapter({"target_modules": "("}),
    "no_rank": adapter({"r": 0}),
    "minus_rank": adapter({"r": -3}),
    "word_rank": adapter({"r": "many"}),
    "absurd_rank": adapter({"r": 10**12}),
    "odd_shapes": adapter(
        tensors={
            "base_model.model.gpt_neox.layers.0.attention.query_key_value.lora_A.weight": np.zeros(
                (3, 5), np.float32
            )
        }
    ),
    "odd_card": adapter(card={"hashes": ["zz"]}),
    "odd_method": adapter(card={"method": {"name": "x", "expression": "x("}}),
    "odd_files": adapter(card={"files": {"../../etc/passwd": "0"}}),
    "cardless": folder(a__txt=b""),
    "cardpipe": folder(adapter_card__json=pipe),
    "run": a_run,
    "cut_run": cut_run,
    "deep_run": run(b'{"pretrace_run": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "nan_run": run(b'{"pretrace_run": 1, "x": NaN}'),
    "digits_run": run(b'{"pretrace_run": ' + b"9" * 5000 + b"}"),
    "list_run": run(b"[]"),
    "newer_run": run(b'{"pretrace_run": 99, "files": {}}'),
    "other_run": run(b'{"x": 1}'),
    "word_run": run(b'{"pretrace_run": "1", "files": []}'),
    "files_run": run(b'{"pretrace_run": 1, "files": 3}'),
    "path_run": run(b'{"pretrace_run": 1, "files": {"../good.jsonl": "0"}}'),
    "given_run": run(
        b'{"pretrace_run": 1, "files": {}, "settings": {"command": "score", "given": {"seed": [1]}}}'
    ),
    "odd_given_run": run(
        b'{"pretrace_run": 1, "files": {}, "settings": {"command": "nope", "given": {"seed": 1}}}'
    ),
    "latin_run": run(b'{"pretrace_run": 1, "\xff": 1}'),
    "pipe_run": run(pipe),
    "emptyseal.json": b"{}",
    "listseal.json": b"[]",
    "deepseal.json": b"[" * 100_000,
    "oddseal.json": b'{"pretrace_seal": 1, "documents": 3}',
    "words.txt": b"not a hash\n",
    "log.jsonl": b'{"doc_id": 0}\n',
    "logs": folder(samples_x__jsonl=b"[]\n"),
    "parts": folder(job__json=b"{}"),
    "page": folder(a__html=b"<html><body>" + b"<div>" * 5000 + b"text"),
    "dates.csv": b"page,date\na.html,9999-12-31\n",
    "-dash.jsonl": lines(ROWS),
    "corpus": folder(a__jsonl=lines(ROWS)),
    "cutcorpus": folder(a__jsonl__gz=gzip.compress(lines(ROWS))[:-30]),
    "deep_scan": folder(result__json=b'{"pretrace_verdict": ' + b"[" * 100_000),
    "cut_scan": folder(result__json=b'{"pretrace_verdict": 1, "test"'),
    "pipe_scan": folder(result__json=pipe),
    "corpuspipes": folder(a__jsonl=lines(ROWS), b__jsonl=pipe),
}
