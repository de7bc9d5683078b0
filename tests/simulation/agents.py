"""Simulated agents. They call one tool after another and check every answer against the ledger."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Any

import trio
from attrs import define, field

from tests.simulation.ledger import NoteAccount, Promise, TaskAccount, demand, tokens
from tests.simulation.loop import EPOCH
from tests.simulation.network import Gone

if TYPE_CHECKING:
    from tests.simulation.world import World

#: Pattern of refusals after which the change may still be stored.
_MAY_BE_STORED = re.compile(
    r"unknown|was (moved|restored)|is (created|updated|deleted|stored|moved) in|may |stored"
)
ASPECTS = ("code", "review")
FOLDERS = ("", "", "plans", "plans/old", "logs")
OPERATIONS = {
    "create": 3.0, "write": 4.0, "append": 4.0, "tag": 1.5, "delete": 0.5, "move": 0.7, "read": 3.0,
    "find": 1.5, "look": 1.0, "retrieve": 0.7, "context": 0.7, "edge": 0.5, "restore": 0.3, "claim": 2.0,
    "next": 1.5, "renew": 1.0, "release": 1.0, "complete": 0.7, "finding": 1.0, "task": 1.0, "reopen": 0.4,
    "stale": 1.0,
}  # fmt: skip


def is_refusal(answer: Mapping[str, Any]) -> bool:
    """Return whether the answer is an error envelope."""
    return answer.get("status") == "error"


def is_definite(answer: Mapping[str, Any]) -> bool:
    """Return whether a refusal guarantees that no data was changed."""
    return answer["code"] != "internal_error" or not _MAY_BE_STORED.search(str(answer["message"]))


@define(eq=False)
class Agent:
    """One agent. `seen` contains the versions that the agent read last."""

    world: World
    name: str
    random: Random
    think: float
    weights: dict[str, float]
    seen: dict[str, int] = field(factory=dict)
    #: (task, aspect, fence) of the agent's own claims.
    mine: list[tuple[str, str, int]] = field(factory=list)
    old: list[tuple[str, str, int]] = field(factory=list)

    async def work(self) -> None:
        """Perform one operation after another until the world winds down."""
        while not self.world.winds_down():
            await trio.sleep(self.random.expovariate(1 / self.think))
            if self.world.winds_down():
                return
            kind = self.random.choices(list(self.weights), list(self.weights.values()))[0]
            try:
                await getattr(self, f"_{kind}")()
            except Gone:
                continue

    async def _call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.world.call(tool, agent=self.name, **arguments)

    @property
    def _now(self) -> float:
        return self.world.clock.now

    def _note(self) -> NoteAccount | None:
        there = [note for note in self.world.ledger.notes.values() if note.deleting is None]
        return self.random.choice(there) if there else None

    def _task_account(self) -> TaskAccount | None:
        tasks = list(self.world.ledger.tasks.values())
        return self.random.choice(tasks) if tasks else None

    async def _change(self, promise: Promise, tool: str, **arguments: Any) -> dict[str, Any] | None:
        """Request a change of a note and record the answer. Return None if the change was not made."""
        ledger = self.world.ledger
        try:
            answer = await self._call(tool, **arguments)
        except Gone:
            ledger.doubt(self._now, promise)
            raise
        if not is_refusal(answer):
            ledger.acknowledge(self._now, promise, answer)
            if promise.note is not None and promise.version is not None:
                self.seen[promise.note] = promise.version
            return answer
        if is_definite(answer):
            ledger.refuse(self._now, promise)
            if answer["code"] == "version_conflict" and promise.note is not None:
                self.seen[promise.note] = int(answer["current_version"])
        else:
            ledger.doubt(self._now, promise)
        if answer["code"] == "internal_error":
            self.world.excuse_failure(answer)
        if promise.note is not None:
            self._check_missing(answer, promise.began, promise.note)
        return None

    def _check_missing(self, answer: Mapping[str, Any], began: float, note: str) -> None:
        is_unread = self.world.had_faults and "cannot be read" in answer["message"]
        if answer["code"] in ("doc_not_found", "note_not_found") and not is_unread:
            self.world.ledger.missing(began, note)

    # -- notes -----------------------------------------------------------------------------------

    def _body(self, token: str) -> str:
        filler = f"About {self.world.WORD}. " * self.random.randrange(1, 4)
        links = [
            note.path.removesuffix(".md").rpartition("/")[2] for note in self.world.ledger.notes.values()
        ]
        link = f" See [[{self.random.choice(links)}]]." if links and self.random.random() < 0.4 else ""
        return f"{filler}It says {token}.{link}\n\n## Log\n\nbegins\n"

    async def _create(self) -> None:
        token = self.world.token("a")
        promise = self.world.ledger.begin(self._now, self.name, "lithos_write", token, None)
        number = self.world.take_number()
        more = {"path": folder} if (folder := self.random.choice(FOLDERS)) else {}
        answer = await self._change(
            promise, "lithos_write", title=f"Note {number}", content=self._body(token), **more
        )
        if answer is not None and self.random.random() < 0.3:
            await self._find_own(promise)

    async def _write(self) -> None:
        note = self._note()
        if note is None:
            return
        expected = self.seen.get(note.id) if self.random.random() < 0.7 else None
        token = self.world.token("a")
        promise = self.world.ledger.begin(self._now, self.name, "lithos_write", token, note.id, expected)
        more = {} if expected is None else {"expected_version": expected}
        answer = await self._change(promise, "lithos_write", id=note.id, content=self._body(token), **more)
        if answer is not None and self.random.random() < 0.3:
            await self._find_own(promise)

    async def _append(self) -> None:
        note = self._note()
        if note is None:
            return
        token = self.world.token("a")
        promise = self.world.ledger.begin(self._now, self.name, "lithos_note_edit", token, note.id)
        await self._change(
            promise, "lithos_note_edit", id=note.id, op="append", text=f"{self.name} adds {token}."
        )

    async def _tag(self) -> None:
        note = self._note()
        if note is None:
            return
        expected = self.seen.get(note.id) if self.random.random() < 0.5 else None
        token = self.world.token("a")
        promise = self.world.ledger.begin(
            self._now, self.name, "lithos_note_update", token, note.id, expected
        )
        more = {} if expected is None else {"expected_version": expected}
        await self._change(promise, "lithos_note_update", id=note.id, tags=[token], **more)

    async def _delete(self) -> None:
        note = self._note()
        if note is not None:
            promise = self.world.ledger.begin(self._now, self.name, "lithos_delete", None, note.id)
            await self._change(promise, "lithos_delete", id=note.id)

    async def _move(self) -> None:
        note = self._note()
        if note is None:
            return
        path = "/".join(filter(None, (self.random.choice(FOLDERS), f"moved-{self.world.take_number()}.md")))
        self.world.ledger.touch(note.path, self._now)[1] = self._now
        promise = self.world.ledger.begin(self._now, self.name, "lithos_note_move", None, note.id)
        await self._change(promise, "lithos_note_move", id=note.id, path=path)

    async def _restore(self) -> None:
        note = self._note()
        kept = [one for one in note.kept if one.token and one.version] if note is not None else []
        if note is None or not kept:
            return
        promise = self.world.ledger.begin(self._now, self.name, "lithos_restore", None, note.id)
        await self._change(promise, "lithos_restore", id=note.id, version=self.random.choice(kept).version)

    async def _read(self) -> None:
        note = self._note()
        if note is None:
            return
        began = self._now
        answer = await self._call("lithos_read", id=note.id)
        if is_refusal(answer):
            self._check_missing(answer, began, note.id)
            return
        self.seen[note.id] = int(answer["metadata"]["version"])
        self.world.ledger.read(began, note.id, self.seen[note.id], answer["content"])

    async def _find_own(self, promise: Promise) -> None:
        """Check that a search directly after a write finds the written text."""
        assert promise.note is not None
        note = self.world.ledger.notes[promise.note]
        answer = await self._call("lithos_search", query=promise.token, mode="fulltext")
        if is_refusal(answer) or answer.keys() != {"results"}:
            return
        # Another simultaneous write may have followed, although it was answered earlier.
        is_last = promise.version == max(one.version or 0 for one in note.kept)
        if is_last and self.world.ledger.is_quiet(note, promise.ended + 1e-9, self._now):
            found = [row["id"] for row in answer["results"]]
            demand(note.id in found, f"{promise.token} was written to {note.path} and is not found: {found}")
            self.world.ledger.checks["found"] += 1

    async def _find(self) -> None:
        """Check that search does not find text that was permanently overwritten."""
        note = self._note()
        if note is None:
            return
        began = self._now
        writes = [one for one in note.kept if one.tool == "lithos_write"]
        if len(writes) < 2 or self.world.ledger.touches.get(note.path):
            return
        if any(one.tool == "lithos_restore" or one.state == "unknown" for one in note.promises):
            return
        newest = max(writes, key=lambda one: one.version or 0)
        older = self.random.choice([one for one in writes if one is not newest])
        answer = await self._call("lithos_search", query=older.token, mode="fulltext")
        if is_refusal(answer) or answer.keys() != {"results"} or newest.ended >= began:
            return
        if self.world.ledger.touches.get(note.path) or any(
            one.tool == "lithos_restore" for one in note.promises
        ):
            return
        found = [row["id"] for row in answer["results"]]
        demand(note.id not in found, f"{older.token} was overwritten in {note.path}, and is found there")
        self.world.ledger.checks["stale"] += 1

    async def _look(self) -> None:
        gone = {note.id for note in self.world.ledger.gone()}
        answer = await self._call(
            "lithos_search",
            query=self.world.WORD,
            mode=self.random.choice(("hybrid", "semantic", "fulltext")),
            limit=50,
        )
        if not is_refusal(answer):
            shown = {row["id"] for row in answer["results"]}
            demand(not shown & gone, f"deleted notes are found: {shown & gone}")

    async def _retrieve(self) -> None:
        gone = {note.id for note in self.world.ledger.gone()}
        answer = await self._call("lithos_retrieve", query=self.world.WORD)
        if not is_refusal(answer):
            shown = {row["id"] for row in answer["results"]}
            demand(not shown & gone, f"deleted notes are retrieved: {shown & gone}")

    async def _context(self) -> None:
        budget = self.random.choice((200, 400, 1_000))
        gone = {one.token for note in self.world.ledger.gone() for one in note.promises} - {None}
        answer = await self._call("lithos_context", query=self.world.WORD, budget=budget)
        if not is_refusal(answer):
            demand(
                answer["tokens"] <= budget, f"a context of {answer['tokens']} tokens for a budget of {budget}"
            )
            demand(
                not tokens(answer["text"]) & gone,
                f"a deleted note is in a context: {tokens(answer['text']) & gone}",
            )
            self.world.ledger.checks["contexts"] += 1

    async def _edge(self) -> None:
        one, other = self._note(), self._note()
        if one is None or other is None or one is other:
            return
        answer = await self._call(
            "lithos_edge_upsert", from_id=one.id, to_id=other.id, type="supports", weight=0.5, namespace="n"
        )
        if not is_refusal(answer):
            self.world.edges.add(answer["edge_id"])

    # -- tasks -----------------------------------------------------------------------------------

    async def _task(self) -> None:
        try:
            answer = await self._call("lithos_task_create", title=f"Task {self.world.take_number()}")
        except Gone:
            return
        if not is_refusal(answer):
            task = str(answer["task_id"])
            self.world.ledger.tasks[task] = TaskAccount(task)

    async def _claim(self) -> None:
        task = self._task_account()
        if task is None:
            return
        aspect, began = self.random.choice(ASPECTS), self._now
        minutes = self.random.choice((1, 1, 2, 5, 60))
        self.world.ledger.restart_time(task.id, aspect, self.name, began + minutes * 60.0)
        answer = await self._call("lithos_task_claim", task_id=task.id, aspect=aspect, ttl_minutes=minutes)
        if not is_refusal(answer):
            self._granted(task.id, aspect, answer["fence"], began, answer["expires_at"])

    def _granted(self, task: str, aspect: str, fence: int, began: float, expires: str) -> None:
        until = (datetime.fromisoformat(expires) - EPOCH).total_seconds()
        self.world.ledger.grant(task, aspect, self.name, int(fence), began, self._now, until)
        self.old += [claim for claim in self.mine if claim[:2] == (task, aspect)]
        self.mine = [claim for claim in self.mine if claim[:2] != (task, aspect)]
        self.mine.append((task, aspect, int(fence)))

    async def _next(self) -> None:
        began = self._now
        answer = await self._call(
            "lithos_task_next", aspect="code", ttl_minutes=self.random.choice((1, 2, 60))
        )
        if is_refusal(answer) or not answer.get("task"):
            return
        task = str(answer["task"]["id"])
        self.world.ledger.tasks.setdefault(task, TaskAccount(task))
        self._granted(task, "code", answer["fence"], began, answer["expires_at"])

    async def _renew(self) -> None:
        if not self.mine:
            return
        task, aspect, fence = self.random.choice(self.mine)
        began = self._now
        self.world.ledger.restart_time(task, aspect, self.name, began + 120.0)
        answer = await self._call(
            "lithos_task_renew", task_id=task, aspect=aspect, ttl_minutes=2, fence=fence
        )
        if not is_refusal(answer):
            self.world.ledger.accept_fence(task, aspect, fence, began)
            until = (datetime.fromisoformat(answer["new_expires_at"]) - EPOCH).total_seconds()
            for grant in self.world.ledger.tasks[task].grants[aspect]:
                if grant.fence == fence:
                    grant.expires = until

    async def _release(self) -> None:
        if not self.mine:
            return
        claim = self.random.choice(self.mine)
        task, aspect, fence = claim
        began = self._now
        self.world.ledger.end_claims(task, self.name, aspect, began)
        answer = await self._call("lithos_task_release", task_id=task, aspect=aspect, fence=fence)
        if not is_refusal(answer):
            self.world.ledger.accept_fence(task, aspect, fence, began)
            self.mine = [one for one in self.mine if one != claim]
            self.old.append(claim)

    async def _stale(self) -> None:
        """Continue to use a lost claim.

        The server must refuse it as soon as another agent has a newer claim.
        """
        if not self.old:
            return
        task, aspect, fence = self.random.choice(self.old)
        began = self._now
        tool = self.random.choice(("lithos_task_renew", "lithos_task_release", "lithos_finding_post"))
        more: dict[str, Any] = {"summary": "late"} if tool == "lithos_finding_post" else {"aspect": aspect}
        if tool == "lithos_task_release":
            self.world.ledger.end_claims(task, self.name, aspect, began)
        answer = await self._call(tool, task_id=task, fence=fence, **more)
        if not is_refusal(answer):
            self.world.ledger.accept_fence(task, aspect, fence, began)

    async def _complete(self) -> None:
        task = self._task_account()
        if task is None:
            return
        self.world.ledger.end_claims(task.id, None, None, self._now)
        await self._set_status(task, self.random.choice(("complete", "cancel")))

    async def _reopen(self) -> None:
        task = self._task_account()
        if task is not None:
            await self._set_status(task, "reopen")

    async def _set_status(self, task: TaskAccount, verb: str) -> None:
        is_alone, task.closing = not task.closing, task.closing + 1
        try:
            answer = await self._call(f"lithos_task_{verb}", task_id=task.id)
        except Gone:
            task.is_unsure = True
            raise
        finally:
            task.closing -= 1
        task.is_unsure = task.is_unsure or not is_alone
        if not is_refusal(answer):
            task.status = {"complete": "completed", "cancel": "cancelled", "reopen": "open"}[verb]
        elif not is_definite(answer):
            task.is_unsure = True

    async def _finding(self) -> None:
        task = self._task_account()
        if task is None:
            return
        answer = await self._call(
            "lithos_finding_post", task_id=task.id, summary=f"It is {self.world.take_number()}"
        )
        if not is_refusal(answer):
            task.findings.append(str(answer["finding_id"]))
