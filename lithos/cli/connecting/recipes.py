"""What `lithos connect CLIENT` prints: the exact configuration of a client, over HTTP and over stdio.

A token is named by the variable that holds it, never printed.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from lithos.cli.connecting.clients import Client, Surroundings
from lithos.cli.connecting.target import TOKEN_VARIABLE, Target


@frozen
class Recipe:
    """Where a configuration belongs (`place`), and what to put there: JSON, TOML, or a command to run."""

    place: str
    text: str


def make_recipes(client: Client, target: Target, around: Surroundings) -> dict[str, Recipe]:
    """Both ways, by transport; the one way where a client has only one."""
    made = _RECIPES.get(client.name)
    return made(target) if made is not None else _connect_by_file(client, target, around)


def _connect_by_file(client: Client, target: Target, around: Surroundings) -> dict[str, Recipe]:
    """For a client that is connected by its file alone, the file as it would be if it were new."""
    files = [_short(path, around) for path in client.files(around).values() if path is not None]
    place = f"{files[0]}, or {files[1]} in a project:" if len(files) > 1 else f"{files[0]}:"
    http = client.http(target) if client.http is not None else None
    if http is not None and target.needs_token and not client.knows_variables:
        http["headers"] = {"Authorization": f"Bearer <{TOKEN_VARIABLE}>"}
    ways = {"http": http, "stdio": client.stdio(target)}
    return {
        way: Recipe(place, client.format.insert("", "lithos", entry).text)
        for way, entry in ways.items()
        if entry is not None
    }


def _short(path: Path, around: Surroundings) -> str:
    if path.is_relative_to(around.folder) and around.folder != around.home:
        return str(path.relative_to(around.folder))
    return f"~/{path.relative_to(around.home)}" if path.is_relative_to(around.home) else str(path)


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
