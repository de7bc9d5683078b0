"""Proposals for people and agents: list, show, approve, reject and withdraw them.

An approval merges the proposal with later changes (docs/spec/scopes.md §2). The start of the approval is
recorded before the note is written. After a crash, the next start either finishes the approval or makes the
proposal pending again. An approval is never carried out twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

import attrs
import trio
from attrs import field, frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.reading import JournalThread
from lithos.events.rows.store import CoordinationStore
from lithos.history.rows.store import HistoryStore
from lithos.history.service.history import HistoryRequest, NoteHistory
from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown, honest_outcome
from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.kernel.parts import Clock
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.errors import (
    Forbidden,
    InvalidInput,
    LithosError,
    PathCollision,
    ProposalNotFound,
    StorageFailed,
    VersionConflict,
)
from lithos.kernel.values.principals import ACTING, COMMAND, acting_as
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.relinking import relinked_by
from lithos.notes.format.document import parse_document
from lithos.notes.model.note import Document
from lithos.notes.model.versions import DELETED, VersionRow
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.service.merging import merge_files
from lithos.notes.service.moving import Moving
from lithos.notes.service.texts import LoadedNote, NoteTexts
from lithos.notes.writing.messages import Approval, DeleteNote, MoveNote, RestoreNote, WriteOutcome
from lithos.notes.writing.write_rules import check_content
from lithos.proposals.model import (
    LONGEST_REASON,
    STATUSES,
    AbandonApproval,
    BeginApproval,
    DecideProposal,
    PendingProposals,
    Proposal,
    ProposalCommand,
    ProposalTexts,
    Status,
)
from lithos.proposals.rows import ProposalRows
from lithos.text.outline.differences import unified_diff
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import VaultStyle

log = get_logger("lithos.proposals")

R = TypeVar("R")

#: Maximum number of notes to list whose links a move rewrites.
MOST_RELINKED: Final = 200
#: Maximum number of rows on one page.
MOST_LISTED: Final = 200
#: The largest integer that the database can store.
_LARGEST: Final = 2**63 - 1
#: Maximum number of attempts at an approval if the note keeps changing.
RETRIES: Final = 5
#: Maximum seconds to wait for the coordinator, and maximum seconds for an approval that has started.
PATIENCE: Final = 30.0
CARRIED_OUT: Final = 120.0
#: Path rules do not restrict these decisions, because a person makes them.
_PERSON: Final = attrs.evolve(COMMAND, is_person=True)


@frozen(kw_only=True)
class ShownProposal:
    """A proposal compared with the current note.

    `current` is the file now, and `proposed` is the file that an approval would write now, merged with later
    changes. A missing file is None. For a move, both are paths. If there are `conflicts`, the proposal cannot
    be approved unchanged, and `proposed` is the agent's own text. `seal` changes whenever one of these fields
    changes.
    """

    proposal: Proposal
    current: bytes | None
    proposed: bytes | None
    conflicts: Sequence[Mapping[str, Any]] = ()
    #: The note version that was compared, or None if there is no note.
    version: int | None = None
    #: True if an approval would leave the file unchanged, because it already has the proposed content.
    is_done: bool = False
    #: Paths of other notes whose links a move would rewrite now, by note id.
    relinks: Mapping[str, str] = field(factory=dict)

    @property
    def seal(self) -> str:
        """Return a hash of all displayed data."""
        digest = hashlib.sha256()
        links = (sorted(self.relinks), self.proposal.update_links)
        told = repr(self.conflicts) if links == ([], True) else repr((self.conflicts, links))
        for part in (self.current, self.proposed, told.encode()):
            digest.update(b"-" if part is None else b"+%d:" % len(part) + part)
        return digest.hexdigest()[:32]


class Proposals:
    """Service for pending and decided proposals."""

    def __init__(
        self,
        journal: CoordinationStore,
        versions: HistoryStore | None,
        storage: StorageConfig,
        catalogue: Catalogue,
        reading: JournalThread,
        coordinator: Coordinator,
        pending: PendingProposals,
        clock: Clock,
        knowledge: Knowledge,
        moving: Moving,
        history: NoteHistory,
        texts: NoteTexts,
    ) -> None:
        self._catalogue = catalogue
        self._pending = pending
        self._mailbox = coordinator.mailbox
        self._rows = journal.rows(ProposalRows)
        self._reading = reading
        self._working = Threads(2)
        self._knowledge = knowledge
        self._moving = moving
        self._history = history
        self._has_history = versions is not None
        self._texts = texts
        self._clock = clock
        self._content_limit = storage.max_content_size_bytes

    # -- looking ---------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """Return the number of pending proposals."""
        return {"pending": len(self._pending)}

    def told(self) -> dict[str, int]:
        """Return the number of pending proposals for a briefing.

        The mapping is empty if no proposal is pending.
        """
        return {"pending_proposals": len(self._pending)} if len(self._pending) else {}

    def last_reasons(self) -> list[str]:
        """Return the reasons of the latest rejections without duplicates, newest first."""
        return list(self._pending.reasons)

    async def listed(
        self, status: str, agent: str | None, limit: int, offset: int
    ) -> tuple[Sequence[Proposal], int]:
        """Return one page of the proposals with a status, and their total number. Raises `InvalidInput`."""
        known = next((each for each in STATUSES if each == status), None)
        if known is None:
            raise InvalidInput(f"status must be one of {', '.join(STATUSES)}; not {status[:60]!r}.")
        if limit < 1 or offset < 0:
            raise InvalidInput("limit must be at least 1, and offset must not be negative.")
        wanted: Status = known
        most, skipped = min(limit, MOST_LISTED), min(offset, _LARGEST)
        return await self._reading.run(lambda: self._rows.listed(wanted, agent, most, skipped))

    async def get(self, proposal_id: str) -> tuple[Proposal, ProposalTexts]:
        """Return a proposal with its files. Raises `ProposalNotFound`."""

        def read() -> tuple[Proposal | None, ProposalTexts | None]:
            return self._rows.get(proposal_id), self._rows.texts(proposal_id)

        proposal, texts = await self._reading.run(read)
        if proposal is None or texts is None:
            raise ProposalNotFound(
                f"Unknown proposal {proposal_id[:100]!r}. Find proposals with lithos_proposals."
            )
        return proposal, texts

    async def show(self, proposal_id: str) -> ShownProposal:
        """Return a proposal compared with the current note. Raises `ProposalNotFound`."""
        proposal, texts = await self.get(proposal_id)
        entry = self._catalogue.get(proposal.note_id)
        if proposal.kind == "move":
            return self._show_move(proposal, entry)
        loaded = None if entry is None else await self._texts.load(entry)
        current = None if loaded is None else loaded.source.data
        version = None if loaded is None else loaded.document.note.version
        shown = ShownProposal(proposal=proposal, current=current, proposed=texts.data, version=version)
        if not proposal.is_pending:
            return attrs.evolve(shown, current=texts.base)
        if proposal.kind == "create":
            return self._show_creation(shown, entry)
        if entry is None or loaded is None:
            return attrs.evolve(shown, conflicts=(_conflict("file", proposal.path, None),))
        if proposal.kind == "delete":
            changed = version != proposal.base_version and loaded.source.data != texts.base
            conflicts = (_conflict("version", proposal.base_version, version),) if changed else ()
            return attrs.evolve(shown, conflicts=conflicts)
        return await self._working.run(partial(self._merge, shown, texts, loaded, entry))

    def _show_move(self, proposal: Proposal, entry: Entry | None) -> ShownProposal:
        now, to = None if entry is None else entry.path, proposal.to or ""
        shown = ShownProposal(
            proposal=proposal,
            current=None if now is None else now.encode(),
            proposed=to.encode(),
            version=None if entry is None else entry.note.version,
            is_done=now == to,
            relinks=self._relinked(proposal, entry),
        )
        if not proposal.is_pending or now == to:
            return shown
        conflicts = []
        if now != proposal.path:
            conflicts.append(_conflict("path", proposal.path, now, to))
        holder = self._catalogue.holder(to, proposal.note_id)
        if holder is not None:
            conflicts.append(_conflict("path", None, f"{to} ({holder.note.title[:100]})", to))
        return attrs.evolve(shown, conflicts=tuple(conflicts))

    def _relinked(self, proposal: Proposal, entry: Entry | None) -> dict[str, str]:
        is_due = proposal.is_pending and proposal.update_links and entry is not None
        if entry is None or not is_due or entry.path == proposal.to:
            return {}
        ids = relinked_by(self._catalogue, entry, proposal.to or "")
        return {each: found.path for each in ids if (found := self._catalogue.get(each)) is not None}

    def _show_creation(self, shown: ShownProposal, entry: Entry | None) -> ShownProposal:
        if entry is not None:
            return attrs.evolve(shown, is_done=True)
        holder = self._catalogue.holder(shown.proposal.path)
        if holder is None:
            return shown
        title = f"{holder.path} ({holder.note.title[:100]})"
        return attrs.evolve(shown, conflicts=(_conflict("path", None, title, shown.proposal.path),))

    def _merge(
        self, shown: ShownProposal, texts: ProposalTexts, loaded: LoadedNote, entry: Entry
    ) -> ShownProposal:
        """Compute the file that an approval would write now. Blocks."""
        base, mine = texts.base, texts.data
        assert base is not None
        assert mine is not None
        try:
            style = self._catalogue.style
            merged = merge_files(base, mine, loaded, entry, style, refused="", with_contributors=True)
        except VersionConflict as conflict:
            return attrs.evolve(shown, conflicts=tuple(conflict.extras["conflicts"]))
        except StorageFailed as failure:
            return attrs.evolve(shown, conflicts=(_conflict("file", None, failure.message),))
        if merged.data is None:
            return attrs.evolve(shown, proposed=loaded.source.data, is_done=True)
        return attrs.evolve(shown, proposed=merged.data)

    async def difference(self, shown: ShownProposal) -> tuple[str, bool]:
        """Return the unified diff from the current to the proposed note, and whether it was shortened."""
        proposal = shown.proposal
        old, new = shown.current or b"", shown.proposed or b""
        if proposal.kind == "move":
            return _difference_of_move(shown)
        if proposal.kind == "delete":
            new = b""
        made = await self._working.run(lambda: unified_diff(old, new, proposal.path, proposal.path))
        return made.text, made.is_truncated

    # -- deciding --------------------------------------------------------------------------------

    async def withdraw(self, proposal_id: str, agent: str) -> Proposal:
        """Withdraw the agent's own proposal. Raises `ProposalNotFound`, `ProposalClosed` and `Forbidden`."""
        return await self._ask(DecideProposal(id=proposal_id, status="withdrawn", by=agent))

    async def reject(self, proposal_id: str, by: str, reason: str, seal: str | None = None) -> Proposal:
        """Reject a proposal. The agent can read the reason.

        Raises `InvalidInput` and the errors of `withdraw`.
        """
        reason = " ".join(reason.split())
        if not reason:
            raise InvalidInput("The rejection has no reason. Give a reason, so that the agent can improve.")
        if len(reason) > LONGEST_REASON:
            raise InvalidInput(f"A reason has at most {LONGEST_REASON} characters, not {len(reason)}.")
        if seal is not None and (await self.show(proposal_id)).seal != seal:
            raise _looked_changed()
        return await self._ask(DecideProposal(id=proposal_id, status="rejected", by=by, reason=reason))

    async def approve(
        self, proposal_id: str, by: str, seal: str | None = None, text: str | None = None
    ) -> tuple[Proposal, WriteOutcome]:
        """Carry out a proposal in the name of its agent. `text` is the complete file if the person edited it.

        If `seal` is given, only the change that the person saw is approved. Raises `VersionConflict` (with
        `conflicts` if others changed the same lines) and the errors of a refused write. After an error, the
        proposal stays pending.
        """
        await self._refuse_own(proposal_id)
        if text is not None and seal is None:
            raise InvalidInput(
                "An edited text needs the seal of the proposal on which it is based. Open it again."
            )
        if text is not None:
            check_content(text, self._content_limit)
        for _ in range(RETRIES):
            shown = await self.show(proposal_id)
            if shown.proposal.is_pending:
                _check_approvable(shown, seal, text)
            begun = await self._ask(BeginApproval(id=proposal_id, by=by))
            if begun.created_at != shown.proposal.created_at:  # The agent has just replaced the proposal.
                await self._ask(AbandonApproval(id=proposal_id, begun_at=begun.begun_at))
                continue
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CARRIED_OUT) as scope:
                try:
                    outcome = await self._carry_out(shown, by, text)
                except VersionConflict as conflict:
                    await self._ask(AbandonApproval(id=proposal_id, begun_at=begun.begun_at))
                    if "conflicts" in conflict.extras or text is not None:
                        raise
                    continue
                except BaseException:
                    with trio.CancelScope(shield=True, deadline=trio.current_time() + PATIENCE):
                        await self._ask(AbandonApproval(id=proposal_id, begun_at=begun.begun_at))
                    raise
                decided = await self._ask(DecideProposal(id=proposal_id, status="approved", by=by))
                return decided, outcome
            if scope.cancelled_caught:
                break
        raise VersionConflict(
            "The note keeps changing, so nothing was approved. Retry in a moment.",
            current_version=None,
        )

    async def _refuse_own(self, proposal_id: str) -> None:
        """Raise `Forbidden` if the token is bound to the proposing agent, whatever rights the token has."""
        by, proposal = ACTING.get(), self._pending.get(proposal_id)
        if by is not None and proposal is not None and by.agent == proposal.agent:
            raise Forbidden(
                f"The token '{by.name}' belongs to {proposal.agent[:60]}, and no agent approves "
                "its own proposal. Log in with another token."
            )

    async def _carry_out(self, shown: ShownProposal, by: str, text: str | None) -> WriteOutcome:
        """Change the note as proposed, on behalf of the proposal's agent."""
        proposal = shown.proposal
        approval, agent, note_id = Approval(proposal.id, by), proposal.agent, proposal.note_id
        if shown.is_done and text is None:
            path = proposal.path if proposal.to is None else proposal.to
            return WriteOutcome("updated", note_id, path, shown.version or 0)
        with acting_as(_PERSON):
            if proposal.kind == "delete":
                request = DeleteNote(
                    id=note_id, agent=agent, expected_version=shown.version, approval=approval
                )
                return await self._knowledge.write(request)
            if proposal.kind == "move":
                moved = MoveNote(
                    id=note_id,
                    agent=agent,
                    path=proposal.to or "",
                    update_links=proposal.update_links,
                    relinks=frozenset(shown.relinks),
                    approval=approval,
                )
                return (await self._moving.move(moved)).outcome
            return await self._knowledge.write(await self._restoring(shown, approval, text))

    async def _restoring(self, shown: ShownProposal, approval: Approval, text: str | None) -> RestoreNote:
        """Return the request for the writer. Raises `InvalidInput` if the bytes are not a valid note."""
        proposal, style = shown.proposal, self._catalogue.style
        data = shown.proposed if text is None else text.encode()
        assert data is not None
        try:
            document = await self._working.run(lambda: self._parse(data, proposal, style))
        except UnreadableNote as problem:
            raise InvalidInput(
                f"This text is not a valid note: {problem.reason}. Correct the text."
            ) from problem
        newest = await self._newest(proposal.note_id)
        is_gone = newest is not None and newest.op == DELETED
        version = shown.version or 0
        if newest is not None:
            version = max(version, newest.version)
        return RestoreNote(
            id=proposal.note_id,
            agent=proposal.agent,
            data=data,
            path=proposal.path,
            title=document.note.title,
            source_url=document.note.source_url,
            newest_version=version,
            is_return=shown.version is None,
            expected_version=shown.version if not is_gone else None,
            approval=approval,
        )

    def _parse(self, data: bytes, proposal: Proposal, style: VaultStyle) -> Document:
        return parse_document(data, proposal.path, self._clock(), proposal.note_id, style)

    async def _newest(self, note_id: str) -> VersionRow | None:
        return await self._history.newest(note_id) if self._has_history else None

    # -- after a crash ---------------------------------------------------------------------------

    async def resume(self) -> None:
        """Finish the approvals that an earlier process began, or make their proposals pending again."""
        for proposal in self._pending.all():
            if proposal.begun_at is None:
                continue
            try:
                if await self._was_carried_out(proposal, proposal.begun_at):
                    by = proposal.decided_by or ""
                    await self._ask(DecideProposal(id=proposal.id, status="approved", by=by))
                else:
                    await self._ask(AbandonApproval(id=proposal.id, begun_at=proposal.begun_at))
            except (LithosError, ActorDown, ShuttingDown, trio.TooSlowError) as failure:
                log.error("interrupted approval not resolved", proposal=proposal.id, reason=str(failure))

    async def _was_carried_out(self, proposal: Proposal, begun_at: datetime) -> bool:
        shown = await self.show(proposal.id)
        if shown.is_done or (proposal.kind == "delete" and shown.version is None):
            return True
        if not self._has_history:
            return False
        asked = HistoryRequest(note_id=proposal.note_id, agent=proposal.agent, since=begun_at, limit=20)
        rows = (await self._history.list_versions(asked)).rows if shown.version is not None else ()
        return any(row.approved_by is not None for row in rows)

    async def _ask(self, command: ProposalCommand[R]) -> R:
        with honest_outcome("Read the proposal again before you retry."):
            return await self._mailbox.ask(command, within=PATIENCE)


def _check_approvable(shown: ShownProposal, seal: str | None, text: str | None) -> None:
    """Raise `VersionConflict` if the person saw an older state, or if others changed the same lines."""
    if seal is not None and seal != shown.seal:
        raise _looked_changed()
    if text is not None and shown.proposal.kind in ("delete", "move"):
        raise InvalidInput("Only the text of a note can be changed before it is approved.")
    if not shown.conflicts:
        return
    if shown.proposal.kind in ("create", "move") and shown.conflicts[0].get("key") == "path":
        raise PathCollision(
            f"The proposal cannot be approved unchanged, because {shown.conflicts[0]['theirs']} "
            "already exists. It stays pending.",
            conflicts=list(shown.conflicts),
        )
    if text is None or shown.version is None:
        raise VersionConflict(
            "Others changed the same lines after the proposal was made. Nothing was approved, "
            "and the proposal stays pending. Edit and approve it, or reject it.",
            current_version=shown.version,
            warnings=[],
            conflicts=list(shown.conflicts),
        )


def _difference_of_move(shown: ShownProposal) -> tuple[str, bool]:
    """Return the effects of a move as lines: the two paths, and the notes whose links the move rewrites."""
    proposal, paths = shown.proposal, sorted(shown.relinks.values())
    lines = [f"rename from {proposal.path}", f"rename to {proposal.to}"]
    if not proposal.update_links:
        lines.append("links are not changed")
    else:
        lines.append("canvases that show the note are updated")
    lines += [f"links rewritten in {path}" for path in paths[:MOST_RELINKED]]
    if len(paths) > MOST_RELINKED:
        lines.append(f"links rewritten in {len(paths) - MOST_RELINKED} more notes")
    return "".join(f"{line}\n" for line in lines), len(paths) > MOST_RELINKED


def _looked_changed() -> VersionConflict:
    return VersionConflict(
        "The note or the proposal has changed since you opened it. Nothing was decided. Check it again.",
        current_version=None,
    )


def _conflict(key: str, base: Any, theirs: Any, mine: Any = None) -> dict[str, Any]:
    return {"key": key, "base": base, "mine": mine, "theirs": theirs}
