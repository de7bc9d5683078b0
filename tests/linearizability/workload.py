"""Clients that use a few notes and tasks at the same time, and a person with an editor.

The clients and the person conflict on purpose.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import IO, Any

import yaml
from attrs import define, field

from tests.linearizability.checker import check
from tests.linearizability.models import OUTSIDE_COUNTS, NoteModel, TaskModel
from tests.linearizability.recording import Call, History, Reading

NOTES, TASKS = 3, 3
ASPECTS = ("code", "review")
#: Second half of a save that is made in place.
HALF = "\nThe rest.\n"


@define(eq=False)
class Workload:
    """The notes and tasks of one run, and the history."""

    random: Random
    outside_counts: bool = OUTSIDE_COUNTS
    history: History = field(factory=History)
    #: Note ids by path, titles by id, and task ids.
    notes: dict[str, str] = field(factory=dict)
    titles: dict[str, str] = field(factory=dict)
    tasks: list[str] = field(factory=list)
    #: Last observed version of each note. Writers expect this version.
    seen: dict[str, int] = field(factory=dict)
    patience: float = 60.0
    _words: int = 0

    async def prepare(self, call: Call) -> None:
        """Create the notes and tasks."""
        for number in range(NOTES):
            title = f"Note {number}"
            answer = await call("lithos_write", title=title, content="", agent="maker")
            assert answer["version"] == 1, answer
            self.notes[answer["path"]] = answer["id"]
            self.titles[answer["id"]] = title
            self.seen[answer["id"]] = 1
        for number in range(TASKS):
            self.tasks.append(
                (await call("lithos_task_create", title=f"T{number}", agent="maker"))["task_id"]
            )

    def problems(self) -> list[str]:
        """Return the violations that the history contains."""
        found = check(self.history.of("note "), NoteModel(self.outside_counts))
        return [str(violation) for violation in [*found, *check(self.history.of("task "), TaskModel())]]

    # -- clients ---------------------------------------------------------------------------------

    async def work(self, client: str, call: Call, operations: int = sys.maxsize) -> None:
        """Make one call after another. Raise `Gone` if an answer is lost."""
        for _ in range(operations):
            await (self._on_note if self.random.random() < 0.5 else self._on_task)(client, call)

    async def _on_note(self, client: str, call: Call) -> None:
        note = self.random.choice(list(self.notes.values()))
        kind = self.random.choices(["read", "write", "patch", "delete"], [5, 5, 3, 0.1])[0]
        expected = self.seen[note] if self.random.random() < 0.7 else None
        word = self._word(client)
        if kind == "read":
            arguments: dict[str, Any] = {"id": note}
            tool, argument = "lithos_read", None
        elif kind == "delete":
            arguments = {"id": note, "agent": client}
            tool, argument = "lithos_delete", None
        elif kind == "write":
            arguments = {"id": note, "title": self.titles[note], "content": word, "agent": client}
            arguments["expected_version"] = expected
            tool, argument = "lithos_write", (expected, (("body", word),))
        else:
            arguments = {"id": note, "tags": [word], "agent": client, "expected_version": expected}
            tool, argument = "lithos_note_update", (expected, (("tag", word),))
        result = await self._add(f"note {note}", client, kind, argument, call, tool, arguments, read_note)
        if result[0] == "ok" and len(result) > 1:
            self.seen[note] = result[1]

    async def _on_task(self, client: str, call: Call) -> None:
        task, aspect = self.random.choice(self.tasks), self.random.choice(ASPECTS)
        kinds = ["claim", "renew", "release", "look", "complete", "cancel", "reopen"]
        kind = self.random.choices(kinds, [6, 3, 4, 4, 1, 0.5, 2])[0]
        key = f"task {task}"
        if kind == "look":
            await self._add(key, client, kind, None, call, "lithos_task_status", {"task_id": task}, read_task)
            return
        arguments = {"task_id": task, "agent": client}
        argument: Any = None
        if kind in ("claim", "renew", "release"):
            arguments["aspect"], argument = aspect, (aspect, client)
        await self._add(key, client, kind, argument, call, f"lithos_task_{kind}", arguments, read_change)

    async def _add(
        self, key: str, client: str, kind: str, argument: Any, call: Call, tool: str,
        arguments: dict[str, Any], read: Reading,
    ) -> Any:  # fmt: skip
        return await self.history.add(
            key, client, kind, argument, lambda: call(tool, **arguments), read, self.patience
        )

    def _word(self, client: str) -> str:
        self._words += 1
        return f"{client}-{self._words}"

    # -- changes without tools --------------------------------------------------------------------

    def expire(self, pass_time: Callable[[], object]) -> None:
        """Let every claim expire by moving the clock."""
        for task in self.tasks[:-1]:
            self.history.at_once(f"task {task}", "time", "expire", None, lambda: None)
        self.history.at_once(f"task {self.tasks[-1]}", "time", "expire", None, pass_time)

    def save(self, knowledge: Path, *, in_place: bool) -> list[Callable[[], object]]:
        """Edit a note as another program does. If the edit is in place, return the remaining steps.

        An in-place save empties the file and fills it through the same handle. This happens twice. A reader
        between these steps sees an empty note, which is a separate edit.
        """
        path, note = self.random.choice(list(self.notes.items()))
        file = knowledge / path
        try:
            text = file.read_text()
        except FileNotFoundError:
            return []
        if not text:
            return []
        _, head, _ = text.split("---\n", 2)
        known = yaml.safe_load(head)
        version, tag, title = known["version"], (known["tags"] or [""])[0], known["title"]
        body = self._word("editor")
        whole = f"---\n{head}---\n\n# {title}\n\n{body}"
        handle: IO[str]

        def record(said: str, tag: str, act: Callable[[], object]) -> None:
            self.history.at_once(f"note {note}", "editor", "outside", (version, said, tag), act)

        def empty() -> None:
            nonlocal handle
            handle = file.open("w")

        def fill(text: str) -> None:
            with handle:
                handle.write(text)

        def replace() -> None:
            staged = file.with_name(".editor")
            staged.write_text(whole + "\n")
            os.replace(staged, file)

        if not in_place:
            record(body, tag, replace)
            return []
        record("", "", empty)
        return [
            lambda: record(body, tag, lambda: fill(whole)),
            lambda: record("", "", empty),
            lambda: record(body + HALF.rstrip(), tag, lambda: fill(whole + HALF)),
        ]


def read_note(answer: dict[str, Any]) -> Any:
    """Convert an answer of `lithos_read`, `lithos_write`, `lithos_note_update` or `lithos_delete`."""
    if "content" in answer:
        tags = answer["metadata"]["tags"]
        return "ok", answer["version"], answer["content"].strip(), tags[0] if tags else ""
    if answer.get("code") == "version_conflict":
        return "refused", "version_conflict", answer["current_version"]
    if answer.get("code") in ("doc_not_found", "note_not_found"):
        return "refused", "not_found"
    if answer.get("status") == "error" and "Nothing was changed; retry" in answer["message"]:
        return "refused", "busy"  # the person's editor repeatedly has the file open
    assert answer.get("status") != "error", answer
    return ("ok", answer["version"]) if "version" in answer else ("ok",)


def read_task(answer: dict[str, Any]) -> Any:
    """Convert an answer of `lithos_task_status`."""
    (row,) = answer["tasks"]
    claims = sorted((claim["aspect"], claim["agent"], claim["fence"]) for claim in row["claims"])
    return "ok", row["status"], tuple(claims)


_REFUSED = {"claim_not_found": "not_found", "task_not_found": "closed", "task_not_resolved": "open"}


def read_change(answer: dict[str, Any]) -> Any:
    """Convert an answer of a tool that changes a task or its claims."""
    if answer.get("status") == "error":
        code = answer["code"]
        if code == "claim_failed":
            return "refused", answer["reason"].removeprefix("task_")
        assert code in _REFUSED, answer
        return "refused", _REFUSED[code]
    return ("ok", answer["fence"]) if "fence" in answer else ("ok",)
