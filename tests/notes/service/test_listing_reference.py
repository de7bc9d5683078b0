"""`list_notes`, compared with a check of every note.

The notes, their order, the totals and the pages are the same for all filters.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast
from unittest.mock import MagicMock

import attrs
import trio
from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.service.knowledge import Knowledge, ListRequest, _is_listed
from tests.fakes import make_entry

_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_ANY = cast("Any", None)

notes = st.fixed_dictionaries(
    {
        "title": st.sampled_from(("One", "ONE two", "Straße", "strasse", "two")),
        "tags": st.lists(st.sampled_from(("x", "x/y", "z")), max_size=2).map(tuple),
        "author": st.sampled_from(("ann", "bob")),
        "updated_at": st.integers(0, 3).map(lambda days: _DAY + timedelta(days=days)),
        "extra": st.sampled_from(({}, {"k": 1}, {"k": True}, {"k": [1, "a"]}, {"k": "a"})),
        "entities": st.sampled_from(((), ("Ada",), ("Ada", "Bob"))),
    }
)
folders = st.sampled_from(("", "a/", "a/b/", "ab/"))
requests = st.builds(
    ListRequest,
    path_prefix=st.sampled_from((None, "", "a", "a/", "a/b", "n1", "none")),
    tags=st.sampled_from((None, (), ("x",), ("x/",), ("x", "z"))),
    author=st.sampled_from((None, "ann", "nobody")),
    since=st.none() | st.integers(0, 4).map(lambda days: _DAY + timedelta(days=days)),
    limit=st.integers(0, 4),
    offset=st.integers(0, 4),
    title_contains=st.sampled_from((None, "", "one", "ONE", "ss", "ß", "none")),
    metadata_match=st.sampled_from((None, {}, {"k": 1}, {"k": True}, {"k": "a"})),
    entities=st.sampled_from((None, ("Ada",), ("Ada", "Bob"))),
)


@given(
    filled=st.lists(st.tuples(folders, notes), max_size=14),
    gone=st.sets(st.integers(1, 14)),
    wanted=requests,
)
def test_note_list_equals_a_check_of_every_note(filled, gone, wanted):
    catalogue = Catalogue()
    for number, (folder, values) in enumerate(filled, 1):
        entry = make_entry(number, f"{folder}n{number}.md")
        catalogue.put(attrs.evolve(entry, note=attrs.evolve(entry.note, **values)))
    for number in gone:
        if (entry := catalogue.at_serial(number)) is not None:
            catalogue.remove(entry.note.id)
    opening = MagicMock(wait_known=trio.lowlevel.checkpoint)
    others = dict.fromkeys(
        (
            "versions",
            "coordinator",
            "clock",
            "writer",
            "outlines",
            "matches",
            "texts",
            "history",
            "gate",
        ),
        MagicMock(),
    )
    knowledge = Knowledge(catalogue=catalogue, opening=opening, **others)
    found = trio.run(knowledge.list_notes, wanted)
    expected = [
        entry
        for entry in catalogue
        if _is_listed(entry, wanted) and set(wanted.entities or ()) <= set(entry.note.entities)
    ]
    assert found.total == len(expected)
    assert found.entries == expected[wanted.offset : wanted.offset + wanted.limit]
