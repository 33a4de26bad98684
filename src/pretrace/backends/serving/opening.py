"""From `vllm:http://host:8000` to a model that can be asked: its name, its tokenizer, its limit, its check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pretrace.backends.loading import tokenizer_of
from pretrace.backends.serving.address import ServerAddress, parse_address
from pretrace.backends.serving.backend import Connection, ServedModel
from pretrace.backends.serving.client import Client, NotTakenError
from pretrace.backends.serving.engine import Engine
from pretrace.backends.serving.recognition import recognised
from pretrace.backends.serving.routes import ROUTES
from pretrace.backends.serving.self_check import Probed, ServerCheck
from pretrace.backends.settings import ModelSettings
from pretrace.backends.tokens import Tokens
from pretrace.errors import ModelError, shown
from pretrace.settings import given_for

_TOLD = 1e-3  # nats: of what moves by less, page one says no more than that
REQUESTS, SECONDS = 8, 120.0
"""Requests under way at once, and seconds for each, unless told otherwise."""
_OTHER_SERVERS = {
    "llamacpp": "this is llama.cpp's own server, which gives log-probabilities of generated tokens only: open its "
    "GGUF file itself (--model FILE.gguf)",
    "library": "this is Ollama, which gives log-probabilities of generated tokens only: open the weights or the GGUF "
    "file itself, or serve them with vLLM",
}
"""What servers call the owner of their models, and why they cannot be used."""


def open_served(model: str, settings: ModelSettings) -> ServedModel:
    """The model on a server, checked before any text is sent; ModelError where it cannot be used."""
    address = parse_address(model)
    for name in () if address.here else given_for(settings, "weights"):
        raise ModelError(
            f"--{name.replace('_', '-')} is for weights that are opened here, and {model.partition(':')[0]}: "
            "names a server, which has opened its own: leave it out."
        )
    with connect(address, settings) as client:
        return _opened(address, client, settings)


@contextmanager
def connect(address: ServerAddress, settings: ModelSettings) -> Iterator[Any]:
    """A client of the server (or vLLM here), which is closed where the context ends with an error."""
    requests, seconds = settings.requests or REQUESTS, settings.request_timeout or SECONDS
    url, here = address.url, address.here
    client = Engine(url, settings) if here else Client(url, requests=requests, seconds=seconds)
    try:
        yield client
    except BaseException:
        client.close()
        raise


def _opened(address: ServerAddress, client: Client | Engine, settings: ModelSettings) -> ServedModel:
    held = _list_models(client)
    for one in held.values():
        if why := _OTHER_SERVERS.get(str(one.get("owned_by"))):
            raise ModelError(f"{address.url}: {why}.")
    name = choose_name(address.model or settings.served_model or "", client, held)
    facts = held.get(name, {})
    tokenizer = settings.tokenizer or _own_tokenizer(name, facts)
    found, limit, vocabulary = tokenizer_of(tokenizer, settings)
    whole = Tokens(found, start=settings.start)
    limits = [n for n in (settings.max_tokens, _limit(facts) or (limit and limit - 1)) if n]
    tokens = Tokens(found, start=settings.start, max_tokens=min(limits, default=None))
    connection, check, probed = _checked(address, client, name, whole)
    named = {"kind": address.kind, "model": name, "tokenizer": tokens.hash, "prefix": tokens.prefix.tolist()}
    return ServedModel(
        connection,
        tokens,
        check,
        replace(probed, met=recognised(probed, url=address.url, named=named)),
        facts={
            "server": "vLLM in this process" if address.here else address.url,
            "kind": address.kind,
            "served_model": name,
            "tokenizer_from": tokenizer,
            "tokenizer_read_by": tokens.read_by,
            "moved": probed.wobble,
            "bit_identical": probed.identical,
            **(client.facts if isinstance(client, Engine) else {}),
            "unseen": unseen(probed, address),
            "vocabulary": vocabulary or whole.rust.get_vocab_size(with_added_tokens=True),
        },
        budget=settings.token_budget,
    )


def _list_models(client: Client | Engine) -> dict[str, Mapping[str, Any]]:
    """The models that a server says it holds, with what it says of each; empty where it does not say. ModelError where
    it answers with something else than a list of models."""
    found = client.find("/models")
    listed = found.get("data") if isinstance(found, dict) else found
    if listed is not None and not isinstance(listed, list):
        raise ModelError(
            f"{client.url} answers the question for its models with something else than a list: check the address "
            "and the kind of server."
        )
    return {
        one["id"]: one for one in listed or () if isinstance(one, dict) and isinstance(one.get("id"), str)
    }


def choose_name(wanted: str, client: Client | Engine, held: Mapping[str, Any] | None = None) -> str:
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
        raise ModelError(f"{url} serves several models, name one with --served-model: {names}.")
    raise ModelError(
        f"{url} does not say which models it serves: name one with --served-model, and check that the address "
        "and the kind of server are right."
    )


def _own_tokenizer(name: str, facts: Mapping[str, Any]) -> str:
    """The folder or hub id that the server itself says the model is from."""
    source = str(facts.get("root") or facts.get("model_id") or name)
    if Path(source).is_absolute() and not Path(source).is_dir():
        raise ModelError(
            f"the tokenizer of {shown(name)[:200]} is wanted here, to know its tokens: name a hub id or a folder with "
            f"--tokenizer (the server has {shown(source)[:200]}, which is no folder on this machine)."
        )
    return source


def _limit(facts: Mapping[str, Any]) -> int | None:
    """The longest prompt that a server takes beside the one token it writes, None where it does not say."""
    for field, more in (("max_model_len", 1), ("max_input_tokens", 0), ("max_input_length", 0)):
        if isinstance(facts.get(field), int) and more < facts[field] < 1 << 40:
            return int(facts[field]) - more
    return None


def _checked(
    address: ServerAddress, client: Client | Engine, model: str, tokens: Tokens
) -> tuple[Connection, ServerCheck, Probed]:
    """The first route that the server takes, with what it answered; ModelError where none can be used."""
    routes = ROUTES[address.kind]
    for route in routes:
        connection = Connection(address, client, route, model, spare=tokens.start == "never")
        check = ServerCheck(connection.name, route, tokens)
        try:
            check.same_tokenizer(connection.ask_text)
            return connection, check, check.run(connection.ask)
        except NotTakenError:
            if route is routes[-1]:
                raise
    raise AssertionError("every kind of server has a route")


def unseen(probed: Probed, address: ServerAddress) -> str:
    """What the server could have done without being noticed, for the record and the first page of a report."""
    made = (
        f"The model answered from behind a server ({address.kind}), where this would not have been seen: other "
        "weights, text or a start token put in front of each text, numbers rescaled or moved alike, or answers changed "
        "for some texts and not for the known ones."
    )
    if address.here:
        made = "The model was opened and read by vLLM in this process, whose numbers passed the check of a server's."
    if probed.wobble > _TOLD:
        made += f" Its numbers moved by up to {probed.wobble:.1g} nats when the same text was asked again."
    else:
        how = "the same to the last bit" if probed.identical else f"the same within {_TOLD:g} nats"
        made += f" Asked again, alone and among others, a text had numbers that were {how}."
    return made
