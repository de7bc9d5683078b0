"""Tools that write, edit, move, read, delete, list and tag notes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Literal

from attrs import evolve

from lithos.kernel.actors.threads import slices
from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import DocNotFound, Duplicate, InvalidInput, PathCollision, SlugCollision
from lithos.kernel.values.projects import WORKING_IN, asked_project, read_written_project
from lithos.kernel.values.times import parse_end
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.format.owned_keys import check_keys
from lithos.notes.model.note import ACCESS_SCOPES, NOTE_TYPES, STATUSES
from lithos.notes.service.cut_reads import CutReads
from lithos.notes.service.knowledge import Knowledge, ListRequest
from lithos.notes.service.moving import Moving
from lithos.notes.service.pasting import Pasting
from lithos.notes.service.ports import EarlierVersions, NewNote, OtherFiles, PastSessions, SimilarNotes
from lithos.notes.service.row_kinds import (
    ATTACHMENT,
    ATTACHMENTS_OFF,
    NOTE,
    SESSION_IDS,
    SESSIONS_OFF,
    read_kinds,
)
from lithos.notes.tools_rows import (
    NOTE_DEFAULTS,
    WRITTEN,
    add_clients,
    add_copies,
    add_projects,
    compact_metadata,
    edit_row,
    linked_row,
    list_row,
    read_row,
    warn,
)
from lithos.notes.writing.messages import (
    MERGE,
    ON_CONFLICT,
    PROPOSED,
    REFUSE,
    DeleteNote,
    MoveNote,
    PatchNote,
    WriteNote,
)
from lithos.server.settings import ServerConfig
from lithos.server.tools.arguments import (
    TAKES_BACK,
    argument,
    as_command,
    check_choice,
    read_time,
    read_title,
    source_of,
    unique,
)
from lithos.server.tools.bounds import (
    CONTENT,
    FILTER,
    FILTERS,
    IDS,
    LOOKUP,
    METADATA,
    NAME,
    NAMESPACE,
    PATH,
    QUERY,
    SUMMARIES,
    TAGS,
    TITLE,
    URL,
)
from lithos.server.tools.compacting import CompactForm
from lithos.server.tools.declaring import Answer, tool
from lithos.server.tools.fitting import CuttableAnswer, cut_lists
from lithos.server.tools.request_ids import unknown_outcome
from lithos.server.tools.serialization import row_of
from lithos.text.outline.section_edit import OPERATIONS, SectionEdit
from lithos.text.outline.section_edit import REPLACE as REPLACE_SECTION
from lithos.text.yaml.layout import frontmatter_at

_READ = CompactForm(
    always=("id", "title", "content", "metadata", "links", "truncated"),
    unsaid=("retrieval_count", "namespace"),
    own={"metadata": compact_metadata},
)
#: Compact form of `lithos_list`. Only `lithos_read` returns the fields that are left out.
_LISTED = CompactForm(
    always=("items", "total", "id", "title", "path"),
    asked={"metadata_match": ("metadata",)},
    unsaid=("source_url", "derived_from_ids", "version", "author", "namespace"),
    defaults=NOTE_DEFAULTS,
)


@tool(
    "lithos_note_edit", "standard", "D", place=41, title="Edit part of a note", counts="edit", sparing=WRITTEN
)
class NoteEditTool:
    """Append to, replace, insert next to or remove one section or text of a note. Safe while others edit the
    same note. To replace the whole body, use lithos_write.
    """

    op: str = argument("Kind of edit.", one_of=OPERATIONS, bound=LOOKUP)
    agent: str = argument("Your agent id.", bound=NAME)
    id: str | None = argument("Note id.", None, bound=LOOKUP, note="there")
    section: str | None = argument(
        "Section, e.g. Deploy > Rollback; omit for the whole body.", None, bound=LOOKUP
    )
    text: str | None = argument(
        "New Markdown. If it starts with a heading of the same level, that replaces the section's heading.",
        None,
        may_be_blank=True,
        bound=CONTENT,
    )
    find: str | None = argument("Text to replace, or text of the task item to check off.", None, bound=QUERY)
    expected_version: int | None = argument("Fail unless this is the current version.", None)
    expected_hash: str | None = argument(
        "Fail unless the section has this hash.", None, bound=LOOKUP, is_rare=True
    )

    async def answer(self, using: Parts) -> Answer:
        if self.op == REPLACE_SECTION:
            using.get(CutReads).check_section(self.id, self.agent, self.text or "")
        outcome = await using.get(Knowledge).edit(
            as_command(SectionEdit, self),
            agent=self.agent,
            note_id=self.id,
            expected_version=self.expected_version,
        )
        return edit_row(outcome)


@tool(
    "lithos_note_move",
    "standard",
    "D",
    place=40,
    title="Move a note",
    paged=CuttableAnswer(beside=("rewritten",)),
    counts="move",
    sparing=WRITTEN,
)
class NoteMoveTool:
    """Move or rename a note's file. Links to it are updated; its id does not change."""

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    path: str = argument("New folder, or new path ending in .md.", bound=PATH, also="to")
    agent: str = argument("Your agent id.", bound=NAME)
    update_links: bool = argument("Rewrite the links that would break.", True, is_rare=True)
    expected_version: int | None = argument("Fail unless this is the current version.", None, is_rare=True)
    undo: bool = argument(TAKES_BACK, False, is_own=True)

    async def answer(self, using: Parts) -> Answer:
        moved = await using.get(Moving).move(as_command(MoveNote, self, source=source_of(self.undo)))
        answer = row_of(moved.outcome)
        del answer["warnings"]
        answer["rewritten"] = list(moved.rewritten)
        if moved.canvases:
            answer["canvases"] = list(moved.canvases[:_TOLD])
        warnings = [
            f"The links in {note_id} could not be rewritten yet: its file is not writable. They "
            "will be rewritten at the next start."
            for note_id in moved.left[:_TOLD]
        ] + [
            f"The links on the canvas {path} were not updated: {reason}. Change them in an editor."
            for path, reason in islice(moved.unchanged.items(), _TOLD)
        ]
        if warnings:
            answer["warnings"] = warnings
        return answer


#: Maximum number of warnings in one answer.
_TOLD = 100


_EXPECTED = "Version that you read."
#: Minimum number of JSON characters for links and outline in a read. This applies even if `max_length` is
#: smaller.
LEAST_LISTED = 1_000
#: Maximum number of notes that the answer to a deletion names as linking to the deleted note.
MOST_LINKED = 20
_ON_CONFLICT = "Handling of an outdated expected_version."


#: Largest integer that all YAML and JSON readers support.
_LARGEST_INTEGER = 2**63 - 1


def _read_expiry(
    ttl_hours: float | None, expires_at: str | None, now: datetime
) -> datetime | Literal[""] | None:
    """Return the time when a note becomes stale.

    None means that the note's expiry time does not change, "" that it is cleared. `ttl_hours` must already be
    checked.
    """
    if ttl_hours is not None:
        try:
            return now + timedelta(hours=ttl_hours)
        except OverflowError:
            raise InvalidInput(
                f"ttl_hours is too large: {ttl_hours}. Use expires_at or a smaller number."
            ) from None
    if expires_at == "":
        return ""
    return read_time("expires_at", expires_at, parse_end)


def _check_ttl(ttl_hours: float | None, expires_at: str | None) -> None:
    """Raise `InvalidInput` if both arguments are given, or if `ttl_hours` is not above zero."""
    if ttl_hours is not None and expires_at is not None:
        raise InvalidInput("Provide either ttl_hours or expires_at, not both.")
    if ttl_hours is not None and not (math.isfinite(ttl_hours) and ttl_hours > 0):
        raise InvalidInput(f"ttl_hours must be a number above 0, not {ttl_hours}.")


def _check_summaries(summaries: Mapping[str, Any] | None) -> None:
    """Raise `InvalidInput` if a key is neither `short` nor `long`, or if a value is not a text."""
    for key, value in (summaries or {}).items():
        if key not in ("short", "long"):
            raise InvalidInput(f"summaries has the unknown key {key!r}. Its keys are short and long.")
        if not isinstance(value, str):
            raise InvalidInput(f"The value of summaries[{key!r}] must be a text.")


def _check_metadata(metadata: Mapping[str, Any] | None, note_id: str | None, using: Parts) -> None:
    """Raise `InvalidInput` for blank keys.

    Also raise `InvalidInput` for keys of Lithos, unless a person uses them in the note.
    """
    if metadata and not all(key.strip() for key in metadata):
        raise InvalidInput("A key in metadata is blank. Name every key.")
    if metadata:
        check_keys(metadata, using.get(Knowledge).extra_of(note_id))


def _check_schema_version(version: int | None) -> None:
    """Raise `InvalidInput` for integers with more than 64 bits, because some readers do not support them."""
    if version is not None and abs(version) > _LARGEST_INTEGER:
        raise InvalidInput("schema_version is too large. Use a small whole number, usually 1.")


def _check_written(given: WriteTool) -> None:
    """Raise `InvalidInput` for a new note without title or content.

    Also raise `InvalidInput` for a blank id or title.
    """
    if given.id is not None and not given.id.strip():
        raise InvalidInput(
            "id must not be blank, because that would create a copy. Omit id to create a note."
        )
    if given.title is not None and not given.title.strip():
        raise InvalidInput(
            "title must not be blank. To keep the title of a note, leave title out and give id."
        )
    missing = [name for name in ("title", "content") if getattr(given, name) is None]
    if given.content is not None and frontmatter_at(given.content) is not None:
        missing = []  # the title may be in the frontmatter of the content
    if given.id is None and missing:
        raise InvalidInput(
            f"A new note needs {' and '.join(missing)}. To change an existing note, give its id."
        )


def _check_on_conflict(given: WriteTool | NoteUpdateTool) -> None:
    """Raise `InvalidInput` for an unknown value.

    Also raise `InvalidInput` for an update with `merge` and no `expected_version`.
    """
    check_choice("on_conflict", given.on_conflict, ON_CONFLICT)
    if given.on_conflict == MERGE and given.id is not None and given.expected_version is None:
        raise InvalidInput(
            "on_conflict merge needs expected_version, the version you read and changed: without "
            "it the update would replace later changes by others."
        )


@tool(
    "lithos_write",
    "core",
    "D",
    place=1,
    title="Write a note",
    is_always_loaded=True,
    counts="write",
    creates=True,
    sparing=WRITTEN,
)
class WriteTool:
    """Create a note, or with id update one. content replaces the whole body: to change one part, use
    lithos_note_edit; to change only tags or status, use lithos_note_update. Omitted fields keep their value.
    """

    agent: str = argument("Your agent id.", bound=NAME)
    title: str | None = argument("Title, also used as file name. Needed to create.", None, bound=TITLE)
    content: str | None = argument(
        "Whole body in Markdown; needed to create.",
        None,
        may_be_blank=True,
        bound=CONTENT,
    )
    tags: tuple[str, ...] | None = argument("Tags; [] clears them.", None, bound=TAGS)
    confidence: object = argument("Your confidence, 0 to 1.", None, may_be_blank=True)
    path: str | None = argument("Folder, or path ending in .md; only to create.", None, bound=PATH)
    id: str | None = argument(
        "Id of the note to update; omit to create one.", None, may_be_blank=True, bound=LOOKUP
    )
    source_task: str | None = argument(
        'Id of the source task; "" clears.', None, may_be_blank=True, bound=NAME
    )
    source_url: str | None = argument(
        'URL of the source; unique; "" clears.', None, may_be_blank=True, bound=URL
    )
    derived_from_ids: tuple[str, ...] | None = argument(
        "Ids of the source notes; [] clears.", None, bound=IDS
    )
    ttl_hours: float | None = argument("Hours until the note is stale.", None)
    expires_at: str | None = argument(
        'ISO time from which the note is stale; "" clears.',
        None,
        may_be_blank=True,
        bound=LOOKUP,
        is_rare=True,
    )
    expected_version: int | None = argument(_EXPECTED, None)
    schema_version: int | None = argument("Version of the note's schema.", None, is_rare=True)
    namespace: str | None = argument("Namespace; default: the folder.", None, bound=NAMESPACE, is_rare=True)
    access_scope: str | None = argument(
        "Agents that find the note by lithos_context or lithos_retrieve.",
        None,
        one_of=ACCESS_SCOPES,
        bound=LOOKUP,
        is_rare=True,
    )
    note_type: str | None = argument("Kind of note.", None, one_of=NOTE_TYPES, bound=LOOKUP, is_rare=True)
    status: str | None = argument("State of the note.", None, one_of=STATUSES, bound=LOOKUP)
    summaries: dict[str, Any] | None = argument(
        "Summaries under the keys short and long.", None, bound=SUMMARIES, is_rare=True
    )
    metadata: dict[str, Any] | None = argument(
        "Metadata keys to merge; null deletes a key.", None, bound=METADATA
    )
    project: str | None = argument('Project; "" for none.', None, may_be_blank=True, bound=LOOKUP)
    on_conflict: str = argument(_ON_CONFLICT, REFUSE, one_of=ON_CONFLICT, bound=LOOKUP)
    replace_all: bool = argument("Also replace parts that you have not read.", False)

    async def answer(self, using: Parts) -> Answer:
        note_id = self.id and await using.get(Knowledge).identify(self.id)
        request = await using.get(Pasting).understood(self._request(using, note_id))
        if request.id is not None and not self.replace_all:
            await using.get(CutReads).check(request)
        if request.id is None and request.source_task is None:
            request = evolve(request, source_task=await self._origin(using))
        if request.id is not None or not request.title or not request.content:
            return row_of(await using.get(Knowledge).write(request))
        new = NewNote(request.title, request.content, request.agent)
        outcome, similar = await using.get(SimilarNotes).beside(
            new, lambda: using.get(Knowledge).write(request)
        )
        row = row_of(outcome)
        if outcome.status == "created" and similar:
            row["similar"] = [
                {"id": each.entry.note.id, "title": each.entry.note.title, "path": each.entry.path}
                | {"match": each.match}
                for each in similar
            ]
        return row

    async def _origin(self, using: Parts) -> str | None:
        """Return the session in which the agent writes, if it is known (docs/spec/sessions.md §8)."""
        past = using.find(PastSessions)
        return None if past is None else await past.origin(self.agent)

    async def answer_again(self, using: Parts, begun: datetime) -> Answer:
        """Return the answer of a creation that may have taken effect since `begun`.

        Raise `OutcomeUnknown` for an update.
        """
        if self.id:
            raise unknown_outcome()
        try:
            return await self.answer(using)
        except (SlugCollision, PathCollision, Duplicate) as refusal:
            found = refusal.extras.get("existing_id") or refusal.extras.get("duplicate_of", {}).get("id")
            entry = using.get(Catalogue).get(str(found))
            if (
                entry is None
                or entry.note.created_at < begun
                or entry.note.title != read_title(self.title or "")
            ):
                raise
            return {
                "status": "created",
                "id": entry.note.id,
                "path": entry.path,
                "version": 1,
                "warnings": [],
            }

    def _request(self, using: Parts, note_id: str | None) -> WriteNote:
        _check_written(self)
        _check_ttl(self.ttl_hours, self.expires_at)
        check_choice("access_scope", self.access_scope, ACCESS_SCOPES)
        _check_on_conflict(self)
        check_choice("note_type", self.note_type, NOTE_TYPES)
        check_choice("status", self.status, STATUSES)
        _check_summaries(self.summaries)
        _check_metadata(self.metadata, note_id, using)
        _check_schema_version(self.schema_version)
        if self.id is None and self.access_scope == "task" and not (self.source_task or "").strip():
            raise InvalidInput(
                "access_scope 'task' needs source_task: give the id of the task that the note belongs to."
            )
        return as_command(
            WriteNote,
            self,
            title=None if self.title is None else read_title(self.title),
            id=note_id or None,
            tags=unique(self.tags),
            source_task=None if self.source_task is None else self.source_task.strip(),
            project=read_written_project(self.project, WORKING_IN.get()),
            expires_at=_read_expiry(self.ttl_hours, self.expires_at, using.clock()),
        )


@tool(
    "lithos_read",
    "core",
    "RI",
    place=2,
    title="Read a note",
    is_always_loaded=True,
    paged=CuttableAnswer(content="content", beside=("links", "outline")),
    sparing=_READ,
    counts="read",
)
class ReadTool:
    """Read a note by id, path or title: the whole text, one section, an outline or an earlier version."""

    id: str | None = argument("Note id.", None, bound=LOOKUP)
    path: str | None = argument("Path in the vault, with or without .md.", None, bound=PATH)
    title: str | None = argument("Title, if only one note has it.", None, bound=LOOKUP)
    max_length: int | None = argument("Maximum number of characters.", None)
    offset: int = argument("Characters to skip; use next_offset.", 0)
    outline: bool = argument("List the sections instead of the text.", False)
    section: str | None = argument("Only this section, e.g. Deploy > Rollback.", None, bound=LOOKUP)
    agent_id: str | None = argument("Your agent id.", None, bound=NAME, is_caller=True)
    version: int | None = argument("Earlier version to read, also of a deleted note.", None)
    as_of: str | None = argument("ISO time: the version current then.", None, bound=LOOKUP, is_rare=True)
    page: int | None = argument("Page of a PDF.", None, is_listed=False)
    place: str | None = argument("Page or place in an attachment.", None, bound=LOOKUP)
    turn: int | None = argument("Turn of a past session, with its neighbours.", None, is_listed=False)

    async def answer(self, using: Parts) -> Answer:
        if self.id is not None and (self.turn is not None or self.id.startswith(SESSION_IDS)):
            past = using.find(PastSessions)
            if past is None or not past.is_enabled:
                raise DocNotFound(SESSIONS_OFF)
            return await past.read_row(self.id, self.turn, self.offset, self.max_length, self.agent_id)
        place = self.place if self.page is None else read_place(self.page, self.place)
        others = using.find(OtherFiles)
        may_be_other = self.path is None or place is not None or not self.path.endswith(".md")
        if others is not None and may_be_other and others.is_meant(self.id, self.path):
            return await others.read_row(self.id, self.path, place, self.offset, self.max_length)
        found = await using.get(Knowledge).read(
            note_id=self.id,
            path=self.path,
            title=self.title,
            offset=self.offset,
            max_length=self.max_length,
            agent_id=self.agent_id,
            outline=self.outline,
            section=self.section,
            version=self.version,
            as_of=read_time("as_of", self.as_of),
        )
        row = read_row(found)
        add_clients(using, [(found.entry, row)])
        if self.max_length and not using.get(ServerConfig).is_plain:
            room = max(self.max_length - len(found.content), LEAST_LISTED)
            cut_lists(row, ("outline", "links"), room)
        await warn(using, [(found.entry.note.id, row)])
        add_copies(using, [(found.entry.note.id, row)])
        return row


@tool("lithos_delete", "standard", "DI", place=3, title="Delete a note", counts="delete")
class DeleteTool:
    """Delete a note; lithos_restore brings it back. To withdraw a wrong note that others depend on, use
    lithos_impact.
    """

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    agent: str = argument("Your agent id.", bound=NAME)
    expected_version: int | None = argument("Fail unless this is the current version.", None, is_rare=True)
    undo: bool = argument(TAKES_BACK, False, is_own=True)

    async def answer(self, using: Parts) -> Answer:
        linked = await using.get(Knowledge).linked_from(self.id, MOST_LINKED)
        outcome = await using.get(Knowledge).write(as_command(DeleteNote, self, source=source_of(self.undo)))
        if outcome.status == PROPOSED:
            return row_of(outcome)
        if not linked.total or using.get(ServerConfig).is_plain:
            return {"success": True}
        # Only after the deletion is it certain that the last version is kept.
        linked = evolve(linked, way_back=await using.get(EarlierVersions).way_back(self.id))
        return {"success": True, **linked_row(linked)}


@tool(
    "lithos_list",
    "core",
    "RI",
    place=10,
    title="List notes",
    paged=CuttableAnswer(rows=("items",)),
    sparing=_LISTED,
    counts="list",
    is_heavy=True,
)
class ListTool:
    """List notes filtered by folder, tags, author, date, title, text or metadata, without ranking."""

    path_prefix: str | None = argument("Only notes with this path prefix.", None, bound=LOOKUP)
    tags: tuple[str, ...] | None = argument("Only notes with all of these tags.", None, bound=FILTERS)
    author: str | None = argument("Only notes of this author.", None, bound=LOOKUP)
    since: str | None = argument("Only notes updated since this ISO time.", None, bound=LOOKUP)
    limit: int = argument("Maximum number of notes.", 50)
    offset: int = argument("Number of notes to skip; use next_offset.", 0)
    title_contains: str | None = argument("Only notes whose title contains this text.", None, bound=LOOKUP)
    content_query: str | None = argument("Only notes that match this full-text query.", None, bound=QUERY)
    metadata_match: dict[str, Any] | None = argument(
        'Only notes with this metadata, e.g. {"project": "shop"}.', None, bound=FILTER
    )
    entities: tuple[str, ...] | None = argument(
        "Only notes that have all of these entities.", None, bound=FILTERS, is_rare=True
    )
    project: str | None = argument(
        "Only notes of this project.", None, bound=LOOKUP, may_be_blank=True, is_rare=True
    )
    kinds: tuple[str, ...] | None = argument(
        "Kinds of items to list: note (default) or attachment.", None, bound=FILTERS, is_listed=False
    )

    async def answer(self, using: Parts) -> Answer:
        kinds = (NOTE,) if self.kinds is None else read_kinds(self.kinds, (NOTE,))
        if ATTACHMENT in kinds:
            return await self._list_others(using, with_notes=NOTE in kinds)
        return await self._list_notes(using)

    async def _list_others(self, using: Parts, *, with_notes: bool) -> Answer:
        """List attachments after the notes. Attachments do not have tags, authors, entities or metadata."""
        notes: dict[str, Any] = await self._list_notes(using) if with_notes else {"items": [], "total": 0}
        items: list[dict[str, Any]] = []
        total, others = 0, using.find(OtherFiles)
        is_filtered = self.tags or self.author or self.entities or self.metadata_match or self.content_query
        if others is not None and not is_filtered:
            first = max(0, self.offset - notes["total"])
            room = max(0, max(1, self.limit) - len(notes["items"]))
            since = read_time("since", self.since)
            wanted = asked_project(self.project)
            items, total = others.list_rows(self.path_prefix, self.title_contains, since, wanted, first, room)
        answer = {"items": [*notes["items"], *items], "total": notes["total"] + total}
        is_on = others is not None and others.is_enabled
        return answer if is_on else answer | {"message": ATTACHMENTS_OFF}

    async def _list_notes(self, using: Parts) -> dict[str, Any]:
        project = asked_project(self.project)
        page = await using.get(Knowledge).list_notes(
            as_command(ListRequest, self, since=read_time("since", self.since), project=project)
        )
        items: list[dict[str, Any]] = []
        async for some in slices(page.entries):
            items += [list_row(entry) for entry in some]
        await warn(using, ((item["id"], item) for item in items))
        add_copies(using, ((item["id"], item) for item in items))
        add_projects(using, zip(page.entries, items, strict=True), is_asked=False)
        message = page.message or ("" if items else using.get(Catalogue).projects.missing(project))
        answer: dict[str, Any] = {"items": items, "total": page.total}
        return answer | ({"message": message} if message else {})


@tool(
    "lithos_tags",
    "standard",
    "RI",
    place=12,
    title="List tags",
    paged=CuttableAnswer(rows=("tags",)),
    sparing=CompactForm(always=("tags",)),
    counts="tags",
)
class TagsTool:
    """List tags with the number of notes for each. Check here before you invent a tag."""

    prefix: str | None = argument("Only tags with this prefix.", None, bound=LOOKUP)

    async def answer(self, using: Parts) -> Answer:
        return {"tags": using.get(Knowledge).tags(self.prefix)}


@tool(
    "lithos_note_update",
    "standard",
    "D",
    place=29,
    title="Update note metadata",
    counts="update",
    sparing=WRITTEN,
)
class NoteUpdateTool:
    """Change a note's title, tags, status or metadata without touching its text."""

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    agent: str = argument("Your agent id.", bound=NAME)
    title: str | None = argument("New title.", None, bound=TITLE)
    tags: tuple[str, ...] | None = argument("New tags; [] clears them.", None, bound=TAGS)
    status: str | None = argument("State of the note.", None, one_of=STATUSES, bound=LOOKUP)
    metadata: dict[str, Any] | None = argument(
        "Metadata keys to merge; null deletes a key.", None, bound=METADATA
    )
    expected_version: int | None = argument(_EXPECTED, None)
    on_conflict: str = argument(_ON_CONFLICT, REFUSE, one_of=ON_CONFLICT, bound=LOOKUP, is_rare=True)

    async def answer(self, using: Parts) -> Answer:
        if self.title is None and self.tags is None and self.status is None and not self.metadata:
            raise InvalidInput(
                "Nothing to change: give title, tags, status, or metadata with at least one key."
            )
        check_choice("status", self.status, STATUSES)
        _check_on_conflict(self)
        _check_metadata(self.metadata, self.id, using)
        title = None if self.title is None else read_title(self.title)
        request = as_command(PatchNote, self, title=title, tags=unique(self.tags))
        return row_of(await using.get(Knowledge).write(request))


def read_place(page: int, place: str | None) -> str:
    """Return the place of a PDF page.

    Raise `InvalidInput` if `place` names another place or `page` is below 1.
    """
    if place is not None and place != str(page):
        raise InvalidInput("Give page or place, not both.")
    if page < 1:
        raise InvalidInput(f"page must be 1 or more, not {page}.")
    return str(page)
