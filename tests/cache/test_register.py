"""The register of audits on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from pretrace.cache.register import FILE, earlier_audits, note_audit
from pretrace.errors import OutputError


def test_earlier_audits_of_the_same_texts_and_weights_come_back_in_order(tmp_path: Path) -> None:
    for i, (texts, weights) in enumerate([("t", "w"), ("t", "other"), ("u", "w"), ("t", "w")]):
        note_audit({"texts": texts, "weights": weights, "p": i / 10}, tmp_path)
    assert [entry["p"] for entry in earlier_audits("t", "w", tmp_path)] == [0.0, 0.3]
    assert earlier_audits("t", "w", tmp_path / "nowhere") == ()


def test_a_damaged_line_is_passed_over(tmp_path: Path) -> None:
    note_audit({"texts": "t", "weights": "w"}, tmp_path)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"texts": "t", "wei\n[1]\n\xff\xfe\n')
    note_audit({"texts": "t", "weights": "w", "name": "\ud800"}, tmp_path)
    assert len(earlier_audits("t", "w", tmp_path)) == 2


def test_no_place_to_write_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        note_audit({"texts": "t"}, tmp_path / "file")
