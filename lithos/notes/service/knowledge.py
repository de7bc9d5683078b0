"""The note service, which reads, lists, writes, edits and deletes notes, and lists tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from operator import attrgetter
from typing import Any

import attrs
import trio
from attrs import frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.events.model.agents import READ, AuditRow
from lithos.kernel.actors.mailboxes import honest_outcome
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.actors.threads import Threads, slices
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import DocNotFound, InvalidInput, VersionNotFound
from lithos.kernel.values.events import TOOL
from lithos.kernel.values.ids import is_id
from lithos.kernel.values.principals import UNKNOWN_AGENT
from lithos.kernel.values.projects import WORKING_IN, ProjectFilter
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.facets import FacetFilter
from lithos.notes.files.lookup import AliasedPath
from lithos.notes.links.links import WikiLink, links_in
from lithos.notes.model.note import Document
from lithos.notes.model.paths import resolve_read_path
from lithos.notes.service.merging import Merging
from lithos.notes.service.ports import EarlierVersions, KeptNote, TextMatches
from lithos.notes.service.texts import CHARACTERS_INLINE, LoadedNote, NoteTexts, OutlineRow, Sections
from lithos.notes.writing.actor_writer import Writer, WriterMailbox
from lithos.notes.writing.editing import Outlines
from lithos.notes.writing.messages import (
    DeleteNote,
    EditNote,
    ImportNote,
    NoteBusy,
    OutlineNeeded,
    PatchNote,
    RestoreNote,
    UpdateRequest,
    WriteNote,
    WriteOutcome,
    WriteRequest,
)
from lithos.notes.writing.ports import ChangeGate, VersionStore
from lithos.text.markdown import one_line
from lithos.text.outline.section_edit import SectionEdit, check_edit
from lithos.text.snippet import cut, truncate
from lithos.text.words.analysis import fold, name_key
from lithos.text.words.list_filters import check_metadata_match, has_all, has_tags, matches_metadata

#: Time limit of a write in seconds, including queueing, disk and indexes. A normal write takes far less.
WRITE_DEADLINE = 60.0
#: Number of seconds to retry if another program is writing the file, and the pauses between the attempts in
#: seconds. Editors save within milliseconds. Lithos does not wait for files that stay open for years.
BUSY_PATIENCE = 5.0
BUSY_PAUSE, LONGEST_BUSY_PAUSE = 0.02, 0.5


#: Maximum number of times that an edit reads the outline of a long note in advance. After that, the writer
#: reads the outline itself.
OUTLINES_READ = 5


@frozen
class ReadNote:
    """A note with its text cut to the requested length. The links come from the whole body.

    `length` is the number of characters of the whole content. `next_offset` is the offset at which the next
    read continues, or None at the end of the content.
    """

    entry: Entry
    document: Document
    content: str
    truncated: bool
    links: tuple[WikiLink, ...]
    retrieval_count: int
    length: int
    next_offset: int | None
    #: The requested version, with the number of the current version. None means the current note.
    kept: KeptNote | None = None
    #: The rows of the note's sections, if the outline was requested.
    outline: Sequence[OutlineRow] | None = None
    #: The section to which the content is limited.
    section: OutlineRow | None = None


@frozen
class LinkedFrom:
    """Some of the notes that link to a note, and the total number of these notes.

    `way_back` is a sentence on how to restore a deleted note.
    """

    entries: Sequence[Entry] = ()
    total: int = 0
    way_back: str = ""


@frozen
class ListedNotes:
    """A page of notes, and the total number of notes.

    `message` explains why a query could not match any note.
    """

    entries: list[Entry]
    total: int
    message: str = ""


@frozen(kw_only=True)
class ListRequest:
    """The filters of `lithos_list`. `since` includes the given time."""

    path_prefix: str | None = None
    tags: tuple[str, ...] | None = None
    author: str | None = None
    since: datetime | None = None
    limit: int = 50
    offset: int = 0
    title_contains: str | None = None
    content_query: str | None = None
    metadata_match: Mapping[str, Any] | None = None
    entities: tuple[str, ...] | None = None
    project: ProjectFilter | None = None


class Knowledge:
    """The use cases for notes."""

    def __init__(
        self,
        versions: VersionStore | None,
        catalogue: Catalogue,
        coordinator: Coordinator,
        clock: Clock,
        opening: Opening,
        writer: Writer,
        outlines: Outlines,
        matches: TextMatches,
        texts: NoteTexts,
        history: EarlierVersions,
        gate: ChangeGate | None,
    ) -> None:
        self._gate = gate
        self._catalogue = catalogue
        self._merging = Merging(catalogue, versions, Threads())
        self._history = history
        self._sections = Sections(outlines, keeps_heading=catalogue.style.is_foreign)
        self._opening = opening
        self._writer = writer.mailbox
        self._coordinator = coordinator
        self._matches = matches
        self._texts = texts
        self._clock = clock

    async def write(self, request: UpdateRequest | DeleteNote | ImportNote | RestoreNote) -> WriteOutcome:
        """Write, patch, delete, import or restore a note.

        `write` returns after the change is on disk, applied by an index and journalled.
        """
        # Enrichment also writes under an author name, but it must not be listed as an agent.
        if not isinstance(request, PatchNote) or request.source == TOOL:
            self._coordinator.touch(request.agent)
        if isinstance(request, WriteNote | PatchNote):
            return await self._merging.submit(request, self._submit)
        return await self._submit(request)

    async def edit(
        self,
        edit: SectionEdit,
        *,
        agent: str,
        note_id: str | None,
        expected_version: int | None,
    ) -> WriteOutcome:
        """Edit one place in the current body of a note.

        Like `write`, this method returns after the change is journalled.
        """
        check_edit(edit)
        if not note_id:
            raise InvalidInput("The note to edit is not named. Give its id or its path.")
        self._coordinator.touch(agent)
        await self._opening.wait_known()
        is_proposed = self._gate is not None and self._gate.own(note_id, agent) is not None
        if is_proposed and note_id not in self._catalogue:  # The file of a proposed note does not exist yet.
            request = EditNote(id=note_id, agent=agent, edit=edit, is_patient=False)
            return await self._submit(attrs.evolve(request, expected_version=expected_version))
        entry = self._find(note_id, None)
        request = EditNote(id=entry.note.id, agent=agent, edit=edit, expected_version=expected_version)
        for _ in range(OUTLINES_READ):
            try:
                return await self._submit(request)
            except OutlineNeeded:
                await self._read_outline(entry)
        return await self._submit(attrs.evolve(request, is_patient=False))

    async def _read_outline(self, entry: Entry) -> None:
        """Load the outline of a long note into the writer's memory."""
        loaded = await self._texts.load(entry)
        if loaded is not None:
            await self._sections.learn(loaded.source.data)

    async def linked_from(self, note_id: str, most: int) -> LinkedFrom:
        """Return the notes that link to a note. If there are any, the result includes `way_back`."""
        while not self._catalogue.graph.settle(1):
            await trio.lowlevel.checkpoint()
        _, starts = self._catalogue.graph.links.neighbours(note_id)
        ids = (each for each in starts if isinstance(each, str) and each != note_id)
        entries = [entry for each in islice(ids, most) if (entry := self._catalogue.get(each)) is not None]
        if not entries:
            return LinkedFrom()
        entries.sort(key=attrgetter("path"))
        total = len(starts) - (note_id in starts)
        return LinkedFrom(entries, total, await self._history.way_back(note_id))

    async def read(
        self,
        *,
        note_id: str | None,
        path: str | None,
        title: str | None = None,
        offset: int = 0,
        max_length: int | None,
        agent_id: str | None,
        outline: bool = False,
        section: str | None = None,
        version: int | None = None,
        as_of: datetime | None = None,
    ) -> ReadNote:
        """Read a note from an offset in its content. The access is recorded in the audit log.

        With `section`, the content is limited to that section. With only `outline`, the content is empty.
        With `version` or `as_of`, the note is returned in that state, even if it was deleted later.
        """
        truncate("", max_length)  # `truncate` refuses an invalid length before anything is read.
        if note_id:
            note_id = await self.identify(note_id)
        kept: KeptNote | None = None
        if version is not None or as_of is not None:
            kept = await self._find_version(note_id, path, title, version, as_of)
        known: tuple[WikiLink, ...] | None = None
        loaded: LoadedNote | None = None
        if kept is not None:
            entry, document, data = kept.entry, kept.document, kept.data
        else:
            entry = await self._find_now(note_id, path, title)
            recalled = None if outline or section else await self._texts.recall(entry)
            if recalled is not None:
                (document, known), data = recalled, b""
            else:
                loaded = await self._load(entry)
                document, data = loaded.document, loaded.source.data
        shown = None
        if outline or section:
            shown = await self._sections.show(data, section, with_rows=outline)
        whole = document.content if shown is None else shown.text
        content = whole[offset:] if offset else whole
        truncated = bool(max_length) and len(content) > (max_length or 0)
        content, end = cut(content, max_length or 0) if truncated else (content, 0)
        self._coordinator.record_access(
            [AuditRow(agent_id or UNKNOWN_AGENT, entry.note.id, READ, self._clock(), WORKING_IN.get())]
        )
        count = self._coordinator.reads_of(entry.note.id)
        links = await _links_of(data, document.content, entry.path) if known is None else known
        if loaded is not None:
            self._texts.remember(loaded, links)
        if kept is None:
            document = self._with_entities(document)
        return ReadNote(
            entry,
            document,
            content,
            truncated,
            links,
            count,
            length=len(whole),
            next_offset=offset + end if truncated else None,
            kept=kept,
            outline=None if shown is None else shown.rows,
            section=None if shown is None else shown.section,
        )

    def _with_entities(self, document: Document) -> Document:
        """Return the note with its effective entities, which may differ from the entities in its file."""
        shown = self._catalogue.entities.shown(document.note)
        return document if shown is document.note else attrs.evolve(document, note=shown)

    async def _find_now(self, note_id: str | None, path: str | None, title: str | None) -> Entry:
        """Return the current catalogue entry of a note. Raises `DocNotFound` if the note is unknown."""
        if title and not (note_id or path):
            return await self._find_titled(title)
        return await self._find_early(note_id, path) or self._find(note_id, path)

    async def _load(self, entry: Entry) -> LoadedNote:
        """Load a note from its file. Raises `DocNotFound` if the file is missing or unreadable."""
        loaded = await self._texts.load(entry)
        if loaded is None:
            reason = await self._texts.why_unread(entry)
            raise DocNotFound(
                f"The file {entry.path} of this note is missing or cannot be read{reason}. Put it back or "
                "repair it, then retry."
            )
        return loaded

    async def _find_version(
        self,
        note_id: str | None,
        path: str | None,
        title: str | None,
        version: int | None,
        as_of: datetime | None,
    ) -> KeptNote | None:
        """Return a version from the history.

        Return None if the version is the current one and is not in the history yet.
        """
        await self._opening.wait_known()
        if title and not (note_id or path):
            note_id = (await self._find_titled(title)).note.id
        try:
            return await self._history.read(note_id, path, version, as_of)
        except VersionNotFound:
            found_id = await self._history.resolve(note_id, path)
            entry = self._catalogue.get(found_id) if found_id else None
            if entry is not None and version == entry.note.version:
                return None
            raise

    async def _find_titled(self, title: str) -> Entry:
        """Return the note with this title. Case is ignored.

        Raises `DocNotFound` if no note has the title, and `InvalidInput` if several notes have the title.
        """
        wanted = name_key(one_line(title))
        found: list[Entry] = []
        async for some in slices(self._catalogue.serials()):
            entries = self._catalogue.at_serials(some)
            found += [entry for entry in entries if name_key(entry.note.title) == wanted]
        if not found:
            raise DocNotFound(
                f"No note has the title {title[:100]!r}. Find the note with lithos_search or lithos_list."
            )
        if len(found) > 1:
            some_paths = ", ".join(repr(entry.path[:150]) for entry in found[:5])
            raise InvalidInput(
                f"{len(found)} notes have the title {title[:100]!r}. Give the path of one of "
                f"them: {some_paths}{', …' if len(found) > 5 else ''}."
            )
        return found[0]

    async def list_notes(self, request: ListRequest) -> ListedNotes:
        """Return one page of the notes that pass all filters, and the total number of these notes."""
        if request.offset < 0 or request.limit < 0:
            raise InvalidInput("limit and offset must not be negative.")
        check_metadata_match(request.metadata_match)
        if request.content_query and request.content_query.strip():
            return await self._list_matches(request, request.content_query)
        wanted, holds = _facets_of(request), _predicates_of(request)
        offset, end = request.offset, request.offset + request.limit
        if not holds:
            found = self._catalogue.page(wanted, offset, request.limit)
            if found.is_exact:
                return ListedNotes(self._catalogue.at_serials(found.serials), found.total)
        if wanted == FacetFilter() and request.title_contains is not None and len(holds) == 1:
            serials = await self._titled(fold(request.title_contains))
            return ListedNotes(self._catalogue.at_serials(serials[offset:end]), len(serials))
        passing: list[Entry] = []
        async for some in slices(self._catalogue.page(wanted).serials):
            # Some notes may have changed since the first filtering.
            passing += [
                entry for entry in self._catalogue.at_serials(some) if self._is_listed(entry, request)
            ]
        return ListedNotes(passing[offset:end], len(passing))

    async def _titled(self, wanted: str) -> list[int]:
        """Return the serial numbers of the notes whose titles contain a case-folded text."""
        serials: list[int] = []
        for number, block in enumerate(self._catalogue.facets.blocks()):
            if number:
                await trio.lowlevel.checkpoint()
            serials += self._catalogue.titled(block, wanted)
        return serials

    async def _list_matches(self, request: ListRequest, query: str) -> ListedNotes:
        """Return a page of the notes that match a full-text query and pass the other filters, best first."""
        candidates, message = await self._matches.match_text(query)
        passing: list[Entry] = []
        async for some in slices(candidates):
            passing += [entry for entry in some if self._is_listed(entry, request)]
        page = passing[request.offset : request.offset + request.limit]
        return ListedNotes(page, len(passing), message)

    def _is_listed(self, entry: Entry, request: ListRequest) -> bool:
        """Return whether a note passes all filters."""
        return (
            _is_listed(entry, request)
            and (not request.entities or has_all(self._catalogue.entities.of(entry.note), request.entities))
            and self._catalogue.projects.passes(entry, request.project)
        )

    def tags(self, prefix: str | None) -> dict[str, int]:
        """Return the tags with their note counts, sorted by name. Each tag has its most common spelling."""
        return self._catalogue.tags.counts(prefix or "")

    async def _submit(self, request: WriteRequest) -> WriteOutcome:
        with honest_outcome("Read the note again before you retry."):
            return await ask_patiently(self._writer, request, WRITE_DEADLINE)

    async def locate(self, path: str, which: str) -> str:
        """Return the id of the note at a path.

        If `which` is "kept", a former path of a note is accepted too. Raises `DocNotFound` if no note is
        found.
        """
        await self._opening.wait_known()
        if which == "kept":
            found = await self._history.resolve(None, path)
            assert found is not None  # The path is not blank, so an id was found.
            return found
        return self._find(None, path).note.id

    async def identify(self, note_id: str) -> str:
        """Return the id of the note whose frontmatter property `id` is this text, or whose id begins with it.

        An existing note comes before a deleted note. Without such a note, return the text itself.

        Raises `InvalidInput` if several notes have this property, and `AmbiguousIdPrefix`.
        """
        if is_id(note_id) or note_id in self._catalogue:
            return note_id
        await self._opening.wait_known()
        found = self._catalogue.identify(note_id)
        return found if found in self._catalogue else await self._history.identify(found)

    def extra_of(self, note_id: str | None) -> Mapping[str, Any]:
        """Return the frontmatter keys of a note that Lithos does not define, with their values.

        The result is empty for an unknown note.
        """
        entry = self._catalogue.get(note_id) if note_id else None
        return {} if entry is None else entry.note.extra

    async def _find_early(self, note_id: str | None, path: str | None) -> Entry | None:
        """Return a note by path during the first pass of the scan, when lookups by id are not possible yet.

        After the first pass, the result is None.
        """
        if self._opening.known.is_set():
            return None
        if path and not note_id:
            resolved = resolve_read_path(path)
            try:
                entry = await self._texts.find_unread(resolved)
            except AliasedPath:
                entry = None  # Only the scan has the exact name of this file.
            else:
                if entry is None:
                    raise DocNotFound(f"No note exists at {resolved!r}. Find the path with lithos_list.")
            if entry is not None:
                return entry
        await self._opening.wait_known()
        return None

    def _find(self, note_id: str | None, path: str | None) -> Entry:
        if note_id:
            return self._catalogue.require(note_id)
        if not path:
            raise InvalidInput("The note to read is not named. Give its id, its path or its title.")
        resolved = resolve_read_path(path)
        entry = self._catalogue.spelled(resolved)
        if entry is None:
            raise self._not_at(resolved)
        return entry

    def _not_at(self, path: str) -> DocNotFound:
        """Return the error for a path without a note."""
        skipped = self._catalogue.skipped.get(path)
        if skipped is None:
            return DocNotFound(f"No note exists at {path!r}. Find the path with lithos_list.")
        holder = self._catalogue.get(skipped.note_id) if skipped.note_id else None
        if holder is None:
            return DocNotFound(f"The file {path!r} is not served: {skipped.reason}.")
        if skipped.copy is not None:
            return DocNotFound(
                f"The file {path!r} is not a note, but a version of {holder.path!r} that another "
                f"machine wrote. Read that note instead: {holder.note.id}."
            )
        return DocNotFound(
            f"The file {path!r} is not served: it has the id {holder.note.id} of the note "
            f"{holder.path!r}, perhaps because it is a copy. Read that note by its id. To keep "
            "both files, remove the id line from the unserved file or run lithos validate --fix ids."
        )


async def ask_patiently(writer: WriterMailbox, request: WriteRequest, within: float) -> WriteOutcome:
    """Return the writer's answer. If another program is writing the file, the request is repeated.

    Other requests are not delayed by the repetitions.

    `within` is the number of seconds to wait for space in the mailbox. The whole call takes at most
    `WRITE_DEADLINE` seconds.
    """
    deadline, pause = trio.current_time() + BUSY_PATIENCE, BUSY_PAUSE
    with trio.fail_after(WRITE_DEADLINE):
        while True:
            try:
                accepted = await writer.ask(request, within=within)
                return await accepted.reply()
            except NoteBusy:
                if trio.current_time() + pause > deadline:
                    raise
            await trio.sleep(pause)
            pause = min(2 * pause, LONGEST_BUSY_PAUSE)


async def _links_of(data: bytes, content: str, path: str) -> tuple[WikiLink, ...]:
    """Return the links of a note. The text of a long note is parsed in a worker thread."""
    if len(data) <= CHARACTERS_INLINE:
        return links_in(data, content, path)
    return await trio.to_thread.run_sync(lambda: links_in(data, content, path))


def _facets_of(request: ListRequest) -> FacetFilter:
    """Return the filters that the catalogue can answer from an index."""
    return FacetFilter(
        tags=request.tags or (),
        author=request.author,
        path_prefix=request.path_prefix,
        since=request.since,
        project=request.project,
    )


def _predicates_of(request: ListRequest) -> list[str]:
    """Return the names of the filters that must be checked for each note separately."""
    given = {
        "title_contains": request.title_contains is not None,
        "metadata_match": bool(request.metadata_match),
        "entities": bool(request.entities),
    }
    return [name for name, is_given in given.items() if is_given]


def _is_listed(entry: Entry, request: ListRequest) -> bool:
    """Return whether a note passes all filters except the entities filter.

    An unused filter costs one comparison.
    """
    note = entry.note
    return (
        (request.path_prefix is None or entry.path.startswith(request.path_prefix))
        and (not request.tags or has_tags(note.all_tags, request.tags))
        and (request.author is None or note.author == request.author)
        and (request.since is None or note.updated_at >= request.since)
        and (request.title_contains is None or fold(request.title_contains) in fold(note.title))
        and (not request.metadata_match or matches_metadata(note.extra, request.metadata_match))
    )
