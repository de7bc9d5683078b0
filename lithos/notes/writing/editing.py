"""Edits of one place of a note.

Edits are applied to the file as the writer reads it, so no edit undoes another edit.

The body is changed in the worker thread that reads the file (`edit_source`). Decisions that need the
catalogue, such as the new version, are made on the event loop (`EditPreparation`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import trio

from lithos.kernel.values.errors import InvalidInput, LithosError, VersionConflict
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.files.values import Put, ReadFile, digest_of
from lithos.notes.format.document import edit_document
from lithos.notes.format.pasted_file import begins_with_note_keys
from lithos.notes.links.links import targets_in
from lithos.notes.model.note import Document, Note
from lithos.notes.writing.messages import EditNote, OutlineNeeded
from lithos.notes.writing.preparation import (
    Passed,
    Preparation,
    Prepared,
    cannot_update,
    find_note,
    make_prepared,
    version_read,
)
from lithos.notes.writing.write_rules import (
    check_content,
    check_version,
    decide_edit,
    no_such_note,
    refuse_broken,
)
from lithos.text.outline.outline import Outline, read_outline, title_of
from lithos.text.outline.section_edit import FIND_REPLACE, Edited, OtherHash, SectionEdit, apply_edit
from lithos.text.yaml.layout import Layout, frontmatter_at, read_layout
from lithos.text.yaml.nodes import UnreadableNote

#: Maximum number of characters in a body that the writer parses itself. Parsing takes up to 0.1 s, and no
#: other note is written meanwhile.
PARSED_BY_WRITER: Final = 128 * 1024
#: Maximum number of bytes in a file whose waiting edits are made on the event loop (at most 9 ms per edit),
#: and maximum number of bytes of all such edits in one turn (about 5 ms for short edits).
TOGETHER: Final = 64 * 1024
TURN: Final = 8 * 1024
#: Maximum number of outlines in memory, and maximum number of characters in all their bodies.
KEPT: Final = 64
KEPT_CHARACTERS: Final = 8 * 1024 * 1024
#: Maximum number of characters of a section in an error.
SHOWN: Final = 20_000


class Outlines:
    """The outlines of the bodies that were read or written most recently. Thread-safe."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, tuple[int, int] | None], Outline] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()

    def known(self, body: str, title: tuple[int, int] | None) -> Outline | None:
        """Return the outline of a body, or None if it is not in memory."""
        key = _key(body, title)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def read(self, layout: Layout) -> Outline:
        """Return the outline of a file's body and store it in memory.

        Raises `InvalidInput` for a body with too many lines. Blocks.
        """
        body, title = layout.body, title_of(layout)
        outline = self.known(body, title) or read_outline(body, title)
        self.keep(outline)
        return outline

    def keep(self, outline: Outline) -> None:
        """Store an outline in memory. The least recently used outlines are dropped."""
        key = _key(outline.body, outline.title)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = outline
                self._characters += len(outline.body)
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT or (self._characters > KEPT_CHARACTERS and len(self._kept) > 1):
                _, dropped = self._kept.popitem(last=False)
                self._characters -= len(dropped.body)


def _key(body: str, title: tuple[int, int] | None) -> tuple[str, tuple[int, int] | None]:
    return digest_of(body.encode()), title


def edit_source(
    request: EditNote, data: bytes, outlines: Outlines, *, keeps_heading: bool
) -> Edited | LithosError | None:
    """Return the edited body of a note file, or the error. If the file is not a note, return None. Blocks.

    If the request `is_patient` and the outline of a long body is unknown, the error is `OutlineNeeded`.
    """
    try:
        layout = read_layout(data, keeps_heading=keeps_heading)
    except UnreadableNote:
        return None
    body, title = layout.body, title_of(layout)
    has_section = request.edit.section is not None
    outline = outlines.known(body, title) if has_section else None
    try:
        if outline is None and has_section:
            if request.is_patient and len(body) > PARSED_BY_WRITER:
                return OutlineNeeded("The outline of the note is not known yet.")
            outline = outlines.read(layout)
        edited = apply_edit(request.edit, body, title, layout.newline, outline)
        refuse_frontmatter(request.edit, layout, edited.body)
    except LithosError as refusal:
        return refusal
    if edited.outline is not None:
        outlines.keep(edited.outline)
    return edited


def refuse_frontmatter(edit: SectionEdit, layout: Layout, body: str) -> None:
    """Raise `InvalidInput` if an edit inserts a frontmatter into the text, where it would have no effect."""
    given = edit.op != FIND_REPLACE and begins_with_note_keys(edit.text or "")
    title = title_of(layout)
    top = title[1] if title is not None and body.startswith(layout.body[: title[1]]) else 0
    if given or (frontmatter_at(body, top) is not None and frontmatter_at(layout.body, top) is None):
        raise InvalidInput(
            "The text begins with a frontmatter, which would become part of the note's body. "
            "Nothing was changed. Leave the frontmatter out, and change title, tags and metadata "
            "with lithos_note_update, or give the whole file to lithos_write as content. Write a "
            "thematic break as ***."
        )


class EditPreparation:
    """Preparation of edits against the current catalogue. Its methods raise errors for refused edits."""

    def __init__(self, preparation: Preparation) -> None:
        self._catalogue = preparation.catalogue
        self._clock = preparation.clock
        self._content_limit = preparation.content_limit

    def prepare_edit(
        self,
        request: EditNote,
        source: ReadFile | Exception | None,
        edited: Edited | LithosError | None,
        former: Entry | None = None,
    ) -> Prepared:
        """Prepare the next version of a note. `edited` is the result of `edit_source` for the note's file.

        If `former` is given, it is the note after the previous edit, and `source` contains the bytes of that
        edit.
        """
        entry, source = find_note(self._catalogue, request, source)
        try:
            return self._prepare(request, former or entry, source, edited, is_read=former is None)
        except UnreadableNote as problem:
            raise cannot_update(entry.path, problem) from problem

    def _prepare(
        self,
        request: EditNote,
        entry: Entry,
        source: ReadFile,
        edited: Edited | LithosError | None,
        *,
        is_read: bool,
    ) -> Prepared:
        now, old_digest = self._clock(), source.digest
        modified, style = from_nanoseconds(source.state.mtime_ns), self._catalogue.style

        def decide(old: Document, is_signed: bool) -> Note:
            refuse_broken(old, entry.path)
            if old.note.id != entry.note.id:
                raise no_such_note(request)
            version = entry.note.version
            if is_read:  # An edit by a person since the last version counts as a version.
                version = version_read(self._catalogue, entry, source, old.note.version)
            note = self._catalogue.to_update(attrs.evolve(old.note, version=version), modified, now)
            check_version(request.expected_version, note)
            if isinstance(edited, OtherHash):
                raise _conflict(edited, version)
            if isinstance(edited, LithosError):
                raise edited
            return decide_edit(request.agent, note, now=now, is_signed=is_signed)

        body = edited.body if isinstance(edited, Edited) else ""
        made = edit_document(source.data, entry.path, modified, decide, body, entry.stand_in, style)
        data, document = made.data, made.document
        assert isinstance(edited, Edited), "a file that can be parsed can also be split"
        check_content(document.content, self._content_limit)
        document = attrs.evolve(document, note=self._catalogue.with_creation(document.note, modified))
        new = attrs.evolve(
            entry,
            note=document.note,
            digest=digest_of(data),
            identified=made.identified,
            links=targets_in(data, document.content, entry.path),
        )
        return make_prepared(
            Put(entry.path, data, old_digest),
            new,
            document,
            request.agent,
            min(new.note.updated_at, now),
            says_version=made.says_version,
            warnings=edited.warnings,
            section=edited.section,
            section_hash=edited.section_hash,
        )

    async def prepare_together(
        self,
        first: Prepared,
        source: ReadFile | Exception | None,
        requests: Sequence[EditNote],
        edit: Callable[[EditNote, ReadFile], Edited | LithosError | None],
        check: Callable[[EditNote, Prepared, ReadFile], Prepared],
    ) -> list[Prepared]:
        """Return an edit based on `source`, and the following edits that are written to the file with it.

        Each edit gets its own version, but the file is written only once, after the last edit (group commit).
        The series ends before a request that is refused or for which the file is too long. This request is
        decided after the preceding edits are on disk. `check` checks each following edit and may refuse it.
        """
        edits, worked = [first], 0
        for request in requests:
            last = edits[-1]
            if not isinstance(source, ReadFile) or not isinstance(last.operation, Put):
                break
            left = ReadFile(last.operation.data, source.state)
            worked += len(left.data)
            if len(left.data) > TOGETHER:
                break
            if worked > TURN:
                await trio.lowlevel.checkpoint()
                worked = 0
            try:
                prepared = self.prepare_edit(request, left, edit(request, left), last.entry)
                prepared = check(request, prepared, left)
            except LithosError:
                break
            edits.append(attrs.evolve(prepared, former=last.entry))
        return _put_once(edits) if len(edits) > 1 else edits


def _put_once(edits: Sequence[Prepared]) -> list[Prepared]:
    """Write the file only once: from the source of the first edit to the result of the last edit."""
    first, last = edits[0].operation, edits[-1]
    assert isinstance(first, Put)
    assert isinstance(last.operation, Put)
    passed = [
        attrs.evolve(
            each, operation=Passed(each.entry, each.operation.data), entry=last.entry, document=last.document
        )
        for each in edits[:-1]
        if isinstance(each.operation, Put)
    ]
    return [*passed, attrs.evolve(last, operation=attrs.evolve(last.operation, expected=first.expected))]


def _conflict(refused: OtherHash, version: int) -> VersionConflict:
    extras: dict[str, Any] = {
        "current_version": version,
        "current_hash": refused.hash,
        "current_text": refused.text[:SHOWN].replace("\r\n", "\n"),
        "warnings": [],
    }
    name = "The body" if refused.path is None else f"The section {refused.path[:200]!r}"
    return VersionConflict(
        f"{name} has changed since you read it: see current_text. Apply your change to this text "
        "and retry with expected_hash = current_hash.",
        **extras,
    )
