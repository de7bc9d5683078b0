"""Domain errors (refusals). Each wire code has one exception class (docs/spec/tools.md §1.3).

A `LithosError` is a *refusal*: nothing was changed unless its message says so. Only `lithos.server.tools`
turns a refusal into an error envelope. Bugs and broken disks raise ordinary exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar


class LithosError(Exception):
    """A refusal with a wire code. The code is the class name in snake case, unless an explicit code is given.

    `message` is one sentence that says what to do next. `extras` are further keys of the envelope, in order.
    `tools` adds an empty `warnings` to refused writes.
    """

    code: ClassVar[str] = "internal_error"

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__ and "code" not in vars(cls):
            cls.code = re.sub(r"(?<=.)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, message: str, **extras: Any) -> None:
        super().__init__(message)
        self.message = message
        self.extras: Mapping[str, Any] = extras


def leaves_of(failure: BaseException) -> Iterator[BaseException]:
    """Yield all failures in an exception group. If `failure` is not a group, yield it alone."""
    if isinstance(failure, BaseExceptionGroup):
        for inner in failure.exceptions:
            yield from leaves_of(inner)
    else:
        yield failure


def first_of(failure: BaseException) -> BaseException:
    """Return the first failure in an exception group. If `failure` is not a group, return it."""
    return next(leaves_of(failure))


class InvalidInput(LithosError):
    """An argument has an invalid value."""


class Forbidden(LithosError):
    """The token lacks the required right, or is bound to another agent."""


class DocNotFound(LithosError):
    """No note has this id or path."""


class NoteNotFound(LithosError):
    """No note has this id (`lithos_note_update`)."""


class AmbiguousIdPrefix(LithosError):
    """Several ids begin with the given text. Extras: `candidates` (at most five)."""


class VersionConflict(LithosError):
    """`expected_version` is not the current version.

    Extras: `current_version`, `current_updated_at`, `warnings`. Both are null if the note is deleted or may
    change again at once. If changes overlap in a merge, the extra `conflicts` comes before `warnings`.
    """

    def __init__(self, message: str, **extras: Any) -> None:
        if "current_version" in extras:
            current = {key: extras.get(key) for key in ("current_version", "current_updated_at")}
            extras = current | {key: value for key, value in extras.items() if key not in current}
        super().__init__(message, **extras)


class SectionNotFound(LithosError):
    """No section or several sections have this path. Extras: `candidates` (at most 20 paths)."""


class TextNotFound(LithosError):
    """The note does not contain the text to find."""


class TextAmbiguous(LithosError):
    """The note contains the text to find more than once. Extras: `count`."""


class VersionNotFound(LithosError):
    """This version is not stored any more. Extras: `oldest_version`."""


class ProposalNotFound(LithosError):
    """No proposal has this id."""


class ProposalClosed(LithosError):
    """The proposal is already decided or being approved. Extras: `proposal_status`, `decided_by`."""


class HistoryDisabled(LithosError):
    """The setting `history.enabled` is false."""


class SlugCollision(LithosError):
    """Another note has the same slug. Extras: `existing_id`, `slug_collision_existing_id`, `warnings`."""


class PathCollision(LithosError):
    """The file already exists. Extras: `existing_id`, `warnings`."""


class Duplicate(LithosError):
    """Another note has the same `source_url`. Extras: `duplicate_of`, `warnings`."""


class ContentTooLarge(LithosError):
    """The content exceeds `storage.max_content_size_bytes`."""


class StorageFailed(LithosError):
    """Storage failed. Nothing was applied unless the message says so."""

    code = "internal_error"


class OutcomeUnknown(LithosError):
    """It is unknown whether the call without an answer took effect. The retry changed nothing."""


class VaultUnavailable(LithosError):
    """One of several vaults is unavailable now. The message gives the reason."""


class InvalidMode(LithosError):
    """The search mode is unknown."""


class SearchBackendFailed(LithosError):
    """No search backend could answer the query."""

    code = "search_backend_error"


class LcmaDisabled(LithosError):
    """The setting `lcma.enabled` is false."""


class NotFound(LithosError):
    """No edge has this id (`lithos_conflict_resolve`)."""


class UpdateFailed(LithosError):
    """The edge could not be updated. Nothing was changed."""


class AgentNotFound(LithosError):
    """No agent has this id."""


class ClaimFailed(LithosError):
    """The task is missing, closed or blocked, or another agent holds its aspect.

    Extras: `reason`, and the holder or the blockers.
    """


class StaleFence(LithosError):
    """No active claim on the open task has this fence.

    Extras: `held_by`, `expires_at` (null without a holder).
    """


class ClaimNotFound(LithosError):
    """This agent does not hold such a claim."""


class TaskNotFound(LithosError):
    """The task is unknown, or it must be open but is not."""


class ReceiptNotFound(LithosError):
    """The receipt is unknown or belongs to another task."""


class TaskNotResolved(LithosError):
    """The task is open, so it cannot be reopened."""


class InvalidTaskType(LithosError):
    """The task type is not `task`, `epic` or `gate`."""


class InvalidMetadataKey(LithosError):
    """Task metadata contains the forbidden key `depends_on` or `blocked_on`."""


class InvalidEdgeType(LithosError):
    """The edge type does not exist for tasks."""


class EdgeNotFound(LithosError):
    """No such edge connects the two tasks."""


class SelfEdge(LithosError):
    """The edge would link a task to itself."""


class NotAGate(LithosError):
    """The edge `waits_on_gate` starts at a task that is not a gate."""


class Cycle(LithosError):
    """The edge would close a cycle."""


class ParentExists(LithosError):
    """The child already has another parent."""


class InvalidRelationType(LithosError):
    """The spawn relation is not `discovered_from` or `blocks`."""


class IndexFailed(Exception):
    """A search index could not be changed, saved or opened for writing.

    The index can still be searched, and a retry is possible. Notes are not affected.
    """
