"""Data sets of the Hugging Face hub, through the package `datasets`.

Run here: a data set folder (`hub:./folder`), wrong configurations and splits, a broken file, offline mode, a hub out of
reach. Not run: a download, a gated data set, offline mode with a full cache.
"""

from __future__ import annotations

import importlib.util
import socket
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pretrace.corpora.reading import SourceRow, TextReading
from pretrace.errors import MissingPackageError, TextsError
from pretrace.results.wording import say

_SECONDS_TO_REACH = 3.0
"""How long the hub's host may take to answer before its data sets are looked for in the cache alone."""


def open_table(address: str, split: str | None = None) -> tuple[str, Any]:
    """The full name, `NAME:CONFIG:SPLIT`, and the table of `datasets` of an address `NAME[:CONFIG][:SPLIT]`.

    Of two parts the second is a configuration where there is one of that name, else a split; `NAME::SPLIT` and `split`
    name a split, else the only one is taken. A folder of that path comes before the hub. Raises MissingPackageError
    without `datasets`, TextsError where nothing of that name is to be had.
    """
    if importlib.util.find_spec("datasets") is None:
        raise MissingPackageError("datasets", "reading from the Hugging Face hub")
    import datasets

    name, *rest = address.split(":")
    if not name or len(rest) > 2:
        raise TextsError(f"'hub:{address}' is not a data set of the hub: write hub:NAME[:CONFIG][:SPLIT].")
    config, named = [*rest, "", ""][:2]
    if config and len(rest) == 1 and config not in _ask_hub(name, datasets.get_dataset_config_names, name):
        config, named = "", config
    if not (split := named or split):
        splits: list[str] = _ask_hub(name, datasets.get_dataset_split_names, name, config or None)
        where = f"hub:{name}:{config}"
        if not splits:
            raise TextsError(f"hub:{name} does not list its splits: name one, as in {where}:test.")
        if len(splits) > 1:
            said = ", ".join(splits)
            raise TextsError(f"hub:{name} has the splits {said}: name one, as in {where}:{splits[0]}.")
        (split,) = splits
    table = _ask_hub(name, datasets.load_dataset, name, config or None, split=split)
    return f"{name}:{config}:{split}", table


def table_rows(table: Any, reading: TextReading) -> Iterator[SourceRow]:
    """The rows of a table of `datasets`, by the rules of those of files; only the columns that `reading` picks are
    read."""
    names = reading.pick(table.column_names, reading.source)
    for row in table.select_columns(list(names)):
        yield SourceRow(row)


def _ask_hub(name: str, ask: Callable[..., Any], *what: Any, **how: Any) -> Any:
    """The answer of the hub, or a TextsError that says what to do where there is none."""
    import datasets
    from datasets.exceptions import DatasetsError
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError

    # The hub's client has had three HTTP libraries; its own error descends from the root of the one in use.
    http = HfHubHTTPError.__bases__
    failures = (OSError, ValueError, RuntimeError, DatasetsError, *http)
    unreachable = _unreachable(name)
    before = datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    if unreachable:  # `datasets` then takes what lies in its cache, or fails at once
        datasets.config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    try:
        return ask(*what, **how)
    except failures as error:
        cause = error.__cause__ or error
        reason = unreachable or " ".join(str(cause).split()).rstrip(".") or type(cause).__name__
        raise TextsError(say("texts.hub", name=name, reason=reason[:300])) from None
    finally:
        datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before


def _unreachable(name: str) -> str:
    """Why the hub cannot be reached, "" where it can or a proxy may know the way. One short knock, since `datasets`
    tries for about 20 seconds."""
    from huggingface_hub import constants

    is_proxied = urllib.request.getproxies().keys() - {"no"}  # NO_PROXY alone names none
    if constants.HF_HUB_OFFLINE or Path(name).exists() or is_proxied:
        return ""
    address = urlsplit(constants.ENDPOINT)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), timeout=_SECONDS_TO_REACH).close()
    except OSError as error:
        return f"{address.hostname} cannot be reached ({error.strerror or error})"
    return ""
