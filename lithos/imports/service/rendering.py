"""Conversion of a record to the bytes of its note. It has no side effects, so it can run in a thread.

The extra frontmatter key `imported_from` contains the kind and id of the record and, in `hash`, two hashes:
one of the record, and one of the note as the import wrote it. If the second hash no longer matches, the note
was changed here by a person, an agent or a tool. No other state is needed. Enrichment, which adds entities,
does not affect the hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import attrs
from attrs import frozen

from lithos.imports.model.importing import Record
from lithos.kernel.values.errors import InvalidInput
from lithos.notes.format.document import adopt_document, parse_identified, render_document
from lithos.notes.format.tolerant_reading import normalise_note, written_values
from lithos.notes.model.note import NOTE_TYPES, OWNED_KEYS, Document, Note
from lithos.notes.model.paths import normalise_url
from lithos.text.markdown import clean_title
from lithos.text.words.list_filters import tag_key, tag_keys
from lithos.text.yaml.layout import leading_title, trim_content
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import VaultStyle

MARK: Final = "imported_from"
_OWNED: Final = frozenset(OWNED_KEYS)
#: Keys that may change although the content of the note stays the same.
_NOT_SAID: Final = frozenset(("id", "version", "created_at", "updated_at", "contributors"))
_FOUND: Final = frozenset(("entities", "entities_extractor"))
#: Kinds of sources whose notes get their titles in the same way as files in Lithos. Records of other kinds
#: have titles of their own.
_TITLED_AS_FILES: Final = frozenset(("markdown", "lithos"))


@frozen
class Mark:
    """The content of `imported_from`. `said` is the hash of the note as the import wrote it."""

    kind: str
    id: str
    hash: str
    said: str

    def to_value(self) -> dict[str, str]:
        """Return the mark as a frontmatter value."""
        return {"kind": self.kind, "id": self.id, "hash": f"{self.hash}-{self.said}"}


def read_mark(extra: Mapping[str, Any]) -> Mark | None:
    """Return the mark of a note. Return None if the note was not imported or its mark is damaged."""
    value = extra.get(MARK)
    if not isinstance(value, dict):
        return None
    kind, own, both = value.get("kind"), value.get("id"), value.get("hash")
    if not (isinstance(kind, str) and isinstance(own, str) and isinstance(both, str)):
        return None
    known, _, said = both.rpartition("-")
    return Mark(kind, own, known, said) if known else Mark(kind, own, both, "")


def hash_of(document: Document) -> str:
    """Return a hash (16 hex digits) of a note without its mark and without the keys in `_NOT_SAID`."""
    note = document.note
    left_out = _NOT_SAID | (_FOUND if note.entities_extractor is not None else frozenset())
    values = {key: value for key, value in written_values(note).items() if key not in left_out}
    extra = {key: value for key, value in note.extra.items() if key != MARK}
    said = json.dumps([values, extra, document.content.strip()], default=str, sort_keys=True)
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


@frozen
class NoteTarget:
    """The note to write for a record: a new note, or the next `version` of an existing note."""

    note_id: str
    path: str
    #: The record id in `imported_from`.
    mark_id: str
    version: int = 1
    #: The creation time of an existing note.
    created_at: datetime | None = None
    #: Ids that the note must not get, although its file contains them.
    refuses_id: frozenset[str] = frozenset()


@frozen
class Rendered:
    """The bytes and the parsed form of a note. `notices` list content that had to be changed."""

    data: bytes
    document: Document
    identified: bool
    notices: tuple[str, ...] = ()


def render(
    record: Record, target: NoteTarget, kind: str, agent: str, now: datetime, style: VaultStyle
) -> Rendered:
    """Return the note for a record. Raises `UnreadableNote` or `InvalidInput` if no file can contain it."""
    if record.text is None:
        return _render_new(record, target, kind, agent, now, style)
    try:
        return _adopt(record, record.text, target, kind, now, style)
    except UnreadableNote as problem:
        whole = attrs.evolve(record, text=None, content=record.text.decode().lstrip("\ufeff"))
        made = _render_new(whole, target, kind, agent, now, style)
        notice = f"its frontmatter cannot be read and is kept as text: {problem.reason}"
        return attrs.evolve(made, notices=(notice, *made.notices))


def _adopt(
    record: Record, text: bytes, target: NoteTarget, kind: str, now: datetime, style: VaultStyle
) -> Rendered:
    """Return the file of the source unchanged, except for additional keys."""
    modified = record.updated_at or now
    notices: list[str] = []
    is_as_file = kind in _TITLED_AS_FILES and not record.is_titled

    def decide(document: Document, given: frozenset[str]) -> tuple[Note, frozenset[str]]:
        note = document.note
        keys = set[str]()
        fields: dict[str, Any] = {}

        def say(key: str, value: Any) -> None:
            fields[key] = value
            keys.add(key)

        if "id" not in given:
            say("id", target.note_id)
        elif note.id in target.refuses_id:
            say("id", target.note_id)
            notices.append(f"another note has its id {note.id[:100]!r}, so the note got a new id")
        if target.version > note.version:
            say("version", target.version)
        for key, value in (
            ("title", None if is_as_file else clean_title(record.title) or None),
            ("created_at", target.created_at or record.created_at or modified),
            ("updated_at", modified),
            ("author", record.author),
            ("namespace", record.namespace),
            ("note_type", record.note_type if record.note_type in NOTE_TYPES else None),
            ("source_url", _url_of(record)),
        ):
            if key not in given and value is not None:
                say(key, value)
        tagged = tag_keys(note.all_tags)
        lacking = tuple(tag for tag in record.tags if tag_key(tag) not in tagged)
        if lacking:
            say("tags", note.tags + lacking)
        unknown = tuple(alias for alias in record.aliases if alias not in note.aliases)
        if unknown:
            say("aliases", note.aliases + unknown)
        known = {key: value for key, value in record.properties.items() if key not in _OWNED}
        extra = {**known, **note.extra}
        wanted = normalise_note(attrs.evolve(note, **fields, extra=extra))
        mark = Mark(kind, target.mark_id, record.hash, hash_of(attrs.evolve(document, note=wanted)))
        extra[MARK] = mark.to_value()
        return attrs.evolve(wanted, extra=extra), frozenset(keys)

    data, document, identified = adopt_document(text, target.path, modified, decide, style)
    return Rendered(data, document, identified, tuple(notices))


def _render_new(
    record: Record, target: NoteTarget, kind: str, agent: str, now: datetime, style: VaultStyle
) -> Rendered:
    """Return a new file with the values of the record."""
    modified = record.updated_at or record.created_at or now
    notices: list[str] = []
    url = _url_of(record)
    extra = {f"imported_{key}" if key in _OWNED else key: value for key, value in record.properties.items()}
    if url is None and record.source_url:
        extra["imported_source_url"] = record.source_url
        notices.append("its source_url is not a web address and is kept as imported_source_url")
    title = clean_title(record.title) or "Untitled"
    content = trim_content(record.content.replace("\r\n", "\n").replace("\r", "\n"))
    found = leading_title(content)
    if found is not None and clean_title(found[0]) == title and not style.is_foreign:
        content = found[1]
    note = Note(
        id=target.note_id,
        title=title,
        author=record.author or agent,
        created_at=target.created_at or record.created_at or modified,
        updated_at=modified,
        tags=record.tags,
        aliases=record.aliases,
        version=target.version,
        source_url=url,
        namespace=record.namespace,
        note_type=record.note_type if record.note_type in NOTE_TYPES else "observation",
        extra=extra,
    )
    document = Document(note=normalise_note(note), content=content)
    mark = Mark(kind, target.mark_id, record.hash, hash_of(document))
    marked = attrs.evolve(document.note, extra={**document.note.extra, MARK: mark.to_value()})
    data = render_document(attrs.evolve(document, note=marked), target.path, style)
    document, identified = parse_identified(data, target.path, modified, target.note_id, style)
    return Rendered(data, document, identified, tuple(notices))


def _url_of(record: Record) -> str | None:
    if not record.source_url:
        return None
    try:
        return normalise_url(record.source_url)
    except InvalidInput:
        return None
