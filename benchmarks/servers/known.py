"""What the packaged model says of the check's sentences, as numbers.

    python -m benchmarks.servers.known    (writes src/pretrace/backends/serving/packaged.json)

Needed again only where the sentences or the packaged model change; a test computes some of it anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pretrace.backends.serving
from pretrace import open_model
from pretrace.backends.serving.packaged import PLAIN
from pretrace.backends.serving.self_check import SENTENCES

PLACE = Path(pretrace.backends.serving.__file__).parent / "packaged.json"
TEMPERATURES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2.0, 2.5)
_DIGITS = 4


def asked(model: Any) -> list[list[int]]:
    """The token ids of the check's sentences."""
    return [one.tokens.tolist() for one in model.encode(list(SENTENCES))]


def numbers(
    model: Any,
    sentences: Sequence[Sequence[int]],
    *,
    before: Sequence[int] = (),
    after: Sequence[int] = (),
    temperature: float = 1.0,
) -> list[float]:
    """The log-probabilities of sentences, given as token ids, but for their first tokens; each is read between other
    tokens."""
    import torch

    found: list[float] = []
    for ids in sentences:
        read = torch.tensor([[*before, *ids, *after]])
        with torch.inference_mode():
            table = (model.model(read).logits[0].float() / temperature).log_softmax(-1)
        places = range(len(before) + 1, len(before) + len(ids))
        found += [float(table[place - 1, read[0, place]]) for place in places]
    return found


def templates(model: Any) -> dict[str, tuple[list[int], list[int]]]:
    """What a server may put around a text without saying so: token ids before and after it, by how it is called."""
    tokenizer = model.tokenizer
    ids = {
        name: tokenizer.convert_tokens_to_ids(name)
        for name in ("<|im_start|>", "<|endoftext|>", "<|im_end|>")
    }
    around = tokenizer.apply_chat_template(
        [{"role": "user", "content": "@@"}], tokenize=False, add_generation_prompt=True
    )
    before, after = (tokenizer(part, add_special_tokens=False)["input_ids"] for part in around.split("@@"))
    starts = {f"behind the start token {name}": ([one], []) for name, one in ids.items()}
    return {**starts, "within the chat template": (before, after)}


def main() -> None:
    """Compute and write."""
    model = open_model("smollm2")
    whole = asked(model)
    forms = {PLAIN: numbers(model, whole)}
    for name, (before, after) in templates(model).items():
        forms[name] = numbers(model, whole, before=before, after=after)
    temperatures = {str(one): numbers(model, whole, temperature=one) for one in TEMPERATURES}
    found = {
        "model": "SmolLM2-135M-Instruct, the packaged one",
        "ids": whole,
        "forms": {name: [round(one, _DIGITS) for one in some] for name, some in forms.items()},
        "temperatures": {name: [round(one, _DIGITS) for one in some] for name, some in temperatures.items()},
    }
    lines = json.dumps(found, separators=(",", ":")).replace('],"', '],\n"').replace('{"', '{\n"')
    PLACE.write_text(lines + "\n", encoding="utf-8")
    print(PLACE, len(forms[PLAIN]), "numbers a form")


if __name__ == "__main__":
    main()
