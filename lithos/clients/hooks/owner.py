"""A client for hooks that calls the server that owns the data directory. It needs few imports."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from lithos.kernel.settings import StorageConfig
from lithos.server.command.hook_failsafe import NoHookOutput
from lithos.server.settings import ServerConfig

if TYPE_CHECKING:
    from lithos.server.command.declaring import Invocation

#: Maximum number of bytes in an answer, including the text and the fields of all notes.
_LARGEST_ANSWER: Final = 1_000_000


class HookOwner(NamedTuple):
    """The running server at `url`. Every call must end before `until` (in the time of `time.monotonic`)."""

    url: str
    token: str | None
    until: float

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

        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        parts = urlsplit(self.url)
        left = max(0.01, self.until - time.monotonic())
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=left)
        try:
            connection.request(method, parts.path.rstrip("/") + path, body, headers)
            response = connection.getresponse()
            content = response.read(_LARGEST_ANSWER + 1)
        except http.client.HTTPException as failure:
            raise NoHookOutput(str(failure)) from failure
        finally:
            connection.close()
        if len(content) > _LARGEST_ANSWER:
            raise NoHookOutput("the answer is too large")
        return response.status, content


def find_hook_owner(invocation: Invocation, until: float) -> tuple[Path, HookOwner]:
    """Return the data directory, and the server that owns it now. Raises `FAILURES` (`silence`)."""
    data, token = _find_data(invocation)
    url, own_token = _read_owner(data)
    return data, HookOwner(url, own_token or token, until)


def _find_data(invocation: Invocation) -> tuple[Path, str | None]:
    """Return the configured data directory, and the configured token.

    A data directory on the command line takes precedence over all settings. In that case no file is read.
    """
    token = os.environ.get("LITHOS_SERVER__AUTH_TOKEN") or os.environ.get("LITHOS_AUTH_TOKEN")
    if invocation.data_dir is not None:
        return invocation.data_dir.expanduser(), token
    if invocation.vaults or invocation.config is not None:
        return _load_configured(invocation)
    for name in ("LITHOS_STORAGE__DATA_DIR", "LITHOS_DATA_DIR"):
        if os.environ.get(name, "").strip():
            data = Path(os.environ[name]).expanduser()
            return _load_configured(invocation) if _names_vaults(data) else (data, token)
    vaults = ("LITHOS_STORAGE__VAULT", "LITHOS_VAULT")
    if not any(map(os.environ.get, vaults)) and not _names_vaults(Path("data")):
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


def _read_owner(data: Path) -> tuple[str, str | None]:
    """Return the address and token of the server that owns the data directory now.

    Stopped servers are ignored.
    """
    from lithos.kernel.databases.lock import is_owned, read_owner

    lock = data / ".lithos" / "lock"
    record = read_owner(lock)
    if record is None or record.url is None or not is_owned(lock):
        raise NoHookOutput("no server with an address owns the data directory")
    return record.url, record.token
