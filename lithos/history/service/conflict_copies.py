"""Conflict copies: list them, preview a merge, and merge them (docs/spec/copies.md §2).

A merge first writes a durable record of the merge. Then the note gets its next version, the history gets the
bytes of the copy, and the file of the copy is deleted. If the process is killed in between, the next start
finishes the merge.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import attrs
import trio
from attrs import frozen

from lithos.history.model.copy_merge import (
    SIDES,
    CopyMerge,
    MergeBase,
    PastVersion,
    Side,
    find_ancestor,
    has_all_lines,
    merge_copy,
    say_the_same,
)
from lithos.history.rows.store import HistoryStore
from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown, honest_outcome
from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.kernel.parts import Clock
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.errors import (
    DocNotFound,
    HistoryDisabled,
    InvalidInput,
    LithosError,
    StorageFailed,
    VersionConflict,
)
from lithos.kernel.values.principals import COMMAND, MERGE_AGENT, acting_as
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.copy_origin import MOST_VERSIONS
from lithos.notes.files.displaced import CopyIntent, CopyMerges
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import OutsideKnowledge, digest_of
from lithos.notes.format.document import parse_document
from lithos.notes.model.versions import COPY, CREATED, DELETED, OUTSIDE, UPDATED, VersionRow, body_of, head_of
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.service.texts import LoadedNote, NoteTexts
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.external_changes import CopyKeeping, CopyRemoval, OutsideBytes
from lithos.notes.writing.messages import RestoreNote
from lithos.text.yaml.nodes import UnreadableNote

log = get_logger("lithos.copies")

#: Maximum number of attempts at a merge if the note or the copy changes meanwhile.
RETRIES: Final = 5
#: Maximum seconds to wait for the writer, and for a merge that has begun.
PATIENCE: Final = 30.0
CARRIED_OUT: Final = 120.0
#: Seconds between two checks for copies to merge. If a copy changed since the last check, a program may still
#: be writing it.
PAUSE: Final = 2.0
#: Maximum size in bytes of the note, and of the copy, for a merge.
LARGEST: Final = 16 * 1024 * 1024
_KEY: Final = re.compile(rb"^([^\s#:-][^\n:]{0,200}):", re.MULTILINE)
_PERSON: Final = attrs.evolve(COMMAND, is_person=True)


@frozen
class ListedCopy:
    """A conflict copy with its path, its note, and whether its text differs.

    `named_only` means that people also choose such names. The copy is then merged only if a person names it.
    """

    path: str
    note_id: str
    title: str
    note_path: str
    differs: bool
    named_only: bool = False


@frozen(kw_only=True)
class ShownCopy:
    """A conflict copy with its note and the merge result. `version` is the current version of the note."""

    listed: ListedCopy
    note: bytes
    copy: bytes
    version: int
    merge: CopyMerge

    @property
    def seal(self) -> str:
        """Return a hash of everything that the person sees on the page."""
        digest = hashlib.sha256()
        for part in (self.note, self.copy, repr(self.merge).encode()):
            digest.update(b"%d:" % len(part) + part)
        return digest.hexdigest()[:32]

    @property
    def adds_nothing(self) -> bool:
        """Return whether the note already has every line of the copy, so that the merge adds nothing."""
        return self.changes_nothing and has_all_lines(self.note, self.copy)

    @property
    def changes_nothing(self) -> bool:
        """Return whether the merge would leave the note unchanged without a decision by a person."""
        merged = self.merge.resolved(())
        return merged is not None and say_the_same(merged, self.note)


@frozen
class KeptFile:
    """A file that was permanently made a separate note.

    `new_id` is set if the file previously had the id of another note.
    """

    path: str
    note_id: str
    new_id: bool


@frozen
class MergedCopy:
    """The result of a merge. `changed` is False if the note did not change."""

    path: str
    note_id: str
    note_path: str
    version: int
    changed: bool


class ConflictCopies:
    """Merges conflict copies, one at a time."""

    def __init__(
        self,
        versions: HistoryStore | None,
        files: NoteFiles,
        copy_merges: CopyMerges,
        storage: StorageConfig,
        catalogue: Catalogue,
        clock: Clock,
        writer: Writer,
        knowledge: Knowledge,
        texts: NoteTexts,
    ) -> None:
        self._catalogue = catalogue
        self._files = files
        self._reader = versions
        self._intents = copy_merges
        self._writer = writer.mailbox
        self._clock = clock
        self._knowledge = knowledge
        self._texts = texts
        self._working = Threads(2)
        self._turn = trio.Lock()
        self._merges_at_once = storage.conflict_copies == "merge"
        #: Set once all merges that an earlier process began are finished.
        self.resumed = trio.Event()

    # -- reading ---------------------------------------------------------------------------------

    def listed(self) -> list[ListedCopy]:
        """Return all conflict copies, ordered by the path of the note."""
        found = [
            ListedCopy(path, note_id, entry.note.title, entry.path, copy.digest != entry.digest, copy.is_weak)
            for note_id, path, copy in self._catalogue.copied()
            if (entry := self._catalogue.get(note_id)) is not None
        ]
        return sorted(found, key=lambda each: (each.note_path, each.path))

    async def show(self, path: str) -> ShownCopy:
        """Return a copy with its note. Raises `DocNotFound`, and `InvalidInput` if a file is too large."""
        entry, listed = self._find(path)
        loaded = await self._texts.load(entry)
        if loaded is None:
            raise StorageFailed(
                f"The note {entry.path} cannot be read now, so its copy cannot be "
                "compared. Try again in a moment."
            )
        return await self._working.run(lambda: self._merge(listed, loaded))

    def _find(self, path: str) -> tuple[Entry, ListedCopy]:
        listed = next((each for each in self.listed() if each.path == path), None)
        entry = None if listed is None else self._catalogue.get(listed.note_id)
        if listed is None or entry is None:
            raise DocNotFound(
                f"Unknown conflict copy {path[:200]!r}. Run `lithos conflicts` to list the copies."
            )
        return entry, listed

    def _merge(self, listed: ListedCopy, loaded: LoadedNote) -> ShownCopy:
        """Merge the loaded files. Blocks."""
        note = loaded.source.data
        try:
            linked = self._files.real_paths([listed.path])
            copy = self._files.read(listed.path).data
        except (OSError, OutsideKnowledge) as failure:
            raise DocNotFound(f"The conflict copy {listed.path} cannot be read: {failure}.") from failure
        if linked:
            raise InvalidInput(
                f"{listed.path} leads to {linked[listed.path]} through a link. A merge would have "
                "to remove the linked copy, but it never follows links. Nothing was changed. "
                "Remove the link yourself."
            )
        if max(len(note), len(copy)) > LARGEST:
            raise InvalidInput(
                f"{listed.path} is too large to merge (limit: {LARGEST // 2**20} MiB). Merge the "
                "two files in an editor."
            )
        ancestor = self._ancestor(listed.note_id, note, copy)
        return ShownCopy(
            listed=attrs.evolve(listed, differs=note != copy),
            note=note,
            copy=copy,
            version=loaded.document.note.version,
            merge=merge_copy(note, copy, ancestor),
        )

    def _ancestor(self, note_id: str, note: bytes, copy: bytes) -> MergeBase:
        """Return the common ancestor of both sides from the history.

        The ancestor has no bytes if they are not kept. Blocks.
        """
        if note == copy:
            return MergeBase(note, is_merged=True)
        rows, total = self._rows(note_id)
        versions = [PastVersion(row.op, data) for row in rows if (data := self._data(row)) is not None]
        is_whole = bool(rows) and total == len(rows) and rows[-1].op == CREATED
        if not versions or versions[0].data != note:
            versions.insert(0, PastVersion(OUTSIDE, note))
        return find_ancestor(versions, copy, is_whole=is_whole)

    def _rows(self, note_id: str) -> tuple[Sequence[VersionRow], int]:
        """Return the newest versions of a note, and the number of all kept versions. Blocks."""
        return ((), 0) if self._reader is None else self._reader.rows(note_id, MOST_VERSIONS)

    def _data(self, row: VersionRow) -> bytes | None:
        if self._reader is None or row.op == DELETED:
            return None
        return self._reader.content(row.note_id, row.version)

    # -- keeping ---------------------------------------------------------------------------------

    async def keep(self, path: str) -> KeptFile:
        """Permanently keep a file as a separate note. Raises `DocNotFound` and `StorageFailed`."""
        async with self._turn:
            skipped = self._catalogue.skipped.get(path)
            is_second = skipped is not None and skipped.note_id is not None
            if not is_second and self._catalogue.at_path(path) is None:
                raise DocNotFound(
                    f"Neither a conflict copy nor a note exists at {path[:200]!r}. Nothing was "
                    "changed. Run `lithos conflicts` to list the copies."
                )
            taken = await self._writer.ask(CopyKeeping(path), within=PATIENCE)
        if taken.failure is not None:
            raise StorageFailed(
                f"{path} could not be kept as a note: {taken.failure}. The file was not changed. "
                "Fix the reason, or rename the file."
            )
        entry = self._catalogue.at_path(path)
        if entry is None:
            raise StorageFailed(
                f"{path} is now a separate note, but could not be read yet, because another "
                "program is changing it. Save the file once more, or restart the server."
            )
        named_id = is_second and skipped is not None and (skipped.copy is None or skipped.copy.names_id)
        return KeptFile(path, entry.note.id, named_id)

    # -- merging ---------------------------------------------------------------------------------

    async def merge(
        self, path: str, by: str, choices: Sequence[str] | None = None, seal: str | None = None
    ) -> MergedCopy:
        """Merge a copy into its note and remove the copy. `choices` has the side to keep for each conflict.

        With `seal`, the merge is refused if anything changed since the person saw the page. Raises
        `VersionConflict` with `conflicts` if choices are missing. Also raises `HistoryDisabled` and the
        errors of a write. After any of these errors, nothing was changed.
        """
        if choices and seal is None:
            raise InvalidInput(
                "Choices need the seal of the merge that was shown. Show the copy again to get its seal."
            )
        async with self._turn:
            for _ in range(RETRIES):
                shown = await self.show(path)
                if seal is not None and shown.seal != seal:
                    raise _looked_changed(shown)
                data = _decided(shown, choices)
                try:
                    with trio.CancelScope(shield=True, deadline=trio.current_time() + CARRIED_OUT):
                        return await self._carry_out(shown, data, by)
                except VersionConflict:
                    if seal is not None:
                        raise
                    continue
                except OSError as failure:
                    raise StorageFailed(
                        "The record of the merge could not be stored: "
                        f"{failure.strerror or failure}. Free space on the disk, then merge "
                        f"{path} again."
                    ) from failure
                raise StorageFailed(
                    f"The merge of {path} took too long. Read the note to see its state, then merge again."
                )
        raise VersionConflict(
            "The note changes too often, so nothing was merged. Retry in a moment.",
            current_version=None,
        )

    async def _carry_out(self, shown: ShownCopy, data: bytes, by: str) -> MergedCopy:
        listed, intent = shown.listed, _intent(shown, data, by)
        is_new = not say_the_same(data, shown.note)
        if listed.differs and self._reader is None:
            raise HistoryDisabled(
                "History is disabled (history.enabled is off), so a merge would lose the text of "
                f"{listed.path}. Enable it and restart the server, or merge both files in an "
                "editor."
            )
        if listed.differs:
            await self._working.run(lambda: self._intents.write(intent))
        version = shown.version
        if is_new:
            try:
                with acting_as(_PERSON):
                    request = await self._working.run(lambda: self._request(shown, data, by))
                    version = (await self._knowledge.write(request)).version
            except LithosError:
                await self._working.run(self._intents.remove)
                raise
        version = await self._finish(intent, version)
        return MergedCopy(listed.path, listed.note_id, listed.note_path, version, is_new)

    def _request(self, shown: ShownCopy, data: bytes, by: str) -> RestoreNote:
        """Return the message for the writer. Raises `InvalidInput` if the bytes are not a note. Blocks."""
        listed, style = shown.listed, attrs.evolve(self._catalogue.style, serves_broken=False)
        try:
            document = parse_document(data, listed.note_path, self._clock(), listed.note_id, style)
        except UnreadableNote as problem:
            raise InvalidInput(
                f"The merged text is not a note: {problem.reason}. Choose other sides, or merge in an editor."
            ) from problem
        if twice := [key for key, number in Counter(_KEY.findall(head_of(data))).items() if number > 1]:
            key = twice[0].decode("utf-8", "replace")
            raise InvalidInput(f"The merged text has the key {key[:100]} twice. Choose one of the two sides.")
        if document.note.id != listed.note_id:
            raise InvalidInput(
                f"The merged text does not have the id {listed.note_id}. Choose the note's side."
            )
        rows, _ = self._rows(listed.note_id)
        return RestoreNote(
            id=listed.note_id,
            agent=by,
            data=data,
            path=listed.note_path,
            title=document.note.title,
            source_url=document.note.source_url,
            newest_version=max([shown.version, *(row.version for row in rows[:1])]),
            expected_version=shown.version,
            op=UPDATED,
        )

    async def _finish(self, intent: CopyIntent, version: int) -> int:
        """Store the bytes of the copy as a version, then remove the copy. Return the version of the note."""
        with honest_outcome("Read the note again before you retry."):
            if not await self._working.run(lambda: self._is_kept(intent)):
                await self._keep(intent)
                version += 2  # One version has the bytes of the copy, the next those of the note.
            removal = CopyRemoval(intent.copy, intent.digest)
            taken = await self._writer.ask(removal, within=PATIENCE)
        if taken.failure is not None:
            raise StorageFailed(
                f"The note has the text of {intent.copy}, but the file was not removed: "
                f"{taken.failure}. If another program changed the file, merge it again."
            )
        await self._working.run(self._intents.remove)
        return version

    def _is_kept(self, intent: CopyIntent) -> bool:
        """Return whether the history has the bytes of the copy or does not need these bytes. Blocks."""
        if intent.digest == intent.before:
            return True
        rows, _ = self._rows(intent.id)
        kept = (self._data(row) for row in rows if row.op == COPY)
        return any(data is not None and digest_of(data) == intent.digest for data in kept)

    async def _keep(self, intent: CopyIntent) -> None:
        entry = self._catalogue.get(intent.id)
        if entry is None:
            raise StorageFailed(f"The note was removed meanwhile, so {intent.copy} was not changed.")

        def read() -> tuple[bytes, bytes]:
            return self._files.read(intent.copy).data, self._files.read(entry.path).data

        try:
            copy, current = await self._working.run(read)
        except (OSError, OutsideKnowledge) as failure:
            raise StorageFailed(
                f"{intent.copy} could not be kept as a version: {failure}. Merge it again."
            ) from failure
        if digest_of(copy) != intent.digest:
            raise StorageFailed(
                f"{intent.copy} changed during the merge, so it was not removed. Merge it again."
            )
        await self._writer.ask(
            OutsideBytes(entry.path, copy, current, op=COPY, agent=intent.agent), within=PATIENCE
        )
        if not await self._working.run(lambda: self._is_kept(intent)):
            raise StorageFailed(f"The text of {intent.copy} could not be kept as a version. Merge it again.")

    # -- automatic merges ------------------------------------------------------------------------

    async def run(self) -> None:
        """Finish the merges of an earlier process. If configured, then merge copies that need no decision."""
        await self._resume()
        self.resumed.set()
        if not self._merges_at_once:
            return
        seen: dict[str, tuple[str, str]] = {}
        done: dict[str, tuple[str, str]] = {}
        while True:
            await trio.sleep(PAUSE)
            now = {
                path: (copy.digest, entry.digest)
                for note_id, path, copy in (self._catalogue.copied() if self._catalogue.doubles else ())
                if (entry := self._catalogue.get(note_id)) is not None and not copy.is_weak
            }
            done = {path: state for path, state in done.items() if now.get(path) == state}
            for path, state in now.items():
                if seen.get(path) == state and path not in done:
                    done[path] = state
                    await self._merge_quietly(path)
            seen = now

    async def _merge_quietly(self, path: str) -> None:
        try:
            merged = await self.merge(path, MERGE_AGENT)
        except LithosError as refusal:
            log.info("conflict copy needs a decision", path=path, reason=refusal.message)
        else:
            log.info("conflict copy merged", path=path, note=merged.note_path, changed=merged.changed)

    async def _resume(self) -> None:
        intent = await self._working.run(self._intents.pending)
        if intent is None:
            return
        try:
            if await self._working.run(lambda: self._is_written(intent)):
                await self._finish(intent, intent.version + 1)
            else:
                await self._working.run(self._intents.remove)
        except (LithosError, OSError, ActorDown, ShuttingDown) as failure:
            log.error("conflict copy merge not finished", path=intent.copy, reason=str(failure))

    def _is_written(self, intent: CopyIntent) -> bool:
        """Return whether the note got its next version before the earlier process ended. Blocks."""
        entry = self._catalogue.get(intent.id)
        if entry is None or entry.digest == intent.before or self._reader is None:
            return False
        row = self._reader.row(intent.id, intent.version + 1)
        data = None if row is None or row.agent != intent.agent else self._data(row)
        return data is not None and digest_of(body_of(data)) == intent.body


def _intent(shown: ShownCopy, data: bytes, by: str) -> CopyIntent:
    return CopyIntent(
        id=shown.listed.note_id,
        copy=shown.listed.path,
        digest=digest_of(shown.copy),
        agent=by,
        before=digest_of(shown.note),
        version=shown.version,
        body=digest_of(body_of(data)),
    )


def _decided(shown: ShownCopy, choices: Sequence[str] | None) -> bytes:
    """Return the merged bytes. Raises `VersionConflict` if a person must choose, and `InvalidInput`."""
    places = shown.merge.places
    if shown.merge.pieces is None:
        raise VersionConflict(
            f"{shown.listed.path} is not text, so it cannot be merged. Keep one of the two files.",
            current_version=shown.version,
            warnings=[],
            conflicts=[],
        )
    if places and choices is None:
        several = "1 place" if len(places) == 1 else f"{len(places)} places"
        raise VersionConflict(
            f"{shown.listed.path} and its note both changed {several}. Nothing was merged. Choose "
            "a side on the Copies page of the console, or with --keep.",
            current_version=shown.version,
            warnings=[],
            conflicts=conflict_rows(shown),
        )
    chosen: list[Side] = [side for each in choices or () for side in SIDES if side == each]
    if len(chosen) == 1:
        chosen *= len(places)
    data = shown.merge.resolved(chosen) if len(chosen) >= len(choices or ()) else None
    if data is None:
        raise InvalidInput(
            f"Choose one of {', '.join(SIDES)} for each of the {len(places)} places, or for all."
        )
    return data


def conflict_rows(shown: ShownCopy) -> list[dict[str, Any]]:
    """Return the conflicts that a person must resolve, each with its line and the text of both sides."""
    return [{"line": place.line, "note": place.note, "copy": place.copy} for place in shown.merge.places]


def _looked_changed(shown: ShownCopy) -> VersionConflict:
    return VersionConflict(
        "The note or its copy changed after you saw the merge, so nothing was merged. Show the copy again.",
        current_version=shown.version,
    )
