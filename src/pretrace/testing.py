"""What authors of scores, back ends and tests need to test their own: made-up evidence, a model without weights that
remembers texts, and the checks that all of ours pass: `check_score`, `check_model` and `check_test`."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from pretrace.errors import ModelError
from pretrace.frequencies import Frequencies
from pretrace.results.folder import file_hashes
from pretrace.rewrites import disturbances, rewrites
from pretrace.runs import load_verdict, save_verdict
from pretrace.scoring.detect import Options, detect
from pretrace.scoring.evidence import Progress, Traces, trace
from pretrace.scoring.plan import Models, ScorePlan
from pretrace.statistics.roc import auc
from pretrace.types import (
    Backend,
    Continued,
    Corpus,
    Drawn,
    Encoded,
    Evidence,
    Hidden,
    Peak,
    Quantity,
    Recipe,
    Score,
    State,
    States,
    Text,
    Trace,
    Tuned,
    Verdict,
    View,
    Written,
)
from pretrace.verdicts.outcome import EXIT_CODES
from pretrace.verdicts.recompute import recompute
from pretrace.verdicts.register import read_tests

Numbers = Sequence[float] | npt.NDArray[Any]


def make_trace(
    logp: Numbers, *, tokens: Numbers | None = None, mean: Numbers | None = None, std: Numbers | None = None
) -> Trace:
    """A trace of the given log-probabilities; tokens are 0, 1, 2, … unless given."""
    ids = np.array(range(len(logp)) if tokens is None else tokens, dtype=np.int32)
    mean, std = (None if one is None else np.array(one, dtype=np.float32) for one in (mean, std))
    return Trace(ids, np.array(logp, dtype=np.float32), mean, std)


def make_evidence(text: str = "three little tokens", **views: Any) -> Evidence:
    """Evidence of one text: `logp`, `tokens`, `mean`, `std` of the plain view, and by name the
    log-probabilities of other views, `lower=[…]`, `typos=[…]` (with its defaults), or of other models:
    `reference=[…]`, `tuned=[…]`."""
    plain = {key: views.pop(key) for key in ("logp", "tokens", "mean", "std") if key in views}
    known = {View(): (make_trace(**plain),)}
    for name, logp in views.items():
        if name in disturbances:
            view = View(rewrite=disturbances.make(name).name)
        else:
            view = View(rewrite=name) if name in rewrites else View(model=name)
        known[view] = (make_trace(logp),)
    return Evidence(Text("made-up", text), known)


class Memory:
    """A back end that needs no model and remembers texts without training: a token is a character, and its
    log-probability is a fixed pseudo-random number that depends on the character and the one before, higher where what
    it reads stands in a `familiar` text. After the beginning of one it writes how that goes on. It has 4 layers of 32
    neurons, which depend on the character and on whether the text is familiar; the first 16 are its hidden states,
    those of the last layer standing for the output as well."""

    offers = ~Quantity.NONE  # everything
    tokenizer_hash = "characters"
    vocabulary = 1 << 16

    def __init__(self, familiar: Sequence[str] = (), *, name: str = "memory", max_tokens: int = 4096) -> None:
        self.name = name
        self.max_tokens = max_tokens
        self.familiar = frozenset(familiar)
        self._remembered = "\x00".join(sorted(self.familiar))
        digest = hashlib.sha256(self._remembered.encode("utf-8", "replace")).hexdigest()
        self.fingerprint = f"memory {name} {max_tokens} {digest}"
        self.facts: Mapping[str, Any] = {"name": name, "family": "memory", "vocabulary": self.vocabulary}

    def encode(self, texts: Sequence[str], /) -> list[Encoded]:
        """One token a character."""
        start, limit = np.zeros(0, dtype=np.int32), self.max_tokens
        ids = (np.array([ord(c) % self.vocabulary for c in text], dtype=np.int32) for text in texts)
        return [Encoded(start, one[:limit], max(0, len(one) - limit)) for one in ids]

    def spans(self, text: str, /) -> npt.NDArray[np.int64]:
        """Every character is a token."""
        starts = np.arange(len(text), dtype=np.int64)
        return np.stack([starts, starts + 1], axis=1)

    def pack(self, encoded: Sequence[Encoded], /) -> list[tuple[int, ...]]:
        """Four texts a batch."""
        order = [i for i, e in enumerate(encoded) if e.predicted]
        return [tuple(order[i : i + 4]) for i in range(0, len(order), 4)]

    def run(self, batch: Sequence[Encoded], want: Quantity, states: States = frozenset(), /) -> list[Trace]:
        """Traces whose numbers depend on the text alone."""
        return [self._trace(e, want, states) for e in batch]

    def continued(
        self, prompts: Sequence[str], draws: Sequence[Any], progress: Progress, /
    ) -> list[list[Written]]:
        """What goes on in a familiar text, once a draw; after any other prompt that prompt backwards."""
        ends = []
        for prompt in prompts:
            _, known, rest = self._remembered.partition(prompt)
            ends.append(rest.partition("\x00")[0] if known else prompt[::-1])
        return [[Written(end) for _ in draws] for end in ends]

    def _trace(self, encoded: Encoded, want: Quantity, states: States) -> Trace:
        behind = len(encoded.prefix) > 0  # after another text what is familiar is not recognised
        tokens = np.concatenate([encoded.prefix[-1:], encoded.tokens]).astype(np.int64)
        known = not behind and "".join(map(chr, tokens)) in self._remembered
        noise = (tokens[1:] * 7919 + tokens[:-1] * 104729) % 1009 / 1009
        after = len(encoded.prefix) % 13 / 100 if behind else 0.0
        logp = (-0.5 - 4 * noise + (1.0 if known else 0.0) - after).clip(max=-0.01).astype(np.float32)
        mean, std = (
            np.full_like(logp, moment) if Quantity.MOMENTS in want else None for moment in (-2.5, 1.5)
        )
        inside = _activations(tokens, known=known) if states else np.zeros(0)
        found = {state: _state(state, tokens[1:], logp, inside, known=known) for state in states}
        return Trace(tokens[1:].astype(np.int32), logp, mean, std, encoded.cut, found)


def _activations(tokens: npt.NDArray[np.int64], *, known: bool) -> npt.NDArray[np.float64]:
    """Made-up activations [positions, layers, neurons]; above 1 a third of them in known texts alone, another
    third in others alone."""
    layers, neurons = np.arange(4)[:, None], np.arange(32)[None, :]
    noise = (tokens[:, None, None] * 7919 + layers * 104729 + neurons * 1299709) % 1009 / 1009
    more = neurons % 3 == (0 if known else 1)
    return np.asarray(0.9 * noise + 0.3 * more, dtype=np.float64)


def _state(state: State, tokens: Any, logp: Any, inside: Any, *, known: bool) -> Any:
    if isinstance(state, Continued):  # the end of a familiar text as it is, and of another one backwards
        end = tokens[state.read(len(tokens)) :].astype(np.int32)
        return np.repeat((end if known else end[::-1])[None], state.samples, axis=0)
    if isinstance(state, Peak):  # as if the likeliest token were that of probability e^-1 or more
        return np.maximum(logp, np.float32(-1.0))
    if isinstance(state, Drawn):  # as if the likeliest tokens were those of e^-4 or more
        return np.where(logp >= -4, -0.01 if known else logp, -np.inf).astype(np.float32)
    if isinstance(state, Hidden):
        last = np.concatenate([inside[-1], inside[-1, -1:]])[:, :16].astype(np.float32)
        return last if state.layer is None else last[state.layer]
    if state.pool == "count":
        return (inside > state.threshold).sum(axis=0).astype(np.uint32)
    pooled = inside.max(axis=0) if state.pool == "any" else inside.mean(axis=0)
    return np.packbits(pooled > state.threshold, axis=-1)


_WORDS = ("river", "Stone", "lamp", "paper", "WINDOW", "garden", "silver", "naïve", "engine", "7", "again")


def made_texts(name: str, number: int, *, words: int = 60) -> Corpus:
    """Make a corpus of texts of random words, the same for the same name."""
    rng = np.random.default_rng(list(name.encode()))
    texts = (Text(f"{name}{i}", " ".join(rng.choice(_WORDS, words))) for i in range(number))
    return Corpus(name, tuple(texts))


def _turned(texts: Sequence[str], /, *, number: int, share: float, seed: int) -> list[tuple[str, ...]]:
    """The words of each text in other orders."""
    words = [text.split() for text in texts]
    return [tuple(" ".join(some[k:] + some[:k]) for k in range(1, number + 1)) for some in words]


def check_score(score: str | Score | Recipe) -> None:
    """Check a score, an expression or an object, on texts of which a model remembers half. Each must have a finite
    number, the same in any order and company and after pickling; those that it remembers must have the higher ones.
    AssertionError where it is otherwise."""
    name = score if isinstance(score, str) else type(score).__name__
    plan = ScorePlan.parse(score if isinstance(score, str) else {name: score})
    made = made_texts("text", 120, words=24).texts
    made = tuple(replace(text, member=i % 2 == 0) for i, text in enumerate(made))
    members, others = ([text.text for text in made if text.member is side] for side in (True, False))
    labelled, texts = Corpus("labelled", made[:60]), Corpus("scored", made[60:])
    models = Models(
        Memory(members),
        reference=Memory(name="reference"),
        counts=Frequencies(np.zeros(1, dtype=np.int64), Memory.tokenizer_hash),
        tuned=Tuned(Memory(others, name="tuned"), frozenset(), {}),
        proposer=SimpleNamespace(fingerprint="turned", facts={"name": "turned"}, propose=_turned),
        labelled=labelled,
    )
    short = Corpus("short", tuple(Text(text, text) for text in ("ab", "The cat.", "9 9 9", "Ä" * 300)))
    turned, copy = replace(texts, texts=texts.texts[:9:-1]), pickle.loads(pickle.dumps(plan))
    values, few, again = (
        detect(corpus, models, how, Options(cache=False)).column(name)
        for corpus, how in ((texts, plan), (short, plan), (turned, copy))
    )
    assert np.isfinite([*values, *few]).all(), f"{name} gives a text no finite number"
    assert again.tolist() == values[:9:-1].tolist(), f"{name} depends on order, company or process"
    known = np.array([bool(text.member) for text in texts.texts])
    assert auc(values, known) > 0.6, f"{name} is no higher for texts that a model remembers: turn its sign"


def check_model(model: Backend) -> None:
    """Check a back end. Tokens and their places must fit the texts; a text must have one trace, with finite numbers of
    at most 0, whatever it is read with. AssertionError where it is otherwise."""
    name, limit, want = model.name, model.max_tokens, model.offers & (Quantity.LOGP | Quantity.MOMENTS)
    texts = [text.text for text in made_texts("read", 7, words=9).texts]
    texts += ["", "a", "Ä  naïve 東京 🙂\n\n", texts[0] * (2 if limit > 4096 else 1 + limit // 20)]
    encoded = model.encode(texts)
    packed = sorted(i for batch in model.pack(encoded) for i in batch)
    assert packed == [i for i, one in enumerate(encoded) if one.predicted], f"{name} packs {packed}"
    assert model.fingerprint, f"{name} has no fingerprint"

    def read(*texts: str) -> list[Trace]:
        return trace(model, texts, want, store=Traces(None))

    for text, one, beside in zip(texts, encoded, read(*texts), strict=True):
        (again,), (alone,), spans = model.encode([text]), read(text), model.spans(text)
        tokens, whole, where = one.tokens.tolist(), [*one.prefix, *one.tokens], f"in {text[:40]!r}"
        assert tokens == again.tokens.tolist(), f"{name} finds other tokens again {where}"
        assert all(0 <= token < model.vocabulary for token in whole), f"{name} has unknown tokens {where}"
        assert len(whole) <= limit, f"{name} reads {len(whole)} tokens {where}, and max_tokens is {limit}"
        assert not one.cut or len(whole) == limit, f"{name} cuts more than it must {where}"
        assert len(spans) == len(tokens) + one.cut, f"{name} has not one span a token {where}"
        assert ((spans >= 0) & (spans <= len(text))).all(), f"{name} has spans that are not {where}"
        assert alone.tokens.tolist() == tokens[len(tokens) - one.predicted :], f"{name} reads others {where}"
        assert alone.cut == one.cut, f"{name} cuts more than it encodes {where}"
        assert (np.isfinite(alone.logp) & (alone.logp <= 0)).all(), f"{name} has chances above 1 {where}"
        for field in ("logp", "mean", "std"):
            if (values := getattr(alone, field)) is not None:
                assert len(values) == one.predicted, f"{name} has not one number a token {where}"
                near = np.allclose(values, getattr(beside, field), atol=1e-4)
                assert near, f"{name} reads otherwise in company {where}"


def check_test(
    ask: Callable[[Corpus, Models], Verdict],
    texts: Corpus,
    *,
    known: Sequence[str] = (),
    alone: bool = False,
) -> Verdict:
    """Check a verdict test, whose verdict on texts `ask` makes with models. It must find a model that remembers the
    texts (or what is `known` of them), but no other, none beside a second model that remembers them too, and none
    without a second model, unless it may accuse `alone`. It must refuse the target as second model, have the same p
    whatever the texts are called and in any order, note itself in the register, and be the same to the bit when it was
    saved, loaded and computed again. AssertionError where it is otherwise; the verdict where it is not."""
    known = known or [text.text for text in texts.texts]
    knowing, twin = Memory(known, name="knowing"), Memory(known, name="twin")
    second, innocent = Memory(name="second"), Memory(name="innocent")
    order = np.random.default_rng(1).permutation(len(texts)).tolist()
    renamed = tuple(replace(texts.texts[i], id=f"other {i}") for i in order)

    def accuses(verdict: Verdict) -> bool:
        return EXIT_CODES[verdict.outcome] == 3

    with TemporaryDirectory() as folder, patch.dict(os.environ, PRETRACE_CACHE=folder):
        found = ask(texts, Models(knowing, placebos=(second,)))
        assert accuses(found), " ".join(("a model that remembers the texts is not found:", *found.reasons))
        assert [line["p"] for line in read_tests()] == [found.p], "it is not noted in the register"
        other = ask(texts, Models(innocent, placebos=(second,)))
        assert not accuses(other), f"an innocent is accused: {other.statement}"
        assert len(other.register) == 2, "the earlier test of these texts is not counted"
        assert alone or not accuses(ask(texts, Models(knowing))), "it accuses without a second model"
        both = ask(texts, Models(knowing, placebos=(twin,)))
        assert not accuses(both), "it accuses though a second model remembers the texts too"
        same = ask(Corpus("elsewhere", renamed), Models(innocent, placebos=(second,)))
        assert same.p == other.p, "names or the order of the texts change p"
        with suppress(ModelError):
            ask(texts, Models(knowing, placebos=(knowing,)))
            raise AssertionError("it takes the target for a second model")
        first, again = Path(folder, "first"), Path(folder, "again")
        save_verdict(found, first)
        save_verdict(load_verdict(first), again)
        assert file_hashes(first) == file_hashes(again), "it is another when it was saved and loaded"
        numbers = recompute(load_verdict(first))
        wrong = [number.name for number in numbers if not number.agrees]
        assert numbers, "`runs verify` does not know it: register its class"
        assert not wrong, f"its tables give other numbers: {wrong}"
    return found
