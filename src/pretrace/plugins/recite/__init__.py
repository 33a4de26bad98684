"""Does a model print these texts? Windows of each text, the chance that the model prints how they go on, and controls.

Two things are compared. *Swap*: each window's own end is held against the end of a window of another document of the
same set, given the same beginning; what a model prints of any such text falls away. *Controls*: documents of the same
kind that cannot have been read. p is the larger of both p-values, so both must speak for training. Where it is at or
below the level, the frame asks a second model as well, all windows of both sets: what it prints, too, is common text.
Where p is above the level there is no accusation that it could withhold, so it is not asked. That no choice of windows
is made keeps the second model's evidence whole: it may print, of the same texts, other windows than the target does.
"""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pretrace.backends.naming import called
from pretrace.corpora.opening import record_corpus
from pretrace.errors import ModelError, TextsError
from pretrace.registry import tests
from pretrace.results.wording import say
from pretrace.scoring.evidence import Progress, Traces, trace
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models
from pretrace.settings import option
from pretrace.statistics.documents import difference_interval, mean_interval, standardised
from pretrace.statistics.permutation import PermutationTest, PlantedValues, sign_flip_test, two_sample_test
from pretrace.statistics.words import RUN, Grams, Worded, in_runs
from pretrace.types import (
    Backend,
    Check,
    Corpus,
    Doubles,
    Drawn,
    Estimate,
    Power,
    Quantity,
    Situation,
    Skipped,
    Table,
    Verdict,
    Written,
)
from pretrace.verdicts.advise import FEWEST_RECITED as FEWEST
from pretrace.verdicts.advise import PIECE
from pretrace.verdicts.audit.snippets import by_name
from pretrace.verdicts.frame import Numbers, Test, TestDetails, Tested, TestWording, trained, verdict, watched
from pretrace.verdicts.outcome import DOSE, ExcessOverSecondModel, word_check
from pretrace.verdicts.reading import TOKENS, alike, answers_check, continued, gate_check
from pretrace.verdicts.register import seed_of
from pretrace.verdicts.settings import TEST, TestSettings

DRAWN = Drawn(k=40, temperature=1.0)
"""How a sample is drawn: each token among the 40 likeliest, at temperature 1."""
_CHANCE = f"chance of a sample (k={DRAWN.k}, temperature={DRAWN.temperature:g})"
MOST_TRIES = 1e6
"""Tries from which on nothing counts as printed: 0 for a million, 6 for one, orders of magnitude between."""
_SHOWN_TRIES = (1, 100, 10_000)
"""The tries for which the report gives the share of windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReciteSettings(TestSettings):
    """How the model is asked."""

    samples: int = option(
        3, "With --access text: more continuations a window, at temperature 1.", panel=TEST, least=0, most=100
    )


_SEEK = 40
"""Characters after which a piece is cut without a white space, as in Chinese."""
MOST_WINDOWS = 32
"""Windows of a document, spread over it evenly."""
MOST_ASKED = 4
"""The same with a model that gives text alone, where each window costs requests."""
COMMON = 0.5
"""The share of an end that may stand in its own beginning or in other documents, in runs of 5 words or more."""
SETS = (("texts", False), ("controls", True))
"""What either set is called, and whether it is that of the controls."""


@dataclass(frozen=True, slots=True)
class _Window:
    """A beginning, its end, and the end (`other`) of a window of another document, from about the same place."""

    document: str
    place: int
    prefix: str
    suffix: str
    other: str = ""
    control: bool = False


@dataclass(frozen=True, slots=True)
class _Windows:
    """The windows of both sets by document; how many were `left` out by reason, and documents that are too `short`."""

    found: tuple[_Window, ...]
    left: Mapping[str, int]
    short: tuple[Skipped, ...] = ()

    def documents(self, *, control: bool) -> list[str]:
        """The documents of one set that have a window."""
        return list(dict.fromkeys(one.document for one in self.found if one.control == control))


def _pieces(text: str) -> list[str]:
    """Cut a text into pieces of about `PIECE` bytes, before a white space where there is one; a short rest goes."""
    found, start, size, over = [], 0, 0, 0
    for i, character in enumerate(text):
        if size >= PIECE and (character.isspace() or over >= _SEEK):
            found.append(text[start:i])
            start, size, over = i, 0, 0
        size += len(character.encode("utf-8", "replace"))
        over += size > PIECE
    return [*found, text[start:]] if size >= PIECE else found


def windows_of(
    corpus: Corpus, controls: Corpus | None, settings: ReciteSettings, *, text: bool = False
) -> _Windows:
    """The windows that a test asks; TextsError where fewer than five documents have one. Opens no model. Left out, and
    counted: windows that can be copied, as half or more of the end stands in the beginning, or in another document of
    either set (boilerplate, refrains, lists, copies of one text), in runs of 5 words or more; and windows without
    another document's end of the same set."""
    seed = seed_of(_Recite.name, _texts(corpus, controls), **_matters(settings, text))
    documents = _documents(corpus)
    made = _cut_windows(documents, _documents(controls), MOST_ASKED if text else MOST_WINDOWS, seed)
    have, own = len(made.documents(control=False)), len(documents)
    if have < FEWEST:
        numbers = {"have": have, "own": own, "without": own - have, "fewest": FEWEST, "size": 2 * PIECE}
        raise TextsError(say("recite.refused.few_windows", name=corpus.name, **numbers))
    return made


def _matters(settings: ReciteSettings, text: bool) -> dict[str, Any]:
    return {"score": "continuations", "samples": settings.samples} if text else {"score": _CHANCE}


def _texts(corpus: Corpus, controls: Corpus | None) -> list[str]:
    return [one.text for some in (corpus, controls) if some for one in some.texts]


def _documents(corpus: Corpus | None) -> dict[str, str]:
    documents = by_name((text.document, text.text) for text in (corpus.texts if corpus else ()))
    return {name: "\n".join(some) for name, some in documents.items()}


def _cut_windows(suspects: Mapping[str, str], controls: Mapping[str, str], most: int, seed: int) -> _Windows:
    """The windows of both sets of documents, by name, at most so many of each."""
    left, short, cut = Counter[str](), list[Skipped](), list[list[_Window]]()
    documents, own = [*suspects.items(), *controls.items()], len(suspects)
    where: dict[tuple[str, ...], int] = {}
    """For each run of 5 words the document it stands in, −1 where it stands in several."""
    for i, (_, text) in enumerate(documents):
        for gram in Worded.of(text).grams:
            where[gram] = i if where.get(gram, i) == i else -1
    for i, (name, text) in enumerate(documents):
        parts, kept = _pieces(text), list[_Window]()
        if len(parts) < 2:
            short.append(Skipped(name, f"shorter than a window, which takes {2 * PIECE} bytes", 0))
        for place, (before, after) in enumerate(itertools.pairwise(parts)):
            if why := _copied(before, after, i, where):
                left[why] += 1
            else:
                kept.append(_Window(name, place, before, after, control=i >= own))
        many = min(len(kept), most)
        cut.append([kept[i * len(kept) // many] for i in range(many)])  # spread evenly
    found = (*_swapped(cut[:own], seed), *_swapped(cut[own:], seed))
    return _Windows(found, dict(left), tuple(short))


def _copied(before: str, after: str, document: int, where: Mapping[tuple[str, ...], int]) -> str:
    """Why the end of a window can be copied from elsewhere; "" where it cannot."""
    end = Worded.of(after)
    if len(end.words) < 2 * FEWEST:
        return "with fewer than 10 words"
    if _share_covered(end, Worded.of(before).grams) >= COMMON:
        return "repeated from their beginning"
    shared = frozenset(gram for gram in end.grams if where.get(gram, document) != document)
    return "shared with another document" if _share_covered(end, shared) >= COMMON else ""


def _swapped(documents: Sequence[Sequence[_Window]], seed: int) -> Iterator[_Window]:
    """Each window with the end of another document's, from the nearest place; the other document is drawn at random."""
    having = [i for i, some in enumerate(documents) if some]
    if len(having) < 2:
        return
    order = np.random.default_rng(seed).permutation(having).tolist()
    after = {one: order[(i + 1) % len(order)] for i, one in enumerate(order)}
    for i in having:
        others = documents[after[i]]
        for one in documents[i]:
            other = min(others, key=lambda some: abs(some.place - one.place))
            yield replace(one, other=other.suffix)


@dataclass(frozen=True, slots=True, eq=False)
class _Recited:
    """What a model made of the windows, one entry each. `own` and `other` say how far it prints the window's own end
    and the other document's, NaN where it gave no answer. With log-probabilities `logp` is that of the own end in one
    sample; with text alone `written` holds the continuations, the one at temperature 0 first."""

    own: Doubles
    other: Doubles
    logp: Doubles | None = None
    written: tuple[tuple[Written, ...], ...] = ()


def _end_logp(
    model: Backend, prefixes: Sequence[str], ends: Sequence[str], *, cache: bool, progress: Progress
) -> Doubles:
    """The log-probability that one sample (`DRAWN`) after the prefix is the end, [windows], −inf where it cannot be.
    The tokens of an end are those that reach into it, by the model's own tokenizer."""
    texts = [before + end for before, end in zip(prefixes, ends, strict=True)]
    with Traces(model.fingerprint if cache else None) as store:
        progress.begin(len(texts))
        found = trace(model, texts, Quantity.LOGP, frozenset({DRAWN}), store=store, progress=progress)
    values = np.full(len(texts), np.nan)
    for i, (text, before, one) in enumerate(zip(texts, prefixes, found, strict=True)):
        ends_at = model.spans(text)[:, 1]
        inside = int(np.count_nonzero(ends_at > len(before)))
        if not one.cut and 0 < inside <= len(one):
            values[i] = float(one.states[DRAWN][-inside:].sum(dtype=np.float64))
    return values


def _how_far(logp: Doubles) -> Doubles:
    """How far ends of these log-probabilities are printed, 0 to 6: orders of magnitude of tries below a million."""
    value = np.log10(MOST_TRIES) - np.log10(np.minimum(_tries_for(logp), MOST_TRIES))
    return np.where(np.isnan(logp), np.nan, value)


def _tries_for(logp: npt.ArrayLike) -> Doubles:
    """The number of samples after which the chance that one of them was the end is a half: the smallest whole n with
    1 − (1 − p)ⁿ >= 0.5, infinite where it is never drawn or a value is missing (Hayes et al. 2024, (n,
    p)-discoverable extraction).

    >>> _tries_for(np.log([1.0, 0.5, 0.01])).tolist()
    [1.0, 1.0, 69.0]
    """
    p = np.exp(np.nan_to_num(np.asarray(logp, dtype=np.float64), nan=-np.inf, neginf=-np.inf))
    with np.errstate(divide="ignore"):
        exact = np.log(0.5) / np.log1p(-p)
    return np.asarray(np.maximum(1.0, np.ceil(exact * (1 - 1e-12))))


def recite(  # noqa: PLR0913
    corpus: Corpus,
    models: Models,
    settings: ReciteSettings | None = None,
    *,
    controls: Corpus | None = None,
    windows: _Windows | None = None,
    text: bool = False,
    statements: Mapping[str, str] | None = None,
    watch: Watch | None = None,
) -> Verdict:
    """The verdict on whether the model prints the texts: see the top of this file. Without `controls` nobody is
    accused, nor without `models.placebos`. The `windows` are cut unless given. With `text` the models are asked for
    continuations alone; else the target must have weights here. Errors as for `windows_of`, `detect` and the models."""
    settings = settings or ReciteSettings()
    if not text:
        for one in (models.target, *models.placebos):
            if Quantity.DRAWN not in one.offers:
                raise ModelError(say("recite.refused.no_ranks", name=one.name))
    windows = windows or windows_of(corpus, controls, settings, text=text)
    how: dict[str, Any] = {"watch": watched(watch), "score": _matters(settings, text)["score"]}
    sides: dict[str, Any] = {"corpus": corpus, "controls": controls, "windows": windows, "text": text}
    return verdict(_Recite(models=models, settings=settings, **sides, **how), statements=statements)


@tests.add("recite")
@dataclass(frozen=True, eq=False, kw_only=True)
class _Recite(Test[_Recited]):
    """The test of recitation."""

    settings: ReciteSettings
    windows: _Windows
    controls: Corpus | None = None
    text: bool = False

    name: ClassVar[str] = "recite"
    second_if_found: ClassVar[bool] = True
    accusing: ClassVar[tuple[str, ...]] = ("controls", "formulaic", "answers")

    @staticmethod
    def readable(corpus: Corpus, controls: Corpus | None) -> bool:
        """Whether texts and control documents are long enough for windows."""
        found = _cut_windows(_documents(corpus), _documents(controls), MOST_WINDOWS, 0)
        return all(len(found.documents(control=control)) >= FEWEST for control in (False, True))

    @staticmethod
    def windowed(corpus: Corpus) -> int:
        """Count those of the first 1,000 documents that have a window in their first 4,000 characters."""
        first = itertools.islice(_documents(corpus).items(), 1_000)
        beginnings = {name: text[:4_000] for name, text in first}
        return len(_cut_windows(beginnings, {}, 1, 0).documents(control=False))

    @property
    def matters(self) -> Mapping[str, Any]:
        return _matters(self.settings, self.text)

    @property
    def texts(self) -> Sequence[str]:
        return _texts(self.corpus, self.controls)

    def read(self, model: Backend, stage: str) -> _Recited:
        """How far each end is printed; of text alone the largest share of its words in runs of 5 over the tries."""
        found, cache = self.windows.found, self.settings.cache
        before = [one.prefix for one in found]
        if not self.text:
            sides = [one.suffix for one in found], [one.other for one in found]
            with self.watch.passes(stage) as progress:
                logp, other = (
                    _end_logp(model, before, ends, cache=cache, progress=progress) for ends in sides
                )
            return _Recited(_how_far(logp), _how_far(other), logp)
        written = continued(model, before, self.settings.samples, stage=stage, watch=self.watch, cache=cache)
        rows = []
        for one, some in zip(found, written, strict=True):
            tries = [Worded.of(answer.text).grams for answer in some if answer.text]
            ends = Worded.of(one.suffix), Worded.of(one.other)
            rows.append([max((_share_covered(end, one) for one in tries), default=np.nan) for end in ends])
        own, other = np.array(rows).T
        return _Recited(own, other, written=tuple(map(tuple, written)))

    @cached_property
    def _sides(self) -> Numbers:
        """The number of each window's document, and 1 for a control, [windows]."""
        names = [one.document for one in self.windows.found]
        codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
        control = np.array([one.control for one in self.windows.found], dtype=np.float64)
        return {"document": np.array([codes[name] for name in names], dtype=np.float64), "control": control}

    def numbers(self, values: _Recited) -> Numbers:
        return {**self._sides, "own": values.own, "other": values.other}

    @classmethod
    def tested(cls, numbers: Numbers, *, draws: int, seed: int) -> Tested:
        rest = numbers["own"] - numbers["other"]
        own, controls, made = _run_both_tests(numbers, rest, draws=draws, seed=seed)
        if not made:
            said = f"{len(own)} documents have an answer, and the test takes {FEWEST}."
            return Tested(None, len(own), reasons=(said,))
        held = controls if len(made) > 1 else None
        effect = mean_interval(own) if held is None else difference_interval(own, held)
        deciding = max(reversed(made), key=lambda one: one.p)
        return Tested(deciding.p, len(own), None, effect, standardised(own, held), deciding=deciding)

    @classmethod
    def beyond(cls, own: Numbers, other: Numbers, *, draws: int, seed: int) -> ExcessOverSecondModel:
        """Test what is left less `DOSE` times a second model's values: both are on one scale, tries or words."""
        theirs = np.clip(other["own"] - other["other"], 0.0, None)
        rest = own["own"] - own["other"] - DOSE * theirs
        tests = _run_both_tests(own, rest, draws=draws, seed=seed)[2]
        return ExcessOverSecondModel(max((one.p for one in tests), default=1.0), DOSE)

    def power(self, values: _Recited) -> Power:
        """Half of the documents are trained on; the test with the controls is simulated with what that brought."""

        def means(read: _Recited) -> tuple[Doubles, Doubles]:
            return _means_of_sets(self._sides, read.own - read.other)

        before, controls = means(values)
        own, controls = before[np.isfinite(before)], controls[np.isfinite(controls)]
        whole = _documents(self.corpus)
        texts = [whole[name] for name in self.windows.documents(control=False)]
        shift = self.planted_shift(texts, before, lambda read: means(read)[0])
        moved = shift.moved[np.isfinite(shift.moved)]
        chance = Estimate(0.0, 0.0, 0.0)
        if moved.any():
            others = controls if len(controls) >= FEWEST else None
            planted = PlantedValues.of(own, moved, others, level=self.settings.level, seed=self.seed)
            chance = planted.power(len(own))
        return Power(
            probability=chance,
            needed=None,  # more texts take more controls too, so that nothing is said of other numbers
            planted=len(moved),
            epochs=shift.how.epochs,
            effect=mean_interval(moved),
            facts=trained(shift.how, len(own)),
        )

    def checks(self, values: _Recited) -> tuple[Check, ...]:
        number = len(self.windows.documents(control=True))
        controls = word_check("recite.controls", number >= FEWEST, number=number, fewest=FEWEST)
        return (controls, self._formulaic(), *((self._answers(values),) if self.text else ()))

    def _formulaic(self) -> Check:
        """Check that scores that see no model do not find the texts easier to continue than the controls."""

        def scored(one: _Window) -> tuple[float, float, float]:
            parts = (one.prefix, one.prefix + one.suffix, one.suffix)
            before, both, alone = (len(zlib.compress(text.encode("utf-8", "replace"), 9)) for text in parts)
            words = Worded.of(one.suffix).words
            fresh = set(words) - set(Worded.of(one.prefix).words)
            repeated = (len(words) - len(fresh)) / max(1, len(words))
            return 1 - (both - before) / alone, repeated, sum(map(str.isdigit, one.suffix)) / len(one.suffix)

        if min(len(self.windows.documents(control=control)) for _, control in SETS) < FEWEST:
            return word_check("recite.formulaic", None, words="few")
        found = {}
        for name, values in zip(_BLIND, np.array([*map(scored, self.windows.found)]).T, strict=True):
            own, controls = _means_of_sets(self._sides, values)
            found[name] = two_sample_test(own, controls, permutations=_DRAWS, seed=self.seed % 2**32).p
        return gate_check("recite.formulaic", found)

    def _answers(self, values: _Recited) -> Check:
        both = zip(values.written, _refusing(self.windows.found, values.written), strict=True)
        had = np.array([any(one.text and not no for one, no in zip(*some, strict=True)) for some in both])
        sides = ((name, had[self._sides["control"] == control]) for name, control in SETS)
        return answers_check([(f"windows of the {name}", int(side.sum()), len(side)) for name, side in sides])

    def words(self, values: _Recited) -> TestWording:
        names = {"of": self.corpus.name, "model": called(self.models.target.name)}
        said = TestWording.of_kind("recite.said", window=2 * PIECE, **names)
        held = (say("recite.held"),) if self.controls is not None else ()
        unit = say("recite.words_unit") if self.text else said.effect_unit
        found = "; ".join(one for one, _ in self._printed(values))
        kind = "recite.wrote" if self.text else "recite.prints"
        told = say(kind, found=found, tries=1 + self.settings.samples)
        return replace(said, compared=(*said.compared, *held, told), effect_unit=unit)

    def _printed(self, values: _Recited) -> Iterator[tuple[str, dict[str, Any]]]:
        """What was printed of either set, in words and figures: shares of windows in so many tries, or of words."""
        refuses = [] if values.logp is not None else _refusing(self.windows.found, values.written)
        for name, control in SETS:
            places = np.flatnonzero(self._sides["control"] == control).tolist()
            if not places:
                continue
            if values.logp is not None:
                tries = _tries_for(values.logp)[places]
                shares = {n: float(np.mean(tries <= n)) for n in _SHOWN_TRIES}
                said = f"of the windows of the {name} {shares[1]:.0%} in 1 try and {shares[100]:.0%} in 100 tries"
                printed_in = f"share of windows of the {name} printed in"
                yield said, {f"{printed_in} {n:,} {'tries' if n > 1 else 'try'}": shares[n] for n in shares}
                continue
            own, answers = values.own[places], [one for i in places for one in values.written[i]]
            known = own[np.isfinite(own)]
            mean = float(known.mean()) if len(known) else None
            figures = {
                f"words of the {name} printed in runs of five or more": mean,
                f"tries for the {name}": len(answers),
                f"refused or filtered for the {name}": sum(not one.text for one in answers),
                f"look like a refusal for the {name}": sum(sum(refuses[i]) for i in places),
            }
            yield f"{mean or 0.0:.0%} of the words of the {name}", figures

    def shown(self, values: _Recited) -> TestDetails:
        rest, how = values.own - values.other, {"draws": self.settings.draws, "seed": self.seed}
        made = [one.p for one in _run_both_tests(self._sides, rest, **how)[2]]
        sizes = Counter(one.control for one in self.windows.found)
        figures: dict[str, Any] = {f"windows of the {name}": sizes[control] for name, control in SETS}
        names = ("p against the ends of other documents", "p against the controls")
        figures |= zip(names, made, strict=False)
        for _, more in self._printed(values):
            figures |= more
        left = ", ".join(f"{number:,} {why}" for why, number in sorted(self.windows.left.items()))
        held = {"heldout": record_corpus(self.controls)} if self.controls else {}
        own, unseen = (len(self.windows.documents(control=control)) for _, control in SETS)
        tries = 1 + self.settings.samples if self.text else 1
        numbers = {"tries": tries, "tokens": TOKENS, "k": DRAWN.k, "temperature": DRAWN.temperature}
        how_asked = say(f"recite.{'asked' if self.text else 'computed'}", drawn=tries - 1, **numbers)
        prompt = getattr(self.models.target, "prompt", "{beginning}")
        return TestDetails(
            figures={name: value for name, value in figures.items() if value is not None},
            tables=(self._table(values),),
            skipped=self.windows.short,
            notes=(f"Windows left out: {left}.",) if left else (),
            situation=Situation(documents=own, unseen=unseen, access="text" if self.text else "weights"),
            recorded={**held, "asked": {"how": how_asked, "prompt": prompt, "tries": tries}},
        )

    def _table(self, values: _Recited) -> Table:
        """A row a window, those of the texts that are printed furthest first."""
        own, every = np.nan_to_num(values.own, nan=-1.0), self.windows.found
        order = sorted(range(len(every)), key=lambda i: (every[i].control, -own[i], i))
        found = [every[i] for i in order]
        pairs = list(zip(found, best := self._best(values, order), strict=True))
        chances: dict[str, Doubles] = {}
        if values.logp is not None:
            both = {"log-probability": values.logp, "tries": _tries_for(values.logp)}
            chances = {name: np.where(np.isfinite(some), some, np.nan)[order] for name, some in both.items()}
        worded = [(Worded.of(w.suffix), Worded.of(t)) for w, t in pairs]
        matches = (SequenceMatcher(None, end.words, said.words, autojunk=False) for end, said in worded)
        runs = [one.find_longest_match().size if t else np.nan for one, t in zip(matches, best, strict=True)]
        edits = [_edit_distance(w.suffix, t[: len(w.suffix)]) if t else np.nan for w, t in pairs]
        columns: dict[str, Any] = {
            "id": tuple(one.document for one in found),
            "set": tuple(SETS[one.control][0] for one in found),
            "place": np.array([one.place for one in found], dtype=np.float64),
            "printed": values.own[order],
            "other printed": values.other[order],
            **chances,
            "beginning": tuple(one.prefix for one in found),
            "end": tuple(one.suffix for one in found),
            "continuation": tuple(best),
            "end in common": tuple(_common_runs(end, said.grams) for end, said in worded),
            "continuation in common": tuple(_common_runs(said, end.grams) for end, said in worded),
            "longest run": np.array(runs),
            "edit distance": np.array(edits),
        }
        return Table("windows", columns)

    def _best(self, values: _Recited, order: Sequence[int]) -> list[str]:
        """A continuation of each window in this order: the nearest try, or the likeliest for the first ones."""
        found = self.windows.found

        def nearest(i: int) -> str:
            end, texts = Worded.of(found[i].suffix), [one.text for one in values.written[i]]
            return max(texts, key=lambda text: _share_covered(end, Worded.of(text).grams), default="")

        if values.written:
            return [nearest(i) for i in order]
        some = [i for side in (False, True) for i in [j for j in order if found[j].control == side][:WRITTEN]]
        before, cache = [found[i].prefix for i in some], self.settings.cache
        stage = "writing the first windows"
        written = continued(self.models.target, before, 0, stage=stage, watch=self.watch, cache=cache)
        best = {i: one[0].text for i, one in zip(some, written, strict=True)}
        return [best.get(i, "") for i in order]


WRITTEN = 8
"""Windows of either set that are continued for the report where the model gives log-probabilities."""
_DRAWS = 999
_BLIND = (
    "how much their beginning helps to compress the end",
    "how often words of the end are repeated",
    "how many figures the end holds",
)
"""What the scores of a window measure that see no model."""


def _means_of_sets(table: Numbers, values: Doubles) -> tuple[Doubles, Doubles]:
    """Average windows by document, texts and controls, in the order of the documents; NaN without a value."""
    kept: tuple[dict[float, list[float]], dict[float, list[float]]] = {}, {}
    for document, control, value in zip(table["document"], table["control"], values, strict=True):
        kept[int(control)].setdefault(document, []).extend([value] if value == value else [])
    texts, controls = (np.array([np.mean(row) if row else np.nan for row in one.values()]) for one in kept)
    return texts, controls


def _run_both_tests(
    table: Numbers, values: Doubles, *, draws: int, seed: int
) -> tuple[Doubles, Doubles, list[PermutationTest]]:
    """One value a document of texts and controls, those without any left out, and the tests of them for which there are
    documents enough: of the texts alone, then against the controls. Both must speak for training."""
    own, controls = (side[np.isfinite(side)] for side in _means_of_sets(table, values))
    tests = [sign_flip_test(own, flips=draws, seed=seed % 2**32)] if len(own) >= FEWEST else []
    if tests and len(controls) >= FEWEST:
        tests.append(two_sample_test(own, controls, permutations=draws, seed=seed % 2**32))
    return own, controls, tests


def _refusing(windows: Sequence[_Window], written: Sequence[Sequence[Written]]) -> list[list[bool]]:
    """Which answers look like a refusal, in any language: none of the end's runs of 5 words stands in them, and they
    begin as answers to two or more other windows do, or the model ended them by itself before half as many words."""
    found = []
    for one, some, likes in zip(windows, written, alike(written), strict=True):
        end = Worded.of(one.suffix)
        row = []
        for answer, like in zip(some, likes, strict=True):
            said = Worded.of(answer.text)
            early = answer.ended and 2 * len(said.words) < len(end.words)
            row.append(bool(answer.text) and (like or early) and not _share_covered(end, said.grams))
        found.append(row)
    return found


def _share_covered(text: Worded, known: Grams) -> float:
    """The share of a text's words that lie in a run of `RUN` words or more that is known; 0 for no words.

    >>> text = Worded.of("One two three four five. Six")
    >>> round(_share_covered(text, Worded.of("and one, two, three: four five!").grams), 3)
    0.833
    """
    found = in_runs(text.words, known, RUN)
    return float(found.mean()) if len(found) else 0.0


def _common_runs(worded: Worded, known: Grams) -> str:
    """Where in the text the runs of `RUN` words or more stand that are known, as characters "start-end" with blanks
    between them."""
    runs, at = list[str](), 0
    for inside, some in itertools.groupby(in_runs(worded.words, known, RUN)):
        spans = worded.spans[at : (at := at + len(list(some)))]
        runs += [f"{spans[0][0]}-{spans[-1][1]}"] if inside else []
    return " ".join(runs)


def _edit_distance(one: str, other: str) -> int:
    """The fewest characters to put in, take out or replace that turn one text into the other (Levenshtein 1966).

    >>> _edit_distance("kitten", "sitting")
    3
    """
    second = np.array([ord(c) for c in other], dtype=np.int64)
    places = np.arange(len(second) + 1)
    row = places.copy()
    for i, character in enumerate(one, 1):
        least = np.minimum(row[1:] + 1, row[:-1] + (second != ord(character)))
        # one more put in for every step to the right
        row = np.minimum.accumulate(np.concatenate([[i], least]) - places) + places
    return int(row[-1])
