"""Do a few documents of another kind show in the texts alone? `python -m benchmarks.audits.mixtures --work FOLDER`.

Suspect documents of one domain stand against as many control documents, of which a share is of another domain. Nothing
is fitted to a domain, so every domain is one left out. What is seen is the share of sets with p at or below 5% (and
1%); with no strangers it is how often a set is withheld for nothing. Every p comes from dealing the documents out anew.

Features: TF-IDF of words, and the last hidden state of the packaged model over the first 64
tokens of a document, as the mean of all tokens or of the last one (each less its mean over both sides, in bfloat16;
they are made once, in the work folder). Tests:

- `likeness`: each document's mean or median likeness (cosine) to all others; the lowest tenth or fifth of the control
  documents less that of the suspect ones.
  (`earlier` holds 500 draws of this alone, with three characters as well.)
- `classifier`: the AUC of a logistic regression on the first principal components, cross-fitted in five folds (the
  classifier two-sample test of Lopez-Paz and Oquab 2017).
- `neighbours`: how many of the five nearest documents are of one's own side (Schilling 1986, Henze 1988).
- `alone`: how many control documents have three control documents as their nearest.
- `energy`: the energy distance (Szekely and Rizzo 2004); `mmd`: a Gaussian kernel of the median width (Gretton 2012).
- `cluster`: the most surprising group of a tree (average linkage): the smallest chance that so many of its documents
  are control documents. The tree sees no sides.

`--checked` counts instead what the audit's own check sees, which is `cluster` of words and pairs of words. `--forms`
counts how often the audit's rule (AUC above 0.60 and beyond chance, the documents' beginnings cut alike) sees that all
control documents went through another editor, with the classifier of words alone and with that of form beside it;
unedited, how often it refuses for nothing.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import textwrap
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.audits.worlds import DOMAINS, Worlds
from benchmarks.experiments import DATA, RESULTS
from benchmarks.machine import commit, machine
from pretrace import open_model
from pretrace.baselines.classifier_two_sample import gap
from pretrace.results.atomic import atomic_bytes, atomic_text
from pretrace.types import Bools, Corpus, Doubles, Text
from pretrace.verdicts.audit.checks import KINDS, kinds_check
from pretrace.verdicts.audit.designs import ALIKE, differ

SHARES = (0.0, 0.05, 0.10, 0.15, 0.25)
LOWEST = (0.1, 0.2)
DEALT = 200
POOL = 200
"""Documents of a domain that sets are drawn from."""
TOKENS, AT_ONCE, COMPONENTS, PENALTY, FOLDS = 64, 20, 20, 1.0, 5
FORM_CHARACTERS = 1000
FEATURES = ("words", "mean state", "last state")


def embeddings(worlds: Worlds, texts: dict[str, list[str]]) -> dict[str, dict[str, Doubles]]:
    """The mean and the last token's last hidden state of each document, [documents, width] a kind and domain."""
    found = {}
    for domain, some in texts.items():
        path = worlds.work / f"states-{domain}.npy"
        if not path.is_file():
            buffer = io.BytesIO()
            np.save(buffer, _states(some))
            atomic_bytes(path, buffer.getvalue())
            print(f"{domain} is read", flush=True)
        found[domain] = np.load(path).astype(np.float64)
    return {kind: {domain: found[domain][:, i] for domain in texts} for i, kind in enumerate(FEATURES[1:])}


@cache
def _packaged() -> Any:
    return open_model("smollm2")


def _states(texts: list[str]) -> npt.NDArray[np.float32]:
    """[documents, mean and last, width]; every document has as many tokens as are read."""
    import torch

    backend = _packaged()
    model = backend.model.to(torch.bfloat16).model
    ids = torch.tensor([backend.tokenizer(text)["input_ids"][:TOKENS] for text in texts])
    rows = []
    for at in range(0, len(ids), AT_ONCE):
        with torch.inference_mode():
            states = model(ids[at : at + AT_ONCE]).last_hidden_state.float().numpy()
        rows.append(np.stack([states.mean(1), states[:, -1]], 1))
    return np.concatenate(rows)


def features(texts: list[str]) -> Doubles:
    """TF-IDF [documents, columns] of the words that stand in two documents or more."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return np.asarray(TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(texts).toarray())


def length_one(rows: Doubles) -> Doubles:
    """Each row divided by its length."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


Statistic = Callable[[Bools], Doubles]
"""Of sides [draws, documents], True for control documents, a number a draw; large where strangers stand among them."""


def statistics(rows: Doubles) -> Iterator[tuple[str, Statistic]]:
    """Every test of documents with these features, of length one."""
    alike = rows @ rows.T
    far = np.sqrt(np.maximum(2 - 2 * alike, 0))
    np.fill_diagonal(far, 0.0)
    others = alike.copy()
    np.fill_diagonal(others, np.nan)
    for how, values in (("mean", np.nanmean(others, 1)), ("median", np.nanmedian(others, 1))):
        for lowest in LOWEST:
            yield f"likeness, {how}, lowest {lowest:.0%}", _lowest(values, lowest)
    ranked = np.argsort(np.where(np.eye(len(rows), dtype=bool), np.inf, far), 1)
    yield "neighbours, 5", _neighbours(ranked[:, :5])
    yield "alone, 3", lambda sides: (sides & sides[:, ranked[:, :3]].all(-1)).sum(1).astype(float)
    yield "energy", _distance(-far)
    width = np.median(far[np.triu_indices(len(far), 1)])
    yield "mmd", _distance(np.exp(-((far / width) ** 2) / 2))
    yield "cluster", _cluster(far)
    yield "classifier", _classifier(rows)


def _lowest(values: Doubles, lowest: float) -> Statistic:
    def statistic(sides: Bools) -> Doubles:
        found = []
        for side in (~sides, sides):
            number = max(2, round(lowest * int(side[0].sum())))
            found.append(np.sort(np.where(side, values, np.inf), 1)[:, :number].mean(1))
        return np.asarray(found[0] - found[1])

    return statistic


def _neighbours(nearest: npt.NDArray[np.int64]) -> Statistic:
    return lambda sides: np.asarray((sides[:, nearest] == sides[:, :, None]).sum((1, 2)), dtype=np.float64)


def _distance(kernel: Doubles) -> Statistic:
    """The squared distance of the two sides' means in the space of a kernel, unbiased or not: the null is dealt out."""

    def statistic(sides: Bools) -> Doubles:
        weights = np.where(sides, 1 / sides.sum(1, keepdims=True), -1 / (~sides).sum(1, keepdims=True))
        return np.asarray(((weights @ kernel) * weights).sum(1))

    return statistic


def _cluster(far: Doubles) -> Statistic:
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    count = len(far)
    inside = [np.eye(count, dtype=bool)[i] for i in range(count)]
    for first, second, *_ in linkage(squareform(far, checks=False), "average"):
        inside.append(inside[int(first)] | inside[int(second)])
    groups = np.array([one for one in inside if 3 <= one.sum() <= count // 2])
    sizes, members = groups.sum(1), groups.T.astype(np.float64)

    def statistic(sides: Bools) -> Doubles:
        held = (sides.astype(np.float64) @ members).round().astype(int)
        return np.asarray(_surprise(count, int(sides[0].sum()))[sizes, held].max(1))

    return statistic


@cache
def _surprise(count: int, controls: int) -> Doubles:
    """Of groups [size, control documents in it] minus the logarithm of the chance of so many or more."""
    from scipy.stats import hypergeom

    held, size = np.meshgrid(np.arange(count + 1), np.arange(count + 1))
    return np.asarray(-hypergeom.logsf(held - 1, count, controls, size))


def _classifier(rows: Doubles) -> Statistic:
    centred = rows - rows.mean(0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    inputs = left[:, :COMPONENTS] * sizes[:COMPONENTS]
    inputs = inputs / inputs[:, :1].std()
    folds = np.random.default_rng(0).permutation(len(rows)) % FOLDS

    def statistic(sides: Bools) -> Doubles:
        odds = np.empty(sides.shape)
        for fold in range(FOLDS):
            out = folds == fold
            slope, constant = logistic(inputs[~out], sides[:, ~out])
            odds[:, out] = slope @ inputs[out].T + constant[:, None]
            odds[:, out] -= odds[:, out].mean(1, keepdims=True)
        ranks = odds.argsort(1).argsort(1) + 1.0
        many = sides.sum(1)
        above = (ranks * sides).sum(1) - many * (many + 1) / 2
        return np.asarray(above / (many * (sides.shape[1] - many)))

    return statistic


def logistic(inputs: Doubles, sides: Bools, penalty: float = PENALTY) -> tuple[Doubles, Doubles]:
    """Slopes [draws, columns] and constants [draws] of a logistic regression of each row of sides, by Newton's steps;
    the squared slopes count half of the penalty."""
    full = np.column_stack([inputs, np.ones(len(inputs))])
    ridge = np.diag([penalty] * inputs.shape[1] + [1e-6])
    weights = np.zeros((len(sides), full.shape[1]))
    for _ in range(8):
        chance = 1 / (1 + np.exp(-np.clip(weights @ full.T, -30, 30)))
        slope = (sides - chance) @ full - weights @ ridge
        curve = np.einsum("dn,ni,nj->dij", chance * (1 - chance), full, full, optimize=True) + ridge
        weights = weights + np.linalg.solve(curve, slope[:, :, None])[:, :, 0]
    return weights[:, :-1], weights[:, -1]


def p_value(statistic: Statistic, controls: Bools, rng: np.random.Generator) -> float:
    """How often dealing the documents out gives as much."""
    dealt = rng.permuted(np.broadcast_to(controls, (DEALT, len(controls))), axis=1)
    found = statistic(np.concatenate([controls[None], dealt]))
    return float((1 + np.count_nonzero(found[1:] >= found[0] - 1e-12)) / (DEALT + 1))


def measured(worlds: Worlds, size: int, repeats: int) -> list[dict[str, Any]]:
    """A row for each kind of features and test: the share of sets seen for each share of strangers."""
    rng = np.random.default_rng(size)
    texts = {name: [" ".join(some) for some in worlds.evaluation(name).values()][:POOL] for name in DOMAINS}
    states = embeddings(worlds, texts)
    found: dict[tuple[str, str], dict[float, list[float]]] = {}
    for domain in DOMAINS:
        for _ in range(repeats):
            own = rng.permutation(len(texts[domain])).tolist()
            if len(own) < 2 * size:
                continue
            other = [name for name in DOMAINS if name != domain][int(rng.integers(len(DOMAINS) - 1))]
            strangers = rng.permutation(len(texts[other])).tolist()
            for share in SHARES:
                number = round(share * size)
                both = [(domain, i) for i in own[: 2 * size - number]]
                both += [(other, i) for i in strangers[:number]]
                controls = np.arange(2 * size) >= size
                for kind in FEATURES:
                    if kind in states:
                        rows = np.stack([states[kind][name][i] for name, i in both])
                        rows = rows - rows.mean(0)
                    else:
                        rows = features([texts[name][i] for name, i in both])
                    for test, statistic in statistics(length_one(rows)):
                        p = p_value(statistic, controls, rng)
                        found.setdefault((kind, test), {}).setdefault(share, []).append(p)
    return [
        {
            "documents": size,
            "features": kind,
            "test": test,
            "sets": len(by_share[0.0]),
            "seen": {
                f"{share:.0%}": {
                    f"{level:.0%}": round(float(np.mean([p <= level for p in ps])), 3)
                    for level in (0.05, 0.01)
                }
                for share, ps in by_share.items()
            },
        }
        for (kind, test), by_share in found.items()
    ]


def checked(worlds: Worlds, size: int, repeats: int) -> list[dict[str, Any]]:
    """What the audit's own check of groups sees (its words and pairs of words), a row a share of strangers."""
    rng = np.random.default_rng([size, 1])
    found: dict[float, list[float]] = {share: [] for share in SHARES}
    texts = {name: [" ".join(some) for some in worlds.evaluation(name).values()] for name in DOMAINS}
    for domain in DOMAINS:
        for turn in range(repeats):
            own = [texts[domain][i] for i in rng.permutation(len(texts[domain]))[: 2 * size].tolist()]
            other = [name for name in DOMAINS if name != domain][int(rng.integers(len(DOMAINS) - 1))]
            strangers = [texts[other][i] for i in rng.permutation(len(texts[other]))[:size].tolist()]
            for share in SHARES:
                number = round(share * size)
                both = [*own[: 2 * size - number], *strangers[:number]]
                check = kinds_check(both, np.arange(2 * size) >= size, seed=turn, rejected=True)
                found[share].append(float(check.figures["p"]))
    return [
        {"documents": size, "share": f"{share:.0%}", "sets": len(ps)}
        | {"withheld": sum(p <= KINDS for p in ps), "at 1%": sum(p <= 0.01 for p in ps)}
        for share, ps in found.items()
    ]


EDITORS: dict[str, Callable[[str], str]] = {
    "none": str,
    "lines of 72 characters": lambda text: "\n".join(textwrap.fill(line, 72) for line in text.split("\n")),
    "line breaks with a carriage return": lambda text: text.replace("\n", "\r\n"),
    "two spaces after a sentence": lambda text: text.replace(". ", ".  "),
    "no-break spaces before numbers": lambda text: re.sub(r" (?=\d)", "\u00a0", text),
    "curly quotes": lambda text: re.sub(r"'", "\u2019", re.sub(r'"(\w[^"]*)"', "\u201c\\1\u201d", text)),
}


def forms(worlds: Worlds, size: int, repeats: int) -> list[dict[str, Any]]:
    """A row an editor: in how many sets the rule sees it, by words alone and with form."""
    rng, found = np.random.default_rng(size), dict.fromkeys(EDITORS, (0, 0, 0))
    for domain in DOMAINS:
        texts = [" ".join(some)[:FORM_CHARACTERS] for some in worlds.evaluation(domain).values()]
        for turn in range(repeats):
            some = [texts[i] for i in rng.permutation(len(texts))[: 2 * size].tolist()]
            for name, edited in EDITORS.items():
                after = [edited(text) for text in some[size:]]
                if name != "none" and after == some[size:]:
                    continue
                sides = [
                    Corpus(side, tuple(Text(f"{side}{i}", text) for i, text in enumerate(these)))
                    for side, these in (("suspect", some[:size]), ("controls", after))
                ]
                words, form, _ = gap(*sides, ("words", "form"), seed=turn, resamples=400)
                seen = [
                    differ(one, ALIKE) for one in (words, max(words, form, key=lambda one: one.auc.value))
                ]
                sets, alone, both = found[name]
                found[name] = (sets + 1, alone + seen[0], both + seen[1])
    return [
        {"editor": name, "documents": size, "sets": sets, "words": alone, "words and form": both}
        for name, (sets, alone, both) in found.items()
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 50, 100])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--forms", action="store_true", help="count what the classifier of form sees, and stop"
    )
    parser.add_argument(
        "--checked", action="store_true", help="count what the audit's own check sees, and stop"
    )
    given = parser.parse_args()
    worlds = Worlds(given.work, given.data)
    made: dict[str, Any] = {"machine": machine(), "commit": commit()}
    path = RESULTS / "audit_mixtures.json"
    if given.forms:
        held = json.loads(path.read_text(encoding="utf-8"))
        held["forms"] = made | {"rows": forms(worlds, 50, given.repeats)}
        atomic_text(path, json.dumps(held, indent=1) + "\n")
        raise SystemExit
    if given.checked:
        held = json.loads(path.read_text(encoding="utf-8"))
        rows = [row for size in given.sizes for row in checked(worlds, size, given.repeats)]
        held["checked"] = made | {"rows": rows}
        atomic_text(path, json.dumps(held, indent=1) + "\n")
        raise SystemExit
    for size in given.sizes:
        start = time.monotonic()
        rows = measured(worlds, size, given.repeats)
        print(f"{size} documents: {time.monotonic() - start:.0f} s", flush=True)
        held = json.loads(path.read_text(encoding="utf-8"))
        rows = [*(row for row in held["rows"] if "test" in row and row["documents"] != size), *rows]
        earlier = held.get("earlier") or {name: held[name] for name in ("commit", "dealt", "rows")}
        content = made | {"dealt": DEALT, "tokens": TOKENS, "rows": rows}
        content |= {"earlier": earlier} | {name: held[name] for name in ("forms", "checked") if name in held}
        atomic_text(path, json.dumps(content, indent=1) + "\n")
