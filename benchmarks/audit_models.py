"""The models of the error-rate experiment: documents divided, bases from scratch, and targets whose members are known.

Every domain's documents are divided at random into evaluation documents, documents a generator learns from, and
background. A base learns the background of all domains from scratch, with a vocabulary of its own. A target
is a base trained further on a random half of one domain's evaluation documents, so that members and
non-members differ in nothing but exposure, and the base itself is the model before it could have seen them.

What stands beside the base as another placebo is a matter of roles: two seeds of one family are siblings, the
other family has another vocabulary, and a checkpoint is written halfway through each base's training.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.audit_documents import DOMAINS, Setup, halved
from benchmarks.experiments import Spoken
from pretrace.errors import TextsError
from pretrace.tuning.architectures import FAMILIES, Architecture, new_model
from pretrace.tuning.plan import OnStep, Progress, TrainingPlan
from pretrace.types import Corpus, Text

if TYPE_CHECKING:
    from pretrace.backends.loading import Loaded

SCALES = (0.5, 1.5)
"""Layers and width of the other sizes, over those of the usual one."""

WINDOW = 257
"""Tokens of a window: 256 are predicted."""


@dataclass(frozen=True, slots=True)
class Base:
    """A model from scratch: two seeds of one family and scale are siblings."""

    family: str
    seed: int
    scale: float = 1.0

    @property
    def name(self) -> str:
        """Its folder's name."""
        return f"base-{self.family}-{self.seed}" + ("" if self.scale == 1 else f"-x{self.scale:g}")


@dataclass(frozen=True, slots=True)
class Target:
    """A base trained further on half of a domain's evaluation documents, which `seed` draws. `rate` is over the
    usual one; in a `stream` as many documents of each other domain come between them."""

    domain: str
    seed: int
    base: Base
    epochs: int = 1
    rate: float = 1.0
    stream: bool = False

    @property
    def name(self) -> str:
        """Its folder's name."""
        base, among = self.base.name.removeprefix("base-"), "-stream" if self.stream else ""
        return f"target-{self.domain}-{base}-e{self.epochs}-r{self.rate:g}{among}-{self.seed}"


def home(domain: str, scale: float = 1.0) -> Base:
    """The base that the targets of a domain begin with: one of two seeds."""
    return Base("llama", DOMAINS.index(domain) % 2, scale)


def relatives(domain: str) -> dict[str, Base]:
    """The bases a domain's targets have to do with, by what they are to them."""
    own = home(domain)
    return {"own": own, "sibling": replace(own, seed=1 - own.seed)}


def placebos(setup: Setup, domain: str) -> dict[str, Path]:
    """The folders of the models a domain's targets are held against, by what they are to them; of another family
    is the one the generators are made of, which is named rather than stored here."""
    folders = {name: setup.work / base.name for name, base in relatives(domain).items()}
    more = {"earlier": earlier(folders["own"]), "tuned": tuned(setup, domain), "other": Path(setup.model)}
    return folders | more


def tuned(setup: Setup, domain: str) -> Path:
    """Where a domain's base lies that was trained further on what the generator learns from."""
    return setup.work / f"tuned-{domain}-{home(domain).name.removeprefix('base-')}"


def earlier(folder: Path) -> Path:
    """Where the checkpoint from the middle of a base's training lies."""
    return folder.with_name(f"{folder.name}-earlier")


def make_base(setup: Setup, base: Base, background: Corpus) -> Path:
    """The folder of the base, trained now unless it is there; its checkpoint from halfway lies beside it."""
    folder = setup.work / base.name
    known = replace(background, texts=_known(background.texts))
    settings = {**asdict(base), **setup.sizes}
    if _is_made(folder, known, settings) and _is_made(earlier(folder), known, settings):
        return folder
    wider = 1.5 if base.family == FAMILIES[0] else 1.0  # so that the families have different tokens
    architecture = Architecture(
        family=base.family,
        layers=max(1, round(setup.layers * base.scale)),
        width=round(setup.width * base.scale),
        vocabulary=int(setup.vocabulary * wider),
    )
    texts = [text.text for text in known.texts]
    model, tokenizer = new_model(texts, architecture=architecture, seed=base.seed)

    def halfway(done: Progress) -> None:
        if done.step == done.steps // 2 and not earlier(folder).exists():
            _write(earlier(folder), model, tokenizer, known, {"settings": settings, "step": done.step})

    plan = _plan(setup, epochs=setup.epochs, rate=setup.rate, seed=base.seed)
    _learn(_Start(model, tokenizer), known, folder, plan, settings=settings, on_step=halfway)
    return folder


def make_target(
    setup: Setup, target: Target, corpus: Corpus, among: Sequence[Text] = ()
) -> tuple[Path, Corpus]:
    """The folder of a target, trained now unless it is there, and the evaluation documents with their labels;
    `among` are texts of other domains to train on beside the members."""
    folder, labelled = setup.work / target.name, halved(corpus, target.seed)
    everything = replace(labelled, texts=(*labelled.texts, *_known(among)))
    rate = setup.target_rate * target.rate
    settings = {**asdict(target), **setup.sizes, "learning_rate": rate}
    plan = _plan(setup, epochs=target.epochs, rate=rate, seed=target.seed)
    _go_on(setup.work / target.base.name, everything, folder, plan, settings)
    return folder, labelled


def make_tuned(setup: Setup, domain: str, corpus: Corpus) -> Path:
    """The folder of a domain's base trained further on all of the corpus as a target would be: it has got used to
    the domain as the target has, but never saw the texts."""
    folder, base = tuned(setup, domain), home(domain)
    settings = {**asdict(base), **setup.sizes, "learning_rate": setup.target_rate}
    plan = _plan(setup, epochs=1, rate=setup.target_rate, seed=setup.seed)
    known = replace(corpus, texts=_known(corpus.texts))
    _go_on(setup.work / base.name, known, folder, plan, settings)
    return folder


def _go_on(
    start: Path, corpus: Corpus, folder: Path, plan: TrainingPlan, settings: Mapping[str, Any]
) -> None:
    """Train a base further on the members of the corpus, unless the model is there."""
    from pretrace.backends.loading import ModelSettings, load

    if not _is_made(folder, corpus, settings):
        loaded = load(str(start), ModelSettings(dtype="float32"))
        _learn(loaded, corpus, folder, plan, settings=settings)


def _known(texts: Iterable[Text]) -> tuple[Text, ...]:
    return tuple(replace(text, member=True) for text in texts)


def make_smollm2(setup: Setup, domain: str, seed: int, corpus: Corpus) -> tuple[Path, Corpus]:
    """SmolLM2-135M trained further for one epoch on a half of the documents; seeds 0 and 1 are the two halves."""
    from pretrace.backends.loading import ModelSettings, load

    folder, labelled = setup.work / f"target-{domain}-smollm2-{seed}", halved(corpus, seed // 2)
    if seed % 2:
        flipped = tuple(replace(text, member=not text.member) for text in labelled.texts)
        labelled = replace(labelled, texts=flipped)
    settings = {"model": setup.model, "seed": seed, "learning_rate": 5e-5, **setup.sizes}
    if not _is_made(folder, labelled, settings):
        start = load(setup.model, ModelSettings(dtype="float32"))
        if getattr(start.model, "hf_quantizer", None):  # plain numbers since it was read
            del start.model.config.quantization_config
            start.model.hf_quantizer, start.model.is_quantized = None, False
        plan = replace(_plan(setup, epochs=1, rate=5e-5, seed=seed), at_once=2048)
        _learn(start, labelled, folder, plan, settings=settings)
    return folder, labelled


def _plan(setup: Setup, *, epochs: int, rate: float, seed: int) -> TrainingPlan:
    precision: Any = setup.precision
    return TrainingPlan(
        epochs=epochs, batch=setup.batch, learning_rate=rate, warmup=0.05, precision=precision, seed=seed
    )


def _is_made(folder: Path, corpus: Corpus, settings: Mapping[str, Any]) -> bool:
    """Whether the model is there; TextsError where another one is."""
    from pretrace.tuning.planted import texts_hash

    if not (folder / "card.json").is_file():
        return False
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    members = texts_hash([text for text in corpus.texts if text.member])
    if card["settings"] != json.loads(json.dumps(settings)) or card["members"]["hash"] != members:
        raise TextsError(
            f"{folder} holds a model of other texts or settings: delete it, or name another folder with --work."
        )
    return True


class _Start(NamedTuple):
    """What a training begins with."""

    model: Any
    tokenizer: Any


def _learn(
    start: _Start | Loaded,
    corpus: Corpus,
    folder: Path,
    plan: TrainingPlan,
    *,
    settings: Mapping[str, Any],
    on_step: Callable[[Progress], None] | None = None,
) -> None:
    """Train the model on the members of the corpus, read as start, text, end, and write it to the folder."""
    from pretrace.backends.tokens import Tokens
    from pretrace.tuning.training import train
    from pretrace.tuning.windows import windows

    print(f"training {folder.name}", flush=True)
    told: tuple[OnStep, ...] = (Spoken().on_step, *((on_step,) if on_step else ()))
    texts = [text.text for text in corpus.texts if text.member]
    end = [int(start.tokenizer.eos_token_id)]
    encoded = Tokens(start.tokenizer, start="always").encode(texts)
    whole = [[*e.prefix.tolist(), *e.tokens.tolist(), *end] for e in encoded]
    sequences = [window for tokens in whole for window in windows(tokens, WINDOW)]

    def step(done: Progress) -> None:
        for tell in told:
            tell(done)

    history = train(start.model, sequences, plan, on_step=step)
    card = {"settings": settings, "tokens": history.tokens, "losses": list(history.losses)}
    card |= {"steps": history.steps, "seconds": round(history.seconds, 1)}
    _write(folder, start.model, start.tokenizer, corpus, card)


def _write(folder: Path, model: Any, tokenizer: Any, corpus: Corpus, card: Mapping[str, Any]) -> None:
    from pretrace.tuning.planted import write_planted

    parameters = sum(weight.numel() for weight in model.parameters())
    write_planted(folder, model, tokenizer, corpus=corpus, card={**card, "parameters": parameters})
