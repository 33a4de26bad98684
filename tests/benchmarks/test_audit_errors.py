"""The audits of the error-rate experiment on numbers that were made up: which documents meet, what is rejected, and
that a margin was chosen without the domain that it is judged on."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from audited_domains import made_up

from benchmarks.audits import errors as audit_errors
from benchmarks.audits import literature as audit_literature
from benchmarks.audits import wrong_controls as audit_wrong_controls
from benchmarks.audits.documents import KEPT_APART
from benchmarks.audits.errors import against_controls, lean, placebo_rows
from benchmarks.audits.literature import literature_rows
from benchmarks.audits.models import Target
from benchmarks.audits.readings import ALONE, EARLIER, OWN, TUNED
from benchmarks.audits.samples import Domain, Subject, Values, subjects
from benchmarks.audits.wrong_controls import wrong_control_rows
from pretrace.types import Features
from pretrace.verdicts.audit.data import expressions

LEANS = {"hackernews": 0.0, "arxiv": 0.1, KEPT_APART: 0.3}
"""By how many nats a token a target of the domain finds true text likelier, whoever is a member."""
RAISED = 0.4
"""By how many nats a token it finds members likelier."""
TEXTS, TOKENS, PREFIX = 420, 16, 8
"""Texts of a domain, tokens of each, and those of them in the prefix."""
AWAY = 60
"""Texts of arXiv that the target of Hacker News read as well."""


def by_size(rows: list[dict[str, Any]]) -> dict[tuple[str, int, int], dict[str, Any]]:
    return {(row["kind"], row["documents"], row["controls"]): row for row in rows}


def test_audits_of_one_size_share_no_document(monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[tuple[list[float], list[float]]] = []

    def noted(suspect: Any, controls: Any, **how: Any) -> float:
        met.append((suspect.tolist(), controls.tolist()))
        return 0.01 if len(met) % 2 else 0.5

    monkeypatch.setattr(audit_errors, "two_sample", noted)
    member = np.arange(100) % 2 == 0
    found = Values(tuple(map(str, range(100))), np.arange(100.0), member)
    rows = by_size(list(against_controls(found, [(10, 15)])))
    assert rows.keys() == {("null", 10, 15), ("member", 10, 15)}
    assert [row["audits"] for row in rows.values()] == [2, 3]
    assert [row["rejections"] for row in rows.values()] == [1, 2]
    assert [row["p"] for row in rows.values()] == [[0.01, 0.5], [0.01, 0.5, 0.01]]
    for audits, kind in ((met[:2], "null"), (met[2:], "member")):
        every = [value for pair in audits for side in pair for value in side]
        assert len(every) == len(set(every)) == 25 * len(audits)
        for suspect, controls in audits:
            assert (len(suspect), len(controls)) == (10, 15)
            assert not member[np.array(controls, dtype=int)].any()
            assert member[np.array(suspect, dtype=int)].all() == (kind == "member")
            assert member[np.array(suspect, dtype=int)].any() == (kind == "member")


def test_sizes_that_the_documents_do_not_fill_are_left_out() -> None:
    found = Values(tuple(map(str, range(40))), np.arange(40.0), np.arange(40) < 30)
    assert by_size(list(against_controls(found, [(5, 5), (25, 20), (8, 4)]))).keys() == {
        ("null", 5, 5),
        ("member", 5, 5),
        ("member", 8, 4),
    }


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `audit_readings` leaves it, of three domains with two texts a document in one of them."""
    folder = tmp_path_factory.mktemp("work")
    domains: dict[str, Any] = {}
    for place, (domain, leaning) in enumerate(LEANS.items()):
        rng = np.random.default_rng(place)
        pairs, rows, member = [], [], []
        for i, text in enumerate(made_up(domain, TEXTS, words=12)):
            group = f"paper {i // 2}" if domain == "arxiv" else ""
            period = {"period": "later" if i >= TEXTS // 2 else "earlier"} if domain == "arxiv" else {}
            rows.append([f"{domain}-{i}", text, group, period])
            pairs.append([f"{domain}-{i}#1", f"{domain}-{i}", text[:20], text[20:], text[20:][::-1]])
            member.append(i % 4 < 2)
        domains[domain] = {"evaluation": rows}
        first = [[*pair[:4], ""] for pair in pairs]
        (folder / f"pairs-{domain}.json").write_text(json.dumps({"drawn": pairs, "first": first}))
        lead = np.array(member) * RAISED + leaning
        beside = {
            name: array
            for which in (OWN, EARLIER, TUNED)
            for name, array in said(which, np.zeros(TEXTS), rng).items()
        }
        beside[f"{OWN}/scores"] = rng.normal(size=(TEXTS, len(ALONE)))
        if domain == "hackernews":
            beside |= said("first", np.zeros(TEXTS), rng)
        np.savez(folder / f"beside-{domain}.npz", **beside)  # type: ignore[arg-type]
        target = {"member": np.array(member), **said("drawn", lead, rng)}
        target["drawn/scores"] = beside[f"{OWN}/scores"] + 3.0 * np.array(member)[:, None]
        if domain == "hackernews":
            target |= said("first", lead, rng) | said("arxiv", np.zeros(AWAY), rng)
            target["features"] = np.arange(2.0 * TEXTS)[:, None] + np.zeros(len(expressions(True)))
            target["features"] = target["features"].reshape(2, TEXTS, -1)
        np.savez(folder / f"target-{domain}-{Target(0).name}.npz", **target)  # type: ignore[arg-type]
    with gzip.open(folder / "documents.json.gz", "wt", encoding="utf-8") as file:
        json.dump({"domains": domains}, file)
    return folder


def said(
    name: str, lead: npt.NDArray[np.float64], rng: np.random.Generator
) -> dict[str, npt.NDArray[np.float64]]:
    """What a model said, as `audit_readings.said` keeps it: true suffixes are likelier by the lead."""
    number = len(lead)
    true = rng.normal(-3, 0.2, (number, TOKENS))
    true[:, PREFIX:] += lead[:, None]
    lengths = np.full(number, TOKENS)
    return {
        f"{name}/true": true.ravel(),
        f"{name}/true lengths": lengths,
        f"{name}/before": np.full(number, PREFIX),
        f"{name}/generated": rng.normal(-3, 0.2, number * (TOKENS - PREFIX)),
        f"{name}/generated lengths": lengths - PREFIX,
    }


def the_subject(work: Path, domain: str) -> Subject:
    found = subjects(Domain(work, domain))
    assert len(found) == 1
    return found[0]


def test_texts_of_one_document_are_one_value(work: Path) -> None:
    found = the_subject(work, "arxiv")
    assert found.key == {"domain": "arxiv", "model": "Llama 3.3M", "epochs": 1, "stream": False}
    values = found.by_document(np.arange(float(TEXTS)))
    assert len(values.names) == TEXTS // 2
    by_name = dict(zip(values.names, values.values.tolist(), strict=True))
    assert by_name["paper 0"] == 0.5
    assert by_name["paper 7"] == 14.5
    assert {name for name, member in zip(values.names, values.members, strict=True) if member} == {
        f"paper {i}" for i in range(0, TEXTS // 2, 2)
    }
    np.testing.assert_array_equal(
        found.by_document(np.arange(float(TEXTS)), whole=True).values, values.values
    )


def test_a_lean_is_of_documents_that_were_not_read(work: Path) -> None:
    found = {domain: lean(the_subject(work, domain), OWN) for domain in LEANS}
    assert abs(found["hackernews"]) < 0.05 < 0.1 < found["arxiv"] < found[KEPT_APART]


def test_without_controls_the_margin_is_taken_off(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_errors, "DRAWS", 200)
    subject = the_subject(work, KEPT_APART)

    def rejected(margin: float) -> dict[tuple[str, str, str], tuple[int, int]]:
        rows = placebo_rows(subject, dict.fromkeys((OWN, EARLIER, TUNED), margin))
        return {
            (row["placebo"], row["margin"], row["kind"]): (row["rejections"], row["audits"])
            for row in rows
            if row["documents"] == 50
        }

    small, large = rejected(0.0), rejected(0.95)
    for name in (OWN, EARLIER, TUNED, audit_errors.MAX):
        assert small[name, "left out", "null"] == small[name, "none", "null"] == (4, 4)  # it leans
        assert large[name, "left out", "null"] == (0, 4)
        assert large[name, "none", "null"] == (4, 4)


def test_every_design_is_tried_and_the_leans_are_kept(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_errors, "DRAWS", 200)
    monkeypatch.setattr(audit_errors, "GRID", ((25, 25), (25, 50)))
    monkeypatch.setattr(audit_errors, "LEANS", tmp_path / "leans.json")
    monkeypatch.setattr(audit_errors, "literature_rows", lambda subject: ())
    monkeypatch.setattr(audit_errors, "wrong_control_rows", lambda subject: [{"wrong": "one"}])
    seen: dict[str, dict[str, float]] = {}
    real = audit_errors.placebo_rows
    monkeypatch.setattr(
        audit_errors,
        "placebo_rows",
        lambda subject, margins: (seen.update({subject.domain.name: margins}), real(subject, margins))[1],
    )
    audit_errors.run(work, tmp_path / "errors.json")
    found = json.loads((tmp_path / "errors.json").read_text())
    leaning = {row["domain"]: row[OWN] for row in found["leans"]}
    assert seen["hackernews"][OWN] == seen[KEPT_APART][OWN] == leaning["arxiv"]
    assert seen["arxiv"][OWN] == leaning["hackernews"]
    assert {row["design"] for row in found["rows"]} == {"controls", "differences", "placebos"}
    for row in found["rows"]:
        assert row["audits"] == len(row["p"])
        assert row["rejections"] == sum(p <= 0.05 for p in row["p"])
    for design, of in (("controls", OWN), ("controls", "none"), ("differences", OWN)):
        some = [row for row in found["rows"] if (row["design"], row["placebo"]) == (design, of)]
        members = [row for row in some if row["kind"] == "member"]
        assert sum(row["rejections"] for row in members) == sum(row["audits"] for row in members) > 0
        nulls = [row for row in some if row["kind"] == "null"]
        assert sum(row["rejections"] for row in nulls) < 0.3 * sum(row["audits"] for row in nulls)
    assert found["wrong_controls"] == [{**the_subject(work, name).key, "wrong": "one"} for name in LEANS]
    kept = json.loads((tmp_path / "leans.json").read_text())["leans"]
    assert {row["domain"]: row["value"] for row in kept} == {
        name: value for name, value in leaning.items() if name != KEPT_APART
    }


def test_wrong_control_documents_are_told_by_their_texts(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_wrong_controls, "DRAWS", 200)
    rows = list(wrong_control_rows(the_subject(work, "hackernews")))
    found = [(row["wrong"], row["share"], row["documents"], row["controls"]) for row in rows]
    assert (
        found
        == [("domain arxiv", 1.0, 100, 60)] * 2
        + [("domain arxiv", 0.25, 100, 100)] * 2
        + [("cut elsewhere", 1.0, 100, 100)] * 2
        + [("none: as they should be", 0.0, 100, 100)] * 2
    )
    whole, quarter, cut = (np.array([row["auc"] for row in rows[i : i + 2]]) for i in (0, 2, 4))
    assert (whole[:, 1] > 0.75).all()  # each text says where it is from
    assert (quarter[:, 0] < whole[:, 0] - 0.1).all()
    assert (np.abs(cut[:, 0] - 0.5) < 0.3).all()
    assert ["p_differences" in row for row in rows] == [True] * 4 + [False] * 2 + [True] * 2
    assert all(0 < row["p_placebo"] <= 1 for row in rows)


def test_documents_of_another_period_are_not_suspect_and_control_at_once(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_wrong_controls, "DRAWS", 200)
    met: list[tuple[list[str], list[str]]] = []
    real = audit_wrong_controls._auc

    def noted(suspect: Any, controls: Any, rng: Any) -> list[float]:
        met.append((list(suspect), list(controls)))
        return real(suspect, controls, rng)

    monkeypatch.setattr(audit_wrong_controls, "_auc", noted)
    subject = the_subject(work, "arxiv")
    rows = list(wrong_control_rows(subject))
    assert {row["wrong"] for row in rows} == {"another period", "none: as they should be"}
    numbers = {row["text"]: int(name.partition("-")[2]) for name, row in subject.domain.texts.items()}
    for row, (suspect, controls) in zip(rows, met, strict=True):
        if row["wrong"] != "another period":
            continue
        for side, later in ((suspect, False), (controls, True)):
            assert {numbers[text] >= TEXTS // 2 for text in side} == {later}
            assert not any(numbers[text] % 4 < 2 for text in side)  # nobody is a member


def test_the_literature_gets_features_with_and_without_the_base(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, Features]] = []

    def asked(procedure: str, features: Features, classifier: Any) -> float:
        given.append((procedure, features))
        return 0.01

    monkeypatch.setattr(audit_literature, "_asked", asked)
    rows = list(literature_rows(the_subject(work, "hackernews")))
    assert [(row["kind"], row["placebo"], row["procedure"]) for row in rows] == [
        (kind, placebo, procedure)
        for kind in ("null", "member")
        for placebo in ("none", OWN)
        for procedure in ("paper", "original", "release")
    ]
    for row, (procedure, features) in zip(rows, given, strict=True):
        assert row["procedure"] == procedure
        assert ("ref" in features.names) == (row["placebo"] == OWN)
        assert features.suspect.shape == features.heldout.shape == (200, len(features.names))
        places = features.suspect[:, 0].astype(int)
        assert features.suspect_documents == tuple(f"hackernews-{i}" for i in places)
        np.testing.assert_array_equal(features.heldout, features.suspect + TEXTS)
        assert ((places % 4 < 2) == (row["kind"] == "member")).all()
    assert not list(literature_rows(the_subject(work, "arxiv")))
