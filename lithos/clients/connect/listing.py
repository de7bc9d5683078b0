"""`lithos connect --list`: the clients on this machine, and their entries for Lithos."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from attrs import frozen

from lithos.clients.connect.clients import CLIENTS, Client, Surroundings
from lithos.clients.connect.files import DEFAULT_NAME, CannotUse, read_config
from lithos.clients.connect.formats import CannotEdit
from lithos.clients.connect.target import ConnectTarget, ServerLink
from lithos.clients.connect.writing import switch_of

State = Literal["connected", "another server", "off", "not connected", "no file", "unreadable"]
_ALWAYS: Final[Mapping[bool | None, str]] = {True: "yes", False: "no", None: "no such switch"}


def list_clients(target: ConnectTarget, around: Surroundings, name: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each client and scope.

    If a file has entries called `name` or entries that lead to Lithos, each of them has a row instead.
    """
    for client in CLIENTS.values():
        is_installed = _is_installed(client, around)
        for scope, path in client.files(around).items():
            for found in _look(client, path, target, name):
                link = found.link
                yield {
                    "client": client.name,
                    "installed": is_installed,
                    "scope": scope,
                    "path": None if path is None else str(path),
                    "state": found.state,
                    "name": found.name,
                    "transport": None if link is None else link.transport,
                    "leads_to": None if link is None else link.place,
                    "always_loaded": found.always_loaded,
                    "trouble": found.trouble,
                }


@frozen
class _FoundEntry:
    """An entry in a file of a client, or the reason why the file has no such entry."""

    state: State
    name: str | None = None
    link: ServerLink | None = None
    #: Whether the client shows the tools from the first turn. None if the client has no such switch.
    always_loaded: bool | None = None
    trouble: str | None = None


def _look(client: Client, path: Path | None, target: ConnectTarget, name: str) -> Iterator[_FoundEntry]:
    """Yield the entries of a file that have this name or start Lithos, or one state without an entry."""
    if path is None:
        yield _FoundEntry("no file", always_loaded=False if client.switch else None)
        return
    try:
        file = read_config(path)
        entries, switch = client.format.entries(file.text), switch_of(client, file.text)
    except (CannotUse, CannotEdit) as error:
        yield _FoundEntry("unreadable", trouble=str(error))
        return
    is_alone = True
    for found, entry in entries.items():
        link = ServerLink.of(entry)
        is_here = link is not None and link.points_to(target)
        if found == name or is_here or (link is not None and link.is_lithos):
            is_alone = False
            state: State = "off" if link is not None and link.is_off else "connected"
            always = all(entry.get(key) == value for key, value in switch.items()) if switch else None
            yield _FoundEntry(state if is_here else "another server", found, link, always)
    if is_alone:
        yield _FoundEntry(
            "no file" if file.data is None else "not connected", always_loaded=False if switch else None
        )


def _is_installed(client: Client, around: Surroundings) -> bool:
    search = around.environment.get("PATH")
    return any(shutil.which(program, path=search) for program in client.programs) or any(
        folder.is_dir() for folder in client.folders(around)
    )


def describe(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines for a person. Clients that are not installed share the last line."""
    shown = [row for row in rows if row["installed"] or row["state"] != "no file"]
    for row in shown:
        named = "" if row["name"] in (None, DEFAULT_NAME) else f" as {row['name']}"
        leads = "" if row["transport"] is None else f" over {row['transport']}{named}"
        where = f" ({row['leads_to']})" if row["transport"] and row["state"] == "another server" else ""
        loads = "" if row["transport"] is None else f", always loaded: {_ALWAYS[row['always_loaded']]}"
        yield f"{row['client']:<15} {row['scope']:<8} {row['state']}{leads}{where}{loads}"
        if row["path"] is not None and row["state"] != "no file":
            yield f"{'':<24} {_short(Path(row['path']))}"
        if row["trouble"] is not None:
            yield f"{'':<24} {row['trouble']}"
    absent = sorted({row["client"] for row in rows} - {row["client"] for row in shown})
    if absent:
        yield f"Not installed: {', '.join(absent)}."


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
