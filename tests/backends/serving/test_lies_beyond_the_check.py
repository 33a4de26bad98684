"""A server that is honest to the check's sentences and lies of all other texts: what notices it, and what does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import server_lies
import torch
from model_servers import Lie, Model, ModelServer, serving
from tiny import make_model, make_tokenizer

from pretrace import open_model
from pretrace.backends.serving.self_check import SENTENCES
from pretrace.cache.location import text_key
from pretrace.errors import ModelError
from pretrace.scoring.evidence import open_store, trace
from pretrace.types import Quantity

THINGS = ("mill", "bridge", "letter", "garden", "window", "market", "river", "station")
ENDS = (
    "was closed in spring, and nobody asked why.",
    "was painted green by the baker, who had bought it for his daughter.",
    "stood where the road turns; in 1912 it was moved.",
)
TEXTS = [f"The {thing} {end}" for thing in THINGS for end in ENDS]
WRONG = 1e-3  # nats
REMAIN = {
    "temperature", "log2", "start", "system", "template", "8 bits", "noise small", "bias up", "bias down", "bias own",
}  # fmt: skip
"""What docs/servers.md names as not noticed."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Path]:
    """A model that has read half of the texts, so that its numbers are as different as those of a real one."""
    folder = tmp_path_factory.mktemp("trained")
    net, tokenizer = make_model("gpt_neox"), make_tokenizer()
    tokenizer.chat_template = "Read this: {{ messages[0].content }} Now answer: "
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(2):
        for text in (*TEXTS[::2], *SENTENCES):
            ids = torch.tensor([tokenizer(text)["input_ids"]])
            optimizer.zero_grad()
            net(ids, labels=ids).loss.backward()
            optimizer.step()
    net.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return Model(folder), folder


def elsewhere(model: Model, lie: Lie, *, tops: bool) -> Lie:
    """The lie, told of no text that begins as a sentence of the check, with the likeliest tokens at each place or
    without."""
    known = [model.ids(one, special=False) for one in SENTENCES]

    def told(server: ModelServer, ids: list[int]) -> server_lies.Said:
        said = (server_lies.honest if any(ids[: len(one)] == one for one in known) else lie)(server, ids)
        return said if tops else {**said, "tops": [None, *([] for _ in ids[1:])]}

    return told


@pytest.mark.parametrize(
    "answers", [("vllm", True, True), ("completions", False, True), ("completions", True, False)]
)
@pytest.mark.parametrize("name", server_lies.LIES)
def test_a_lie_that_no_sentence_of_the_check_meets(
    name: str,
    answers: tuple[str, bool, bool],
    model: tuple[Model, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind, with_ids, tops = answers
    monkeypatch.setenv("PRETRACE_CACHE", str(tmp_path))
    served, folder = model
    server = ModelServer(served)
    server.with_ids, server.lie = with_ids, elsewhere(served, server_lies.LIES[name], tops=tops)
    truth = trace(open_model(str(folder)), TEXTS, Quantity.LOGP, store=open_store(None))
    with serving(server):
        opened = open_model(f"{kind}:{server.root}", tokenizer=str(folder), token_budget=90, requests=2)
        with open_store(opened.fingerprint) as store:
            try:
                trace(opened, TEXTS, Quantity.LOGP, store=store)
                caught = False
            except ModelError:
                caught = True
            kept = store.get([text_key(one) for one in TEXTS], Quantity.LOGP)
        opened.close()  # type: ignore[attr-defined]
    pairs = [(a.logp, b.logp) for a, b in zip(kept, truth, strict=True) if a is not None]
    off = max((float(np.abs(a - b).max()) for a, b in pairs), default=0.0)
    remain = REMAIN if tops else REMAIN | {"half", "log10"}
    assert caught == (name not in remain | {"none", "3 decimals"})
    assert off <= WRONG or name in remain
    assert caught or len(pairs) == len(TEXTS)
