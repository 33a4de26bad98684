"""The heavy libraries, each imported when something of it is first used: who names one here pays nothing for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Library(ModuleType):
    # Not `importlib.util.LazyLoader`: it enters the module in `sys.modules`, where scipy takes torch for loaded.
    def __getattr__(self, name: str) -> Any:
        setattr(self, name, getattr(import_module(self.__name__), name))
        return vars(self)[name]


if TYPE_CHECKING:
    import asyncio as asyncio

    import peft as peft
    import torch as torch
    import transformers as transformers
    from torch import nn as nn
else:
    names = "asyncio", "peft", "torch", "torch.nn", "transformers"
    asyncio, peft, torch, nn, transformers = map(_Library, names)


def inference(function: Callable[P, T]) -> Callable[P, T]:
    """Call a function under `torch.inference_mode`, which as a decorator of its own would import torch."""

    @wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> T:
        return torch.inference_mode()(function)(*args, **named)

    return call
