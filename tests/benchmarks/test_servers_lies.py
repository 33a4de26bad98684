"""Where a server's lies were caught: the file, the table in the docs, and one run of each outcome."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers import lies
from pretrace.backends.serving import opening

KNOWN_UNSEEN = {"temperature", "start", "system", "bias down", "log2", "zero told"}
"""What no client can know of a model whose answers it does not know; docs/servers.md names them."""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What was measured."""
    if not lies.RESULTS.exists():
        pytest.skip("not measured yet: python -m benchmarks.servers.lies")
    made: dict[str, Any] = json.loads(lies.RESULTS.read_text(encoding="utf-8"))
    return made


def test_every_lie_was_told_to_every_kind_of_server(found: dict[str, Any]) -> None:
    rows = {(row["lie"], row["when"], row["kind"], row["ids"], row["known"]) for row in found["rows"]}
    wanted = {(*case, known) for case, known in itertools.product(lies.cases(), (True, False))}
    assert rows == wanted
    assert found["lies"] == {name: words for name, (words, _) in lies.LIES.items()}


def test_wrong_and_unseen_is_only_what_no_client_could_know(found: dict[str, Any]) -> None:
    silent = [row for row in found["rows"] if row["outcome"] == "silent"]
    bare = [row for row in silent if row["kind"] == "sglang" and not row["ids"]]
    assert {row["lie"] for row in bare} <= KNOWN_UNSEEN | {"half", "log10"}
    counted = {(row["lie"], row["kind"]) for row in silent if row["lie"] == "start counted"}
    assert counted <= {("start counted", "tgi")}, "the others count the tokens"
    silent = [row for row in silent if row not in bare and row["lie"] != "start counted"]
    assert {row["lie"] for row in silent} <= KNOWN_UNSEEN
    assert all(row["when"] == "always" for row in silent if row["lie"] != "zero told")
    assert {row["kind"] for row in silent if row["lie"] == "log2"} <= {"tgi", "completions"}
    assert {row["lie"] for row in silent if row["known"]} <= {"zero told"}
    assert all(
        row["off"] <= lies.WRONG for row in found["rows"] if row["outcome"] in ("connecting", "run", "right")
    )
    honest = [row for row in found["rows"] if row["lie"] == "none"]
    assert {row["outcome"] for row in honest} == {"right"}


def test_no_run_ended_with_anything_else_than_a_refusal(found: dict[str, Any]) -> None:
    assert {row["outcome"] for row in found["rows"]} <= set(lies.OUTCOMES)
    assert all(
        row["said"] and row["said"].isprintable()
        for row in found["rows"]
        if row["outcome"] in ("connecting", "run")
    )


def test_the_docs_have_the_table(found: dict[str, Any]) -> None:
    text = lies.DOCS.read_text(encoding="utf-8")
    assert lies.table(found) in text
    assert lies.unseen(found) in text
    assert f"in {len(found['lies']) - 1} ways" in text


@pytest.mark.parametrize(
    ("name", "when", "kind", "outcome"),
    [
        ("none", "always", "vllm", "right"),
        ("swapped", "always", "vllm", "connecting"),
        ("first", "middle", "completions", "run"),
        ("temperature", "always", "sglang", "silent"),
        ("noise small", "always", "tgi", "told"),
    ],
)
def test_one_run_of_each_outcome(
    name: str, when: str, kind: str, outcome: str, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.servers.imitation import Model
    from pretrace import open_model
    from pretrace.scoring.evidence import open_store, trace
    from pretrace.types import Quantity

    monkeypatch.setenv("PRETRACE_CACHE", "")  # so that what the run sets is put back
    monkeypatch.setattr(lies.Liar, "positions", 256)
    here = open_model(str(model_folder))
    truth = trace(here, lies.texts(), Quantity.LOGP, store=open_store(None))
    row = lies.tried(Model(model_folder), model_folder, truth, (name, when, kind, False, False))
    assert row["outcome"] == outcome, row
    assert opening.compared.__name__ == "compared"
