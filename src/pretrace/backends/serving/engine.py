"""vLLM in this process, asked as its own server is: the same requests, and answers of the same form.

So what reads a server's answers, and checks them before any text is sent, does so here too (`serving.routes`,
`serving.backend`). Requests that wait go to vLLM together, which makes its own batches of them. vLLM is imported
when a model is opened.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from pretrace.backends.settings import ModelSettings
from pretrace.errors import MissingPackageError, ModelError, shown
from pretrace.results.wording import say

REQUESTS = 16
"""Requests that vLLM is given at once, unless told otherwise."""
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # in this process
    "VLLM_NO_USAGE_STATS": "1",  # nothing is told to anybody
    "VLLM_LOGGING_LEVEL": "ERROR",
}
"""What vLLM is told by the environment, where that does not say otherwise already."""
_OTHERS = ("device", "device_map", "allow_pickle", "served_model", "request_timeout")
_FAILURES = (ValueError, RuntimeError, OSError, NotImplementedError)  # what vLLM raises


class Engine:
    """A model that vLLM opened here, asked as `client.Client` asks a server. MissingPackageError without vLLM,
    ModelError where it cannot open the model or a setting is not its."""

    def __init__(self, model: str, settings: ModelSettings) -> None:
        settings.refuse(_OTHERS, f"not for vllm:{shown(model)}, which vLLM opens in this process")
        if importlib.util.find_spec("vllm") is None:
            raise MissingPackageError("vllm", f"vllm:{model}, a model that vLLM opens in this process,")
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        import torch
        import vllm

        self.url, self.requests = model, settings.requests or REQUESTS
        invariant = os.environ.get("VLLM_BATCH_INVARIANT", "0") == "1"
        on_cpu = settings.dtype == "auto" and not torch.cuda.is_available()
        more = {"max_model_len": settings.max_tokens + 1} if settings.max_tokens else {}
        with self._explained(f"vLLM cannot open {shown(model)}"):
            self._vllm = vllm.LLM(
                model=model,
                tokenizer=settings.tokenizer,
                revision=settings.revision,
                dtype="float32" if on_cpu else settings.dtype,
                trust_remote_code=settings.trust_remote_code,
                enable_prefix_caching=False,  # what is remembered has no log-probabilities
                **more,
            )
        self._sampling = vllm.SamplingParams
        self._gathered: dict[Future[Any], Mapping[str, Any]] = {}
        self.facts = {"vllm": str(vllm.__version__), "batch_invariant": invariant}

    def find(self, path: str) -> Any:
        """What vLLM's server says of its models."""
        longest = self._vllm.llm_engine.model_config.max_model_len
        return {"data": [{"id": self.url, "root": self.url, "max_model_len": longest}]}

    def ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """The answer to one request."""
        return self._answers([body])[0]

    def start(self, path: str, body: Mapping[str, Any]) -> Future[Any]:
        """Gather a request until answers are wanted."""
        self._gathered[made := Future[Any]()] = body
        return made

    def answer(self) -> None:
        """Have all that was gathered computed together."""
        gathered, self._gathered = self._gathered, {}
        open_requests = {one: body for one, body in gathered.items() if one.set_running_or_notify_cancel()}
        for one, found in zip(open_requests, self._answers(list(open_requests.values())), strict=True):
            one.set_result(found)

    def close(self) -> None:
        self._vllm.llm_engine.engine_core.shutdown()

    def plain(self, message: str) -> str:
        """What vLLM said, on one line, short, and nothing a terminal obeys."""
        return shown(" ".join(message.split()))[:200]

    def quoted(self, body: Any) -> str:
        """An answer, as `plain`."""
        return self.plain(json.dumps(body, default=str))

    def _answers(self, bodies: Sequence[Mapping[str, Any]]) -> list[Any]:
        prompts: list[Any] = []
        sampling: list[Any] = []
        counts: list[int] = []
        for body in bodies:
            given = body["prompt"]
            some = [given] if isinstance(given, str) else [{"prompt_token_ids": one} for one in given]
            how = {name: body[name] for name in ("max_tokens", "temperature", "logprobs", "prompt_logprobs")}
            prompts += some
            sampling += [self._sampling(**how)] * len(some)
            counts.append(len(some))
        with self._explained("vLLM did not answer"):
            found = iter(
                self._vllm.generate(
                    prompts, sampling, use_tqdm=False, tokenization_kwargs={"add_special_tokens": False}
                )
            )
        return [_answer([next(found) for _ in range(count)]) for count in counts]

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except _FAILURES as error:
            reason = self.plain(str(error)) or type(error).__name__
            raise ModelError(say("servers.engine", what=what, reason=reason)) from error


def _answer(outputs: Sequence[Any]) -> dict[str, Any]:
    """What vLLM's server answers to prompts, from what the library returns for them."""
    return {
        "choices": [_choice(i, one) for i, one in enumerate(outputs)],
        "usage": {"prompt_tokens": sum(len(one.prompt_token_ids) for one in outputs)},
    }


def _choice(index: int, output: Any) -> dict[str, Any]:
    written = output.outputs[0]
    ids = list(written.token_ids)
    first = [] if not written.logprobs else [written.logprobs[0][ids[0]].logprob]
    return {
        "index": index,
        "text": written.text,
        "token_ids": ids,
        "logprobs": {"token_logprobs": first},
        "prompt_token_ids": list(output.prompt_token_ids),
        "prompt_logprobs": [
            None
            if place is None
            else {str(id_): {"logprob": one.logprob, "rank": one.rank} for id_, one in place.items()}
            for place in output.prompt_logprobs or ()
        ],
    }
