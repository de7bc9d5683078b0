"""Events as rows of the live feed: each becomes one sentence, which is rendered once for all consoles."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from attrs import frozen
from jinja2 import Environment
from markupsafe import Markup

from lithos.catalogue.catalogue import Catalogue
from lithos.core.events import Event
from lithos.services.tasks.activity import Wanted

#: Every type of event, and what the filter calls it.
TYPES: Final[Mapping[str, str]] = {
    "note.created": "note created", "note.updated": "note updated", "note.deleted": "note deleted",
    "note.renamed": "note renamed", "task.created": "task created", "task.updated": "task updated",
    "task.claimed": "task claimed", "task.released": "claim released", "task.claim_expired": "claim expired",
    "task.ready": "task ready", "task.completed": "task completed", "task.cancelled": "task cancelled",
    "task.reopened": "task reopened", "finding.posted": "finding posted", "edge.upserted": "notes related",
    "agent.registered": "agent registered",
}  # fmt: skip
#: Groups of types that the filter offers, by the first word of their types.
GROUPS: Final[Mapping[str, str]] = {
    "note": "all of notes", "task": "all of tasks", "finding": "findings", "edge": "relations",
    "agent": "agents",
}  # fmt: skip
#: Sentences that are kept.
MOST_KEPT: Final = 1_000
#: Characters of all rows of a piece, and of one row without its sentence.
MOST_CHARACTERS, ROW_CHARACTERS = 170_000, 220
#: Characters of an agent or a tag that is filtered by.
LONGEST_FILTER: Final = 500


@frozen
class FeedFilter:
    """What the form above the feed asks for; blanks ask for everything."""

    type: str = ""
    agent: str = ""
    tag: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> FeedFilter:
        """From the query of a page; a type that does not exist counts as none."""
        kind, agent, tag = (given.get(name, "").strip()[:LONGEST_FILTER] for name in ("type", "agent", "tag"))
        return cls(kind if kind in TYPES or kind in GROUPS else "", agent, tag.removeprefix("#"))

    @property
    def wanted(self) -> Wanted:
        """The same for the journal."""
        types = frozenset(kind for kind in TYPES if self.type in (kind, kind.partition(".")[0]))
        return Wanted(types, self.agent or None, self.tag or None)

    @property
    def is_set(self) -> bool:
        """Whether anything is left out."""
        return bool(self.type or self.agent or self.tag)


@frozen
class Row:
    """One event as a row: its time is rendered with each page, the sentence only once."""

    seq: int
    at: datetime
    kind: str
    sentence: Markup


class Happenings:
    """Renders events; the last `MOST_KEPT` sentences are kept. For one thread at a time."""

    def __init__(self, environment: Environment, catalogue: Catalogue) -> None:
        self._sentence = environment.get_template("happenings.html").module.sentence  # type: ignore[attr-defined]
        self._catalogue = catalogue
        self._kept: OrderedDict[int, Markup] = OrderedDict()

    def unknown(self, events: Sequence[Event]) -> list[Event]:
        """Those whose sentence has still to be made."""
        return [event for event in events if event.seq not in self._kept]

    def rows(
        self, events: Sequence[Event], task_titles: Mapping[str, str], room: int = MOST_CHARACTERS
    ) -> Iterator[Row]:
        """The rows of events, in their order, as long as their sentences have so many characters together."""
        for event in events:
            sentence = self._kept.get(event.seq)
            if sentence is None:
                sentence = self._kept[event.seq] = self._make(event, task_titles)
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
            room -= len(sentence) + ROW_CHARACTERS
            if room < 0:
                return
            draft = event.draft
            yield Row(event.seq, draft.timestamp, draft.type.partition(".")[0], sentence)

    def _make(self, event: Event, task_titles: Mapping[str, str]) -> Markup:
        draft = event.draft
        payload = draft.payload
        ids = [payload.get(name) for name in ("id", "from_id", "to_id", "knowledge_id")]
        titles = {note_id: self._title(note_id) for note_id in ids if isinstance(note_id, str)}
        told: Markup = self._sentence(
            draft.type, draft.agent, _texts(payload), draft.tags, titles | dict(task_titles)
        )
        return Markup(" ".join(told.split()))  # noqa: S704 - what the template rendered

    def _title(self, note_id: str) -> str:
        entry = self._catalogue.get(note_id)
        return "" if entry is None else entry.note.title


def _texts(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload with every value that is no text or number left out: sentences show nothing else."""
    return {name: value for name, value in payload.items() if isinstance(value, str | int | float)}
