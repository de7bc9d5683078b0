"""`lithos connect CLIENT`: the exact configuration of a client, over HTTP and over stdio.

A token is named by the variable that holds it, never printed.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from lithos.cli.output import print_json
from lithos.cli.session import Session
from lithos.stores.owner_record import read_owner

TOKEN_VARIABLE = "LITHOS_AUTH_TOKEN"  # noqa: S105 - its name


@frozen
class Recipe:
    """Where a configuration belongs (`place`), and what to put there: JSON, or a command to run."""

    place: str
    text: str


@frozen
class Target:
    """What to connect to: `command` starts a server or bridges to the running one."""

    command: tuple[str, ...]
    url: str
    needs_token: bool

    @property
    def stdio(self) -> dict[str, Any]:
        """The usual description of a local server."""
        return {"command": self.command[0], "args": list(self.command[1:])}

    def headers(self, token: str) -> dict[str, Any]:
        """The header that carries the token, spelled so that the client fills it in."""
        return {"headers": {"Authorization": f"Bearer {token}"}} if self.needs_token else {}


def run_connect(session: Session) -> int:
    """Print both ways for the chosen client."""
    client = session.invocation.typed["client"]
    target = _find_target(session)
    recipes = _RECIPES[client](target)
    if session.invocation.as_json:
        print_json({
            "client": client,
            "token_variable": TOKEN_VARIABLE if target.needs_token else None,
            **{way: {"place": recipe.place, "text": recipe.text} for way, recipe in recipes.items()},
        })  # fmt: skip
        return 0
    print("\n\n".join(_present(way, recipe) for way, recipe in recipes.items()))
    if target.needs_token:
        print(f"\nThe server wants a token: keep it in {TOKEN_VARIABLE}, or put it in place of that name.")
    return 0


def _present(way: str, recipe: Recipe) -> str:
    heading = {
        "http": "Over HTTP, to the one server that all share (lithos serve --transport http):",
        "stdio": "Over stdio; the first client starts the server, others are bridged to it:",
    }[way]
    indented = "\n".join(f"    {line}" for line in recipe.text.splitlines())
    return f"{heading}\n  {recipe.place}\n\n{indented}"


def _find_target(session: Session) -> Target:
    config = session.config
    data = config.storage.data_dir.absolute()
    options = ["--data-dir", str(data)]
    if config.storage.vault is not None:
        options += ["--vault", str(config.storage.vault)]
    if session.invocation.config is not None:
        options += ["--config", str(session.invocation.config.absolute())]
    owner = read_owner(data / ".lithos" / "lock")
    host = config.server.host if config.server.host not in ("0.0.0.0", "::") else "127.0.0.1"  # noqa: S104
    url = f"http://{f'[{host}]' if ':' in host else host}:{config.server.port or 8765}"
    if owner is not None and owner.url and not owner.private:
        url = owner.url
    return Target(
        (*_find_program(), *options, "serve", "--transport", "stdio"),
        f"{url}/mcp",
        config.server.auth_token is not None,
    )


def _find_program() -> tuple[str, ...]:
    """How another program starts this one, wherever it is started from."""
    beside = Path(sys.executable).with_name("lithos")
    found = str(beside) if beside.exists() else shutil.which("lithos")
    return (found,) if found else (sys.executable, "-m", "lithos")


def _as_json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def _servers(entry: Mapping[str, Any]) -> str:
    return _as_json({"mcpServers": {"lithos": entry}})


def _connect_claude_code(target: Target) -> dict[str, Recipe]:
    shell = "Run in a shell (add --scope user to have it in every project):"
    header = f' --header "Authorization: Bearer ${TOKEN_VARIABLE}"' if target.needs_token else ""
    return {
        "http": Recipe(shell, f"claude mcp add --transport http lithos {shlex.quote(target.url)}{header}"),
        "stdio": Recipe(shell, f"claude mcp add --transport stdio lithos -- {shlex.join(target.command)}"),
    }


def _connect_claude_desktop(target: Target) -> dict[str, Recipe]:
    place = "Settings > Developer > Edit Config (claude_desktop_config.json), then restart it:"
    # Its own connectors reach servers from the network of their maker, never this machine.
    return {"stdio": Recipe(place, _servers(target.stdio))}


def _connect_cursor(target: Target) -> dict[str, Recipe]:
    place = "~/.cursor/mcp.json, or .cursor/mcp.json in a project:"
    headers = target.headers(f"${{env:{TOKEN_VARIABLE}}}")
    return {
        "http": Recipe(place, _servers({"url": target.url, **headers})),
        "stdio": Recipe(place, _servers({"type": "stdio", **target.stdio})),
    }


def _connect_openclaw(target: Target) -> dict[str, Recipe]:
    shell = "Run in a shell, then restart the gateway (it is kept under mcp.servers in openclaw.json):"
    headers = target.headers(f"${{{TOKEN_VARIABLE}}}")
    remote = {"url": target.url, "transport": "streamable-http", **headers}
    return {
        "http": Recipe(shell, f"openclaw mcp set lithos {shlex.quote(json.dumps(remote))}"),
        "stdio": Recipe(shell, f"openclaw mcp set lithos {shlex.quote(json.dumps(target.stdio))}"),
    }


def _connect_agent_zero(target: Target) -> dict[str, Recipe]:
    place = "Settings > MCP/A2A > External MCP Servers:"
    inside = f"{place[:-1]}; from its container name this machine host.docker.internal, and allow that name"
    inside += " with server.allowed_hosts:"
    headers = target.headers(f"<{TOKEN_VARIABLE}>")
    return {
        "http": Recipe(inside, _servers({"type": "streamable-http", "url": target.url, **headers})),
        "stdio": Recipe(f"{place[:-1]} (where it runs on this machine itself):", _servers(target.stdio)),
    }


_RECIPES = {
    "claude-code": _connect_claude_code,
    "claude-desktop": _connect_claude_desktop,
    "openclaw": _connect_openclaw,
    "agent-zero": _connect_agent_zero,
    "cursor": _connect_cursor,
}
