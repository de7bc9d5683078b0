"""The folders of transcripts that a person added: in the settings, or with `lithos sessions add`.

The command keeps its folders in `.lithos/sessions.json`, so that it works with and without a running server.
The server reads the file again before each survey.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from lithos.kernel.databases.private_files import PRIVATE_FOLDER, open_regular, replace_file

#: Name of the file in `.lithos`.
ADDED: Final = "sessions.json"
#: Name of the client of folders that are given as a path.
OTHER: Final = "other"
#: Maximum number of added folders, and of bytes of the file.
MOST_FOLDERS: Final = 100
_LARGEST: Final = 1_000_000


class FoldersUnreadable(Exception):
    """Error for a list of folders that is damaged. The message says what to do."""


@frozen
class AddedFolder:
    """A folder or file of transcripts. `name` is what the person typed: a client or a path.

    `client` is the name of a client, or `other`. `places` are the absolute paths of its transcripts.
    """

    name: str
    client: str
    places: tuple[Path, ...]
    #: Whether the folder is in the settings. `lithos sessions remove` cannot remove it then.
    is_setting: bool = False


def _variable(environment: Mapping[str, str], name: str) -> Path | None:
    value = environment.get(name, "")
    return Path(os.path.expanduser(value)) if value else None


def client_folders(environment: Mapping[str, str]) -> dict[str, tuple[Path, ...]]:
    """Return the folders in which each client keeps its transcripts.

    Sources: code.claude.com/docs/en/settings (CLAUDE_CONFIG_DIR), openai/codex `codex-rs/utils/home-dir`
    (CODEX_HOME), google-gemini/gemini-cli `packages/core/src/config/storage.ts`, and anomalyco/opencode
    `packages/opencode/src/global/index.ts` (XDG_DATA_HOME), read on 29 November 2026.
    """
    home = Path(os.path.expanduser("~"))
    claude = _variable(environment, "CLAUDE_CONFIG_DIR") or home / ".claude"
    codex = _variable(environment, "CODEX_HOME") or home / ".codex"
    data = _variable(environment, "XDG_DATA_HOME") or home / ".local" / "share"
    return {
        "claude-code": (claude / "projects",),
        "codex": (codex / "sessions", codex / "archived_sessions"),
        "gemini": (home / ".gemini" / "tmp",),
        "opencode": (data / "opencode",),
    }


def find_folder(name: str, environment: Mapping[str, str], *, is_setting: bool = False) -> AddedFolder:
    """Return the folder that a name means: a client, or a path."""
    known = client_folders(environment)
    if name in known:
        return AddedFolder(name, name, known[name], is_setting)
    return AddedFolder(name, OTHER, (Path(os.path.abspath(os.path.expanduser(name))),), is_setting)


def read_added(private: Path) -> list[AddedFolder]:
    """Return the folders of `sessions.json`. Raises `FoldersUnreadable` and `OSError`."""
    path = private / ADDED
    try:
        with open_regular(path) as file:
            found = json.loads(file.read(_LARGEST))
    except FileNotFoundError:
        return []
    except (ValueError, RecursionError) as damage:
        raise FoldersUnreadable(f"{path} is damaged. Delete it, and add the folders again.") from damage
    rows = found.get("folders") if isinstance(found, dict) else None
    folders = [_folder(row) for row in rows] if isinstance(rows, list) else []
    if None in folders or not isinstance(rows, list):
        raise FoldersUnreadable(f"{path} is damaged. Delete it, and add the folders again.")
    return [each for each in folders[:MOST_FOLDERS] if each is not None]


def _folder(row: Any) -> AddedFolder | None:
    match row:
        case {"name": str(name), "client": str(client), "places": [*places]} if all(
            isinstance(place, str) and place.startswith("/") and "\0" not in place for place in places
        ):
            return AddedFolder(name, client, tuple(map(Path, places)))
    return None


def write_added(private: Path, folders: Sequence[AddedFolder]) -> None:
    """Store the folders. Raises `OSError`."""
    private.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    rows = [
        {"name": each.name, "client": each.client, "places": [str(place) for place in each.places]}
        for each in folders
    ]
    replace_file(private / ADDED, json.dumps({"folders": rows}, indent=2).encode(), mode=0o600)


def all_folders(
    private: Path, configured: Iterable[str], environment: Mapping[str, str]
) -> list[AddedFolder]:
    """Return the folders of the settings and of `sessions.json`. The first of a name counts.

    Raises `FoldersUnreadable` and `OSError`.
    """
    named = [find_folder(name, environment, is_setting=True) for name in configured]
    found: dict[str, AddedFolder] = {}
    for each in (*named, *read_added(private)):
        found.setdefault(each.name, each)
    return list(found.values())[:MOST_FOLDERS]
