"""Parsing and rendering of note files: bytes to `Document` and back (docs/spec/notes.md §2 to §5).

Reading is tolerant and never fails for odd values; only files that are no text or no YAML are
unreadable, and where the style serves a broken frontmatter, only those that are no text. Writing keeps
what is unknown byte for byte; the result is read back before anyone may store it.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from operator import attrgetter
from pathlib import PurePosixPath
from typing import Any, Final

import yaml
from attrs import evolve, frozen
from attrs import fields as fields_of

from lithos.core.errors import InvalidInput
from lithos.core.limits import cut_extra
from lithos.core.notes.healing import (
    clean_items,
    clean_sources,
    clean_title,
    heal,
    normalise_note,
    older_source,
    written_values,
)
from lithos.core.notes.layout import FRONTMATTER, Heading, Layout, leading_title, read_layout, unify_breaks
from lithos.core.notes.model import OWNED_KEYS, Document, Note
from lithos.core.notes.style import PLAIN, VaultStyle
from lithos.core.notes.yaml_edit import Changes, ReadItem, apply_changes
from lithos.core.notes.yaml_nodes import UnreadableNote, YamlMapping, write_entry
from lithos.core.text.analysis import normalise
from lithos.core.text.markdown import scan_tags

_PATH_NAMESPACE: Final = uuid.UUID("f4e237e9-7591-52a3-b80b-91916f8d138c")
_OWNED: Final = frozenset(OWNED_KEYS)
# Their defaults come from outside the file, so an unusable value is replaced at the first update.
_DEFAULT_FROM_FILE: Final = frozenset(("id", "created_at", "updated_at"))
#: Characters of a reason, which may quote the file.
_LONGEST_REASON: Final = 1_000
#: A key with names, and its value: the rest of the line, and the indented lines and items after it.
_NAMES: Final = re.compile(r"^(title|alias|aliases):[ \t]*([^\r\n]*)(?:\r?\n[ \t-][^\r\n]*)*", re.MULTILINE)
#: All that an update adds to a note of somebody else besides what the call changed, under a minimal style.
_ADDED: Final = frozenset(("id", "updated_at", "version"))
#: What a new note has under a minimal style, besides what was given.
_CREATED: Final = _ADDED | {"author", "created_at"}
_DEFAULTS: Final = written_values(Note(id="", title=""))
#: Every value of a note but `extra`, whose numbers are compared more closely.
_BUT_EXTRA: Final = attrgetter(*(each.name for each in fields_of(Note) if each.name != "extra"))
#: By these a note of our own is known.
_SIGNATURE: Final = frozenset(("id", "author", "created_at"))


@frozen(kw_only=True)
class _Reading:
    """A parsed file: the document and what an edit needs to know of its source."""

    layout: Layout
    mapping: YamlMapping
    nodes: Mapping[str, yaml.Node]
    healed: Mapping[str, Any]
    document: Document

    @property
    def title_heading(self) -> Heading | None:
        """Where the leading H1 is, if it is the title."""
        return None if self.layout.keeps_heading else self.layout.heading

    def heading_for(self, title: str) -> str:
        """What an H1 with this title says; one that says it already stays as it is written."""
        found = self.title_heading
        if found is None or title != self.document.note.title:
            return title
        return self.layout.text[found.start : found.end]


def derive_id(path: str, number: int = 1) -> str:
    """The id of a file without one: UUIDv5 of `path`, relative to the notes folder, POSIX separators.

    A later file in the place of one that moved away with its id has `number` 2 and so on: after the path
    and a NUL, which no path has.
    """
    name = path if number == 1 else f"{path}\0{number}"
    return str(uuid.uuid5(_PATH_NAMESPACE, normalise("NFC", name)))


def parse_document(
    data: bytes,
    path: str,
    modified_at: datetime,
    stand_in: str | None = None,
    style: VaultStyle = PLAIN,
) -> Document:
    """Read a note file; `path` and `modified_at` (aware) stand in where the file names no id, title or times.

    `stand_in` is the id of a file without one that its path does not give. Raises `UnreadableNote` for
    binary data, anything but UTF-8, and, unless the style serves it, a frontmatter that is malformed or no
    mapping: such a note has a `frontmatter_error`.
    """
    return _read(data, path, modified_at, stand_in, style).document


def parse_identified(
    data: bytes, path: str, modified_at: datetime, stand_in: str | None = None, style: VaultStyle = PLAIN
) -> tuple[Document, bool]:
    """The same, and what `is_identified` says of the file, for the price of one."""
    reading = _read(data, path, modified_at, stand_in, style)
    return reading.document, "id" in reading.healed


def parse_signed(
    data: bytes, path: str, modified_at: datetime, stand_in: str | None, style: VaultStyle
) -> tuple[Document, bool]:
    """The same document, and whether those who change it are to be written down among its contributors.

    A minimal style spares the notes that Lithos did not create and that name no contributors.
    """
    reading = _read(data, path, modified_at, stand_in, style)
    return reading.document, _is_signed(reading, style)


def _is_signed(reading: _Reading, style: VaultStyle) -> bool:
    given = reading.healed.keys()
    return not style.minimal_frontmatter or given >= _SIGNATURE or "contributors" in given


def is_identified(data: bytes) -> bool:
    """Whether the file itself names its id; raises `UnreadableNote` as `parse_document` does."""
    return "id" in given_keys(data)


def given_keys(data: bytes) -> frozenset[str]:
    """The owned keys of which the file itself gives a usable value; raises as `parse_document` does."""
    mapping: YamlMapping = FRONTMATTER.load(read_layout(data).yaml)
    return frozenset(heal(mapping.nodes, mapping.values))


def place_heading(document: Document, style: VaultStyle) -> tuple[Document, bool]:
    """The document of a new text, and whether its body needs an H1 with the title.

    A minimal style has one only where the text brings it: the title, which then is not part of the
    content, or another one, which would be read as the title.
    """
    if style.titles_from_files or not style.minimal_frontmatter:
        return document, not style.titles_from_files
    found = leading_title(document.content)
    if found is None:
        return document, False
    title, rest = found
    is_title = clean_title(title) == clean_title(document.note.title)
    return (evolve(document, content=rest) if is_title else document), True


def render_document(
    document: Document, path: str = "", style: VaultStyle = PLAIN, *, heading: bool = True
) -> bytes:
    """A new file: the keys of the style, blank line, H1 if the body has a `heading`, content.

    Where titles are not headings there is no H1. Raises `UnreadableNote` when no such file would read back
    as `document`.
    """
    expected = _expected(document.note, document.content.strip(), style)
    note = expected.note
    values = {**_new_values(note, path, style), **note.extra}
    head = "".join(write_entry(key, value, "", "\n") for key, value in values.items())
    title = note.title if heading and not style.titles_from_files else None
    data = _encode(f"---\n{head}---\n{_body(title, expected.content)}")
    if not _same(parse_document(data, path, note.updated_at, style=style), expected):
        raise UnreadableNote("the note would not read back as it was given; simplify its metadata")
    return data


def rewrite_document(
    data: bytes,
    path: str,
    modified_at: datetime,
    new: Document,
    *,
    replace_body: bool,
    stand_in: str | None = None,
    style: VaultStyle = PLAIN,
    heading: bool = True,
) -> bytes:
    """`data` changed to say `new`, touching only the text of what differs.

    With `replace_body` the body becomes title, if it has a `heading`, and content in the file's line breaks;
    without it every byte after the frontmatter stays, except the text of a leading H1 when the title
    changed. Where titles are not headings the body is the content alone. Tags of the text are not written.
    Raises `UnreadableNote` when `data` is unreadable or no edit would read back as `new`.
    """
    old = _read(data, path, modified_at, stand_in, evolve(style, serves_broken=False))
    newline = old.layout.newline
    content = unify_breaks(new.content, newline).strip() if replace_body else old.document.content
    expected = _expected(new.note, content, style)
    note, heading = expected.note, heading and not style.titles_from_files
    if not replace_body:
        body = _kept_body(old, note.title)
    elif style.minimal_frontmatter:
        body = _spared_body(old, note.title, content, heading=heading)
    else:
        body = _body(old.heading_for(note.title) if heading else None, content, newline)
    changes = _few_changes(old, note, path) if style.minimal_frontmatter else _changes(old, note)
    for head in apply_changes(old.mapping, changes, newline, _item_reader(old)):
        result = _encode(_assemble(old.layout, head, body))
        if _reads_back(result, path, modified_at, expected, style):
            return result
    raise UnreadableNote(
        "the frontmatter cannot be edited without changing what it says; write it as plain `key: value` lines"
    )


def edit_document(
    data: bytes,
    path: str,
    modified_at: datetime,
    decide: Callable[[Document, bool], Note],
    body: str,
    stand_in: str | None = None,
    style: VaultStyle = PLAIN,
) -> tuple[bytes, Document, bool]:
    """`data` with another body, character by character; what it reads as, and what `is_identified` says.

    `decide` makes the values of the new note of what `parse_signed` gives. Raises `UnreadableNote` when
    `data` is unreadable or no edit would read back as these values, and `InvalidInput` for a body that begins
    with another title.
    """
    old = _read(data, path, modified_at, stand_in, style)
    wanted = normalise_note(decide(old.document, _is_signed(old, style)))
    changes = _few_changes(old, wanted, path) if style.minimal_frontmatter else _changes(old, wanted)
    for head in apply_changes(old.mapping, changes, old.layout.newline, _item_reader(old)):
        result = _encode(_assemble(old.layout, head, body))
        try:
            new = _read(result, path, modified_at, None, evolve(style, serves_broken=False))
        except UnreadableNote:
            continue
        document = new.document
        if document.note.title != wanted.title:
            raise InvalidInput(
                f"The body would begin with the heading {document.note.title[:200]!r}, which would be read "
                "as the note's title. Begin with another text, or with a heading of a lower level."
            )
        is_kept = new.layout.text.endswith(body)
        if is_kept and _same(document, _expected(wanted, document.content, style)):
            return result, document, "id" in new.healed
    raise UnreadableNote(
        "the frontmatter cannot be edited without changing what it says; write it as plain `key: value` lines"
    )


def amend_document(
    data: bytes,
    path: str,
    modified_at: datetime,
    values: Mapping[str, Any],
    stand_in: str | None = None,
    style: VaultStyle = PLAIN,
) -> bytes:
    """`data` with other values of some owned keys; no other byte changes, no other key is added.

    `values` are fields of `Note`. Raises `UnreadableNote` when `data` is unreadable or no edit would read
    back right.
    """
    old = _read(data, path, modified_at, stand_in, evolve(style, serves_broken=False))
    fields = dict(values)
    if "id" in values:  # its own id was no source of it, but that of another note is
        fields["derived_from_ids"] = clean_sources(old.healed.get("derived_from_ids", ()), values["id"])
    expected = evolve(old.document, note=evolve(old.document.note, **fields))
    body = old.layout.text[old.layout.body_start :]
    written = written_values(expected.note)
    changes = Changes(values={key: written[key] for key in values}, removed=frozenset())
    for head in apply_changes(old.mapping, changes, old.layout.newline, _item_reader(old)):
        result = _encode(_assemble(old.layout, head, body))
        if _reads_back(result, path, modified_at, expected, style):
            return result
    raise UnreadableNote(
        "the frontmatter cannot be edited without changing what it says; write it as plain `key: value` lines"
    )


def adopt_document(
    data: bytes,
    path: str,
    modified_at: datetime,
    decide: Callable[[Document, frozenset[str]], tuple[Note, frozenset[str]]],
    style: VaultStyle = PLAIN,
) -> tuple[bytes, Document, bool]:
    """`data` of somebody else with further values in its frontmatter; every other byte stays.

    `decide` gets what the file says and the owned keys of which it gives a usable value; it returns the note
    as it shall be, and the owned keys to write. Returns the bytes, what they read as, and what
    `is_identified` says of them. Raises `UnreadableNote` when `data` is unreadable or no edit would read
    back right.
    """
    old = _read(data, path, modified_at, None, evolve(style, serves_broken=False))
    wanted, keys = decide(old.document, frozenset(old.healed))
    expected = evolve(old.document, note=wanted)
    written, extra = written_values(wanted), _changes_of_extra(old, wanted)
    values = {key: written[key] for key in written if key in keys} | dict(extra.values)
    body = old.layout.text[old.layout.body_start :]
    for head in apply_changes(
        old.mapping, Changes(values=values, removed=extra.removed), old.layout.newline, _item_reader(old)
    ):
        result = _encode(_assemble(old.layout, head, body))
        try:
            new = _read(result, path, modified_at, None, evolve(style, serves_broken=False))
        except UnreadableNote:
            continue
        if _same(new.document, expected):
            return result, new.document, "id" in new.healed
    raise UnreadableNote(
        "the frontmatter cannot be edited without changing what it says; write it as plain `key: value` lines"
    )


def _expected(note: Note, content: str, style: VaultStyle) -> Document:
    """What a file with these values and this content reads back as."""
    tags = scan_tags(content) if style.inline_tags else ()
    return Document(note=evolve(normalise_note(note), inline_tags=tags), content=content)


def _read(
    data: bytes, path: str, modified_at: datetime, stand_in: str | None = None, style: VaultStyle = PLAIN
) -> _Reading:
    layout = read_layout(data, keeps_heading=style.titles_from_files)
    try:
        return _read_whole(layout, path, modified_at, stand_in, style)
    except UnreadableNote as problem:
        if not style.serves_broken:
            raise
        return _read_body(layout, path, modified_at, stand_in, style, problem)


def _read_whole(
    layout: Layout, path: str, modified_at: datetime, stand_in: str | None, style: VaultStyle
) -> _Reading:
    mapping: YamlMapping = FRONTMATTER.load(layout.yaml)
    nodes = mapping.nodes
    healed = heal(nodes, mapping.values)
    fields: dict[str, Any] = {"created_at": modified_at, "updated_at": modified_at, **healed}
    fields["id"] = own_id = healed.get("id") or stand_in or derive_id(path)
    if layout.heading is not None and not layout.keeps_heading:
        fields["title"] = _heading_title(layout)
    elif "title" not in healed:
        fields["title"] = _file_title(path)
    if "derived_from_ids" in healed:
        fields["derived_from_ids"] = clean_sources(healed["derived_from_ids"], own_id)
    extra = {key: mapping.values.value(node) for key, node in nodes.items() if key not in _OWNED}
    kept = cut_extra(extra, layout.yaml)
    content = layout.content
    tags = scan_tags(content) if style.inline_tags else ()
    document = Document(note=Note(**fields, extra=kept, inline_tags=tags), content=content)
    return _Reading(layout=layout, mapping=mapping, nodes=nodes, healed=healed, document=document)


def _read_body(
    layout: Layout,
    path: str,
    modified_at: datetime,
    stand_in: str | None,
    style: VaultStyle,
    problem: UnreadableNote,
) -> _Reading:
    """A file whose frontmatter cannot be read as a whole: the title is the H1, where titles are, or the file
    name. The names that stand in it are aliases, so that links by them still lead here."""
    content, is_headed = layout.content, layout.heading is not None and not layout.keeps_heading
    note = Note(
        id=stand_in or derive_id(path),
        title=_heading_title(layout) if is_headed else _file_title(path),
        created_at=modified_at,
        updated_at=modified_at,
        aliases=_names_in(layout.yaml),
        inline_tags=scan_tags(content) if style.inline_tags else (),
        frontmatter_error={"line": problem.line, "reason": problem.reason[:_LONGEST_REASON]},
    )
    mapping: YamlMapping = FRONTMATTER.load("")
    document = Document(note=note, content=content)
    return _Reading(layout=layout, mapping=mapping, nodes={}, healed={}, document=document)


def _names_in(broken: str) -> tuple[str, ...]:
    """The title and aliases in a frontmatter that cannot be read: each by itself, a title as it stands."""
    names: list[str] = []
    for found in _NAMES.finditer(broken):
        try:
            mapping: YamlMapping = FRONTMATTER.load(found[0])
            healed = heal(mapping.nodes, mapping.values)
        except UnreadableNote:
            healed = {"title": clean_title(found[2].strip("\"' "))} if found[1] == "title" else {}
        names += [healed["title"]] if healed.get("title") else healed.get("aliases", ())
    return clean_items(dict.fromkeys(names))


def _heading_title(layout: Layout) -> str:
    assert layout.heading is not None
    return clean_title(layout.text[layout.heading.start : layout.heading.end])


def _file_title(path: str) -> str:
    return clean_title(PurePosixPath(path).stem)


def _new_values(note: Note, path: str, style: VaultStyle) -> dict[str, Any]:
    """The owned keys of a new file."""
    values = written_values(note)
    if not style.minimal_frontmatter:
        return values
    if note.title == _file_title(path):
        del values["title"]
    return {key: value for key, value in values.items() if key in _CREATED or value != _DEFAULTS.get(key, ())}


def _few_changes(old: _Reading, new: Note, path: str) -> Changes:
    """The changes of an update under a minimal style: `_ADDED`, and what differs."""
    before, after = written_values(old.document.note), written_values(new)
    is_titled = old.title_heading is not None or after["title"] == _file_title(path)
    values: dict[str, Any] = {}
    for key, value in after.items():
        is_missing = key not in old.healed
        if key == "title" and key not in old.nodes and is_titled:
            continue
        if value != before.get(key) or (key in _ADDED and is_missing):
            values[key] = value
    if "source" in values and older_source(old.nodes, old.mapping.values) is not None:
        values |= {key: after[key] for key in ("derived_from_ids",) if key in after}
    changes = _changes_of_extra(old, new)
    removed = before.keys() - after.keys()
    return Changes(values={**values, **changes.values}, removed=frozenset(removed) | changes.removed)


def _changes(old: _Reading, new: Note) -> Changes:
    before, after = written_values(old.document.note), written_values(new)
    stale = set(_DEFAULT_FROM_FILE - old.healed.keys())
    if older_source(old.nodes, old.mapping.values) is not None:
        stale.add("source")
    values = {
        key: value
        for key, value in after.items()
        if key not in old.nodes or key in stale or value != before.get(key)
    }
    changes = _changes_of_extra(old, new)
    removed = before.keys() - after.keys()
    return Changes(values={**values, **changes.values}, removed=frozenset(removed) | changes.removed)


def _changes_of_extra(old: _Reading, new: Note) -> Changes:
    extra = old.document.note.extra
    changed = {
        key: value
        for key, value in new.extra.items()
        if key not in extra or not _same_json(value, extra[key])
    }
    return Changes(values=changed, removed=frozenset(extra.keys() - new.extra.keys()))


def _item_reader(old: _Reading) -> ReadItem:
    values = old.mapping.values
    return lambda key, node: values.text(node) if key in _OWNED else values.value(node)


def _body(title: str | None, content: str, newline: str = "\n") -> str:
    head = "" if title is None else f"\n# {title}\n"
    text = head + (f"\n{content}\n" if content else "")
    return text if newline == "\n" else text.replace("\n", newline)


def _spared_body(old: _Reading, title: str, content: str, *, heading: bool) -> str:
    """A body with another content; the heading it has, and the blank lines around the text, stay."""
    found, said = old.title_heading, old.heading_for(title)
    if content == old.document.content and (heading or found is None):
        return _kept_body(old, title)
    layout, top = old.layout, ""
    newline, rest = layout.newline, layout.text[layout.body_start :]
    if found is not None:
        if layout.text[layout.body_start : found.line_start].strip():
            return _body(said, content, newline)
        top = layout.text[layout.body_start : found.start] + said + layout.text[found.end : found.line_end]
        rest = layout.text[found.line_end :]
    elif heading:
        return _body(said, content, newline)
    text = content.replace("\n", newline)
    if not rest.strip() or not content:
        return _body(said if top else None, content, newline) if content or top else ""
    before, after = rest[: len(rest) - len(rest.lstrip())], rest[len(rest.rstrip()) :]
    return top + before[: before.rfind("\n") + 1] + text + after[max(after.find(newline), 0) :]


def _kept_body(old: _Reading, title: str) -> str:
    layout, heading = old.layout, old.title_heading
    if heading is None or title == old.document.note.title:
        return layout.text[layout.body_start :]
    return layout.text[layout.body_start : heading.start] + title + layout.text[heading.end :]


def _assemble(layout: Layout, head: str, body: str) -> str:
    newline = layout.newline
    if layout.has_frontmatter:
        closing = layout.text[layout.yaml_end : layout.body_start]
        gap = "" if closing.endswith("\n") or not body else newline
        return f"{layout.text[: layout.yaml_start]}{head}{closing}{gap}{body}"
    gap = "" if not body or body.startswith(("\n", "\r\n")) else newline
    return f"{layout.text[: layout.yaml_start]}---{newline}{head}---{newline}{gap}{body}"


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnreadableNote("the text has lone surrogates, which UTF-8 cannot hold; remove them") from error


def _reads_back(data: bytes, path: str, modified_at: datetime, expected: Document, style: VaultStyle) -> bool:
    strict = evolve(style, serves_broken=False)
    try:
        return _same(parse_document(data, path, modified_at, style=strict), expected)
    except UnreadableNote:
        return False


def _same(one: Document, other: Document) -> bool:
    is_said = one.content == other.content and _BUT_EXTRA(one.note) == _BUT_EXTRA(other.note)
    return is_said and _same_json(one.note.extra, other.note.extra)


def _same_json(one: Any, other: Any) -> bool:
    """Equality that tells 1, 1.0 and true apart."""
    return one is other or json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
