"""Command `lithos proposals`: list, show, approve and reject."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Awaitable, Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from lithos.app.options import parse_arguments
from lithos.app.serving.here import LocalServer
from lithos.kernel.configuration.catalogue import Config
from lithos.proposals import commands
from lithos.proposals.commands_proposals import proposals
from lithos.proposals.model import STATUSES
from lithos.server.command.asking import PAGE
from lithos.server.command.session import CommandFailed, CommandSession
from tests.server.console.proposing import bind, decide, propose, propose_note, propose_text, row_of
from tests.servers import MISSING_ID, Lithos, serving


class Terminal(io.StringIO):
    """Input or output of a terminal that a person uses."""

    def isatty(self) -> bool:
        return True


class Desk:
    """A person's shell with a running server, on which `bot` and `bee` may only propose changes."""

    def __init__(self, lithos: Lithos, capsys: pytest.CaptureFixture[str]) -> None:
        self.lithos = lithos
        self._capsys = capsys

    async def type(self, *words: str, code: int = 0) -> str:
        """Run the command and return its stdout. Its stderr is stored in `told`."""
        self._capsys.readouterr()
        session = CommandSession(parse_arguments(("proposals", *words)), Config())
        done = await proposals(session, LocalServer(self.lithos.server))
        printed = self._capsys.readouterr()
        self.told = printed.err
        assert done == code, (done, printed)
        return printed.out

    async def ask(self, *words: str, code: int = 0) -> Any:
        """Return the proposals from the `--json` output."""
        return json.loads(await self.type(*words, "--json", code=code))["proposals"]

    async def refused(self, *words: str) -> str:
        with pytest.raises(CommandFailed) as refusal:
            await self.type(*words)
        assert refusal.value.exit_code == 2
        return str(refusal.value)

    async def note(self, title: str = "Plan", content: str = "one\n\ntwo\n\nthree") -> str:
        return await self.lithos.create(title, content, agent="ann")

    async def status(self, proposal: str) -> str:
        return str((await row_of(self.lithos, proposal))["status"])


def at_desk(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Run a test with a `Desk`. If the test has a parameter `monkeypatch`, pass it too."""
    wants_patch = "monkeypatch" in signature(test).parameters

    async def run(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with serving(tmp_path, settled=False) as lithos:
            bind(lithos)
            await test(Desk(lithos, capsys), **({"monkeypatch": monkeypatch} if wants_patch else {}))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@at_desk
async def test_proposal_list_includes_decided_proposals_only_on_request(desk: Desk) -> None:
    assert await desk.type() == "No pending proposals.\n"
    assert await desk.ask("list") == []
    note = await desk.note()
    edit = await propose_text(desk.lithos, note, "one\n\ntwo!\n\nthree")
    new = await propose_note(desk.lithos, "Fresh", agent="bee")
    move = await propose(desk.lithos, "lithos_note_move", "bee", id=note, path="attic/plan.md")
    lines = (await desk.type()).splitlines()
    assert len(lines) == 3
    assert {line.split()[0] for line in lines} == {edit, new, move}
    (told,) = [line for line in lines if line.startswith(edit)]
    until = (await row_of(desk.lithos, edit))["expires_at"][:10]
    assert told.split()[1:4] == ["update", "bot", "plan.md"]
    assert told.endswith(f"until {until}")
    assert any("plan.md -> attic/plan.md" in line for line in lines)
    assert [row["id"] for row in await desk.ask("list", "--agent", "bot")] == [edit]
    await decide(desk.lithos, edit, "reject", reason="Say why.")
    rejected = await desk.type("list", "--status", "rejected")
    assert "plan.md" in rejected
    assert "Say why." in rejected
    assert await desk.type("--status", "expired") == "No expired proposals.\n"


@at_desk
async def test_long_proposal_list_is_printed_completely(desk: Desk) -> None:
    agents = [f"agent-{number}" for number in range(3)]
    bind(desk.lithos, *agents)
    made = {
        await propose_note(desk.lithos, f"N{n}", "x" * 300, agent=agents[n % 3]) for n in range(PAGE + 20)
    }
    rows = await desk.ask()
    assert len(rows) == len(made)
    assert {row["id"] for row in rows} == made


@at_desk
async def test_show_command_prints_the_difference_and_names_special_characters(desk: Desk) -> None:
    """behaviour 283"""
    note = await desk.note()
    proposal = await propose_text(
        desk.lithos, note, "one\n\ntwo \u202e\u0430nd\u200b\n\nthree \x1b[31m👨\u200d👩"
    )
    printed = await desk.type("show", proposal)
    assert printed.startswith(f"update of plan.md by bot, pending ({proposal})\n--- plan.md\n+++ plan.md\n")
    assert "-two\n" in printed
    assert (
        "+two [U+202E RIGHT-TO-LEFT OVERRIDE]\u0430[U+0430 CYRILLIC SMALL LETTER A in a Latin word]nd"
        "[U+200B ZERO WIDTH SPACE]\n"
    ) in printed
    assert "+three [U+001B ESCAPE][31m👨\\u200d👩\n" in printed
    assert "invisible or look-alike characters: U+202E RIGHT-TO-LEFT OVERRIDE, " in printed
    assert "common characters: U+200D ZERO WIDTH JOINER\n" in printed
    assert not set(printed) & set("\x1b\u202e\u200b\u200d")
    (shown,) = await desk.ask("show", proposal)
    assert printed.endswith(f"seal {shown['seal']}\n")
    assert shown["proposal"]["id"] == proposal
    assert "\u202e" in shown["proposed"]
    await decide(desk.lithos, proposal, "reject", by="Ann", reason="No signs\u202e.")
    printed = await desk.type("show", proposal)
    assert "rejected by Ann: No signs[U+202E RIGHT-TO-LEFT OVERRIDE].\n" in printed
    assert "seal" not in printed


@at_desk
async def test_colours_are_printed_only_to_terminals(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    proposal = await propose_text(desk.lithos, await desk.note(), "one\n\n2\n\nthree")
    for is_plain in (False, True):
        screen = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", screen)
            if is_plain:
                patch.setenv("NO_COLOR", "1")
            else:
                patch.delenv("NO_COLOR", raising=False)
            await desk.type("show", proposal)
        assert ("\033[32m+2\n\033[0m" in screen.getvalue()) is not is_plain
        assert "+2\n" in screen.getvalue()
    assert "\033" not in await desk.type("show", proposal)


@at_desk
async def test_approval_of_several_proposals_leaves_conflicting_proposals_pending(desk: Desk) -> None:
    """behaviour 281"""
    notes = [await desk.note(f"N{number}") for number in range(3)]
    ids = [await propose_text(desk.lithos, note, "one\n\ntwo, says bot\n\nthree") for note in notes]
    await desk.lithos.write("N1", "one\n\ntwo, says ann\n\nthree", id=notes[1], agent="ann")
    printed = await desk.type("approve", *ids, "--yes", "--by", "Ann", code=1)
    assert "+two, says bot\n" in printed
    assert "conflict, line 3: 'two, says bot' here, 'two, says ann' by others\n" in printed
    assert "approved: n0.md, version 2\n" in printed
    assert "approved: n2.md, version 2\n" in printed
    assert f"lithos: {ids[1]}: Others changed the same lines" in desk.told
    assert [await desk.status(one) for one in ids] == ["approved", "pending", "approved"]
    newest = (await desk.lithos.call("lithos_history", id=notes[0]))["versions"][0]
    assert (newest["agent"], newest["approved_by"]) == ("bot", "Ann")
    rows = await desk.ask("approve", ids[0], ids[1], MISSING_ID, "--yes", code=1)
    assert [(row["id"], row.get("code")) for row in rows] == [
        (ids[0], "proposal_closed"), (ids[1], "version_conflict"), (MISSING_ID, "proposal_not_found"),
    ]  # fmt: skip
    assert rows[1]["conflicts"][0]["line"] == 3


@at_desk
async def test_rejection_needs_a_reason_which_the_agent_gets(desk: Desk) -> None:
    """behaviour 282"""
    ids = [await propose_note(desk.lithos, f"N{number}") for number in range(2)]
    assert "--reason TEXT" in await desk.refused("reject", *ids)
    assert "--reason TEXT" in await desk.refused("reject", *ids, "--reason", " ")
    printed = await desk.type("reject", *ids, "--reason", "One topic a note.", "--by", "Ann")
    assert printed == "rejected: n0.md\nrejected: n1.md\n"
    row = await row_of(desk.lithos, ids[0])
    assert (row["status"], row["reason"], row["decided_by"]) == ("rejected", "One topic a note.", "Ann")
    rows = await desk.ask("reject", ids[0], "--reason", "Again.", code=1)
    assert rows[0]["code"] == "proposal_closed"


@at_desk
async def test_command_asks_only_a_person_at_a_terminal(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    proposal = await propose_text(desk.lithos, await desk.note(), "one\n\n2\n\nthree")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    for words in (("approve", proposal), ("approve", proposal, "--json")):
        assert "pass --yes" in await desk.refused(*words)
    for typed in ("\n", "n\n", "", "yesterday\n"):
        monkeypatch.setattr(sys, "stdin", Terminal(typed))
        printed = await desk.type("approve", proposal, code=1)
        assert "+2\n" in printed
        assert "Approve this? [y/N] " in desk.told
        assert "The proposal was not approved and stays pending." in desk.told
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert (await desk.type("approve", proposal)).endswith("approved: plan.md, version 2\n")


@at_desk
async def test_seal_permits_approval_of_only_the_shown_text(desk: Desk) -> None:
    note = await desk.note()
    proposal = await propose_text(desk.lithos, note, "one\n\n2\n\nthree")
    (shown,) = await desk.ask("show", proposal)
    await desk.lithos.write("Plan", "ONE\n\ntwo\n\nthree", id=note, agent="ann")
    assert "one at a time" in await desk.refused("approve", proposal, proposal, "--seal", shown["seal"])
    await desk.type("approve", proposal, "--seal", shown["seal"], code=1)
    assert "The note or the proposal has changed since you opened it" in desk.told
    assert await desk.status(proposal) == "pending"
    (shown,) = await desk.ask("show", proposal)
    assert await desk.type("approve", proposal, "--seal", shown["seal"]) == "approved: plan.md, version 3\n"
    assert (await desk.lithos.read(note))["content"] == "ONE\n\n2\n\nthree"


@at_desk
async def test_wrong_command_arguments_are_reported(desk: Desk) -> None:
    assert "Unknown action 'accept'" in await desk.refused("accept", "x")
    assert "lithos proposals show ID" in await desk.refused("list", "x")
    for action in ("show", "approve", "reject"):
        assert f"lithos proposals {action} ID" in await desk.refused(action)
    with pytest.raises(CommandFailed, match="Unknown proposal") as refusal:
        await desk.type("show", MISSING_ID)
    assert refusal.value.exit_code == 1


@at_desk
async def test_windows_line_breaks_are_not_special_characters(desk: Desk) -> None:
    file = desk.lithos.knowledge / "windows.md"
    note = await desk.note("Windows")
    data = file.read_bytes().replace(b"\n", b"\r\n")
    file.write_bytes(data)
    proposal = await propose(
        desk.lithos, "lithos_note_edit", id=note, op="find_replace", find="two", text="2"
    )
    printed = await desk.type("show", proposal)
    assert "+2\n" in printed
    assert "CARRIAGE RETURN" not in printed


def test_parser_accepts_all_proposal_statuses() -> None:
    assert commands.STATUSES == STATUSES
