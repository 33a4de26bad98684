"""Where the page is served, for whom, and what it may take in."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pretrace.backends.serving.address import KEY_HOSTS, KEYS, host_of
from pretrace.registry import require
from pretrace.settings import check_ranges, option

TOKEN_VARIABLE = "PRETRACE_TOKEN"
SHORTEST_TOKEN = 16
"""Characters of a token: what cannot be guessed over a network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """How the page is served; ExpressionError for a value out of its range, and for a host that others can reach
    without a token."""

    workspace: Path = option(
        Path("pretrace-workspace"),
        "Folder in which texts, jobs and results are kept; made where there is none.",
        essential=True,
    )
    host: str = option(
        "127.0.0.1",
        "The address to listen on. Any other than this machine's own needs a token.",
        essential=True,
    )
    port: int = option(
        8765, "The port to listen on; 0 takes any that is free.", least=0, most=65535, essential=True
    )
    token: str = option(
        "",
        "What a visitor must give before anything is shown, 16 characters or more. Better in the environment "
        f"({TOKEN_VARIABLE}), where other users of this machine do not see it.",
        essential=True,
    )
    model: tuple[str, ...] = option(
        (),
        "A model that visitors may choose: a hub id, a folder, a .gguf file, smollm2, or a server. May be given "
        "more than once. Where any is listed, and on every page that other machines reach, visitors can name no other.",
        essential=True,
    )
    corpus: tuple[str, ...] = option(
        (),
        "Training data that visitors may search for their texts: a file, a folder, a pattern or an address, as for "
        "`pretrace scan`. May be given more than once; without it nothing can be searched from the page.",
        path="in",
        essential=True,
    )
    key_host: tuple[str, ...] = option(
        (),
        f"A host, or host:port, that is given the key in {KEYS[0]} when a model is named there. May be given more than "
        "once; without it, no server gets the key from this page.",
        essential=True,
    )
    browser: bool = option(True, "Do not open the browser.", name="no-browser", essential=True)
    most_upload: int = option(200, "The largest upload, in MB.", name="max-upload", least=1, most=100_000)
    most_kept: int = option(
        20_000,
        "The size of the workspace, in MB, from which on nothing more is taken in or started.",
        name="max-workspace",
        least=1,
        most=100_000_000,
    )

    def __post_init__(self) -> None:
        check_ranges(self)
        if not self.token:
            object.__setattr__(self, "token", os.environ.get(TOKEN_VARIABLE, ""))
        require(
            not self.token or len(self.token) >= SHORTEST_TOKEN,
            f"a token has {SHORTEST_TOKEN} characters or more, found {len(self.token)}: make one with "
            "`python -c 'import secrets; print(secrets.token_urlsafe())'`.",
        )
        require(
            self.own or bool(self.token),
            f"--host {self.host} can be reached from other machines, which needs a token: set {TOKEN_VARIABLE} "
            f"(or --token) to {SHORTEST_TOKEN} characters or more.",
        )
        for one in self.key_host:
            require(
                host_of(one) is not None and "," not in one,
                f"--key-host is a host such as api.example.com, or localhost:8000, found {one[:100]!r}: leave scheme "
                "and path out.",
            )

    @property
    def own(self) -> bool:
        """Whether nobody but this machine can reach the host."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def any_model(self) -> bool:
        """Whether visitors may name a model freely: on a page of this machine alone, for which no models are listed."""
        return self.own and not self.model

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """What a command that is started from the page may know of this process's environment: not the token, and the
        keys of servers only where there are hosts that may have them, with the names of these hosts."""
        keys = {name: given[name] for name in KEYS if name in given and self.key_host}
        return self.bare(given) | keys | {KEY_HOSTS: ",".join(self.key_host)}

    @staticmethod
    def bare(given: Mapping[str, str]) -> dict[str, str]:
        """An environment without the token of the page and the keys of servers."""
        return {name: value for name, value in given.items() if name not in (TOKEN_VARIABLE, *KEYS)}

    @property
    def most_bytes(self) -> int:
        """The largest body of a request."""
        return self.most_upload * 1_000_000
