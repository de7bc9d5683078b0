"""The memory folders of clients on this machine. All functions block."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from attrs import frozen

from lithos.adopt.model_clients import is_slug_of
from lithos.kernel.databases.private_files import open_regular
from lithos.kernel.log import get_logger
from lithos.server.mcp.working_project import project_of, repository_folder

log = get_logger("lithos.adopt")

#: Maximum number of project folders, of session files in each, and of lines and bytes read of a session file.
_MOST_PROJECTS: Final = 2_000
_MOST_SESSIONS: Final = 5
_MOST_LINES: Final = 50
_MOST_BYTES: Final = 256 * 1024
_LARGEST_SETTINGS: Final = 1_000_000


@frozen
class MemoryFolder:
    """A memory folder of a client. `project` is a key, or "" if the folder is for all projects."""

    folder: Path
    project: str


class NoMemory(Exception):
    """There is no memory folder. The message says where it was looked for, and what to do."""


@frozen
class ClientHomes:
    """The folders in which the clients keep their files."""

    claude: Path
    codex: Path

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> ClientHomes:
        """Return the folders for an environment."""
        home = Path(os.path.expanduser("~"))
        claude, codex = environment.get("CLAUDE_CONFIG_DIR", ""), environment.get("CODEX_HOME", "")
        return cls(Path(claude) if claude else home / ".claude", Path(codex) if codex else home / ".codex")


def find_folders(client: str, homes: ClientHomes, project: Path | None) -> list[MemoryFolder]:
    """Return the memory folders of a client: of one project folder, or of all projects. Raises `NoMemory`."""
    if client == "codex":
        folder = homes.codex / "memories"
        if not folder.is_dir():
            raise NoMemory(
                f"Codex has no memory folder {folder}. Switch its memories on (memories = true below "
                "[features] in config.toml), or name the folder with --folder."
            )
        return [MemoryFolder(folder, "")]
    if project is None:
        return _all_of_claude(homes.claude)
    return [_one_of_claude(homes.claude, project)]


def named_folder(folder: Path, project: Path | None) -> MemoryFolder:
    """Return a folder that a person named. Raises `NoMemory`."""
    if not folder.is_dir():
        raise NoMemory(f"{folder} is not a folder. Name the folder with the memory files of the client.")
    return MemoryFolder(folder, "" if project is None else project_of(project) or "")


def _one_of_claude(home: Path, project: Path) -> MemoryFolder:
    if not project.is_dir():
        raise NoMemory(f"{project} is not a folder. Name the folder of a project.")
    real = Path(os.path.realpath(project))
    key = project_of(real) or real.name
    root = repository_folder(real)
    moved = _setting(real / ".claude" / "settings.local.json")
    if moved is not None:
        return named_folder(moved, real)
    moved = _setting(home / "settings.json")
    if moved is not None:
        return MemoryFolder(named_folder(moved, None).folder, "")
    wanted = [each for each in (root, real) if each is not None]
    for path in wanted:
        for each in _project_folders(home):
            if is_slug_of(each.name, str(path)) and (each / "memory").is_dir():
                return MemoryFolder(each / "memory", key)
    raise NoMemory(
        f"Claude Code has no memory of {wanted[0]} in {home / 'projects'}. Let it save a memory there first, "
        "or name the folder with --folder."
    )


def _all_of_claude(home: Path) -> list[MemoryFolder]:
    found = []
    for each in _project_folders(home):
        folder = each / "memory"
        if folder.is_dir() and any(folder.glob("*.md")):
            place = _working_folder(each)
            key = None if place is None else project_of(place)
            # Without a session file, the path of the project is not known, only its lossy folder name.
            found.append(MemoryFolder(folder, key or each.name.strip("-")))
    if not found:
        raise NoMemory(
            f"Claude Code has no memory files in {home / 'projects'}. Name the folder with --folder, or set "
            "CLAUDE_CONFIG_DIR as for Claude Code."
        )
    return found


def _project_folders(home: Path) -> list[Path]:
    try:
        return sorted(islice((home / "projects").iterdir(), _MOST_PROJECTS))
    except OSError:
        return []


def _working_folder(sessions: Path) -> Path | None:
    """Return the folder in which the sessions of a project folder ran."""
    for file in islice(sorted(sessions.glob("*.jsonl"), reverse=True), _MOST_SESSIONS):
        for line in _first_lines(file):
            try:
                told = json.loads(line).get("cwd")
            except (ValueError, AttributeError, RecursionError):
                continue
            if isinstance(told, str) and os.path.isdir(told):
                return Path(told)
    return None


def _first_lines(file: Path) -> Iterator[bytes]:
    try:
        with open_regular(file) as opened:
            yield from opened.read(_MOST_BYTES).splitlines()[:_MOST_LINES]
    except OSError as failure:
        log.debug("session file skipped", path=str(file), reason=str(failure))


def _setting(file: Path) -> Path | None:
    """Return the memory folder that a settings file of Claude Code names, or None."""
    try:
        with open_regular(file) as opened:
            found = json.loads(opened.read(_LARGEST_SETTINGS))["autoMemoryDirectory"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as failure:
        if not isinstance(failure, KeyError):
            log.warning("settings of Claude Code ignored", path=str(file), reason=str(failure))
        return None
    path = Path(os.path.expanduser(found)) if isinstance(found, str) else Path()
    return path if path.is_absolute() else None
