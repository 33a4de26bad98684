"""Every causal family that the installed transformers maps, built tiny, read by pretrace and by a plain float64 loop.

`python -m benchmarks.families [FAMILY ...]` builds each family with random weights in a process of its own, opens it as
any folder, and compares log-probability, mean, spread and peak of each token (what all one-pass scores are made of)
with a loop that reads one text at a time in float64: texts alone, in batches, behind shared beginnings, and with two
threads. Rows are written to `evidence/families.json` as they are made; a second run goes on. `--page` writes
`evidence/families.md` alone.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import RESULTS, read_results, write_results

RESULT = RESULTS / "families.json"
PAGE = RESULT.with_suffix(".md")
TOLERANCE = 1e-3  # nats a token; what is read rightly stays within 1e-4
SMALL = 30_000_000  # parameters of a build
SECONDS = 400
TEXTS = (
    "The keeper of the lamp counted ships by their bells, 17 of them.",
    "A short one.",
    *(f"What is kept in the tower? {one}" for one in ("A bell.", "Rope, salt.")),
)
SIZES: tuple[tuple[str, Any], ...] = (
    (r"(num_)?(hidden_|decoder_)?layers|n_layers?|num_layers|decoder_layers|encoder_layers", 2),
    (r"(num|n|decoder|encoder)_(attention_)?heads?|n_head|num_heads", 4),
    (r"num_key_value_heads|num_kv_heads|n_head_kv", 2),
    (r"rotary_dim", 8),
    (r"hidden_size|d_model|n_embd|dim|embedding_size|emb_dim|word_embed_proj_dim|attention_hidden_size", 64),
    (
        r".*(intermediate_size.*|ffn_dim|d_ff|d_inner|ffn_hidden_size|n_inner|inner_dim)|shared_expert_intermediate_size",
        96,
    ),
    (r"max_position_embeddings|n_positions|max_seq_len|seq_length|n_ctx|context_length", 256),
    (r"(n_routed|num_local|num|moe_num)_experts|n_routed_experts|num_local_experts", 4),
    (r"(num_experts_per_tok|moe_topk|top_k|moe_k|n_group|topk_group|num_experts_per_token)", 1),
    (
        r"head_dim|attention_head_dim|(qk_nope|qk_rope|v|linear_key|linear_value|mamba|kda)_head_dim|d_head|d_kv",
        16,
    ),
    (r"q_lora_rank|kv_lora_rank|hidden_size_per_layer_input", 16),
    (r"sliding_window|attention_window_size|local_window_size|window_size|attention_chunk_size", 16),
    (r"state_size|ssm_state_size|mamba_d_state|conv_kernel|d_state", 4),
    (r"(linear_num_(key|value)_heads)|mamba_n_heads|mamba_num_heads|n_mamba_heads", 4),
)


def shrunken(kind: Any, vocabulary: int) -> Any:
    """A configuration of the class with small sizes under whatever names it has for them."""
    usual = kind().to_dict()
    small = {name: value for name in usual for pattern, value in SIZES if re.fullmatch(pattern, name)}
    small = {name: value for name, value in small.items() if isinstance(usual[name], int | type(None))}
    for name in ("layer_types", "mlp_layer_types", "layers_block_type", "block_types"):
        if isinstance(usual.get(name), list) and len(usual[name]) > 2:
            small[name] = [*dict.fromkeys(usual[name]), *usual[name]][:2]  # one of each kind
    if "kv_lora_rank" in usual:  # one latent for all heads
        small["num_key_value_heads"] = 4
    tokens = {name: 0 for name in usual if name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    return kind(
        **small, **tokens, vocab_size=vocabulary, **({"is_decoder": True} if "is_decoder" in usual else {})
    )


def build(family: str, folder: Path) -> str:
    """Save a tiny model of the family in the folder and return its class; raises what transformers raises."""
    import torch
    import transformers
    from tiny import make_tokenizer
    from transformers.models.auto import configuration_auto, modeling_auto

    torch.manual_seed(1)
    tokenizer = make_tokenizer()
    kind = getattr(transformers, configuration_auto.CONFIG_MAPPING_NAMES[family])  # type: ignore[attr-defined]
    config = shrunken(kind, len(tokenizer) + 16)
    with torch.device("meta"):
        size = sum(p.numel() for p in transformers.AutoModelForCausalLM.from_config(config).parameters())
    if size > SMALL:
        raise ValueError(f"no small build: {size:,} parameters")
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        model.eval()(input_ids=torch.arange(2, 12)[None], use_cache=False)
        for name, weight in model.named_parameters():
            if weight.ndim >= 2:
                weight.mul_(8.0 if re.search("embed|lm_head|wte", name) else 2.0)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[family])


def plain_traces(folder: Path, texts: Mapping[int, list[int]]) -> dict[int, Any]:
    """float64 [4, tokens] of each text: log-probability, mean and spread of log p, and peak, one text at a time."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    try:
        model = model.double()
        model(input_ids=torch.tensor([[1, 2]]), use_cache=False)
    except Exception:  # noqa: BLE001 - some families fix a type in their code: their logits are then float32
        model = model.float()
    made = {}
    with torch.inference_mode():
        for number, ids in texts.items():
            rows = []
            for end in range(1, len(ids)):  # each token from those before it alone
                logits = model(input_ids=torch.tensor([ids[:end]]), use_cache=False).logits[0, -1].double()
                logp = logits.log_softmax(-1)
                p = logp.exp()
                mean = (p * logp).sum()
                spread = (p * (logp - mean) ** 2).sum().sqrt()
                rows.append(torch.stack([logp[ids[end]], mean, spread, logp.max()]))
            made[number] = torch.stack(rows, dim=1).numpy()
    return made


def compare(folder: Path) -> dict[str, float]:
    """The largest difference, in nats, in each way of reading."""
    import numpy as np
    import torch

    from pretrace import open_model
    from pretrace.backends.tokens import alike
    from pretrace.types import Peak, Quantity

    largest: dict[str, float] = {}
    truth: dict[int, Any] = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        model: Any = open_model(str(folder))
        encoded = model.encode(list(TEXTS))
        truth = truth or plain_traces(folder, {i: [int(t) for t in e.tokens] for i, e in enumerate(encoded)})
        ways = {
            "alone": [[(i, e)] for i, e in enumerate(encoded)],
            "batches": [[(i, encoded[i]) for i in batch] for batch in model.pack(encoded)],
        }
        shared = alike(encoded)
        ways["beginnings"] = [[(i, shared[i]) for i in batch] for batch in model.pack(shared)]
        for way, batches in ways.items():
            worst = 0.0
            rows = model.stream([[e for _, e in b] for b in batches], Quantity.MOMENTS, frozenset({Peak()}))
            for number, traces in rows:
                for (i, _), trace in zip(batches[number], traces, strict=True):
                    found = np.stack([trace.logp, trace.mean, trace.std, trace.states[Peak()]])
                    worst = max(worst, float(np.abs(found - truth[i]).max()))
            largest[way if threads == 1 else f"{way}, two threads"] = worst
    return largest


def measure(family: str) -> dict[str, Any]:
    """One row: what became of a family."""
    from pretrace.errors import PretraceError

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / family
        try:
            built = build(family, folder)
        except Exception as error:  # noqa: BLE001 - whatever transformers raises: the family cannot be built small
            return {"family": family, "outcome": "not built", "why": f"{type(error).__name__}: {error}"[:200]}
        try:
            largest = compare(folder)
        except PretraceError as error:
            return {
                "family": family,
                "class": built,
                "outcome": "refused",
                "why": str(error).replace(str(folder), "it"),
            }
    worst = max(largest.values())
    outcome = "agrees" if worst <= TOLERANCE else "WRONG"
    return {"family": family, "class": built, "outcome": outcome, "largest": worst, "by way": largest}


def families() -> list[str]:
    """The causal families of the installed transformers."""
    from transformers.models.auto import modeling_auto

    return sorted(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def _send(writes: Any, family: str) -> None:
    writes.send(measure(family))


def measured(wanted: list[str], known: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each wanted family that has none, each from a process of its own."""
    fork = multiprocessing.get_context("fork")  # what is imported is imported once
    for family in wanted:
        if family in known:
            continue
        began, (reads, writes) = time.monotonic(), fork.Pipe(duplex=False)
        process = fork.Process(target=_send, args=(writes, family))
        process.start()
        writes.close()
        try:
            row = (
                reads.recv()
                if reads.poll(SECONDS)
                else {"outcome": "not built", "why": f"more than {SECONDS} s"}
            )
        except EOFError:
            row = {"outcome": "ERROR", "why": "its process ended"}
        process.kill()
        process.join()
        row = {"family": family, **row}
        said = row.get("largest", row.get("why", ""))
        print(f"{family:28}{row['outcome']:10} {said} ({time.monotonic() - began:.0f} s)", flush=True)
        yield row


def write_page(rows: list[dict[str, Any]]) -> None:
    """Write the families by outcome to evidence/families.md."""
    largest = max(row["largest"] for row in rows if row["outcome"] == "agrees")
    by: dict[str, list[str]] = {}
    for row in rows:
        title = {
            "agrees": f"agrees within {largest:.0e} nats a token",
            "not built": "no small build was made",
        }
        later = "sees the tokens after" in row.get("why", "")
        refused = f"refused: {'sees later tokens' if later else row.get('why', '').split(': ', 1)[-1][:90]}"
        by.setdefault(title.get(row["outcome"], refused), []).append(f"`{row['family']}`")
    lines = [f"| {title} ({len(some)}) | {', '.join(some)} |" for title, some in sorted(by.items())]
    head = "# Model families\n\n*Written by `python -m benchmarks.families --page`; do not edit.*\n"
    PAGE.write_text("\n".join([head, "| outcome | families |", "|---|---|", *lines, ""]), encoding="utf-8")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    known = read_results(RESULT)["families"] if RESULT.is_file() else []
    rows = {row["family"]: row for row in known if row["family"] not in given.families}
    if not given.page:
        import tiny  # noqa: F401 - what follows imports it in each process
        import torch
        import transformers

        from pretrace.backends import huggingface  # noqa: F401 - likewise

        torch.set_num_threads(1)
        for row in measured(given.families or families(), rows):
            rows[row["family"]] = row
            made = {
                "transformers": transformers.__version__,
                "families": [rows[name] for name in sorted(rows)],
            }
            write_results(RESULT, made)
    write_page([rows[name] for name in sorted(rows)])


if __name__ == "__main__":
    main()
