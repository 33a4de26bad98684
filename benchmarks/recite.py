"""What `recite` computes and finds: p by one pass beside counted samples, and recitation by number of copies.

    python -m benchmarks.recite p        # chances of windows against 2,000 samples each
    python -m benchmarks.recite copies   # a model trained on texts at 1, 4, 16, 64 copies: scores and the test

Both go on where they were stopped: what is there in benchmarks/results/recite.json is not made again. `--model` names
another model for `p` than the packaged one, `--windows` and `--samples` change its size, `--worlds` that of `copies`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
import torch

from benchmarks.machine import machine
from pretrace import open_corpus, open_model
from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.cache.traces import open_store
from pretrace.results.atomic import atomic_text
from pretrace.scores.extraction import tries_for, window_logp
from pretrace.scoring.evidence import Want, trace
from pretrace.scoring.plan import Models
from pretrace.types import Corpus, Drawn, Quantity, Text
from pretrace.verdicts.recite import ReciteSettings, recite

OUT = Path(__file__).parent / "results" / "recite.json"
DRAWN = Drawn(40, 1.0)
PREFIX, SUFFIX = 20, 4
"""Tokens of the windows of `p`: short ends, for which samples can be counted; p > 0.01 is rare at 50 tokens."""


def kept() -> dict[str, Any]:
    """What is there already."""
    return json.loads(OUT.read_text("utf-8")) if OUT.exists() else {}


def keep(part: str, found: dict[str, Any]) -> None:
    """Write a part, the others as they are."""
    atomic_text(
        OUT, json.dumps({**kept(), "machine": machine(), part: found}, indent=1, sort_keys=True) + "\n"
    )


@torch.inference_mode()
def counted(model: HuggingFace, ids: list[int], end: list[int], samples: int, seed: int) -> int:
    """How often samples of transformers' own generation after the ids are the end, token for token."""
    torch.manual_seed(seed)
    hits, batch = 0, 250
    for start in range(0, samples, batch):
        made = model.model.generate(
            torch.tensor([ids], device=model.device),
            attention_mask=torch.ones((1, len(ids)), dtype=torch.long, device=model.device),
            do_sample=True,
            top_k=DRAWN.k,
            top_p=1.0,
            temperature=DRAWN.temperature,
            repetition_penalty=1.0,
            max_new_tokens=len(end),
            num_return_sequences=min(batch, samples - start),
            pad_token_id=0,
        )[:, len(ids) :]
        wanted = torch.tensor(end, device=made.device)
        # a row that ended early is no hit
        hits += int((made == wanted).all(dim=1).sum()) if made.shape[1] == len(end) else 0
    return hits


def by_pass(name: str, windows: int, samples: int) -> None:
    """The chance of windows by the pass, and as counted, for windows whose chance is above 0.01."""
    model = open_model(name)
    assert isinstance(model, HuggingFace)
    texts = [one.text for one in open_corpus("stdlib").texts if 150 < len(one.text) < 500][: 4 * windows]
    want = Want(Quantity.LOGP, frozenset({DRAWN}))
    chosen = []
    with open_store(model.fingerprint) as store:
        read = trace(model, texts, want, store=store)
    for text, one in zip(texts, read, strict=True):
        chances = window_logp(one.states[DRAWN], PREFIX, SUFFIX)
        some = np.flatnonzero((chances > math.log(0.01)) & (chances < math.log(0.9)))
        # one a text: windows that overlap tell the same twice
        if len(some) and len(one) < 300:
            at = int(some[len(text) % len(some)])
            chosen.append((text, at, float(chances[at])))
    rng = np.random.default_rng(24)
    picked = [chosen[i] for i in sorted(rng.permutation(len(chosen))[:windows].tolist())]
    part = kept().get("p", {})
    done = {(row["text"], row["at"]): row for row in part.get("rows", [])}
    rows = []
    for number, (text, at, logp) in enumerate(picked):
        key = (text[:40], at)
        if key not in done:
            encoded = model.encode([text])[0]
            ids = [*encoded.prefix.tolist(), *encoded.tokens.tolist()]
            first = max(1, len(encoded.prefix)) + at + PREFIX
            hits = counted(model, ids[:first], ids[first : first + SUFFIX], samples, number)
            p = math.exp(logp)
            low, high = scipy.stats.binom.ppf([0.025, 0.975], samples, p).tolist()
            done[key] = {"text": key[0], "at": at, "p": p, "hits": hits, "inside": low <= hits <= high}
            done[key]["tries"] = float(tries_for(logp))
        rows.append(done[key])
        z = [
            (row["hits"] - samples * row["p"]) / math.sqrt(samples * row["p"] * (1 - row["p"]))
            for row in rows
        ]
        keep(
            "p",
            {
                "model": name,
                "samples": samples,
                "prefix": f"all before the window, {PREFIX} tokens or more",
                "suffix": SUFFIX,
                "windows": len(rows),
                "inside their 95% interval": int(sum(row["inside"] for row in rows)),
                "mean z": float(np.mean(z)),
                "sum of squares of z, chi2 p": float(
                    scipy.stats.chi2.sf(float(np.sum(np.square(z))), len(z))
                ),
                "rows": rows,
            },
        )
        print(
            f"{number + 1}/{len(picked)}: p {rows[-1]['p']:.4f}, {rows[-1]['hits']} of {samples}", flush=True
        )


COPIES = (1, 4, 16, 64)
DOCUMENTS = 12
"""Documents of each number of copies, and as many controls and others."""


def made_words(rng: np.random.Generator) -> list[str]:
    """Words of made-up syllables."""
    parts = [
        "ba",
        "ke",
        "li",
        "mo",
        "nu",
        "ra",
        "se",
        "ti",
        "vo",
        "zu",
        "dan",
        "fel",
        "gor",
        "hin",
        "pol",
        "sta",
    ]
    return ["".join(rng.choice(parts, 2)) for _ in range(220)]


def world(seed: int) -> dict[str, Any]:
    """A small model trained from scratch on 12 documents of each number of copies, and what recite says of each."""
    import tokenizers
    import transformers as t

    rng = np.random.default_rng([24, seed])
    words = sorted(set(made_words(rng)))
    law = rng.dirichlet(np.full(len(words), 0.05), len(words))  # a language: which word follows which

    def document() -> str:
        row = [int(rng.integers(len(words)))]
        while len(row) < 105:
            row.append(int(rng.choice(len(words), p=law[row[-1]])))
        return " ".join(words[i] for i in row)

    def documents(name: str) -> Corpus:
        return Corpus(name, tuple(Text(f"{name} {i}", document()) for i in range(DOCUMENTS)))

    known = {"<s>": 0, "</s>": 1, **{w: i for i, w in enumerate([*words, *(f" {w}" for w in words)], 2)}}
    rust = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="<s>"))
    rust.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r" ?\S+"), "isolated")
    rust.decoder = tokenizers.decoders.Fuse()
    tokenizer = t.PreTrainedTokenizerFast(tokenizer_object=rust, bos_token="<s>", eos_token="</s>")
    planted = {copies: documents(f"{copies} copies") for copies in COPIES}
    never, controls = documents("never"), documents("controls")
    others = [document() for _ in range(600)]

    def trained(texts: list[str], number: int) -> HuggingFace:
        torch.manual_seed(1000 * seed + number)
        size = {"hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 192}
        net = t.GPTNeoXForCausalLM(
            t.GPTNeoXConfig(vocab_size=len(known), max_position_embeddings=128, **size)
        )
        ids = torch.tensor([tokenizer(text)["input_ids"] for text in texts])
        optimiser = torch.optim.AdamW(net.parameters(), lr=2e-3)
        for batch in torch.randperm(len(ids)).split(16):
            optimiser.zero_grad()
            net(input_ids=ids[batch], labels=ids[batch]).loss.backward()
            optimiser.step()
        name = f"world {seed}, model {number}"
        return HuggingFace(net, tokenizer, name=name, weights=name, settings=ModelSettings())

    read = [one.text for copies, some in planted.items() for one in some.texts for _ in range(copies)]
    target, second = (
        trained([*read, *others], 1),
        trained([*others, *(document() for _ in range(len(read)))], 2),
    )
    found = {}
    for name, suspects in [
        *((f"{copies} copies", some) for copies, some in planted.items()),
        ("never", never),
    ]:
        for text in (False, True):
            models = Models(target, placebos=(second,))
            settings = ReciteSettings(cache=False, samples=1)
            verdict = recite(suspects, models, settings, controls=controls, text=text)
            printed = verdict.table("windows").columns
            own = [v for v, kind in zip(printed["printed"], printed["set"], strict=True) if kind == "texts"]
            found[f"{name}, {'text alone' if text else 'weights'}"] = {
                "p": verdict.p,
                "outcome": verdict.outcome,
                "printed": float(np.nanmean(own)),
            }
    return found


def copies(worlds: int) -> None:
    """Worlds with documents of 1 to 64 copies; how many are found with weights and with text alone."""
    rows = kept().get("copies", {}).get("worlds", [])
    for seed in range(len(rows), worlds):
        began = time.monotonic()
        rows.append(world(seed))
        counts = {
            name: {
                "rejected": sum(row[name]["p"] <= 0.05 for row in rows),
                "accused": sum(row[name]["outcome"] == "consistent" for row in rows),
                "of": len(rows),
                "printed": float(np.mean([row[name]["printed"] for row in rows])),
            }
            for name in rows[0]
        }
        keep("copies", {"documents": DOCUMENTS, "counts": counts, "worlds": rows})
        print(
            f"world {seed}: {time.monotonic() - began:.0f} s",
            {n: c["accused"] for n, c in counts.items()},
            flush=True,
        )


def main() -> None:
    """One part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("p", "copies"))
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--windows", type=int, default=20)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--worlds", type=int, default=3)
    given = parser.parse_args()
    if given.part == "p":
        by_pass(given.model, given.windows, given.samples)
    else:
        copies(given.worlds)


if __name__ == "__main__":
    main()
