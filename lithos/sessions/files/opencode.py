"""Sessions of opencode: JSON files in `storage/`, and from version 1.2 on the database `opencode.db`.

The database is read without changing it or the files next to it: with a writer through the writer's own
shared memory, which is opened read-only, and otherwise as immutable. A database whose writer was killed is
read from a copy, because its last commits are only in its WAL.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import apsw

from lithos.sessions.files.added_folders import AddedFolder
from lithos.sessions.files.lines import LineReading, NotReadable, opened_transcript
from lithos.sessions.files.surveying import (
    FolderSurvey,
    FoundTranscript,
    survey_folder,
)

#: Maximum number of messages of a session and of parts of a message that are read, and of bytes of one part.
MOST_MESSAGES: Final = 20_000
MOST_PARTS: Final = 2_000
LARGEST_PART: Final = 1 << 20
#: Maximum number of bytes of a database that is copied.
LARGEST_COPY: Final = 500 << 20
_BUSY_MS: Final = 500
LARGE: Final = f"parts of more than {LARGEST_PART >> 20} MiB"
DAMAGED: Final = "damaged messages"
TREE, TABLES = "opencode", "opencode-db"


def survey_added(folder: AddedFolder) -> FolderSurvey:
    """Return the transcripts of an added folder of any client, the newest first."""
    survey = survey_folder(folder)
    if folder.client == "opencode" and not survey.problem:
        for place in folder.places:
            _survey_opencode(str(place), survey)
    return survey


def _survey_opencode(place: str, survey: FolderSurvey) -> None:
    """Add the sessions of opencode's data folder to a survey. A session in a database counts once."""
    name, seen = survey.folder.name, set[str]()
    for database in sorted(Path(place).glob("opencode*.db")):
        try:
            for session, changed in _sessions_of(str(database)):
                seen.add(session)
                path = f"{database}#{session}"
                survey.found.append(FoundTranscript(path, name, "opencode", 0, changed * 1_000_000, TABLES))
        except (apsw.Error, OSError, NotReadable) as failure:
            survey.problem = f"{database}: {failure}"
    for file in Path(place, "storage", "session").glob("*/*.json"):
        if file.stem in seen or file.is_symlink():
            continue
        try:
            info = file.stat()
            messages = os.stat(Path(place, "storage", "message", file.stem)).st_mtime_ns
        except OSError:  # The session was just deleted, or has no message yet.
            continue
        changed = max(info.st_mtime_ns, messages)
        survey.found.append(FoundTranscript(str(file), name, "opencode", info.st_size, changed, TREE))


def read_opencode(path: str, kind: str) -> LineReading:
    """Return the records of a session for `formats.opencode`. Raises `OSError` and `NotReadable`."""
    if kind == TREE:
        return _read_tree(Path(path))
    database, _, session = path.rpartition("#")
    try:
        with _opened(database) as connection:
            return _read_tables(connection, session)
    except apsw.Error as failure:
        raise NotReadable(f"The database {database} cannot be read: {failure}.") from None


# -- files -----------------------------------------------------------------------------------------


def _read_tree(file: Path) -> LineReading:
    storage, reading = file.parents[2], LineReading(0, is_done=True)
    session = _read_json(file, reading)
    if session is None:
        raise NotReadable("The session file is not valid JSON.")
    reading.records.append({"session": session})
    for message in _names(storage / "message" / file.stem)[:MOST_MESSAGES]:
        info = _read_json(message, reading)
        if info is None:
            continue
        parts = [_read_json(part, reading) for part in _names(storage / "part" / message.stem)[:MOST_PARTS]]
        reading.records.append({"info": info, "parts": [part for part in parts if part is not None]})
    return reading


def _names(folder: Path) -> list[Path]:
    """Return the JSON files of a folder in the order of their ids, which is that of their times."""
    try:
        return sorted(each for each in folder.iterdir() if each.suffix == ".json" and not each.is_symlink())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read_json(path: Path, reading: LineReading) -> dict[str, Any] | None:
    try:
        with opened_transcript(str(path)) as descriptor:
            data = os.pread(descriptor, LARGEST_PART + 1, 0)
    except (OSError, NotReadable):
        reading.skipped[DAMAGED] += 1
        return None
    return _parse(data, reading)


def _parse(data: bytes | str, reading: LineReading) -> dict[str, Any] | None:
    if len(data) > LARGEST_PART:
        reading.skipped[LARGE] += 1
        return None
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        reading.skipped[DAMAGED] += 1
        return None
    return found


# -- the database ----------------------------------------------------------------------------------


@contextmanager
def _opened(path: str) -> Iterator[apsw.Connection]:
    """Open a database for reading. Neither the database nor a file next to it is created or changed."""
    wal, shared = f"{path}-wal", f"{path}-shm"
    with tempfile.TemporaryDirectory(prefix="lithos-sessions-") as folder:
        if not os.path.exists(wal) or not os.stat(wal).st_size:
            uri = _uri(path, "immutable=1")
        elif os.path.exists(shared) and _is_shared(path):
            uri = _uri(path, "mode=ro&readonly_shm=1")
        else:
            uri = _uri(_copy(path, wal, folder), "mode=rw")
        with _connected(uri) as connection:
            yield connection


def _uri(path: str, parameters: str) -> str:
    return f"file:{quote(os.path.abspath(path))}?{parameters}"


@contextmanager
def _connected(uri: str) -> Iterator[apsw.Connection]:
    flags = apsw.SQLITE_OPEN_READWRITE if "mode=rw" in uri else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(uri, flags=flags | apsw.SQLITE_OPEN_URI)
    try:
        connection.set_busy_timeout(_BUSY_MS)
        yield connection
    finally:
        connection.close(True)


def _is_shared(path: str) -> bool:
    """Return whether a writer keeps the shared memory of the database, so that it can be read in place."""
    try:
        with _connected(_uri(path, "mode=ro&readonly_shm=1")) as connection:
            connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchall()
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        return False
    return True


def _copy(path: str, wal: str, folder: str) -> str:
    size = os.stat(path).st_size + os.stat(wal).st_size
    if size > LARGEST_COPY:
        raise NotReadable(
            f"The program that wrote {path} did not close it, and it is too large to copy "
            f"({size >> 20} MiB). Start and close opencode once."
        )
    copy = os.path.join(folder, "opencode.db")
    shutil.copyfile(path, copy)
    shutil.copyfile(wal, f"{copy}-wal")
    return copy


def _sessions_of(path: str) -> list[tuple[str, int]]:
    """Return the id of each session in a database, and the time of its last change in milliseconds."""
    with _opened(path) as connection:
        rows = connection.execute(
            "SELECT id, time_updated FROM session ORDER BY time_updated DESC LIMIT 20000"
        )
        return [
            (id_, changed)
            for id_, changed in rows
            if isinstance(id_, str) and isinstance(changed, int) and "#" not in id_
        ]


def _read_tables(connection: apsw.Connection, session: str) -> LineReading:
    reading = LineReading(0, is_done=True)
    row: Any = connection.execute(
        "SELECT directory, parent_id FROM session WHERE id=?", (session,)
    ).fetchone()
    if row is None:
        raise NotReadable("The session was removed from the database.")
    head = {"id": session, "directory": row[0], "parentID": row[1] or ""}
    reading.records.append({"session": head})
    messages: list[Any] = connection.execute(
        "SELECT id, CAST(data AS TEXT), time_created FROM message WHERE session_id=?"
        " ORDER BY time_created, id LIMIT ?",
        (session, MOST_MESSAGES),
    ).fetchall()
    for id_, data, created in messages:
        info = _parse(data, reading)
        if info is None:
            continue
        parts: list[Any] = connection.execute(
            "SELECT CASE WHEN LENGTH(data)<=? THEN CAST(data AS TEXT) END FROM part WHERE message_id=?"
            " ORDER BY id LIMIT ?",
            (LARGEST_PART, id_, MOST_PARTS),
        ).fetchall()
        reading.skipped[LARGE] += sum(part is None for (part,) in parts)
        read = [_parse(part, reading) for (part,) in parts if part is not None]
        info = {"time": {"created": created}, **info, "id": id_}
        reading.records.append({"info": info, "parts": [part for part in read if part is not None]})
    reading.skipped = +reading.skipped
    return reading
