"""The catalogue: the in-memory index of all notes' metadata, by id, path, slug, URL, tag and serial.

Only the writer changes the catalogue (single writer). Services read the catalogue without locks, because the
data of a note changes without an `await` in between. Only the links of a note may be updated in several
steps. The note texts are not in the catalogue, but only in the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final

import attrs
from attrs import define, frozen

from lithos.kernel.values.errors import DocNotFound, InvalidInput
from lithos.kernel.values.ids import MOST_CANDIDATES, is_id, one_of_prefix, prefix_of
from lithos.notes.catalogue.conversation_turns import LONGEST, Turns
from lithos.notes.catalogue.facets import FacetFilter, FacetPage, Facets
from lithos.notes.catalogue.new_paths import path_to_make, prefix_as_spelled
from lithos.notes.catalogue.note_graph import NoteGraph, exhaust
from lithos.notes.catalogue.note_records import KeptEntities, NoteRecords
from lithos.notes.catalogue.relations import Multimap, Relations
from lithos.notes.catalogue.tag_counts import TagCounts
from lithos.notes.files.manifest import Entry as Entry  # noqa: PLC0414 - who asks for notes has it from here
from lithos.notes.files.values import FileState
from lithos.notes.format.document import derive_id
from lithos.notes.links.links import FileNames
from lithos.notes.model.copies import strong_originals
from lithos.notes.model.id_prefixes import SortedKeys
from lithos.notes.model.note import AssignedVersion, Note, not_ahead, with_creation
from lithos.notes.model.note_projects import DEFAULT_RULES, NoteProjects, ProjectRules
from lithos.notes.model.paths import folder_of, host_of
from lithos.text.words.analysis import name_key
from lithos.text.yaml.vault_style import PLAIN, VaultStyle

_HEXADECIMAL: Final = re.compile(r"[0-9a-f-]*")


@frozen
class SkippedFile:
    """A file that is not indexed, with its file state when it was last examined.

    `note_id` is the id of the indexed note that has the same id as this file. For a conflict copy, `copy`
    describes how the file relates to that note.
    """

    reason: str
    state: FileState
    note_id: str | None = None
    copy: ConflictCopy | None = None


@frozen
class ConflictCopy:
    """The losing version of a sync conflict, with the hash of its bytes. A sync program stored this version.

    `original` is the path of the note. `names_id` means that the file contains the id of its note. `is_weak`
    means that a person could also have chosen the file name. Lithos then does nothing with the copy until a
    person requests an action by its path.
    """

    digest: str
    original: str
    names_id: bool
    is_weak: bool = False


def _in_folder(slug: str, path: str) -> str:
    return f"{folder_of(path)}\0{slug}"


@define
class UniqueKeys(Multimap):
    """A unique index that tolerates duplicates. The first note that claims a key owns the key."""

    #: Number of duplicate claims, that is, of claims by notes that do not own the key.
    surplus: int = 0

    def owner(self, key: str) -> str | None:
        """Return the id of the note that owns the key."""
        return next(iter(self.of(key)), None)

    def add(self, key: str, note_id: str) -> None:
        """Record a note's claim to a key after all earlier claims."""
        self.surplus += key in self
        Multimap.add(self, key, note_id)

    def discard(self, key: str, note_id: str) -> None:
        """Remove a note's claim to a key. The next claimant then owns the key."""
        Multimap.discard(self, key, note_id)
        self.surplus -= key in self


class Catalogue:
    """All notes with the note graph and indexes by id, path, slug, URL, tag and serial."""

    def __init__(
        self,
        records: NoteRecords | None = None,
        style: VaultStyle = PLAIN,
        projects: ProjectRules = DEFAULT_RULES,
    ) -> None:
        #: The vault's rules for reading and writing notes.
        self.style = style
        #: Persistent facts that are not in the files: versions, and the ids of files that do not contain an
        #: id.
        self.records = records if records is not None else NoteRecords()
        self._by_id: dict[str, Entry] = {}
        self._ids = SortedKeys()
        self._by_serial: dict[int, str] = {}
        self._by_path: dict[str, str] = {}
        #: Note ids by `name_key`, the key that all spellings of a path share.
        self._by_spelling = Multimap()
        #: Ids of notes whose file names look like conflict copies, by the path of the original note.
        self._named_copies = Multimap()
        #: Ids of notes whose files contain no id, by content hash. The hash identifies a moved file.
        self._nameless = Multimap()
        self.slugs = UniqueKeys()
        #: Slugs with their folders. They are used if titles must be unique only within a folder.
        self._folder_slugs = UniqueKeys()
        self.urls = UniqueKeys()
        #: Notes by the host name in their source URL.
        self.sites = Multimap()
        self.tags = TagCounts()
        #: Index of the notes by the values that list filters use, in listing order.
        self.facets = Facets(projects)
        #: Note ids that contain characters other than those of a UUID. Most vaults have few or no such ids.
        self._own_ids: set[str] = set()
        #: Notes by the `id` property (as text) that a person wrote into the file.
        self._foreign_ids = Multimap()
        #: Ids of the notes whose frontmatter cannot be parsed.
        self.broken: set[str] = set()
        #: All files in the vault that are not notes. Links may lead to these files.
        self.files = FileNames()
        #: Links and provenance. Every change of a note updates them at once.
        self.graph = NoteGraph(self.files, by_file_name=style.is_foreign)
        #: The turns of conversations, in chronological order.
        self.turns = Turns()
        #: Lineage, successors, quarantines and contradictions. Every change of a note or typed edge updates
        #: them at once.
        self.relations = Relations()
        #: Entities that extraction found in notes. They are not stored in the notes' files.
        self.entities = KeptEntities()
        #: Files that are not indexed, with the reason: unreadable files, and files whose id another file
        #: already has. See `skip`.
        self.skipped: dict[str, SkippedFile] = {}
        #: Paths of files that have the same id as an indexed note, by that id.
        self.doubles: dict[str, set[str]] = {}
        #: Callbacks that receive the serial number of each removed note and delete its data elsewhere.
        self.when_removed: list[Callable[[int], None]] = []  # bounded: fixed when the server starts
        self._next_serial = 1

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries in the order of first indexing."""
        return iter(list(map(self._by_id.__getitem__, self._by_serial.values())))

    @property
    def projects(self) -> NoteProjects:
        """Return the projects of the notes."""
        return self.facets.projects

    def like(self, records: NoteRecords | None = None) -> Catalogue:
        """Return an empty catalogue with the same rules."""
        return Catalogue(records, self.style, self.projects.rules)

    def serials(self) -> list[int]:
        """Return all serial numbers in the order of first indexing.

        Reading only the serial numbers takes 1 % of the time that reading all entries takes.

        Use this with `at_serials` in loops that run in steps. Building a list of a million entries would
        block the event loop.
        """
        return list(self._by_serial)

    def __contains__(self, note_id: str) -> bool:
        return note_id in self._by_id

    def get(self, note_id: str) -> Entry | None:
        """Return the note with this id."""
        return self._by_id.get(note_id)

    def title(self, note_id: str) -> str | None:
        """Return the title of a note, or None if the note does not exist."""
        entry = self._by_id.get(note_id)
        return None if entry is None else entry.note.title

    def require(self, note_id: str) -> Entry:
        """Return the entry of a note. Raises `DocNotFound` if the note does not exist."""
        entry = self._by_id.get(note_id)
        if entry is None:
            raise DocNotFound(
                f"Unknown note id {note_id[:100]!r}. Find the note with lithos_search or lithos_list."
            )
        return entry

    def identify(self, text: str) -> str:
        """Return the id of the note that has this text as its `id` property or as the beginning of its id.

        If there is no such note, return the text. A whole id comes first, then a property.

        Raises `InvalidInput` if several notes have this property, and `AmbiguousIdPrefix`.
        """
        if text in self._by_id:
            return text
        found = sorted(self._foreign_ids.of(text.strip()))
        if len(found) > 1:
            raise InvalidInput(
                f"{len(found)} notes have the property id {text[:100]!r}, which is not a Lithos id. Name the "
                'note by its path, or by the id that lithos_list with metadata_match {"id": ...} shows.'
            )
        return found[0] if found else (self._starting(text) or text)

    def _starting(self, text: str) -> str | None:
        prefix = None if is_id(text) else prefix_of(text)
        if prefix is None:
            return None
        ids = self._ids.starting(prefix, MOST_CANDIDATES + 1)
        return one_of_prefix(prefix, "note", {each: self._by_id[each].note.title for each in ids})

    def at_path(self, path: str) -> Entry | None:
        """Return the note at this path, or None if no note is there."""
        note_id = self._by_path.get(path)
        return None if note_id is None else self._by_id[note_id]

    def spelled(self, path: str) -> Entry | None:
        """Return the note at this path.

        If no note is at `path`, return the only note whose path differs just in case or Unicode form.
        """
        entry = self.at_path(path)
        if entry is None:
            others = self._by_spelling.of(name_key(path))
            entry = self._by_id[next(iter(others))] if len(others) == 1 else None
        return entry

    def holder(self, path: str, but: str | None = None) -> Entry | None:
        """Return the note at any spelling of this path. The note with the id `but` is ignored."""
        entry = self.at_path(path)
        if entry is not None and entry.note.id != but:
            return entry
        ids = self._by_spelling.of(name_key(path))
        return next((self._by_id[each] for each in ids if each != but), None)

    def path_to_make(self, path: str) -> str:
        """Return the path for a new note at `path`. Raise `InvalidInput` like `new_paths.path_to_make`."""
        return path_to_make(path, self.facets.folders)

    def prefix_as_spelled(self, prefix: str) -> str:
        """Return the path prefix of a filter, with its folder names spelled like the existing folders."""
        return prefix_as_spelled(prefix, self.facets.folders)

    def at_serial(self, serial: int) -> Entry | None:
        """Return the note with this serial number."""
        note_id = self._by_serial.get(serial)
        return None if note_id is None else self._by_id[note_id]

    def page(self, wanted: FacetFilter, offset: int = 0, limit: int | None = None) -> FacetPage:
        """Return the matching notes in the order of first indexing, starting at `offset`."""
        return self.facets.page(wanted, lambda serial: self._at(serial).path, offset, limit)

    def titled(self, block: int, wanted: str) -> Sequence[int]:
        """Return the serial numbers of the notes of a block (`facets.blocks`) whose titles contain a folded
        text.
        """
        return self.facets.titled(block, wanted, lambda serial: self._at(serial).note.title)

    def _at(self, serial: int) -> Entry:
        return self._by_id[self._by_serial[serial]]

    def named_in(self, text: str) -> dict[int, str]:
        """Return the notes whose title or alias occurs in a text.

        The keys are serial numbers, the values the matched names.
        """
        return {self._by_id[note_id].serial: name for note_id, name in self.graph.named_in(text).items()}

    def at_serials(self, serials: Iterable[int]) -> list[Entry]:
        """Return the existing notes with these serial numbers."""
        ids = map(self._by_serial.get, serials)
        return [self._by_id[note_id] for note_id in ids if note_id is not None]

    def may_begin(self, prefix: str) -> Iterator[Entry]:
        """Yield the notes whose lower-case ids may begin with this text, in listing order.

        If the text consists of hexadecimal digits and hyphens, all notes are yielded. Otherwise, only notes
        are yielded whose ids have other characters than UUIDs.
        """
        if _HEXADECIMAL.fullmatch(prefix):
            return iter(self)
        own = map(self._by_id.__getitem__, self._own_ids)
        return iter(sorted(own, key=lambda entry: self.facets.place_of(entry.serial)))

    def nameless(self, digest: str) -> list[Entry]:
        """Return the notes with this content hash whose files contain no id."""
        return [self._by_id[note_id] for note_id in self._nameless.of(digest)]

    def slug_owner(self, slug: str, path: str) -> str | None:
        """Return the id of the note that already has this slug. A note at `path` therefore cannot use it."""
        if self.style.is_foreign:
            return self._folder_slugs.owner(_in_folder(slug, path))
        return self.slugs.owner(slug)

    @property
    def surplus_slugs(self) -> int:
        """Return the number of notes whose slug belongs to an earlier note."""
        return (self._folder_slugs if self.style.is_foreign else self.slugs).surplus

    def see_version(self, note_id: str, digest: str, own: int) -> int:
        """Assign the effective version to the bytes read for a note, and return it.

        `own` is the version in the file itself.

        The caller must persist the version (`records.save`) before any reader sees it.
        """
        entry = self._by_id.get(note_id)
        return self.records.see(note_id, digest, own, entry.standing if entry else None)

    def standing(self, note_id: str) -> AssignedVersion | None:
        """Return the newest version assigned to a note, with the hash of its bytes."""
        entry = self._by_id.get(note_id)
        return self.records.version(note_id) or (entry.standing if entry else None)

    def with_creation(self, note: Note, modified_at: datetime) -> Note:
        """Return the note with its known creation time. `modified_at` is the mtime of the note's file.

        If the note has changed or is about to change, the creation time is recorded, because the mtime of the
        file will no longer show the creation time.
        """
        entry = self._by_id.get(note.id)
        known = self.records.creation(note.id), entry.note.created_at if entry else None
        dated = with_creation(note, modified_at, *known)
        if note.created_at == modified_at and any(known):
            self.records.put_creation(note.id, dated.created_at)
        return dated

    def to_update(self, note: Note, modified_at: datetime, now: datetime) -> Note:
        """Return the note as the starting point of an update. `modified_at` is the mtime of the note's file.

        If the update writes the creation time to the file, the known creation time is used.
        """
        entry = self._by_id.get(note.id)
        style = self.style if entry is None else self.style.at(entry.path)
        dated = note if style.minimal_frontmatter else self.with_creation(note, modified_at)
        return not_ahead(dated, modified_at, now)

    def stand_in(self, path: str) -> str | None:
        """Return the recorded id of a file that does not contain an id.

        Return None if the id is derived from the path.
        """
        note_id = self._by_path.get(path)
        return note_id if note_id is not None else self.records.id_at(path)

    def stamps(self) -> dict[int, int]:
        """Return the content that every index should have. The keys are serial numbers, the values stamps."""
        return {entry.serial: entry.stamp for entry in self._by_id.values()}

    def take_serial(self) -> int:
        """Allocate a serial number that was never used before."""
        self._next_serial += 1
        return self._next_serial - 1

    def reserve_serials(self, beyond: int) -> None:
        """Never allocate serial numbers up to and including `beyond`."""
        self._next_serial = max(self._next_serial, beyond + 1)

    def load(self, entries: Iterable[Entry]) -> None:
        """Fill an empty catalogue with entries. This is faster than adding entries one by one.

        Notes claim unique keys in path order. The listing is in serial order.
        """
        ordered = sorted(entries, key=attrgetter("path"))
        for entry in ordered:
            self._claim(entry)
        listed = sorted(ordered, key=attrgetter("serial"))
        self._by_serial.update((entry.serial, entry.note.id) for entry in listed)
        self.facets.load((entry.serial, entry.path, entry.note) for entry in listed)
        self._ids.load(self._by_id)
        self.reserve_serials(listed[-1].serial if listed else 0)
        self.graph.load(ordered)

    def take_over(self, filled: Catalogue) -> None:
        """Take over all contents of another catalogue in one step. This catalogue must not have links yet.

        The records, graph, relations and entities of this catalogue remain the same objects, because other
        components refer to them. `filled` must not have entities, and must not be used afterwards.
        """
        self.records.take_over(filled.records)
        self.graph.take_over(filled.graph)
        self.show(filled)

    def show(self, filled: Catalogue) -> None:
        """Show the notes of another catalogue until `take_over` is called.

        The links and records of the other catalogue are not shown.
        """
        self.relations.take_over(filled.relations)
        own = ("records", "graph", "relations", "entities", "when_removed")
        vars(self).update(vars(filled) | {name: vars(self)[name] for name in own})

    def adopt(self, filled: Catalogue) -> None:
        """Take over the notes of another catalogue without loading them again.

        The catalogue that takes over the notes must be empty.
        """
        own = ("records", "graph", "entities", "files", "skipped", "doubles", "when_removed")
        vars(self).update(vars(filled) | {name: vars(self)[name] for name in own})
        self.graph.load(sorted(self._by_id.values(), key=attrgetter("path")))

    def put(self, entry: Entry) -> None:
        """Insert or replace a note. A replaced note keeps its position in the listing."""
        exhaust(self.put_in_steps(entry))

    def put_in_steps(self, entry: Entry) -> Iterator[None]:
        """Insert or replace a note in steps: first the note, then its links.

        No other change may run in between.
        """
        old = self._by_id.get(entry.note.id)
        if old is not None and old.serial == entry.serial:
            self._replace(old, entry)
        else:
            if old is not None:
                yield from self.remove_in_steps(old.note.id)
            self._claim(entry)
            self._ids.add(entry.note.id)
            self._by_serial[entry.serial] = entry.note.id
            self.facets.add(entry.serial, entry.path, entry.note)
        yield from self.graph.put_in_steps(entry)

    def see_file(self, path: str, *, is_there: bool) -> None:
        """Record that a file that is not a note has appeared or vanished."""
        if self.files.add(path) if is_there else self.files.discard(path):
            self.graph.see_file(path)

    def skip(self, path: str, skipped: SkippedFile) -> None:
        """Record that a file is not indexed, with the reason."""
        self.unskip(path)
        self.skipped[path] = skipped
        if skipped.note_id is not None:
            self.doubles.setdefault(skipped.note_id, set()).add(path)

    def unskip(self, path: str) -> None:
        """Delete the record of a skipped file, because the file is now indexed or deleted."""
        skipped = self.skipped.pop(path, None)
        if skipped is not None and skipped.note_id is not None:
            paths = self.doubles[skipped.note_id]
            paths.remove(path)
            if not paths:
                del self.doubles[skipped.note_id]

    def named_copies(self, original: str) -> list[Entry]:
        """Return the notes whose file names are unmistakably those of conflict copies of `original`."""
        return [self._by_id[note_id] for note_id in self._named_copies.of(original)]

    def copies_of(self, note_id: str) -> list[tuple[str, ConflictCopy]]:
        """Return the conflict copies of a note, sorted by path."""
        paths = self.doubles.get(note_id, ())
        found = ((path, self.skipped[path].copy) for path in paths)
        return sorted((path, copy) for path, copy in found if copy is not None)

    def copy_paths_of(self, note_id: str) -> list[str]:
        """Return the paths of a note's conflict copies."""
        return [path for path, _ in self.copies_of(note_id)]

    def copied(self) -> Iterator[tuple[str, str, ConflictCopy]]:
        """Yield every conflict copy with its note id and path."""
        for note_id, paths in sorted(self.doubles.items()):
            for path in sorted(paths):
                copy = self.skipped[path].copy
                if copy is not None:
                    yield note_id, path, copy

    def duplicates_of(self, note_id: str) -> list[str]:
        """Return the paths of files that have the id of a note but are not its conflict copies."""
        return sorted(path for path in self.doubles.get(note_id, ()) if self.skipped[path].copy is None)

    def note_state(self, note_id: str, state: FileState) -> None:
        """Update the file state (size, mtime) of a note whose bytes are unchanged."""
        entry = self._by_id[note_id]
        self._by_id[note_id] = attrs.evolve(entry, state=state)

    def remove(self, note_id: str) -> Entry | None:
        """Remove a note and return its entry, or None if the note does not exist."""
        entry = self._by_id.get(note_id)
        exhaust(self.remove_in_steps(note_id))
        return entry

    def remove_in_steps(self, note_id: str) -> Iterator[None]:
        """Remove a note in steps: first the note, then its links. No other change may run in between."""
        entry = self._by_id.pop(note_id, None)
        if entry is not None:
            self._release(entry)
            self.records.leave(entry.path, note_id)
            self.records.drop_version(note_id)
            self.records.drop_creation(note_id)
            del self._by_serial[entry.serial]
            self._ids.discard(note_id)
            self.facets.discard(entry.serial, entry.path, entry.note)
            for forget in self.when_removed:
                forget(entry.serial)
            yield from self.graph.remove_in_steps(note_id)

    def _claim(self, entry: Entry) -> None:
        note = entry.note
        self._by_id[note.id] = entry
        self._by_path[entry.path] = note.id
        self._by_spelling.add(name_key(entry.path), note.id)
        self._claim_slug(entry)
        self._claim_url(note)
        self.tags.add(note.all_tags)
        if not _HEXADECIMAL.fullmatch(note.id.lower()):
            self._own_ids.add(note.id)
        self._mark(note)
        self._claim_foreign_id(note)
        self.relations.enter(note)
        self.turns.enter(entry)
        self._claim_name(entry)
        for original in strong_originals(entry.path):
            self._named_copies.add(original, note.id)

    def _release(self, entry: Entry) -> None:
        note = entry.note
        if self._by_path.get(entry.path) == note.id:
            del self._by_path[entry.path]
        self._by_spelling.discard(name_key(entry.path), note.id)
        self._release_slug(entry)
        self._release_url(note)
        self.tags.discard(note.all_tags)
        self.broken.discard(note.id)
        self._own_ids.discard(note.id)
        self._release_foreign_id(note)
        self.relations.leave(note)
        self.turns.leave(entry.serial)
        self._release_name(entry)
        for original in strong_originals(entry.path):
            self._named_copies.discard(original, note.id)

    def _replace(self, old: Entry, new: Entry) -> None:
        """Replace an entry.

        Unchanged claims are not removed, so that the note keeps its rank among the claimants.
        """
        note_id = new.note.id
        self._by_id[note_id] = new
        self.facets.replace(old.serial, (old.path, old.note), (new.path, new.note))
        if old.path != new.path:
            if self._by_path.get(old.path) == note_id:  # another note may already be at this path
                del self._by_path[old.path]
            self._by_path[new.path] = note_id
            self._by_spelling.discard(name_key(old.path), note_id)
            self._by_spelling.add(name_key(new.path), note_id)
            self.records.leave(old.path, note_id)
            self.records.move_own(old.path, new.path)
            for original in strong_originals(old.path):
                self._named_copies.discard(original, note_id)
            for original in strong_originals(new.path):
                self._named_copies.add(original, note_id)
        if (old.slug, folder_of(old.path)) != (new.slug, folder_of(new.path)):
            self._release_slug(old, but=new.slug)
            self._claim_slug(new, but=old.slug)
        if old.note.source_url != new.note.source_url:
            self._release_url(old.note)
            self._claim_url(new.note)
        self.tags.discard(old.note.all_tags)
        self.tags.add(new.note.all_tags)
        self._mark(new.note)
        if old.note.extra.get("id") != new.note.extra.get("id"):
            self._release_foreign_id(old.note)
            self._claim_foreign_id(new.note)
        self.relations.replace(old.note, new.note)
        if (old.note.title, old.path, old.state.size > LONGEST) != (
            new.note.title,
            new.path,
            new.state.size > LONGEST,
        ):
            self.turns.leave(old.serial)
            self.turns.enter(new)
        self._release_name(old)
        self._claim_name(new)

    def _claim_name(self, entry: Entry) -> None:
        """Index a file without an id by its content hash, and record the id of its note."""
        note_id = entry.note.id
        if entry.identified:
            self.records.place(entry.path, None)
            return
        self._nameless.add(entry.digest, note_id)
        self.records.place(entry.path, None if derive_id(entry.path) == note_id else note_id)

    def _release_name(self, entry: Entry) -> None:
        if not entry.identified:
            self._nameless.discard(entry.digest, entry.note.id)

    def _claim_slug(self, entry: Entry, but: str | None = None) -> None:
        """Claim the slug of an entry unless the slug is `but`.

        In foreign vaults, also claim the slug within the folder.
        """
        if entry.slug != but:
            self.slugs.add(entry.slug, entry.note.id)
        if self.style.is_foreign:
            self._folder_slugs.add(_in_folder(entry.slug, entry.path), entry.note.id)

    def _release_slug(self, entry: Entry, but: str | None = None) -> None:
        if entry.slug != but:
            self.slugs.discard(entry.slug, entry.note.id)
        if self.style.is_foreign:
            self._folder_slugs.discard(_in_folder(entry.slug, entry.path), entry.note.id)

    def _claim_url(self, note: Note) -> None:
        if note.source_url:
            self.urls.add(note.source_url, note.id)
            self.sites.add(host_of(note.source_url), note.id)

    def _release_url(self, note: Note) -> None:
        if note.source_url:
            self.urls.discard(note.source_url, note.id)
            self.sites.discard(host_of(note.source_url), note.id)

    def _claim_foreign_id(self, note: Note) -> None:
        if (own := note.own_id) is not None:
            self._foreign_ids.add(own, note.id)

    def _release_foreign_id(self, note: Note) -> None:
        if (own := note.own_id) is not None:
            self._foreign_ids.discard(own, note.id)

    def _mark(self, note: Note) -> None:
        if note.frontmatter_error is None:
            self.broken.discard(note.id)
        else:
            self.broken.add(note.id)
