"""Changes that wait for a person (docs/spec/scopes.md §2; behaviours 280 to 282)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from lithos.events.journal.coordinator import Coordinator
from lithos.history.settings import HistoryConfig
from lithos.kernel.actors.mailboxes import ShuttingDown
from lithos.kernel.values.errors import VersionConflict
from lithos.kernel.values.principals import COMMAND, OWNER, Principal
from lithos.notes.model.scopes import Scope, WriteScopes
from lithos.notes.service.moving import Moving
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.messages import MoveNote
from lithos.proposals import model as rules
from lithos.proposals.model import (
    MOST_PENDING,
    AbandonApproval,
    BeginApproval,
    KeepProposal,
    PendingProposals,
    Proposal,
    ProposalTexts,
    TidyProposals,
)
from lithos.proposals.service import Proposals
from lithos.server.service_state import Gauges, ServerState
from lithos.server.tools.arguments import UnknownTool
from tests.servers import VAULT, Clock, Lithos, put_note, refusal, serving, take_up

BOT = Principal("bound", "write", "bot")
TEXT = "One.\n\nTwo.\n\nThree.\n\nFour.\n\nFive."


@asynccontextmanager
async def asking(data: Path, **more: Any) -> AsyncIterator[Lithos]:
    """Yield a server on which the agents `bot` (by its token) and `other` may only propose changes."""
    async with serving(data, **more) as lithos:
        scope = Scope((), ("**",))
        lithos.server.get(Writer).scopes = WriteScopes(
            agents={"other": scope}, of_token=lambda by: scope if by.name == "bound" else None
        )
        yield lithos


async def bot(lithos: Lithos, tool: str, **arguments: Any) -> Any:
    return await lithos.server.tools.call(tool, arguments, BOT)


async def person(lithos: Lithos, tool: str, **arguments: Any) -> Any:
    return await lithos.server.tools.call(tool, arguments, COMMAND)


async def decide(lithos: Lithos, proposal_id: str, decision: str = "approve", **more: Any) -> Any:
    return await person(
        lithos, "lithos_proposal_decide", id=proposal_id, decision=decision, by="anna", **more
    )


async def propose(lithos: Lithos, tool: str, **arguments: Any) -> str:
    answer = await bot(lithos, tool, **arguments)
    assert answer["status"] == "proposed", answer
    return str(answer["proposal_id"])


async def shown(lithos: Lithos, proposal_id: str) -> Any:
    return await person(lithos, "lithos_proposals", id=proposal_id)


async def seen(lithos: Lithos, note_id: str) -> dict[str, Any]:
    """Return all data of the notes that clients can see."""
    read = await lithos.call("lithos_read", id=note_id)
    read.pop("retrieval_count", None)
    search = [
        await lithos.call("lithos_search", query="Two", mode=mode)
        for mode in ("fulltext", "semantic", "hybrid")
    ]
    return {
        "read": read,
        "search": search,
        "list": await lithos.call("lithos_list"),
        "tags": await lithos.call("lithos_tags"),
        "history": await lithos.call("lithos_history", id=note_id),
        "retrieve": [
            (row["id"], row["title"], row["snippet"])
            for row in (await lithos.call("lithos_retrieve", query="Two"))["results"]
        ],
        "files": {path: (lithos.knowledge / path).read_bytes() for path in lithos.files()},
        "events": [each for each in lithos.events() if not each[0].startswith("proposal.")],
    }


PROPOSED: Mapping[str, tuple[str, dict[str, Any]]] = {
    "create": ("lithos_write", {"title": "Another", "content": "Two words."}),
    "update": ("lithos_write", {"content": "Quite another text.", "tags": ["new"]}),
    "update of values": ("lithos_note_update", {"tags": ["new"], "title": "Renamed"}),
    "edit": ("lithos_note_edit", {"op": "append", "text": "Two more."}),
    "move": ("lithos_note_move", {"path": "elsewhere"}),
    "delete": ("lithos_delete", {}),
    "restore": ("lithos_restore", {"version": 1}),
}


async def test_proposal_changes_no_visible_data(tmp_path: Path) -> None:
    """behaviour 280"""
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        await lithos.write("Plan", TEXT + "\n\nSix.", id=note_id)
        await lithos.create("Links", "See [[plan]].")
        before = await seen(lithos, note_id)
        for name, (tool, arguments) in PROPOSED.items():
            given = arguments if name == "create" else {"id": note_id, **arguments}
            await propose(lithos, tool, **given)
            assert await seen(lithos, note_id) == before, name
        waiting = await person(lithos, "lithos_proposals")
        assert [(row["kind"], row["agent"]) for row in waiting["proposals"]] == [
            ("create", "bot"),
            ("move", "bot"),
            ("update", "bot"),
        ]


async def test_invalid_change_is_refused_instead_of_proposed(tmp_path: Path) -> None:
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        stale = await bot(lithos, "lithos_write", id=note_id, content="x", expected_version=7)
        assert refusal(stale, "version_conflict")
        same = await bot(lithos, "lithos_write", title="Plan", content="x")
        assert refusal(same, "slug_collision")
        missing = await bot(
            lithos, "lithos_note_edit", id=note_id, op="find_replace", find="absent", text="y"
        )
        assert refusal(missing, "text_not_found")
        assert lithos.server.get(Proposals).counts() == {"pending": 0}


async def test_later_change_builds_on_the_agents_own_proposal(tmp_path: Path) -> None:
    """behaviour 280: the note also stays unchanged for the agent that made the proposal."""
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        first = await propose(lithos, "lithos_note_edit", id=note_id, op="append", text="Six.")
        second = await propose(
            lithos, "lithos_note_edit", id=note_id, op="append", text="Seven.", expected_version=1
        )
        third = await propose(lithos, "lithos_note_update", id=note_id, tags=["t"])
        assert first == second == third
        found = await shown(lithos, first)
        assert "Six.\n\nSeven." in found["proposed"]
        assert re.search(r"\ntags: ?(\[t\]|\n *- t)\n", found["proposed"])
        assert (found["proposal"]["base_version"], found["conflicts"]) == (1, [])
        assert (await lithos.read(note_id))["content"] == TEXT
        answer = await decide(lithos, first)
        assert (answer["status"], answer["version"]) == ("approved", 2)
        assert (await lithos.read(note_id))["content"] == f"{TEXT}\n\nSix.\n\nSeven."


async def test_proposed_note_is_changed_by_its_id_and_created_once(tmp_path: Path) -> None:
    async with asking(tmp_path) as lithos:
        made = await bot(lithos, "lithos_write", title="New", content="First.", path="a")
        again = await bot(lithos, "lithos_write", title="New", content="First.", path="a")
        assert refusal(again, "path_collision")
        assert again["existing_id"] == made["id"]
        assert made["proposal_id"] == await propose(lithos, "lithos_write", id=made["id"], content="Second.")
        edited = await propose(lithos, "lithos_note_edit", id=made["id"], op="append", text="Third.")
        assert edited == made["proposal_id"]
        assert refusal(await bot(lithos, "lithos_delete", id=made["id"]), "invalid_input")
        assert lithos.files() == []
        assert (await decide(lithos, edited))["version"] == 1
        read = await lithos.read(made["id"])
        assert (read["path"], read["content"], read["metadata"]["author"]) == (
            "a/new.md",
            "Second.\n\nThird.",
            "bot",
        )


async def test_two_agents_have_separate_proposals_for_one_note(tmp_path: Path) -> None:
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        mine = await propose(lithos, "lithos_note_edit", id=note_id, op="append", text="Six.")
        others = await lithos.call("lithos_note_edit", id=note_id, op="prepend", text="Zero.", agent="other")
        assert others["status"] == "proposed"
        assert others["proposal_id"] != mine
        assert "Six." not in (await shown(lithos, others["proposal_id"]))["proposed"]
        await decide(lithos, mine)
        await decide(lithos, others["proposal_id"])
        assert (await lithos.read(note_id))["content"] == f"Zero.\n\n{TEXT}\n\nSix."


async def test_approval_merges_with_later_changes_and_names_both_authors(tmp_path: Path) -> None:
    """behaviour 281"""
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        proposal = await propose(lithos, "lithos_write", id=note_id, content=TEXT.replace("Five", "5"))
        await lithos.write("Plan", TEXT.replace("One", "1"), id=note_id, agent="carl")
        answer = await decide(lithos, proposal)
        assert (answer["status"], answer["version"]) == ("approved", 3)
        read = await lithos.read(note_id)
        assert read["content"] == "1.\n\nTwo.\n\nThree.\n\nFour.\n\n5."
        assert set(read["metadata"]["contributors"]) == {"bot", "carl"}
        newest, earlier, *_ = (await lithos.call("lithos_history", id=note_id))["versions"]
        assert (newest["agent"], newest["op"], newest["approved_by"]) == ("bot", "updated", "anna")
        assert "approved_by" not in earlier


async def test_conflict_names_the_lines_and_leaves_the_proposal_pending(tmp_path: Path) -> None:
    """behaviour 281"""
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        proposal = await propose(lithos, "lithos_write", id=note_id, content=TEXT.replace("Two", "2"))
        await lithos.write("Plan", TEXT.replace("Two", "Zwei"), id=note_id, agent="carl")
        before = (lithos.knowledge / "plan.md").read_bytes()
        answer = await decide(lithos, proposal)
        assert "stays pending" in refusal(answer, "version_conflict")
        (conflict,) = answer["conflicts"]
        assert (conflict["line"], conflict["mine"].strip(), conflict["theirs"].strip()) == (3, "2.", "Zwei.")
        assert (lithos.knowledge / "plan.md").read_bytes() == before
        found = await shown(lithos, proposal)
        assert (found["proposal"]["status"], found["conflicts"]) == ("pending", [conflict])
        mended = found["current"].replace("Zwei", "2, zwei")
        answer = await decide(lithos, proposal, seal=found["seal"], text=mended)
        assert answer["status"] == "approved"
        assert "2, zwei." in (await lithos.read(note_id))["content"]


async def test_approval_is_valid_only_for_the_version_shown(tmp_path: Path) -> None:
    """behaviour 281: the seal covers the note and the outcome.

    If either changes, a person sees the change first.
    """
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        proposal = await propose(lithos, "lithos_note_edit", id=note_id, op="append", text="Six.")
        seal = (await shown(lithos, proposal))["seal"]
        await propose(lithos, "lithos_note_edit", id=note_id, op="append", text="Evil.")
        assert "Check it again" in refusal(await decide(lithos, proposal, seal=seal), "version_conflict")
        seal = (await shown(lithos, proposal))["seal"]
        await lithos.write("Plan", TEXT.replace("One", "1"), id=note_id)
        assert "Check it again" in refusal(await decide(lithos, proposal, seal=seal), "version_conflict")
        answer = await decide(lithos, proposal, "reject", seal=seal, reason="no")
        assert "Check it again" in refusal(answer, "version_conflict")
        seal = (await shown(lithos, proposal))["seal"]
        assert (await decide(lithos, proposal, seal=seal))["status"] == "approved"
        assert refusal(await decide(lithos, proposal, text="x"), "invalid_input")


async def test_only_one_of_two_simultaneous_approvals_succeeds(tmp_path: Path) -> None:
    """behaviour 281: an approval takes effect only once."""
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        proposal = await propose(lithos, "lithos_note_edit", id=note_id, op="append", text="Six.")
        answers: list[Any] = []

        async def approve() -> None:
            answers.append(await decide(lithos, proposal))

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(approve)
        assert sorted(answer["status"] for answer in answers) == ["approved", "error", "error", "error"]
        assert {answer["code"] for answer in answers if "code" in answer} == {"proposal_closed"}
        assert (await lithos.read(note_id))["content"].count("Six.") == 1
        assert (await lithos.call("lithos_history", id=note_id))["total"] == 2


@pytest.mark.parametrize("kept", [True, False], ids=["with history", "without history"])
@pytest.mark.parametrize("written", [True, False], ids=["written", "not written"])
@pytest.mark.parametrize("kind", ["create", "update", "merge", "move", "delete"])
async def test_approval_interrupted_by_a_crash_is_finished_or_pending_again(
    tmp_path: Path, kind: str, written: bool, kept: bool
) -> None:
    """behaviour 281: even after a crash, an approval takes effect only once."""
    history = HistoryConfig(enabled=kept)
    async with asking(tmp_path, history=history) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        tool, arguments = {
            "create": ("lithos_write", {"title": "New", "content": "x"}),
            "update": ("lithos_write", {"id": note_id, "content": "Quite another."}),
            "merge": ("lithos_note_edit", {"id": note_id, "op": "append", "text": "Six."}),
            "move": ("lithos_note_move", {"id": note_id, "path": "elsewhere"}),
            "delete": ("lithos_delete", {"id": note_id}),
        }[kind]
        proposal = await propose(lithos, tool, **arguments)
        if kind == "merge":
            await lithos.write("Plan", TEXT.replace("One", "1"), id=note_id)
        service = lithos.server.get(Proposals)
        looked = await service.show(proposal)
        await lithos.server.get(Coordinator).mailbox.ask(BeginApproval(id=proposal, by="anna"))
        if written:
            await service._carry_out(looked, "anna", None)
    async with asking(tmp_path, history=history) as lithos:
        files = {path: (lithos.knowledge / path).read_bytes() for path in lithos.files()}
        await lithos.server.get(Proposals).resume()
        row = (await shown(lithos, proposal))["proposal"]
        assert (row["status"], row["decided_by"]) == (("approved", "anna") if written else ("pending", None))
        answer = await decide(lithos, proposal)
        if written:
            assert refusal(answer, "proposal_closed")
            assert {path: (lithos.knowledge / path).read_bytes() for path in lithos.files()} == files
        else:
            assert answer["status"] == "approved", answer


async def test_abandoned_approval_does_not_affect_a_later_approval(tmp_path: Path) -> None:
    """behaviour 281: a person may start an approval again before the server abandons the first attempt."""
    clock = Clock()
    async with asking(tmp_path, clock=clock) as lithos:
        proposal = await propose(lithos, "lithos_write", title="New", content="x")
        ask = lithos.server.get(Coordinator).mailbox.ask
        first = await ask(BeginApproval(id=proposal, by="anna"))
        await ask(AbandonApproval(id=proposal, begun_at=first.begun_at))
        clock.now += timedelta(seconds=1)
        second = await ask(BeginApproval(id=proposal, by="berta"))
        await ask(AbandonApproval(id=proposal, begun_at=first.begun_at))
        row = lithos.server.get(PendingProposals).get(proposal)
        assert row is not None
        assert (row.begun_at, row.decided_by) == (second.begun_at, "berta")
        await ask(AbandonApproval(id=proposal, begun_at=second.begun_at))
        assert (await decide(lithos, proposal))["status"] == "approved"


async def test_each_kind_of_proposal_is_carried_out_as_proposed(tmp_path: Path) -> None:
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        await lithos.create("Links", "See [[plan]] and [text](plan.md).")
        moved = await propose(lithos, "lithos_note_move", id=note_id, path="sub/Plan B.md")
        assert (await shown(lithos, moved))["diff"] == (
            "rename from plan.md\nrename to sub/Plan B.md\n"
            "canvases that show the note are updated\nlinks rewritten in links.md\n"
        )
        assert (await decide(lithos, moved))["path"] == "sub/Plan B.md"
        assert b"sub/Plan%20B.md" in (lithos.knowledge / "links.md").read_bytes()
        gone = await propose(lithos, "lithos_delete", id=note_id)
        assert (await decide(lithos, gone))["status"] == "approved"
        assert lithos.files() == ["links.md"]
        newest = (await lithos.call("lithos_history", id=note_id))["versions"][0]
        assert (newest["op"], newest["agent"], newest["approved_by"]) == ("deleted", "bot", "anna")
        back = await propose(lithos, "lithos_restore", id=note_id, version=1)
        assert (await decide(lithos, back))["status"] == "approved"
        assert (await lithos.read(note_id))["content"] == TEXT


async def test_approved_move_keeps_links_when_update_links_is_false(tmp_path: Path) -> None:
    """behaviour 349: earlier versions rewrote all links, including links in protected notes."""
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        linking = (await lithos.write("Links", "See [[plan]] and [text](plan.md)."))["path"]
        text = (lithos.knowledge / linking).read_bytes()
        moved = await propose(lithos, "lithos_note_move", id=note_id, path="sub/b.md", update_links=False)
        look = await shown(lithos, moved)
        assert look["diff"] == "rename from plan.md\nrename to sub/b.md\nlinks are not changed\n"
        assert look["proposal"]["update_links"] is False
        assert (await decide(lithos, moved, seal=look["seal"]))["path"] == "sub/b.md"
        assert (lithos.knowledge / linking).read_bytes() == text
        (newest, *_) = (await lithos.call("lithos_history", id=note_id))["versions"]
        assert (newest["op"], newest["agent"], newest["approved_by"]) == ("renamed", "bot", "anna")


async def test_notes_changed_by_an_approved_move_name_the_approver(tmp_path: Path) -> None:
    """behaviour 349: versions and events name the approver, even after a restart in between."""
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", "Beside [[links]].")
        other = await lithos.create("Links", "See [text](plan.md).")
        moved = await propose(lithos, "lithos_note_move", id=note_id, path="sub/b.md")

        async def stop(*_: Any, **__: Any) -> Any:
            raise ShuttingDown("moving")

        lithos.server.get(Moving)._finish = stop  # type: ignore[method-assign]
        assert (await decide(lithos, moved))["status"] == "error"
    async with asking(tmp_path) as lithos:
        await lithos.server.get(Moving).resumed.wait()
        assert b"sub/b.md" in (lithos.knowledge / "links.md").read_bytes()
        for each in (note_id, other):
            (newest, *_) = (await lithos.call("lithos_history", id=each))["versions"]
            assert (newest["agent"], newest["approved_by"]) == ("bot", "anna"), newest
        told = [payload for kind, payload in lithos.events() if kind == "note.updated"]
        assert {payload["id"]: payload["approved_by"] for payload in told}[other] == "anna"


@pytest.mark.parametrize("has_seal", [True, False])
async def test_links_added_after_the_preview_are_shown_before_approval(
    tmp_path: Path, has_seal: bool
) -> None:
    """behaviour 349"""
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        await lithos.create("One", "[text](plan.md)")
        moved = await propose(lithos, "lithos_note_move", id=note_id, path="sub/b.md")
        seal = (await shown(lithos, moved))["seal"]
        await lithos.create("Two", "[text](plan.md)")
        if has_seal:
            assert "Check it again" in refusal(await decide(lithos, moved, seal=seal), "version_conflict")
            assert b"(plan.md)" in (lithos.knowledge / "one.md").read_bytes()
            look = await shown(lithos, moved)
            assert look["diff"].endswith("links rewritten in one.md\nlinks rewritten in two.md\n")
            seal = look["seal"]
        assert (await decide(lithos, moved, **({"seal": seal} if has_seal else {})))["path"] == "sub/b.md"
        assert all(b"sub/b.md" in (lithos.knowledge / f"{each}.md").read_bytes() for each in ("one", "two"))


async def test_link_added_during_a_move_approval_is_not_rewritten(tmp_path: Path) -> None:
    """behaviour 349: the person has not seen this link, so the note writer refuses the move."""
    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        await lithos.create("One", "[text](plan.md)")
        request = MoveNote(id=note_id, agent="bot", path="sub/b.md", relinks=frozenset())
        with pytest.raises(VersionConflict, match="since you checked"):
            await lithos.server.get(Moving).move(request)
        assert lithos.files() == ["one.md", "plan.md"]


async def test_note_restored_by_approval_keeps_its_creation_time(tmp_path: Path) -> None:
    """behaviour 349: a restore without approval also keeps the creation time."""
    clock = Clock()
    async with asking(tmp_path, clock=clock, storage=VAULT) as lithos:
        os.utime(put_note(tmp_path, "plan.md", "# Plan\n\nText.\n"), (1e9, 1e9))
        await take_up(lithos, "plan.md")
        (row,) = (await lithos.call("lithos_list"))["items"]
        note_id, began = row["id"], (await lithos.read(row["id"]))["metadata"]["created_at"]
        await person(lithos, "lithos_delete", id=note_id, agent="cli")
        clock.advance(days=3)
        back = await propose(lithos, "lithos_restore", id=note_id, version=1)
        assert (await decide(lithos, back))["status"] == "approved"
        assert (await lithos.read(note_id))["metadata"]["created_at"] == began


async def test_deletion_stays_pending_when_the_note_has_changed_since(tmp_path: Path) -> None:
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        gone = await propose(lithos, "lithos_delete", id=note_id)
        await lithos.write("Plan", "Precious.", id=note_id)
        answer = await decide(lithos, gone)
        assert refusal(answer, "version_conflict")
        assert answer["conflicts"] == [{"key": "version", "base": 1, "mine": None, "theirs": 2}]
        assert (await lithos.read(note_id))["content"] == "Precious."


async def test_refusal_of_an_approval_names_the_occupied_path(tmp_path: Path) -> None:
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        new = await propose(lithos, "lithos_write", title="Same", content="mine", path="a")
        moved = await propose(lithos, "lithos_note_move", id=note_id, path="a/moved.md")
        await lithos.create("Same", "theirs", path="a")
        await lithos.create("Moved", "theirs", path="a")
        for proposal in (new, moved):
            answer = await decide(lithos, proposal)
            assert "already exists" in refusal(answer, "path_collision")
        assert lithos.server.get(Proposals).counts() == {"pending": 2}


async def test_rejected_proposal_is_never_applied_and_agent_gets_the_reason(tmp_path: Path) -> None:
    """behaviour 282"""
    clock = Clock()
    async with asking(tmp_path, clock=clock) as lithos:
        notes = [await lithos.create(f"Plan {n}", TEXT) for n in range(4)]
        ids = [
            await propose(lithos, "lithos_note_edit", id=note, op="append", text="Never.") for note in notes
        ]
        cursor = (await bot(lithos, "lithos_context", query="plan"))["cursor"]
        assert refusal(await decide(lithos, ids[0], "reject"), "invalid_input")
        long = await decide(lithos, ids[0], "reject", reason="x" * 501)
        assert refusal(long, "invalid_input")
        answer = await decide(lithos, ids[0], "reject", reason="  Say where\nit is from. ")
        assert answer["status"] == "rejected"
        assert (await bot(lithos, "lithos_proposal_withdraw", id=ids[1]))["status"] == "withdrawn"
        foreign = await lithos.call("lithos_proposal_withdraw", id=ids[2], agent="other")
        assert refusal(foreign, "forbidden")
        await lithos.call("lithos_delete", id=notes[2], agent="carl")
        clock.advance(days=31)
        await lithos.server.get(Coordinator).mailbox.ask(TidyProposals(now=clock()))
        told = (await bot(lithos, "lithos_context", query="plan", since=cursor, sections=["activity"]))[
            "text"
        ]
        assert "update of plan-0.md was rejected by anna: Say where it is from." in told
        assert "update of plan-2.md was rejected by carl: The note was deleted." in told
        assert "update of plan-3.md expired without review" in told
        others = await lithos.call("lithos_context", query="plan", since=cursor, agent_id="other")
        assert "proposal" not in others["text"]
        for proposal, status in zip(ids, ("rejected", "withdrawn", "rejected", "expired"), strict=True):
            answer = await decide(lithos, proposal)
            assert refusal(answer, "proposal_closed")
            assert answer["status"] == "error"
            rows = (await person(lithos, "lithos_proposals", status=status))["proposals"]
            assert proposal in [row["id"] for row in rows]
        texts = [(lithos.knowledge / path).read_text() for path in lithos.files()]
        assert len(texts) == 3
        assert not any("Never." in text for text in texts)
        assert lithos.server.get(Proposals).last_reasons() == ["Say where it is from."]
    async with asking(tmp_path, clock=clock) as lithos:
        assert lithos.server.get(Proposals).last_reasons() == ["Say where it is from."]
        assert lithos.server.get(Proposals).counts() == {"pending": 0}


async def test_limit_on_proposals_is_reported_with_advice(tmp_path: Path, monkeypatch: Any) -> None:
    """behaviour 282"""
    monkeypatch.setattr(rules, "MOST_OF_AGENT", 2)
    monkeypatch.setattr(rules, "MOST_PENDING", 3)
    async with asking(tmp_path) as lithos:
        notes = [await lithos.create(f"Plan {n}", TEXT) for n in range(4)]
        for note in notes[:2]:
            await propose(lithos, "lithos_delete", id=note)
        full = await bot(lithos, "lithos_delete", id=notes[2])
        assert "Withdraw some" in refusal(full, "invalid_input")
        await propose(lithos, "lithos_write", id=notes[0], content="Instead of the deletion.")
        other = {"agent": "other", "op": "append", "text": "x"}
        assert (await lithos.call("lithos_note_edit", id=notes[0], **other))["status"] == "proposed"
        full = await lithos.call("lithos_note_edit", id=notes[1], **other)
        assert "wait for a person" in refusal(full, "invalid_input")


async def test_confirmed_proposals_are_still_pending_after_a_restart(tmp_path: Path) -> None:
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        proposal = await propose(lithos, "lithos_note_edit", id=note_id, op="append", text="Six.")
    async with asking(tmp_path) as lithos:
        assert await propose(lithos, "lithos_note_edit", id=note_id, op="append", text="Seven.") == proposal
        await decide(lithos, proposal)
        assert (await lithos.read(note_id))["content"] == f"{TEXT}\n\nSix.\n\nSeven."


async def test_pending_proposals_are_counted_in_answers_health_and_metrics(tmp_path: Path) -> None:
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        assert "pending_proposals" not in await bot(lithos, "lithos_context", query="plan")
        await propose(lithos, "lithos_delete", id=note_id)
        assert (await lithos.call("lithos_stats"))["pending_proposals"] == 1
        assert (await bot(lithos, "lithos_context", query="plan"))["pending_proposals"] == 1
        _, health = await lithos.server.get(ServerState).report()
        assert health["components"]["coordination"] == {"status": "ok", "pending_proposals": 1}
        assert b"lithos_pending_proposals 1.0" in await lithos.server.get(Gauges).scrape()


async def test_only_admins_may_decide_in_console_and_commands(tmp_path: Path) -> None:
    async with asking(tmp_path) as lithos:
        proposal = await propose(lithos, "lithos_write", title="New", content="x")
        given = {"id": proposal, "decision": "approve", "by": "bot"}
        tools = lithos.server.tools
        assert "lithos_proposal_decide" not in [spec.name for spec in tools.listed(COMMAND)]
        for stranger in (BOT, OWNER, Principal("boss", "admin")):
            with pytest.raises(UnknownTool):
                await tools.call("lithos_proposal_decide", given, stranger)
        page = attrs.evolve(Principal("pen", "write"), is_own=True, is_person=True)
        assert refusal(await tools.call("lithos_proposal_decide", given, page) or {}, "forbidden")
        own = attrs.evolve(Principal("boss", "admin", "bot"), is_own=True, is_person=True)
        mine = await tools.call("lithos_proposal_decide", {**given, "by": "bot"}, own) or {}
        assert "no agent approves its own proposal" in refusal(mine, "forbidden")
        missing = await person(lithos, "lithos_proposal_decide", id="nope", decision="approve", by="anna")
        assert refusal(missing, "proposal_not_found")


async def test_old_decisions_are_deleted_and_the_newest_are_kept(tmp_path: Path, monkeypatch: Any) -> None:
    clock = Clock()
    async with asking(tmp_path, clock=clock) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        for number in range(3):
            proposal = await propose(
                lithos, "lithos_note_edit", id=note_id, op="append", text=f"Text {number}."
            )
            await decide(lithos, proposal, "reject", reason=f"no {number}")
            clock.advance(days=20)
        rejected = {"status": "rejected"}
        assert (await person(lithos, "lithos_proposals", **rejected))["total"] == 3
        await lithos.server.get(Coordinator).mailbox.ask(TidyProposals(now=clock() + timedelta(days=45)))
        left = await person(lithos, "lithos_proposals", **rejected)
        assert [row["reason"] for row in left["proposals"]] == ["no 2", "no 1"]


async def steps_of(lithos: Lithos, note_id: str, tag: str) -> int:
    """Return the number of proposal and scope function calls that one edit makes on the event loop."""
    steps = 0

    def count(frame: Any, event: str, _argument: Any) -> None:
        nonlocal steps
        path = Path(frame.f_code.co_filename)
        steps += event == "call" and (
            path.parent.name == "proposals" or path.stem in ("change_gate", "scopes")
        )

    sys.setprofile(count)
    try:
        answer = await lithos.server.tools.call(
            "lithos_note_update", {"id": note_id, "tags": [tag], "agent": "free"}, OWNER
        )
    finally:
        sys.setprofile(None)
    assert answer is not None
    assert answer["status"] == "updated"
    return steps


async def fewest_steps(lithos: Lithos, note_id: str, tag: str) -> int:
    """Return the lowest step count of three edits, because a background task may add steps to an edit."""
    return min([await steps_of(lithos, note_id, f"{tag}-{attempt}") for attempt in range(3)])


async def test_thousand_pending_proposals_do_not_slow_a_write(tmp_path: Path) -> None:
    """docs/spec/scopes.md §2: the write only checks whether its own note has a proposal."""
    async with asking(tmp_path) as lithos:
        note_id = await lithos.create("Plan", TEXT)
        now = lithos.server.clock()
        proposal = Proposal(
            id="", note_id="", agent="", kind="update", path="", title="T", created_at=now, expires_at=now
        )
        steps: dict[int, int] = {}
        for number in range(MOST_PENDING):
            if number in (0, 1, MOST_PENDING // 4):
                steps[number] = await fewest_steps(lithos, note_id, f"t{number}")
            made = attrs.evolve(proposal, note_id=f"n{number}", agent=f"a{number % 20}", path=f"n{number}.md")
            await lithos.server.get(Coordinator).mailbox.ask(
                KeepProposal(proposal=made, texts=ProposalTexts(b"old", b"new"))
            )
        assert lithos.server.get(Proposals).counts() == {"pending": MOST_PENDING}
        assert await fewest_steps(lithos, note_id, "last") == steps[MOST_PENDING // 4] == steps[1]
        assert steps[0] < steps[1] < 30
