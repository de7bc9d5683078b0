"""`lithos connect`: print, write, remove, list."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from attrs import frozen

from lithos.cli.connecting.clients import CLIENTS, Client, Recipe, Scope, Surroundings, make_recipes
from lithos.cli.connecting.files import CannotUse, read_config
from lithos.cli.connecting.target import TOKEN_VARIABLE, Link, Target, find_options, find_program, find_target
from lithos.cli.connecting.writing import Outcome, Place, Refused, remove_entry, wanted_entry, write_entry
from lithos.cli.output import print_json, tell
from lithos.cli.plugin.writing import ForeignFolder, PluginTarget, write_plugin
from lithos.cli.session import CommandFailed, Session
from lithos.core.editing.json_edit import CannotEdit
from lithos.core.editing.json_text import InvalidText

State = Literal["connected", "another server", "off", "not connected", "no file", "unreadable"]


@frozen
class Entry:
    """An entry for a server of this kind, or the state of a file that has none."""

    client: Client
    is_installed: bool
    scope: Scope
    path: Path | None
    state: State
    name: str | None = None
    link: Link | None = None
    trouble: str | None = None

    def to_row(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "client": self.client.name,
            "installed": self.is_installed,
            "scope": self.scope,
            "path": None if self.path is None else str(self.path),
            "state": self.state,
            "name": self.name,
            "transport": None if self.link is None else self.link.transport,
            "leads_to": None if self.link is None else self.link.place,
            "trouble": self.trouble,
        }


def list_clients(target: Target, around: Surroundings, name: str) -> Iterator[Entry]:
    """All clients in all scopes; entries called `name`, and those that lead to a Lithos."""
    for client in CLIENTS.values():
        is_installed = _is_installed(client, around)
        for scope, path in client.files(around).items():
            yield from _look(partial(Entry, client, is_installed, scope, path), client, path, target, name)


def _look(
    make: Callable[..., Entry], client: Client, path: Path | None, target: Target, name: str
) -> Iterator[Entry]:
    if path is None:
        yield make("no file")
        return
    try:
        file = read_config(path)
        entries = client.format.entries(file.text)
    except (CannotUse, CannotEdit, InvalidText) as error:
        yield make("unreadable", trouble=str(error))
        return
    is_alone = True
    for found, entry in entries.items():
        link = Link.of(entry)
        is_here = link is not None and link.points_to(target)
        if found != name and (link is None or not (link.is_lithos or is_here)):
            continue
        is_alone, state = False, "another server"
        if link is not None and is_here:
            state = "off" if link.is_off else "connected"
        yield make(state, found, link)
    if is_alone:
        yield make("no file" if file.data is None else "not connected")


def _is_installed(client: Client, around: Surroundings) -> bool:
    search = around.environment.get("PATH")
    return any(shutil.which(program, path=search) for program in client.programs) or any(
        folder.is_dir() for folder in client.folders(around)
    )


def run_plugin(session: Session) -> int:
    """Write the plugin of Claude Code and say how to try it. Raises `CommandFailed`."""
    typed = session.typed
    if typed.get("client") != "claude-code":
        raise CommandFailed("--plugin is for claude-code; print what others need without it.", 2)
    directory = Path(typed["plugin"]).absolute()
    target = PluginTarget(find_program(), find_options(session))
    try:
        files = write_plugin(directory, target)
    except ForeignFolder as foreign:
        raise CommandFailed(str(foreign), 2) from foreign
    document = {"client": "claude-code", "plugin": str(directory), "files": [str(file) for file in files]}
    lines = [
        *(f"  {file.relative_to(directory)}" for file in files),
        f"The plugin is in {directory}. Start Claude Code with it:",
        f"  claude --plugin-dir {shlex.quote(str(directory))}",
    ]
    tell(session, document, lines)
    return 0


#: What every client takes for the name of a server, and every format for a key.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_DEFAULT_NAME: Final = "lithos"


def run_connect(session: Session) -> int:
    """Print both ways for a client, edit its file, write a plugin, or list all. Raises `CommandFailed`."""
    typed = session.typed
    if "plugin" in typed:
        return run_plugin(session)
    target, around = find_target(session), Surroundings.here()
    name = typed.get("name", _DEFAULT_NAME)
    if not _NAME.fullmatch(name):
        raise CommandFailed(
            "A --name has 1 to 64 letters, digits, - and _, and begins with a letter or digit.", 2
        )
    if typed.get("list"):
        return _list(session, list_clients(target, around, name))
    if typed.get("client") is None:
        raise CommandFailed(f"Name a client ({', '.join(CLIENTS)}), or ask for all with --list.", 2)
    client = CLIENTS[typed["client"]]
    try:
        if typed.get("write"):
            return _write(session, client, target, around)
        if typed.get("remove"):
            place = _place_of(session, client, around)
            return _report(session, place, remove_entry(place, target, around.environment), ())
    except Refused as refusal:
        raise CommandFailed(str(refusal)) from refusal
    unused = [f"--{name}" for name in ("scope", "file", "name", "agent") if name in typed]
    if unused:
        raise CommandFailed(f"{', '.join(unused)} is for --write and --remove.", 2)
    return _print(session, client, target, around)


def _print(session: Session, client: Client, target: Target, around: Surroundings) -> int:
    wanted = session.typed.get("transport")
    recipes = make_recipes(client, target, around)
    if wanted is not None and wanted not in recipes:
        raise CommandFailed(f"{client.title} reaches servers on this machine only over {', '.join(recipes)}.")
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
        print(f"\nThe server wants a token: keep it in {TOKEN_VARIABLE}, or put it in place of that name.")
    return 0


def _present(way: str, recipe: Recipe) -> str:
    heading = {
        "http": "Over HTTP, to the one server that all share (lithos serve --transport http):",
        "stdio": "Over stdio; the first client starts the server, others are bridged to it:",
    }[way]
    indented = "\n".join(f"    {line}" for line in recipe.text.splitlines())
    return f"{heading}\n  {recipe.place}\n\n{indented}"


def _write(session: Session, client: Client, target: Target, around: Surroundings) -> int:
    place = _place_of(session, client, around)
    transport = session.typed.get("transport") or client.default_transport(place.scope)
    entry = wanted_entry(client, target, transport)
    outcome = write_entry(place, entry, target, around.environment)
    return _report(session, place, outcome, _advice(session, place, target, transport))


def _place_of(session: Session, client: Client, around: Surroundings) -> Place:
    typed = session.typed
    files = client.files(around)
    scope: Scope = typed.get("scope", "user")
    path = typed["file"].expanduser().absolute() if "file" in typed else files.get(scope)
    if path is None and scope not in files:
        raise Refused(f"{client.title} has no configuration of a {scope}; it knows {', '.join(files)}.")
    if path is None:
        raise Refused(
            f"Where the settings of {client.title} are, only you know: name the file with --file "
            "(usr/settings.json in its folder), or paste what `lithos connect agent-zero` prints into "
            "Settings > MCP/A2A > External MCP Servers."
        )
    return Place(client, scope, path, typed.get("name", _DEFAULT_NAME))


def _advice(session: Session, place: Place, target: Target, transport: str) -> Iterable[str]:
    agent = session.typed.get("agent") or f"{place.client.name}@{_host()}"
    if transport == "http":
        yield "Over HTTP it finds the server while that runs: lithos serve --transport http"
        if target.needs_token:
            yield f"Start {place.client.title} where {TOKEN_VARIABLE} has the token: the file only names it."
    else:
        yield f"It starts the server of {target.data}, or passes on to the one that runs."
    if transport == "stdio" and place.scope == "project":
        yield "The entry has paths of this machine: for others who share this project take --transport http."
    yield place.client.then
    yield f'Tell its agents to use the agent id "{agent}" in every session.'


def _host() -> str:
    return socket.gethostname().partition(".")[0] or "localhost"


def _report(session: Session, place: Place, outcome: Outcome, advice: Iterable[str]) -> int:
    lines = [*outcome.notes, *advice]
    document = {
        "client": place.client.name,
        "action": outcome.action,
        "scope": place.scope,
        "path": str(outcome.path),
        "name": place.name,
        "transport": None if outcome.link is None else outcome.link.transport,
        "backup": outcome.backup,
        "notes": lines,
    }
    is_there = outcome.link is not None and outcome.action != "removed"
    how = f" over {outcome.link.transport}" if is_there and outcome.link is not None else ""
    done = [f"{place.client.title}: {outcome.action}{how} ({place.name} in {outcome.path})."]
    if outcome.backup is not None and outcome.action in ("connected", "updated"):
        done.append(f"What was there before is in {outcome.backup}; undo with --remove.")
    tell(session, document, [*done, *lines])
    return 0


def _list(session: Session, found: Iterable[Entry]) -> int:
    rows = list(found)
    tell(session, {"clients": [row.to_row() for row in rows]}, _describe(rows))
    return 0


def _describe(rows: Sequence[Entry]) -> Iterator[str]:
    for row in rows:
        if not row.is_installed and row.state == "no file":
            continue
        named = "" if row.name in (None, _DEFAULT_NAME) else f" as {row.name}"
        leads = "" if row.link is None else f" over {row.link.transport}{named}"
        where = f" ({row.link.place})" if row.link is not None and row.state == "another server" else ""
        yield f"{row.client.name:<15} {row.scope:<8} {row.state}{leads}{where}"
        if row.path is not None and row.state != "no file":
            yield f"{'':<24} {_short(row.path)}"
        if row.trouble is not None:
            yield f"{'':<24} {row.trouble}"
    absent = sorted({row.client.name for row in rows if not row.is_installed})
    if absent:
        yield f"Not found here: {', '.join(absent)}."


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
