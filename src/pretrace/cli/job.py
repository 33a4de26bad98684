"""A run as the command line asks for it, and the options that describe it, listed once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from pretrace.cli import options as o
from pretrace.corpora import Columns

DEFAULT_SCORES = "loss,ppl,zlib,min_k,min_k_plus_plus"


@dataclass(frozen=True, slots=True)
class Measuring:
    """How an evaluation draws its intervals and thresholds."""

    resamples: int = 1000
    validation: float = 0.2


@dataclass(frozen=True, slots=True)
class Job:
    """One run as the command line asks for it. `opening` are keyword arguments of `open_model`;
    `measuring` None means scores alone."""

    texts: str
    columns: Columns
    model: str
    scores: str
    out: Path
    reference_model: str | None = None
    counts: Path | None = None
    windows: bool = False
    cache: bool = True
    seed: int = 0
    opening: Mapping[str, Any] = field(default_factory=dict)
    measuring: Measuring | None = None


def job_of(
    texts: o.TextsArgument,
    model: o.ModelOption,
    out: o.Out,
    scores: o.Scores = DEFAULT_SCORES,
    counts: o.Counts = None,
    reference_model: o.ReferenceModel = None,
    text_column: o.TextColumn = None,
    label_column: o.LabelColumn = None,
    id_column: o.IdColumn = None,
    group_column: o.GroupColumn = None,
    max_tokens: o.MaxTokens = None,
    windows: o.Windows = False,
    revision: o.Revision = None,
    dtype: o.Dtype = "auto",
    device: o.Device = "auto",
    device_map: o.DeviceMap = None,
    start: o.Start = "tokenizer",
    token_budget: o.TokenBudget = None,
    trust_remote_code: o.TrustRemoteCode = False,
    allow_pickle: o.AllowPickle = False,
    seed: o.Seed = 0,
    no_cache: o.NoCache = False,
) -> Job:
    """The job that these options describe: the one list of what `score`, `evaluate` and their like take."""
    return Job(
        texts=texts,
        columns=Columns(text=text_column, label=label_column, id=id_column, group=group_column),
        model=model,
        scores=scores,
        out=out,
        reference_model=reference_model,
        counts=counts,
        windows=windows,
        cache=not no_cache,
        seed=seed,
        opening={
            "revision": revision,
            "dtype": dtype,
            "device": device,
            "device_map": device_map,
            "start": start,
            "max_tokens": max_tokens,
            "token_budget": token_budget,
            "trust_remote_code": trust_remote_code,
            "allow_pickle": allow_pickle,
        },
    )


def reads_texts(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes a Job first becomes one that takes all the options of `job_of`, then its own.

    typer reads options from a signature; this composes that signature, so that no command repeats the list.
    """
    shared = inspect.signature(job_of).parameters
    own = {k: p for k, p in inspect.signature(command).parameters.items() if k != "job"}

    @functools.wraps(command)
    def run(**given: Any) -> None:
        job = job_of(**{name: given[name] for name in shared})
        command(job, **{name: given[name] for name in own})

    hints = get_type_hints(job_of, include_extras=True) | get_type_hints(command, include_extras=True)
    run.__annotations__ = {name: hints[name] for name in (*shared, *own)}
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in (*shared.items(), *own.items())
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run
