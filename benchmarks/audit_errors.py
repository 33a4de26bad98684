"""How often an audit errs, by design: `python -m benchmarks.audit_errors --work FOLDER`.

Models whose members are known are audited with texts they were trained on (kind "member") and with texts of the same
draw that they were not (kind "null"). The models and what they said of the texts come from
`benchmarks.audit_readings`; here every design is tried on them, with control documents that the target was not
trained on either. Audits of one model and size have no document in common. A margin is chosen without the domain that
it is judged on.

Writes benchmarks/results/audit_errors.json, its plots, and the leans that the package itself carries.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.audit_documents import KEPT_APART, MEASURED
from benchmarks.audit_readings import EARLIER, OWN, TUNED
from benchmarks.audit_samples import Arrays, Domain, Said, alone, leads, scale_of
from benchmarks.experiments import RESULTS, Ledger, Row
from pretrace.inference.classifiers import classifiers
from pretrace.inference.features import expressions
from pretrace.inference.gap import gap
from pretrace.inference.procedures.original import original
from pretrace.inference.procedures.paper import paper
from pretrace.inference.procedures.release import release
from pretrace.statistics.permutation import by_document, sign_flip_test, two_sample
from pretrace.store.atomic import atomic_text
from pretrace.types import Corpus, Doubles, Features, Pair, Text, TextClassifier

LEVEL = 0.05
DRAWS = 2000
GRID = ((25, 50), (50, 50), (50, 200), (100, 100), (200, 200))
"""Suspect and control documents of an audit."""
ALONES = ("loss", "zlib", "min_k(k=0.2)", "min_k_plus_plus(k=0.2)", "min_k_plus_plus(k=1.0)")
NONE, MAX = "none", "largest p of own and tuned"
SNIPPET, WHOLE = "a snippet", "256 tokens"
LEANS = Path(__file__).parents[1] / "src/pretrace/inference/leans.json"


class Values(NamedTuple):
    """One value a document: its names, the values, and which of them the target was trained on."""

    names: tuple[str, ...]
    values: Doubles
    members: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Subject:
    """One target in one domain."""

    domain: Domain
    name: str
    arrays: Arrays

    @property
    def epochs(self) -> int:
        """How often it read its members."""
        return int(self.name.partition("-e")[2][0])

    @property
    def key(self) -> Row:
        """What its rows are told apart by."""
        model = "SmolLM2" if "smollm2" in self.name else "Llama 3.3M"
        stream = "-stream" in self.name
        return {"domain": self.domain.name, "model": model, "epochs": self.epochs, "stream": stream}

    def said(self) -> Said:
        """What it said of the pairs."""
        return Said.of(self.arrays, "drawn", self.domain.pairs["drawn"])

    def by_document(self, values: Doubles, *, whole: bool = False) -> Values:
        """One value a document from one a pair (or a text, where `whole`)."""
        owners = [text["group"] for text in self.domain.texts.values()]
        members = dict(zip(owners, self.arrays["member"].tolist(), strict=True))
        pieces = owners if whole else self.domain.documents(self.domain.pairs["drawn"]).tolist()
        names, found = by_document(values, pieces)
        return Values(names, found, np.array([members[name] for name in names]))


def subjects(domain: Domain) -> list[Subject]:
    """The targets of a domain that were read."""
    return [Subject(domain, name, domain.target(name)) for name in domain.names]


def against_controls(found: Values, grid: Sequence[tuple[int, int]] = GRID) -> Iterator[Row]:
    """Rows of two-sample audits: a row a kind and size."""
    rng = np.random.default_rng(0)
    mine, others = (
        found.values[rng.permutation(np.flatnonzero(side))] for side in (found.members, ~found.members)
    )
    for suspect, controls in grid:
        if suspect + controls <= len(others):
            nulls = [others[i : i + suspect + controls] for i in _blocks(len(others), suspect + controls)]
            yield _row("null", suspect, controls, [(one[:suspect], one[suspect:]) for one in nulls])
        number = min(len(mine) // suspect, len(others) // controls)
        pairs = [(_part(mine, k, suspect), _part(others, k, controls)) for k in range(number)]
        if pairs:
            yield _row("member", suspect, controls, pairs)


def _row(kind: str, suspect: int, controls: int, pairs: Sequence[tuple[Doubles, Doubles]]) -> Row:
    p = [two_sample(*pair, permutations=DRAWS, seed=k) for k, pair in enumerate(pairs)]
    return {"kind": kind, "documents": suspect, "controls": controls, **_counted(p)}


def _counted(p: Sequence[float]) -> Row:
    return {
        "audits": len(p),
        "rejections": sum(one <= LEVEL for one in p),
        "p": [float(f"{one:.3g}") for one in p],
    }


def _blocks(number: int, size: int) -> range:
    return range(0, number - size + 1, size)


def _part(values: Doubles, k: int, size: int) -> Doubles:
    return values[k * size : (k + 1) * size]


def control_rows(subject: Subject) -> Iterator[Row]:
    """Real against real, with each placebo and with none."""
    said, pairs = subject.said(), subject.domain.pairs["drawn"]
    for name in (OWN, EARLIER):
        placebo = Said.of(subject.domain.beside, name, pairs)
        values = leads(said.whole, placebo.whole, scale_of(said, placebo))
        for row in against_controls(subject.by_document(values)):
            yield {"design": "controls", "placebo": name, "text": SNIPPET, **row}
    if "drawn/scores" not in subject.arrays:
        return
    values = alone(subject.arrays, "drawn", "loss") - alone(subject.domain.beside, OWN, "loss")
    for row in against_controls(subject.by_document(values, whole=True)):
        yield {"design": "controls", "placebo": OWN, "text": WHOLE, **row}
    for score in ALONES:
        values = alone(subject.arrays, "drawn", score)
        for row in against_controls(subject.by_document(values, whole=True)):
            yield {"design": "controls", "placebo": NONE, "score": score, "text": WHOLE, **row}


def difference_rows(subject: Subject) -> Iterator[Row]:
    """True less generated, in suspect and in control documents."""
    for name in (OWN, TUNED):
        for row in against_controls(subject.by_document(_differences(subject, name))):
            yield {"design": "differences", "placebo": name, "text": SNIPPET, **row}


def _differences(subject: Subject, name: str) -> Doubles:
    said = subject.said()
    assert said.generated is not None
    placebo = Said.of(subject.domain.beside, name, subject.domain.pairs["drawn"])
    assert placebo.generated is not None
    scale = scale_of(said, placebo)
    return leads(said.true, placebo.true, scale) - leads(said.generated, placebo.generated, scale)


def lean(subject: Subject, name: str) -> float:
    """How far true text lies above generated text in documents that the target was not trained on."""
    found = subject.by_document(_differences(subject, name))
    return float(found.values[~found.members].mean())


def placebo_rows(subject: Subject, margins: dict[str, float]) -> Iterator[Row]:
    """Without control documents: p of each placebo beyond its margin, and the largest of two."""
    found = {
        name: subject.by_document(_differences(subject, name)) for name in (OWN, EARLIER, TUNED)
    }
    first = found[OWN]
    rng = np.random.default_rng(0)
    for documents in (50, 100, 200):
        for kind, side in (("null", ~first.members), ("member", first.members)):
            order = rng.permutation(np.flatnonzero(side))
            sets = [order[i : i + documents] for i in _blocks(len(order), documents)]
            if not sets:
                continue
            for margin, taken in (("none", 0.0), ("left out", None)):
                p = {
                    name: [
                        _flipped(v.values[rows] - (margins[name] if taken is None else 0.0)) for rows in sets
                    ]
                    for name, v in found.items()
                }
                p[MAX] = [max(pair) for pair in zip(p[OWN], p[TUNED], strict=True)]
                for name, ps in p.items():
                    yield {
                        "design": "placebos",
                        "placebo": name,
                        "margin": margin,
                        "kind": kind,
                        "documents": documents,
                        "controls": 0,
                        "text": SNIPPET,
                        **_counted(ps),
                    }


def _flipped(values: Doubles) -> float:
    return sign_flip_test(values, flips=DRAWS).p


def wrong_control_rows(subject: Subject) -> Iterator[Row]:
    """Innocent documents against control documents of the wrong kind: from another domain, wholly or in part, from
    another period, or cut elsewhere. Each row has what the text-only classifier says, and what either design would."""
    said, domain = subject.said(), subject.domain
    own = domain.pairs["drawn"]
    base = Said.of(domain.beside, OWN, own)
    scale = scale_of(said, base)
    innocent = ~subject.by_document(said.true.per_token).members
    texts = np.array([pair.prefix + pair.true for pair in own])
    here = _Kind(
        texts, leads(said.whole, base.whole, scale), _differences(subject, OWN), domain.documents(own)
    )
    names = np.array(subject.by_document(said.true.per_token).names)[innocent]
    rows = np.flatnonzero(np.isin(here.documents, names))
    rng = np.random.default_rng(0)
    for kind, wrong in _wrong(subject, here, scale).items():
        for share in (1.0, 0.25) if kind.startswith("domain") else (1.0,):
            for _ in range(2):
                yield _wrong_row(kind, share, here, wrong, rows, rng)


@dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """Pieces of one kind: texts, bounded leads, differences (None where nothing was generated), documents."""

    texts: npt.NDArray[np.str_]
    leads: Doubles
    differences: Doubles | None
    documents: npt.NDArray[np.str_]


def _wrong(subject: Subject, here: _Kind, scale: float) -> dict[str, _Kind]:
    """Control pieces of every wrong kind that this target has read."""
    domain, found = subject.domain, {}
    for other in MEASURED:
        if f"{other}/true" in subject.arrays:
            away = Domain(domain.work, other)
            pairs = away.pairs["drawn"]
            some = pairs[: len(subject.arrays[f"{other}/before"])]
            mine, base = (
                Said.of(subject.arrays, other, some),
                _first(Said.of(away.beside, OWN, pairs), len(some)),
            )
            assert mine.generated is not None
            assert base.generated is not None
            differences = leads(mine.true, base.true, scale) - leads(mine.generated, base.generated, scale)
            texts = np.array([pair.prefix + pair.true for pair in some])
            found[f"domain {other}"] = _Kind(
                texts, leads(mine.whole, base.whole, scale), differences, away.documents(some)
            )
    if "first/true" in subject.arrays:
        first = domain.pairs["first"]
        mine, base = Said.of(subject.arrays, "first", first), Said.of(domain.beside, "first", first)
        texts = np.array([pair.prefix + pair.true for pair in first])
        found["cut elsewhere"] = _Kind(
            texts, leads(mine.whole, base.whole, scale), None, domain.documents(first)
        )
    periods = np.array(
        [domain.texts[pair.document]["meta"].get("period", "") for pair in domain.pairs["drawn"]]
    )
    if (periods == "later").any():
        later = periods == "later"
        assert here.differences is not None
        found["another period"] = _Kind(
            here.texts[later], here.leads[later], here.differences[later], here.documents[later]
        )
    return found


def _first(said: Said, number: int) -> Said:
    assert said.generated is not None
    return Said(said.whole.part(0, number), said.true.part(0, number), said.generated.part(0, number))


def _wrong_row(
    kind: str, share: float, here: _Kind, wrong: _Kind, rows: npt.NDArray[np.int64], rng: np.random.Generator
) -> Row:
    """One innocent audit of 100 documents, `share` of whose 100 control documents are wrong."""
    number = 100
    pool = rows
    if kind == "another period":
        pool = rows[~np.isin(here.documents[rows], wrong.documents)]
    pool = rng.permutation(pool)
    number = min(number, len(pool) if share == 1 else len(pool) // 2)
    suspect, good = pool[:number], pool[number : number + round((1 - share) * number)]
    others = np.flatnonzero(~np.isin(wrong.documents, here.documents[np.append(suspect, good)]))
    if kind in ("another period", "cut elsewhere"):
        innocent = set(here.documents[rows].tolist())
        others = np.array([i for i in others if wrong.documents[i] in innocent], dtype=np.int64)
    bad = rng.permutation(others)[: number - len(good)]
    seen = _auc([*here.texts[suspect]], [*here.texts[good], *wrong.texts[bad]], rng)
    controls = np.append(here.leads[good], wrong.leads[bad])
    row = {"wrong": kind, "share": share, "documents": number, "controls": len(controls), "auc": seen}
    row["p_controls"] = _short(two_sample(here.leads[suspect], controls, permutations=DRAWS))
    if wrong.differences is not None and here.differences is not None:
        differences = np.append(here.differences[good], wrong.differences[bad])
        row["p_differences"] = _short(two_sample(here.differences[suspect], differences, permutations=DRAWS))
    return row


def _auc(suspect: Sequence[str], controls: Sequence[str], rng: np.random.Generator) -> list[float]:
    """The AUC between the texts of a classifier of words, with its interval."""
    made = [
        Corpus(name, tuple(Text(f"{name}{i}", t) for i, t in enumerate(s)))
        for name, s in (("a", suspect), ("b", controls))
    ]
    auc = gap(*made, "words", seed=int(rng.integers(1 << 31)), resamples=200)[0].auc
    return [_short(value) for value in (auc.value, auc.low, auc.high)]


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def literature_rows(subject: Subject) -> Iterator[Row]:
    """The published procedures on their features, without and with the base as reference model."""
    if "features" not in subject.arrays:
        return
    pairs, names = subject.domain.pairs["drawn"], expressions(True)
    true, generated = subject.arrays["features"].astype(np.float64)
    documents = subject.domain.documents(pairs)
    found = subject.by_document(true[:, 0])
    classifier = classifiers.make("words")
    rng = np.random.default_rng(0)
    for kind, side in (("null", ~found.members), ("member", found.members)):
        order = rng.permutation(np.array(found.names)[side])
        sets = [order[i : i + 200] for i in _blocks(len(order), 200)]
        for reference in (NONE, OWN):
            kept = [i for i, name in enumerate(names) if reference == OWN or name != "ref"]
            for procedure in ("paper", "original", "release"):
                p = []
                for some in sets:
                    rows = np.flatnonzero(np.isin(documents, some))
                    features = _features(pairs, documents, (true, generated), rows, kept)
                    p.append(_asked(procedure, features, classifier))
                if p:
                    yield {
                        "procedure": procedure,
                        "design": procedure,
                        "placebo": reference,
                        "text": SNIPPET,
                        "kind": kind,
                    } | {"documents": 200, "controls": 0, **_counted(p)}


def _features(
    pairs: Sequence[Pair],
    documents: npt.NDArray[np.str_],
    sides: tuple[Doubles, Doubles],
    rows: npt.NDArray[np.int64],
    kept: Sequence[int],
) -> Features:
    names = expressions(True)
    some = [pairs[i] for i in rows.tolist()]
    owners = tuple(documents[rows].tolist())
    return Features(
        names=tuple(names[i] for i in kept),
        suspect=sides[0][np.ix_(rows, kept)],
        heldout=sides[1][np.ix_(rows, kept)],
        suspect_texts=tuple(pair.true for pair in some),
        heldout_texts=tuple(pair.generated for pair in some),
        suspect_documents=owners,
        heldout_documents=owners,
    )


def _asked(procedure: str, features: Features, classifier: TextClassifier) -> float:
    if procedure == "original":
        return original(features, seed=0).p
    asked = paper if procedure == "paper" else release
    return asked(features, classifier=classifier, seed=0).p


def run(work: Path, out: Path) -> None:
    """All rows of all domains that were read, and the files that are made from them."""
    domains = {
        name: Domain(work, name)
        for name in (*MEASURED, KEPT_APART)
        if list(work.glob(f"target-{name}-*.npz"))
    }
    everyone = [subject for domain in domains.values() for subject in subjects(domain)]
    placebos = (OWN, EARLIER, TUNED)
    found = [{**s.key, **{name: round(lean(s, name), 4) for name in placebos}} for s in everyone]
    ledger = Ledger(out, {"level": LEVEL, "permutations": DRAWS, "snippet_tokens": 64}, fresh=True)
    rows: list[Row] = []
    wrong: list[Row] = []
    for subject in everyone:
        print(subject.key, flush=True)
        margins = {
            n: max(f[n] for f in found if f["domain"] not in (subject.domain.name, KEPT_APART))
            for n in placebos
        }
        made = [
            *control_rows(subject),
            *difference_rows(subject),
            *placebo_rows(subject, margins),
            *literature_rows(subject),
        ]
        rows += [{"procedure": "pretrace", **subject.key, **row} for row in made]
        wrong += [{**subject.key, **row} for row in wrong_control_rows(subject)]
    ledger.content["rows"] = rows
    ledger.save(leans=found, wrong_controls=wrong)
    plain = [
        {"domain": f["domain"], "epochs": f["epochs"], "model": f["model"], "value": f[OWN]}
        for f in found
        if f["domain"] != KEPT_APART
    ]
    atomic_text(LEANS, json.dumps({"leans": plain}, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="the folder of benchmarks.audit_readings")
    parser.add_argument("--out", type=Path, default=RESULTS / "audit_errors.json")
    given = parser.parse_args()
    run(given.work, given.out)
