"""How each kind of server is asked for the log-probabilities of prompts, and how its answer is read.

Pure functions between token ids and JSON. Every prompt is followed by one generated token, because most servers
want to write at least one; the self-check compares it with what the server then says of it as part of a prompt.
Beside each token's own number stand those of the likeliest tokens, where a server gives them: probabilities that come
to more than 1 are none.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
class Generated:
    """The token that a server wrote after a prompt; None where it does not say. `top` are the numbers of the likeliest
    tokens there, itself among them."""

    id: int | None = None
    text: str | None = None
    logp: float | None = None
    top: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """What a server says of one place besides the number of the token that stands there.

    `top` are the numbers of the likeliest tokens and of the token itself, each token once; `own` is the token's own
    number among them, None where it is not listed; `rank` 1 for the likeliest.
    """

    top: tuple[float, ...] = ()
    own: float | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said of one prompt.

    `logp` has one entry a token, None where nothing was predicted; it is empty where the server offers none. `ids`
    are the tokens as the server has them and `words` the same as text, with what it wrote, None where it does not
    say. `places` holds what else is said of each token; `best` is the text of the likeliest token beside each, None
    where the server does not say. `cached` counts tokens that were not computed but remembered.
    """

    logp: tuple[float | None, ...]
    ids: tuple[int, ...] | None = None
    words: tuple[str, ...] | None = None
    places: tuple[Place, ...] = ()
    best: tuple[str | None, ...] = ()
    generated: Generated = Generated()
    cached: int = 0

    def likeliest(self, place: int) -> bool | None:
        """Whether the token at a place is the likeliest there; None where the server does not say."""
        said, own = self.places[place] if place < len(self.places) else Place(), self.logp[place]
        if said.rank is not None:
            return said.rank == 1
        return None if own is None or not said.top else own >= max(said.top) - 1e-6


@dataclass(frozen=True, slots=True)
class Said:
    """All answers of one request, in the order of the prompts. `read` is the number of tokens that the server says it
    read for them, None where it does not say."""

    answers: list[Answer]
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
    answers: Callable[[Any, Sequence[Prompt]], Said]
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


def _vllm_answers(body: Any, prompts: Sequence[Prompt]) -> Said:
    choices = _choices(body, prompts)
    return Said(
        [_vllm_answer(choice, prompt) for choice, prompt in zip(choices, prompts, strict=True)], _used(body)
    )


def _vllm_answer(choice: _Json, prompt: Prompt) -> Answer:
    told = choice.get("prompt_token_ids")
    ids = tuple(_whole(one) for one in told) if told else None
    written = choice.get("token_ids") or [None]
    generated = Generated(written[0], choice.get("text"), _first(choice.get("logprobs")))
    said = choice.get("prompt_logprobs")
    if not said:
        return Answer((), ids, generated=generated)
    keys = _keys(said, ids or prompt.ids)
    places, logp = [], []
    for key, entry in zip(keys, said, strict=True):
        own = None if entry is None else entry[str(key)]
        logp.append(None if own is None else _number(own["logprob"]))
        places.append(_entry(entry, own))
    # Where the list of ids and the keys of the entries differ, what is not the prompt's is shown to the check.
    ids = ids if ids and (ids != prompt.ids or ids[: len(keys)] == keys) else keys
    return Answer(logp=tuple(logp), ids=ids, places=tuple(places), generated=generated)


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


def _entry(entry: Mapping[str, _Json] | None, own: _Json | None) -> Place:
    if entry is None or own is None:
        return Place()
    rank = own.get("rank")
    return Place(
        top=tuple(_number(one["logprob"]) for one in entry.values()),
        own=_number(own["logprob"]),
        rank=_whole(rank) if rank else None,
    )


def _first(logprobs: Mapping[str, Any] | None) -> float | None:
    found = (logprobs or {}).get("token_logprobs") or [None]
    return _or_none(found[0])


def _sglang_request(prompts: Sequence[Prompt], model: str, beside: int) -> _Json:
    return {"input_ids": [list(one.ids) for one in prompts], **_SGLANG, "top_logprobs_num": beside}


def _sglang_flat(prompts: Sequence[Prompt], model: str, beside: int) -> _Json:
    return {**_sglang_request(prompts, model, beside), **_FLAT}


def _sglang_text(prompts: Sequence[Prompt], model: str) -> _Json:
    return {"text": [one.text for one in prompts], **_SGLANG, "top_logprobs_num": 1}


_SGLANG: _Json = {
    "sampling_params": {"max_new_tokens": 1, "temperature": 0},
    "return_logprob": True,
    "logprob_start_len": 0,
}
_FLAT: _Json = {"return_flat_raw_top_logprobs": True, "return_flat_raw_top_logprobs_b64": True}
"""Asks for shorter answers. Servers from before these forms answer in lists; one that refuses is asked without."""


def _sglang_answers(body: Any, prompts: Sequence[Prompt]) -> Said:
    answers = [body] if isinstance(body, dict) else body
    if len(answers) != len(prompts):
        raise ValueError(f"{len(answers)} answers for {len(prompts)} prompts")
    read = [one["meta_info"].get("prompt_tokens") for one in answers]
    known = all(isinstance(one, int) and one > 0 for one in read)
    return Said([_sglang_answer(one) for one in answers], sum(read) if known else None)


def _sglang_answer(answer: _Json) -> Answer:
    meta = answer["meta_info"]
    entries = meta.get("input_token_logprobs") or ()
    logp = tuple(_or_none(entry[0]) for entry in entries)
    with_ids = all(entry[1] is not None for entry in entries)
    ids = tuple(_whole(entry[1]) for entry in entries) if with_ids else ()
    places = []
    for own, id_, top in zip(logp, ids, _sglang_tops(meta) or [None] * len(logp), strict=False):
        listed = dict(top or ())
        if top and own is not None:
            places.append(Place(tuple({id_: own, **listed}.values()), listed.get(id_)))
        else:
            places.append(Place())
    written = (meta.get("output_token_logprobs") or [(None, None, None)])[0]
    return Answer(
        logp=logp,
        ids=ids or None,
        words=None if with_ids else tuple(str(entry[2] or "") for entry in entries),
        places=tuple(places),
        generated=Generated(written[1], answer.get("text"), _or_none(written[0])),
        cached=int(meta.get("cached_tokens") or 0),
    )


def _sglang_tops(meta: _Json) -> list[list[tuple[int, float]] | None]:
    """Id and number of the likeliest tokens at each place: from lists, or from the flat form, which may be base64
    (SGLang's changes 32078, 31960 and 32223). Its `shape` counts the places with entries, in its first version those
    without as well, which `null_prefix` counts."""
    shape = meta.get("input_top_logprobs_shape")
    if shape is None:
        return [
            None if top is None else [(_whole(one[1]), _number(one[0])) for one in top]
            for top in meta.get("input_top_logprobs") or ()
        ]
    beside, skipped = _whole(shape[1]), _whole(meta.get("input_top_logprobs_null_prefix") or 0)
    values, ids = (_flat(meta, f"input_top_logprobs_{name}_flat") for name in ("val", "idx"))
    if len(values) != len(ids) or (beside and len(values) % beside):
        raise ValueError("flat lists of different lengths")
    pairs = [(_whole(id_), _number(value)) for id_, value in zip(ids, values, strict=True)]
    rows = [pairs[i : i + beside] for i in range(0, len(pairs), beside)] if beside else []
    return [*[None] * skipped, *rows]


def _flat(meta: _Json, name: str) -> list[Any]:
    packed = meta.get(f"{name}_b64")
    if packed is None:
        return list(meta[name])
    kind = str(meta.get(f"{name}_b64_dtype") or ("float32" if "_val_" in name else "int32"))
    if kind not in ("float16", "float32", "float64", "int32", "int64"):
        raise ValueError(f"numbers of the kind {kind[:20]!r}")
    made = np.frombuffer(base64.b64decode(packed, validate=True), np.dtype(kind).newbyteorder("<"))
    return list(made.tolist())


def _tgi_request(prompts: Sequence[Prompt], model: str, beside: int) -> _Json:
    parameters = {"max_new_tokens": 1, "do_sample": False, "details": True, "decoder_input_details": True}
    return {"inputs": prompts[0].text, "parameters": parameters}


def _tgi_beside(prompts: Sequence[Prompt], model: str, beside: int) -> _Json:
    """Asks for the likeliest tokens as well, which it names for what it writes alone."""
    asked = _tgi_request(prompts, model, beside)
    return {**asked, "parameters": {**asked["parameters"], "top_n_tokens": 5}}


def _tgi_answers(body: Any, prompts: Sequence[Prompt]) -> Said:
    details = (body[0] if isinstance(body, list) else body)["details"]
    prefill = details.get("prefill") or ()
    written = (details.get("tokens") or [{}])[0]
    with_ids = all(one.get("id") is not None for one in prefill)
    top = (details.get("top_tokens") or [()])[0]
    return Said(
        [
            Answer(
                logp=tuple(_or_none(one.get("logprob")) for one in prefill),
                ids=(tuple(_whole(one["id"]) for one in prefill) or None) if with_ids else None,
                words=tuple(str(one["text"]) for one in prefill),
                generated=Generated(
                    written.get("id"),
                    written.get("text"),
                    _or_none(written.get("logprob")),
                    tuple(_number(one["logprob"]) for one in top),
                ),
            )
        ]
    )


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


def _echo_answers(body: Any, prompts: Sequence[Prompt]) -> Said:
    choices = _choices(body, prompts)
    if isinstance(body.get("prompt"), list):  # Together answers beside the choices, not within them
        parts = [one["logprobs"] for one in body["prompt"]]
        if len(parts) != len(prompts):
            raise ValueError(f"{len(parts)} answers for {len(prompts)} prompts")
        rest = [_written(choice.get("logprobs") or {}, 0, choice, "") for choice in choices]
        return Said([_echo_answer(part, None, after) for part, after in zip(parts, rest, strict=True)])
    answers = []
    for prompt, choice in zip(prompts, choices, strict=True):
        said, own = choice.get("logprobs") or {}, choice.get("prompt_token_ids")
        said, number = {"token_ids": own, **said}, len(own or prompt.ids)
        if "tokens" not in said:
            said = {**said, "tokens": _pieces(choice.get("text"), said.get("text_offset"))}
        answers.append(_echo_answer(said, number, _written(said, number, choice, prompt.text)))
    return Said(answers, _used(body))


def _pieces(text: Any, offsets: Any) -> list[str] | None:
    """The tokens as text, cut out of the whole where each begins; None where that is not told."""
    if not isinstance(text, str) or not offsets:
        return None
    ends = [*offsets[1:], len(text)]
    return [text[_whole(start) : _whole(end)] for start, end in zip(offsets, ends, strict=True)]


def _echo_answer(said: _Json, number: int | None, after: Generated) -> Answer:
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
    return Answer(
        logp=tuple(logp),
        ids=tuple(_whole(one) for one in said.get("token_ids") or ())[:number] or None,
        words=tuple(words) or None,
        places=tuple(places),
        best=tuple(best),
        generated=after,
    )


def _listed(own: float | None, word: str | None, top: Mapping[str, Any] | None) -> Place:
    """What is listed beside a token: by words, of which two tokens may share one, as pieces of characters do."""
    if own is None or not top:
        return Place()
    values = [_number(one) for one in top.values()]
    nearest = min(values, key=lambda one: abs(one - own))
    named = word is not None and word in top and "\ufffd" not in word
    listed = nearest if abs(nearest - own) < 1e-6 else _number(top[word]) if named else None  # type: ignore[index]
    return Place(tuple(values) if listed is not None else (*values, own), listed)


def _written(said: _Json, place: int, choice: _Json, text: str) -> Generated:
    """The token at a place behind the prompt; its text is also what the answer has behind the prompt's."""

    def at(name: str) -> Any:
        found = said.get(name) or ()
        return found[place] if len(found) > place else None

    ids = choice.get("token_ids")
    word = at("tokens")
    if word is None:
        word = str(choice.get("text") or "").removeprefix(text)
    return Generated(ids[-1] if ids else at("token_ids"), word, _or_none(at("token_logprobs")))


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
_SGLANG_CURE = "start SGLang with --disable-radix-cache, and let nothing in front of it drop return_logprob"
_TGI_CURE = "start Text Generation Inference with --enable-prefill-logprobs (they are off since 3.0)"
_ECHO_CURE = (
    "the server must take echo with logprobs: llama-cpp-python is started with --logits_all true, for vLLM take "
    "vllm:URL; many services give them for generated tokens only"
)
ROUTES: Mapping[str, tuple[Route, ...]] = {
    "vllm": (Route("vLLM", "/completions", True, True, _vllm_request, _vllm_answers, _VLLM_CURE),),
    "sglang": (
        Route("SGLang", "/generate", True, True, _sglang_flat, _sglang_answers, _SGLANG_CURE),
        Route("SGLang", "/generate", True, True, _sglang_request, _sglang_answers, _SGLANG_CURE),
    ),
    "tgi": (
        Route("Text Generation Inference", "/generate", False, False, _tgi_beside, _tgi_answers, _TGI_CURE),
        Route("Text Generation Inference", "/generate", False, False, _tgi_request, _tgi_answers, _TGI_CURE),
    ),
    "completions": (
        Route("completions with echo", "/completions", True, True, _echo_ids, _echo_answers, _ECHO_CURE),
        Route("completions with echo", "/completions", False, False, _echo_text, _echo_answers, _ECHO_CURE),
    ),
}
"""The routes of each kind of server, in the order in which they are tried."""
TEXT_REQUESTS = {"vllm": _vllm_text, "sglang": _sglang_text, "completions": _echo_tokens}
"""The same question with text instead of ids, which shows the tokens of the server's own tokenizer."""
