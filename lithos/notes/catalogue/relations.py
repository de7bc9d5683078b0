"""The note relations that affect trust, indexed in both directions.

The relations are lineage, successors, quarantines and contradictions.

Specified in docs/spec/context.md §2.

The catalogue enters the relations that its notes contain. The memory actor owns `edges.db` and enters the
typed edges. It enters all edges at its start, and each later change after the commit, before its caller gets
a reply. So a call that begins after this reply finds the change here, without waiting and without a database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import attrs
from attrs import define, field

from lithos.kernel.values.multiset import Multiset, with_count
from lithos.notes.model.edges import Edge, is_lineage, is_unresolved
from lithos.notes.model.note import Note


@define
class Multimap:
    """A map from keys to unique texts in order of insertion.

    There may be tens of thousands of keys, but nearly all have only one text.
    """

    #: Only keys that have had several texts have a multiset. One multiset per key would take 100 MB for a
    #: million notes.
    _items: dict[str, str | Multiset[str]] = field(factory=dict, init=False)

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def __len__(self) -> int:
        return len(self._items)

    def keys(self) -> Collection[str]:
        """Return the keys that have at least one text."""
        return self._items.keys()

    def of(self, key: str) -> Collection[str]:
        """Return the texts under a key, in order of insertion."""
        items = self._items.get(key, ())
        return (items,) if isinstance(items, str) else items

    def add(self, key: str, item: str) -> None:
        """Add a text under a key. Adding a known text has no effect."""
        items = self._items.setdefault(key, item)
        if not isinstance(items, str):
            self._items[key] = with_count(items, item, 1)
        elif items != item:
            self._items[key] = (items, item)

    def discard(self, key: str, item: str) -> None:
        """Remove a text from a key. A missing text is ignored."""
        items = self._items.get(key)
        if items == item:
            del self._items[key]
        elif items is not None and not isinstance(items, str):
            left = with_count(items, item, 0)
            if left:
                self._items[key] = left
            else:
                del self._items[key]


class CountedEdges:
    """The typed edges that affect trust: asserted lineage edges, and unresolved contradictions.

    Projected edges (provenance type `frontmatter`) are left out, because they repeat `derived_from_ids`.
    """

    def __init__(self, edges: Iterable[Edge] = ()) -> None:
        self._edges: dict[str, Edge] = {}
        #: Maps each note id to the lineage edges of the note, and each edge to the source of the note.
        #: `_dependents` has the opposite direction, `_opposed` the contradictions.
        self._sources: dict[str, dict[str, str]] = {}  # bounded: one for each edge of a lineage
        self._dependents: dict[str, dict[str, str]] = {}
        self._opposed: dict[str, dict[str, str]] = {}
        for edge in edges:
            self.put(edge)

    def put(self, edge: Edge) -> bool:
        """Add an edge, or remove it if it does not affect trust. Return whether anything changed."""
        counts = edge.from_id != edge.to_id and (is_lineage(edge) or is_unresolved(edge))
        old = self._edges.pop(edge.id, None)
        if old is not None:
            for index, note_id, _ in self._places(old):
                others = index[note_id]
                del others[old.id]
                if not others:
                    del index[note_id]
        if counts:
            self._edges[edge.id] = edge if edge.evidence is None else attrs.evolve(edge, evidence=None)
            for index, note_id, other in self._places(edge):
                index.setdefault(note_id, {})[edge.id] = other
        return counts or old is not None

    def _places(self, edge: Edge) -> tuple[tuple[dict[str, dict[str, str]], str, str], ...]:
        if is_lineage(edge):
            return (
                (self._sources, edge.from_id, edge.to_id),
                (self._dependents, edge.to_id, edge.from_id),
            )
        return ((self._opposed, edge.from_id, edge.to_id), (self._opposed, edge.to_id, edge.from_id))

    def touches(self, note_id: str) -> bool:
        """Return whether the note is an endpoint of a lineage edge."""
        return note_id in self._sources or note_id in self._dependents

    def sources(self, note_id: str) -> Collection[str]:
        """Return the sources of a note by typed edges. Sources may occur repeatedly, and may not exist."""
        found = self._sources.get(note_id)
        return found.values() if found else ()

    def dependents(self, note_id: str) -> Collection[str]:
        """Return the notes that typed edges derive from a note.

        The notes may occur repeatedly, and may not exist.
        """
        found = self._dependents.get(note_id)
        return found.values() if found else ()

    def opposed(self, note_id: str) -> Collection[str]:
        """Return the notes that contradict a note."""
        found = self._opposed.get(note_id)
        return found.values() if found else ()

    def types_from(self, note_id: str) -> list[tuple[str, str]]:
        """Return each source of a note with the type of the edge."""
        return [(other, self._edges[edge].type) for edge, other in self._sources.get(note_id, {}).items()]

    def types_to(self, note_id: str) -> list[tuple[str, str]]:
        """Return each dependent of a note with the type of the edge."""
        return [(other, self._edges[edge].type) for edge, other in self._dependents.get(note_id, {}).items()]


#: Maximum number of changed leaves. If more leaves change, all notes count as changed.
MOST_LEAVES: Final = 10_000


class Relations:
    """All relations between notes that affect trust.

    `version` increases with each change that may affect whether other notes are suspect. `leaves` are changed
    notes without dependents, such as new notes. A change of a leaf affects only the leaf itself, so it does
    not increase `version`.
    """

    def __init__(self) -> None:
        self.version = 0
        self.leaves: list[str] = []
        #: Maps each note id to the notes that name it in `derived_from_ids`.
        self.derived = Multimap()
        #: Maps each note id to the notes that supersede the note.
        self.successors = Multimap()
        self.quarantined: set[str] = set()
        self.typed = CountedEdges()

    # -- notes: the catalogue ------------------------------------------------------------------

    def enter(self, note: Note) -> None:
        """Add the relations of a new note."""
        if self._matters(note):  # most notes have no relations
            self._change(None, note)

    def leave(self, note: Note) -> None:
        """Remove the relations of a deleted note."""
        self._change(note, None)

    def replace(self, old: Note, new: Note) -> None:
        """Replace the relations of a changed note. The id of the note must be the same."""
        if _said(old) != _said(new):
            self._change(old, new)

    def _change(self, old: Note | None, new: Note | None) -> None:
        if old is not None:
            for source in old.derived_from_ids:
                self.derived.discard(source, old.id)
            if old.supersedes:
                self.successors.discard(old.supersedes, old.id)
            self.quarantined.discard(old.id)
        if new is not None:
            for source in new.derived_from_ids:
                self.derived.add(source, new.id)
            if new.supersedes and new.supersedes != new.id:
                self.successors.add(new.supersedes, new.id)
            if new.status == "quarantined":
                self.quarantined.add(new.id)
        notes = [note for note in (old, new) if note is not None and self._matters(note)]
        if not notes:
            return
        if any(self._concerns_others(note) for note in notes) or len(self.leaves) >= MOST_LEAVES:
            self._begin_anew()
        else:
            self.leaves.append(notes[0].id)

    def _begin_anew(self) -> None:
        self.version += 1
        self.leaves.clear()

    def _concerns_others(self, note: Note) -> bool:
        """Return whether a change of this note may affect whether other notes are suspect."""
        return bool(
            note.status == "quarantined"
            or note.supersedes
            or note.id in self.derived
            or self.typed.dependents(note.id)
        )

    def _matters(self, note: Note) -> bool:
        """Return whether a note is quarantined, or related to other notes by lineage or succession."""
        return (
            _said(note) != _SILENT
            or note.id in self.derived
            or note.id in self.successors
            or self.typed.touches(note.id)
        )

    def take_over(self, filled: Relations) -> None:
        """Take over the note relations of another instance.

        The typed edges of this instance are not changed.
        """
        self.derived, self.successors = filled.derived, filled.successors
        self.quarantined = filled.quarantined
        self._begin_anew()

    # -- typed edges: the memory actor ---------------------------------------------------------

    def put_edge(self, edge: Edge) -> None:
        """Record a typed edge in its stored form."""
        if self.typed.put(edge):
            self._begin_anew()

    def load_edges(self, typed: CountedEdges) -> None:
        """Replace all typed edges by the loaded edges."""
        self.typed = typed
        self._begin_anew()


def _said(note: Note) -> tuple[bool, str | None, tuple[str, ...]]:
    """Return those fields of a note that define its relations."""
    return note.status == "quarantined", note.supersedes, note.derived_from_ids


_SILENT: Final = (False, None, ())
