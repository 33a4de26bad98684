"""How each kind of server is asked for the log-probabilities of prompts, and how its answer is read.

Pure functions between token ids and JSON. Every prompt is followed by one generated token, because most servers
want to write at least one; the self-check compares it with what the server then says of it as part of a prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
_DROPPED = -9998.0
"""Servers write -9999 for what they do not compute."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a server is to read: token ids, start token included, and the text without it. `words` are its tokens as
    text, where they shall be compared."""

    ids: tuple[int, ...]
    text: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Generated:
    """The token that a server wrote after a prompt; None where it does not say."""

    id: int | None = None
    text: str | None = None
    logp: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said of one prompt.

    `logp` has one entry a token, None where nothing was predicted; it is empty where the server offers none. `ids`
    are the tokens as the server has them and `words` the same as text, with what it wrote, None where it does not
    say. `likeliest` says of each token whether it is the likeliest at its place, and `best` is the text of the token
    that is, None where the server does not say. `cached` counts tokens that were not computed but remembered.
    """

    logp: tuple[float | None, ...]
    ids: tuple[int, ...] | None = None
    words: tuple[str, ...] | None = None
    likeliest: tuple[bool | None, ...] = ()
    best: tuple[str | None, ...] = ()
    generated: Generated = Generated()
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Route:
    """How one kind of server is asked.

    `asks_ids` says that token ids are sent, and not text; `several`, that a request takes several prompts. `request`
    makes the body for prompts and a model's name, `answers` reads what came back, in the order of the prompts; it
    raises LookupError, TypeError or ValueError for an answer of another form. `cure` tells how a server of this kind
    is started so that it gives log-probabilities of prompts.
    """

    title: str
    path: str
    asks_ids: bool
    several: bool
    request: Callable[[Sequence[Prompt], str], Json]
    answers: Callable[[Any, Sequence[Prompt]], list[Answer]]
    cure: str


def _vllm_request(prompts: Sequence[Prompt], model: str) -> Json:
    return {
        "model": model,
        "prompt": [list(one.ids) for one in prompts],
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": 1,
        "prompt_logprobs": 0,
        "return_token_ids": True,
        "add_special_tokens": False,
    }


def _vllm_text(prompts: Sequence[Prompt], model: str) -> Json:
    return {**_vllm_request(prompts, model), "prompt": [one.text for one in prompts]}


def _vllm_answers(body: Any, prompts: Sequence[Prompt]) -> list[Answer]:
    return [_vllm_answer(choice) for choice in _choices(body, prompts)]


def _vllm_answer(choice: Json) -> Answer:
    ids = tuple(int(one) for one in choice.get("prompt_token_ids") or ())
    written = choice.get("token_ids") or [None]
    generated = Generated(written[0], choice.get("text"), _first(choice.get("logprobs")))
    said = choice.get("prompt_logprobs")
    if not said:
        return Answer((), ids or None, generated=generated)
    entries = [_own(entry, ids, i) for i, entry in enumerate(said)]
    return Answer(
        logp=tuple(None if one is None else float(one["logprob"]) for one in entries),
        ids=ids or None,
        likeliest=tuple(None if one is None or not one.get("rank") else one["rank"] == 1 for one in entries),
        generated=generated,
    )


def _own(entry: Mapping[str, Json] | None, ids: Sequence[int], place: int) -> Json | None:
    """The entry of the token that stands there: the only one, unless the server adds the likeliest."""
    if entry is None:
        return None
    if len(entry) == 1 and not ids:
        return next(iter(entry.values()))
    return entry[str(ids[place])]


def _first(logprobs: Mapping[str, Any] | None) -> float | None:
    found = (logprobs or {}).get("token_logprobs") or [None]
    return None if found[0] is None else float(found[0])


def _sglang_request(prompts: Sequence[Prompt], model: str) -> Json:
    return {"input_ids": [list(one.ids) for one in prompts], **_SGLANG}


def _sglang_text(prompts: Sequence[Prompt], model: str) -> Json:
    return {"text": [one.text for one in prompts], **_SGLANG}


_SGLANG: Json = {
    "sampling_params": {"max_new_tokens": 1, "temperature": 0},
    "return_logprob": True,
    "logprob_start_len": 0,
    "top_logprobs_num": 1,
}


def _sglang_answers(body: Any, prompts: Sequence[Prompt]) -> list[Answer]:
    answers = [body] if isinstance(body, dict) else body
    if len(answers) != len(prompts):
        raise ValueError(f"{len(answers)} answers for {len(prompts)} prompts")
    return [_sglang_answer(one) for one in answers]


def _sglang_answer(answer: Json) -> Answer:
    meta = answer["meta_info"]
    entries = meta.get("input_token_logprobs") or ()
    logp = tuple(None if entry[0] is None else float(entry[0]) for entry in entries)
    tops = meta.get("input_top_logprobs") or ()
    best = [float(top[0][0]) if top else None for top in tops] or [None] * len(logp)
    written = (meta.get("output_token_logprobs") or [(None, None, None)])[0]
    return Answer(
        logp=logp,
        ids=tuple(int(entry[1]) for entry in entries),
        likeliest=tuple(_is_best(own, top) for own, top in zip(logp, best, strict=True)),
        generated=Generated(written[1], answer.get("text"), written[0]),
        cached=int(meta.get("cached_tokens") or 0),
    )


def _is_best(own: float | None, best: float | None) -> bool | None:
    return None if own is None or best is None else own >= best - 1e-6


def _tgi_request(prompts: Sequence[Prompt], model: str) -> Json:
    parameters = {"max_new_tokens": 1, "do_sample": False, "details": True, "decoder_input_details": True}
    return {"inputs": prompts[0].text, "parameters": parameters}


def _tgi_answers(body: Any, prompts: Sequence[Prompt]) -> list[Answer]:
    details = (body[0] if isinstance(body, list) else body)["details"]
    prefill = details.get("prefill") or ()
    written = (details.get("tokens") or [{}])[0]
    return [
        Answer(
            logp=tuple(None if one.get("logprob") is None else float(one["logprob"]) for one in prefill),
            ids=tuple(int(one["id"]) for one in prefill),
            words=tuple(str(one["text"]) for one in prefill),
            generated=Generated(written.get("id"), written.get("text"), written.get("logprob")),
        )
    ]


def _echo_ids(prompts: Sequence[Prompt], model: str) -> Json:
    return {**_ECHO, "model": model, "prompt": [list(one.ids) for one in prompts]}


def _echo_text(prompts: Sequence[Prompt], model: str) -> Json:
    return {**_ECHO, "model": model, "prompt": prompts[0].text}


_ECHO: Json = {
    "max_tokens": 1,
    "temperature": 0,
    "echo": True,
    "logprobs": 1,
    "return_token_ids": True,
    "add_special_tokens": False,
}


def _echo_answers(body: Any, prompts: Sequence[Prompt]) -> list[Answer]:
    choices = _choices(body, prompts)
    if isinstance(body.get("prompt"), list):  # Together answers beside the choices, not within them
        parts = [one["logprobs"] for one in body["prompt"]]
        rest = [_written(choice.get("logprobs") or {}, 0, choice, "") for choice in choices]
        return [_echo_answer(part, None, after) for part, after in zip(parts, rest, strict=True)]
    answers = []
    for prompt, choice in zip(prompts, choices, strict=True):
        said, own = choice.get("logprobs") or {}, choice.get("prompt_token_ids")
        said, number = {"token_ids": own, **said}, len(own or prompt.ids)
        answers.append(_echo_answer(said, number, _written(said, number, choice, prompt.text)))
    return answers


def _echo_answer(said: Json, number: int | None, after: Generated) -> Answer:
    """The first entries are the prompt's, all of them for None."""
    logp = [None if one is None else float(one) for one in said.get("token_logprobs") or ()][:number]
    tops = said.get("top_logprobs") or [None] * len(logp)
    words = [max(top, key=top.__getitem__) if top else None for top in tops]
    best = [
        float(top[word]) if top and word is not None else None for top, word in zip(tops, words, strict=True)
    ]
    return Answer(
        logp=tuple(logp),
        ids=tuple(int(one) for one in said.get("token_ids") or ())[:number] or None,
        words=tuple(str(word) for word in said.get("tokens") or ()) or None,
        likeliest=tuple(_is_best(own, top) for own, top in zip(logp, best, strict=False)),
        best=tuple(words),
        generated=after,
    )


def _written(said: Json, place: int, choice: Json, text: str) -> Generated:
    """The token at a place behind the prompt; its text is also what the answer has behind the prompt's."""

    def at(name: str) -> Any:
        found = said.get(name) or ()
        return found[place] if len(found) > place else None

    ids = choice.get("token_ids")
    logp, word = at("token_logprobs"), at("tokens")
    if word is None:
        word = str(choice.get("text") or "").removeprefix(text)
    return Generated(ids[-1] if ids else at("token_ids"), word, None if logp is None else float(logp))


def _choices(body: Any, prompts: Sequence[Prompt]) -> list[Json]:
    """The choices in the order of the prompts, which is that of their index and not always that of the list."""
    choices = sorted(body["choices"], key=lambda one: int(one.get("index") or 0))
    if len(choices) != len(prompts):
        raise ValueError(f"{len(choices)} choices for {len(prompts)} prompts")
    return choices


def sound(answer: Answer) -> bool:
    """Whether every entry after the first could be a log-probability."""
    return all(one is not None and _DROPPED < one <= 1e-3 for one in answer.logp[1:])


_VLLM_CURE = "log-probabilities of prompts are part of vLLM's own server since 0.4 and need --max-logprobs of 1 or more"
_SGLANG_CURE = "start SGLang with --disable-radix-cache, and let nothing in front of it drop return_logprob"
_TGI_CURE = "start Text Generation Inference with --enable-prefill-logprobs (they are off since 3.0)"
_ECHO_CURE = (
    "the server must take echo with logprobs: llama-cpp-python is started with --logits_all true, for vLLM take "
    "vllm:URL; many services give them for generated tokens only"
)
ROUTES: Mapping[str, tuple[Route, ...]] = {
    "vllm": (Route("vLLM", "/completions", True, True, _vllm_request, _vllm_answers, _VLLM_CURE),),
    "sglang": (Route("SGLang", "/generate", True, True, _sglang_request, _sglang_answers, _SGLANG_CURE),),
    "tgi": (
        Route("Text Generation Inference", "/generate", False, False, _tgi_request, _tgi_answers, _TGI_CURE),
    ),
    "completions": (
        Route("completions with echo", "/completions", True, True, _echo_ids, _echo_answers, _ECHO_CURE),
        Route("completions with echo", "/completions", False, False, _echo_text, _echo_answers, _ECHO_CURE),
    ),
}
"""The routes of each kind of server, in the order in which they are tried."""
TEXT_REQUESTS = {"vllm": _vllm_text, "sglang": _sglang_text, "completions": _echo_text}
"""The same question with text instead of ids, which shows the tokens of the server's own tokenizer."""
