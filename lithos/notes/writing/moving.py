"""Preparation of moves: the note at its new path, and the links to update.

A move renames the file without changing its bytes. The links to the note, and its own relative links, are
rewritten later. Each affected note gets a separate request, which uses the state of its file at that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import attrs

from lithos.kernel.actors.threads import Blocking
from lithos.kernel.values.errors import Forbidden, InvalidInput, VersionConflict
from lithos.kernel.values.events import NOTE_RENAMED, NOTE_UPDATED, TAKING_BACK, EventDraft, note_origin
from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.limits import TITLE
from lithos.kernel.values.messages import Command
from lithos.kernel.values.principals import Principal
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.note_reading import draft_change
from lithos.notes.catalogue.relinking import plan_links
from lithos.notes.files.canvases import CanvasLinks, find_canvases, rewrite_canvas
from lithos.notes.files.displaced import MoveIntent
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import FileBusy, FileChanged, Move, OutsideKnowledge, Put, ReadFile, digest_of
from lithos.notes.format.document import parse_identified
from lithos.notes.links.canvas import NoCanvas
from lithos.notes.links.edit import IsFile, relink, relink_own
from lithos.notes.links.links import targets_in
from lithos.notes.model.note import Document, current_of
from lithos.notes.model.paths import folder_of, names_file, resolve_new_path
from lithos.notes.model.scopes import PathAccess, Scope, WriteScopes, refusal_of
from lithos.notes.writing.external_changes import ExternalReply
from lithos.notes.writing.messages import MoveNote, NothingToRelink, RelinkNote, WriteOutcome
from lithos.notes.writing.preparation import Preparation, Prepared, cannot_update, find_note
from lithos.notes.writing.write_rules import (
    check_free,
    check_slug,
    check_version,
    no_such_note,
    path_collision,
)
from lithos.text.yaml.nodes import UnreadableNote


@attrs.frozen(kw_only=True)
class RelinkCanvas(Command[ExternalReply]):
    """Request to rewrite the links of one canvas after a move. Nothing else on the canvas changes."""

    path: str
    intent: MoveIntent
    #: The agent or person that moved the note.
    by: Principal | None = None


def target_of(request: MoveNote, path: str, catalogue: Catalogue) -> str:
    """Return the new path of the note at `path`.

    If the new path is a folder, the file name stays the same. Raises `InvalidInput`.

    When a move is undone, the former path is restored exactly, whatever its name is.
    """
    resolved = resolve_new_path(request.path, path.rpartition("/")[2].removesuffix(".md"))
    return resolved if request.source == TAKING_BACK else catalogue.path_to_make(resolved)


class MovePreparation:
    """Preparation of moves and rewritten links against the current catalogue.

    The methods of `MovePreparation` raise errors for refused requests.
    """

    def __init__(self, preparation: Preparation) -> None:
        self._catalogue = preparation.catalogue
        self._clock = preparation.clock
        self._refuse = preparation.refuse_ignored

    def prepare_move(self, request: MoveNote, source: ReadFile | Exception | None) -> Prepared:
        """Prepare a move. `source` is the note's current file. The links are planned later by `plan`."""
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
            raise InvalidInput(f"The note is already at {new.path}. Choose another path.")
        if request.source == TAKING_BACK:
            if self._catalogue.at_path(new.path) is not None:
                raise path_collision(new.path, self._catalogue)
        else:
            check_free(new.path, self._catalogue, entry.note.id)
        per_folder = self._catalogue.style.is_foreign
        if per_folder and names_file(request.path):
            return
        if new.slug != entry.slug or (per_folder and folder_of(new.path) != folder_of(entry.path)):
            check_slug(new.slug, self._catalogue, new.path, entry.note.id)

    async def plan(
        self, request: MoveNote, prepared: Prepared, files: NoteFiles, blocking: Blocking
    ) -> Prepared:
        """Return the prepared move with its intent, which contains the planned link changes."""
        new = prepared.entry
        old = self._catalogue.get(new.note.id)
        assert old is not None
        takes_back = request.source == TAKING_BACK
        canvases = await self._canvases(old, new, files, blocking) if request.update_links else ()
        planned = await plan_links(self._catalogue, old, new, canvases, takes_back=takes_back)
        others = [each for each in planned.sources if each != new.note.id]
        if request.update_links and request.relinks is not None and not request.relinks.issuperset(others):
            raise VersionConflict(
                "Other notes have been linked to this note since you checked its links, and a "
                "move rewrites their links. Nothing was moved. Check the links, then retry.",
                **current_of(old.note),
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
            canvases=planned.canvases,
            approved_by=None if request.approval is None else request.approval.by,
        )
        return attrs.evolve(prepared, intent=intent)

    async def _canvases(
        self, old: Entry, new: Entry, files: NoteFiles, blocking: Blocking
    ) -> Sequence[CanvasLinks]:
        """Return the canvases of the vault whose links may need a change."""
        if not len(self._catalogue.files):
            return ()
        paths = self._catalogue.files.paths()
        keys = self._catalogue.graph.keys_of(old) | self._catalogue.graph.keys_of(new)
        names = {name for kind, name in keys if kind in ("stem", "alias", "title", "id")}
        return await blocking.run(lambda: list(find_canvases(files, paths, names)))

    def prepare_relinking(
        self, request: RelinkNote, source: ReadFile | Exception | None, data: bytes | None
    ) -> Prepared:
        """Prepare a note with rewritten links. `data` is the current file with the new links.

        Raises `NothingToRelink` if the note has no links to rewrite.
        """
        entry, source = find_note(self._catalogue, request, source)
        if data is None or data == source.data:
            raise NothingToRelink(f"The note {entry.path} has no links to rewrite.")
        now = self._clock()
        document, identified = self._read(entry, data, entry.path, now)
        if document.note.id != entry.note.id:
            raise no_such_note(request)
        own, digest = document.note.version, digest_of(data)
        # The file does not contain its new version, just like a file that a person has edited.
        self._catalogue.see_version(entry.note.id, source.digest, own)
        version = self._catalogue.see_version(entry.note.id, digest, own)
        document = attrs.evolve(document, note=attrs.evolve(document.note, version=version))
        new = _entry(entry, document, entry.path, data, digest, identified=identified)
        event = EventDraft(
            type=NOTE_UPDATED,
            agent=request.intent.agent,
            payload={"id": entry.note.id, "title": beginning(new.note.title, TITLE), "path": entry.path},
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
    """Return the bytes of the note at `path` with updated links.

    If the note is unreadable, return None. Blocks.
    """
    moved = request.intent.relinking
    try:
        if request.id != request.intent.id:
            return relink(source.data, path, moved, is_file)
        only_broken = request.is_resumed and source.digest != request.intent.digest
        return relink_own(source.data, moved, is_file, only_broken=only_broken)
    except UnreadableNote:
        return None


async def relink_canvas(
    request: RelinkCanvas, files: NoteFiles, blocking: Blocking, scopes: WriteScopes
) -> ExternalReply:
    """Rewrite the links of a canvas, if the agent that moved the note may change the canvas."""
    agent, path = request.intent.agent, request.path
    place = scopes.place_of(request.by, agent, path)
    if place != "write":
        return ExternalReply(failure=_refusal(place, path, agent, scopes.scope_of(request.by, agent)))
    try:
        is_changed = await blocking.run(partial(rewrite_canvas, files, path, request.intent.relinking))
    except (OSError, FileBusy, FileChanged, OutsideKnowledge, NoCanvas) as failure:
        return ExternalReply(failure=failure)
    return ExternalReply(rewritten=[path] if is_changed else [])


def _refusal(place: PathAccess, path: str, agent: str, scope: Scope | None) -> Forbidden:
    if place == "propose":
        return Forbidden(
            f"{path[:300]} changes only after a person's approval. It was not changed.", path=path
        )
    return refusal_of(place, path, agent, scope)
