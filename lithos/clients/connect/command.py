"""`lithos connect`: print, write and remove configuration entries, and list the clients."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from lithos.clients.connect.clients import (
    CLIENTS,
    HOSTED_STEPS,
    Client,
    ConfigScope,
    Surroundings,
)
from lithos.clients.connect.files import DEFAULT_NAME, CannotUse, read_config
from lithos.clients.connect.formats import CannotEdit, ConfigEntry, HasComments
from lithos.clients.connect.instructions import run_instructions
from lithos.clients.connect.listing import describe, list_clients
from lithos.clients.connect.permissions import RuleResult, add_rules, place_of_rules, rules_removed
from lithos.clients.connect.recipes import Recipe, make_recipes
from lithos.clients.connect.target import (
    TOKEN_VARIABLE,
    ConnectTarget,
    ServerLink,
    Transport,
    find_project,
    find_target,
)
from lithos.clients.connect.writing import (
    ClientEntry,
    ConfigRefused,
    ConnectResult,
    change_entry,
    wanted_entry,
)
from lithos.clients.hooks.payload import host_name
from lithos.clients.plugin.writing import ForeignFolder, write_plugin
from lithos.server.command.output import agrees, print_json, tell
from lithos.server.command.session import CommandFailed, CommandSession, refusing
from lithos.server.command.starting import find_options, find_program


def run_plugin(session: CommandSession) -> int:
    """Write the plugin for Claude Code, and print how to start the client with it. Raises `CommandFailed`."""
    typed = session.typed
    if typed.get("client") != "claude-code":
        raise CommandFailed(
            "--plugin is only for claude-code. For another client, run lithos connect without it.", 2
        )
    directory = Path(typed["plugin"]).absolute()
    with refusing(ForeignFolder, exit_code=2):
        files = write_plugin(directory, find_program(), find_options(session))
    document = {"client": "claude-code", "plugin": str(directory), "files": [str(file) for file in files]}
    lines = [
        *(f"  {file.relative_to(directory)}" for file in files),
        f"The plugin is in {directory}. Start Claude Code with it:",
        f"  claude --plugin-dir {shlex.quote(str(directory))}",
    ]
    tell(session, document, lines)
    return 0


#: Matches entry names that every client accepts and that are keys in every format.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


#: Options that have no effect without `--write` or `--remove`.
_ONLY_WRITING: Final = ("scope", "file", "name", "agent", "allow_reads")


def run_connect(session: CommandSession) -> int:
    """Print the entries for a client, edit its file, write a plugin, or list all clients.

    Raises `CommandFailed` for unusable options or if the file must not be changed.
    """
    typed = session.typed
    if "plugin" in typed and not typed.get("hooks"):
        return run_plugin(session)
    if "instructions" in typed:
        return run_instructions(session)
    if typed.get("hooks"):
        from lithos.clients.hook_files.command import run_hooks

        return run_hooks(session)
    target, around = find_target(session), Surroundings.here()
    name = typed.get("name", DEFAULT_NAME)
    if not _NAME.fullmatch(name):
        raise CommandFailed(
            "A --name must have 1 to 64 letters, digits, - or _, and begin with a letter or digit.", 2
        )
    if typed.get("list"):
        rows = list(list_clients(target, around, name))
        tell(session, {"clients": rows}, describe(rows))
        return 0
    if typed.get("client") is None:
        raise CommandFailed(
            f"The client is missing. Name one of {', '.join(CLIENTS)}, or list all clients with --list.", 2
        )
    if typed["client"] in HOSTED_STEPS:
        return _print_hosted(session, typed["client"])
    client = CLIENTS[typed["client"]]
    with refusing(ConfigRefused):
        if typed.get("write") or typed.get("remove"):
            return _edit(session, client, target, around)
    unused = [f"--{name.replace('_', '-')}" for name in _ONLY_WRITING if name in typed]
    if unused:
        raise CommandFailed(f"Use {', '.join(unused)} only with --write or --remove.", 2)
    return _print(session, client, target, around)


def _print_hosted(session: CommandSession, name: str) -> int:
    """Print the steps to connect a hosted client. Raises `CommandFailed`."""
    options = ("write", "remove", *_ONLY_WRITING, "transport")
    if unused := [f"--{each.replace('_', '-')}" for each in options if each in session.typed]:
        raise CommandFailed(f"Use {', '.join(unused)} only for clients on this machine.", 2)
    address = session.public_url
    if address is None:
        raise CommandFailed(
            f"{name} is hosted, so it needs a public address of this server. Put a tunnel or "
            "proxy in front of this server, and start it with serve --public-url (or set "
            "server.public_url). docs/remote-clients.md shows how."
        )
    url = f"{address}{session.prefix if session.named.chosen else ''}/mcp"
    steps = [step.format(url=url) for step in HOSTED_STEPS[name]]
    document = {"client": name, "url": url, "steps": steps}
    tell(session, document, [f"{number}. {step}" for number, step in enumerate(steps, 1)])
    return 0


def _print(session: CommandSession, client: Client, target: ConnectTarget, around: Surroundings) -> int:
    wanted = session.typed.get("transport")
    recipes = make_recipes(client, target, around)
    if wanted is not None and wanted not in recipes:
        raise CommandFailed(
            f"{client.title} connects to servers on this machine only over {', '.join(recipes)}. "
            "Choose this transport with --transport."
        )
    shown = {way: recipe for way, recipe in recipes.items() if wanted in (None, way)}
    if session.as_json:
        print_json({
            "client": client.name,
            "token_variable": TOKEN_VARIABLE if target.needs_token else None,
            **{way: {"place": recipe.place, "text": recipe.text} for way, recipe in shown.items()},
        })  # fmt: skip
        return 0
    print("\n\n".join(_present(way, recipe) for way, recipe in shown.items()))
    if target.needs_token:
        print(
            f"\nThe server requires a token. Keep it in {TOKEN_VARIABLE}, or replace that name "
            "with the token."
        )
    return 0


def _present(way: str, recipe: Recipe) -> str:
    heading = {
        "http": "Over HTTP, to one server that all clients share (lithos serve --transport http):",
        "stdio": "Over stdio: the first client starts the server, and other clients connect to it:",
    }[way]
    indented = "\n".join(f"    {line}" for line in recipe.text.splitlines())
    return f"{heading}\n  {recipe.place}\n\n{indented}"


def _edit(session: CommandSession, client: Client, target: ConnectTarget, around: Surroundings) -> int:
    """Write or remove the entry. Raises `ConfigRefused`."""
    place = _place_of(session, client, around)
    transport, reason = _transport_of(session, place, around)
    project = find_project(around.folder) if place.scope == "project" else None
    entry = wanted_entry(client, target, transport, project) if session.typed.get("write") else None
    try:
        if entry is None:
            with rules_removed(place, around) as rules:
                outcome = change_entry(place, None, target, place_of_rules(place, around))
            return _report(session, place, outcome, (), rules)
        outcome = change_entry(place, entry, target, place_of_rules(place, around))
    except HasComments as reason:
        return _leave(session, place, entry, reason)
    rules = add_rules(session, place, around)
    advice = (*reason, *_advice(session, place, target, transport))
    return _report(session, place, outcome, advice, rules)


def _transport_of(
    session: CommandSession, place: ClientEntry, around: Surroundings
) -> tuple[Transport, Sequence[str]]:
    """Return the transport of the entry, and a line with its reason if that is another entry.

    Codex merges the entries of a name in both of its files, key by key, and refuses an entry with `command`
    and `url` (openai/codex, codex-rs/config/src/merge.rs and mcp_types.rs, 2026). Raises `ConfigRefused`.
    """
    client, typed = place.client, session.typed.get("transport")
    others = {scope: path for scope, path in client.files(around).items() if scope != place.scope}
    path = next(iter(others.values()), None)
    if client.name != "codex" or "file" in session.typed or path is None or path == place.path:
        return typed or client.default_transport(place.scope), ()
    try:
        link = ServerLink.of(client.format.entries(read_config(path).text).get(place.name))
    except (CannotUse, CannotEdit):
        link = None  # Codex cannot read the file either, so it merges nothing.
    if link is None:
        return typed or client.default_transport(place.scope), ()
    if session.typed.get("write") and typed not in (None, link.transport):
        raise ConfigRefused(
            f"{place.path} is unchanged. {path} has an entry {place.name!r} over {link.transport}. Codex "
            "merges both entries, and refuses an entry that is both over stdio and over HTTP. Use "
            f"--transport {link.transport} or another --name, or remove the other entry first."
        )
    line = f"The entry is over {link.transport}, like that in {path}, because Codex merges both entries."
    return link.transport, (line,)


def _leave(
    session: CommandSession, place: ClientEntry, entry: ConfigEntry | None, reason: HasComments
) -> int:
    """For a file with comments, run the client's own command if the user agrees.

    If the client has no command or the user declines, raise `ConfigRefused` with the entry and its place.
    """
    client, form = place.client, place.client.format
    is_usual = place.scope == "user" and "file" not in session.typed
    command = client.command(place.name, entry) if is_usual else ()
    shown = shlex.join(command)
    if command and shutil.which(command[0]) and not session.as_json and agrees(f"Run {shown} instead?"):
        if subprocess.run(command, check=False).returncode:  # noqa: S603 - as shown to the person
            raise ConfigRefused(f"{shown} failed. Lithos changed nothing.")
        tell(session, {}, [f"{client.title}: {place.name} {'removed' if entry is None else 'connected'}."])
        return 0
    text = read_config(place.path).text
    where = f"`{form.place(text, place.name)}`"
    if entry is None:
        what = f"Delete {place.name!r} under {where} in an editor."
    else:
        lines = json.dumps({place.name: form.written(text, entry)}, indent=2, ensure_ascii=False).splitlines()
        what = "\n".join([f"Add this under {where} in an editor:", *lines[1:-1]])
    what += f"\nOr run: {shown}" if command else ""
    raise ConfigRefused(f"{place.path} is unchanged. {reason} {what}")


def _place_of(session: CommandSession, client: Client, around: Surroundings) -> ClientEntry:
    typed = session.typed
    files = client.files(around)
    scope: ConfigScope = typed.get("scope", "user")
    path = typed["file"].expanduser().absolute() if "file" in typed else files.get(scope)
    if path is None and scope not in files:
        raise ConfigRefused(f"{client.title} has no {scope} configuration. Use --scope {', '.join(files)}.")
    if path is None:
        raise ConfigRefused(
            f"The settings file of {client.title} was not found. Name it with --file "
            "(usr/settings.json in its folder), or paste the output of `lithos connect "
            "agent-zero` into Settings > MCP/A2A > External MCP Servers."
        )
    return ClientEntry(client, scope, path, typed.get("name", DEFAULT_NAME))


def _advice(
    session: CommandSession, place: ClientEntry, target: ConnectTarget, transport: str
) -> Iterable[str]:
    agent = session.typed.get("agent") or f"{place.client.name}@{host_name()}"
    if transport == "http":
        yield "Over HTTP, the client needs a running server: lithos serve --transport http"
        if target.needs_token:
            yield (
                f"Start {place.client.title} with the token in the environment variable "
                f"{TOKEN_VARIABLE}, to which the file refers."
            )
    else:
        what = " and ".join(vault.name for vault in session.vaults) or target.data
        yield f"The client starts the server of {what}, or connects to the running one."
    if transport == "stdio" and place.scope == "project":
        yield (
            "The entry contains paths of this machine. For other users of this project, use --transport http."
        )
    yield place.client.then
    yield f'Instruct the client\'s agents to use the agent id "{agent}" in every session.'


def _report(
    session: CommandSession,
    place: ClientEntry,
    outcome: ConnectResult,
    advice: Iterable[str],
    rules: RuleResult | None,
) -> int:
    lines = [*outcome.notes, *(() if rules is None else rules.notes), *advice]
    document = {
        "client": place.client.name,
        "action": outcome.action,
        "scope": place.scope,
        "path": str(place.path),
        "name": place.name,
        "transport": None if outcome.link is None else outcome.link.transport,
        "backup": outcome.backup,
        "rules": None if rules is None else rules.document,
        "notes": lines,
    }
    is_there = outcome.link is not None and outcome.action != "removed"
    how = f" over {outcome.link.transport}" if is_there and outcome.link is not None else ""
    done = [f"{place.client.title}: {outcome.action}{how} ({place.name} in {place.path})."]
    if outcome.backup is not None and outcome.action in ("connected", "updated"):
        done.append(f"The previous file is in {outcome.backup}. Undo the change with --remove.")
    tell(session, document, [*done, *lines])
    return 0
