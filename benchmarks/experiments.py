"""What the experiments share: results on file that survive a kill, figures with their intervals, options of size."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import RESULTS, read_results, write_results
from benchmarks.machine import commit, machine
from pretrace.errors import PretraceError
from pretrace.types import Corpus, Estimate, Progress, Run, Text

if TYPE_CHECKING:
    from pretrace.tuning.plan import OnStep, TrainingStep

Row = dict[str, Any]


class Ledger:
    """Results on file: `rows` of figures, and under `runs` an entry a finished piece of work.

    A piece is named by its key (protocol and seed, domain and epochs, …) and written with all its rows at
    once, the file whole or not at all: killed at any time, the next call goes on with the first piece that
    is not there. SystemExit where the file holds results of other settings, which are not ours to delete.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], *, fresh: bool = False) -> None:
        self.path = path
        self.content: dict[str, Any] = {}
        if path.exists() and not fresh:
            self.content = read_results(path)
            _check_same(self.content["settings"], dict(settings), path)
        self.content = {"settings": dict(settings), "runs": [], "rows": [], **self.content}

    def todo(self, keys: Sequence[Row], limit: int | None = None) -> Iterator[Row]:
        """The keys that are not done yet, in order, at most `limit` of them; says where things stand."""
        ahead = [key for key in keys if not self._done(key)]
        print(f"{self.path.name}: {len(keys) - len(ahead)} of {len(keys)} done", flush=True)
        for key in ahead[:limit]:
            print(", ".join(f"{name} {value}" for name, value in key.items()), flush=True)
            yield key

    def add(self, key: Row, rows: Sequence[Row], facts: Mapping[str, Any]) -> None:
        """A finished piece: its rows, and what there is to tell of it besides."""
        self.content["runs"].append({**key, "commit": commit(), **facts})
        self.content["rows"] += [{**key, **row} for row in rows]
        self.save()

    def save(self, **more: Any) -> dict[str, Any]:
        """Write the file, with further entries, and return all that is in it."""
        found = {"machine": machine(), "commit": commit(), "threads": _threads(), **self.content, **more}
        self.content = found
        write_results(self.path, found)
        return found

    def _done(self, key: Row) -> bool:
        return any(all(run.get(name) == key[name] for name in key) for run in self.content["runs"])


class Spoken(Progress):
    """Progress of passes and of trainings as lines of text, one every half minute at most: these runs are long
    and their output goes to a file."""

    def __init__(self, every: float = 30.0) -> None:
        super().__init__()
        self.every, self.last = every, time.monotonic()

    def advance(self, texts: int, tokens: int, seconds: float, fresh: bool) -> None:
        """So many are done; what came from the store does not count for the speed."""
        super().advance(texts, tokens, seconds, fresh)
        speed = f"{self.tokens / self.seconds:,.0f} tokens/s" if self.seconds else "from the cache"
        self._say(f"  {self.done:,} of {self.total:,} passes over a text, {speed}")

    @property
    def on_step(self) -> OnStep:
        """The same for a training."""

        def step(done: TrainingStep) -> None:
            self._say(
                f"  step {done.step} of {done.steps}, loss {done.loss:.3f}, {done.tokens_per_second:,.0f} tokens/s"
            )

        return step

    def _say(self, line: str) -> None:
        if time.monotonic() - self.last >= self.every:
            self.last = time.monotonic()
            print(line, flush=True)


def options(description: str, name: str, *, texts: int, tokens: int | None) -> argparse.ArgumentParser:
    """The options every experiment has; `texts` and `tokens` are its usual size."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=texts, help=f"texts taken (default {texts})")
    parser.add_argument("--tokens", type=int, default=tokens, help=f"tokens of a text (default {tokens})")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--dtype", default="bfloat16", choices=("float32", "bfloat16"))
    parser.add_argument("--limit", type=int, help="finish at most so many pieces in this call")
    parser.add_argument("--out", type=Path, default=RESULTS / f"{name}.json")
    parser.add_argument("--fresh", action="store_true", help="begin anew, whatever the file holds")
    return parser


def settings_of(arguments: argparse.Namespace, *names: str) -> Row:
    """The options by which the results of one file must agree."""
    made = {name: getattr(arguments, name) for name in ("model", "dtype", "texts", "tokens", *names)}
    return {name: str(value) if isinstance(value, Path) else value for name, value in made.items()}


def thinned(corpus: Corpus, number: int, *, seed: int = 0) -> Corpus:
    """About that many texts at random: of members and non-members alike, the first of every document before
    the second of any."""
    generator = np.random.default_rng(seed)
    labels = sorted({text.member for text in corpus.texts}, key=str)
    taken: set[str] = set()
    for place, label in enumerate(labels):
        share = number * (place + 1) // len(labels) - number * place // len(labels)
        taken |= {text.id for text in _in_turn(corpus.texts, label, generator)[:share]}
    return replace(corpus, texts=tuple(text for text in corpus.texts if text.id in taken))


def figures(run: Run) -> list[Row]:
    """A row a score and blind baseline of an evaluated run: AUC, true positive rate at 5% false positives and
    accuracy, each [value, low, high]. A score's row holds its controls, where there are any: `placebo`, `lead` (its AUC
    over the placebo's, from the same resamples) and `shuffled` ([median, lowest, highest] of the repeats)."""
    assert run.evaluation is not None
    beside = {(row.kind, row.name): row for row in run.evaluation.rows}
    made = []
    for row in run.evaluation.rows:
        if row.kind not in ("score", "blind"):
            continue
        one: Row = {"score": row.name, "kind": row.kind, **_three(row)}
        for kind in ("placebo", "shuffled"):
            control = beside.get((kind, row.name)) if row.kind == "score" else None
            if control is not None:
                one[kind] = _three(control)
                lead = getattr(control, "lead", None)
                if lead is not None:
                    one["lead"] = interval(lead)
        made.append(one)
    return made


def interval(estimate: Any) -> list[float]:
    """[value, low, high] of an estimate, to four places."""
    assert isinstance(estimate, Estimate)
    return [round(number, 4) for number in (estimate.value, estimate.low, estimate.high)]


def sizes(run: Run) -> Row:
    """How much a run was measured on."""
    assert run.evaluation is not None
    return {
        "members": run.evaluation.members,
        "nonmembers": run.evaluation.nonmembers,
        "documents": run.evaluation.groups,
        "scored_tokens": int(run.tokens.sum()),
        "cut_texts": int(np.count_nonzero(run.cut)),
        "skipped": len(run.skipped),
        "resamples": run.evaluation.resamples,
    }


def explained(error: PretraceError) -> SystemExit:
    """The message alone, as the command line would print it."""
    return SystemExit(f"error: {error}")


def _three(row: Any) -> Row:
    return {name: interval(getattr(row, name)) for name in ("auc", "tpr", "accuracy")}


def _in_turn(texts: Sequence[Text], label: bool | None, generator: np.random.Generator) -> list[Text]:
    """The texts with a label: one of each document in random order, then the next of each."""
    documents: dict[str, list[Text]] = {}
    for text in texts:
        if text.member is label:
            documents.setdefault(text.document, []).append(text)
    names = sorted(documents)
    order = [documents[names[i]] for i in generator.permutation(len(names))]
    longest = max(map(len, order), default=0)
    return [some[turn] for turn in range(longest) for some in order if turn < len(some)]


def _check_same(before: Mapping[str, Any], now: Mapping[str, Any], path: Path) -> None:
    apart = [
        f"{name} {before.get(name)!r} there and {now.get(name)!r} here"
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]
    if apart:
        raise SystemExit(
            f"{path} holds results of other settings ({'; '.join(apart)}): give another --out, or --fresh to "
            "throw them away."
        )


def _threads() -> int:
    import torch

    return torch.get_num_threads()
