"""`lithos adopt`: links memory folders of clients to the vault, copies them, unlinks them, and lists them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lithos.adopt.files_adopting import Adoption, CannotAdopt
from lithos.adopt.files_memory import ClientHomes, MemoryFolder, NoMemory, find_folders, named_folder
from lithos.adopt.model_clients import CLIENTS
from lithos.kernel.settings import StorageConfig
from lithos.notes.files.tree import walk_notes
from lithos.notes.linked.linked_folders import LinkedFolder
from lithos.notes.model.ignored import Ignored
from lithos.server.command.output import tell
from lithos.server.command.session import CommandFailed, CommandSession, refusing
from lithos.server.command.streams import make_printable

_NAME_CLIENT = f"Name a client: {', '.join(CLIENTS)}. With --list, no client is needed."


def run_adopt(session: CommandSession) -> int:
    """Carry out the command and return 0. Raises `CommandFailed`."""
    typed = session.typed
    adoption = Adoption.of(session.config.of(StorageConfig))
    client: str | None = typed.get("client")
    if typed.get("listing"):
        rows = [_row(each) for each in adoption.linked.listed if client in (None, each.client)]
        tell(session, {"adopted": rows}, _list(rows))
        return 0
    if typed.get("everything") and (typed.get("project") or typed.get("folder")):
        raise CommandFailed("--all cannot be used with --project or --folder. Leave one of them out.", 2)
    with refusing(CannotAdopt, NoMemory, OSError):
        if typed.get("remove"):
            return _remove(session, adoption, client)
        if client is None:
            raise CommandFailed(_NAME_CLIENT, 2)
        found = _find(typed, client)
        if typed.get("copy"):
            return _copy(session, adoption, client, found)
        return _adopt(session, adoption, client, found)


def _project(typed: dict[str, Any]) -> Path:
    return Path(os.path.expanduser(typed.get("project") or os.curdir))


def _find(typed: dict[str, Any], client: str) -> list[MemoryFolder]:
    if typed.get("folder"):
        project = Path(os.path.expanduser(typed["project"])) if typed.get("project") else None
        return [named_folder(Path(os.path.expanduser(typed["folder"])), project)]
    project = None if typed.get("everything") else _project(typed)
    return find_folders(client, ClientHomes.of(os.environ), project)


def _adopt(session: CommandSession, adoption: Adoption, client: str, found: list[MemoryFolder]) -> int:
    made = adoption.adopt(client, found)
    rows = [{**_row(each), "action": "adopted" if is_new else "already adopted"} for each, is_new in made]
    tell(session, {"adopted": rows}, (_line(row) for row in rows))
    return 0


def _remove(session: CommandSession, adoption: Adoption, client: str | None) -> int:
    typed = session.typed
    listed = [each for each in adoption.linked.listed if client in (None, each.client)]
    if typed.get("folder"):
        real = os.path.realpath(os.path.expanduser(typed["folder"]))
        listed = [each for each in listed if each.folder == real]
    elif not typed.get("everything") and (typed.get("project") or client == "claude-code"):
        folders = {os.path.realpath(each.folder) for each in _find(typed, client or "claude-code")}
        listed = [each for each in listed if each.folder in folders]
    elif client is None and not typed.get("everything") and len(listed) > 1:
        raise CommandFailed(
            f"{len(listed)} folders are adopted. Nothing was changed. Name a client, --project or --folder, "
            "or use --all to remove all of them.",
            2,
        )
    if not listed:
        raise CommandFailed("No adopted folder was found. Nothing was changed. See lithos adopt --list.")
    adoption.remove(listed)
    rows = [{**_row(each), "action": "removed"} for each in listed]
    tell(session, {"removed": rows}, (_line(row) for row in rows))
    return 0


def _copy(session: CommandSession, adoption: Adoption, client: str, found: list[MemoryFolder]) -> int:
    done = list(adoption.copy(client, found))
    rows = [{"path": each.path, "files": each.files, "differing": list(each.differing)} for each in done]
    lines = [f"{each.path}: {each.files} files copied" for each in done]
    differing = [path for each in done for path in each.differing]
    lines += [f"  {path} already has other text and was not replaced" for path in differing]
    tell(session, {"copied": rows}, map(make_printable, lines))
    return 1 if differing else 0


def _row(each: LinkedFolder) -> dict[str, Any]:
    client = CLIENTS.get(each.client)
    index = None if client is None else Path(each.folder, client.index)
    try:
        excess = "" if client is None or index is None else client.excess(index.read_bytes())
    except OSError:
        excess = ""
    is_there = os.path.isdir(each.folder)
    return {
        "client": each.client,
        "project": each.project or None,
        "path": each.prefix,
        "folder": each.folder,
        "state": "served" if is_there else "missing",
        "notes": sum(1 for _ in walk_notes(os.path.realpath(each.folder), Ignored())) if is_there else 0,
        "index_over_limit": excess or None,
    }


def _line(row: dict[str, Any]) -> str:
    text = f"{row['action']}: {row['folder']} as {row['path']} ({row['notes']} notes)"
    return make_printable(text)


def _list(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not rows:
        yield "No memory folder is adopted. Run lithos adopt claude-code, or lithos adopt codex."
    for row in rows:
        yield make_printable(f"{row['path']}: {row['folder']}, {row['notes']} notes, {row['state']}")
        if row["index_over_limit"]:
            name = CLIENTS[row["client"]]
            yield f"  {name.index} has {row['index_over_limit']}. {name.title} does not load the rest."
