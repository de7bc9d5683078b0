"""The graph of notes: what links to what, and what was derived from what.

The catalogue owns it and passes every change on at once, so whoever reads it sees all that was
written. A change costs what it touches: only targets that share a name with a note that appears,
vanishes or changes its names are looked up again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from attrs import define, field, frozen

from lithos.core.links import Key, LinkTable, names_of, note_keys, target_names
from lithos.core.model import Note
from lithos.stores.linkgraph import LinkGraph, Node, Placeholder, Remembered

_FINGERPRINTS = 1 << 64


class LinkedNote(Protocol):
    """What the graph reads of a catalogue entry; `stamp` changes with anything of it."""

    @property
    def note(self) -> Note: ...

    @property
    def path(self) -> str: ...

    @property
    def links(self) -> Sequence[str]: ...

    @property
    def stamp(self) -> int: ...


@frozen
class LinkCounts:
    """The link graph in numbers: nodes include placeholders, unresolved links count as often as written."""

    nodes: int
    edges: int
    unresolved: int


@define
class _Target:
    """What a link target means, and who writes it how often."""

    found: str | None
    sources: dict[str, int] = field(factory=dict)


class NoteGraph:
    """Links and provenance of all notes."""

    def __init__(self) -> None:
        self.links = LinkGraph()
        #: From a note to its sources, which may be missing.
        self.provenance = LinkGraph()
        #: Called after every change but `load`.
        self.on_change: Callable[[], None] = lambda: None
        #: Which notes there are, for the cache file.
        self.fingerprint = 0
        #: True when the last `load` could take the meaning of links from the cache file.
        self.was_recalled = False
        self._table = LinkTable()
        self._notes: dict[str, LinkedNote] = {}
        self._targets: dict[str, _Target] = {}
        #: By a name reduced to what all kinds of keys share: the targets that may mean its note.
        self._interested: dict[str, list[str]] = {}
        #: Targets that are not among those yet.
        self._unsettled: list[str] = []
        self._unresolved = 0
        self._remembered: Remembered | None = None

    def __contains__(self, note_id: str) -> bool:
        return note_id in self._notes

    def resolve(self, target: str) -> str | None:
        """The id of the note that `[[target]]` would mean now."""
        return self._table.resolve(target)

    def counts(self) -> LinkCounts:
        """Kept up to date, not counted."""
        return LinkCounts(self.links.node_count, self.links.edge_count, self._unresolved)

    def remembered(self) -> Remembered:
        """What the cache file should say."""
        targets = {name: target.found for name, target in self._targets.items()}
        return Remembered(self.fingerprint, targets)

    def recall(self, remembered: Remembered | None) -> None:
        """Let the next `load` use a cache file's content, if it fits the notes."""
        self._remembered = remembered

    def load(self, notes: Sequence[LinkedNote]) -> None:
        """Fill an empty graph."""
        for note in notes:
            self._place(note)
        remembered, self._remembered = self._remembered, None
        self.was_recalled = remembered is not None and self._fits(remembered)
        known = remembered.targets if remembered is not None and self.was_recalled else {}
        written: list[tuple[Node, Node]] = []
        for note in notes:
            note_id = note.note.id
            for name in note.links:
                target = self._targets.get(name) or self._expect(name, known)
                times = target.sources.get(note_id, 0)
                if not times:
                    written.append((note_id, _node(name, target)))
                target.sources[note_id] = times + 1
                self._unresolved += target.found is None
            if note.note.derived_from_ids:
                self._derive(note_id, (), note.note.derived_from_ids)
        self.links.link_all(written)

    def settle(self, most: int | None = None) -> bool:
        """Do what `load` left for later, for `most` targets or all; True when nothing is left.

        A change needs it and does it; done before that, in parts, it holds nobody up.
        """
        for _ in range(len(self._unsettled) if most is None else min(most, len(self._unsettled))):
            name = self._unsettled.pop()
            for key in target_names(name):
                self._interested.setdefault(key, []).append(name)
        return not self._unsettled

    def put(self, note: LinkedNote) -> None:
        """Add a note or replace what was known of it."""
        old = self._notes.get(note.note.id)
        self._place(note)
        self._rewire(note.note.id, old.links if old else (), note.links, {})
        self._derive(note.note.id, old.note.derived_from_ids if old else (), note.note.derived_from_ids)
        self.on_change()

    def remove(self, note_id: str) -> None:
        """Forget a note; links to it find another note or become placeholders."""
        old = self._notes.pop(note_id, None)
        if old is None:
            return
        self.fingerprint = (self.fingerprint - old.stamp) % _FINGERPRINTS
        self._rewire(note_id, old.links, (), {})
        self._derive(note_id, old.note.derived_from_ids, ())
        self._table.remove(note_id)
        self._resolve_again(names_of(_keys(old)))
        self.links.discard_lonely(note_id)
        self.on_change()

    def _fits(self, remembered: Remembered) -> bool:
        return remembered.fingerprint == self.fingerprint and all(
            found is None or found in self._notes for found in remembered.targets.values()
        )

    def _place(self, note: LinkedNote) -> None:
        """Make a note known by its names."""
        note_id = note.note.id
        old = self._notes.get(note_id)
        self._notes[note_id] = note
        self.fingerprint = (self.fingerprint - (old.stamp if old else 0) + note.stamp) % _FINGERPRINTS
        before, after = _keys(old) if old else frozenset[Key](), _keys(note)
        if before == after and old is not None and old.path == note.path:
            return
        self._table.add_keys(note_id, note.path, after)
        self.links.add(note_id)
        if self._targets:
            # Also names that stay: among several notes with one title the path decides.
            self._resolve_again(names_of(before | after))

    def _rewire(
        self, note_id: str, before: Iterable[str], after: Iterable[str], known: Mapping[str, str | None]
    ) -> None:
        """Replace the links a note writes."""
        old, new = Counter(before), Counter(after)
        for name in old.keys() | new.keys():
            if old[name] != new[name]:
                self._write(note_id, name, new[name], known)

    def _write(self, note_id: str, name: str, times: int, known: Mapping[str, str | None]) -> None:
        """Have a note write a target so many times."""
        target = self._targets.get(name)
        if target is None:
            target = self._expect(name, known)
            self.settle()
        was = target.sources.get(note_id, 0)
        if target.found is None:
            self._unresolved += times - was
        if times and not was:
            self.links.link(note_id, _node(name, target))
        elif was and not times:
            self.links.unlink(note_id, _node(name, target))
        if times:
            target.sources[note_id] = times
            return
        del target.sources[note_id]
        if not target.sources:
            self._unwatch(name)

    def _expect(self, name: str, known: Mapping[str, str | None]) -> _Target:
        """Look a target up; `settle` enters it among those that are looked up again."""
        found = known[name] if name in known else self._table.resolve(name)
        target = self._targets[name] = _Target(found)
        self._unsettled.append(name)
        return target

    def _unwatch(self, name: str) -> None:
        self.settle()
        del self._targets[name]
        self.links.discard_lonely(Placeholder(name))
        for key in target_names(name):
            self._interested[key].remove(name)
            if not self._interested[key]:
                del self._interested[key]

    def _resolve_again(self, names: Iterable[str]) -> None:
        self.settle()
        for name in {name for key in names for name in self._interested.get(key, ())}:
            target = self._targets[name]
            before, found = _node(name, target), self._table.resolve(name)
            if found == target.found:
                continue
            self._unresolved += sum(target.sources.values()) * ((found is None) - (target.found is None))
            target.found = found
            for source in target.sources:
                self.links.unlink(source, before)
                self.links.link(source, _node(name, target))
            if isinstance(before, Placeholder):
                self.links.discard_lonely(before)

    def _derive(self, note_id: str, before: Sequence[str], after: Sequence[str]) -> None:
        for source in set(after) - set(before):
            self.provenance.link(note_id, source)
        for source in set(before) - set(after):
            self.provenance.unlink(note_id, source)
            self.provenance.discard_lonely(source)
        self.provenance.discard_lonely(note_id)


def _node(name: str, target: _Target) -> Node:
    return Placeholder(name) if target.found is None else target.found


def _keys(note: LinkedNote) -> frozenset[Key]:
    return note_keys(note.note.id, note.path, note.note.title, note.note.aliases)
