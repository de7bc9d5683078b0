"""Where a change lies for who asks for it: it may be made, or only proposed, or neither.

docs/spec/scopes.md. The writer decides it in the step in which the change is made. A change that touches
several paths, as a move does with its links, lies where the strictest of them lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from lithos.kernel.values.errors import Forbidden, InvalidInput
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.values import Move
from lithos.notes.model.scopes import PathAccess, WriteScopes, refusal_of
from lithos.notes.writing.messages import RelinkNote, WriteRequest
from lithos.notes.writing.ports import OwnProposal
from lithos.notes.writing.preparation import Passed, Prepared

#: Paths that a refusal lists.
_LISTED: Final = 20


def agent_of(request: WriteRequest) -> str:
    """The agent in whose name a change is asked for."""
    return request.intent.agent if isinstance(request, RelinkNote) else request.agent


#: Where links lead, by the paths that have one on the way.
Reals = Mapping[str, str]
#: The places from the one where all is allowed to the one where nothing is.
_STRICTNESS: Final[tuple[PathAccess, ...]] = ("write", "propose", "outside", "protected")


def may_write(scopes: WriteScopes, request: WriteRequest, path: str, reals: Reals) -> bool:
    """Whether a request may change the note at this path at once, and where links lead from it."""
    return _place_of(scopes, request, path, reals) == "write"


def _place_of(scopes: WriteScopes, request: WriteRequest, path: str, reals: Reals) -> PathAccess:
    """The stricter of the places of a path as it is spelled and of where links lead from it."""
    agent = agent_of(request)
    places = [
        scopes.place_of(request.by, agent, each) for each in dict.fromkeys((path, reals.get(path, path)))
    ]
    return max(places, key=_STRICTNESS.index)


def check_scope(
    scopes: WriteScopes, catalogue: Catalogue, request: WriteRequest, prepared: Prepared, reals: Reals
) -> PathAccess:
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
        raise proposes_nothing(prepared, agent)
    return "propose"


def proposes_nothing(prepared: Prepared, agent: str) -> Forbidden:
    """The refusal for a change that needs a person, where it cannot be proposed."""
    return Forbidden(
        f"{prepared.entry.path} changes only after a person's approval, and {agent} proposes nothing."
    )


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
    place: PathAccess,
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


def only_proposed(own: OwnProposal) -> InvalidInput:
    """The refusal for what cannot be done to a note that nobody has approved yet."""
    return InvalidInput(
        f"This note is only proposed, as {own.id}: there is no file yet. Withdraw the proposal "
        "(lithos_proposal_withdraw), or write it again with its id."
    )
