"""Resource addresses, and the resource addresses that each event affects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.values.events import EventDraft
from lithos.server.tools.resource_uris import (
    TAGS_URI,
    ResourceAddress,
    changed_by,
    changes_list,
    read_address,
)
from tests.fakes import START

IDS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)


@given(IDS, st.sampled_from(["note", "task"]))
def test_every_id_survives_conversion_to_an_address(text: str, kind) -> None:
    """behaviour 205"""
    address = ResourceAddress(kind, text)
    assert address.uri.isascii()
    assert read_address(address.uri) == address


@pytest.mark.parametrize(
    ("uri", "note"),
    [
        ("lithos://note/a b/ü", "a b/ü"),
        ("lithos://note/a%20b%2f%C3%BC", "a b/ü"),
        ("lithos://note/50%25", "50%"),
    ],
)
def test_id_in_an_address_may_be_percent_encoded(uri: str, note: str) -> None:
    assert read_address(uri) == ResourceAddress("note", note)


@pytest.mark.parametrize(
    "uri",
    [
        "", "lithos://", "lithos://note/", "lithos://note", "lithos://tags/x", "http://note/x",
        "lithos://note/\ud800", "lithos://note/%ff",
    ],
)  # fmt: skip
def test_other_addresses_are_not_resource_addresses(uri: str) -> None:
    assert read_address(uri) is None


NOTE, TASK = ResourceAddress("note", "n").uri, ResourceAddress("task", "t").uri


@pytest.mark.parametrize(
    ("kind", "uris", "lists"),
    [
        ("note.created", [TAGS_URI], True),
        ("note.updated", [NOTE, TAGS_URI], False),
        ("note.renamed", [NOTE], False),
        ("note.deleted", [NOTE, TAGS_URI], True),
        ("task.created", [TASK], True),
        ("task.updated", [TASK], False),
        ("task.claimed", [TASK], False),
        ("task.released", [TASK], False),
        ("task.completed", [TASK], True),
        ("task.cancelled", [TASK], True),
        ("task.reopened", [TASK], True),
        ("finding.posted", [TASK], False),
        ("edge.upserted", [], False),
        ("agent.registered", [], False),
    ],
)
def test_event_changes_the_specified_resources(kind: str, uris: list[str], lists: bool) -> None:
    """behaviour 205"""
    payload = {"id": "n"} if kind.startswith("note.") else {"task_id": "t"}
    event = EventDraft(type=kind, agent="a", payload=payload, timestamp=START)
    assert [address.uri for address in changed_by(event)] == uris
    assert changes_list(event) is lists
