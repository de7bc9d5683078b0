"""Events as values."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs
import pytest

from lithos.kernel.values import events
from lithos.kernel.values.events import Event, EventDraft, origin_digest


def make_draft() -> EventDraft:
    return EventDraft(
        type=events.NOTE_CREATED, agent="a", payload={"id": "x"}, timestamp=datetime(2026, 1, 1, tzinfo=UTC)
    )


def test_event_names_match_the_wire_format():
    assert {
        events.NOTE_CREATED,
        events.NOTE_UPDATED,
        events.NOTE_DELETED,
        events.NOTE_RENAMED,
        events.AGENT_REGISTERED,
    } == {"note.created", "note.updated", "note.deleted", "note.renamed", "agent.registered"}


def test_event_defaults_to_tool_origin_without_tags():
    draft = make_draft()
    assert (draft.origin, draft.tags) == ("tool", ())


def test_events_are_immutable_values():
    event = Event(seq=1, draft=make_draft())
    assert event == Event(seq=1, draft=make_draft())
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.seq = 2


@pytest.mark.parametrize(
    ("origin", "digest"), [("tool", None), ("scan:00ff", "00ff"), ("tool:", ""), ("a:b:3", "b"), ("", None)]
)
def test_origin_digest_is_the_part_after_the_source(origin, digest):
    assert origin_digest(origin) == digest
