"""Were the members forgotten? An evaluation read in both directions, beside a model that was retrained without them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from pretrace.baselines.blind import gap
from pretrace.corpora.near_copies import Sketches, link
from pretrace.errors import TextsError
from pretrace.registry import require
from pretrace.results.wording import say
from pretrace.scoring.findings import listed, others, shown, survival
from pretrace.scoring.settings import RETRAINED
from pretrace.statistics.controls import PLACEBO
from pretrace.statistics.documents import Groups, Numbers
from pretrace.types import Bools, Corpus, Evaluation, Text, Unlearned

_JUDGED = 1000
"""Texts of each label that classifiers of texts see."""


def copies_linked(
    texts: Iterable[Text], ids: Sequence[str], groups: Groups, members: Bools
) -> tuple[Numbers, int]:
    """The document of each row, as a number, where texts without a group that say mostly the same as others of their
    label count with these as one, and how many documents fewer that makes. `ids`, `groups` and `members` are of the
    rows, [rows]; `texts` are at least theirs.

    Rows of near copies move together in any model. Counted as many, they make a model that forgot the members, and one
    that never saw them, look as if it had not.
    """
    codes = np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.int64)
    place, sketches, order = {name: i for i, name in enumerate(ids)}, Sketches(), []
    for text in texts:
        row = place.get(text.id)
        if row is not None:
            sketches.add(text.text, alone=not text.group)
            order.append(row)
    rows = np.array(order, dtype=np.int64)
    known, documents = members[rows], int(codes.max()) + 1
    linked = link(sketches, codes[rows], np.arange(documents), (known, ~known))
    return linked[codes], documents - len(np.unique(linked))


def unlike(
    texts: Iterable[Text], ids: Sequence[str], groups: Groups, members: Bools, *, seed: int = 0
) -> str:
    """Why members and non-members are not known to be alike as texts; "" where nothing that sees texts alone (words,
    form, length) tells them apart, of at most 1,000 texts of each label, drawn at random. Arguments as in
    `copies_linked`, `groups` as it gives them.

    Two models that never saw the members, trained alike but for chance, differ in how well they know one kind of text
    and another, by the same in all documents of a kind. No interval over documents holds that, so it would be read as
    memory of the members, or as its lack.
    """
    rng = np.random.default_rng(seed)
    sides = [np.flatnonzero(members == label) for label in (True, False)]
    drawn = [rng.permutation(rows)[:_JUDGED].tolist() for rows in sides]
    wanted = {ids[row]: (side, str(groups[row])) for side, rows in enumerate(drawn) for row in rows}
    found: tuple[list[Text], list[Text]] = ([], [])
    for text in texts:
        if text.id in wanted:
            side, group = wanted[text.id]
            found[side].append(Text(text.id, text.text, group=group))
    try:
        gaps = gap(
            Corpus("members", tuple(found[0])),
            Corpus("non-members", tuple(found[1])),
            "words,form",
            seed=seed,
        )
    except TextsError as error:
        return say("unlearned.unknown", why=str(error).rstrip("."))
    length, widest = gaps[-1], max(gaps, key=lambda one: one.auc.low)
    if length.auc.high < 0.5:
        widest = length
    elif widest.auc.low <= 0.5:
        return ""
    sees = say(f"unlearned.sees_{'length' if widest is length else 'texts'}", classifier=widest.classifier)
    return say("unlearned.apart", sees=sees, auc="{} [{}, {}]".format(*shown(widest.auc, edges=(0.5,))))


def reread(
    evaluation: Evaluation, margin: float, retrained: str, copies: int, withheld: str = ""
) -> Evaluation:
    """The evaluation of a model that was to forget the members, with the reading of each score, whose placebo is the
    model `retrained` without them. `margin` is the difference of AUC within which the two count as the same; `copies`
    are the documents that count with near copies of them as one (`copies_linked`); `withheld` says why nothing can be
    read (`unlike`).

    Sentences on scores that point the wrong way, or survive a placebo, give way to what is said of forgetting.
    ExpressionError for a margin out of range, TextsError without a placebo.
    """
    require(0 < margin <= 0.5, f"the margin of --unlearned lies above 0 and is at most 0.5, found {margin}.")
    found = tuple(
        Unlearned(row.name, margin, row.lead, withheld)
        for row in evaluation.rows
        if row.kind == PLACEBO and row.lead is not None
    )
    if not found:
        raise TextsError(RETRAINED)
    scores = [row for row in evaluation.rows if row.kind == "score"]
    gone = {*others(scores), *survival(evaluation.rows, retrained)}
    kept = (sentence for sentence in evaluation.findings if sentence not in gone)
    told = sentences(found, retrained)
    if copies:
        told.append(say("unlearned.copies", copies=copies))
    return replace(evaluation, unlearned=found, findings=(*told, *kept))


def sentences(found: Sequence[Unlearned], retrained: str) -> list[str]:
    """Whether the members were forgotten: by the score that was named first, and what the others say beside it."""
    first, *more = found
    value, low, high = shown(first.difference, edges=(0.0,))
    numbers = {
        "score": first.score,
        "than": say("unlearned.than", retrained=retrained or "the placebo"),
        "by": say("unlearned.by", value=value, low=low, high=high),
        "margin": say("unlearned.margin", margin=first.margin),
    }
    if first.withheld:
        return [say("unlearned.withheld", why=first.withheld, **numbers)]
    told = [say(f"unlearned.{first.reading}", **numbers)]
    if more:
        readings = listed([f"{one.score}: {one.reading}" for one in more])
        told.append(say("unlearned.beside", readings=readings))
    return told
