"""Damaged figures whose hashes are right: one line that names the file, never a traceback."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from made import row, run_of
from results.test_audits import changed

from pretrace import runs
from pretrace.errors import OutputError
from pretrace.results.folder import to_json
from pretrace.types import Comparison, Control, Curve, Estimate, Evaluation, Heat, Run

HALF = Estimate(0.5, 0.4, 0.6)
ROW = row("loss", HALF, curve=Curve((0.0, 0.5, 1.0), (0.0, 0.7, 1.0)))
RUN = run_of(
    np.arange(8.0).reshape(4, 2),
    (True, False, True, False),
    scores=("loss", "zlib"),
    heat=(Heat("a", ("one", " two"), (None, -0.5)),),
    evaluation=Evaluation(
        (ROW,), 2, 2, 4, 100, 0, (), (Comparison("loss", "zlib", "auc", HALF, 0.5, 0.5, 0.01),)
    ),
    controls=(Control("loss", "placebo", np.zeros((4, 1))), Control("zlib", "shuffled", np.zeros((4, 2)))),
    settings={"models": {"target": {"name": "m"}}},
)
GONE = object()
NAN, HUGE_FLOAT, HUGE = "@NaN", "@1e999", 10**400
"""The first two stand for literals of JSON that Python's own writer has no value for."""

TABLE = Path(__file__).with_name("damage.tsv").read_text(encoding="utf-8").splitlines()
STANDING = {"@gone": GONE, "@huge": HUGE}
"""What stands in the table for a value that is taken out, and for one that JSON has and a table should not."""
CASES = [
    (name, json.loads(place), STANDING.get(value.strip('"'), json.loads(value)))
    for name, place, value in (line.split("\t") for line in TABLE)
]


def seal(path, content):
    """Write a JSON part with the hash of itself."""
    content.pop("sha256", None)
    whole = hashlib.sha256(to_json(content)).hexdigest()
    path.write_bytes(to_json({**content, "sha256": whole}))


def damage(folder, name, place, value):
    """Change a file so that only its content is in question: the hashes of it are right."""
    plain = at = json.loads((folder / name).read_bytes())
    for step in place[:-1]:
        at = at[step]
    if value is GONE:
        del at[place[-1]]
    else:
        at[place[-1]] = value
    if name in ("run.json", "result.json") and value not in (NAN, HUGE_FLOAT):
        return seal(folder / name, plain)
    text = json.dumps(plain).replace(f'"{NAN}"', "NaN").replace(f'"{HUGE_FLOAT}"', "1e999")
    (folder / name).write_text(text)
    if name != "run.json":
        facts = json.loads((folder / "run.json").read_bytes())
        facts["files"][name] = hashlib.sha256(text.encode()).hexdigest()
        seal(folder / "run.json", facts)
    return None


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with a run and one with an audit, by their JSON parts."""
    folders = {name: tmp_path_factory.mktemp("damage") / name for name in ("run.json", "result.json")}
    for folder, result in zip(folders.values(), (RUN, changed()), strict=True):
        runs.save(result, folder)
    return folders


@pytest.mark.parametrize(
    ("name", "place", "value"), CASES, ids=lambda part: str(part)[:30] if part is not GONE else "gone"
)
def test_a_damaged_figure_is_named(saved, tmp_path, name, place, value):
    folder = shutil.copytree(saved.get(name, saved["run.json"]), tmp_path / "result")
    damage(folder, name, place, value)
    beside = r"metrics\.json|(controls|scores)\.parquet" if name == "run.json" else "newer pretrace"
    with pytest.raises(OutputError, match=rf"{name}|{beside}") as caught:
        runs.render(folder)
    assert "\n" not in str(caught.value)


def test_every_kind_is_loaded_and_rendered_by_one_name(saved, tmp_path):
    folder = shutil.copytree(saved["run.json"], tmp_path / "run")
    report = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    assert runs.render(folder).read_bytes() == report
    found = runs.load(folder)
    assert isinstance(found, Run)
    assert found.evaluation == RUN.evaluation
    for folder, why in ((tmp_path, "but run/run.json"), (tmp_path / "missing", "no such folder")):
        with pytest.raises(OutputError, match=f"is not a pretrace run: .*{why}"):
            runs.load(folder)
