"""From expressions to scores that can be called: recipes are fitted on token counts and on labelled texts.

A recipe that is fitted on labelled texts is also fitted on the same texts with their labels shuffled,
several times: the control that shows what such a detector reaches without knowing who is a member.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pretrace.errors import ModelError, TableError, TextsError
from pretrace.rewrites import Neighbors, rewrites
from pretrace.scores import parse
from pretrace.scoring.evidence import Asker, Progress, passes
from pretrace.types import (
    Backend,
    Corpus,
    Evidence,
    Fitted,
    Needs,
    Proposer,
    Quantity,
    Recipe,
    Reference,
    Score,
    TokenTable,
    Tuned,
)


@dataclass(frozen=True, slots=True)
class Models:
    """What the scores may ask.

    `target` is the model in question; `reference` a smaller model that `ref` compares with; `counts` token
    counts for dc_pdd; `tuned` the target after FSD's fine-tuning; `proposer` makes neighbours; `labelled`
    are the reference texts, members and non-members, that na_pdd and probe are fitted on. `placebo` is all
    of this again around a model that never saw the members: every score is computed with it as well. An audit
    may hold the target against further such models, `placebos`.
    """

    target: Backend
    reference: Backend | None = None
    counts: TokenTable | None = None
    tuned: Tuned | None = None
    proposer: Proposer | None = None
    labelled: Corpus | None = None
    placebo: Models | None = None
    placebos: tuple[Backend, ...] = ()

    def named(self) -> dict[str, Backend]:
        """The models by the names views use."""
        found = {"target": self.target}
        if self.reference:
            found["reference"] = self.reference
        if self.tuned:
            found["tuned"] = self.tuned.backend
        return found


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores ready to be called, by expression. `shuffled` are the same recipes fitted on shuffled labels;
    `facts` is what fitted scores have to tell of themselves."""

    ready: Mapping[str, Score]
    shuffled: Mapping[str, tuple[Score, ...]]
    facts: Mapping[str, Any]

    @property
    def needs(self) -> Needs:
        """All that will be asked of a text, its own log-probabilities always among it."""
        made = [*self.ready.values(), *(score for some in self.shuffled.values() for score in some)]
        return united(made)


def united(scores: Sequence[Score | Recipe]) -> Needs:
    """The needs of several scores, and the plain log-probabilities that every run wants."""
    needs = Needs(Quantity.LOGP)  # the text's own length and heat map, whatever the scores
    for score in scores:
        needs = needs | score.needs
    return needs


def check_scores(
    expressions: str | Sequence[str],
    *,
    counts: bool = True,
    models: Sequence[str] = (),
    labelled: bool = False,
) -> int:
    """The number of passes a text will take; raises a PretraceError for what would be missing.

    For use before any model is opened: `counts` and `labelled` say whether token counts and labelled
    reference texts will be given, `models` which of "reference", "tuned" and "neighbors" will be there.
    """
    parsed = parse(expressions)
    for name, score in parsed.items():
        if not isinstance(score, Recipe):
            continue
        if score.reference and not labelled:
            raise TextsError(_no_labels(name))
        if not score.reference and not counts:
            score.fit(Reference())  # which says what it misses
    needs = united(list(parsed.values()))
    _check_models(needs, {"target", *models}, proposer="neighbors" in models)
    return passes(needs)


def uses(expressions: str | Sequence[str]) -> frozenset[str]:
    """What the scores use besides the target: any of "reference", "tuned", "neighbors" and "labelled"."""
    parsed = list(parse(expressions).values())
    views = united(parsed).views
    used = {view.model for view in views} - {"target"}
    if any(isinstance(rewrites.make(view.rewrite), Neighbors) for view in views):
        used.add("neighbors")
    if _of_reference(parsed):
        used.add("labelled")
    return frozenset(used)


def prepare(
    expressions: str | Sequence[str],
    models: Models,
    *,
    seed: int = 0,
    shuffles: int = 0,
    cache: bool = True,
    progress: Progress | None = None,
) -> Scores:
    """The scores by their expressions, recipes fitted; `check` comes before any model is asked."""
    check(expressions, models)
    parsed = parse(expressions)
    recipes = {name: score for name, score in parsed.items() if isinstance(score, Recipe)}
    wanted = _of_reference(list(parsed.values()))
    evidence: tuple[Evidence, ...] = ()
    if wanted and models.labelled is not None:
        evidence = _ask(models.labelled, wanted, models, cache=cache, progress=progress)
    reference = Reference(models.counts, models.target.vocabulary, evidence, seed)
    ready = {
        name: score.fit(reference) if isinstance(score, Recipe) else score for name, score in parsed.items()
    }
    shuffled = {
        name: tuple(recipe.fit(_shuffled(reference, [seed, repeat])) for repeat in range(shuffles))
        for name, recipe in recipes.items()
        if recipe.reference and shuffles
    }
    facts = {name: dict(score.facts) for name, score in ready.items() if isinstance(score, Fitted)}
    return Scores(ready, shuffled, facts)


def check(expressions: str | Sequence[str], models: Models) -> None:
    """Raise what asking these models for these scores would run into, without asking any of them.

    ExpressionError for a wrong expression, ModelError, TableError or TextsError for what is missing.
    """
    parsed = parse(expressions)
    needs = united(list(parsed.values()))
    _check_models(needs, set(models.named()), proposer=models.proposer is not None)
    _check_counts(models)
    for name, score in parsed.items():
        if isinstance(score, Recipe) and score.reference and models.labelled is None:
            raise TextsError(_no_labels(name))
    _check_offers(needs | _of_reference(list(parsed.values())), models)


def _of_reference(scores: Sequence[Score | Recipe]) -> Needs:
    """All that fitting wants of each labelled reference text."""
    wanted = Needs()
    for score in scores:
        if isinstance(score, Recipe):
            wanted = wanted | score.reference
    return wanted


def _check_offers(needs: Needs, models: Models) -> None:
    """ModelError where a model cannot give what is wanted of it."""
    named = models.named()
    for view, quantity in needs.views.items():
        missing = quantity & ~named[view.model].offers
        if missing:
            raise ModelError(
                f"{named[view.model].name} cannot give {missing.name}, which one of the scores needs; "
                f"{_CURES.get(missing, 'use --model with local weights.')}"
            )


_CURES = {
    Quantity.NEURONS: "na_pdd works where the activation function of the feed-forward layers can be found.",
}


def _ask(
    corpus: Corpus, needs: Needs, models: Models, *, cache: bool, progress: Progress | None
) -> tuple[Evidence, ...]:
    """What the models say of the reference texts, of those that give them something to predict."""
    asker = Asker(models.named(), needs, proposer=models.proposer, cache=cache, progress=progress)
    asker.progress.begin(len(corpus) * passes(needs))
    with asker:
        asked = asker.ask(corpus.texts)
    return tuple(one for one in asked if all(any(map(len, traces)) for traces in one.views.values()))


def _shuffled(reference: Reference, seed: Sequence[int]) -> Reference:
    """The same evidence with labels dealt out anew, by document where each document has one label."""
    texts = [one.text for one in reference.evidence]
    units = {text.document: text.member for text in texts}
    whole = all(units[text.document] == text.member for text in texts)
    names = sorted(units) if whole else [str(i) for i in range(len(texts))]
    labels = [units[name] for name in names] if whole else [text.member for text in texts]
    order = np.random.default_rng(list(seed)).permutation(len(names))
    dealt = dict(zip(names, (labels[i] for i in order), strict=True))
    evidence = tuple(
        replace(one, text=replace(one.text, member=dealt[one.text.document if whole else str(i)]))
        for i, one in enumerate(reference.evidence)
    )
    return replace(reference, evidence=evidence)


def _check_models(needs: Needs, given: set[str], *, proposer: bool) -> None:
    for view in needs.views:
        if isinstance(rewrites.make(view.rewrite), Neighbors) and not proposer:
            raise ModelError(
                "neighbor needs a model that proposes other words: --neighbors causal takes the target itself, "
                "--neighbors masked:HUB_ID a masked language model."
            )
        if view.model not in given:
            raise ModelError(_MISSING[view.model])


_MISSING = {
    "reference": "ref compares the target with a smaller model of the same kind: name one with --reference-model.",
    "tuned": "fsd compares the target with itself after tuning on non-members: make an adapter with `pretrace tune` "
    "and pass --tuned ADAPTER, or let evaluate tune on a part of the texts with --tune-share 0.3.",
}


def _check_counts(models: Models) -> None:
    counts, target = models.counts, models.target
    if counts is not None and counts.tokenizer_hash != target.tokenizer_hash:
        raise TableError(
            f"the token counts were made with another tokenizer ({counts.tokenizer_hash[:12]}) than "
            f"{target.name} has ({target.tokenizer_hash[:12]}): count again with "
            f"`pretrace count CORPUS --model {target.name} --out counts.npz`."
        )


def _no_labels(name: str) -> str:
    return (
        f"{name} is fitted on texts whose labels are known, about 100 members and 100 non-members: pass a file "
        "of them with --reference, or let evaluate set a part of the texts aside with --reference-share 0.2."
    )
