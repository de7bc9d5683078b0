"""The supported clients: the places of their configuration files, and the entry for this server.

Paths and keys are as the clients document them (docs/connect.md describes each client). A token is never
written into the entry. Instead, the entry names the variable with the token in the client's own syntax.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from attrs import frozen

from lithos.clients.connect.formats import ConfigEntry, Format, JsonFormat, OpencodeFormat, TomlFormat
from lithos.clients.connect.target import TOKEN_VARIABLE, ConnectTarget, Transport


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
    http = client.http(target) if client.http is not None else None
    if http is not None and target.needs_token and not client.knows_variables:
        http["headers"] = {"Authorization": f"Bearer <{TOKEN_VARIABLE}>"}
    ways = {"http": http, "stdio": client.stdio(target)}
    texts = {way: client.format.edit("", "lithos", entry) for way, entry in ways.items() if entry}
    # A text for a settings editor is only a part of the file, so it must not end with a line break.
    return {way: Recipe(place, text.rstrip("\n") if client.place else text) for way, text in texts.items()}


def _short(path: Path, around: Surroundings) -> str:
    if path.is_relative_to(around.folder) and around.folder != around.home:
        return str(path.relative_to(around.folder))
    return f"~/{path.relative_to(around.home)}" if path.is_relative_to(around.home) else str(path)


def _servers(entry: Mapping[str, Any]) -> str:
    return json.dumps({"mcpServers": {"lithos": entry}}, indent=2, ensure_ascii=False)


def _connect_claude_code(target: ConnectTarget) -> dict[str, Recipe]:
    shell = "Run in a shell (add --scope user to have it in every project):"
    header = f' --header "Authorization: Bearer ${TOKEN_VARIABLE}"' if target.needs_token else ""
    return {
        "http": Recipe(shell, f"claude mcp add --transport http lithos {shlex.quote(target.url)}{header}"),
        "stdio": Recipe(shell, f"claude mcp add --transport stdio lithos -- {shlex.join(target.command)}"),
    }


def _connect_openclaw(target: ConnectTarget) -> dict[str, Recipe]:
    shell = "Run in a shell, then restart the gateway (openclaw.json stores the entry under mcp.servers):"
    headers = target.headers(f"${{{TOKEN_VARIABLE}}}")
    remote = {"url": target.url, "transport": "streamable-http", **headers}
    return {
        "http": Recipe(shell, shlex.join(_openclaw_command("lithos", remote))),
        "stdio": Recipe(shell, shlex.join(_openclaw_command("lithos", target.stdio))),
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


ConfigScope = Literal["user", "project"]


@frozen
class Surroundings:
    """The facts needed to find files: system (`sys.platform`), environment, home and current folder."""

    system: str
    environment: Mapping[str, str]
    home: Path
    folder: Path

    @classmethod
    def here(cls) -> Surroundings:
        """Return the system, environment and folders of this process."""
        return cls(sys.platform, os.environ, Path.home(), Path.cwd())

    def variable(self, name: str) -> Path | None:
        """Return the folder in an environment variable, or None if the value is not an absolute path."""
        named = Path(self.environment.get(name, ""))
        return named if named.is_absolute() else None

    @property
    def config(self) -> Path:
        """The folder `$XDG_CONFIG_HOME`. If this variable is not set, the folder is `~/.config`."""
        return self.variable("XDG_CONFIG_HOME") or self.home / ".config"

    @property
    def application(self) -> Path:
        """The folder in which desktop applications store their configuration (Electron's `appData`)."""
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        if self.system == "win32":
            return self.variable("APPDATA") or self.home / "AppData" / "Roaming"
        return self.config


@frozen
class Client:
    """A client, with the files and the format of its configuration."""

    name: str
    title: str
    format: Format
    #: Configuration files by scope. A file is None if the client does not have one or if it cannot be found.
    files: Files
    #: Programs and user folders whose existence shows that the client is installed.
    programs: Sequence[str]
    folders: Callable[[Surroundings], Sequence[Path]]
    stdio: Callable[[ConnectTarget], dict[str, Any]]
    #: Function that returns the entry for HTTP, or None if the client cannot connect to a server over HTTP.
    http: Callable[[ConnectTarget], dict[str, Any]] | None
    knows_variables: bool = True
    #: Instructions for the person, printed after the file is written.
    then: str = ""
    #: Description of the place of the configuration, if the path is not sufficient.
    place: str = ""
    #: Function that returns the client's own command to set an entry in the user's configuration. If the
    #: entry is None, the command deletes the entry.
    command: Callable[[str, ConfigEntry | None], Sequence[str]] = lambda name, entry: ()

    def default_transport(self, scope: ConfigScope) -> Transport:
        """Return the default transport: stdio for the user's configuration, and HTTP for a project.

        Stdio needs neither a running server nor a token. HTTP is the default for projects, because a
        project's file is committed, and paths of this machine do not exist on other machines. HTTP is also
        the default for Agent Zero, because its container does not contain this program.
        """
        if self.http is None:
            return "stdio"
        return "http" if scope == "project" or self.name == "agent-zero" else "stdio"


def _url(reference: str | None, **keys: str) -> Callable[[ConnectTarget], dict[str, Any]]:
    """Return a function that makes an HTTP entry.

    If `keys` contains `url`, its value is the name of the address key.
    """
    address = keys.pop("url", "url")

    def make(target: ConnectTarget) -> dict[str, Any]:
        return {**keys, address: target.url, **(target.headers(reference) if reference else {})}

    return make


def _stdio(**keys: str) -> Callable[[ConnectTarget], dict[str, Any]]:
    return lambda target: {**keys, **target.stdio}


def _every_tool(make: Callable[[ConnectTarget], dict[str, Any]]) -> Callable[[ConnectTarget], dict[str, Any]]:
    """Return `make` for a client that shows no tool without the key `tools`."""
    return lambda target: make(target) | {"tools": ["*"]}


def _openclaw_command(name: str, entry: ConfigEntry | None) -> Sequence[str]:
    does = ("unset", name) if entry is None else ("set", name, json.dumps(entry))
    return ("openclaw", "mcp", *does)


def _code_command(name: str, entry: ConfigEntry | None) -> Sequence[str]:
    return () if entry is None else ("code", "--add-mcp", json.dumps({"name": name, **entry}))


def _codex_http(target: ConnectTarget) -> dict[str, Any]:
    token = {"bearer_token_env_var": TOKEN_VARIABLE} if target.needs_token else {}
    return {"url": target.url, **token}


def _opencode_stdio(target: ConnectTarget) -> dict[str, Any]:
    return {"type": "local", "command": list(target.command), "enabled": True}


def _opencode_http(target: ConnectTarget) -> dict[str, Any]:
    return _url(f"{{env:{TOKEN_VARIABLE}}}", type="remote")(target) | {"enabled": True}


Files = Callable[["Surroundings"], Mapping[ConfigScope, Path | None]]


def _files(user: Callable[[Surroundings], Path], project: str = "") -> Files:
    """Return a function that finds the user's file and, with `project`, the file in the project folder."""
    return lambda around: {"user": user(around), **({"project": around.folder / project} if project else {})}


def _claude_desktop_files(around: Surroundings) -> Mapping[ConfigScope, Path | None]:
    folder = around.application / "Claude"
    store = around.variable("LOCALAPPDATA")
    if around.system == "win32" and store is not None:  # The Windows Store version has its own folder.
        packaged = store / "Packages" / "Claude_pzs8sxrjxfjjc" / "LocalCache" / "Roaming" / "Claude"
        folder = packaged if packaged.is_dir() else folder
    return {"user": folder / "claude_desktop_config.json"}


def _opencode_files(around: Surroundings) -> Mapping[ConfigScope, Path | None]:
    user, project = around.config / "opencode", around.folder
    return {
        "user": _with_comments(user / "opencode.json"),
        "project": _with_comments(project / "opencode.json"),
    }


def _with_comments(path: Path) -> Path:
    """Return the path of the `.jsonc` file if this file exists, otherwise the given path."""
    other = path.with_suffix(".jsonc")
    return other if other.exists() else path


def _openclaw_file(around: Surroundings) -> Path:
    named = around.variable("OPENCLAW_CONFIG_PATH")
    if named is not None:
        return named
    home = around.variable("OPENCLAW_HOME") or around.home
    return (around.variable("OPENCLAW_STATE_DIR") or home / ".openclaw") / "openclaw.json"


def _agent_zero_files(around: Surroundings) -> Mapping[ConfigScope, Path | None]:
    """Return the settings files of Agent Zero.

    Only the user knows where Agent Zero is installed, so the usual folders are checked.
    """

    def inside(folder: Path) -> Path | None:
        # Agent Zero has used `usr` since version 0.9.8. Before that, it used `tmp`.
        names = (folder / "usr" / "settings.json", folder / "tmp" / "settings.json")
        return next((path for path in names if path.is_file()), None)

    homes = (around.home / "agent-zero", around.home / "a0", Path("/a0"))
    return {"user": next(filter(None, map(inside, homes)), None), "project": inside(around.folder)}


def _codex_folder(around: Surroundings) -> Path:
    return around.variable("CODEX_HOME") or around.home / ".codex"


def _copilot_folder(around: Surroundings) -> Path:
    return around.variable("COPILOT_HOME") or around.home / ".copilot"


def _zed_folder(around: Surroundings) -> Path:
    if around.system == "win32":
        return around.application / "Zed"
    return around.home / ".config" / "zed" if around.system == "darwin" else around.config / "zed"


_CONSENT: Final = (
    "The client opens your console. Log in with the link that `lithos login` prints, load the "
    "page again, choose the permissions, and confirm."
)
_THROW_OUT: Final = (
    "To remove the client's access, press Revoke in the console under Agents > Remote clients, "
    "or run lithos token revoke."
)
#: Steps that a person must take to connect a hosted client, by client name.
HOSTED_STEPS: Final[Mapping[str, Sequence[str]]] = {
    "chatgpt": (
        "Settings > Apps & Connectors > Advanced settings: switch on developer mode.",
        "Settings > Apps & Connectors > Create: enter a name, the address {url}, and the "
        "authentication OAuth.",
        _CONSENT,
        "In a chat, press + and choose the new connector.",
        _THROW_OUT,
    ),
    "claude-ai": (
        "Settings > Connectors > Add custom connector: enter a name and the address {url} only.",
        "Press Connect next to the new connector.",
        _CONSENT,
        "In a chat, the tools menu shows the connector, on the web and on a phone.",
        _THROW_OUT,
    ),
}

_MCP_SERVERS: Final = ("mcpServers",)
_DOLLAR: Final = f"${{{TOKEN_VARIABLE}}}"
_DOLLAR_ENV: Final = f"${{env:{TOKEN_VARIABLE}}}"

CLIENTS: Final[Mapping[str, Client]] = {
    client.name: client
    for client in (
        Client(
            "claude-code", "Claude Code", JsonFormat(_MCP_SERVERS),
            _files(lambda it: (it.variable("CLAUDE_CONFIG_DIR") or it.home) / ".claude.json", ".mcp.json"),
            ("claude",), lambda around: (around.variable("CLAUDE_CONFIG_DIR") or around.home / ".claude",),
            _stdio(type="stdio"), _url(_DOLLAR, type="http"),
            then="Start a new session and check /mcp. In a project, Claude Code asks for approval first.",
        ),
        Client(
            "claude-desktop", "Claude Desktop", JsonFormat(_MCP_SERVERS), _claude_desktop_files,
            ("claude-desktop",), lambda around: (around.application / "Claude",),
            _stdio(), None, knows_variables=False,
            then="Quit and restart Claude Desktop. Settings > Developer shows lithos as running.",
            # Connectors of this client connect from the vendor's network, so they cannot reach this machine.
            place="Settings > Developer > Edit Config (claude_desktop_config.json), then restart "
                  "the client:",
        ),
        Client(
            "cursor", "Cursor", JsonFormat(_MCP_SERVERS),
            _files(lambda around: around.home / ".cursor" / "mcp.json", ".cursor/mcp.json"),
            ("cursor", "cursor-agent"), lambda around: (around.home / ".cursor",),
            _stdio(type="stdio"), _url(_DOLLAR_ENV),
            then="Restart Cursor, then switch on lithos under Customize > MCPs (older versions: "
                 "Settings > Tools & MCP).",
        ),
        Client(
            "vscode", "VS Code", JsonFormat(("servers",)),
            _files(lambda around: around.application / "Code" / "User" / "mcp.json", ".vscode/mcp.json"),
            ("code",), lambda around: (around.application / "Code",),
            _stdio(type="stdio"), _url(_DOLLAR_ENV, type="http"),
            then="Run MCP: List Servers from the command palette and start lithos there.",
            command=_code_command,
        ),
        Client(
            "codex", "Codex", TomlFormat(("mcp_servers",)),
            _files(lambda around: _codex_folder(around) / "config.toml", ".codex/config.toml"),
            ("codex",), lambda around: (_codex_folder(around),),
            _stdio(), _codex_http,
            then="codex mcp list shows lithos. In a project it appears only once the project is trusted.",
        ),
        Client(
            "gemini-cli", "Gemini CLI", JsonFormat(_MCP_SERVERS),
            _files(lambda around: around.home / ".gemini" / "settings.json", ".gemini/settings.json"),
            ("gemini",), lambda around: (around.home / ".gemini",),
            _stdio(), _url(_DOLLAR, url="httpUrl"),
            then="Restart Gemini CLI. /mcp lists lithos with its tools.",
        ),
        # Source: github/docs, content/copilot/reference/copilot-cli-reference/cli-command-reference.md
        # (autumn of 2026). An entry needs `tools`. A project's .mcp.json is read too, but it is the file of
        # Claude Code.
        Client(
            "copilot-cli", "Copilot CLI", JsonFormat(_MCP_SERVERS),
            _files(lambda around: _copilot_folder(around) / "mcp-config.json", ".github/mcp.json"),
            ("copilot",), lambda around: (_copilot_folder(around),),
            _every_tool(_stdio(type="local")), _every_tool(_url(_DOLLAR, type="http")),
            then="Restart Copilot CLI. /mcp show lists lithos. In a project, the folder must be trusted.",
        ),
        Client(
            "windsurf", "Windsurf", JsonFormat(_MCP_SERVERS),
            _files(lambda around: around.home / ".codeium" / "windsurf" / "mcp_config.json"),
            ("windsurf",), lambda around: (around.home / ".codeium" / "windsurf",),
            _stdio(), _url(_DOLLAR_ENV, url="serverUrl"),
            then="Press refresh under MCP servers in the settings of Cascade.",
        ),
        Client(
            "zed", "Zed", JsonFormat(("context_servers",)),
            _files(lambda around: _zed_folder(around) / "settings.json", ".zed/settings.json"),
            ("zed", "zeditor"), lambda around: (_zed_folder(around),),
            _stdio(), _url(None), knows_variables=False,
            then="The agent panel settings of Zed show a green dot next to lithos at once.",
        ),
        Client(
            "opencode", "opencode", OpencodeFormat(("mcp",)), _opencode_files,
            ("opencode",), lambda around: (around.config / "opencode",),
            _opencode_stdio, _opencode_http,
            then="Restart opencode. opencode mcp list shows lithos.",
        ),
        Client(
            "openclaw", "OpenClaw", JsonFormat(("mcp", "servers"), is_json5=True),
            _files(_openclaw_file),
            ("openclaw",), lambda around: (_openclaw_file(around).parent,),
            _stdio(), _url(_DOLLAR, transport="streamable-http"),
            then="Restart the gateway. openclaw mcp list shows lithos.",
            command=_openclaw_command,
        ),
        Client(
            "agent-zero", "Agent Zero",
            JsonFormat(("mcp_servers", "mcpServers"), embedded="mcp_servers"), _agent_zero_files, (),
            lambda around: [path.parent for path in _agent_zero_files(around).values() if path],
            _stdio(type="stdio"), _url(None, type="streamable-http"), knows_variables=False,
            then="Stop Agent Zero before you write, because it writes this file itself. Its "
                 "container reaches this machine as host.docker.internal: use that name instead "
                 "of 127.0.0.1, and add it to server.allowed_hosts.",
        ),
    )
}  # fmt: skip
