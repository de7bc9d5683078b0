"""The catalogue: what Lithos knows of every note, in memory.

The writer owns it and is the only one to change it; services read it directly, since nothing
awaits between two of its changes. The note texts stay in the files.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property

import attrs
from attrs import frozen

from lithos.actors.graph import NoteGraph
from lithos.core.model import Note
from lithos.core.paths import namespace_of, slug_of
from lithos.core.urls import host_of
from lithos.stores.files import FileState
from lithos.stores.manifest import ManifestRow


@frozen
class Entry:
    """One note: its number in the indexes, its file, and what is written there.

    `digest` is the hash of the file's bytes, `identified` tells whether the file carries its own
    id, `links` are the targets of the wiki-links in its body.
    """

    serial: int
    path: str
    note: Note
    digest: str
    state: FileState
    identified: bool
    links: tuple[str, ...] = ()

    @cached_property
    def stamp(self) -> int:
        """63 bits that change with anything an index holds of the note: its path or its bytes."""
        content = hashlib.blake2b(f"{self.path}\0{self.digest}".encode(), digest_size=8)
        return int.from_bytes(content.digest()) >> 1

    @cached_property
    def slug(self) -> str:
        """The slug of its title."""
        return slug_of(self.note.title, self.note.id)

    @cached_property
    def namespace(self) -> str:
        """Explicit, or that of its folder."""
        return namespace_of(self.path, self.note.namespace)

    def to_row(self) -> ManifestRow:
        """The entry as the manifest keeps it."""
        return ManifestRow(
            self.path, self.serial, self.state, self.digest, self.identified, self.note, self.links
        )


@frozen
class Skipped:
    """A file that is not indexed, and the state it was seen in; `note_id` when another file has its id."""

    reason: str
    state: FileState
    note_id: str | None = None


def entry_of(row: ManifestRow) -> Entry:
    """The entry a manifest row describes."""
    return Entry(row.serial, row.path, row.note, row.digest, row.state, row.identified, row.links)


def digest_of(data: bytes) -> str:
    """The hash by which a file's content is known: 128 bits of BLAKE2b in hex."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Claims:
    """Who wants a key that only one note may have; the first to come has it."""

    def __init__(self) -> None:
        self._claimants: dict[str, list[str]] = {}
        #: How many claims lost.
        self.surplus = 0

    def owner(self, key: str) -> str | None:
        """The id of the note that has the key."""
        claimants = self._claimants.get(key)
        return claimants[0] if claimants else None

    def add(self, key: str, note_id: str) -> None:
        """Claim a key."""
        claimants = self._claimants.setdefault(key, [])
        if claimants:
            self.surplus += 1
        claimants.append(note_id)

    def discard(self, key: str, note_id: str) -> None:
        """Give a claim up; the next in line gets the key."""
        claimants = self._claimants[key]
        claimants.remove(note_id)
        if claimants:
            self.surplus -= 1
        else:
            del self._claimants[key]


class Sites:
    """Which notes are from which web site."""

    def __init__(self) -> None:
        self._ids_by_host: dict[str, dict[str, None]] = {}

    def at(self, host: str) -> list[str]:
        """The ids of the notes whose source has this host."""
        return list(self._ids_by_host.get(host, ()))

    def add(self, url: str, note_id: str) -> None:
        """A note is from this address."""
        self._ids_by_host.setdefault(host_of(url), {})[note_id] = None

    def discard(self, url: str, note_id: str) -> None:
        """It is no more."""
        ids = self._ids_by_host[host_of(url)]
        del ids[note_id]
        if not ids:
            del self._ids_by_host[host_of(url)]


class Catalogue:
    """All notes by id, path, slug, URL, tag and number."""

    def __init__(self) -> None:
        self._by_id: dict[str, Entry] = {}
        self._by_serial: dict[int, str] = {}
        self._by_path: dict[str, str] = {}
        self.slugs = Claims()
        self.urls = Claims()
        self.sites = Sites()
        self.tags: Counter[str] = Counter()
        #: Links and provenance, always as current as the notes.
        self.graph = NoteGraph()
        #: Files that are not indexed, and why: unreadable ones and second files of one id.
        self.skipped: dict[str, Skipped] = {}
        self._next_serial = 1

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Entry]:
        """Entries in the order of first indexing."""
        return iter(list(map(self._by_id.__getitem__, self._by_serial.values())))

    def __contains__(self, note_id: str) -> bool:
        return note_id in self._by_id

    def get(self, note_id: str) -> Entry | None:
        """The note with this id."""
        return self._by_id.get(note_id)

    def at_path(self, path: str) -> Entry | None:
        """The note in this file."""
        note_id = self._by_path.get(path)
        return None if note_id is None else self._by_id[note_id]

    def at_serial(self, serial: int) -> Entry | None:
        """The note with this number in the indexes."""
        note_id = self._by_serial.get(serial)
        return None if note_id is None else self._by_id[note_id]

    def stamps(self) -> dict[int, int]:
        """What every index should hold: number to stamp."""
        return {entry.serial: entry.stamp for entry in self._by_id.values()}

    def take_serial(self) -> int:
        """A number no note has had."""
        self._next_serial += 1
        return self._next_serial - 1

    def reserve_serials(self, beyond: int) -> None:
        """Never hand out numbers up to `beyond`."""
        self._next_serial = max(self._next_serial, beyond + 1)

    def load(self, entries: Iterable[Entry]) -> None:
        """Add many entries: claims in path order, listing in the order of their numbers."""
        ordered = sorted(entries, key=lambda entry: entry.path)
        for entry in ordered:
            self._claim(entry)
        for entry in sorted(ordered, key=lambda entry: entry.serial):
            self._by_serial[entry.serial] = entry.note.id
            self.reserve_serials(entry.serial)
        self.graph.load(ordered)

    def put(self, entry: Entry) -> None:
        """Add a note or replace what was known of it; it keeps its place in the listing."""
        old = self._by_id.get(entry.note.id)
        if old is not None and old.serial == entry.serial:
            self._replace(old, entry)
        else:
            if old is not None:
                self.remove(old.note.id)
            self._claim(entry)
            self._by_serial[entry.serial] = entry.note.id
        self.graph.put(entry)

    def note_state(self, note_id: str, state: FileState) -> None:
        """The file was touched, not changed."""
        entry = self._by_id[note_id]
        self._by_id[note_id] = attrs.evolve(entry, state=state)

    def remove(self, note_id: str) -> Entry | None:
        """Forget a note; what was known of it."""
        entry = self._by_id.pop(note_id, None)
        if entry is None:
            return None
        self._release(entry)
        del self._by_serial[entry.serial]
        self.graph.remove(note_id)
        return entry

    def _claim(self, entry: Entry) -> None:
        note = entry.note
        self._by_id[note.id] = entry
        self._by_path[entry.path] = note.id
        self.slugs.add(entry.slug, note.id)
        if note.source_url:
            self._claim_url(note.source_url, note.id)
        self.tags.update(set(note.tags))

    def _release(self, entry: Entry) -> None:
        note = entry.note
        if self._by_path.get(entry.path) == note.id:
            del self._by_path[entry.path]
        self.slugs.discard(entry.slug, note.id)
        if note.source_url:
            self._release_url(note.source_url, note.id)
        self._drop_tags(note)

    def _replace(self, old: Entry, new: Entry) -> None:
        """Swap entries, keeping claims that did not change: a note must not lose its place in line."""
        note_id = new.note.id
        self._by_id[note_id] = new
        if old.path != new.path:
            if self._by_path.get(old.path) == note_id:  # another note may have the file by now
                del self._by_path[old.path]
            self._by_path[new.path] = note_id
        if old.slug != new.slug:
            self.slugs.discard(old.slug, note_id)
            self.slugs.add(new.slug, note_id)
        if old.note.source_url != new.note.source_url:
            if old.note.source_url:
                self._release_url(old.note.source_url, note_id)
            if new.note.source_url:
                self._claim_url(new.note.source_url, note_id)
        self._drop_tags(old.note)
        self.tags.update(set(new.note.tags))

    def _claim_url(self, url: str, note_id: str) -> None:
        self.urls.add(url, note_id)
        self.sites.add(url, note_id)

    def _release_url(self, url: str, note_id: str) -> None:
        self.urls.discard(url, note_id)
        self.sites.discard(url, note_id)

    def _drop_tags(self, note: Note) -> None:
        for tag in set(note.tags):
            self.tags[tag] -= 1
            if not self.tags[tag]:
                del self.tags[tag]
