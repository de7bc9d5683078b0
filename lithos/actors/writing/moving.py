"""Preparation of a move: the note at its new path, and the links that have to follow it.

A move renames the file and leaves its bytes alone. The links to it, and the relative ones in it, are
rewritten later, note by note, each by a request of its own: they are found in the file as it is then.
"""

from __future__ import annotations

from datetime import datetime

import attrs

from lithos.actors.writing.messages import MoveNote, NothingToRelink, RelinkNote, WriteOutcome
from lithos.actors.writing.preparation import Preparation, Prepared, cannot_update, find_note
from lithos.actors.writing.write_rules import (
    check_free,
    check_slug,
    check_version,
    no_such_note,
    path_collision,
)
from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.catalogue.note_reading import draft_change
from lithos.catalogue.relinking import plan_links
from lithos.core.errors import InvalidInput, VersionConflict
from lithos.core.events import NOTE_RENAMED, NOTE_UPDATED, TAKING_BACK, EventDraft, note_origin
from lithos.core.limits import TITLE
from lithos.core.notes.document import parse_identified
from lithos.core.notes.link_edit import IsFile, relink, relink_own
from lithos.core.notes.links import targets_in
from lithos.core.notes.model import Document
from lithos.core.notes.paths import folder_of, names_file, resolve_new_path
from lithos.core.notes.yaml_nodes import UnreadableNote
from lithos.core.times import from_nanoseconds
from lithos.stores.notes.displaced import MoveIntent
from lithos.stores.notes.values import Move, Put, ReadFile, digest_of


def target_of(request: MoveNote, path: str, catalogue: Catalogue) -> str:
    """Where a note at `path` goes: with a folder it keeps its file name. Raises `InvalidInput`.

    What is taken back goes where it was, whatever that is called.
    """
    resolved = resolve_new_path(request.path, path.rpartition("/")[2].removesuffix(".md"))
    return resolved if request.source == TAKING_BACK else catalogue.path_to_make(resolved)


class MovePreparation:
    """Prepares moves and rewritten links against the current catalogue; refusals are raised."""

    def __init__(self, preparation: Preparation) -> None:
        self._catalogue = preparation.catalogue
        self._clock = preparation.clock
        self._refuse = preparation.refuse_ignored

    def prepare_move(self, request: MoveNote, source: ReadFile | Exception | None) -> Prepared:
        """Prepare a move; `source` is the file as it is now. Its links are planned by `plan`."""
        catalogue = self._catalogue
        entry, source = find_note(catalogue, request, source)
        path = target_of(request, entry.path, catalogue)
        self._refuse(path)
        document, identified = self._read(entry, source.data, path, from_nanoseconds(source.state.mtime_ns))
        if document.note.id != entry.note.id:
            raise no_such_note(request)
        own = document.note.version
        version = catalogue.see_version(entry.note.id, source.digest, own)
        document = attrs.evolve(document, note=attrs.evolve(document.note, version=version))
        check_version(request.expected_version, document.note)
        new = _entry(entry, document, path, source.data, source.digest, identified=identified)
        self._check_place(request, entry, new)
        now = self._clock()
        event = attrs.evolve(
            draft_change(NOTE_RENAMED, new, entry.path, request.agent, now),
            origin=note_origin(request.source, new.digest, version),
        )
        return Prepared(
            Move(entry.path, path, source.digest),
            new,
            document,
            WriteOutcome("updated", entry.note.id, path, version),
            event,
            says_version=version == own,
        )

    def _check_place(self, request: MoveNote, entry: Entry, new: Entry) -> None:
        if new.path == entry.path:
            raise InvalidInput(f"The note is at {new.path} already. Give another path.")
        if request.source == TAKING_BACK:
            if self._catalogue.at_path(new.path) is not None:
                raise path_collision(new.path, self._catalogue)
        else:
            check_free(new.path, self._catalogue, entry.note.id)
        per_folder = self._catalogue.style.titles_per_folder
        if per_folder and names_file(request.path):
            return
        if new.slug != entry.slug or (per_folder and folder_of(new.path) != folder_of(entry.path)):
            check_slug(new.slug, self._catalogue, new.path, entry.note.id)

    async def plan(self, request: MoveNote, prepared: Prepared) -> Prepared:
        """The prepared move with its intent, which says what to do about links."""
        new = prepared.entry
        old = self._catalogue.get(new.note.id)
        assert old is not None
        takes_back = request.source == TAKING_BACK
        planned = await plan_links(self._catalogue, old, new, takes_back=takes_back)
        others = [each for each in planned.sources if each != new.note.id]
        if request.update_links and request.relinks is not None and not request.relinks.issuperset(others):
            raise VersionConflict(
                "Other notes link to this one since you looked, and a move rewrites their links. Nothing was "
                "moved; look again.",
                current_version=old.note.version,
            )
        intent = MoveIntent(
            id=new.note.id,
            agent=request.agent,
            digest=new.digest,
            identified=new.identified,
            relinking=planned.relinking,
            update_links=request.update_links,
            source=request.source,
            sources=(new.note.id, *others),
            approved_by=None if request.approval is None else request.approval.by,
        )
        return attrs.evolve(prepared, intent=intent)

    def prepare_relinking(
        self, request: RelinkNote, source: ReadFile | Exception | None, data: bytes | None
    ) -> Prepared:
        """Prepare a note with rewritten links: `data`, made of the file as it is now.

        Raises `NothingToRelink` for a note without links to rewrite.
        """
        entry, source = find_note(self._catalogue, request, source)
        if data is None or data == source.data:
            raise NothingToRelink(f"The note {entry.path} has no link that has to be rewritten.")
        now = self._clock()
        document, identified = self._read(entry, data, entry.path, now)
        if document.note.id != entry.note.id:
            raise no_such_note(request)
        own, digest = document.note.version, digest_of(data)
        # The version is the next one, which the file does not say: as after an edit by a person.
        self._catalogue.see_version(entry.note.id, source.digest, own)
        version = self._catalogue.see_version(entry.note.id, digest, own)
        document = attrs.evolve(document, note=attrs.evolve(document.note, version=version))
        new = _entry(entry, document, entry.path, data, digest, identified=identified)
        event = EventDraft(
            type=NOTE_UPDATED,
            agent=request.intent.agent,
            payload={"id": entry.note.id, "title": new.note.title[:TITLE], "path": entry.path},
            timestamp=now,
            tags=new.note.tags,
            origin=note_origin(request.intent.source, digest, version),
        )
        outcome = WriteOutcome("updated", entry.note.id, entry.path, version)
        operation = Put(entry.path, data, source.digest)
        return Prepared(operation, new, document, outcome, event, says_version=version == own)

    def _read(self, entry: Entry, data: bytes, path: str, modified: datetime) -> tuple[Document, bool]:
        try:
            document, identified = parse_identified(
                data, path, modified, entry.stand_in, self._catalogue.style
            )
        except UnreadableNote as problem:
            raise cannot_update(entry.path, problem) from problem
        note = self._catalogue.with_creation(document.note, modified)
        return attrs.evolve(document, note=note), identified


def _entry(
    entry: Entry, document: Document, path: str, data: bytes, digest: str, *, identified: bool
) -> Entry:
    return attrs.evolve(
        entry,
        path=path,
        note=document.note,
        digest=digest,
        identified=identified,
        links=targets_in(data, document.content, path),
    )


def rewrite(request: RelinkNote, path: str, source: ReadFile, is_file: IsFile) -> bytes | None:
    """The bytes of the note at `path` with the links it needs; None where it cannot be read. Blocks."""
    moved = request.intent.relinking
    try:
        if request.id != request.intent.id:
            return relink(source.data, path, moved, is_file)
        only_broken = request.is_resumed and source.digest != request.intent.digest
        return relink_own(source.data, moved, is_file, only_broken=only_broken)
    except UnreadableNote:
        return None
