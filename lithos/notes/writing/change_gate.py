"""Access check of changes: a change is allowed, needs approval, or is refused.

See docs/spec/scopes.md. The writer checks access and applies the change in the same step. A change of several
paths, such as a move with its links, gets the strictest access of these paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from lithos.kernel.values.errors import Forbidden, InvalidInput
from lithos.kernel.values.projects import projects_of, same_project
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.values import Move, Put, ReadFile
from lithos.notes.model.scopes import PathAccess, WriteScopes, foreign_project, refusal_of
from lithos.notes.writing.messages import EditNote, PatchNote, RelinkNote, WriteNote, WriteRequest
from lithos.notes.writing.ports import OwnProposal
from lithos.notes.writing.preparation import Passed, Prepared
from lithos.text.secrets.policy import SecretPolicy

#: Maximum number of paths that a refusal lists.
_LISTED: Final = 20
#: Maximum number of bytes in a file that is examined for secrets on the event loop (about 3 ms).
_ON_LOOP: Final = 64 * 1024


def agent_of(request: WriteRequest) -> str:
    """Return the name of the agent that requests a change."""
    return request.intent.agent if isinstance(request, RelinkNote) else request.agent


#: Targets of paths that lead through a symbolic link, by path.
Reals = Mapping[str, str]
#: Kinds of access, in ascending order of strictness.
_STRICTNESS: Final[tuple[PathAccess, ...]] = ("write", "propose", "outside", "protected")


def may_write(scopes: WriteScopes, request: WriteRequest, path: str, reals: Reals) -> bool:
    """Return whether a request may directly change the note at this path, including its link target."""
    return _place_of(scopes, request, path, reals) == "write"


def _place_of(scopes: WriteScopes, request: WriteRequest, path: str, reals: Reals) -> PathAccess:
    """Return the stricter access of a path and its link target."""
    agent = agent_of(request)
    places = [
        scopes.place_of(request.by, agent, each) for each in dict.fromkeys((path, reals.get(path, path)))
    ]
    return max(places, key=_STRICTNESS.index)


def check_scope(
    scopes: WriteScopes, catalogue: Catalogue, request: WriteRequest, prepared: Prepared, reals: Reals
) -> PathAccess:
    """Return the access to a prepared change, either `write` or `propose`.

    If the change is not allowed, raise `Forbidden`, which names the path.

    `reals` contains the known link targets. The change is refused if a link leads to a hidden folder.
    """
    agent = agent_of(request)
    _refuse_hidden(request, reals)
    if not scopes.limits(request.by, agent):
        return "write"
    if scopes.projects:
        _refuse_foreign(scopes, catalogue, request, prepared)
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


def without_foreign(scopes: WriteScopes, request: WriteNote) -> WriteNote:
    """Return the request without the session's project, if the caller may not change its folders."""
    if request.working_in is None or not scopes.projects:
        return request
    scope = scopes.keeps_out_of(request.working_in, request.by, request.agent)
    return request if scope is None else attrs.evolve(request, working_in=None)


def _refuse_foreign(
    scopes: WriteScopes, catalogue: Catalogue, request: WriteRequest, prepared: Prepared
) -> None:
    """Raise `Forbidden` if a change adds a project to a note and the caller may not change its folders."""
    note, agent = prepared.entry.note, agent_of(request)
    old, name = catalogue.get(note.id), catalogue.projects.rules.property_name
    before = () if old is None else projects_of(old.note.extra.get(name))
    for project in projects_of(note.extra.get(name)):
        scope = scopes.keeps_out_of(project, request.by, agent)
        if scope is not None and not any(same_project(project, each) for each in before):
            raise foreign_project(project, agent, scope)


def proposes_nothing(prepared: Prepared, agent: str) -> Forbidden:
    """Return the error for a change that needs approval but cannot be made as a proposal."""
    return Forbidden(
        f"{prepared.entry.path} changes only after a person's approval, but {agent} makes no "
        "proposals. Nothing was changed."
    )


def _refuse_hidden(request: WriteRequest, reals: Reals) -> None:
    # The class decides whether the next start tries again. Links in a note that may never be changed are not
    # retried.
    kind = Forbidden if isinstance(request, RelinkNote) else InvalidInput
    for path, real in reals.items():
        if any(part.startswith(".") for part in real.split("/")):
            raise kind(
                f"The path {path[:300]} leads to {real[:300]} through a link. Hidden folders hold "
                "settings, which Lithos never changes. Nothing was changed. Choose another path. "
                "It must stay within knowledge directory."
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
    """Return the error for a refused change of several paths.

    The message is about the first refused path, or its link target if only the target is refused.
    """
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
    """Return all paths that a change affects.

    A move affects its two paths, and the notes and canvases whose links change.
    """
    operation = prepared.operation
    if not isinstance(operation, Move):
        return (operation.path,)
    return (operation.path, operation.new, *_relinked(catalogue, prepared))


def approved(prepared: Prepared, request: WriteRequest) -> Prepared:
    """Return the change with the approving person recorded in its version and event."""
    approval = getattr(request, "approval", None)
    by = request.intent.approved_by if isinstance(request, RelinkNote) else getattr(approval, "by", None)
    if by is None:
        return prepared
    event = attrs.evolve(prepared.event, payload={**prepared.event.payload, "approved_by": by})
    return attrs.evolve(prepared, approved_by=by, event=event)


def is_long(prepared: Prepared) -> bool:
    """Return whether a change is too long to be examined for secrets on the event loop."""
    return isinstance(prepared.operation, Put) and len(prepared.operation.data) > _ON_LOOP


def with_warnings(
    secrets: SecretPolicy, request: WriteRequest, prepared: Prepared, source: object
) -> Prepared:
    """Return the change with warnings about secrets that an agent adds to the file `source`.

    Raises `InvalidInput` if secrets are refused. Changes that a person makes or approves are not examined.
    """
    if not isinstance(request, WriteNote | EditNote | PatchNote) or not isinstance(prepared.operation, Put):
        return prepared
    is_own = request.by is not None and request.by.is_own
    if is_own or (not isinstance(request, WriteNote) and request.approval is not None):
        return prepared
    old = source.data if isinstance(source, ReadFile) else b""
    warned = secrets.of_file(prepared.entry.path, old, prepared.operation.data)
    if not warned:
        return prepared
    outcome = attrs.evolve(prepared.outcome, warnings=(*prepared.outcome.warnings, *warned))
    return attrs.evolve(prepared, outcome=outcome)


def decided_on(prepared: Prepared, reals: Reals) -> Prepared:
    """Return the change with the link targets that the access decision was based on."""
    operation = prepared.operation
    if isinstance(operation, Passed):
        return prepared
    real = reals.get(operation.path)
    if isinstance(operation, Move):
        moved = attrs.evolve(operation, real=real, real_new=reals.get(operation.new))
        return attrs.evolve(prepared, operation=moved)
    return attrs.evolve(prepared, operation=attrs.evolve(operation, real=real))


def _relinked(catalogue: Catalogue, prepared: Prepared) -> Iterator[str]:
    """Yield the paths of the canvases and other notes whose links change because of a move."""
    intent = prepared.intent
    if intent is None or not intent.update_links:
        return
    for note_id in intent.sources:
        entry = catalogue.get(note_id)
        if entry is not None and note_id != intent.id:
            yield entry.path
    yield from intent.canvases


def only_proposed(own: OwnProposal) -> InvalidInput:
    """Return the error for an operation that is possible only on approved notes."""
    return InvalidInput(
        f"This note is only proposed, as {own.id}, so its file does not exist yet. Withdraw the "
        "proposal (lithos_proposal_withdraw), or write the note again with its id."
    )
