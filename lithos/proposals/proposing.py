"""The gate that stores an agent's change as a proposal until a person has decided (docs/spec/scopes.md)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, cast

import attrs
import outcome
import trio

from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.actors.mailboxes import ActorDown, Envelope, ShuttingDown
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.values.errors import LithosError, PathCollision
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.values import FileState, Move, Put, ReadFile, Remove
from lithos.notes.format.document import parse_document
from lithos.notes.writing.change_gate import agent_of
from lithos.notes.writing.messages import Accepted, WriteRequest
from lithos.notes.writing.ports import ProposedText
from lithos.notes.writing.preparation import Prepared, ProposedFile
from lithos.proposals.model import KeepProposal, Kind, PendingProposals, Proposal, ProposalTexts
from lithos.proposals.rows import ProposalRows
from lithos.text.outline.differences import count_lines


class Proposing:
    """The `ChangeGate` of the writer: stores and reads proposals.

    The coordinator writes the database rows.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        pending: PendingProposals,
        rows: ProposalRows,
        reading: Blocking,
        working: Blocking,
        catalogue: Catalogue,
        clock: Callable[[], datetime],
    ) -> None:
        """`rows` may only be read in the thread `reading`. Texts are compared in the threads `working`."""
        self._pending = pending
        self._mailbox = coordinator.mailbox
        self._rows = rows
        self._reading = reading
        self._working = working
        self._catalogue = catalogue
        self._clock = clock

    @property
    def has_any(self) -> bool:
        """Return whether any proposal is pending."""
        return len(self._pending) > 0

    def own(self, note_id: str, agent: str) -> Proposal | None:
        """Return this agent's proposal for the text of a note."""
        return self._pending.own(note_id, agent)

    async def load(self, proposal_id: str) -> ProposedText | None:
        """Return a proposal of a text with its files.

        Return None for another kind and for a deleted proposal.
        """
        proposal = self._pending.get(proposal_id)
        if proposal is None or proposal.kind not in ("create", "update"):
            return None
        texts = await self._reading.run(lambda: self._rows.texts(proposal_id))
        if texts is None or texts.data is None:
            return None
        return ProposedText(
            note_id=proposal.note_id,
            path=proposal.path,
            base_version=proposal.base_version,
            base=texts.base,
            data=texts.data,
            is_new=proposal.kind == "create",
        )

    def as_file(
        self, own: ProposedText, entry: Entry | None, source: ReadFile | Exception | None
    ) -> ReadFile | Exception | None:
        """Return the proposed file as a replacement for `source`, the current file."""
        data = own.data
        if entry is not None:
            return ProposedFile(data, source.state, entry) if isinstance(source, ReadFile) else source
        now = self._clock()
        document = parse_document(data, own.path, now, own.note_id, self._catalogue.style)
        state = FileState(len(data), int(now.timestamp() * 1e9))
        new = Entry(
            serial=0,
            path=own.path,
            note=attrs.evolve(document.note, version=0),
            digest="",
            state=state,
            identified=True,
            links=(),
        )
        return ProposedFile(data, state, new)

    async def keep(
        self,
        request: WriteRequest,
        prepared: Prepared,
        source: ReadFile | Exception | None,
        own: ProposedText | None,
    ) -> Accepted | Exception:
        """Store a prepared change durably as a proposal.

        Return the reply for the caller, or the error that prevented the change from being stored.
        """
        try:
            proposal, texts = await self._draft(request, prepared, source, own)
            kept = await self._mailbox.ask(KeepProposal(proposal=proposal, texts=texts))
        except (LithosError, ActorDown, ShuttingDown, trio.TooSlowError) as failure:
            return failure
        told = attrs.evolve(
            prepared.outcome,
            status="proposed",
            version=kept.base_version or 0,
            proposal_id=kept.id,
            expires_at=kept.expires_at,
        )
        accepted: Accepted = Envelope(cast(Any, None))
        accepted.resolve(outcome.Value(told))
        return accepted

    async def _draft(
        self,
        request: WriteRequest,
        prepared: Prepared,
        source: ReadFile | Exception | None,
        own: ProposedText | None,
    ) -> tuple[Proposal, ProposalTexts]:
        operation, entry, now = prepared.operation, prepared.entry, self._clock()
        base = source.data if isinstance(source, ReadFile) else None
        data = operation.data if isinstance(operation, Put) else None
        kind, base_version = _kind_of(prepared), _version_before(prepared)
        if own is not None:
            base, base_version = own.base, own.base_version
            kind = "create" if own.is_new else "update"
        agent, path = agent_of(request), operation.path
        if kind == "create" and own is None:
            earlier = self._pending.new_at(path, agent)
            if earlier is not None and earlier.note_id != entry.note.id:
                raise PathCollision(
                    f"You already propose a note at {path}. Change that note by its id, or "
                    "withdraw the proposal (lithos_proposal_withdraw).",
                    existing_id=earlier.note_id,
                    proposal_id=earlier.id,
                )
        added = removed = 0
        if kind != "move":
            old, new = base or b"", data or b""
            added, removed = await self._working.run(lambda: count_lines(old, new))
        proposal = Proposal(
            id="",
            note_id=entry.note.id,
            agent=agent,
            kind=kind,
            path=path,
            to=operation.new if isinstance(operation, Move) else None,
            update_links=prepared.intent is None or prepared.intent.update_links,
            title=entry.note.title,
            base_version=base_version,
            added=added,
            removed=removed,
            created_at=now,
            expires_at=now,
        )
        return proposal, ProposalTexts(base, data)


def _kind_of(prepared: Prepared) -> Kind:
    if isinstance(prepared.operation, Move):
        return "move"
    if isinstance(prepared.operation, Remove):
        return "delete"
    return "create" if prepared.outcome.status == "created" else "update"


def _version_before(prepared: Prepared) -> int | None:
    """Return the current version of the note, or None for a new note."""
    version = prepared.outcome.version
    if isinstance(prepared.operation, Put):
        return version - 1 if prepared.outcome.status == "updated" else None
    return version
