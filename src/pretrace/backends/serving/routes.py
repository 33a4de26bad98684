"""How each kind of server is asked for the log-probabilities of prompts, and how its answer is read.

Pure functions between token ids and JSON. Every prompt is followed by one generated token, because most servers
want to write at least one; the self-check compares it with what the server then says of it as part of a prompt.
Beside each token's own number stand those of the likeliest tokens, where a server gives them: probabilities that come
to more than 1 are none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_Json = dict[str, Any]
BESIDE = 2
"""Likeliest tokens that every request asks for beside each token's own: a made-up 0 shows next to any second one."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a server is to read: token ids, start token included, and the text without it. `words` are its tokens as
    text, where they shall be compared."""

    ids: tuple[int, ...]
    text: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NextToken:
    """The token that a server wrote after a prompt; None where it does not say. `top` are the numbers of the likeliest
    tokens there, itself among them."""

    id: int | None = None
    text: str | None = None
    logp: float | None = None
    top: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenPlace:
    """What a server says of one place besides the number of the token that stands there.

    `top` are the numbers of the likeliest tokens and of the token itself, each token once; `own` is the token's own
    number among them, None where it is not listed; `rank` 1 for the likeliest.
    """

    top: tuple[float, ...] = ()
    own: float | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class PromptAnswer:
    """What a server said of one prompt.

    `logp` has one entry a token, None where nothing was predicted; it is empty where the server offers none. `ids`
    are the tokens as the server has them and `words` the same as text, with what it wrote, None where it does not
    say. `places` holds what else is said of each token; `best` is the text of the likeliest token beside each, None
    where the server does not say.
    """

    logp: tuple[float | None, ...]
    ids: tuple[int, ...] | None = None
    words: tuple[str, ...] | None = None
    places: tuple[TokenPlace, ...] = ()
    best: tuple[str | None, ...] = ()
    generated: NextToken = NextToken()

    def likeliest(self, place: int) -> bool | None:
        """Whether the token at a place is the likeliest there; None where the server does not say."""
        said, own = self.places[place] if place < len(self.places) else TokenPlace(), self.logp[place]
        if said.rank is not None:
            return said.rank == 1
        return None if own is None or not said.top else own >= max(said.top) - 1e-6


@dataclass(frozen=True, slots=True)
class RequestAnswers:
    """All answers of one request, in the order of the prompts. `read` is the number of tokens that the server says it
    read for them, None where it does not say."""

    answers: list[PromptAnswer]
    read: int | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """How one kind of server is asked.

    `asks_ids` says that token ids are sent, and not text; `several`, that a request takes several prompts. `request`
    makes the body for prompts, a model's name and a number of likeliest tokens; `answers` reads what came back. It
    raises LookupError, TypeError or ValueError for an answer of another form. `cure` tells how a server of this kind is
    started so that it gives log-probabilities of prompts.
    """

    title: str
    path: str
    asks_ids: bool
    several: bool
    request: Callable[[Sequence[Prompt], str, int], _Json]
    answers: Callable[[Any, Sequence[Prompt]], RequestAnswers]
    cure: str


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


def _used(body: Any) -> int | None:
    """The tokens that the server says it read."""
    usage = body.get("usage") if isinstance(body, dict) else None
    found = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def _vllm_request(prompts: Sequence[Prompt], model: str, beside: int) -> _Json:
    return {
        "model": model,
        "prompt": [list(one.ids) for one in prompts],
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": 1,
        "prompt_logprobs": beside,
        "return_token_ids": True,
        "add_special_tokens": False,
    }


def _vllm_text(prompts: Sequence[Prompt], model: str) -> _Json:
    return {**_vllm_request(prompts, model, 0), "prompt": [one.text for one in prompts]}


def _vllm_answers(body: Any, prompts: Sequence[Prompt]) -> RequestAnswers:
    choices = _choices(body, prompts)
    return RequestAnswers(
        [_vllm_answer(choice, prompt) for choice, prompt in zip(choices, prompts, strict=True)], _used(body)
    )


def _vllm_answer(choice: _Json, prompt: Prompt) -> PromptAnswer:
    told = choice.get("prompt_token_ids")
    ids = tuple(_whole(one) for one in told) if told else None
    written = choice.get("token_ids") or [None]
    generated = NextToken(written[0], choice.get("text"), _first(choice.get("logprobs")))
    said = choice.get("prompt_logprobs")
    if not said:
        return PromptAnswer((), ids, generated=generated)
    keys = _keys(said, ids or prompt.ids)
    places, logp = [], []
    for key, entry in zip(keys, said, strict=True):
        own = None if entry is None else entry[str(key)]
        logp.append(None if own is None else _number(own["logprob"]))
        places.append(_entry(entry, own))
    # Where the list of ids and the keys of the entries differ, what is not the prompt's is shown to the check.
    ids = ids if ids and (ids != prompt.ids or ids[: len(keys)] == keys) else keys
    return PromptAnswer(logp=tuple(logp), ids=ids, places=tuple(places), generated=generated)


def _keys(said: Sequence[_Json | None], ids: Sequence[int]) -> tuple[int, ...]:
    """The tokens that the entries themselves are of: those asked for where they are among their keys, else the keys;
    nothing stands at the first place, so that its token is taken from the ids."""
    found = []
    for place, entry in enumerate(said):
        asked = ids[place] if place < len(ids) else None
        if entry is None:
            found.append(-1 if asked is None else asked)
        elif asked is not None and str(asked) in entry:
            found.append(asked)
        else:
            found.append(int(next(iter(entry), "")))
    return tuple(found)


def _entry(entry: Mapping[str, _Json] | None, own: _Json | None) -> TokenPlace:
    if entry is None or own is None:
        return TokenPlace()
    rank = own.get("rank")
    return TokenPlace(
        top=tuple(_number(one["logprob"]) for one in entry.values()),
        own=_number(own["logprob"]),
        rank=_whole(rank) if rank else None,
    )


def _first(logprobs: Mapping[str, Any] | None) -> float | None:
    found = (logprobs or {}).get("token_logprobs") or [None]
    return _or_none(found[0])


def _echo_ids(prompts: Sequence[Prompt], model: str, beside: int) -> _Json:
    return {
        **_ECHO,
        "model": model,
        "prompt": [list(one.ids) for one in prompts],
        "logprobs": max(1, beside),
    }


def _echo_text(prompts: Sequence[Prompt], model: str, beside: int) -> _Json:
    return {**_ECHO, "model": model, "prompt": prompts[0].text, "logprobs": max(1, beside)}


def _echo_tokens(prompts: Sequence[Prompt], model: str) -> _Json:
    return _echo_text(prompts, model, 1)


_ECHO: _Json = {
    "max_tokens": 1,
    "temperature": 0,
    "echo": True,
    "return_token_ids": True,
    "add_special_tokens": False,
}


def _echo_answers(body: Any, prompts: Sequence[Prompt]) -> RequestAnswers:
    choices = _choices(body, prompts)
    if isinstance(body.get("prompt"), list):  # Together answers beside the choices, not within them
        parts = [one["logprobs"] for one in body["prompt"]]
        if len(parts) != len(prompts):
            raise ValueError(f"{len(parts)} answers for {len(prompts)} prompts")
        rest = [_written(choice.get("logprobs") or {}, 0, choice, "") for choice in choices]
        return RequestAnswers(
            [_echo_answer(part, None, after) for part, after in zip(parts, rest, strict=True)]
        )
    answers = []
    for prompt, choice in zip(prompts, choices, strict=True):
        said, own = choice.get("logprobs") or {}, choice.get("prompt_token_ids")
        said, number = {"token_ids": own, **said}, len(own or prompt.ids)
        if "tokens" not in said:
            said = {**said, "tokens": _pieces(choice.get("text"), said.get("text_offset"))}
        answers.append(_echo_answer(said, number, _written(said, number, choice, prompt.text)))
    return RequestAnswers(answers, _used(body))


def _pieces(text: Any, offsets: Any) -> list[str] | None:
    """The tokens as text, cut out of the whole where each begins; None where that is not told."""
    if not isinstance(text, str) or not offsets:
        return None
    ends = [*offsets[1:], len(text)]
    return [text[_whole(start) : _whole(end)] for start, end in zip(offsets, ends, strict=True)]


def _echo_answer(said: _Json, number: int | None, after: NextToken) -> PromptAnswer:
    """The first entries are the prompt's, all of them for None."""
    logp = [_or_none(one) for one in said.get("token_logprobs") or ()][:number]
    words = [str(word) for word in said.get("tokens") or ()]
    if words and len(words) != len(said.get("token_logprobs") or words):
        raise ValueError("lists of numbers and tokens of different lengths")
    tops: list[Mapping[str, Any] | None] = list(said.get("top_logprobs") or [None] * len(logp))
    best = [max(top, key=lambda word: _number(top[word])) if top else None for top in tops]
    places = [
        _listed(own, words[i] if i < len(words) else None, tops[i] if i < len(tops) else None)
        for i, own in enumerate(logp)
    ]
    return PromptAnswer(
        logp=tuple(logp),
        ids=tuple(_whole(one) for one in said.get("token_ids") or ())[:number] or None,
        words=tuple(words) or None,
        places=tuple(places),
        best=tuple(best),
        generated=after,
    )


def _listed(own: float | None, word: str | None, top: Mapping[str, Any] | None) -> TokenPlace:
    """What is listed beside a token: by words, of which two tokens may share one, as pieces of characters do."""
    if own is None or not top:
        return TokenPlace()
    values = [_number(one) for one in top.values()]
    nearest = min(values, key=lambda one: abs(one - own))
    named = word is not None and word in top and "\ufffd" not in word
    listed = nearest if abs(nearest - own) < 1e-6 else _number(top[word]) if named else None  # type: ignore[index]
    return TokenPlace(tuple(values) if listed is not None else (*values, own), listed)


def _written(said: _Json, place: int, choice: _Json, text: str) -> NextToken:
    """The token at a place behind the prompt; its text is also what the answer has behind the prompt's."""

    def at(name: str) -> Any:
        found = said.get(name) or ()
        return found[place] if len(found) > place else None

    ids = choice.get("token_ids")
    word = at("tokens")
    if word is None:
        word = str(choice.get("text") or "").removeprefix(text)
    return NextToken(ids[-1] if ids else at("token_ids"), word, _or_none(at("token_logprobs")))


def _choices(body: Any, prompts: Sequence[Prompt]) -> list[_Json]:
    """The choices in the order of the prompts, which is that of their index and not always that of the list."""
    choices = sorted(body["choices"], key=lambda one: int(one.get("index") or 0))
    if len(choices) != len(prompts):
        raise ValueError(f"{len(choices)} choices for {len(prompts)} prompts")
    told = [one["index"] for one in choices if one.get("index") is not None]
    if len(set(told)) < len(told):
        raise ValueError("several choices with one index")
    return choices


_VLLM_CURE = "log-probabilities of prompts are part of vLLM's own server since 0.4 and need --max-logprobs of 2 or more"
_ECHO_CURE = (
    "the server must take echo with logprobs: llama-cpp-python is started with --logits_all true, for vLLM take "
    "vllm:URL; many services give them for generated tokens only"
)
ROUTES: Mapping[str, tuple[Route, ...]] = {
    "vllm": (Route("vLLM", "/completions", True, True, _vllm_request, _vllm_answers, _VLLM_CURE),),
    "completions": (
        Route("completions with echo", "/completions", True, True, _echo_ids, _echo_answers, _ECHO_CURE),
        Route("completions with echo", "/completions", False, False, _echo_text, _echo_answers, _ECHO_CURE),
    ),
}
"""The routes of each kind of server, in the order in which they are tried."""
TEXT_REQUESTS = {"vllm": _vllm_text, "completions": _echo_tokens}
"""The same question with text instead of ids, which shows the tokens of the server's own tokenizer."""
