"""Migrations of the data directory from older layouts to the current one.

`.lithos/migrations/registry.json` is `{"current_version": int, "applied": [{"from","to","name",
"applied_at"}]}`. A data directory without a registry counts as version 1. It gets one empty migration step to
version 2 (docs/spec/notes.md §1).
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from lithos.kernel.databases.private_files import replace_file
from lithos.kernel.log import get_logger
from lithos.kernel.values.times import format_time

log = get_logger("lithos.migrations")

_DATABASE: Final = "coordination.db"


class NewerLayout(Exception):
    """Error because a later version of Lithos has written the data directory."""


#: Names of the migration steps, by the version at which they start. The first step only marks the directory
#: as registered.
_STEPS: Final = {1: "register"}
CURRENT: Final = 2


def migrate(data: Path, now: datetime) -> None:
    """Migrate a data directory to the current layout. A second call changes nothing.

    Raises `NewerLayout`, or `OSError` if the directory cannot be changed.
    """
    private = data / ".lithos"
    _move_database(data, private)
    path = private / "migrations" / "registry.json"
    registry = _read_registry(path)
    if registry["current_version"] > CURRENT:
        raise NewerLayout(
            f"A newer Lithos last used {data} (layout {registry['current_version']}, this version "
            f"knows {CURRENT}). Install that version or a later one, or choose another --data-dir."
        )
    for source, name in _STEPS.items():
        if registry["current_version"] == source:
            step = {"from": source, "to": source + 1, "name": name, "applied_at": format_time(now)}
            registry["current_version"] = source + 1
            registry["applied"].append(step)
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, json.dumps(registry, indent=2).encode())


def _move_database(data: Path, private: Path) -> None:
    """Move `coordination.db` with `-wal` and `-shm` out of the root folder, where older layouts stored it."""
    if not (data / _DATABASE).is_file() or (private / _DATABASE).exists():
        return
    # The database itself is moved last, so that an interrupted migration can be repeated.
    for suffix in ("-wal", "-shm", ""):
        source = data / (_DATABASE + suffix)
        if source.exists():
            os.replace(source, private / source.name)
    log.info("coordination database moved", to=str(private / _DATABASE))


def _read_registry(path: Path) -> dict[str, Any]:
    """Return the registry.

    If the registry is unreadable, move the file aside and start a new registry, because no migration step is
    destructive.
    """
    try:
        registry: dict[str, Any] = json.loads(path.read_bytes())
        if isinstance(registry["current_version"], int) and isinstance(registry["applied"], list):
            return registry
        problem = "its form is not as expected"
    except FileNotFoundError:
        return {"current_version": 1, "applied": []}
    except (ValueError, KeyError, TypeError) as failure:
        problem = str(failure)
    aside = path.with_name(path.name + ".unreadable")
    os.replace(path, aside)
    log.warning("migration registry set aside", reason=problem, kept=str(aside))
    return {"current_version": 1, "applied": []}
