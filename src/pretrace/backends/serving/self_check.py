"""What is asked of a server before any text of the user: are its numbers log-probabilities of these tokens?

Six sentences of ours are sent three times: as they are, in reverse order, and each with the token that the server
itself wrote after it. From the answers follows whether the tokens are ours, whether every token has one number,
whether numbers depend on what else was asked, and whether they belong to the tokens beside which they stand:

- Two sentences begin alike. Up to where they part their numbers must agree, and there they must differ. A server
  whose list is moved by one place is wrong at one of the two.
- A token that the server wrote as the likeliest must be the likeliest when it is read, with the same number. A server
  that takes the distribution after a token for the one before it (llama-cpp-python without a start token) fails.
  Where it names the likeliest token beside each, that shows in one answer: beside a text's last token stands the one
  that it wrote after it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pretrace.backends.serving.routes import Answer, Prompt, Route, sound
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
"""By how much a log-probability may move, in nats, between one request and another."""
_WRITTEN = (
    0.1  # nats: a token's number when written and when read; bfloat16 computes the two in different ways
)
_EXACT = (
    1e-5  # nats: two tokens with the same number at the place where two sentences part are the same entry
)
_TIES = 1  # of the sentences, one may be followed by another token: two may be equally likely

Ask = Callable[[Sequence[Prompt]], list[Answer]]


@dataclass(frozen=True, slots=True)
class Probed:
    """What a server answered: `numbers` of all sentences in a row, and how far they moved (`wobble`, nats)."""

    numbers: tuple[float, ...]
    wobble: float


@dataclass(frozen=True, slots=True)
class Check:
    """The check of one server. `name` is what messages call it; `extend` is the prompt with one token more, None
    where the token cannot be told from its text."""

    name: str
    route: Route
    prompts: tuple[Prompt, ...]
    extend: Callable[[Prompt, Answer], Prompt | None]

    def run(self, ask: Ask) -> Probed:
        """What the server answered; ModelError, with the reason, where its numbers cannot be used."""
        first = ask(self.prompts)
        self._in_order(self.prompts, first)
        for prompt, answer in zip(self.prompts, first, strict=True):
            self.offered(answer)
            self.same_tokens(prompt, answer)
        self._not_constant(first)
        self._not_after(first)
        self._not_moved(first)
        turned = ask(self.prompts[::-1])[::-1]
        longer = {i: made for i, one in enumerate(first) if (made := self.extend(self.prompts[i], one))}
        followed = dict(zip(longer, ask(tuple(longer.values())), strict=True)) if longer else {}
        self._in_order(self.prompts, turned)
        for i, answer in enumerate(turned):
            self.same_tokens(self.prompts[i], answer)
        for i, answer in followed.items():
            self.same_tokens(longer[i], answer)
        begun = {i: replace(one, logp=one.logp[: len(self.prompts[i].ids)]) for i, one in followed.items()}
        wobble = max(_difference(first[i], other) for i, other in (*enumerate(turned), *begun.items()))
        if wobble > WOBBLE:
            raise ModelError(
                f"{self.name} gives other numbers for the same text when it is asked again or in another order (up to "
                f"{wobble:.2g} nats): answers are mixed up or depend on what else is computed. {_STEADY}"
            )
        self._written_and_read(first, followed)
        numbers = tuple(float(one) for answer in first for one in answer.logp if one is not None)
        return Probed(numbers, wobble)

    def offered(self, answer: Answer) -> None:
        """ModelError where there are no log-probabilities, or some were remembered and not computed."""
        if not any(one is not None for one in answer.logp):
            raise ModelError(f"{self.name} gives no log-probabilities of prompts: {self.route.cure}.")
        if answer.cached:
            raise ModelError(
                f"{self.name} remembers how a text begins and leaves out its log-probabilities: {self.route.cure}."
            )

    def same_tokens(self, prompt: Prompt, answer: Answer) -> None:
        """ModelError unless the answer has our tokens, one number each, and none for the first."""
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
        if not sound(answer):
            raise ModelError(
                f"{self.name} gives numbers that are no log-probabilities (above 0, missing, or -9999): what it "
                "computes is not passed on. They cannot be used."
            )

    def same_cut(self, prompt: Prompt, answer: Answer) -> None:
        """ModelError unless the server cuts a text into the tokens that the tokenizer here gives."""
        if answer.ids is not None and answer.ids != prompt.ids:
            raise ModelError(
                f"{self.name} reads other tokens than the tokenizer here gives: name the server's own with --tokenizer "
                f"(or another start rule with --start). Of one text it has {_ids(answer.ids)}, here it is "
                f"{_ids(prompt.ids)}."
            )
        if answer.ids is None and not _same_words(prompt.words, answer.words):
            raise ModelError(
                f"{self.name} cuts a text into other tokens than the tokenizer here does: name the server's own with "
                "--tokenizer (or another start rule with --start)."
            )

    def _in_order(self, prompts: Sequence[Prompt], answers: Sequence[Answer]) -> None:
        """Whether each answer is that to its own prompt, as far as the tokens show it."""
        wanted = [(len(one.ids), one.ids) for one in prompts]
        found = [(len(one.logp), one.ids or ()) for one in answers]
        known = all(ids for _, ids in found)
        pairs = (
            [(n, ids if known else ()) for n, ids in wanted],
            [(n, ids if known else ()) for n, ids in found],
        )
        if pairs[0] != pairs[1] and sorted(pairs[0]) == sorted(pairs[1]):
            raise ModelError(
                f"{self.name} answers several prompts in another order than they were asked in: its answers cannot be "
                "told apart. Update the server, or take what stands in front of it away."
            )

    def _not_constant(self, answers: Sequence[Answer]) -> None:
        numbers = np.array([one for answer in answers for one in answer.logp if one is not None])
        if np.ptp(numbers) < 1e-6:
            raise ModelError(
                f"{self.name} gives the same number, {numbers[0]:g}, for every token: these are no log-probabilities. "
                f"{self.route.cure}."
            )

    def _not_after(self, answers: Sequence[Answer]) -> None:
        """Whether the likeliest token beside the last of a text is the one that was written after it."""
        last = [
            (answer.best[place], answer.generated.text)
            for prompt, answer in zip(self.prompts, answers, strict=True)
            if len(answer.best) > (place := len(prompt.ids) - 1) and not answer.likeliest[place]
        ]
        known = [(best, written) for best, written in last if best and written]
        same = sum(best == written for best, written in known)
        if same > _TIES and same >= len(known) - _TIES:
            self._shifted(
                f"beside {same} of {len(known)} last tokens stands what it wrote after them; {_AFTER}"
            )

    def _not_moved(self, answers: Sequence[Answer]) -> None:
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

    def _written_and_read(self, first: Sequence[Answer], followed: Mapping[int, Answer]) -> None:
        """The token that the server wrote, when it is read as part of the text."""
        known, wrong = 0, 0
        for i, answer in followed.items():
            place, written = len(self.prompts[i].ids), first[i].generated.logp
            read = answer.logp[place]
            likeliest = answer.likeliest[place] if place < len(answer.likeliest) else None
            if read is not None and written is not None:
                agrees = abs(read - written) <= _WRITTEN
            elif likeliest is not None:
                agrees = likeliest
            else:
                continue
            known, wrong = known + 1, wrong + (not agrees)
        if not known:
            warnings.warn(
                f"{self.name} does not say enough to see whether its numbers are shifted by one token: compare a few "
                "with a model of known weights.",
                stacklevel=2,
            )
        if wrong > _TIES:
            self._shifted(
                f"{wrong} of {known} tokens that it wrote as the likeliest are not when it reads them; {_AFTER}"
            )

    def _shifted(self, how: str) -> None:
        raise ModelError(
            f"{self.name} gives log-probabilities that are shifted by one token ({how}), as llama-cpp-python does for "
            "models without a start token: they cannot be used. Take another server, or open the weights here (a .gguf "
            "file too)."
        )


_AFTER = "each number is that of the distribution after its token"
_STEADY = (
    "Start the server without a prefix cache (vLLM: --no-enable-prefix-caching) and with "
    "--dtype float32 or bfloat16."
)


def _difference(one: Answer, other: Answer) -> float:
    return max(
        (abs(a - b) for a, b in zip(one.logp, other.logp, strict=True) if a is not None and b is not None),
        default=0.0,
    )


def _same_words(ours: Sequence[str], theirs: Sequence[str] | None) -> bool:
    """Whether tokens stand among others in the same order, as text, apart from how a space is written."""
    if not ours or not theirs:
        return True
    own, other = ([word.strip(" \u0120\u2581") for word in some] for some in (ours, theirs))
    return any(other[start : start + len(own)] == own for start in range(len(other) - len(own) + 1))


def _without_start(prompt: Prompt, answer: Answer) -> bool:
    """Whether the server's list begins with the text, and not with the start token before it."""
    number = len(prompt.words)
    if not number or not answer.words or len(prompt.ids) == number:
        return False
    return answer.ids is None and _same_words(prompt.words, answer.words[:number])


def _ids(ids: Sequence[int]) -> str:
    return f"{', '.join(map(str, ids[:6]))}{', …' if len(ids) > 6 else ''} ({len(ids)} tokens)"
