"""What other programs did to the files, on its way into the catalogue.

The watcher reads files and names what vanished; the writer lets this room decide, so that no tool
writes meanwhile. What the watcher read may be old by then: every file is looked at again, and what
has moved on is handed back. Identity is the id in the file: a note whose old file no longer carries
its id has moved to the new one (lifecycle spec, section 5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from attrs import define, field, frozen

from lithos.actors.blocking import Blocking
from lithos.actors.catalogue import Catalogue, Entry, Skipped
from lithos.actors.examination import Examined, draft_change, draft_event, duplicate, make_entry
from lithos.actors.requests import Change, WriteOutcome
from lithos.core.events import NOTE_CREATED, NOTE_DELETED
from lithos.core.frontmatter import UnreadableNote, parse_document
from lithos.core.plan import plan_event
from lithos.core.times import from_nanoseconds
from lithos.stores.files import NoteFiles, OutsideKnowledge
from lithos.stores.note_lookup import current_state, is_same_file, is_there
from lithos.telemetry import get_logger

log = get_logger("lithos.outside")

WATCHER_AGENT = "watcher"


@frozen
class OutsideFiles:
    """Files as the watcher read them, in path order, and names under which it found no file."""

    files: tuple[Examined, ...]
    absent: tuple[str, ...] = ()


@frozen
class OutsideRemovals:
    """Notes whose files have vanished for good."""

    ids: tuple[str, ...]


OutsideRequest = OutsideFiles | OutsideRemovals


@define
class Taken:
    """What became of an outside request.

    `changes` in their order; `again` are files that changed since they were read; `displaced` are ids of
    notes whose file is another note's now; `present` are ids whose file is back.
    """

    changes: list[Change] = field(factory=list)
    again: list[str] = field(factory=list)
    displaced: list[str] = field(factory=list)
    present: list[str] = field(factory=list)


@frozen
class _Look:
    """A second look at a file: unchanged since it was read, and whether `rival` still carries its id."""

    is_current: bool
    rival: str | None
    rival_has_id: bool


class Outside:
    """Decides outside changes against the catalogue, which it changes: only the writer may call it."""

    def __init__(
        self, catalogue: Catalogue, files: NoteFiles, blocking: Blocking, clock: Callable[[], datetime]
    ) -> None:
        self._catalogue = catalogue
        self._files = files
        self._blocking = blocking
        self._clock = clock

    async def take(self, request: OutsideRequest) -> Taken:
        """Enter what is true by now; the caller passes the changes on, in their order."""
        if isinstance(request, OutsideRemovals):
            return await self._take_removals(request.ids)
        taken = Taken()
        for path in request.absent:
            self._catalogue.skipped.pop(path, None)
        looks = await self._look_again(request.files)
        for examined, look in zip(request.files, looks, strict=True):
            if not look.is_current or look.rival != self._rival(examined):
                taken.again.append(examined.path)
            elif examined.document is None:
                self._skip(examined.path, Skipped(examined.reason, examined.state))
                taken.again += self._doubles(examined.path)
            else:
                self._enter(examined, examined.document.note.id, look, taken)
        return taken

    async def _look_again(self, files: Sequence[Examined]) -> list[_Look]:
        rivals = [self._rival(examined) for examined in files]
        # One that is known to be unreadable gives its note up to a file that can be read, as a scan has it.
        broken = {path for path, why in self._catalogue.skipped.items() if why.note_id is None}
        return await self._blocking.run(lambda: _look_at_all(self._files, files, rivals, broken))

    def _doubles(self, path: str) -> list[str]:
        """Files that were passed over since the one at `path` had their id."""
        holder = self._catalogue.at_path(path)
        if holder is None:
            return []
        return [other for other, why in self._catalogue.skipped.items() if why.note_id == holder.note.id]

    def _rival(self, examined: Examined) -> str | None:
        """Another file that is known under the same id."""
        if examined.document is None:
            return None
        holder = self._catalogue.get(examined.document.note.id)
        return holder.path if holder is not None and holder.path != examined.path else None

    def _enter(self, examined: Examined, note_id: str, look: _Look, taken: Taken) -> None:
        path, before = examined.path, self._catalogue.at_path(examined.path)
        holder = self._catalogue.get(note_id)
        told = (holder.path, holder.digest) if holder else None
        kind = plan_event(told, (path, examined.digest))
        if examined.is_known and kind is not None:
            taken.again.append(path)  # a tool wrote it meanwhile, or it needs reading in full
            return
        if before is not None and before.note.id != note_id:
            taken.displaced.append(before.note.id)
        if look.rival is not None and look.rival_has_id:
            self._skip(path, duplicate(note_id, look.rival, examined.state))
            return
        self._catalogue.skipped.pop(path, None)
        if kind is None:
            self._catalogue.note_state(note_id, examined.state)
            return
        entry = make_entry(examined, holder.serial if holder else self._catalogue.take_serial())
        self._catalogue.put(entry)
        taken.changes.append(self._change(kind, entry, examined, holder))

    def _change(self, kind: str, entry: Entry, examined: Examined, holder: Entry | None) -> Change:
        former = holder.path if holder else entry.path
        event = draft_change(kind, entry, former, WATCHER_AGENT, self._clock())
        status = "created" if kind == NOTE_CREATED else "updated"
        outcome = WriteOutcome(status, entry.note.id, entry.path, entry.note.version)  # type: ignore[arg-type]
        vacated = former if self._catalogue.at_path(former) is None else None
        return Change(entry, examined.document, event, outcome, vacated)

    def _skip(self, path: str, skipped: Skipped) -> None:
        known = self._catalogue.skipped.get(path)
        self._catalogue.skipped[path] = skipped
        if known is None or known.reason != skipped.reason:
            log.warning("file not indexed", path=path, reason=skipped.reason)

    async def _take_removals(self, ids: Sequence[str]) -> Taken:
        taken = Taken()
        entries = [entry for note_id in ids if (entry := self._catalogue.get(note_id)) is not None]
        owned = [entry for entry in entries if self._catalogue.at_path(entry.path) is entry]
        there = await self._blocking.run(
            lambda: {entry.note.id for entry in owned if holds_note(self._files, entry.path, entry.note.id)}
        )
        for entry in entries:
            if entry.note.id in there:
                taken.present.append(entry.note.id)
            else:
                self._catalogue.remove(entry.note.id)
                taken.changes.append(self._removal(entry))
        return taken

    def _removal(self, entry: Entry) -> Change:
        note = entry.note
        payload = {"id": note.id, "path": entry.path}
        event = draft_event(NOTE_DELETED, payload, entry.digest, note.tags, WATCHER_AGENT, self._clock())
        outcome = WriteOutcome("deleted", note.id, entry.path, note.version)
        vacated = None if self._catalogue.at_path(entry.path) else entry.path
        return Change(entry, None, event, outcome, vacated)


def _look_at_all(
    files: NoteFiles, all_examined: Sequence[Examined], rivals: Sequence[str | None], broken: set[str]
) -> list[_Look]:
    """`broken` are paths known to be unreadable; those that became so just now count as well."""
    broken = broken | {
        examined.path
        for examined in all_examined
        if examined.document is None and current_state(files, examined.path) == examined.state
    }
    return [
        _look(files, examined, rival, rival in broken)
        for examined, rival in zip(all_examined, rivals, strict=True)
    ]


def _look(files: NoteFiles, examined: Examined, rival: str | None, is_broken: bool) -> _Look:
    is_current = current_state(files, examined.path) == examined.state
    if rival is None or examined.document is None or not is_current:
        return _Look(is_current, rival, rival_has_id=False)
    has_id = _carries(files, rival, examined.document.note.id, unreadable=not is_broken) and not is_same_file(
        files, rival, examined.path
    )
    return _Look(is_current, rival, has_id)


def holds_note(files: NoteFiles, path: str, note_id: str) -> bool:
    """False when a listing would not find the note at this path any more. Blocks."""
    return is_there(files, path) and _carries(files, path, note_id)


def _carries(files: NoteFiles, path: str, note_id: str, *, unreadable: bool = True) -> bool:
    """True while the file has this id; of one that cannot be read `unreadable` tells what to assume."""
    try:
        source = files.read(path)
        document = parse_document(source.data, path, from_nanoseconds(source.state.mtime_ns))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, OutsideKnowledge):
        return False
    except (OSError, UnreadableNote):
        return unreadable
    return document.note.id == note_id
