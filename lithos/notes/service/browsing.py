"""Browsing: sorted pages of notes, filtered by folder, tag, name and state, and the folders with note counts.

Filters, sorting and counting run in a worker thread on a snapshot of the catalogue. The list of folders is
kept in memory until a note changes. Other files of the vault, such as pictures, can also be opened.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from heapq import nsmallest
from operator import attrgetter
from typing import Any, Final

import trio
from attrs import field, frozen

from lithos.kernel.actors.threads import Blocking, Threads, slices
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.projects import ProjectFilter
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.lineage import Lineage
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.lookup import Attachment, open_attachment
from lithos.notes.links.links import linking_sentence, note_keys, same_name
from lithos.notes.model.note import NoteWarning
from lithos.notes.model.paths import folder_of
from lithos.notes.service.texts import NoteTexts
from lithos.text.markdown import plain_title
from lithos.text.snippet import plain_passage
from lithos.text.words.list_filters import has_tags

#: Maximum number of bytes that one read returns.
CHUNK = 256 * 1024


@frozen
class VaultFiles:
    """Opens files of the notes folder by path.

    Only paths in the notes folder are accepted (docs/spec/notes.md §7).
    """

    _files: NoteFiles
    _catalogue: Catalogue
    _blocking: Blocking

    async def open(self, path: str) -> Attachment | None:
        """Open a file, which the caller must close. If the file is missing or hidden, return None."""
        return await self._blocking.run(lambda: open_attachment(self._files, path))

    async def named(self, path: str) -> str | None:
        """Return the path of the file with this name in any folder, or None.

        Names are resolved like those in wiki-links.
        """
        if path not in self._catalogue.files:
            return None
        paths = self._catalogue.files.paths()
        return await self._blocking.run(lambda: same_name(paths, path))

    async def read(self, attachment: Attachment) -> bytes:
        """Return the next bytes of an open file. The result is empty at the end of the file."""
        return await self._blocking.run(lambda: attachment.file.read(CHUNK))


#: Sort orders of a list by name, as pairs: the sort key, and whether the order is descending.
SORTS: Final[Mapping[str, tuple[Callable[[Entry], Any], bool]]] = {
    "updated": (lambda entry: entry.note.updated_at, True),
    "created": (lambda entry: entry.note.created_at, True),
    "title": (lambda entry: entry.note.title.casefold(), False),
    "path": (attrgetter("path"), False),
    "confidence": (lambda entry: entry.note.confidence, False),
}
#: Values of the status filter that are not note statuses.
STATES: Final = ("expired", "suspect", "broken")
#: Value of the project filter for notes without a project. It is not a valid key.
NO_PROJECT: Final = "/"
#: Maximum number of suggestions for an unknown name, and minimum similarity of a suggestion (Dice coefficient
#: of trigrams).
MOST_NEAR: Final = 8
LEAST_ALIKE: Final = 0.3
#: Maximum number of notes in a lineage.
MOST_ANCESTORS: Final = 50
#: Matches the markup at the beginning of a list item, heading, quotation or table row.
_LINE_MARKS: Final = re.compile(r"[\s>|]*(?:#{1,6}\s+|(?:[-*+]|\d{1,9}[.)])\s+(?:\[.\]\s+)?)?")
#: Maximum number of characters of a name that are compared.
_COMPARED: Final = 200


@frozen(kw_only=True)
class BrowseRequest:
    """Filters, sort order and page of a list of notes.

    `path_prefix` is the beginning of a path. `q` is a text in the title, an alias or the path, and case is
    ignored. `status` is a note status or one of `STATES`. `project` is a key, or `NO_PROJECT`.
    """

    path_prefix: str = ""
    tags: tuple[str, ...] = ()
    author: str = ""
    namespace: str = ""
    note_type: str = ""
    status: str = ""
    project: str = ""
    q: str = ""
    sort: str = "updated"
    limit: int = 100
    offset: int = 0


@frozen
class BrowsePage:
    """One page of notes, and the total number of notes that pass the filters."""

    entries: Sequence[Entry]
    total: int


@frozen
class Backlinks:
    """Some of the notes that link to a note, each with its linking sentence, and their total number."""

    rows: Sequence[tuple[Entry, str]]
    total: int


@frozen
class Folder:
    """A subfolder, with its path (ending in `/`) and the number of notes in it and below it."""

    path: str
    name: str
    notes: int
    has_folders: bool


@frozen
class Ancestor:
    """A note that another note depends on. `distance` is the number of steps between the two notes.

    `via` is the kind of the last step: `derived_from_ids`, or the type of a typed edge.
    """

    entry: Entry
    distance: int
    via: str


@frozen
class _Folders:
    """All folders of the vault in one state of the notes. `stamp` identifies this state."""

    stamp: tuple[int, int]
    below: Mapping[str, int] = field(factory=dict)
    children: Mapping[str, Sequence[str]] = field(factory=dict)


class Browsing:
    """Service that reads the catalogue for the lists of the console."""

    def __init__(
        self,
        catalogue: Catalogue,
        lineage: Lineage,
        clock: Clock,
        texts: NoteTexts,
    ) -> None:
        self._catalogue = catalogue
        self._texts = texts
        self._lineage = lineage
        self._blocking = Threads()
        self._clock = clock
        self._folders = _Folders((-1, -1))

    async def find(self, request: BrowseRequest) -> BrowsePage:
        """Return one page of the notes that pass the filters.

        Raises `InvalidInput` for an unknown sort order.
        """
        if request.sort not in SORTS:
            raise InvalidInput(f"Unknown sort order {request.sort[:60]!r}. Use one of: {', '.join(SORTS)}.")
        entries = list(self._catalogue)
        if request.status == "suspect":
            entries = await self._suspects(entries)
        now = self._clock()

        def find() -> BrowsePage:
            passing = [entry for entry in entries if _passes(entry, request, now)]
            if request.project:
                wanted = ProjectFilter("" if request.project == NO_PROJECT else request.project)
                passing = [each for each in passing if self._catalogue.projects.passes(each, wanted)]
            key, is_reversed = SORTS[request.sort]
            passing.sort(key=attrgetter("path"))
            passing.sort(key=key, reverse=is_reversed)
            if request.q:
                name = request.q.casefold()
                starts = re.compile(rf"(?<![^\W_]){re.escape(name)}")
                passing.sort(key=lambda entry: _rank(entry, name, starts))
            return BrowsePage(passing[request.offset : request.offset + request.limit], len(passing))

        return await self._blocking.run(find)

    async def near(self, name: str) -> Sequence[Entry]:
        """Return the notes whose titles are most similar to an unknown name."""
        entries = list(self._catalogue)
        return await self._blocking.run(lambda: _near(entries, name))

    async def backlinks(self, target: Entry, offset: int, limit: int) -> Backlinks:
        """Return the notes that link to a note, by title, with the sentences that contain the links."""
        linking = self._catalogue.graph.links.neighbours(target.note.id)[1]
        entries = [entry for one in linking if isinstance(one, str) and (entry := self._catalogue.get(one))]
        entries.sort(key=lambda entry: (entry.note.title.casefold(), entry.path))
        note, shown = target.note, entries[offset : offset + limit]
        keys = note_keys(note.id, target.path, note.title, note.aliases)

        def sentence(position: int, content: str) -> str:
            return _read_aloud(linking_sentence(content, shown[position].path, keys))

        found = await self._texts.map_contents(shown, sentence)
        return Backlinks(
            [(entry, text or "") for entry, text in zip(shown, found, strict=True)], len(entries)
        )

    async def folders(self, parent: str) -> Sequence[Folder]:
        """Return the direct subfolders of a folder with note counts, sorted by name.

        `""` is the root folder of the vault.
        """
        found = await self._counted()
        return [
            Folder(path, path[len(parent) : -1], found.below[path], path in found.children)
            for path in found.children.get(parent, ())
        ]

    async def tags(self, most: int) -> tuple[Sequence[tuple[str, int]], int]:
        """Return the most frequent tags with note counts, and the total number of tags."""
        counts = self._catalogue.tags.counts()
        found = await self._blocking.run(
            lambda: nsmallest(most, counts.items(), key=lambda each: (-each[1], each[0]))
        )
        return found, len(counts)

    def projects(self, most: int) -> list[tuple[str, int]]:
        """Return the projects with the most notes, and the number of notes of each, sorted by key."""
        counts = self._catalogue.projects.counts()
        return sorted(nsmallest(most, counts.items(), key=lambda each: (-each[1], each[0])))

    async def warnings(self, entries: Iterable[Entry]) -> dict[str, tuple[NoteWarning, ...]]:
        """Return the warnings about these notes by id. Notes without warnings are left out."""
        await self._lineage.settle()
        now = self._clock()
        found: dict[str, tuple[NoteWarning, ...]] = {}
        async for some in slices(list(entries), 25):
            for entry in some:
                if warnings := self._lineage.warnings(entry.note.id, now):
                    found[entry.note.id] = warnings
        return found

    async def sources(self, note_id: str) -> list[Ancestor]:
        """Return at most `MOST_ANCESTORS` notes that a note depends on, nearest first."""
        seen, level, distance = {note_id}, [note_id], 0
        found: list[Ancestor] = []
        while level and len(found) < MOST_ANCESTORS:
            distance += 1
            inner: list[str] = []
            for each in level[:MOST_ANCESTORS]:
                await trio.lowlevel.checkpoint()
                for kin in self._lineage.sources(each)[:MOST_ANCESTORS]:
                    entry = self._catalogue.get(kin.id)
                    if kin.id in seen or entry is None:
                        continue
                    seen.add(kin.id)
                    inner.append(kin.id)
                    found.append(Ancestor(entry, distance, kin.via))
            level = inner
        return found[:MOST_ANCESTORS]

    async def _suspects(self, entries: Sequence[Entry]) -> list[Entry]:
        await self._lineage.settle()
        found: list[Entry] = []
        async for some in slices(entries, 100):
            found += [entry for entry in some if self._lineage.is_suspect(entry.note.id)]
        return found

    async def _counted(self) -> _Folders:
        """Return the current folders. Folders are counted again only after a note has changed."""
        graph = self._catalogue.graph
        while not graph.settle(1):
            await trio.lowlevel.checkpoint()
        stamp = (len(self._catalogue), graph.fingerprint)
        if self._folders.stamp != stamp:
            paths = [entry.path for entry in self._catalogue]
            self._folders = await self._blocking.run(lambda: _count(stamp, paths))
        return self._folders


def _read_aloud(sentence: str) -> str:
    """Return a Markdown sentence without markup. The cells of a table row are separated with dots."""
    text = plain_title(_LINE_MARKS.sub("", plain_passage(sentence), count=1))
    return text.rstrip("| ").replace(" | ", " · ")


def _count(stamp: tuple[int, int], paths: Iterable[str]) -> _Folders:
    direct = Counter(folder_of(path) for path in paths)
    below: Counter[str] = Counter()
    children: dict[str, set[str]] = {}
    for folder, notes in direct.items():
        if not folder:
            continue
        at = ""
        for part in folder.split("/"):
            inner = f"{at}{part}/"
            children.setdefault(at, set()).add(inner)
            below[inner] += notes
            at = inner
    ordered = {parent: sorted(some, key=str.casefold) for parent, some in children.items()}
    return _Folders(stamp, below, ordered)


def _passes(entry: Entry, request: BrowseRequest, now: datetime) -> bool:
    note, status = entry.note, request.status
    if (
        not entry.path.startswith(request.path_prefix)
        or request.author not in ("", note.author)
        or request.note_type not in ("", note.note_type)
        or request.namespace not in ("", entry.namespace)
    ):
        return False
    if status and status != "suspect":
        if status == "expired" and not note.is_stale(now):
            return False
        if status == "broken" and note.frontmatter_error is None:
            return False
        if status not in STATES and note.status != status:
            return False
    if request.tags and not has_tags(note.all_tags, request.tags):
        return False
    return not request.q or _is_named(entry, request.q.casefold())


def _is_named(entry: Entry, wanted: str) -> bool:
    note = entry.note
    return (
        wanted in note.title.casefold()
        or wanted in entry.path.casefold()
        or any(wanted in alias.casefold() for alias in note.aliases)
    )


def _rank(entry: Entry, wanted: str, starts: re.Pattern[str]) -> tuple[int, int]:
    """Return the sort rank of a name.

    An exact match comes first, then a match at the start of the name, then at the start of a word.

    Within each rank, titles come before aliases, and aliases before paths. Notes with shorter titles come
    first.
    """
    names = ((entry.note.title,), entry.note.aliases, (entry.path.removesuffix(".md"), entry.path))
    ranks = (
        kind + len(names) * _distance(name.casefold(), wanted, starts)
        for kind, of_kind in enumerate(names)
        for name in of_kind
    )
    return min(ranks), len(entry.note.title)


def _distance(name: str, wanted: str, starts: re.Pattern[str]) -> int:
    if name.startswith(wanted):
        return 0 if name == wanted else 1
    return 2 if starts.search(name) else 3


def _near(entries: Iterable[Entry], name: str) -> list[Entry]:
    wanted = _trigrams(name)
    scored: list[tuple[float, str, Entry]] = []
    for entry in entries:
        if not 0.4 <= (len(entry.note.title) + 2) / (len(name) + 2) <= 2.5:
            continue  # The title is too short or too long to be similar to the name.
        there = _trigrams(entry.note.title)
        alike = 2 * len(wanted & there) / (len(wanted) + len(there))
        if alike >= LEAST_ALIKE:
            scored.append((-alike, entry.path, entry))
    scored.sort(key=lambda each: each[:2])
    return [entry for _, _, entry in scored[:MOST_NEAR]]


def _trigrams(name: str) -> set[str]:
    text = f"  {name[:_COMPARED].casefold()} "
    return {text[place : place + 3] for place in range(len(text) - 2)}
