"""The graph of notes: resolved wiki-links with backlinks, and provenance (`derived_from_ids`).

The catalogue owns the graph and reports every change at once, so readers see all written notes. Updates are
incremental: after a change of a note, only the link targets that contain one of its names are resolved again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import trio
from attrs import define, frozen

from lithos.kernel.values.multiset import Multiset, count, total, with_count
from lithos.notes.catalogue.index_links import LinkGraph, Node, Placeholder
from lithos.notes.catalogue.relations import Multimap
from lithos.notes.files.manifest import Entry
from lithos.notes.links.links import (
    FileNames,
    Key,
    LinkTable,
    file_alias,
    file_key,
    named_file,
    names_of,
    note_keys,
    target_names,
)
from lithos.text.words.names import name_spans

T = TypeVar("T")
_FINGERPRINTS = 1 << 64
#: Number of notes, or of link targets, that one step of `load` processes.
_AT_ONCE = 100
#: Number of links that one step processes, which takes about five milliseconds.
_LINKS_AT_ONCE = 300
#: Maximum number of notes that may share a name. If more notes have a name, the name in a text does not match
#: any of them.
NAMESAKES = 8


@frozen
class LinkCounts:
    """The size of the link graph.

    Nodes include placeholders. Repeated unresolved links are counted repeatedly.

    A link to a vault file that is not a note does not count as unresolved.
    """

    nodes: int
    edges: int
    unresolved: int


@frozen
class Resolved:
    """All link targets of the notes that `fingerprint` identifies.

    Each target has the id of its note, or None.
    """

    fingerprint: int
    targets: Mapping[str, str | None]


@define
class _Target:
    """A link target with the note that it resolves to.

    The object also counts how often each source note contains the target.

    `is_file` means that the target leads to a vault file that is not a note.
    """

    found: str | None
    is_file: bool = False
    sources: Multiset[str] = ()

    @property
    def is_broken(self) -> bool:
        return self.found is None and not self.is_file


def exhaust(steps: Iterator[None]) -> None:
    """Run all steps at once."""
    for _ in steps:
        pass


async def take_turns(steps: Iterator[None]) -> None:
    """Run steps with a Trio checkpoint after each step, so that other tasks can run.

    If the task is cancelled, the remaining steps run first.
    """
    try:
        for _ in steps:
            await trio.lowlevel.checkpoint()
    finally:
        exhaust(steps)


def batched(items: Iterable[T], most: int) -> Iterator[list[T]]:
    """Yield the items in lists of up to `most` items."""
    waiting = iter(items)
    while some := list(islice(waiting, most)):
        yield some


class NoteGraph:
    """The link graph and provenance graph of all notes, with lazy loading and incremental updates."""

    def __init__(self, files: FileNames | None = None, *, by_file_name: bool = False) -> None:
        """Create an empty graph. `files` are the vault files that are not notes.

        If `by_file_name` is set, the file name of a note counts as an alias of the note.
        """
        self._files = FileNames() if files is None else files
        self._by_file_name = by_file_name
        self._links = LinkGraph()
        self._provenance = LinkGraph()
        self._fingerprint = 0
        self._table = LinkTable()
        self._notes: dict[str, Entry] = {}
        self._targets: dict[str, _Target] = {}
        #: Link targets by their reduced name, which is equal for all kinds of keys. If the name of a note
        #: changes, these targets may lead to another note.
        self._interested = Multimap()
        self._unresolved = 0
        #: The remaining steps of `load`.
        self._loading: Iterator[None] = iter(())

    def __contains__(self, note_id: str) -> bool:
        return note_id in self._notes

    @property
    def links(self) -> LinkGraph:
        """The link graph. Its nodes are notes and placeholders for unresolved targets."""
        self.settle()
        return self._links

    @property
    def provenance(self) -> LinkGraph:
        """The provenance graph. Its edges lead from a note to its sources. A source may not exist."""
        self.settle()
        return self._provenance

    @property
    def fingerprint(self) -> int:
        """Return the checksum of all notes."""
        self.settle()
        return self._fingerprint

    def resolve(self, target: str) -> str | None:
        """Return the id of the note to which `[[target]]` leads, or None if no note matches."""
        self.settle()
        return self._table.resolve(target)

    def named_in(self, text: str) -> dict[str, str]:
        """Return the notes whose title or alias occurs in a text.

        The keys are note ids, the values the longest matches.

        Shortly after a start, the result is empty until all notes are loaded.
        """
        text, spans = name_spans(text)
        return self._table.named_in(text, spans, NAMESAKES) if spans and self.settle(0) else {}

    def resolve_if_moved(self, target: str, moved: Entry, keys: frozenset[Key]) -> str | None:
        """Return the id of the note to which a target would lead if the note `moved` had these keys."""
        return self._table.resolve_if_moved(target, moved.note.id, moved.path, keys)

    def written_like(self, keys: Iterable[Key]) -> set[str]:
        """Return the link targets whose resolution may depend on a note with one of these keys."""
        self.settle()
        return {name for key in names_of(keys) for name in self._interested.of(key)}

    def writers_of(self, target: str) -> Iterable[str]:
        """Return the ids of the notes that contain a link target.

        The result is empty if only canvases contain the target.
        """
        known = self._targets.get(target)
        return () if known is None else known.sources

    def broken_targets(self) -> list[str]:
        """Return the link targets that do not match a note or file."""
        self.settle()
        return [name for name, target in self._targets.items() if target.is_broken and target.sources]

    def counts(self) -> LinkCounts:
        """Return the size of the link graph, in constant time."""
        return LinkCounts(self.links.node_count, self.links.edge_count, self._unresolved)

    def resolved(self) -> Resolved:
        """Return a copy of all resolved link targets."""
        self.settle()
        return Resolved(self._fingerprint, {name: each.found for name, each in self._targets.items()})

    def see_file(self, path: str) -> None:
        """Update the link counts for a file that has just appeared or vanished and is not a note."""
        self.settle()
        for key in names_of((("path", path.rpartition("/")[2]),)):
            for name in self._interested.of(key):
                target = self._targets[name]
                was = target.is_broken
                target.is_file = target.found is None and name in self._files
                self._unresolved += total(target.sources) * (target.is_broken - was)

    def sources_of_file(self, path: str) -> set[str]:
        """Return the ids of the notes that link to or embed a file that is not a note.

        Links are compared by file name alone, in any folder.
        """
        self.settle()
        found: set[str] = set()
        for key in names_of((("path", path.rpartition("/")[2]),)):
            for name in self._interested.of(key):
                if self._targets[name].is_file and named_file(name) == file_key(path):
                    found.update(self._targets[name].sources)
        return found

    def load(self, notes: Sequence[Entry]) -> None:
        """Fill an empty graph lazily. The next query or change completes the load first."""
        self._notes = {note.note.id: note for note in notes}
        self._loading = self._load(notes)

    def take_over(self, loaded: NoteGraph) -> None:
        """Take over the notes and other files of another graph, loaded lazily. This graph must be empty."""
        self._files, self._notes = loaded._files, loaded._notes
        self._loading = self._load(list(self._notes.values()))

    def settle(self, most: int | None = None) -> bool:
        """Continue a lazy `load` by at most `most` steps. A step takes one or two milliseconds.

        Returns True once the `load` is complete.

        The caller can let the event loop run between two calls.
        """
        for _ in self._loading if most is None else islice(self._loading, most):
            pass
        return next(self._loading, self) is self

    def _load(self, notes: Sequence[Entry]) -> Iterator[None]:
        """Enter notes in steps of one or two milliseconds. Yields after each step."""
        for part in batched(notes, _AT_ONCE):
            for note in part:
                self._fingerprint = (self._fingerprint + note.stamp) % _FINGERPRINTS
                self._table.add_keys(note.note.id, note.path, self.keys_of(note))
                self._links.add(note.note.id)
            yield
        for part in batched(notes, _AT_ONCE):
            for pairs in batched(self._written_by(part), _LINKS_AT_ONCE):
                for start, end in pairs:
                    self._links.link(start, end)
                yield
            for note in part:
                if note.note.derived_from_ids:
                    self._derive(note.note.id, (), note.note.derived_from_ids)
            yield
        for names in batched(list(self._targets), _AT_ONCE):
            for name in names:
                self._watch(name)
            yield

    def _written_by(self, notes: Sequence[Entry]) -> Iterator[tuple[Node, Node]]:
        """Record the link targets of new notes. Yield the resulting edges."""
        for note in notes:
            note_id = note.note.id
            for name in note.links:
                target = self._targets.get(name)
                if target is None:
                    target = self._targets[name] = self._target(name, self._table.resolve(name))
                times = count(target.sources, note_id)
                target.sources = with_count(target.sources, note_id, times + 1)
                self._unresolved += target.is_broken
                if not times:
                    yield note_id, _node(name, target)

    def put(self, note: Entry) -> None:
        """Insert or replace a note, and resolve its links."""
        exhaust(self.put_in_steps(note))

    def put_in_steps(self, note: Entry) -> Iterator[None]:
        """Insert or replace a note in steps of some milliseconds. No other change may run in between."""
        self.settle()
        old = self._notes.get(note.note.id)
        yield from self._place(note)
        yield from self._rewire(note.note.id, old.links if old else (), note.links)
        self._derive(note.note.id, old.note.derived_from_ids if old else (), note.note.derived_from_ids)
        self._account(old, note)

    def remove(self, note_id: str) -> None:
        """Remove a note. Links to the note then resolve to another note, or become placeholders."""
        exhaust(self.remove_in_steps(note_id))

    def remove_in_steps(self, note_id: str) -> Iterator[None]:
        """Remove a note in steps of some milliseconds. No other change may run in between."""
        self.settle()
        old = self._notes.pop(note_id, None)
        if old is None:
            return
        yield from self._rewire(note_id, old.links, ())
        self._derive(note_id, old.note.derived_from_ids, ())
        self._table.remove(note_id)
        yield from self._resolve_again(names_of(self.keys_of(old)))
        self._links.discard_lonely(note_id)
        self._account(old, None)

    def _account(self, old: Entry | None, new: Entry | None) -> None:
        """Update the checksum after a note was added, changed or removed."""
        change = (new.stamp if new else 0) - (old.stamp if old else 0)
        self._fingerprint = (self._fingerprint + change) % _FINGERPRINTS

    def _place(self, note: Entry) -> Iterator[None]:
        """Index a note by its names, and resolve the targets that may now lead to it."""
        note_id = note.note.id
        old = self._notes.get(note_id)
        self._notes[note_id] = note
        before, after = self.keys_of(old) if old else frozenset[Key](), self.keys_of(note)
        if before == after and old is not None and old.path == note.path:
            return
        self._table.add_keys(note_id, note.path, after)
        self._links.add(note_id)
        # Targets with an unchanged name are also resolved again: if several notes have the same title, the
        # path decides.
        yield from self._resolve_again(names_of(before | after))

    def _rewire(self, note_id: str, before: Iterable[str], after: Iterable[str]) -> Iterator[None]:
        """Replace the recorded links of a note.

        Equal links are counted first, because a note may contain many of them.
        """
        old, new = Counter(before), Counter(after)
        for names in batched(old.keys() | new.keys(), _LINKS_AT_ONCE):
            for name in names:
                if old[name] != new[name]:
                    self._write(note_id, name, new[name])
            if len(names) == _LINKS_AT_ONCE:
                yield

    def _write(self, note_id: str, name: str, times: int) -> None:
        """Record that a note contains a link target `times` times."""
        target = self._targets.get(name)
        if target is None:
            target = self._targets[name] = self._target(name, self._table.resolve(name))
            self._watch(name)
        was = count(target.sources, note_id)
        if target.is_broken:
            self._unresolved += times - was
        if times and not was:
            self._links.link(note_id, _node(name, target))
        elif was and not times:
            self._links.unlink(note_id, _node(name, target))
        target.sources = with_count(target.sources, note_id, times)
        if not target.sources:
            self._unwatch(name)

    def _target(self, name: str, found: str | None) -> _Target:
        return _Target(found, is_file=found is None and name in self._files)

    def keys_of(self, note: Entry) -> frozenset[Key]:
        """Return all keys by which a link can refer to a note."""
        aliases: Sequence[str] = note.note.aliases
        if self._by_file_name:
            aliases = (*aliases, file_alias(note.path))
        if note.note.link_id is not None:
            aliases = (*aliases, note.note.link_id)
        return note_keys(note.note.id, note.path, note.note.title, aliases)

    def _watch(self, name: str) -> None:
        for key in target_names(name):
            self._interested.add(key, name)

    def _unwatch(self, name: str) -> None:
        del self._targets[name]
        self._links.discard_lonely(Placeholder(name))
        for key in target_names(name):
            self._interested.discard(key, name)

    def _resolve_again(self, names: Iterable[str]) -> Iterator[None]:
        for number, name in enumerate({name for key in names for name in self._interested.of(key)}, 1):
            if not number % _LINKS_AT_ONCE:
                yield
            target = self._targets[name]
            before, found = _node(name, target), self._table.resolve(name)
            if found == target.found:
                continue
            was_broken = target.is_broken
            target.found, target.is_file = found, found is None and name in self._files
            self._unresolved += total(target.sources) * (target.is_broken - was_broken)
            for source in target.sources:
                self._links.unlink(source, before)
                self._links.link(source, _node(name, target))
            if isinstance(before, Placeholder):
                self._links.discard_lonely(before)

    def _derive(self, note_id: str, before: Sequence[str], after: Sequence[str]) -> None:
        for source in set(after) - set(before):
            self._provenance.link(note_id, source)
        for source in set(before) - set(after):
            self._provenance.unlink(note_id, source)
            self._provenance.discard_lonely(source)
        self._provenance.discard_lonely(note_id)


def _node(name: str, target: _Target) -> Node:
    return Placeholder(name) if target.found is None else target.found
