"""The history service: kept versions of notes, including deleted notes, with their bytes and differences.

All reads of the store and all comparisons of versions run in a worker thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Final

import attrs
from attrs import define, frozen

from lithos.history.rows.reading import HistoryReading
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.values.errors import (
    DocNotFound,
    HistoryDisabled,
    InvalidInput,
    StorageFailed,
    VersionNotFound,
)
from lithos.kernel.values.ids import MOST_CANDIDATES, is_id, one_of_prefix, prefix_of
from lithos.kernel.values.times import format_time
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.values import FileState
from lithos.notes.format.document import parse_document
from lithos.notes.links.links import targets_in
from lithos.notes.model.paths import resolve_read_path
from lithos.notes.model.versions import DELETED, VersionRow, body_of
from lithos.notes.service.ports import KeptNote
from lithos.text.outline.differences import Diff, count_lines, unified_diff
from lithos.text.words.analysis import name_key
from lithos.text.yaml.nodes import UnreadableNote

#: A range of versions of a note: the note id, the older version and the newer version.
Span = tuple[str, int, int]

#: Maximum number of versions in one answer.
MOST_VERSIONS: Final = 1_000
#: Maximum number of versions of a note that are filtered. No note has more versions.
MOST_FILTERED: Final = 100_000
#: Maximum number of deletions in which a path is searched.
MOST_DELETIONS: Final = 10_000
#: Maximum number of deleted notes per page for which titles are looked up.
MOST_DELETED: Final = 20
#: Maximum size in bytes of a version for which changed lines are counted.
MOST_COUNTED: Final = 256 * 1024
#: Highest version number that a store can contain.
_LARGEST: Final = 2**63 - 1
#: Two versions or rows, such as 7..9 or r12..r14. Also a single version or row, such as 7.
_RANGE: Final = re.compile(r"\s*(?:(r?\d{1,19})\s*(?:\.\.\.?|-)\s*(r?\d{1,19})?|(r?\d{1,19}))\s*")
_ROW: Final = "r"


@frozen
class VersionContent:
    """A version with its exact bytes."""

    row: VersionRow
    data: bytes


@frozen(kw_only=True)
class HistoryRequest:
    """A request for versions of a note (`note_id`) or of all notes, newest first.

    `since` is inclusive. `before` is a version number and exclusive. `offset` is the number of rows to skip.
    """

    note_id: str | None = None
    agent: str | None = None
    since: datetime | None = None
    is_deleted: bool = False
    limit: int = 20
    offset: int = 0
    before: int | None = None


@frozen
class ListedVersions:
    """A page of version rows, newest first, and the total number of rows."""

    rows: Sequence[VersionRow]
    total: int


@frozen
class VersionDiff:
    """The difference between two versions. If the first version is None, all lines were added."""

    from_version: int | None
    to_version: int
    diff: Diff
    #: The row numbers of both versions, if rows were requested.
    rows: tuple[int | None, int] | None = None


@define(eq=False)
class NoteHistory:
    """Reads kept versions. Every method raises `HistoryDisabled` if there is no reader."""

    _reader: HistoryReading | None
    _blocking: Blocking
    _catalogue: Catalogue

    async def resolve(self, note_id: str | None, path: str | None) -> str | None:
        """Return the id of a note. The note is given by id, by path, or by the former path of a deleted note.

        The result is None if neither `note_id` nor `path` is given.

        Raises `DocNotFound` for a path that no note has or ever had.
        """
        if note_id or not path:
            return note_id
        resolved = resolve_read_path(path)
        entry = self._catalogue.spelled(resolved)
        if entry is not None:
            return entry.note.id
        reader = self._open()
        rows, _ = await self._blocking.run(lambda: reader.recent(is_deleted=True, limit=MOST_DELETIONS))
        row = next((row for row in rows if row.path == resolved), None)
        row = row or next((row for row in rows if name_key(row.path) == name_key(resolved)), None)
        if row is not None:
            return row.note_id
        raise DocNotFound(
            f"No note has or had the path {resolved!r}. Find the path of a note with lithos_list, "
            "or of a deleted note with lithos_history and deleted=true."
        )

    async def identify(self, text: str) -> str:
        """Return the id of the note, which may be deleted, whose id begins with a text.

        Without such a note, or without a history, return the text. Raises `AmbiguousIdPrefix`.
        """
        prefix = None if is_id(text) else prefix_of(text)
        reader = self._reader
        if prefix is None or reader is None:
            return text
        ids = await self._blocking.run(lambda: reader.starting(prefix, MOST_CANDIDATES + 1))
        titles = {one: one for one in ids} if len(ids) < 2 else await self.titles(ids)
        return one_of_prefix(prefix, "note", titles) or text

    async def titles(self, note_ids: Iterable[str]) -> dict[str, str]:
        """Return the title of each note by id. If the title is unknown, the id is returned instead.

        At most `MOST_DELETED` deleted notes are looked up.
        """
        titles = {one: self._catalogue.title(one) for one in note_ids}
        gone = [one for one, title in titles.items() if title is None]
        try:
            rows = [await self.newest(one) for one in gone[:MOST_DELETED]]
        except HistoryDisabled:
            rows = []
        last = {row.note_id: row.title for row in rows if row is not None}
        return {one: last.get(one, one) if title is None else title for one, title in titles.items()}

    async def at_version(self, note_id: str, version: int) -> VersionContent:
        """Return the bytes of a version. Raises `VersionNotFound` and `DocNotFound`."""
        number = max(0, min(version, _LARGEST))  # No version has a number outside this range.
        return await self._find(note_id, f"version {version}", lambda reader: reader.row(note_id, number))

    async def at_row(self, note_id: str, row: int) -> VersionContent:
        """Return the bytes of the row with this number. Raises `VersionNotFound` and `DocNotFound`."""
        number = max(0, min(row, _LARGEST))
        return await self._find(note_id, f"row {row}", lambda reader: reader.row_numbered(note_id, number))

    async def at_time(self, note_id: str, at: datetime) -> VersionContent:
        """Return the version that was current at a time. Raises `VersionNotFound` and `DocNotFound`."""
        wanted = f"version of {format_time(at)}"
        return await self._find(note_id, wanted, lambda reader: reader.current_at(note_id, at))

    async def _find(
        self, note_id: str, wanted: str, look: Callable[[HistoryReading], VersionRow | None]
    ) -> VersionContent:
        reader = self._open()

        def find() -> VersionContent | None:
            row = look(reader)
            data = None if row is None else reader.content_of(row)
            return None if row is None or data is None else VersionContent(row, data)

        found = await self._blocking.run(find)
        if found is None:
            raise await self._not_kept(note_id, wanted)
        return found

    async def read(
        self, note_id: str | None, path: str | None, version: int | None, as_of: datetime | None
    ) -> KeptNote:
        """Return a note in a given version or at a given time, even if the note is deleted.

        Raises `VersionNotFound` and `DocNotFound`.
        """
        if version is not None and as_of is not None:
            raise InvalidInput("Give either version or as_of, not both.")
        found_id = await self.resolve(note_id, path)
        if not found_id:
            raise InvalidInput("Give the id or the path of the note whose version you want.")
        if version is not None:
            kept = await self.at_version(found_id, version)
        else:
            assert as_of is not None
            kept = await self.at_time(found_id, as_of)
        return await self._blocking.run(lambda: self._parse(kept))

    def _parse(self, kept: VersionContent) -> KeptNote:
        row = kept.row
        try:
            document = parse_document(kept.data, row.path, row.at, row.note_id, self._catalogue.style)
        except UnreadableNote as problem:
            raise StorageFailed(
                f"Version {row.version} of {row.path} cannot be read as a note: {problem.reason}. Look at "
                "another version."
            ) from problem
        document = attrs.evolve(document, note=attrs.evolve(document.note, version=row.version))
        now = self._catalogue.get(row.note_id)
        entry = Entry(
            serial=0,
            path=row.path,
            note=document.note,
            digest=row.digest,
            state=FileState(0, 0),
            identified=True,
            links=targets_in(kept.data, document.content, row.path),
        )
        return KeptNote(entry, document, row, kept.data, None if now is None else now.note.version)

    async def newest(self, note_id: str) -> VersionRow | None:
        """Return the newest kept version."""
        reader = self._open()
        rows, _ = await self._blocking.run(lambda: reader.rows(note_id, 1))
        return rows[0] if rows else None

    async def way_back(self, note_id: str) -> str:
        """Return a sentence that explains how to restore a deleted note, or why it cannot be restored."""
        try:
            row = await self.newest(note_id)
        except HistoryDisabled:
            return "The note cannot be restored, because no versions are kept (history.enabled is false)."
        if row is None:
            return "The note cannot be restored, because no version of it is kept."
        return (
            f"The note can be restored by lithos_restore with id={note_id} and version={row.version}, or by "
            f"`lithos restore-note {note_id} --version {row.version}`."
        )

    async def oldest(self, note_id: str) -> VersionRow | None:
        """Return the oldest kept version."""
        reader = self._open()

        def find() -> VersionRow | None:
            oldest = reader.oldest(note_id)
            return None if oldest is None else reader.row(note_id, oldest)

        return await self._blocking.run(find)

    async def by_agent(self, agent: str, until: datetime, most: int) -> Sequence[VersionRow]:
        """Return the newest versions that an agent made before a time, newest first.

        Raises `HistoryDisabled`.
        """
        reader = self._open()
        rows, _ = await self._blocking.run(lambda: reader.recent(agent=agent, until=until, limit=most))
        return rows

    async def list_versions(self, request: HistoryRequest) -> ListedVersions:
        """Return version rows, newest first. Raises `DocNotFound` for an unknown id."""
        reader = self._open()
        note_id, before = request.note_id, request.before
        before = None if before is None else max(0, min(before, _LARGEST))
        limit = min(request.limit, MOST_VERSIONS)
        if note_id is None:
            wanted = request.offset + limit

            def recent() -> tuple[Sequence[VersionRow], int]:
                return reader.recent(
                    agent=request.agent,
                    since=request.since,
                    is_deleted=request.is_deleted,
                    as_recorded=request.agent is not None,
                    limit=min(wanted, _LARGEST),
                    before=before,
                )

            rows, total = await self._blocking.run(recent)
        elif request.agent is not None or request.since is not None:
            rows, total = await self._blocking.run(lambda: _filtered(reader, note_id, request, before))
        else:
            wanted = min(request.offset + limit, _LARGEST)
            rows, total = await self._blocking.run(lambda: reader.rows(note_id, wanted, before))
        if not total and note_id is not None and note_id not in self._catalogue:
            await self._require(note_id)
        return ListedVersions(rows[request.offset : request.offset + limit], total)

    async def diff(self, note_id: str, text: str) -> VersionDiff:
        """Return the difference between two versions or rows.

        `7` compares version 7 with the version before it.

        Raises `InvalidInput`, `VersionNotFound` and `DocNotFound`.
        """
        matched = _RANGE.fullmatch(text)
        if matched is None:
            raise InvalidInput(
                "diff must be two versions such as 7..9, one version such as 7, or rows such as "
                f"r12, not {text[:60]!r}."
            )
        first, last, only = matched.groups()
        target = only or last
        newest = None if target else await self.newest(note_id)
        if not target and newest is None:
            raise await self._not_kept(note_id, "version at all")
        after = await self._named(note_id, target or str(newest.version if newest else 0))
        before: VersionContent | None
        if not only:
            before = await self._named(note_id, first)
        elif only.startswith(_ROW):
            before = await self._row_before(after.row)
        else:
            before = await self._before(note_id, after.row.version)
        made = await self._blocking.run(lambda: _compare(before, after))
        if text.strip().startswith(_ROW) or (target or "").startswith(_ROW):
            made = _with_paths(before, after, made)
            rows = (before.row.row if before else None, after.row.row)
            return VersionDiff(before.row.version if before else None, after.row.version, made, rows)
        return VersionDiff(before.row.version if before else None, after.row.version, made)

    async def _named(self, note_id: str, text: str) -> VersionContent:
        """Return the content of one half of the `diff` text, which names a version or a row."""
        if text.startswith(_ROW):
            return await self.at_row(note_id, int(text.removeprefix(_ROW)))
        return await self.at_version(note_id, int(text))

    async def _row_before(self, row: VersionRow) -> VersionContent | None:
        reader = self._open()
        before = await self._blocking.run(lambda: reader.row_before(row.note_id, row.row))
        return None if before is None else await self.at_row(row.note_id, before.row)

    async def line_counts(self, changes: Collection[Span]) -> dict[Span, tuple[int, int]]:
        """Return the numbers of added and removed lines for each change.

        `changes` has tuples of note id, older version and newer version. The older version is 0 if the note
        did not exist. Versions of more than `MOST_COUNTED` bytes and versions that are not kept are left out.
        Without a history the result is empty.
        """
        reader = self._reader
        if reader is None or not changes:
            return {}

        def count() -> dict[Span, tuple[int, int]]:
            found: dict[Span, tuple[int, int]] = {}
            for note_id, *versions in changes:
                texts = [_text_at(reader, note_id, number) for number in versions]
                if None not in texts:
                    found[note_id, versions[0], versions[1]] = count_lines(texts[0] or b"", texts[1] or b"")
            return found

        return await self._blocking.run(count)

    async def _before(self, note_id: str, version: int) -> VersionContent | None:
        reader = self._open()
        rows, _ = await self._blocking.run(lambda: reader.rows(note_id, 1, version))
        return await self.at_version(note_id, rows[0].version) if rows else None

    def _open(self) -> HistoryReading:
        if self._reader is None:
            raise HistoryDisabled(
                "No versions are kept, because history.enabled is off. Enable it and restart the "
                "server. Versions are kept from then on."
            )
        return self._reader

    async def _require(self, note_id: str) -> None:
        """Raise `DocNotFound` if neither the catalogue nor the history has a note with this id."""
        if note_id not in self._catalogue and await self.oldest(note_id) is None:
            raise DocNotFound(
                f"Unknown note id {note_id[:100]!r}. Find the note with lithos_search or "
                "lithos_list, or a deleted note with lithos_history and deleted=true."
            )

    async def _not_kept(self, note_id: str, wanted: str) -> VersionNotFound:
        """Return the error for a version that is unknown or was pruned. Raises `DocNotFound`."""
        await self._require(note_id)
        oldest = await self.oldest(note_id)
        if oldest is None:
            return VersionNotFound(
                f"This note has no {wanted}: none of its versions is kept yet. Read the current "
                "note instead.",
                oldest_version=None,
            )
        return VersionNotFound(
            f"The history has no {wanted} of this note. The oldest kept version is "
            f"{oldest.version} of {format_time(oldest.at)}. Use lithos_history to list the "
            "versions.",
            oldest_version=oldest.version,
        )


def _filtered(
    reader: HistoryReading, note_id: str, request: HistoryRequest, before: int | None
) -> tuple[list[VersionRow], int]:
    """Return the versions of a note made by an agent or since a time. Also return their number. Blocks."""
    rows, _ = reader.rows(note_id, MOST_FILTERED, before)
    found = [
        row
        for row in rows
        if request.agent in (None, row.agent) and (request.since is None or row.at >= request.since)
    ]
    return found, len(found)


def _text_at(reader: HistoryReading, note_id: str, version: int) -> bytes | None:
    """Return the text of a version. Return None if the text is not kept or too large.

    Version 0 and deletions count as empty texts. Blocks.
    """
    row = reader.row(note_id, version) if version else None
    if version == 0 or (row is not None and row.op == DELETED):
        return b""
    if row is None or row.size > MOST_COUNTED:
        return None
    return body_of(reader.content(note_id, version) or b"")


def _compare(before: VersionContent | None, after: VersionContent) -> Diff:
    """Compare two versions. A deletion counts as an empty text, so all lines are shown as removed."""
    return unified_diff(_text_of(before), _text_of(after), _name_of(before), _name_of(after))


def _with_paths(before: VersionContent | None, after: VersionContent, made: Diff) -> Diff:
    """Return the difference of two rows with their paths, because the path may be the only change."""
    if before is None or before.row.path == after.row.path:
        return made
    moved = f"rename from {before.row.path}\nrename to {after.row.path}\n"
    return attrs.evolve(made, text=moved + made.text)


def _text_of(kept: VersionContent | None) -> bytes:
    return b"" if kept is None or kept.row.op == DELETED else kept.data


def _name_of(kept: VersionContent | None) -> str:
    return "/dev/null" if kept is None else f"{kept.row.path}\tversion {kept.row.version}"
