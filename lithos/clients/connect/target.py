"""The server to connect to, as an address and a command, and the server that an entry leads to."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from attrs import frozen

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.lock import read_owner
from lithos.kernel.settings import StorageConfig
from lithos.server.command.session import CommandSession
from lithos.server.command.starting import find_options, find_program
from lithos.server.files_tokens import asks_for_tokens
from lithos.server.mcp.working_project import project_of
from lithos.server.settings import ServerConfig

TOKEN_VARIABLE: Final = "LITHOS_AUTH_TOKEN"  # noqa: S105 - its name
Transport = Literal["http", "stdio"]
TRANSPORTS: Final[tuple[Transport, ...]] = ("http", "stdio")

#: Names of this machine. The last two are names inside containers. They are only compared with addresses:
#: Lithos does not listen on them.
_LOOPBACK: Final = frozenset(
    {"127.0.0.1", "localhost", "::1", "0.0.0.0", "host.docker.internal", "host.containers.internal"}  # noqa: S104
)
_USER: Final = re.compile(r"//[^/@]*+@")
_DATA_OPTIONS: Final = ("--data-dir", "-d")


@frozen
class ConnectTarget:
    """The server to connect to. `command` starts this server, or connects to it if it is running."""

    command: tuple[str, ...]
    url: str
    needs_token: bool
    data: Path
    #: True if the target is one or several named vaults.
    has_names: bool = False

    @property
    def stdio(self) -> dict[str, Any]:
        """Return the server as a local command, in the usual form of an entry."""
        return {"command": self.command[0], "args": list(self.command[1:])}

    def headers(self, token: str) -> dict[str, Any]:
        """Return the header with the token, or nothing if no token is needed.

        The client replaces `token` with its value.
        """
        return {"headers": {"Authorization": f"Bearer {token}"}} if self.needs_token else {}


@frozen
class ServerLink:
    """The target of a client's entry, independent of the format of the entry."""

    transport: Transport
    command: tuple[str, ...] = ()
    url: str = ""
    #: The header with the token, or the name of the variable that contains the token.
    token: str = ""
    is_off: bool = False

    @classmethod
    def of(cls, entry: object) -> ServerLink | None:
        """Return the link of an entry. If the entry has neither a program nor an address, return None."""
        if not isinstance(entry, Mapping):
            return None
        is_off = entry.get("enabled") is False or entry.get("disabled") is True
        url = next((entry[key] for key in ("httpUrl", "serverUrl", "url") if key in entry), None)
        if isinstance(url, str):
            return cls("http", url=url, token=_token_of(entry), is_off=is_off)
        command = entry.get("command")
        words = [command, *_list(entry.get("args"))] if isinstance(command, str) else _list(command)
        if words and all(isinstance(word, str) for word in words):
            return cls("stdio", command=tuple(words), is_off=is_off)
        return None

    def is_as(self, other: ServerLink) -> bool:
        """Return whether two links reach the same server in the same way."""
        mine, others = (
            (link.transport, link.command, _address(link.url), link.token) for link in (self, other)
        )
        return mine == others

    def points_to(self, target: ConnectTarget) -> bool:
        """Return whether the link leads to this server.

        The address, data directory or vault names are compared.
        """
        if self.transport == "http":
            return _address(self.url) == _address(target.url)
        data = _data_of(self.command)
        if data is None:  # Without a data directory, the names of the vaults are compared.
            return target.has_names and _options_of(self.command) == _options_of(target.command)
        return os.path.realpath(data) == os.path.realpath(target.data)

    @property
    def is_lithos(self) -> bool:
        """Whether the entry starts Lithos. For an entry with an address, this is always False."""
        return "serve" in self.command and any(
            Path(word).name in ("lithos", "lithos-server") for word in self.command
        )

    @property
    def place(self) -> str:
        """The target of the link as a text for display. It contains no token."""
        if self.transport == "stdio":
            named = shlex.join(_options_of(self.command)) if self.is_lithos else ""
            return _data_of(self.command) or named or self.command[0]
        return _USER.sub("//", self.url.partition("?")[0])


def find_target(session: CommandSession) -> ConnectTarget:
    """Return the server that this configuration describes."""
    config = session.config
    data = config.of(StorageConfig).data_dir.absolute()
    server = config.of(ServerConfig)
    host = server.host if server.host not in ("0.0.0.0", "::") else "127.0.0.1"  # noqa: S104
    url = f"http://{f'[{host}]' if ':' in host else host}:{server.port or 8765}"
    owner = read_owner(data / ".lithos" / "lock")
    if owner is not None and not owner.private and owner.url is not None:
        url = owner.url.removesuffix(session.prefix)
    # If no vault is named, the target is the root address, which serves all vaults.
    prefix = session.prefix if session.named.chosen else ""
    return ConnectTarget(
        (*find_program(), *find_options(session), "serve", "--transport", "stdio"),
        f"{url}{prefix}/mcp",
        any(map(_wants_token, (vault.loaded.config for vault in session.vaults)))
        if session.vaults
        else _wants_token(config),
        data,
        bool(session.vaults),
    )


#: Matches keys that may be in a header and that no client expands, such as `${NAME}` and `{env:NAME}`.
_IN_HEADER: Final = re.compile(r"[ !-#%-z|~]+")


def find_project(folder: Path) -> str | None:
    """Return the key of the project of a folder, or None if it has no key that a header can contain. Blocks.

    Clients refuse other characters in headers, or encode them in different ways.
    """
    key = project_of(folder)
    return key if key is not None and _IN_HEADER.fullmatch(key) else None


def _wants_token(config: Config) -> bool:
    """Return whether requests over HTTP need a token, either the configured token or a named token."""
    if config.of(ServerConfig).auth_token is not None:
        return True
    return asks_for_tokens(config.of(StorageConfig).data_dir / ".lithos")


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []


def _token_of(entry: Mapping[str, Any]) -> str:
    variable = entry.get("bearer_token_env_var")
    headers = entry.get("headers")
    held = headers.get("Authorization") if isinstance(headers, Mapping) else None
    return next((text for text in (variable, held) if isinstance(text, str)), "")


def _address(url: str) -> tuple[str, int | None, str]:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
        return ("loopback" if host in _LOOPBACK else host, parts.port, parts.path.rstrip("/"))
    except ValueError:
        return (url, None, "")


def _options_of(command: Sequence[str]) -> tuple[str, ...]:
    """Return the global options of a Lithos command line that name vaults.

    Without such options, the result is empty.
    """
    words = list(command[: command.index("serve")]) if "serve" in command else []
    start = next((at for at, word in enumerate(words) if word in ("--vault", "--config", "-c")), len(words))
    return tuple(words[start:])


def _data_of(command: Sequence[str]) -> str | None:
    """Return the data directory in a Lithos command line, or None."""
    for number, word in enumerate(command):
        if word in _DATA_OPTIONS:
            return command[number + 1] if number + 1 < len(command) else None
        if word.startswith("--data-dir="):
            return word.partition("=")[2]
    return None
