"""Models of a note and a task, for one operation at a time (specification: tools, coordination §2).

`workload.py` derives results from tool answers. A result is `("ok", …)` or `("refused", code)`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from attrs import evolve, frozen

from tests.linearizability.checker import UNKNOWN, Operation

#: Whether a save by another program counts as a version (notes §3). If it does not, as in older servers, the
#: file keeps its version after such a save. A write that expects this version then overwrites the save.
OUTSIDE_COUNTS = True
#: Maximum number of displaced saves of one note that an explanation may contain.
MOST_ASIDE = 2


@frozen
class Note:
    """State of an existing note."""

    version: int = 1
    body: str = ""
    tag: str = ""
    #: True if the note was saved but its new version has not been reported yet.
    is_unseen: bool = False
    #: Version, body and tag that were last reported.
    told: tuple[int, str, str] = (1, "", "")
    #: Number of displaced saves. A save is displaced if a write replaces the file while the editor writes
    #: into it. A server start that finds such a save stores it as a version. The note's own text becomes the
    #: next version.
    aside: int = 0

    def seen(self) -> Note:
        """Return the note after its version has been reported."""
        return evolve(self, is_unseen=False, told=(self.version, self.body, self.tag))


@frozen
class NoteModel:
    """A compare-and-set register that other programs may overwrite."""

    outside_counts: bool = OUTSIDE_COUNTS

    def initial(self) -> Hashable:
        """Return a new note. Notes are created before the recording starts."""
        return Note()

    def step(self, state: Note | None, operation: Operation) -> Iterable[Hashable]:
        """Return the possible notes after an operation. None stands for a deleted note."""
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
        """Return the possible notes after another program has saved a file with this version, body and tag.

        If the server did not see several saves separately, and no version of the first save was reported, the
        saves count as one edit. If the last save restores the reported text, they count as no edit. A version
        that was reported for one text is never reported for another text.
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
    """A claim. `fence` is None until the fence has been reported."""

    agent: str
    fence: int | None
    is_running: bool = True


@frozen
class Task:
    """A task with its claims by aspect, and the highest fence reported so far."""

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
    """Tasks with a status, and claims with fences."""

    def initial(self) -> Hashable:
        """Return a new task. Tasks are created before the recording starts."""
        return Task()

    def step(self, state: Task, operation: Operation) -> Iterable[Hashable]:
        """Return the possible tasks after an operation. The operation `expire` ends every claim."""
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
        """Check the status of a task and its claims with their agents and fences."""
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
    """Return the task if the fence equals the granted fence, or if that fence has not been reported."""
    if held.fence is None:
        return [state.put(aspect, evolve(held, fence=fence))]
    return [state] if fence == held.fence else []


def _is_ok(result: Any) -> bool:
    return bool(result[0] == "ok")


def _refused(state: Task, result: Any, code: str) -> list[Task]:
    return [state] if result in (("refused", code), UNKNOWN) else []
