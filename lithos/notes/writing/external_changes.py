"""External changes: how changes that other programs make to note files enter the catalogue.

The watcher reads files and reports missing files. The decisions are made here in the writer, because no tool
can then write at the same time. The watcher's data may be outdated by then, so every file is checked again
(optimistic check), and changed files are returned to the watcher. The id in the file identifies a note. If
the old file no longer contains the note's id, the note has moved to the new file (docs/spec/lifecycle.md §5).
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import chain
from typing import Final

import attrs
from attrs import define, field, frozen

from lithos.kernel.actors.threads import Blocking
from lithos.kernel.log import get_logger
from lithos.kernel.values.events import NOTE_CREATED, NOTE_DELETED, EventDraft
from lithos.kernel.values.messages import Command
from lithos.kernel.values.principals import WATCHER_AGENT
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.catalogue import Catalogue, Entry, SkippedFile
from lithos.notes.catalogue.copy_origin import Kinship, VersionsOf
from lithos.notes.catalogue.note_graph import take_turns
from lithos.notes.catalogue.note_reading import (
    Examined,
    conflict_copy,
    draft_change,
    draft_copy,
    draft_event,
    examine,
    make_entry,
    second_file,
    with_id,
    with_note,
    with_version,
)
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.lookup import UNKNOWN_STATE, current_state, is_same_file, is_there
from lithos.notes.files.values import FileChanged, FoundFile, OutsideKnowledge, Put, Remove, digest_of
from lithos.notes.format.document import amend_document, parse_identified
from lithos.notes.model.copies import is_copy_of, is_weakly_named, says_own_note, strong_originals
from lithos.notes.model.note import AssignedVersion
from lithos.notes.model.plan import IdClaim, elect, plan_event
from lithos.notes.model.versions import OUTSIDE, NewVersion
from lithos.notes.writing.messages import CommittedChange, WriteOutcome
from lithos.notes.writing.recording import outside_version
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import PLAIN, VaultStyle

log = get_logger("lithos.outside")


@define  # bounded: ends with its call
class ExternalReply:
    """The reply to a request about external changes.

    `changes` lists the applied changes in order, and `versions` their versions for the history. `again` lists
    files that changed meanwhile and must be read again. `displaced` contains the ids of notes whose files now
    belong to other notes. `present` contains the ids of notes whose files exist again. `copies` contains
    events about newly found conflict copies. `failure` is the reason why a conflict copy was not removed or a
    canvas was not changed. `rewritten` contains the paths of changed canvases.
    """

    changes: list[CommittedChange] = field(factory=list)
    versions: list[NewVersion] = field(factory=list)
    again: list[str] = field(factory=list)
    displaced: list[str] = field(factory=list)
    present: list[str] = field(factory=list)
    copies: list[EventDraft] = field(factory=list)
    rewritten: list[str] = field(factory=list)
    failure: Exception | None = None


@frozen
class OutsideFiles(Command[ExternalReply]):
    """Files that the watcher has read, and paths without a file.

    Files with a stronger claim to an id come first.
    """

    files: tuple[Examined, ...]
    absent: tuple[str, ...] = ()
    #: Files that are not notes, as pairs of the path and whether the file exists.
    others: tuple[tuple[str, bool], ...] = ()


@frozen
class OutsideRemovals(Command[ExternalReply]):
    """Ids of notes whose files are permanently gone."""

    ids: tuple[str, ...]


@frozen
class OutsideBytes(Command[ExternalReply]):
    """Bytes that another program saved to the file at `path`, and that now exist only as a copy.

    `current` contains the file's bytes from the history, or None if the history does not contain them.
    """

    path: str
    data: bytes
    current: bytes | None
    #: The operation that the history records for the bytes, and the agent.
    op: str = OUTSIDE
    agent: str = WATCHER_AGENT


@frozen
class CopyRemoval(Command[ExternalReply]):
    """Command to remove the conflict copy at `path`, if its bytes still have the hash `digest`.

    The note already contains the text of the copy.
    """

    path: str
    digest: str


@frozen
class CopyKeeping(Command[ExternalReply]):
    """Command to keep the file at `path` as a note. A person decided that it is not a conflict copy."""

    path: str


OutsideRequest = OutsideFiles | OutsideRemovals | OutsideBytes | CopyRemoval | CopyKeeping
#: Maximum number of attempts to make a file a separate note while another program keeps saving the file.
_TRIES: Final = 5


@frozen
class _Look:
    """The result of checking a file again. `is_current` means that the file is unchanged.

    `rival` is the path of another file with the same id, and `rival_has_id` means that this file still has
    the id. `heir_of` is the id of a note without an id in its file, if its missing file has moved here.
    `is_yielded` means that the rival may still exist but must give up the id.
    """

    is_current: bool
    rival: str | None
    rival_has_id: bool
    heir_of: str | None = None
    is_yielded: bool = False


@define(eq=False)
class Outside:
    """Service that applies external changes to the catalogue. Only the writer may call it."""

    _catalogue: Catalogue
    _files: NoteFiles
    _blocking: Blocking
    _clock: Callable[[], datetime]
    #: Function that returns the kept versions of a note. They help to recognise a file without an id as a
    #: conflict copy. Blocks.
    _versions: VersionsOf = lambda note_id: ()

    async def take(self, request: OutsideRequest) -> ExternalReply:
        """Apply the changes that are still current.

        The caller must pass the changes on to the indexers and the publisher in order.
        """
        if isinstance(request, OutsideBytes):
            return await self._take_bytes(request)
        if isinstance(request, CopyRemoval):
            return await self._remove_copy(request)
        if isinstance(request, CopyKeeping):
            return await self._keep_apart(request.path)
        if isinstance(request, OutsideRemovals):
            return await self._take_removals(request.ids)
        return await self._take_files(request)

    async def _take_files(self, request: OutsideFiles) -> ExternalReply:
        taken = ExternalReply()
        for path in request.absent:
            self._catalogue.unskip(path)
        for path, exists in request.others:
            self._catalogue.see_file(path, is_there=exists)
        before = [self._standing(examined) for examined in request.files]
        looks = await self._look_again(request.files)
        for number, (examined, known) in enumerate(zip(request.files, before, strict=True)):
            now = self._standing(examined)
            if now is not None and now != known and now.digest != examined.digest:
                # A later state of the file was already returned to a reader, so the state checked here must
                # not count again.
                looks[number] = attrs.evolve(looks[number], is_current=False)
        named = [self._name(*each) for each in zip(request.files, looks, strict=True)]
        originals = await self._find_originals(named)
        for examined, _ in named:
            if (original := self._catalogue.get(originals.get(examined.path, ""))) is not None:
                await self._set_apart(examined, original, taken)
        named = [each for each in named if each[0].path not in originals]
        await self._give_versions(named)
        for examined, look in named:
            rival = self._rival(examined)
            if not look.is_current or look.rival != (rival.path if rival else None):
                taken.again.append(examined.path)
            elif examined.document is None:
                # An unreadable file gets no known state, so the next comparison reads it again.
                state = examined.state if examined.digest else UNKNOWN_STATE
                self._skip(examined.path, SkippedFile(examined.reason, state))
            else:
                await self._enter(examined, examined.document.note.id, look, taken)
        return taken

    async def _find_originals(self, named: Sequence[tuple[Examined, _Look]]) -> dict[str, str]:
        """Return the original notes of conflict copies without an id: note id by path."""
        catalogue, found = self._catalogue, dict[str, str]()
        if not catalogue.style.knows_copies:
            return found

        def at(path: str) -> Entry | None:
            return None if path in found else catalogue.at_path(path)

        kinship = Kinship(self._files, at, catalogue.records.is_own, self._versions)
        doubtful = [
            (examined.path, examined.document.note.id, examined.data, is_note)
            for examined, look in named
            if examined.document is not None
            and look.is_current
            and not examined.identified
            and kinship.may_be_copy(examined.path, is_note=(is_note := self._was_note(examined, look)))
            and not says_own_note(examined.document.note.extra)
        ]

        def find() -> dict[str, str]:
            # The name of a copy of a copy is longer, so shorter names are decided first.
            for path, own_id, data, is_note in sorted(doubtful, key=lambda each: len(each[0])):
                original = kinship.find_original(path, own_id, data, is_note=is_note)
                if original is not None:
                    found[path] = original.note.id
            return found

        return await self._blocking.run(find) if doubtful else found

    def _was_note(self, examined: Examined, look: _Look) -> bool:
        """Return whether a file was a note before, at this path or at the path from which it moved."""
        return look.heir_of is not None or self._catalogue.at_path(examined.path) is not None

    async def _set_apart(self, examined: Examined, original: Entry, taken: ExternalReply) -> None:
        """Record that a file is a conflict copy of a note rather than a separate note."""
        before = self._catalogue.at_path(examined.path)
        if before is not None and before is not original:
            await self._drop(before, taken)
        copy = conflict_copy(examined, original.note.id, original.path, names_id=False)
        self._skip_copy(examined.path, copy, original, taken)

    def _look_for_copies(self, path: str, taken: ExternalReply) -> None:
        """Request a check of files that are named as conflict copies of a new note.

        The copies may be older than the note.
        """
        if self._catalogue.style.knows_copies:
            for each in self._catalogue.named_copies(path):
                if not each.identified and self._catalogue.at_path(each.path) is each:
                    taken.again.append(each.path)

    def _skip_copy(self, path: str, copy: SkippedFile, original: Entry, taken: ExternalReply) -> None:
        """Record that a file is a conflict copy.

        If the copy is new or its bytes have changed, announce the copy.
        """
        known = self._catalogue.skipped.get(path)
        self._skip(path, copy)
        if copy.copy is not None and (
            known is None or known.copy is None or known.copy.digest != copy.copy.digest
        ):
            taken.copies.append(draft_copy(original, path, WATCHER_AGENT, self._clock()))

    def _name(self, examined: Examined, look: _Look) -> tuple[Examined, _Look]:
        """Assign an id to a file without an id. The new id is never the id of another file."""
        if examined.document is None or examined.identified:
            return examined, look
        if look.heir_of is not None:
            return with_id(examined, look.heir_of), look
        holder = self._catalogue.at_path(examined.path)
        if holder is not None:
            # A tool may have moved a note to this path after the file was read. Therefore use the id that the
            # path has now.
            return with_id(examined, holder.note.id), look
        if look.rival_has_id:
            note_id = self._catalogue.records.free_id(examined.path, self._catalogue.__contains__)
            return with_id(examined, note_id), attrs.evolve(look, rival=None, rival_has_id=False)
        return examined, look

    async def _give_versions(self, named: Sequence[tuple[Examined, _Look]]) -> None:
        """Assign versions to the files to record, and store the versions before a reader sees them."""
        given: set[str] = set()
        for examined, look in named:
            if examined.document is None or not look.is_current or look.rival_has_id:
                continue
            note = examined.document.note
            if note.id not in given:
                self._catalogue.see_version(note.id, examined.digest, note.version)
                given.add(note.id)
        await self._catalogue.records.save()

    def _standing(self, examined: Examined) -> AssignedVersion | None:
        """Return the newest known version of the note in an examined file, or None."""
        return self._catalogue.standing(examined.document.note.id) if examined.document else None

    async def _look_again(self, files: Sequence[Examined]) -> list[_Look]:
        rivals = [self._rival(examined) for examined in files]
        former = [self._former(examined) for examined in files]
        displaced = {
            each.note.id
            for each in (*rivals, *chain.from_iterable(former))
            if each is not None and self._catalogue.at_path(each.path) is not each
        }
        style = self._catalogue.style
        return await self._blocking.run(
            lambda: _look_at_all(self._files, files, rivals, former, displaced, style)
        )

    def _rival(self, examined: Examined) -> Entry | None:
        """Return the catalogue entry that has the same id at another path, or None."""
        if examined.document is None:
            return None
        holder = self._catalogue.get(examined.document.note.id)
        return holder if holder is not None and holder.path != examined.path else None

    def _former(self, examined: Examined) -> list[Entry]:
        """Return the notes that a file without an id may have been before a rename.

        The files of the returned notes have the same bytes as the examined file, and no id.
        """
        if examined.document is None or examined.identified or examined.is_known:
            return []
        return [entry for entry in self._catalogue.nameless(examined.digest) if entry.path != examined.path]

    async def _enter(self, examined: Examined, note_id: str, look: _Look, taken: ExternalReply) -> None:
        path, before = examined.path, self._catalogue.at_path(examined.path)
        holder = self._catalogue.get(note_id)
        told = (holder.path, holder.digest) if holder else None
        kind = plan_event(told, (path, examined.digest))
        if examined.is_known and kind is not None:
            taken.again.append(path)  # A tool has written the file meanwhile, or it must be read in full.
            return
        if before is not None and before.note.id != note_id:
            taken.displaced.append(before.note.id)
        if look.rival is not None and look.rival_has_id:
            is_own = self._is_own(examined)
            skipped = second_file(examined, note_id, look.rival, self._catalogue.style, is_own=is_own)
            holder = self._catalogue.get(note_id)
            if before is not None and before.note.id != note_id:
                await self._drop(before, taken)  # The file was a separate note until it got this id.
            if holder is not None:
                self._skip_copy(path, skipped, holder, taken)
            else:
                self._skip(path, skipped)
            return
        self._catalogue.unskip(path)
        own = examined.document.note.version if examined.document else 1
        version = self._catalogue.see_version(note_id, examined.digest, own)
        if kind is None:
            self._touch(note_id, examined, version, taken)
            return
        examined = self._dated(with_version(examined, version))
        entry = make_entry(examined, holder.serial if holder else self._catalogue.take_serial())
        await take_turns(self._catalogue.put_in_steps(entry))
        if version == own:
            # The intent and the version are stored in one commit, so the version remains recorded until the
            # manifest contains it.
            self._catalogue.records.intend(note_id, entry.standing)
            self._catalogue.records.settle_version(note_id, entry.standing)
        if look.is_yielded and look.rival is not None:
            taken.again.append(look.rival)
        if holder is None or holder.path != path:
            self._look_for_copies(path, taken)
        taken.changes.append(self._change(kind, entry, examined, holder))
        self._keep_version(taken, entry, holder, examined.data)

    def _is_own(self, examined: Examined) -> bool:
        """Return whether a person declared a file to be a separate note."""
        says_so = examined.document is not None and says_own_note(examined.document.note.extra)
        return says_so or self._catalogue.records.is_own(examined.path)

    def _dated(self, examined: Examined) -> Examined:
        assert examined.document is not None
        modified_at = from_nanoseconds(examined.state.mtime_ns)
        return with_note(examined, self._catalogue.with_creation(examined.document.note, modified_at))

    def _keep_version(
        self, taken: ExternalReply, entry: Entry, former: Entry | None, data: bytes | None
    ) -> None:
        if data is not None or (former is not None and former.digest == entry.digest):
            version = outside_version(entry, former, data, WATCHER_AGENT, self._clock())
            taken.versions.append(version)

    def _touch(self, note_id: str, examined: Examined, version: int, taken: ExternalReply) -> None:
        """Update the file state and, if necessary, the version of a note whose content is already indexed."""
        entry = self._catalogue.get(note_id)
        assert entry is not None
        self._catalogue.with_creation(entry.note, from_nanoseconds(entry.state.mtime_ns))
        self._catalogue.note_state(note_id, examined.state)
        entry = attrs.evolve(entry, state=examined.state)
        if entry.note.version != version:
            raised = _raised(entry, version)
            self._catalogue.put(raised)
            taken.versions.append(outside_version(raised, entry, None, WATCHER_AGENT, self._clock()))

    def _change(self, kind: str, entry: Entry, examined: Examined, holder: Entry | None) -> CommittedChange:
        former = holder.path if holder else entry.path
        event = draft_change(kind, entry, former, WATCHER_AGENT, self._clock())
        status = "created" if kind == NOTE_CREATED else "updated"
        outcome = WriteOutcome(status, entry.note.id, entry.path, entry.note.version)  # type: ignore[arg-type]
        vacated = former if self._catalogue.at_path(former) is None else None
        return CommittedChange(entry, examined.document, event, outcome, vacated)

    def _skip(self, path: str, skipped: SkippedFile) -> None:
        known = self._catalogue.skipped.get(path)
        self._catalogue.skip(path, skipped)
        if known is None or known.reason != skipped.reason:
            log.warning("file not indexed", path=path, reason=skipped.reason)

    async def _take_bytes(self, request: OutsideBytes) -> ExternalReply:
        """Assign a version to displaced bytes. The bytes that replaced them get the next version.

        An agent that has read the old or the new bytes will get a version conflict. No event is sent, because
        the note has not changed.
        """
        taken = ExternalReply()
        entry = self._catalogue.at_path(request.path)
        if entry is None:
            return taken
        displaced = _raised(entry, entry.note.version + 1)
        raised = _raised(entry, entry.note.version + 2)
        self._catalogue.records.put_version(entry.note.id, raised.standing)
        await self._catalogue.records.save()
        self._catalogue.put(raised)
        now = self._clock()
        version = outside_version(displaced, displaced, request.data, request.agent, now)
        taken.versions.append(attrs.evolve(version, op=request.op))
        if request.current is not None and digest_of(request.current) == entry.digest:
            taken.versions.append(outside_version(raised, raised, request.current, WATCHER_AGENT, now))
        return taken

    async def _remove_copy(self, request: CopyRemoval) -> ExternalReply:
        (result,) = await self._blocking.run(
            lambda: self._files.apply([Remove(request.path, request.digest)])
        )
        if isinstance(result, Exception) and not isinstance(result, FileNotFoundError):
            return ExternalReply(failure=result)
        if self._catalogue.at_path(request.path) is None:
            self._catalogue.unskip(request.path)
        return ExternalReply()

    async def _keep_apart(self, path: str) -> ExternalReply:
        """Make a file a separate note: record the decision, give the file a new id, and read the file."""
        records = self._catalogue.records
        was_own = records.is_own(path)
        records.put_own(path)
        await records.save()
        failure: Exception | None = None
        if not records.is_own_saved:
            failure = OSError(errno.EIO, "the database of the data directory cannot store the decision")
        elif self._catalogue.at_path(path) is None:
            failure = await self._blocking.run(lambda: self._give_own_id(path))
        if failure is not None:
            if not was_own:
                records.drop_own(path)
            return ExternalReply(failure=failure)
        taken = ExternalReply()
        for _ in range(_TRIES):
            if self._catalogue.at_path(path) is not None:
                break
            examined = await self._blocking.run(lambda: self._examine(path))
            if examined is not None:
                taken = await self._take_files(OutsideFiles((examined,)))
        return taken

    def _examine(self, path: str) -> Examined | None:
        """Read a file as a note. If the file does not exist, return None. Blocks."""
        state, catalogue = current_state(self._files, path), self._catalogue
        if state is None:
            return None
        stand_in = catalogue.records.id_at(path)
        return examine(self._files, FoundFile(path, state), None, stand_in, catalogue.style, keeps_data=True)

    def _give_own_id(self, path: str) -> Exception | None:
        """Replace the id in a file that has the id of another note.

        If the id cannot be replaced, return the reason. Blocks.
        """
        style, result = self._catalogue.style, None
        for _ in range(_TRIES):
            try:
                source = self._files.read(path)
                modified = from_nanoseconds(source.state.mtime_ns)
                document, is_identified = parse_identified(source.data, path, modified, None, style)
                if not is_identified or document.note.id not in self._catalogue:
                    return None
                own = self._catalogue.records.free_id(path, self._catalogue.__contains__)
                data = amend_document(source.data, path, modified, {"id": own}, None, style)
            except (OSError, OutsideKnowledge, UnreadableNote) as failure:
                return failure
            (result,) = self._files.apply([Put(path, data, source.digest)])
            if not isinstance(result, FileChanged):
                break  # If the file changed, read the text that another program has just saved.
        return result if isinstance(result, Exception) else None

    async def _take_removals(self, ids: Sequence[str]) -> ExternalReply:
        taken = ExternalReply()
        entries = [entry for note_id in ids if (entry := self._catalogue.get(note_id)) is not None]
        owned = [entry for entry in entries if self._catalogue.at_path(entry.path) is entry]
        there = await self._blocking.run(lambda: held_notes(self._files, owned, self._catalogue.style))
        for entry in entries:
            if entry.note.id in there:
                taken.present.append(entry.note.id)
            else:
                await self._drop(entry, taken)
        return taken

    async def _drop(self, entry: Entry, taken: ExternalReply) -> None:
        """Remove a note whose file no longer exists or is no longer this note."""
        await take_turns(self._catalogue.remove_in_steps(entry.note.id))
        taken.changes.append(self._removal(entry))
        version = outside_version(entry, entry, None, WATCHER_AGENT, self._clock(), is_gone=True)
        taken.versions.append(version)

    def _removal(self, entry: Entry) -> CommittedChange:
        note = entry.note
        payload = {"id": note.id, "path": entry.path}
        tags = note.all_tags
        event = draft_event(NOTE_DELETED, payload, entry.standing, tags, WATCHER_AGENT, self._clock())
        outcome = WriteOutcome("deleted", note.id, entry.path, note.version)
        vacated = None if self._catalogue.at_path(entry.path) else entry.path
        return CommittedChange(entry, None, event, outcome, vacated)


def _raised(entry: Entry, version: int) -> Entry:
    return attrs.evolve(entry, note=attrs.evolve(entry.note, version=version))


def _look_at_all(
    files: NoteFiles,
    all_examined: Sequence[Examined],
    rivals: Sequence[Entry | None],
    former: Sequence[list[Entry]],
    displaced: set[str],
    style: VaultStyle,
) -> list[_Look]:
    """Check files again. The files of the notes in `displaced` now belong to other notes."""
    looks: list[_Look] = []
    moved: set[str] = set()
    for examined, rival, entries in zip(all_examined, rivals, former, strict=True):
        gone = (
            entry
            for entry in entries
            if entry.note.id not in moved and (entry.note.id in displaced or not is_there(files, entry.path))
        )
        origin = next(gone, None)
        if origin is None:
            looks.append(_look(files, examined, rival, displaced, style))
            continue
        moved.add(origin.note.id)
        is_current = current_state(files, examined.path) == examined.state
        looks.append(_Look(is_current, origin.path, rival_has_id=False, heir_of=origin.note.id))
    return looks


def _look(
    files: NoteFiles, examined: Examined, rival: Entry | None, displaced: set[str], style: VaultStyle
) -> _Look:
    is_current = current_state(files, examined.path) == examined.state
    if rival is None or examined.document is None or not is_current:
        return _Look(is_current, rival.path if rival else None, rival_has_id=False)
    # A file that contains the id in its text has precedence over a file that does not. There is an exception
    # if the first file is named as a copy of the second.
    is_copy = style.knows_copies and is_copy_of(examined.path, rival.path, rival.note.id)
    is_weak = is_copy and is_weakly_named(examined.path, rival.path)
    names_id = examined.identified and not (is_copy and not (is_weak and rival.identified))
    stand_in = rival.note.id if is_copy and not is_weak else rival.stand_in
    has_copy = style.knows_copies and examined.path in strong_originals(rival.path)
    claim = IdClaim(examined.path, examined.digest, examined.state.mtime_ns)
    is_elected = (examined.identified or has_copy) and (
        elect((rival.claim, claim), [(rival.path, rival.digest)]) == claim
    )
    has_id = (
        not is_elected
        and rival.note.id not in displaced
        and _carries(files, rival, style, stand_in, names_id=names_id)
        and not is_same_file(files, rival.path, examined.path)
    )
    is_yielded = is_elected or (names_id and not rival.identified)
    return _Look(is_current, rival.path, has_id, is_yielded=is_yielded)


def held_notes(files: NoteFiles, entries: Iterable[Entry], style: VaultStyle = PLAIN) -> set[str]:
    """Return the ids of the notes that a listing of the folder would still find at their paths. Blocks."""
    shown = [each for each in entries if not files.ignored.covers(each.path)]
    return {
        each.note.id
        for each in shown
        if is_there(files, each.path) and _carries(files, each, style, each.stand_in)
    }


def _carries(
    files: NoteFiles, entry: Entry, style: VaultStyle, stand_in: str | None, *, names_id: bool = False
) -> bool:
    """Return whether the note's file still has its id.

    If `names_id` is set, the file's text must contain the id.

    `stand_in` is the id that applies if the file's text contains no id.

    If the file or its frontmatter is unreadable, the result is True, because the file may still contain the
    id.
    """
    path = entry.path
    try:
        source = files.read(path)
        modified = from_nanoseconds(source.state.mtime_ns)
        document, identified = parse_identified(source.data, path, modified, stand_in, style)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, OutsideKnowledge):
        return False
    except (OSError, UnreadableNote):
        return True
    if document.note.frontmatter_error is not None:
        return True
    return document.note.id == entry.note.id and (identified or not names_id)
