"""The texts that `lithos connect CLIENT` prints, to be pasted by hand."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from lithos.clients.connect.clients import CLIENTS, Client, Surroundings
from lithos.clients.connect.target import TOKEN_VARIABLE, TRANSPORTS, ConnectTarget


@frozen
class Recipe:
    """The text to configure a client (JSON, TOML, or a command), and the place where it belongs."""

    place: str
    text: str


def make_recipes(client: Client, target: ConnectTarget, around: Surroundings) -> dict[str, Recipe]:
    """Return the recipes for a client by transport. Some clients support only one transport."""
    made = _RECIPES.get(client.name)
    return made(target) if made is not None else _connect_by_file(client, target, around)


def _connect_by_file(client: Client, target: ConnectTarget, around: Surroundings) -> dict[str, Recipe]:
    """Return the recipes for a client that has only a configuration file. The text is that of a new file."""
    place = client.place
    if not place:
        files = [_short(path, around) for path in client.files(around).values() if path is not None]
        place = f"{files[0]}, or {files[1]} in a project:" if len(files) > 1 else f"{files[0]}:"
    ways = {"http": client.entry(target, "http"), "stdio": client.entry(target, "stdio")}
    if ways["http"] and target.needs_token and not client.knows_variables:
        ways["http"]["headers"] = {"Authorization": f"Bearer <{TOKEN_VARIABLE}>"}
    form = client.format
    texts = {way: form.edit("", "lithos", form.written("", entry)) for way, entry in ways.items() if entry}
    # A text for a settings editor is only a part of the file, so it must not end with a line break.
    return {way: Recipe(place, text.rstrip("\n") if client.place else text) for way, text in texts.items()}


def _short(path: Path, around: Surroundings) -> str:
    if path.is_relative_to(around.folder) and around.folder != around.home:
        return str(path.relative_to(around.folder))
    return f"~/{path.relative_to(around.home)}" if path.is_relative_to(around.home) else str(path)


def _servers(entry: Mapping[str, Any]) -> str:
    return json.dumps({"mcpServers": {"lithos": entry}}, indent=2, ensure_ascii=False)


def _connect_claude_code(target: ConnectTarget) -> dict[str, Recipe]:
    # `claude mcp add` has no option for `alwaysLoad`, but `add-json` keeps every key.
    shell = "Run in a shell (add --scope user to have it in every project):"
    words = ("claude", "mcp", "add-json", "lithos")
    entries = {way: CLIENTS["claude-code"].entry(target, way) for way in TRANSPORTS}
    return {
        way: Recipe(shell, shlex.join((*words, json.dumps(entry, ensure_ascii=False))))
        for way, entry in entries.items()
    }


def _connect_openclaw(target: ConnectTarget) -> dict[str, Recipe]:
    shell = "Run in a shell, then restart the gateway (openclaw.json stores the entry under mcp.servers):"
    headers = target.headers(f"${{{TOKEN_VARIABLE}}}")
    remote = {"url": target.url, "transport": "streamable-http", **headers}
    return {
        "http": Recipe(shell, shlex.join(CLIENTS["openclaw"].command("lithos", remote))),
        "stdio": Recipe(shell, shlex.join(CLIENTS["openclaw"].command("lithos", target.stdio))),
    }


def _connect_agent_zero(target: ConnectTarget) -> dict[str, Recipe]:
    place = "Settings > MCP/A2A > External MCP Servers:"
    inside = (
        f"{place[:-1]}. Inside its container, this machine is called host.docker.internal. Allow that name"
    )
    inside += " with server.allowed_hosts:"
    headers = target.headers(f"<{TOKEN_VARIABLE}>")
    return {
        "http": Recipe(inside, _servers({"type": "streamable-http", "url": target.url, **headers})),
        "stdio": Recipe(
            f"{place[:-1]} (if Agent Zero runs directly on this machine):", _servers(target.stdio)
        ),
    }


_RECIPES = {
    "claude-code": _connect_claude_code,
    "openclaw": _connect_openclaw,
    "agent-zero": _connect_agent_zero,
}
