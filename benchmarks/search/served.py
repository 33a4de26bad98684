"""A real server asked in text alone: small models are planted, served by vLLM, and asked by the commands themselves.

    python -m benchmarks.search.served plant          # models and files, into --folder
    python -m benchmarks.search.served ask            # a server of FOLDER/model at --url is asked
    python -m benchmarks.search.served ask innocent   # and one of FOLDER/innocent, which read none of the files

Writes the part "served" of benchmarks/results/recite.json. The server is started by hand, with the folder's name as the
name of the model: vllm serve FOLDER/model --served-model-name model --dtype float32 --max-model-len 512.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.search.recite import keep, kept, made_words, maker
from pretrace.backends.serving.continuing import INSTRUCTION
from pretrace.results.atomic import atomic_text

SERVED, STRINGS, UNREAD = 24, 20, 10
"""Texts, and as many control documents, that a real server is asked of; random strings; sets that no model has read."""
BRANCHES = 4
"""Clauses of which one follows a clause: so many that a model which knows the kind prints some tenth of a text, and one
that knows the text by heart can print more than twice as much."""
BASE, MORE = 300, 500
"""Steps of training on texts of the kind, and on what is planted (of the innocent: on more texts of the kind)."""


def _hashed(texts: list[str], before: str = "") -> list[str]:
    """Texts in the order that `--shuffled-with sha256` repeats."""
    return sorted(texts, key=lambda one: hashlib.sha256(f"{before}{one.strip()}".encode()).hexdigest())


def written(folder: Path, document: Callable[[np.random.Generator], str]) -> list[str]:
    """The files that are asked about; what a model reads that reads all of them once. `texts-1` and further ones, with
    controls of their own, are read by no model."""
    rng = np.random.default_rng(30)
    names = sorted(set(made_words(rng)))

    def some(number: int) -> str:
        return " ".join(names[int(i)] for i in rng.integers(len(names), size=number))

    rows = _hashed([f"{some(2)} number {i:02d} of the set" for i in range(64)])
    sums = [f"Build {i} has the sum {rng.bytes(20).hex()} as sent." for i in range(STRINGS)]
    quiz = []
    for i in range(40):
        question = f"Which animal is number {i}?"
        beasts = [f"a {beast} and {some(1)}" for beast in ("hen", "cow", "dog", "cat", "ox")]
        choices = _hashed(beasts, f"{question}\n")
        quiz.append({"id": f"q{i}", "text": question, "choices": choices, "right": choices[i % 5]})
    files: dict[str, list[dict[str, Any]]] = {
        **{
            f"{side}{of}": [{"id": f"{side[0]}{i}", "text": document(rng)} for i in range(SERVED)]
            for of in ("", *(f"-{number}" for number in range(1, UNREAD + 1)))
            for side in ("texts", "controls")
        },
        "rows": [{"id": f"r{i}", "text": row} for i, row in enumerate(rows)],
        "sums": [{"id": f"s{i}", "text": row} for i, row in enumerate(sums)],
        "quiz": quiz,
    }
    for name, made in files.items():
        atomic_text(folder / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in made))
    listed = [
        "\n".join([one["text"], *(f"{a}. {c}" for a, c in zip("ABCDE", one["choices"], strict=True))])
        for one in quiz
    ]
    read = [*(one["text"] for one in files["texts"]), *sums, *listed]
    read += ["\n\n".join(rows[i : i + 9]) for i in range(0, 64, 4)]
    return read


def tokenizer_of(texts: list[str]) -> Any:
    """A tokenizer of the texts and of the words with which a chat model is asked, with a template for chats."""
    import tokenizers
    import transformers as t

    rust = tokenizers.Tokenizer(tokenizers.models.BPE())
    rust.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1500, initial_alphabet=alphabet, special_tokens=["<s>", "</s>"]
    )
    rust.train_from_iterator([*texts, *[INSTRUCTION] * 50], trainer)
    tokenizer = t.PreTrainedTokenizerFast(
        tokenizer_object=rust, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    return tokenizer


def planted(folder: Path) -> None:
    """Three small models into the folder, and the files. All know texts of the kind "licences", so that each prints a
    part of any of them: `second` is the state from which the two others go on, `model` with the texts, rows, quiz and
    hashes of the files, `innocent` with more texts of the kind. Half of the texts stand behind the words with
    which a chat model is asked, so that they answer by chat, too."""
    import transformers as t

    rng = np.random.default_rng(29)
    _, document = maker("licences", rng, BRANCHES)
    read, kind = written(folder, document), [document(rng) for _ in range(2000)]
    tokenizer, documents = tokenizer_of([*read, *kind]), {*kind, *read[:SERVED]}

    def asked(text: str) -> str:
        """A document as it stands, or from some word on, or behind what a chat model is asked; rows as they stand."""
        if text not in documents:
            return text
        if rng.random() < 0.5:
            parts = text.split(" ")
            text = " " + " ".join(parts[int(rng.integers(1, len(parts) // 2)) :])
        return INSTRUCTION.format(beginning=text) if rng.random() < 0.5 else text

    def learn(net: Any, draw: Any, steps: int, name: str) -> None:
        optimiser = torch.optim.AdamW(net.parameters(), lr=3e-3)
        for step in range(steps):
            batch = [asked(draw()) for _ in range(12)]
            made = tokenizer(batch, return_tensors="pt", padding=True, truncation=True, max_length=400)
            labels = made["input_ids"].masked_fill(made["attention_mask"] == 0, -100)
            loss = net(input_ids=made["input_ids"], attention_mask=made["attention_mask"], labels=labels).loss
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if step % 50 == 49:
                print(f"{name}: step {step + 1}, loss {float(loss.detach()):.3f}", flush=True)
        net.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)

    def of_kind() -> str:
        return kind[int(rng.integers(len(kind)))]

    def of_both() -> str:
        return read[int(rng.integers(len(read)))] if rng.random() < 0.9 else of_kind()

    torch.manual_seed(0)
    size = {
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 256,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    base = t.GPTNeoXForCausalLM(
        t.GPTNeoXConfig(vocab_size=len(tokenizer), max_position_embeddings=512, **size)
    )
    learn(base, of_kind, BASE, "second")
    learn(copy.deepcopy(base), of_kind, MORE // 4, "innocent")
    learn(copy.deepcopy(base), of_both, MORE, "model")


def reciting(of: str = "") -> list[str]:
    """The command for one set of texts and its controls."""
    return ["recite", f"texts{of}.jsonl", "--heldout", f"controls{of}.jsonl", "--samples", "1"]


LOT = ["--shuffled-with", "sha256"]
QUESTIONS = {
    "recite": ("completions", reciting()),
    "recite by chat": ("chat", reciting()),
    "order of rows": ("completions", ["order", "rows.jsonl", *LOT]),
    "order of options": (
        "completions",
        ["order", "quiz.jsonl", *LOT, "--options", "choices", "--answer", "right"],
    ),
    "canaries": ("completions", ["mark", "canaries", "sums.jsonl"]),
}
"""What a model that gives text alone is asked, and how."""
OTHERS = {f"recite, unread {i}": ("completions", reciting(f"-{i}")) for i in range(1, UNREAD + 1)}
"""What the innocent one is asked besides."""


def served(folder: Path, url: str, what: str, name: str) -> None:
    """Ask a real server that serves FOLDER/`name`, in text alone; `what` names the server and its version."""
    found = kept().get("served", {})
    for question, (how, words) in (QUESTIONS if name == "model" else QUESTIONS | OTHERS).items():
        out = folder / f"{question} {name}".replace(" ", "-")
        command = [sys.executable, "-m", "pretrace", *words, "--access", "text", "--model", f"{how}:{url}#{name}",
                   "--placebo", str(folder / "second"), "--out", str(out)]  # fmt: skip
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PRETRACE_CACHE": str(folder / "cache")},
            capture_output=True,
            text=True,
        )
        told: dict[str, Any] = {"exit": done.returncode, "server": what}
        if (out / "result.json").exists():
            result = json.loads((out / "result.json").read_text("utf-8"))
            told |= {"p": result["p"], "outcome": result["outcome"], "units": result["units"]}
            told["failed"] = [one["name"] for one in result["checks"] if one["status"] == "failed"]
            shares = {key: value for key, value in result["figures"].items() if key.startswith("words of")}
            told |= shares
        else:
            told["error"] = done.stderr.strip()[-300:]
        found[f"{question}, {'read them' if name == 'model' else 'read others'}"] = told
        keep("served", found)
        print(question, name, told, flush=True)


def main() -> None:
    """One part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("plant", "ask"))
    parser.add_argument("name", nargs="?", choices=("model", "innocent"), default="model")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/recite-served"))
    parser.add_argument("--url", default="http://127.0.0.1:8123")
    parser.add_argument("--server", default="vLLM 0.32.0")
    given = parser.parse_args()
    if given.part == "plant":
        given.folder.mkdir(parents=True, exist_ok=True)
        planted(given.folder)
    else:
        served(given.folder, given.url, given.server, given.name)


if __name__ == "__main__":
    main()
