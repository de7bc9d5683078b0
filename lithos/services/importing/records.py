"""Records as JSON, for the way from the command that reads a source to the server that writes the notes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from lithos.core.importing import Record, RecordEdge
from lithos.core.limits import holds_more_values
from lithos.core.times import format_optional, parse_time

#: Values in the properties of one record; a step of an import over HTTP takes twice as many.
MOST_VALUES: Final = 100_000
_TEXTS = ("path", "source_url", "note_type", "namespace", "author")


def record_to_json(record: Record) -> dict[str, Any]:
    """The record as JSON; what is None or empty is left out. `text` is UTF-8."""
    given: dict[str, Any] = {
        "id": record.id,
        "hash": record.hash,
        "position": record.position,
        "title": record.title,
        "content": "" if record.text is not None else record.content,
        "tags": list(record.tags),
        "aliases": list(record.aliases),
        "created_at": format_optional(record.created_at),
        "updated_at": format_optional(record.updated_at),
        "properties": dict(record.properties),
        "edges": [[edge.relation, edge.target] for edge in record.edges],
        "links": record.links,
        "text": None if record.text is None else record.text.decode(),
        **{name: getattr(record, name) for name in _TEXTS},
    }
    return {name: value for name, value in given.items() if value not in (None, [], {}, 0)}


def record_from_json(given: Mapping[str, Any]) -> Record:
    """The record that `record_to_json` wrote. Raises `KeyError`, `TypeError` and `ValueError` for others."""
    text = given.get("text")
    return Record(
        id=_text(given["id"]),
        hash=_text(given["hash"]),
        position=_text(given["position"]),
        title=_text(given["title"]),
        content=_text(given.get("content", "")),
        tags=tuple(_text(tag) for tag in given.get("tags", ())),
        aliases=tuple(_text(alias) for alias in given.get("aliases", ())),
        created_at=_time(given.get("created_at")),
        updated_at=_time(given.get("updated_at")),
        properties=dict(given.get("properties", {})),
        edges=tuple(
            RecordEdge(_text(relation), _text(target)) for relation, target in given.get("edges", ())
        ),
        links=int(given.get("links", 0)),
        text=None if text is None else _text(text).encode(),
        **{name: _text(given[name]) for name in _TEXTS if name in given},
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:100]!r} is no text")
    return value


def _time(value: Any) -> datetime | None:
    return None if value is None else parse_time(_text(value))


def size_of(record: Record) -> int:
    """About how many bytes a record takes; of its text, properties and edges, in characters."""
    text = len(record.text) if record.text is not None else len(record.content)
    # Five times: a batch is bounded by the values that it holds, too.
    properties = 5 * len(_properties_of(record))
    return text + properties + 100 * (len(record.edges) + len(record.tags)) + 500


def excess_of(record: Record, limit: int) -> str:
    """Why a record is too large for a note; "" when it is not."""
    content = record.content.encode("utf-8", "surrogatepass") if record.text is None else record.text
    if len(content) <= limit:
        if not holds_more_values(_properties_of(record), MOST_VALUES):
            return ""
        return f"its properties hold more than {MOST_VALUES:,} values; take some of them out"
    return (
        f"it has {len(content):,} bytes, more than the {limit:,} of storage.max_content_size_bytes; "
        "split it, or raise that setting"
    )


def _properties_of(record: Record) -> bytes:
    return json.dumps(dict(record.properties), default=str).encode() if record.properties else b""


@frozen
class Options:
    """How an import goes: `into` is a folder below the notes folder, "" for the top."""

    kind: str
    agent: str
    into: str = ""
    dry_run: bool = False
    #: Notes that were deleted here are created again.
    recreate: bool = False
    #: Whoever imports is this agent and nobody else: nothing is written under another name.
    is_bound: bool = False

    def names_another(self, *names: object) -> str:
        """Why a bound agent may not write under these names; "" where it may. Nobody is no other."""
        others = [name for name in names if name not in (None, "", "unknown", self.agent)]
        if not self.is_bound or not others:
            return ""
        return (
            f"it names {str(others[0])[:100]!r}, and the token is bound to {self.agent!r}: import with one "
            "that is bound to nobody, such as that of the user who runs the server"
        )


@frozen
class Begun:
    """An import that began: its number, the folder of the notes, for attachments, and bytes of a note."""

    session: str
    notes_folder: Path
    content_limit: int


@frozen
class Outcome:
    """What became of a record: one of the results below, the path of its note, and why.

    `notices` are what else a person should know, such as another path than the one wished for.
    """

    position: str
    result: str
    path: str | None = None
    reason: str = ""
    notices: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As it goes over HTTP."""
        return {
            "position": self.position,
            "result": self.result,
            "path": self.path,
            "reason": self.reason,
            "notices": list(self.notices),
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Outcome:
        """What `to_json` wrote."""
        return cls(
            given["position"], given["result"], given["path"], given["reason"], tuple(given["notices"])
        )


CREATED = "created"
UPDATED = "updated"
UNCHANGED = "unchanged"
#: Changed at the source and here.
CHANGED_HERE = "changed here"
DELETED_HERE = "deleted here"
DUPLICATE = "duplicate"
MALFORMED = "malformed"
FAILED = "failed"
RESULTS = (CREATED, UPDATED, UNCHANGED, CHANGED_HERE, DELETED_HERE, DUPLICATE, MALFORMED, FAILED)

#: Of edges.
EDGE_MADE = "made"
EDGE_THERE = "there already"
EDGE_MISSING = "missing"
EDGE_RESULTS = (EDGE_MADE, EDGE_THERE, EDGE_MISSING)


@frozen
class SourceEdge:
    """A typed edge of a source: the record it leaves, by id, and where it leads, by id or title."""

    source: str
    relation: str
    target: str
