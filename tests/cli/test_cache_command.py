"""What the cache holds, by model, and clearing some of it: nothing but what can be made again."""

import json
import os
import time

import pytest
from made import mats, written

from pretrace.cache import cache_folder, kept


@pytest.fixture
def filled(ask, tmp_path, model_folder, reference_folder, monkeypatch):
    """A cache with traces of two models, the register of audits, and a file of somebody else's."""
    monkeypatch.setenv("PRETRACE_CACHE", str(tmp_path / "cache"))
    texts = written(tmp_path / "texts.jsonl", mats(8))
    for name, model in (("A", model_folder), ("B", reference_folder)):
        ask("score", texts, "--model", model, "--scores", "loss", "--out", tmp_path / name)
    cache = cache_folder()
    (cache / "audits.jsonl").write_text("{}\n", encoding="utf-8")
    (cache / "traces" / "diary.sqlite").write_text("mine", encoding="utf-8")
    (cache / "adapters" / ("a" * 32)).mkdir(parents=True)
    (cache / "adapters" / ("a" * 32) / "weights").write_bytes(b"0" * 1000)
    return cache


def weights(tmp_path, run):
    facts = json.loads((tmp_path / run / "run.json").read_text(encoding="utf-8"))
    return str(facts["settings"]["models"]["target"]["weights"])


def test_info_tells_entries_by_model(filled, call, tmp_path):
    code, out, _ = call("cache", "info", "--json")
    found = json.loads(out)
    assert (code, found["command"], found["folder"]) == (0, "cache info", str(filled))
    traces = {one["model"]: one["entries"] for one in found["kept"] if one["kind"] == "traces"}
    assert traces == {weights(tmp_path, run)[:12]: 8 for run in ("A", "B")}
    assert [one["bytes"] for one in found["kept"] if one["kind"] == "adapters"] == [1000]
    assert found["bytes"] == sum(one["bytes"] for one in found["kept"])
    said = call("cache", "info")[1]
    assert str(filled) in said.replace("\n", "")
    assert "diary" not in out + said


def test_clear_asks_and_takes_one_model_what_is_old_or_all(filled, call, tmp_path):
    code, out, said = call("cache", "clear")
    assert (code, out, "give --yes" in said) == (2, "", True)
    before = {one.path for one in kept()}
    assert call("cache", "clear", "--yes", "--model", weights(tmp_path, "A")[:12])[0] == 0
    [gone] = before - {one.path for one in kept()}
    assert gone.parent.name == "traces"
    assert not list(gone.parent.glob(f"{gone.name}*"))
    adapter = filled / "adapters" / ("a" * 32) / "weights"
    for days, removed in ((0, []), (4, [str(adapter.parent)])):
        os.utime(adapter, (time.time() - days * 24 * 3600,) * 2)
        assert (
            json.loads(call("cache", "clear", "--yes", "--older-than", 3, "--json")[1])["removed"] == removed
        )
    assert call("cache", "clear", "--yes")[0] == 0
    assert not kept()
    assert all((filled / name).is_file() for name in ("audits.jsonl", "traces/diary.sqlite"))


def test_a_damaged_file_has_no_entries_and_an_empty_cache_is_no_mistake(call, tmp_path, monkeypatch):
    monkeypatch.setenv("PRETRACE_CACHE", str(tmp_path / "none"))
    assert [call("cache", command)[0] for command in ("info", "clear")] == [0, 0]
    place = tmp_path / "none" / "traces"
    place.mkdir(parents=True)
    (place / f"{'b' * 32}-v2.sqlite").write_bytes(b"no database")
    [found] = kept()
    assert (found.entries, found.model) == (None, "")
