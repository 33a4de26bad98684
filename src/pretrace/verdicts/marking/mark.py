"""Marking: variants of every text, a draw by lot, and what is published and what stays secret."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from pretrace.corpora import Columns
from pretrace.corpora.columns import USUAL
from pretrace.errors import ExpressionError, ModelError, OutputError, TextsError
from pretrace.registry import require
from pretrace.results.atomic import atomic_bytes, check_writable, new_folder
from pretrace.results.output_checks import NEW
from pretrace.results.rounding import times
from pretrace.scoring.outlook import Watch
from pretrace.scoring.plan import Models
from pretrace.settings import cache_option, check_ranges, option, seed_option, shared
from pretrace.types import Corpus, Instructed, Power, Proposer
from pretrace.verdicts.frame import watched
from pretrace.verdicts.marking import variants
from pretrace.verdicts.marking.sealed import (
    MarkedText,
    Seal,
    Source,
    Unmarked,
    check_seal_place,
    sealed_bytes,
    write_seal,
)
from pretrace.verdicts.marking.variants import MOST_CHOICES
from pretrace.verdicts.marks import CheckSettings, Marks
from pretrace.verdicts.outcome import ENOUGH
from pretrace.verdicts.planting import paired_power, planted_shift
from pretrace.verdicts.settings import TestSettings
from pretrace.verdicts.wording import say

VARIANTS = "Variants (one kind)"
"""The group of options on where variants come from."""
Lot = Callable[[int], int]
"""Draws a number from 0 to n - 1, all equally likely, for a given n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkSettings:
    """Where the variants of a text come from; exactly one kind. ExpressionError for none or two, and for a value out of
    its range. `seed` is that of the models that make variants: the draw of what is published has none."""

    variant_column: tuple[str, ...] = option(
        (),
        "A column of TEXTS with another version of each text; may be given more than once.",
        panel=VARIANTS,
        essential=True,
    )
    variant_texts: tuple[str, ...] = option(
        (),
        "A file with another version of each text under the same id; may be given more than once.",
        panel=VARIANTS,
        path="in",
        essential=True,
    )
    rewriter: str | None = option(
        None,
        "A model that follows instructions and paraphrases each text: any --model value, or server:URL#MODEL.",
        panel=VARIANTS,
        path="in",
        essential=True,
    )
    words: str | None = option(
        None,
        "A model that proposes other words here and there: causal:MODEL, masked:HUB_ID, or causal for --model.",
        panel=VARIANTS,
        path="in",
        essential=True,
    )
    canary: bool = option(
        False,
        "Add one sentence to each text, whose last word is drawn out of --choices. Works for servers that give text "
        "only, too.",
        panel=VARIANTS,
        essential=True,
    )
    choices: int = option(8, "Words to draw from, for --canary.", panel=VARIANTS, least=2, most=MOST_CHOICES)
    variants: int = option(
        1, "Variants beside the original, for --rewriter and --words.", panel=VARIANTS, least=1, most=50
    )
    share: float = option(0.1, "Share of the tokens that --words may change.", panel=VARIANTS)
    original: bool = option(
        True,
        "Never publish the original of --rewriter or --words: all variants are then made by one model. Whether that "
        "shows training better was not measured.",
        name="no-original",
        panel=VARIANTS,
    )
    seed: int = seed_option()
    cache: bool = cache_option()

    def __post_init__(self) -> None:
        check_ranges(self)
        require(0 < self.share <= 1, f"--share lies between 0 and 1, found {self.share}.")
        given = self.given
        if len(given) != 1:
            found = "none" if not given else " and ".join(given)
            raise ExpressionError(
                "variants come from one kind of source: --variant-column, --variant-texts, --rewriter, --words or "
                f"--canary; found {found}."
            )
        if not self.original and given[0] not in ("--rewriter", "--words"):
            raise ExpressionError("--no-original is for --rewriter and --words: leave it away.")
        if not self.original and self.variants < 2:
            raise ExpressionError("--no-original needs --variants 2 or more, to draw from.")

    @property
    def given(self) -> list[str]:
        """The options that name a source of variants, of those that were given."""
        return [name for name in _SOURCES if getattr(self, name[2:].replace("-", "_"))]


PUBLISHED, COMMITMENT = "published.jsonl", "commitment.txt"
_SOURCES: dict[str, Source] = {
    "--variant-column": "columns",
    "--variant-texts": "texts",
    "--rewriter": "rewriter",
    "--words": "words",
    "--canary": "canary",
}


def own_candidates(
    corpus: Corpus, settings: MarkSettings, columns: Columns = USUAL, *, lot: Lot = secrets.randbelow
) -> variants.VariantCandidates | None:
    """The variants that need no model, None where a model is to make them; TextsError for one that cannot be used."""
    variants.checked_texts(corpus)
    if settings.variant_column:
        return variants.from_columns(corpus, settings.variant_column)
    if settings.variant_texts:
        return variants.from_texts(corpus, settings.variant_texts, columns)
    if settings.canary:
        return variants.canaries(corpus, settings.choices, lot)
    return None


def model_candidates(
    corpus: Corpus,
    settings: MarkSettings,
    *,
    rewriter: Instructed | None = None,
    proposer: Proposer | None = None,
) -> variants.VariantCandidates:
    """The variants that a model makes: a rewriter's paraphrases, or the words of a proposer."""
    variants.checked_texts(corpus)
    number, seed = settings.variants, settings.seed
    if rewriter is not None:
        made = variants.from_rewriter(corpus, rewriter, number=number, seed=seed)
    elif proposer is not None:
        made = variants.from_words(corpus, proposer, number=number, share=settings.share, seed=seed)
    else:
        raise ModelError("variants are made by a rewriter or by a proposer of words: give one.")
    return made if settings.original else variants.without_original(made)


def mark(
    corpus: Corpus,
    candidates: variants.VariantCandidates,
    settings: MarkSettings,
    *,
    lot: Lot = secrets.randbelow,
) -> Seal:
    """The seal of texts whose variants are known: for each one variant is drawn by `lot`, all equally likely.

    Another `lot` than the default is for tests and simulations: what is to be an evidence must not be predictable.
    TextsError where no text has variants.
    """
    documents = tuple(
        MarkedText(text.id, found, lot(len(found)), text.group, candidates.triggers.get(text.id))
        for text in corpus.texts
        if text.id in candidates.variants
        for found in [variants.checked_variants(text.id, candidates.variants[text.id])]
    )
    if not documents:
        raise TextsError(
            f"no text of {corpus.name} has a variant that could be published: use another source."
        )
    unmarked = tuple(
        Unmarked(text.id, text.text, candidates.reasons.get(text.id, "no variants"), text.group)
        for text in corpus.texts
        if text.id not in candidates.variants
    )
    source = _SOURCES[settings.given[0]]
    left_out = (
        f"{len(unmarked):,} of {len(corpus):,} texts have no variants: they are published as they are and take no part "
        "in the test."
    )
    return Seal(
        name=corpus.name,
        source=source,
        nonce=secrets.token_hex(32),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        documents=documents,
        unmarked=unmarked,
        order=tuple(text.id for text in corpus.texts),
        # A canary's variants differ in one word, so that the length of the rest would only dilute it.
        totals=source == "canary",
        notes=(*candidates.notes, *([left_out] if unmarked else [])),
        about=candidates.about,
    )


def check_places(out: Path, sealed: Path) -> None:
    """OutputError where the folder or the sealed file could not be written; for use before the work."""
    check_seal_place(sealed, out)
    check_writable(sealed, NEW)
    if out.is_dir() and any(out.iterdir()):
        raise OutputError(
            f"--out {out} is not empty, and what was published is never replaced: give a new name."
        )
    check_writable(out)


def publish(
    seal: Seal,
    out: Path,
    sealed: Path,
    further: Mapping[str, Mapping[str, object]] | None = None,
    *,
    rows: bytes | None = None,
) -> str:
    """Write the sealed file and the folder with what is to be published, both or neither; the commitment.

    The folder holds `commitment.txt` and `published.jsonl`. `further` are the
    other columns of the texts by their ids, which are published with them: all but those that would give a variant
    away. `rows` are what is published of an order that was drawn (`mark_order`). OutputError where one of the two is
    there already, or cannot be written.
    """
    check_places(out, sealed)
    content = sealed_bytes(seal)
    commitment = hashlib.sha256(content).hexdigest()
    written = False
    try:
        with new_folder(out) as partial:
            atomic_bytes(partial / PUBLISHED, _published(seal, further or {}) if rows is None else rows)
            atomic_bytes(
                partial / COMMITMENT, f"{commitment}\n\n{say('marks.commitment', name=seal.name)}\n".encode()
            )
            # Before the folder has its name: a kill in between leaves a sealed file and never texts without one.
            write_seal(content, sealed)
            written = True
    except BaseException:
        if written:
            sealed.unlink()
        raise
    return commitment


def _published(seal: Seal, further: Mapping[str, Mapping[str, object]]) -> bytes:
    telling = {"id", "text", "group"}
    for document in seal.documents:  # a column that repeats a variant would say which one was not drawn
        variants = [text.strip() for text in document.variants]
        row = further.get(document.id, {})
        telling |= {name for name, value in row.items() if any(text in str(value) for text in variants)}
    rows = []
    for one in seal.published:
        more = {name: value for name, value in further.get(one.id, {}).items() if name not in telling}
        rows.append({"id": one.id, "text": one.text, **({"group": one.group} if one.group else {}), **more})
    lines = "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    return lines.encode("utf-8", "backslashreplace")


_FACTOR = 6.2
"""(z of 0.95 + z of 0.8) squared: a one-sided test at 5% with power 0.8 needs this over d² documents."""


@dataclass(frozen=True, slots=True)
class SampleSize:
    """`d` is the mean of a text's difference after training over its spread; `documents` counts texts."""

    d: float
    documents: int
    power: Power

    @property
    def formula(self) -> int | None:
        """About 6.2 / d² texts are needed for power 0.8 at 5%; None where training moved nothing."""
        return math.ceil(_FACTOR / self.d**2) if self.d > 0 else None


def sample_size(
    seal: Seal,
    models: Models,
    settings: TestSettings,
    *,
    lot: Lot = secrets.randbelow,
    watch: Watch | None = None,
) -> SampleSize:
    """The sample size for a model like `models.target`, of which a copy reads half of the texts.

    The copy reads variants of a fresh draw by `lot`, so that nothing of the sealed one gets into a model. ModelError
    without weights here, TextsError for fewer than eight texts.
    """
    anew = replace(
        seal, documents=tuple(replace(one, drawn=lot(len(one.variants))) for one in seal.documents)
    )
    test = Marks(
        corpus=anew.corpus,
        models=models,
        settings=shared(CheckSettings, settings),
        watch=watched(watch),
        score=seal.score,
        seal=anew,
    )
    before = test.effects(test.read(models.target, "reading with the model"))
    shift = planted_shift(
        models.target,
        test.planted(),
        before,
        lambda copy: test.effects(test.read(copy, "reading with the copy")),
        settings,
        test.watch,
        seed=lot(2**32),
    )
    power = paired_power(before, shift, settings)
    places = list(shift.units)
    after = before[places] + shift.moved
    spread = float(np.std(after[np.isfinite(after)], ddof=1))
    d = power.effect.value / spread if spread > 0 else 0.0
    return SampleSize(d, int(np.isfinite(before).sum()), power)


def words_of(found: SampleSize | None, level: float) -> tuple[str, ...]:
    """What to tell the one who marks, a sentence each; `found` is None where nothing was measured."""
    formula = say("sample_size.formula", factor=_FACTOR)
    if found is None:
        return formula, say("sample_size.unmeasured")
    power = found.power
    needed = "no number of texts would do" if power.needed is None else f"{power.needed:,} texts are needed"
    numbers = {
        "times": times(power.epochs),
        "d": found.d,
        "level": level,
        "needed": needed,
        "formula": "" if found.formula is None else f" ({found.formula:,} by the formula)",
        "documents": found.documents,
        "chance": power.probability,
        "enough": say(f"sample_size.{'enough' if power.probability.value >= ENOUGH else 'few'}"),
    }
    said = (say(f"sample_size.{one}", **numbers) for one in ("found", "power", "favourable"))
    return formula, *said
