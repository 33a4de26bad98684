"""Options in groups, each a dataclass whose fields are the options, and the job that they describe.

A command that takes such a group as a parameter takes all of its options; `grouped` sees to it. So an
option that several commands share is written once, and what a command does with it is typed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from pretrace.cli import audit_options as a
from pretrace.cli import options as o
from pretrace.corpora import Columns

DEFAULT_SCORES = "loss,ppl,zlib,min_k,min_k_plus_plus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Which texts, and where in their file things stand."""

    texts: o.TextsArgument
    text_column: o.TextColumn = None
    label_column: o.LabelColumn = None
    id_column: o.IdColumn = None
    group_column: o.GroupColumn = None

    @property
    def columns(self) -> Columns:
        """The columns as the readers of files take them."""
        return Columns(
            text=self.text_column, label=self.label_column, id=self.id_column, group=self.group_column
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Which model, and how it is opened."""

    model: o.ModelOption
    max_tokens: o.MaxTokens = None
    revision: o.Revision = None
    dtype: o.Dtype = "auto"
    device: o.Device = "auto"
    device_map: o.DeviceMap = None
    start: o.Start = "tokenizer"
    token_budget: o.TokenBudget = None
    trust_remote_code: o.TrustRemoteCode = False
    allow_pickle: o.AllowPickle = False

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments of `open_model`."""
        return {
            "revision": self.revision,
            "dtype": self.dtype,
            "device": self.device,
            "device_map": self.device_map,
            "start": self.start,
            "max_tokens": self.max_tokens,
            "token_budget": self.token_budget,
            "trust_remote_code": self.trust_remote_code,
            "allow_pickle": self.allow_pickle,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Which scores, and what they need besides the model."""

    scores: o.Scores = DEFAULT_SCORES
    counts: o.Counts = None
    reference_model: o.ReferenceModel = None
    tuned: o.Tuned = None
    reference: o.ReferenceTexts = None
    neighbors: o.Neighbors = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Where the run goes and what it depends on by chance."""

    out: o.Out
    windows: o.Windows = False
    seed: o.Seed = 0
    no_cache: o.NoCache = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """How an evaluation is made: what is set aside, which controls, how intervals are drawn."""

    tune_share: o.TuneShare = 0.0
    method: o.Method = "lora"
    reference_share: o.ReferenceShare = 0.0
    placebo: o.Placebo = None
    placebo_revision: o.PlaceboRevision = None
    resamples: o.Resamples = 1000
    validation: o.Validation = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Planting:
    """Which model is trained on the members, and how."""

    model: o.StartModel = "new"
    share: o.Share = 0.5
    epochs: o.Epochs = 1
    method: o.PlantMethod = "full"
    learning_rate: o.LearningRate = None
    batch: o.Batch = 16
    max_tokens: o.TrainTokens = None
    precision: o.Precision = "float32"
    recompute: o.Recompute = False
    family: o.Family = "gpt_neox"
    layers: o.Layers = 4
    width: o.Width = 256
    heads: o.Heads = 4
    vocabulary: o.Vocabulary = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Where held-out texts come from: real ones, or a generator and how it writes."""

    heldout: a.Heldout = None
    generator: a.GeneratorModel = "smollm2"
    generator_dtype: a.GeneratorDtype = "auto"
    method: a.GeneratorMethod = "lora"
    temperature: a.Temperature = 1.0
    top_p: a.TopP = 1.0
    repetition_penalty: a.RepetitionPenalty = 1.0
    tokens: a.SnippetTokens = 64
    max_snippets: a.MaxSnippets = None
    pairs: a.Pairs = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Auditing:
    """What an audit is held against, and how it decides."""

    placebo: a.AuditPlacebo
    out: a.AuditOut = None
    plan: a.Plan = False
    requested_by: a.RequestedBy = ""
    placebo_note: a.PlaceboNote = ""
    heldout_note: a.ControlNote = ""
    placebo_revision: o.PlaceboRevision = None
    reference_model: o.ReferenceModel = None
    procedure: a.Procedure = "pretrace"
    also: a.Also = ""
    level: a.Level = 0.05
    power: a.PowerFlag = False
    power_method: a.PowerMethod = "full"
    classifiers: a.Classifiers = "words"
    quick: a.Quick = False
    seed: o.Seed = 0
    no_cache: o.NoCache = False


@dataclass(frozen=True, slots=True)
class Job:
    """One run as the command line asks for it; `measuring` None means scores alone."""

    source: Source
    opening: Opening
    asking: Asking
    running: Running
    measuring: Measuring | None = None

    @property
    def out(self) -> Path:
        """The folder of the run."""
        return self.running.out


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every parameter that is a group of options replaced by the options themselves.

    typer reads options from a signature; this composes that signature.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {
        name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)
    }

    @functools.wraps(command)
    def run(**given: Any) -> None:
        made = {name: group(**{f: given.pop(f) for f in _options(group)}) for name, group in groups.items()}
        command(**made, **given)

    parameters: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        own = {name: hints[name]}
        if name in groups:
            own = get_type_hints(groups[name], include_extras=True)
        source = _options(groups[name]) if name in groups else {name: parameter}
        for option, found in source.items():
            parameters[option] = found.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=own[option])
    run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    return run


def _options(group: type[Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(group).parameters)
