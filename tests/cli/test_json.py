"""--json: one document on standard output and nothing else; --quiet: nothing on standard error but errors."""

import json

import pytest
from made import call_function, mats, written

from pretrace.cli import note
from pretrace.cli.commands import Reply

SHARED = ["command", "outcome", "exit_code", "statement", "folder", "report"]


@pytest.fixture
def texts(tmp_path):
    return written(tmp_path / "texts.jsonl", mats(24))


RUN = {"kind", "figures", "result"}
CASES = {
    "score": ("score T --model M --scores loss --out OUT", RUN),
    "evaluate": ("evaluate T --model M --scores loss --measuring resamples=100 --out OUT", RUN),
    "score, a dry run": ("score T --model M --scores loss --dry-run --out OUT", {"work"}),
    "list": ("list", {"lists"}),
    "show": ("show cat --model M", {"model", "mean_logp", "tokens"}),
    "gap": ("build gap T U", {"classifiers"}),
    "quality": ("build quality T T --embeddings none", {"texts", "rows", "notes", "settings"}),
    "count": ("count T --model M --out OUT.npz", {"file", "tokens", "texts", "distinct"}),
    "ask": ("ask T", {"possible", "seen", "tests"}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_is_one_document_with_the_shared_keys_first(case, call, texts, model_folder, tmp_path):
    words, own = CASES[case][0].split(), CASES[case][1]
    other = written(tmp_path / "other.jsonl", mats(24, "dog"))
    places = {"T": texts, "U": other, "M": model_folder}
    places |= {name: tmp_path / name for name in ("OUT", "OUT.npz")}
    code, out, error = call(*(places.get(word, word) for word in words), "--json")
    assert code == (4 if case == "ask" else 0), error
    found = json.loads(out)  # which refuses anything beside the document
    assert list(found)[: len(SHARED)] == SHARED
    assert set(found) - set(SHARED) == own
    assert found["command"] == " ".join(words[: 2 if words[0] in ("build", "mark", "runs") else 1])
    assert found["exit_code"] == code
    if "result" in own:
        assert found["folder"] == str(tmp_path / "OUT")
        on_disk = json.loads((tmp_path / "OUT" / "run.json").read_text(encoding="utf-8"))
        assert found["result"] == on_disk
        assert found["figures"]["counts"]["texts"] == 24
        assert not {"json", "out"} & on_disk["settings"]["given"].keys()
    if case == "evaluate":
        assert [row["name"] for row in found["figures"]["rows"]] == ["loss", "bag of words", "text length"]
        assert found["statement"] == found["figures"]["findings"][0]


def test_an_error_is_one_line_and_no_document(call, texts, tmp_path):
    out = tmp_path / "OUT"
    how = ("--model", "M", "--out", out, "--json", "--quiet")
    code, said, error = call("score", tmp_path / "none.jsonl", *how)
    assert (code, said, error.count("\n")) == (2, "", 1)
    assert error.startswith("pretrace: there is no file")
    assert call("score", texts, "--modell", "M", "--json")[:2] == (2, "")


def test_what_a_library_prints_does_not_get_into_the_document(capsys):
    def command():
        print("noise of a library")
        note("a note")
        return Reply(["for people"], outcome="found", code=3, own={"n": 1})

    assert call_function(command, "--json") == 3
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["outcome"], found["n"]) == ("found", 1)
    assert said.err == "noise of a library\npretrace: note: a note\n"
    for option, notes in (("--quiet", ""), ("", "pretrace: note: a note\n")):
        call_function(command, *filter(None, [option]))
        assert capsys.readouterr() == ("noise of a library\nfor people\n", notes)
