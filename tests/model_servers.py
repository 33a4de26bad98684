"""Servers of ours that speak as vLLM and completions with echo do, from a tiny model, and misbehave on
demand. What llama-cpp-python answers was taken from a real one (0.3.36), its shift included."""

import functools
import json
import random
import socket
import struct
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import torch
from tiny import read

from pretrace.backends.serving.backend import SENTENCES as PROBES


class Model:
    """A model and its tokenizer from a folder; what it says of token ids, by a plain pass of transformers. An answer
    is computed once: `said` only reads."""

    def __init__(self, folder):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.net = AutoModelForCausalLM.from_pretrained(str(folder)).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(str(folder))
        self.rust = self.tokenizer.backend_tokenizer
        self.lock = threading.Lock()
        self.kept = {}
        self.word = functools.cache(lambda id_: str(self.rust.decode([id_], skip_special_tokens=False)))

    def said(self, ids, *, before=()):
        """Log-probabilities [n - 1], ranks, the likeliest token at each place, and the one written after them; of a
        text that is read behind other tokens."""
        key = (tuple(ids), before)
        with self.lock:
            if key not in self.kept:
                self.kept[key] = self._computed(list(ids), before)
            return self.kept[key]

    @torch.inference_mode()
    def _computed(self, ids: list[int], before: tuple[int, ...]) -> dict[str, Any]:
        whole = self.net(torch.tensor([[*before, *ids]])).logits[0].float().log_softmax(-1)
        table, end = whole[len(before) : len(before) + len(ids)], whole[-1]
        own = table[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        best = list(zip(table.argmax(1).tolist(), table.amax(1).tolist(), strict=True))
        return {
            "ids": ids,
            "logp": [None, *own.tolist()],
            "ranks": [None, *((table[:-1] > own[:, None]).sum(1) + 1).tolist()],
            "best": [None, *best[:-1]],
            "after": table[range(len(ids)), ids].tolist(),  # under the distribution that follows each token
            "after_best": best,
            "written": int(end.argmax()),
            "written_logp": float(end.max()),
            "read": len(before) + len(ids),
        }

    def ids(self, text, *, special):
        return list(self.tokenizer(text, add_special_tokens=special)["input_ids"])

    def words(self, ids):
        return [self.word(one) for one in ids]


class ModelServer(ThreadingHTTPServer):
    """One server; `trouble` names what is wrong with it, `fail` how many requests fail first."""

    daemon_threads = True

    def __init__(self, model):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model, self.names, self.owner = model, ["tiny"], "vllm"
        self.trouble, self.fail = "", []
        self.flavour = "vllm"  # of /v1/completions: vllm, llama-cpp-python or together
        self.with_ids = True  # whether answers name the tokens by their ids, where they need not
        self.honest = 0  # so many more prompts are answered as the model says, before the trouble begins
        self.words = ""  # that it says where it refuses
        self.shift = 0.0  # added to every number: another model
        self.key, self.slow, self.asked, self.keys = "", 0.0, [], set()
        self.active = self.busiest = 0
        self.over, self.count = threading.Event(), threading.Lock()

    @property
    def root(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        """Whoever asked went away: that is not a mistake of ours."""


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise each answer waits 40 ms between its head and its body

    def do_GET(self):
        server = self.server
        server.keys.add(self.headers["Authorization"])
        if self._hindered():
            return None
        if self.path == "/v1/models":
            told = {"object": "model", "owned_by": server.owner, "max_model_len": 256}
            return self._json(
                200, {"object": "list", "data": [{"id": name, **told} for name in server.names]}
            )
        return self._json(404, {"detail": "Not Found"})

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.keys.add(self.headers["Authorization"])
        if self._hindered():
            return
        with server.count:
            server.asked.append((self.path, body))
            server.active += 1
            server.busiest = max(server.busiest, server.active)
        try:
            if server.slow:
                server.over.wait(server.slow)
            status, answer = self._answer(body)
        finally:
            with server.count:
                server.active -= 1
        self._json(status, answer)

    def _hindered(self):
        """Whether something else than an answer was sent."""
        server = self.server
        with server.count:
            trouble = server.fail.pop(0) if server.fail else server.trouble
        if server.key and self.headers["Authorization"] != f"Bearer {server.key}":
            said = f"Incorrect API key provided: {(self.headers['Authorization'] or '')[7:]}"
            self._json(401, {"error": {"message": said}})
            return True
        if trouble in ENDLESS:
            length, chunk, pause = ENDLESS[trouble]
            self.wfile.write(HEAD + length + b"\r\n\r\n")
            while not server.over.wait(pause):
                self.wfile.write(chunk)
        if trouble == "cut":
            self.wfile.write(HEAD + b"Content-Length: 999\r\n\r\n{")
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return True
        sent = {
            "busy": (429, {"error": {"message": "slow down"}}, {"Retry-After": "0.05"}),
            "500": (500, {"error": {"message": "out of memory"}}),
            "500 for good": (500, {"error": {"message": "out of memory"}}, {"x-should-retry": "false"}),
            "400": (400, {"error": {"message": server.words}}),
            "redirect": (307, "", {"Location": "http://elsewhere.example/v1?token=abc"}),
            "html": (200, f"<html><body>Welcome to nginx{server.words}</body></html>"),
            "broken json": (200, '{"choices": ['),
            "says": (200, server.words),
        }
        if trouble in sent:
            self._json(*sent[trouble])
        return trouble in sent

    def _answer(self, body):
        server = self.server
        if self.path == "/v1/completions":
            if body["model"] not in server.names:
                return 404, {"error": {"message": f"The model `{body['model']}` does not exist."}}
            if "prompt_logprobs" not in body and "logprobs" not in body and not body.get("echo"):
                return 200, self._continued(body["prompt"], body, "text")
            return self._completions(body)
        if self.path == "/v1/chat/completions":
            if server.trouble == "refuses":
                said = {"content": "I'm sorry, but I can't help with that.", "refusal": None}
                return 200, {"choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}
            if server.trouble == "filters":
                return 400, {"error": {"message": "blocked by the content management policy"}}
            return 200, self._continued(body["messages"][0]["content"].partition("\n\n")[2], body, "chat")
        return 404, {"detail": "Not Found"}

    @torch.inference_mode()
    def _continued(self, prompt: str, body: dict[str, Any], form: str) -> dict[str, Any]:
        """The prompt continued by the model, as completions or chat completions."""
        model = self.server.model
        ids = torch.tensor([model.ids(prompt, special=True)])
        random = torch.Generator().manual_seed(body.get("seed") or 0)
        for _ in range(body["max_tokens"]):
            logits = model.net(ids[:, -128:]).logits[0, -1].float()
            warm = body["temperature"]
            drawn = torch.multinomial((logits / (warm or 1)).softmax(-1), 1, generator=random)
            ids = torch.cat([ids, (drawn if warm else logits.argmax()[None])[None]], dim=1)
        text = model.rust.decode(ids[0, -body["max_tokens"] :].tolist(), skip_special_tokens=False)
        said = {"text": text} if form == "text" else {"message": {"role": "assistant", "content": text}}
        return {"id": "c", "model": "tiny", "choices": [{"index": 0, **said, "finish_reason": "length"}]}

    def _read(self, ids):
        """What is said of a prompt, as the trouble has it."""
        server = self.server
        said = {**server.model.said(ids), "asked": len(server.asked)}
        server.honest -= 1
        if server.honest < 0 and server.trouble in LIES:
            said |= LIES[server.trouble](server, said)
        if server.shift:
            said["logp"] = [one and one + server.shift for one in said["logp"]]
        return said

    def _completions(self, body):
        server, prompts = self.server, body["prompt"]
        textual = server.flavour in ("llama-cpp-python", "together")
        if isinstance(prompts, str) or isinstance(prompts[0], int):
            prompts = [prompts]
        if textual and not isinstance(body["prompt"], str):
            said = "1 validation error: 'loc': ('body', 'prompt', 'str'), 'msg': 'Input should be a valid string'"
            return (422 if server.flavour == "together" else 500), {"error": {"message": said}}
        if server.trouble == "no logits":
            said = "logprobs is not supported for models created with logits_all=False"
            return 500, {"error": {"message": said}}
        if server.flavour == "llama-cpp-python":
            return self._llama(prompts[0], body)
        choices, read = [], 0
        for i, prompt in enumerate(prompts):
            ids = server.model.ids(prompt, special=textual) if isinstance(prompt, str) else list(prompt)
            said = self._read(ids)
            read += said["read"]
            make = self._vllm if server.flavour == "vllm" and not body.get("echo") else self._legacy
            choices.append({"index": i, **make(said, body), "finish_reason": "length"})
        if server.trouble == "reordered":
            for i, choice in enumerate(reversed(choices)):
                choice["index"] = i
        usage = {"prompt_tokens": read, "completion_tokens": len(choices)}
        answer = {"id": "c", "model": "tiny", "choices": choices[::-1], "usage": usage}
        if server.flavour == "together" and choices[0]["logprobs"]:
            part = choices[0].pop("logprobs")
            choices[0]["logprobs"] = {name: some[-1:] for name, some in part.items()}
            answer["prompt"] = [{"text": prompts[0], "logprobs": {k: v[:-1] for k, v in part.items()}}]
        return 200, answer

    def _vllm(self, said, body):
        word, entries = self.server.model.word, []
        for id_, logp, rank in zip(said["ids"], said["logp"], said["ranks"], strict=False):
            own = {str(id_): {"logprob": logp, "rank": rank, "decoded_token": word(id_)}}
            entries.append(None if logp is None else own)
        text, with_ids = word(said["written"]), self.server.with_ids
        return {
            "text": text,
            "prompt_logprobs": entries if "prompt_logprobs" in body and entries else None,
            "prompt_token_ids": said["ids"] if with_ids else None,
            "token_ids": [said["written"]] if with_ids else None,
            "logprobs": {"tokens": [text], "token_logprobs": [said["written_logp"]]},
        }

    def _legacy(self, said, body):
        server = self.server
        words, written = server.model.words(said["ids"]), server.model.words([said["written"]])
        if server.trouble == "none":
            return {"text": "".join(words + written), "logprobs": None}
        last = said["written"], said["written_logp"]
        logp, best = [*said["logp"], last[1]], [*said["best"][: len(said["logp"])], last]
        logprobs = self._echoed(words + written, logp, best)
        if server.flavour == "fireworks":
            logprobs["token_ids"] = [*said["ids"], said["written"]]
        found = {"text": "".join(words + written), "logprobs": logprobs}
        if server.flavour == "vllm" and server.with_ids:
            found |= {"prompt_token_ids": said["ids"], "token_ids": [said["written"]]}
        return found

    def _echoed(self, words, logp, best):
        """The list of an echo: beside each token the likeliest and its own."""
        word, listed = self.server.model.word, []
        for name, own, top in zip(words, logp, best, strict=False):
            listed.append(None if own is None or top is None else {word(top[0]): top[1], name: own})
        offsets = [sum(map(len, words[:i])) for i in range(len(words))]
        return {"tokens": words, "token_logprobs": logp, "top_logprobs": listed, "text_offset": offsets}

    def _llama(self, prompt, body):
        """As llama-cpp-python: entry i has the distribution after the prompt's token i, start token included, and the
        token i of a list that leaves the start token out. So all are shifted where there is none."""
        model = self.server.model
        ids = model.ids(prompt, special=True)
        said = model.said(ids)
        started = ids[0] == model.tokenizer.bos_token_id
        listed = [*ids[1:], said["written"]] if started else ids
        logp = [*said["logp"][1:], said["written_logp"]] if started else list(said["after"])
        logprobs = self._echoed(model.words(listed), logp, said["after_best"])
        logprobs["token_logprobs"][0] = logprobs["top_logprobs"][0] = None
        text = prompt + model.words([said["written"]])[0]
        choice = {"text": text, "index": 0, "logprobs": logprobs, "finish_reason": "length"}
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1, "total_tokens": len(ids) + 1}
        return 200, {"id": "cmpl-1", "model": body["model"], "choices": [choice], "usage": usage}

    def _json(self, status, answer, headers=None):
        """Send an answer as JSON, a string as it is."""
        content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(status)
        own = {"Content-Type": "application/json", "Content-Length": str(len(content))}
        for name, value in (own | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format, *args):
        pass


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked"
ENDLESS = {
    "slow bytes": (b"Content-Length: 100000", b" ", 0.1),
    "slow chunks": (CHUNKED, b"10\r\n" + b" " * 16 + b"\r\n", 0.01),
    "flood": (CHUNKED, b"10000\r\n" + b" " * 65536 + b"\r\n", 0.0),
}
"""Answers that have no end: how long they say they are, what comes again and again, and seconds between."""

# Lies: what changes of what the model says of a prompt, by name.


def own_numbers(change):
    """The numbers of the text's own tokens changed, all others left alone."""
    return lambda server, said: {"logp": [None, *change(said["logp"][1:])]}


def one_number(value):
    def change(numbers):
        place = _drawn(numbers).randrange(len(numbers))
        return [value if i == place else one for i, one in enumerate(numbers)]

    return own_numbers(change)


def noise(size):
    source = random.Random(time.perf_counter_ns())  # other noise in every batch
    return own_numbers(lambda numbers: [min(-1e-6, one + source.uniform(-size, size)) for one in numbers])


def _drawn(numbers):
    """The same draw for the same text."""
    return random.Random(repr(numbers))


def _distribution_after(server, said):
    """As llama-cpp-python without a start token."""
    logp, best = [None, *said["after"][1:]], [None, *said["after_best"][1:]]
    ranks = [1 if own >= top[1] else 2 for own, top in zip(logp[1:], best[1:], strict=True)]
    return {"logp": logp, "best": best, "ranks": [None, *ranks]}


def _another(server, said):
    """The answer to the prompt that came before this one."""
    before, server.before = getattr(server, "before", said), said
    return {**before, "read": said["read"]}


def _first(server, said):
    """The answer to the first prompt, given to all."""
    if not hasattr(server, "very_first"):
        server.very_first = said
    return {**server.very_first, "read": said["read"]}


def _other_ids(server, said):
    return server.model.said([said["ids"][0], *((one + 1) % 400 for one in said["ids"][1:])])


ESCAPES = "\x1b]0;owned\x07\x1b[31m red \x9b1m \u202e back"
LIES = {
    "after": _distribution_after, "swapped": _another, "first": _first, "other ids": _other_ids,
    "early": lambda server, said: {"logp": [None, *said["logp"][2:], said["written_logp"]]},
    "late": own_numbers(lambda numbers: [numbers[0], *numbers[:-1]]),
    "equal": own_numbers(lambda numbers: [-1.5] * len(numbers)),
    "no null": lambda server, said: {"logp": [-3.0, *said["logp"][1:]]},
    "one less": own_numbers(lambda numbers: numbers[:-1]), "none": lambda server, said: {"logp": []},
    "moving": lambda server, said: {"logp": [one and one - 0.05 * said["asked"] for one in said["logp"]]},
    "lower": own_numbers(lambda numbers: [one - 0.02 for one in numbers]),
    "shuffled": own_numbers(lambda numbers: _drawn(numbers).sample(numbers, len(numbers))),
    "start counted": lambda server, said: server.model.said(said["ids"], before=(0,)),
    "noise small": noise(0.004), "noise": noise(0.05), "-9997": one_number(-9997.0), "false": one_number(False),
    "NaN": one_number(float("nan")), "null": one_number(None),
    "escapes": one_number(ESCAPES),
}  # fmt: skip
"""Each lie, as what it changes."""


@contextmanager
def serving(server):
    """The server answers while the context lasts."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        if isinstance(server, ModelServer):
            server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def asked(model, texts, store=None):
    """Log-probabilities of texts."""
    return read(model, texts, store=store)


def same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        assert one.cut == other.cut
        np.testing.assert_allclose(one.logp, other.logp, atol=1e-5)


def is_known(server, body):
    """Whether a request asks for sentences of the check again."""
    given = body["prompt"]
    one = given if isinstance(given, str) else given[0]
    return (one if isinstance(one, str) else server.model.rust.decode(one)) in PROBES
