"""A run in shards is the run in one piece: bit by bit, after a kill, by several workers, and what it refuses."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made import Uneven, written
from net.api import (
    Models,
    Options,
    OutputError,
    ScorePlan,
    ShardJob,
    TextsError,
    Turn,
    Worker,
    check_label_counts,
    detect,
    evaluate_corpus,
    evidence,
    load_run,
    measure,
    merging,
    open_stream,
    run_of,
    save_run,
    scan,
    work,
)
from net.api import scoring_detect as detection
from net.api import worker as shards

SIZE = 32
SCORES = "loss,zlib,lowercase,min_k_plus_plus"
OPTIONS = Options(cache=False)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Shards of 32 texts, batches planned over 16, samples of 40 rows."""
    monkeypatch.setattr(evidence, "CHUNK", 16)
    monkeypatch.setattr(shards, "SHARD", SIZE)


@pytest.fixture
def texts(tmp_path):
    """150 texts, every seventh of them with something odd: empty, one character, nothing to lower-case."""
    odd = ["", "x", "12345 678"]
    said = [f"Text number {i} of {'many ' * (i % 5)}Others" if i % 7 else odd[i // 7 % 3] for i in range(150)]
    rows = [{"id": f"t{i}", "text": s, "label": i % 2, "group": f"g{i // 3}"} for i, s in enumerate(said)]
    return written(tmp_path / "texts.jsonl", rows)


def job_of(stream, worker, size=SIZE):
    return ShardJob.of(worker, OPTIONS).over(stream, shards.survey(stream, size))


def opened(models=None):
    return Worker(models or Models(Uneven()), ScorePlan.parse(SCORES), OPTIONS)


def run_job(path, folder, *turns, models=None, size=SIZE):
    """The job done by one worker a turn; the shards that were scored."""
    made = 0
    folder.mkdir(exist_ok=True)
    for turn in turns or (Turn(),):
        stream = open_stream(path)
        with opened(models) as worker:
            job = job_of(stream, worker, size)
            made += work(job, stream, folder, worker.each, turn=turn, size=size)
    return job, made


def merge(job, folder, out):
    rows = job.rows(folder)
    run = run_of(rows)
    save_run(run, out, beside=lambda place: rows.write(place, run))


def table(out, names):
    found = scan(out).to_table(columns=names).to_pydict()
    return {n: [np.float64(v).tobytes() if isinstance(v, float) else v for v in found[n]] for n in names}


PLACEBO = Models(Uneven(), placebo=Models(Uneven(name="placebo")))


@pytest.mark.parametrize("models", [Models(Uneven()), PLACEBO], ids=["target", "placebo"])
def test_shards_give_the_table_of_one_piece(texts, tmp_path, models):
    whole = detect(open_stream(texts).whole(10**6), models, SCORES, OPTIONS)
    save_run(whole, tmp_path / "WHOLE")
    job, made = run_job(texts, tmp_path / "parts", models=models)
    assert made == 5
    merge(job, tmp_path / "parts", tmp_path / "RUN")
    names = ["id", "label", "group", "n_tokens", *SCORES.split(",")]
    assert table(tmp_path / "RUN", names) == table(tmp_path / "WHOLE", names)
    for name in ("skipped.csv", "cut.csv", "missing.csv"):
        files = (tmp_path / run / name for run in ("RUN", "WHOLE"))
        lines = [sorted(file.read_text("utf-8").splitlines()) for file in files]
        assert lines[0] == lines[1]
    found = load_run(tmp_path / "RUN")
    assert found.heat == whole.heat
    assert [c.kind for c in found.controls] == [c.kind for c in whole.controls]
    counted = json.loads((tmp_path / "RUN" / "run.json").read_bytes())["counts"]
    assert counted == json.loads((tmp_path / "WHOLE" / "run.json").read_bytes())["counts"]


def test_a_sample_is_drawn_and_said_and_does_not_depend_on_the_shards(texts, tmp_path, monkeypatch):
    monkeypatch.setattr(merging, "SAMPLE", 40)
    (job, _), (other, _) = (run_job(texts, tmp_path / f"parts-{size}", size=size) for size in (32, 48))
    merge(job, tmp_path / "parts-32", tmp_path / "RUN")
    run = load_run(tmp_path / "RUN")
    assert (run.whole.sampled, len(set(run.ids))) == (40, len(run.ids))
    assert set(run_of(other.rows(tmp_path / "parts-48")).ids[:40]) == set(run.ids[:40])
    everything = scan(tmp_path / "RUN").to_table().to_pydict()
    for score in run.scores:
        known = [value for value in everything[score] if value is not None]
        assert np.nanmax(run.column(score)) == max(known)
        assert np.nanmin(run.column(score)) == min(known)
    said = " ".join((tmp_path / "RUN" / "report.html").read_text(encoding="utf-8").split())
    assert "those of 40 texts drawn at random from all" in said
    assert f"lowest of {run.whole.texts} texts" in said


def test_several_workers_even_on_the_same_shards(texts, tmp_path):
    job, made = run_job(texts, tmp_path / "parts", Turn(1, 2), Turn(2, 2))
    assert made == 5
    parts = merging.PartsFolder(tmp_path / "parts", job.key)
    before = [parts.manifest(key) for key, _ in job.survey.shards]
    stream = open_stream(texts)
    with opened() as worker:
        for shard in shards.shards(stream, SIZE):  # as a second worker would that did not see the parts
            parts.write(shard.key, *worker.part(shard))
    assert [parts.manifest(key) for key, _ in job.survey.shards] == before
    assert run_job(texts, tmp_path / "parts")[1] == 0
    assert run_job(texts, tmp_path / "parts", models=Models(Uneven(name="other")))[1] == 5


def test_a_missing_part_is_named(texts, tmp_path):
    job, _ = run_job(texts, tmp_path / "parts", Turn(1, 2))
    assert job.missing(tmp_path / "parts") == job.missing(tmp_path / "parts", Turn(2, 2)) == {1: 32, 3: 32}
    assert not job.missing(tmp_path / "parts", Turn(1, 2))
    with pytest.raises(OutputError, match=r"2 of 5 shards have no part in .*: 2, 4\."):
        job.rows(tmp_path / "parts")


def test_a_damaged_part_is_noticed(texts, tmp_path):
    job, _ = run_job(texts, tmp_path / "parts")
    part = sorted((tmp_path / "parts").glob("*.parquet"))[0]
    content, table = bytearray(part.read_bytes()), pq.read_table(part)
    content[10] ^= 1
    part.write_bytes(bytes(content))
    with pytest.raises(OutputError, match=r"damaged .*: delete it"):
        merge(job, tmp_path / "parts", tmp_path / "RUN")
    place = table.column_names.index("loss")
    # whole, and another's
    pq.write_table(table.set_column(place, "loss", pa.array(np.zeros(len(table)))), part)
    with pytest.raises(OutputError, match=r"its hash is another .*: delete it"):
        merge(job, tmp_path / "parts", tmp_path / "RUN")
    assert not (tmp_path / "RUN").exists()


def test_changed_texts_are_noticed(texts, tmp_path):
    stream = open_stream(texts)
    (tmp_path / "parts").mkdir()
    with opened() as worker:
        job = job_of(stream, worker)
        texts.write_text(texts.read_text("utf-8").replace("number 40 ", "number 41 "), "utf-8")
        with pytest.raises(TextsError, match=r"was changed while it was read \(at text 32 or after"):
            work(job, stream, tmp_path / "parts", worker.each, size=SIZE)
    assert len(list((tmp_path / "parts").glob("*.parquet"))) == 1


def test_the_survey_counts_and_refuses(texts, tmp_path):
    corpus = open_stream(texts).whole(10**6)
    found = shards.survey(open_stream(texts), SIZE)
    recorded_texts = detection.record_corpus(corpus)
    assert (found.texts, found.documents) == (recorded_texts["texts"], recorded_texts["documents"])
    assert found.sha256 == recorded_texts["sha256"]
    assert found.members == sum(text.member is True for text in corpus.texts)
    with texts.open("a", encoding="utf-8") as file:
        file.write('{"id": "t3", "text": "again"}\n')
    with pytest.raises(TextsError, match=r"every text needs an id of its own, found 't3' more than once"):
        shards.survey(open_stream(texts), SIZE)
    with pytest.raises(TextsError, match="1 of 151 texts of texts have no label"):
        check_label_counts("texts", found.members, found.nonmembers, 151, "t3")


def test_an_evaluation_rests_on_all_rows(texts, tmp_path):
    how = {"seed": 0, "resamples": 200, "validation": 0.2}
    corpus = open_stream(texts).whole(10**6)
    run = detect(corpus, PLACEBO, SCORES, OPTIONS)
    whole = evaluate_corpus(run, corpus, **how).evaluation
    job, _ = run_job(texts, tmp_path / "parts", models=PLACEBO)
    rows = job.rows(tmp_path / "parts")
    parts = measure(rows, open_stream(texts), **how)
    assert (parts.rows, parts.members) == (whole.rows, whole.members)
