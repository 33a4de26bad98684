"""The figures of the audit in the pages are those of their file, and what the pages say of audits is so."""

from pathlib import Path

import pytest

from benchmarks import read_results
from benchmarks.audits.command import PAGE, found_range, page, row_of
from pretrace.errors import ModelError
from pretrace.scoring.plan import Models
from pretrace.testing import Memory, made_texts
from pretrace.types import Quantity
from pretrace.verdicts.audit.audit import audit
from pretrace.verdicts.audit.checks import MIXED
from pretrace.verdicts.audit.data import HEAVY, LIGHT, AuditSettings

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "evidence/audit_command.json"


def words_of(page):
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def test_the_figures_of_the_command_come_from_their_file():
    content = read_results(FIGURES)
    assert PAGE.read_text(encoding="utf-8") == page(content), "python -m benchmarks.audits.command --summary"
    nulls = [row for row in content["rows"] if row["kind"] == "null"]
    runs, accused = (sum(row[name] for row in nulls) for name in ("runs", "accused"))
    own, alone = (row_of(content, "member", 50, placebo) for placebo in ("own", "none"))
    low, high = found_range(own)
    readme = words_of("README.md")
    assert f"{accused} of {runs} collections that the model had not read were accused" in readme
    assert f"{own['accused']} of {own['runs']} collections that it had read once were found" in readme
    assert f"({low:.0%} to {high:.0%} by kind of text)" in readme
    assert f"Without another model it was {alone['accused']} of {alone['runs']}" in readme


def test_the_pages_name_the_exposures_and_the_share_of_the_program():
    audits = words_of("docs/audit.md")
    assert (LIGHT, HEAVY) == (5e-5, 5e-4)
    assert "*light* exposure at a learning rate of 5e-5" in audits
    assert "*heavy* one at 5e-4" in audits
    assert f"without the {MIXED:.0%} of the control documents" in audits


def test_a_served_model_is_audited_beside_a_placebo_and_not_without():
    """docs/limits.md says so."""
    said = words_of("docs/limits.md")
    assert "A model [behind a server](servers.md) can be audited with a placebo; without one" in said
    served = Memory(name="served")
    served.offers = Quantity.LOGP  # as a server does, and nothing else
    settings = AuditSettings(cache=False, classifiers=("words",))
    mine, theirs = made_texts("mine", 25), made_texts("theirs", 25)
    with pytest.raises(ModelError, match=r"served gives no whole distributions.*--placebo"):
        audit(mine, Models(served), theirs, settings=settings, generator=None)


def test_the_power_of_a_flagging_comes_from_its_file():
    rows = read_results(ROOT / "evidence/innocents_flag.json")["rows"]
    found = {row["kind"]: row["members"]["found"] for row in rows if row["members"]}
    flags = words_of("docs/flagging.md")
    for number in (200, 1000):
        kind = f"a tenth seen, AUC 0.93; {number} asked, {number} known"
        alone, beside = found[kind], found[f"{kind} (with a placebo)"]
        sets = f"{alone} of 200 sets, {beside} with a placebo"
        assert f"{number:,} texts and {number:,} known ones: {sets}" in flags
