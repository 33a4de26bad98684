"""Servers of ours that speak as vLLM, SGLang, TGI and completions with echo do, from a tiny model, and misbehave on
demand. What llama-cpp-python answers was taken from a real one (0.3.36), its shift included."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch


class Model:
    """A model and its tokenizer from a folder; what it says of token ids, by a plain pass of transformers."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.net = AutoModelForCausalLM.from_pretrained(str(folder)).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(str(folder))
        self.rust = self.tokenizer.backend_tokenizer
        self.lock = threading.Lock()

    @torch.inference_mode()
    def said(self, ids: list[int]) -> dict[str, Any]:
        """Log-probabilities [n - 1], ranks, the best at each place, and the token written after them."""
        with self.lock:
            table = self.net(torch.tensor([ids])).logits[0].float().log_softmax(-1)
        own = table[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        after = table[range(len(ids)), ids]  # the token under the distribution that follows it
        return {
            "logp": own.tolist(),
            "ranks": ((table[:-1] > own[:, None]).sum(1) + 1).tolist(),
            "best": table[:-1].max(1).values.tolist(),
            "best_ids": table[:-1].argmax(1).tolist(),
            "after": after.tolist(),
            "after_best": table.max(1).values.tolist(),
            "after_best_ids": table.argmax(1).tolist(),
            "written": int(table[-1].argmax()),
            "written_logp": float(table[-1].max()),
        }

    def ids(self, text: str, *, special: bool) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=special)["input_ids"])

    def words(self, ids: list[int]) -> list[str]:
        return [self.tokenizer.decode([one]) for one in ids]


class ModelServer(ThreadingHTTPServer):
    """One server; `trouble` names what is wrong with it, `fail` how many requests fail first."""

    daemon_threads = True

    def __init__(self, model: Model, *, name: str = "tiny", port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.model = model
        self.names = [name]
        self.limit: int | None = 256
        self.owner = "vllm"
        self.trouble = ""
        self.fail: list[str] = []
        self.flavour = "vllm"  # of /v1/completions: vllm, llama-cpp-python or together
        self.shift = 0.0  # added to every number: another model
        self.key = ""
        self.slow = 0.0
        self.over = threading.Event()
        self.ends: int | None = None  # so many more answers, then none until the end
        self.held: list[dict[str, Any]] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.keys: set[str | None] = set()
        self.active = self.most = 0
        self.count = threading.Lock()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked went away: that is not a mistake of ours."""

    def prompts(self, since: int = 0) -> list[Any]:
        """All prompts that were asked, one entry each."""
        found: list[Any] = []
        for _, body in self.asked[since:]:
            given = body.get("prompt", body.get("input_ids", body.get("text", body.get("inputs"))))
            found += given if isinstance(given, list) else [given]
        return found


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server = self.server
        server.keys.add(self.headers["Authorization"])
        if self._hindered():
            return None
        if self.path == "/info":
            return self._json(200, {"model_id": server.names[0], "max_input_tokens": server.limit})
        if self.path == "/v1/models":
            models = [
                {"id": name, "object": "model", "owned_by": server.owner, "max_model_len": server.limit}
                for name in server.names
            ]
            return self._json(200, {"object": "list", "data": models})
        return self._json(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.keys.add(self.headers["Authorization"])
        if self._hindered():
            return
        with server.count:
            server.asked.append((self.path, body))
            server.active += 1
            server.most = max(server.most, server.active)
        try:
            if self._held(body):
                server.over.wait()
            if server.slow:
                server.over.wait(server.slow)
            status, answer = self._answer(body)
        finally:
            with server.count:
                server.active -= 1
        self._json(status, answer)

    def _held(self, body: dict[str, Any]) -> bool:
        """Whether no more answers are given; those that wait are written down."""
        server = self.server
        with server.count:
            if server.ends is None:
                return False
            server.ends -= 1
            if server.ends < 0:
                server.held.append(body)
            return server.ends < 0

    def _hindered(self) -> bool:
        """Whether something else than an answer was sent."""
        server = self.server
        with server.count:
            trouble = server.fail.pop(0) if server.fail else server.trouble
        if server.key and self.headers["Authorization"] != f"Bearer {server.key}":
            said = f"Incorrect API key provided: {(self.headers['Authorization'] or '')[7:]}"
            self._json(401, {"error": {"message": said}})
        elif trouble == "busy":
            self._send(
                429, b'{"error": {"message": "slow down"}}', "application/json", {"Retry-After": "0.05"}
            )
        elif trouble == "500":
            self._json(500, {"error": {"message": "out of memory"}})
        elif trouble == "html":
            self._send(200, b"<html><body>Welcome to nginx</body></html>", "text/html")
        elif trouble == "broken json":
            self._send(200, b'{"choices": [', "application/json")
        elif trouble == "redirect":
            self._send(307, b"", "text/plain", {"Location": "http://elsewhere.example/v1?token=abc"})
        elif trouble == "cut":
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{"
            )
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
        else:
            return False
        return True

    def _answer(self, body: dict[str, Any]) -> tuple[int, Any]:
        server = self.server
        if self.path == "/v1/completions":
            if body["model"] not in server.names:
                return 404, {"error": {"message": f"The model `{body['model']}` does not exist."}}
            return self._completions(body)
        if self.path == "/generate":
            return self._tgi(body) if "inputs" in body else self._sglang(body)
        return 404, {"detail": "Not Found"}

    def _read(self, ids: list[int]) -> dict[str, Any]:  # noqa: C901 - one branch a misbehaviour
        """What is said of a prompt: logp with the first null, ranks, best, and the written token, as trouble has it."""
        server = self.server
        own_ids = [ids[0], *((one + 1) % 400 for one in ids[1:])] if server.trouble == "other ids" else ids
        said = server.model.said(own_ids)
        logp = [None, *(one + server.shift for one in said["logp"])]
        best: list[float | None] = [None, *said["best"]]
        best_ids: list[int] = [0, *said["best_ids"]]
        ranks: list[int | None] = [None, *said["ranks"]]
        if server.trouble == "early":
            logp = [None, *logp[2:], said["written_logp"]]
        elif server.trouble == "late":
            logp = [None, logp[1], *logp[1:-1]]
        elif server.trouble == "after":  # llama-cpp-python without a start token
            logp, best = [None, *said["after"][1:]], [None, *said["after_best"][1:]]
            best_ids = said["after_best_ids"]
            ranks = [None, *(1 if a >= b else 2 for a, b in zip(logp[1:], best[1:], strict=True))]
        elif server.trouble == "constant":
            logp = [None] + [-9999.0] * (len(ids) - 1)
        elif server.trouble == "equal":
            logp = [None] + [-1.5] * (len(ids) - 1)
        elif server.trouble == "zero":
            logp = [None] + [0.0] * (len(ids) - 1)
        elif server.trouble == "no null":
            logp[0] = -3.0
        elif server.trouble == "one less":
            logp = logp[:-1]
        elif server.trouble == "moving":
            logp = [None, *(one - 0.05 * len(server.asked) for one in logp[1:])]
        elif server.trouble == "none":
            logp = []
        found = {"ids": own_ids, "logp": logp, "best": best, "best_ids": best_ids, "ranks": ranks}
        return {**found, **_written(said)}

    def _token_ids(self, prompt: Any, *, special: bool = False) -> list[int]:
        return self.server.model.ids(prompt, special=special) if isinstance(prompt, str) else list(prompt)

    def _completions(self, body: dict[str, Any]) -> tuple[int, Any]:
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
        choices = []
        for i, prompt in enumerate(prompts):
            said = self._read(self._token_ids(prompt, special=textual))
            make = {"vllm": self._vllm, "legacy": self._legacy}.get(server.flavour, self._legacy)
            if server.flavour == "vllm" and body.get("echo"):
                make = self._legacy
            choices.append({"index": i, **make(said, body), "finish_reason": "length"})
        if server.trouble == "reordered":
            for i, choice in enumerate(reversed(choices)):
                choice["index"] = i
        answer: dict[str, Any] = {
            "id": "c",
            "object": "text_completion",
            "model": "tiny",
            "choices": choices[::-1],
        }
        if server.flavour == "together" and choices[0]["logprobs"]:
            part = choices[0].pop("logprobs")
            choices[0]["logprobs"] = {name: some[-1:] for name, some in part.items()}
            answer["prompt"] = [{"text": prompts[0], "logprobs": {k: v[:-1] for k, v in part.items()}}]
        return 200, answer

    def _vllm(self, said: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        words = self.server.model.words(said["ids"])
        entries = [
            None if logp is None else {str(one): {"logprob": logp, "rank": rank, "decoded_token": word}}
            for one, logp, rank, word in zip(said["ids"], said["logp"], said["ranks"], words, strict=False)
        ]
        wanted = body.get("prompt_logprobs") is not None and entries
        text = self.server.model.words([said["written"]])[0]
        return {
            "text": text,
            "prompt_logprobs": entries if wanted else None,
            "prompt_token_ids": said["ids"] if body.get("return_token_ids") else None,
            "token_ids": [said["written"]] if body.get("return_token_ids") else None,
            "logprobs": {
                "tokens": [text],
                "token_logprobs": [said["written_logp"]],
                "top_logprobs": [{text: said["written_logp"]}],
                "text_offset": [0],
            },
        }

    def _legacy(self, said: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        server = self.server
        words, written = server.model.words(said["ids"]), server.model.words([said["written"]])
        tokens = words + written
        best_words = server.model.words(said["best_ids"]) + written
        logprobs = _echoed(
            tokens,
            [*said["logp"], said["written_logp"]],
            best_words,
            [*said["best"], said["written_logp"]],
        )
        if server.trouble == "none":
            return {"text": "".join(words + written), "logprobs": None}
        if server.flavour == "fireworks":
            logprobs["token_ids"] = [*said["ids"], said["written"]]
        found: dict[str, Any] = {"text": "".join(words + written), "logprobs": logprobs}
        if server.flavour == "vllm":
            found |= {"prompt_token_ids": said["ids"], "token_ids": [said["written"]]}
        return found

    def _llama(self, prompt: str, body: dict[str, Any]) -> tuple[int, Any]:
        """As llama-cpp-python: entry i has the distribution after the prompt's token i, start token included, and the
        token i of a list that leaves the start token out. So all are shifted where there is none."""
        model = self.server.model
        ids = self._token_ids(prompt, special=True)
        said = model.said(ids)
        started = ids[0] == model.tokenizer.bos_token_id
        listed = [*ids[1:], said["written"]] if started else ids
        logp = [*said["logp"], said["written_logp"]] if started else said["after"]
        words = model.words(listed)
        logprobs = _echoed(words, logp, model.words(said["after_best_ids"]), said["after_best"])
        logprobs["token_logprobs"][0] = logprobs["top_logprobs"][0] = None
        text = prompt + model.words([said["written"]])[0]
        choice = {"text": text, "index": 0, "logprobs": logprobs, "finish_reason": "length"}
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1, "total_tokens": len(ids) + 1}
        return 200, {
            "id": "cmpl-1",
            "object": "text_completion",
            "model": body["model"],
            "choices": [choice],
            "usage": usage,
        }

    def _sglang(self, body: dict[str, Any]) -> tuple[int, Any]:
        prompts = body.get("input_ids") or [self._token_ids(one, special=True) for one in body["text"]]
        answers = []
        for prompt in prompts:
            said = self._read(prompt)
            top = [None if one is None else [[one, 1, None]] for one in said["best"]]
            meta = {
                "id": "r",
                "prompt_tokens": len(prompt),
                "completion_tokens": 1,
                "cached_tokens": 3 if self.server.trouble == "cached" else 0,
                "input_token_logprobs": [
                    [a, b, None] for a, b in zip(said["logp"], said["ids"], strict=False)
                ],
                "input_top_logprobs": top[: len(said["logp"])],
                "output_token_logprobs": [[said["written_logp"], said["written"], None]],
                "output_top_logprobs": [[[said["written_logp"], said["written"], None]]],
            }
            answers.append({"text": "?", "output_ids": [said["written"]], "meta_info": meta})
        if self.server.trouble == "reordered":
            answers.reverse()
        return 200, answers

    def _tgi(self, body: dict[str, Any]) -> tuple[int, Any]:
        said = self._read(self._token_ids(body["inputs"], special=True))
        words, written = self.server.model.words(said["ids"]), self.server.model.words([said["written"]])[0]
        prefill = [
            {"id": a, "text": b, "logprob": c}
            for a, b, c in zip(said["ids"], words, said["logp"], strict=False)
        ]
        token = {"id": said["written"], "text": written, "logprob": said["written_logp"], "special": False}
        details = {
            "finish_reason": "length",
            "generated_tokens": 1,
            "seed": None,
            "prefill": prefill,
            "tokens": [token],
        }
        return 200, {"generated_text": written, "details": details}

    def _json(self, status: int, answer: Any) -> None:
        self._send(status, json.dumps(answer).encode(), "application/json")

    def _send(self, status: int, content: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _echoed(words: list[str], logp: list[Any], best_words: list[str], best: list[Any]) -> dict[str, Any]:
    """The list of an echo: beside each token the likeliest and its own."""
    tops = [
        None if top is None or own is None else {top_word: top, word: own}
        for word, own, top_word, top in zip(words, logp, best_words, best, strict=False)
    ]
    offsets = [sum(map(len, words[:i])) for i in range(len(words))]
    return {"tokens": words, "token_logprobs": logp, "top_logprobs": tops, "text_offset": offsets}


def _written(said: dict[str, Any]) -> dict[str, Any]:
    return {name: said[name] for name in ("written", "written_logp")}


@contextmanager
def serving(server: ModelServer) -> Iterator[ModelServer]:
    """The server answers while the context lasts."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
