"""Where a change lies for who asks for it, and what becomes of one that has to wait for a person.

docs/spec/scopes.md. The writer decides it in the step in which the change is made. A change that touches
several paths, as a move does with its links, lies where the strictest of them lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, cast

import attrs
import outcome
import trio
from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.coordinating.coordinator import Coordinator
from lithos.actors.kit import ActorDown, Envelope, ShuttingDown
from lithos.actors.writing.messages import Accepted, RelinkNote, WriteRequest
from lithos.actors.writing.preparation import Passed, Prepared, ProposedFile
from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.core.errors import Forbidden, InvalidInput, LithosError, PathCollision
from lithos.core.history.differences import count_lines
from lithos.core.notes.document import parse_document
from lithos.core.proposals import KeepProposal, Kind, PendingProposals, Proposal, ProposalTexts
from lithos.core.scopes import Place, WriteScopes, refusal_of
from lithos.stores.coordination.proposals import ProposalRows
from lithos.stores.notes.values import FileState, Move, Put, ReadFile, Remove

#: Paths that a refusal lists.
_LISTED: Final = 20


def agent_of(request: WriteRequest) -> str:
    """The agent in whose name a change is asked for."""
    return request.intent.agent if isinstance(request, RelinkNote) else request.agent


#: Where links lead, by the paths that have one on the way.
Reals = Mapping[str, str]
#: The places from the one where all is allowed to the one where nothing is.
_STRICTNESS: Final[tuple[Place, ...]] = ("write", "propose", "outside", "protected")


def may_write(scopes: WriteScopes, request: WriteRequest, path: str, reals: Reals) -> bool:
    """Whether a request may change the note at this path at once, and where links lead from it."""
    return _place_of(scopes, request, path, reals) == "write"


def _place_of(scopes: WriteScopes, request: WriteRequest, path: str, reals: Reals) -> Place:
    """The stricter of the places of a path as it is spelled and of where links lead from it."""
    agent = agent_of(request)
    places = [
        scopes.place_of(request.by, agent, each) for each in dict.fromkeys((path, reals.get(path, path)))
    ]
    return max(places, key=_STRICTNESS.index)


def check_scope(
    scopes: WriteScopes, catalogue: Catalogue, request: WriteRequest, prepared: Prepared, reals: Reals
) -> Place:
    """Where a prepared change lies: `write` or `propose`. Raises `Forbidden`, which names the path.

    `reals` is what is known of links; the change is refused where they lead to a hidden folder.
    """
    agent = agent_of(request)
    _refuse_hidden(request, reals)
    if not scopes.limits(request.by, agent):
        return "write"
    paths = paths_of(catalogue, prepared)
    places = {path: _place_of(scopes, request, path, reals) for path in paths}
    refused = [path for path, place in places.items() if place in ("outside", "protected")]
    if refused:
        raise _refusal(scopes, request, refused, places[refused[0]], reals, is_only=len(places) == 1)
    if "propose" not in places.values():
        return "write"
    if request.by is None or isinstance(request, RelinkNote):
        raise Forbidden(
            f"{prepared.entry.path} changes only once a person has looked, and {agent} proposes nothing."
        )
    return "propose"


def _refuse_hidden(request: WriteRequest, reals: Reals) -> None:
    # Links in a note that is never changed are not tried again at the next start.
    kind = Forbidden if isinstance(request, RelinkNote) else InvalidInput
    for path, real in reals.items():
        if any(part.startswith(".") for part in real.split("/")):
            raise kind(
                f"The path {path[:300]} leads to {real[:300]} through a link. Hidden folders hold settings, "
                "which Lithos never changes. Nothing was changed; choose another path. It must stay within "
                "knowledge directory."
            )


def _refusal(
    scopes: WriteScopes,
    request: WriteRequest,
    refused: list[str],
    place: Place,
    reals: Reals,
    *,
    is_only: bool,
) -> Forbidden:
    """The refusal for the first of several paths; it names where links lead, if that is what is refused."""
    agent, first = agent_of(request), refused[0]
    scope = scopes.scope_of(request.by, agent)
    is_spelled = scopes.place_of(request.by, agent, first) == place
    refusal = refusal_of(place, first if is_spelled else reals[first], agent, scope)
    if not is_spelled:
        told = f"{first[:300]} leads to {reals[first][:300]} through a link. {refusal.message}"
        refusal = Forbidden(told, **refusal.extras)
    if is_only:
        return refusal
    return Forbidden(refusal.message, **refusal.extras, paths=refused[:_LISTED], total=len(refused))


def paths_of(catalogue: Catalogue, prepared: Prepared) -> tuple[str, ...]:
    """The paths that a change touches: of a move both, and those of the notes whose links it rewrites."""
    operation = prepared.operation
    if not isinstance(operation, Move):
        return (operation.path,)
    return (operation.path, operation.new, *_relinked(catalogue, prepared))


def approved(prepared: Prepared, request: WriteRequest) -> Prepared:
    """The change with the person who approved it, in its version and its event; so too of links of a move."""
    approval = getattr(request, "approval", None)
    by = request.intent.approved_by if isinstance(request, RelinkNote) else getattr(approval, "by", None)
    if by is None:
        return prepared
    event = attrs.evolve(prepared.event, payload={**prepared.event.payload, "approved_by": by})
    return attrs.evolve(prepared, approved_by=by, event=event)


def decided_on(prepared: Prepared, reals: Reals) -> Prepared:
    """The change with what it was decided on: where links lead from its paths."""
    operation = prepared.operation
    if isinstance(operation, Passed):
        return prepared
    real = reals.get(operation.path)
    if isinstance(operation, Move):
        moved = attrs.evolve(operation, real=real, real_new=reals.get(operation.new))
        return attrs.evolve(prepared, operation=moved)
    return attrs.evolve(prepared, operation=attrs.evolve(operation, real=real))


def _relinked(catalogue: Catalogue, prepared: Prepared) -> Iterator[str]:
    """The paths of the other notes, and of the canvases, whose links a move rewrites."""
    intent = prepared.intent
    if intent is None or not intent.update_links:
        return
    for note_id in intent.sources:
        entry = catalogue.get(note_id)
        if entry is not None and note_id != intent.id:
            yield entry.path
    yield from intent.canvases


@frozen
class Own:
    """What an agent proposes for a note already, with its files."""

    proposal: Proposal
    texts: ProposalTexts


def only_proposed(own: Proposal) -> InvalidInput:
    """The refusal for what cannot be done to a note that nobody has approved yet."""
    return InvalidInput(
        f"This note is only proposed, as {own.id}: there is no file yet. Withdraw the proposal "
        "(lithos_proposal_withdraw), or write it anew with its id."
    )


class Proposing:
    """Keeps proposals with the coordinator, and reads them; the writer alone may call it."""

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
        """`rows` are read in `reading`'s thread alone; texts are compared in `working`."""
        self.pending = pending
        self._mailbox = coordinator.mailbox
        self._rows = rows
        self._reading = reading
        self._working = working
        self._catalogue = catalogue
        self._clock = clock

    async def load(self, proposal: Proposal) -> Own | None:
        """A proposal of a text with its files; None for another kind, and for one that just went."""
        if proposal.kind not in ("create", "update"):
            return None
        texts = await self._reading.run(lambda: self._rows.texts(proposal.id))
        return None if texts is None or texts.data is None else Own(proposal, texts)

    def as_file(
        self, own: Own, entry: Entry | None, source: ReadFile | Exception | None
    ) -> ReadFile | Exception | None:
        """The file as it is proposed, in the place of `source`, the one that is there."""
        data = own.texts.data
        assert data is not None
        if entry is not None:
            return ProposedFile(data, source.state, entry) if isinstance(source, ReadFile) else source
        proposal, now = own.proposal, self._clock()
        document = parse_document(data, proposal.path, now, proposal.note_id, self._catalogue.style)
        state = FileState(len(data), int(now.timestamp() * 1e9))
        new = Entry(
            serial=0,
            path=proposal.path,
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
        own: Own | None,
    ) -> Accepted | Exception:
        """Keep a prepared change durably; the reply that the caller gets, or why it could not be kept."""
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
        own: Own | None,
    ) -> tuple[Proposal, ProposalTexts]:
        operation, entry, now = prepared.operation, prepared.entry, self._clock()
        base = source.data if isinstance(source, ReadFile) else None
        data = operation.data if isinstance(operation, Put) else None
        kind, base_version = _kind_of(prepared), _version_before(prepared)
        if own is not None:
            base, base_version = own.texts.base, own.proposal.base_version
            kind = own.proposal.kind
        agent, path = agent_of(request), operation.path
        if kind == "create" and own is None:
            earlier = self.pending.new_at(path, agent)
            if earlier is not None and earlier.note_id != entry.note.id:
                raise PathCollision(
                    f"You propose a note at {path} already. Change that one by its id, or withdraw it "
                    "(lithos_proposal_withdraw).",
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
    """The version of the note as it is; None where there is none."""
    version = prepared.outcome.version
    if isinstance(prepared.operation, Put):
        return version - 1 if prepared.outcome.status == "updated" else None
    return version
