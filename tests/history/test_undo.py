"""The command `lithos undo`: one agent's changes are undone and other changes stay.

A second run changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from inspect import Signature, signature
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lithos.app.options import parse_arguments
from lithos.app.serving.here import LocalServer
from lithos.history.commands_history import history, restore_note, undo
from lithos.history.service.undo import UndoRun
from lithos.kernel.configuration.catalogue import Config
from lithos.server.command.session import CommandFailed, CommandSession
from tests.repeats import first_of
from tests.servers import Clock, Lithos, serving

START = "2026-03-04T05:06:07+00:00"
COMMANDS = {"undo": undo, "history": history, "restore-note": restore_note}


class Desk:
    """A person at a terminal, and a server whose clock advances by one second per tool call."""

    def __init__(self, lithos: Lithos, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
        self.lithos = lithos
        self.clock = clock
        self._capsys = capsys

    async def write(self, agent: str, title: str, content: str | None = None, **more: Any) -> str:
        self.clock.advance(seconds=1)
        arguments = {"agent": agent, "title": title, "content": content} | more
        answer = await self.lithos.call("lithos_write", **arguments)
        assert answer["status"] in ("created", "updated"), answer
        return str(answer["id"])

    async def call(self, tool: str, **arguments: Any) -> Any:
        self.clock.advance(seconds=1)
        return await self.lithos.call(tool, **arguments)

    async def text(self, note: str) -> str:
        return str((await self.lithos.read(note))["content"])

    async def type(self, *words: str, code: int | None = 0) -> str:
        """Return the output of a command. If `code` is None, any exit code is accepted."""
        self.clock.advance(seconds=1)
        self._capsys.readouterr()
        invocation = parse_arguments(words)
        done = await COMMANDS[invocation.command](
            CommandSession(invocation, Config()), LocalServer(self.lithos.server)
        )
        printed = self._capsys.readouterr().out
        assert code in (None, done), printed
        return printed

    async def undo(self, *words: str, agent: str = "bad", code: int = 0) -> Mapping[str, Any]:
        """Return the report of an undo."""
        self.clock.advance(seconds=1)
        until = ("--until", self.clock.text) if "--until" not in words else ()
        typed = ("undo", "--agent", agent, "--since", START, *until, *words, "--json")
        report: Mapping[str, Any] = json.loads(await self.type(*typed, code=code))
        return report

    def bytes_of_all(self) -> dict[str, bytes]:
        return {name: (self.lithos.knowledge / name).read_bytes() for name in self.lithos.files()}


def at_desk(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Run a test with a `Desk` and its other fixtures."""
    wanted = [each for name, each in signature(test).parameters.items() if name != "desk"]

    async def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], **more: Any) -> None:
        clock = Clock()
        async with serving(tmp_path, clock=clock, settled=False) as lithos:
            await test(Desk(lithos, clock, capsys), **more)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    given = [each for each in signature(run).parameters.values() if each.name != "more"]
    run.__signature__ = Signature([*given, *wanted])  # type: ignore[attr-defined]
    return run


def results(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the result for each note title.

    If a note has several steps, the result of the first step counts.
    """
    return {row["title"]: row["result"] for row in reversed(report["notes"])}


@at_desk
async def test_undo_reverts_changes_of_one_agent_and_keeps_others(desk: Desk) -> None:
    """behaviour 224"""
    changed = await desk.write("ann", "Changed", "good\n\nend")
    moved = await desk.write("ann", "Moved", "m")
    deleted = await desk.write("ann", "Deleted", "d")
    shared = await desk.write("ann", "Shared", "one\n\ntwo\n\nthree", tags=["a"])
    clash = await desk.write("ann", "Clash", "one\n\ntwo")
    await desk.write("bad", "Changed", "bad", id=changed)
    await desk.write("bad", "Changed", "worse", id=changed)
    await desk.call("lithos_note_move", id=moved, path="junk", agent="bad")
    await desk.call("lithos_delete", id=deleted, agent="bad")
    await desk.write("bad", "Shared", "one\n\nBAD\n\nthree", id=shared, tags=["a", "bad"])
    await desk.write("bob", "Shared", "one\n\nBAD\n\nthree\n\nfour", id=shared, tags=["a", "bad", "b"])
    await desk.write("bad", "Clash", "one\n\nBAD", id=clash)
    await desk.write("bob", "Clash", "one\n\nBAD indeed", id=clash)
    made = await desk.write("bad", "Made", "spam")
    joined = await desk.write("bad", "Joined", "spam")
    await desk.write("bob", "Joined", "spam, but answered", id=joined)
    await desk.write("bob", "Else", "mine")

    before = desk.bytes_of_all()
    tried = await desk.undo("--dry-run", code=1)
    assert desk.bytes_of_all() == before
    report = await desk.undo(code=1)
    expected = {
        "Changed": "reverted",
        "Moved": "reverted",
        "Deleted": "restored",
        "Shared": "merged",
        "Clash": "not reverted",
        "Made": "deleted",
        "Joined": "not reverted",
    }
    assert results(report) == results(tried) == expected
    assert report["counts"]["not_reverted"] == 2
    reasons = {row["title"]: row["reason"] for row in report["notes"] if row["reason"]}
    assert reasons == {
        "Clash": "others changed the same places: line 3",
        "Joined": "bob has changed the new note since (version 2)",
    }
    newest_first = [row["at"] for row in report["notes"]]
    assert newest_first == sorted(newest_first, reverse=True)
    assert await desk.text(changed) == "good\n\nend"
    assert (await desk.lithos.read(moved))["path"] == "moved.md"
    assert await desk.text(deleted) == "d"
    now = await desk.lithos.read(shared)
    assert now["content"] == "one\n\ntwo\n\nthree\n\nfour"
    assert now["metadata"]["tags"] == ["a", "b"]
    assert await desk.text(clash) == "one\n\nBAD indeed"
    assert (await desk.lithos.call("lithos_read", id=made))["code"] == "doc_not_found"
    assert (await desk.lithos.read(made, version=1))["content"] == "spam"
    assert (await desk.lithos.read(deleted))["metadata"]["created_at"] < desk.clock.text

    after = desk.bytes_of_all()
    again = await desk.undo(code=1)
    assert desk.bytes_of_all() == after
    assert set(results(again).values()) == {"nothing to do", "not reverted"}
    assert again["counts"]["nothing_to_do"] == 5


@at_desk
async def test_undo_keeps_another_agents_change_between_the_undone_changes(desk: Desk) -> None:
    """behaviour 224"""
    note = await desk.write("ann", "List", "a\n\nb\n\nc\n\nd")
    await desk.write("bad", "List", "BAD\n\nb\n\nc\n\nd", id=note)
    await desk.write("bob", "List", "BAD\n\nb\n\nc, says bob\n\nd", id=note)
    await desk.write("bad", "List", "BAD\n\nb\n\nc, says bob\n\nWORSE", id=note)
    report = await desk.undo()
    assert [row["changes"] for row in report["notes"]] == [
        [{"version": 4, "op": "updated"}],
        [{"version": 2, "op": "updated"}],
    ]
    assert await desk.text(note) == "a\n\nb\n\nc, says bob\n\nd"
    assert (await desk.lithos.read(note))["version"] == 6
    await desk.undo()
    assert (await desk.lithos.read(note))["version"] == 6


@at_desk
async def test_second_undo_completes_the_undo_of_a_time_span(desk: Desk) -> None:
    """behaviour 224"""
    note = await desk.write("ann", "List", "a\n\nb\n\nc")
    await desk.write("bad", "List", "BAD\n\nb\n\nc", id=note)
    middle = desk.clock.text
    await desk.write("bad", "List", "BAD\n\nb\n\nWORSE", id=note)
    first = await desk.undo("--until", middle)
    assert first["notes"] == []  # `until` is exclusive, and `since` is inclusive
    later = await desk.undo("--since", desk.clock.text)
    assert later["notes"] == []
    await desk.type("undo", "--agent", "bad", "--since", middle, "--until", "2030-01-01")
    assert await desk.text(note) == "a\n\nb\n\nc"


@at_desk
async def test_change_repeated_by_another_agent_is_not_undone(
    desk: Desk,
) -> None:
    note = await desk.write("ann", "Page", "good")
    await desk.write("bad", "Page", "bad", id=note)
    await desk.undo()
    await desk.write("bob", "Page", "bad", id=note)  # bob makes the same change deliberately
    report = await desk.undo()
    assert results(report) == {"Page": "nothing to do"}
    assert await desk.text(note) == "bad"
    await desk.write("bad", "Page", "bad again", id=note)
    report = await desk.undo()
    assert await desk.text(note) == "bad"


@at_desk
async def test_note_restored_by_another_agent_after_an_undo_stays(desk: Desk) -> None:
    note = await desk.write("bad", "Made", "spam")
    assert results(await desk.undo()) == {"Made": "deleted"}
    assert results(await desk.undo()) == {"Made": "nothing to do"}
    await desk.call("lithos_restore", id=note, version=1, agent="ann")
    report = await desk.undo(code=1)
    assert results(report) == {"Made": "not reverted"}
    assert await desk.text(note) == "spam"


@at_desk
async def test_deletion_repeated_by_another_agent_stays(desk: Desk) -> None:
    note = await desk.write("ann", "Page", "text")
    await desk.call("lithos_delete", id=note, agent="bad")
    assert results(await desk.undo()) == {"Page": "restored"}
    await desk.call("lithos_delete", id=note, agent="ann")
    assert results(await desk.undo()) == {"Page": "nothing to do"}


@at_desk
async def test_undo_reports_a_file_at_the_path_of_deleted_note(desk: Desk) -> None:
    note = await desk.write("ann", "Page", "text")
    await desk.call("lithos_delete", id=note, agent="bad")
    await desk.write("bob", "Page", "other")
    report = await desk.undo(code=1)
    assert "exists already" in report["notes"][0]["reason"]


@at_desk
async def test_undo_deletes_a_replacement_note_and_restores_the_original(desk: Desk) -> None:
    note = await desk.write("ann", "Page", "text")
    await desk.call("lithos_delete", id=note, agent="bad")
    await desk.write("bad", "Page", "spam")
    tried = await desk.undo("--dry-run")
    assert [row["result"] for row in tried["notes"]] == ["deleted", "restored"]
    report = await desk.undo()
    assert [row["result"] for row in report["notes"]] == ["deleted", "restored"]
    assert await desk.text(note) == "text"


@at_desk
async def test_concurrent_change_is_not_overwritten_by_undo(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 224"""
    note = await desk.write("bad", "Made", "spam")
    kept = await desk.write("ann", "Kept", "a\n\nb\n\nc")
    await desk.write("bad", "Kept", "BAD\n\nb\n\nc", id=kept)
    ask = UndoRun._call
    waiting = [(kept, "Kept", "BAD\n\nb\n\nc\n\nd"), (note, "Made", "spam, kept")]

    async def interfere(run: Any, tool: str, **arguments: Any) -> Any:
        if waiting and tool in ("lithos_delete", "lithos_restore"):
            wanted, title, text = waiting.pop(0)
            assert wanted == arguments["id"]
            await desk.write("bob", title, text, id=wanted)
        return await ask(run, tool, **arguments)

    monkeypatch.setattr(UndoRun, "_call", interfere)
    report = await desk.undo(code=1)
    assert results(report) == {"Kept": "merged", "Made": "not reverted"}
    assert await desk.text(kept) == "a\n\nb\n\nc\n\nd"
    assert await desk.text(note) == "spam, kept"


@at_desk
async def test_undo_completes_while_the_agent_keeps_writing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes that the agent makes after the start of the undo are not undone, and keep all their text."""
    notes = [await desk.write("ann", f"N{n}", "a\n\nb\n\nc") for n in range(5)]
    for n, note in enumerate(notes):
        await desk.write("bad", f"N{n}", "BAD\n\nb\n\nc", id=note)
    carry_out = UndoRun.carry_out
    number = 0

    async def go_on(run: Any, step: Any) -> Any:
        nonlocal number
        title, note = step.last.title, step.last.note_id
        number += 1
        await desk.write("bad", title, f"BAD\n\nb\n\nc{number}", id=note)
        return await carry_out(run, step)

    monkeypatch.setattr(UndoRun, "carry_out", go_on)
    report = await desk.undo()
    assert report["counts"]["merged"] == 5
    assert sorted([await desk.text(note) for note in notes]) == [f"a\n\nb\n\nc{n}" for n in range(1, 6)]


@at_desk
async def test_undo_does_not_undo_an_earlier_undo(desk: Desk) -> None:
    note = await desk.write("ann", "Page", "good")
    await desk.write("bad", "Page", "bad", id=note)
    assert results(await desk.undo()) == {"Page": "reverted"}
    assert (await desk.undo(agent="undo"))["notes"] == []
    assert await desk.text(note) == "good"


@at_desk
async def test_changes_of_an_agent_named_undo_are_undone(desk: Desk) -> None:
    """Agents of older versions could use the name, and an undo by those versions left no mark."""
    tools = desk.lithos.server.tools  # Server code calls tools in this way, and may use the name `undo`.
    deleted = await desk.write("ann", "Deleted", "good")
    changed = await desk.write("ann", "Changed", "good")
    await desk.write("bad", "Deleted", "bad", id=deleted)
    for tool, more in (
        ("lithos_delete", {"id": deleted}),
        ("lithos_note_edit", {"id": changed, "op": "append", "text": "vandalised"}),
        ("lithos_write", {"title": "Spam", "content": "spam"}),
    ):
        desk.clock.advance(seconds=1)
        answer = await tools.call(tool, {"agent": "undo", **more})
        assert "code" not in (answer or {})
    report = await desk.undo(code=1)
    assert [(row["result"], row["reason"]) for row in report["notes"]] == [
        ("not reverted", "undo has deleted the note since")
    ]
    report = await desk.undo(agent="undo")
    assert results(report) == {"Deleted": "restored", "Changed": "reverted", "Spam": "deleted"}
    assert results(await desk.undo()) == {"Deleted": "reverted"}
    assert await desk.text(deleted) == await desk.text(changed) == "good"
    after = desk.bytes_of_all()
    assert {*results(await desk.undo()).values(), *results(await desk.undo(agent="undo")).values()} == {
        "nothing to do"
    }
    assert desk.bytes_of_all() == after


@at_desk
async def test_name_swap_through_third_name_is_undone_in_one_run(desk: Desk) -> None:
    """behaviour 224: the steps of several notes run interleaved, in the order of the changes."""
    notes = {name: await desk.write("ann", name, name, path=f"{name}.md") for name in ("a", "b")}
    before = desk.bytes_of_all()
    for note, path in (("a", "third.md"), ("b", "a.md"), ("a", "b.md")):
        await desk.call("lithos_note_move", id=notes[note], path=path, agent="bad")
    assert desk.bytes_of_all() != before
    report = await desk.undo()
    assert report["counts"]["reverted"] == 3
    assert desk.bytes_of_all() == before
    assert (await desk.undo())["counts"]["nothing_to_do"] == 3


@at_desk
async def test_name_swap_is_undone_after_the_clock_was_set_back(desk: Desk) -> None:
    notes = {name: await desk.write("ann", name, name, path=f"{name}.md") for name in ("a", "b")}
    before = desk.bytes_of_all()
    desk.clock.advance(hours=1)
    for note, path in (("a", "third.md"), ("b", "a.md"), ("a", "b.md")):
        await desk.call("lithos_note_move", id=notes[note], path=path, agent="bad")
        desk.clock.advance(minutes=-5)
    assert desk.bytes_of_all() != before
    desk.clock.advance(hours=1)
    assert (await desk.undo())["counts"]["reverted"] == 3
    assert desk.bytes_of_all() == before


PLACES = ("one.md", "two.md", "three.md", "deep/one.md")
TITLES = ("One", "Two", "Three", "Four")


async def do_something(desk: Desk, random: Random, agent: str) -> None:
    """Make one random change. A change that collides with another note is refused and has no effect."""
    desk.clock.advance(seconds=1)
    known = (await desk.lithos.call("lithos_list", limit=100))["items"]
    gone = (await desk.lithos.call("lithos_history", deleted=True, limit=100))["versions"]
    note = random.choice(known)["id"] if known else None
    what = random.choice(["move"] * 4 + ["title"] * 3 + ["url"] * 2 + ["text", "delete", "return", "create"])
    url = random.choice(["", "https://example.org/1", "https://example.org/2"])
    if what == "create":
        arguments = {"content": f"made {desk.clock.text}", "path": random.choice(PLACES), "source_url": url}
        await desk.lithos.call("lithos_write", agent=agent, title=random.choice(TITLES), **arguments)
    elif what == "return" and gone:
        row = random.choice(gone)
        await desk.lithos.call("lithos_restore", id=row["id"], version=row["version"], agent=agent)
    elif note is None:
        return
    elif what == "move":
        await desk.lithos.call("lithos_note_move", id=note, path=random.choice(PLACES), agent=agent)
    elif what == "delete":
        await desk.lithos.call("lithos_delete", id=note, agent=agent)
    else:
        given = {"title": random.choice(TITLES)} if what == "title" else {"source_url": url}
        given = {"content": f"said {desk.clock.text}"} if what == "text" else given
        await desk.lithos.call("lithos_write", id=note, agent=agent, **given)


async def tree_of(desk: Desk) -> dict[str, tuple[str, str, str, str | None]]:
    """Return the values of each note by path, except the values that every write sets."""
    tree = {}
    for item in (await desk.lithos.call("lithos_list", limit=100))["items"]:
        read = await desk.lithos.read(item["id"])
        url = read["metadata"].get("source_url")
        tree[item["path"]] = (item["id"], read["title"], read["content"], url)
    return tree


@pytest.mark.parametrize("seed", first_of(range(8), 1, slow=1))
@at_desk
async def test_one_run_undoes_all_changes_of_an_agent(desk: Desk, seed: int) -> None:
    """behaviour 224: the changes include moves, swapped titles and URLs, deletions and restores."""
    random = Random(seed)
    for place, title in zip(PLACES[:3], TITLES[:3], strict=True):
        await desk.write("ann", title, f"{title} of ann", path=place)
    desk.clock.advance(seconds=1)
    since, before = desk.clock.text, await tree_of(desk)
    for _ in range(40):
        await do_something(desk, random, "bad")
    tried = await desk.undo("--since", since, "--dry-run")
    report = await desk.undo("--since", since)
    assert await tree_of(desk) == before
    assert report["counts"]["not_reverted"] == tried["counts"]["not_reverted"] == 0
    after = desk.bytes_of_all()
    again = await desk.undo("--since", since)
    assert [row for row in again["notes"] if row["result"] != "nothing to do"] == []
    assert desk.bytes_of_all() == after


@at_desk
async def test_undo_prints_its_outcome(desk: Desk) -> None:
    note = await desk.write("ann", "Page", "text")
    await desk.write("bad", "Page", "bad", id=note)
    await desk.write("bad", "Page", "worse", id=note)
    words = ("undo", "--agent", "bad", "--since", START, "--until", "2030-01-01")
    assert await desk.type(*words, "--dry-run") == (
        "would be reverted: page.md (versions 2, 3, updated)\n"
        "2 changes of 1 notes by bad: 1 reverted (dry run, nothing was changed)\n"
    )
    assert await desk.type(*words) == (
        "reverted: page.md (versions 2, 3, updated) - version 4\n2 changes of 1 notes by bad: 1 reverted\n"
    )
    assert "1 nothing to do" in await desk.type(*words)
    assert await desk.type("undo", "--agent", "nobody", "--since", START) == (
        "nobody has changed no note in that time.\n"
    )


@at_desk
async def test_undo_without_times_reverts_all_changes_of_the_agent(desk: Desk) -> None:
    """behaviour 224"""
    note = await desk.write("ann", "Page", "text")
    await desk.write("bad", "Page", "bad", id=note)
    assert await desk.type("undo", "--agent", "bad") == (
        "reverted: page.md (version 2, updated) - version 3\n1 changes of 1 notes by bad: 1 reverted\n"
    )
    assert await desk.text(note) == "text"


@at_desk
async def test_undo_of_several_agents_reverts_their_changes_to_one_note(desk: Desk) -> None:
    """behaviour 224"""
    note = await desk.write("ann", "Page", "text", tags=["own"])
    before = await desk.call("lithos_read", id=note)
    for agent, tag in (("one", "a"), ("two", "b"), ("one", "c"), ("two", "d")):
        await desk.call("lithos_note_update", id=note, agent=agent, tags=["x", tag])
    await desk.call("lithos_delete", id=note, agent="two")
    printed = await desk.type("undo", "--agent", "one", "--agent", "two")
    assert printed.endswith("5 changes of 1 notes by one, two: 1 restored\n"), printed
    after = await desk.call("lithos_read", id=note)
    assert (after["content"], after["metadata"]["tags"]) == (before["content"], ["own"])


@at_desk
async def test_undo_deletes_a_created_note_whose_later_changes_were_reverted(desk: Desk) -> None:
    """behaviour 224"""
    made = await desk.write("bad", "Made", "spam")
    await desk.write("bob", "Made", "spam, but answered", id=made)
    await desk.type("undo", "--agent", "bob")
    assert "1 deleted" in await desk.type("undo", "--agent", "bad")


@at_desk
async def test_history_and_restore_note_commands_list_and_restore_versions(desk: Desk) -> None:
    """behaviours 222, 223"""
    note = await desk.write("ann", "Page", "text")
    await desk.write("bob", "Page", "other", id=note)
    listed = (await desk.type("history", "page.md")).splitlines()
    assert [line.split()[0] for line in listed] == ["2", "1"]
    assert "updated" in listed[0]
    assert "bob" in listed[0]
    assert await desk.type("history", note) == "\n".join(listed) + "\n"
    assert "1 of 2 versions" in await desk.type("history", note, "--limit", "1")
    assert json.loads(await desk.type("history", note, "--json"))["total"] == 2
    shown = await desk.type("history", "page", "--diff", "1..2")
    assert {"-text", "+other"} <= set(shown.splitlines())
    assert json.loads(await desk.type("history", "page", "--diff", "2", "--json"))["diff"] == shown.replace(
        "\\t", "\t"
    )
    back = await desk.type("restore-note", note, "--version", "1")
    assert back == "page.md was restored: version 3 has the text of version 1\n"
    assert await desk.type("history", "--deleted") == "No deleted notes are kept.\n"
    await desk.call("lithos_delete", id=note, agent="bad")
    gone = await desk.type("history", "--deleted")
    assert f"lithos restore-note {note} --version 4" in gone
    assert json.loads(await desk.type("history", "--deleted", "--json"))["total"] == 1
    assert "is back" in await desk.type("restore-note", note, "--version", "4")
    for words in (("history",), ("history", note, "--deleted"), ("history", "nowhere.md")):
        with pytest.raises(CommandFailed):
            await desk.type(*words)


@at_desk
async def test_undo_parses_since_and_until(desk: Desk) -> None:
    assert datetime.fromisoformat(START).tzinfo is not None
    with pytest.raises(SystemExit):
        parse_arguments(["undo", "--agent", "bad", "--since", "then"])
    with pytest.raises(SystemExit):
        parse_arguments(["undo", "--since", START])


class Slots:
    """A note with six paragraphs, and a simple model of the expected undo result."""

    def __init__(self, note: str, slots: tuple[str, ...]) -> None:
        self.note = note
        self.states = [("ann", slots)]

    @property
    def text(self) -> str:
        return "\n\n".join(self.states[-1][1])

    def change(self, agent: str, slot: int, text: str) -> None:
        slots = list(self.states[-1][1])
        slots[slot] = text
        self.states.append((agent, tuple(slots)))

    def undone(self) -> str:
        """Return the text without the changes by `bad`. Changes on which other agents built stay."""
        now = list(self.states[-1][1])
        last = len(self.states) - 1
        while last > 0:
            if self.states[last][0] != "bad":
                last -= 1
                continue
            first = last
            while self.states[first - 1][0] == "bad":
                first -= 1
            if not self._take_back(now, first - 1, last):
                for each in range(last, first - 1, -1):
                    self._take_back(now, each - 1, each)
            last = first - 1
        return "\n\n".join(now)

    def _take_back(self, now: list[str], before: int, after: int) -> bool:
        """Return `now` without the changes between two states, unless other agents built on one of them."""
        base, mine = self.states[after][1], self.states[before][1]
        touched = [n for n in range(len(now)) if base[n] != mine[n]]
        if any(now[n] not in (base[n], mine[n]) for n in touched):
            return False
        for n in touched:
            now[n] = mine[n]
        return True


@pytest.mark.parametrize("seed", first_of(range(12), 1, slow=2))
@at_desk
async def test_undo_of_any_interleaved_changes_matches_the_model(desk: Desk, seed: int) -> None:
    """behaviour 224"""
    random = Random(seed)
    notes = []
    for n in range(3):
        slots = tuple(f"note {n} slot {slot}" for slot in range(6))
        notes.append(Slots(await desk.write("ann", f"Note {n}", "\n\n".join(slots)), slots))
    for step in range(36):
        chosen, agent = random.choice(notes), random.choice(["ann", "bob", "bad", "bad"])
        chosen.change(agent, random.randrange(6), f"{agent} {step}")
        await desk.write(agent, f"Note {notes.index(chosen)}", chosen.text, id=chosen.note)
    report = json.loads(
        await desk.type(
            "undo", "--agent", "bad", "--since", START, "--json", "--until", "2030-01-01", code=None
        )
    )
    assert report["counts"]["reverted"] + report["counts"]["merged"] > 0
    for note in notes:
        assert await desk.text(note.note) == note.undone()
    files = desk.bytes_of_all()
    await desk.type("undo", "--agent", "bad", "--since", START, "--json", "--until", "2030-01-01", code=None)
    assert desk.bytes_of_all() == files
