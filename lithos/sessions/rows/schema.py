"""The tables of `.lithos/sessions.db`, and the progress in each transcript."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import apsw
from attrs import field, frozen

from lithos.sessions.model.notices import notices_of
from lithos.sessions.rows.words import WORDS_SCHEMA

#: Name of the database file in `.lithos`.
SESSIONS: Final = "sessions.db"
#: Raise this number if the same transcripts would give other rows. Everything is then read again, and the
#: text of transcripts that are gone is lost.
FORMAT: Final = 1
#: Number of the row in `projects` for sessions without a project.
NO_PROJECT: Final = 0

#: The text of a block is its last column, because SQLite reads all columns before the requested one.
SCHEMA: Final = (
    """
CREATE TABLE IF NOT EXISTS projects(number INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL);
CREATE TABLE IF NOT EXISTS sessions(
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, client TEXT NOT NULL,
    agent TEXT NOT NULL, project INTEGER NOT NULL, title TEXT NOT NULL, begun INTEGER, ended INTEGER,
    turns INTEGER NOT NULL, size INTEGER NOT NULL, path TEXT NOT NULL,
    folder TEXT NOT NULL, gone INTEGER);
CREATE INDEX IF NOT EXISTS sessions_by_end ON sessions(ended);
CREATE INDEX IF NOT EXISTS sessions_by_gone ON sessions(gone) WHERE gone IS NOT NULL;
CREATE TABLE IF NOT EXISTS blocks(
    number INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, first INTEGER NOT NULL,
    turns INTEGER NOT NULL, size INTEGER NOT NULL, ended INTEGER,
    model TEXT NOT NULL, places BLOB NOT NULL, inverse BLOB NOT NULL, codes BLOB NOT NULL,
    text BLOB NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS blocks_by_session ON blocks(session, first);
CREATE TABLE IF NOT EXISTS transcripts(
    path TEXT PRIMARY KEY, folder TEXT NOT NULL, session INTEGER, size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, offset INTEGER NOT NULL, marks TEXT NOT NULL, memory TEXT NOT NULL,
    skipped TEXT NOT NULL, problem TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS forgotten(id TEXT PRIMARY KEY, path TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""
    + WORDS_SCHEMA
)
TABLES: Final = ("projects", "sessions", "blocks", "transcripts", "forgotten")


def upgrade(connection: apsw.Connection, _: datetime) -> None:
    """Empty the tables if they have another format."""
    row = connection.execute("SELECT value FROM meta WHERE name='format'").fetchone()
    if row is not None and row[0] == FORMAT:
        return
    for table in TABLES:
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our names
    connection.execute("INSERT INTO words(words) VALUES('delete-all')")
    connection.execute("INSERT OR REPLACE INTO meta VALUES('format',?)", (FORMAT,))


@frozen(kw_only=True)
class Progress:
    """How far a transcript was read.

    `size` and `mtime_ns` are those of the last complete read. `offset` is the number of bytes that were read,
    and `marks` recognise these bytes again. `memory` is what the reader of the format must remember.
    `skipped` counts what could not be read, by reason. `problem` says why nothing can be read, or is "".
    """

    path: str
    folder: str
    session: int | None = None
    size: int = 0
    mtime_ns: int = 0
    offset: int = 0
    marks: tuple[str, ...] = ()
    memory: Mapping[str, Any] = field(factory=dict)
    skipped: Mapping[str, int] = field(factory=dict)
    problem: str = ""

    def notices(self) -> tuple[str, ...]:
        """Return in sentences what could not be read of the transcript."""
        return notices_of(self.problem, self.skipped, self.memory)

    def row(self) -> tuple[Any, ...]:
        """Return the column values."""
        return (
            self.path,
            self.folder,
            self.session,
            self.size,
            self.mtime_ns,
            self.offset,
            json.dumps(self.marks),
            json.dumps(dict(self.memory)),
            json.dumps(dict(self.skipped)),
            self.problem,
        )


PROGRESS_COLUMNS: Final = "path,folder,session,size,mtime_ns,offset,marks,memory,skipped,problem"


def read_progress(row: tuple[Any, ...]) -> Progress:
    """Return the progress in a row of `transcripts`."""
    path, folder, session, size, mtime_ns, offset, marks, memory, skipped, problem = row
    return Progress(
        path=path,
        folder=folder,
        session=session,
        size=size,
        mtime_ns=mtime_ns,
        offset=offset,
        marks=tuple(json.loads(marks)),
        memory=json.loads(memory),
        skipped=json.loads(skipped),
        problem=problem,
    )


@frozen(kw_only=True)
class SessionFacts:
    """The facts about a session apart from its turns."""

    id: str
    client: str
    agent: str
    project: str | None
    path: str
    folder: str
