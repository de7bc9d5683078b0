"""What a scout is asked and what it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final, TypeAlias

from attrs import field, frozen

from lithos.actors.catalogue import Entry
from lithos.core.rerank import Candidate
from lithos.services.gate import Gate

#: Characters of a query that are looked at as words or as a name; meaning gets the whole query.
LONGEST_QUERY: Final = 4_000
#: Notes of which one thing is looked at in one turn of the event loop: a millisecond or less.
CHEAP_SLICE: Final = 2_000
#: Characters of a title in a reason.
LONGEST_TITLE: Final = 80


@frozen(kw_only=True)
class Ask:
    """One retrieval as scouts see it.

    `admitted` are all notes that pass the gate, known only when it is narrow. `seeds` are the best notes
    so far, for the scouts that start from them.
    """

    query: str
    limit: int
    gate: Gate
    now: datetime
    admitted: Sequence[Entry] | None = None
    seeds: tuple[Entry, ...] = ()
    seed_ids: frozenset[str] = field(init=False)
    #: The numbers of the admitted notes in the indexes.
    admitted_serials: frozenset[int] | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "seed_ids", frozenset(entry.note.id for entry in self.seeds))
        serials = None if self.admitted is None else frozenset(entry.serial for entry in self.admitted)
        object.__setattr__(self, "admitted_serials", serials)

    @property
    def words(self) -> str:
        """The query, cut where nobody writes more words."""
        return self.query[:LONGEST_QUERY]


#: Looks for candidates; a note may come more than once, and hidden ones are dropped later.
Find: TypeAlias = Callable[[Ask], Awaitable[Sequence[Candidate]]]


def always(ask: Ask) -> bool:
    """Whatever is asked."""
    return True


@frozen
class Scout:
    """A way to find candidates; it only sets out when it `wants` to."""

    name: str
    find: Find
    wants: Callable[[Ask], bool] = always


def quote(entry: Entry) -> str:
    """The title of a note inside a reason."""
    title = entry.note.title
    return f'"{title}"' if len(title) <= LONGEST_TITLE else f'"{title[:LONGEST_TITLE]}…"'
