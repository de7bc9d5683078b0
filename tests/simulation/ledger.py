"""Promises of a run. They are checked after every answer, and completely at the end.

A *token* is a word that occurs in only one change. Each agent has the promise that its text is permanently in
the version that it got. Text that people save may be lost only through people.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import define, field

TOKEN = re.compile(r"\bzq[ap]\d+z\b")


class Broken(AssertionError):
    """Raised when an invariant does not hold."""


def demand(condition: object, *text: object) -> None:
    """Raise `Broken` unless the condition holds."""
    if not condition:
        raise Broken(" ".join(map(str, text)))


def tokens(text: str | bytes) -> set[str]:
    """Return the tokens in a text."""
    return set(TOKEN.findall(text.decode("utf-8", "replace") if isinstance(text, bytes) else text))


@define(eq=False)
class Promise:
    """One change that an agent requested. Its times are in virtual seconds."""

    agent: str
    tool: str
    token: str | None
    note: str | None
    expected: int | None
    began: float
    #: "pending", "kept" (confirmed), "refused" or "unknown".
    state: str = "pending"
    ended: float = float("inf")
    version: int | None = None
    #: "created" or "updated", as the answer says. For a restored note, both are possible.
    status: str | None = None

    def may_be(self, kind: str) -> bool:
        """Return whether a `note.<kind>` event may belong to this change."""
        if self.tool == "lithos_delete":
            return kind == "deleted"
        if self.tool == "lithos_note_move":
            return kind == "renamed"
        if self.status is not None:
            return kind == self.status
        if self.tool == "lithos_restore":
            return kind in ("created", "updated")
        return kind == ("created" if self.note is None else "updated")


@define(eq=False)
class NoteAccount:
    """All answers that concern one note."""

    id: str
    path: str
    promises: list[Promise] = field(factory=list)
    #: Virtual times of the request to delete the note, and of its confirmation.
    deleting: float | None = None
    deleted: float | None = None
    #: Text that a reader got for each version.
    told: dict[int, str] = field(factory=dict)

    @property
    def kept(self) -> list[Promise]:
        return [
            promise for promise in self.promises if promise.state == "kept" and promise.version is not None
        ]


@define(eq=False)
class Grant:
    """A claim that was granted to an agent. Its times are in virtual seconds."""

    agent: str
    fence: int
    began: float
    ended: float
    expires: float
    #: Virtual time at which an agent began to end the claim by a release or a completion.
    ending: float = float("inf")


@define(eq=False)
class TaskAccount:
    """All answers that concern one task."""

    id: str
    grants: dict[str, list[Grant]] = field(factory=lambda: defaultdict(list))
    findings: list[str] = field(factory=list)
    #: True if a change of the task's status has an unknown outcome.
    is_unsure: bool = False
    status: str = "open"
    #: Number of status changes without an answer.
    closing: int = 0


@define(eq=False)
class Ledger:
    """All promises of a run."""

    notes: dict[str, NoteAccount] = field(factory=dict)
    tasks: dict[str, TaskAccount] = field(factory=dict)
    creations: list[Promise] = field(factory=list)
    refused: set[str] = field(factory=set)
    #: Tokens that people saved, and tokens that people deleted or a power loss may have deleted.
    saved: dict[str, str] = field(factory=dict)
    excused: set[str] = field(factory=set)
    #: Tokens of people that were in the history at least once.
    recorded: set[str] = field(factory=set)
    #: Begin and end of each time in which people worked on a path.
    touches: dict[str, list[list[float]]] = field(factory=lambda: defaultdict(list))
    #: Notes that the server saw as deleted for a while. Their versions continue from the file.
    reborn: set[str] = field(factory=set)
    checks: Counter[str] = field(factory=Counter)

    def gone(self) -> Iterator[NoteAccount]:
        """Yield the notes that are deleted for good.

        No person touched them, and no restore may have followed.
        """
        for note in self.notes.values():
            began = note.deleting
            if note.deleted is None or began is None or self.touches.get(note.path):
                continue
            if not any(one.tool == "lithos_restore" and one.ended >= began for one in note.promises):
                yield note

    # -- changes of notes ------------------------------------------------------------------------

    def begin(
        self,
        now: float,
        agent: str,
        tool: str,
        token: str | None,
        note: str | None,
        expected: int | None = None,
    ) -> Promise:
        """Record that an agent requests a change. For a creation, `note` is `None`."""
        promise = Promise(agent, tool, token, note, expected, now)
        if note is None:
            self.creations.append(promise)
        else:
            self.notes[note].promises.append(promise)
            if tool == "lithos_delete" and self.notes[note].deleting is None:
                self.notes[note].deleting = now
        return promise

    def acknowledge(self, now: float, promise: Promise, answer: Mapping[str, Any]) -> None:
        """Record an answer that reports the change as made."""
        promise.state, promise.ended = "kept", now
        if promise.tool == "lithos_delete":
            assert promise.note is not None
            account = self.notes[promise.note]
            demand(account.deleted is None, "a note was deleted twice:", account.path)
            account.deleted = now
            return
        if promise.tool == "lithos_note_move":  # a move does not change the version
            assert promise.note is not None
            self.rename(self.notes[promise.note].path, str(answer["path"]))
            return
        promise.version, promise.status = int(answer["version"]), str(answer["status"])
        if promise.note is None:
            promise.note = str(answer["id"])
            demand(promise.note not in self.notes, "an id was given twice:", promise.note)
            demand(promise.version == 1, "a new note has version", promise.version)
            self.notes[promise.note] = NoteAccount(promise.note, str(answer["path"]), [promise])
            return
        account = self.notes[promise.note]
        account.path = str(answer.get("path", account.path))
        for other in account.kept:
            if other is promise:
                continue
            assert other.version is not None
            demand(
                other.version != promise.version,
                f"two winners: {other.agent} and {promise.agent} were both told version {promise.version} of "
                f"{account.path}",
            )
            demand(
                other.ended >= promise.began or other.version < promise.version,
                f"the version of {account.path} went from {other.version} to {promise.version}",
            )
        if promise.expected is not None:
            demand(
                promise.version == promise.expected + 1,
                f"{promise.agent} expected version {promise.expected} of {account.path}, and made "
                f"{promise.version}",
            )
        self.checks["acknowledged"] += 1

    def refuse(self, now: float, promise: Promise) -> None:
        """Record an answer that reports the change as not made."""
        promise.state, promise.ended = "refused", now
        if promise.token is not None:
            self.refused.add(promise.token)

    def doubt(self, now: float, promise: Promise) -> None:
        """Record that no agent can find out whether the change was made."""
        promise.state, promise.ended = "unknown", now

    def read(self, began: float, note: str, version: int, text: str) -> None:
        """Check the text of a version that a reader got."""
        account = self.notes.get(note)
        if account is None:
            return
        known = text if note in self.reborn else account.told.setdefault(version, text)
        demand(known == text, f"version {version} of {account.path} was told as {known!r} and as {text!r}")
        least = max((one.version or 0 for one in account.kept if one.ended < began), default=0)
        demand(
            version >= least, f"version {version} of {account.path} was read after {least} was acknowledged"
        )
        for promise in account.kept:
            if (
                promise.version == version
                and promise.token is not None
                and promise.tool != "lithos_note_update"
            ):
                demand(
                    promise.token in tokens(text),
                    f"{promise.token} is not in version {version} of {account.path}",
                )
        self.checks["reads"] += 1

    def missing(self, began: float, note: str) -> None:
        """Check an answer that says that a note does not exist."""
        account = self.notes.get(note)
        if (
            account is not None
            and account.deleting is None
            and not self.has_touched(account.path, -1.0, began + 1e9)
        ):
            raise Broken(f"{account.path} is not there, and nobody deleted it")

    def is_quiet(self, account: NoteAccount, begin: float, end: float) -> bool:
        """Return whether a note did not change between two times."""
        if account.deleting is not None or self.has_touched(account.path, begin - 5.0, end):
            return False
        return not any(
            one.began <= end and one.ended >= begin and not (one.state == "refused" and one.ended <= begin)
            for one in account.promises
        ) and not any(one.state == "unknown" for one in account.promises)

    # -- people ----------------------------------------------------------------------------------

    def touch(self, path: str, now: float) -> list[float]:
        """Record that a person begins to work on a path.

        Return a list (begin, end) in which the caller sets the end.
        """
        span = [now, float("inf")]
        self.touches[path].append(span)
        return span

    def rename(self, old: str, new: str) -> None:
        """Record a new file name. Earlier work of people on the file also counts for the new name."""
        self.touches[new] += self.touches[old]
        for account in self.notes.values():
            if account.path == old:
                account.path = new
        for token, path in self.saved.items():
            if path == old:
                self.saved[token] = new

    def has_touched(self, path: str, begin: float, end: float) -> bool:
        """Return whether a person worked on a path between two times."""
        return any(span[0] <= end and span[1] >= begin for span in self.touches.get(path, ()))

    def save(self, path: str, text: str | bytes) -> None:
        """Record that a person's text is now in a file."""
        for token in tokens(text):
            if token.startswith("zqp"):
                self.saved[token] = path

    def excuse(self, text: str | bytes) -> None:
        """Record that a person removed this text from a file."""
        self.excused |= {token for token in tokens(text) if token.startswith("zqp")}

    def lose_power(self) -> None:
        """Excuse people's saves that the server did not record, and the version numbers counted for them."""
        self.excused |= self.saved.keys() - self.recorded
        for account in self.notes.values():
            account.told.clear()

    # -- claims ----------------------------------------------------------------------------------

    def grant(
        self, task: str, aspect: str, agent: str, fence: int, began: float, ended: float, expires: float
    ) -> None:
        """Check and record an answer that grants an aspect to an agent."""
        account = self.tasks[task]
        for other in account.grants[aspect]:
            if other.ended < began:
                demand(fence > other.fence, f"fence {fence} of {aspect} was given after {other.fence}")
            demand(fence != other.fence, f"fence {fence} of {aspect} was given twice")
            held_on = min(other.expires, other.ending)
            demand(
                other.agent == agent or not (other.ended < began and ended < held_on),
                f"{agent} was granted {aspect} while {other.agent} holds it",
            )
        account.grants[aspect].append(Grant(agent, fence, began, ended, expires))
        self.checks["grants"] += 1

    def restart_time(self, task: str, aspect: str, agent: str, until: float) -> None:
        """Record that an agent repeats or renews a claim.

        The old claim may then end, even without an answer.
        """
        for grant in self.tasks[task].grants[aspect]:
            if grant.agent == agent:
                grant.expires = min(grant.expires, until)

    def accept_fence(self, task: str, aspect: str | None, fence: int, began: float) -> None:
        """Check a successful operation that named a fence. For closed tasks, fences are not checked."""
        account = self.tasks[task]
        if account.status != "open" or account.is_unsure or account.closing:
            return
        aspects = account.grants
        later = [
            grant.fence
            for name, grants in aspects.items()
            for grant in grants
            if grant.ended < began and grant.fence > fence and (name == aspect)
        ]
        demand(not later, f"the stale fence {fence} was taken, after {later} had been given")
        self.checks["fences"] += 1

    def end_claims(self, task: str, agent: str | None, aspect: str | None, now: float) -> None:
        """Record that an agent or person begins to end the claims of one agent or of all agents."""
        for name, grants in self.tasks[task].grants.items():
            if aspect is None or name == aspect:
                for grant in grants:
                    if agent is None or grant.agent == agent:
                        grant.ending = min(grant.ending, now)

    # -- at the end ------------------------------------------------------------------------------

    def check_texts(
        self,
        versions: Mapping[tuple[str, int], list[bytes]],
        files: Mapping[str, bytes],
        displaced: Iterable[bytes],
    ) -> None:
        """Check that history, notes folder and displaced files together contain every promised text."""
        everywhere: set[str] = set()
        for content in (*(one for many in versions.values() for one in many), *files.values(), *displaced):
            everywhere |= tokens(content)
        for account in self.notes.values():
            for promise in account.kept:
                assert promise.version is not None
                kept = versions.get((account.id, promise.version), [])
                demand(
                    kept, f"version {promise.version} of {account.path}, told to {promise.agent}, is not kept"
                )
                if promise.token is not None:
                    demand(
                        any(promise.token in tokens(content) for content in kept),
                        f"{promise.token} ({promise.agent}, {promise.tool}) is not in version "
                        f"{promise.version} of {account.path}, which it was told",
                    )
        lost = self.saved.keys() - self.excused - everywhere
        demand(
            not lost, f"what a person saved is nowhere: {[(one, self.saved[one]) for one in sorted(lost)]}"
        )
        ghosts = self.refused & everywhere
        demand(not ghosts, f"what was refused is there: {sorted(ghosts)}")
        self.recorded |= {token for many in versions.values() for one in many for token in tokens(one)}
        self.checks["texts"] += 1

    def check_files(self, files: Mapping[str, bytes]) -> None:
        """Check that each file contains the last confirmed text, unless another party changed the file."""
        for account in self.notes.values():
            is_alone = (
                not self.touches.get(account.path)
                and account.deleting is None
                and account.id not in self.reborn
            )
            is_known = all(
                one.state in ("kept", "refused") and one.tool not in ("lithos_restore", "lithos_note_move")
                for one in account.promises
            )
            if not is_alone or not is_known or not account.kept:
                continue
            newest = max(account.kept, key=lambda one: one.version or 0)
            demand(account.path in files, f"{account.path}, which {newest.agent} wrote last, is not there")
            demand(
                newest.token is None or newest.token in tokens(files[account.path]),
                f"{newest.token}, which {newest.agent} wrote last, is not in {account.path}: "
                f"{files[account.path]!r}",
            )
            self.checks["files"] += 1

    def check_events(self, events: list[tuple[int, str, str, dict[str, Any]]]) -> None:
        """Check that every confirmed change has one event (seq, type, agent, payload), in order."""
        seqs = [seq for seq, *_ in events]
        demand(seqs == sorted(set(seqs)), "numbers of events repeat or go back:", seqs)
        told: Counter[tuple[str, str, str]] = Counter()
        for _, kind, agent, payload in events:
            told[kind, str(payload.get("id") or payload.get("task_id")), agent] += 1
        for account in self.notes.values():
            self._check_note_events(account, told)
        fences = Counter(payload["fence"] for _, kind, _, payload in events if kind == "task.claimed")
        for task in self.tasks.values():
            for grants in task.grants.values():
                for grant in grants:
                    demand(
                        fences[grant.fence] == 1,
                        f"the grant {grant.fence} was told {fences[grant.fence]} times",
                    )
        self._check_order(events)
        self.checks["events"] += 1

    def _check_note_events(self, account: NoteAccount, told: Counter[tuple[str, str, str]]) -> None:
        for agent in sorted({promise.agent for promise in account.promises}):
            mine = [promise for promise in account.promises if promise.agent == agent]
            for kind in ("created", "deleted", "renamed", "updated"):
                of_kind = [one for one in mine if one.may_be(kind)]
                least = sum(one.state == "kept" for one in of_kind)
                most = least + sum(one.state in ("unknown", "pending") for one in of_kind)
                if kind == "updated":
                    most += self._moves_of(agent)  # a move may also rewrite links in this note
                number = told[f"note.{kind}", account.id, agent]
                demand(
                    least <= number <= most,
                    f"{number} events note.{kind} of {account.path} by {agent}, for {least} to {most}: "
                    + "; ".join(f"{one.tool} {one.state} {one.began:.1f}-{one.ended:.1f}" for one in mine),
                )

    def _moves_of(self, agent: str) -> int:
        return sum(
            one.agent == agent and one.tool == "lithos_note_move" and one.state != "refused"
            for account in self.notes.values()
            for one in account.promises
        )

    def _check_order(self, events: list[tuple[int, str, str, dict[str, Any]]]) -> None:
        """Check that the events of a note follow the order of its versions.

        Only an order that agents can see counts.
        """
        for account in self.notes.values():
            order = [
                agent
                for _, kind, agent, payload in events
                if payload.get("id") == account.id and kind == "note.updated"
            ]
            kept = sorted(
                (one for one in account.kept if one.may_be("updated")), key=lambda one: one.version or 0
            )
            if all(one.state in ("kept", "refused") for one in account.promises):
                agents = {one.agent for one in kept if not self._moves_of(one.agent)}
                kept = [one for one in kept if one.agent in agents]
                demand(
                    [one.agent for one in kept] == [agent for agent in order if agent in agents],
                    f"the events of {account.path} are in the order {order}",
                )
