"""Was one collection used, more than others of its kind? It is ranked among them.

The file reads from top to bottom: settings, gathering the documents, what stands for each document, values and means,
what collections look like as texts, checks, sentences, the test. What every test does stands in `verdicts.frame`.

Why each collection's mean is divided by its own uncertainty. A rank is exact where the collections are exchangeable.
The documents of one collection may vary more than those of another, be fewer, or shorter; then its mean varies more,
and it comes out on top by chance more often. So what is ranked is the mean, less that of all other collections, over
the standard deviation that a mean of such documents has: that between the other collections, and that of the mean of
its own documents. Every collection enters in the same way, so the rank stays exact where it was.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from pretrace.backends.serving.address import called
from pretrace.baselines.classifiers import SURFACE, surface_features
from pretrace.baselines.classifiers import Words as TextWords
from pretrace.building.reading import days
from pretrace.cache.location import text_key
from pretrace.cache.written import Draw
from pretrace.errors import ExpressionError, TextsError
from pretrace.registry import require
from pretrace.results.rounding import p_value
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.scoring.provenance import record_corpus
from pretrace.settings import LARGEST, option
from pretrace.statistics.documents import linked
from pretrace.statistics.permutation import critical
from pretrace.statistics.ranks import fewest_others, joint_extremeness, rank_p
from pretrace.statistics.ridge import ridge_residuals
from pretrace.types import (
    Backend,
    Check,
    Corpus,
    Doubles,
    Estimate,
    Power,
    Situation,
    Skipped,
    Table,
    Text,
    Verdict,
)
from pretrace.types.audit import COMPARED
from pretrace.verdicts.audit.generation import TRAINING, WRITING, complete, tuned_generator
from pretrace.verdicts.audit.settings import GENERATOR
from pretrace.verdicts.audit.snippets import Snippet, SnippetSettings, cut, divide
from pretrace.verdicts.frame import Beyond, Shown, Test, Tested, Words, beyond_by_rank, verdict, watched
from pretrace.verdicts.outcome import null_histogram
from pretrace.verdicts.planting import planted_shift, rank_power
from pretrace.verdicts.reading import Reader, Watched, check_references, score_of_all
from pretrace.verdicts.record import listed
from pretrace.verdicts.settings import TEST, TestSettings

# Settings

Value = Literal["auto", "alone", "residual", "generated"]
FEWEST_DOCUMENTS = 5
"""Documents a collection needs: below, its mean says too little, and one odd document decides its rank."""
MOST_DOCUMENTS = 100
"""Documents taken of each collection, at most; all give as many as the smallest one has."""
TOKENS, SNIPPETS = 64, 4
"""With `value` "generated": tokens of a piece, of which the second half is written anew, and pieces of a document, at
most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSettings(TestSettings):
    """How a collection is ranked among others; ExpressionError for a value out of its range.

    `value` is what a document counts with: its score "alone"; the "residual" beyond what reference models and the
    text itself predict of it; or how far the true text is above what a model "generated" in its place. "auto" is
    the residual with reference models and alone without. `score` is "" for the mean log-probability. The others are
    the generator's: `method` "none" takes it as it is, "lora" tunes it on a part of each collection, for each apart.
    """

    value: Value = option(
        "auto",
        "What a document counts with: alone (its score), residual (beyond what --reference-model predicts), "
        "generated (true text less what --generator wrote instead), or auto: residual with a reference model, else "
        "alone. Choose before you look at a result.",
        panel=TEST,
        essential=True,
    )
    score: str = option(
        "", "Score a text is read with; loss unless given. Choose before you look at a result.", panel=TEST
    )
    method: str = option(
        "none",
        "How the generator is tuned for --value generated, for each collection apart on half of its pieces: none "
        "(as it is), lora, or an expression as for `pretrace tune`.",
        panel=COMPARED,
    )

    def __post_init__(self) -> None:
        TestSettings.__post_init__(self)
        names = get_args(Value)
        require(self.value in names, f"--value is one of {', '.join(names)}, found {self.value!r}.")

    def chosen(self, references: int, *, generator: bool) -> Value:
        """What documents count with, given how many reference models there are and whether there is a generator.

        ExpressionError where one of the models is missing, or was named and is not asked.
        """
        value = self.value
        if value == "auto":
            value = "residual" if references else "alone"
        require(
            value != "residual" or references > 0,
            "--value residual takes off what reference models predict: name one of another family with "
            "--reference-model, or take --value alone.",
        )
        require(value != "alone" or not references, "--value alone asks no --reference-model: leave it out.")
        require(
            value != "generated" or generator,
            "--value generated needs a model with weights here that writes texts: name one with --generator.",
        )
        require(value == "generated" or not generator, f"--generator has no use with --value {value}.")
        return value

    @property
    def tuning(self) -> str:
        """How the generator is tuned, as an expression; "none" for one that is not."""
        return GENERATOR if self.method.strip() == "lora" else self.method


# Gathering: as many documents of each collection, treated alike whichever is the suspect one

_ONLY_HERE = "a text of it stands in another collection too"


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its collection's place, its name there, its texts, and what a further column says of each."""

    collection: int
    name: str
    texts: tuple[str, ...]
    dates: tuple[str, ...] = ()

    @property
    def whole(self) -> str:
        """All of its texts, a paragraph each."""
        return "\n\n".join(self.texts)


@dataclass(frozen=True, slots=True)
class Gathered:
    """Collections by `names`, the suspect one first, each with `number` of the `documents`, collection by collection.
    `notes` say what was done to get there, `skipped` what was left out."""

    names: tuple[str, ...]
    documents: tuple[Document, ...]
    number: int
    notes: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    @property
    def codes(self) -> npt.NDArray[np.int64]:
        """The collection of each document, [documents]."""
        return np.array([one.collection for one in self.documents], dtype=np.int64)


def divided(corpus: Corpus, column: str, suspect: str) -> tuple[Corpus, tuple[Corpus, ...]]:
    """The suspect collection and the others of one file, by what a further column (`Text.meta`) says of each row.

    TextsError where no row says `suspect`. Rows with an empty cell are left out, which the suspect corpus notes.
    """
    rows: dict[str, list[int]] = {}
    for place, text in enumerate(corpus.texts):
        rows.setdefault(text.meta.get(column, ""), []).append(place)
    lost = len(rows.pop("", ()))
    if suspect not in rows:
        raise TextsError(
            f"no row of {corpus.name} has {suspect!r} in the column {column!r}; it has {listed(sorted(rows))}: "
            "name one of them with --suspect."
        )
    made = {
        name: replace(corpus, name=name, texts=tuple(corpus.texts[place] for place in places), notes=())
        for name, places in rows.items()
    }
    notes = (
        (f"{lost:,} rows have nothing in the column {column} and belong to no collection.",) if lost else ()
    )
    first = replace(made.pop(suspect), notes=(*corpus.notes, *notes))
    return first, tuple(made[name] for name in sorted(made))


def gathered(corpora: Sequence[Corpus], level: float, *, date_column: str = "") -> Gathered:
    """As many documents of each corpus, the suspect one first, at most `MOST_DOCUMENTS`.

    Texts that stand in two collections are taken out of both, with their documents: such collections depend on each
    other. What is drawn of a collection depends on its own texts. TextsError for fewer collections than
    the level takes, or for one with fewer than 5 documents left.
    """
    _check_number(len(corpora) - 1, level)
    names = _names(corpora)
    found = [_documents(corpus, place, date_column) for place, corpus in enumerate(corpora)]
    own, shared = _apart(found)
    number = min(MOST_DOCUMENTS, *map(len, own))
    few = [name for name, some in zip(names, own, strict=True) if len(some) < FEWEST_DOCUMENTS]
    if few:
        raise TextsError(
            f"a collection takes {FEWEST_DOCUMENTS} documents or more that stand in no other, and these have fewer: "
            f"{listed(few)}. Add documents, or leave them out."
        )
    drawn = tuple(one for some in own for one in _drawn(some, number))
    skipped = tuple(Skipped(f"{names[one.collection]}: {one.name}", _ONLY_HERE, 0) for one in shared)
    return Gathered(names, drawn, number, _notes(own, names, number, len(shared)), skipped)


def _check_number(controls: int, level: float) -> None:
    needed = fewest_others(level)
    if controls < needed:
        raise TextsError(
            f"a rank at the level of {level:g} takes {needed} control collections, found {controls}: "
            f"{needed - controls} are missing. Add collections of the same kind with --controls, or set a higher "
            "--level beforehand."
        )


def _names(corpora: Sequence[Corpus]) -> tuple[str, ...]:
    """The names of the corpora; where two are called the same, with where they are from, or a number."""
    count = Counter(corpus.name for corpus in corpora)
    long = [corpus.name if count[corpus.name] == 1 else corpus.source or corpus.name for corpus in corpora]
    again, made = Counter(long), []
    for place, name in enumerate(long):
        made.append(name if again[name] == 1 else f"{name} ({place})")
    return tuple(made)


def _documents(corpus: Corpus, place: int, date_column: str) -> list[Document]:
    """The documents of a corpus with their distinct texts, blank ones left out; those that share a text are one."""
    owner, seen = linked(corpus.texts), set[str]()
    texts: dict[str, list[tuple[str, str]]] = {}
    for text in corpus.texts:
        content = text.text.strip()
        if content and content not in seen:
            seen.add(content)
            date = text.meta.get(date_column, "") if date_column else ""
            texts.setdefault(owner[text.document], []).append((text.text, date))
    return [
        Document(
            place, name, tuple(one for one, _ in some), tuple(date for _, date in some) if date_column else ()
        )
        for name, some in texts.items()
    ]


def _apart(found: Sequence[Sequence[Document]]) -> tuple[list[list[Document]], list[Document]]:
    """The documents of each collection that share no text with another collection, and those that do."""
    homes: dict[str, set[int]] = {}
    for documents in found:
        for one in documents:
            for text in one.texts:
                homes.setdefault(text.strip(), set()).add(one.collection)
    several = {text for text, places in homes.items() if len(places) > 1}
    own: list[list[Document]] = []
    shared: list[Document] = []
    for documents in found:
        own.append([one for one in documents if not any(text.strip() in several for text in one.texts)])
        shared += [one for one in documents if any(text.strip() in several for text in one.texts)]
    return own, shared


def _drawn(documents: Sequence[Document], number: int) -> list[Document]:
    """So many of the documents, by a hash of the text: neither names nor order nor role decide."""
    return sorted(documents, key=lambda one: text_key(one.whole))[:number]


def _notes(
    own: Sequence[Sequence[Document]], names: Sequence[str], number: int, shared: int
) -> tuple[str, ...]:
    notes = []
    smallest = min(range(len(own)), key=lambda place: len(own[place]))
    if any(len(some) > number for some in own):
        why = f", as many as {names[smallest]} has" if len(own[smallest]) == number else ""
        notes.append(f"{number:,} documents of each collection were drawn{why}.")
    if shared:
        notes.append(
            f"{shared:,} documents share a text with another collection and were taken out of all collections."
        )
    return tuple(notes)


# What stands for each document: its texts, or places in it beside what a generator wrote there

BLIND = ("log length", "zlib ratio")
"""What predicts a document's score without any model, beside the reference models."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A text of a document (its place among all), and what a generator wrote in its place, None without one."""

    document: int
    text: str
    generated: str | None = None


@dataclass(frozen=True, slots=True)
class Material:
    """The pieces of all documents, in the documents' order; `number` is that of documents."""

    pieces: tuple[Piece, ...]
    number: int
    notes: tuple[str, ...] = ()

    def by_document(self, read: Callable[[Sequence[str]], Doubles]) -> Doubles:
        """The mean of what `read` gives for each text, by document, [documents]: of its pieces as they are, or of the
        differences between them and what was generated in their place."""
        texts = [one.text for one in self.pieces]
        beside = [one.generated for one in self.pieces if one.generated is not None]
        values = read([*texts, *beside])
        if beside:
            values = values[: len(texts)] - values[len(texts) :]
        return document_means(values, [one.document for one in self.pieces], self.number)

    def blind(self) -> Doubles:
        """The same means of the columns `BLIND`, [documents, 2]."""
        places = [SURFACE.index(name) for name in BLIND]
        return np.column_stack(
            [
                self.by_document(lambda texts, at=place: surface_features(texts)[:, at])  # type: ignore[misc]
                for place in places
            ]
        )


def _as_they_are(gathered: Gathered) -> Material:
    """All texts of the documents."""
    pieces = tuple(Piece(place, text) for place, one in enumerate(gathered.documents) for text in one.texts)
    return Material(pieces, len(gathered.documents))


def beside_generated(
    gathered: Gathered, generator: Backend, settings: CollectionSettings, watch: Watched, *, seed: int
) -> Material:
    """Pieces of each document and the same with their second half written by the generator.

    Each collection has a generator of its own, made by the same recipe: tuned on half of that collection's pieces, or
    as it is. So how well a generator imitates is a property of the collection like any other, and all are exposed to
    it alike. ModelError where the generator has no weights here, TextsError where no document is long enough.
    """
    tuned = settings.tuning.strip() != "none"
    pieces: list[Piece] = []
    lost = short = 0
    for unit in range(len(gathered.names)):
        judged, learnt, left = _snippets(gathered, unit, generator, tuned=tuned, seed=seed)
        short += left
        made = _written(judged, learnt, generator, settings, watch, seed=seed)
        found = [Piece(int(one.document), one.text, one.prefix + new) for one, new in made if new]
        lost += len(judged) - len(found)
        pieces += found
    if not pieces:
        raise TextsError(
            f"no document has {TOKENS} tokens in a row for --value generated: give longer documents."
        )
    notes = []
    if short:
        notes.append(f"{short:,} texts are shorter than {TOKENS} tokens and gave no piece.")
    if lost:
        notes.append(f"{lost:,} pieces were given no continuation and were left out.")
    return Material(
        tuple(sorted(pieces, key=lambda one: one.document)), len(gathered.documents), tuple(notes)
    )


def _snippets(
    gathered: Gathered, unit: int, generator: Backend, *, tuned: bool, seed: int
) -> tuple[Sequence[Snippet], Sequence[Snippet], int]:
    """The pieces of a collection to judge, those its generator learns from, and how many texts are too short."""
    mine = [(place, one) for place, one in enumerate(gathered.documents) if one.collection == unit]
    texts = tuple(
        Text(f"{place}.{number}", text, group=str(place))
        for place, one in mine
        for number, text in enumerate(one.texts)
    )
    how = SnippetSettings(tokens=TOKENS, most=SNIPPETS, pairs=10**9, share=0.5 if tuned else 1.0)
    made = cut(Corpus(gathered.names[unit], texts), generator.spans, how, seed=seed)
    judged, learnt = divide(made.snippets, how, seed=seed) if made.snippets else ((), ())
    return judged, learnt if tuned else (), len(made.short)


def _written(
    judged: Sequence[Snippet],
    learnt: Sequence[Snippet],
    generator: Backend,
    settings: CollectionSettings,
    watch: Watched,
    *,
    seed: int,
) -> list[tuple[Snippet, str]]:
    """Each judged piece with what the generator, tuned on the others, writes after its first half."""
    if not judged:
        return []
    with watch.training(TRAINING) as on_step:
        own = tuned_generator(
            generator,
            [one.text for one in learnt],
            settings.tuning,
            seed=seed,
            cache=settings.cache,
            on_step=on_step,
        )
    draw = Draw(TOKENS - TOKENS // 2, seed=seed)
    with watch.passes(WRITING) as progress:
        made = complete(own, [one.prefix for one in judged], draw, cache=settings.cache, progress=progress)
    return list(zip(judged, made, strict=True))


# Values of documents, and means of collections, such that every collection enters in the same way
#
# A rank is exact only where the means are exchangeable, and that needs two things: the collections themselves are, and
# what turns texts into means treats all of them alike. So the regression that predicts a document's score from what
# other models say of it is fitted, for every collection, on all others: for collection 0 on the controls, and for a
# control on collection 0 and the other controls. Swap two collections, and their two means are swapped and no other
# changes. Fitting on the controls alone would break this: each control would then be predicted by a fit on one
# collection fewer than the suspect one, from which its residuals differ a little more.


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The `target` score of each document [documents], NaN where it has none, the `predictors` of it
    [documents, k] or None where the score counts as it is, and each document's collection, `codes` [documents], of
    `units` collections."""

    target: Doubles
    predictors: Doubles | None
    codes: npt.NDArray[np.int64]
    units: int

    @property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Which documents have all that is needed, [documents]."""
        found = np.isfinite(self.target)
        return found if self.predictors is None else found & np.isfinite(self.predictors).all(axis=1)

    def values(self) -> Doubles:
        """What each document counts with, [documents]: its score, or what is left of it beyond the prediction of a
        fit on all other collections. NaN for a document that cannot be used."""
        good = self.usable
        if self.predictors is None:
            return np.where(good, self.target, np.nan)
        left = np.full(len(good), np.nan)
        left[good] = ridge_residuals(self.target[good], self.predictors[good], self.codes[good])
        return left

    def means(self, values: Doubles) -> Doubles:
        """The mean value of each collection's documents, [units], summed without rounding, so that no order of
        documents changes it; NaN for a collection without any."""
        return np.array([self._mean(values, unit) for unit in range(self.units)])

    def counted(self) -> npt.NDArray[np.int64]:
        """How many documents of each collection count, [units]."""
        return np.bincount(self.codes[self.usable], minlength=self.units)

    def _mean(self, values: Doubles, unit: int) -> float:
        some = values[self.codes == unit]
        some = some[np.isfinite(some)]
        return math.fsum(some.tolist()) / len(some) if len(some) else math.nan


def document_means(values: Doubles, documents: Sequence[int], number: int) -> Doubles:
    """The mean over the pieces of each of `number` documents, [number]; pieces without a value are left out, and a
    document of such pieces alone is NaN."""
    sums: list[list[float]] = [[] for _ in range(number)]
    for value, document in zip(values.tolist(), documents, strict=True):
        if math.isfinite(value):
            sums[document].append(value)
    return np.array([math.fsum(some) / len(some) if some else math.nan for some in sums])


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """The `means` of all collections [units], the suspect one first, what is ranked, `studentised` [units], and the
    number of documents that each mean rests on, `counted` [units]; `errors` [units] are what each mean was divided
    by."""

    means: Doubles
    studentised: Doubles
    errors: Doubles
    counted: npt.NDArray[np.int64]

    @property
    def p(self) -> float:
        """The rank of collection 0."""
        return rank_p(self.studentised[0], self.studentised[1:])

    @property
    def above(self) -> int:
        """How many controls are at least as high as the suspect collection."""
        return int(np.count_nonzero(self.studentised[1:] >= self.studentised[0]))


def ranked(values: Doubles, codes: npt.NDArray[np.int64], units: int) -> Ranked:
    """Every collection's mean value, less that of the others, over its standard deviation; `values` [documents], NaN
    for one that does not count, `codes` [documents].

    The variance is that between the means of all other collections, beyond what their documents bring (DerSimonian and
    Laird 1986, with equal weights), and that of the mean of its own documents. Sums do not depend on the order of
    documents or collections.
    """
    found = [np.sort(values[(codes == unit) & np.isfinite(values)]) for unit in range(units)]
    counted = np.array([len(one) for one in found])
    if counted.min() == 0:
        raise TextsError(
            "a collection has no document with a score: leave it out before looking at a result."
        )
    means = np.array([math.fsum(one.tolist()) / len(one) for one in found])
    pooled = _ordered_mean(np.array([one.var(ddof=1) for one in found if len(one) > 1] or [0.0]))
    own = np.array([(one.var(ddof=1) if len(one) > 1 else pooled) / len(one) for one in found])
    away, errors = np.empty(units), np.empty(units)
    for unit in range(units):
        others, theirs = np.delete(means, unit), np.delete(own, unit)
        middle = _ordered_mean(others)
        between = _ordered_mean((others - middle) ** 2) * len(others) / max(1, len(others) - 1)
        errors[unit] = math.sqrt(max(0.0, between - _ordered_mean(theirs)) + own[unit])
        away[unit] = means[unit] - middle
    whole = float(np.abs(means).max())
    least = 1e-12 * max(
        1.0, whole
    )  # what does not vary at all is divided by next to nothing, and stays finite
    away = np.where(np.abs(away) > least, away, 0.0)
    return Ranked(means, away / errors.clip(min=least), errors, counted)


def _ordered_mean(values: Doubles) -> float:
    return math.fsum(values.tolist()) / len(values)


def prediction(own: float, others: Doubles) -> Estimate:
    """`own` less the mean of `others` [m], with the 95% interval of what such a difference is for one more of them:
    Student's with m - 1 degrees of freedom, sqrt(1 + 1 / m) times their standard deviation."""
    from scipy.special import stdtrit

    m = len(others)
    away = own - float(others.mean())
    if m < 2:
        return Estimate(away, -math.inf, math.inf)
    half = float(stdtrit(m - 1, 0.975)) * float(others.std(ddof=1)) * math.sqrt(1 + 1 / m)
    return Estimate(away, away - half, away + half)


# What collections look like as texts, and whether the suspect one stands apart

ALIKE = "alike"
_NAMES = {"log length": "mean log length", "zlib ratio": "zlib ratio", "type-token ratio": "type-token ratio"}
WORDS, DATE = "distance of words", "mean date"
LENGTHS, NEAR, SPREAD = "spread of lengths", "likeness of documents", "spread of scores"
_SAID = {
    "mean log length": "the length of its documents",
    "zlib ratio": "how repetitive its texts are",
    "type-token ratio": "how varied its words are",
    WORDS: "the words it uses",
    DATE: "its dates",
    LENGTHS: "how much the lengths of its documents differ",
    NEAR: "how much its documents are like each other",
    SPREAD: "how much its documents differ for the second model",
}


def blind_features(gathered: Gathered) -> dict[str, Doubles]:
    """Columns by name, one value a collection: mean log length, zlib ratio and type-token ratio of its documents, the
    distance of its words from those of all others, the spread of the log lengths, how alike its documents are, and its
    mean date (days since year 1) where dates were read.

    TextsError for a document without a date that can be read.
    """
    codes, units = gathered.codes, len(gathered.names)
    wholes = [one.whole for one in gathered.documents]
    table = surface_features(wholes)
    columns = {new: _means(table[:, SURFACE.index(old)], codes, units) for old, new in _NAMES.items()}
    columns[WORDS] = word_distances(wholes, codes, units)
    columns[LENGTHS] = spreads(table[:, SURFACE.index("log length")], codes, units)
    columns[NEAR] = likeness(wholes, codes, units)
    if any(one.dates for one in gathered.documents):
        columns[DATE] = _means(_days(gathered), codes, units)
    return columns


def word_distances(texts: Sequence[str], codes: np.ndarray, units: int) -> Doubles:
    """The cosine distance between the mean TF-IDF of each collection's texts and that of all other collections' means,
    [units]; 0 for all where no word occurs in two texts."""
    learnt = TextWords(texts).learnt
    if learnt is None or units < 2:
        return np.zeros(units)
    centres = np.stack(
        [np.asarray(learnt[np.flatnonzero(codes == unit)].mean(axis=0)).ravel() for unit in range(units)]
    )
    others = (centres.sum(axis=0) - centres) / (units - 1)
    sizes = np.linalg.norm(centres, axis=1) * np.linalg.norm(others, axis=1)
    near = np.divide((centres * others).sum(axis=1), sizes, out=np.zeros(units), where=sizes > 0)
    return np.asarray(1 - near)


def likeness(texts: Sequence[str], codes: np.ndarray, units: int) -> Doubles:
    """How alike the documents of each collection are, [units]: the mean over its documents of the largest cosine of
    TF-IDF with another of them. Documents in groups that are alike count as more than they are."""
    learnt = TextWords(texts).learnt
    if learnt is None:
        return np.zeros(units)
    made = np.zeros(units)
    for unit in range(units):
        rows = learnt[np.flatnonzero(codes == unit)]
        near = np.asarray((rows @ rows.T).todense())
        sizes = np.sqrt(np.diag(near)).clip(min=1e-12)
        near = near / sizes[:, None] / sizes
        np.fill_diagonal(near, 0.0)
        made[unit] = near.max(axis=1).mean() if len(near) > 1 else 0.0
    return made


def spreads(values: Doubles, codes: np.ndarray, units: int) -> Doubles:
    """The logarithm of the standard deviation of each collection's values, [units]; NaN values are left out, and what
    does not vary counts as a millionth of the mean size."""
    floor = 1e-6 * float(np.nanmean(np.abs(values))) + 1e-300
    some = [values[(codes == unit) & np.isfinite(values)] for unit in range(units)]
    return np.array([math.log(max(floor, float(one.std()))) if len(one) else math.log(floor) for one in some])


def alike_check(columns: dict[str, Doubles], level: float) -> Check:
    """Whether collection 0 is not the odd one out in these features: one gate for all of them, by rank.

    It fails for 1 collection in 20 at a level of 5% where all are exchangeable, and withholds an accusation and an
    all-clear alike: a collection that stands apart as text may have a high mean, or a low one, for that reason.
    """
    names = tuple(columns)
    found = joint_extremeness(np.column_stack([columns[name] for name in names]))
    most = names[found.which].partition(" (")[0]  # of several second models each has a spread of scores
    figures = {"p": found.p, **dict(zip(names, found.deviations.tolist(), strict=True))}
    if found.p > level:
        words = (
            "By length, words, spread and the like it is not the odd one out: of all collections a share of "
            f"{p_value(found.p)} lies at least as far from the middle."
        )
        return Check(ALIKE, _TITLE, "passed", words, figures=_finite(figures))
    words = (
        f"It stands apart from the others by {_SAID[most]} (p = {p_value(found.p)}). So its result may have another "
        "reason than training, in either direction."
    )
    return Check(ALIKE, _TITLE, "failed", words, _CURE, _finite(figures))


_TITLE = "As texts, the collection is like the others"
_CURE = (
    "Choose control collections nearer to the suspect one: of the same site, kind, length and period. Do so by their "
    "texts alone, before another look at the model."
)


def _means(values: Doubles, codes: np.ndarray, units: int) -> Doubles:
    return np.array([values[codes == unit].mean() for unit in range(units)])


def _days(gathered: Gathered) -> Doubles:
    """The mean day of each document, counted from year 1."""
    made = []
    for one in gathered.documents:
        found = [days(date) for date in one.dates]
        if None in found:
            raise TextsError(
                f"a text of {one.name!r} in {gathered.names[one.collection]} has no date that can be read, such as "
                "2023-03-01: mend the column that --date-column names, or leave that option out."
            )
        spans = [(day.first.toordinal() + day.last.toordinal()) / 2 for day in found if day is not None]
        made.append(sum(spans) / len(spans))
    return np.array(made)


def _finite(figures: dict[str, float]) -> dict[str, float | None]:
    """Without the infinite deviations of features that do not vary."""
    return {name: value if np.isfinite(value) else None for name, value in figures.items()}


def enough_check(scored: Scored, together: Gathered) -> Check:
    """Whether every collection has enough documents that count."""
    counted = scored.counted()
    few = [name for name, count in zip(together.names, counted, strict=True) if count < FEWEST_DOCUMENTS]
    title = "Every collection has enough documents with a score"
    figures = {"fewest": int(counted.min()), "most": int(counted.max())}
    if few:
        words = f"Fewer than {FEWEST_DOCUMENTS} documents could be scored of {listed(few)}."
        cure = "Give longer documents, or leave such collections out before looking at a result."
        return Check("documents", title, "failed", words, cure, figures)
    words = f"Each collection has {counted.min()} to {counted.max()} documents with a score."
    return Check("documents", title, "passed", words, figures=figures)


# Sentences

_HYPOTHESIS = (
    "The collections are exchangeable: nothing, training on it included, sets the suspect collection apart from the "
    "controls."
)
ASSUMPTION = (
    "The p-value is exact if the collections are exchangeable, that is, if before anyone asked the model each of them "
    "could as well have been the suspect one: the same site, kind of text, length and period, chosen without looking "
    "at the model. The check of the texts can show that this fails; it cannot show that it holds."
)
_COUNTED: dict[Value, str] = {
    "alone": "how well the model predicts the document",
    "residual": "how well the model predicts the document, less what other models and the text itself let one expect",
    "generated": "how much better the model predicts the true text than what a small model wrote in its place",
}


def unit(score: str, value: Value, references: bool) -> str:
    """The unit of the effect."""
    what = "nats a token" if score == "loss" else f"of {score}"
    if value == "generated":
        what += ", true less generated text"
    return f"{what}, beyond the prediction" if references else what


@dataclass(frozen=True, slots=True)
class _Story:
    """The sentences of the first page: the model, the suspect collection, the number of controls and of documents
    each, what a document counts with, and whether reference models take part."""

    model: str
    name: str
    controls: int
    documents: int
    value: Value
    references: bool

    @property
    def counted(self) -> str:
        """What a document counts with, in words."""
        words = _COUNTED[self.value]
        if self.value == "generated" and self.references:
            words += ", less what other models let one expect"
        return words

    @property
    def statistic(self) -> str:
        """The statistic of the test."""
        return (
            "Rank of the collection's mean value among all, each less that of the others, over its standard deviation; "
            f"the value of a document is {self.counted}."
        )

    def compared(self, found: Ranked) -> tuple[str, ...]:
        """What was compared, and what was seen."""
        place = found.above + 1
        rank = f"the highest of all {self.controls + 1}"
        if place > 1:
            rank = f"number {place} from the top, of {self.controls + 1}"
        return (
            f"{self.name} was compared with {self.controls} other collections of the same kind, with {self.documents} "
            f"documents of each. All went through the same steps. For every document the test takes {self.counted}, "
            "and for every collection the mean of that, in standard deviations above the others.",
            "A model knows texts better that it has read in training. If it was not trained on this collection, or was "
            "trained on it no more than on the others, each of the collections has the same chance of being the "
            f"highest. {self.name} is {rank}.",
        )

    def trust(self, found: Ranked) -> tuple[str, ...]:
        """How far the answer goes, and what was seen beside it."""
        made = [
            "What all of these collections share, such as their kind and language, the errors of other models, or that "
            "the model likes such texts, is the same on both sides and falls out. If the model was trained on some of "
            "the control collections too, that hides training; it does not make false findings more frequent."
        ]
        made.append(
            "Every mean counts by how far it lies above the others in standard deviations of such a mean: a collection "
            "of few documents, or of ones that differ much, is not on top for that reason alone."
        )
        return tuple(made)


# The test


@dataclass(frozen=True, slots=True)
class Company:
    """What stands beside the target: reference models of other families, a generator, the column with the date of each
    text (`Text.meta`), "" without, and what the one who asks says, for the report (`requested_by`, `placebo`)."""

    references: tuple[Backend, ...] = ()
    generator: Backend | None = None
    date_column: str = ""
    statements: Mapping[str, str] = field(default_factory=dict)


def collections(
    suspect: Corpus,
    controls: Sequence[Corpus],
    models: Models | Backend,
    settings: CollectionSettings | None = None,
    *,
    company: Company | None = None,
    watch: Watch | None = None,
) -> Verdict:
    """Whether the target knows `suspect` better than each of `controls`, collections of the same kind, by rank.

    p = (1 + controls that are at least as high as the suspect collection) / (1 + controls), exact if the collections
    are exchangeable where the model was trained on none of them or on any of them alike. Controls that it was trained
    on cost power and no validity. `models.placebos` are models that cannot have seen the texts: without one nobody is
    accused. TextsError for fewer controls than the level takes, for a collection with fewer than 5 documents of its
    own, and for texts without a score; ExpressionError, ModelError for a value that lacks its models.
    """
    settings, company = settings or CollectionSettings(), company or Company()
    models = models if isinstance(models, Models) else Models(models)
    value = settings.chosen(len(company.references), generator=company.generator is not None)
    score = _score(settings, models, company)
    models = replace(models, reference=None)
    check_references(models, company.references)
    together = gathered((suspect, *controls), settings.level, date_column=company.date_column)
    features = blind_features(together)  # a date that cannot be read is found before anything is generated
    timed = watched(watch)
    test = _Collections(
        corpus=suspect,
        models=models,
        settings=settings,
        watch=timed,
        score=score,
        controls=tuple(controls),
        gathered=together,
        features=features,
        company=company,
        value=value,
        reader=Reader(models, score, timed, settings.cache),
    )
    return verdict(test, statements=company.statements, notes=(*together.notes, *test.material.notes))


def _score(settings: CollectionSettings, models: Models, company: Company) -> str:
    """The score that texts are read with, checked against all models that will be asked."""
    if "reference" in ScorePlan.parse(settings.score or "loss").uses:
        raise ExpressionError(
            f"--score {settings.score} compares with one model, and here --value residual takes off what reference "
            "models predict: leave --score out, or name one of the target alone."
        )
    return score_of_all(settings.score, models, company.references)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Collections(Test[Doubles]):
    """The test: the documents, what stands for them, and the models beside the target."""

    settings: CollectionSettings
    controls: tuple[Corpus, ...]
    gathered: Gathered
    features: Mapping[str, Doubles]
    company: Company
    value: Value
    reader: Reader
    _known: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    name = "collections"

    @property
    def matters(self) -> Mapping[str, Any]:
        return {
            "score": self.score,
            "value": self.value,
            "method": self.settings.tuning if self.value == "generated" else "",
            "references": sorted(one.fingerprint for one in self.company.references),
            "controls": sorted(
                text_key(one.whole).hex() for one in self.gathered.documents if one.collection
            ),
        }

    @cached_property
    def material(self) -> Material:
        """The pieces that stand for the documents."""
        if self.value == "generated" and self.company.generator is not None:
            seed = self.seed % (LARGEST + 1)
            return beside_generated(
                self.gathered, self.company.generator, self.settings, self.watch, seed=seed
            )
        return _as_they_are(self.gathered)

    @cached_property
    def predictors(self) -> Doubles | None:
        """What predicts the score of a document without the target, [documents, k]; None without reference models."""
        if not self.company.references:
            return None
        others = [self._scores(one, f"reading with {one.name}") for one in self.company.references]
        return np.column_stack([*others, self.material.blind()])

    def read(self, model: Backend, stage: str) -> Doubles:
        """The score of every document, [documents]; a second model is asked once."""
        if id(model) in self._known:
            known: Doubles = self._known[id(model)][1]
            return known
        found = self._scores(model, stage)
        counted = self.scored(found).counted()
        empty = [name for name, count in zip(self.gathered.names, counted, strict=True) if not count]
        if empty:
            raise TextsError(
                f"no text of {listed(empty)} could be scored: give longer texts, or leave it out."
            )
        if model in self.models.placebos:
            self._known[id(model)] = model, found
        return found

    def _scores(self, model: Backend, stage: str) -> Doubles:
        return self.material.by_document(
            lambda texts: self.reader.read(texts, under=model, stage=stage).values
        )

    def scored(self, values: Doubles) -> Scored:
        """The documents with these scores, beside what predicts them."""
        return Scored(values, self.predictors, self.gathered.codes, len(self.gathered.names))

    def ranked(self, values: Doubles) -> Ranked:
        """The collections by these scores; computed once."""
        if id(values) not in self._known:
            one = self.scored(values)
            self._known[id(values)] = values, ranked(one.values(), one.codes, one.units)
        found: Ranked = self._known[id(values)][1]
        return found

    def tested(self, values: Doubles) -> Tested:
        found = self.ranked(values)
        own, others = float(found.studentised[0]), found.studentised[1:]
        away = found.means[1:].std(ddof=1) if len(others) > 1 else 0.0
        effect = prediction(float(found.means[0]), found.means[1:])
        return Tested(
            p=found.p,
            units=len(found.means),
            null=null_histogram(others, own, critical(others, self.settings.level), STATISTIC),
            effect=effect,
            standardised=effect.value / float(away) if away > 0 else None,
        )

    def beyond(self, own: Doubles, other: Doubles) -> Beyond:
        """The rank of the collection in what the target shows beyond a multiple of what the second model shows."""
        first, second = self.ranked(own).studentised, self.ranked(other).studentised
        return beyond_by_rank(first, second, own, other)

    def power(self, values: Doubles) -> Power:
        """The power, were half of the suspect documents trained on: how far they rise beyond the controls' mean
        rise."""
        mine = self.gathered.codes == 0
        before = self.scored(values).values()

        def again(copy: Backend) -> Doubles:
            after = self.scored(self.read(copy, "reading with the planted copy")).values()
            drift = float(np.nanmean((after - before)[~mine]))
            return np.asarray(after[mine] - drift)

        texts = [one.whole for one in self.gathered.documents if one.collection == 0]
        shift = planted_shift(
            self.models.target, texts, before[mine], again, self.settings, self.watch, seed=self.seed
        )
        found = self.ranked(values)
        others, level = found.studentised[1:], self.settings.level
        return rank_power(
            others,
            shift,
            self.settings,
            found=lambda value: rank_p(value, others) <= level,
            error=float(found.errors[0]),
        )

    @property
    def story(self) -> _Story:
        """The sentences."""
        model, together = called(self.models.target.name), self.gathered
        references = bool(self.company.references)
        return _Story(
            model, together.names[0], len(together.names) - 1, together.number, self.value, references
        )

    def words(self, values: Doubles) -> Words:
        found, name, model = self.ranked(values), self.gathered.names[0], called(self.models.target.name)
        return Words(
            unit="collection",
            of=f"the texts of {name}",
            question=f"Was the collection “{name}” used to train {model}?",
            compared=self.story.compared(found),
            hypothesis=_HYPOTHESIS,
            assumption=ASSUMPTION,
            statistic=self.story.statistic,
            effect_unit=unit(self.score, self.value, bool(self.company.references)),
            trust=self.story.trust(found),
            exact=False,  # once the collections are exchangeable, which no lot has made sure of
            preferred=f"the texts of {name}",
            read="document",
        )

    def checks(self, values: Doubles) -> tuple[Check, ...]:
        columns = dict(self.features)
        for number, one in enumerate(self.models.placebos):
            read = self.read(one, f"reading with {one.name}")
            columns[SPREAD + (f" ({number + 1})" if number else "")] = spreads(
                self.scored(read).values(), self.gathered.codes, len(self.gathered.names)
            )
        return (alike_check(columns, self.settings.level), enough_check(self.scored(values), self.gathered))

    def shown(self, values: Doubles) -> Shown:
        found, together, scored = self.ranked(values), self.gathered, self.scored(values)
        lost = np.flatnonzero(~scored.usable).tolist()
        unscored = tuple(
            Skipped(f"{together.names[one.collection]}: {one.name}", "no text of it has a score", 0)
            for one in (together.documents[place] for place in lost)
        )
        hashes = [str(record_corpus(one)["sha256"]) for one in self.controls]
        generator = self.company.generator
        own = [one for one in together.documents if one.collection == 0]
        return Shown(
            figures={
                "value": self.value,
                "controls": len(found.means) - 1,
                "documents of each collection": together.number,
                "controls at least as high": found.above,
                "mean value": float(found.means[0]),
                "mean of the controls": float(found.means[1:].mean()),
                "highest control": float(found.means[1:].max()),
            },
            tables=(_collections_table(together, found, self.features), self._documents(values, scored)),
            skipped=(*together.skipped, *unscored),
            situation=Situation(
                documents=len(own),
                collections=len(together.names) - 1,
                dated=sum(bool(one.dates) for one in own),
            ),
            recorded={
                "control collections": dict(zip(together.names[1:], hashes, strict=True)),
                "references": {one.name: dict(one.facts) for one in self.company.references},
                "generator": dict(generator.facts) if generator is not None else None,
            },
        )

    def _documents(self, values: Doubles, scored: Scored) -> Table:
        """One row a document: collection, name, score, the predictors where there are any, value."""
        names = [f"score of {one.name}" for one in self.company.references]
        if len(set(names)) < len(names):
            names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
        predictors = (
            {}
            if scored.predictors is None
            else dict(zip((*names, *BLIND), scored.predictors.T.copy(), strict=True))
        )
        together = self.gathered
        return Table(
            "documents",
            {
                "collection": tuple(together.names[one.collection] for one in together.documents),
                "document": tuple(one.name for one in together.documents),
                "score": values,
                **predictors,
                "value": scored.values(),
            },
        )


STATISTIC = "mean value of the collection less that of the others, in standard deviations of such a mean"


def _collections_table(together: Gathered, found: Ranked, features: Mapping[str, Doubles]) -> Table:
    """One row a collection: name, role, documents, mean value, what is ranked, text features."""
    return Table(
        "collections",
        {
            "collection": together.names,
            "role": ("suspect", *["control"] * (len(found.means) - 1)),
            "documents": found.counted.astype(np.float64),
            "value": found.means,
            "standard deviations": found.studentised,
            **features,
        },
    )
