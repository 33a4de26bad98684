"""A `Backend` whose model stands behind a server: the tokenizer is here, log-probabilities come from there.

Before a text of the user is sent, six sentences of ours are: together; in reverse order; together with longer texts;
two of them alone; and each with the token that the server itself wrote after it. From the answers follows whether the
tokens are ours, with one number each; whether numbers depend on what else was asked or on what comes later (a model
reads from left to right); and whether they belong to the tokens beside which they stand: sentences that begin alike
must agree up to where they part, and a token that was written as the likeliest must be the likeliest when it is read.

Between the requests of a run the sentences are asked again, a fixed number of requests apart and once at the end:
their numbers must be those of the first time. An answer counts when the question after it was answered as it must be:
only then is it given away, and so kept.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pretrace.backends.loading import tokenizer_of
from pretrace.backends.naming import OPENED, ModelSettings, ServerAddress, parse_address
from pretrace.backends.serving.client import Client, NotTakenError, answered
from pretrace.backends.tokens import Tokens, pack
from pretrace.cache import cache_folder
from pretrace.errors import ModelError, OutputError, shown
from pretrace.results.atomic import atomic_text
from pretrace.results.wording import say
from pretrace.types import Encoded, Quantity, States, Trace

FORMAT = 3  # part of the fingerprint: raised whenever a server would be asked in another way
BUDGET = 2048
"""Tokens a request unless told otherwise: some servers hold a whole distribution for each."""
EVERY = 20
"""Requests after which is asked again: one short request in twenty."""
REQUESTS, SECONDS = 8, 120.0
"""Requests under way at once, and seconds for each, unless told otherwise."""
SENTENCES = (
    "The old mill by the river was sold in March to a baker from the next town, who painted its door green.",
    "The old mill by the river never turned again after the long summer of 1921, when the water was low.",
    "Seven boxes of letters stood under the stairs; nobody had opened them since the move.",
    "To fold the map, begin at the left edge and follow the dotted line down to the harbour.",
    "When asked about the price, the clerk laughed, closed the book, and pointed at the clock above the shelf.",
    "Rain is expected over the hills tonight.",
)
"""Written for the check; the first two begin alike."""
WOBBLE = 1e-2
"""By how much a log-probability may move, in nats, between one request and another of the same size."""
_COMPANY = 1e-1
"""The same alone and in company, or with more text behind it: in bfloat16 the size of a request decides how it is
computed. What moves is recorded and told; vLLM's VLLM_BATCH_INVARIANT=1 makes it 0."""
_MOVED = 1e-3
"""By how much the sentences may move during a run where they stood still when connecting, and an address between two
runs where its numbers are computed in float32; of what moves by less page one says no more than that."""
_FLOAT32 = 1e-4  # nats: numbers that move less than this are computed in float32
LOWEST = -1000.0
"""No model gives a token of ordinary text less; servers write -9999 for what they do not compute."""
_WRITTEN = 0.1  # nats: a token's number when written and when read, which bfloat16 computes differently
_EXACT = 1e-5  # nats: two tokens with the same number where two sentences part are the same entry
_TIES = 1  # of the sentences, one may be followed by another token: two may be equally likely
_MORE = 8  # tokens behind a cut: with so many more, a server cuts the beginning into the same tokens
_SHAPES = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What reading an answer of another form raises."""


class _ServedModel:
    """A `Backend` behind a server, log-probabilities only, checked before any text is sent; ModelError where it cannot
    be used. `model` is the name the server knows the model by."""

    offers = Quantity.LOGP

    def __init__(self, address: ServerAddress, client: Client, settings: ModelSettings) -> None:
        held = _list_models(client)
        for one in held.values():
            # what servers call the owner of their models
            if (owner := one.get("owned_by")) in ("llamacpp", "library"):
                raise ModelError(say(f"servers.{owner}", url=address.url))
        model = choose_name(address.model or settings.served_model or "", client, held)
        said = held.get(model, {})
        source = settings.tokenizer or str(said.get("root") or model)
        if not settings.tokenizer and Path(source).is_absolute() and not Path(source).is_dir():
            facts = {"name": shown(model)[:200], "source": shown(source)[:200]}
            raise ModelError(say("servers.tokenizer", **facts))
        tokenizer, context, vocabulary = tokenizer_of(source, settings)
        limits = [n for n in (settings.max_tokens, _limit(said) or (context and context - 1)) if n]
        self.address, self.client, self.model = address, client, model
        self.name = f"{address.kind}:{address.url}" + (f"#{model}" if model else "")
        self.tokens = Tokens(tokenizer, start=settings.start)  # without a limit while the sentences are read
        rust = self.tokens.rust
        # the ways in which servers write a token: decoded, and as the vocabulary has it
        self._pieces = cache(
            lambda id_: (rust.decode([id_], skip_special_tokens=False), rust.id_to_token(id_) or "")
        )
        self.prompts = tuple(map(self._sentence, SENTENCES))
        for self.route in ROUTES[address.kind]:
            try:
                self._check_tokenizer()
                self._check_numbers()
                break
            except NotTakenError:
                if self.route is ROUTES[address.kind][-1]:
                    raise
        self._turn = 0  # of the sentences, the one that is asked next where a request takes one prompt
        self.budget = settings.token_budget or BUDGET
        self.tokens = Tokens(tokenizer, start=settings.start, max_tokens=min(limits, default=None))
        self.spans, self.tokenizer_hash = self.tokens.spans, self.tokens.hash
        self.max_tokens = self.tokens.max_tokens or 1 << 30
        self.vocabulary = vocabulary or rust.get_vocab_size(with_added_tokens=True)
        named: dict[str, Any] = {"kind": address.kind, "model": model, "tokenizer": self.tokens.hash}
        named["prefix"] = self.tokens.prefix.tolist()
        met = np.asarray(self._first_numbers(named), "<f8")
        named = {"format": FORMAT, **named, "answers": hashlib.sha256(met.tobytes()).hexdigest()}
        self.fingerprint = json.dumps({**named, "max_tokens": self.max_tokens})
        weights = hashlib.sha256(json.dumps(named).encode()).hexdigest()
        # What the server could have done without being noticed.
        unseen = say("servers.unseen", kind=address.kind)
        moved = max(self.wobble, _MOVED)
        unseen += f" Asked again, alone and among others, a text's numbers moved by at most {moved:.1g} nats."
        self.facts: Mapping[str, Any] = {
            "name": self.name,
            "server": address.url,
            "kind": address.kind,
            "served_model": model,
            "tokenizer_from": source,
            "tokenizer_read_by": self.tokens.read_by,
            "moved": self.wobble,
            "bit_identical": self.identical,
            "unseen": unseen,
            "vocabulary": self.vocabulary,
            "weights": f"behind a server, by its answers: {weights[:32]}",
            "tokenizer": self.tokens.hash,
            "start": self.tokens.start,
            "prefix": named["prefix"],
            "max_tokens": self.max_tokens,
        }

    def encode(self, texts: Sequence[str], /) -> list[Encoded]:
        """Token ids of each text, in order."""
        made = self.tokens.encode(texts)
        if self.route.asks_ids:
            return made
        return [replace(one, text=self._characters(text, one)) for text, one in zip(texts, made, strict=True)]

    def pack(self, encoded: Sequence[Encoded], /) -> list[tuple[int, ...]]:
        """The requests: texts of similar length within the token budget, one alone where a server takes no more."""
        lengths = [e.length if e.predicted else 0 for e in encoded]
        return pack(lengths, self.budget if self.route.asks_ids else 1)

    def run(self, batch: Sequence[Encoded], want: Quantity, states: States = frozenset(), /) -> list[Trace]:
        return next(self.stream([batch], want, states))[1]

    def stream(
        self, batches: Sequence[Sequence[Encoded]], want: Quantity, states: States = frozenset(), /
    ) -> Iterator[tuple[int, list[Trace]]]:
        """The traces of each request as soon as they are there, with its number. ModelError where more than
        log-probabilities is wanted, and where the server fails or answers with something that cannot be used."""
        if states or want & ~self.offers:
            raise ModelError(f"{self.name} gives log-probabilities only: use --model with local weights.")
        groups = [[self._prompt(one) for one in batch] for batch in batches]
        windows: dict[int, dict[int, list[Trace]]] = {}  # whose answers are given away together
        again: deque[tuple[Any, Sequence[_Prompt]]] = deque()
        ahead = iter(enumerate(groups))

        def more() -> tuple[Any, str, Mapping[str, Any]] | None:
            """The next request: a question between them shall not wait."""
            name, prompts = again.popleft() if again else next(ahead, (None, ()))
            return None if name is None else (name, PATH, self.route.request(prompts, self.model))

        for name, done in answered(self.client, more):
            if isinstance(name, int):
                # A text that is cut is sent to a server of texts with a little more behind it.
                answers = self.read(done.result(), groups[name], whole=self.route.asks_ids)
                window = windows.setdefault(name // EVERY, {})
                window[name] = [
                    self._trace(*one) for one in zip(batches[name], groups[name], answers, strict=True)
                ]
                if len(window) == len(groups[name // EVERY * EVERY :][:EVERY]):
                    which = range(len(self.prompts)) if self.route.asks_ids else (self._turn,)
                    self._turn = (self._turn + 1) % len(self.prompts)
                    again.append(((name // EVERY, which), [self.prompts[i] for i in which]))
            else:
                over, which = name
                prompts = [self.prompts[i] for i in which]
                said = self._check_answers(prompts, self.read(done.result(), prompts))
                allowed = min(_COMPANY, max(_MOVED, 3 * self.wobble))
                moved = max(_difference(one, self.answers[i]) for i, one in zip(which, said, strict=True))
                if moved > allowed:
                    raise ModelError(say("servers.changed", name=self.name, moved=moved, allowed=allowed))
                yield from windows.pop(over).items()

    def close(self) -> None:
        self.client.close()

    def read(self, body: Any, prompts: Sequence[_Prompt], *, whole: bool = True) -> list[_PromptAnswer]:
        """The answers in what a server sent. `whole`: it was sent exactly these tokens, and may count no more."""
        try:
            choices, read = _choices(body, prompts)
            answers = [self.route.answer(*one) for one in zip(choices, prompts, strict=True)]
        except _SHAPES as error:
            reason = self.client.plain(str(error))[:80] or type(error).__name__
            facts = {"url": self.client.url, "title": self.route.title, "reason": reason}
            raise ModelError(say("servers.odd", said=self.client.quoted(body), **facts)) from None
        sent = sum(len(one.ids) for one in prompts)
        # a server of texts may read a start token that a user said is none of ours
        spare = self.tokens.start == "never" and not self.route.asks_ids
        if whole and read is not None and read > sent + spare:
            raise ModelError(say("servers.read_more", name=self.name, read=read, sent=sent))
        return answers

    def _prompt(self, encoded: Encoded) -> _Prompt:
        ids = tuple(int(one) for one in (*encoded.prefix, *encoded.tokens))
        if self.route.asks_ids:
            return _Prompt(ids)
        if encoded.text is not None:
            return _Prompt(ids, encoded.text)
        own = list(ids[len(encoded.prefix) :])
        return _Prompt(ids, self.tokens.rust.decode(own, skip_special_tokens=False))

    def _sentence(self, text: str) -> _Prompt:
        ids = self.tokens.encode([text])[0]
        words = tuple(text[a:b] for a, b in self.tokens.spans(text))
        return _Prompt(tuple(int(one) for one in (*ids.prefix, *ids.tokens)), text, words)

    def _characters(self, text: str, encoded: Encoded) -> str:
        """The text as far as its tokens are kept, and further where the last ones would otherwise be others."""
        if not encoded.cut:
            return text
        ends, kept = self.tokens.spans(text)[:, 1], len(encoded.tokens)
        for more in range(min(_MORE, encoded.cut + 1)):
            part = text[: ends[kept - 1 + more]]
            ids = self.tokens.rust.encode(part, add_special_tokens=False).ids
            if ids[:kept] == encoded.tokens.tolist():
                return part
        return text

    def _trace(self, encoded: Encoded, prompt: _Prompt, answer: _PromptAnswer) -> Trace:
        if encoded.cut and not self.route.asks_ids:
            number = len(prompt.ids)
            ids, words = answer.ids and answer.ids[:number], answer.words and answer.words[:number]
            answer = replace(answer, logp=answer.logp[:number], ids=ids, words=words)
        self._check_answer(prompt, answer)
        start = max(1, len(encoded.prefix))
        logp = np.array(answer.logp[start:], dtype=np.float32)
        return Trace(np.array(prompt.ids[start:], dtype=np.int32), logp, cut=encoded.cut)

    def _check_answers(self, prompts: Sequence[_Prompt], answers: list[_PromptAnswer]) -> list[_PromptAnswer]:
        """The answers; ModelError where one is not about its prompt's tokens, or its numbers are none."""
        wanted, found = [one.ids for one in prompts], [one.ids or () for one in answers]
        if wanted != found and sorted(wanted) == sorted(found):
            raise ModelError(say("servers.mixed_up", name=self.name))
        for prompt, answer in zip(prompts, answers, strict=True):
            self._check_answer(prompt, answer)
        return answers

    def _check_answer(self, prompt: _Prompt, answer: _PromptAnswer) -> None:
        """ModelError unless the answer has log-probabilities, our tokens, one number each, and none for the first."""
        if not any(one is not None for one in answer.logp):
            raise ModelError(f"{self.name} gives no log-probabilities of prompts: {say(self.route.cure)}.")
        if answer.ids is None and not answer.words:
            raise ModelError(say("servers.no_tokens", name=self.name))
        # by ids or keys of its entries, else by words
        by_words = answer.ids is None and self._same_words(prompt.ids, answer.words or ())
        if not by_words and answer.ids != prompt.ids:
            raise self._other_tokens(prompt, answer)
        if len(answer.logp) != len(prompt.ids):
            counts = {"numbers": len(answer.logp), "tokens": len(prompt.ids)}
            raise ModelError(say("servers.other_number", name=self.name, **counts))
        if answer.logp[0] is not None:
            raise ModelError(say("servers.first_number", name=self.name))
        if any(one is None or not LOWEST <= one <= 1e-3 for one in answer.logp[1:]):
            raise ModelError(say("servers.no_logprobs", name=self.name))

    def _other_tokens(self, prompt: _Prompt, answer: _PromptAnswer) -> ModelError:
        theirs = answer.words or () if answer.ids is None else answer.ids
        ours = prompt.ids if answer.ids is not None else [self._pieces(id_)[0] for id_ in prompt.ids]
        facts = {"theirs": _first_tokens(theirs), "ours": _first_tokens(ours)}
        return ModelError(say("servers.other_tokens", name=self.name, **facts))

    def _same_words(self, own: Sequence[int], words: Sequence[str]) -> bool:
        """Whether an answer's words are the prompt's tokens: none may be another, and most must be told."""
        if len(words) < len(own):
            return False
        told = 0
        for place, (id_, word) in enumerate(zip(own, words, strict=False)):
            known, said = {_bare(one) for one in self._pieces(id_)}, _bare(word)
            if said in known or word == f"token_id:{id_}":
                told += bool(said)
            elif word.startswith("token_id:") or (
                said and not _broken(word) and not any(map(_broken, self._pieces(id_))) and place
            ):
                return False  # at the first place a start token may be written in any way
        readable = sum(any(_bare(one) for one in self._pieces(id_)) for id_ in own)
        return 2 * told >= readable - 2

    def _ask(self, prompts: Sequence[_Prompt]) -> list[_PromptAnswer]:
        """An answer to each prompt, checked; ModelError where the server refuses or answers in another form."""
        groups = [prompts] if self.route.asks_ids else [[one] for one in prompts]
        ahead = ((i, PATH, self.route.request(some, self.model)) for i, some in enumerate(groups))
        done = dict(answered(self.client, lambda: next(ahead, None)))
        found = [self.read(done[i].result(), some) for i, some in enumerate(groups)]
        return self._check_answers(prompts, [answer for some in found for answer in some])

    def _check_tokenizer(self) -> None:
        """ModelError where the server cuts a text of the check into other tokens than the tokenizer here."""
        start = len(self.tokens.prefix)
        for prompt in self.prompts[:2] if self.route.asks_ids else ():  # else the check itself sends text
            own = _Prompt(prompt.ids[start:], prompt.text, prompt.words)
            try:
                body = self.client.start(PATH, self.route.request([prompt], self.model, text=True)).result()
            except NotTakenError:
                return
            (answer,) = self.read(body, [own], whole=False)
            # after at most two start tokens; the last may be cut off
            if (found := answer.ids) is not None:
                parts = (
                    (found[skip : skip + len(own.ids)], own.ids[: len(found) - skip]) for skip in range(3)
                )
                same = len(found) >= len(own.ids) and any(theirs == ours for theirs, ours in parts)
            else:
                words = answer.words
                same = not words or any(self._same_words(own.ids, words[skip:]) for skip in range(3))
            if not same:
                raise self._other_tokens(own, answer)

    def _check_numbers(self) -> None:
        """Ask the sentences in every way, and keep the `answers`, their `numbers`, how far they moved (`wobble`, nats),
        and whether they are `identical` to the last bit. ModelError where they cannot be used."""
        first = self._ask(self.prompts)
        numbers = np.array([one for answer in first for one in answer.logp if one is not None])
        if np.ptp(numbers) < 1e-6:
            cure = say(self.route.cure)
            raise ModelError(say("servers.constant", name=self.name, number=numbers[0], cure=cure))
        self._refuse_later_distribution(first)
        self._refuse_moved_list(first)
        number = len(first)
        pairs = list(zip(first, self._ask(self.prompts[::-1])[::-1], strict=True))
        joined = [(i, self._sentence(f"{SENTENCES[i]} {SENTENCES[i + 2]}")) for i in (0, 3)]
        joined = [(i, one) for i, one in joined if one.ids[: len(self.prompts[i].ids)] == self.prompts[i].ids]
        company = self._ask((*self.prompts, *(one for _, one in joined)))
        pairs += zip(first, company[:number], strict=True)
        pairs += [(first[i], company[number + place]) for place, (i, _) in enumerate(joined)]
        if self.route.asks_ids:
            pairs += [(first[i], self._ask(self.prompts[i : i + 1])[0]) for i in (0, 3)]
        longer = {i: made for i, one in enumerate(first) if (made := self._extended(self.prompts[i], one))}
        followed = dict(zip(longer, self._ask(tuple(longer.values())), strict=True)) if longer else {}
        pairs += [(first[i], answer) for i, answer in followed.items()]
        apart = [_difference(*pair) for pair in pairs]
        if max(apart[:number]) > WOBBLE or max(apart) > _COMPANY:
            raise ModelError(say("servers.unsteady", name=self.name, apart=max(apart)))
        self._refuse_written_otherwise(first, followed)
        self.answers, self.numbers, self.wobble = first, tuple(map(float, numbers)), max(apart)
        alike = (len(one.logp) == len(other.logp) for one, other in pairs)
        self.identical = not any(far for far, same in zip(apart, alike, strict=True) if same)

    def _extended(self, prompt: _Prompt, answer: _PromptAnswer) -> _Prompt | None:
        """The prompt with the token more that the server wrote; None where it cannot be told from its text."""
        written, number = answer.written_id, len(prompt.ids)
        if self.route.asks_ids and written is not None:
            return _Prompt((*prompt.ids, int(written)))
        made = self._sentence(prompt.text + (answer.written_text or ""))
        if len(made.ids) != number + 1 or made.ids[:number] != prompt.ids or "\ufffd" in made.text:
            return None  # a part of a character, or a token that merges with the one before it
        return made if written in (None, made.ids[number]) else None

    def _refuse_later_distribution(self, first: Sequence[_PromptAnswer]) -> None:
        """ModelError where the likeliest token beside the last of a text is the one that was written after it: it
        takes the distribution after a token for the one before it, as llama-cpp-python without a start token."""
        known = [
            (best, answer.written_text)
            for prompt, answer in zip(self.prompts, first, strict=True)
            if len(answer.best) > (place := len(prompt.ids) - 1) and not answer._is_likeliest(place)
            if (best := answer.best[place]) and answer.written_text
        ]
        same = sum(best == written for best, written in known)
        if same > _TIES and same >= len(known) - _TIES:
            raise self._shifted(f"beside {same} of {len(known)} last tokens stands what it wrote after them")

    def _refuse_moved_list(self, first: Sequence[_PromptAnswer]) -> None:
        """ModelError unless the first two sentences have equal numbers up to where they part, and others there."""
        one, other = (prompt.ids for prompt in self.prompts[:2])
        parting = next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
        gaps = [
            abs(a - b) if a is not None and b is not None else 0.0
            for a, b in zip(first[0].logp[: parting + 1], first[1].logp[: parting + 1], strict=True)
        ]
        if gaps[-2] > WOBBLE and max(gaps[:-2], default=0.0) <= WOBBLE:
            raise self._shifted("each stands one token too early")
        if gaps[-1] < _EXACT:
            raise self._shifted("each stands one token too late")

    def _refuse_written_otherwise(
        self, first: Sequence[_PromptAnswer], followed: Mapping[int, _PromptAnswer]
    ) -> None:
        """ModelError where tokens that were written as the likeliest are not when they are read."""
        wrong: list[bool] = []
        for i, answer in followed.items():
            place, written = len(self.prompts[i].ids), first[i].written_logp
            read, likeliest = answer.logp[place], answer._is_likeliest(place)
            if likeliest is not None:
                wrong.append(not likeliest)
            elif read is not None and written is not None:
                wrong.append(abs(read - written) > _WRITTEN)
        if not wrong:
            warnings.warn(say("servers.unclear", name=self.name), stacklevel=2)
        if (number := sum(wrong)) > _TIES:
            raise self._shifted(f"{number} of {len(wrong)} likeliest tokens that it wrote are not when read")

    def _shifted(self, how: str) -> ModelError:
        return ModelError(say("servers.shifted", name=self.name, how=how))

    def _first_numbers(self, named: Mapping[str, Any]) -> tuple[float, ...]:
        """The numbers that name the model, beside what `named` says: those of its first meeting, or these, where it is
        new or nothing can be kept on disk. A warning says so where an address gives other answers than before."""
        digest, url = hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest(), self.address.url
        try:
            place = cache_folder() / "servers" / f"{digest[:32]}.json"
        except OutputError:
            return self.numbers
        met: list[dict[str, Any]] = []
        with suppress(OSError, ValueError, LookupError, TypeError):
            said = json.loads(place.read_text(encoding="utf-8"))
            met = [
                {**one, "numbers": tuple(map(float, one["numbers"])), "url": str(one["url"])} for one in said
            ]
        allowed = WOBBLE if self.wobble > _FLOAT32 else _MOVED
        for one in met:
            if _apart(one["numbers"], self.numbers) <= allowed:
                return tuple(one["numbers"])
        if before := [one for one in met if one["url"] == url]:
            last = {"time": str(before[-1].get("time")), "apart": _apart(before[-1]["numbers"], self.numbers)}
            warnings.warn(say("servers.another", url=url, **last), stacklevel=2)
        met.append({"url": url, "time": datetime.now(UTC).date().isoformat(), "numbers": self.numbers})
        with suppress(OSError, OutputError):  # only for the next time: without it everything is asked anew
            atomic_text(place, json.dumps(met))
        return self.numbers


def _apart(one: Sequence[float], other: Sequence[float]) -> float:
    return float(np.abs(np.subtract(one, other)).max(initial=0.0)) if len(one) == len(other) else float("inf")


def _difference(one: _PromptAnswer, other: _PromptAnswer) -> float:
    """The most by which an answer's numbers differ from the first ones of another, which may go on."""
    pairs = zip(one.logp, other.logp, strict=False)
    return max((abs(a - b) for a, b in pairs if a is not None and b is not None), default=0.0)


_SIGNS = str.maketrans({"\u0120": " ", "\u2581": " ", "\u010a": "\n", "\u0109": "\t"})


def _bare(word: str) -> str:
    """A token as text, apart from how a space, a line break or a tab is written."""
    return word.translate(_SIGNS).strip()


def _broken(word: str) -> bool:
    """Whether a token is a part of a character, which every server writes in its own way."""
    return "\ufffd" in word or word.startswith(("bytes:", "<0x")) or not word


def _first_tokens(tokens: Sequence[object]) -> str:
    return (
        f"{shown(', '.join(map(str, tokens[:6])))}{', …' if len(tokens) > 6 else ''} ({len(tokens)} tokens)"
    )


def open_served(model: str, settings: ModelSettings) -> _ServedModel:
    """The model on a server, checked before any text is sent; ModelError where it cannot be used."""
    address = parse_address(model)
    kind = model.partition(":")[0]
    here = f"for weights that are opened here, and {kind}: names a server, which has opened its own"
    settings.refuse(("revision", *OPENED), here)
    with connect(address, settings) as client:
        return _ServedModel(address, client, settings)


@contextmanager
def connect(address: ServerAddress, settings: ModelSettings) -> Iterator[Client]:
    """A client of the server, which is closed where the context ends with an error."""
    requests, seconds = settings.requests or REQUESTS, settings.request_timeout or SECONDS
    client = Client(address.url, requests=requests, seconds=seconds)
    try:
        yield client
    except BaseException:
        client.close()
        raise


def _list_models(client: Client) -> dict[str, Mapping[str, Any]]:
    """The models that a server says it holds, with what it says of each; ModelError for something else than a list."""
    found = client.find("/models")
    listed = found.get("data") if isinstance(found, dict) else found
    if listed is not None and not isinstance(listed, list):
        raise ModelError(say("servers.no_list", url=client.url))
    return {
        one["id"]: one for one in listed or () if isinstance(one, dict) and isinstance(one.get("id"), str)
    }


def choose_name(wanted: str, client: Client, held: Mapping[str, Any] | None = None) -> str:
    """The name of the model; ModelError where it is not served, or none was named and there are several."""
    held, url = _list_models(client) if held is None else held, client.url
    names = ", ".join(shown(one)[:200] for one in sorted(held)[:10]) + (", …" if len(held) > 10 else "")
    if wanted and held and wanted not in held:
        raise ModelError(f"{url} serves no model {wanted!r}: it has {names}.")
    if wanted:
        return wanted
    if len(held) == 1:
        return next(iter(held))
    if held:
        raise ModelError(f"{url} serves several models, name one with --model-args served_model: {names}.")
    raise ModelError(say("servers.unnamed", url=url))


def _limit(said: Mapping[str, Any]) -> int | None:
    """The longest prompt that a server takes beside the one token it writes, None where it does not say."""
    found = said.get("max_model_len")
    return found - 1 if isinstance(found, int) and 1 < found < 1 << 40 else None


# How each kind of server is asked, and how its answer is read: pure functions between token ids and JSON. Every prompt
# is followed by one generated token, because most servers want to write at least one; the self-check compares it with
# what the server then says of it as part of a prompt.

_Json = dict[str, Any]
PATH = "/completions"


@dataclass(frozen=True, slots=True)
class _Prompt:
    """What a server is to read: token ids, start token included, the text without it, and its tokens as text."""

    ids: tuple[int, ...]
    text: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _PromptAnswer:
    """What a server said of one prompt: `logp` with one entry a token, None where nothing was predicted, empty
    where it offers none; `ids` and `words`, the tokens as the server has them; `likeliest`, whether each is the
    likeliest at its place; `best`, the text of the one that is; `written_…`, the token that it wrote after the prompt.
    None where the server does not say."""

    logp: tuple[float | None, ...]
    ids: tuple[int, ...] | None = None
    words: tuple[str, ...] | None = None
    likeliest: tuple[bool | None, ...] = ()
    best: tuple[str | None, ...] = ()
    written_id: int | None = None
    written_text: str | None = None
    written_logp: float | None = None

    def _is_likeliest(self, place: int) -> bool | None:
        return self.likeliest[place] if place < len(self.likeliest) else None


@dataclass(frozen=True, slots=True)
class _Route:
    """How one kind of server is asked: by token ids of several prompts (`asks_ids`) or the text of one, with `body`
    beside them; `answer` reads what came back, LookupError, TypeError or ValueError for another form; `cure` is the
    sentence on how to start it so that it gives log-probabilities of prompts."""

    title: str
    asks_ids: bool
    body: _Json
    answer: Callable[[_Json, _Prompt], _PromptAnswer]
    cure: str

    def request(self, prompts: Sequence[_Prompt], model: str, *, text: bool = False) -> _Json:
        """The body for prompts; with `text` that for the text of the first, which shows the server's own tokens."""
        ids = self.asks_ids and not text
        return {
            **self.body,
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": 1,
            "return_token_ids": True,
            "add_special_tokens": False,
            "model": model,
            "prompt": [list(one.ids) for one in prompts] if ids else prompts[0].text,
        }


def _number(found: Any) -> float:
    """A number as JSON has them; ValueError for anything else, also for what Python would take for one."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ValueError(f"{str(found)[:20]!r} where a number belongs")
    try:
        made = float(found)
    except OverflowError:
        made = math.inf
    if not math.isfinite(made):
        raise ValueError("a number without end")
    return made


def _or_none(found: Any) -> float | None:
    return None if found is None else _number(found)


def _whole(found: Any) -> int:
    if isinstance(found, bool) or not isinstance(found, int):
        raise ValueError(f"{str(found)[:20]!r} where a token id belongs")
    return found


def _choices(body: Any, prompts: Sequence[_Prompt]) -> tuple[list[_Json], int | None]:
    """The choices in the order of the prompts, which is that of their index, and how many tokens were read."""
    choices = sorted(body["choices"], key=lambda one: int(one.get("index") or 0))
    if len(choices) != len(prompts):
        raise ValueError(f"{len(choices)} choices for {len(prompts)} prompts")
    told = [one["index"] for one in choices if one.get("index") is not None]
    if len(set(told)) < len(told):
        raise ValueError("several choices with one index")
    usage = body.get("usage") if isinstance(body, dict) else None
    found = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    used = found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None
    parts = body.get("prompt")
    if not isinstance(parts, list):
        return choices, used
    if len(parts) != len(prompts):  # Together answers beside the choices, not within them
        raise ValueError(f"{len(parts)} answers for {len(prompts)} prompts")
    return [{**one, "beside": part["logprobs"]} for one, part in zip(choices, parts, strict=True)], None


def _vllm_answer(choice: _Json, prompt: _Prompt) -> _PromptAnswer:
    told = choice.get("prompt_token_ids")
    ids = tuple(_whole(one) for one in told) if told else None
    after = (choice.get("token_ids") or [None])[0], choice.get("text")
    written = (*after, _or_none(((choice.get("logprobs") or {}).get("token_logprobs") or [None])[0]))
    said = choice.get("prompt_logprobs")
    if not said:
        return _PromptAnswer((), ids, None, (), (), *written)
    # The tokens that the entries themselves are of: those asked for where they are among their keys, else the keys;
    # nothing stands at the first place, so that its token is taken from the ids.
    asked = [*(ids or prompt.ids), *[-1] * len(said)]
    keys = tuple(
        id_ if entry is None or str(id_) in entry else int(next(iter(entry), ""))
        for id_, entry in zip(asked, said, strict=False)
    )
    own = [None if entry is None else entry[str(key)] for key, entry in zip(keys, said, strict=True)]
    ranks = [None if one is None else one.get("rank") for one in own]
    # Where the list of ids and the keys of the entries differ, what is not the prompt's is shown to the check.
    ids = ids if ids and (ids != prompt.ids or ids[: len(keys)] == keys) else keys
    logp = tuple(None if one is None else _number(one["logprob"]) for one in own)
    likeliest = tuple(_whole(rank) == 1 if rank else None for rank in ranks)
    return _PromptAnswer(logp, ids, None, likeliest, (), *written)


def _echo_answer(choice: _Json, prompt: _Prompt) -> _PromptAnswer:
    """The first `number` entries are the prompt's, all of them where they stand beside the choice."""
    own, number = choice.get("prompt_token_ids"), None
    if "beside" in choice:
        said, written = choice["beside"], _written(choice.get("logprobs") or {}, 0, choice, "")
    else:
        said, number = {"token_ids": own, **(choice.get("logprobs") or {})}, len(own or prompt.ids)
        written = _written(said, number, choice, prompt.text)
    logp = [_or_none(one) for one in said.get("token_logprobs") or ()][:number]
    words = [str(word) for word in said.get("tokens") or ()]
    if words and len(words) != len(said.get("token_logprobs") or words):
        raise ValueError("lists of numbers and tokens of different lengths")
    tops: list[Mapping[str, Any] | None] = list(said.get("top_logprobs") or [None] * len(logp))
    best = tuple(max(top, key=lambda word: _number(top[word])) if top else None for top in tops)
    likeliest = tuple(
        own >= max(_number(one) for one in top.values()) - 1e-6 if own is not None and top else None
        for own, top in zip(logp, tops, strict=False)
    )
    ids = tuple(_whole(one) for one in said.get("token_ids") or ())[:number] or None
    return _PromptAnswer(tuple(logp), ids, tuple(words) or None, likeliest, best, *written)


def _written(said: _Json, place: int, choice: _Json, text: str) -> tuple[Any, str, float | None]:
    """Id, text and log-probability of the token behind the prompt; its text is also what the answer has behind it."""
    id_, word, logp = (
        found[place] if len(found := said.get(name) or ()) > place else None
        for name in ("token_ids", "tokens", "token_logprobs")
    )
    ids = choice.get("token_ids")
    behind = str(choice.get("text") or "").removeprefix(text)
    return ids[-1] if ids else id_, behind if word is None else word, _or_none(logp)


ROUTES: Mapping[str, tuple[_Route, ...]] = {
    "vllm": (_Route("vLLM", True, {"prompt_logprobs": 0}, _vllm_answer, "servers.vllm_cure"),),
    "completions": tuple(
        _Route("completions with echo", asks_ids, {"echo": True}, _echo_answer, "servers.echo_cure")
        for asks_ids in (True, False)
    ),
}
"""The routes of each kind of server, in the order in which they are tried."""
