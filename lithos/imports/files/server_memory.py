"""Reader for the knowledge graph of the MCP reference memory server. Each entity becomes a note.

The file is read twice, because a relation may come before or after its entities. Names and relations are
stored in a temporary database on disk to save memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import apsw
from attrs import define, field

from lithos.imports.files.conversations import CONTINUES
from lithos.imports.files.reading import FileLine, read_head, read_lines
from lithos.imports.model.conversation import parts_of
from lithos.imports.model.importing import MOST_CONTENT, ImportRefused, Item, Malformed, Record, RecordEdge
from lithos.imports.model.json_items import read_json
from lithos.imports.model.observations import Entity, NoGraphLine, Relation, entity_blocks, read_line
from lithos.imports.model.texts import digest, relation_type, tags_of
from lithos.notes.links.links import scan_targets

#: File names to look for in a folder.
_NAMES: Final = ("memory.jsonl", "memory.json")
_FIRST: Final = re.compile(rb'\s*\{[^\n]{0,3000}?"(?:entityType|relationType|observations)"\s*:', re.DOTALL)
_TYPE: Final = re.compile(rb'"type"\s*:\s*"(?:entity|relation)"')
# kept rows: entity, relation: the file is deleted when the import ends
_SCHEMA: Final = """
CREATE TABLE entity (name TEXT NOT NULL, line INTEGER NOT NULL, start INTEGER NOT NULL);
CREATE INDEX entity_name ON entity (name, line);
CREATE TABLE relation (source TEXT NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, line INTEGER NOT NULL,
    PRIMARY KEY (source, kind, target)) WITHOUT ROWID;
"""
#: Number of lines to store per transaction.
_BATCH: Final = 5_000


@define
class ServerMemory:
    """Source of kind `server-memory`. The text of its notes has at most `most_content` bytes."""

    kind: str = field(default="server-memory", init=False)
    most_content: int = MOST_CONTENT

    def recognises(self, path: Path) -> bool:
        """Return whether the first line is an entity or a relation."""
        head = read_head(_file_of(path)).lstrip()
        first = head.partition(b"\n")[0]
        return bool(_TYPE.search(first)) and bool(_FIRST.match(first))

    def read(self, path: Path) -> Iterator[Item]:
        """Read the entities of the graph. Raises `ImportRefused`."""
        file_path = _file_of(path)
        if not read_head(file_path).lstrip().startswith(b"{"):
            raise ImportRefused(
                f"{path} is not a file of the memory server: its first line is not a JSON object. "
                "Name the file that MEMORY_FILE_PATH names, memory.jsonl or memory.json."
            )
        database = apsw.Connection("")  # a private temporary file, deleted on close
        try:
            database.execute(_SCHEMA)
            with file_path.open("rb") as file:
                yield from _enter(database, file)
                yield from self._entities(database, file)
                yield from _loose_relations(database)
        except OSError as error:
            raise ImportRefused(
                f"{file_path} cannot be read ({error}). Check the file, then import again."
            ) from error
        finally:
            database.close()

    def _entities(self, database: apsw.Connection, file: IO[bytes]) -> Iterator[Record]:
        names = database.execute("SELECT name, min(line) FROM entity GROUP BY name ORDER BY min(line)")
        for name, line in names:
            starts = database.execute("SELECT start FROM entity WHERE name = ? ORDER BY line", (name,))
            entities = [entity for (start,) in starts if (entity := _entity_at(file, int(start))) is not None]
            rows = database.execute(
                "SELECT kind, target FROM relation WHERE source = ? ORDER BY line", (name,)
            )
            relations = [(str(kind), str(target)) for kind, target in rows]
            yield from self._records(int(line), entities, relations)

    def _records(
        self, line: int, entities: list[Entity], relations: list[tuple[str, str]]
    ) -> Iterator[Record]:
        name = entities[0].name
        observations = dict.fromkeys(text for entity in entities for text in entity.observations)
        kinds = tuple(dict.fromkeys(entity.kind for entity in entities if entity.kind))
        edges = dict.fromkeys(RecordEdge(relation_type(kind), target) for kind, target in relations)
        properties = {"entity_type": ", ".join(kinds)} if kinds else {}
        stated = [f"{kind}>{target}" for kind, target in relations]
        for part in parts_of(lambda: entity_blocks(observations, relations), name, self.most_content, "\n"):
            before = name if part.number == 2 else f"{name}#{part.number - 1}"
            yield Record(
                id=name if part.number == 1 else f"{name}#{part.number}",
                hash=digest((name, *kinds, "", part.said, *stated)),
                position=f"line {line}",
                title=part.title,
                content=part.text.strip(),
                tags=tags_of(kinds),
                properties=properties,
                edges=tuple(edges) if part.number == 1 else (RecordEdge(CONTINUES, before),),
                links=len(scan_targets(part.text)),
            )


def _file_of(path: Path) -> Path:
    if not path.is_dir():
        return path
    return next((path / name for name in _NAMES if (path / name).is_file()), path / _NAMES[0])


def _enter(database: apsw.Connection, file: IO[bytes]) -> Iterator[Malformed]:
    """Store the names and relations in the database. Yield the unreadable lines."""
    entities: list[tuple[str, int, int]] = []
    relations: list[tuple[str, str, str, int]] = []
    for line in read_lines(file):
        found = _read(line)
        if isinstance(found, Malformed):
            yield found
        elif isinstance(found, Entity):
            entities.append((found.name, line.number, line.offset))
        else:
            relations.append((found.source, found.kind, found.target, line.number))
        if len(entities) + len(relations) >= _BATCH:
            _store(database, entities, relations)
            entities, relations = [], []
    _store(database, entities, relations)


def _store(
    database: apsw.Connection,
    entities: list[tuple[str, int, int]],
    relations: list[tuple[str, str, str, int]],
) -> None:
    with database:
        database.executemany("INSERT INTO entity VALUES (?, ?, ?)", entities)
        database.executemany("INSERT OR IGNORE INTO relation VALUES (?, ?, ?, ?)", relations)


def _read(line: FileLine) -> Entity | Relation | Malformed:
    position = f"line {line.number}"
    if line.data is None:
        return Malformed(position, "the line has more than 32 MB")
    try:
        return read_line(read_json(line.data))
    except NoGraphLine as error:
        return Malformed(position, str(error))
    except ValueError as error:
        is_cut = not line.data.endswith(b"\n")
        return Malformed(
            position,
            f"the line is not valid JSON ({error})" + ("; the file is truncated here" if is_cut else ""),
        )


def _entity_at(file: IO[bytes], start: int) -> Entity | None:
    """Return the entity at position `start`, or None if the file was changed since the first reading."""
    file.seek(start)
    found = next((_read(line) for line in read_lines(file)), None)
    return found if isinstance(found, Entity) else None


def _loose_relations(database: apsw.Connection) -> Iterator[Malformed]:
    rows = database.execute(
        "SELECT line, source, kind, target FROM relation "
        "WHERE source NOT IN (SELECT name FROM entity) ORDER BY line"
    )
    for line, source, kind, target in rows:
        reason = f"the relation {kind} to {target!r} begins at the unknown entity {source!r}"
        yield Malformed(f"line {line}", reason[:500])
