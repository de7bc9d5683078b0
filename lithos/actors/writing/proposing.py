"""Where a change lies for who asks for it: decided by the writer, in the step in which the change is made.

docs/spec/scopes.md. A change that touches several paths, as a move does with its links, lies where the
strictest of them lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from lithos.actors.writing.messages import RelinkNote, WriteRequest
from lithos.actors.writing.preparation import Prepared
from lithos.catalogue.catalogue import Catalogue
from lithos.core.errors import Forbidden
from lithos.core.scopes import Place, WriteScopes, refusal_of
from lithos.stores.notes.values import Move

#: Paths that a refusal lists.
_LISTED: Final = 20


def _agent_of(request: WriteRequest) -> str:
    return request.intent.agent if isinstance(request, RelinkNote) else request.agent


def may_write(scopes: WriteScopes, request: WriteRequest, path: str) -> bool:
    """Whether a request may change the note at this path at once."""
    return scopes.place_of(request.by, _agent_of(request), path) == "write"


def check_scope(
    scopes: WriteScopes, catalogue: Catalogue, request: WriteRequest, prepared: Prepared
) -> Place:
    """Where a prepared change lies: `write` or `propose`. Raises `Forbidden`, which names the path."""
    agent = _agent_of(request)
    if not scopes.limits(request.by, agent):
        return "write"
    places = {path: scopes.place_of(request.by, agent, path) for path in _paths_of(catalogue, prepared)}
    refused = [path for path, place in places.items() if place in ("outside", "protected")]
    if refused:
        scope = scopes.scope_of(request.by, agent)
        refusal = refusal_of(places[refused[0]], refused[0], agent, scope)
        if len(places) == 1:
            raise refusal
        raise Forbidden(refusal.message, **refusal.extras, paths=refused[:_LISTED], total=len(refused))
    return "propose" if "propose" in places.values() else "write"


def _paths_of(catalogue: Catalogue, prepared: Prepared) -> Iterable[str]:
    operation = prepared.operation
    if not isinstance(operation, Move):
        return (operation.path,)
    return (operation.path, operation.new, *_relinked(catalogue, prepared))


def _relinked(catalogue: Catalogue, prepared: Prepared) -> Iterator[str]:
    """The paths of the other notes whose links a move rewrites."""
    intent = prepared.intent
    if intent is None or not intent.update_links:
        return
    for note_id in intent.sources:
        entry = catalogue.get(note_id)
        if entry is not None and note_id != intent.id:
            yield entry.path
