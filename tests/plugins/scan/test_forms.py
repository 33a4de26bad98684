"""Texts in many forms are found in a corpus or inconclusive, never cleared; collections that were not there are never
found."""

import html  # noqa: F401 (the table names it)
import json
import random
import tomllib
import unicodedata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made import written

from pretrace.runs import load

WORDS = (
    "river stone harbour valley winter summer letter garden window market bridge mountain island captain doctor",
    "écluse straße größer façade ΟΔΥΣΣΕΥΣ İzmir naïve señor über niño coöperate Ångström brother sister evening",
    "under over along beside without against through carried found opened closed written spoken bought sold remembered",
)


def lines(seed, number=16):
    """Lines of about 40 characters that stand nowhere else."""
    rng, made = random.Random(seed), []
    while len(made) < number:
        line = ""
        while len(line) < 34:
            line = f"{line} {rng.choice(rng.choice(WORDS).split())}".strip()
        made.append(line + rng.choice([",", ".", ";", " –", "!"]))
    return made


TEXTS = [lines(i) for i in range(8)]


def each(make, column="text"):
    """A row a text."""
    return lambda: ({column: make(text)} for text in TEXTS)


def by_line(**more):
    """A row a line."""
    return lambda: ({"id": f"row {i}", **more, "text": line} for text in TEXTS for i, line in enumerate(text))


def again(make, join="\n"):
    """A row a text, its lines changed one by one."""
    return each(lambda text: join.join(make(line) for line in text))


def numbered(shape):
    return each(lambda text: "\n".join(shape.format(i + 1) + line for i, line in enumerate(text)))


def twice_escaped(text):
    return json.dumps(json.dumps("\n".join(text)))


TABLE = tomllib.loads(Path(__file__).with_name("forms.toml").read_text(encoding="utf-8"))
FORMS = {
    **{name: eval(code) for name, code in TABLE.items()},
    **{
        f: each(lambda text, f=f: unicodedata.normalize(f, "\n".join(text)))
        for f in ("NFC", "NFD", "NFKC", "NFKD")
    },
}
"""How texts are written in a corpus, by name."""
BROKEN = {"numbered 1", "numbered behind the line", "timed", "spoken"}
"""Forms with words or numbers between lines that are taken for text: shared passages, which is inconclusive."""
FILES = ("jsonl", "parquet", "txt")


def rows(path, items):
    """A file of rows, of the kind that its name says."""
    some = list(items)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([*some]), path)
    elif path.suffix == ".txt":
        path.write_text("\n\n".join(" ".join(map(str, row.values())) for row in some), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(row, ensure_ascii=i % 2 > 0) + "\n" for i, row in enumerate(some)))
    return path


@pytest.mark.parametrize("form", [*FORMS, "none"])
def test_a_form_is_found_or_inconclusive_and_none_is_not_found(tmp_path, call, form):
    texts = ({"id": str(i), "text": "\n".join(text)} for i, text in enumerate(TEXTS))
    mine = rows(tmp_path / "mine.jsonl", texts)
    other = rows(tmp_path / "other.jsonl", ({"text": "\n".join(lines(100 + i))} for i in range(20)))
    for kind in FILES:
        made = list(FORMS[form]()) if form in FORMS else []
        if kind == "txt" and (
            form.startswith("a row a line") or any(not isinstance(row.get("text"), str) for row in made)
        ):
            continue
        corpus = rows(tmp_path / f"corpus.{kind}", made) if made else other
        code, said = call(mine, "--corpus", corpus, "--corpus", other, "--out", tmp_path / kind)
        assert code == (4 if form in BROKEN else 3 if made else 0), (kind, said)
        found = load(tmp_path / kind).table("texts").columns["found"]
        assert "no" not in found if made else set(found) == {"no"}, (kind, found)


SUBJECTS = "waters roads schools markets forests harbours letters seeds scales mines".split()  # noqa: SIM905
FORMULAS = [
    "This act comes into force on the day after its publication.",
    "The ministry is empowered to lay down, by ordinance and with the consent of the chamber, the fees and expenses "
    "that are due for official acts under this act; the fees shall be set so that they cover the effort that comes "
    "with the official acts and no more, and may for reasons of fairness be lowered or waived altogether in single "
    "cases, where the person who has to pay them shows that a payment in full would be out of proportion.",
    "Whoever, on purpose or by negligence, acts against an order under this act that can be enforced commits a breach.",
]


def laws(seed, number):
    """Sections of laws: formulas that stand in many, and sentences of their own; some have formulas alone."""
    rng, made = random.Random(seed), []
    for _ in range(number):
        subject = rng.choice(SUBJECTS)
        own = [f"{' '.join(lines(rng.randrange(10**9), 2))} as to {subject}" for _ in range(rng.randrange(4))]
        made.append("\n".join([*own, *rng.sample(FORMULAS, rng.randrange(1, 4))]))
    return made


NAMES = ["Maria", "Jonas", "Aylin", "Peter", "Ngozi", "Ivan", "Chloe", "Tariq", "Greta", "Kenji"]


def items(seed, number):
    """Questions made from a few patterns, with other names and numbers."""
    rng, made = random.Random(seed), []
    for _ in range(number):
        name, other = rng.sample(NAMES, 2)
        a, b, c = (rng.randrange(11, 9999) for _ in range(3))
        made.append(
            rng.choice(
                [
                    f"{name} buys {a} apples on the market in the morning and gives {b} of them to {other}, who sells "
                    f"what is left at the harbour for {c} coins each. How many coins does {other} bring home in the "
                    f"evening, and how many apples are left to {name} when the market closes?",
                    f"A train leaves the station where {name} works at {a} and passes {b} villages before it stops at "
                    f"the bridge near the house of {other}. If every village is {c} metres from the next one, how far "
                    f"is the house of {other} from the station?",
                ]
            )
        )
    return made


@pytest.mark.parametrize("make", [laws, items], ids=["laws", "items"])
@pytest.mark.parametrize("seed", range(6))
def test_collections_that_were_not_there_are_never_found(tmp_path, call, make, seed):
    mine, corpus = written(tmp_path / "mine.jsonl", make(seed, 40)), tmp_path / "corpus.jsonl"
    written(corpus, make(1000 + seed, 400))
    code, said = call(mine, "--corpus", corpus, "--out", tmp_path / "ALONE")
    assert code == 4, said
    held = written(tmp_path / "held.jsonl", make(2000 + seed, 200))
    code, said = call(mine, "--corpus", corpus, "--controls", held, "--out", tmp_path / "BESIDE")
    assert code == 4, said
    assert "of 200 controls" in said.partition(".")[0]
    if make is items:
        states = load(tmp_path / "ALONE").table("texts").columns["found"]
        assert set(states) == {"template"}, states


def test_texts_that_are_there_are_found_beyond_controls(tmp_path, call):
    every = laws(5, 60)
    mine = written(tmp_path / "mine.jsonl", every)
    corpus = written(tmp_path / "corpus.jsonl", [*laws(1005, 300), *every])
    held = written(tmp_path / "held.jsonl", laws(2005, 60))
    code, said = call(mine, "--corpus", corpus, "--controls", held, "--out", tmp_path / "BESIDE")
    assert code == 3, said
    assert "Found: 59 of 60 texts of mine and 15 of 60 controls stand whole" in said
