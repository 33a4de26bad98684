"""How each kind of server is asked for the log-probabilities of prompts, and how its answer is read.

Pure functions between token ids and JSON. Every prompt is followed by one generated token, because most servers
want to write at least one; the self-check compares it with what the server then says of it as part of a prompt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_Json = dict[str, Any]
PATH = "/completions"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a server is to read: token ids, start token included, and the text without it. `words` are its tokens as
    text, where they shall be compared."""

    ids: tuple[int, ...]
    text: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptAnswer:
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

    def is_likeliest(self, place: int) -> bool | None:
        return self.likeliest[place] if place < len(self.likeliest) else None


RequestAnswers = tuple[list[PromptAnswer], int | None]
"""All answers of one request, in the order of the prompts, and the number of tokens that the server says it read for
them, None where it does not say."""


@dataclass(frozen=True, slots=True)
class Route:
    """How one kind of server is asked: by token ids of several prompts in a request (`asks_ids`) or the text of
    one, with `body` beside them and the model's name; `answers` reads what came back, LookupError, TypeError or
    ValueError for another form. `cure` is the sentence on how such a server is started so that it gives
    log-probabilities of prompts."""

    title: str
    asks_ids: bool
    body: _Json
    answers: Callable[[Any, Sequence[Prompt]], RequestAnswers]
    cure: str

    def request(self, prompts: Sequence[Prompt], model: str, *, text: bool = False) -> _Json:
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


def _choices(body: Any, prompts: Sequence[Prompt]) -> tuple[list[_Json], int | None]:
    """The choices in the order of the prompts, which is that of their index and not always that of the list, and the
    number of tokens that were read."""
    choices = sorted(body["choices"], key=lambda one: int(one.get("index") or 0))
    if len(choices) != len(prompts):
        raise ValueError(f"{len(choices)} choices for {len(prompts)} prompts")
    told = [one["index"] for one in choices if one.get("index") is not None]
    if len(set(told)) < len(told):
        raise ValueError("several choices with one index")
    usage = body.get("usage") if isinstance(body, dict) else None
    found = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    used = found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None
    return choices, used


def _vllm_answers(body: Any, prompts: Sequence[Prompt]) -> RequestAnswers:
    choices, used = _choices(body, prompts)
    return [_vllm_answer(*one) for one in zip(choices, prompts, strict=True)], used


def _vllm_answer(choice: _Json, prompt: Prompt) -> PromptAnswer:
    told = choice.get("prompt_token_ids")
    ids = tuple(_whole(one) for one in told) if told else None
    after = (choice.get("token_ids") or [None])[0], choice.get("text")
    written = (*after, _or_none(((choice.get("logprobs") or {}).get("token_logprobs") or [None])[0]))
    said = choice.get("prompt_logprobs")
    if not said:
        return PromptAnswer((), ids, None, (), (), *written)
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
    return PromptAnswer(logp, ids, None, likeliest, (), *written)


def _echo_answers(body: Any, prompts: Sequence[Prompt]) -> RequestAnswers:
    choices, used = _choices(body, prompts)
    parts = body.get("prompt")
    if isinstance(parts, list):  # Together answers beside the choices, not within them
        if len(parts) != len(prompts):
            raise ValueError(f"{len(parts)} answers for {len(prompts)} prompts")
        rest = [_written(choice.get("logprobs") or {}, 0, choice, "") for choice in choices]
        return [
            _echo_answer(one["logprobs"], None, *more) for one, more in zip(parts, rest, strict=True)
        ], None
    answers = []
    for prompt, choice in zip(prompts, choices, strict=True):
        own = choice.get("prompt_token_ids")
        said, number = {"token_ids": own, **(choice.get("logprobs") or {})}, len(own or prompt.ids)
        text, offsets = choice.get("text"), said.get("text_offset")
        if "tokens" not in said and isinstance(text, str) and offsets:
            # the tokens as text, cut out of the whole where each begins
            ends = [*offsets[1:], len(text)]
            said["tokens"] = [
                text[_whole(start) : _whole(end)] for start, end in zip(offsets, ends, strict=True)
            ]
        answers.append(_echo_answer(said, number, *_written(said, number, choice, prompt.text)))
    return answers, used


def _echo_answer(said: _Json, number: int | None, *written: Any) -> PromptAnswer:
    """The first `number` entries are the prompt's, all of them for None."""
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
    return PromptAnswer(tuple(logp), ids, tuple(words) or None, likeliest, best, *written)


def _written(said: _Json, place: int, choice: _Json, text: str) -> tuple[Any, str, float | None]:
    """Id, text and log-probability of the token at a place behind the prompt; its text is also what the answer has
    behind the prompt's."""
    id_, word, logp = (
        found[place] if len(found := said.get(name) or ()) > place else None
        for name in ("token_ids", "tokens", "token_logprobs")
    )
    ids = choice.get("token_ids")
    behind = str(choice.get("text") or "").removeprefix(text)
    return ids[-1] if ids else id_, behind if word is None else word, _or_none(logp)


ROUTES: Mapping[str, tuple[Route, ...]] = {
    "vllm": (Route("vLLM", True, {"prompt_logprobs": 0}, _vllm_answers, "servers.vllm_cure"),),
    "completions": tuple(
        Route("completions with echo", asks_ids, {"echo": True}, _echo_answers, "servers.echo_cure")
        for asks_ids in (True, False)
    ),
}
"""The routes of each kind of server, in the order in which they are tried."""
