"""The doctor check for data that upstream Lithos left in the data directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lithos.imports.files.upstream import unknown_columns
from lithos.kernel.configuration.catalogue import OLDER_NAMES
from lithos.kernel.databases.sqlite import CorruptDatabase, DatabaseFailed, snapshot
from lithos.kernel.values.findings import DOCTOR, CheckFinding, Installation, check, ok, warn
from lithos.server.settings import ServerConfig

#: Files and folders that only upstream Lithos creates, relative to the data directory.
_SIGNS: Final = (".chroma", "graph.pickle", ".graph/graph.pickle", "coordination.db")
#: Tables whose rows are counted, by database file, with a readable name for each table.
_COUNTED: Final[Mapping[str, Mapping[str, str]]] = {
    "coordination.db": {
        "agents": "agents",
        "tasks": "tasks",
        "claims": "claims",
        "findings": "findings",
        "task_edges": "task edges",
        "access_log": "accesses",
    },
    "edges.db": {"edges": "edges between notes"},
    "stats.db": {"node_stats": "notes with statistics", "receipts": "receipts"},
}
#: Maximum number of unknown tables and columns to name in the report.
_NAMED: Final = 40
PAGE: Final = "docs/import.md"


def find_upstream(data: Path) -> tuple[str, ...]:
    """Return the traces of upstream Lithos in the data directory.

    This version of Lithos never creates files of upstream Lithos. Blocks.
    """
    signs = [name for name in _SIGNS if (data / name).exists()]
    try:
        lines = (data / "config.yaml").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    keys = {line.strip().partition(":")[0] for line in lines}
    return (*signs, *(old for old in OLDER_NAMES if old.rpartition(".")[2] in keys))


@check("upstream", DOCTOR, place=100, when=lambda patient: bool(find_upstream(patient.data)))
def check_upstream(patient: Installation) -> Iterator[CheckFinding]:
    """Report the data found, the data that can be imported, and the settings that old clients need."""
    data = patient.data
    signs = find_upstream(data)
    if (data / "coordination.db").is_file() and (patient.private / "coordination.db").is_file():
        yield warn(
            "Both the data directory and .lithos contain a file coordination.db. Lithos only uses "
            "the file in .lithos.",
            "Check which of the two files has your tasks. To use the other file, stop the "
            "server and swap the files.",
        )
    counts, unknown = _look_into(data, is_live=patient.is_live)
    found = f" Found: {', '.join(counts)}." if counts else ""
    if unknown:
        more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        found += f" Unknown here and left unchanged: {', '.join(unknown[:_NAMED])}{more}."
    yield ok(
        f"Upstream Lithos used this directory ({', '.join(signs)}). Lithos serves its data in "
        "place: no data is lost or rewritten, and columns that this server does not know "
        f"stay.{found} The upstream indexes (.chroma, graph.pickle) are neither read nor deleted."
    )
    if patient.config.of(ServerConfig).write_outcomes == "envelope":
        yield ok(
            "Clients written for upstream Lithos may expect other answers to writes. Set "
            f"server.write_outcomes to status for them. {PAGE} also lists the data that is "
            "imported from upstream."
        )


def _look_into(data: Path, *, is_live: bool) -> tuple[list[str], list[str]]:
    """Return descriptions of the counted rows, and the tables and columns that this server does not know."""
    told: list[str] = []
    unknown: list[str] = []
    for name, tables in _COUNTED.items():
        inside = data / ".lithos" / name
        path = inside if inside.exists() else data / name
        try:
            with snapshot(path, is_live=is_live and path == inside) as connection:
                if connection is not None:
                    told += _rows(connection, tables)
                    unknown += unknown_columns(name, connection)
        except (CorruptDatabase, DatabaseFailed, OSError):
            continue  # the database check reports this error
    return told, unknown


def _rows(connection: Any, tables: Mapping[str, str]) -> Iterator[str]:
    known = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type='table'")}
    for table, name in tables.items():
        if table in known:
            ((count,),) = connection.execute(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - our names
            if count:
                yield f"{count} {name}"
