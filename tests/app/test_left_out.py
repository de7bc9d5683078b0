"""Server without one of its capabilities. All other capabilities work as before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from lithos.app import capabilities
from lithos.kernel.values.principals import Principal
from lithos.notes.model.scopes import Scope, WriteScopes
from lithos.notes.service.row_kinds import ATTACHMENTS_OFF, SESSIONS_OFF
from lithos.notes.writing.actor_writer import Writer
from tests.servers import Lithos, refusal, serving


@asynccontextmanager
async def without(name: str, data: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[Lithos]:
    """Run a server without the capability of this name."""
    kept = tuple(each for each in capabilities.CAPABILITIES if each.name != name)
    assert len(kept) == len(capabilities.CAPABILITIES) - 1
    patch.setattr(capabilities, "CAPABILITIES", kept)
    async with serving(data) as lithos:
        yield lithos


@pytest.mark.needs("proposals")
async def test_changes_that_need_approval_are_refused_without_proposals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with without("proposals", tmp_path, monkeypatch) as lithos:
        note = await lithos.create("Zebras", "Stripes.")
        writer = lithos.server.get(Writer)
        writer.scopes = attrs.evolve(WriteScopes(), agents={"other": Scope((), ("**",))})
        answer = await lithos.server.tools.call(
            "lithos_note_edit",
            {"id": note, "op": "append", "text": "More."},
            Principal("t", "write", "other"),
        )
        assert "only after a person's approval, but other makes no proposals" in refusal(answer, "forbidden")
        read = await lithos.call("lithos_read", id=note)
        assert (read["content"].strip(), read["metadata"]["version"]) == ("Stripes.", 1)
        assert "pending_proposals" not in await lithos.call("lithos_context", query="zebra stripes")


@pytest.mark.needs("attachments")
async def test_notes_are_read_listed_and_found_without_attachments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with without("attachments", tmp_path, monkeypatch) as lithos:
        note = await lithos.create("report.pdf", "Stripes of zebras at night.")
        (row,) = (await lithos.call("lithos_search", query="zebra stripes"))["results"]
        assert row["id"] == note
        (row,) = (await lithos.call("lithos_retrieve", query="zebra stripes"))["results"]
        assert row["id"] == note
        assert "Stripes" in (await lithos.call("lithos_context", query="zebra stripes"))["text"]
        assert (await lithos.call("lithos_list"))["total"] == 1
        for arguments in ({"id": note}, {"title": "report.pdf"}):
            assert "Stripes" in (await lithos.call("lithos_read", **arguments))["content"]
        off = await lithos.call("lithos_search", query="zebra", kinds=["attachment"])
        assert off == {"results": [], "message": ATTACHMENTS_OFF}
        off = await lithos.call("lithos_list", kinds=["attachment"])
        assert off == {"items": [], "total": 0, "message": ATTACHMENTS_OFF}
        missing = await lithos.call("lithos_read", path="plan.pdf")
        assert "plan.pdf" in refusal(missing, "doc_not_found")


@pytest.mark.needs("sessions")
async def test_notes_are_written_read_and_found_without_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 332: only what asks for sessions says that they are missing."""
    async with without("sessions", tmp_path, monkeypatch) as lithos:
        note = await lithos.create("Zebras", "Stripes of zebras at night.")
        assert (await lithos.read(note))["metadata"]["source"] is None
        (row,) = (await lithos.call("lithos_search", query="zebra stripes"))["results"]
        both = await lithos.call("lithos_search", query="zebra stripes", kinds=["note", "session"])
        assert both == {"results": [row], "message": SESSIONS_OFF}
        assert "Stripes" in (await lithos.call("lithos_context", query="zebra stripes"))["text"]
        assert refusal(await lithos.call("lithos_read", id="ses_0", turn=1), "doc_not_found") == SESSIONS_OFF
