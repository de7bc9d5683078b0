"""A client for hooks that calls the server that owns the data directory. It needs few imports."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from lithos.clients.hooks.payload import Payload, folder_of
from lithos.kernel.configuration.environment import without_blanks
from lithos.kernel.settings import StorageConfig
from lithos.server.command.hook_failsafe import NoHookOutput
from lithos.server.settings import ServerConfig

if TYPE_CHECKING:
    from lithos.server.command.declaring import Invocation

#: Maximum number of bytes in an answer, including the text and the fields of all notes.
_LARGEST_ANSWER: Final = 1_000_000
#: Seconds between two checks whether a server has started.
_PAUSE: Final = 0.02


class Unreachable(NoHookOutput):
    """Raised if no server answers at `place`, an address or else a data directory."""

    def __init__(self, place: str) -> None:
        super().__init__(f"no server answers at {place}")
        self.place = place


class HookOwner(NamedTuple):
    """The running server at `url`. Every call must end before `until` (in the time of `time.monotonic`)."""

    url: str
    token: str | None
    until: float
    #: Project and client session of the hook.
    project: str | None = None
    session: str | None = None

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the structured answer of a tool.

        A refusal by the tool is an answer too. Raises `FAILURES` (`silence`), also if the tool fails.
        """
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": dict(arguments)},
        }
        status, content = self._exchange("POST", "/mcp", json.dumps(message))
        if status != 200:
            raise NoHookOutput(f"the server answered {status}")
        result = json.loads(content)["result"]
        if result.get("isError"):
            raise NoHookOutput("the server refused")
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    def check_health(self) -> None:
        """Raise `FAILURES` if no Lithos server answers. A degraded server is accepted."""
        _, content = self._exchange("GET", "/health", None)
        if not isinstance(json.loads(content)["status"], str):
            raise NoHookOutput("the answer has an unexpected shape")

    def _exchange(self, method: str, path: str, body: str | None) -> tuple[int, bytes]:
        import http.client

        headers: dict[str, str | bytes] = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        headers |= self._origin
        parts = urlsplit(self.url)
        left = max(0.01, self.until - time.monotonic())
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=left)
        try:
            connection.request(method, parts.path.rstrip("/") + path, body, headers)
            response = connection.getresponse()
            content = response.read(_LARGEST_ANSWER + 1)
        except http.client.HTTPException as failure:
            raise NoHookOutput(str(failure)) from failure
        except OSError as failure:
            raise Unreachable(self.url) from failure
        finally:
            connection.close()
        if len(content) > _LARGEST_ANSWER:
            raise NoHookOutput("the answer is too large")
        return response.status, content

    @property
    def _origin(self) -> dict[str, str | bytes]:
        """The headers with project and session, without the values that a header cannot contain."""
        named = {"Lithos-Project": self.project, "Lithos-Session": self.session}
        return {name: value.encode() for name, value in named.items() if value and value.isprintable()}


def in_project(owner: HookOwner, told: Payload, typed: Mapping[str, Any]) -> HookOwner:
    """Return the server with the project and the session in which the hook runs."""
    from lithos.server.mcp.working_project import project_of

    project = typed.get("project") or project_of(folder_of(told.cwd))
    return owner._replace(project=project, session=typed.get("session") or told.session)


def find_hook_owner(invocation: Invocation, until: float) -> tuple[Path, HookOwner]:
    """Return the data directory, and the server that owns it now. Raises `FAILURES` (`silence`)."""
    data, token = find_data(invocation)
    return data, read_hook_owner(data, token, until)


def wait_for_owner(data: Path, token: str | None, until: float, patience: float) -> HookOwner:
    """Return the server that owns the data directory. Wait up to `patience` seconds for one that starts.

    A client that starts the server over stdio runs its hooks at the same moment.
    """
    give_up = time.monotonic() + patience
    while True:
        try:
            return read_hook_owner(data, token, until)
        except NoHookOutput:
            if time.monotonic() > give_up:
                raise
        time.sleep(_PAUSE)


def find_data(invocation: Invocation) -> tuple[Path, str | None]:
    """Return the configured data directory, and the configured token.

    A data directory on the command line takes precedence over all settings. In that case no file is read.
    """
    environment = without_blanks(os.environ)
    token = environment.get("LITHOS_SERVER__AUTH_TOKEN") or environment.get("LITHOS_AUTH_TOKEN")
    if invocation.data_dir is not None:
        return invocation.data_dir.expanduser(), token
    if invocation.vaults or invocation.config is not None:
        return _load_configured(invocation)
    for name in ("LITHOS_STORAGE__DATA_DIR", "LITHOS_DATA_DIR"):
        if name in environment:
            data = Path(environment[name]).expanduser()
            return _load_configured(invocation) if _names_vaults(data) else (data, token)
    vaults = ("LITHOS_STORAGE__VAULT", "LITHOS_VAULT")
    if not any(map(environment.get, vaults)) and not _names_vaults(Path("data")):
        return Path("data"), token
    return _load_configured(invocation)


def _names_vaults(data: Path) -> bool:
    """Return whether the configuration in a data directory may contain named vaults.

    Searching the file for the word `vaults` is faster than parsing the YAML.
    """
    try:
        return b"vaults" in (data / "config.yaml").read_bytes()
    except OSError:
        return False


def _load_configured(invocation: Invocation) -> tuple[Path, str | None]:
    from lithos.kernel.configuration.load import load_config
    from lithos.kernel.configuration.sources import ConfigError
    from lithos.kernel.configuration.vaults import load_vaults

    typed = {"storage.vault": invocation.typed["vault"]} if "vault" in invocation.typed else {}
    try:
        named = load_vaults(
            typed=invocation.vaults, config_path=invocation.config, environment=os.environ, is_lenient=True
        )
        if named.configured:
            # A hook reads only one vault. If several vaults are named, it reads the first.
            loaded = named.named(named.chosen[0] if named.chosen else str(named.default)).loaded
        else:
            loaded = load_config(config_path=invocation.config, environment=os.environ, overrides=typed)
    except ConfigError as error:
        raise NoHookOutput(str(error)) from error
    return loaded.config.of(StorageConfig).data_dir, loaded.config.of(ServerConfig).auth_token


def read_hook_owner(data: Path, token: str | None, until: float) -> HookOwner:
    """Return the server that owns the data directory now. Stopped servers are ignored.

    Raises `Unreachable`, or `NoHookOutput` for a server that has no address yet.
    """
    from lithos.kernel.databases.lock import is_owned, read_owner

    lock = data / ".lithos" / "lock"
    record = read_owner(lock)
    if not is_owned(lock):
        # The address of a private server changes with each start, so the data directory says more.
        has_address = record is not None and record.url is not None and not record.private
        raise Unreachable(str(record.url) if has_address and record else str(data.absolute()))
    if record is None or record.url is None:
        raise NoHookOutput("the server that owns the data directory has no address yet")
    return HookOwner(record.url, record.token or token, until)
