"""New files that are still empty."""

from __future__ import annotations

import pytest

from lithos.kernel.values.events import NOTE_CREATED
from tests.kernel.actors.watched import note


@pytest.mark.parametrize("is_compared", [True, False])
async def test_file_found_before_its_first_write_causes_one_creation_event(house, is_compared):
    """behaviour 135"""
    async with house.watching():
        house.put("a.md", "")
        await (house.compare() if is_compared else house.settle_paths("a.md"))
        assert list(house.pending.take().touched) == ["a.md"], "it is looked at again soon"
        house.put("a.md", note(1))
        await house.settle_paths("a.md")
        assert house.path_of(1) == "a.md"
    assert house.told() == [(NOTE_CREATED, "a.md")]


async def test_file_that_stays_empty_is_a_note(house):
    async with house.watching():
        house.put("a.md", "")
        await house.settle_paths("a.md")
        assert house.told() == []
        await house.settle_paths("a.md")
    assert house.told() == [(NOTE_CREATED, "a.md")]


async def test_empty_file_that_is_deleted_and_recreated_is_deferred_again(house):
    async with house.watching():
        house.put("a.md", "")
        await house.settle_paths("a.md")
        (house.folder / "a.md").unlink()
        await house.settle_paths("a.md")
        house.put("a.md", "")
        await house.settle_paths("a.md")
    assert house.told() == []
