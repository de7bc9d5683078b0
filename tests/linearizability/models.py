"""The behaviour of a note and a task, one operation at a time (specification: tools, coordination §2).

Results are as `workload.py` makes them of the tools' answers: `("ok", …)`, or `("refused", code)`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from attrs import evolve, frozen

from tests.linearizability.checker import UNKNOWN, Operation

#: A save by another program counts as a version (notes §3). Off, such a save keeps the version that is in the
#: file, as older servers had it, and a write that expects that version overwrites it.
OUTSIDE_COUNTS = True
#: Maximum number of displaced saves of one note that are considered for an explanation.
MOST_ASIDE = 2


@frozen
class Note:
    """A note that is there."""

    version: int = 1
    body: str = ""
    tag: str = ""
    #: It was saved, and its version was not reported yet.
    is_unseen: bool = False
    #: Version, body and tag when its version was last reported.
    told: tuple[int, str, str] = (1, "", "")
    #: Displaced saves: a write took the file away while the editor wrote into it. A start that finds
    #: one keeps it as a version, and the note's own text again as the next.
    aside: int = 0

    def seen(self) -> Note:
        """The note once its version was reported."""
        return evolve(self, is_unseen=False, told=(self.version, self.body, self.tag))


@frozen
class NoteModel:
    """A register with compare and set, over which other programs write."""

    outside_counts: bool = OUTSIDE_COUNTS

    def initial(self) -> Hashable:
        """Notes are made before anything is recorded."""
        return Note()

    def step(self, state: Note | None, operation: Operation) -> Iterable[Hashable]:
        """None is a note that was deleted."""
        if operation.result == ("refused", "busy"):
            return [state]
        if operation.name == "outside":
            return self._outside(state, operation.argument)
        if state is not None and state.aside:
            kept = evolve(state, version=state.version + 2, aside=state.aside - 1, is_unseen=True)
            return [*self._step(state, operation), *self.step(kept, operation)]
        return self._step(state, operation)

    def _step(self, state: Note | None, operation: Operation) -> Iterable[Hashable]:
        if state is None:
            return [state] if operation.result in (("refused", "not_found"), UNKNOWN) else []
        if operation.name == "read":
            told = ("ok", state.version, state.body, state.tag)
            return _seen(state, operation.result, told)
        if operation.name == "delete":
            return [None] if operation.result in (("ok",), UNKNOWN) else []
        return _write(state, operation)

    def _outside(self, state: Note | None, saved: tuple[int, str, str]) -> list[Note]:
        """A file as another program left it: the version that was in it, body, tag.

        Saves that the server did not see separately are one edit to it, as long as no version of the first
        was reported; and no edit, when the last one restores the reported text. A version reported for one
        text is never reported for another.
        """
        version, body, tag = saved
        if not self.outside_counts:
            return [Note(version, body, tag)]
        if state is None:
            return [Note(max(1, version), body, tag, is_unseen=True, told=(0, "", ""))]
        last, aside = state.version, min(MOST_ASIDE, state.aside + 1)
        counted = [last, last + 1] if state.is_unseen else [last + 1]
        after = [
            evolve(state, version=max(each, version), body=body, tag=tag, is_unseen=True, aside=aside)
            for each in counted
        ]
        known = state.told[0]
        if state.is_unseen and state.told == (known, body, tag) and version <= known:
            after.append(evolve(state, version=known, body=body, tag=tag, is_unseen=False))
        return after


def _seen(state: Note, result: Any, told: tuple[Any, ...]) -> list[Note]:
    if result == UNKNOWN:
        return [state]
    return [state.seen()] if result == told else []


def _write(state: Note, operation: Operation) -> Iterable[Hashable]:
    expected, changes = operation.argument
    if expected is not None and expected != state.version:
        return _seen(state, operation.result, ("refused", "version_conflict", state.version))
    after = evolve(state, version=state.version + 1, is_unseen=True, **dict(changes))
    return _seen(after, operation.result, ("ok", after.version))


@frozen
class Held:
    """A claim; `fence` is `None` until it was reported."""

    agent: str
    fence: int | None
    is_running: bool = True


@frozen
class Task:
    """A task, its claims by aspect, and the highest fence that was reported."""

    status: str = "open"
    claims: tuple[tuple[str, Held], ...] = ()
    highest: int = 0

    def held(self, aspect: str) -> Held | None:
        return dict(self.claims).get(aspect)

    def put(self, aspect: str, held: Held | None) -> Task:
        claims = {name: other for name, other in self.claims if name != aspect}
        if held is not None:
            claims[aspect] = held
        told = held.fence or 0 if held is not None else 0
        return evolve(self, claims=tuple(sorted(claims.items())), highest=max(self.highest, told))


class TaskModel:
    """Claims with fences, and a status."""

    def initial(self) -> Hashable:
        """Tasks are made before anything is recorded."""
        return Task()

    def step(self, state: Task, operation: Operation) -> Iterable[Hashable]:
        """`expire` is time that passes: every claim runs out."""
        return getattr(self, f"_{operation.name}")(state, operation.argument, operation.result)

    def _expire(self, state: Task, _: Any, __: Any) -> list[Task]:
        return [
            evolve(state, claims=tuple((name, evolve(held, is_running=False)) for name, held in state.claims))
        ]

    def _claim(self, state: Task, argument: Any, result: Any) -> list[Task]:
        aspect, agent = argument
        held = state.held(aspect)
        if state.status != "open":
            return _refused(state, result, "closed")
        if held is not None and held.is_running and held.agent != agent:
            return _refused(state, result, "held")
        if result == UNKNOWN:
            return [state.put(aspect, Held(agent, None))]
        return (
            [state.put(aspect, Held(agent, result[1]))]
            if _is_ok(result) and result[1] > state.highest
            else []
        )

    def _renew(self, state: Task, argument: Any, result: Any) -> list[Task]:
        aspect, agent = argument
        held = state.held(aspect)
        if held is None or not held.is_running or held.agent != agent:
            return _refused(state, result, "not_found")
        if result == UNKNOWN:
            return [state]
        return _told_fence(state, aspect, held, result[1]) if _is_ok(result) else []

    def _release(self, state: Task, argument: Any, result: Any) -> list[Task]:
        aspect, agent = argument
        held = state.held(aspect)
        if held is None or held.agent != agent:
            return _refused(state, result, "not_found")
        return [state.put(aspect, None)] if _is_ok(result) or result == UNKNOWN else []

    def _complete(self, state: Task, _: Any, result: Any) -> list[Task]:
        return self._close(state, "completed", result)

    def _cancel(self, state: Task, _: Any, result: Any) -> list[Task]:
        return self._close(state, "cancelled", result)

    def _close(self, state: Task, status: str, result: Any) -> list[Task]:
        if state.status != "open":
            return _refused(state, result, "closed")
        return [evolve(state, status=status, claims=())] if _is_ok(result) or result == UNKNOWN else []

    def _reopen(self, state: Task, _: Any, result: Any) -> list[Task]:
        if state.status == "open":
            return _refused(state, result, "open")
        return [evolve(state, status="open")] if _is_ok(result) or result == UNKNOWN else []

    def _look(self, state: Task, _: Any, result: Any) -> list[Task]:
        """Status, and the holders of aspects with their fences."""
        if result == UNKNOWN:
            return [state]
        _, status, claims = result
        running = {name: held for name, held in state.claims if held.is_running}
        if status != state.status or {name: agent for name, agent, _ in claims} != {
            name: held.agent for name, held in running.items()
        }:
            return []
        states = [state]
        for name, _, fence in claims:
            states = [after for before in states for after in _told_fence(before, name, running[name], fence)]
        return states


def _told_fence(state: Task, aspect: str, held: Held, fence: int) -> list[Task]:
    """A fence that is seen must be the one that was granted, or one that was not reported."""
    if held.fence is None:
        return [state.put(aspect, evolve(held, fence=fence))]
    return [state] if fence == held.fence else []


def _is_ok(result: Any) -> bool:
    return bool(result[0] == "ok")


def _refused(state: Task, result: Any, code: str) -> list[Task]:
    return [state] if result in (("refused", code), UNKNOWN) else []
