"""What is asked of a server before a text of the user: are its numbers log-probabilities of these tokens?

Six sentences of ours are sent together; in reverse order; together with longer texts; two of them alone; and each with
the token that the server itself wrote after it. From the answers follows whether the tokens are ours, whether every
token has one number, whether numbers depend on what else was asked or on what comes later, and
whether they belong to the tokens beside which they stand:

- Two sentences begin alike. Up to where they part their numbers must agree, and there they must differ. A server
  whose list is moved by one place is wrong at one of the two.
- A token that the server wrote as the likeliest must be the likeliest when it is read. A server
  that takes the distribution after a token for the one before it (llama-cpp-python without a start token) fails.
  Where it names the likeliest token beside each, that shows in one answer: beside a text's last token stands the one
  that it wrote after it.
- What stands at the beginning of a longer text has the numbers that it has by itself: a model reads from left to right.

Every answer must be about the tokens that were sent. During a run the sentences are asked again: their numbers must be
those of the first time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from pretrace.backends.serving.address import ServerAddress
from pretrace.backends.serving.client import Client, NotTakenError, OpenRequests
from pretrace.backends.serving.engine import Engine
from pretrace.backends.serving.routes import PATH, Prompt, PromptAnswer, Route
from pretrace.backends.tokens import Tokens
from pretrace.errors import ModelError

SENTENCES = (
    "The old mill by the river was sold in March to a baker from the next town, who painted its door green.",
    "The old mill by the river never turned again after the long summer of 1921, when the water was low.",
    "Seven boxes of letters stood under the stairs; nobody had opened them since the move.",
    "To fold the map, begin at the left edge and follow the dotted line down to the harbour.",
    "When asked about the price, the clerk laughed, closed the book, and pointed at the clock above the shelf.",
    "Rain is expected over the hills tonight.",
)
"""Written for this check; the first two begin alike."""
WOBBLE = 1e-2
"""By how much a log-probability may move, in nats, between one request and another of the same size."""
_COMPANY = 1e-1
"""The same alone and in company, or with more text behind it: in bfloat16 the size of a request decides how it is
computed. What moves is recorded and told; vLLM's VLLM_BATCH_INVARIANT=1 makes it 0."""
_STILL = 1e-3
"""By how much the known sentences may move during a run, where they stood still when connecting."""
LOWEST = -1000.0
"""No model gives a token of ordinary text less; servers write -9999 for what they do not compute."""
_WRITTEN = (
    0.1  # nats: a token's number when written and when read; bfloat16 computes the two in different ways
)
_EXACT = (
    1e-5  # nats: two tokens with the same number at the place where two sentences part are the same entry
)
_TIES = 1  # of the sentences, one may be followed by another token: two may be equally likely

_SHAPES = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)  # what reading an answer of another form raises


@dataclass(frozen=True, slots=True)
class Probed:
    """What a server answered: `numbers` of all sentences in a row, how far they moved (`wobble`, nats), whether
    they are `identical` to the last bit, `answers` to each sentence, and `met`, the numbers of the first meeting."""

    numbers: tuple[float, ...]
    wobble: float
    identical: bool
    answers: tuple[PromptAnswer, ...] = field(repr=False, default=())
    met: tuple[float, ...] = field(repr=False, default=())

    @property
    def allowed(self) -> float:
        return min(_COMPANY, max(_STILL, 3 * self.wobble))


class CheckedServer:
    """A server that is asked for prompts' log-probabilities and checked; `route` is how, `model` the name it knows the
    model by, `tokens` the tokenizer here."""

    def __init__(
        self, address: ServerAddress, client: Client | Engine, route: Route, model: str, tokens: Tokens
    ) -> None:
        self.address, self.client, self.route, self.model, self.tokens = address, client, route, model, tokens
        # tokens more than ours it may read, where a user said that its start token is none of theirs
        self.spare = int(tokens.start == "never" and not route.asks_ids)
        self.name = f"{address.kind}:{address.url}" + (f"#{model}" if model else "")

    def ask(self, prompts: Sequence[Prompt]) -> list[PromptAnswer]:
        """An answer to each prompt, as `checked`; ModelError where the server refuses or answers in another form."""
        groups = [prompts] if self.route.asks_ids else [[one] for one in prompts]
        found: dict[int, list[PromptAnswer]] = {}
        with OpenRequests(self.client) as asked:
            for i, group in enumerate(groups):
                self.send(asked, i, group)
            for i, body in asked.answers():
                found[i] = self.read(body, groups[i])
        return self.checked(prompts, [answer for i in range(len(groups)) for answer in found[i]])

    def send(self, asked: OpenRequests, name: Any, prompts: Sequence[Prompt]) -> None:
        """Send one request; its answer comes under this name."""
        asked.send(name, PATH, self.route.request(prompts, self.model))

    def ask_text(self, prompt: Prompt, read_as: Prompt) -> PromptAnswer:
        """The answer to the text of a prompt, read as that to another; errors as for `ask`."""
        body = self.client.ask(PATH, self.route.request([prompt], self.model, text=True))
        return self.read(body, [read_as], whole=False)[0]

    def read(self, body: Any, prompts: Sequence[Prompt], *, whole: bool = True) -> list[PromptAnswer]:
        """The answers in what a server sent. `whole`: it was sent exactly these tokens, and may count no more."""
        try:
            answers, read = self.route.answers(body, prompts)
        except _SHAPES as error:
            raise ModelError(
                f"{self.client.url} does not answer as {self.route.title} does "
                f"({self.client.plain(str(error))[:80] or type(error).__name__}): check the address and the kind of "
                f"server. It said: {self.client.quoted(body)}"
            ) from None
        if whole:
            self._read_no_more(read, prompts)
        return answers

    def _read_no_more(self, read: int | None, prompts: Sequence[Prompt]) -> None:
        """ModelError where the server says that it read more tokens than it was sent."""
        sent = sum(len(one.ids) for one in prompts)
        if read is not None and read > sent + self.spare:
            raise ModelError(
                f"{self.name} says that it read {read} tokens where {sent} were sent: it puts a start token or a "
                "chat template around texts. Start it so that it does not, or name --start always where it is the "
                "model's own start token."
            )

    @cached_property
    def prompts(self) -> tuple[Prompt, ...]:
        return tuple(map(self._prompt, SENTENCES))

    def _prompt(self, text: str) -> Prompt:
        ids = self.tokens.encode([text])[0]
        words = tuple(text[a:b] for a, b in self.tokens.spans(text))
        return Prompt(tuple(int(one) for one in (*ids.prefix, *ids.tokens)), text, words)

    @cached_property
    def _pieces(self) -> Callable[[int], tuple[str, str]]:
        """The ways in which servers write a token: decoded, and as the vocabulary has it."""
        rust = self.tokens.rust
        return cache(lambda id_: (rust.decode([id_], skip_special_tokens=False), rust.id_to_token(id_) or ""))

    def _extended(self, prompt: Prompt, answer: PromptAnswer) -> Prompt | None:
        """The prompt with the token more that the server wrote; None where it cannot be told from its text."""
        written, number = answer.generated, len(prompt.ids)
        if self.route.asks_ids and written.id is not None:
            return Prompt((*prompt.ids, int(written.id)))
        made = self._prompt(prompt.text + (written.text or ""))
        if len(made.ids) != number + 1 or made.ids[:number] != prompt.ids or "\ufffd" in made.text:
            return None  # a part of a character, or a token that merges with the one before it
        return made if written.id in (None, made.ids[number]) else None

    def same_tokenizer(self) -> None:
        """ModelError where the server cuts a text of the check into other tokens than the tokenizer here; nothing where
        it takes no text."""
        start = len(self.tokens.prefix)
        for prompt in self.prompts[:2] if self.route.asks_ids else ():  # else the check itself sends text
            own = Prompt(prompt.ids[start:], prompt.text, prompt.words)
            try:
                answer = self.ask_text(prompt, own)
            except NotTakenError:
                return
            if answer.ids is not None:
                if not _begins(answer.ids, own.ids):
                    self.same_cut(own, answer)
            elif answer.words and not any(self.same_words(own, answer.words[skip:]) for skip in range(3)):
                self.same_cut(own, answer)

    def run(self) -> Probed:
        """What the server answered; ModelError, with the reason, where its numbers cannot be used."""
        first = self.ask(self.prompts)
        self._not_constant(first)
        self._not_after(first)
        self._not_moved(first)
        pairs = self._asked_again(first)
        longer = {i: made for i, one in enumerate(first) if (made := self._extended(self.prompts[i], one))}
        followed = dict(zip(longer, self.ask(tuple(longer.values())), strict=True)) if longer else {}
        pairs += [(first[i], answer) for i, answer in followed.items()]
        wobble = max(_difference(*pair) for pair in pairs)
        in_order = max(_difference(*pair) for pair in pairs[: len(first)])
        if in_order > WOBBLE or wobble > _COMPANY:
            raise ModelError(
                f"{self.name} gives other numbers for the same text when it is asked again, in another order or with "
                f"more text behind it (up to {wobble:.2g} nats): answers are mixed up or depend on what else is "
                f"computed. {_STEADY}"
            )
        self._written_and_read(first, followed)
        return Probed(
            numbers=tuple(float(one) for answer in first for one in answer.logp if one is not None),
            wobble=wobble,
            identical=all(
                _difference(*pair) == 0 for pair in pairs if len(pair[0].logp) == len(pair[1].logp)
            ),
            answers=tuple(first),
        )

    def _asked_again(self, first: Sequence[PromptAnswer]) -> list[tuple[PromptAnswer, PromptAnswer]]:
        """The first answers beside those to the same texts, asked again in another order, then in other company: pairs,
        of which the second may go on."""
        again = self.ask(self.prompts[::-1])
        joined = [(i, self._prompt(f"{SENTENCES[i]} {SENTENCES[i + 2]}")) for i in (0, 3)]
        joined = [(i, one) for i, one in joined if one.ids[: len(self.prompts[i].ids)] == self.prompts[i].ids]
        answers = self.ask((*self.prompts, *(one for _, one in joined)))
        number = len(first)
        pairs = list(zip(first, again[::-1], strict=True))
        pairs += list(zip(first, answers[:number], strict=True))
        pairs += [(first[i], answers[number + place]) for place, (i, _) in enumerate(joined)]
        if self.route.asks_ids:
            pairs += [(first[i], self.ask(self.prompts[i : i + 1])[0]) for i in (0, 3)]
        return pairs

    def checked(self, prompts: Sequence[Prompt], answers: list[PromptAnswer]) -> list[PromptAnswer]:
        """The answers; ModelError where one is not about its prompt's tokens, or its numbers are none."""
        wanted, found = [one.ids for one in prompts], [one.ids or () for one in answers]
        if wanted != found and sorted(wanted) == sorted(found):
            raise ModelError(
                f"{self.name} answers several prompts in another order than they were asked in: its answers cannot be "
                "told apart. Update the server, or take what stands in front of it away."
            )
        for prompt, answer in zip(prompts, answers, strict=True):
            self.check(prompt, answer)
        return answers

    def check(self, prompt: Prompt, answer: PromptAnswer) -> None:
        """ModelError unless the answer has log-probabilities, our tokens, one number each, and none for the first."""
        if not any(one is not None for one in answer.logp):
            raise ModelError(f"{self.name} gives no log-probabilities of prompts: {self.route.cure}.")
        self.same_cut(prompt, answer)
        if _without_start(prompt, answer):
            raise ModelError(
                f"{self.name} puts a start token in front and leaves it out of its answer, so that the first token "
                "has no number: name --start never. Its numbers are then those of a text with its start token."
            )
        if len(answer.logp) != len(prompt.ids):
            raise ModelError(
                f"{self.name} gives {len(answer.logp)} numbers for {len(prompt.ids)} tokens: its tokenizer or "
                "its start token is not the one here. Name its own with --tokenizer, or try --start never or always."
            )
        if answer.logp[0] is not None:
            raise ModelError(
                f"{self.name} gives a log-probability for the very first token, which nothing precedes: it puts a "
                "token of its own in front, or its numbers are shifted by one. They cannot be used."
            )
        for one in answer.logp[1:]:
            if one is None or not LOWEST <= one <= 1e-3:
                raise ModelError(
                    f"{self.name} gives numbers that are no log-probabilities (above 0, missing, or -9999): what it "
                    "computes is not passed on. They cannot be used."
                )

    def same_cut(self, prompt: Prompt, answer: PromptAnswer) -> None:
        """ModelError unless the answer is about the prompt's tokens, by all that it says of them: ids or the keys of
        its entries, and where it has neither, words."""
        if answer.ids is not None and answer.ids != prompt.ids:
            raise ModelError(
                f"{self.name} reads other tokens than the tokenizer here gives, or answers another text than it was "
                "asked: name the server's own with --tokenizer (or another start rule with --start). Of one text it "
                f"has {_ids(answer.ids)}, here it is {_ids(prompt.ids)}."
            )
        if answer.ids is not None or not answer.logp:
            return
        if not answer.words:
            raise ModelError(
                f"{self.name} gives numbers without saying of which tokens, neither as ids nor as words: answers that "
                "were mixed up could not be told. They cannot be used."
            )
        if _without_start(prompt, answer):
            return  # told by name afterwards
        if not self.same_words(prompt, answer.words):
            raise ModelError(
                f"{self.name} cuts a text into other tokens than the tokenizer here does, or answers another text than "
                "it was asked: name the server's own with --tokenizer (or another start rule with --start)."
            )

    def known_again(
        self, numbers: Sequence[PromptAnswer], asked: Sequence[PromptAnswer], probed: Probed
    ) -> None:
        """ModelError where known sentences have other numbers during the run than when connecting."""
        moved = max(_difference(one, other) for one, other in zip(numbers, asked, strict=True))
        if moved > probed.allowed:
            raise ModelError(
                f"{self.name} gives other numbers for a sentence of the check than when it was connected (by "
                f"{moved:.2g} nats, where {probed.allowed:.2g} are allowed): its model or its settings changed, or its "
                "numbers depend on what else it computes. The run stops; what was answered since the last such "
                f"question is not kept. {_STEADY}"
            )

    def same_words(self, prompt: Prompt, words: Sequence[str]) -> bool:
        """Whether an answer's words are the prompt's tokens: none may be another, and most must be told."""
        own = prompt.ids
        if len(words) < len(own):
            return False
        told = 0
        for place, (id_, word) in enumerate(zip(own, words, strict=False)):
            known, said = {_bare(one) for one in self._pieces(id_)}, _bare(word)
            if word.startswith("token_id:"):
                if word != f"token_id:{id_}":
                    return False
                told += 1
            elif said in known:
                told += bool(said)
            elif said and not _broken(word) and not any(map(_broken, self._pieces(id_))) and place:
                return False  # at the first place a start token may be written in any way
        readable = sum(any(_bare(one) for one in self._pieces(id_)) for id_ in own)
        return 2 * told >= readable - 2

    def _not_constant(self, answers: Sequence[PromptAnswer]) -> None:
        numbers = np.array([one for answer in answers for one in answer.logp if one is not None])
        if np.ptp(numbers) < 1e-6:
            raise ModelError(
                f"{self.name} gives the same number, {numbers[0]:g}, for every token: these are no log-probabilities. "
                f"{self.route.cure}."
            )

    def _not_after(self, answers: Sequence[PromptAnswer]) -> None:
        """Whether the likeliest token beside the last of a text is the one that was written after it."""
        last = [
            (answer.best[place], answer.generated.text)
            for prompt, answer in zip(self.prompts, answers, strict=True)
            if len(answer.best) > (place := len(prompt.ids) - 1) and not _likeliest(answer, place)
        ]
        known = [(best, written) for best, written in last if best and written]
        same = sum(best == written for best, written in known)
        if same > _TIES and same >= len(known) - _TIES:
            self._shifted(
                f"beside {same} of {len(known)} last tokens stands what it wrote after them; {_AFTER}"
            )

    def _not_moved(self, answers: Sequence[PromptAnswer]) -> None:
        """Where the first two sentences part: equal before, different there."""
        one, other = (prompt.ids for prompt in self.prompts[:2])
        parting = next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
        gaps = [
            abs(a - b) if a is not None and b is not None else 0.0
            for a, b in zip(answers[0].logp[: parting + 1], answers[1].logp[: parting + 1], strict=True)
        ]
        if gaps[-2] > WOBBLE and max(gaps[:-2], default=0.0) <= WOBBLE:
            self._shifted("each stands one token too early")
        if gaps[-1] < _EXACT:
            self._shifted("each stands one token too late")

    def _written_and_read(self, first: Sequence[PromptAnswer], followed: Mapping[int, PromptAnswer]) -> None:
        known, others = 0, 0
        for i, answer in followed.items():
            place, written = len(self.prompts[i].ids), first[i].generated.logp
            read, likeliest = answer.logp[place], _likeliest(answer, place)
            if likeliest is not None:
                wrong = not likeliest
            elif read is not None and written is not None:
                wrong = abs(read - written) > _WRITTEN
            else:
                continue
            known, others = known + 1, others + wrong
        if not known:
            warnings.warn(
                f"{self.name} does not say enough to see whether its numbers are shifted by one token: compare a few "
                "with a model of known weights.",
                stacklevel=2,
            )
        if others > _TIES:
            self._shifted(
                f"{others} of {known} tokens that it wrote as the likeliest are not when it reads them; {_AFTER}"
            )

    def _shifted(self, how: str) -> None:
        raise ModelError(
            f"{self.name} gives log-probabilities that are shifted by one token ({how}), as llama-cpp-python does for "
            "models without a start token: they cannot be used. Take another server, or open the weights here (a .gguf "
            "file too)."
        )


_AFTER = "each number is that of the distribution after its token"
_STEADY = (
    "Start the server without a prefix cache (vLLM: --no-enable-prefix-caching) and so that numbers do not depend on "
    "other requests (vLLM: VLLM_BATCH_INVARIANT=1; --dtype float32 where that is not possible)."
)


def _difference(one: PromptAnswer, other: PromptAnswer) -> float:
    """The most by which an answer's numbers differ from the first ones of another, which may go on."""
    return max(
        (abs(a - b) for a, b in zip(one.logp, other.logp, strict=False) if a is not None and b is not None),
        default=0.0,
    )


def _likeliest(answer: PromptAnswer, place: int) -> bool | None:
    return answer.likeliest[place] if place < len(answer.likeliest) else None


def _begins(found: tuple[int, ...], own: tuple[int, ...]) -> bool:
    """Whether the server's tokens are ours, after at most two start tokens of its own; the last may be cut off."""
    size = len(own)
    return len(found) >= size and any(
        found[start : start + size] == own[: len(found) - start] for start in range(3)
    )


def _bare(word: str) -> str:
    """A token as text, apart from how a space, a line break or a tab is written."""
    for sign, meant in _SIGNS.items():
        word = word.replace(sign, meant)
    return word.strip()


_SIGNS = {"\u0120": " ", "\u2581": " ", "\u010a": "\n", "\u0109": "\t"}


def _broken(word: str) -> bool:
    """Whether a token is a part of a character, which every server writes in its own way."""
    return "\ufffd" in word or word.startswith(("bytes:", "<0x")) or not word


def _without_start(prompt: Prompt, answer: PromptAnswer) -> bool:
    """Whether the server's list begins with the text, and not with the start token before it."""
    number = len(prompt.words)
    if not number or not answer.words or len(prompt.ids) == number or answer.ids is not None:
        return False
    return [_bare(one) for one in answer.words[:number]] == [_bare(one) for one in prompt.words]


def _ids(ids: Sequence[int]) -> str:
    return f"{', '.join(map(str, ids[:6]))}{', …' if len(ids) > 6 else ''} ({len(ids)} tokens)"
