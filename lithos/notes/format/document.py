"""Parsing and rendering of note files: from bytes to `Document` and back (docs/spec/notes.md §2 to §5).

Reading is tolerant and never fails because of unusual values. A file is unreadable only if it is not text or
its frontmatter is not YAML. Some styles also serve files with broken frontmatter; only files that are not
text are then unreadable. Writing preserves unknown parts byte for byte. The result is parsed again before it
may be stored.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from operator import attrgetter
from pathlib import PurePosixPath
from typing import Any, Final

import yaml
from attrs import evolve, frozen
from attrs import fields as fields_of

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.ids import is_id
from lithos.kernel.values.limits import cut_extra
from lithos.notes.format.owned_keys import NO_KEYS, PREFIX, PREFIXED, OwnedKeys, means_something, read_owned
from lithos.notes.format.tolerant_reading import (
    clean_items,
    clean_sources,
    normalise_note,
    older_source,
    written_values,
)
from lithos.notes.model.note import OWNED_KEYS, Document, Note
from lithos.text.markdown import clean_title, has_conflict_markers, scan_tags
from lithos.text.words.analysis import normalise
from lithos.text.yaml.edit import KeyChanges, apply_changes
from lithos.text.yaml.layout import (
    FRONTMATTER,
    Layout,
    TitleHeading,
    read_layout,
    tail_of,
    trim_content,
    unify_breaks,
)
from lithos.text.yaml.nodes import UnreadableNote, YamlMapping, write_entry
from lithos.text.yaml.vault_style import PLAIN, VaultStyle

_PATH_NAMESPACE: Final = uuid.UUID("f4e237e9-7591-52a3-b80b-91916f8d138c")
_OWNED: Final = frozenset(OWNED_KEYS)
# Keys whose defaults come from outside the file. The first update replaces unusable values of these keys.
_DEFAULT_FROM_FILE: Final = frozenset(("id", "created_at", "updated_at"))
#: Maximum number of characters in the reason for an error. The reason may quote the file.
_LONGEST_REASON: Final = 1_000
#: A key whose value contains names. The value is the rest of the line, with the indented lines and list items
#: below.
_NAMES: Final = re.compile(r"^(title|alias|aliases):[ \t]*([^\r\n]*)(?:\r?\n[ \t-][^\r\n]*)*", re.MULTILINE)
#: Keys that an update may add to a person's note under a minimal style, in addition to the changes of the
#: call. The id is needed to identify the note if a person moves and changes the file at the same time.
_ADDED: Final = frozenset(("id",))
#: Keys that change with every update. If a person's note does not contain these keys, Lithos stores their
#: values elsewhere.
_STAMPS: Final = ("version", "updated_at")
#: Keys that Lithos writes into a new note under a minimal style, in addition to the given keys.
_CREATED: Final = _ADDED | {"author", "created_at", *_STAMPS}
_DEFAULTS: Final = written_values(Note(id="", title=""))
#: Returns all values of a note except `extra`, whose numbers must be compared more strictly.
_BUT_EXTRA: Final = attrgetter(*(each.name for each in fields_of(Note) if each.name != "extra"))
#: Keys that all notes created by Lithos have. Other notes with keys of Lithos may lack them.
_SIGNATURE: Final = frozenset(("author", "created_at"))


@frozen(kw_only=True)
class Rewritten:
    """The bytes of a changed file and the document parsed from them.

    `identified` and `says_version` show whether the file contains its id and its version.

    The document has the requested version and update time, even if the file does not contain them.
    """

    data: bytes
    document: Document
    identified: bool
    says_version: bool


@frozen(kw_only=True)
class Reading:
    """A parsed file with the document and the details of the source that an edit needs."""

    layout: Layout
    mapping: YamlMapping
    nodes: Mapping[str, yaml.Node]
    owned: OwnedKeys
    document: Document
    path: str
    modified_at: datetime
    style: VaultStyle

    @property
    def is_identified(self) -> bool:
        """Return whether the file itself contains its id."""
        return "id" in self.owned.values

    @property
    def says_version(self) -> bool:
        """Return whether the file contains its version, or will contain it after the next update."""
        return not self.style.minimal_frontmatter or "version" in self.owned.said

    @property
    def is_signed(self) -> bool:
        """Return whether the file records the authors of changes.

        Under a minimal style, a person's notes do not record authors.
        """
        is_own = self.owned.is_managed and self.owned.said >= _SIGNATURE
        return not self.style.minimal_frontmatter or is_own

    @property
    def title_heading(self) -> TitleHeading | None:
        """Return the position of the leading H1 if this is the title, else None."""
        return None if self.layout.keeps_heading else self.layout.heading

    def heading_for(self, title: str) -> str:
        """Return the H1 text for a title.

        If the H1 of the file already has this title, return the H1 unchanged.
        """
        found = self.title_heading
        if found is None or title != self.document.note.title:
            return title
        return self.layout.text[found.start : found.end]

    def rewritten(self, new: Document, *, replace_body: bool) -> Rewritten:
        """Return the file with the changes to `new`, like `rewrite_document`.

        The frontmatter must not be broken.
        """
        given = unify_breaks(new.content, self.layout.newline) if replace_body else self.document.content
        expected = _expected(new.note, trim_content(given), self.style)
        if replace_body:
            body = _replaced_body(self, expected.note.title, given)
        else:
            body = _kept_body(self, expected.note.title)
        return self.updated(
            expected.note, body, lambda new, note: _same(new.document, evolve(expected, note=note))
        )

    def updated(self, wanted: Note, body: str, is_right: Callable[[Reading, Note], bool]) -> Rewritten:
        """Return the file as the next version of the note with this body.

        `is_right` compares the parsed new file with the expected values. Raise `UnreadableNote` if no edit
        reads back correctly.
        """
        changes = _changes(self, wanted)
        said = self._as_said(wanted, changes)
        data, new = self.edited(changes, body, lambda new: is_right(new, said))
        known = {key: getattr(wanted, key) for key in _STAMPS}
        document = evolve(new.document, note=evolve(new.document.note, **known))
        return Rewritten(
            data=data, document=document, identified=new.is_identified, says_version=new.says_version
        )

    def _as_said(self, wanted: Note, changes: KeyChanges) -> Note:
        """Return the note as a file with these changes would contain it.

        Values that Lithos stores outside the file are not changed.
        """
        written = changes.values.keys()
        kept = {
            key: getattr(self.document.note, key)
            for key in _STAMPS
            if PREFIX + key not in written and (key not in written or key in wanted.extra)
        }
        return evolve(wanted, **kept) if self.style.minimal_frontmatter else wanted

    def edited(
        self, changes: KeyChanges, body: str, is_right: Callable[[Reading], bool]
    ) -> tuple[bytes, Reading]:
        """Return the file with this body and changed frontmatter, and the parsed form of the file.

        Of several possible edits, the smallest edit that reads back correctly is chosen.

        Raise `UnreadableNote` if no edit reads back correctly.
        """
        values, strict = self.mapping.values, evolve(self.style, serves_broken=False)

        def read_item(key: str, node: yaml.Node) -> Any:
            is_owned = key in PREFIXED or (key in _OWNED and key not in self.owned.foreign)
            return values.text(node) if is_owned else values.value(node)

        for head in apply_changes(self.mapping, changes, self.layout.newline, read_item):
            data = _encode(_assemble(self.layout, head, body))
            with suppress(UnreadableNote):
                stand_in = self.document.note.id if self.style.is_bare else None
                new = open_document(data, self.path, self.modified_at, stand_in, strict)
                if is_right(new):
                    return data, new
        raise UnreadableNote(
            "the frontmatter cannot be edited without changing its meaning; write it as plain "
            "`key: value` lines"
        )


def derive_id(path: str, number: int = 1) -> str:
    """Return the id of a file that does not contain one. The id is the UUIDv5 of the file's path.

    `path` is relative to the notes folder, with POSIX separators. If another note from this path still has
    the derived id, the new file at the path has `number` 2, and so on. The number is appended after a NUL,
    which cannot occur in a path.
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
    """Parse a note file. `path` and `modified_at` (aware) replace an id, title or times that the file lacks.

    `stand_in` is the id of a file without an id if its id is not derived from the path. Raise
    `UnreadableNote` for binary data, for text that is not UTF-8, and for frontmatter that is malformed or not
    a mapping. If the style serves broken frontmatter, the note has a `frontmatter_error` instead.
    """
    return open_document(data, path, modified_at, stand_in, style).document


def parse_identified(
    data: bytes, path: str, modified_at: datetime, stand_in: str | None = None, style: VaultStyle = PLAIN
) -> tuple[Document, bool]:
    """Parse a note file like `parse_document`. Also return whether the file itself contains its id."""
    reading = open_document(data, path, modified_at, stand_in, style)
    return reading.document, reading.is_identified


def given_keys(data: bytes, style: VaultStyle = PLAIN) -> frozenset[str]:
    """Return the owned keys for which the file contains a usable value. Raise the errors of `parse_document`.

    Under a minimal style, return only the keys that an update would keep up to date.
    """
    mapping: YamlMapping = FRONTMATTER.load(read_layout(data).yaml)
    owned = read_owned(mapping.nodes, mapping.values, minimal=style.minimal_frontmatter)
    return owned.said if style.minimal_frontmatter else frozenset(owned.values)


def render_document(document: Document, path: str = "", style: VaultStyle = PLAIN) -> bytes:
    """Return the bytes of a new file.

    The file has the keys of the style, a blank line, the title as H1 if required, and the content.

    Raise `UnreadableNote` if no file would read back as `document`.
    """
    style = style.at(path)
    expected = _expected(document.note, trim_content(document.content), style)
    note = expected.note
    values = {**_new_values(note, path, style), **note.extra}
    if not is_id(note.id):
        values = {PREFIX + "id" if key == "id" else key: value for key, value in values.items()}
    head = "".join(write_entry(key, value, "", "\n") for key, value in values.items())
    title = None if style.is_foreign else note.title
    body = _with_tail(_body(title, expected.content), tail_of(document.content), "\n")
    data = _encode(f"---\n{head}---\n{body}")
    if not _same(parse_document(data, path, note.updated_at, style=style), expected):
        raise UnreadableNote("the note would not read back unchanged; simplify its metadata")
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
) -> bytes:
    """Return `data` with the changes to `new`. Only the text of changed values is edited.

    With `replace_body`, the body becomes the title (if it is a heading) and the content, with the line breaks
    of the file. Otherwise, no byte after the frontmatter changes, except for the text of a leading H1 if the
    title changed. Inline tags are not written. Raise `UnreadableNote` if `data` is unreadable or no edit
    would read back as `new`.
    """
    old = open_document(data, path, modified_at, stand_in, evolve(style, serves_broken=False))
    return old.rewritten(new, replace_body=replace_body).data


def edit_document(
    data: bytes,
    path: str,
    modified_at: datetime,
    decide: Callable[[Document, bool], Note],
    body: str,
    stand_in: str | None = None,
    style: VaultStyle = PLAIN,
) -> Rewritten:
    """Return `data` with exactly this body, as the next version of the note.

    `decide` gets the old document and `Reading.is_signed`, and returns the values of the new note. Raise
    `UnreadableNote` if `data` is unreadable or no edit would read back with these values. Raise
    `InvalidInput` if the body begins with a title other than that of the note.
    """
    old = open_document(data, path, modified_at, stand_in, style)
    wanted = normalise_note(decide(old.document, old.is_signed))

    def is_right(new: Reading, said: Note) -> bool:
        document = new.document
        if document.note.title != wanted.title:
            raise InvalidInput(
                f"The body would begin with the heading {document.note.title[:200]!r}, which "
                "would be read as the note's title. Begin with other text, or with a lower-level "
                "heading."
            )
        expected = _expected(said, document.content, style)
        return new.layout.text.endswith(body) and _same(document, expected)

    return old.updated(wanted, body, is_right)


def amend_document(
    data: bytes,
    path: str,
    modified_at: datetime,
    values: Mapping[str, Any],
    stand_in: str | None = None,
    style: VaultStyle = PLAIN,
) -> bytes:
    """Return `data` with new values for some owned keys. No other bytes change, and no other keys are added.

    `values` are fields of `Note`. Raise `UnreadableNote` if `data` is unreadable or no edit would read back
    correctly.
    """
    old = open_document(data, path, modified_at, stand_in, evolve(style, serves_broken=False))
    fields = dict(values)
    if "id" in values:  # a note cannot be its own source, so a new id may change the sources
        fields["derived_from_ids"] = clean_sources(old.owned.values.get("derived_from_ids", ()), values["id"])
    expected = evolve(old.document, note=evolve(old.document.note, **fields))
    written = written_values(expected.note)
    wanted = {key: written[key] for key in values}
    names = old.owned.names(wanted, expected.note.extra, minimal=style.minimal_frontmatter)
    changes = KeyChanges(values={names[key]: value for key, value in wanted.items()}, removed=frozenset())
    return old.edited(changes, old.layout.body, lambda new: _same(new.document, expected))[0]


def adopt_document(
    data: bytes,
    path: str,
    modified_at: datetime,
    decide: Callable[[Document, frozenset[str]], tuple[Note, frozenset[str]]],
    style: VaultStyle = PLAIN,
) -> tuple[bytes, Document, bool]:
    """Return a person's `data` with additional frontmatter values. No other bytes change.

    `decide` gets the document and the owned keys with usable values in the file. It returns the new note and
    the owned keys to write. The result contains the bytes, the document parsed from them, and whether they
    contain the id. Raise `UnreadableNote` if `data` is unreadable or no edit would read back correctly.
    """
    old = open_document(data, path, modified_at, None, evolve(style, serves_broken=False))
    wanted, keys = decide(old.document, frozenset(old.owned.values))
    expected = evolve(old.document, note=wanted)
    extra = _changes_of_extra(old, wanted)
    owned = {key: value for key, value in written_values(wanted).items() if key in keys}
    names = old.owned.names(owned, wanted.extra, minimal=style.minimal_frontmatter)
    named = {names[key]: value for key, value in owned.items()}
    changes = evolve(extra, values={**named, **extra.values})
    data, new = old.edited(changes, old.layout.body, lambda new: _same(new.document, expected))
    return data, new.document, new.is_identified


def _expected(note: Note, content: str, style: VaultStyle) -> Document:
    """Return the document that should result from reading a file with these values and this content."""
    return Document(note=evolve(normalise_note(note), **told_by(content, style)), content=content)


def told_by(content: str, style: VaultStyle) -> dict[str, Any]:
    """Return the fields of a note that depend on its text.

    The fields that depend on the text are `inline_tags` and `has_conflict_markers`.
    """
    tags = scan_tags(content) if style.is_foreign else ()
    return {"inline_tags": tags, "has_conflict_markers": has_conflict_markers(content)}


def open_document(
    data: bytes, path: str, modified_at: datetime, stand_in: str | None, style: VaultStyle
) -> Reading:
    """Parse a file for reading and rewriting. Raise the errors of `parse_document`."""
    style = style.at(path)
    layout = read_layout(data, keeps_heading=style.is_foreign)
    fields: dict[str, Any] = {"created_at": modified_at, "updated_at": modified_at}
    try:
        mapping: YamlMapping = FRONTMATTER.load(layout.yaml)
        nodes = mapping.nodes
        owned = read_owned(nodes, mapping.values, minimal=style.minimal_frontmatter) if nodes else NO_KEYS
        extra = {key: mapping.values.value(nodes[key]) for key in nodes if _is_extra(key, owned)}
        fields |= {**owned.values, "extra": cut_extra(extra, layout.yaml)}
    except UnreadableNote as problem:
        if not style.serves_broken:
            raise
        # The names in the broken frontmatter become aliases, so that links with these names still lead to
        # this note.
        mapping, nodes, owned = FRONTMATTER.load(""), {}, NO_KEYS
        fields["aliases"] = _names_in(layout.yaml)
        fields["frontmatter_error"] = {"line": problem.line, "reason": problem.reason[:_LONGEST_REASON]}
    fields["id"] = own_id = owned.values.get("id") or stand_in or derive_id(path)
    heading, content = layout.heading, layout.content
    if heading is not None and not layout.keeps_heading:
        fields["title"] = clean_title(layout.text[heading.start : heading.end])
    elif "title" not in owned.values:
        fields["title"] = _file_title(path)
    if "derived_from_ids" in owned.values:
        fields["derived_from_ids"] = clean_sources(owned.values["derived_from_ids"], own_id)
    fields |= told_by(content, style)
    return Reading(
        layout=layout,
        mapping=mapping,
        nodes=nodes,
        owned=owned,
        document=Document(note=Note(**fields), content=content),
        path=path,
        modified_at=modified_at,
        style=style,
    )


def _is_extra(key: str, owned: OwnedKeys) -> bool:
    """Return whether a key in the file belongs to a person and not to Lithos."""
    return key in owned.foreign or not (key in _OWNED or key in PREFIXED)


def _names_in(broken: str) -> tuple[str, ...]:
    """Return the title and aliases in unreadable frontmatter.

    Each value is parsed separately. If the title cannot be parsed, its text is used.
    """
    names: list[str] = []
    for found in _NAMES.finditer(broken):
        try:
            mapping: YamlMapping = FRONTMATTER.load(found[0])
            healed = read_owned(mapping.nodes, mapping.values, minimal=False).values
        except UnreadableNote:
            healed = {"title": clean_title(found[2].strip("\"' "))} if found[1] == "title" else {}
        names += [healed["title"]] if healed.get("title") else healed.get("aliases", ())
    return clean_items(dict.fromkeys(names))


def _file_title(path: str) -> str:
    return clean_title(PurePosixPath(path).stem)


def _new_values(note: Note, path: str, style: VaultStyle) -> dict[str, Any]:
    """Return the owned keys of a new file."""
    values = written_values(note)
    if not style.minimal_frontmatter:
        return values
    if note.title == _file_title(path):
        del values["title"]
    return {key: value for key, value in values.items() if key in _CREATED or value != _DEFAULTS.get(key, ())}


def _changes(old: Reading, new: Note) -> KeyChanges:
    """Return the changes that an update makes.

    Under a minimal style, an update changes only `_ADDED` and values that differ.
    """
    before, after = written_values(old.document.note), written_values(new)
    owned, minimal = old.owned, old.style.minimal_frontmatter
    is_older = older_source(old.nodes, old.mapping.values) is not None
    if minimal:
        forced = set() if old.style.is_bare else set(_ADDED) - owned.values.keys()
    else:
        forced = (after.keys() - old.nodes.keys() - owned.prefixed) | (
            _DEFAULT_FROM_FILE - owned.values.keys()
        )
        forced |= {"source"} if is_older else set()
    values = {key: value for key, value in after.items() if key in forced or value != before.get(key)}
    extra = _changes_of_extra(old, new)
    if minimal:
        for key in _STAMPS:
            if key not in owned.said:
                values.pop(key, None)
        is_titled = old.title_heading is not None or after["title"] == _file_title(old.path)
        if "title" not in owned.said and is_titled:
            values.pop("title", None)
        if is_older and "source" in values and "derived_from_ids" in after:
            values["derived_from_ids"] = after["derived_from_ids"]
    values |= {key: after.get(key) for key in _to_mark(old, new, extra) if key not in values}
    dropped = before.keys() - after.keys() - values.keys()
    names = owned.names(values | dict.fromkeys(dropped), new.extra, minimal=minimal)
    named = {names[key]: value for key, value in values.items()}
    removed = extra.removed | {names[key] for key in dropped}
    return KeyChanges(values={**named, **extra.values}, removed=removed)


def _to_mark(old: Reading, new: Note, extra: KeyChanges) -> set[str]:
    """Return the keys for which Lithos must also write its own value.

    Without this value, Lithos would later treat the person's new value for the key as a value of Lithos.
    """
    changed = {key for key in extra.values if key in _OWNED and key not in old.owned.prefixed}
    marked = {key for key in changed if means_something(key, extra.values[key])}
    if not old.style.minimal_frontmatter:
        return marked
    is_named = "id" in old.owned.said and "id" not in old.owned.prefixed
    looks_managed = is_named and all(
        key in new.extra and means_something(key, new.extra[key]) for key in _STAMPS
    )
    return (marked - {*_STAMPS, "source"}) | ({"version"} if marked and looks_managed else set())


def _changes_of_extra(old: Reading, new: Note) -> KeyChanges:
    extra = old.document.note.extra
    changed = {
        key: value
        for key, value in new.extra.items()
        if key not in extra or not _same_json(value, extra[key])
    }
    return KeyChanges(values=changed, removed=frozenset(extra.keys() - new.extra.keys()))


def _body(title: str | None, content: str, newline: str = "\n") -> str:
    head = "" if title is None else f"\n# {title}\n"
    text = head + (f"\n{content}\n" if content else "")
    return text if newline == "\n" else text.replace("\n", newline)


def _with_tail(body: str, tail: str, newline: str) -> str:
    """Return the body with the trailing blank space `tail` if `tail` contains a line break."""
    if "\n" not in tail:
        return body
    return body.rstrip() + tail.replace("\n", newline)


def _replaced_body(old: Reading, title: str, given: str) -> str:
    """Return the body with the given content.

    If the content is unchanged, the bytes around it do not change.
    """
    content, tail, newline = trim_content(given), tail_of(given), old.layout.newline
    has_its_heading = old.style.is_foreign or old.style.is_bare or old.title_heading is not None
    if content == old.document.content and has_its_heading:
        body = _kept_body(old, title)
    elif old.style.is_bare and old.title_heading is not None:
        body = _titled_body(old.layout, old.title_heading, old.heading_for(title), content)
    elif old.style.is_foreign or old.style.is_bare:
        body = _spared_body(old.layout, content)
    else:
        body = _body(old.heading_for(title), content, newline)
    return _with_tail(body, tail, newline)


def _spared_body(layout: Layout, content: str) -> str:
    """Return the body with new content. The blank lines around the text do not change."""
    newline, rest = layout.newline, layout.body
    if not rest.strip() or not content:
        return _body(None, content, newline)
    before, after = rest[: len(rest) - len(rest.lstrip())], rest[len(rest.rstrip()) :]
    text = content.replace("\n", newline)
    return before[: before.rfind("\n") + 1] + text + after[max(after.find(newline), 0) :]


def _titled_body(layout: Layout, heading: TitleHeading, title: str, content: str) -> str:
    """Return the body with new content below its title. The blank lines around the text do not change."""
    newline, rest = layout.newline, layout.text[heading.end :]
    before = layout.text[layout.body_start : heading.start] + title
    gap, after = rest[: len(rest) - len(rest.lstrip())], rest[len(rest.rstrip()) :]
    if not rest.strip() or not content:
        gap, after = newline * 2 if content else "", newline
    return before + gap + content.replace("\n", newline) + after


def _kept_body(old: Reading, title: str) -> str:
    layout, heading = old.layout, old.title_heading
    if heading is None or title == old.document.note.title:
        return layout.body
    return layout.text[layout.body_start : heading.start] + title + layout.text[heading.end :]


def _assemble(layout: Layout, head: str, body: str) -> str:
    newline = layout.newline
    if layout.has_frontmatter:
        closing = layout.text[layout.yaml_end : layout.body_start]
        gap = "" if closing.endswith("\n") or not body else newline
        return f"{layout.text[: layout.yaml_start]}{head}{closing}{gap}{body}"
    if not head:
        return layout.text[: layout.yaml_start] + body
    gap = "" if not body or body.startswith(("\n", "\r\n")) else newline
    return f"{layout.text[: layout.yaml_start]}---{newline}{head}---{newline}{gap}{body}"


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnreadableNote(
            "the text contains lone surrogates, which UTF-8 does not support; remove them"
        ) from error


def _same(one: Document, other: Document) -> bool:
    is_said = one.content == other.content and _BUT_EXTRA(one.note) == _BUT_EXTRA(other.note)
    return is_said and _same_json(one.note.extra, other.note.extra)


def _same_json(one: Any, other: Any) -> bool:
    """Return whether two values are equal. The values 1, 1.0 and true are not equal."""
    return one is other or json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
