"""`--list`: which clients are here, and what each of their files connects them to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from attrs import frozen

from lithos.cli.connecting.clients import CLIENTS, Client, Scope, Surroundings
from lithos.cli.connecting.files import CannotUse, read_config
from lithos.cli.connecting.target import Link, Target
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
            for state, found, link, trouble in _look(client, path, target, name):
                yield Entry(client, is_installed, scope, path, state, found, link, trouble)


def _look(
    client: Client, path: Path | None, target: Target, name: str
) -> Iterator[tuple[State, str | None, Link | None, str | None]]:
    if path is None:
        yield "no file", None, None, None
        return
    try:
        file = read_config(path)
        entries = client.format.entries(file.text)
    except (CannotUse, CannotEdit, InvalidText) as error:
        yield "unreadable", None, None, str(error)
        return
    links = {found: Link.of(entry) for found, entry in entries.items()}
    shown = {
        found: link
        for found, link in links.items()
        if found == name or (link is not None and (link.is_lithos or link.points_to(target)))
    }
    if not shown:
        yield "no file" if file.data is None else "not connected", None, None, None
    for found, link in shown.items():
        yield _state_of(link, target), found, link, None


def _state_of(link: Link | None, target: Target) -> State:
    if link is None or not link.points_to(target):
        return "another server"
    return "off" if link.is_off else "connected"


def _is_installed(client: Client, around: Surroundings) -> bool:
    search = around.environment.get("PATH")
    return any(shutil.which(program, path=search) for program in client.programs) or any(
        folder.is_dir() for folder in client.folders(around)
    )
