"""A flagging in shards is the flagging in one piece: every figure, and what it refuses."""

import random
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from made import Uneven, written

from pretrace.corpora import open_stream
from pretrace.jobs import ShardJob, work
from pretrace.report import flags as report
from pretrace.runs import load_verdict, save_verdict, scan
from pretrace.scoring import evidence
from pretrace.scoring import parts as shards
from pretrace.scoring.detect import Options, Scorer
from pretrace.scoring.plan import Models
from pretrace.verdicts.flag import flag as flagging
from pretrace.verdicts.flag.flag import flag, flag_rows, unscored
from pretrace.verdicts.flag.planning import BothSets, FlagPlan, FlagSettings

SIZE = 32
PLAIN = "the cat sat on a mat one two railway nothing so again and left"
WORDS = [*re.findall(r"\w+", PLAIN), "ü漢", chr(0xD800)]


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Shards of 32 texts, batches planned over 16, samples of 50 rows, few resamples."""
    monkeypatch.setattr(evidence, "CHUNK", 16)
    monkeypatch.setattr("pretrace.verdicts.flag.concluding.RESAMPLES", 200)
    monkeypatch.setattr(flagging, "SAMPLE", 50)
    monkeypatch.setattr(flagging, "HIGHEST", 7)
    monkeypatch.setattr(flagging, "MOST_FLAGGED", 5)


def rows(name, number, generator, extra=()):
    """Texts, some in documents, some without a value, some that another document has as well."""
    found = []
    for i in range(number):
        text = " ".join(generator.choice([*WORDS, *extra]) for _ in range(generator.randint(8, 20)))
        if i % 17 == 3:
            text = generator.choice(["", " ", name[0]])
        if i % 11 == 5:
            text = f" {found[i // 2]['text']}\n"
        found.append({"id": f"t{i}", "text": text, "group": f"{name}-{i // 3}" if i % 4 else ""})
    return found


def planned(mine, known, settings):
    both = BothSets(open_stream(mine), open_stream(known))
    survey = shards.survey(both, SIZE)
    return FlagPlan.of(both, settings), survey


def in_shards(mine, known, models, settings, out):
    """The flagging in shards, and what its folder holds."""
    made, survey = planned(mine, known, settings)
    options, folder = Options(cache=False), out.with_name("parts")
    folder.mkdir(exist_ok=True)
    with Scorer(models, settings.plan, options) as worker:
        job = ShardJob.of(worker, options).over(made.both, survey)
        work(job, made.both, folder, worker.each, size=SIZE)
    scored = job.rows(folder)
    found, tables = flag_rows(scored, made, models.target.name)
    assert [one.id for one in found.skipped] == [one.id for one in unscored(scored)]
    save_verdict(found, out, beside=tables.writers())
    return found, load_verdict(out)


def models_of(content, seen, *, placebo):
    familiar = [row["text"] for row in content[:seen] if row["text"].strip()]
    blank = Models(Uneven(name="placebo")) if placebo else None
    return Models(Uneven(familiar, name="target"), placebo=blank)


CASES = [
    (0, 40, True, {}),
    (1, 0, False, {"randomised": True}),
    (2, 12, True, {"method": "by", "fdr": 0.3}),
    (3, 30, False, {"score": "min_k", "fdr": 0.4}),
]


def both_ways(folder, seed, seen, *, placebo, numbers=(170, 90), **given):
    """The flagging of two files in one piece, and in shards."""
    generator = random.Random(seed)
    content = rows("mine", numbers[0], generator, ("other",) if seed == 2 else ())
    others = rows("known", numbers[1], generator)
    paths = written(folder / "mine.jsonl", content), written(folder / "known.jsonl", others)
    settings = FlagSettings(**{"score": "loss", "cache": False, **given})
    models = models_of(content, seen, placebo=placebo)
    one = flag(*(open_stream(path).whole(10**6) for path in paths), models, settings)
    return one, *in_shards(*paths, models, settings, folder / "OUT")


@pytest.mark.parametrize(("seed", "seen", "placebo", "given"), CASES)
def test_shards_give_the_flagging_of_one_piece(tmp_path, seed, seen, placebo, given):
    one, many, loaded = both_ways(tmp_path, seed, seen, placebo=placebo, **given)
    for name in ("outcome", "statement", "reasons", "advice", "notes", "checks", "p", "units", "skipped"):
        assert getattr(many, name) == getattr(one, name), name
    assert {**many.figures, "whole": 0} == {**one.figures, "whole": 0}
    assert {**many.settings, "command": 0} == {**one.settings, "command": 0}
    table, texts = scan(tmp_path / "OUT").to_table().to_pydict(), one.table("flags")
    for name in ("id", "group", "document"):
        assert tuple(_text(cell) for cell in table[name]) == texts[name]
    for name in ("score", "drawn", "flagged"):
        assert table[name] == texts[name].tolist()
    for name in ("p", "q"):
        assert table[name] == (texts[name].tolist() if one.outcome != "refused" else [None] * len(texts))
    assert repr(replace(loaded, tables=())) == repr(replace(many, tables=(), settings=loaded.settings))
    first, other = (report._FlagPage.draw(each).figure.axes[0].patches for each in (one, many))
    paths = [[patch.get_path().vertices.tolist() for patch in each] for each in (first, other)]
    assert paths[0] == paths[1]
    _shows_some(one, many)


def _text(name):
    return name.decode("utf-8", "surrogatepass") if isinstance(name, bytes) else name


def _shows_some(one, many):
    """The rows that are shown are those of the whole, among them the highest and the highest of the flagged."""
    whole, (all_texts, all_known), (texts, known) = many.figures["whole"], one.tables, many.tables
    assert (whole["sampled"], whole["known_sampled"]) == (50, 50)
    place = {name: i for i, name in enumerate(all_texts["id"])}
    rows = [place[name] for name in texts["id"]]
    assert len(set(rows)) == len(rows) <= 50 + 7 + 5
    assert texts["score"].tolist() == all_texts["score"][rows].tolist()
    assert texts["document"] == tuple(all_texts["document"][i] for i in rows)
    highest = np.argsort(-all_texts["score"], kind="stable")
    marked = highest[all_texts["flagged"][highest]]
    assert {*highest[:7].tolist(), *marked[:5].tolist()} <= set(rows)
    scores = dict(zip(all_known["id"], all_known["score"], strict=True))
    assert known["score"].tolist() == [scores[name] for name in known["id"]]


def test_words_rest_on_a_sample_on_both_ways(tmp_path, monkeypatch):
    monkeypatch.setattr("pretrace.verdicts.flag.concluding.UNITS", {"words": 60, "form": 60})
    one, many, _ = both_ways(tmp_path, 5, 0, placebo=False, numbers=(170, 50))
    assert many.checks == one.checks
    assert "texts and 47 of the 47 known ones, drawn by whole documents." in many.checks[0].words


def test_the_same_id_on_both_sides_is_no_overlap_and_a_part_of_other_documents_is_noticed(tmp_path):
    generator = random.Random(1)
    mine, known = rows("mine", 170, generator), rows("known", 90, generator)
    mine.append({"id": "known-1", "text": "a text whose id is the name of a known group"})
    paths = written(tmp_path / "mine.jsonl", mine), written(tmp_path / "known.jsonl", known)
    made, _ = planned(*paths, FlagSettings(score="loss"))
    assert made.prospect.asked > 20
    with pytest.raises(ValueError, match="none of its texts"):
        made.documents.found(slice(0, 32), pa.array(["TEXTS: t0", "elsewhere"]))
