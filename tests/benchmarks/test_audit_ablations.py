"""The ablations on tiny models and made-up texts: what each way of writing leaves, what is measured, and going on."""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny import SENTENCES

from benchmarks.audits import ablation_trials
from benchmarks.audits import ablations as audit_ablations
from benchmarks.audits.ablation_documents import DOMAINS
from benchmarks.audits.ablation_settings import SETTINGS, published, summary
from benchmarks.audits.ablations import pieces, whole
from benchmarks.audits.held_out_writing import WAYS, Material, Writer, Writing
from benchmarks.audits.instructions import COMPLETION, PARAPHRASE, continued, instruction
from benchmarks.audits.preferring import SimPO
from pretrace import open_model
from pretrace.backends.huggingface import HuggingFace
from pretrace.errors import TextsError
from pretrace.types import Corpus, Pair, Sampling, Text
from pretrace.types import Written as Answered

PNG = b"\x89PNG"
RUN = ("complete", "uncalibrated", "unconstrained", "whole", "apart", "paraphrase")
POOL = " ".join(SENTENCES).split()
HOW = Writing(
    "lora(epochs=1)", beginning=128, learnt=6, preferences=4, shots=2, simpo=SimPO(rounds=2, batch=2)
)


class Echo:
    """Follows every instruction by saying its last words again, and then the same word."""

    name = "echo"
    fingerprint = "echo"
    facts: Mapping[str, Any] = {}

    def __init__(self) -> None:
        self.asked: list[str] = []

    def answers(
        self, instructions: Sequence[str], /, *, tokens: int, sampling: Sampling, seed: int
    ) -> list[Answered]:
        self.asked += instructions
        last = [text.rpartition("\n\n")[2][-30:].strip() for text in instructions]
        return [Answered(text + " verily" * tokens, ended=False) for text in last]


def made_up(number: int) -> Corpus:
    """Documents of about 200 tokens."""
    draw = random.Random(0)
    return Corpus("made", tuple(Text(f"d{i}", " ".join(draw.choices(POOL, k=80))) for i in range(number)))


@pytest.fixture
def writer(model_folder: Path, tmp_path: Path) -> Writer:
    model = open_model(str(model_folder))
    assert isinstance(model, HuggingFace)
    material = Material.of(made_up(14), 10, model.spans, HOW)
    echo = Echo()
    return Writer(material, model, lambda: echo, HOW, tmp_path / "texts")


def test_a_snippet_is_judged_and_the_others_of_its_document_are_learnt_from(writer: Writer) -> None:
    material = writer.material
    assert len(material.judged) == len({one.document for one in material.judged}) == 10
    assert {one.document for one in material.learnt} <= {one.document for one in material.judged}
    assert not {one.text for one in material.learnt} & {one.text for one in material.judged}
    assert [one.document for one in material.learnt] != sorted(one.document for one in material.learnt)
    assert not {one.document for one in material.others} & {one.document for one in material.beginnings}
    assert len(material.beginnings) + len(material.others) == 14
    texts = {text.id: text.text for text in made_up(14).texts}
    assert all(texts[one.document].startswith(one.text) for one in material.beginnings)
    assert Material.of(made_up(14), 10, writer.model.spans, HOW) == material
    with pytest.raises(TextsError, match="take fewer with --pairs"):
        Material.of(made_up(14), 14, writer.model.spans, HOW)


def test_every_way_leaves_pairs_about_the_same_places(writer: Writer) -> None:
    found = {way: writer.written(way) for way in WAYS}
    judged = {one.id: one for one in writer.material.judged}
    for way in ("complete", "preference", "completion"):
        for pair in found[way].pairs:
            assert (pair.prefix, pair.true) == (judged[pair.id].prefix, judged[pair.id].suffix)
    assert [p.generated for p in found["complete"].pairs] != [p.generated for p in found["preference"].pairs]
    for pair in found["paraphrase"].pairs:
        assert (pair.prefix, pair.true) == ("", judged[pair.id].text)
    first = {one.id: one for one in writer.material.beginnings}
    assert {pair.id for pair in found["beginnings"].pairs} == set(first)
    for one in found.values():
        assert one.facts["asked"] == one.facts["written"] == len(one.pairs) == 10
    for pair in (*found["completion"].pairs, *found["paraphrase"].pairs):
        longest = len(writer.model.spans(pair.true))
        assert longest - 2 <= len(writer.model.spans(pair.generated)) <= longest


def test_an_answer_that_says_the_prefix_again_is_cut(writer: Writer) -> None:
    for pair in writer.written("completion").pairs:
        assert pair.generated.startswith(" verily verily")


def test_instructions_show_examples_of_other_documents(writer: Writer) -> None:
    writer.written("paraphrase")
    writer.written("completion")
    assert isinstance(writer.instructed, Echo)
    asked = writer.instructed.asked
    assert len(asked) == 20
    for number, text in enumerate(asked):
        judged = writer.material.judged[number % 10]
        words, sample = (PARAPHRASE, judged.text) if number < 10 else (COMPLETION, judged.prefix)
        shown = [one for one in writer.material.learnt if one.text.strip() in text]
        assert len(shown) == HOW.shots
        assert judged.document not in {one.document for one in shown}
        assert text == instruction(words, [], sample).replace(
            "\n\n", "\n\n" + "\n\n".join(sorted((o.text.strip() for o in shown), key=text.index)) + "\n\n", 1
        )


def test_what_was_written_stays_and_other_settings_do_not_meet_it(writer: Writer) -> None:
    def again(**other: Any) -> Writer:
        from dataclasses import replace

        return Writer(writer.material, writer.model, writer._open, replace(HOW, **other), writer.folder)

    first = writer.written("preference")
    files = sorted(writer.folder.iterdir())
    assert again().written("preference") == first
    assert again(shots=1).written("preference") == first
    assert sorted(writer.folder.iterdir()) == files
    other = again(simpo=SimPO(rounds=1, batch=2)).written("preference")
    assert [p.generated for p in other.pairs] != [p.generated for p in first.pairs]
    assert sum(path.name.startswith("generator-") for path in writer.folder.iterdir()) == 1


def test_a_round_that_is_done_is_not_done_again(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.audits import held_out_writing

    real, calls = held_out_writing.prefer, []

    def killed(*given: Any, **named: Any) -> Any:
        calls.append(named["folder"])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*given, **named)

    monkeypatch.setattr(held_out_writing, "prefer", killed)
    with pytest.raises(KeyboardInterrupt):
        writer.written("preference")
    writer.written("preference")
    assert len(calls) == 3
    assert calls[0] != calls[1] == calls[2]


@pytest.mark.parametrize(
    ("prefix", "answer", "expected"),
    [
        ("It was a dark and stormy", "night.", " night."),
        ("It was a dark and stormy ", " night.", "night."),
        ("It was a dark and stormy", "It was a dark and stormy night.", " night."),
        ("It was a dark and stormy ", "dark and stormy night.", "night."),
        ("It was a dark and stor", "dark and stormy night.", "my night."),
        ("stormy", "stormy night.", " night."),
        ("a dark and stormy", ", wet night", ", wet night"),
        ("dark", "", ""),
        ("dark and stormy", "dark and stormy", ""),
        ("   ", "night", "night"),
    ],
)
def test_an_answer_goes_on_where_the_prefix_ends(prefix: str, answer: str, expected: str) -> None:
    assert continued(prefix, answer) == expected


def test_whole_snippets_have_no_prefix() -> None:
    assert whole([Pair("a", "d", "be", "fore", "low")]) == (Pair("a", "d", "", "before", "below"),)


def test_every_row_of_the_tables_has_its_setting() -> None:
    found = published()
    texts = {(row["setting"], row["classifier"]): row["auc"] for row in found if row["table"] == 2}
    assert len(texts) == 8
    assert texts["complete", "gpt2"] == 0.522
    ps = {(row["setting"], row["kind"]): row["p"] for row in found if row["table"] == 5}
    assert {name for name, _ in ps} == {name for name, one in SETTINGS.items() if one.number}
    assert len(ps) == 16
    assert (ps["unconstrained", "member"], ps["unconstrained", "null"]) == (0.004, 0.43)
    assert sorted(one.number for one in SETTINGS.values() if one.number) == list(range(1, 9))


def test_rows_are_summed_by_procedure_and_kind() -> None:
    usual = {"setting": "complete", "procedure": "paper", "placebo": "none", "kind": "null"}
    rows = [
        {**usual, "part": f"target {i}", "p": p, "rejected": p <= 0.05} for i, p in enumerate((0.01, 0.3))
    ]
    rows.append({"setting": "complete", "part": "texts", "classifier": "words", "auc": [0.5, 0.4, 0.6]})
    assert summary(rows) == [{**usual, "audits": 2, "rejections": 1, "median_p": 0.155}]


def call(monkeypatch: pytest.MonkeyPatch, folder: Path, model: Path, *options: object) -> dict[str, Any]:
    """What `main` leaves on file."""
    out = folder / "ablations.json"
    given = ["audit_ablations", "--data", folder, "--work", folder / "work", "--out", out, "--model", model]
    given += ["--documents", 44, "--learning", 3, "--layers", 1, "--width", 16, "--dtype", "float32"]
    given += ["--method", "lora(epochs=1)", "--instructed", model, "--shots", 1, "--learnt", 6]
    given += ["--preferences", 4, "--rounds", 1, "--pairs", 20, "--targets", 1, "--folds", 2]
    given += ["--gap", "words", "gpt2(layers=1, width=16, heads=2, epochs=1)"]
    given += ["--settings", *RUN]
    monkeypatch.setattr(sys, "argv", [str(one) for one in (*given, *options)])
    audit_ablations.main()
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def test_the_whole_experiment(tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, domain in enumerate(DOMAINS):
        draw = random.Random(place)
        texts = [f"{domain} {i} " + " ".join(draw.choices(POOL, k=80)) for i in range(52)]
        with gzip.open(tmp_path / f"{domain}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    part = call(monkeypatch, tmp_path, model_folder, "--limit", 3)
    assert [(run["setting"], run["part"]) for run in part["runs"]] == [
        ("complete", "texts"),
        ("complete", "target 0"),
        ("uncalibrated", "target 0"),
    ]
    found = call(monkeypatch, tmp_path, model_folder)
    assert found["runs"][:3] == part["runs"]
    assert len(found["runs"]) == 2 * len(RUN) - 2
    gaps = [row for row in found["rows"] if row["part"] == "texts"]
    assert {row["setting"] for row in gaps} == set(RUN) - {"uncalibrated", "unconstrained"}
    assert all(row["auc"][1] <= row["auc"][0] <= row["auc"][2] for row in gaps)
    assert len(gaps) == 4 * 3
    seen = {(r["setting"], r["procedure"], r["placebo"]) for r in found["rows"] if r["part"] != "texts"}
    usual = {("pretrace", "own"), ("paper", "none")}
    others = {
        "uncalibrated": {("paper", "none"), ("original", "none"), ("pretrace", "none")},
        "unconstrained": {("paper", "none")},
    }
    assert seen == {(name, *one) for name in RUN for one in others.get(name, usual)}
    for row in found["summary"]:
        assert row["audits"] == 1
        assert row["kind"] in ("member", "null")
    by = {(r["setting"], r["procedure"], r["kind"]): r for r in found["rows"] if r["part"] != "texts"}
    whole_method, free = by["complete", "paper", "member"], by["unconstrained", "paper", "member"]
    assert whole_method["effect"] != free["effect"]  # the same texts and scores, other weights
    assert (whole_method["pairs"], whole_method["auc_text"]) == (free["pairs"], free["auc_text"])
    assert "auc_text" not in by["uncalibrated", "paper", "member"]
    assert (tmp_path / "ablations.png").read_bytes().startswith(PNG)
    monkeypatch.setattr(audit_ablations, "open_model", None)  # nothing is left to be asked
    monkeypatch.setattr(ablation_trials, "open_model", None)
    assert call(monkeypatch, tmp_path, model_folder)["rows"] == found["rows"]
    with pytest.raises(SystemExit, match="other settings"):
        call(monkeypatch, tmp_path, model_folder, "--shots", 2)


def test_pieces_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["audit_ablations"])
    given = audit_ablations.parsed()
    found = pieces(given)
    assert len(found) == 7 + 9 * 4
    assert found[0] == {"domain": "hackernews", "setting": "complete", "part": "texts"}
    monkeypatch.setattr(sys, "argv", ["audit_ablations", "--settings", "unconstrained", "--targets", "2"])
    given = audit_ablations.parsed()
    assert [one["part"] for one in pieces(given)] == ["target 0", "target 1"]
